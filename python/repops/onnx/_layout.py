"""Images with channels last in memory: elementwise operators compute in that layout, so that
nothing is copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor


def lies_by_pixels(t: Any) -> bool:
    """Is it an image in channels-last layout only, that is, with several channels and pixels?"""
    return (
        isinstance(t, Tensor)
        and t.dim() == 4
        and not t.is_contiguous()
        and t.is_contiguous(memory_format=torch.channels_last)
    )


def _by_pixels(t: Tensor) -> Tensor:
    """As [n, h, w, c]; missing leading dimensions become 1."""
    return t.reshape([1] * (4 - t.dim()) + list(t.shape)).permute(0, 2, 3, 1)


def as_they_lie(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """Applies an elementwise function, which broadcasts, in the inputs' layout."""
    if not any(map(lies_by_pixels, inputs)) or any(t.dim() > 4 for t in inputs):
        return function(*inputs)
    own = [_by_pixels(t) if t.dim() else t for t in inputs]
    return function(*own).permute(0, 3, 1, 2)


def joined(inputs: Any, axis: int) -> Tensor:
    """Concatenates along an axis, in the inputs' layout."""
    if not all(t.dim() == 4 for t in inputs) or not any(map(lies_by_pixels, inputs)):
        return torch.cat(inputs, axis)
    own = [_by_pixels(t) for t in inputs]
    return torch.cat(own, (0, 3, 1, 2)[axis]).permute(0, 3, 1, 2)
