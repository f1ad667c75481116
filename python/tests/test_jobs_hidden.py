"""State that a step keeps in Python is refused with a message that names it, or captured
correctly."""

import array
import collections
import contextvars
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
from capturing import Refused, found, scaled, toy  # noqa: F401

import repops.jobs

COUNT = 0
CELLS = {"count": 0}


class Box:
    """An object without any tensor."""

    shared = {"count": 0}

    def __init__(self):
        self.count = 0


Named = collections.namedtuple("Named", "count")


class Slots:
    __slots__ = ("count",)

    def __init__(self):
        self.count = 0


refused = Refused()


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
# A value of each kind, and a function that gives the value after a step.
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

    found(r"cells.*: a step changes", toy.refused(step))


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


@pytest.mark.parametrize("name", refused)
def test_hidden_state_is_refused(toy, name):  # noqa: F811
    refused.check(name, toy)


def test_too_many_values_are_refused(toy, monkeypatch):  # noqa: F811
    monkeypatch.setattr(repops.jobs._hidden, "VALUES_MAX", 2000)
    pairs = [(i, i) for i in range(1000)]
    words = "values of Python, too many to look for .* declare them: job.rows"
    found(words, toy.refused(lambda: scaled(toy, len(pairs[0]))))


# ---- what is captured rightly ----


def test_values_that_stay_are_no_state(toy):  # noqa: F811
    box, cells = Box(), {"factor": 2.0, "list": [1, 2]}
    text, _, seen = functools.lru_cache(len), bump, []

    def step(times=3):
        seen.clear()
        factor = cells["factor"] * len(cells["list"]) + box.count + text("abc") * times
        return scaled(toy, factor + np.float64(0.5))

    toy.capture(step)


def test_what_is_printed_is_no_state(toy):  # noqa: F811
    def step():
        print("a step", file=sys.stderr)
        logging.getLogger("a step").warning("a step")
        return toy.step()

    toy.capture(step)
