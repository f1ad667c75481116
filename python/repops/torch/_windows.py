"""Windows of short-time transforms: cosines in float64, rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from . import _here as here
from ._functions import cos64
from ._registry import handles

Tensor = torch.Tensor


def _window(length: int, periodic: bool, factors: Sequence[float], dtype: Any) -> Tensor:
    """factors[0] + factors[1] cos(t) + factors[2] cos(2 t) ..., with t from 0 to a whole turn. A
    periodic window ends one element before the whole turn."""
    if length == 1:
        return here.ones(1)
    t = here.arange(length).to(torch.float64) * (2 * math.pi / max(1, length - 1 + periodic))
    y = here.full((length,), factors[0], dtype=torch.float64)
    for i, factor in enumerate(factors[1:], 1):
        y = y + factor * cos64(i * t)
    return y.to(dtype or torch.float32)


@handles("hann_window")
def hann(length: int, periodic: bool = True, *, dtype: Any = None, **_: Any) -> Tensor:
    return _window(length, periodic, (0.5, -0.5), dtype)


@handles("hamming_window")
def hamming(
    length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    **_: Any,
) -> Tensor:
    return _window(length, periodic, (alpha, -beta), dtype)


@handles("blackman_window")
def blackman(length: int, periodic: bool = True, *, dtype: Any = None, **_: Any) -> Tensor:
    return _window(length, periodic, (0.42, -0.5, 0.08), dtype)
