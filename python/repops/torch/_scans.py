"""Running sums, products and logarithms of sums, and products of all: of float64, rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ._call import need
from ._functions import exp64, log1p64
from ._integers import WHOLE, within
from ._registry import handles

Tensor = torch.Tensor
Both = Callable[[Tensor, Tensor], Tensor]


def _scan(x: Tensor, dim: int, both: Both) -> Tensor:
    """Element i is of 2^k elements up to i after round k, so that n take log2(n) rounds."""
    need(x)
    y = x.to(torch.float64)
    if not x.dim():
        return x.clone()
    step, count = 1, x.shape[dim]
    while step < count:
        later = both(y.narrow(dim, step, count - step), y.narrow(dim, 0, count - step))
        y = torch.cat([y.narrow(dim, 0, step), later], dim)
        step *= 2
    return y.to(torch.float32)


def fold(y: Tensor, dim: int, both: Both) -> Tensor:
    """One element of all along dim, at least one: the second half is joined to the first, whose
    middle one stands alone if their number is odd, until one is left."""
    while y.shape[dim] > 1:
        half, rest = (y.shape[dim] + 1) // 2, y.shape[dim] // 2
        joined = both(y.narrow(dim, 0, rest), y.narrow(dim, half, rest))
        y = torch.cat([joined, y.narrow(dim, rest, half - rest)], dim)
    return y


def _log_of_both(a: Tensor, b: Tensor) -> Tensor:
    """log(exp(a) + exp(b)) of float64."""
    top = torch.where((a > b) | (a != a), a, b)
    less = torch.where(a == b, 0.0, (a - b).abs())
    return torch.where(top.abs() == math.inf, top, top + log1p64(exp64(-less)))


@handles("logcumsumexp", "_logcumsumexp")
def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    return _scan(x, dim, _log_of_both)


def _typed(x: Tensor, dtype: Any) -> Tensor:
    if dtype in WHOLE and x.is_floating_point():
        x = within(x, dtype)
    return x if dtype is None else x.to(dtype)


@handles("cumsum")
def cumsum(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    x = _typed(x, dtype)
    if x.is_floating_point():
        return _scan(x, dim, torch.add)
    return torch.cumsum(x, dim, dtype=dtype)


@handles("cumprod")
def cumprod(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    x = _typed(x, dtype)
    if x.is_floating_point():
        return _scan(x, dim, torch.mul)
    return torch.cumprod(x, dim, dtype=dtype)


@handles("prod.default")
def prod(x: Tensor, *, dtype: Any = None) -> Tensor:
    return prod_along(_typed(x, dtype).reshape(-1), 0)


@handles("prod.dim_int")
def prod_along(x: Tensor, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    x = _typed(x, dtype)
    need(x)
    if not x.dim():
        return x.clone()
    ones = torch.ones([1 if d == dim % x.dim() else n for d, n in enumerate(x.shape)])
    y = fold(torch.cat([ones.to(torch.float64), x.to(torch.float64)], dim), dim, torch.mul)
    return (y if keepdim else y.squeeze(dim)).to(torch.float32)
