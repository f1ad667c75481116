"""8-bit integers: exact sums, and requantization with a single rounding."""

from __future__ import annotations

import math
from typing import Any

import torch

from .._library import Error
from ..torch._call import unwatched
from ._layout import as_they_lie
from ._products import convolve
from ._run import Call, is_known
from ._table import operator
from ._types import type_of

Tensor = torch.Tensor
LIMIT = 1 << 24  # float32 sums are exact up to this, in any order
MOST = 255  # largest magnitude of a number minus its zero point


def _along(t: Any, rank: int, axis: int) -> Any:
    """Shapes values along an axis so that they broadcast."""
    return t.reshape([-1 if a == axis % rank else 1 for a in range(rank)]) if t.dim() == 1 else t


def _spread(n: Call, t: Tensor, x: Tensor) -> Tensor:
    """Scales or zero points that broadcast to x: for the whole tensor, an axis, or blocks of it."""
    axis, block = n.get("axis", 1), n.get("block_size", 0)
    if t.numel() == 1:
        return t.reshape(())
    if block:
        return t.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])
    own: Tensor = _along(t, x.dim(), axis)
    return own


def quantized(x: Tensor, kind: torch.dtype, zero: Any) -> Tensor:
    """Rounds scaled numbers to even, adds the zero point, and clamps to the type's range."""
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
    own = [_spread(n, scale, x), *([] if zero is None else [_spread(n, zero, x)])]
    return as_they_lie(
        lambda y, by, *at: quantized(y.to(torch.float32) / by, kind, *(at or [None])), x, *own
    )


@operator("DequantizeLinear")
def _dequantize(n: Call, x: Tensor, scale: Tensor, zero: Any = None) -> Tensor:
    own = [_spread(n, scale, x), *([] if zero is None else [_spread(n, zero, x)])]
    return as_they_lie(lambda y, by, *at: _less(y, *at) * by, x, *own)


@operator("DynamicQuantizeLinear")
def _dynamic(n: Call, x: Tensor) -> Any:
    low, high = x.amin().clamp(max=0.0), x.amax().clamp(min=0.0)
    scale = (high - low) / 255.0
    zero = (-low / scale).round().clamp(0.0, 255.0).to(torch.uint8)
    return quantized(x / scale, torch.uint8, zero), scale, zero


def _less(x: Tensor, *zero: Tensor) -> Tensor:
    own = x.to(torch.float32)
    return own - zero[0].to(torch.float32) if zero else own


def _centered(x: Tensor, zero: Any, axis: int) -> Tensor:
    return as_they_lie(_less, x, *([] if zero is None else [_along(zero, x.dim(), axis)]))


def _whole(sums: Tensor) -> Tensor:
    """Sums as int32; those that were added up from several parts are int32 already."""
    if sums.dtype is torch.int32:
        return sums
    return as_they_lie(lambda t: t.to(torch.int32).clamp(-LIMIT, LIMIT), sums)


def _reach(x: Tensor, zero: Any) -> int:
    """The largest magnitude that a number minus its zero point can have."""
    limits = torch.iinfo(x.dtype)
    if zero is None:
        return max(limits.max, -limits.min)
    if not is_known(zero):
        return MOST
    with unwatched():
        low, high = int(zero.min()), int(zero.max())
    return max(limits.max - low, high - limits.min)


def _sizes(x: Tensor, zero: Any, axis: int) -> Any:
    """Magnitudes of the elements if they are constant, else None: each may be up to MOST."""
    if not is_known([x, zero]):
        return None
    with unwatched():
        return _centered(x, zero, axis).abs()


def _parts(terms: int, reach: int, sizes: Any, taps: int = 1) -> list[tuple[int, int]]:
    """Splits terms into parts whose sums are exact in float32: (first, count) of each. A term has a
    number of magnitude up to `reach`, times `taps` numbers up to MOST, or as large as `sizes` has
    for each term and result."""
    parts, at = [], 0
    while at < terms:
        some = LIMIT // max(1, reach * MOST * taps)
        if sizes is not None:
            with unwatched():
                sums = sizes[at:].double().cumsum(0).amax(1) * reach
                some = int((sums <= LIMIT).sum())
        if some == 0:
            raise Error(f"a window of {taps} taps, whose sum may be larger than 2^24")
        parts.append((at, min(some, terms - at)))
        at += some
    if not parts:
        raise Error("a product of no terms")
    return parts


