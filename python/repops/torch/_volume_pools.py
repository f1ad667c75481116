"""Pooling of volumes: maxima by the library's windows of images, means one axis at a time."""

from __future__ import annotations

import math
from typing import Any

import torch

from . import _here as here
from ._call import need, run
from ._layout import channels_first, channels_last
from ._pools import (
    adaptive_max_pool,
    adaptive_windows,
    added_at_places,
    batched,
    corners,
    mean_windows,
    means,
    means_backward,
    side_by_side,
    taps_of,
    widened,
    within,
)
from ._registry import handles
from ._volumes import Depth, triple

Tensor = torch.Tensor
TAPS_MOST = 4096  # the library's limit for taps of a window


def _window(kernel: Any, stride: Any, padding: Any) -> tuple[int, ...]:
    """Kernel, stride and padding, each for all three dimensions."""
    k = triple(kernel)
    return (*k, *(triple(stride) if stride else k), *triple(padding, 0))


# ---- maxima: over each depth's plane first, then along the depth ----


def _largest(a: Tensor, at: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Maxima of windows of images [N, H, W, C], and the tap that each came from."""
    return run("max_pool2d", at, (a,)), run("max_pool2d_index", at, (a,))


def _places(tap: Tensor, flat: tuple[int, ...], width: int) -> Tensor:
    """Flat indices in an image of this width of the taps [N, OH, OW, C]."""
    rows, cols = corners(tap.shape, flat)
    return taps_of(flat, width)[tap] + (rows * width + cols)


def _at_depth(places: Tensor, tap: Tensor, at: Depth, plane: int) -> Tensor:
    """Chooses from indices [N, D, OH OW, C] within planes of `plane` pixels those at the depth of
    `tap` [N, OD, OH OW, C], as flat indices in the volume."""
    places = places + (here.arange(at.size) * plane).reshape(-1, 1, 1)
    if at.padded != at.size:
        pad = [0, 0, 0, 0, at.pad, at.padded - at.size - at.pad]
        places = torch.constant_pad_nd(places, pad)
    chosen = places[:, slice(*at.seen(0))]
    for i in range(1, at.taps):
        chosen = torch.where(tap == i, places[:, slice(*at.seen(i))], chosen)
    return chosen


@handles("max_pool3d_with_indices")
@batched(4)
def max_pool(
    x: Tensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil: bool = False,
) -> tuple[Tensor, Tensor]:
    need(x)
    at = _window(kernel, stride, padding)
    if triple(dilation) != [1, 1, 1]:
        volumes, numbers = side_by_side(x, at, triple(dilation), ceil)
        y, places = max_pool(volumes, kernel)
        return y, numbers[places]
    (kd, *k), (sd, *s), (pd, *p) = at[:3], at[3:6], at[6:]
    a = channels_last(widened(x, at, ceil))
    n, size, _, _, c = a.shape
    flat = (*k, *s, *p)
    y, tap = _largest(a.flatten(0, 1), flat)
    shape = y.shape[1:3]
    lines = (n, size, shape.numel(), c)
    places = _places(tap, flat, x.shape[4]).reshape(lines)
    y, tap = _largest(y.reshape(lines), (kd, 1, sd, 1, pd, 0))
    depth = Depth(size, kd, sd, pd, 1, 1)
    places = within(_at_depth(places, tap, depth, x.shape[3] * x.shape[4]), x.shape[2:].numel())
    y, places = (channels_first(t.unflatten(2, shape), x) for t in (y, places))
    return y, places


@handles("adaptive_max_pool3d")
def adaptive_largest(x: Tensor, size: Any) -> tuple[Tensor, Tensor]:
    sizes = x.shape[-3:]
    even = all(out and n % out == 0 for n, out in zip(sizes, size))
    if even and math.prod(sizes) // math.prod(size) <= TAPS_MOST:
        kernel = [n // out for n, out in zip(sizes, size)]
        return max_pool(x, kernel)
    return adaptive_max_pool(x, size)


@handles("max_pool3d_with_indices_backward")
def max_pool_backward(dy: Tensor, x: Tensor, *window: Any) -> Tensor:
    need(dy, x)
    return added_at_places(dy, x, window[-1], 3)


@handles("adaptive_max_pool3d_backward")
def adaptive_max_pool_backward(dy: Tensor, x: Tensor, places: Tensor) -> Tensor:
    need(dy, x)
    return added_at_places(dy, x, places, 3)


# ---- means ----


@handles("avg_pool3d")
def avg_pool(
    x: Tensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil: bool = False,
    count_pad: bool = True,
    divisor: Any = None,
) -> Tensor:
    need(x)
    at = _window(kernel, stride, padding)
    return means(x, mean_windows(x.shape[-3:], at, ceil, count_pad), divisor)


@handles("avg_pool3d_backward")
def avg_pool_backward(
    dy: Tensor,
    x: Tensor,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil: bool,
    count_pad: bool,
    divisor: Any,
) -> Tensor:
    need(dy, x)
    at = _window(kernel, stride, padding)
    return means_backward(dy, x, mean_windows(x.shape[-3:], at, ceil, count_pad), divisor)


@handles("_adaptive_avg_pool3d")
def adaptive_pool(x: Tensor, size: Any) -> Tensor:
    need(x)
    return means(x, adaptive_windows(x, size))


@handles("_adaptive_avg_pool3d_backward")
def adaptive_pool_backward(dy: Tensor, x: Tensor) -> Tensor:
    need(dy, x)
    return means_backward(dy, x, adaptive_windows(x, dy.shape[-3:]))
