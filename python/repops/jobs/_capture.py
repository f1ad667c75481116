"""A step of PyTorch as a program: recorded, compared with itself at other steps, lowered."""

from __future__ import annotations

import contextlib
import copy
import os
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from .. import _context
from .._library import Error
from ..torch._mode import reproducible
from ..torch._sites import Sites
from . import _aten, _fused, _hidden, _moves, _schedule  # noqa: F401
from ._data import Source
from ._graph import F32, I32, INT32, Program, Value
from ._lower import Lower, Series
from ._memory import INTEGERS, Missing, code_of, fitting
from ._mode import Mode
from ._record import Event, Place, Problem, Recorder, recording

Tensor = torch.Tensor
COUNTERS = ("step",)  # of optimizers: a program knows its step
SHOWN = 12  # problems that an error tells


class CaptureError(Error):
    """The step is no program. The text says where and why, and problems lists all."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        lines = [_told(p) for p in _distinct(self.problems)]
        more = f"\n  and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        super().__init__("the step is no program:\n  " + "\n  ".join(lines[:SHOWN]) + more)


def _distinct(problems: Sequence[Problem]) -> list[Problem]:
    found: dict[Any, Problem] = {}
    for p in problems:
        found.setdefault((p.site.place, p.site.backward, p.name, p.why), p)
    return list(found.values())


def _told(p: Problem) -> str:
    of = "backward of " if p.site.backward else ""
    called = p.site.name.removeprefix("aten.") or p.name.removeprefix("aten.")
    module = f", in {p.site.module}" if p.site.module else ""
    at = f"{of}{p.site.place}{module}: " if p.site.place else ""
    return f"{at}{called}: {p.why}" if called else f"{at}{p.why}"


class Setting:
    """What is captured: models, optimizers and all that a step may read."""

    def __init__(
        self,
        models: dict[str, torch.nn.Module],
        optimizers: Sequence[Any],
        schedulers: Sequence[Any],
        sources: Sequence[Source],
        constants: dict[str, Tensor],
        more: dict[str, Tensor],
    ) -> None:
        self.models, self.optimizers, self.schedulers = models, optimizers, schedulers
        self.sources, self.constants, self.more = sources, constants, more

    def tensors(self) -> dict[str, Tensor]:
        """Parameters, buffers and what optimizers keep, each memory once, by names."""
        found: dict[str, Tensor] = {}
        seen: set[int] = set()

        def put(name: str, t: Tensor) -> None:
            if t.numel() and t.untyped_storage()._cdata not in seen:
                seen.add(t.untyped_storage()._cdata)
                found[name] = t.detach()

        for prefix, model in self.models.items():
            for name, t in (*model.named_parameters(), *model.named_buffers()):
                put(prefix + name, t)
        for name, t in self.more.items():
            put(name, t)
        for o, optimizer in enumerate(self.optimizers):
            self._of_optimizer(o, optimizer, put)
        return found

    def _of_optimizer(self, o: int, optimizer: Any, put: Callable[[str, Tensor], None]) -> None:
        names = {id(t): n for p, m in self.models.items() for n, t in self._named(p, m)}
        for g, group in enumerate(optimizer.param_groups):
            for i, p in enumerate(group["params"]):
                name = names.get(id(p), f"optimizer{o}.{g}.{i}")
                for key, value in sorted(optimizer.state.get(p, {}).items()):
                    if isinstance(value, Tensor) and key not in COUNTERS:
                        put(f"{name}.{key}", value)

    @staticmethod
    def _named(prefix: str, model: torch.nn.Module) -> Iterator[tuple[str, Tensor]]:
        for name, t in model.named_parameters():
            yield prefix + name, t

    def counters(self) -> list[Any]:
        """Steps that optimizers count."""
        states = [s for o in self.optimizers for s in o.state.values()]
        return [s[k] for s in states for k in COUNTERS if k in s]


class Kept:
    """Everything as it was, to be set back: tensors, optimizers, generators."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.tensors = {n: (t, t.clone()) for n, t in setting.tensors().items()}
        self.optimizers = [
            ({p: _shallow(s) for p, s in o.state.items()}, copy.deepcopy(_numbers(o)))
            for o in setting.optimizers
        ]
        self.generators = (torch.get_rng_state(), random.getstate(), np.random.get_state())
        self.grads = [
            (p, p.grad, None if p.grad is None else p.grad.clone())
            for m in setting.models.values()
            for p in m.parameters()
        ]
        self.modes = [(m, m.training) for k in setting.models.values() for m in k.modules()]

    def set_back(self, lazily_made: bool = False) -> None:
        """lazily_made: state that optimizers made since stays, as zeros."""
        with torch.no_grad():
            for t, start in self.tensors.values():
                t.copy_(start)
            for p, grad, before in self.grads:
                p.grad = grad
                if grad is not None and before is not None:
                    grad.copy_(before)
        for o, (states, numbers) in zip(self.setting.optimizers, self.optimizers):
            self._optimizer(o, states, lazily_made)
            for group, own in zip(o.param_groups, numbers):
                group.update(copy.deepcopy(own))
        torch.set_rng_state(self.generators[0])
        random.setstate(self.generators[1])
        np.random.set_state(self.generators[2])

    @staticmethod
    def _optimizer(o: Any, states: dict[Any, dict[str, Any]], lazily_made: bool) -> None:
        for p in list(o.state):
            before = states.get(p)
            if before is None and not lazily_made:
                del o.state[p]
                continue
            for key, value in list(o.state[p].items()):
                if before is not None and key in before:
                    o.state[p][key] = _put_back(value, before[key])
                elif not lazily_made:
                    del o.state[p][key]
                elif isinstance(value, Tensor):
                    value.zero_()


