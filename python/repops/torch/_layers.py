"""LSTM, GRU and RNN on a device, by the operators that torch calls on the CPU.

On CUDA torch has fused cells, and multiplies the input of each time step separately. On the CPU it
multiplies the inputs of all time steps at once, which sums a weight's gradient in another order,
and an LSTM layer is one operator (_recurrent.py). So the loops over layers, directions and time
steps are here: each calls what torch's loop for the CPU calls, in the same order, in the backward
pass too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.nn import functional as F

Tensor = torch.Tensor
Hidden = tuple[Tensor, ...]  # the previous time step's output and, for LSTM, cell state
LSTM = 2  # torch's number for it, which is oneDNN's


class Weights(NamedTuple):
    """Weights of one direction of a layer."""

    of_input: Tensor
    of_hidden: Tensor
    bias: Tensor | None = None
    bias_hidden: Tensor | None = None
    projection: Tensor | None = None


Cell = Callable[[Tensor, Hidden, Weights], Hidden]


def _weights(params: Sequence[Tensor], biases: bool, projected: bool = False) -> list[Weights]:
    count = 2 + 2 * biases + projected
    groups = [params[i : i + count] for i in range(0, len(params), count)]
    if biases or not projected:
        return [Weights(*g) for g in groups]
    return [Weights(g[0], g[1], projection=g[2]) for g in groups]


# ---- cells, which take an input already multiplied by its weights ----


def _of_hidden(h: Tensor, w: Weights) -> Tensor:
    return F.linear(h, w.of_hidden, w.bias_hidden)


def _lstm(x: Tensor, hidden: Hidden, w: Weights) -> Hidden:
    h, c = hidden
    i, f, g, o = _of_hidden(h, w).add_(x).unsafe_chunk(4, 1)
    i, f, g, o = i.sigmoid_(), f.sigmoid_(), g.tanh_(), o.sigmoid_()
    c = (f * c).add_(i * g)
    h = o * c.tanh()
    return (h if w.projection is None else h @ w.projection.t()), c


def _gru(x: Tensor, hidden: Hidden, w: Weights) -> Hidden:
    (h,) = hidden
    x_reset, x_keep, x_new = x.unsafe_chunk(3, 1)
    h_reset, h_keep, h_new = _of_hidden(h, w).unsafe_chunk(3, 1)
    reset = h_reset.add_(x_reset).sigmoid_()
    keep = h_keep.add_(x_keep).sigmoid_()
    new = x_new.add(h_new.mul_(reset)).tanh_()
    return ((h - new).mul_(keep).add_(new),)


def _tanh(x: Tensor, hidden: Hidden, w: Weights) -> Hidden:
    return (_of_hidden(hidden[0], w).add_(x).tanh(),)


def _relu(x: Tensor, hidden: Hidden, w: Weights) -> Hidden:
    return (_of_hidden(hidden[0], w).add_(x).relu(),)


# ---- one direction of a layer ----


def _times(cell: Cell, x: Tensor, hidden: Hidden, w: Weights, back: bool) -> tuple[Tensor, Hidden]:
    """Runs sequences that all have one length."""
    outputs = []
    steps = F.linear(x, w.of_input, w.bias).unbind(0)
    if not steps:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    for step in reversed(steps) if back else steps:
        hidden = cell(step, hidden, w)
        outputs.append(hidden[0])
    return torch.stack(outputs[::-1] if back else outputs, 0), hidden


def _narrowed(hidden: Hidden, first: int, end: int) -> Hidden:
    return tuple(t.narrow(0, first, end - first) for t in hidden)


def _joined(parts: Sequence[Hidden]) -> Hidden:
    return tuple(torch.cat(ts, 0) for ts in zip(*parts))


def _packed(
    cell: Cell, x: Tensor, counts: list[int], hidden: Hidden, w: Weights
) -> tuple[Tensor, Hidden]:
    """Runs sequences of several lengths, the longest first. counts: the number of sequences at each
    time step; x has the rows of all time steps in order."""
    outputs, ended, first, last = [], [], 0, counts[0]
    x = F.linear(x, w.of_input, w.bias)
    for count in counts:
        step = x.narrow(0, first, count)
        if count < last:
            ended.append(_narrowed(hidden, count, last))
            hidden = _narrowed(hidden, 0, count)
        hidden = cell(step, hidden, w)
        outputs.append(hidden[0])
        first, last = first + count, count
    return torch.cat(outputs, 0), _joined([*ended, hidden][::-1])


def _packed_back(
    cell: Cell, x: Tensor, counts: list[int], start: Hidden, w: Weights
) -> tuple[Tensor, Hidden]:
    """Runs the same backwards in time; the shorter sequences join later."""
    outputs, first, last = [], x.shape[0], counts[-1]
    x, hidden = F.linear(x, w.of_input, w.bias), _narrowed(start, 0, counts[-1])
    for count in reversed(counts):
        if count > last:
            hidden = _joined([hidden, _narrowed(start, last, count)])
        first, last = first - count, count
        hidden = cell(x.narrow(0, first, count), hidden, w)
        outputs.append(hidden[0])
    return torch.cat(outputs[::-1], 0), hidden


# ---- layers ----


def _stacked(
    direction: Callable[..., tuple[Tensor, Hidden]],
    x: Tensor,
    hidden: Sequence[Hidden],
    weights: list[Weights],
    dropout: float,
    directions: int,
) -> tuple[Tensor, list[Hidden]]:
    """Calls direction(x, hidden, weights, backwards) for each direction of each layer."""
    last: list[Hidden] = []
    while len(last) < len(weights):
        ys = []
        for back in range(directions):
            at = len(last)
            y, end = direction(x, hidden[at], weights[at], bool(back))
            ys.append(y)
            last.append(end)
        x = ys[0] if directions == 1 else torch.cat(ys, -1)
        if dropout and len(last) < len(weights):
            x = torch.dropout(x, dropout, True)
    return x, last


def _whole(
    cell: Cell,
    x: Tensor,
    hidden: Sequence[Hidden],
    weights: list[Weights],
    dropout: float,
    train: bool,
    both: bool,
    first: bool = False,
) -> tuple[Tensor, ...]:
    """Runs layers on sequences of one length. first: the batch is the first dimension of x."""

    def direction(x: Tensor, *given: Any) -> Any:
        return _times(cell, x, *given)

    x = x.transpose(0, 1) if first else x
    y, last = _stacked(direction, x, hidden, weights, dropout * train, 1 + both)
    return y.transpose(0, 1) if first else y, *(torch.stack(ts, 0) for ts in zip(*last))


def _of_lengths(
    cell: Cell,
    x: Tensor,
    counts: Tensor,
    hidden: Sequence[Hidden],
    weights: list[Weights],
    dropout: float,
    train: bool,
    both: bool,
) -> tuple[Tensor, ...]:
    sizes = counts.tolist()

    def direction(x: Tensor, hidden: Hidden, w: Weights, back: bool) -> Any:
        return (_packed_back if back else _packed)(cell, x, sizes, hidden, w)

    y, last = _stacked(direction, x, hidden, weights, dropout * train, 1 + both)
    return y, *(torch.stack(ts, 0) for ts in zip(*last))


# ---- torch's operators ----


def _plain(cell: Cell) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two operators (padded, packed) for layers whose cells have one hidden tensor."""

    def layers(
        x: Tensor,
        h: Tensor,
        params: Any,
        biases: bool,
        count: int,
        dropout: float,
        train: bool,
        both: bool,
        first: bool,
    ) -> Any:
        hidden, weights = [(t,) for t in h.unbind(0)], _weights(params, biases)
        return _whole(cell, x, hidden, weights, dropout, train, both, first)

    def of_lengths(
        x: Tensor,
        counts: Tensor,
        h: Tensor,
        params: Any,
        biases: bool,
        count: int,
        dropout: float,
        train: bool,
        both: bool,
    ) -> Any:
        hidden, weights = [(t,) for t in h.unbind(0)], _weights(params, biases)
        return _of_lengths(cell, x, counts, hidden, weights, dropout, train, both)

    return layers, of_lengths


