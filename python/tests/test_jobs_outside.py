"""Reads from outside the step, and Python's reads of its tensors: refused, or constant."""

import ctypes

import numpy as np
import pytest
import torch
from capturing import Refused, scaled, toy  # noqa: F401

refused = Refused()


@refused(r"test_jobs_outside.py:\d+: .*Python reads a number")
def branch_on_the_loss(t):
    def step():
        loss = t.loss()
        return t.train(loss * 2 if loss > 1 else loss)

    return step


@refused(r"test_jobs_outside.py:\d+: .*Python reads a number")
def item(t):
    return lambda: scaled(t, t.loss().item())


@refused(r"test_jobs_outside.py:\d+: numpy: Python reads a number that depends")
def numbers_by_numpy(t):
    return lambda: scaled(t, 2 if t.x.numpy().sum() > 1e9 else 1)


@refused(r"test_jobs_outside.py:\d+: __array__: Python reads a number that depends")
def numbers_by_asarray(t):
    return lambda: scaled(t, 2 if np.asarray(t.x).sum() > 1e9 else 1)


@refused(r"test_jobs_outside.py:\d+: tolist: Python reads a number that depends")
def numbers_by_tolist(t):
    return lambda: scaled(t, 2 if t.loss().tolist() > 1e9 else 1)


@refused(r"it reads a tensor from outside of the step that is not declared.*\[4, 4\] float32")
def tensor_from_outside(t):
    mine = torch.ones(4, 4)
    return lambda: t.train(t.model(t.x + mine).square().mean())


@refused("what it reads is another constant from step to step|a step changes")
def another_array_at_each_step(t):
    arrays = iter(np.arange(160, dtype="f4").reshape(10, 4, 4))
    return lambda: t.train(t.model(t.x + torch.from_numpy(next(arrays))).square().mean())


@refused("it reads a tensor from outside of the step that is not declared")
def tensor_that_is_partly_written(t):
    queue = torch.ones(8, 4)

    def step():
        queue[:4].copy_(t.x)
        return t.train(t.model(queue).square().mean())

    return step


@refused("it reads a tensor from outside of the step that is not declared")
def counter_that_is_a_tensor(t):
    count = torch.zeros(())

    def step():
        count.add_(1)
        return scaled(t, 2 if (count * 2).item() > 100 else 1)

    return step


@refused("it reads a tensor from outside of the step that is not declared")
def counter_that_is_another_tensor_each_time(t):
    t.model.count = torch.zeros(())

    def step():
        t.model.count = t.model.count + 1
        return scaled(t, 2 if t.model.count.item() > 100 else 1)

    return step


@refused("optimizer0.group0.lr: the step writes to this constant")
def rate_that_is_a_tensor(t):
    t.optimizer = torch.optim.SGD(t.model.parameters(), torch.tensor(0.1), fused=True)

    def step():
        t.optimizer.param_groups[0]["lr"].mul_(0.5)
        return t.step()

    return step


@refused("constant0: the step writes to this constant")
def constant_that_is_written(t):
    queue = t.job.constant(torch.ones(8, 4))

    def step():
        queue[:4].copy_(t.x)
        return t.train(t.model(queue).square().mean())

    return step


@refused("it draws from torch's generator, which no program has")
def number_of_the_generator(t):
    return lambda: scaled(t, 1 + torch.empty((), dtype=torch.int64).random_(0, 2).float())


@refused("a number of Python differs from step to step")
def slope_that_changes(t):
    numbers = iter([i / 100 for i in range(100)])
    relu = torch.nn.functional.leaky_relu
    return lambda: t.train(relu(t.model(t.x), next(numbers)).square().mean())


@refused("it reads a tensor from outside of the step that is not declared")
def attribute_that_is_a_tensor(t):
    t.model.before = torch.zeros(4, 3)

    def step():
        y = t.model(t.x)
        loss = (y - t.model.before).square().mean()
        t.model.before = y.detach()
        return t.train(loss)

    return step


