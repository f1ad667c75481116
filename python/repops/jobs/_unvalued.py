"""Captures models whose weights are not in memory. Only shapes, constants and data are known, so a
step counts as changing what it writes to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch

from .._library import Error
from . import _hidden
from ._capture import Recorded, Steps, give_back_memory
from ._captured import Captured, told_unread
from ._kept import Kept, Setting
from ._record import Place, Recorder

Tensor = torch.Tensor
MADE = (
    "the first step makes this state, and not as zeros, and without weights in memory nobody knows "
    "whether from zeros it would be the same; AdamW with fused=True begins with zeros"
)
ZEROS = ("aten.zeros_like.", "aten.new_zeros.")
CHECK = (
    "a check computes in PyTorch, for which it loads the weights as float32: they take {:.1f} GB, "
    "and this machine has {:.1f} GB"
)


class Unvalued(Captured):
    """One capture of a model without weights in memory."""

    lazy = MADE

    def __init__(self, job: Any, steps: Steps, kept: Kept) -> None:
        super().__init__(job, steps, kept)
        self._wrote: set[str] = set()
        self._odd: list[str] = []  # state that the first step creates, but not as zeros
        self._exempt: set[str] = set()
        self._writes: dict[str, list[Any]] = {}  # what wrote to each tensor in the first step
        now = steps.setting.each()
        for name in steps.setting.bound.absent:
            if name in now:
                self.start[name] = torch.zeros(()).expand(now[name].shape)

    def _fresh(self) -> dict[str, bytes]:
        with _hidden.Watch() as watch, told_unread():
            recorder = self.steps.record(0, [], first=True).recorder
        self.kept.measure()
        self.called = watch.functions()
        now = self.steps.setting.tensors()
        self._wrote = {n for n, t in now.items() if recorder.undeclared(t)}
        momenta = {id(t) for t in _momenta(self.steps.setting.optimizers)}
        self._exempt = {s.name for s in self.steps.setting.slots() if id(s.get()) in momenta}
        for name, t in now.items():
            self._writes[name] = _writes(recorder, recorder.place(t).storage)
            if name not in self.start and name not in self._exempt and not _was_zero(recorder, t):
                self._odd.append(name)
        give_back_memory()
        return dict.fromkeys(now, b"")

    def _record(self, number: int, state: list[str]) -> Recorded:
        recorded = super()._record(number, state)
        if number == 0:
            self._odd += [n for n, p in recorded.starts.items() if self._is_lazy(n, recorded, p)]
        return recorded

    def _is_lazy(self, name: str, recorded: Recorded, place: Place) -> bool:
        """Does the first step write to the tensor in another way than a step that finds all state
        there?"""
        if name in self._exempt or name in self._odd:
            return False
        return self._writes.get(name) != _writes(recorded.recorder, place.storage)

    def _changes(self, name: str, fresh: dict[str, bytes]) -> bool:
        return name in self._wrote or name not in self.start

    def _compare_fresh(self, fresh: dict[str, bytes]) -> list[str]:
        now = self.steps.setting.tensors()
        return self._odd + [n for n in {**fresh, **now} if n not in now or n not in fresh]

    def check(self, count: int, verde: str) -> list[float]:
        """Checks with the weights loaded into memory."""
        setting, kept = self.steps.setting, self.kept
        check_memory(setting)
        with self.job._weights.inside(setting.models, loaded=True):
            self.kept = Kept(setting)
            try:
                return super().check(count, verde)
            finally:
                self.kept = kept


def check_memory(setting: Setting) -> None:
    """Raises Error unless the weights that are not in memory would fit."""
    now, there = setting.each(), memory()
    needed = 4 * sum(now[n].numel() for n in setting.bound.absent if n in now)
    if needed > there:
        raise Error(CHECK.format(needed / 1e9, there / 1e9))


def memory() -> int:
    """The bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _momenta(optimizers: Sequence[Any]) -> list[Tensor]:
    """Buffers that SGD's first step fills with gradients. They need no check: any other step gives
    the same with a momentum of zeros."""
    return [
        state["momentum_buffer"]
        for o in optimizers
        for group in o.param_groups
        for state in (o.state.get(p, {}) for p in group["params"])
        if type(o) is torch.optim.SGD and not group["dampening"]
        if state.get("momentum_buffer") is not None
    ]


def _writes(recorder: Recorder, storage: int) -> list[Any]:
    """The operators that write to a storage, except as zeros, and their numbers."""
    return [
        (e.kind, e.name, repr(_numbers([e.args, e.kwargs])))
        for e in recorder.events
        if any(p.storage == storage for p in (*e.outs, *e.writes) if p is not None)
        if not e.name.startswith(ZEROS)
    ]


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _numbers(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_numbers(v) for v in value]
    return None if isinstance(value, Place) else value


def _was_zero(recorder: Recorder, t: Tensor) -> bool:
    """Did the step create the tensor as zeros, before it wrote unknown values?"""
    storage = recorder.place(t).storage
    for event in recorder.events:
        if storage in event.before:
            known = event.before[storage]  # its constant content
            return known is not None and not bool(known.count_nonzero())
        if any(p.storage == storage for p in (*event.outs, *event.writes) if p is not None):
            return event.name.startswith(ZEROS)
    return not bool(t.count_nonzero())
