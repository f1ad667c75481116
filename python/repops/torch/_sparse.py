"""Sparse float32 matrices (COO, CSR or CSC): products with dense ones, and moves of their elements.

A product has one term for each stored element: its value times the row of the dense
matrix that its column names, rounded. Terms of one row of the result are summed by `embedding_grad`
(SPEC 3.3), in the order in which elements are stored, so that duplicates need not be
added up first. coalesce() and to_dense() sum duplicates in the same way.
"""

from __future__ import annotations

from typing import Any

import torch

from .. import _context
from . import _here as here
from ._call import Leftover, expect, need, numbers, run
from ._integers import WHOLE
from ._products import added
from ._registry import of_sparse

Tensor = torch.Tensor
_COMPRESSED = {torch.sparse_csr: 0, torch.sparse_csc: 1}  # which dimension is compressed


def _is_sparse(x: Any) -> bool:
    return isinstance(x, Tensor) and x.layout is not torch.strided


def _places(x: Tensor) -> tuple[Tensor, Tensor]:
    """Indices of the stored elements, [dimensions, elements], and their values, in the stored
    order."""
    if x.layout is torch.sparse_coo:
        at, values = x._indices(), x._values()
    elif x.layout in _COMPRESSED and x.dim() == 2 and x.dense_dim() == 0:
        own = _COMPRESSED[x.layout]
        ends, along = _compressed(x)
        each = torch.repeat_interleave(here.arange(x.shape[own]), ends.diff().long())
        at, values = torch.stack([along, each] if own else [each, along]), x.values()
    else:
        raise Leftover(f"its input is {x.layout} of {x.dim()} dimensions")
    need(values)
    if at.numel() and _context.current().job is None:
        most = here.tensor(x.shape[: len(at)]).unsqueeze(-1)
        if bool(((at < 0) | (at >= most)).any()):
            raise Leftover("an index of a sparse tensor lies beyond its size")
    return at.long(), values


def _compressed(x: Tensor) -> tuple[Tensor, Tensor]:
    """Row offsets and column indices of CSR; column offsets and row indices of CSC."""
    if x.layout is torch.sparse_csr:
        return x.crow_indices(), x.col_indices()
    return x.ccol_indices(), x.row_indices()


def _like(x: Tensor, values: Tensor) -> Tensor:
    """A tensor with x's indices and other values."""
    if x.layout is torch.sparse_coo:
        own = x.is_coalesced()
        return torch.sparse_coo_tensor(x._indices(), values, x.shape, is_coalesced=own)
    return torch.sparse_compressed_tensor(*_compressed(x), values, x.shape, layout=x.layout)


def _flat(at: Tensor, sizes: Any) -> Tensor:
    """Flat indices of the elements' indices."""
    flat = here.zeros(at.shape[1], dtype=torch.int64)
    for i, n in zip(at, sizes):
        flat = flat * n + i
    return flat


def _summed(rows: Tensor, at: Tensor, count: int) -> Tensor:
    """Sums rows into a table of `count` rows, at these indices."""
    if not rows.numel() or not count:
        return here.zeros(count, rows.shape[1])
    return run("embedding_grad", (), (rows, numbers(at, count)), (count, rows.shape[1]))


# ---- products ----


def product(a: Tensor, b: Tensor) -> Tensor:
    if _is_sparse(a) and _is_sparse(b):
        raise Leftover("both of its inputs are sparse")
    if _is_sparse(b):  # computes b's columns: (b^T a^T)^T
        expect(a.dim() == b.dim() == 2, "its sizes do not fit")
        return product(torch.ops.aten.t(b) if b.layout in _COMPRESSED else transposed(b), a.t()).t()
    need(b)
    (rows, columns), values = _places(a)
    expect(a.dim() == b.dim() == 2 and a.shape[1] == b.shape[0], "its sizes do not fit")
    expect(values.dim() == 1, "its elements are no numbers")
    terms = b.index_select(0, columns) * values.unsqueeze(-1)
    return _summed(terms, rows, a.shape[0])


@of_sparse("mm")
def mm(a: Tensor, b: Tensor) -> Tensor:
    return product(a, b)


@of_sparse("mv")
def mv(a: Tensor, x: Tensor) -> Tensor:
    expect(x.dim() == 1, "its second input is no vector")
    return product(a, x.unsqueeze(-1)).squeeze(-1)


