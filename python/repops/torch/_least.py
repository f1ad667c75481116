"""Least squares, by Householder's reflections in float64, rounded to float32 once.

Of a matrix with at least as many rows as columns, a = Q R, the solution of a x = b is that of
R x = Q^T b. Of one with fewer rows, a^T = Q R, it is Q y with R^T y = b, the shortest of all.
Each sum is by halves.
"""

from __future__ import annotations

from typing import Any

import torch

from . import _here as here
from ._call import Leftover, expect, need
from ._linear import householder, reflect
from ._lu import triangular
from ._registry import handles

Tensor = torch.Tensor
_EPS = 2.0**-23


def _check_rank(r: Tensor, least: float) -> None:
    pivots = r.diagonal(dim1=-2, dim2=-1).abs()
    if not bool((pivots > least * pivots.amax(-1, keepdim=True)).all()):
        raise Leftover("its matrix has not full rank, or nearly so")


def _solved(a: Tensor, b: Tensor, rcond: float | None) -> Tensor:
    rows, columns = a.shape[-2:]
    wide = rows < columns
    r, vectors = householder(a.mT if wide else a)
    n = min(rows, columns)
    r = r[..., :n, :].triu()
    _check_rank(r, _EPS * max(rows, columns) if rcond is None else rcond)
    if not wide:
        for j, v in enumerate(vectors):
            b[..., j:, :] = reflect(v, b[..., j:, :])
        return triangular(r, b[..., :n, :], upper=True, unit=False)
    y = triangular(r.mT, b, upper=False, unit=False)
    x = torch.cat([y, y.new_zeros(*y.shape[:-2], columns - rows, y.shape[-1])], -2)
    for j, v in reversed(list(enumerate(vectors))):
        x[..., j:, :] = reflect(v, x[..., j:, :])
    return x


@handles("linalg_lstsq")
def least_squares(
    a: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> Any:
    """Returns what PyTorch does: the solution, empty residuals, and the rank, taken to be full."""
    need(a, b)
    if driver not in (None, "gelsy"):
        raise Leftover(f"its driver is {driver}")
    vector = b.dim() == 1 or (b.dim() == a.dim() - 1 and b.shape == a.shape[:-1])
    given = b.unsqueeze(-1) if vector else b
    expect(a.dim() > 1 and a.shape[-2] == given.shape[-2], "its sizes do not fit")
    batch = torch.broadcast_shapes(a.shape[:-2], given.shape[:-2])
    a, given = (t.expand(*batch, *t.shape[-2:]) for t in (a, given))
    n, empty = min(a.shape[-2:]), b.new_empty(0)
    if not n or not given.numel():
        raise Leftover("it has no equations")
    x = _solved(a.to(torch.float64), given.to(torch.float64, copy=True), rcond).to(torch.float32)
    rank = here.full(batch, n, dtype=torch.int64)
    return (x.squeeze(-1) if vector else x), empty, rank, empty.clone()
