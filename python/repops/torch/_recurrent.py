"""An LSTM layer, which torch hands to oneDNN as one operator. (GRU and RNN decompose.)"""

from __future__ import annotations

from typing import Any

import torch

from . import _here as here
from ._call import Leftover, elementwise, matmul, need, sum_columns
from ._products import linear_rows
from ._registry import handles

Tensor = torch.Tensor
LSTM = 2  # torch's number for it


def _times(count: int, reverse: bool) -> range:
    return range(count - 1, -1, -1) if reverse else range(count)


@handles("mkldnn_rnn_layer")
def layer(
    x: Tensor,
    w: Tensor,
    w_h: Tensor,
    b: Tensor,
    b_h: Tensor,
    h: Tensor,
    c: Tensor,
    reverse: bool,
    sizes: Any,
    mode: int,
    hidden: int,
    layers: int,
    biases: bool,
    *ignored: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gates add both linear layers. The last result is for the backward pass: for each time
    step the gates after their activations, and the cell state."""
    need(x, w, w_h, b, b_h, h, c)
    if mode != LSTM or sizes:
        raise Leftover("it is no plain layer of LSTM")
    bias, bias_h = (b, b_h.contiguous()) if biases else (None, None)  # b and b_h are zeros then
    parts = linear_rows(x, w, bias, 1)
    kept = here.empty(*x.shape[:2], 5 * h.shape[-1])
    y = here.empty(*x.shape[:2], h.shape[-1])
    h_size, c_size = h.shape, c.shape
    h, c, w_h = h.reshape(y.shape[1:]), c.reshape(y.shape[1:]), w_h.contiguous()
    for t in _times(len(x), reverse):
        i, f, g, o = (parts[t] + linear_rows(h, w_h, bias_h, 1)).chunk(4, -1)
        i, f, o = (elementwise("sigmoid", (), a.contiguous()) for a in (i, f, o))
        g = elementwise("tanh", (), g.contiguous())
        c = f * c + i * g
        h = o * elementwise("tanh", (), c)
        y[t], kept[t] = h, torch.cat([i, f, g, o, c], -1)
    return y, h.reshape(h_size).clone(), c.reshape(c_size).clone(), kept


def _gates(kept: Tensor, before: Tensor, dh: Tensor, dc: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of one time step's gates, and of the cell state before it."""
    i, f, g, o, c = (a.contiguous() for a in kept.chunk(5, -1))
    t = elementwise("tanh", (), c)
    dc = dc + elementwise("tanh_grad", (), t, dh * o)
    slopes = [
        elementwise("sigmoid_grad", (), i, dc * g),
        elementwise("sigmoid_grad", (), f, dc * before),
        elementwise("tanh_grad", (), g, dc * i),
        elementwise("sigmoid_grad", (), o, dh * t),
    ]
    return torch.cat(slopes, -1), dc * f


@handles("mkldnn_rnn_layer_backward")
def layer_backward(
    x: Tensor,
    w: Tensor,
    w_h: Tensor,
    b: Tensor,
    b_h: Tensor,
    h: Tensor,
    c: Tensor,
    y: Tensor,
    hy: Tensor,
    cy: Tensor,
    dy: Any,
    dhy: Any,
    dcy: Any,
    reverse: bool,
    *ignored: Any,
) -> tuple[Tensor, ...]:
    kept, size = ignored[-1], y.shape[1:]
    need(x, w, w_h, y, kept)
    h0, c0 = h.reshape(size), c.reshape(size)
    cells = kept.chunk(5, -1)[4]
    dh = here.zeros(size) if dhy is None else dhy.reshape(size)
    dc = here.zeros(size) if dcy is None else dcy.reshape(size)
    d, before = here.empty(*y.shape[:2], 4 * size[1]), here.empty(y.shape)
    order = list(_times(len(x), reverse))
    for at in reversed(range(len(order))):
        t = order[at]
        c_before, before[t] = (cells[order[at - 1]], y[order[at - 1]]) if at else (c0, h0)
        dh = dh if dy is None else dh + dy[t]
        d[t], dc = _gates(kept[t], c_before, dh, dc)
        dh = matmul(d[t], w_h)
    rows = d.reshape(-1, d.shape[2])
    dx = matmul(rows, w).reshape(x.shape)
    dw = matmul(rows.t(), x.reshape(-1, x.shape[2]))
    dw_h = matmul(rows.t(), before.reshape(-1, size[1]))
    db = sum_columns(rows)
    return dx, dw, dw_h, db, db.clone(), dh.reshape(h.shape), dc.reshape(c.shape)
