"""Orders of memory: the library has channels as neighbours, torch often images of channels."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import torch

from .. import _context
from . import _here as here
from ._call import run

Tensor = torch.Tensor
_local = threading.local()
SCRATCH_MOST = 1 << 24  # floats that a thread keeps for each use; what is larger is not kept


def scratch(use: str, shape: Sequence[int]) -> Tensor:
    """Memory that stays, for what lives as long as one operator. The system gives new memory page
    by page, which takes longer than to copy weights into it."""
    count, context = math.prod(shape), _context.current()
    if count > SCRATCH_MOST or context.device is not None or context.watcher is not None:
        # Torch's allocator keeps a device's memory; a watcher sees what was there.
        return here.empty(shape)
    kept = _local.__dict__.get(use)
    if kept is None or kept.numel() < count:
        kept = _local.__dict__[use] = here.empty(count)
    return kept[:count].view(shape)


def transposed(x: Tensor, dims: Sequence[int], out: Tensor) -> Tensor:
    """x with its dimensions in this order, in the memory of out, which is dense in some order."""
    if x.numel():
        run("transpose", dims, (x,), out=out)
    return out


def _is_last(x: Tensor) -> bool:
    """Whether [N, C, ...] has its channels as neighbours and is dense. Many shapes are so in both
    orders."""
    return x.movedim(1, -1).is_contiguous()


def channels_last(x: Tensor, use: str = "") -> Tensor:
    """[N, C, ...] as dense [N, ..., C]; no copy if the channels are neighbours already. With a use
    the copy is in scratch memory of that name."""
    last = x.movedim(1, -1)
    if x.dtype is not torch.float32 or not x.numel():
        return last.contiguous()
    if last.is_contiguous():
        return last
    out = scratch(use, last.shape) if use else here.empty(last.shape)
    if not x.is_contiguous():
        return out.copy_(last)
    planes = x.view(x.shape[0], x.shape[1], -1)
    return transposed(planes, (0, 2, 1), out)


def channels_first(y: Tensor, like: Tensor) -> Tensor:
    """Dense [N, ..., C] as [N, C, ...], in the order of memory that torch would give it."""
    first = y.movedim(-1, 1)
    if first.is_contiguous() or (_is_last(like) and not like.is_contiguous()):
        return first
    if y.dtype is not torch.float32 or not y.numel():
        return first.contiguous()
    rows = y.view(y.shape[0], -1, y.shape[-1])
    return transposed(rows, (0, 2, 1), here.empty(first.shape))


def weight_in(w: Tensor) -> Tensor:
    """Weights [F, C, KH, KW] as the library has them, [KH, KW, C, F], in scratch memory."""
    f, c, kh, kw = w.shape
    out = scratch("weight", (kh, kw, c, f))
    last = w.permute(0, 2, 3, 1)
    if last.is_contiguous():
        return transposed(last.reshape(f, kh * kw * c), (1, 0), out)
    if not w.is_contiguous():
        return out.copy_(w.permute(2, 3, 1, 0))
    return transposed(w, (2, 3, 1, 0), out)


def weight_out(dw: Tensor, w: Tensor) -> Tensor:
    """The inverse, in new memory of w's order, which autograd keeps without a copy."""
    kh, kw, c, f = dw.shape
    out = torch.empty_like(w)
    last = out.permute(0, 2, 3, 1)
    if last.is_contiguous():  # a capture sees the order in which it lies
        transposed(dw.view(kh * kw * c, f), (1, 0), last)
        return out
    if not out.is_contiguous():
        return out.copy_(dw.permute(3, 2, 0, 1))
    return transposed(dw, (3, 2, 0, 1), out)


def in_order(x: Tensor) -> Tensor:
    """x as a dense tensor of its indices' order: itself, or a copy in scratch memory."""
    if x.is_contiguous() or x.dtype is not torch.float32 or not x.numel():
        return x.contiguous()
    out = scratch("order", x.shape)
    if x.dim() < 3 or not _is_last(x):
        return out.copy_(x)
    rows = x.movedim(1, -1).reshape(x.shape[0], -1, x.shape[1])
    return transposed(rows, (0, 2, 1), out)
