"""Values of the step's data that Python reads, which are checked for every step, as all data are
known.

If all steps read the same values there is one program. Other values are recorded once each, and
there is a program if all of these recordings are equal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .._library import Error
from .._table import TABLE
from ..torch._call import run
from ..torch._integers import tensors
from ..torch._mode import reproducible
from ._bits import same_bits
from ._capture import CHANGES, Comparison, Recorded
from ._data import Source
from ._lower import Series
from ._record import (
    AGAIN,
    Event,
    Place,
    Problem,
    Read,
    Recorder,
    Site,
    places,
)
from ._taken import READ, WAYS, WAYS_MAX

Tensor = torch.Tensor
STEPS_MAX = 1 << 20  # the most steps of a job whose reads are checked
QUIET = 2.0  # seconds without a progress line
LONG = f"{READ}, and a job of more than {{}} steps is not looked at step by step"
RATE = f"{READ}, and on a number that a scheduler sets"
FAILS = f"{READ}, and cannot be computed again for step"
STATE = "only some steps write to it, by what Python reads of their data; write to it at each step"


def operator(name: str) -> Any:
    """torch's operator with an event's name, such as aten.all.default."""
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _own(t: Tensor) -> torch.UntypedStorage:
    """New memory with the same elements, contiguous."""
    return torch.empty(t.shape, dtype=t.dtype).copy_(t).untyped_storage()


class Replay:
    """Recomputes from a step's data what Python read in a recorded step. numbers: the events that
    this needs."""

    def __init__(self, recorder: Recorder, sources: Sequence[Source]) -> None:
        self.recorder = recorder
        self.numbers, needed = _needed(recorder)
        self._sources = [
            (p.storage, s)
            for p, s in ((recorder.place(s.tensor), s) for s in sources)
            if p.storage in needed
        ]
        self._memory: dict[int, torch.UntypedStorage] = {}

    def other(self, step: int) -> tuple[Read, Any] | None:
        """The first read whose value at this step differs from the recorded one, with that value;
        None: none differs."""
        self._memory = {}
        for storage, source in self._sources:
            source.load(step)
            self._memory[storage] = _own(source.tensor)
        at = iter(self.numbers)
        number = next(at, None)
        for read in self.recorder.reads:
            while number is not None and number < read.at:
                self._compute(self.recorder.events[number])
                number = next(at, None)
            found = self._value(read)
            if not same(found, read.held):
                return read, found
        return None

    def _value(self, read: Read) -> Any:
        if not read.name.startswith("aten."):
            return [self._given(p, ()) for p in read.args]
        out = operator(read.name)(*self._given(read.args, ()), **self._named(read.kwargs, ()))
        return list(tensors([out])) or out

    # ---- memory ----

    def _empty(self, storage: int) -> torch.UntypedStorage:
        return _own(torch.zeros(self.recorder.size(storage), dtype=torch.uint8))

    def _view(self, p: Place) -> Tensor:
        if p.storage not in self._memory:
            self._memory[p.storage] = self._empty(p.storage)
        memory = self._memory[p.storage]
        return torch.empty(0, dtype=p.dtype).set_(memory, p.offset, p.size, p.stride)

    def _given(self, value: Any, written: Sequence[int]) -> Any:
        """Arguments with tensors in place of places."""
        if isinstance(value, Place):
            if value.const is not None and value.storage not in written:
                return value.const
            if value.storage not in self._memory:
                raise RuntimeError("it reads memory that nothing has written")
            return _shown(self._view(value), value)
        if isinstance(value, (list, tuple)):
            return [self._given(v, written) for v in value]
        return value

    def _named(self, kwargs: dict[str, Any], written: Sequence[int]) -> dict[str, Any]:
        return {k: self._given(v, written) for k, v in kwargs.items()}

    # ---- events ----

    def _compute(self, event: Event) -> None:
        for storage, content in event.before.items():
            known = self._empty(storage) if content is None else _own(content)
            self._memory[storage] = known
        if event.kind == "torch":
            return self._torch(event)
        given = [self._given(p, ()).contiguous() for p in event.args]
        out = event.outs[0]
        if event.kind == "fused":
            value = AGAIN[event.name](*given)
        else:
            shape = out.size if TABLE[event.name].declared else None
            value = run(event.name, event.kwargs["words"], given, shape, out.dtype)
        self._view(out).copy_(value.reshape(out.size))
        return None

    def _torch(self, event: Event) -> None:
        """Runs an event. It writes in place; new tensors are found as the recorder finds them."""
        written = [p.storage for p in event.writes]
        args, kwargs = self._given(event.args, written), self._named(event.kwargs, written)
        known = {t.untyped_storage()._cdata for t in tensors([args, list(kwargs.values())])}
        out = operator(event.name)(*args, **kwargs)
        fresh = [t for t in tensors([out]) if t.untyped_storage()._cdata not in known]
        for p, t in zip(event.outs, fresh, strict=True):
            _shown(self._view(p), p).copy_(t)


def _shown(t: Tensor, p: Place) -> Tensor:
    """Applies the place's sign or conjugation."""
    if not p.negated:
        return t
    return t.conj() if t.is_complex() else torch._neg_view(t)


