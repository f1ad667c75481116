"""torch.optim's fused steps, by the library's AdamW and SGD (SPEC 9)."""

from __future__ import annotations

import array
import ctypes
import functools
import threading
from collections.abc import Sequence
from typing import Any

import torch

from .. import _context
from .._library import PTR, AdamwParameter, AdamwStep, Error, SgdStep, Shape, lib
from .._operators import bits, call
from .._table import TABLE
from . import _here as here
from ._call import Leftover, Misfit, elementwise, fused, need, packed, run
from ._elements import maximum
from ._registry import handles

Tensor = torch.Tensor


class _Corrections:
    """1 - beta^t in float32, for t = 0, 1, ... It rises until it stays the same, after 143 steps
    for a beta of 0.9 and 10,301 for 0.999, and no more is kept."""

    def __init__(self, beta: float) -> None:
        self._call = call(TABLE["bias_correction"], (bits(beta),), [Shape(1, 1, (1,))], None)
        self._values, self._last = array.array("f", [0.0]), False
        self._lock = threading.Lock()

    def at(self, step: int, context: _context.Context) -> float:
        """The value after `step` steps; the context is of the CPU."""
        if step >= len(self._values) and not self._last:
            with self._lock:
                self._extend(step, context)
        return self._values[min(step, len(self._values) - 1)]

    def _extend(self, step: int, context: _context.Context) -> None:
        memory, size = (ctypes.c_float * 2)(self._values[-1]), ctypes.sizeof(ctypes.c_float)
        out = ctypes.addressof(memory) + size
        given, what = (PTR * 1)(out - size), ctypes.byref(self._call)
        while step >= len(self._values) and not self._last:
            context.check(lib.ro_run(context.handle, what, given, out))
            self._last = memory[1] == memory[0]
            if not self._last:
                self._values.append(memory[1])
                memory[0] = memory[1]


_corrections = functools.lru_cache(64)(_Corrections)


@functools.lru_cache(64)
def _tensor(value: float) -> Tensor:
    """A number in the CPU's memory. It is not to be written."""
    return torch.tensor([value], dtype=torch.float32, device="cpu")


def correction(beta: float, step: int, of: Tensor | None = None) -> Tensor:
    """1 - beta^step, [1], as SPEC 9 defines it: bias_correction applied `step` times, from 0. of:
    the parameter's tensor under which a recorded step keeps it in the job's state."""
    context = _context.current()
    if context.job is not None and of is not None and context.job.recording:
        return context.job.correction(beta, step, of)
    if step < 1:
        raise Error(f"an optimizer's step is {step}; expected 1 or more")
    if context.device is not None:  # the CPU has the same number, without a wait for the device
        return here.number(_corrections(beta).at(step, context.host), 1)
    return _tensor(_corrections(beta).at(step, context))


def _rate(lr: Any) -> Tensor:
    """The learning rate as the library reads it: [1], in the context's memory."""
    if isinstance(lr, Tensor) and (not lr.is_cpu or _context.current().device is None):
        rate = lr.reshape(1).float()
        need(rate)
        return rate
    return here.number(float(lr), 1)


def _lie_alike(a: Tensor, b: Tensor) -> bool:
    """Do two tensors of one shape have the same strides, apart from dimensions of size 1?"""
    return a.stride() == b.stride() or all(
        s == t for n, s, t in zip(a.shape, a.stride(), b.stride()) if n > 1
    )


def _check_all(
    params: Sequence[Tensor], alike: Sequence[str], /, **lists: Sequence[Tensor]
) -> None:
    """Checks, before anything is written. Raises Misfit unless each tensor has its parameter's
    shape, and Leftover unless all are float32 in the context's memory, and laid out as the
    parameter if the list's name is in `alike`."""
    for name, each in lists.items():
        if len(each) != len(params):
            raise Misfit(f"there are {len(params)} parameters and {len(each)} of {name}")
        for w, t in zip(params, each):
            for tensor in (w, t):
                if tensor.layout is not torch.strided:
                    raise Leftover(f"one of its inputs is {tensor.layout}")
            need(w, t)
            if t.shape != w.shape:
                raise Misfit(f"{name} is {list(t.shape)}, and its parameter {list(w.shape)}")
            if name in alike and not (_lie_alike(t, w) and packed(w)):
                raise Leftover(f"a parameter and its {name} do not lie alike")


