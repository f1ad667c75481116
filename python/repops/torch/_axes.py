"""Images resized, pooled and padded, one axis after the other.

An element of the output is a sum over taps: elements of the input, each times a weight. They are
added in order. A gradient goes back by the library's embedding_grad (SPEC 4), taps of one element
in the order of the taps, then of the output.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from . import _here as here
from ._call import expect, need, numbers, run
from ._registry import handles

Tensor = torch.Tensor
Taps = tuple[Tensor, "Tensor | None"]  # indices [taps, out] (-1: no tap), and weights


def _along(t: Tensor, x: Tensor, dim: int) -> Tensor:
    shape = [1] * x.dim()
    shape[dim] = -1
    return t.reshape(shape)


def gathered(x: Tensor, dim: int, taps: Taps) -> Tensor:
    """Sums x over the taps along a dimension."""
    places, weights = taps
    y = None
    for i, place in enumerate(places):
        part = x.index_select(dim, torch.where(place < 0, 0, place))
        if weights is not None:
            part = part * _along(weights[i], x, dim)
        if bool((place < 0).any()):
            part = torch.where(_along(place < 0, x, dim), 0.0, part)
        y = part if y is None else y + part
    assert y is not None
    return y


def spread(dy: Tensor, dim: int, size: int, taps: Taps) -> Tensor:
    """The gradient of `gathered` with respect to x, whose size along the dimension is `size`."""
    places, weights = taps
    rows = dy.movedim(dim, 0)
    parts = [rows if weights is None else rows * _along(w, rows, 0) for w in _each(weights, places)]
    ids = numbers(places.reshape(-1), size)
    flat = torch.cat(parts).contiguous().reshape(len(ids), -1)
    dx = run("embedding_grad", (), (flat, ids), (size, flat.shape[1]))
    return dx.reshape(size, *rows.shape[1:]).movedim(0, dim)


def _each(weights: Tensor | None, places: Tensor) -> Any:
    return places if weights is None else weights


def like(y: Tensor, x: Tensor) -> Tensor:
    """y with the strides that torch would give an output for input x."""
    last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
    if last and not x.is_contiguous():
        return y.contiguous(memory_format=torch.channels_last)
    return y.contiguous()


# ---- resizing ----


def _triangle(x: float) -> float:
    return max(0.0, 1.0 - abs(x))


def _cubic(x: float, a: float) -> float:
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def _scale(n: int, out: int, align: bool, given: float | None) -> float:
    """The distance of neighbouring outputs, in input elements."""
    if align:
        return (n - 1) / (out - 1) if out > 1 else 0.0
    return 1 / given if given and given > 0 else n / out


def _smooth_taps(n: int, i: int, scale: float, cubic: bool) -> tuple[int, list[float]]:
    """The first tap of output i and the taps' weights, with antialiasing: taps cover all its
    support."""
    wide = max(scale, 1.0)
    center, support = scale * (i + 0.5), (2.0 if cubic else 1.0) * wide
    first, end = max(0, int(center - support + 0.5)), min(n, int(center + support + 0.5))
    at = [(j - center + 0.5) / wide for j in range(first, end)]
    weights = [_cubic(t, -0.5) if cubic else _triangle(t) for t in at]
    return first, [w / sum(weights) for w in weights]


def _point_taps(
    n: int, i: int, scale: float, align: bool, cubic: bool
) -> tuple[list[int], list[float]]:
    at = scale * i if align else scale * (i + 0.5) - 0.5
    if cubic:
        low = math.floor(at)
        around = range(low - 1, low + 3)
        return [min(max(j, 0), n - 1) for j in around], [_cubic(at - j, -0.75) for j in around]
    at = max(at, 0.0)
    low = min(int(at), n - 1)
    part = min(at - low, 1.0)
    return [low, min(low + 1, n - 1)], [1 - part, part]


def _columns(rows: list, dtype: torch.dtype) -> Tensor:
    return here.tensor(rows, dtype=dtype).t().contiguous()


@here.kept(512)
def _resize_taps(
    n: int, out: int, align: bool, given: float | None, cubic: bool, smooth: bool
) -> Taps:
    """Weights are computed in float64 without the C library's functions, and rounded to float32
    once."""
    scale = _scale(n, out, align, given)
    places, weights = [], []
    for i in range(out):
        if smooth:
            first, w = _smooth_taps(n, i, scale, cubic)
            p = list(range(first, first + len(w)))
        else:
            p, w = _point_taps(n, i, scale, align, cubic)
        places.append(p)
        weights.append(w)
    most = max(len(p) for p in places)
    places = [p + [-1] * (most - len(p)) for p in places]
    weights = [w + [0.0] * (most - len(w)) for w in weights]
    return _columns(places, torch.int64), _columns(weights, torch.float32)


def _axes(
    shape: Any, out: Any, align: bool, scales: Any, cubic: bool, smooth: bool
) -> list[tuple[int, Taps]]:
    """Each dimension with its taps, from the last dimension to the first."""
    scales = scales or (None,) * len(out)
    return [
        (2 + d, _resize_taps(shape[2 + d], out[d], align, scales[d], cubic, smooth))
        for d in reversed(range(len(out)))
    ]


def _resized(x: Tensor, axes: list[tuple[int, Taps]]) -> Tensor:
    if x.dtype is torch.uint8:  # torch has integer weights here, but on some instruction sets only
        y = _resized(x.float(), axes).round()
        return torch.where(y < 0.0, 0.0, torch.where(y > 255.0, 255.0, y)).to(torch.uint8)
    need(x)
    y = x
    for dim, taps in axes:
        y = gathered(y, dim, taps)
    return like(y, x)


def resized_backward(dy: Tensor, shape: Any, axes: list[tuple[int, Taps]]) -> Tensor:
    need(dy)
    dx = dy
    for dim, taps in reversed(axes):
        dx = spread(dx, dim, shape[dim], taps)
    return like(dx, dy)


_RESIZES = {
    "upsample_linear1d": (False, False),
    "upsample_bilinear2d": (False, False),
    "upsample_trilinear3d": (False, False),
    "upsample_bicubic2d": (True, False),
    "_upsample_bilinear2d_aa": (False, True),
    "_upsample_bicubic2d_aa": (True, True),
}


def _register_resizes() -> None:
    for name, (cubic, smooth) in _RESIZES.items():

        def forward(
            x: Tensor, out: Any, align: bool, *scales: Any, kind: Any = (cubic, smooth)
        ) -> Tensor:
            return _resized(x, _axes(x.shape, out, align, scales, *kind))

        def backward(
            dy: Tensor,
            out: Any,
            shape: Any,
            align: bool,
            *scales: Any,
            kind: Any = (cubic, smooth),
        ) -> Tensor:
            return resized_backward(dy, shape, _axes(shape, out, align, scales, *kind))

        handles(name + ".default")(forward)
        handles(name + "_backward.default")(backward)


_register_resizes()


# ---- padding: the gradient of copies ----


def _copied(kind: str, n: int, before: int, after: int) -> Tensor:
    """The index in the dimension of n elements that each element of the padded one is a copy of."""
    at = here.arange(-before, n + after)
    if kind == "replication_pad":
        return at.clamp(0, n - 1)
    return (n - 1) - ((n - 1) - at.abs()).abs()


def _register_padding() -> None:
    for kind in ("reflection_pad", "replication_pad"):
        for dims in (1, 2, 3):

            def backward(
                dy: Tensor, x: Tensor, padding: Any, kind: str = kind, dims: int = dims
            ) -> Tensor:
                need(dy)
                size = x.shape[x.dim() - dims :]
                places = here.zeros(1, dtype=torch.int64)
                for d, n in enumerate(size):
                    before, after = padding[2 * (dims - 1 - d) : 2 * (dims - d)]
                    places = places[..., None] * n + _copied(kind, n, before, after)
                expect(dy.shape[x.dim() - dims :] == places.shape[1:], "its sizes do not fit")
                count = math.prod(size)
                rows = dy.reshape(-1, places.numel())
                y = spread(rows, 1, count, (places.reshape(1, -1), None))
                return y.contiguous().reshape(x.shape)

            handles(f"{kind}{dims}d_backward.default")(backward)


_register_padding()


def _columns_of(n: int, kernel: int, dilation: int, pad: int, stride: int) -> tuple[Tensor, Tensor]:
    """[kernel, windows]: the index of each tap along a dimension, and whether it is in range."""
    windows = (n + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    first = here.arange(windows) * stride - pad
    at = (here.arange(kernel) * dilation)[:, None] + first
    return at, (at >= 0) & (at < n)


@handles("col2im")
def col2im(x: Tensor, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    """The gradient of im2col: each pixel sums its entries in the columns, in their order."""
    need(x)
    (down, in_height), (across, in_width) = (
        _columns_of(*at) for at in zip(size, kernel, dilation, padding, stride)
    )
    places = down[:, None, :, None] * size[1] + across[None, :, None, :]
    inside = in_height[:, None, :, None] & in_width[None, :, None, :]
    places = torch.where(inside, places, -1)
    windows, columns = math.prod(kernel), places.shape[2] * places.shape[3]
    expect(x.shape[-1] == columns and x.shape[-2] % windows == 0, "its sizes do not fit")
    rows = x.reshape(-1, places.numel())
    y = spread(rows, 1, math.prod(size), (places.reshape(1, -1), None)).contiguous()
    return y.reshape(*x.shape[:-2], x.shape[-2] // windows, *size)


# ---- pooling by windows of several sizes ----


@here.kept(512)
def window_taps(n: int, spans: tuple[tuple[int, int], ...]) -> Taps:
    """The taps of windows, each given as its first index and its end (exclusive)."""
    inside = [range(max(0, a), min(n, b)) for a, b in spans]
    most = max(len(r) for r in inside)
    rows = [list(r) + [-1] * (most - len(r)) for r in inside]
    return _columns(rows, torch.int64), None


def adaptive_spans(n: int, out: int) -> tuple[tuple[int, int], ...]:
    return tuple((i * n // out, -(-(i + 1) * n // out)) for i in range(out))
