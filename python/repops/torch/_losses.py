"""Losses and their gradients, from the library's operators and elementwise operations."""

from __future__ import annotations

from typing import Any

import torch

from . import _here as here
from ._call import elementwise, need, total
from ._elements import clamp
from ._registry import handles

Tensor = torch.Tensor

NONE, MEAN, SUM = 0, 1, 2  # torch's numbers for reductions


def reduced(x: Tensor, reduction: int) -> Tensor:
    return x if reduction == NONE else total(x) if reduction == SUM else total(x) / x.numel()


def _classes_last(x: Tensor) -> Tensor:
    return x.movedim(1, -1).reshape(-1, x.shape[1]) if x.dim() > 1 else x.reshape(1, -1)


@handles("nll_loss_forward", "nll_loss2d_forward")
def nll_loss(
    x: Tensor, target: Tensor, weight: Any, reduction: int, ignore: int
) -> tuple[Tensor, Tensor]:
    need(x)
    rows, labels = _classes_last(x), target.reshape(-1)
    keep = labels != ignore
    safe = torch.where(keep, labels, 0)
    each = here.ones(labels.shape) if weight is None else weight[safe]
    each = torch.where(keep, each, 0.0)
    loss = torch.where(keep, -rows.gather(1, safe[:, None])[:, 0] * each, 0.0)
    if reduction == NONE:
        return loss.reshape(target.shape), here.zeros(())
    whole, weights = total(loss), total(each)
    return (whole / weights if reduction == MEAN else whole), weights


@handles("nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward(
    dy: Tensor, x: Tensor, target: Tensor, weight: Any, reduction: int, ignore: int, weights: Tensor
) -> Tensor:
    labels = target.reshape(-1)
    keep = labels != ignore
    safe = torch.where(keep, labels, 0)
    each = dy / weights if reduction == MEAN else dy.reshape(-1)
    each = -each if weight is None else -each * weight[safe]
    dx = here.zeros(labels.numel(), x.shape[1] if x.dim() > 1 else x.numel())
    dx.scatter_(1, safe[:, None], torch.where(keep, each, 0.0)[:, None])
    if x.dim() < 2:
        return dx.reshape(x.shape)
    return dx.reshape(x.shape[0], *x.shape[2:], x.shape[1]).movedim(-1, 1).contiguous()


def _share(dy: Tensor, x: Tensor, reduction: int) -> Tensor:
    """The gradient of each element of the unreduced loss."""
    return dy / x.numel() if reduction == MEAN else dy


@handles("mse_loss")
def mse_loss(x: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    d = x - target
    return reduced(d * d, reduction)


@handles("mse_loss_backward")
def mse_loss_backward(dy: Tensor, x: Tensor, target: Tensor, reduction: int) -> Tensor:
    d = (x - target) * 2.0
    return dy * (d / d.numel() if reduction == MEAN else d)


@handles("smooth_l1_loss")
def smooth_l1(x: Tensor, target: Tensor, reduction: int = MEAN, beta: float = 1.0) -> Tensor:
    z = (x - target).abs()
    return reduced(torch.where(z < beta, z * z * 0.5 / beta, z - 0.5 * beta), reduction)


@handles("smooth_l1_loss_backward")
def smooth_l1_backward(
    dy: Tensor, x: Tensor, target: Tensor, reduction: int, beta: float
) -> Tensor:
    d = x - target
    slope = torch.where(d.abs() < beta, d / beta, d.sign())
    return slope * _share(dy, d, reduction)


@handles("huber_loss")
def huber(x: Tensor, target: Tensor, reduction: int = MEAN, delta: float = 1.0) -> Tensor:
    z = (x - target).abs()
    return reduced(torch.where(z <= delta, z * z * 0.5, (z - 0.5 * delta) * delta), reduction)


@handles("huber_loss_backward")
def huber_backward(dy: Tensor, x: Tensor, target: Tensor, reduction: int, delta: float) -> Tensor:
    d = x - target
    return clamp(d, -delta, delta) * _share(dy, d, reduction)


def _log_of_exp1(x: Tensor) -> Tensor:
    """log(1 + exp(x)) without overflow."""
    return clamp(x, 0.0) + elementwise("log1p", (), elementwise("exp", (), -x.abs()))


@handles("soft_margin_loss")
def soft_margin(x: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    return reduced(_log_of_exp1(-target * x), reduction)


@handles("soft_margin_loss_backward")
def soft_margin_backward(dy: Tensor, x: Tensor, target: Tensor, reduction: int) -> Tensor:
    slope = -target * elementwise("sigmoid", (), -target * x)
    return slope * _share(dy, x, reduction)


@handles("binary_cross_entropy")
def bce(x: Tensor, target: Tensor, weight: Any = None, reduction: int = MEAN) -> Tensor:
    """Logarithms are clamped to at least -100, as in torch."""
    no, yes = elementwise("log1p", (), -x), elementwise("log", (), x)
    loss = (target - 1.0) * clamp(no, -100.0) - target * clamp(yes, -100.0)
    return reduced(loss if weight is None else loss * weight, reduction)


@handles("binary_cross_entropy_backward")
def bce_backward(
    dy: Tensor, x: Tensor, target: Tensor, weight: Any = None, reduction: int = MEAN
) -> Tensor:
    slope = (x - target) / clamp((1.0 - x) * x, 1e-12)
    slope = slope * _share(dy, x, reduction)
    return slope if weight is None else slope * weight


@handles("binary_cross_entropy_with_logits")
def bce_with_logits(
    x: Tensor, target: Tensor, weight: Any = None, pos_weight: Any = None, reduction: int = MEAN
) -> Tensor:
    """(1 - t) x + w log(1 + exp(-x)) with w = 1 + (p - 1) t, where p is pos_weight; without
    pos_weight max(x, 0) - x t + log(1 + exp(-|x|))."""
    if pos_weight is None:
        loss = (
            clamp(x, 0.0) - x * target + elementwise("log1p", (), elementwise("exp", (), -x.abs()))
        )
    else:
        loss = (1.0 - target) * x + ((pos_weight - 1.0) * target + 1.0) * _log_of_exp1(-x)
    return reduced(loss if weight is None else loss * weight, reduction)
