"""A step of PyTorch: run, recorded at several step numbers, and the recordings compared."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from .. import _context
from ..torch._mode import reproducible
from ..torch._sites import Site, Sites
from . import _schedule
from ._bits import Contents, same_bits
from ._kept import Kept, Setting
from ._lower import Series
from ._mode import Mode
from ._record import Event, Place, Problem, Recorder, recording

Tensor = torch.Tensor


# ---- running and recording a step ----


def give_back_memory() -> None:
    """Returns freed memory to the system. glibc keeps it in fragments that the next step's tensors
    do not fit into, so that each step would take more memory."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
    if trim is not None:
        trim(0)


class Recorded:
    """One recorded step: its operators, the places of returned tensors, and the places of the state
    before and after, by name."""

    def __init__(
        self,
        recorder: Recorder,
        returned: list[Place],
        starts: dict[str, Place],
        ends: dict[str, Place],
        given: list[Place],
        weights: dict[str, Place],
    ) -> None:
        self.recorder, self.returned, self.starts, self.ends = recorder, returned, starts, ends
        self.given = given  # places of data and of the step's number
        self.weights = weights  # weights in files, which no step changes


def told(returned: Any) -> list[Tensor]:
    """The tensors that a step returns, its loss first; other values are dropped."""
    all_of = returned if isinstance(returned, tuple) else (returned,)
    return [t.detach() for t in all_of if isinstance(t, Tensor)]


class Steps:
    """Runs and records steps of a setting in a job's mode."""

    def __init__(
        self, step: Callable[[], Any], setting: Setting, kept: Kept, seed: int, columns: Any
    ) -> None:
        self.step, self.setting, self.kept, self.columns = step, setting, kept, columns
        self.mode = Mode(seed)
        self.mode.trained = setting.trained
        self.contents = Contents()

    def prepare(self, number: int) -> None:
        for source in self.setting.sources:
            source.load(number)
        _schedule.put(self.setting.optimizers, self.columns, number)
        self.mode.begin(number)

    @contextlib.contextmanager
    def in_mode(self, recording: bool = False) -> Iterator[None]:
        context = _context.current()
        context.job, self.mode.recording = self.mode, recording
        try:
            yield
        finally:
            context.job = None

    def run(self, number: int) -> Any:
        """Runs one step without recording it."""
        with _disable_current_modes(), reproducible():
            self.prepare(number)
            with self.in_mode():
                return self.step()

    def record(self, number: int, state: Sequence[str], first: bool = False) -> Recorded:
        """Records one step. state: the names of the tensors that are its state. first: state is not
        known yet, nor what optimizers count."""
        absent, self.mode.measuring = bool(self.setting.bound.absent), first
        recorder = Recorder(Sites(*self.setting.models.values()), self.contents, absent)
        with _disable_current_modes():
            with reproducible():
                self.prepare(number)
            self.mode.counts = self.kept.count(number)
            now = self.setting.each()
            starts = {name: recorder.declare(now[name]) for name in state}
            given = [recorder.declare_data(s.tensor) for s in self.setting.sources]
            given.append(recorder.declare(self.mode.number))
            files = [*(self.setting.tensors() if first else self.setting.bound.stored)]
            lying = [n for n in files if n in now and n not in state]  # others have no elements
            weights = {n: recorder.declare_weight(now[n]) for n in lying}
            for c in self.mode.corrections.values():
                c.begin(number)
                recorder.declare(c.value)
            counts = [s[k] for s, k in self.setting.counters() if isinstance(s[k], Tensor)]
            for t in (*now.values(), *self.setting.fixed().values(), *counts):
                recorder.known(t)
            with recording(recorder, reproducible()), self.in_mode(recording=True):
                returned = self.step()
            places, ends = [recorder.end(t) for t in told(returned)], self._ends(recorder, state)
            return Recorded(recorder, places, starts, ends, given, weights)

    def _ends(self, recorder: Recorder, state: Sequence[str]) -> dict[str, Place]:
        now = self.setting.each()
        return {n: recorder.end(now[n]) for n in state if n in now}  # a gradient may be None


# ---- two recordings of one step ----