def _pairs(hx: Any) -> list[Hidden]:
    return list(zip(hx[0].unbind(0), hx[1].unbind(0)))


def _is_projected(hx: Any) -> bool:
    return hx[0].shape[2] != hx[1].shape[2]


def _zeros(x: Tensor) -> Tensor:
    """Zeros in place of a bias, of the size that torch uses on the CPU."""
    return torch.zeros(x.shape, dtype=x.dtype, device=x.device)


def _in_one(h: Any, weights: list[Weights], first: bool, both: bool, train: bool) -> Any:
    """Runs each direction of an LSTM layer as one operator, as oneDNN does."""
    how = (LSTM, h[0].shape[2], len(weights) // (1 + both))

    def direction(x: Tensor, hidden: Hidden, w: Weights, back: bool) -> Any:
        biases = w.bias is not None
        b = (w.bias, w.bias_hidden) if biases else [_zeros(w.of_input), _zeros(w.of_input)]
        y, h, c, _ = torch.ops.aten.mkldnn_rnn_layer.default(
            x, w.of_input, w.of_hidden, *b, *hidden, back, [], *how, biases, both, first, train
        )
        return y, (h, c)

    return direction


def _lstm_layers(
    x: Tensor,
    hx: Any,
    params: Any,
    biases: bool,
    count: int,
    dropout: float,
    train: bool,
    both: bool,
    first: bool,
) -> Any:
    projected = _is_projected(hx)
    weights = _weights(params, biases, projected)
    if projected or not x.numel() or not torch._C._get_mkldnn_enabled():
        return _whole(_lstm, x, _pairs(hx), weights, dropout, train, both, first)
    x = (x.transpose(0, 1) if first else x).contiguous()
    hx = [t.contiguous() for t in hx]
    direction = _in_one(hx, weights, first, both, train)
    y, last = _stacked(direction, x, _pairs(hx), weights, dropout * train, 1 + both)
    return y.transpose(0, 1) if first else y, *(torch.stack(ts, 0) for ts in zip(*last))


def _lstm_of_lengths(
    x: Tensor,
    counts: Tensor,
    hx: Any,
    params: Any,
    biases: bool,
    count: int,
    dropout: float,
    train: bool,
    both: bool,
) -> Any:
    weights = _weights(params, biases, _is_projected(hx))
    return _of_lengths(_lstm, x, counts, _pairs(hx), weights, dropout, train, both)


def _one_cell(cell: Cell) -> Callable[..., Any]:
    def compute(x: Tensor, h: Any, *given: Any) -> Any:
        w = Weights(*given)
        hidden = tuple(h) if isinstance(h, (list, tuple)) else (h,)
        new = cell(F.linear(x, w.of_input, w.bias), hidden, w)
        return new if len(new) > 1 else new[0]

    return compute


_OPS = torch.ops.aten
APART: dict[Any, Callable[..., Any]] = {
    _OPS.lstm.input: _lstm_layers,
    _OPS.lstm.data: _lstm_of_lengths,
    _OPS.lstm_cell.default: _one_cell(_lstm),
    _OPS.gru_cell.default: _one_cell(_gru),
}
for _packet, _cell in ((_OPS.gru, _gru), (_OPS.rnn_tanh, _tanh), (_OPS.rnn_relu, _relu)):
    APART[_packet.input], APART[_packet.data] = _plain(_cell)
