"""Operators that torch takes apart before a dispatch mode sees them, and that the library has.

While any thread is in a block, these are kernels of torch.library for CPU tensors with autograd. A
mode of functions would see them too, but would also be asked at each attribute of each tensor.
"""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch.autograd import forward_ad

from . import _jagged, _starts, functional
from ._products import linear_backward, linear_rows
from ._registry import handles
from ._routes import routes

Tensor = torch.Tensor
_local = threading.local()


def active() -> Any:
    """The innermost block that this thread is in."""
    return getattr(_local, "block", None)


LEAVES = torch.Tensor.__torch_dispatch__  # classes that leave their operators to modes have it


def _plain(x: Tensor) -> bool:
    own = x.dtype is torch.float32 and x.is_cpu and x.layout is torch.strided
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


_library.impl("linear_rows", _rows, "CPU")
_library.impl("linear_grads", _grads, "CPU")


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


routes[_LOSS] = _whole_loss

# ---- while any thread is in a block ----

_lock = threading.Lock()
_blocks = 0
_kernels: torch.library.Library | None = None
_fast_attention = True  # layers of attention have a single operator for inference: not here


def enter(block: Any) -> Any:
    """This thread enters a block; returns the block around it."""
    global _kernels, _blocks, _fast_attention
    outer, _local.block = active(), block
    with _lock:
        _blocks += 1
        if _kernels is None:
            _fast_attention = torch.backends.mha.get_fastpath_enabled()
            torch.backends.mha.set_fastpath_enabled(False)
            _kernels = torch.library.Library("aten", "IMPL")
            _kernels.impl("cross_entropy_loss", _cross_entropy, "AutogradCPU")
            _kernels.impl("linear", _linear, "AutogradCPU")
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
            _starts.rest()
            _jagged.rest()
            _kernels._destroy()
            _kernels = None
            torch.backends.mha.set_fastpath_enabled(_fast_attention)
