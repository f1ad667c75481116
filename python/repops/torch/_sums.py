"""Sums, means, norms, softmax and losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._library import lib
from . import _here as here
from ._call import Leftover, elementwise, expect, fused, need, sums_of_squares, total
from ._elements import amax, amin, linspace
from ._functions import exp64, log64, power, root
from ._layout import in_order
from ._registry import handles

Tensor = torch.Tensor


def _listed(dims: Any) -> list[int]:
    return [] if dims is None else [dims] if isinstance(dims, int) else list(dims)


def _typed(x: Tensor, dtype: torch.dtype | None) -> Tensor:
    if dtype is None:
        return x
    return x.to(dtype)


@handles("sum.dim_IntList", "sum.default")
def sum_(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return total(_typed(x, dtype), _listed(dim), keepdim)


@handles("nansum")
def nansum(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    x = _typed(x, dtype)
    return total(torch.where(x == x, x, 0.0), _listed(dim), keepdim)


@handles("mean.dim", "mean.default")
def mean(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    y = total(_typed(x, dtype), _listed(dim), keepdim)
    return y / (x.numel() / y.numel()) if y.numel() else y


def _variance(x: Tensor, dim: Any, correction: Any, keepdim: bool) -> tuple[Tensor, Tensor]:
    dims = _listed(dim)
    m = mean(x, dims, True)
    d = x - m
    n = x.numel() // max(1, m.numel())
    v = total(d * d, dims, keepdim) / max(0.0, float(n - (1 if correction is None else correction)))
    return v, m if keepdim else m.reshape(v.shape)


@handles("var.correction")
def var(x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Tensor:
    return _variance(x, dim, correction, keepdim)[0]


@handles("std.correction")
def std(x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Tensor:
    return root(_variance(x, dim, correction, keepdim)[0])


@handles("var_mean.correction")
def var_mean(x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return _variance(x, dim, correction, keepdim)


@handles("std_mean.correction")
def std_mean(x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    v, m = _variance(x, dim, correction, keepdim)
    return root(v), m


@handles("linalg_vector_norm")
def vector_norm(
    x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    x, dims = _typed(x, dtype), _listed(dim)
    if abs(ord) == float("inf"):
        return (amax if ord > 0 else amin)(x.abs(), dims, keepdim)
    if ord == 0:
        return total((x != 0).to(x.dtype), dims, keepdim)
    if ord == 1:
        return total(x.abs(), dims, keepdim)
    if ord != 2:
        return power(total(power(x.abs(), ord), dims, keepdim), 1 / ord)
    if not dims and not keepdim and x.dtype is torch.float32:
        return root(sums_of_squares([in_order(x)])).reshape(())
    return root(total(x * x, dims, keepdim))


@handles("_foreach_norm")
def norms(xs: Sequence[Tensor], ord: float = 2, dtype: Any = None) -> list[Tensor]:
    """vector_norm of each tensor; of float32 one call takes the roots of all."""
    expect(len(xs) > 0, "there is no tensor")
    if dtype is not None:
        wider = all(torch.promote_types(x.dtype, dtype) is dtype for x in xs)
        expect(dtype.is_floating_point and wider, f"{dtype} cannot hold its inputs")
    if ord != 2 or any((dtype or x.dtype) is not torch.float32 for x in xs):
        return [vector_norm(x, ord, dtype=dtype) for x in xs]
    return list(root(sums_of_squares([in_order(x) for x in xs])).unbind())


@handles("norm.ScalarOpt_dim", "norm.Scalar")
def norm(x: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    return vector_norm(x, 2 if p is None else p, dim, keepdim)


@handles("logsumexp")
def logsumexp(x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    if not x.numel():
        return here.full(total(x, _listed(dim), keepdim).shape, -float("inf"))
    top = amax(x, _listed(dim), True)
    top = torch.where(top.abs() == float("inf"), 0.0, top)
    y = elementwise("log", (), total(elementwise("exp", (), x - top), _listed(dim), True)) + top
    return y if keepdim else y.reshape(total(here.zeros(x.shape), _listed(dim)).shape)


@handles("histc")
def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Counts between edges computed as linspace does; the last edge belongs to the last bin."""
    need(x)
    if min == max and x.numel():
        min, max = float(x.min()), float(x.max())
    if min == max:
        min, max = min - 1, max + 1
    edges = linspace(min, max, bins + 1, dtype=torch.float32)
    flat = x.reshape(-1)
    place = torch.searchsorted(edges, flat, right=True) - 1
    place = torch.where(place >= bins, bins - 1, place)
    place = torch.where((flat >= min) & (flat <= max), place, bins)  # the last bin is for others
    counts = here.zeros(bins + 1, dtype=torch.int64)
    return counts.scatter_add(0, place, torch.ones_like(place))[:bins].to(torch.float32)


