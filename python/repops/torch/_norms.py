"""Layer, group, root mean square and batch norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from .._library import lib
from .._operators import bits
from . import _here as here
from ._call import BLOCK, expect, fused, need, run, sum_columns, sum_rows, total
from ._layout import channels_first, channels_last
from ._registry import handles

Tensor = torch.Tensor


def _rows(x: Tensor, normalized: Sequence[int]) -> tuple[Tensor, int, int]:
    cols = 1
    for n in normalized:
        cols *= n
    x = x.contiguous()
    return x, x.numel() // cols if cols else 0, cols


def _check_weights(cols: int, *weights: Tensor | None) -> None:
    expect(all(w is None or w.numel() == cols for w in weights), "a weight has another size")


def _or(w: Tensor | None, cols: int, value: float) -> Tensor:
    return here.full((cols,), value) if w is None else w.contiguous()


@handles("native_layer_norm")
def layer_norm(x: Tensor, shape: Any, w: Any, b: Any, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    need(x)
    x, rows, cols = _rows(x, shape)
    _check_weights(cols, w, b)
    y = torch.empty_like(x)
    left = list(x.shape[: x.dim() - len(shape)]) + [1] * len(shape)
    mean, rstd = here.empty(left), here.empty(left)
    fused(
        lib.ro_layer_norm, rows, cols, eps, x, _or(w, cols, 1.0), _or(b, cols, 0.0), y, mean, rstd
    )
    return y, mean, rstd


@handles("native_layer_norm_backward")
def layer_norm_backward(
    dy: Tensor, x: Tensor, shape: Any, mean: Tensor, rstd: Tensor, w: Any, b: Any, mask: Any
) -> Any:
    need(dy, x)
    x, rows, cols = _rows(x, shape)
    dx, dw, db = torch.empty_like(x), here.empty(list(shape)), here.empty(list(shape))
    _check_weights(cols, w)
    fits = dy.shape == x.shape and mean.numel() == rstd.numel() == rows
    expect(fits, "its sizes do not fit")
    gamma = _or(w, cols, 1.0)
    fused(lib.ro_layer_norm_backward, rows, cols, x, gamma, mean, rstd, dy.contiguous(), dx, dw, db)
    return tuple(t if wanted else None for t, wanted in zip((dx, dw, db), mask))


@handles("native_group_norm")
def group_norm(
    x: Tensor, w: Any, b: Any, n: int, c: int, size: int, groups: int, eps: float
) -> Any:
    rows = x.reshape(n * groups, c // groups * size)
    y, mean, rstd = layer_norm(rows, [rows.shape[1]], None, None, eps)
    y = y.reshape(x.shape)
    channel = [1, c] + [1] * (x.dim() - 2)
    y = y if w is None else y * w.reshape(channel)
    y = y if b is None else y + b.reshape(channel)
    return y, mean.reshape(n, groups), rstd.reshape(n, groups)


@handles("native_group_norm_backward")
def group_norm_backward(
    dy: Tensor,
    x: Tensor,
    mean: Tensor,
    rstd: Tensor,
    w: Any,
    n: int,
    c: int,
    size: int,
    groups: int,
    mask: Any,
) -> Any:
    need(dy, x)
    channel, width = [1, c] + [1] * (x.dim() - 2), [c // groups * size]
    rows = x.reshape(n * groups, *width)
    g = (dy if w is None else dy * w.reshape(channel)).reshape(rows.shape)
    dx = layer_norm_backward(g, rows, width, mean, rstd, None, None, (True, False, False))[0]
    hat = ((rows - mean.reshape(-1, 1)) * rstd.reshape(-1, 1)).reshape(x.shape)
    others = [d for d in range(x.dim()) if d != 1]
    dw = total(dy * hat, others) if mask[1] else None
    return dx.reshape(x.shape), dw, total(dy, others) if mask[2] else None


@handles("_fused_rms_norm")
def rms_norm(x: Tensor, shape: Any, w: Any, eps: float | None) -> tuple[Tensor, Tensor]:
    need(x)
    eps = torch.finfo(torch.float32).eps if eps is None else eps
    x, rows, cols = _rows(x, shape)
    flat = x.reshape(rows, cols)
    rstd = run("ln_rstd", (cols, bits(eps)), (_row_dots(flat),))
    y = run("rmsnorm", (), (flat, rstd, _or(w, cols, 1.0).reshape(-1)))
    left = list(x.shape[: x.dim() - len(shape)]) + [1] * len(shape)
    return y.reshape(x.shape), rstd.reshape(left)


def _row_dots(x: Tensor) -> Tensor:
    rows, cols = x.shape
    blocks = max(1, -(-cols // BLOCK))
    parts = run("reduce_dot", (cols, min(cols, BLOCK)), (x, x), (rows, blocks))
    return sum_rows(parts)


@handles("_fused_rms_norm_backward")
def rms_norm_backward(dy: Tensor, x: Tensor, shape: Any, rstd: Tensor, w: Any, mask: Any) -> Any:
    need(dy, x)
    x, rows, cols = _rows(x, shape)
    flat, d, r = x.reshape(rows, cols), dy.contiguous().reshape(rows, cols), rstd.reshape(rows)
    gamma = _or(w, cols, 1.0).reshape(-1)
    blocks = max(1, -(-cols // BLOCK))
    sums = sum_rows(
        run("reduce_rms_gx", (cols, min(cols, BLOCK)), (d, gamma, flat, r), (rows, blocks))
    )
    dx = run("rms_dx", (), (d, gamma, flat, r, sums)).reshape(x.shape)
    dw = None
    if mask[1]:
        groups = max(1, -(-rows // 64))
        parts = run("rms_dgamma", (cols,), (d, flat, r), (groups, cols))
        dw = sum_columns(parts).reshape(list(shape))
    return dx, dw


# ---- weights ----


def _all_but(x: Tensor, dim: int) -> list[int]:
    return [d for d in range(x.dim()) if d != dim % x.dim()]


@handles("_weight_norm_interface")
def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    need(v, g)
    norms = run("sqrt", (), (total(v * v, _all_but(v, dim), True),))
    return v * (g / norms), norms


@handles("_weight_norm_interface_backward")
def weight_norm_backward(
    dw: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    need(dw, v, g)
    dg = total(dw * v, _all_but(v, dim), True) / norms
    return (g / norms) * (dw - v * (dg / norms)), dg


# ---- batches ----


def _channels(x: Tensor, use: str) -> Tensor:
    """[N, C, ...] as dense rows of channels, [N ..., C]."""
    rows = channels_last(x, use)
    return rows.view(math.prod(rows.shape[:-1]), x.shape[1])


def _images(rows: Tensor, x: Tensor) -> Tensor:
    """Rows of channels as a tensor of x's shape and layout."""
    return channels_first(rows.view(x.shape[0], *x.shape[2:], x.shape[1]), x)


