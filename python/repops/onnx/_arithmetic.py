"""Elementwise operators: functions, arithmetic, comparisons, logic and bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from .._library import Error
from ._layout import as_they_lie
from ._run import Call, is_known
from ._table import operator
from ._types import broadcast

Tensor = torch.Tensor

_ONE = {
    "Abs": torch.abs, "Acos": torch.acos, "Acosh": torch.acosh, "Asin": torch.asin,
    "Asinh": torch.asinh, "Atan": torch.atan, "Atanh": torch.atanh, "Ceil": torch.ceil,
    "Cos": torch.cos, "Cosh": torch.cosh, "Erf": torch.erf, "Exp": torch.exp,
    "Floor": torch.floor, "IsNaN": torch.isnan, "Log": torch.log, "Neg": torch.neg,
    "Not": torch.logical_not, "BitwiseNot": torch.bitwise_not, "Reciprocal": torch.reciprocal,
    "Round": torch.round, "Sign": torch.sign, "Sin": torch.sin, "Sinh": torch.sinh,
    "Sqrt": torch.sqrt, "Tan": torch.tan, "Tanh": torch.tanh, "Sigmoid": torch.sigmoid,
    "Relu": torch.relu,
}  # fmt: skip
_TWO = {
    "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Equal": torch.eq,
    "Greater": torch.gt, "GreaterOrEqual": torch.ge, "Less": torch.lt, "LessOrEqual": torch.le,
    "And": torch.logical_and, "Or": torch.logical_or, "Xor": torch.logical_xor,
    "BitwiseAnd": torch.bitwise_and, "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor,
}  # fmt: skip


def _one(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda n, x: function(x)


def _two(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda n, a, b: as_they_lie(function, a, b)


def _register() -> None:
    tables: list[tuple[Any, Any]] = [(_ONE, _one), (_TWO, _two)]
    for table, wrap in tables:
        for name, function in table.items():
            made = wrap(function)
            made.__module__ = __name__
            operator(name)(made)


_register()


def number(t: Any) -> float | None:
    """The value of a constant with one element, else None."""
    return t.item() if is_known(t) and t is not None and t.numel() == 1 else None


@operator("Div")
def _div(n: Call, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype.is_floating_point:
        return as_they_lie(torch.div, a, b)
    return torch.div(a, b, rounding_mode="trunc").to(a.dtype)


@operator("Mod", note="floats by their quotient: exact where it and its product are")
def _mod(n: Call, a: Tensor, b: Tensor) -> Tensor:
    """Integers: the sign is the divisor's, or a's with fmod. Floats: a - trunc(a / b) * b, with the
    roundings of the quotient, product and difference, then the same signs."""
    if not a.dtype.is_floating_point:
        return torch.fmod(a, b) if n.get("fmod", 0) else torch.remainder(a, b)
    rest = torch.where(b.abs() == math.inf, a, a - torch.trunc(a / b) * b)
    if n.get("fmod", 0):
        return rest
    other = (rest != 0) & ((rest < 0) != (b < 0))
    return torch.where(other, rest + b, rest)


def _whole_power(x: Tensor, times: int) -> Tensor:
    """x to a whole power by repeated squaring, for integers."""
    result: Tensor | None = None
    while times:
        if times & 1:
            result = x if result is None else result * x
        times >>= 1
        x = x * x if times else x
    return torch.ones_like(x) if result is None else result


@operator("Pow")
def _pow(n: Call, x: Tensor, y: Tensor) -> Tensor:
    power = number(y)
    shape = broadcast(x.shape, y.shape)
    if power is not None and power == int(power) and 0 <= power <= 4:
        return _whole_power(x, int(power)).expand(shape)
    if x.dtype.is_floating_point:
        made = torch.pow(x, y.to(x.dtype) if power is None else float(power))
        return made.expand(shape)
    if not y.dtype.is_floating_point and is_known(y) and y.numel() < 4096:
        return _each_power(x, y)
    return torch.pow(x.to(torch.float32), y.to(torch.float32)).to(x.dtype)


def _each_power(x: Tensor, y: Tensor) -> Tensor:
    """Integers to powers that differ by element: computes each power for all, and chooses by
    masks."""
    made = None
    for power in sorted(set(y.reshape(-1).tolist())):
        own = _whole_power(x, power)
        made = own if made is None else torch.where(y == power, own, made)
    assert made is not None
    return made.expand(broadcast(x.shape, y.shape))


@operator("BitShift")
def _shift(n: Call, a: Tensor, b: Tensor) -> Tensor:
    left = n.need("direction", str) == "LEFT"
    return torch.bitwise_left_shift(a, b) if left else torch.bitwise_right_shift(a, b)


@operator("IsInf")
def _isinf(n: Call, x: Tensor) -> Tensor:
    low, high = n.get("detect_negative", 1), n.get("detect_positive", 1)
    if not low and not high:
        return torch.zeros(x.shape, dtype=torch.bool)
    if low and high:
        return x.abs() == math.inf
    return x == (math.inf if high else -math.inf)


def _folded(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Any]:
    def call(n: Call, first: Tensor, *more: Tensor) -> Tensor:
        for t in more:
            first = function(first, t)
        return first

    call.__module__ = __name__
    return call


for _name, _function in (("Max", torch.maximum), ("Min", torch.minimum), ("Sum", torch.add)):
    operator(_name)(_folded(_function))


@operator("Mean")
def _mean(n: Call, first: Tensor, *more: Tensor) -> Tensor:
    total = first
    for t in more:
        total = total + t
    return total / (1 + len(more))


@operator("Clip")
def _clip(n: Call, x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    """If the bounds contradict each other the upper one wins."""
    bounds = [number(b) for b in (low, high)]
    known = all(b is None or v is not None for b, v in zip((low, high), bounds))
    if x.dtype.is_floating_point and known and (low is not None or high is not None):
        least, most = bounds
        if least is not None and most is not None:
            least = min(least, most)
        return x.clamp(least, most)
    x = x if low is None else torch.maximum(x, low)
    return x if high is None else torch.minimum(x, high)


@operator("Where")
def _where(n: Call, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(condition, a, b)


@operator("Identity")
def _identity(n: Call, x: Any) -> Any:
    return (x,)


@operator("Einsum", note="at least one input")
def _einsum(n: Call, *inputs: Tensor) -> Tensor:
    equation = n.need("equation", str).replace(" ", "")
    if len(equation) > 256:
        raise Error(f"its equation has {len(equation)} letters; expected at most 256")
    return torch.einsum(equation, *inputs)


@operator("Det", note="as a job of at most 3 rows")
def _det(n: Call, x: Tensor) -> Tensor:
    """The determinant by cofactors of the first row; for more than 3 rows by elimination."""
    rows = x.shape[-1]
    if rows != x.shape[-2] or not 1 <= rows <= 3:
        det: Tensor = torch.linalg.det(x)
        return det
    if rows == 1:
        return x[..., 0, 0]
    return _cofactors([[x[..., i, j] for j in range(rows)] for i in range(rows)])


def _cofactors(m: list[list[Tensor]]) -> Tensor:
    if len(m) == 2:
        return m[0][0] * m[1][1] - m[0][1] * m[1][0]
    rest = [[[row[j] for j in range(3) if j != c] for row in m[1:]] for c in range(3)]
    parts = [m[0][c] * _cofactors(rest[c]) for c in range(3)]
    return parts[0] - parts[1] + parts[2]
