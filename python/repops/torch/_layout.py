"""Memory layouts: the library's has channels last, torch's often first."""

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
SCRATCH_MOST = 1 << 24  # floats that a thread keeps for each use; larger buffers are not kept


def scratch(use: str, shape: Sequence[int]) -> Tensor:
    """A buffer that is reused, for data that lives as long as one operator. The system maps new
    memory page by page, which takes longer than to copy weights into it."""
    count, context = math.prod(shape), _context.current()
    if count > SCRATCH_MOST or context.device is not None or context.watcher is not None:
        # Torch's allocator reuses a device's memory. A watcher must see no address twice.
        return here.empty(shape)
    kept = _local.__dict__.get(use)
    if kept is None or kept.numel() < count:
        kept = _local.__dict__[use] = here.empty(count)
    return kept[:count].view(shape)


def transposed(x: Tensor, dims: Sequence[int], out: Tensor) -> Tensor:
    """x with its dimensions permuted by dims, written to `out`, which is dense in some order."""
    if x.numel():
        run("transpose", dims, (x,), out=out)
    return out


def _is_last(x: Tensor) -> bool:
    """Is [N, C, ...] dense with channels last? Many shapes (C = 1, say) are dense in both
    orders."""
    return x.movedim(1, -1).is_contiguous()


def channels_last(x: Tensor, use: str = "") -> Tensor:
    """[N, C, ...] as dense [N, ..., C], without a copy if channels are last already. With a use the
    copy is in the scratch buffer of that name."""
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
    """Dense [N, ..., C] as [N, C, ...], with the strides that torch would give it."""
    first = y.movedim(-1, 1)
    if first.is_contiguous() or (_is_last(like) and not like.is_contiguous()):
        return first
    if y.dtype is not torch.float32 or not y.numel():
        return first.contiguous()
    rows = y.view(y.shape[0], -1, y.shape[-1])
    return transposed(rows, (0, 2, 1), here.empty(first.shape))


def weight_in(w: Tensor) -> Tensor:
    """Weights [F, C, KH, KW] in the library's layout [KH, KW, C, F], in a scratch buffer."""
    f, c, kh, kw = w.shape
    out = scratch("weight", (kh, kw, c, f))
    last = w.permute(0, 2, 3, 1)
    if last.is_contiguous():
        return transposed(last.reshape(f, kh * kw * c), (1, 0), out)
    if not w.is_contiguous():
        return out.copy_(w.permute(2, 3, 1, 0))
    return transposed(w, (2, 3, 1, 0), out)


def weight_out(dw: Tensor, w: Tensor) -> Tensor:
    """The inverse of weight_in, in new memory with w's strides, which autograd keeps without a
    copy."""
    kh, kw, c, f = dw.shape
    out = torch.empty_like(w)
    last = out.permute(0, 2, 3, 1)
    if last.is_contiguous():  # the branch depends on strides, which a capture knows
        transposed(dw.view(kh * kw * c, f), (1, 0), last)
        return out
    if not out.is_contiguous():
        return out.copy_(dw.permute(3, 2, 0, 1))
    return transposed(dw, (3, 2, 0, 1), out)


def in_order(x: Tensor) -> Tensor:
    """x as a contiguous tensor: x itself, or a copy in a scratch buffer."""
    if x.is_contiguous() or x.dtype is not torch.float32 or not x.numel():
        return x.contiguous()
    out = scratch("order", x.shape)
    if x.dim() < 3 or not _is_last(x):
        return out.copy_(x)
    rows = x.movedim(1, -1).reshape(x.shape[0], -1, x.shape[1])
    return transposed(rows, (0, 2, 1), out)
