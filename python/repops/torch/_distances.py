"""Distances between vectors, and sums of products that have operators of their own."""

from __future__ import annotations

import math
from typing import Any

import torch

from . import _here as here
from ._call import matmul, need, total
from ._functions import power
from ._registry import handles
from ._sums import vector_norm

Tensor = torch.Tensor


@handles("_cdist_forward", "_euclidean_dist")
def distances(x: Tensor, y: Tensor, p: float = 2.0, mode: Any = None) -> Tensor:
    """Norms of the differences of all pairs of rows. All differences are in memory together."""
    need(x, y)
    return vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, [-1])


def _slope(d: Tensor, length: Tensor, p: float) -> Tensor:
    """The gradient of the norm of d, whose value is `length`; 0 where d is 0."""
    if p == 0:
        return torch.zeros_like(d)
    if p == 1:
        return d.sign()
    if p == math.inf:
        return torch.where(d.abs() == length, d.sign(), 0.0)
    q = torch.where(length == 0, 0.0, d / length)
    if p == 2:
        return q
    slope = power(q.abs(), p - 1) * d.sign()
    return torch.where((d == 0) | (length == 0), 0.0, slope)


@handles("_cdist_backward")
def distances_backward(dy: Tensor, x: Tensor, y: Tensor, p: float, cdist: Tensor) -> Tensor:
    need(dy, x, y)
    if not dy.numel() or not x.numel():
        return torch.zeros_like(x)  # PyTorch does not broadcast the batch of x then
    slope = _slope(x.unsqueeze(-2) - y.unsqueeze(-3), cdist.unsqueeze(-1), p)
    return total(slope * dy.unsqueeze(-1), [-2])


def _rows_of_pairs(n: int) -> tuple[Tensor, Tensor]:
    first, second = here.triu_indices(n, n, 1).unbind()
    return first, second


@handles("_pdist_forward")
def distances_of_pairs(x: Tensor, p: float = 2) -> Tensor:
    first, second = _rows_of_pairs(len(x))
    return vector_norm(x[first] - x[second], p, [-1])


@handles("_pdist_backward")
def distances_of_pairs_backward(dy: Tensor, x: Tensor, p: float, pdist: Tensor) -> Tensor:
    """Adds the terms of each row in the order of the pairs: first those in which it comes first."""
    need(dy, x, pdist)
    n = len(x)
    if not x.numel() or n < 2:
        return torch.zeros_like(x)
    first, second = _rows_of_pairs(n)
    part = _slope(x[first] - x[second], pdist.unsqueeze(-1), p) * dy.unsqueeze(-1)
    whole = here.zeros(n, n, x.shape[1])
    whole[first, second] = part
    return total(whole, [1]) - total(whole, [0])


@handles("dist")
def distance(x: Tensor, y: Tensor, p: float = 2) -> Tensor:
    return vector_norm(x - y, p)


@handles("renorm")
def renormed(x: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Multiplies each slice with a norm above maxnorm by maxnorm / (norm + 1e-7)."""
    others = [d for d in range(x.dim()) if d != dim % x.dim()]
    size = vector_norm(x, p, others, True)
    return x * torch.where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)


@handles("trace")
def trace(x: Tensor) -> Tensor:
    return total(x.diagonal().contiguous())


def _with(x: Tensor, y: Tensor, beta: float, alpha: float) -> Tensor:
    """beta x + alpha y. If beta is 0, x is not read: it may be NaN."""
    y = y if alpha == 1 else y * alpha
    return y if beta == 0 else (x if beta == 1 else x * beta) + y


@handles("addr")
def add_outer(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return _with(x, a.unsqueeze(1) * b, beta, alpha)


@handles("addbmm")
def add_products(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return _with(x, total(matmul(a, b, 1), [0]), beta, alpha)


@handles("linalg_cross")
def cross(a: Tensor, b: Tensor, *, dim: int = -1) -> Tensor:
    a, b = torch.broadcast_tensors(a, b)
    return a.roll(-1, dim) * b.roll(-2, dim) - a.roll(-2, dim) * b.roll(-1, dim)


@handles("allclose")
def all_close(
    a: Tensor, b: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    near = (a - b).abs() <= atol + (b.abs() * rtol)
    near = (a == b) | (near & a.isfinite() & b.isfinite())
    return bool((near | ((a != a) & (b != b)) if equal_nan else near).all())
