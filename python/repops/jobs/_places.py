"""torch's operators that choose elements by masks, values or lists of indices."""

from __future__ import annotations

from typing import Any

import torch

from ._aten import EQUAL, GREATER, LESS, as_lines, code, largest, truth
from ._graph import F32, I32, Value
from ._lower import TORCH, Lower, rule
from ._moves import bounded
from ._orders import running_sums
from ._record import Place


def _is_among(self: Lower, x: Value, values: Value) -> Value:
    """Marks the elements of x [n] that are among the values [m]."""
    pairs = self.expand(self.reshape(x, (x.numel, 1)), (x.numel, values.numel))
    hits = self.graph.emit("compare", pairs, values, kind=EQUAL).within(0, 1)
    return self.cast(largest(self, self.cast(hits, F32), hits.dims, 1), I32).within(0, 1)


def _is_real(x: Any) -> bool:
    return x.dtype.is_floating_point if isinstance(x, Place) else isinstance(x, float)


@rule(TORCH, "isin")
def _isin(
    self: Lower, out: Place, x: Any, values: Any, assume_unique: bool = False, invert: bool = False
) -> Value:
    kind = F32 if _is_real(x) or _is_real(values) else I32
    own, others = (
        self.reshape(self.full(p, p.size, kind), (p.numel,))
        if isinstance(p, Place)
        else self.fill(p, (1,), kind)
        for p in (x, values)
    )
    found = _is_among(self, own, others)
    if invert:
        zero = self.fill(0, (1,), I32)
        found = self.graph.emit("compare", found, zero, kind=EQUAL).within(0, 1)
    return self.reshape(found, out.size)


@rule(TORCH, "index_fill")
def _index_fill(self: Lower, out: Place, x: Place, dim: int, index: Place, value: Any) -> Value:
    """Compares each index of a line with those to be filled."""
    size = x.size or (1,)
    v = as_lines(self, self.full(x, x.size, code(out)), size, dim % len(size))
    if not index.numel:
        return self.reshape(v, out.size)
    count = v.dims[1]
    places = self.reshape(bounded(self, index, count), (index.numel,))
    line = self.constant(torch.arange(count))
    hit = self.reshape(_is_among(self, line, places), (1, count, 1))
    new = self.full(value, v.dims, v.dtype)
    return self.reshape(self.where(self.expand(hit, v.dims), new, v), out.size)


@rule(TORCH, "masked_scatter")
def _masked_scatter(self: Lower, out: Place, x: Place, mask: Place, source: Place) -> Value:
    """The i-th element that the mask chooses becomes element i of the source."""
    old = self.full(x, out.size, code(out))
    if not source.numel:
        return old
    chosen = truth(self, mask, out.size)
    turn = running_sums(self, self.reshape(chosen, (1, out.numel, 1)))
    turn = self.reshape(turn, (out.numel,))
    # Elements before the first chosen one get -1. PyTorch refuses sources that are too short.
    turn = _within(self, self.iadd(turn, self.fill(-1, (1,), I32)), source.numel)
    given = self.reshape(self.full(source, source.size, code(out)), (source.numel,))
    new = self.graph.emit("gather", given, turn, axis=0)
    new = new if new.dtype == F32 else new.within(given.low, given.high)
    return self.where(chosen, self.reshape(new, out.size), old)


def _within(self: Lower, v: Value, count: int) -> Value:
    """v clamped to [0, count - 1]."""
    for bound, kind in ((0, LESS), (count - 1, GREATER)):
        limit = self.fill(bound, v.dims, I32)
        v = self.where(self.graph.emit("compare", v, limit, kind=kind).within(0, 1), limit, v)
    return v.within(0, count - 1)