@of_sparse("addmm", "_sparse_addmm")
def addmm(c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    if _is_sparse(c):
        raise Leftover("it adds to a sparse matrix")
    need(c)
    return added(c, beta, alpha, (a.shape[0], b.shape[1]), lambda: product(a, b))


@of_sparse("add")
def add(x: Tensor, y: Any, alpha: Any = 1) -> Tensor:
    """Dense plus sparse; duplicates in the sparse tensor are summed first."""
    expect(not _is_sparse(x) and alpha == 1, "it adds to a sparse tensor, or multiplies one")
    need(x)
    expect(x.shape == y.shape, "its sizes do not fit")
    if y.layout is torch.sparse_coo and y.dtype in WHOLE:
        y = _like(y, y._values().to(torch.float32))
    return x + to_dense(y)


# ---- what moves elements ----


@of_sparse("t")
def transposed(x: Tensor) -> Tensor:
    """Flips the indices of COO, so that the values stay the same memory."""
    if x.layout is not torch.sparse_coo:
        return torch.ops.aten.t(x)
    expect(x.dim() == x.sparse_dim() == 2, "it is no matrix of numbers")
    return torch.sparse_coo_tensor(x._indices().flip(0), x._values(), x.shape[::-1])


@of_sparse("select")
def select(x: Tensor, dim: int, index: int) -> Tensor:
    """Coalesces first: torch would sum duplicates by itself."""
    return torch.ops.aten.select.int(coalesce(x) if x.layout is torch.sparse_coo else x, dim, index)


@of_sparse("_coalesce")
def coalesce(x: Tensor) -> Tensor:
    if x.is_coalesced():
        return x
    (at, values), sizes = _places(x), x.shape[: x.sparse_dim()]
    keys, inverse = torch.unique(_flat(at, sizes), return_inverse=True)
    own: list[Tensor] = []
    for n in reversed(sizes):
        own.insert(0, keys % max(1, n))
        keys = keys // max(1, n)
    rows = values.reshape(len(values), -1) if values.numel() else values.new_zeros(0, 1)
    sums = _summed(rows, inverse, len(keys)).reshape(len(keys), *values.shape[1:])
    indices = torch.stack(own) if own else x._indices()[:, :1]
    return torch.sparse_coo_tensor(indices, sums, x.shape, is_coalesced=True)


@of_sparse("_to_dense")
def to_dense(x: Tensor, dtype: Any = None, masked_grad: Any = None) -> Tensor:
    if dtype not in (None, torch.float32):
        raise Leftover(f"it becomes {dtype}")
    at, values = _places(x)
    count = 1
    for n in x.shape[: len(at)]:
        count *= n
    rows = values.reshape(len(values), -1) if values.numel() else values.new_zeros(0, 1)
    if not values.numel():
        return here.zeros(x.shape)
    return _summed(rows, _flat(at, x.shape), count).reshape(x.shape)


@of_sparse("sparse_mask")
def sparse_mask(x: Tensor, mask: Tensor) -> Tensor:
    """Elements of x at the mask's indices, in their order."""
    at, _ = _places(mask)
    expect(x.shape == mask.shape, "the mask has another size")
    flat, tail = _flat(at, x.shape), x.shape[len(at) :]
    if not _is_sparse(x):
        need(x)
        return _like(mask, x.reshape(-1, *tail).index_select(0, flat))
    if tail:
        raise Leftover("the elements of its mask are no numbers")
    own, values = _places(x)
    keys = _flat(own, x.shape)
    if not len(keys):
        return _like(mask, here.zeros(len(flat)))
    if x.layout is torch.sparse_csc or (x.layout is torch.sparse_coo and not x.is_coalesced()):
        raise Leftover("its first input is not coalesced")
    found = torch.searchsorted(keys, flat).clamp(max=len(keys) - 1)
    there = keys[found] == flat
    return _like(mask, torch.where(there, values.index_select(0, found), 0.0))


def _reordered(name: str) -> None:
    """Handles a conversion of layouts: coalesces first, then moves elements."""
    packet = getattr(torch.ops.aten, name)

    def move(x: Tensor, *args: Any, **how: Any) -> Tensor:
        return packet(coalesce(x) if x.layout is torch.sparse_coo else x, *args, **how)

    of_sparse(name)(move)


for _name in ("_to_sparse", "_to_sparse_csr", "_to_sparse_csc"):
    _reordered(_name)
