"""Decompositions of matrices: of float64, rounded to float32 once. Each sum is by halves."""

from __future__ import annotations

import torch

from ._call import need
from ._functions import sqrt64
from ._registry import handles
from ._scans import fold

Tensor = torch.Tensor


def _sum(x: Tensor, dim: int) -> Tensor:
    """Zeros are added to no element; the dimension stays."""
    if not x.shape[dim]:
        return x.sum(dim, keepdim=True)
    return fold(x, dim, torch.add)


def _reflect(v: Tensor, a: Tensor) -> Tensor:
    """(1 - 2 v v^T / v^T v) a, which is a where v is 0."""
    square = _sum(v * v, -2)
    tau = torch.where(square == 0, 0.0, 2.0 / square)
    return a - v * (tau * _sum(v * a, -2))


@handles("linalg_qr")
def qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """By Householder's reflections, with the signs of LAPACK."""
    need(a)
    rows, columns = a.shape[-2:]
    r, vectors = a.to(torch.float64, copy=True), []
    for j in range(min(rows - 1, columns)):
        v = r[..., j:, j : j + 1].clone()
        v[..., :1, :] += torch.copysign(sqrt64(_sum(v * v, -2)), v[..., :1, :])
        r[..., j:, j:] = _reflect(v, r[..., j:, j:])
        vectors.append(v)
    kept = rows if mode == "complete" else min(rows, columns)
    upper = r[..., :kept, :].triu().to(torch.float32)
    if mode == "r":
        return a.new_empty(0), upper
    q = torch.eye(rows, kept, dtype=torch.float64).expand(*a.shape[:-2], rows, kept).clone()
    for j, v in reversed(list(enumerate(vectors))):
        q[..., j:, :] = _reflect(v, q[..., j:, :])
    return q.to(torch.float32), upper


@handles("linalg_cholesky_ex")
def cholesky(
    a: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    """Column by column, and the first whose pivot is not positive, counted from 1; 0: none."""
    need(a)
    x = (a.mT if upper else a).to(torch.float64)
    low, info = torch.zeros_like(x), torch.zeros(a.shape[:-2], dtype=torch.int32)
    for j in range(a.shape[-1]):
        row = low[..., j : j + 1, :j]
        rest = x[..., j:, j : j + 1] - _sum(low[..., j:, :j] * row, -1)
        pivot = rest[..., :1, :]
        info = torch.where((info == 0) & ~(pivot[..., 0, 0] > 0), j + 1, info).to(torch.int32)
        root = sqrt64(pivot)
        low[..., j:, j : j + 1] = torch.cat([root, rest[..., 1:, :] / root], -2)
    if check_errors:
        torch._linalg_check_errors(info, "linalg.cholesky_ex", is_matrix=a.dim() == 2)
    low = low.to(torch.float32)
    return (low.mT.contiguous() if upper else low), info


@handles("linalg_solve_triangular")
def solve_triangular(
    a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """x of a x = b, row by row; of x a = b if not left."""
    need(a, b)
    if not left:
        return solve_triangular(a.mT, b.mT, upper=not upper, unitriangular=unitriangular).mT
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, y = (t.to(torch.float64).expand(*batch, *t.shape[-2:]) for t in (a, b))
    x, n = torch.zeros(y.shape, dtype=torch.float64), a.shape[-1]
    for i in reversed(range(n)) if upper else range(n):
        done = slice(i + 1, n) if upper else slice(0, i)
        known = _sum(a[..., i, done].unsqueeze(-1) * x[..., done, :], -2).squeeze(-2)
        rest = y[..., i, :] - known
        x[..., i, :] = rest if unitriangular else rest / a[..., i, i].unsqueeze(-1)
    return x.to(torch.float32)
