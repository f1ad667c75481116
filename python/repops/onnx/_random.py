"""Random operators. They draw by the job's seed; a node's own seed is ignored."""

from __future__ import annotations

from typing import Any

import torch

from ._run import Call
from ._table import operator
from ._types import sized, type_of

Tensor = torch.Tensor
_NOTE = "of the job's seed; a node's own seed is not read"


def _shape(n: Call, like: Any) -> tuple[int, ...]:
    return tuple(like.shape) if like is not None else sized(n.need("shape", list), "its shape")


def _typed(n: Call, x: Tensor) -> Tensor:
    return x.to(type_of(n.get("dtype", 1), "its dtype"))


@operator("RandomNormal", "RandomNormalLike", random=True, note=_NOTE)
def _normal(n: Call, like: Any = None) -> Tensor:
    return _typed(n, torch.randn(_shape(n, like)) * n.get("scale", 1.0) + n.get("mean", 0.0))


@operator("RandomUniform", "RandomUniformLike", random=True, note=_NOTE)
def _uniform(n: Call, like: Any = None) -> Tensor:
    low, high = n.get("low", 0.0), n.get("high", 1.0)
    return _typed(n, torch.rand(_shape(n, like)) * (high - low) + low)


@operator("Bernoulli", random=True, note=_NOTE)
def _bernoulli(n: Call, x: Tensor) -> Tensor:
    drawn = torch.rand(x.shape) < x
    number = n.get("dtype")
    return drawn.to(x.dtype if number is None else type_of(number, "its dtype"))


@operator("Multinomial", random=True, note=_NOTE)
def _multinomial(n: Call, x: Tensor) -> Tensor:
    drawn = torch.multinomial(torch.softmax(x, -1), n.get("sample_size", 1), replacement=True)
    return drawn.to(type_of(n.get("dtype", 6), "its dtype"))
