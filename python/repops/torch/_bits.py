"""Functions of numbers' bits. Integers give the results of torch's CPU kernels, where those are the
same on all machines."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from ._call import Leftover, expect
from ._nans import one_nan
from ._overlaps import overlaps
from ._registry import on_devices

Tensor = torch.Tensor


class Layout(NamedTuple):
    """Describes a floating-point type: the integers of its size, and the bits of its fraction."""

    kind: torch.dtype
    fraction: int


LAYOUTS = {
    torch.float16: Layout(torch.int16, 10),
    torch.float32: Layout(torch.int32, 23),
    torch.float64: Layout(torch.int64, 52),
}
_HALVES = (torch.float16, torch.complex32)


def _both(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Returns both tensors in one size, type and memory: a CPU tensor may be one number."""
    dtype, device = torch.result_type(a, b), (a if a.dim() else b).device
    a, b = torch.broadcast_tensors(a.to(device, dtype), b.to(device, dtype))
    return a.contiguous(), b.contiguous()


def _laid(y: Tensor, x: Tensor) -> Tensor:
    """Returns y in the order of memory that torch gives results of x's shape."""
    if x.is_contiguous() or x.shape != y.shape:
        return y
    return torch.empty_like(x, dtype=y.dtype).copy_(y)


@on_devices("nextafter")
def next_after(x: Tensor, to: Tensor) -> Tensor:
    """Neighbours differ by 1 as integers, except next to zeros."""
    given = x
    x, to = _both(x, to)
    kind = LAYOUTS[x.dtype].kind
    bits, wanted = x.view(kind), to.view(kind)
    away = (to > x) == (x > 0)
    moved = torch.where(x == 0, (wanted & torch.iinfo(kind).min) | 1, bits + away.to(kind) * 2 - 1)
    y = torch.where(x == to, wanted, moved.to(kind)).view(x.dtype)
    return _laid(y.masked_fill_((x != x) | (to != to), math.nan), given)


@on_devices("frexp")
def fraction_and_exponent(x: Tensor) -> tuple[Tensor, Tensor]:
    """Takes a subnormal number as a small integer, whose highest bit float64 tells."""
    kind, count = LAYOUTS[x.dtype]
    bits = x.contiguous().view(kind)
    limits = torch.iinfo(kind)
    most = (1 << (limits.bits - 1 - count)) - 1
    rest, exponent = bits & ((1 << count) - 1), (bits >> count) & most
    highest = (rest.to(torch.float64).view(torch.int64) >> 52) - 1023
    subnormal = (exponent == 0) & (rest != 0)
    shift = torch.where(subnormal, count - highest, 0).to(kind)
    own = torch.where(subnormal, (rest << shift) & ((1 << count) - 1), rest)
    half = most // 2 - 1  # the exponent of [0.5, 1)
    made = (bits & limits.min) | (half << count) | own
    power = torch.where(subnormal, 1 - shift.to(torch.int32), exponent.to(torch.int32)) - half
    as_it_is = (x == 0) | (exponent == most)
    y = torch.where(as_it_is, bits, made.to(kind)).view(x.dtype)
    return one_nan(y), torch.where(as_it_is, 0, power).to(torch.int32)


@on_devices("heaviside")
def heaviside(x: Tensor, values: Tensor) -> Tensor:
    expect(x.dtype is values.dtype, "its inputs have two types")
    return torch.where(x == 0, values, (x > 0).to(values.dtype))


def _turned(x: Tensor) -> Tensor:
    """Returns x with the other sign, of NaNs too."""
    kind = LAYOUTS[x.dtype].kind
    return (x.contiguous().view(kind) ^ torch.iinfo(kind).min).view(x.dtype)


@on_devices("_conj_physical")
def conjugate(x: Tensor) -> Tensor:
    if x.is_conj():
        return x.conj().clone()
    parts = torch.view_as_real(x)
    y = torch.view_as_complex(torch.stack([parts[..., 0], _turned(parts[..., 1])], -1))
    return _laid(y, x)


def conjugated(x: Tensor) -> Tensor:
    """Conjugates on the CPU, where torch's kernel computes complex32 in float32."""
    return conjugate(x) if x.dtype is torch.complex32 else torch.ops.aten._conj_physical.default(x)


def resolved(x: Tensor) -> Tensor:
    """Returns the numbers of a view that stands for conjugates or negatives. Torch's kernels turn
    signs by arithmetic on halves, and on devices, which changes NaNs."""
    if not (x.is_conj() or x.is_neg()) or (x.is_cpu and x.dtype not in _HALVES):
        return x
    if x.is_conj():
        return conjugate(x.conj())
    return x if x.is_complex() else _laid(_turned(torch._neg_view(x)), x)


# Operators that write the numbers of such views.
RESOLVED = ("clone", "resolve_conj", "resolve_neg")


@on_devices("as_strided_scatter")
def as_strided_scatter(
    x: Tensor, source: Tensor, size: Any, stride: Any, offset: int | None = None
) -> Tensor:
    """Refuses a source of another type, because machines convert NaNs and large numbers in several
    ways, and places that are written twice: threads and devices keep any of several values."""
    if source.dtype is not x.dtype:
        raise Leftover(f"its source is {source.dtype}, and its first input {x.dtype}")
    if overlaps(size, stride):
        raise Leftover("its places overlap, and any of several values would stay")
    return torch.as_strided_scatter(x, source, size, stride, offset)
