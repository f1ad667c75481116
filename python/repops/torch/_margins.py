"""Losses that compare the right class with the others by a margin."""

from __future__ import annotations

from typing import Any

import torch

from . import _here as here
from ._call import Leftover, need, total
from ._elements import clamp
from ._indexing import scatter_add
from ._losses import MEAN, NONE, reduced
from ._registry import handles

Tensor = torch.Tensor


def _hinges(x: Tensor, target: Tensor, margin: float, weight: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The hinge of each class of [rows, classes], the mask of right classes, and the weight of each
    row."""
    need(x)
    labels = target.reshape(-1, 1)
    right = here.zeros(x.shape, dtype=torch.bool).scatter(1, labels, True)
    z = clamp(margin - x.gather(1, labels) + x, 0.0)
    each = here.ones(labels.shape) if weight is None else weight[labels]
    return torch.where(right, 0.0, z), right, each


def _rows(x: Tensor) -> Tensor:
    return x if x.dim() == 2 else x.reshape(1, -1)


def _power(p: Any) -> None:
    if p not in (1, 2):
        raise Leftover(f"its power is {p}; 1 and 2 are supported")


@handles("multi_margin_loss")
def multi_margin(
    x: Tensor,
    target: Tensor,
    p: Any = 1,
    margin: Any = 1,
    weight: Any = None,
    reduction: int = MEAN,
) -> Tensor:
    _power(p)
    z, _, each = _hinges(_rows(x), target, margin, weight)
    losses = total((z if p == 1 else z * z) * each, [1]) / z.shape[1]
    return reduced(losses.reshape(target.shape), reduction)


@handles("multi_margin_loss_backward")
def multi_margin_backward(
    dy: Tensor,
    x: Tensor,
    target: Tensor,
    p: Any,
    margin: Any,
    weight: Any = None,
    reduction: int = MEAN,
) -> Tensor:
    """The right class's gradient is minus the sum of all others' gradients."""
    _power(p)
    z, right, each = _hinges(_rows(x), target, margin, weight)
    rows, classes = z.shape
    slope = torch.where(z > 0, 1.0, 0.0).float() if p == 1 else z * 2.0
    slope = slope * each / (classes * rows if reduction == MEAN else classes)
    slope = torch.where(right, -total(slope, [1], True), slope)
    return (slope * (dy.reshape(-1, 1) if reduction == NONE else dy)).reshape(x.shape)


def _labelled(x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Labels [rows, classes], which end at the first negative one, and a mask of the classes
    named."""
    need(x)
    labels = _rows(target)
    kept = (labels >= 0).to(torch.int32).cumprod(1) == 1
    named = here.zeros(labels.shape, dtype=torch.int64)
    named = named.scatter_add(1, torch.where(kept, labels, 0), kept.long()) > 0
    return torch.where(kept, labels, -1), named


def _pairs(x: Tensor, labels: Tensor, named: Tensor) -> Tensor:
    """[rows, labels, classes]: the hinge, with margin 1, of each unnamed class against each
    label."""
    rows = _rows(x)
    right = rows.gather(1, torch.where(labels < 0, 0, labels))
    z = clamp(1.0 - right.unsqueeze(2) + rows.unsqueeze(1), 0.0)
    return torch.where((labels < 0).unsqueeze(2) | named.unsqueeze(1), 0.0, z)


@handles("multilabel_margin_loss_forward")
def multilabel_margin(x: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    labels, named = _labelled(x, target)
    losses = total(_pairs(x, labels, named), [1, 2]) / labels.shape[1]
    y = losses.reshape(()) if x.dim() < 2 else losses
    return reduced(y, reduction), named.to(torch.float32).reshape(target.shape)


@handles("multilabel_margin_loss_backward")
def multilabel_margin_backward(
    dy: Tensor, x: Tensor, target: Tensor, reduction: int, named: Tensor
) -> Tensor:
    labels, names = _labelled(x, target)
    rows, classes = labels.shape
    slope = torch.where(_pairs(x, labels, names) > 0, 1.0, 0.0).float()
    at = torch.where(labels < 0, 0, labels)
    less = scatter_add(here.zeros(rows, classes), 1, at, total(slope, [2]))
    dx = (total(slope, [1]) - less) / (classes * rows if reduction == MEAN else classes)
    return (dx * (dy.reshape(-1, 1) if reduction == NONE else dy)).reshape(x.shape)
