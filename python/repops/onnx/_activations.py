"""Activations."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from ._run import Call
from ._table import operator

Tensor = torch.Tensor


@operator("LeakyRelu")
def _leaky(n: Call, x: Tensor) -> Tensor:
    return F.leaky_relu(x, n.get("alpha", 0.01))


@operator("Elu")
def _elu(n: Call, x: Tensor) -> Tensor:
    return F.elu(x, n.get("alpha", 1.0))


@operator("Celu")
def _celu(n: Call, x: Tensor) -> Tensor:
    return F.celu(x, n.get("alpha", 1.0))


@operator("Selu")
def _selu(n: Call, x: Tensor) -> Tensor:
    alpha, gamma = n.get("alpha", 1.6732632423543772), n.get("gamma", 1.0507009873554805)
    return gamma * F.elu(x, alpha)


@operator("HardSigmoid")
def _hard_sigmoid(n: Call, x: Tensor) -> Tensor:
    return (x * n.get("alpha", 0.2) + n.get("beta", 0.5)).clamp(0.0, 1.0)


@operator("HardSwish")
def _hard_swish(n: Call, x: Tensor) -> Tensor:
    return F.hardswish(x)


@operator("Mish")
def _mish(n: Call, x: Tensor) -> Tensor:
    return F.mish(x)


@operator("Softplus")
def _softplus(n: Call, x: Tensor) -> Tensor:
    return F.softplus(x)


@operator("Softsign")
def _softsign(n: Call, x: Tensor) -> Tensor:
    return x / (1.0 + x.abs())


@operator("ThresholdedRelu")
def _thresholded(n: Call, x: Tensor) -> Tensor:
    return torch.where(x > n.get("alpha", 1.0), x, torch.zeros(()))


@operator("Shrink")
def _shrink(n: Call, x: Tensor) -> Tensor:
    bias, edge = n.get("bias", 0.0), n.get("lambd", 0.5)
    zero = torch.zeros((), dtype=x.dtype)
    bias = bias if x.dtype.is_floating_point else int(bias)
    return torch.where(x < -edge, x + bias, torch.where(x > edge, x - bias, zero))


@operator("Gelu")
def _gelu(n: Call, x: Tensor) -> Tensor:
    return F.gelu(x, approximate=n.get("approximate", "none"))


def swish(x: Tensor, alpha: float) -> Tensor:
    return F.silu(x) if alpha == 1.0 else x * torch.sigmoid(alpha * x)


@operator("Swish")
def _swish(n: Call, x: Tensor) -> Tensor:
    return swish(x, n.get("alpha", 1.0))


@operator("SwiGLU")
def _swiglu(n: Call, a: Tensor, b: Tensor) -> Tensor:
    return swish(a, n.get("alpha", 1.0)) * b


@operator("PRelu")
def _prelu(n: Call, x: Tensor, slope: Tensor) -> Tensor:
    return torch.where(x < 0, x * slope, x)


@operator("Softmax")
def _softmax(n: Call, x: Tensor) -> Tensor:
    return torch.softmax(x, n.get("axis", -1))


@operator("LogSoftmax")
def _log_softmax(n: Call, x: Tensor) -> Tensor:
    return torch.log_softmax(x, n.get("axis", -1))


@operator("Hardmax")
def _hardmax(n: Call, x: Tensor) -> Tensor:
    axis = n.get("axis", -1) % x.dim()
    places = torch.arange(x.shape[axis]).reshape([-1] + [1] * (x.dim() - axis - 1))
    return (places == x.argmax(axis, keepdim=True)).to(x.dtype)


@operator("Dropout", random=True, note="the mask is drawn where training_mode is true")
def _dropout(n: Call, x: Tensor, ratio: Any = None, training: Any = None) -> Any:
    p = 0.5 if ratio is None else float(ratio)
    if training is None or not bool(training) or p == 0:
        return x, torch.ones(x.shape, dtype=torch.bool)
    kept = torch.rand(x.shape) >= p
    return torch.where(kept, x, torch.zeros(())) / (1 - p), kept
