"""Kinds of state: buffers, tied weights, averages, frozen parameters, gradients."""

import collections
import copy

import numpy as np
import pytest
import torch
from capturing import Toy, everything, toy  # noqa: F401

import repops.torch.optim

F = torch.nn.functional


def mixed():
    return torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5), torch.nn.Dropout(0.3), torch.nn.Linear(5, 3)
    )


@pytest.mark.parametrize("warm", [False, True])
def test_a_capture_leaves_everything_as_it_was(tmp_path, warm):
    toy = Toy(tmp_path, model=mixed(), optimizer=torch.optim.AdamW, fused=True)  # noqa: F811
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(toy.optimizer, 6)
    toy.model[2].eval()
    with toy.job:
        if warm:
            toy.step()
            scheduler.step()
    before = everything(toy), repr(scheduler.state_dict())
    toy.capture(scheduler=scheduler)
    assert (everything(toy), repr(scheduler.state_dict())) == before
    toy.model.count = 0

    def step():
        toy.model.count += 1
        toy.model[1].running_mean = toy.model[1].running_mean * 2
        toy.model[0].weight.data = toy.model[0].weight.data * 2
        return toy.step()

    assert "count: a step changes" in str(pytest.raises(repops.Error, toy.capture, step).value)
    assert (everything(toy), repr(scheduler.state_dict())) == before and toy.model.count == 0


def test_two_captures_in_one_process_are_the_same(tmp_path):
    hashes = []
    for name in "ab":
        toy = Toy(tmp_path / name, model=None, optimizer=torch.optim.AdamW, fused=True)  # noqa: F811
        hashes += [toy.capture(), toy.job.capture(toy.step, toy.model, toy.optimizer)]
        with toy.job:
            hashes.append(toy.job.capture(toy.step, toy.model, toy.optimizer))
    assert len(set(hashes)) == 1


def test_batch_norm(tmp_path):
    Toy(tmp_path, model=mixed()).capture()


