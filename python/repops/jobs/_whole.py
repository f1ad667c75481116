"""Integer arithmetic by the library's operator `integer`. It has PyTorch's results as long as no
result needs more than 32 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ._graph import I32, INT32, Value

KINDS = (
    "multiply",
    "quotient",
    "remainder",
    "floor_quotient",
    "floor_remainder",
    "shift_left",
    "shift_right",
    "and",
    "or",
    "xor",
    "smaller",
    "larger",
)  # in the order of RO_PRODUCT and so on
Bounds = tuple[int, int]


def _corners(function: Callable[[int, int], int]) -> Callable[[Value, Value], Bounds]:
    def bounds(a: Value, b: Value) -> Bounds:
        found = [function(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        return min(found), max(found)

    return bounds


def _quotient(a: Value, b: Value) -> Bounds:
    """Bounds of the quotient, rounded down or toward zero; a / 0 is 0."""
    if b.low > 0:
        low, high = _corners(lambda x, y: x // y)(a, b)
        return low, max(high, 0) if a.low < 0 else high
    most = max(abs(a.low), abs(a.high))
    return -most, most


def _remainder(a: Value, b: Value) -> Bounds:
    """Bounds of the remainder, which is `a` itself where b is 0."""
    if b.low <= 0 <= b.high:
        return min(a.low, 0), max(a.high, 0)
    most = min(max(abs(a.low), abs(a.high)), max(abs(b.low), abs(b.high)) - 1)
    return (0 if a.low >= 0 else -most), (0 if a.high <= 0 else most)


def _floor_remainder(a: Value, b: Value) -> Bounds:
    """Bounds of the floor remainder; it is a where b is 0."""
    low, high = min(0, b.low + 1), max(0, b.high - 1)
    return (min(low, a.low), max(high, a.high)) if b.low <= 0 <= b.high else (low, high)


def _shifted_left(a: Value, b: Value) -> Bounds:
    return _corners(lambda x, y: x << min(max(y, 0), 63))(a, b)


def _bits(a: Value, b: Value) -> Bounds:
    if a.low < 0 or b.low < 0:
        return INT32
    return 0, (1 << max(a.high, b.high).bit_length()) - 1


_BOUNDS: dict[str, Callable[[Value, Value], Bounds]] = {
    "multiply": _corners(lambda x, y: x * y),
    "quotient": _quotient,
    "remainder": _remainder,
    "floor_quotient": _quotient,
    "floor_remainder": _floor_remainder,
    "shift_left": _shifted_left,
    "shift_right": lambda a, b: (min(a.low, 0), max(a.high, 0)),
    "and": _bits,
    "or": _bits,
    "xor": _bits,
    "smaller": lambda a, b: (min(a.low, b.low), min(a.high, b.high)),
    "larger": lambda a, b: (max(a.low, b.low), max(a.high, b.high)),
}


def integer(self: Any, name: str, a: Value, b: Value) -> Value:
    """a and b combined; b is repeated along a. Raises Missing if the result may exceed 32 bits."""
    low, high = _BOUNDS[name](a, b)
    new = self.graph.emit("integer", a, b, kind=KINDS.index(name))
    value: Value = self.integer(new, low, high)
    return value


def wrapped(self: Any, v: Value, dtype: torch.dtype) -> Value:
    """v wrapped to PyTorch's type, keeping the lowest bits of numbers that the type cannot hold.
    Types of 32 bits and more are already bounded, and bool is already 0 or 1."""
    if v.dtype != I32 or dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
        return v
    limits = torch.iinfo(dtype)
    if limits.bits >= 32 or limits.min <= v.low and v.high <= limits.max:
        return v
    if limits.min == 0:
        return integer(self, "and", v, self.fill(limits.max, (1,), I32)).within(0, limits.max)
    for name in ("shift_left", "shift_right"):  # drops high bits, then extends the sign
        by = self.fill(32 - limits.bits, (1,), I32)
        v = self.graph.emit("integer", v, by, kind=KINDS.index(name))
    new: Value = v.within(limits.min, limits.max)
    return new
