"""Convolutions and pooling. The library has channels as neighbours, torch images of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ._call import Leftover, matmul, need, run, sum_columns
from ._layout import channels_first, channels_last, scratch, weight_in, weight_out
from ._registry import handles

Tensor = torch.Tensor


def _pair(v: Any, default: int = 1) -> list[int]:
    v = [v] if isinstance(v, int) else list(v)
    return [default, default] if not v else v * 2 if len(v) == 1 else v


def _wide(*tensors: Tensor) -> list[Tensor]:
    return [t.unsqueeze(2) for t in tensors]


def _attributes(
    stride: Any, padding: Any, dilation: Any, groups: int, line: bool
) -> tuple[int, ...]:
    if line:
        stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
    return (*_pair(stride), *_pair(padding), *_pair(dilation), groups)


def _transposed_shape(x: Tensor, w: Tensor, at: Sequence[int], extra: Sequence[int]) -> list[int]:
    size = [
        (x.shape[1 + i] - 1) * at[i] - 2 * at[2 + i] + at[4 + i] * (w.shape[i] - 1) + extra[i] + 1
        for i in (0, 1)
    ]
    return [x.shape[0], *size, w.shape[2] * at[6]]


# A window of one tap needs no weights in the library's order: its products are those of matmul.


def _one_tap(w: Tensor, at: Sequence[int], transposed: bool) -> bool:
    """Whether all windows have one tap, which lies in the image."""
    return w.shape[2:] == (1, 1) and at[2:4] == (0, 0) and at[6] == 1 and not transposed


def _matrix(w: Tensor) -> Tensor:
    """Weights [F, C, 1, 1] as [F, C]."""
    return w.reshape(w.shape[:2]).contiguous()


def _seen(a: Tensor, at: Sequence[int]) -> Tensor:
    """The pixels of [N, H, W, C] that windows of one tap see."""
    return a if at[:2] == (1, 1) else a[:, :: at[0], :: at[1]].contiguous()


def _one_tap_dx(d: Tensor, w: Tensor, at: Sequence[int], shape: Sequence[int]) -> Tensor:
    dx = matmul(d, _matrix(w))
    if at[:2] == (1, 1):
        return dx
    whole = torch.zeros(shape)
    whole[:, :: at[0], :: at[1]] = dx
    return whole


def _one_tap_dw(a: Tensor, d: Tensor, w: Tensor, at: Sequence[int]) -> Tensor:
    f, c = w.shape[:2]
    dw = matmul(d.view(-1, f).t(), _seen(a, at).view(-1, c))
    return dw.as_strided(w.shape, w.stride()) if w.stride()[:2] == (c, 1) else dw.view(w.shape)


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
    need(x, w)
    if x.dim() not in (3, 4):
        raise Leftover(f"its input has {x.dim()} dimensions; images of 1 or 2 are supported")
    line = x.dim() == 3
    at = _attributes(stride, padding, dilation, groups, line)
    like = x
    if line:
        x, w, extra = *_wide(x, w), [0, *extra]
    a = channels_last(x, "x")
    if _one_tap(w, at, transposed):
        y = matmul(_seen(a, at), _matrix(w).t())
    elif transposed:
        b = weight_in(w)
        y = run("conv2d_dx", at, (a, b), _transposed_shape(a, b, at, _pair(extra, 0)))
    else:
        y = run("conv2d", at, (a, weight_in(w)))
    y = y if bias is None else y + bias
    return y.permute(0, 3, 1, 2).squeeze(2).contiguous() if line else channels_first(y, like)


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
    need(dy, x, w)
    line, like = x.dim() == 3, x
    at = _attributes(stride, padding, dilation, groups, line)
    if line:
        dy, x, w = _wide(dy, x, w)
    d, one = channels_last(dy, "dy"), _one_tap(w, at, transposed)
    dx = dw = db = None
    if mask[0]:
        shape = [x.shape[i] for i in (0, 2, 3, 1)]
        if one:
            dx = _one_tap_dx(d, w, at, shape)
        elif transposed:
            dx = run("conv2d", at, (d, weight_in(w)))
        else:
            dx = run("conv2d_dx", at, (d, weight_in(w)), shape)
        dx = dx.permute(0, 3, 1, 2).squeeze(2).contiguous() if line else channels_first(dx, like)
    if mask[1]:
        a, shape = channels_last(x, "x"), [w.shape[i] for i in (2, 3, 1, 0)]
        given = (d, a) if transposed else (a, d)
        if one:
            dw = _one_tap_dw(a, d, w, at)
        else:
            dw = weight_out(run("conv2d_dw", at, given, shape, out=scratch("weight", shape)), w)
        dw = dw.squeeze(2) if line else dw
    if mask[2]:
        db = sum_columns(d.reshape(-1, d.shape[3]))
    return dx, dw, db


# ---- pooling ----


def _window(x: Tensor, kernel: Any, stride: Any, padding: Any, ceil: bool) -> tuple[int, ...]:
    if x.dim() != 4:
        raise Leftover(f"its input has {x.dim()} dimensions; [N, C, H, W] is supported")
    k = _pair(kernel)
    s, p = _pair(stride) if stride else k, _pair(padding, 0)
    if ceil and any((x.shape[2 + i] + 2 * p[i] - k[i]) % s[i] for i in (0, 1)):
        raise Leftover("ceil_mode gives other sizes here")
    return (*k, *s, *p)


def _corners(shape: Sequence[int], at: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Row and column of the first tap of each window of [N, OH, OW, C]."""
    rows = torch.arange(shape[1]).reshape(1, -1, 1, 1) * at[2] - at[4]
    return rows, torch.arange(shape[2]).reshape(1, 1, -1, 1) * at[3] - at[5]


