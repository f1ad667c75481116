"""Kernels for operators that torch would decompose before a dispatch mode sees them.

They are registered with torch.library, for CPU tensors with autograd, while any thread is in a
block. A mode of functions would see these operators too, but would be called at each attribute of
each tensor.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.nn import functional as layers
from torch.optim import optimizer, swa_utils
from torch.utils._python_dispatch import (
    _get_current_dispatch_mode_stack,
)

from .. import _context
from .._library import Error
from . import _jagged, _starts, functional
from ._apart import APART, TRANSFORMED, WITHOUT_AUTOGRAD
from ._devices import KINDS
from ._editions import routes as device_routes
from ._products import linear_backward, linear_rows
from ._registry import handles
from ._routes import routes

Tensor = torch.Tensor
_local = threading.local()


def active() -> Any:
    """The innermost block that this thread is in. Where a program turns autograd's own threads on
    again, these inherit the caller's modes: the block is found among them."""
    block = getattr(_local, "block", None)
    if block is None and _blocks:
        inside = [m for m in _get_current_dispatch_mode_stack() if hasattr(m, "leftovers")]
        return inside[-1] if inside else None
    return block


LEAVES = torch.Tensor.__torch_dispatch__  # tensor classes with this leave their operators to modes


def _plain(x: Tensor) -> bool:
    own = x.dtype is torch.float32 and x.layout is torch.strided
    own = own and (x.is_cpu or x.device.type in KINDS)
    return own and type(x).__torch_dispatch__ is LEAVES


def _transformed() -> bool:
    """Are we inside torch.func, or are forward derivatives wanted? The library has no rules for
    these."""
    return (
        torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0
    )


def _ours(*inputs: Tensor | None) -> bool:
    """Does the library compute with these inputs, that is, in a block and without transforms?"""
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


def _of_block(name: str, kernel: Any) -> Any:
    """Refuses a device's tensors outside of a block, as a backward pass there has."""

    def call(x: Tensor, *more: Any) -> Any:
        if not x.is_cpu and _context.current().device is None:
            text = f"{name}: its input is on {x.device}; expected the CPU's memory, or a block"
            raise Error(text)
        return kernel(x, *more)

    return call


for _key in ("CPU", "CUDA", "PrivateUse1"):
    _library.impl("linear_rows", _of_block("linear", _rows), _key)
    _library.impl("linear_grads", _of_block("linear_backward", _grads), _key)


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
        # torch's operators, unlike ours, have second derivatives.
        d = dy.reshape(-1, dy.shape[-1])
        dx = dy @ weight if mask[0] else None
        dw = d.t() @ x.reshape(-1, x.shape[-1]) if mask[1] else None
        return dx, dw, d.sum(0) if mask[2] else None


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if not _ours(x, weight, bias) or x.dim() < 2 or weight.dim() != 2 or not x.numel():
        return _LINEAR.decompose(x, weight, bias)
    if x.shape[-1] != weight.shape[1] or (bias is not None and bias.shape != weight.shape[:1]):
        return _LINEAR.decompose(x, weight, bias)  # raises torch's error
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
    """The route without autograd, where torch does not decompose the operator."""
    with mode:
        return _cross_entropy(*args, **kwargs)


routes[_LOSS] = device_routes[_LOSS] = _whole_loss

# ---- operators that torch decomposes for a device otherwise than for the CPU ----


def _in_block(func: Any, kernel: Any) -> Any:
    """Calls the kernel in a block, and torch's decomposition elsewhere."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return kernel(*args, **kwargs) if active() is not None else func.decompose(*args, **kwargs)

    return call


def _on_a_device_in_block(own: Any, theirs: Any) -> Any:
    """Calls one kernel on a device in a block, and the other elsewhere."""

    def call(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        inside = not x.is_cpu and active() is not None
        return (own if inside else theirs)(x, *args, **kwargs)

    return call


def _without_autograd(kernel: Any) -> Any:
    def route(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        with mode:
            return kernel(*args, **kwargs)

    return route


for _func, _kernel in WITHOUT_AUTOGRAD.items():
    device_routes[_func] = _without_autograd(_kernel)

# ---- while any thread is in a block ----

_lock = threading.Lock()
_blocks = 0
_kernels: torch.library.Library | None = None
_cudnn = True
_lists: list[tuple[Any, Any]] = []  # modules of torch.optim, and the function that was replaced
_fast_attention = True  # attention layers have a fused operator for inference; blocks disable it


def _without_lists() -> None:
    """Makes torch.optim loop over parameters, as on the CPU. On a device it would call operators of
    lists by default, which round otherwise."""
    modules: Any = (optimizer, swa_utils)
    for module in modules:
        _lists.append((module, module._get_foreach_kernels_supported_devices))
        module._get_foreach_kernels_supported_devices = list


_deterministic: Any = torch.are_deterministic_algorithms_enabled


def _takes_apart() -> bool:
    """Is torch.use_deterministic_algorithms on? torch.nn.functional is told no in a block: it would
    take interpolation and padding apart on a device, though not on the CPU."""
    own = sys._getframe(1).f_globals is layers.__dict__ and active() is not None
    return _deterministic() and not own


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
            for func, kernel in APART.items():
                for key in ("AutogradCUDA", "AutogradPrivateUse1"):
                    _kernels.impl(func, _in_block(func, kernel), key)
            for (key, func), kernels in TRANSFORMED.items():
                _kernels.impl(func, _on_a_device_in_block(*kernels), key)
            _cudnn = torch._C._get_cudnn_enabled()
            torch._C._set_cudnn_enabled(False)  # batch norm would become one operator of cuDNN
            _without_lists()
            torch.are_deterministic_algorithms_enabled = _takes_apart
            _starts.watch(active)
            _jagged.watch(active)
    return outer


def leave(outer: Any) -> None:
    """This thread leaves a block and is in `outer` again."""
    global _kernels, _blocks
    _local.block = outer
    with _lock:
        _blocks -= 1
        if _blocks == 0 and _kernels is not None:
            while _lists:
                module, supported = _lists.pop()
                module._get_foreach_kernels_supported_devices = supported
            torch.are_deterministic_algorithms_enabled = _deterministic
            _starts.rest()
            _jagged.rest()
            _kernels._destroy()
            _kernels = None
            torch.backends.mha.set_fastpath_enabled(_fast_attention)
            torch._C._set_cudnn_enabled(_cudnn)
