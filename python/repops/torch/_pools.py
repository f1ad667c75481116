"""Pooling of images. The library computes windows that all have one size."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .. import _context
from . import _here as here
from ._axes import Taps, adaptive_spans, gathered, like, spread, window_taps
from ._call import Leftover, need, run
from ._images import pair
from ._indexing import scatter_add
from ._layout import channels_first, channels_last
from ._registry import handles

Tensor = torch.Tensor


def batched(dims: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a function of batches so that it takes a single image [C, H, W] of `dims`
    dimensions, too."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def both(x: Tensor, *more: Any, **named: Any) -> Any:
            if x.dim() != dims:
                return function(x, *more, **named)
            more = tuple(t.unsqueeze(0) if isinstance(t, Tensor) else t for t in more)
            result = function(x.unsqueeze(0), *more, **named)
            return tuple(t[0] for t in result) if isinstance(result, tuple) else result[0]

        return both

    return decorate


def _window(x: Tensor, kernel: Any, stride: Any, padding: Any) -> tuple[int, ...]:
    if x.dim() != 4:
        raise Leftover(f"its input has {x.dim()} dimensions; [N, C, H, W] is supported")
    k = pair(kernel)
    s, p = pair(stride) if stride else k, pair(padding, 0)
    return (*k, *s, *p)


def _beyond(x: Tensor, at: Sequence[int], ceil: bool) -> list[int]:
    """How far windows reach beyond the padded image in each dimension, which only ceil_mode
    allows."""
    extra, dims = [], len(at) // 3
    for i in range(dims):
        n, k, s, p = x.shape[2 + i], at[i], at[dims + i], at[2 * dims + i]
        over = (n + 2 * p - k) % s
        # torch drops a window that begins in the padding after the image.
        begins = n + 2 * p - k - over + s
        extra.append(s - over if ceil and over and begins < n + p else 0)
    return extra


def corners(shape: Sequence[int], at: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Row and column of the first tap of each window of [N, OH, OW, C]."""
    rows = here.arange(shape[1]).reshape(1, -1, 1, 1) * at[2] - at[4]
    return rows, here.arange(shape[2]).reshape(1, 1, -1, 1) * at[3] - at[5]


def taps_of(at: Sequence[int], width: int) -> Tensor:
    """The offset of each tap from its window's first one, in flat indices of an image of this
    width."""
    taps = here.arange(at[0] * at[1])
    return taps // at[1] * width + taps % at[1]


def within(place: Tensor, count: int) -> Tensor:
    """The same indices; in a job clamped, so that its program knows their bounds."""
    return place if _context.current().job is None else place.clamp(0, count - 1)


