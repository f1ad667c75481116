"""Pooling of windows that begin at random places, chosen as PyTorch chooses them."""

from __future__ import annotations

import math
from typing import Any

import torch

from . import _here as here
from ._axes import like
from ._call import need
from ._grids import whole_within
from ._pools import added_at_places, within
from ._registry import handles

Tensor = torch.Tensor


def _begins(sample: Tensor, n: int, k: int, out: int) -> Tensor:
    """The first index of each window of k among n elements, [..., out], for samples [...] in [0,
    1)."""
    last = here.full([*sample.shape, 1], n - k, dtype=torch.int64)
    if out == 1:
        return last
    step = here.tensor(float(n - k)) / here.tensor(float(out - 1))
    sample = sample.unsqueeze(-1)
    first = whole_within(sample * step, n - k + 1)
    begins = whole_within((here.arange(out - 1) + sample) * step, n - k + 1) - first
    return torch.cat([begins, last], -1)


def _places(samples: Tensor, sizes: Any, kernel: Any, out: Any) -> Tensor:
    """Indices of all windows' elements, [..., windows, elements], the last dimension fastest."""
    places = here.zeros([*samples.shape[:-1], 1, 1], dtype=torch.int64)
    for i, (n, k, o) in enumerate(zip(sizes, kernel, out)):
        at = _begins(samples[..., i], n, k, o).unsqueeze(-1) + here.arange(k)
        places = places[..., :, None, :, None] * n + at[..., None, :, None, :]
        places = places.flatten(-2).flatten(-3, -2)
    return places


@handles("fractional_max_pool2d", "fractional_max_pool3d")
def fractional_max_pool(x: Tensor, kernel: Any, out: Any, samples: Tensor) -> Any:
    need(x, samples)
    dims = samples.shape[-1]
    kept, sizes = x.shape[: x.dim() - dims], x.shape[x.dim() - dims :]
    samples = samples.reshape(*kept, dims)
    if dims == 2:  # an image's first sample is for its columns
        samples = samples.flip(-1)
    kernel, out = (list(v) * (dims // len(v)) for v in (kernel, out))
    places = within(_places(samples, sizes, kernel, out), math.prod(sizes))
    own = x.flatten(-dims).gather(-1, places.flatten(-2)).reshape(places.shape)
    y, at = own.max(-1, True)
    shape = [*kept, *out]
    place = places.gather(-1, at)
    return like(y.reshape(shape), x), like(place.reshape(shape), x)


@handles("fractional_max_pool2d_backward", "fractional_max_pool3d_backward")
def fractional_max_pool_backward(
    dy: Tensor, x: Tensor, kernel: Any, out: Any, places: Tensor
) -> Tensor:
    need(dy, x)
    return like(added_at_places(dy, x, places, len(out)), x)
