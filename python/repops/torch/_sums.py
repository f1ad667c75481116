"""Sums, means, norms, softmax and losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._library import lib
from ._call import Leftover, elementwise, fused, need, sum_squares, total
from ._elements import amax, clamp
from ._functions import log1p64, narrow
from ._layout import in_order
from ._registry import handles

Tensor = torch.Tensor


def _listed(dims: Any) -> list[int]:
    return [] if dims is None else [dims] if isinstance(dims, int) else list(dims)


def _root(x: Tensor) -> Tensor:
    return elementwise("sqrt", (), x)


def _typed(x: Tensor, dtype: torch.dtype | None) -> Tensor:
    if dtype is None:
        return x
    return x.to(dtype)


@handles("sum.dim_IntList", "sum.default")
def sum_(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return total(_typed(x, dtype), _listed(dim), keepdim)


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
    return _root(_variance(x, dim, correction, keepdim)[0])


@handles("var_mean.correction")
def var_mean(x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return _variance(x, dim, correction, keepdim)


@handles("std_mean.correction")
def std_mean(x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    v, m = _variance(x, dim, correction, keepdim)
    return _root(v), m


@handles("linalg_vector_norm")
def vector_norm(
    x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    x, dims = _typed(x, dtype), _listed(dim)
    if ord == float("inf"):
        return amax(x.abs(), dims, keepdim)
    if ord == 1:
        return total(x.abs(), dims, keepdim)
    if ord != 2:
        raise Leftover(f"it is a norm of order {ord}; 1, 2 and infinity are supported")
    if not dims and not keepdim:
        return _root(sum_squares(in_order(x)))
    return _root(total(x * x, dims, keepdim))


@handles("_foreach_norm")
def norms(xs: Sequence[Tensor], ord: float = 2, *, dtype: Any = None) -> list[Tensor]:
    """vector_norm of each, whose roots are one call."""
    if ord != 2:
        return [vector_norm(x, ord, dtype=dtype) for x in xs]
    return list(_root(torch.stack([sum_squares(in_order(_typed(x, dtype))) for x in xs])).unbind())


@handles("norm.ScalarOpt_dim", "norm.Scalar")
def norm(x: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    return vector_norm(x, 2 if p is None else p, dim, keepdim)


@handles("logsumexp")
def logsumexp(x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    top = amax(x, _listed(dim), True)
    top = torch.where(top.abs() == float("inf"), 0.0, top)
    y = elementwise("log", (), total(elementwise("exp", (), x - top), _listed(dim), True)) + top
    return y if keepdim else y.reshape(total(torch.zeros(x.shape), _listed(dim)).shape)


@handles("topk")
def topk(
    x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """By a stable sort, so that equal elements come in the order of their places."""
    values, places = torch.sort(x, dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, k).contiguous(), places.narrow(dim, 0, k).contiguous()


@handles("sort.default")
def sort(x: Tensor, dim: int = -1, descending: bool = False) -> Any:
    return torch.sort(x, dim=dim, descending=descending, stable=True)


@handles("argsort.default")
def argsort(x: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    return torch.sort(x, dim=dim, descending=descending, stable=True)[1]


# ---- softmax ----


def rows_of(x: Tensor, dim: int) -> tuple[Tensor, int, int]:
    """x with dimension dim last and dense, and how many rows and columns that is."""
    need(x)
    x = x.movedim(dim, -1) if x.dim() else x.reshape(1)
    x = x.contiguous()
    cols = x.shape[-1]
    return x, (x.numel() // cols if cols else 0), cols


def _back(y: Tensor, dim: int, shape: Any) -> Tensor:
    return y.movedim(-1, dim).contiguous() if len(shape) else y.reshape(shape)


def _softmax_rows(function: Any, x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    a, rows, cols = rows_of(x, dim)
    y, m, l = torch.empty_like(a), torch.empty(rows), torch.empty(rows)
    fused(function, rows, cols, a, y, m, l)
    return y, m


def _half(half_to_float: bool) -> None:
    if half_to_float:
        raise Leftover("it converts from a half precision")


@handles("_softmax")
def softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    _half(half_to_float)
    return _back(_softmax_rows(lib.ro_softmax, x, dim)[0], dim, x.shape)


@handles("_safe_softmax")
def safe_softmax(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """A row of nothing but -inf is 0."""
    y, m = _softmax_rows(lib.ro_softmax, _typed(x, dtype), dim)
    empty = (m == -float("inf")).reshape(*y.shape[:-1], 1)
    return _back(torch.where(empty, 0.0, y), dim, x.shape)


@handles("_log_softmax")
def log_softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    _half(half_to_float)
    return _back(_softmax_rows(lib.ro_log_softmax, x, dim)[0], dim, x.shape)


def _rows_backward(function: Any, dy: Tensor, y: Tensor, dim: int) -> Tensor:
    (b, rows, cols), a = rows_of(dy, dim), rows_of(y, dim)[0]
    dx = torch.empty_like(a)
    fused(function, rows, cols, a, b, dx)
    return _back(dx, dim, y.shape)


@handles("_softmax_backward_data")
def softmax_backward(dy: Tensor, y: Tensor, dim: int, dtype: Any) -> Tensor:
    return _rows_backward(lib.ro_softmax_backward, dy, y, dim)


@handles("_log_softmax_backward_data")
def log_softmax_backward(dy: Tensor, y: Tensor, dim: int, dtype: Any) -> Tensor:
    return _rows_backward(lib.ro_log_softmax_backward, dy, y, dim)


# ---- losses ----

NONE, MEAN, SUM = 0, 1, 2  # torch's numbers of reductions


def _reduced(x: Tensor, reduction: int) -> Tensor:
    return x if reduction == NONE else total(x) if reduction == SUM else total(x) / x.numel()


def _classes_last(x: Tensor) -> Tensor:
    return x.movedim(1, -1).reshape(-1, x.shape[1]) if x.dim() > 1 else x.reshape(1, -1)


@handles("nll_loss_forward", "nll_loss2d_forward")
def nll_loss(
    x: Tensor, target: Tensor, weight: Any, reduction: int, ignore: int
) -> tuple[Tensor, Tensor]:
    need(x)
    rows, labels = _classes_last(x), target.reshape(-1)
    keep = labels != ignore
    safe = torch.where(keep, labels, 0)
    each = torch.ones(labels.shape) if weight is None else weight[safe]
    each = torch.where(keep, each, 0.0)
    loss = torch.where(keep, -rows.gather(1, safe[:, None])[:, 0] * each, 0.0)
    if reduction == NONE:
        return loss.reshape(target.shape), torch.zeros(())
    whole, weights = total(loss), total(each)
    return (whole / weights if reduction == MEAN else whole), weights


@handles("nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward(
    dy: Tensor, x: Tensor, target: Tensor, weight: Any, reduction: int, ignore: int, weights: Tensor
) -> Tensor:
    labels = target.reshape(-1)
    keep = labels != ignore
    safe = torch.where(keep, labels, 0)
    each = dy / weights if reduction == MEAN else dy.reshape(-1)
    each = -each if weight is None else -each * weight[safe]
    dx = torch.zeros(labels.numel(), x.shape[1] if x.dim() > 1 else x.numel())
    dx.scatter_(1, safe[:, None], torch.where(keep, each, 0.0)[:, None])
    if x.dim() < 2:
        return dx.reshape(x.shape)
    return dx.reshape(x.shape[0], *x.shape[2:], x.shape[1]).movedim(-1, 1).contiguous()


@handles("mse_loss")
def mse_loss(x: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    d = x - target
    return _reduced(d * d, reduction)


@handles("mse_loss_backward")
def mse_loss_backward(dy: Tensor, x: Tensor, target: Tensor, reduction: int) -> Tensor:
    d = (x - target) * 2.0
    return dy * (d / d.numel() if reduction == MEAN else d)


@handles("binary_cross_entropy_with_logits")
def bce_with_logits(
    x: Tensor, target: Tensor, weight: Any = None, pos_weight: Any = None, reduction: int = MEAN
) -> Tensor:
    """max(x, 0) - x t + log(1 + exp(-|x|))."""
    if pos_weight is not None:
        raise Leftover("it has weights of positive examples")
    loss = clamp(x, 0.0) - x * target + narrow(log1p64, elementwise("exp", (), -x.abs()))
    return _reduced(loss if weight is None else loss * weight, reduction)
