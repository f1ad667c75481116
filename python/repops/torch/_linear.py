"""Decompositions of matrices, computed in float64 with sums by halves and rounded to float32 once;
and triangular systems."""

from __future__ import annotations

import math

import torch

from . import _here as here
from ._call import fold, matmul, need
from ._functions import sqrt64
from ._registry import handles

Tensor = torch.Tensor


def sum_along(x: Tensor, dim: int) -> Tensor:
    """Sums by halves along dim, which stays with size 1; an empty dimension gives 0."""
    if not x.shape[dim]:
        return x.sum(dim, keepdim=True)
    return fold(x, dim, torch.add)


def reflect(v: Tensor, a: Tensor) -> Tensor:
    """(1 - 2 v v^T / v^T v) a; a itself where v is 0."""
    square = sum_along(v * v, -2)
    tau = torch.where(square == 0, 0.0, 2.0 / square)
    return a - v * (tau * sum_along(v * a, -2))


def householder(a: Tensor) -> tuple[Tensor, list[Tensor]]:
    """R in float64, in which elements below the diagonal are not cleared, and the reflections'
    vectors."""
    rows, columns = a.shape[-2:]
    r, vectors = a.to(torch.float64, copy=True), []
    for j in range(min(rows - 1, columns)):
        v = r[..., j:, j : j + 1].clone()
        v[..., :1, :] += torch.copysign(sqrt64(sum_along(v * v, -2)), v[..., :1, :])
        r[..., j:, j:] = reflect(v, r[..., j:, j:])
        vectors.append(v)
    return r, vectors


@handles("linalg_qr")
def qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """QR by Householder's reflections, with LAPACK's signs."""
    need(a)
    rows, columns = a.shape[-2:]
    r, vectors = householder(a)
    kept = rows if mode == "complete" else min(rows, columns)
    upper = r[..., :kept, :].triu().to(torch.float32)
    if mode == "r":
        return a.new_empty(0), upper
    q = here.eye(rows, kept, dtype=torch.float64).expand(*a.shape[:-2], rows, kept).clone()
    for j, v in reversed(list(enumerate(vectors))):
        q[..., j:, :] = reflect(v, q[..., j:, :])
    return q.to(torch.float32), upper


@handles("linalg_cholesky_ex")
def cholesky(
    a: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    """The factor, computed column by column, and the number (from 1) of the first column whose
    pivot is not positive; 0: none."""
    need(a)
    x = (a.mT if upper else a).to(torch.float64)
    low, info = torch.zeros_like(x), here.zeros(a.shape[:-2], dtype=torch.int32)
    for j in range(a.shape[-1]):
        row = low[..., j : j + 1, :j]
        rest = x[..., j:, j : j + 1] - sum_along(low[..., j:, :j] * row, -1)
        pivot = rest[..., :1, :]
        info = torch.where((info == 0) & ~(pivot[..., 0, 0] > 0), j + 1, info).to(torch.int32)
        root = sqrt64(pivot)
        low[..., j:, j : j + 1] = torch.cat([root, rest[..., 1:, :] / root], -2)
    if check_errors:
        torch._linalg_check_errors(info, "linalg.cholesky_ex", is_matrix=a.dim() == 2)
    low = low.to(torch.float32)
    return (low.mT.contiguous() if upper else low), info


_ROWS = 64  # rows in a block, which are solved one after the other


def _solved(a: Tensor, y: Tensor, upper: bool, unit: bool) -> Tensor:
    """Solves a x = y for matrices [batch, n, n] and [batch, n, columns]."""
    rows: list[Tensor] = []  # in the order of x
    n = a.shape[1]
    for i in reversed(range(n)) if upper else range(n):
        rest = y[:, i : i + 1]
        if rows:
            own = a[:, i : i + 1, i + 1 :] if upper else a[:, i : i + 1, :i]
            rest = rest - matmul(own.contiguous(), torch.cat(rows, 1), 1)
        row = rest if unit else rest / a[:, i : i + 1, i : i + 1]
        rows = [row, *rows] if upper else [*rows, row]
    return torch.cat(rows, 1)


@handles("linalg_solve_triangular")
def solve_triangular(
    a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Solves a x = b, or x a = b if not left, in blocks of 64 rows: subtracts the product with all
    rows that are known, then solves the block row by row."""
    need(a, b)
    if not left:
        return solve_triangular(a.mT, b.mT, upper=not upper, unitriangular=unitriangular).mT
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape, n = (*batch, *b.shape[-2:]), a.shape[-1]
    if not math.prod(shape):
        return here.zeros(shape)
    a = a.expand(*batch, n, n).reshape(-1, n, n)
    y = b.expand(shape).reshape(-1, n, shape[-1])
    parts: list[Tensor] = []
    starts = range(0, n, _ROWS)
    for i in reversed(starts) if upper else starts:
        end = min(n, i + _ROWS)
        rest = y[:, i:end]
        if parts:
            known = a[:, i:end, end:] if upper else a[:, i:end, :i]
            rest = rest - matmul(known.contiguous(), torch.cat(parts, 1), 1)
        x = _solved(a[:, i:end, i:end], rest, upper, unitriangular)
        parts = [x, *parts] if upper else [*parts, x]
    return torch.cat(parts, 1).reshape(shape)
