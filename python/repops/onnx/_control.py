"""If, Loop and Scan, if the value that decides is constant or the same in all steps; sequences."""

from __future__ import annotations

from typing import Any

import torch

from .._library import Error
from ._limits import NODES_MAX
from ._run import Call, mark_known
from ._table import operator

Tensor = torch.Tensor


@operator("If", note="the condition is read")
def _if(n: Call, condition: Tensor) -> Any:
    return tuple(n.inner("then_branch" if bool(condition.reshape(())) else "else_branch", []))


@operator("Loop", note="turns become repeats; count and condition are read")
def _loop(n: Call, count: Any = None, condition: Any = None, *carried: Any) -> Any:
    turns = NODES_MAX if count is None else int(count)
    going = condition is None or bool(condition.reshape(()))
    values, lines, turn = list(carried), [], 0
    while going and turn < turns:
        number = mark_known(torch.tensor(turn))
        made = n.inner("body", [number, mark_known(torch.tensor(True)), *values])
        values = made[1 : 1 + len(values)]
        lines.append(made[1 + len(values) :])
        going, turn = bool(made[0].reshape(())), turn + 1
    scans = len(n.outputs) - len(values)
    if not lines and scans:
        raise Error("a loop of no turn has no lines to put together")
    return (*values, *(torch.stack([line[i] for line in lines]) for i in range(scans)))


@operator("Scan", note="turns become repeats")
def _scan(n: Call, *inputs: Tensor) -> Any:
    read = n.need("num_scan_inputs")
    state, lines = list(inputs[: len(inputs) - read]), inputs[len(inputs) - read :]
    axes = n.get("scan_input_axes", [0] * read)
    back = n.get("scan_input_directions", [0] * read)
    turns = {t.shape[a] for t, a in zip(lines, axes)}
    if len(turns) != 1 or turns == {0}:
        raise Error(f"its inputs have {sorted(turns)} elements to scan; expected as many, of each")
    made: list[list[Tensor]] = []
    for i in range(turns.pop()):
        own = [t.select(a, t.shape[a] - 1 - i if b else i) for t, a, b in zip(lines, axes, back)]
        results = n.inner("body", [*state, *own])
        state, rest = results[: len(state)], results[len(state) :]
        made.append(rest)
    count = len(made[0])
    out_axes = n.get("scan_output_axes", [0] * count)
    out_back = n.get("scan_output_directions", [0] * count)
    columns = [[m[i] for m in (made[::-1] if out_back[i] else made)] for i in range(count)]
    return (*state, *(torch.stack(c, a) for c, a in zip(columns, out_axes)))


# ---- sequences are Python lists, optional values may be None ----


def _place(n: Call, position: Any, count: int) -> int:
    i = int(position)
    if not -count <= i < count:
        raise Error(f"position {i} of a sequence of {count}")
    return i % count


@operator("SequenceConstruct")
def _construct(n: Call, *inputs: Tensor) -> Any:
    return (list(inputs),)


@operator("SequenceEmpty")
def _empty(n: Call) -> Any:
    return ([],)


@operator("SequenceAt")
def _at(n: Call, sequence: list[Any], position: Tensor) -> Any:
    return sequence[_place(n, position, len(sequence))]


@operator("SequenceErase")
def _erase(n: Call, sequence: list[Any], position: Any = None) -> Any:
    i = len(sequence) - 1 if position is None else _place(n, position, len(sequence))
    return (sequence[:i] + sequence[i + 1 :],)


@operator("SequenceInsert")
def _insert(n: Call, sequence: list[Any], t: Tensor, position: Any = None) -> Any:
    count = len(sequence)
    i = count if position is None else int(position)
    if not -count <= i <= count:
        raise Error(f"position {i} of a sequence of {count}")
    i = i + count if i < 0 else i
    return ([*sequence[:i], t, *sequence[i:]],)


@operator("SequenceLength")
def _length(n: Call, sequence: list[Any]) -> Any:
    return mark_known(torch.tensor(len(sequence)))


@operator("ConcatFromSequence")
def _joined(n: Call, sequence: list[Any]) -> Any:
    axis = n.need("axis")
    return torch.stack(sequence, axis) if n.get("new_axis", 0) else torch.cat(sequence, axis)


@operator("SplitToSequence")
def _split(n: Call, x: Tensor, split: Any = None) -> Any:
    axis = n.get("axis", 0)
    if split is None:
        parts = list(torch.split(x, 1, axis))
        return ([p if n.get("keepdims", 1) else p.squeeze(axis) for p in parts],)
    return (list(torch.split(x, int(split) if split.dim() == 0 else split.tolist(), axis)),)


@operator("SequenceMap", note="taken apart")
def _map(n: Call, first: list[Any], *more: Any) -> Any:
    made = []
    for i, t in enumerate(first):
        others = [m[i] if isinstance(m, list) else m for m in more]
        made.append(n.inner("body", [t, *others]))
    return tuple([m[i] for m in made] for i in range(len(n.outputs)))


@operator("Optional")
def _optional(n: Call, value: Any = None) -> Any:
    return (value,)


@operator("OptionalGetElement")
def _element(n: Call, value: Any) -> Any:
    if value is None:
        raise Error("an optional value that is not there")
    return (value,)


@operator("OptionalHasElement")
def _there(n: Call, value: Any = None) -> Any:
    return mark_known(torch.tensor(value is not None))