def _shallow(state: dict[str, Any]) -> dict[str, Any]:
    return {k: v.clone() if isinstance(v, Tensor) else copy.deepcopy(v) for k, v in state.items()}


def _put_back(value: Any, before: Any) -> Any:
    if isinstance(value, Tensor) and isinstance(before, Tensor):
        return value.copy_(before)
    return copy.deepcopy(before)


def _numbers(optimizer: Any) -> list[dict[str, Any]]:
    return [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]


# ---- running and recording a step ----


class Steps:
    """Runs steps of a setting in a job's mode."""

    def __init__(self, step: Callable[[], Any], setting: Setting, seed: int, columns: Any) -> None:
        self.step, self.setting, self.columns = step, setting, columns
        self.mode = Mode(seed)

    def prepare(self, number: int) -> None:
        for source in self.setting.sources:
            source.load(number)
        _schedule.put(self.setting.optimizers, self.columns, number)
        self.mode.begin(number)

    @contextlib.contextmanager
    def in_mode(self) -> Iterator[None]:
        context = _context.current()
        context.job = self.mode
        try:
            yield
        finally:
            context.job = None

    def run(self, number: int) -> Any:
        """One step, of which nothing is recorded."""
        with reproducible():
            self.prepare(number)
            with self.in_mode():
                return self.step()

    def record(self, number: int, state: dict[str, Tensor]) -> tuple[Recorder, Place | None, Any]:
        """What a step does from here, the place of its loss, and the loss."""
        recorder = Recorder(Sites(*self.setting.models.values()))
        with reproducible():
            self.prepare(number)
        for t in state.values():
            recorder.declare(t)
        for source in self.setting.sources:
            recorder.declare(source.tensor)
        recorder.declare(self.mode.number)
        for c in self.mode.corrections.values():
            recorder.declare(c)
        with recording(recorder, reproducible()), self.in_mode():
            loss = self.step()
        place = recorder.place(loss.detach()) if isinstance(loss, Tensor) else None
        return recorder, place, loss


def same_bits(a: Tensor, b: Tensor) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    one, other = (t.detach().contiguous().view(-1).view(torch.uint8) for t in (a, b))
    return bool(torch.equal(one, other))


# ---- two recordings of one step ----


class Comparison:
    """Two recordings, of step 0 and another: equal but for numbers that a schedule tells."""

    def __init__(
        self, first: Recorder, others: Sequence[tuple[int, Recorder]], columns: dict[str, Any]
    ) -> None:
        self.first, self.others, self.columns = first, others, columns
        self.problems: list[Problem] = []

    def run(self) -> None:
        for step, other in self.others:
            if len(other.events) != len(self.first.events):
                self._branch(step, other)
                return
        for i, event in enumerate(self.first.events):
            many = [r.events[i] for _, r in self.others]
            if any((e.kind, e.name) != (event.kind, event.name) for e in many):
                self._branch(self.others[0][0], self.others[0][1])
                return
            args = [event.args, *[e.args for e in many]]
            kwargs = [event.kwargs, *[e.kwargs for e in many]]
            merged = event._replace(
                args=self._merge(event, args), kwargs=self._merge(event, kwargs)
            )
            self.first.events[i] = merged
            self._before(event, many)

    def _branch(self, step: int, other: Recorder) -> None:
        for a, b in zip(self.first.events, other.events):
            if (a.kind, a.name) != (b.kind, b.name):
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
        if any(not isinstance(v, Place) or v.size != first.size for v in values):
            self._differs(event, "the shape of what it reads differs from step to step")
            return first
        consts = [v.const for v in values]
        if all(c is None for c in consts):
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

    def _number(self, event: Event, values: list[Any]) -> Any:
        if all(isinstance(v, float) for v in values) and event.kind == "torch":
            found = self._series(values, ())
            if found is not None:
                return found
        shown = " and ".join(str(v) for v in values[:2])
        self._differs(event, f"a number of Python is {shown} at two steps; {ADVICE}")
        return values[0]

    def _series(self, values: list[float], size: Sequence[int]) -> Series | None:
        steps = [0, *[s for s, _ in self.others]]
        wanted = np.array(values, "<f4")
        for name, column in self.columns.items():
            if (column[steps].astype("<f4") == wanted).all():
                return Series(name, column, size)
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


