"""Pools of images."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from ._movement import ints
from ._reductions import mean_of_images
from ._run import Call
from ._table import operator
from ._types import sized
from ._windows import Frame, frame, places, windows

Tensor = torch.Tensor
_MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_MEAN = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def _plain(f: Frame) -> bool:
    """Does torch have this pool? Its padding is equal on both sides, and at most half a window."""
    small = all(2 * b <= k for b, k in zip(f.before, f.kernel))
    return len(f.kernel) <= 3 and f.whole and small


def _ends(x: Tensor, f: Frame) -> bool:
    """Does every window end inside the padded image?"""
    return all(
        (s - 1) * t + (k - 1) * d + 1 <= n + 2 * b
        for s, t, k, d, n, b in zip(
            f.sizes, f.strides, f.kernel, f.dilations, x.shape[2:], f.before
        )
    )


@operator("MaxPool")
def _max_pool(n: Call, x: Tensor) -> Any:
    f = frame(n, x.shape[2:], n.need("kernel_shape", list), bool(n.get("ceil_mode", 0)))
    floats = x.dtype is torch.float32
    if floats and _plain(f) and _ends(x, f) and not n.has(1):
        return _MAX[len(f.kernel)](x, f.kernel, f.strides, f.before, f.dilations)
    fill = -math.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
    seen = windows(x, f, fill)
    if not n.has(1):
        return seen.amax(-1)
    return seen.amax(-1), _largest_places(n, x, f, seen)


def _largest_places(n: Call, x: Tensor, f: Frame, seen: Tensor) -> Tensor:
    """The flat index in x of the element that each window has taken."""
    shape, count = list(x.shape[2:]), len(f.kernel)
    by_columns = n.get("storage_order", 0)
    factors = [math.prod(shape[:a] if by_columns else shape[a + 1 :]) for a in range(count)]
    table = torch.zeros([1] * (2 * count), dtype=torch.int64)
    for a in range(count):
        own = (places(f, a) - f.before[a]) * factors[a]
        dims = [1] * (2 * count)
        dims[a], dims[count + a] = own.shape
        table = table + own.reshape(dims)
    table = table.flatten(count).expand(seen.shape)
    inside = table.gather(-1, seen.argmax(-1, keepdim=True)).squeeze(-1)
    planes = torch.arange(x.shape[0] * x.shape[1]) * math.prod(shape)
    return inside + planes.reshape(x.shape[0], x.shape[1], *[1] * count)


def _counts(x: Tensor, f: Frame, with_pads: bool) -> Tensor:
    """The number of elements that each window's mean counts."""
    image = torch.ones([1, 1, *x.shape[2:]])
    if with_pads:
        flat = [p for a in reversed(range(len(f.kernel))) for p in (f.before[a], f.after[a])]
        image = F.pad(image, flat, value=1.0)
        f = f._replace(before=[0] * len(f.kernel), after=[0] * len(f.kernel))
    return windows(image, f, 0.0).sum(-1)


@operator("AveragePool")
def _average_pool(n: Call, x: Tensor) -> Tensor:
    f = frame(n, x.shape[2:], n.need("kernel_shape", list), bool(n.get("ceil_mode", 0)))
    with_pads = bool(n.get("count_include_pad", 0))
    if _plain(f) and _ends(x, f) and set(f.dilations) == {1}:
        return _MEAN[len(f.kernel)](x, f.kernel, f.strides, f.before, count_include_pad=with_pads)
    return windows(x, f, 0.0).sum(-1) / _counts(x, f, with_pads)


@operator("LpPool")
def _lp_pool(n: Call, x: Tensor) -> Tensor:
    f = frame(n, x.shape[2:], n.need("kernel_shape", list), bool(n.get("ceil_mode", 0)))
    return _root(_power(windows(x.abs(), f, 0.0), n.get("p", 2)).sum(-1), n.get("p", 2))


def _power(x: Tensor, p: int) -> Tensor:
    return x if p == 1 else x * x if p == 2 else x.pow(p)


def _root(x: Tensor, p: int) -> Tensor:
    return x if p == 1 else x.sqrt() if p == 2 else x.pow(1.0 / p)


def _images(x: Tensor) -> list[int]:
    return list(range(2, x.dim()))


@operator("GlobalAveragePool")
def _global_mean(n: Call, x: Tensor) -> Tensor:
    return mean_of_images(x) if x.dim() == 4 else x.mean(_images(x), keepdim=True)


@operator("GlobalMaxPool")
def _global_max(n: Call, x: Tensor) -> Tensor:
    return x.amax(_images(x), keepdim=True)


@operator("GlobalLpPool")
def _global_lp(n: Call, x: Tensor) -> Tensor:
    p = n.get("p", 2)
    return _root(_power(x.abs(), p).sum(_images(x), keepdim=True), p)


@operator("MaxUnpool")
def _unpool(n: Call, x: Tensor, at: Tensor, shape: Any = None) -> Tensor:
    """Indices are flat, in a tensor of the shape that the pool's input had."""
    kernel = n.need("kernel_shape", list)
    count = len(kernel)
    strides, pads = n.get("strides", [1] * count), n.get("pads", [0] * (2 * count))
    own = [
        (d - 1) * s - (pads[a] + pads[count + a]) + k
        for a, (d, s, k) in enumerate(zip(x.shape[2:], strides, kernel))
    ]
    size = [*x.shape[:2], *own]
    y = torch.zeros(math.prod(sized(size, "its output")), dtype=x.dtype)
    y = y.scatter(0, at.reshape(-1), x.reshape(-1)).reshape(size)
    if shape is None:
        return y
    more = [w - d for w, d in zip(ints(shape), size)]
    return F.pad(y, [p for m in reversed(more) for p in (0, m)])
