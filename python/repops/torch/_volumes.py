"""Convolutions; those of volumes are computed as convolutions of images.

Taps along the depth become channels. Image n OD + od has, in each group, the channels of depth od
stride - pad + kd dilation for kd = 0, 1, ..., and zeros outside the volume. One convolution of
these images is the volume's, and so is its gradient of the weights. Its gradient of the images also
has taps as channels: those of one depth are added, kd ascending. A transposed convolution is this
gradient. docs/python.md states the resulting order of terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from . import _images
from ._call import need, sum_columns
from ._layout import channels_first, channels_last
from ._registry import handles

Tensor = torch.Tensor


def triple(v: Any, default: int = 1) -> list[int]:
    v = [v] if isinstance(v, int) else list(v)
    return [default] * 3 if not v else v * 3 if len(v) == 1 else v


class Depth(NamedTuple):
    """The windows along the depth of a volume, and the number of groups of channels."""

    size: int
    taps: int
    stride: int
    pad: int
    dilation: int
    groups: int

    @property
    def windows(self) -> int:
        reach = (self.taps - 1) * self.dilation + 1
        return (self.size + 2 * self.pad - reach) // self.stride + 1

    @property
    def padded(self) -> int:
        """The padded depth, rounded up to a multiple of the stride, so that a job can read a tap by
        slices."""
        return -(-(self.size + 2 * self.pad) // self.stride) * self.stride

    def seen(self, tap: int) -> tuple[int, int, int]:
        """The padded depths that a tap reads: first, end, step."""
        first = tap * self.dilation
        return first, first + (self.windows - 1) * self.stride + 1, self.stride


def _folded(x: Tensor, at: Depth) -> Tensor:
    """[N, C, D, H, W] as images [N OD, taps C, H, W]: the depths of all taps become channels."""
    a = channels_last(x)
    n, size, h, w, c = a.shape
    if at.padded != size:
        a = torch.constant_pad_nd(a, [0, 0, 0, 0, 0, 0, at.pad, at.padded - size - at.pad])
    a = a.reshape(n, at.padded, h, w, at.groups, c // at.groups)
    parts = [a[:, slice(*at.seen(tap))] for tap in range(at.taps)]
    images = parts[0] if len(parts) == 1 else torch.cat(parts, -1)
    return images.reshape(n * at.windows, h, w, at.taps * c).movedim(-1, 1)


def _placed(part: Tensor, size: int, seen: tuple[int, int, int]) -> Tensor:
    """Puts what a tap reads back at its depths, with zeros elsewhere."""
    if seen == (0, size, 1):
        return part
    whole = [part.shape[0], size, *part.shape[2:]]
    return torch.ops.aten.slice_backward(part, whole, 1, *seen)


def _unfolded(images: Tensor, shape: Sequence[int], at: Depth) -> Tensor:
    """The gradient of `_folded`, as dense [N, D, H, W, C]; shape is [N, C, D, H, W]."""
    n, c, size, h, w = shape
    parts = channels_last(images).reshape(n, at.windows, h, w, at.groups, at.taps, c // at.groups)
    x = _placed(parts[..., 0, :], at.padded, at.seen(0))
    for tap in range(1, at.taps):
        x = x + _placed(parts[..., tap, :], at.padded, at.seen(tap))
    return x[:, at.pad : at.pad + size].reshape(n, size, h, w, c)


def _images_of(x: Tensor) -> Tensor:
    """[N, C, D, H, W] as [N D, C, H, W] with channels last."""
    return channels_last(x).flatten(0, 1).movedim(-1, 1)


def _volume(images: Tensor, n: int, depth: int) -> Tensor:
    """The inverse: images as dense [N, D, H, W, C]."""
    return channels_last(images).unflatten(0, (n, depth))


def _flat(w: Tensor) -> Tensor:
    """Weights [F, C, KD, KH, KW] as weights of images, [F, KD C, KH, KW]."""
    return w.transpose(1, 2).flatten(1, 2)


def _depths(x: Tensor, w: Tensor, at: Sequence[Any], transposed: bool, extra: int) -> Depth:
    """The windows along the depth, which read x, or y if transposed."""
    (stride, *_), (pad, *_), (dilation, *_), groups = at
    size, taps = x.shape[2], w.shape[2]
    if transposed:
        size = (size - 1) * stride - 2 * pad + (taps - 1) * dilation + extra + 1
    return Depth(size, taps, stride, pad, dilation, groups)


def _extended(x: Tensor, stride: Any, extra: Any) -> tuple[Tensor, list[int]]:
    """Pads x with windows of zeros, so that what remains of output_padding is less than the stride.
    Returns the padded x and that remainder."""
    dims = x.dim() - 2
    s, e = (list(v) * (dims if len(v) == 1 else 1) for v in (stride, extra))
    behind = [n for i in reversed(range(dims)) for n in (0, e[i] // s[i])]
    if any(behind):
        x = torch.constant_pad_nd(x, behind)
    return x, [b % a for a, b in zip(s, e)]


@handles("convolution", "_convolution")
def convolution(
    x: Tensor,
    w: Tensor,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    extra: Any,
    groups: int,
    *ignored: Any,
) -> Tensor:
    if transposed:
        x, extra = _extended(x, stride, extra)
    if x.dim() != 5:
        more = (stride, padding, dilation, transposed, extra, groups)
        return _images.convolution(x, w, bias, *more)
    need(x, w)
    s, p, d, e = triple(stride), triple(padding, 0), triple(dilation), triple(extra, 0)
    at = _depths(x, w, (s, p, d, groups), transposed, e[0])
    given = _images_of(x) if transposed else _folded(x, at)
    more = (s[1:], p[1:], d[1:], transposed, e[1:], groups)
    y = _images.convolution(given, _flat(w), None if transposed else bias, *more)
    if not transposed:
        return channels_first(_volume(y, x.shape[0], at.windows), x)
    shape = [x.shape[0], w.shape[1] * groups, at.size, *y.shape[2:]]
    a = _unfolded(y, shape, at)
    return channels_first(a if bias is None else a + bias, x)


@handles("convolution_backward")
def convolution_backward(
    dy: Tensor,
    x: Tensor,
    w: Tensor,
    sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    extra: Any,
    groups: int,
    mask: Any,
) -> Any:
    shape = x.shape
    if transposed:
        x, extra = _extended(x, stride, extra)
    backward = _backward if x.dim() == 5 else _images.convolution_backward
    more = (stride, padding, dilation, transposed, extra, groups, mask)
    dx, dw, db = backward(dy, x, w, sizes, *more)
    if dx is not None and dx.shape != shape:
        dx = dx[tuple(slice(n) for n in shape)].contiguous()
    return dx, dw, db


def _backward(
    dy: Tensor,
    x: Tensor,
    w: Tensor,
    sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    extra: Any,
    groups: int,
    mask: Any,
) -> Any:
    need(dy, x, w)
    s, p, d, e = triple(stride), triple(padding, 0), triple(dilation), triple(extra, 0)
    at = _depths(x, w, (s, p, d, groups), transposed, e[0])
    given = (_folded(dy, at), _images_of(x)) if transposed else (_images_of(dy), _folded(x, at))
    own = [mask[0], mask[1], mask[2] and not transposed]
    dx, dw, db = _images.convolution_backward(
        *given, _flat(w), None, s[1:], p[1:], d[1:], transposed, e[1:], groups, own
    )
    if mask[0]:
        a = _volume(dx, x.shape[0], x.shape[2]) if transposed else _unfolded(dx, x.shape, at)
        dx = channels_first(a, x)
    if mask[1]:
        f, c, *kernel = w.shape
        dw = dw.reshape(f, kernel[0], c, *kernel[1:]).transpose(1, 2).contiguous()
    if mask[2] and transposed:
        db = sum_columns(channels_last(dy).reshape(-1, dy.shape[1]))
    return dx, dw, db
