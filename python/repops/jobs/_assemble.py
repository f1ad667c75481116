"""The program of a recorded step: its state, its first state, its step and its loss."""

from __future__ import annotations

import numpy as np
import torch

from .._library import Error
from . import _aten, _fused, _grouped, _moves, _orders, _places  # noqa: F401
from ._capture import Recorded, Steps
from ._graph import F32, I32, INT32, Graph, Program, Value
from ._lower import Lower
from ._memory import INTEGERS, Missing, code_of, fitting
from ._reads import idle
from ._record import Place
from ._stored import Stored

Tensor = torch.Tensor


def lower(recorded: Recorded, start: dict[str, Tensor], steps: Steps, program: Program) -> Lower:
    """Turns a recorded step into the program's state, first state, step and loss. start: the first
    state's tensors by name."""
    recorder = recorded.recorder
    low = Lower(recorder, program)
    leaves: list[tuple[str, Place, Value]] = []
    declare(low, steps)
    lying = steps.setting.bound.stored
    for name, place in recorded.starts.items():
        leaf = _leaf(low, name, place, start[name], lying.get(name))
        leaves.append((name, recorded.ends.get(name, place), leaf))
    for c in steps.mode.corrections.values():
        place = recorder.place(c.value)
        leaves.append((c.name, place, _leaf(low, c.name, place, c.at(0))))
    declare_weights(low, recorded, steps)
    low.run(idle(recorded, [place for _, place, _ in leaves]))
    program.names = {
        leaf.name: name for leaf, (name, _, _) in zip(program.leaves, leaves, strict=True)
    }
    _outputs(low, leaves, recorded.returned)
    return low


def declare(low: Lower, steps: Steps) -> None:
    """Declares the inputs of a step: its number, and data."""
    recorder = low.recorder
    low.held[recorder.place(steps.mode.number).storage] = low.step
    with low.scoped("data"):
        for source in steps.setting.sources:
            place = recorder.place(source.tensor)
            parts = source.parts(low, recorder.micro_batches)
            if parts:
                low.parts[place.storage] = [low.later("data", part) for part in parts]
            else:
                low.write(place, source.lower(low), {})


def declare_weights(low: Lower, recorded: Recorded, steps: Steps) -> None:
    """Declares weights that lie in files and that no step changes, as data."""
    with low.scoped("weights"):
        for name, place in recorded.weights.items():
            it = steps.setting.bound.stored[name]
            value = low.program.stored(name, it, fitting(place.size))
            low.write(place, low.cast(value, F32), {})


def _leaf(low: Lower, name: str, place: Place, start: Tensor, it: Stored | None = None) -> Value:
    """Declares a leaf of the state. Its first content is in a file if `it` is given, else in
    start."""
    if place.dtype not in INTEGERS and place.dtype is not torch.float32:
        raise Error(f"{name} is {place.dtype}; a state is float32, or integers of 32 bits")
    code, dims = code_of(place.dtype), fitting(place.size)
    value = low.program.leaf(name, code, dims)
    called = low.program.leaves[-1].name
    if code == I32:
        value = _bounded(low, name, value, start)
    try:
        low.write(place, value, {})
    except Missing as why:
        raise Error(f"{name}: {why}") from None
    if place.numel != low.recorder.elements(place.storage):
        raise Error(f"{name} is a part of another tensor's memory")
    init = low.program.init
    if it is not None:
        data = low.program.stored(called, it, dims)
        init.output.append(_as_floats(init, data, called))
        return value
    once = all(s == 0 for s in start.stride())  # all elements are one number
    content = (start[(0,) * start.dim()].reshape(1) if once else start.contiguous()).numpy()
    content = content.astype("<i4") if code == I32 else content
    first = content.reshape(-1)[0]
    if code == F32 and (content.view("<u4") == first.view("<u4")).all():
        init.output.append(init.emit("fill", shape=dims, value=float(first), called=called))
        return value
    content = np.broadcast_to(content, dims) if once else content.reshape(dims)
    data = low.program.constant(called, content)
    copied = init.emit("reshape", data, shape=dims, dtype=code, called=called)
    init.output.append(copied)
    return value


def _as_floats(init: Graph, data: Value, called: str) -> Value:
    if data.dtype == F32:
        return init.emit("reshape", data, shape=data.dims, dtype=F32, called=called)
    return init.emit("cast", data, dtype_=F32, called=called)


GROWTH = 16  # the largest change of an integer of the state in one step


def _bounded(low: Lower, name: str, leaf: Value, start: Tensor) -> Value:
    """Bounds a leaf for all steps on the assumption that none changes it by more than GROWTH, which
    _check_growth proves later."""
    least, most = int(start.min()), int(start.max())
    if least < INT32[0] or most > INT32[1]:
        raise Error(f"{name} has integers from {least} to {most}, which are beyond 32 bits")
    room = GROWTH * low.program.steps
    return leaf.within(least - room, most + room)._replace(origin=(leaf.number, 0, 0))


def _check_growth(low: Lower, name: str, leaf: Value, v: Value) -> None:
    """Proves the bounds of _bounded. A leaf that no step reads, such as an answer, needs none."""
    read = (u for node in low.graph.nodes for u in node.inputs)
    if all(u[:2] != leaf[:2] for u in (v, *read)):
        return
    origin = v.origin
    steady = v.low >= leaf.low and v.high <= leaf.high and origin is None
    if origin is not None and origin[0] == leaf.number:
        steady = max(abs(origin[1]), abs(origin[2])) <= GROWTH
    if not steady:
        raise Error(
            f"{name}: integers of the state may leave {leaf.low}..{leaf.high} in so many steps; "
            "nothing proves that they stay within 32 bits"
        )


def _outputs(low: Lower, leaves: list[tuple[str, Place, Value]], returned: list[Place]) -> None:
    graph = low.graph
    graph.scope, graph.place = "", None
    for name, place, leaf in leaves:
        try:
            v = low.reshape(low.read(place), leaf.dims)
        except Missing as why:
            raise Error(f"{name}: {why}") from None
        if leaf.dtype == I32:
            _check_growth(low, name, leaf, v)
        if v.kind != "node":
            v = graph.emit("reshape", v, shape=leaf.dims, dtype=leaf.dtype, called="kept")
        graph.output.append(v)
    if returned:
        graph.loss = number(low, returned[0], "the step returns no loss")


def number(low: Lower, p: Place, otherwise: str) -> Value:
    """Reads a returned tensor as one number; `otherwise` begins the error."""
    if p.numel != 1 or p.dtype is not torch.float32:
        raise Error(f"{otherwise}; expected a float32 tensor of one element")
    return low.reshape(low.read(p), (1,))
