"""torch's operators that move elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ._aten import as_lines, code, multiple
from ._graph import F32, I32, INT32, Bits, Value
from ._lower import TORCH, Lower, rule
from ._memory import Missing, product
from ._record import Place

SHAPE = "its shape depends on the step's data"
PLACES = "places that depend on the step's data"


@rule(TORCH, "cat")
def _cat(self: Lower, out: Place, tensors: list[Place], dim: int = 0) -> Value:
    dim %= max(1, len(out.size))
    inner = product(out.size[dim + 1 :])
    parts = []
    for t in tensors:
        if t.numel:
            v = self.full(t, t.size, code(out))
            parts.append(self.reshape(v, (product(t.size[:dim]), t.size[dim], inner)))
    return self.reshape(self.concat(1, parts), out.size)


@rule(TORCH, "stack")
def _stack(self: Lower, out: Place, tensors: list[Place], dim: int = 0) -> Value:
    dim %= len(out.size)
    shape = (product(out.size[:dim]), 1, product(out.size[dim + 1 :]))
    parts = [self.reshape(self.full(t, t.size, code(out)), shape) for t in tensors]
    return self.reshape(self.concat(1, parts), out.size)


@rule(TORCH, "repeat")
def _repeat(self: Lower, out: Place, x: Place, repeats: Sequence[int]) -> Value:
    size = [1] * (len(repeats) - len(x.size)) + list(x.size)
    v = self.full(x, x.size, code(out))
    for d, count in enumerate(repeats):
        if count != 1:
            v = self.reshape(v, (product(size[:d]), 1, product(size[d:])))
            v = self.expand(v, (v.dims[0], count, v.dims[2]))
            size[d] *= count
    return self.reshape(v, size)


@rule(TORCH, "flip")
def _flip(self: Lower, out: Place, x: Place, dims: Sequence[int]) -> Value:
    v = self.full(x, x.size, code(out))
    for d in dims:
        d %= len(x.size)
        v = as_lines(self, v, x.size, d)
        at = self.table(np.arange(x.size[d])[::-1].copy())
        v = self.graph.emit("gather", v, at, axis=1).within(v.low, v.high)
    return self.reshape(v, x.size)


@rule(TORCH, "roll")
def _roll(self: Lower, out: Place, x: Place, shifts: Any, dims: Any = ()) -> Value:
    shifts = [shifts] if isinstance(shifts, int) else shifts
    dims = [dims] if isinstance(dims, int) else dims
    v, size = self.full(x, x.size, code(out)), x.size
    if not dims:
        size, dims = (x.numel,), [0]
    for shift, d in zip(shifts, dims):
        d %= len(size)
        shift %= size[d]
        if shift:
            v = as_lines(self, v, size, d)
            cut = size[d] - shift
            v = self.concat(1, [self.slice(v, 1, cut, shift), self.slice(v, 1, 0, cut)])
    return self.reshape(v, x.size)


@rule(TORCH, "constant_pad_nd")
def _pad(self: Lower, out: Place, x: Place, pad: Sequence[int], value: float = 0) -> Value:
    v, size = self.full(x, x.size, code(out)), list(x.size)
    for k in range(len(pad) // 2):
        d, (before, after) = len(size) - 1 - k, pad[2 * k : 2 * k + 2]
        if before or after:
            v = padded(self, as_lines(self, v, size, d), before, after, value)
            size[d] += before + after
    return self.reshape(v, size)


def padded(self: Lower, v: Value, before: int, after: int, value: float) -> Value:
    less = max(0, -before), max(0, -after)
    v = self.slice(v, 1, less[0], v.dims[1] - sum(less))
    before, after = max(0, before), max(0, after)
    if not before and not after:
        return v
    word = float(value) if v.dtype == F32 else Bits(int(value) & 0xFFFFFFFF)
    new = self.graph.emit("pad", v, axis=1, before=before, after=after, value=word)
    if v.dtype == F32:
        return new
    return new.within(min(v.low, int(value)), max(v.high, int(value)))


@rule(TORCH, "slice_backward")
def _slice_backward(
    self: Lower,
    out: Place,
    dy: Place,
    size: Sequence[int],
    dim: int,
    start: int | None,
    end: int | None,
    step: int,
) -> Value:
    dim %= len(size)
    n, count = size[dim], dy.size[dim]
    start = 0 if start is None else start
    start = min(max(start + n if start < 0 else start, 0), n)
    v = as_lines(self, self.full(dy, dy.size, F32), dy.size, dim)
    after = n - start - ((count - 1) * step + 1)
    v = self.graph.emit("pad", v, axis=1, before=start, after=after, step=step, value=0.0)
    return self.reshape(v, size)


@rule(TORCH, "select_backward")
def _select_backward(
    self: Lower, out: Place, dy: Place, size: Sequence[int], dim: int, index: int
) -> Value:
    dim %= len(size)
    index %= size[dim]
    shape = (product(size[:dim]), 1, product(size[dim + 1 :]))
    v = self.reshape(self.full(dy, dy.size, F32), shape)
    after = size[dim] - index - 1
    v = self.graph.emit("pad", v, axis=1, before=index, after=after, value=0.0)
    return self.reshape(v, size)


def _triangle(keep: Callable[[Any, Any, int], Any]) -> Callable[..., Value]:
    def lower(self: Lower, out: Place, x: Place, diagonal: int = 0) -> Value:
        rows, cols = x.size[-2:]
        mask = keep(np.arange(rows)[:, None], np.arange(cols)[None], diagonal)
        c = self.constant(torch.from_numpy(mask.copy()))
        c = self.broadcast(c, (rows, cols), x.size)
        v = self.full(x, x.size, code(out))
        return self.where(c, v, self.fill(0, x.size, v.dtype))

    return lower


rule(TORCH, "tril")(_triangle(lambda i, j, k: j <= i + k))
rule(TORCH, "triu")(_triangle(lambda i, j, k: j >= i + k))


@rule(TORCH, "pixel_shuffle")
def _pixel_shuffle(self: Lower, out: Place, x: Place, r: int) -> Value:
    *batch, c, h, w = x.size
    v = self.reshape(self.full(x, x.size, F32), (product(batch) * c // (r * r), r, r, h, w))
    return self.reshape(self.transpose(v, (0, 3, 1, 4, 2)), out.size)


@rule(TORCH, "pixel_unshuffle")
def _pixel_unshuffle(self: Lower, out: Place, x: Place, r: int) -> Value:
    *batch, c, h, w = x.size
    v = self.reshape(self.full(x, x.size, F32), (product(batch) * c, h // r, r, w // r, r))
    return self.reshape(self.transpose(v, (0, 2, 4, 1, 3)), out.size)


def _by_numbers(self: Lower, out: Place, x: Place, func: Any, *more: Any) -> Value:
    """Moves elements as torch does: torch moves their numbers once, and a gather does the rest."""
    numbers = torch.arange(x.numel, dtype=torch.float64).reshape(x.size)
    moved = func(numbers, *more).reshape(-1).numpy().astype("i8")
    return self.reshape(self.gather(self.full(x, x.size, code(out)), moved), out.size)


for _name in (
    "reflection_pad1d",
    "reflection_pad2d",
    "reflection_pad3d",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "im2col",
    "channel_shuffle",
    "unfold_copy",
    "diagonal_copy",
):
    _func = getattr(torch.ops.aten, _name)

    def _lower(self: Lower, out: Place, x: Place, *more: Any, func: Any = _func) -> Value:
        return _by_numbers(self, out, x, func, *more)

    rule(TORCH, _name)(_lower)


@rule(TORCH, "diagonal_backward")
def _diagonal_backward(
    self: Lower, out: Place, dy: Place, size: Sequence[int], offset: int, dim1: int, dim2: int
) -> Value:
    where = torch.zeros(size, dtype=torch.int64)
    at = where.diagonal(offset, dim1, dim2)
    at.copy_(torch.arange(1, dy.numel + 1).reshape(at.shape))
    numbers = where.reshape(-1).numpy()
    v = self.gather(self.full(dy, dy.size, F32), np.maximum(numbers - 1, 0))
    there = self.constant(torch.from_numpy(numbers > 0))
    return self.reshape(self.where(there, v, self.fill(0.0, (numbers.size,))), size)


# ---- by indices ----


def bounded(self: Lower, index: Place, count: int) -> Value:
    """Returns indices from 0 on, after moving those that count from the end."""
    v = self.typed(index, I32)
    if v.low < -count or v.high >= count:
        if v.low == INT32[0] and v.high == INT32[1]:
            raise Missing("indices of which no bounds are known")
        raise Missing(f"indices that may lie between {v.low} and {v.high}, of {count} places")
    if v.low >= 0:
        return v
    moved = self.iadd(v, self.fill(count, (1,), I32))
    below = self.graph.emit("compare", v, self.fill(0, (1,), I32), kind=2).within(0, 1)
    return self.where(below, moved, v).within(0, count - 1)


@rule(TORCH, "index_select")
def _index_select(self: Lower, out: Place, x: Place, dim: int, index: Place) -> Value:
    dim %= max(1, len(x.size))
    v = as_lines(self, self.full(x, x.size, code(out)), x.size or (1,), dim)
    at = self.reshape(bounded(self, index, v.dims[1]), (index.numel,))
    return self.reshape(_kept(v, self.graph.emit("gather", v, at, axis=1)), out.size)


def _kept(v: Value, new: Value) -> Value:
    return new.within(v.low, v.high) if v.dtype != F32 else new


@rule(TORCH, "embedding")
def _embedding(self: Lower, out: Place, table: Place, ids: Place, *_: Any) -> Value:
    at = self.typed(ids, I32)
    v = self.full(table, table.size, F32)
    return self.reshape(self.graph.emit("embedding", v, self.reshape(at, ids.size)), out.size)


def flat_places(
    self: Lower, chosen: dict[int, Place], size: Sequence[int]
) -> tuple[Sequence[int], Value]:
    """Returns the indices' shape, and flat indices into a table of the dimensions that have
    indices."""
    sizes = [p.size for p in chosen.values()]
    shape = torch.broadcast_shapes(*sizes)  # type: ignore[no-untyped-call]
    at: Value | None = None
    for i, p in chosen.items():
        v = self.broadcast(bounded(self, p, size[i]), p.size, shape)
        v = self.reshape(v, (product(shape),))
        at = v if at is None else self.iadd(multiple(self, at, size[i]), v)
    assert at is not None
    return shape, at


@rule(TORCH, "index", "_unsafe_index")
def _index(self: Lower, out: Place, x: Place, indices: list[Place | None]) -> Value:
    """Takes lists of indices for some dimensions, adjacent or not. The indexed dimensions are moved
    to the front."""
    chosen = {i: p for i, p in enumerate(indices) if p is not None}
    own = list(chosen)
    if any(p.dtype in (torch.bool, torch.uint8) for p in chosen.values()):
        raise Missing(SHAPE)
    rest = [d for d in range(len(x.size)) if d not in own]
    shape, at = flat_places(self, chosen, x.size)
    moved = self.moved(self.full(x, x.size, code(out)), x.size, [*own, *rest])
    inner = product([x.size[d] for d in rest])
    table = self.reshape(moved, (product([x.size[d] for d in own]), inner))
    v = _kept(table, self.graph.emit("gather", table, at, axis=0))
    together = own == list(range(own[0], own[-1] + 1))
    if not together or own[0] == 0:
        return self.reshape(v, out.size)
    first = own[0]
    size = [*shape, *[x.size[d] for d in rest]]
    order = [*range(len(shape), len(shape) + first), *range(len(shape))]
    order += range(len(shape) + first, len(size))
    return self.reshape(self.moved(v, size, order), out.size)


@rule(TORCH, "gather")
def _gather(self: Lower, out: Place, x: Place, dim: int, index: Place, **_: Any) -> Value:
    """Gathers row by row, from a matrix whose columns are dimension `dim` and whose rows are all
    others."""
    dim %= max(1, len(x.size))
    size = tuple(x.size) or (1,)
    own = tuple(index.size) or (1,)
    v = self.full(x, x.size, code(out))
    for d, n in enumerate(own):
        if d != dim and n != size[d]:
            v = self.slice(self.reshape(v, size), d, 0, n)
            size = v.dims
    order = [*[d for d in range(len(size)) if d != dim], dim]
    v = self.moved(v, size, order)
    at = self.moved(bounded(self, index, size[dim]), own, order)
    rows, count, n = product(own) // own[dim], own[dim], size[dim]
    starts = np.repeat(np.arange(rows) * n, count)
    flat = self.iadd(self.reshape(at, (rows * count,)), self._integers(starts, (rows * count,)))
    table = self.reshape(v, (rows * n,))
    v = _kept(table, self.graph.emit("gather", table, flat, axis=0))
    back = sorted(range(len(order)), key=lambda k: order[k])
    v = self.moved(self.reshape(v, [own[d] for d in order]), [own[d] for d in order], back)
    return self.reshape(v, out.size)


def _refused(why: str, *names: str) -> None:
    def lower(*_: Any, **__: Any) -> Any:
        raise Missing(why)

    rule(TORCH, *names)(lower)


_refused(SHAPE, "nonzero", "masked_select", "unique_consecutive", "_unique2")
_refused(SHAPE, "bincount", "repeat_interleave")
_refused("signs of zeros", "copysign", "signbit")
_refused(f"writing at {PLACES}", "index_add")