def _check_adam(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    ms: Sequence[Tensor],
    vs: Sequence[Tensor],
    tops: Sequence[Tensor] | None,
) -> None:
    more = {} if tops is None else {"max_exp_avg_sq": tops}
    alike = ("exp_avg", "exp_avg_sq") if tops is None else ()  # with amsgrad the tensors are copied
    _check_all(params, alike, gradient=grads, exp_avg=ms, exp_avg_sq=vs, **more)


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
    """A step of all parameters, in place. decay: one number, or one for each parameter. clip:
    factor of the gradients, [1]."""
    decays = decay if isinstance(decay, (list, tuple)) else [decay] * len(params)
    _check_adam(params, grads, ms, vs, None)
    if len(steps) != len(params):
        raise Misfit(f"there are {len(params)} parameters and {len(steps)} steps")
    rate = _rate(lr)
    clip = here.ones(1) if clip is None else clip
    grads = [g if _lie_alike(g, p) else torch.empty_like(p).copy_(g) for g, p in zip(grads, params)]
    table, kept = (AdamwParameter * len(params))(), []
    for it, w, g, m, v, step, own in zip(table, params, grads, ms, vs, steps, decays):
        c1, c2 = correction(beta1, step, m), correction(beta2, step, m)
        kept += [c1, c2]
        s = AdamwStep(count=w.numel(), beta1=beta1, beta2=beta2, eps=eps, decay=own)
        s.clip, s.c1, s.c2, s.rate = (t.data_ptr() for t in (clip, c1, c2, rate))
        it.size, it.step = ctypes.sizeof(it), ctypes.pointer(s)
        it.w = it.w_out = w.data_ptr()
        it.m = it.m_out = m.data_ptr()
        it.v = it.v_out = v.data_ptr()
        it.gradient = g.data_ptr()
    fused(lib.ro_adamw_all, len(params), table)


def _write(to: Tensor, result: Tensor) -> None:
    """Copies a result of the library, which has one dimension where `to` has none."""
    to.copy_(result if to.dim() else result.reshape(()))


def adamw_of_largest(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    ms: Sequence[Tensor],
    vs: Sequence[Tensor],
    tops: Sequence[Tensor],
    steps: Sequence[int],
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
) -> None:
    """amsgrad: adamw_m and adamw_v, then adamw_w with the largest v so far."""
    rate = _rate(lr)
    one = here.ones(1)
    for w, g, m, v, top, step in zip(params, grads, ms, vs, tops, steps):
        c1, c2 = correction(beta1, step, m), correction(beta2, step, m)
        _write(m, run("adamw_m", (bits(beta1),), (m.contiguous(), g.contiguous(), one)))
        _write(v, run("adamw_v", (bits(beta2),), (v.contiguous(), g.contiguous(), one)))
        top.copy_(maximum(top, v))
        state = (w.contiguous(), m.contiguous(), top.contiguous(), c1, c2, rate)
        _write(w, run("adamw_w", (bits(eps), bits(decay)), state))


def _scaled(grads: Sequence[Tensor], grad_scale: Any, maximize: bool = False) -> Sequence[Tensor]:
    """Gradients without the scale of a GradScaler; as in torch the tensors themselves are
    unscaled."""
    if grad_scale is not None:
        for g in grads:
            g.copy_(g / grad_scale)
    return [-g for g in grads] if maximize else grads


def _skipped(found_inf: Any) -> bool:
    return found_inf is not None and bool(found_inf != 0)


@handles("_amp_foreach_non_finite_check_and_unscale_")
def unscale(grads: Any, found_inf: Tensor, factor: Tensor) -> None:
    for g in grads:
        if not bool(torch.isfinite(g).all()):
            found_inf.fill_(1.0)
        g.copy_(g * factor)


