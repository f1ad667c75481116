"""Connectionist temporal classification (Graves et al., ICML 2006), in logarithms."""

from __future__ import annotations

from typing import Any

import torch

from . import _here as here
from ._call import elementwise, need
from ._indexing import scatter_add
from ._registry import handles

Tensor = torch.Tensor
_NONE = -float("inf")


def _log_sum(*terms: Tensor) -> Tensor:
    """log(sum(exp(terms))), added in the order of the terms."""
    top = terms[0]
    for t in terms[1:]:
        top = torch.where(t > top, t, top)
    base = torch.where(top == _NONE, 0.0, top)
    y = None
    for t in terms:
        e = elementwise("exp", (), t - base)
        y = e if y is None else y + e
    assert y is not None
    return torch.where(top == _NONE, top, elementwise("log", (), y) + base)


def _numbers(lengths: Any, x: Tensor) -> Tensor:
    """Lengths as int64 on x's device; as in torch they may be given in the CPU's memory."""
    if isinstance(lengths, torch.Tensor):
        return lengths.to(x.device, torch.int64)
    return here.tensor(list(lengths))


def _labels(targets: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """[N, 2 S + 1]: labels with a blank before, between and after them."""
    if targets.dim() == 1:
        rows = here.full((len(lengths), int(lengths.max())), blank, dtype=torch.int64)
        at = 0
        for row, count in zip(rows, lengths.tolist()):
            row[:count] = targets[at : at + count]
            at += count
        targets = rows
    labels = here.full((targets.shape[0], 2 * targets.shape[1] + 1), blank, dtype=torch.int64)
    labels[:, 1::2] = targets
    return labels


def _shifted(x: Tensor, by: int, over: Tensor | None = None) -> Tensor:
    """x shifted along the labels by `by`, filled with _NONE; elements where `over` is false become
    _NONE, too."""
    y = torch.full_like(x, _NONE)
    if by > 0:
        y[:, by:] = x[:, :-by]
    else:
        y[:, :by] = x[:, -by:]
    return y if over is None else torch.where(over, y, _NONE)


def _skips(labels: Tensor) -> Tensor:
    """May a path reach each label from the label before it, without the blank between?"""
    skips = torch.zeros_like(labels, dtype=torch.bool)
    skips[:, 3::2] = labels[:, 3::2] != labels[:, 1:-2:2]
    return skips


def _ends(labels: Tensor, lengths: Tensor) -> Tensor:
    """Marks where a path may end: a row's last label and the blank after it."""
    at = here.arange(labels.shape[1])[None]
    last = 2 * lengths[:, None]
    return (at == last) | (at == last - 1)


@handles("_ctc_loss")
def ctc_loss(
    x: Tensor, targets: Tensor, inputs: Any, lengths: Any, blank: int = 0, zero: bool = False
) -> tuple[Tensor, Tensor]:
    """The loss of each row, and log of the total probability of the paths to each label."""
    need(x)
    inputs, lengths = _numbers(inputs, x), _numbers(lengths, x)
    labels = _labels(targets, lengths, blank)
    skips = _skips(labels)
    p = x.gather(2, labels.expand(x.shape[0], *labels.shape))
    first = here.arange(labels.shape[1])[None] <= 1
    paths = [torch.where(first, p[0], _NONE)]
    for t in range(1, x.shape[0]):
        a = paths[-1]
        paths.append(_log_sum(a, _shifted(a, 1), _shifted(a, 2, skips)) + p[t])
    alpha = torch.stack(paths, 1)
    last = alpha[here.arange(len(inputs)), torch.where(inputs > 0, inputs - 1, 0)]
    at = 2 * lengths[:, None]
    ends = last.gather(1, torch.cat([at, torch.where(at > 0, at - 1, 0)], 1))
    second = torch.where(lengths > 0, ends[:, 1], _NONE)
    return -_log_sum(ends[:, 0], second), alpha


@handles("_ctc_loss_backward")
def ctc_loss_backward(
    dy: Tensor,
    x: Tensor,
    targets: Tensor,
    inputs: Any,
    lengths: Any,
    loss: Tensor,
    alpha: Tensor,
    blank: int,
    zero: bool = False,
) -> Tensor:
    """The gradient: exp(x) minus the share of paths through each class, as torch defines it."""
    need(dy, x)
    inputs, lengths = _numbers(inputs, x), _numbers(lengths, x)
    labels = _labels(targets, lengths, blank)
    skips, ends = _skips(labels), _ends(labels, lengths)
    after = _shifted(skips.float(), -2) == 1.0
    p = x.gather(2, labels.expand(x.shape[0], *labels.shape))
    beta = here.full(labels.shape, _NONE)
    dx = torch.zeros_like(x)
    for t in reversed(range(x.shape[0])):
        on = _log_sum(beta, _shifted(beta, -1), _shifted(beta, -2, after))
        start = torch.where(ends, 0.0, _NONE).float()
        beta = torch.where((inputs == t + 1)[:, None], start, on) + p[t]
        share = elementwise("exp", (), alpha[:, t] + beta - p[t] + loss[:, None])
        share = torch.where((inputs > t)[:, None] & (beta > _NONE), share, 0.0)
        sums = scatter_add(torch.zeros_like(x[t]), 1, labels, share)
        slope = (elementwise("exp", (), x[t].contiguous()) - sums) * dy[:, None]
        dx[t] = torch.where((inputs > t)[:, None], slope, 0.0)
    return torch.where((loss == float("inf"))[:, None], 0.0, dx) if zero else dx
