"""Activations and their gradients."""

from __future__ import annotations

import torch

from ._call import elementwise
from ._elements import clamp
from ._registry import handles, of_float64

Tensor = torch.Tensor


@handles("gelu")
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return elementwise("gelu_erf" if approximate == "none" else "gelu", (), x)


@handles("gelu_backward")
def gelu_backward(dy: Tensor, x: Tensor, *, approximate: str = "none") -> Tensor:
    return elementwise("gelu_erf_grad" if approximate == "none" else "gelu_grad", (), x, dy)


@of_float64("leaky_relu")
def leaky_relu(x: Tensor, slope: float = 0.01) -> Tensor:
    return torch.where(x > 0, x, x * slope)


@of_float64("leaky_relu_backward")
def leaky_relu_backward(dy: Tensor, x: Tensor, slope: float, is_result: bool) -> Tensor:
    return torch.where(x > 0, dy, dy * slope)


@of_float64("softshrink")
def softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    return torch.where(x > lambd, x - lambd, torch.where(x < -lambd, x + lambd, x * 0.0))


@of_float64("softshrink_backward")
def softshrink_backward(dy: Tensor, x: Tensor, lambd: float) -> Tensor:
    return torch.where((x >= -lambd) & (x <= lambd), 0.0, dy)


@handles("elu")
def elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    return torch.where(
        x > 0, x * scale, elementwise("expm1", (), x * input_scale) * (alpha * scale)
    )


@handles("celu")
def celu(x: Tensor, alpha: float = 1) -> Tensor:
    return elu(x, alpha, 1, 1 / alpha)


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
    z = x * beta
    y = elementwise("log1p", (), elementwise("exp", (), torch.where(z > threshold, threshold, z)))
    return torch.where(z > threshold, x, y / beta)


@handles("softplus_backward")
def softplus_backward(dy: Tensor, x: Tensor, beta: float, threshold: float) -> Tensor:
    slope = elementwise("sigmoid", (), x * beta)
    return torch.where(x * beta > threshold, dy, dy * slope)


@handles("log_sigmoid_forward")
def log_sigmoid(x: Tensor) -> tuple[Tensor, Tensor]:
    z = elementwise("exp", (), -x.abs())
    return clamp(x, None, 0.0) - elementwise("log1p", (), z), z


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


def _tanh_of_softplus(x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns tanh(softplus(x)) and 1 minus it: n / (n + 2) and 2 / (n + 2) with n = e (e + 2), e =
    exp(x)."""
    e = elementwise("exp", (), clamp(x, None, 20.0))
    n = e * (e + 2.0)
    return n / (n + 2.0), 2.0 / (n + 2.0)


@handles("mish")
def mish(x: Tensor) -> Tensor:
    return x * _tanh_of_softplus(x)[0]


@handles("mish_backward")
def mish_backward(dy: Tensor, x: Tensor) -> Tensor:
    t, less = _tanh_of_softplus(x)
    return dy * (t + x * elementwise("sigmoid", (), x) * (less * (1.0 + t)))


@handles("glu")
def glu(x: Tensor, dim: int = -1) -> Tensor:
    a, b = x.chunk(2, dim)
    return a * elementwise("sigmoid", (), b)


@handles("glu_backward")
def glu_backward(dy: Tensor, x: Tensor, dim: int) -> Tensor:
    a, b = x.chunk(2, dim)
    s = elementwise("sigmoid", (), b)
    return torch.cat([dy * s, elementwise("sigmoid_grad", (), s, dy * a)], dim)


# torch's vector code takes a NaN as small here, but its code for single elements does not.
@handles("hardshrink")
def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    return torch.where((x >= -lambd) & (x <= lambd), 0.0, x)


@handles("hardshrink_backward")
def hardshrink_backward(dy: Tensor, x: Tensor, lambd: float) -> Tensor:
    return torch.where((x >= -lambd) & (x <= lambd), 0.0, dy)


@handles("threshold")
def threshold(x: Tensor, least: float, value: float) -> Tensor:
    return torch.where(x <= least, value, x)