def _of(event: Event) -> set[int]:
    """Storages that an event makes or writes to."""
    return {p.storage for p in (*event.outs, *event.writes)}


def _needed(recorder: Recorder) -> tuple[list[int], set[int]]:
    """Numbers of the events that lead to what Python reads, and the storages that they touch."""
    needed: set[int] = set()
    numbers, reads = [], list(recorder.reads)
    for number in range(reads[-1].at if reads else 0, -1, -1):
        while reads and reads[-1].at == number:
            read = reads.pop()
            needed |= {p.storage for p in places([read.args, read.kwargs])}
        event = recorder.events[number - 1] if number else None
        if event is not None and _of(event) & needed:
            numbers.append(number - 1)
            needed |= {p.storage for p in places([event.args, event.kwargs])}
    return numbers[::-1], needed


def idle(recorded: Recorded, kept: Sequence[Place] = ()) -> set[int]:
    """Events that lead to no result of the step, such as those by which Python decides; the program
    leaves them out. kept: places that are results, too."""
    events = recorded.recorder.events
    needed = {p.storage for p in (*recorded.returned, *recorded.ends.values(), *kept)}
    left = set()
    for number in range(len(events) - 1, -1, -1):
        event = events[number]
        if event.kind == "micro" or _of(event) & needed:
            needed |= {p.storage for p in places([event.args, event.kwargs])}
        else:
            left.add(number)
    return left


