"""Writes and additions at indices that may repeat."""

from __future__ import annotations

import math
from typing import Any

import torch

from .. import _context
from . import _here as here
from ._call import Leftover, expect, need, numbers, run
from ._complex import joined, pairs
from ._registry import handles, on_devices

Tensor = torch.Tensor


def added(x: Tensor, places: Tensor, values: Tensor) -> Tensor:
    """x with values added at flat indices; values for one index are summed first, in their
    order."""
    need(x, values)
    if not values.numel():
        return x.clone()
    rows = values.contiguous().reshape(places.numel(), -1)
    count = x.numel() // rows.shape[1]
    ids = numbers(places.reshape(-1), count)
    sums = run("embedding_grad", (), (rows, ids), (count, rows.shape[1]))
    return x + sums.reshape(x.shape)


def _flat(x: Tensor, dim: int, index: Tensor, source: Tensor) -> tuple[Tensor, Tensor]:
    """The flat indices of x that `index` names along dim, and the part of the source for them."""
    places = here.arange(x.numel()).reshape(x.shape).gather(dim, index)  # checks bounds
    return places, source[tuple(slice(0, n) for n in index.shape)]


@handles("scatter_add")
def scatter_add(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Sums the terms for one element in the order of the index."""
    if not x.dim():
        return x + source.reshape(-1)[0] if source.numel() else x.clone()
    places, part = _flat(x, dim, index, source)
    return added(x, places, part.reshape(-1, 1))


@handles("index_add")
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    moved, base = source.movedim(dim, 0).contiguous(), x.movedim(dim, 0).contiguous()
    moved = moved if alpha == 1 else moved * alpha
    return added(base, index, moved).movedim(0, dim)


def _in_turn(function: Any, *arguments: Any) -> Tensor:
    """Runs the function on one thread, so that of several values for one element always the same
    stays."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return function(*arguments)
    finally:
        torch.set_num_threads(threads)


def _last(x: Tensor, places: Tensor, values: Tensor) -> Tensor:
    """x with values written at flat indices; the last of equal indices wins. For devices: it is
    found as a maximum, which does not depend on the order in which a device works."""
    if not values.numel():
        return x.clone()
    order = here.arange(places.numel())
    last = here.full((x.numel(),), -1, dtype=torch.int64)
    last = last.scatter_reduce(0, places.reshape(-1), order, "amax").reshape(x.shape)
    return torch.where(last < 0, x, values.reshape(-1)[last.clamp(min=0)])


@on_devices("scatter.src")
def scatter(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    if not x.dim():
        return source.reshape(-1)[0].clone() if index.numel() else x.clone()
    return _last(x, *_flat(x, dim, index, source))


@on_devices("scatter.value")
def scatter_number(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Needs no order: all writes have the same value."""
    return torch.scatter(x, dim, index, value)


def _put_last(x: Tensor, indices: Any, values: Tensor) -> Tensor:
    places = _numbered(x, indices)
    return _last(x, places, values.expand(places.shape))


def _numbered(x: Tensor, indices: Any) -> Tensor:
    """The flat indices of x's elements that the indices choose."""
    flat = here.arange(x.numel()).reshape(x.shape)
    return flat[tuple(slice(None) if i is None else i for i in indices)]


def _in_order(x: Tensor, indices: Any, values: Tensor) -> Tensor:
    """The values expanded to one for each index, contiguous: torch writes in the order of
    memory."""
    if values.numel() == 1:
        return values
    places = torch.ops.aten.index(x.new_empty(()).expand(x.shape), indices)
    return values.expand(places.shape).contiguous()


def _distinct(indices: Any) -> bool:
    """Are all indices masks, which name no element twice?"""
    return all(i is None or i.dtype in (torch.bool, torch.uint8) for i in indices)


@handles("index_put", "_index_put_impl", "_unsafe_index_put")
def index_put(
    x: Tensor, indices: Any, values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    values = here.beside(x, values)
    if not accumulate and _distinct(indices):
        return torch.ops.aten.index_put(x, indices, values)
    if not accumulate and _context.current().device is not None:
        expect(values.dtype is x.dtype, "its values have another type")
        return _put_last(x, indices, values)
    if not accumulate:
        return _in_turn(torch.ops.aten.index_put, x, indices, _in_order(x, indices, values))
    if not (x.is_floating_point() or x.dtype is torch.complex64):
        return _in_turn(torch.ops.aten.index_put, x, indices, values, accumulate)
    places = _numbered(x, indices)
    values = values.expand(places.shape)
    if x.dtype is torch.complex64:
        return joined(added(pairs(x).contiguous(), places, pairs(values).reshape(-1, 2)))
    return added(x.contiguous(), places, values.reshape(-1, 1))


@handles("unfold_backward")
def unfold_backward(dy: Tensor, sizes: Any, dim: int, size: int, step: int) -> Tensor:
    """Sums the gradients of overlapping windows in the windows' order."""
    x = here.zeros(sizes)
    places = here.arange(x.numel()).reshape(sizes).unfold(dim, size, step)
    expect(dy.shape == places.shape, "its gradient has another size")
    return added(x, places, dy.reshape(-1, 1))


@handles("index_copy")
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    if _context.current().device is not None:
        own, dim = (x, dim % x.dim()) if x.dim() else (x.reshape(1), 0)
        index = here.arange(own.shape[dim]).gather(0, index.reshape(-1))  # refuses negative ones
        return _put_last(own, [None] * dim + [index], source).reshape(x.shape)
    return _in_turn(torch.index_copy, x, dim, index, source)


@handles("masked_scatter_backward")
def masked_scatter_backward(dy: Tensor, mask: Tensor, sizes: Any) -> Tensor:
    """The elements that the mask chooses, in their order, followed by zeros."""
    need(dy)
    count = math.prod(sizes)
    if not dy.numel() or not count:
        return here.zeros(sizes)
    chosen = mask.expand(dy.shape).reshape(-1)
    ids = torch.where(chosen, torch.cumsum(chosen.long(), 0) - 1, -1)
    rows = dy.contiguous().reshape(-1, 1)
    return run("embedding_grad", (), (rows, numbers(ids, count)), (count, 1)).reshape(sizes)


@handles("scatter_reduce.two")
def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Sums and means in the order of scatter_add; maxima and minima have no order."""
    need(x, source)
    if reduce in ("amax", "amin"):
        y = torch.scatter_reduce(x, dim, index, source, reduce, include_self=include_self)
        return y + 0.0
    if reduce not in ("sum", "mean"):
        raise Leftover(f"its reduction is {reduce!r}")
    base = x if include_self else torch.scatter(x, dim, index, 0.0)
    y = scatter_add(base, dim, index, source)
    if reduce == "sum":
        return y
    ones = here.ones(index.shape, dtype=torch.int64)
    start = here.ones if include_self else here.zeros
    count = torch.scatter_add(start(x.shape, dtype=torch.int64), dim, index, ones)
    return y / torch.where(count == 0, 1, count)


@handles("index_reduce")
def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Like scatter_reduce, but with an index for each slice of the source."""
    if reduce == "prod":
        raise Leftover("its reduction is 'prod'")
    if not x.dim():
        x, source = x.reshape(1), source.reshape(1)
        return index_reduce(x, 0, index, source, reduce, include_self=include_self).reshape(())
    own = index.reshape([-1 if d == dim % x.dim() else 1 for d in range(x.dim())])
    own = own.expand(source.shape)
    return scatter_reduce(x, dim, own, source, reduce, include_self=include_self)
