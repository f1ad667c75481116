"""Elementwise operators: functions, clamping, comparisons, and those that torch contracts."""

from __future__ import annotations

import math
from typing import Any

import torch

from .. import _context
from . import _here as here
from ._call import Leftover, elementwise, need
from ._conversions import multiplied
from ._functions import atan264, pow64
from ._registry import handles, of_float64

Tensor = torch.Tensor


@of_float64("relu")
def relu(x: Tensor) -> Tensor:
    return torch.where(x <= 0, 0.0, x)


@handles("addcmul")
def addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    return x + (a * b) * value


@handles("addcdiv")
def addcdiv(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    return x + (a / b) * value


@handles("lerp")
def lerp(a: Tensor, b: Tensor, weight: Any) -> Tensor:
    d = b - a
    if not isinstance(weight, Tensor):
        return a + d * weight if abs(weight) < 0.5 else b - d * (1 - weight)
    return torch.where(weight.abs() < 0.5, a + d * weight, b - d * (1 - weight))


@handles("rsub.Tensor", "rsub.Scalar")
def rsub(a: Tensor, b: Any, alpha: float = 1) -> Tensor:
    x = a if alpha == 1 else multiplied(a, alpha, torch.result_type(a, b))
    if isinstance(b, Tensor) or _context.current().device is None:
        return b - x
    x = x.to(torch.result_type(x, b))  # before the negation: integers may not hold -x
    return -x + b  # has the same bits; b - x would call this handler again


def _where(outside: Tensor, bound: Tensor, x: Tensor) -> Tensor:
    """x, or the bound where `outside` says so. A bound that is NaN gives NaN."""
    nan = bound != bound
    all_of = bound.dim() or _context.current().device is not None or bool(nan)
    return torch.where(outside | nan if all_of else outside, bound, x)


def _bounded(x: Tensor, low: Any, high: Any) -> Tensor:
    if low is not None:
        x = _where(x < low, low, x)
    if high is not None:
        x = _where(x > high, high, x)
    return x


@handles("clamp", "hardtanh")
def clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Clamps by comparisons: torch's vector and scalar code disagree about the sign of zero."""
    kind = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    bounds = [
        b if b is None or isinstance(b, Tensor) else here.number(float(b), 0, kind)
        for b in (min, max)
    ]
    return _bounded(x, *bounds)


@handles("clamp_min")
def clamp_min(x: Tensor, min: Any) -> Tensor:
    return clamp(x, min)


@handles("clamp_max")
def clamp_max(x: Tensor, max: Any) -> Tensor:
    return clamp(x, None, max)


@handles("hardtanh_backward")
def hardtanh_backward(dy: Tensor, x: Tensor, low: float, high: float) -> Tensor:
    return torch.where((x > low) & (x < high), dy, 0.0)


def _larger(a: Tensor, b: Tensor, more: Tensor) -> Tensor:
    picked = torch.where(more | (a != a), a, b)
    return torch.where((a == 0) & (b == 0), a + b, picked)


@handles("maximum")
def maximum(a: Tensor, b: Tensor) -> Tensor:
    return _larger(a, b, a > b)


@handles("minimum")
def minimum(a: Tensor, b: Tensor) -> Tensor:
    return -_larger(-a, -b, a < b)


@handles("fmax")
def fmax(a: Tensor, b: Tensor) -> Tensor:
    """The maximum; where one operand is NaN, the other."""
    return torch.where(a != a, b, torch.where(b != b, a, maximum(a, b)))


@handles("fmin")
def fmin(a: Tensor, b: Tensor) -> Tensor:
    return torch.where(a != a, b, torch.where(b != b, a, minimum(a, b)))


@handles("aminmax")
def aminmax(x: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    dims = () if dim is None else dim
    return amin(x, dims, keepdim), amax(x, dims, keepdim)


@handles("amax")
def amax(x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """Adding +0 makes a zero maximum +0, whichever zero was found first."""
    return torch.amax(x, dim, keepdim) + 0.0


@handles("amin")
def amin(x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    return torch.amin(x, dim, keepdim) + 0.0


@handles("max.default")
def largest(x: Tensor) -> Tensor:
    return torch.max(x) + 0.0


@handles("min.default")
def smallest(x: Tensor) -> Tensor:
    return torch.min(x) + 0.0


@handles("arange.default", "arange.start", "arange.start_step")
def arange(*args: Any, **kwargs: Any) -> Tensor:
    """Elements that are not whole numbers: start + i * step in float64, rounded once."""
    dtype = kwargs.pop("dtype", None)
    start, end = (0, args[0]) if len(args) == 1 else args[:2]
    step = args[2] if len(args) > 2 else 1
    if all(isinstance(v, int) for v in (start, end, step)) and (
        dtype is None or not dtype.is_floating_point
    ):
        return here.arange(start, end, step, dtype=dtype, **kwargs)
    count = max(0, math.ceil((end - start) / step))
    x = here.arange(count).to(torch.float64) * float(step) + float(start)
    return x.to(dtype or torch.get_default_dtype())


@handles("linspace")
def linspace(start: float, end: float, steps: int, **kwargs: Any) -> Tensor:
    """start + i (end - start) / (steps - 1) in float64, rounded once; for integer types the
    quotient is computed in integers and truncated."""
    dtype = kwargs.get("dtype") or torch.get_default_dtype()
    if not dtype.is_floating_point:
        first, last, parts = int(start), int(end), max(1, steps - 1)
        sums = first * parts + here.arange(steps) * (last - first)
        return torch.div(sums, parts, rounding_mode="trunc").to(dtype)
    x = here.arange(steps).to(torch.float64) * ((end - start) / max(1, steps - 1)) + float(start)
    return x.to(dtype)


@handles("logspace")
def logspace(start: Any, end: Any, steps: int, base: float = 10.0, **kwargs: Any) -> Tensor:
    """base to the power of each element of linspace, both in float64, rounded once."""
    dtype = kwargs.get("dtype") or torch.get_default_dtype()
    if not dtype.is_floating_point:
        raise Leftover("its numbers are whole")
    x = linspace(float(start), float(end), steps, dtype=torch.float64)
    return pow64(torch.full_like(x, float(base)), x).to(dtype)


@handles("_efficientzerotensor")
def zeros_without_memory(size: Any, **how: Any) -> Tensor:
    """Zeros that have no memory, as the gradients of signs are. In a job, which records addresses,
    they are ordinary zeros."""
    if _context.current().job is None:
        return torch._efficientzerotensor(size, **how)
    return here.zeros(size, dtype=how.get("dtype"))


@handles("native_dropout_backward")
def dropout_backward(dy: Tensor, mask: Tensor, scale: float) -> Tensor:
    return dy * mask * scale


# ---- logarithms ----


@handles("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other")
def xlogy(x: Any, y: Any) -> Tensor:
    """x log(y); 0 where x is 0, unless y is NaN."""
    if not isinstance(y, Tensor):
        y = torch.full_like(x, y)
    log = elementwise("log", (), y if y.is_floating_point() else y.float())
    return torch.where(y != y, math.nan, torch.where(torch.eq(y * 0.0 + x, 0.0), 0.0, x * log))


@handles("logaddexp")
def logaddexp(a: Tensor, b: Tensor) -> Tensor:
    top, d = maximum(a, b), (a - b).abs()
    more = elementwise("log1p", (), elementwise("exp", (), -torch.where(a == b, 0.0, d)))
    return torch.where(top.abs() == math.inf, top, top + more)


@handles("logit")
def logit(x: Tensor, eps: float | None = None) -> Tensor:
    if eps is not None:  # with eps > 1/2 the bounds cross; the lower one is compared first
        x = torch.where(x < eps, eps, torch.where(x > 1 - eps, 1 - eps, x))
    return elementwise("log", (), x / (1.0 - x))


@handles("logit_backward")
def logit_backward(dy: Tensor, x: Tensor, eps: float | None = None) -> Tensor:
    slope = dy / (x * (1.0 - x))
    if eps is None:
        return torch.where((x < 0) | (x > 1), math.nan, slope)
    return torch.where((x < eps) | (x > 1 - eps), 0.0, slope)


@handles("atan2")
def atan2(y: Tensor, x: Tensor) -> Tensor:
    if torch.result_type(y, x) is torch.float64:
        return atan264(y.double(), x.double())
    return elementwise("atan2", (), y.float(), x.float())


# ---- whole quotients: in float64, where no quotient of float32s rounds to a whole number ----


def _whole(a: Any, b: Any, mode: str) -> tuple[Tensor, Tensor, Tensor]:
    a, b = (t if isinstance(t, Tensor) else here.number(float(t)) for t in (a, b))
    a, b = (t if t.is_floating_point() else t.float() for t in (a, b))
    need(a, b)
    a, b = a.to(torch.float64), b.to(torch.float64)
    q = a / b
    return a, b, q.floor() if mode == "floor" else q.trunc()


@handles("div.Tensor_mode", "div.Scalar_mode")
def divide(a: Tensor, b: Any, *, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is None:
        return a / b
    return _whole(a, b, rounding_mode)[2].to(torch.float32)


@handles("floor_divide")
def floor_divide(a: Tensor, b: Any) -> Tensor:
    return _whole(a, b, "floor")[2].to(torch.float32)


def _rest(a: Any, b: Any, mode: str) -> Tensor:
    a64, b64, q = _whole(a, b, mode)
    if bool(((q.abs() >= 2.0**29) & (q.abs() < math.inf)).any()):
        raise Leftover("its quotients are 2^29 or more, whose rest is not exact")
    rest = torch.where(q.abs() == math.inf, math.nan, a64 - q * b64)
    whole = torch.where((b64.abs() == math.inf) & (a64.abs() < math.inf) & (q == 0), a64, rest)
    return whole.to(torch.float32)


@handles("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(a: Any, b: Any) -> Tensor:
    return _rest(a, b, "floor")


@handles("fmod")
def fmod(a: Tensor, b: Any) -> Tensor:
    return _rest(a, b, "trunc")


@handles("deg2rad")
def radians(x: Tensor) -> Tensor:
    return (x if x.is_floating_point() else x.float()) * (math.pi / 180)


@handles("rad2deg")
def degrees(x: Tensor) -> Tensor:
    return (x if x.is_floating_point() else x.float()) * (180 / math.pi)


@handles("frac")
def frac(x: Tensor) -> Tensor:
    return x - x.trunc()
