"""Operators that torch decomposes otherwise on CUDA than on the CPU: here they decompose as there.

CUDA has kernels of its own for attention, dropout, RMS norm and the cells of recurrent layers
(_layers.py), and leaves the lengths of CTC loss on the CPU.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.utils._python_dispatch import _disable_current_modes

from . import _layers

Tensor = torch.Tensor

_FLASH = 1  # torch's number for the choice of one fused operator


@functools.lru_cache(1024)
def _way_of_cpu(
    shapes: Any, dropout: float, causal: bool, scale: Any, grouped: bool, allowed: Any
) -> int:
    """The attention backend that torch would choose on the CPU, asked with uninitialised tensors
    outside of torch.func's levels."""
    with temporarily_clear_interpreter_stack(), _disable_current_modes():
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
    """Global settings that the choice depends on, besides the call's arguments."""
    flash, plain = torch._C._get_flash_sdp_enabled(), torch._C._get_math_sdp_enabled()
    return flash, plain, torch.is_grad_enabled()


def _added_mask(mask: Tensor | None, q: Tensor) -> Tensor | None:
    """Turns a bool mask into terms for the scores: 0 where it is true, -inf where it is false."""
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
    """Calls the operators that torch calls on the CPU."""
    given = (dropout_p, is_causal)
    inputs = (q, k, v, attn_mask)
    if q.dim() == k.dim() == v.dim() == 3:  # the CPU treats these as a batch of one
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


_ATTENTION = torch.ops.aten.scaled_dot_product_attention.default
_CTC = torch.ops.aten.ctc_loss.Tensor


def _ctc_loss(
    x: Tensor, targets: Tensor, inputs: Tensor, lengths: Tensor, *more: Any, **how: Any
) -> Tensor:
    """Moves the lengths to x's device: under a mode torch would leave them on the CPU."""
    inputs, lengths = inputs.to(x.device), lengths.to(x.device)
    return _CTC.decompose(x, targets, inputs, lengths, *more, **how)


_RMS_NORM = torch.ops.aten._fused_rms_norm.default


def _rms_norm(*args: Any, **kwargs: Any) -> Any:
    """Decomposes as on the CPU; CUDA has fused kernels for it and its gradient."""
    return _RMS_NORM.decompose(*args, **kwargs)


_DROPOUT = torch.ops.aten.dropout.default


def _dropout(x: Tensor, p: float, train: bool) -> Tensor:
    if not 0 < p <= 1 or not train or not x.numel():
        return _DROPOUT.decompose(x, p, train)
    if p == 1:
        return x * torch.zeros_like(x)
    kept = torch.empty_like(x).bernoulli_(1 - p)
    return x * torch.ops.aten.div_.Scalar(kept, 1 - p)


def _composite(func: Any) -> Callable[..., Any]:
    """Returns torch's decomposition in C++; func.decompose may be another one, in Python."""
    return functools.partial(func._op_dk, torch._C.DispatchKey.CompositeImplicitAutograd)


def _mapped_dropout(x: Tensor, p: float, train: bool) -> Tensor:
    """Draws an unbatched mask, as torch.func does on the CPU: `randomness` tells vmap whether there
    is one for each sample."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0 or not train or not x.numel():
        return x
    one = torch.empty((), dtype=x.dtype, device=x.device)
    if p == 1:
        return x * one.zero_()
    kept = torch.bernoulli(one.expand(x.shape), 1 - p)
    return x * torch.ops.aten.div_.Scalar(kept, 1 - p)


def _dropout_of_func(x: Tensor, p: float, train: bool) -> Tensor:
    """Calls what torch.func calls outside of blocks."""
    return (_mapped_dropout if x.is_cpu else _composite(_DROPOUT))(x, p, train)


# These replace the kernels of PyTorch's operators while any thread is in a block.
APART: dict[Any, Callable[..., Any]] = {
    _ATTENTION: _attention,
    _DROPOUT: _dropout,
    _CTC: _ctc_loss,
    _RMS_NORM: _rms_norm,
    **_layers.APART,
}
# torch.func has kernels of its own for these: by key and operator, what computes them on a device
# in a block, and elsewhere.
TRANSFORMED: dict[tuple[str, Any], tuple[Callable[..., Any], Callable[..., Any]]] = {
    ("FuncTorchDynamicLayerFrontMode", _DROPOUT): (_mapped_dropout, _dropout_of_func),
    **{
        (key, func): (kernel, _composite(func))
        for key in ("FuncTorchBatched", "FuncTorchVmapMode")
        for func, kernel in ((_ATTENTION, _attention), (_DROPOUT, _dropout))
    },
}
# Without autograd a mode is called with the undecomposed operator. torch decomposes some of these
# operators in Python then, alike on all devices; they need no replacement.
_IN_PYTHON = torch._C.DispatchKey.CompositeImplicitAutograd
WITHOUT_AUTOGRAD = {f: kernel for f, kernel in APART.items() if _IN_PYTHON not in f.py_kernels}