class Comparison:
    """Compares recordings of step 0 and of other steps. They must be equal except for numbers that
    follow a schedule."""

    def __init__(
        self, first: Recorded, others: Sequence[tuple[int, Recorded]], columns: dict[str, Any]
    ) -> None:
        self.first, self.columns = first.recorder, columns
        self.others = [(step, r.recorder) for step, r in others]
        every = (first, *[r for _, r in others])
        self._ends = [("the loss", list(p)) for p in zip_longest(*[r.returned for r in every])]
        # Maps storages of the first recording to those of each other one.
        known = _known(first)
        self._same = [
            {p.storage: q.storage for p, q in zip(known, _known(r), strict=True)} for _, r in others
        ]
        for name in first.ends:
            self._ends.append((name, [r.ends.get(name) for r in (first, *[r for _, r in others])]))
        self.problems: list[Problem] = []

    def run(self) -> None:
        for step, other in self.others:
            if len(other.events) != len(self.first.events):
                self._branch(step, other)
                return
        for i, event in enumerate(self.first.events):
            many = [r.events[i] for _, r in self.others]
            if any(_kind(e) != _kind(event) for e in many):
                self._branch(self.others[0][0], self.others[0][1])
                return
            args = [event.args, *[e.args for e in many]]
            kwargs = [event.kwargs, *[e.kwargs for e in many]]
            merged = event._replace(
                args=self._merge(event, args), kwargs=self._merge(event, kwargs)
            )
            self.first.events[i] = merged
            self._before(event, many)
            for i, place in enumerate((*event.outs, *event.writes)):
                self._place(event, [place, *[[*e.outs, *e.writes][i] for e in many]])
        for name, places in self._ends:
            event = Event("", name, (), {}, [], [], NOWHERE, {})
            if any(p is not None for p in places):
                self._place(event, places)

    def _branch(self, step: int, other: Recorder) -> None:
        for a, b in zip(self.first.events, other.events):
            if _kind(a) != _kind(b):
                where = f"steps 0 and {step} compute different things from here on"
                self.problems.append(Problem(a.site, a.name, where))
                return
        longer = max((self.first, other), key=lambda r: len(r.events))
        event = longer.events[min(len(self.first.events), len(other.events))]
        where = f"only one of steps 0 and {step} does this"
        self.problems.append(Problem(event.site, event.name, where))

    def _differs(self, event: Event, what: str) -> None:
        self.problems.append(Problem(event.site, event.name, what))

    def _merge(self, event: Event, values: list[Any]) -> Any:
        first = values[0]
        if isinstance(first, dict):
            return {k: self._merge(event, [v.get(k) for v in values]) for k in first}
        if isinstance(first, (list, tuple)):
            if any(type(v) is not type(first) or len(v) != len(first) for v in values):
                self._differs(event, "its arguments have another number from step to step")
                return first
            merged = [self._merge(event, list(each)) for each in zip(*values)]
            return merged if isinstance(first, list) else tuple(merged)
        if isinstance(first, Place):
            return self._place(event, values)
        if all(_equal(first, v) for v in values[1:]):
            return first
        return self._number(event, values)

    def _place(self, event: Event, values: list[Any]) -> Any:
        first = values[0]
        if any(
            not isinstance(v, Place) or not isinstance(first, Place) or v.size != first.size
            for v in values
        ):
            self._differs(event, "the shape of what it reads differs from step to step")
            return first
        consts = [v.const for v in values]
        if all(c is None for c in consts):
            if not all(self._is_same(i, first, v) for i, v in enumerate(values[1:])):
                self._differs(event, "it reads or writes other memory from step to step")
            return first
        if any(c is None for c in consts):
            self._differs(event, "what it reads depends on the data at one step, at another not")
            return first
        if all(same_bits(consts[0], c) for c in consts[1:]):
            return first
        if first.numel == 1 and first.dtype in (torch.float32, torch.float64):
            found = self._series([float(c) for c in consts], first.size)
            if found is not None:
                return found
        self._differs(event, CHANGES)
        return first

    def _is_same(self, other: int, p: Place, q: Place) -> bool:
        """Are these places the same in the first and the other recording? The first time that a new
        storage appears, it is matched with its counterpart."""
        same = self._same[other]
        if p.storage not in same and q.storage not in same.values():
            same[p.storage] = q.storage
        own = (same.get(p.storage), p.offset, p.stride, p.dtype, p.negated)
        return own == (q.storage, q.offset, q.stride, q.dtype, q.negated)

    def _number(self, event: Event, values: list[Any]) -> Any:
        if all(isinstance(v, float) for v in values) and event.kind == "torch":
            found = self._series(values, ())
            if found is not None:
                return found
        shown = "is " + " and ".join(str(v) for v in values[:2]) + " at two steps"
        shown = shown if event.kind == "torch" else "differs from step to step"  # else only bits
        self._differs(event, f"a number of Python {shown}; {ADVICE}")
        return values[0]

    def _series(self, values: list[float], size: Sequence[int]) -> Series | None:
        steps = [0, *[s for s, _ in self.others]]
        wanted = np.array(values, "<f4")
        for name, column in self.columns.items():
            for sign, more in ((1, ""), (-1, ".negative")):  # plain SGD adds -lr times gradients
                if (sign * column[steps].astype("<f4")).tobytes() == wanted.tobytes():
                    return Series(name + more, sign * column, size)
        return None

    def _before(self, event: Event, many: list[Event]) -> None:
        for key, t in zip(event.before, event.before.values()):
            for e in many:
                other = list(e.before.values())
                mine = list(event.before).index(key)
                o = other[mine] if mine < len(other) else None
                if (t is None) != (o is None) or (
                    t is not None and o is not None and not same_bits(t, o)
                ):
                    self._differs(event, CHANGES)


def _known(r: Recorded) -> list[Place]:
    return [*r.starts.values(), *r.given, *r.weights.values()]


ADVICE = (
    "declare it: job.table(values), or an optimizer's number that a scheduler sets (Adam and AdamW "
    "with fused=True)"
)
NOWHERE = Site("", "", False, "")
CHANGES = "what it reads is another constant from step to step: data that is not declared"


def _kind(event: Event) -> Any:
    return event.kind, event.name, len(event.outs), len(event.writes)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return float(a).hex() == float(b).hex()  # by bits: -0.0 is not 0.0, and NaN equals NaN
    return type(a) is type(b) and a == b


def relative(place: str) -> str:
    """File and line, relative to the current folder."""
    file, _, line = place.rpartition(":")
    try:
        inside = os.path.relpath(file)
    except ValueError:
        inside = file
    return f"{os.path.basename(file) if inside.startswith('..') else inside}:{line}"
