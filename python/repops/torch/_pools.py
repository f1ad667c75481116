"""Pooling of images, whose windows are the library's where they are of one size."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .. import _context
from ._axes import Taps, adaptive_spans, gathered, like, spread, window_taps
from ._call import Leftover, need, run
from ._images import pair
from ._indexing import scatter_add
from ._layout import channels_first, channels_last
from ._registry import handles

Tensor = torch.Tensor


def _batched(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for an image [C, H, W]."""

    @functools.wraps(function)
    def both(x: Tensor, *more: Any, **named: Any) -> Any:
        if x.dim() != 3:
            return function(x, *more, **named)
        more = tuple(t.unsqueeze(0) if isinstance(t, Tensor) else t for t in more)
        result = function(x.unsqueeze(0), *more, **named)
        return tuple(t[0] for t in result) if isinstance(result, tuple) else result[0]

    return both


def _window(x: Tensor, kernel: Any, stride: Any, padding: Any) -> tuple[int, ...]:
    if x.dim() != 4:
        raise Leftover(f"its input has {x.dim()} dimensions; [N, C, H, W] is supported")
    k = pair(kernel)
    s, p = pair(stride) if stride else k, pair(padding, 0)
    return (*k, *s, *p)


def _beyond(x: Tensor, at: Sequence[int], ceil: bool) -> list[int]:
    """How many rows and columns windows reach beyond the padded image; of ceil_mode alone."""
    extra = []
    for i in (0, 1):
        n, k, s, p = x.shape[2 + i], at[i], at[2 + i], at[4 + i]
        over = (n + 2 * p - k) % s
        # A window that begins in the padding after the image is none.
        begins = n + 2 * p - k - over + s
        extra.append(s - over if ceil and over and begins < n + p else 0)
    return extra


