"""Running sums, products and log-sum-exps, and products along dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from . import _here as here
from ._call import fold, need, run
from ._functions import exp64, log1p64
from ._integers import WHOLE, whole_of
from ._registry import handles

Tensor = torch.Tensor
Both = Callable[[Tensor, Tensor], Tensor]


SUMS, PRODUCTS, LOG_SUMS = range(3)  # kinds of the library's `running`


def _scan(x: Tensor, dim: int, kind: int) -> Tensor:
    if not x.dim() or not x.numel():
        return x.clone()
    if x.dtype is torch.float64:
        return _scan64(x, dim, (torch.add, torch.mul, _log_of_both)[kind])
    need(x)
    return run("running", (dim % x.dim(), kind), (x,))


def _scan64(y: Tensor, dim: int, both: Both) -> Tensor:
    """A scan in log2(n) rounds: after round k each element covers the 2^k elements up to it."""
    step, count = 1, y.shape[dim]
    while step < count:
        later = both(y.narrow(dim, step, count - step), y.narrow(dim, 0, count - step))
        y = torch.cat([y.narrow(dim, 0, step), later], dim)
        step *= 2
    return y


def _log_of_both(a: Tensor, b: Tensor) -> Tensor:
    """log(exp(a) + exp(b)) in float64."""
    top = torch.where((a > b) | (a != a), a, b)
    less = torch.where(a == b, 0.0, (a - b).abs())
    return torch.where(top.abs() == math.inf, top, top + log1p64(exp64(-less)))


@handles("logcumsumexp", "_logcumsumexp")
def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    return _scan(x, dim, LOG_SUMS)


def _typed(x: Tensor, dtype: Any) -> Tensor:
    if dtype in WHOLE and x.is_floating_point():
        return whole_of(x, dtype).to(dtype)
    return x if dtype is None else x.to(dtype)


@handles("cumsum")
def cumsum(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    x = _typed(x, dtype)
    if x.is_floating_point():
        return _scan(x, dim, SUMS)
    return torch.cumsum(x, dim, dtype=dtype)


@handles("cumprod")
def cumprod(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    x = _typed(x, dtype)
    if x.is_floating_point():
        return _scan(x, dim, PRODUCTS)
    return torch.cumprod(x, dim, dtype=dtype)


@handles("prod.default")
def prod(x: Tensor, *, dtype: Any = None) -> Tensor:
    return prod_along(_typed(x, dtype).reshape(-1), 0)


@handles("prod.dim_int")
def prod_along(x: Tensor, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    x = _typed(x, dtype)
    if not x.dim():
        return x.clone()
    size = [1 if d == dim % x.dim() else n for d, n in enumerate(x.shape)]
    if not x.shape[dim]:
        y = here.ones(size, dtype=x.dtype)
    elif x.dtype is torch.float64:
        y = fold(x, dim, torch.mul)
    else:
        y = _scan(x, dim, PRODUCTS).narrow(dim, -1, 1)
    return (y if keepdim else y.squeeze(dim)).contiguous()
