"""torch.optim's fused steps, by the library's AdamW and SGD (SPEC 9)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch

from .._library import AdamwParameter, AdamwStep, SgdStep, lib
from .._operators import bits
from ._call import Leftover, fused, need, packed, run
from ._registry import handles

Tensor = torch.Tensor
_corrections: dict[float, list[Tensor]] = {}


def correction(beta: float, step: int) -> Tensor:
    """1 - beta^step as SPEC 9 has it: bias_correction of itself, step times, from 0. It is [1]."""
    known = _corrections.setdefault(beta, [torch.zeros(1)])
    while len(known) <= step:
        known.append(run("bias_correction", (bits(beta),), (known[-1],)))
    return known[step]


def adamw(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    ms: Sequence[Tensor],
    vs: Sequence[Tensor],
    steps: Sequence[int],
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float | Sequence[float],
    clip: Tensor | None = None,
) -> None:
    """A step of all parameters, in place. decay: of all, or of each. clip: what gradients are
    multiplied by, [1]."""
    decays = decay if isinstance(decay, (list, tuple)) else [decay] * len(params)
    rate = lr.reshape(1).float() if isinstance(lr, Tensor) else torch.tensor([float(lr)])
    clip = torch.ones(1) if clip is None else clip
    grads = [
        g if g.stride() == p.stride() else torch.empty_like(p).copy_(g)
        for g, p in zip(grads, params)
    ]
    table, kept = (AdamwParameter * len(params))(), []
    for it, w, g, m, v, step, own in zip(table, params, grads, ms, vs, steps, decays):
        need(w, g, m, v)
        if not (w.stride() == m.stride() == v.stride()) or not packed(w):
            raise Leftover("a parameter and its state do not lie alike")
        c1, c2 = correction(beta1, step), correction(beta2, step)
        kept += [c1, c2]
        it.step = AdamwStep(
            w.numel(), beta1, beta2, eps, own, *[t.data_ptr() for t in (clip, c1, c2, rate)]
        )
        it.w = it.w_out = w.data_ptr()
        it.m = it.m_out = m.data_ptr()
        it.v = it.v_out = v.data_ptr()
        it.gradient = g.data_ptr()
    fused(lib.ro_adamw_all, len(params), table)


def _plain(grad_scale: Any, found_inf: Any, amsgrad: bool = False) -> None:
    if grad_scale is not None or found_inf is not None:
        raise Leftover("it takes a gradient scaler")
    if amsgrad:
        raise Leftover("it keeps the largest second moments (amsgrad)")


@handles("_fused_adamw_.default", "_fused_adamw_.tensor_lr")
def fused_adamw(
    params: Any,
    grads: Any,
    ms: Any,
    vs: Any,
    tops: Any,
    steps: Any,
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
    grad_scale: Any = None,
    found_inf: Any = None,
) -> None:
    _plain(grad_scale, found_inf, amsgrad)
    grads = [-g for g in grads] if maximize else grads
    adamw(params, grads, ms, vs, [int(s) for s in steps], lr, beta1, beta2, eps, weight_decay)


@handles("_fused_adam_.default", "_fused_adam_.tensor_lr")
def fused_adam(
    params: Any,
    grads: Any,
    ms: Any,
    vs: Any,
    tops: Any,
    steps: Any,
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
    grad_scale: Any = None,
    found_inf: Any = None,
) -> None:
    """Its decay is a part of the gradient."""
    _plain(grad_scale, found_inf, amsgrad)
    grads = [-g for g in grads] if maximize else grads
    if weight_decay:
        grads = [g + w * weight_decay for g, w in zip(grads, params)]
    adamw(params, grads, ms, vs, [int(s) for s in steps], lr, beta1, beta2, eps, 0.0)


def sgd(
    w: Tensor,
    g: Tensor,
    m: Tensor,
    lr: Any,
    momentum: float,
    decay: float,
    nesterov: bool,
    clip: Tensor | None = None,
) -> None:
    """A step of one parameter, in place; m is its momentum, which may start as zeros."""
    g = g if g.stride() == w.stride() else torch.empty_like(w).copy_(g)
    need(w, g, m)
    if w.stride() != m.stride() or not packed(w):
        raise Leftover("a parameter and its momentum do not lie alike")
    rate = lr.reshape(1).float() if isinstance(lr, Tensor) else torch.tensor([float(lr)])
    clip = torch.ones(1) if clip is None else clip
    it = SgdStep(w.numel(), momentum, decay, nesterov, clip.data_ptr(), rate.data_ptr())
    fused(lib.ro_sgd, ctypes.byref(it), w, m, g, w, m)


@handles("_fused_sgd_.default", "_fused_sgd_.tensor_lr")
def fused_sgd(
    params: Any,
    grads: Any,
    ms: Any,
    *,
    weight_decay: float,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Any = None,
    found_inf: Any = None,
) -> None:
    _plain(grad_scale, found_inf)
    if dampening and not is_first_step:
        raise Leftover("its momentum is damped")
    for i, (w, g) in enumerate(zip(params, grads)):
        m = ms[i] if momentum else torch.zeros_like(w)
        if momentum and is_first_step:
            m.zero_()
        sgd(w, -g if maximize else g, m, lr, momentum, weight_decay, nesterov)