def _corners(shape: Sequence[int], at: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Row and column of the first tap of each window of [N, OH, OW, C]."""
    rows = torch.arange(shape[1]).reshape(1, -1, 1, 1) * at[2] - at[4]
    return rows, torch.arange(shape[2]).reshape(1, 1, -1, 1) * at[3] - at[5]


def _taps(at: Sequence[int], width: int) -> Tensor:
    """How far from a window's first tap each lies, in an image of this width."""
    taps = torch.arange(at[0] * at[1])
    return taps // at[1] * width + taps % at[1]


def _within(place: Tensor, count: int) -> Tensor:
    """The same places, with bounds for the program of a job."""
    return place if _context.current().job is None else place.clamp(0, count - 1)


def _tap_of(place: Tensor, at: Sequence[int], height: int, width: int) -> Tensor:
    """Which tap of its window each place of [N, OH, OW, C] is."""
    rows, cols = _corners(place.shape, at)
    if at[1] > width:  # taps of two rows may lie as far as each other
        every, place = torch.arange(height * width), _within(place, height * width)
        tap = ((every // width)[place] - rows) * at[1] + ((every % width)[place] - cols)
        return tap.to(torch.int32)
    taps = _taps(at, width)
    table = torch.zeros(int(taps[-1]) + 1, dtype=torch.int32)
    table[taps] = torch.arange(len(taps), dtype=torch.int32)
    return table[_within(place - (rows * width + cols), len(table))]


def _widened(x: Tensor, at: Sequence[int], ceil: bool) -> Tensor:
    more = _beyond(x, at, ceil)
    if not any(more):
        return x
    return torch.constant_pad_nd(x, [0, more[1], 0, more[0]], -float("inf"))


@handles("max_pool2d_with_indices")
@_batched
def max_pool(
    x: Tensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil: bool = False,
) -> Any:
    need(x)
    at = _window(x, kernel, stride, padding)
    if pair(dilation) != [1, 1]:
        raise Leftover("its windows are dilated")
    a = channels_last(_widened(x, at, ceil))
    y = run("max_pool2d", at, (a,))
    tap = run("max_pool2d_index", at, (a,))
    rows, cols = _corners(y.shape, at)
    places = _taps(at, x.shape[3])[tap].add_(rows * x.shape[3] + cols)
    return channels_first(y, x), channels_first(places, x)


@handles("max_pool2d_with_indices_backward")
@_batched
def max_pool_backward(
    dy: Tensor,
    x: Tensor,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: bool,
    places: Tensor,
) -> Tensor:
    need(dy, x)
    at = _window(x, kernel, stride, padding)
    place = channels_last(places)
    tap = _tap_of(place, at, x.shape[2], x.shape[3])
    more = _beyond(x, at, ceil)
    shape = [x.shape[0], x.shape[2] + more[0], x.shape[3] + more[1], x.shape[1]]
    dx = run("max_pool2d_grad", at, (channels_last(dy), tap), shape)
    return channels_first(dx[:, : x.shape[2], : x.shape[3]].contiguous(), x)


def _window_of(x: Tensor, rows: Any, cols: Any) -> tuple[Tensor, Tensor]:
    """The first of the largest elements of a window, and its place in the image."""
    window = x[..., rows[0] : rows[1], cols[0] : cols[1]].flatten(-2)
    at = window.max(-1, True)[1]
    width = cols[1] - cols[0]
    place = (rows[0] + at // width) * x.shape[-1] + cols[0] + at % width
    return window.gather(-1, at)[..., 0], place[..., 0]


@handles("adaptive_max_pool2d")
def adaptive_max_pool(x: Tensor, size: Any) -> tuple[Tensor, Tensor]:
    need(x)
    spans = [adaptive_spans(x.shape[i - 2], size[i]) for i in (0, 1)]
    found = [_window_of(x, rows, cols) for rows in spans[0] for cols in spans[1]]
    shape = [*x.shape[:-2], *size]
    y, places = (torch.stack(parts, -1).reshape(shape) for parts in zip(*found))
    return like(y, x), like(places, x)


@handles("adaptive_max_pool2d_backward")
def adaptive_max_pool_backward(dy: Tensor, x: Tensor, places: Tensor) -> Tensor:
    need(dy, x)
    dx = torch.zeros([*x.shape[:-2], x.shape[-2] * x.shape[-1]])
    return like(scatter_add(dx, -1, places.flatten(-2), dy.flatten(-2)).reshape(x.shape), x)


@handles("max_unpool2d", "max_unpool3d")
def max_unpool(x: Tensor, places: Tensor, size: Any, *ignored: Any) -> Tensor:
    """Of several elements for one place the last stays."""
    dims = len(size)
    y = torch.zeros([*x.shape[:-dims], math.prod(size)], dtype=x.dtype)
    y = y.scatter(-1, places.flatten(-dims), x.flatten(-dims))
    return y.reshape(*x.shape[:-dims], *size)


# ---- means ----

Sides = list[tuple[int, Taps, Tensor]]  # dimension, taps, and how many elements a window counts


def _side(dim: int, n: int, spans: tuple, counts: list[int]) -> tuple[int, Taps, Tensor]:
    return dim, window_taps(n, spans), torch.tensor(counts, dtype=torch.float32)


def _mean_windows(x: Sequence[int], at: Sequence[int], ceil: bool, count_pad: bool) -> Sides:
    sides = []
    for i in (1, 0):
        n, k, s, p = x[i], at[i], at[2 + i], at[4 + i]
        out = -(-(n + 2 * p - k) // s) + 1 if ceil else (n + 2 * p - k) // s + 1
        out -= ceil and (out - 1) * s >= n + p
        spans = tuple((j * s - p, j * s - p + k) for j in range(out))
        count = [min(b, n + p) - a if count_pad else min(b, n) - max(a, 0) for a, b in spans]
        sides.append(_side(i - 2, n, spans, count))
    return sides


def _sizes(sides: Sides, divisor: Any) -> Any:
    return float(divisor) if divisor else sides[1][2][:, None] * sides[0][2]


def _means(x: Tensor, sides: Sides, divisor: Any = None) -> Tensor:
    """Sums along rows, then along columns, divided by the windows' sizes."""
    y = x
    for dim, taps, _ in sides:
        y = gathered(y, dim % x.dim(), taps)
    return like(y / _sizes(sides, divisor), x)


def _means_backward(dy: Tensor, x: Tensor, sides: Sides, divisor: Any = None) -> Tensor:
    dx = dy / _sizes(sides, divisor)
    for dim, taps, _ in reversed(sides):
        dx = spread(dx, dim % x.dim(), x.shape[dim], taps)
    return like(dx, x)


def _uneven(x: Tensor, at: Sequence[int], ceil: bool, divisor: Any) -> bool:
    return divisor is not None or any(_beyond(x, at, ceil))


@handles("avg_pool2d")
@_batched
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
    at = _window(x, kernel, stride, padding)
    if _uneven(x, at, ceil, divisor):
        return _means(x, _mean_windows(x.shape[2:], at, ceil, count_pad), divisor)
    return channels_first(run("avg_pool2d", (*at, int(count_pad)), (channels_last(x),)), x)


@handles("avg_pool2d_backward")
@_batched
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
    at = _window(x, kernel, stride, padding)
    if _uneven(x, at, ceil, divisor):
        sides = _mean_windows(x.shape[2:], at, ceil, count_pad)
        return _means_backward(dy, x, sides, divisor)
    shape = [x.shape[0], x.shape[2], x.shape[3], x.shape[1]]
    return channels_first(
        run("avg_pool2d_grad", (*at, int(count_pad)), (channels_last(dy),), shape), x
    )


def _kernel(x: Tensor, size: Any) -> list[int] | None:
    """The windows' size; None: they are of several."""
    if x.dim() != 4 or any(x.shape[2 + i] % size[i] for i in (0, 1)):
        return None
    return [x.shape[2 + i] // size[i] for i in (0, 1)]


def _adaptive_windows(x: Tensor, size: Any) -> Sides:
    sides = []
    for i in (1, 0):
        spans = adaptive_spans(x.shape[i - 2], size[i])
        sides.append(_side(i - 2, x.shape[i - 2], spans, [b - a for a, b in spans]))
    return sides


@handles("_adaptive_avg_pool2d")
@_batched
def adaptive_pool(x: Tensor, size: Any) -> Tensor:
    need(x)
    kernel = _kernel(x, size)
    return avg_pool(x, kernel) if kernel else _means(x, _adaptive_windows(x, size))


@handles("_adaptive_avg_pool2d_backward")
@_batched
def adaptive_pool_backward(dy: Tensor, x: Tensor) -> Tensor:
    need(dy, x)
    kernel = _kernel(x, dy.shape[-2:])
    if kernel:
        return avg_pool_backward(dy, x, kernel, (), 0, False, True, None)
    return _means_backward(dy, x, _adaptive_windows(x, dy.shape[-2:]))