def test_tied_weights(tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(4, 4)
            self.last = torch.nn.Linear(4, 4)
            self.last.weight = self.first.weight

        def forward(self, x):
            return self.last(torch.relu(self.first(x)))

    toy = Toy(tmp_path, model=Tied())  # noqa: F811
    toy.capture()
    assert [leaf.name for leaf in toy.program.leaves] == ["first.weight", "first.bias", "last.bias"]


def test_averages_of_weights(toy):  # noqa: F811
    own, by_hand = copy.deepcopy(toy.model), copy.deepcopy(toy.model)

    def step():
        loss = toy.step()
        with torch.no_grad():
            for a, p in zip(own.parameters(), toy.model.parameters()):
                a.mul_(0.9).add_(p * 0.1)
            for a, p in zip(by_hand.parameters(), toy.model.parameters()):
                a.data = a.data * 0.9 + p.data * 0.1
        return loss

    toy.capture(step, model={"model": toy.model, "own": own, "by_hand": by_hand})
    names = [leaf.name for leaf in toy.program.leaves]
    assert "own.weight" in names and "by_hand.bias" in names and len(names) == 6


def test_averaged_models(toy):  # noqa: F811
    """torch's AveragedModel copies at its first update, which is made before the capture."""
    swa = torch.optim.swa_utils
    ema = swa.AveragedModel(toy.model, multi_avg_fn=swa.get_ema_multi_avg_fn(0.9))

    def step():
        loss = toy.step()
        ema.update_parameters(toy.model)
        return loss

    models = {"model": toy.model, "ema": ema}
    with pytest.raises(repops.Error, match="compute different things from here on"):
        toy.capture(step, model=models)
    with toy.job:
        ema.update_parameters(toy.model)
    toy.capture(step, model=models)
    assert "ema.module.weight" in [leaf.name for leaf in toy.program.leaves]
    assert ema.n_averaged.item() == 1


def test_a_buffer_that_each_step_replaces(toy):  # noqa: F811
    toy.model.register_buffer("mean", torch.zeros(4))
    toy.model.register_buffer("before", torch.zeros(4, 4))

    def step():
        loss = toy.train(toy.model(toy.x - toy.model.mean + toy.model.before).square().mean())
        toy.model.mean = toy.model.mean * 0.9 + toy.x.mean(0) * 0.1
        toy.model.before = toy.x * 0.5
        return loss

    toy.capture(step)
    assert {"mean", "before"} <= {leaf.name for leaf in toy.program.leaves}


def test_two_buffers_in_one_memory_are_refused(toy):  # noqa: F811
    toy.model.register_buffer("a", torch.zeros(2, 4))
    toy.model.register_buffer("b", torch.zeros(2, 4))

    def step():
        toy.model.a, toy.model.b = (toy.x * 2).split(2)
        return toy.step()

    assert "b: after the step it is in the same memory as another" in toy.refused(step)


def test_a_buffer_that_the_first_step_writes_as_it_was(toy):  # noqa: F811
    toy.model.register_buffer("most", torch.full((), 1e-9))
    table = toy.job.table(np.arange(6, dtype="f4"))

    def step():
        toy.model.most.copy_(torch.maximum(toy.model.most, table))
        return toy.train(toy.loss() * toy.model.most)

    toy.capture(step)
    assert "most" in [leaf.name for leaf in toy.program.leaves]


def test_frozen_parameters_and_such_without_gradients(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Linear(5, 3))
    model.unused = torch.nn.Linear(2, 2)
    model[0].requires_grad_(False)
    toy = Toy(tmp_path, model=model, optimizer=torch.optim.AdamW, fused=True)  # noqa: F811

    def step():
        return toy.train(model[1](model[0](toy.x)).square().mean())

    toy.capture(step)
    moments = [leaf.name for leaf in toy.program.leaves if "exp_avg" in leaf.name]
    assert moments == [f"1.{p}.{m}" for p in ("weight", "bias") for m in ("exp_avg", "exp_avg_sq")]


def test_gradients_that_stay_are_state(toy):  # noqa: F811
    def step():
        loss = toy.loss()
        loss.backward()
        toy.optimizer.step()
        return loss

    toy.capture(step)
    assert [leaf.name for leaf in toy.program.leaves][2:] == ["weight.grad", "bias.grad"]
    toy.optimizer.zero_grad()

    def other():
        toy.optimizer.zero_grad()
        return step()

    toy.capture(other)
    assert [leaf.name for leaf in toy.program.leaves] == ["weight", "bias"]

    def kept():
        loss = step()
        toy.optimizer.zero_grad(set_to_none=False)
        return loss

    toy.capture(kept)


def test_gradients_that_are_there_before(toy):  # noqa: F811
    toy.loss().backward()
    assert "weight.grad: it is there before the first step" in toy.refused()


def test_gradients_are_added_up_in_a_loop(toy):  # noqa: F811
    def step():
        losses = []
        for part in toy.x.split(2):
            loss = toy.model(part).square().mean() / 2
            loss.backward()
            losses.append(loss.detach())
        torch.nn.utils.clip_grad_norm_(toy.model.parameters(), 0.5)
        toy.optimizer.step()
        toy.optimizer.zero_grad()
        return torch.stack(losses).sum()

    toy.capture(step)


def test_automatic_precision_that_is_off(toy):  # noqa: F811
    scaler = torch.amp.GradScaler("cpu", enabled=False)

    def step():
        with torch.autocast("cpu", enabled=False):
            loss = toy.loss()
        scaler.scale(loss).backward()
        scaler.unscale_(toy.optimizer)
        scaler.step(toy.optimizer)
        scaler.update()
        toy.optimizer.zero_grad()
        return loss

    toy.capture(step)


def test_a_buffer_that_grows(toy):  # noqa: F811
    toy.model.register_buffer("seen", torch.zeros(0))

    def step():
        toy.model.seen = torch.cat([toy.model.seen, toy.x.detach()[0]])
        return toy.step()

    with toy.job:
        assert "seen: the step changes its size" in toy.refused(step)
    assert toy.model.seen.numel() == 0


class Frozen(dict):
    """A dictionary that refuses changes, as some packages have for their models' sizes."""

    def update(self, *_):
        raise TypeError("it is frozen")


def test_attributes_that_refuse_to_be_changed(toy):  # noqa: F811
    toy.model.sizes, toy.model.seen = Frozen(width=3), collections.OrderedDict(a=1)
    toy.capture()
    assert toy.model.sizes == {"width": 3} and toy.model.seen == {"a": 1}

    def step():
        toy.model.seen["a"] += 1
        return toy.step()

    assert "seen" in toy.refused(step)
    assert toy.model.seen == {"a": 1}