@refused("mean: the first step makes this state, and from zeros it would be another one")
def buffer_that_is_made_late(t):
    def step():
        if not hasattr(t.model, "mean"):
            t.model.register_buffer("mean", t.x.mean(0))
        return t.train(t.model(t.x - t.model.mean).square().mean())

    return step


@refused(r"another constant from step to step|a number of Python is")
def cache_that_fills_at_the_second_step(t):
    cache = []

    def step():
        cache.append(1)
        return scaled(t, 3 if len(cache) == 2 else 1)

    return step


@refused("a number of Python is 0.1.* and 0.2.* at two steps|lr.*: a step changes")
def rate_by_hand(t):
    count = 0

    def step():
        nonlocal count
        t.optimizer.param_groups[0]["lr"] = 0.1 * (1 + count)
        count += 1
        return t.step()

    return step


@refused("draws from a generator that is given")
def generator_of_torch(t):
    g = torch.Generator()
    keep = torch.zeros(4, 4)

    def step():
        mask = torch.empty_like(keep).bernoulli_(0.5, generator=g)
        return t.train(t.model(t.x * mask).square().mean())

    return step


@refused("it draws from torch's generator")
def noise(t):
    return lambda: t.train(t.model(t.x + torch.empty(4, 4).random_(9)).square().mean())


@pytest.mark.parametrize("name", refused)
def test_what_comes_from_outside_is_refused(toy, name):  # noqa: F811
    refused.check(name, toy)


@pytest.mark.parametrize("kind", ["read", "written", "offset"])
def test_memory_that_changes_where_nothing_tells_why(toy, kind):  # noqa: F811
    """The alternation is inside a library, which no search examines."""
    toy.model.register_buffer("a", torch.ones(4, 4))
    toy.model.register_buffer("b", torch.ones(4, 4) * 2)
    array = np.zeros(1)
    array.flags.writeable = False
    hidden = np.lib.stride_tricks.as_strided(array, writeable=False)

    def step():
        number = int(hidden[0])
        ctypes.cast(hidden.ctypes.data, ctypes.POINTER(ctypes.c_double))[0] += 1
        own = (toy.model.a, toy.model.b)[number % 2]
        toy.model.a.add_(1), toy.model.b.add_(1)
        x = toy.x
        if kind == "read":
            x = x + own
        elif kind == "written":
            own.mul_(0.5)
        else:
            x = x + toy.model.a[number % 3] * 2
        return toy.train(toy.model(x).square().mean())

    assert "it reads or writes other memory from step to step" in toy.refused(step)


# ---- what is captured rightly ----


def test_a_counter_that_is_as_before_after_one_step(toy):  # noqa: F811
    """A tensor that a step writes is state, even if the first step leaves the value unchanged."""
    toy.model.register_buffer("turn", torch.zeros(()))

    def step():
        toy.model.turn.add_(1).mul_(toy.model.turn - 1)  # the first step gives 0 again
        return toy.train(toy.loss() * (1 + toy.model.turn))

    toy.capture(step)
    assert "turn" in [leaf.name for leaf in toy.program.leaves]


def test_recording_leaves_tensors_as_they_were(toy):  # noqa: F811
    names = ("numpy", "tolist", "__array__", "__dlpack__", "item")
    before = [getattr(torch.Tensor, n) for n in names], set(vars(torch.Tensor))
    toy.refused(numbers_by_numpy(toy))
    assert ([getattr(torch.Tensor, n) for n in names], set(vars(torch.Tensor))) == before


def test_an_array_that_stays_is_a_constant(toy):  # noqa: F811
    array = np.ones((4, 4), "f4")
    for made in (torch.tensor, torch.from_numpy):
        toy.capture(lambda: toy.train(toy.model(toy.x + made(array)).square().mean()))  # noqa: B023


def test_a_tensor_that_python_asks_may_stay(toy):  # noqa: F811
    mask = torch.ones(3, 3).triu()
    toy.capture(lambda: scaled(toy, 2.0 if mask[0, 1] == 1 and (mask * 2).sum() > 3 else 1.0))
