"""Operators that torch takes apart before a dispatch mode sees them, and that the library has.

While any thread is in a block, these are kernels of torch.library for CPU tensors with autograd. A
mode of functions would see them too, but would also be asked at each attribute of each tensor.
"""

from __future__ import annotations

import functools
import math
import threading
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.optim import optimizer, swa_utils
from torch.utils._python_dispatch import (
    _disable_current_modes,
    _get_current_dispatch_mode_stack,
)

from . import _jagged, _starts, functional
from ._devices import KINDS
from ._editions import routes as device_routes
from ._products import linear_backward, linear_rows
from ._registry import handles
from ._routes import routes

Tensor = torch.Tensor
_local = threading.local()


def active() -> Any:
    """The innermost block that this thread is in. A backward pass on a device is in that of the
    thread that called it: autograd has threads of its own for devices, to which modes go along."""
    block = getattr(_local, "block", None)
    if block is None and _blocks:
        inside = [m for m in _get_current_dispatch_mode_stack() if hasattr(m, "leftovers")]
        return inside[-1] if inside else None
    return block


LEAVES = torch.Tensor.__torch_dispatch__  # classes that leave their operators to modes have it


def _plain(x: Tensor) -> bool:
    own = x.dtype is torch.float32 and x.layout is torch.strided
    own = own and (x.is_cpu or x.device.type in KINDS)
    return own and type(x).__torch_dispatch__ is LEAVES


def _transformed() -> bool:
    """Is this in torch.func, or are forward derivatives wanted? The library has no rules for it."""
    return (
        torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0
    )


def _ours(*inputs: Tensor | None) -> bool:
    """Are these the library's, in a block?"""
    plain = active() is not None and all(x is None or _plain(x) for x in inputs)
    return plain and not _transformed()


# ---- linear layers: a dozen operators of torch, forward and backward ----

_LINEAR = torch.ops.aten.linear.default
_library = torch.library.Library("repops", "FRAGMENT")
_library.define("linear_rows(Tensor x, Tensor weight, Tensor? bias) -> Tensor")
_library.define(
    "linear_grads(Tensor dy, Tensor x, Tensor weight, bool[3] mask) -> (Tensor, Tensor, Tensor)"
)