ADVICE = "declare it: job.table(values), or an optimizer's number that a scheduler sets"
CHANGES = "what it reads is another constant from step to step: data that is not declared"


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    return type(a) is type(b) and a == b


# ---- a program ----


def lower(
    recorder: Recorder,
    loss: Place | None,
    start: dict[str, Tensor],
    state: dict[str, Tensor],
    steps: Steps,
    program: Program,
) -> Lower:
    """The program of a recorded step. start: the first state's content, by names."""
    low = Lower(recorder, program)
    leaves: list[tuple[Place, Value]] = []
    low.held[recorder.place(steps.mode.number).storage] = low.step
    low.graph.scope = "data"
    for source in steps.setting.sources:
        low.write(recorder.place(source.tensor), source.lower(low), {})
    low.graph.scope = ""
    for name, t in state.items():
        leaves.append((recorder.place(t), _leaf(low, name, recorder.place(t), start[name])))
    for beta, c in steps.mode.corrections.items():
        name = f"correction.{beta:.9g}"
        leaves.append((recorder.place(c), _leaf(low, name, recorder.place(c), torch.zeros(1))))
    low.run()
    _outputs(low, leaves, loss)
    return low


def _leaf(low: Lower, name: str, place: Place, start: Tensor) -> Value:
    if place.dtype not in INTEGERS and place.dtype is not torch.float32:
        raise Error(f"{name} is {place.dtype}; a state is float32, or integers of 32 bits")
    code, dims = code_of(place.dtype), fitting(place.size)
    value = low.program.leaf(_ascii(name), code, dims)
    if code == I32:
        value = _bounded(low, name, value, start)
    try:
        low.write(place, value, {})
    except Missing as why:
        raise Error(f"{name}: {why}") from None
    if place.numel != low.recorder.elements(place.storage):
        raise Error(f"{name} is a part of another tensor's memory")
    init = low.program.init
    content = start.contiguous().numpy().reshape(dims)
    if code == I32:
        content = content.astype("<i4")
    first = content.reshape(-1)[0]
    if code == F32 and (content.view("<u4") == content.view("<u4").reshape(-1)[0]).all():
        init.output.append(init.emit("fill", shape=dims, value=float(first), called=_ascii(name)))
        return value
    data = low.program.constant(_ascii(name), content)
    copied = init.emit("reshape", data, shape=dims, dtype=code, called=_ascii(name))
    init.output.append(copied)
    return value


GROWTH = 16  # what an integer of the state may gain or lose in a step


def _bounded(low: Lower, name: str, leaf: Value, start: Tensor) -> Value:
    """Between what a leaf lies in all steps, if none changes it by more than GROWTH: _outputs looks
    whether that is so."""
    least, most = int(start.min()), int(start.max())
    if least < INT32[0] or most > INT32[1]:
        raise Error(f"{name} has integers from {least} to {most}, which are beyond 32 bits")
    room = GROWTH * low.program.steps
    return leaf.within(least - room, most + room)._replace(origin=(leaf.number, 0, 0))


def _check_growth(name: str, leaf: Value, v: Value) -> None:
    origin = v.origin
    steady = v.low >= leaf.low and v.high <= leaf.high and origin is None
    if origin is not None and origin[0] == leaf.number:
        steady = max(abs(origin[1]), abs(origin[2])) <= GROWTH
    if not steady:
        raise Error(
            f"{name}: integers of the state may leave {leaf.low}..{leaf.high} in so many steps; "
            "nothing proves that they stay within 32 bits"
        )


def _ascii(name: str) -> str:
    return "".join(c if " " <= c <= "~" else "?" for c in name)


def _outputs(low: Lower, leaves: list[tuple[Place, Value]], loss: Place | None) -> None:
    graph = low.graph
    graph.scope, graph.place = "", None
    for place, leaf in leaves:
        v = low.held.get(place.storage)
        v = leaf if v is None else v
        v = low.strided(v, place.offset, place.size, place.stride) if v is not leaf else v
        v = low.reshape(v, leaf.dims)
        if leaf.dtype == I32:
            _check_growth(low.program.leaves[leaf.number].name, leaf, v)
        if v.kind != "node":
            v = graph.emit("reshape", v, shape=leaf.dims, dtype=leaf.dtype, called="kept")
        graph.output.append(v)
    if loss is not None:
        if loss.numel != 1 or loss.dtype is not torch.float32:
            raise Error("the step returns no loss; expected a float32 tensor of one element")
        graph.loss = low.reshape(low.read(loss), (1,))


def relative(place: str) -> str:
    """File and line, without where the user's files lie."""
    file, _, line = place.rpartition(":")
    try:
        inside = os.path.relpath(file)
    except ValueError:
        inside = file
    return f"{os.path.basename(file) if inside.startswith('..') else inside}:{line}"
