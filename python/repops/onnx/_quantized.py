"""8-bit integers: exact sums, and requantization of one rounding."""

from __future__ import annotations

import math
from typing import Any

import torch

from .._library import Error
from ._products import convolve
from ._run import Call
from ._table import operator
from ._types import type_of

Tensor = torch.Tensor
TERMS = 258  # products of numbers up to 255 whose sum is below 2^24, which float32 has exactly
LIMIT = 1 << 24


def _along(t: Any, rank: int, axis: int) -> Any:
    """A number for each place of an axis."""
    return t.reshape([-1 if a == axis % rank else 1 for a in range(rank)]) if t.dim() == 1 else t


def _spread(n: Call, t: Tensor, x: Tensor) -> Tensor:
    """Scales or zero points, for each element of x: of the tensor, of an axis, or of blocks."""
    axis, block = n.get("axis", 1), n.get("block_size", 0)
    if t.numel() == 1:
        return t.reshape(())
    if block:
        return t.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])
    own: Tensor = _along(t, x.dim(), axis)
    return own


def quantized(x: Tensor, kind: torch.dtype, zero: Any) -> Tensor:
    """Scaled numbers, rounded to even, and cut off at the type's ends."""
    limits = torch.iinfo(kind)
    own = x.round() if zero is None else x.round() + zero.to(torch.float32)
    return own.clamp(limits.min, limits.max).to(kind)


@operator("QuantizeLinear", note="to int8, uint8 or int16")
def _quantize(n: Call, x: Tensor, scale: Tensor, zero: Any = None) -> Tensor:
    kind = torch.uint8 if zero is None else zero.dtype
    wanted = n.get("output_dtype", 0)
    if wanted:
        kind = type_of(wanted, "its output")
    if kind not in (torch.uint8, torch.int8, torch.int16):
        raise Error(f"it makes {kind}; expected 8 or 16 bits")
    zero = None if zero is None else _spread(n, zero, x)
    return quantized(x.to(torch.float32) / _spread(n, scale, x), kind, zero)


@operator("DequantizeLinear")
def _dequantize(n: Call, x: Tensor, scale: Tensor, zero: Any = None) -> Tensor:
    own = x.to(torch.float32)
    if zero is not None:
        own = own - _spread(n, zero, x).to(torch.float32)
    return own * _spread(n, scale, x)


@operator("DynamicQuantizeLinear")
def _dynamic(n: Call, x: Tensor) -> Any:
    low, high = x.amin().clamp(max=0.0), x.amax().clamp(min=0.0)
    scale = (high - low) / 255.0
    zero = (-low / scale).round().clamp(0.0, 255.0).to(torch.uint8)
    return quantized(x / scale, torch.uint8, zero), scale, zero


def _centered(x: Tensor, zero: Any, axis: int) -> Tensor:
    own = x.to(torch.float32)
    return own if zero is None else own - _along(zero, x.dim(), axis).to(torch.float32)


def _whole(sums: Tensor) -> Tensor:
    return sums.to(torch.int32).clamp(-LIMIT, LIMIT)


def product(a: Tensor, b: Tensor) -> Tensor:
    """Exact: parts of as many terms as float32 adds without rounding, and their sum as integers."""
    terms, total = a.shape[-1], None
    for k in range(0, terms, TERMS):
        some = min(TERMS, terms - k)
        row = b.narrow(-2 if b.dim() > 1 else 0, k, some)
        part = _whole(torch.matmul(a.narrow(-1, k, some), row))
        total = part if total is None else total + part
    if total is None:
        raise Error("a product of no terms")
    return total


def _product_of(a: Tensor, b: Tensor, za: Any, zb: Any) -> Tensor:
    """Zero points of a are of rows, those of b of columns."""
    if za is not None and za.dim() > 1:
        za = za.reshape(za.shape)
    return product(_centered(a, za, -2), _centered(b, zb, -1))


@operator("MatMulInteger")
def _matmul_integer(n: Call, a: Tensor, b: Tensor, za: Any = None, zb: Any = None) -> Tensor:
    return _product_of(a, b, za, zb)


def _requantized(sums: Tensor, factor: Tensor, zero: Any, kind: torch.dtype) -> Tensor:
    """One product in float32, and one rounding (SPEC has no other)."""
    return quantized(sums.to(torch.float32) * factor, kind, zero)


@operator("QLinearMatMul", note="float32 scales")
def _qlinear_matmul(
    n: Call,
    a: Tensor,
    sa: Tensor,
    za: Tensor,
    b: Tensor,
    sb: Tensor,
    zb: Tensor,
    sy: Tensor,
    zy: Tensor,
) -> Tensor:
    sums = _product_of(a, b, za, zb)
    factor = _along(sa, sums.dim(), -2) * _along(sb, sums.dim(), -1) / sy
    return _requantized(sums, factor, zy, zy.dtype)


def convolution(n: Call, x: Tensor, w: Tensor) -> Tensor:
    """Exact: input channels in as many parts as it takes."""
    kernel, groups = list(w.shape[2:]), n.get("group", 1)
    taps = math.prod(kernel)
    each = w.shape[1]
    some = max(1, TERMS // taps)
    if taps > TERMS:
        raise Error(f"a window of {taps} taps; expected at most {TERMS}")
    if each <= some:
        return _whole(convolve(n, x, w, None, kernel))
    total = None
    for c in range(0, each, some):
        count = min(some, each - c)
        own = x.reshape(x.shape[0], groups, each, *x.shape[2:]).narrow(2, c, count).flatten(1, 2)
        part = _whole(convolve(n, own, w.narrow(1, c, count), None, kernel))
        total = part if total is None else total + part
    assert total is not None
    return total


@operator("ConvInteger")
def _conv_integer(n: Call, x: Tensor, w: Tensor, zx: Any = None, zw: Any = None) -> Tensor:
    return convolution(n, _centered(x, zx, 1), _centered(w, zw, 0))


@operator("QLinearConv", note="float32 scales")
def _qlinear_conv(
    n: Call,
    x: Tensor,
    sx: Tensor,
    zx: Tensor,
    w: Tensor,
    sw: Tensor,
    zw: Tensor,
    sy: Tensor,
    zy: Tensor,
    bias: Any = None,
) -> Tensor:
    sums = convolution(n, _centered(x, zx, 1), _centered(w, zw, 0))
    if bias is not None:
        sums = sums + bias.reshape([-1] + [1] * (x.dim() - 2))
    factor = _along(sx * sw / sy, sums.dim(), 1) if sw.dim() else sx * sw / sy
    return _requantized(sums, factor, zy, zy.dtype)