@handles("repops::linear_rows")
def _rows(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return linear_rows(x, weight, bias, 1)


@handles("repops::linear_grads")
def _grads(
    dy: Tensor, x: Tensor, weight: Tensor, mask: list[bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    return linear_backward(dy, x, weight, mask)


for _key in ("CPU", "CUDA", "PrivateUse1"):
    _library.impl("linear_rows", _rows, _key)
    _library.impl("linear_grads", _grads, _key)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.ops.repops.linear_rows.default(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        mask = ctx.needs_input_grad
        if not torch.is_grad_enabled() and not _transformed():
            return torch.ops.repops.linear_grads.default(dy, x, weight, mask)
        # Operators of torch have second derivatives and rules.
        d = dy.reshape(-1, dy.shape[-1])
        dx = dy @ weight if mask[0] else None
        dw = d.t() @ x.reshape(-1, x.shape[-1]) if mask[1] else None
        return dx, dw, d.sum(0) if mask[2] else None


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if not _ours(x, weight, bias) or x.dim() < 2 or weight.dim() != 2 or not x.numel():
        return _LINEAR.decompose(x, weight, bias)
    if x.shape[-1] != weight.shape[1] or (bias is not None and bias.shape != weight.shape[:1]):
        return _LINEAR.decompose(x, weight, bias)  # which says what is wrong
    return _Linear.apply(x, weight, bias)


# ---- cross-entropy, with the bits of Verde's programs ----

_LOSS = torch.ops.aten.cross_entropy_loss.default


def _cross_entropy(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    plain = _ours(x) and x.dim() == 2 and target.dtype is torch.int64
    plain = plain and target.shape == x.shape[:1] and weight is None and not label_smoothing
    if not plain or reduction not in (1, 2):
        return _LOSS.decompose(x, target, weight, reduction, ignore_index, label_smoothing)
    return functional.cross_entropy(x, target, ignore_index, ("mean", "sum")[reduction - 1])


def _whole_loss(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    """Without autograd, torch does not take it apart."""
    with mode:
        return _cross_entropy(*args, **kwargs)


routes[_LOSS] = device_routes[_LOSS] = _whole_loss

# ---- what torch takes apart for a device in another way than for the CPU ----

_ATTENTION = torch.ops.aten.scaled_dot_product_attention.default
_FLASH = 1  # torch's number of the way by one operator


@functools.lru_cache(1024)
def _way_of_cpu(
    shapes: Any, dropout: float, causal: bool, scale: Any, grouped: bool, allowed: Any
) -> int:
    """Which way torch would go on the CPU, asked of tensors that nobody writes."""
    with _disable_current_modes():
        inputs: list[Any] = [
            None
            if s is None
            else torch.empty_strided(*s[:2], dtype=s[2], requires_grad=s[3], device="cpu")
            for s in shapes
        ]
        how = {"scale": scale, "enable_gqa": grouped}
        choice: Any = torch._fused_sdp_choice
        return choice(*inputs, dropout, causal, **how)


def _allowed() -> tuple[bool, ...]:
    """What the choice of the way depends on, beside the call."""
    flash, plain = torch._C._get_flash_sdp_enabled(), torch._C._get_math_sdp_enabled()
    return flash, plain, torch.is_grad_enabled()


def _added_mask(mask: Tensor | None, q: Tensor) -> Tensor | None:
    """What is added to scores where a mask of bools says which count."""
    if mask is None or mask.dtype is not torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=q.dtype).masked_fill_(~mask, -math.inf)


def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """By the same operators as on the CPU."""
    given = (dropout_p, is_causal)
    if active() is None:
        how = {"scale": scale, "enable_gqa": enable_gqa}
        return _ATTENTION.decompose(q, k, v, attn_mask, *given, **how)
    inputs = (q, k, v, attn_mask)
    if q.dim() == k.dim() == v.dim() == 3:  # the CPU takes them for one batch
        one, mask = [t[None] for t in (q, k, v)], attn_mask
        while mask is not None and mask.dim() < 4:
            mask = mask[None]
        y = _attention(one[0], one[1], one[2], mask, *given, scale=scale, enable_gqa=enable_gqa)
        return y.squeeze(0)
    shapes = tuple(
        None if t is None else (t.shape, t.stride(), t.dtype, t.requires_grad) for t in inputs
    )
    way = _way_of_cpu(shapes, *given, scale, enable_gqa, _allowed())
    if way < 0:
        raise RuntimeError("No viable backend for scaled_dot_product_attention was found")
    mask = _added_mask(attn_mask, q)
    if way == _FLASH:
        flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
        return flash(q, k, v, *given, attn_mask=mask, scale=scale)[0]
    plain = torch.ops.aten._scaled_dot_product_attention_math.default
    return plain(q, k, v, mask, *given, scale=scale, enable_gqa=enable_gqa)[0]


_CTC = torch.ops.aten.ctc_loss.Tensor


def _ctc_loss(
    x: Tensor, targets: Tensor, inputs: Tensor, lengths: Tensor, *more: Any, **how: Any
) -> Tensor:
    """Lengths may be in the CPU's memory, where torch would leave them if it sees a mode."""
    if active() is not None:
        inputs, lengths = inputs.to(x.device), lengths.to(x.device)
    return _CTC.decompose(x, targets, inputs, lengths, *more, **how)


_RMS_NORM = torch.ops.aten._fused_rms_norm.default


def _rms_norm(*args: Any, **kwargs: Any) -> Any:
    """CUDA has kernels for it and its gradient; the CPU takes it apart."""
    return _RMS_NORM.decompose(*args, **kwargs)


_DROPOUT = torch.ops.aten.dropout.default


def _dropout(x: Tensor, p: float, train: bool) -> Tensor:
    if active() is None or not 0 < p <= 1 or not train or not x.numel():
        return _DROPOUT.decompose(x, p, train)
    if p == 1:
        return x * torch.zeros_like(x)
    return x * torch.empty_like(x).bernoulli_(1 - p).div_(1 - p)


# ---- while any thread is in a block ----

_lock = threading.Lock()
_blocks = 0
_kernels: torch.library.Library | None = None
_cudnn = True
_lists: list[tuple[Any, Any]] = []  # modules of torch.optim and their function before
_fast_attention = True  # layers of attention have a single operator for inference: not here


def _without_lists() -> None:
    """torch.optim calls operators of lists on a device unless it is told, and they round elsewhere
    than the loop over parameters, which it takes on the CPU."""
    modules: Any = (optimizer, swa_utils)
    for module in modules:
        _lists.append((module, module._get_foreach_kernels_supported_devices))
        module._get_foreach_kernels_supported_devices = list


def enter(block: Any) -> Any:
    """This thread enters a block; returns the block around it."""
    global _kernels, _blocks, _fast_attention, _cudnn
    outer, _local.block = active(), block
    with _lock:
        _blocks += 1
        if _kernels is None:
            _fast_attention = torch.backends.mha.get_fastpath_enabled()
            torch.backends.mha.set_fastpath_enabled(False)
            _kernels = torch.library.Library("aten", "IMPL")
            for key in ("AutogradCPU", "AutogradCUDA", "AutogradPrivateUse1"):
                _kernels.impl("cross_entropy_loss", _cross_entropy, key)
                _kernels.impl("linear", _linear, key)
            for key in ("AutogradCUDA", "AutogradPrivateUse1"):
                _kernels.impl("scaled_dot_product_attention", _attention, key)
                _kernels.impl("dropout", _dropout, key)
                _kernels.impl("ctc_loss.Tensor", _ctc_loss, key)
                _kernels.impl("_fused_rms_norm", _rms_norm, key)
            _cudnn = torch._C._get_cudnn_enabled()
            torch._C._set_cudnn_enabled(False)  # batch norm would be one operator of cuDNN
            _without_lists()
            _starts.watch(active)
            _jagged.watch(active)
    return outer


def leave(outer: Any) -> None:
    """This thread is in `outer` again."""
    global _kernels, _blocks
    _local.block = outer
    with _lock:
        _blocks -= 1
        if _blocks == 0 and _kernels is not None:
            while _lists:
                module, supported = _lists.pop()
                module._get_foreach_kernels_supported_devices = supported
            _starts.rest()
            _jagged.rest()
            _kernels._destroy()
            _kernels = None
            torch.backends.mha.set_fastpath_enabled(_fast_attention)
            torch._C._set_cudnn_enabled(_cudnn)
