"""Captures of models whose weights are not in memory: nothing but shapes, constants and data is
known, so what a step changes is what it writes to."""

from __future__ import annotations

from typing import Any

import torch

from .._library import Error
from . import _hidden
from ._capture import Steps, give_back_memory
from ._captured import Captured, told_unread
from ._kept import Kept
from ._record import Recorder

Tensor = torch.Tensor
MADE = (
    "the first step makes this state, and not as zeros, and without weights in memory nobody knows "
    "whether from zeros it would be the same; AdamW with fused=True begins with zeros"
)
ZEROS = ("aten.zeros_like.", "aten.new_zeros.")
CHECK = (
    "job.check computes steps in PyTorch, and weights of this model are of the meta device; load "
    "them (model.load_state_dict(..., assign=True)) and capture again: the program is the same"
)


class Unvalued(Captured):
    """One such capture."""

    lazy = MADE

    def __init__(self, job: Any, steps: Steps, kept: Kept) -> None:
        super().__init__(job, steps, kept)
        self._wrote: set[str] = set()
        self._odd: list[str] = []  # state that the first step makes otherwise than as zeros
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
        exempt = {id(t) for t in _momenta(self.steps.setting.optimizers)}
        each = {s.name: s.get() for s in self.steps.setting.slots()}
        made = {n: t for n, t in each.items() if n in now and n not in self.start}
        self._odd = [
            n for n, t in made.items() if id(t) not in exempt and not _was_zero(recorder, t)
        ]
        give_back_memory()
        return dict.fromkeys(now, b"")

    def _changes(self, name: str, fresh: dict[str, bytes]) -> bool:
        return name in self._wrote or name not in self.start

    def _compare_fresh(self, fresh: dict[str, bytes]) -> list[str]:
        now = self.steps.setting.tensors()
        return self._odd + [n for n in {**fresh, **now} if n not in now or n not in fresh]

    def check(self, count: int, verde: str) -> list[float]:
        raise Error(CHECK)


def _momenta(optimizers: list[Any]) -> list[Tensor]:
    """SGD's first step leaves gradients there: what any step adds to momentum times zeros."""
    return [
        state["momentum_buffer"]
        for o in optimizers
        for group in o.param_groups
        for state in (o.state.get(p, {}) for p in group["params"])
        if type(o) is torch.optim.SGD and not group["dampening"]
        if state.get("momentum_buffer") is not None
    ]


def _was_zero(recorder: Recorder, t: Tensor) -> bool:
    """Whether the step has made it as zeros, and what was unknown came then."""
    storage = recorder.place(t).storage
    for event in recorder.events:
        if storage in event.before:
            known = event.before[storage]
            return known is not None and not bool(known.count_nonzero())
        if any(p.storage == storage for p in (*event.outs, *event.writes)):
            return event.name.startswith(ZEROS)
    return not bool(t.count_nonzero())
