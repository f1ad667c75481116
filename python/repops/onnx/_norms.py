"""Normalizations."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from .._library import Error
from ..torch.functional import rms_norm
from ._run import Call
from ._table import operator

Tensor = torch.Tensor


def _channels(t: Tensor, x: Tensor) -> Tensor:
    """Reshapes a value for each channel to [c, 1, ...]."""
    return t.reshape([-1] + [1] * (x.dim() - 2))


@operator("BatchNormalization", note="training_mode: of the batch")
def _batch_norm(
    n: Call, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor
) -> Any:
    eps, momentum = n.get("epsilon", 1e-5), n.get("momentum", 0.9)
    if not n.get("training_mode", 0):
        return F.batch_norm(x, mean, variance, scale, bias, False, 0.0, eps)
    axes = [0, *range(2, x.dim())]
    own = x.mean(axes)
    spread = (x - _channels(own, x)).square().mean(axes)
    y = F.batch_norm(x, None, None, scale, bias, True, 0.0, eps)
    running = [mean * momentum + own.detach() * (1 - momentum)]
    running.append(variance * momentum + spread.detach() * (1 - momentum))
    n.run.moved.update(zip(n.node.inputs[3:5], running))
    return y, *running


@operator("InstanceNormalization")
def _instance_norm(n: Call, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    return F.instance_norm(x, weight=scale, bias=bias, eps=n.get("epsilon", 1e-5))


@operator("LayerNormalization")
def _layer_norm(n: Call, x: Tensor, scale: Tensor, bias: Any = None) -> Any:
    axis, eps = n.get("axis", -1) % x.dim(), n.get("epsilon", 1e-5)
    shape = list(x.shape[axis:])
    if scale.numel() == math.prod(shape) and (bias is None or bias.shape == scale.shape):
        own = None if bias is None else bias.reshape(shape)
        y = F.layer_norm(x, shape, scale.reshape(shape), own, eps)
    else:
        y = F.layer_norm(x, shape, eps=eps) * scale
        y = y if bias is None else y + bias
    if not n.has(1) and not n.has(2):
        return y
    axes = list(range(axis, x.dim()))
    mean = x.mean(axes, keepdim=True)
    return y, mean, torch.rsqrt((x - mean).square().mean(axes, keepdim=True) + eps)


@operator("RMSNormalization")
def _rms_norm(n: Call, x: Tensor, scale: Tensor) -> Tensor:
    axis, eps = n.get("axis", -1) % x.dim(), n.get("epsilon", 1e-5)
    shape = list(x.shape[axis:])
    if list(scale.shape) == shape and len(shape) == 1 and x.dtype is torch.float32:
        return rms_norm(x, scale, eps)
    if list(scale.shape) == shape:
        return F.rms_norm(x, shape, scale, eps)
    return F.rms_norm(x, shape, None, eps) * scale


@operator("GroupNormalization")
def _group_norm(n: Call, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    groups, eps = n.need("num_groups"), n.get("epsilon", 1e-5)
    if scale.numel() == groups != x.shape[1]:  # until opset 20 there is one for each group
        scale, bias = (t.repeat_interleave(x.shape[1] // groups) for t in (scale, bias))
    return F.group_norm(x, groups, scale, bias, eps)


@operator("LpNormalization")
def _lp_norm(n: Call, x: Tensor) -> Tensor:
    axis, p = n.get("axis", -1), n.get("p", 2)
    if p not in (1, 2):
        raise Error(f"p is {p}; expected 1 or 2")
    size = x.abs() if p == 1 else x * x
    norm = size.sum(axis, keepdim=True)
    norm = norm if p == 1 else norm.sqrt()
    return torch.where(norm == 0, torch.zeros(()), x / norm)


@operator("MeanVarianceNormalization")
def _mean_variance(n: Call, x: Tensor) -> Tensor:
    axes = n.get("axes", [0, 2, 3])
    x = x - x.mean(axes, keepdim=True)
    return x / (x.square().mean(axes, keepdim=True).sqrt() + 1e-9)


@operator("LRN")
def _lrn(n: Call, x: Tensor) -> Tensor:
    size, alpha, beta = n.need("size"), n.get("alpha", 1e-4), n.get("beta", 0.75)
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = F.pad((x * x).movedim(1, -1), [before, after])
    count, total = x.shape[1], None
    for i in range(size):
        part = squares.narrow(-1, i, count)
        total = part if total is None else total + part
    if total is None:
        raise Error("size is 0")
    base = total.movedim(-1, 1) * (alpha / size) + n.get("bias", 1.0)
    return x / base.pow(beta)