def _bound(terms: int, reach: int, sizes: Any, taps: int) -> int:
    """The largest magnitude that a whole sum can have."""
    if sizes is None:
        return reach * MOST * taps * terms
    with unwatched():
        return reach * int(sizes.double().sum(0).amax())


def _added(parts: list[Tensor]) -> Tensor:
    """Adds parts: a single one stays float32, several become int32."""
    if len(parts) == 1:
        return parts[0]
    total = _whole(parts[0])
    for part in parts[1:]:
        total = as_they_lie(torch.add, total, _whole(part))
    return total


def _product_of(a: Tensor, b: Tensor, za: Any, zb: Any) -> Tensor:
    """An exact product. za has zero points of a's rows, zb of b's columns. Terms are split into
    parts that float32 adds without rounding."""
    reach, sizes = _reach(a, za), _sizes(b, zb, -1)
    if sizes is not None:
        with unwatched():
            sizes = sizes.reshape(*sizes.shape, 1) if sizes.dim() == 1 else sizes
            sizes = sizes.movedim(-2, 0).reshape(sizes.shape[-2], -1)
    a, b = _centered(a, za, -2), _centered(b, zb, -1)
    return _added([
        torch.matmul(a.narrow(-1, k, some), b.narrow(-2 if b.dim() > 1 else 0, k, some))
        for k, some in _parts(a.shape[-1], reach, sizes)
    ])  # fmt: skip


@operator("MatMulInteger")
def _matmul_integer(n: Call, a: Tensor, b: Tensor, za: Any = None, zb: Any = None) -> Tensor:
    return _whole(_product_of(a, b, za, zb))


def _requantized(sums: Tensor, factor: Tensor, zero: Any, kind: torch.dtype) -> Tensor:
    """Multiplies in float32 and rounds once to the integer type."""
    return as_they_lie(
        lambda y, by, at: quantized(y.to(torch.float32) * by, kind, at), sums, factor, zero
    )


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


def _convolution(n: Call, x: Tensor, w: Tensor, zx: Any, zw: Any, limit: int = LIMIT) -> Tensor:
    """An exact convolution, split over input channels as needed. The result is float32 if no sum
    can exceed `limit`, else int32."""
    kernel, groups = list(w.shape[2:]), n.get("group", 1)
    reach, sizes, each, taps = _reach(x, zx), _sizes(w, zw, 0), w.shape[1], math.prod(kernel)
    if sizes is not None:
        with unwatched():
            sizes = sizes.flatten(2).sum(2).t()
    x, w = _centered(x, zx, 1), _centered(w, zw, 0)
    parts = _parts(each, reach, sizes, taps)
    if len(parts) == 1:
        sums = convolve(n, x, w, None, kernel)
        return sums if _bound(each, reach, sizes, taps) <= limit else _whole(sums)
    return _added([
        convolve(
            n, x.reshape(x.shape[0], groups, each, *x.shape[2:]).narrow(2, c, count).flatten(1, 2),
            w.narrow(1, c, count), None, kernel,
        )
        for c, count in parts
    ])  # fmt: skip


def _most(bias: Any) -> int:
    """The largest magnitude of a bias; LIMIT if it is not constant."""
    if bias is None or not is_known(bias):
        return 0 if bias is None else LIMIT
    with unwatched():
        return int(bias.double().abs().max()) if bias.numel() else 0


@operator("ConvInteger")
def _conv_integer(n: Call, x: Tensor, w: Tensor, zx: Any = None, zw: Any = None) -> Tensor:
    return _whole(_convolution(n, x, w, zx, zw))


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
    sums = _convolution(n, x, w, zx, zw, LIMIT - _most(bias))
    if bias is not None:
        own = bias.reshape([-1] + [1] * (x.dim() - 2)).to(sums.dtype)
        sums = as_they_lie(torch.add, sums, own)
    factor = _along(sx * sw / sy, sums.dim(), 1) if sw.dim() else sx * sw / sy
    return _requantized(sums, factor, zy, zy.dtype)
