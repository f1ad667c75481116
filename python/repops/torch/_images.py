"""Convolutions of images. The library's layout has channels last, torch's usually first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import _here as here
from ._call import Leftover, matmul, need, run, sum_columns
from ._layout import channels_first, channels_last, scratch, weight_in, weight_out

Tensor = torch.Tensor


def pair(v: Any, default: int = 1) -> list[int]:
    v = [v] if isinstance(v, int) else list(v)
    return [default, default] if not v else v * 2 if len(v) == 1 else v


def _wide(*tensors: Tensor) -> list[Tensor]:
    return [t.unsqueeze(2) for t in tensors]


def _attributes(
    stride: Any, padding: Any, dilation: Any, groups: int, line: bool
) -> tuple[int, ...]:
    if line:
        stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
    return (*pair(stride), *pair(padding), *pair(dilation), groups)


def _transposed_shape(x: Tensor, w: Tensor, at: Sequence[int], extra: Sequence[int]) -> list[int]:
    size = [
        (x.shape[1 + i] - 1) * at[i] - 2 * at[2 + i] + at[4 + i] * (w.shape[i] - 1) + extra[i] + 1
        for i in (0, 1)
    ]
    return [x.shape[0], *size, w.shape[2] * at[6]]


# A 1 x 1 window needs no weights in the library's layout: matmul has its products in the same
# order.


def _one_tap(w: Tensor, at: Sequence[int], transposed: bool) -> bool:
    """Do all windows have one tap, which lies in the image?"""
    return w.shape[2:] == (1, 1) and at[2:4] == (0, 0) and at[6] == 1 and not transposed


def _matrix(w: Tensor) -> Tensor:
    """Weights [F, C, 1, 1] as [F, C]."""
    return w.reshape(w.shape[:2]).contiguous()


def _seen(a: Tensor, at: Sequence[int]) -> Tensor:
    """The pixels of [N, H, W, C] that 1 x 1 windows read."""
    return a if at[:2] == (1, 1) else a[:, :: at[0], :: at[1]].contiguous()


def _one_tap_dx(d: Tensor, w: Tensor, at: Sequence[int], shape: Sequence[int]) -> Tensor:
    dx = matmul(d, _matrix(w))
    if at[:2] == (1, 1):
        return dx
    whole = here.zeros(shape)
    whole[:, :: at[0], :: at[1]] = dx
    return whole


def _one_tap_dw(a: Tensor, d: Tensor, w: Tensor, at: Sequence[int]) -> Tensor:
    f, c = w.shape[:2]
    dw = matmul(d.view(-1, f).t(), _seen(a, at).view(-1, c))
    return dw.as_strided(w.shape, w.stride()) if w.stride()[:2] == (c, 1) else dw.view(w.shape)


def _need_images(x: Tensor, *others: Tensor) -> None:
    need(x, *others)
    if x.dim() not in (3, 4):
        raise Leftover(f"its input has {x.dim()} dimensions; images of 1 or 2 are supported")


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
    _need_images(x, w)
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
        y = run("conv2d_dx", at, (a, b), _transposed_shape(a, b, at, pair(extra, 0)))
    else:
        y = run("conv2d", at, (a, weight_in(w)))
    y = y if bias is None else y + bias
    return y.permute(0, 3, 1, 2).squeeze(2).contiguous() if line else channels_first(y, like)


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
    _need_images(x, w, dy)
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