def same(a: Any, b: Any) -> bool:
    """Are two values equal to the bit? They are numbers, or lists of tensors."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_bits, a, b))
    return type(a) is type(b) and repr(a) == repr(b)  # NaN equals NaN, -0.0 is not 0.0


def _told(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    many = sum(t.numel() for t in value) > 8
    parts = [f"of shape {list(t.shape)}" if many else str(t.tolist()) for t in value]
    return " and ".join(parts)


def _problem(read: Read, one: int, held: Any, other: int, found: Any) -> Problem:
    a, b = _told(held), _told(found)
    a, b = (a, b) if a != b else ("one", "another")
    return Problem(read.site, read.name, f"{READ}: it is {a} at step {one}, {b} at step {other}")


def _first(one: int, a: Recorded, other: int, b: Recorded) -> list[Problem]:
    """The first read in which two recordings differ, as a problem."""
    for x, y in zip(a.recorder.reads, b.recorder.reads):
        if not same(x.held, y.held):
            return [_problem(x, one, x.held, other, y.held)]
    return []


def _counted(steps: int) -> Iterator[int]:
    """Counts steps, and prints progress if it takes long."""
    last = time.monotonic()
    for step in range(steps):
        if time.monotonic() - last > QUIET:
            last = time.monotonic()
            print(f"reading data: step {step} of {steps}", file=sys.stderr, flush=True)
        yield step


class Ways:
    """Compares recordings of a step. record: records another step, by number. written: names of
    tensors that a recording writes to and that are not state."""

    def __init__(
        self,
        first: Recorded,
        others: list[tuple[int, Recorded]],
        columns: dict[str, Any],
        record: Callable[[int], Recorded],
        written: Callable[[Recorded], list[str]],
    ) -> None:
        self.first, self.others, self.columns = first, others, columns
        self._record, self._written = record, written
        self._events = list(first.recorder.events)  # comparisons change it
        self.problems: list[Problem] = []

    def compare(self, steps: int, sources: Sequence[Source]) -> None:
        self._compare()
        reads = [r for _, o in [(0, self.first), *self.others] for r in o.recorder.reads]
        if self.problems or not reads:
            return
        if steps > STEPS_MAX:
            self.problems.append(Problem(reads[0].site, reads[0].name, LONG.format(STEPS_MAX)))
            return
        with reproducible(), _disable_current_modes():
            self._look(steps, sources)

    def _compare(self) -> None:
        self.first.recorder.events[:] = self._events
        comparison = Comparison(self.first, self.others, self.columns)
        comparison.run()
        self.problems = comparison.problems
        if self.problems:
            read = (_first(0, self.first, step, other) for step, other in self.others)
            self.problems = next((p for p in read if p), []) + self.problems
            return
        for _, other in self.others:
            self._compare_constants(other)
        self._look_for_rates()

    def _compare_constants(self, other: Recorded) -> None:
        """Compares the constants that reads depend on, in two recordings."""
        for a, b in zip(self.first.recorder.reads, other.recorder.reads):
            if a.name != b.name:
                return
            mine, theirs = ([p.const for p in places([r.args, r.kwargs])] for r in (a, b))
            both = ([t for t in held if t is not None] for held in (mine, theirs))
            if not same(*both):
                self.problems.append(Problem(a.site, a.name, CHANGES))

    def _look(self, steps: int, sources: Sequence[Source]) -> None:
        """Assigns each step to a recording that reads the same values; otherwise records it,
        too."""
        ways = [(0, self.first), *self.others]
        replays = [Replay(way.recorder, sources) for _, way in ways]
        for (step, _), replay in zip(ways, replays):
            self._check(replay, step)
        if self.problems:
            return
        left = WAYS_MAX
        for step in _counted(steps):
            found = self._other(replays, step)
            if self.problems:
                return
            if found is None:
                continue
            if not left:
                self.problems.append(Problem(found[0].site, found[0].name, WAYS))
                return
            left -= 1
            way = self._record(step)
            replays.append(Replay(way.recorder, sources))
            self._check(replays[-1], step)
            if self.problems:
                return
            self.others.append((step, way))
            self._compare()
            for name in self._written(way):
                self.problems.append(Problem(Site("", "", False, name), name, STATE))
            if self.problems:
                return

    def _check(self, replay: Replay, step: int) -> None:
        """Checks that a replay of the recorded step gives what was read there."""
        found = self._other([replay], step)
        if found is not None:
            raise Error(f"{found[0].site.place}: {found[0].name} is not what it was at step {step}")

    def _other(self, replays: list[Replay], step: int) -> tuple[Read, Any] | None:
        """What a step reads differently from all recordings; None: it matches one."""
        found = None
        try:
            for replay in replays:
                found = replay.other(step)
                if found is None:
                    break
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            read = self.first.recorder.reads[0]
            why = f"{FAILS} {step}: {str(error).splitlines()[0]}"
            self.problems.append(Problem(read.site, read.name, why))
        return found

    def _look_for_rates(self) -> None:
        """Refuses reads that depend on a scheduler's numbers: a replay would use the recorded
        step's."""
        recorder = self.first.recorder
        for number in _needed(recorder)[0]:
            event = recorder.events[number]
            if any(isinstance(p, Series) for p in places([event.args, event.kwargs])):
                self.problems.append(Problem(event.site, event.name, RATE))
