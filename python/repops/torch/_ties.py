"""Sorting and argmax-like operators on a device, with the ties of torch's CPU kernels.

Torch's CUDA kernels may choose any of equal elements. Here indices are computed as integers, so
that the kernels have no choice: the first index is the minimum of indices, and floats are sorted by
integers made of their bits, in a stable sort. Values are gathered by their indices. All calls are
of torch's kernels that compare, move, and compute integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import _here as here
from ._registry import on_devices

Tensor = torch.Tensor
Pair = tuple[Tensor, Tensor]
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _places(x: Tensor, dim: int) -> Tensor:
    """Each element's index along a dimension, in the shape [n, 1, ...], which broadcasts."""
    n = x.shape[dim]
    return here.arange(n).reshape(n, *[1] * (x.dim() - 1 - dim % x.dim()))


# ---- the first maximum or minimum ----


def _first(x: Tensor, dim: int, best: Callable[..., Tensor]) -> Tensor:
    """The index of the first best element; dim stays with size 1. NaN counts as best."""
    chosen = x == best(x, dim, True)
    if x.is_floating_point():
        chosen |= x != x
    return torch.where(chosen, _places(x, dim), x.shape[dim]).amin(dim, keepdim=True)


def _one_along(x: Tensor, dim: int, keepdim: bool, best: Callable[..., Tensor]) -> Pair:
    if not x.dim():
        return x.clone(), here.zeros((), dtype=torch.int64)
    place = _first(x, dim, best)
    value = x.gather(dim, place)
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


@on_devices("max.dim")
def largest_along(x: Tensor, dim: int, keepdim: bool = False) -> Pair:
    return _one_along(x, dim, keepdim, torch.amax)


@on_devices("min.dim")
def smallest_along(x: Tensor, dim: int, keepdim: bool = False) -> Pair:
    return _one_along(x, dim, keepdim, torch.amin)


def _place(x: Tensor, dim: int | None, keepdim: bool, best: Callable[..., Tensor]) -> Tensor:
    if dim is not None:
        return _one_along(x, dim, keepdim, best)[1]
    place = _one_along(x.reshape(-1), 0, False, best)[1]
    return place.reshape([1] * x.dim() if keepdim else [])


@on_devices("argmax")
def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return _place(x, dim, keepdim, torch.amax)


@on_devices("argmin")
def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return _place(x, dim, keepdim, torch.amin)


# ---- running extremes: of equal elements the last ----


def _running(x: Tensor, dim: int, wins: Callable[[Tensor, Tensor], Tensor]) -> Pair:
    """A scan with steps of 1, 2, 4 and so on, which is possible as the choice is associative."""
    if not x.dim():
        return x.clone(), here.zeros((), dtype=torch.int64)
    values, places = x, _places(x, dim).expand(x.shape)
    n, step = x.shape[dim], 1
    while step < n:
        earlier, later = values.narrow(dim, 0, n - step), values.narrow(dim, step, n - step)
        kept = ~(wins(later, earlier) | (later != later))
        values, places = (
            torch.cat(
                [
                    t.narrow(dim, 0, step),
                    torch.where(kept, t.narrow(dim, 0, n - step), t.narrow(dim, step, n - step)),
                ],
                dim,
            )
            for t in (values, places)
        )
        step *= 2
    return values.clone(memory_format=torch.contiguous_format), places.contiguous()


@on_devices("cummax")
def largest_so_far(x: Tensor, dim: int) -> Pair:
    return _running(x, dim, torch.ge)


@on_devices("cummin")
def smallest_so_far(x: Tensor, dim: int) -> Pair:
    return _running(x, dim, torch.le)


# ---- sorting ----


def _numbers(x: Tensor) -> Tensor:
    """Integers with the order of x: both zeros are equal, and NaN is the largest."""
    if not x.is_floating_point():
        return x
    kind = _BITS[x.element_size()]
    most = torch.iinfo(kind).max
    bits = x.contiguous().view(kind)
    ordered = torch.where(bits < 0, bits ^ most, bits)
    return ordered.masked_fill_(x == 0, 0).masked_fill_(x != x, most)


@on_devices("sort")
def sort(x: Tensor, dim: int = -1, descending: bool = False, stable: Any = None) -> Pair:
    if not x.dim():
        return x.clone(), here.zeros((), dtype=torch.int64)
    places = torch.sort(_numbers(x), dim=dim, descending=descending, stable=True)[1]
    return x.gather(dim, places), places


@on_devices("argsort")
def argsort(x: Tensor, dim: int = -1, descending: bool = False, stable: Any = None) -> Tensor:
    return sort(x, dim, descending)[1]


@on_devices("topk")
def topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Pair:
    values, places = sort(x, dim, largest)
    if not x.dim():
        return values, places
    return values.narrow(dim, 0, k).contiguous(), places.narrow(dim, 0, k).contiguous()
