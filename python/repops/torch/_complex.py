"""Arithmetic of complex64: each operation is a formula of float32 on real and imaginary parts.

With z = a + b i and w = c + d i, and each product, sum and quotient rounded by itself:

    z + w      a + c, b + d; a number without imaginary part has d = +0; z - w likewise
    z w        a c - b d, a d + b c
    z r        a r, b r, of a real r; z / r likewise
    z / w      (a + b q) / s, (b - a q) / s, with q = d / c and s = c + d q, if |c| >= |d|;
               else (a q + b) / s, (b q - a) / s, with q = c / d and s = d + c q
    angle(z)   atan2(b, a)
    exp(z)     e cos b, e sin b, with e = exp(a)
    |z|        m sqrt(1 + q q), m and q m being the larger and the smaller of |a| and |b|
    sgn(z)     a / |z|, b / |z|; 0, where |z| is 0
    sums       of all real and of all imaginary parts, as sums of float32; means are these by n
    products   of matrices: those of float32 of a row's a, b, a, b, ... and of two columns, of which
               one has c, -d below each other for each w, and the other d, c

torch's own kernels contract products in their vector code, not in the scalar code after it.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from . import _here as here
from ._call import Leftover, elementwise, expect, matmul, total
from ._elements import atan2, maximum, minimum
from ._registry import of_complex

Tensor = torch.Tensor


def pairs(z: Tensor) -> Tensor:
    """Real and imaginary parts, [..., 2]: a view, unless z is a view that stands for conjugates."""
    return torch.view_as_real(z.resolve_conj())


def joined(y: Tensor) -> Tensor:
    """Turns pairs [..., 2] into complex numbers."""
    even = all(s % 2 == 0 for s in (y.storage_offset(), *y.stride()[:-1]))
    return torch.view_as_complex(y if even and y.stride(-1) == 1 else y.contiguous())


def product(x: Tensor, y: Tensor) -> Tensor:
    """Products of pairs; the operands are broadcast."""
    (a, b), (c, d) = x.unbind(-1), y.unbind(-1)
    return torch.stack([a * c - b * d, a * d + b * c], -1)


def _operand(x: Any) -> tuple[Tensor, bool]:
    """A complex operand as pairs, or a real one as it is; and whether it is complex."""
    if not isinstance(x, Tensor):
        own = isinstance(x, complex)
        return here.tensor([x.real, x.imag] if own else float(x), dtype=torch.float32), own
    if x.is_complex():
        return pairs(x.to(torch.complex64)), True
    return x.resolve_neg().to(torch.float32), False


def _widened(x: Any) -> Tensor:
    """Pairs of a real or complex operand."""
    y, whole = _operand(x)
    return y if whole else torch.stack([y, torch.zeros_like(y)], -1)


@of_complex("mul")
def multiply(x: Any, y: Any) -> Tensor:
    (a, whole_a), (b, whole_b) = _operand(x), _operand(y)
    if whole_a and whole_b:
        return joined(product(a, b))
    if not whole_a and not whole_b:
        return a * b  # a term and its factor alpha, which are both real
    return joined(a * b.unsqueeze(-1) if whole_a else b * a.unsqueeze(-1))


@of_complex("div")
def divide(x: Any, y: Any, *, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is not None:
        raise Leftover("it rounds complex quotients")
    b, whole = _operand(y)
    return joined(_quotient(_widened(x), b) if whole else _operand(x)[0] / b.unsqueeze(-1))


def _quotient(x: Tensor, y: Tensor) -> Tensor:
    """Quotients of pairs, by Smith's formula; the operands are broadcast. Both parts of y are
    divided by the larger one first, so that no square overflows or underflows."""
    (a, b), (c, d) = x.unbind(-1), y.unbind(-1)
    less = c.abs() < d.abs()
    most, least = torch.where(less, d, c), torch.where(less, c, d)
    q = least / most
    s = most + least * q
    real = torch.where(less, a * q + b, a + b * q)
    return torch.stack([real / s, torch.where(less, b * q - a, b - a * q) / s], -1)


@of_complex("reciprocal")
def reciprocal(z: Tensor) -> Tensor:
    return divide(1.0, z)


@of_complex("exp")
def exp(z: Tensor) -> Tensor:
    a, b = (part.contiguous() for part in pairs(z).unbind(-1))
    e = elementwise("exp", (), a)
    return joined(torch.stack([e * elementwise(name, (), b) for name in ("cos", "sin")], -1))


@of_complex("add")
def add(x: Any, y: Any, alpha: Any = 1) -> Tensor:
    return joined(_widened(x) + _widened(y if alpha == 1 else multiply(y, alpha)))


@of_complex("sub")
def subtract(x: Any, y: Any, alpha: Any = 1) -> Tensor:
    return joined(_widened(x) - _widened(y if alpha == 1 else multiply(y, alpha)))


@of_complex("rsub")
def subtract_from(x: Any, y: Any, alpha: Any = 1) -> Tensor:
    return subtract(y, x, alpha)


@of_complex("abs")
def size(z: Tensor) -> Tensor:
    """Absolute values. The smaller part is divided by the larger one, so that no square overflows
    or underflows."""
    a, b = pairs(z).abs().unbind(-1)
    most, least = maximum(a, b), minimum(a, b)
    q = least / most
    y = most * elementwise("sqrt", (), 1.0 + q * q)
    return torch.where((most == 0) | (most == math.inf), most, y)


@of_complex("sgn")
def direction(z: Tensor) -> Tensor:
    r = size(z).unsqueeze(-1)
    return joined(torch.where(r == 0, 0.0, pairs(z) / r))


@of_complex("sum")
def sum_(z: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    if dtype not in (None, torch.complex64):
        raise Leftover(f"it sums complex numbers as {dtype}")
    dims = list(range(z.dim())) if dim is None or dim == [] else dim
    dims = [dims] if isinstance(dims, int) else dims
    x = pairs(z).movedim(-1, 0)  # each part is dense, so that its sum has the order of float32 sums
    return joined(torch.stack([total(part, dims, keepdim) for part in x], -1))


@of_complex("angle")
def angle(z: Tensor) -> Tensor:
    a, b = pairs(z).unbind(-1)
    return atan2(b, a)


@of_complex("mean")
def mean(z: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    y = sum_(z, dim, keepdim, dtype=dtype)
    return divide(y, float(z.numel() // max(1, y.numel())))


# ---- products of matrices ----


def _product(x: Tensor, y: Tensor, batch_dims: int = 0) -> Tensor:
    """One float32 product, of k doubled: y gets twice as many rows and columns."""
    a, b = pairs(x), pairs(y)
    two = torch.stack([b, torch.stack([-b[..., 1], b[..., 0]], -1)], -3)  # [..., k, 2, m, 2]
    *batch, k, m, _ = b.shape
    z = matmul(a.reshape(*a.shape[:-2], 2 * k), two.reshape(*batch, 2 * k, 2 * m), batch_dims)
    return joined(z.reshape(*z.shape[:-1], m, 2))


def _fitting(x: Tensor, y: Tensor, dims: int) -> None:
    right = x.is_complex() and y.is_complex() and x.dim() == y.dim() == dims
    expect(right and x.shape[:-2] == y.shape[:-2], "its inputs do not fit")
    expect(x.shape[-1] == y.shape[-2], "its inputs do not fit")


@of_complex("mm")
def mm(x: Tensor, y: Tensor) -> Tensor:
    _fitting(x, y, 2)
    return _product(x, y)


@of_complex("bmm")
def bmm(x: Tensor, y: Tensor) -> Tensor:
    _fitting(x, y, 3)
    return _product(x, y, 1)


@of_complex("mv")
def mv(x: Tensor, y: Tensor) -> Tensor:
    expect(y.dim() == 1, "its second input is no vector")
    return mm(x, y.unsqueeze(-1)).squeeze(-1)


@of_complex("dot")
def dot(x: Tensor, y: Tensor) -> Tensor:
    expect(x.dim() == y.dim() == 1, "its inputs are no vectors")
    return mm(x.unsqueeze(0), y.unsqueeze(-1)).reshape(())


@of_complex("vdot")
def vdot(x: Tensor, y: Tensor) -> Tensor:
    return dot(x.conj(), y)
