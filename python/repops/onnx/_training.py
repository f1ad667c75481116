"""Optimizer steps as operators: ai.onnx.preview.training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._library import Error
from ._run import Call
from ._table import operator, refuse

Tensor = torch.Tensor
TRAINING = "ai.onnx.preview.training"


def _each(parts: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Applies the function to several tensors: after rate and count, the inputs come in `parts`
    groups."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(n: Call, rate: Tensor, count: Tensor, *rest: Tensor) -> Any:
            many = len(rest) // parts
            if len(rest) != many * parts:
                raise Error(f"it has {len(rest)} tensors; expected a multiple of {parts}")
            made = [
                function(n, rate, count, *[rest[p * many + i] for p in range(parts)])
                for i in range(many)
            ]
            return tuple(m[p] for p in range(len(made[0])) for m in made)

        call.__module__ = __name__
        return call

    return wrap


@operator("Adagrad", domain=TRAINING)
@_each(3)
def _adagrad(n: Call, rate: Tensor, count: Tensor, x: Tensor, g: Tensor, h: Tensor) -> Any:
    rate = rate / (1 + count.to(torch.float32) * n.get("decay_factor", 0.0))
    g = x * n.get("norm_coefficient", 0.0) + g
    h = h + g * g
    return x - rate * g / (h.sqrt() + n.get("epsilon", 0.0)), h


@operator("Momentum", domain=TRAINING)
@_each(3)
def _momentum(n: Call, rate: Tensor, count: Tensor, x: Tensor, g: Tensor, v: Tensor) -> Any:
    g = x * n.need("norm_coefficient", float) + g
    alpha = n.need("alpha", float)
    beta = torch.where(count > 0, torch.full((), n.need("beta", float)), torch.ones(()))
    v = v * alpha + g * beta
    if n.need("mode", str) == "nesterov":
        return x - rate * (g + v * alpha), v
    return x - rate * v, v


@operator("Adam", domain=TRAINING, note="the count is read")
@_each(4)
def _adam(n: Call, rate: Tensor, count: Tensor, x: Tensor, g: Tensor, v: Tensor, h: Tensor) -> Any:
    alpha, beta, turn = n.get("alpha", 0.9), n.get("beta", 0.999), int(count)
    g = x * n.get("norm_coefficient", 0.0) + g
    v, h = v * alpha + g * (1 - alpha), h * beta + g * g * (1 - beta)
    if turn > 0:
        rate = rate * ((1 - beta**turn) ** 0.5 / (1 - alpha**turn))
    x = x - rate * (v / (h.sqrt() + n.get("epsilon", 0.0)))
    return x * (1 - n.get("norm_coefficient_post", 0.0)), v, h


refuse("torch's autograd computes gradients; see --train", "Gradient", domain=TRAINING)
