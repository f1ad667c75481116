"""Evaluations: score a captured model on other data, in a program of its own.

The program does not hold the weights: a job with `task: evaluate` names the run that has them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from .._library import Error
from . import _data, _loops
from ._assemble import declare, declare_weights, number
from ._capture import Recorded, Steps
from ._captured import Captured
from ._data import Source
from ._folder import EVALUATION, write
from ._forms import form
from ._graph import Program
from ._kept import Kept, Setting
from ._lower import Lower
from ._memory import code_of, fitting
from ._narrow import narrow
from ._reads import idle
from ._refusal import CaptureError
from ._stored import Bound

Tensor = torch.Tensor
SCORES = ("loss", "accuracy")  # the final state: the means over all steps
INTERVAL_MAX = 4096
CHANGES = "evaluating changes it; models are in eval mode, and nothing is trained"


def rows(arrays: tuple[Any, ...], batch: int) -> tuple[list[Source], int]:
    """All rows in order, and the number of steps that read them; an incomplete batch is left
    out."""
    held = [a if isinstance(a, Tensor) else np.asanyarray(a) for a in arrays]
    counts = {len(a) for a in held}
    if len(counts) != 1:
        raise Error(f"arrays have {sorted(counts)} rows; expected as many of each")
    steps = _steps(counts.pop(), batch, "rows")
    tables = [a[: steps * batch].reshape(steps, batch, *a.shape[1:]) for a in held]
    made = [_data.table(t, steps, f"rows{i}", allow=True) for i, t in enumerate(tables)]
    return made, steps


def windows(tokens: Any, batch: int, length: int, seed: int) -> tuple[list[Source], int]:
    """All windows once, in an order from the seed, and the number of steps."""
    many = isinstance(tokens, (list, tuple)) and len(tokens) and hasattr(tokens[0], "__len__")
    count = sum((len(t) - 1) // length for t in (tokens if many else [tokens]))
    steps = _steps(count, batch, "windows")
    return list(_data.windows(tokens, batch, length, seed, _data.STREAM, "tokens")), steps


def _steps(count: int, batch: int, what: str) -> int:
    if not 1 <= batch <= count:
        raise Error(f"batch is {batch}; expected 1 to {count}, as there are so many {what}")
    return count // batch


@contextlib.contextmanager
def in_eval_mode(setting: Setting) -> Iterator[None]:
    modules = [m for k in setting.models.values() for m in k.modules()]
    before = [m.training for m in modules]
    for m in modules:
        m.training = False
    try:
        yield
    finally:
        for m, training in zip(modules, before):
            m.training = training


class Evaluated(Captured):
    """One capture of an evaluation. score: a function of the data; returns a loss, and perhaps an
    accuracy."""

    def __init__(
        self,
        job: Any,
        trained: Captured,
        score: Callable[..., Any],
        sources: list[Source],
        steps: int,
        bound: Bound,
    ) -> None:
        own = trained.steps.setting
        setting = Setting(own.models, [], [], sources, own.constants, bound)
        kept = Kept(setting)

        def step() -> Any:
            with torch.no_grad():
                return score(*[s.tensor for s in sources])

        super().__init__(job, Steps(step, setting, kept, job.seed, {}), kept)
        self.count, self.called = steps, [score]
        # Maps names in the state dict to leaves of the job's program.
        self.leaves = {name: leaf for leaf, name in trained.program.names.items()}
        self.weights = [n for n in setting.tensors() if n in self.leaves]

    def run(self) -> None:
        with in_eval_mode(self.steps.setting):
            first = self._record(0, self.weights)
            probes = sorted({1, self.count - 1} & set(range(1, self.count)))
            others = [(n, self._record(n, self.weights)) for n in probes]
            self._compare_recordings(first, others, self.weights, self.count)
        self._strangers(first, [r for _, r in others])
        for name in self._written(first, self.weights):
            self._refuse(name, CHANGES)
        self._lower(first)

    def _lower(self, recorded: Recorded) -> None:
        program = Program(self.job.seed, self.count, min(self.count, INTERVAL_MAX))
        low = Lower(recorded.recorder, program)
        declare(low, self.steps)
        given = {}
        for name, place in recorded.starts.items():
            value = program.weight(self.leaves[name], code_of(place.dtype), fitting(place.size))
            low.write(place, value, {})
            given[name] = low.held[place.storage]
        declare_weights(low, recorded, self.steps)
        low.run(idle(recorded))
        for name, place in recorded.starts.items():
            if low.held[place.storage] != given[name]:
                self._refuse(name, CHANGES)
        self.problems += low.problems
        if self.problems:
            raise CaptureError(self.problems)
        self._score(low, recorded)
        form(program.step)
        narrow(program.step)
        program.step.prune()
        program.drop_unread()
        _loops.fold(program.step)
        self.program = program
        self.hash = write(self.job.folder / EVALUATION, program)

    def _score(self, low: Lower, recorded: Recorded) -> None:
        """Makes each step add its share of the means to the state."""
        graph, init = low.graph, low.program.init
        graph.scope, graph.place = "mean", None
        if not 1 <= len(recorded.returned) <= len(SCORES):
            raise Error("an evaluation returns a loss, or a loss and an accuracy")
        for name, place in zip(SCORES, recorded.returned):
            x = number(low, place, f"the evaluation returns no {name}")
            leaf = low.program.leaf(name, x.dtype, (1,))
            init.output.append(init.emit("fill", shape=(1,), value=0.0, called=name))
            share = graph.emit("div_const", x, divisor=float(self.count), called="share")
            graph.output.append(graph.emit("add", leaf, share, called=f"{name}_so_far"))
            if name == "loss":
                graph.loss = x
