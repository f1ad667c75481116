"""Linear systems, inverses and determinants by Gaussian elimination.

All is computed in float64 and rounded to float32 once, a column at a time, with sums by halves. The
first of equally large pivots is taken.
"""

from __future__ import annotations

from typing import Any

import torch

from . import _here as here
from ._call import fold, need
from ._functions import log64
from ._linear import solve_triangular, sum_along
from ._registry import handles

Tensor = torch.Tensor


def _swapped(x: Tensor, i: int, place: Tensor) -> Tensor:
    """Swaps row i and row `place` of each matrix."""
    order = here.arange(x.shape[-2]).expand(*x.shape[:-2], -1).clone()
    order[..., i : i + 1].copy_(place)
    order = order.scatter(-1, place, i)
    return x.gather(-2, order.unsqueeze(-1).expand(x.shape))


def _lu64(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """L and U in one matrix, the rows that each step swapped, and the first zero pivot (0: none);
    rows are counted from 1."""
    x, steps = a.to(torch.float64), min(a.shape[-2:])
    pivots = here.zeros(*a.shape[:-2], steps, dtype=torch.int32)
    info = here.zeros(a.shape[:-2], dtype=torch.int32)
    for j in range(steps):
        place = torch.argmax(x[..., j:, j].abs(), -1, keepdim=True) + j
        x = _swapped(x, j, place)
        pivots[..., j : j + 1].copy_(place + 1)
        pivot = x[..., j : j + 1, j : j + 1]
        info = torch.where((info == 0) & (pivot[..., 0, 0] == 0), j + 1, info).to(torch.int32)
        factors = torch.where(
            pivot == 0, x[..., j + 1 :, j : j + 1], x[..., j + 1 :, j : j + 1] / pivot
        )
        x[..., j + 1 :, j : j + 1] = factors
        x[..., j + 1 :, j + 1 :] -= factors * x[..., j : j + 1, j + 1 :]
    return x, pivots, info


def triangular(a: Tensor, b: Tensor, *, upper: bool, unit: bool) -> Tensor:
    """Solves a x = b row by row, in float64; a and b have the same batch. unit: a's diagonal is
    1."""
    x, n = here.zeros(b.shape, dtype=torch.float64), a.shape[-1]
    for i in reversed(range(n)) if upper else range(n):
        done = slice(i + 1, n) if upper else slice(0, i)
        known = sum_along(a[..., i, done].unsqueeze(-1) * x[..., done, :], -2).squeeze(-2)
        rest = b[..., i, :] - known
        x[..., i, :] = rest if unit else rest / a[..., i, i].unsqueeze(-1)
    return x


def _permuted(b: Tensor, pivots: Tensor, back: bool = False) -> Tensor:
    """Applies the row swaps to b; back: in the opposite order."""
    places = range(pivots.shape[-1])
    for i in reversed(places) if back else places:
        b = _swapped(b, i, pivots[..., i : i + 1].long() - 1)
    return b


def _solved(lu: Tensor, pivots: Tensor, b: Tensor, transposed: bool = False) -> Tensor:
    """Solves a x = b, or a^T x = b, in float64."""
    batch = torch.broadcast_shapes(lu.shape[:-2], b.shape[:-2])
    lu, b = (t.expand(*batch, *t.shape[-2:]) for t in (lu, b))
    pivots = pivots.expand(*batch, -1)
    if transposed:
        y = triangular(lu.mT, b, upper=False, unit=False)
        return _permuted(triangular(lu.mT, y, upper=True, unit=True), pivots, back=True)
    y = triangular(lu, _permuted(b, pivots), upper=False, unit=True)
    return triangular(lu, y, upper=True, unit=False)


def _checked(info: Tensor, name: str, check: bool, a: Tensor) -> None:
    if check:
        torch._linalg_check_errors(info, name, is_matrix=a.dim() == 2)


@handles("linalg_lu_factor_ex")
def lu_factor(
    a: Tensor, *, pivot: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    lu, pivots, info = _lu64(a)
    _checked(info, "torch.linalg.lu_factor_ex", check_errors, a)
    return lu.to(torch.float32), pivots, info


@handles("linalg_lu_solve")
def lu_solve(
    lu: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    need(lu, b)
    lu, b = lu.to(torch.float64), b.to(torch.float64)
    x = _solved(lu, pivots, b, adjoint) if left else _solved(lu, pivots, b.mT, not adjoint).mT
    return x.to(torch.float32)


@handles("_linalg_solve_ex")
def solve(a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    lu, pivots, info = _lu64(a)
    _checked(info, "torch.linalg.solve_ex", check_errors, a)
    vector = b.dim() == 1 or (b.dim() == a.dim() - 1 and b.shape == a.shape[:-1])
    given = b.to(torch.float64)
    given = given.unsqueeze(-1) if vector else given
    x = _solved(lu, pivots, given) if left else _solved(lu, pivots, given.mT, True).mT
    x = (x.squeeze(-1) if vector else x).to(torch.float32)
    return x, lu.to(torch.float32), pivots, info


@handles("linalg_inv_ex")
def inverse(a: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    lu, pivots, info = _lu64(a)
    _checked(info, "linalg.inv", check_errors, a)
    one = here.eye(a.shape[-1], dtype=torch.float64)
    return _solved(lu, pivots, one).to(torch.float32), info


def _sign(lu: Tensor, pivots: Tensor) -> Tensor:
    """The sign of the permutation, 1 or -1."""
    moved = pivots != here.arange(1, pivots.shape[-1] + 1)
    odd = moved.to(torch.int64).sum(-1) % 2
    return 1.0 - 2.0 * odd.to(torch.float64)


def _either_way(a: Tensor) -> Tensor:
    """The matrix that PyTorch's gradient of determinants expects the factors of."""
    return a.mT if a.is_contiguous() else a


@handles("_linalg_det")
def determinant(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    lu, pivots, _ = _lu64(_either_way(a))
    diagonal = lu.diagonal(dim1=-2, dim2=-1)
    product = fold(diagonal, -1, torch.mul).squeeze(-1) if a.shape[-1] else 1.0
    det = _sign(lu, pivots) * product
    return det.to(torch.float32), lu.to(torch.float32), pivots


@handles("_linalg_slogdet")
def log_determinant(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    lu, pivots, _ = _lu64(_either_way(a))
    diagonal = lu.diagonal(dim1=-2, dim2=-1)
    sign, logs = _sign(lu, pivots), here.zeros(a.shape[:-2], dtype=torch.float64)
    if a.shape[-1]:
        sign = sign * fold(diagonal.sign(), -1, torch.mul).squeeze(-1)
        logs = fold(log64(diagonal.abs()), -1, torch.add).squeeze(-1)
    return sign.to(torch.float32), logs.to(torch.float32), lu.to(torch.float32), pivots


@handles("lu_unpack")
def unpack(
    lu: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    rows, columns = lu.shape[-2:]
    k, none = min(rows, columns), lu.new_empty(0)
    low, up, order = none, none, none
    if unpack_data:
        low = lu[..., :k].tril(-1) + here.eye(rows, k)
        up = lu[..., :k, :].triu()
    if unpack_pivots:
        one = here.eye(rows).expand(*lu.shape[:-2], rows, rows)
        order = _permuted(one, pivots).mT.contiguous()
    return order, low, up


@handles("linalg_lu")
def lu(a: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    both, pivots, _ = lu_factor(a)
    return unpack(both, pivots)


@handles("cholesky_solve")
def cholesky_solve(b: Tensor, low: Tensor, upper: bool = False) -> Tensor:
    need(b, low)
    low = low.mT if upper else low
    batch = torch.broadcast_shapes(low.shape[:-2], b.shape[:-2])
    low, b = (t.to(torch.float64).expand(*batch, *t.shape[-2:]) for t in (low, b))
    y = triangular(low, b, upper=False, unit=False)
    return triangular(low.mT, y, upper=True, unit=False).to(torch.float32)


@handles("cholesky_inverse")
def cholesky_inverse(low: Tensor, upper: bool = False) -> Tensor:
    return cholesky_solve(here.eye(low.shape[-1]), low, upper)


@handles("triangular_solve")
def triangular_solve(
    b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    given, up = (a.mT, not upper) if transpose else (a, upper)
    x = solve_triangular(given, b, upper=up, unitriangular=unitriangular)
    return x, a.expand(*x.shape[:-2], *a.shape[-2:]).clone()
