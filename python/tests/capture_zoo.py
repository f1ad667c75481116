"""Captures models of the zoo, and compares states with the command `verde`.

Usage: python capture_zoo.py NAME...; VERDE says which command.

Data that a model draws for each step becomes tables. A line for each model: its name, "equal" and
the program's hash, or why it was not captured."""

import logging
import os
import sys
import tempfile
import traceback
import warnings

import numpy as np
import torch
import zoo
from torch.utils._python_dispatch import _disable_current_modes

import repops.jobs
import repops.torch

STEPS = 3
MAKERS = ("ids", "numbers", "pixels")


class Tables:
    """What the zoo's makers of data give: first as they are, at each step; then from tables."""

    def __init__(self):
        self.clear()
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").split(".")[0] == "zoo":
                for name in MAKERS:
                    if hasattr(module, name):
                        setattr(module, name, self._wrapped(getattr(module, name)))

    def clear(self):
        self.seen, self.made, self.at, self.playing, self.inside = [], [], 0, False, False

    def _wrapped(self, maker):
        def make(*shape, **how):
            if self.inside:
                return maker(*shape, **how)
            if self.playing:
                self.at += 1
                return self.made[self.at - 1]
            self.inside = True
            with _disable_current_modes():
                value = maker(*shape, **how)
            self.inside = False
            self.seen[-1].append(value) if self.seen else None
            return value

        return make

    def watch(self, loss):
        """Runs the loss at each step, for its data alone."""
        state = torch.get_rng_state()
        with torch.no_grad():
            for i in range(STEPS):
                self.seen.append([])
                loss(i)
        torch.set_rng_state(state)

    def declare(self, job):
        for values in zip(*self.seen):
            self.made.append(job.table(torch.stack([v.clone() for v in values])))

    def begin(self):
        self.at, self.playing = 0, True


def capture(name, folder, optimizer=None):
    tables.clear()
    job = repops.jobs.Job(folder, seed=7, steps=STEPS, checkpoint_interval=1)
    with job:
        torch.manual_seed(1)
        own, loss = zoo.MODELS[name][1]()
        own.train()
        before = {k: v.clone() for k, v in own.state_dict().items()}
        tables.watch(loss)
        own.load_state_dict(before)
        tables.declare(job)
        params = [p for p in own.parameters() if p.requires_grad]
        opt = optimizer(params) if optimizer else torch.optim.AdamW(params, 1e-3, fused=True)

        def step():
            tables.begin()
            value = loss(0)
            value.backward()
            torch.nn.utils.clip_grad_norm_(own.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            return value.detach()

        digest = job.capture(step, own, opt)
        job.check(STEPS, os.environ.get("VERDE", "verde"))
    return digest


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(int(os.environ.get("TRAIN_THREADS", "1")))
    for name in sys.argv[1:] or zoo.installed():
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(name, "equal", capture(name, f"{folder}/job"), flush=True)
            except repops.jobs.CaptureError as error:
                lines = str(error).splitlines()
                print(name, "refused", len(error.problems), *lines[1:6], sep=" | ", flush=True)
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{os.path.basename(last.filename)}:{last.lineno}"
                text = str(error).splitlines()[0][:200] if str(error) else ""
                print(name, "FAILED", type(error).__name__, where, text, flush=True)


tables = Tables()
np.random.seed(0)
main()
