"""What a step keeps in Python: it is refused by a sentence that names it, or captured rightly."""

import array
import collections
import contextvars
import ctypes
import datetime
import decimal
import enum
import fractions
import functools
import itertools
import logging
import os
import random
import sys
import time
import types

import numpy as np
import pytest
import torch
from capturing import toy  # noqa: F401

import repops.jobs

COUNT = 0
CELLS = {"count": 0}


class Box:
    """An object without torch."""

    shared = {"count": 0}

    def __init__(self):
        self.count = 0


Named = collections.namedtuple("Named", "count")


class Slots:
    __slots__ = ("count",)

    def __init__(self):
        self.count = 0


def scaled(t, factor):
    return t.train(t.loss() * factor)


REFUSED = {}


def refused(words):
    """A maker of a step, and words of the sentence that it is refused by."""

    def register(make):
        REFUSED[make.__name__] = (make, words)
        return make

    return register


@refused(r"test_jobs_hidden.py:\d+: .*Python reads a number")
def branch_on_the_loss(t):
    def step():
        loss = t.loss()
        return t.train(loss * 2 if loss > 1 else loss)

    return step


@refused(r"test_jobs_hidden.py:\d+: .*Python reads a number")
def item(t):
    return lambda: scaled(t, t.loss().item())


@refused(r"test_jobs_hidden.py:\d+: numpy: Python reads a number that depends")
def numbers_by_numpy(t):
    return lambda: scaled(t, 2 if t.x.numpy().sum() > 1e9 else 1)


@refused(r"test_jobs_hidden.py:\d+: __array__: Python reads a number that depends")
def numbers_by_asarray(t):
    return lambda: scaled(t, 2 if np.asarray(t.x).sum() > 1e9 else 1)


@refused(r"test_jobs_hidden.py:\d+: tolist: Python reads a number that depends")
def numbers_by_tolist(t):
    return lambda: scaled(t, 2 if t.loss().tolist() > 1e9 else 1)


@refused(r"step: count: a step changes this value of Python")
def counter_in_a_closure(t):
    count = 0

    def step():
        nonlocal count
        count += 1
        return scaled(t, 2 if count % 4 == 0 else 1)

    return step


@refused("step: COUNT: a step changes")
def counter_in_a_global(t):
    def step():
        global COUNT
        COUNT += 1
        return scaled(t, 2 if COUNT % 4 == 0 else 1)

    return step


def bump():
    global COUNT
    COUNT += 1
    return COUNT


@refused("bump: COUNT: a step changes")
def counter_of_a_function(t):
    return lambda: scaled(t, 2 if bump() > 100 else 1)


@refused("model.*count: a step changes")
def attribute_of_the_model(t):
    t.model.count = 0

    def step():
        t.model.count += 1
        return scaled(t, 2 if t.model.count > 4 else 1)

    return step


class Counting(torch.nn.Linear):
    def forward(self, x):
        bump()
        return super().forward(x) * (2 if COUNT > 100 else 1)


@refused("bump: COUNT: a step changes")
def global_in_forward(t):
    t.model.__class__ = Counting
    return t.step


@refused("cells.*: a step changes")
def list_in_a_closure(t):
    cells = [0]

    def step():
        cells[0] += 1
        return scaled(t, 2 if cells[0] > 4 else 1)

    return step


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


