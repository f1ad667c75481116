"""Operators of elements: activations, their gradients, clamping, and what torch contracts."""

from __future__ import annotations

import math
from typing import Any

import torch

from ._call import elementwise, elementwise_
from ._functions import expm164, log1p64, narrow
from ._registry import handles

Tensor = torch.Tensor


def _unary() -> None:
    for name in ("exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "silu", "relu"):
        handles(name)(
            lambda x, n=name: elementwise(n, (), x if x.is_floating_point() else x.float())
        )


_unary()


@handles("relu_")
def relu_(x: Tensor) -> Tensor:
    return elementwise_("relu", (), x)


@handles("gelu")
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return elementwise("gelu_erf" if approximate == "none" else "gelu", (), x)


@handles("gelu_backward")
def gelu_backward(dy: Tensor, x: Tensor, *, approximate: str = "none") -> Tensor:
    return elementwise("gelu_erf_grad" if approximate == "none" else "gelu_grad", (), x, dy)


@handles("silu_backward")
def silu_backward(dy: Tensor, x: Tensor) -> Tensor:
    return elementwise("silu_grad", (), x, dy)


@handles("tanh_backward")
def tanh_backward(dy: Tensor, y: Tensor) -> Tensor:
    return elementwise("tanh_grad", (), y, dy)


@handles("sigmoid_backward")
def sigmoid_backward(dy: Tensor, y: Tensor) -> Tensor:
    return elementwise("sigmoid_grad", (), y, dy)


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
    return b - (a if alpha == 1 else a * alpha)


def _bounded(x: Tensor, low: Any, high: Any) -> Tensor:
    if low is not None:
        x = torch.where(x < low, low, x)
    if high is not None:
        x = torch.where(x > high, high, x)
    return x


@handles("clamp", "hardtanh")
def clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """By comparisons: vectors and single elements disagree about the sign of a zero otherwise."""
    bounds = [
        b if b is None or isinstance(b, Tensor) else torch.tensor(float(b)) for b in (min, max)
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


@handles("amax")
def amax(x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """Adding +0 gives a largest zero one sign, whichever zero was found first."""
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


@handles("leaky_relu")
def leaky_relu(x: Tensor, slope: float = 0.01) -> Tensor:
    return torch.where(x > 0, x, x * slope)


@handles("leaky_relu_backward")
def leaky_relu_backward(dy: Tensor, x: Tensor, slope: float, is_result: bool) -> Tensor:
    return torch.where(x > 0, dy, dy * slope)


@handles("elu")
def elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    return torch.where(x > 0, x * scale, narrow(expm164, x * input_scale) * (alpha * scale))


@handles("elu_backward")
def elu_backward(
    dy: Tensor, alpha: float, scale: float, input_scale: float, is_result: bool, x: Tensor
) -> Tensor:
    below = (
        x + alpha * scale
        if is_result
        else elementwise("exp", (), x * input_scale) * (alpha * scale)
    )
    return torch.where(x > 0, dy * scale, dy * (below * input_scale))


@handles("softplus")
def softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    y = narrow(
        log1p64, elementwise("exp", (), _bounded(x * beta, None, torch.tensor(float(threshold))))
    )
    return torch.where(x * beta > threshold, x, y / beta)


@handles("softplus_backward")
def softplus_backward(dy: Tensor, x: Tensor, beta: float, threshold: float) -> Tensor:
    slope = elementwise("sigmoid", (), x * beta)
    return torch.where(x * beta > threshold, dy, dy * slope)


@handles("log_sigmoid_forward")
def log_sigmoid(x: Tensor) -> tuple[Tensor, Tensor]:
    z = elementwise("exp", (), -x.abs())
    return clamp(x, None, 0.0) - narrow(log1p64, z), z


@handles("log_sigmoid_backward")
def log_sigmoid_backward(dy: Tensor, x: Tensor, buffer: Tensor) -> Tensor:
    return dy * elementwise("sigmoid", (), -x)


@handles("hardsigmoid")
def hardsigmoid(x: Tensor) -> Tensor:
    return clamp(x + 3.0, 0.0, 6.0) / 6.0


@handles("hardsigmoid_backward")
def hardsigmoid_backward(dy: Tensor, x: Tensor) -> Tensor:
    return torch.where((x > -3) & (x < 3), dy / 6.0, 0.0)


@handles("hardswish")
def hardswish(x: Tensor) -> Tensor:
    return x * clamp(x + 3.0, 0.0, 6.0) / 6.0


@handles("hardswish_backward")
def hardswish_backward(dy: Tensor, x: Tensor) -> Tensor:
    inside = dy * (x / 3.0 + 0.5)
    return torch.where(x <= -3, 0.0, torch.where(x < 3, inside, dy))


@handles("arange.default", "arange.start", "arange.start_step")
def arange(*args: Any, **kwargs: Any) -> Tensor:
    """Numbers that are not whole: each is start + i step in float64, rounded once."""
    dtype = kwargs.pop("dtype", None)
    start, end = (0, args[0]) if len(args) == 1 else args[:2]
    step = args[2] if len(args) > 2 else 1
    if all(isinstance(v, int) for v in (start, end, step)) and (
        dtype is None or not dtype.is_floating_point
    ):
        return torch.arange(start, end, step, dtype=dtype, **kwargs)
    count = max(0, math.ceil((end - start) / step))
    x = torch.arange(count).to(torch.float64) * float(step) + float(start)
    return x.to(dtype or torch.get_default_dtype())


@handles("linspace")
def linspace(start: float, end: float, steps: int, **kwargs: Any) -> Tensor:
    """Each is start + i (end - start) / (steps - 1) in float64, rounded once."""
    dtype = kwargs.get("dtype") or torch.get_default_dtype()
    x = torch.arange(steps).to(torch.float64) * ((end - start) / max(1, steps - 1)) + float(start)
    return x.to(dtype)


@handles("native_dropout_backward")
def dropout_backward(dy: Tensor, mask: Tensor, scale: float) -> Tensor:
    return dy * mask * scale
