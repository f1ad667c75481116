"""torch's operators of sorting, running totals, and writes at indices that depend on data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ._aten import AT_LEAST, EQUAL, GREATER, as_lines, code, truth
from ._graph import F32, I32, Value
from ._lower import TORCH, Lower, rule
from ._memory import Missing, product
from ._moves import SHAPE, bounded, flat_places
from ._record import Place

SUMS, PRODUCTS = range(2)  # kinds of `running`
LAST, SUM, PRODUCT, LARGEST, LEAST = range(5)  # kinds of `put_along`


def lines_of(self: Lower, x: Place, dim: int) -> Value:
    """x as [sizes before dim, dim, sizes after]."""
    size = x.size or (1,)
    return as_lines(self, self.full(x, x.size, code(x)), size, dim % len(size))


def kept(v: Value, new: Value) -> Value:
    """new with v's bounds, as its elements are some of v's."""
    return new if new.dtype == F32 else new.within(v.low, v.high)


def taken(self: Lower, v: Value, places: Value) -> Value:
    return kept(v, self.graph.emit("take_along", v, places, axis=1))


# ---- orders ----


def _sorted(self: Lower, x: Place, dim: int, descending: bool) -> tuple[Value, Value]:
    v = lines_of(self, x, dim)
    places = self.graph.emit("argsort", v, axis=1, descending=int(descending))
    places = places.within(0, v.dims[1] - 1)
    return taken(self, v, places), places


@rule(TORCH, "sort")
def _sort(
    self: Lower, out: Place, x: Place, dim: int = -1, descending: bool = False, **how: Any
) -> tuple[Value, Value]:
    dim, descending = how.get("dim", dim), how.get("descending", descending)
    values, places = _sorted(self, x, dim, descending)
    return self.reshape(values, out.size), self.reshape(places, out.size)


@rule(TORCH, "searchsorted", "bucketize")
def _searchsorted(
    self: Lower,
    out: Place,
    line: Any,
    x: Any,
    out_int32: bool = False,
    right: bool = False,
    **_: Any,
) -> Value:
    """Counts the elements of a sorted line that are below x, or at most x if `right`: their number
    is the position."""
    if not isinstance(line, Place) or not isinstance(x, Place) or _.get("sorter") is not None:
        raise Missing("no rule for a number or a sorter")
    count, each = line.size[-1], product(x.size) // max(1, product(line.size[:-1]))
    rows = product(line.size[:-1])
    kind = F32 if line.dtype.is_floating_point or x.dtype.is_floating_point else I32
    a = self.reshape(self.full(line, line.size, kind), (rows, 1, count))
    b = self.reshape(self.full(x, x.size, kind), (rows, each, 1))
    whole = (rows, each, count)
    beyond = self.graph.emit(
        "compare", self.expand(a, whole), self.expand(b, whole), kind=GREATER if right else AT_LEAST
    ).within(0, 1)
    before = self.graph.emit("compare", beyond, self.fill(0, (1,), I32), kind=EQUAL).within(0, 1)
    return self.reshape(self.graph.emit("isum", before, axis=2).within(0, count), out.size)


@rule(TORCH, "bucketize")
def _bucketize(self: Lower, out: Place, x: Any, line: Any, *how: Any, **named: Any) -> Value:
    return _searchsorted(self, out, line, x, *how, **named)


# ---- running totals ----


@rule(TORCH, "cumsum")
def _cumsum(self: Lower, out: Place, x: Place, dim: int, **_: Any) -> Value:
    size = x.size or (1,)
    v = as_lines(self, self.full(x, x.size, I32), size, dim % len(size))
    return self.reshape(running_sums(self, v), out.size)


def running_sums(self: Lower, v: Value) -> Value:
    """Running sums of integers along the middle of three dimensions."""
    low, high = v.dims[1] * min(v.low, 0), v.dims[1] * max(v.high, 0)
    return self.integer(self.graph.emit("running", v, axis=1, kind=SUMS), low, high)


# ---- writes at indices ----


def put(self: Lower, v: Value, places: Value, rows: Value, kind: int) -> Value:
    """v with rows written or reduced at indices of its axis 1."""
    new = self.graph.emit("put_along", v, places, rows, axis=1, kind=kind)
    if v.dtype == F32:
        return new
    if kind in (SUM, PRODUCT):
        return _totals(self, new, v, rows, kind)
    return new.within(min(v.low, rows.low), max(v.high, rows.high))


def _totals(self: Lower, new: Value, v: Value, rows: Value, kind: int) -> Value:
    if kind == PRODUCT:
        raise Missing("products of integers, of which no bounds are known")
    count = rows.dims[1]
    low, high = v.low + count * min(0, rows.low), v.high + count * max(0, rows.high)
    return self.integer(new, low, high)


def _box(self: Lower, v: Value, dim: int, size: Sequence[int]) -> Value:
    """The leading `size` elements in all dimensions except dim."""
    for d, n in enumerate(size):
        if d != dim and n != v.dims[d]:
            v = self.slice(v, d, 0, n)
    return v


def _put_back(self: Lower, v: Value, new: Value, dim: int) -> Value:
    """v with its leading elements, which _box gave, replaced by new."""
    for d in reversed(range(len(v.dims))):
        if new.dims[d] != v.dims[d]:
            beside = v
            for e in range(d):  # dimensions after d are replaced already
                if e != dim and new.dims[e] != v.dims[e]:
                    beside = self.slice(beside, e, 0, new.dims[e])
            rest = self.slice(beside, d, new.dims[d], v.dims[d] - new.dims[d])
            new = self.concat(d, [new, rest])
    return new


def _scattered(
    self: Lower, x: Place, dim: int, index: Place, src: Any, kind: int, start: Any = None
) -> Value:
    """Writes or reduces src at indices. start: the value that elements get before the first
    reduction; None: their own."""
    size, own = x.size or (1,), index.size or (1,)
    dim %= len(size)
    v = self.reshape(self.full(x, x.size, code(x)), size)
    if not index.numel:
        return v
    part = _box(self, v, dim, own)
    places = as_lines(self, bounded(self, index, size[dim]), own, dim)
    if isinstance(src, Place):
        rows = _box(
            self, self.reshape(self.full(src, src.size, code(x)), src.size or (1,)), -1, own
        )
    else:
        rows = self.fill(src, own, code(x))
    rows = as_lines(self, rows, own, dim)
    lines = as_lines(self, part, part.dims, dim)
    if start is not None:
        ones = self.fill(1, rows.dims, I32)
        hit = put(self, self.fill(0, lines.dims, I32), places, ones, LAST)
        lines = self.where(hit, self.fill(start, lines.dims, lines.dtype), lines)
    new = self.reshape(put(self, lines, places, rows, kind), part.dims)
    return _put_back(self, v, new, dim)


_REDUCTIONS = {"add": SUM, "multiply": PRODUCT, None: LAST}


@rule(TORCH, "scatter")
def _scatter(
    self: Lower, out: Place, x: Place, dim: int, index: Place, src: Any, reduce: Any = None
) -> Value:
    kind = _REDUCTIONS[reduce]
    return self.reshape(_scattered(self, x, dim, index, src, kind), out.size)


@rule(TORCH, "scatter_add")
def _scatter_add(self: Lower, out: Place, x: Place, dim: int, index: Place, src: Place) -> Value:
    return self.reshape(_scattered(self, x, dim, index, src, SUM), out.size)


@rule(TORCH, "scatter_reduce")
def _scatter_reduce(
    self: Lower,
    out: Place,
    x: Place,
    dim: int,
    index: Place,
    src: Place,
    reduce: str,
    include_self: bool = True,
) -> Value:
    if reduce not in ("amax", "amin"):
        raise Missing(f"no rule for it ({reduce})")
    kind, start = (LARGEST, -math.inf) if reduce == "amax" else (LEAST, math.inf)
    if code(x) != F32:
        raise Missing("no rule for integers")
    first = None if include_self else start
    return self.reshape(_scattered(self, x, dim, index, src, kind, first), out.size)


@rule(TORCH, "index_copy")
def _index_copy(self: Lower, out: Place, x: Place, dim: int, index: Place, src: Place) -> Value:
    v = lines_of(self, x, dim)
    rows = self.reshape(self.full(src, src.size, code(x)), (v.dims[0], index.numel, v.dims[2]))
    places = self.reshape(bounded(self, index, v.dims[1]), (1, index.numel, 1))
    return self.reshape(put(self, v, self.expand(places, rows.dims), rows, LAST), out.size)


def _masked(self: Lower, x: Place, mask: Place, values: Place) -> Value:
    if values.numel != 1:
        raise Missing(SHAPE)
    chosen = self.reshape(
        truth(self, mask, mask.size), (*mask.size, *[1] * (len(x.size) - len(mask.size)))
    )
    chosen = self.expand(chosen, x.size) if x.size else chosen
    new = self.broadcast(self.full(values, values.size, code(x)), (1,), x.size)
    return self.where(chosen, new, self.full(x, x.size, code(x)))


def _rows(self: Lower, x: Place, values: Place, own: list[int], shape: Sequence[int]) -> Value:
    """Values for all elements that indices choose, with the indices' dimensions moved to the
    front."""
    rest = [d for d in range(len(x.size)) if d not in own]
    together = own == list(range(own[0], own[-1] + 1))
    first = own[0] if together else 0
    size = [*[x.size[d] for d in rest[:first]], *shape, *[x.size[d] for d in rest[first:]]]
    v = self.broadcast(self.full(values, values.size, code(x)), values.size, size)
    order = [*range(first, first + len(shape)), *range(first)]
    return self.moved(v, size, [*order, *range(first + len(shape), len(size))])


@rule(TORCH, "index_put", "_index_put_impl", "_unsafe_index_put")
def _index_put(
    self: Lower,
    out: Place,
    x: Place,
    indices: list[Place | None],
    values: Place,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Value:
    chosen = {i: p for i, p in enumerate(indices) if p is not None}
    if any(p.dtype in (torch.bool, torch.uint8) for p in chosen.values()):
        if len(indices) != 1 or accumulate or code(x) != code(values):
            raise Missing(SHAPE)
        return self.reshape(_masked(self, x, next(iter(chosen.values())), values), out.size)
    own = list(chosen)
    rest = [d for d in range(len(x.size)) if d not in own]
    shape, places = flat_places(self, chosen, x.size)
    count, inner = product(shape), product([x.size[d] for d in rest])
    moved = self.moved(self.full(x, x.size, code(x)), x.size, [*own, *rest])
    table = self.reshape(moved, (1, product([x.size[d] for d in own]), inner))
    rows = self.reshape(_rows(self, x, values, own, shape), (1, count, inner))
    places = self.expand(self.reshape(places, (1, count, 1)), rows.dims)
    new = put(self, table, places, rows, SUM if accumulate else LAST)
    new = self.reshape(new, [x.size[d] for d in (*own, *rest)])
    back = sorted(range(len(x.size)), key=lambda k: [*own, *rest][k])
    return self.reshape(self.moved(new, new.dims, back), out.size)