@handles("_amp_update_scale_")
def update_scale(
    scale: Tensor, growth: Tensor, found_inf: Tensor, more: float, less: float, interval: int
) -> Tensor:
    if bool(found_inf != 0):
        scale.copy_(scale * less)
        growth.fill_(0)
        return scale
    grown = int(growth) + 1
    if grown == interval:
        larger = scale * more
        scale.copy_(torch.where(torch.isfinite(larger), larger, scale))
    growth.fill_(grown % interval)
    return scale


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
    if _skipped(found_inf):
        return
    if amsgrad or grad_scale is not None:
        _check_adam(params, grads, ms, vs, tops if amsgrad else None)
    grads, counts = _scaled(grads, grad_scale, maximize), [int(s) for s in steps]
    if amsgrad:
        at = (lr, beta1, beta2, eps, weight_decay)
        adamw_of_largest(params, grads, ms, vs, tops, counts, *at)
    else:
        adamw(params, grads, ms, vs, counts, lr, beta1, beta2, eps, weight_decay)


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
    """Adam, not AdamW: its decay is added to the gradient."""
    if _skipped(found_inf):
        return
    if amsgrad or grad_scale is not None:
        _check_adam(params, grads, ms, vs, tops if amsgrad else None)
    grads, counts = _scaled(grads, grad_scale, maximize), [int(s) for s in steps]
    if weight_decay:
        grads = [g + w * weight_decay for g, w in zip(grads, params)]
    if amsgrad:
        adamw_of_largest(params, grads, ms, vs, tops, counts, lr, beta1, beta2, eps, 0.0)
    else:
        adamw(params, grads, ms, vs, counts, lr, beta1, beta2, eps, 0.0)


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
    """A step of one parameter, in place. m is its momentum buffer, which may start as zeros."""
    _check_all([w], ("momentum_buffer",), gradient=[g], momentum_buffer=[m])
    g = g if _lie_alike(g, w) else torch.empty_like(w).copy_(g)
    rate = _rate(lr)
    clip = here.ones(1) if clip is None else clip
    it = SgdStep(count=w.numel(), momentum=momentum, decay=decay, nesterov=nesterov)
    it.clip, it.rate = clip.data_ptr(), rate.data_ptr()
    fused(lib.ro_sgd, ctypes.byref(it), w, m, g, w, m, strided=True)


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
    if _skipped(found_inf):
        return
    own = {"momentum_buffer": ms} if momentum else {}
    _check_all(params, () if dampening else ("momentum_buffer",), gradient=grads, **own)
    for i, (w, g) in enumerate(zip(params, _scaled(grads, grad_scale, maximize))):
        m = ms[i] if momentum else torch.zeros_like(w)
        if momentum and is_first_step:
            m.zero_()
        elif momentum and dampening:
            damped_sgd(w, g, m, lr, momentum, weight_decay, nesterov, dampening)
            continue
        sgd(w, g, m, lr, momentum, weight_decay, nesterov)


def damped_sgd(
    w: Tensor,
    g: Tensor,
    m: Tensor,
    lr: Any,
    momentum: float,
    decay: float,
    nesterov: bool,
    damping: float,
) -> None:
    """A step by elementwise operations, each rounded by itself."""
    d = g + w * decay
    m.copy_(m * momentum + d * (1 - damping))
    w.copy_(w - (d + m * momentum if nesterov else m) * lr)


@handles("_fused_adagrad_.default", "_fused_adagrad_.tensor_lr")
def fused_adagrad(
    params: Any,
    grads: Any,
    sums: Any,
    steps: Any,
    *,
    lr: Any,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    grad_scale: Any = None,
    found_inf: Any = None,
) -> None:
    """A step by elementwise operations, each rounded by itself."""
    if _skipped(found_inf):
        return
    _check_all(params, (), gradient=grads, sum=sums)
    for w, g, s, step in zip(params, _scaled(grads, grad_scale, maximize), sums, steps):
        g = g + w * weight_decay
        s.copy_(s + g * g)
        rate = float(lr) / (1 + (float(step) - 1) * lr_decay)
        w.copy_(w - g / (elementwise("sqrt", (), s) + eps) * rate)
