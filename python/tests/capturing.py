"""Small training steps that tests capture."""

import os
import random
import re

import numpy as np
import pytest
import torch

import repops.jobs

STEPS = 6


class Toy:
    """A linear model on rows of numbers, with the usual training step."""

    def __init__(self, folder, steps=STEPS, model=None, optimizer=None, **how):
        self.job = repops.jobs.Job(folder / "job", seed=3, steps=steps, checkpoint_interval=1)
        rng = np.random.default_rng(0)
        self.rows = rng.standard_normal((12, 4), "f4")
        self.x = self.job.rows(self.rows, batch=4)
        torch.manual_seed(1)
        self.model = torch.nn.Linear(4, 3) if model is None else model
        make = optimizer or torch.optim.SGD
        self.optimizer = make(self.model.parameters(), **{"lr": 0.1, **how})

    def loss(self):
        return self.model(self.x).square().mean()

    def train(self, loss):
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    def step(self):
        return self.train(self.loss())

    def capture(self, step=None, scheduler=None, model=None, optimizer=None):
        """Captures the step, and compares it with the command, if there is one."""
        own = self.optimizer if optimizer is None else optimizer
        digest = self.job.capture(step or self.step, model or self.model, own, scheduler)
        self.check()
        return digest

    def check(self, steps=3):
        if os.environ.get("VERDE"):
            return self.job.check(steps, os.environ["VERDE"])
        return []

    def refused(self, step=None, scheduler=None, **how):
        """The message with which a capture is refused."""
        before = sorted(self.job.folder.glob("*"))
        with pytest.raises((repops.jobs.CaptureError, repops.Error)) as error:
            self.job.capture(step or self.step, self.model, self.optimizer, scheduler, **how)
        assert sorted(self.job.folder.glob("*")) == before
        return str(error.value)

    @property
    def program(self):
        return self.job._captured.program


def trained_by(loss, job, model, optimizer):
    """Captures steps that train with this loss, and compares all of them with the command."""

    def step():
        value = loss()
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        return value

    job.capture(step, model, optimizer)
    assert len(job.check(job.steps, os.environ["VERDE"])) == job.steps


@pytest.fixture
def toy(tmp_path):
    torch.set_num_threads(1)
    return Toy(tmp_path)


def scaled(t, factor):
    """A step whose loss is multiplied by a factor."""
    return t.train(t.loss() * factor)


class Refused(dict):
    """Functions that make steps, by name, each with part of the message that refuses the step."""

    def __call__(self, words):
        def register(make):
            self[make.__name__] = (make, words)
            return make

        return register

    def check(self, name, t):
        make, words = self[name]
        found(words, t.refused(make(t)))


def found(words, text):
    assert re.search(words, text), text


def everything(toy):
    """The bytes of everything that a capture must leave unchanged."""
    model, optimizer = toy.model, toy.optimizer
    return {
        "model": {k: v.numpy().tobytes() for k, v in model.state_dict().items()},
        "grads": [None if p.grad is None else p.grad.numpy().tobytes() for p in model.parameters()],
        "objects": [id(t) for t in (*model.parameters(), *model.buffers())],
        "places": [t.data_ptr() for t in (*model.parameters(), *model.buffers())],
        "optimizer": repr(optimizer.state_dict()),
        "modes": [m.training for m in model.modules()],
        "generators": [
            torch.get_rng_state().numpy().tobytes(),
            hash(random.getstate()),
            repr(np.random.get_state()),
        ],
    }
