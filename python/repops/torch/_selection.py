"""Elements chosen by their order: medians, the k-th element, the most frequent one.

All come from a stable sort, in which NaN is the largest. Of equal elements the sort's position
decides which index is returned; PyTorch leaves that open.
"""

from __future__ import annotations

from typing import Any

import torch

from . import _here as here
from ._call import Leftover
from ._indexing import index_put
from ._integers import WHOLE
from ._registry import handles

Tensor = torch.Tensor
Pair = tuple[Tensor, Tensor]


def _picked(x: Tensor, place: Tensor, dim: int, keepdim: bool) -> Pair:
    """Elements at the given indices of each row, and the indices."""
    y = x.gather(dim, place)
    return (y, place) if keepdim else (y.squeeze(dim), place.squeeze(dim))


def _of_number(x: Tensor) -> Pair:
    return x.clone(), here.zeros((), dtype=torch.int64)


def _sorted(x: Tensor, dim: int) -> Pair:
    values, places = torch.sort(x, dim=dim, stable=True)
    return values, places


@handles("kthvalue")
def kth_value(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Pair:
    if not x.dim():
        return _of_number(x)
    return _picked(x, _sorted(x, dim)[1].narrow(dim, k - 1, 1), dim, keepdim)


@handles("median.dim")
def median_along(x: Tensor, dim: int, keepdim: bool = False) -> Pair:
    """The lower median; the first NaN if there is one."""
    if not x.dim():
        return _of_number(x)
    place = _sorted(x, dim)[1].narrow(dim, (x.shape[dim] - 1) // 2, 1)
    if x.is_floating_point():
        unordered = x != x
        first = torch.argmax(unordered.to(torch.int32), dim, keepdim=True)
        place = torch.where(unordered.any(dim, keepdim=True), first, place)
    return _picked(x, place, dim, keepdim)


@handles("nanmedian.dim")
def median_of_numbers(x: Tensor, dim: int, keepdim: bool = False) -> Pair:
    """The lower median of the elements that are not NaN, which the sort puts last."""
    if not x.dim():
        return _of_number(x)
    count = (x == x).to(torch.int64).sum(dim, keepdim=True)
    middle = torch.div(count - 1, 2, rounding_mode="floor").clamp(min=0)
    return _picked(x, _sorted(x, dim)[1].gather(dim, middle), dim, keepdim)


@handles("median.default")
def median(x: Tensor) -> Tensor:
    if not x.numel():
        return here.full((), float("nan"))
    return median_along(x.reshape(-1), 0)[0]


@handles("nanmedian.default")
def median_of_all_numbers(x: Tensor) -> Tensor:
    if not x.numel():
        return here.full((), float("nan"))
    return median_of_numbers(x.reshape(-1), 0)[0]


@handles("mode")
def most_frequent(x: Tensor, dim: int = -1, keepdim: bool = False) -> Pair:
    """The most frequent element, the smallest of several; its index is that of its last
    occurrence."""
    if not x.dim():
        return _of_number(x)
    values, places = _sorted(x, dim)
    n = x.shape[dim]
    at = here.arange(n).reshape([n if d == dim % x.dim() else 1 for d in range(x.dim())])
    new = values != values.roll(1, dim)
    begin = torch.cummax(torch.where(new & (at > 0), at, 0), dim)[0]
    longest = torch.argmax(at - begin, dim, keepdim=True)
    return _picked(x, places.gather(dim, longest), dim, keepdim)


@handles("bincount")
def counted(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Float32 weights of one bin are summed in their order; integer weights exactly, and then
    converted to float64."""
    if weights is None or weights.dtype not in WHOLE | {torch.float32}:
        raise Leftover("its weights are summed as float64")
    size = max(minlength, int(x.max()) + 1 if x.numel() else 0)
    if weights.dtype is torch.float32:
        return index_put(here.zeros(size), [x], weights, True)
    sums = here.zeros(size, dtype=torch.int64).index_add(0, x.long(), weights.long())
    return sums.to(torch.float64)


@handles("put")
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    flat = x.reshape(-1)
    y = index_put(flat, [index.reshape(-1)], source.reshape(-1), accumulate)
    return y.reshape(x.shape)


@handles("_unsafe_masked_index_put_accumulate")
def add_where(x: Tensor, mask: Tensor, indices: Any, values: Tensor) -> Tensor:
    """Elements outside the mask add 0 to the first element."""
    own = [i if i is None else torch.where(mask, i, 0) for i in indices]
    return index_put(x, own, values.masked_fill(~mask, 0), True)