ONES, ZEROS = torch.ones(2), torch.zeros(2)
# A value of any kind, and the one that stands there after a step.
CHANGES = {
    "range": (range(1), lambda v: range(len(v) + 1)),
    "date": (datetime.timedelta(0), lambda v: v + datetime.timedelta(1)),
    "decimal": (decimal.Decimal(0), lambda v: v + 1),
    "fraction": (fractions.Fraction(1, 2), lambda v: v + 1),
    "bytes": (bytearray(1), lambda v: v + b"1"),
    "array": (array.array("i"), lambda v: v + array.array("i", [1])),
    "member": (Colour.RED, lambda v: Colour.BLUE if v is Colour.RED else Colour.RED),
    "class": (Box, lambda v: Slots if v is Box else Box),
    "set": ({1}, lambda v: v | {len(v) + 1}),
    "deque": (collections.deque([1], 2), lambda v: collections.deque([*v, v[-1] + 1], 2)),
    "named": (Named(0), lambda v: Named(v.count + 1)),
    "tensor": (ONES, lambda v: ZEROS if v is ONES else ONES),
    "function": (bump, lambda v: scaled if v is bump else bump),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_values_of_every_kind(toy, kind):  # noqa: F811
    first, following = CHANGES[kind]
    others = [Box, Slots, bump, scaled, Colour.RED, Colour.BLUE, ONES, ZEROS]
    cells = [first]

    def step():
        cells[0] = following(cells[0])
        return scaled(toy, len(others) if cells[0] is None else 1)

    assert re_search(r"cells.*: a step changes", toy.refused(step))


@refused("step: variable: a step changes")
def context_variable(t):
    variable = contextvars.ContextVar("count", default=0)

    def step():
        variable.set(variable.get() + 1)
        return scaled(t, 2 if variable.get() > 100 else 1)

    return step


@refused("module.count: a step changes")
def module_of_the_user(t):
    module = types.ModuleType("mine")
    module.count = 0

    def step():
        module.count += 1
        return scaled(t, 2 if module.count > 100 else 1)

    return step


@refused("a mode of torch: a step changes")
def mode_of_torch(t):
    def step():
        torch.set_grad_enabled(True)
        loss = t.step()
        torch.set_grad_enabled(False)
        return loss

    return step


@refused("words: a step changes")
def long_list(t):
    words = ["a"] * 5000

    def step():
        words[4000] += "a"
        return scaled(t, 2 if len(words[4000]) > 100 else 1)

    return step


@refused("the step reaches more than 1048576 values of Python")
def too_deep(t):
    nested = []
    for _ in range(5000):
        nested = [nested]
    return lambda: scaled(t, len(nested))


@refused(r"CELLS\['count'\]: a step changes")
def dictionary(t):
    def step():
        CELLS["count"] += 1
        return scaled(t, 2 if CELLS["count"] > 4 else 1)

    return step


@refused(r"box.count: a step changes")
def object_without_torch(t):
    box = Box()

    def step():
        box.count += 1
        return scaled(t, 2 if box.count > 4 else 1)

    return step


@refused(r"box.count: a step changes")
def object_with_slots(t):
    box = Slots()

    def step():
        box.count += 1
        return scaled(t, 2 if box.count > 4 else 1)

    return step


@refused(r"Box.shared\['count'\]: a step changes")
def mutable_attribute_of_a_class(t):
    box = Box()

    def step():
        box.shared["count"] += 1
        return scaled(t, 2 if box.shared["count"] > 4 else 1)

    return step


@refused(r"step: default argument 0\[0\]: a step changes")
def default_argument(t):
    def step(cells=[0]):  # noqa: B006
        cells[0] += 1
        return scaled(t, 2 if cells[0] > 4 else 1)

    return step


@refused(r"step.count: a step changes")
def attribute_of_a_function(t):
    def step():
        step.count += 1
        return scaled(t, 2 if step.count > 4 else 1)

    step.count = 0
    return step


@refused("count: a step changes")
def bound_method(t):
    class Trainer:
        def __init__(self):
            self.count = 0

        def step(self):
            self.count += 1
            return scaled(t, 2 if self.count > 4 else 1)

    return Trainer().step


@refused(r"partial.*count: a step changes")
def partial_function(t):
    def step(box, factor):
        box.count += 1
        return scaled(t, factor if box.count > 4 else 1)

    return functools.partial(step, Box(), factor=2)


@refused("inner: count: a step changes")
def nested_functions(t):
    count = 0

    def inner():
        nonlocal count
        count += 1
        return 2 if count > 4 else 1

    def middle():
        return inner()

    return lambda: scaled(t, middle())


@refused("the state of `random`: a step changes")
def python_random(t):
    return lambda: scaled(t, 2 if random.random() > 2 else 1)


@refused("the state of `numpy.random`: a step changes")
def numpy_random(t):
    return lambda: scaled(t, 2 if np.random.rand() > 2 else 1)


@refused("rng: a step changes")
def numpy_generator(t):
    rng = np.random.default_rng(0)
    return lambda: scaled(t, 2 if rng.random() > 2 else 1)


@refused("numbers.*: a step changes")
def iterator_of_a_list(t):
    numbers = iter([1] * 100)
    return lambda: scaled(t, next(numbers))


@refused("numbers.*: a step changes")
def zipped(t):
    numbers = zip([1] * 100, [2] * 100)
    return lambda: scaled(t, next(numbers)[0])


@refused("numbers.*: a step changes")
def count_of_itertools(t):
    numbers = itertools.count()
    return lambda: scaled(t, 2 if next(numbers) > 4 else 1)


def ones():
    i = 0
    while True:
        yield 2 if i > 4 else 1
        i += 1


@refused("numbers.i: a step changes")
def generator(t):
    numbers = ones()
    return lambda: scaled(t, next(numbers))


@refused(r"test_jobs_hidden.py:\d+: a clock \(time\): a step must not")
def clock(t):
    return lambda: scaled(t, 2 if time.time() < 0 else 1)


@refused(r"test_jobs_hidden.py:\d+: a clock \(now\): a step must not")
def clock_of_datetime(t):
    return lambda: scaled(t, 2 if datetime.datetime.now().year < 0 else 1)


@refused(r"test_jobs_hidden.py:\d+: a file or the system \(open\)")
def file(t):
    def step():
        with open(__file__) as text:
            return scaled(t, 2 if text.closed else 1)

    return step


@refused(r"a file or the system \(readline\)")
def file_that_is_open(t):
    text = open(__file__)  # noqa: SIM115
    return lambda: scaled(t, 2 if text.readline() == "!" else 1)


@refused(r"os.environ\['COUNT'\]: a step changes")
def environment(t):
    def step():
        os.environ["COUNT"] = str(int(os.environ.get("COUNT", 0)) + 1)
        return scaled(t, 2 if int(os.environ["COUNT"]) > 4 else 1)

    return step


@refused(r"step: count.*: a step changes")
def numpy_scalar(t):
    count = np.zeros(1, "i8")

    def step():
        count[0] += 1
        return scaled(t, 2 if count[0] > 4 else 1)

    return step


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


@refused("random numbers of a step that are not dropout's")
def noise(t):
    return lambda: t.train(t.model(t.x + torch.randn_like(t.x)).square().mean())


@pytest.mark.parametrize("name", REFUSED)
def test_hidden_state_is_refused(toy, name):  # noqa: F811
    make, words = REFUSED[name]
    assert re_search(words, toy.refused(make(toy)))


def re_search(words, text):
    import re

    found = re.search(words, text)
    assert found, text
    return found


def test_too_many_values_are_refused(toy, monkeypatch):  # noqa: F811
    monkeypatch.setattr(repops.jobs._hidden, "VALUES_MAX", 2000)
    pairs = [(i, i) for i in range(1000)]
    words = "values of Python, too many to look for .* declare them: job.rows"
    assert re_search(words, toy.refused(lambda: scaled(toy, len(pairs[0]))))


# ---- what is captured rightly ----


def test_values_that_stay_are_no_state(toy):  # noqa: F811
    box, cells = Box(), {"factor": 2.0, "list": [1, 2]}
    text, _, seen = functools.lru_cache(len), bump, []

    def step(times=3):
        seen.clear()
        factor = cells["factor"] * len(cells["list"]) + box.count + text("abc") * times
        return scaled(toy, factor + np.float64(0.5))

    toy.capture(step)


def test_a_counter_that_is_as_before_after_one_step(toy):  # noqa: F811
    """What a step writes is state, though the first step leaves it as it was."""
    toy.model.register_buffer("turn", torch.zeros(()))

    def step():
        toy.model.turn.add_(1).mul_(toy.model.turn - 1)  # 0, then 0 again
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


def test_what_is_printed_is_no_state(toy):  # noqa: F811
    def step():
        print("a step", file=sys.stderr)
        logging.getLogger("a step").warning("a step")
        return toy.step()

    toy.capture(step)


@pytest.mark.parametrize("kind", ["read", "written", "offset"])
def test_memory_that_changes_where_nothing_tells_why(toy, kind):  # noqa: F811
    """What alternates is in a library of somebody else's, where no search looks."""
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