def _tap_of(place: Tensor, at: Sequence[int], height: int, width: int) -> Tensor:
    """The number of the tap in its window that each index of [N, OH, OW, C] is."""
    rows, cols = corners(place.shape, at)
    if at[1] > width or _context.current().device is not None:
        # Taps of two rows may have the same offset; and a device's values are not to be read.
        every, place = here.arange(height * width), within(place, height * width)
        tap = ((every // width)[place] - rows) * at[1] + ((every % width)[place] - cols)
        return tap.to(torch.int32)
    taps = taps_of(at, width)
    table = here.zeros(int(taps[-1]) + 1, dtype=torch.int32)
    table[taps] = here.arange(len(taps), dtype=torch.int32)
    return table[within(place - (rows * width + cols), len(table))]


def widened(x: Tensor, at: Sequence[int], ceil: bool) -> Tensor:
    """x padded with -inf as far as windows reach beyond it."""
    more = _beyond(x, at, ceil)
    if not any(more):
        return x
    pad = [n for extra in reversed(more) for n in (0, extra)]
    return torch.constant_pad_nd(x, pad, -float("inf"))


def _dilated_taps(n: int, k: int, s: int, p: int, d: int, ceil: bool) -> list[int]:
    """The index that each tap of each window reads along a dimension. Taps outside the image repeat
    the window's first tap inside, which does not change its maximum."""
    over = n + 2 * p - d * (k - 1) - 1
    out = (-(-over // s) if ceil else over // s) + 1
    out -= ceil and (out - 1) * s >= n + p
    seen: list[int] = []
    for i in range(out):
        taps = range(i * s - p, i * s - p + k * d, d)
        inside = [t for t in taps if 0 <= t < n]
        if not inside:
            raise Leftover("one of its windows has no element")
        seen += [t if 0 <= t < n else inside[0] for t in taps]
    return seen


def side_by_side(
    x: Tensor, at: Sequence[int], dilation: Sequence[int], ceil: bool
) -> tuple[Tensor, Tensor]:
    """Images in which taps of dilated windows are neighbours, and each pixel's flat index in x."""
    dims = len(at) // 3
    sizes = x.shape[x.dim() - dims :]
    places = here.arange(math.prod(sizes)).reshape(sizes)
    for i, n in enumerate(sizes):
        own = at[i], at[dims + i], at[2 * dims + i]
        seen = here.tensor(_dilated_taps(n, *own, dilation[i], ceil))
        x, places = x.index_select(i - dims, seen), places.index_select(i, seen)
    return x, places.reshape(-1)


@handles("max_pool2d_with_indices")
@batched(3)
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
        images, numbers = side_by_side(x, at, pair(dilation), ceil)
        y, places = max_pool(images, kernel)
        return y, numbers[within(places, len(numbers))]
    a = channels_last(widened(x, at, ceil))
    y = run("max_pool2d", at, (a,))
    tap = run("max_pool2d_index", at, (a,))
    rows, cols = corners(y.shape, at)
    places = taps_of(at, x.shape[3])[tap].add_(rows * x.shape[3] + cols)
    return channels_first(y, x), channels_first(places, x)


@handles("max_pool2d_with_indices_backward")
@batched(3)
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
    if pair(dilation) != [1, 1]:
        return like(added_at_places(dy, x, places, 2), x)
    at = _window(x, kernel, stride, padding)
    place = channels_last(places)
    tap = _tap_of(place, at, x.shape[2], x.shape[3])
    more = _beyond(x, at, ceil)
    shape = [x.shape[0], x.shape[2] + more[0], x.shape[3] + more[1], x.shape[1]]
    dx = run("max_pool2d_grad", at, (channels_last(dy), tap), shape)
    return channels_first(dx[:, : x.shape[2], : x.shape[3]].contiguous(), x)


def _window_of(x: Tensor, spans: Sequence[tuple[int, int]]) -> tuple[Tensor, Tensor]:
    """The first maximum of a window in the last dimensions, and its flat index."""
    sizes = x.shape[x.dim() - len(spans) :]
    window: Any = tuple(slice(*span) for span in spans)
    own = x[(..., *window)].flatten(-len(spans))
    at = own.max(-1, True)[1]
    places = here.arange(math.prod(sizes)).reshape(sizes)[window].reshape(-1)
    return own.gather(-1, at)[..., 0], places[at][..., 0]


@handles("adaptive_max_pool2d")
def adaptive_max_pool(x: Tensor, size: Any) -> tuple[Tensor, Tensor]:
    need(x)
    kept, sizes = x.shape[: x.dim() - len(size)], x.shape[x.dim() - len(size) :]
    spans = [adaptive_spans(n, out) for n, out in zip(sizes, size)]
    found = [_window_of(x, window) for window in itertools.product(*spans)]
    y, places = (torch.stack(parts, -1).reshape([*kept, *size]) for parts in zip(*found))
    return like(y, x), like(places, x)


def added_at_places(dy: Tensor, x: Tensor, places: Tensor, dims: int) -> Tensor:
    """The gradient of taking elements at `places`, flat indices of the last dimensions; terms of
    one element are added in the order of the windows."""
    kept = x.shape[: x.dim() - dims]
    dx = here.zeros([*kept, math.prod(x.shape[x.dim() - dims :])])
    return scatter_add(dx, -1, places.flatten(-dims), dy.flatten(-dims)).reshape(x.shape)


@handles("adaptive_max_pool2d_backward")
def adaptive_max_pool_backward(dy: Tensor, x: Tensor, places: Tensor) -> Tensor:
    need(dy, x)
    return like(added_at_places(dy, x, places, 2), x)


@handles("max_unpool2d", "max_unpool3d")
def max_unpool(x: Tensor, places: Tensor, size: Any, *ignored: Any) -> Tensor:
    """If several elements have the same index, the last one stays."""
    dims = len(size)
    y = here.zeros([*x.shape[:-dims], math.prod(size)], dtype=x.dtype)
    y = y.scatter(-1, places.flatten(-dims), x.flatten(-dims))
    return y.reshape(*x.shape[:-dims], *size)


# ---- means ----

Sides = list[tuple[int, Taps, Tensor]]  # dimension, taps, and the divisor of each window


def _side(dim: int, n: int, spans: tuple, counts: list[int]) -> tuple[int, Taps, Tensor]:
    return dim, window_taps(n, spans), here.tensor(counts, dtype=torch.float32)


def mean_windows(x: Sequence[int], at: Sequence[int], ceil: bool, count_pad: bool) -> Sides:
    sides, dims = [], len(at) // 3
    for i in reversed(range(dims)):
        n, k, s, p = x[i], at[i], at[dims + i], at[2 * dims + i]
        out = -(-(n + 2 * p - k) // s) + 1 if ceil else (n + 2 * p - k) // s + 1
        out -= ceil and (out - 1) * s >= n + p
        spans = tuple((j * s - p, j * s - p + k) for j in range(out))
        count = [min(b, n + p) - a if count_pad else min(b, n) - max(a, 0) for a, b in spans]
        sides.append(_side(i - dims, n, spans, count))
    return sides


def _sizes(sides: Sides, divisor: Any) -> Any:
    if divisor:
        return float(divisor)
    sizes = here.ones(())
    for _, _, count in sides:
        sizes = count.reshape([-1] + [1] * sizes.dim()) * sizes
    return sizes


def _summed(sides: Sides) -> list[tuple[int, Taps]]:
    """Drops dimensions in which each window is a single element."""
    return [(dim, taps) for dim, taps, _ in sides if not _is_each(taps[0])]


def _is_each(places: Tensor) -> bool:
    return len(places) == 1 and torch.equal(places[0], here.arange(places.shape[1]))


def means(x: Tensor, sides: Sides, divisor: Any = None) -> Tensor:
    """Sums along the last dimension, then the one before, and so on; then divides by the windows'
    sizes."""
    y = x
    for dim, taps in _summed(sides):
        y = gathered(y, dim % x.dim(), taps)
    return like(y / _sizes(sides, divisor), x)


def means_backward(dy: Tensor, x: Tensor, sides: Sides, divisor: Any = None) -> Tensor:
    dx = dy / _sizes(sides, divisor)
    for dim, taps in reversed(_summed(sides)):
        dx = spread(dx, dim % x.dim(), x.shape[dim], taps)
    return like(dx, x)


def _uneven(x: Tensor, at: Sequence[int], ceil: bool, divisor: Any) -> bool:
    return divisor is not None or any(_beyond(x, at, ceil))


@handles("avg_pool2d")
@batched(3)
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
        return means(x, mean_windows(x.shape[2:], at, ceil, count_pad), divisor)
    return channels_first(run("avg_pool2d", (*at, int(count_pad)), (channels_last(x),)), x)


@handles("avg_pool2d_backward")
@batched(3)
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
        sides = mean_windows(x.shape[2:], at, ceil, count_pad)
        return means_backward(dy, x, sides, divisor)
    shape = [x.shape[0], x.shape[2], x.shape[3], x.shape[1]]
    return channels_first(
        run("avg_pool2d_grad", (*at, int(count_pad)), (channels_last(dy),), shape), x
    )


def _kernel(x: Tensor, size: Any) -> list[int] | None:
    """The windows' common size, or None if their sizes differ."""
    if x.dim() != 4 or any(x.shape[2 + i] % size[i] for i in (0, 1)):
        return None
    return [x.shape[2 + i] // size[i] for i in (0, 1)]


def adaptive_windows(x: Tensor, size: Any) -> Sides:
    sides, dims = [], len(size)
    for i in reversed(range(dims)):
        spans = adaptive_spans(x.shape[i - dims], size[i])
        sides.append(_side(i - dims, x.shape[i - dims], spans, [b - a for a, b in spans]))
    return sides


@handles("_adaptive_avg_pool2d")
@batched(3)
def adaptive_pool(x: Tensor, size: Any) -> Tensor:
    need(x)
    kernel = _kernel(x, size)
    return avg_pool(x, kernel) if kernel else means(x, adaptive_windows(x, size))


@handles("_adaptive_avg_pool2d_backward")
@batched(3)
def adaptive_pool_backward(dy: Tensor, x: Tensor) -> Tensor:
    need(dy, x)
    kernel = _kernel(x, dy.shape[-2:])
    if kernel:
        return avg_pool_backward(dy, x, kernel, (), 0, False, True, None)
    return means_backward(dy, x, adaptive_windows(x, dy.shape[-2:]))
