"""Optimizers in captured steps, and the state that each keeps."""

import functools

import numpy as np
import pytest
import torch
from capturing import Toy, toy  # noqa: F401

import repops.torch.optim


@pytest.mark.parametrize("how", [{"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}])
@pytest.mark.parametrize("fused", [False, True])
def test_momentum_starts_as_zeros(tmp_path, how, fused):
    Toy(tmp_path, fused=fused, **how).capture()


def test_dampened_momentum_does_not(tmp_path):
    toy = Toy(tmp_path, momentum=0.9, dampening=0.1, fused=True)  # noqa: F811
    text = "weight.momentum_buffer: the first step makes this state, and from zeros it would be"
    assert text in toy.refused()
    with toy.job:
        toy.step()
    toy.capture()


@pytest.mark.parametrize("kind", ["RMSprop", "Adadelta", "Adagrad"])
def test_other_optimizers(tmp_path, kind):
    Toy(tmp_path, optimizer=getattr(torch.optim, kind)).capture()


def test_state_that_starts_otherwise_needs_a_step_before(tmp_path):
    toy = Toy(tmp_path, optimizer=torch.optim.Rprop)  # noqa: F811
    assert "weight.step_size: the first step makes this state" in toy.refused()
    with toy.job:
        toy.step()
    toy.capture()


@pytest.mark.parametrize("kind", ["AdamW", "Adam", "NAdam", "Adamax"])
def test_optimizers_that_count_in_python(tmp_path, kind):
    toy = Toy(tmp_path, optimizer=getattr(torch.optim, kind))  # noqa: F811
    assert "a number of Python is" in toy.refused()


def test_a_gan(tmp_path):
    rng = np.random.default_rng(0)
    toy = Toy(tmp_path)  # noqa: F811
    noise = toy.job.table(rng.standard_normal((6, 4, 2), "f4"))
    one = toy.job.constant(torch.ones(4, 1))
    make, judge = torch.nn.Linear(2, 4), torch.nn.Linear(4, 1)
    first = torch.optim.AdamW(make.parameters(), 1e-2, fused=True)
    second = torch.optim.AdamW(judge.parameters(), 2e-2, betas=(0.5, 0.9), fused=True)

    def step():
        fake = make(noise)
        loss = (
            torch.nn.functional.mse_loss(judge(toy.x), one) + judge(fake.detach()).square().mean()
        )
        loss.backward()
        second.step()
        second.zero_grad()
        other = torch.nn.functional.mse_loss(judge(fake), one)
        other.backward()
        first.step()
        first.zero_grad()
        second.zero_grad()
        return loss.detach() + other.detach()

    toy.capture(step, model={"make": make, "judge": judge}, optimizer=[first, second])
    names = [leaf.name for leaf in toy.program.leaves]
    assert sum(n.startswith("correction.") for n in names) == 3 and "judge.weight" in names


@pytest.mark.parametrize("own", [False, True])
def test_an_optimizer_that_takes_several_steps_in_one(tmp_path, own):
    kind = functools.partial(torch.optim.AdamW, fused=True) if not own else repops.torch.optim.AdamW
    toy = Toy(tmp_path, optimizer=kind)  # noqa: F811
    other = torch.nn.Linear(4, 1)
    second = kind(other.parameters(), 1e-2)

    def step():
        for part in toy.x.split(2):
            other(part).square().mean().backward()
            second.step()
            second.zero_grad()
        return toy.train(toy.loss())

    models, optimizers = {"a": toy.model, "b": other}, [toy.optimizer, second]
    toy.capture(step, model=models, optimizer=optimizers)
    names = {n.name for n in toy.program.leaves if "correction" in n.name}
    assert names == {f"correction.{b}{more}" for b in (0.9, 0.999) for more in ("", ".0.2")}
    with toy.job:  # continues from the optimizers' current steps
        step(), step()
    toy.capture(step, model=models, optimizer=optimizers)
    assert "correction.0.9.4.2" in {n.name for n in toy.program.leaves}


def test_two_optimizers_of_one_parameter(tmp_path):
    toy = Toy(tmp_path, optimizer=torch.optim.AdamW, fused=True)  # noqa: F811
    second = torch.optim.AdamW(toy.model.parameters(), 1e-2, fused=True)

    def step():
        loss = toy.loss()
        loss.backward()
        toy.optimizer.step()
        second.step()
        second.step()
        second.zero_grad()
        return loss

    toy.capture(step, optimizer=[toy.optimizer, second])
    names = {leaf.name for leaf in toy.program.leaves}
    assert {
        "bias.exp_avg",
        "bias.optimizer1.exp_avg",
        "correction.0.9",
        "correction.0.9.0.2",
    } < names