def _statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and the sum of squared deviations of columns, SPEC 12.3."""
    rows, cols = x.shape
    groups, per = -(-rows // 64), 64
    m = run("bn_mean", (cols,), (x,), (groups, cols))
    s = run("bn_sqdev", (cols,), (x, m), (groups, cols))
    while groups > 1:
        groups, at = -(-groups // 64), (cols, rows, per)
        m, s = (
            run("bn_merge_mean", at, (m,), (groups, cols)),
            run("bn_merge_sqdev", at, (m, s), (groups, cols)),
        )
        per *= 64
    return m.reshape(cols), s.reshape(cols)


def _update(running: Tensor | None, value: Tensor, momentum: float, divisor: float) -> None:
    if running is not None:
        running.copy_(
            run("bn_running", (bits(momentum), bits(divisor)), (running.contiguous(), value))
        )


@handles("native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm")
def batch_norm(
    x: Tensor, w: Any, b: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> Any:
    need(x)
    flat = _channels(x, "x")
    rows, cols = flat.shape
    if training:
        m, s = _statistics(flat)
        rstd = run("ln_rstd", (rows, bits(eps)), (s,))
        _update(mean, m, momentum, 1.0)
        _update(var, s, momentum, max(1.0, rows - 1.0))
    else:
        m, rstd = mean.contiguous(), run("ln_rstd", (1, bits(eps)), (var.contiguous(),))
    y = run("batchnorm", (), (flat, m, rstd, _or(w, cols, 1.0), _or(b, cols, 0.0)))
    return _images(y, x), m if training else here.empty(0), rstd if training else here.empty(0)


@handles("_native_batch_norm_legit.no_stats")
def batch_norm_alone(x: Tensor, w: Any, b: Any, training: bool, momentum: float, eps: float) -> Any:
    return batch_norm(x, w, b, None, None, True, momentum, eps)


@handles("native_batch_norm_backward")
def batch_norm_backward(
    dy: Tensor,
    x: Tensor,
    w: Any,
    mean: Any,
    var: Any,
    m: Any,
    rstd: Any,
    training: bool,
    eps: float,
    mask: Any,
) -> Any:
    need(dy, x)
    flat, d = _channels(x, "x"), _channels(dy, "dy")
    rows, cols = flat.shape
    if not training:
        m, rstd = mean.contiguous(), run("ln_rstd", (1, bits(eps)), (var.contiguous(),))
    gamma, groups = _or(w, cols, 1.0), -(-rows // 64)
    dw = sum_columns(run("bn_dgamma", (cols,), (d, flat, m, rstd), (groups, cols)))
    db = sum_columns(d)
    dx = run("bn_dx", (), (d, flat, m, rstd, gamma, db, dw)) if training else d * (gamma * rstd)
    return tuple(t if wanted else None for t, wanted in zip((_images(dx, x), dw, db), mask))