def _taps(at: Sequence[int], width: int) -> Tensor:
    """How far from a window's first tap each lies, in an image of this width."""
    taps = torch.arange(at[0] * at[1])
    return taps // at[1] * width + taps % at[1]


def _tap_of(place: Tensor, at: Sequence[int], width: int) -> Tensor:
    """Which tap of its window each place of [N, OH, OW, C] is."""
    rows, cols = _corners(place.shape, at)
    if at[1] > width:  # taps of two rows may lie as far as each other
        return ((place // width - rows) * at[1] + place % width - cols).to(torch.int32)
    taps = _taps(at, width)
    table = torch.zeros(int(taps[-1]) + 1, dtype=torch.int32)
    table[taps] = torch.arange(len(taps), dtype=torch.int32)
    return table[place - (rows * width + cols)]


@handles("max_pool2d_with_indices")
def max_pool(
    x: Tensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil: bool = False,
) -> Any:
    need(x)
    at = _window(x, kernel, stride, padding, ceil)
    if _pair(dilation) != [1, 1]:
        raise Leftover("its windows are dilated")
    a = channels_last(x)
    y = run("max_pool2d", at, (a,))
    tap = run("max_pool2d_index", at, (a,))
    rows, cols = _corners(y.shape, at)
    places = _taps(at, x.shape[3])[tap].add_(rows * x.shape[3] + cols)
    return channels_first(y, x), channels_first(places, x)


@handles("max_pool2d_with_indices_backward")
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
    at = _window(x, kernel, stride, padding, ceil)
    place = channels_last(places)
    tap = _tap_of(place, at, x.shape[3])
    shape = [x.shape[0], x.shape[2], x.shape[3], x.shape[1]]
    return channels_first(run("max_pool2d_grad", at, (channels_last(dy), tap), shape), x)


@handles("avg_pool2d")
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
    if divisor is not None:
        raise Leftover("it has a divisor of its own")
    at = _window(x, kernel, stride, padding, ceil)
    return channels_first(run("avg_pool2d", (*at, int(count_pad)), (channels_last(x),)), x)


@handles("avg_pool2d_backward")
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
    if divisor is not None:
        raise Leftover("it has a divisor of its own")
    at = _window(x, kernel, stride, padding, ceil)
    shape = [x.shape[0], x.shape[2], x.shape[3], x.shape[1]]
    return channels_first(
        run("avg_pool2d_grad", (*at, int(count_pad)), (channels_last(dy),), shape), x
    )


def _kernel(x: Tensor, size: Any) -> list[int]:
    if x.dim() != 4 or any(x.shape[2 + i] % size[i] for i in (0, 1)):
        raise Leftover("its windows are of several sizes")
    return [x.shape[2 + i] // size[i] for i in (0, 1)]


@handles("_adaptive_avg_pool2d")
def adaptive_pool(x: Tensor, size: Any) -> Tensor:
    return avg_pool(x, _kernel(x, size))


@handles("_adaptive_avg_pool2d_backward")
def adaptive_pool_backward(dy: Tensor, x: Tensor) -> Tensor:
    return avg_pool_backward(dy, x, _kernel(x, dy.shape[2:]), (), 0, False, True, None)