@handles("topk")
def topk(
    x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """Uses a stable sort, so that equal elements keep the order of their indices."""
    if not x.dim():
        return x.clone(), here.zeros((), dtype=torch.int64)
    values, places = torch.sort(x, dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, k).contiguous(), places.narrow(dim, 0, k).contiguous()


@handles("sort")
def sort(x: Tensor, dim: int = -1, descending: bool = False, stable: Any = None) -> Any:
    return torch.sort(x, dim=dim, descending=descending, stable=True)


@handles("argsort")
def argsort(x: Tensor, dim: int = -1, descending: bool = False, stable: Any = None) -> Tensor:
    return torch.sort(x, dim=dim, descending=descending, stable=True)[1]


# ---- softmax ----


def rows_of(x: Tensor, dim: int) -> tuple[Tensor, int, int]:
    """x with dimension dim last and contiguous, and its numbers of rows and columns."""
    need(x)
    x = x.movedim(dim, -1) if x.dim() else x.reshape(1)
    x = x.contiguous()
    cols = x.shape[-1]
    return x, (x.numel() // cols if cols else 0), cols


def _back(y: Tensor, dim: int, shape: Any) -> Tensor:
    return y.movedim(-1, dim).contiguous() if len(shape) else y.reshape(shape)


def _softmax64(x: Tensor, dim: int, logarithm: bool) -> Tensor:
    """Softmax in float64, with the float64 functions and sums of this package."""
    if not x.numel():
        return x.clone()
    d = x - amax(x, [dim], True)
    e = exp64(d)
    sums = total(e, [dim], True)
    return d - log64(sums) if logarithm else e / sums


def _softmax_rows(function: Any, x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    a, rows, cols = rows_of(x, dim)
    y, m, l = torch.empty_like(a), here.empty(rows), here.empty(rows)
    fused(function, rows, cols, a, y, m, l)
    return y, m


def _half(half_to_float: bool) -> None:
    if half_to_float:
        raise Leftover("it converts from a half precision")


@handles("_softmax")
def softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    _half(half_to_float)
    if x.dtype is torch.float64:
        return _softmax64(x, dim, False)
    return _back(_softmax_rows(lib.ro_softmax, x, dim)[0], dim, x.shape)


@handles("_safe_softmax")
def safe_softmax(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Softmax, in which a row of only -inf gives 0."""
    y, m = _softmax_rows(lib.ro_softmax, _typed(x, dtype), dim)
    if not y.numel():
        return _back(y, dim, x.shape)
    empty = (m == -float("inf")).reshape(*y.shape[:-1], 1)
    return _back(torch.where(empty, 0.0, y), dim, x.shape)


@handles("_log_softmax")
def log_softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    _half(half_to_float)
    if x.dtype is torch.float64:
        return _softmax64(x, dim, True)
    return _back(_softmax_rows(lib.ro_log_softmax, x, dim)[0], dim, x.shape)


def _rows_backward(function: Any, dy: Tensor, y: Tensor, dim: int) -> Tensor:
    expect(dy.shape == y.shape, "its gradient has another size")
    (b, rows, cols), a = rows_of(dy, dim), rows_of(y, dim)[0]
    dx = torch.empty_like(a)
    fused(function, rows, cols, a, b, dx)
    return _back(dx, dim, y.shape)


@handles("_softmax_backward_data")
def softmax_backward(dy: Tensor, y: Tensor, dim: int, dtype: Any) -> Tensor:
    if y.dtype is torch.float64:
        return (y * (dy - total(y * dy, [dim], True))).to(dtype)
    return _rows_backward(lib.ro_softmax_backward, dy, y, dim)


@handles("_log_softmax_backward_data")
def log_softmax_backward(dy: Tensor, y: Tensor, dim: int, dtype: Any) -> Tensor:
    if y.dtype is torch.float64:
        return (dy - exp64(y) * total(dy, [dim], True)).to(dtype)
    return _rows_backward(lib.ro_log_softmax_backward, dy, y, dim)
