"""Products, linear layers, attention, embeddings."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .._library import Attention, Gradient, LinearLayer, lib
from .._operators import bits
from . import _here as here
from ._call import Leftover, elementwise, expect, fused, matmul, need, numbers, run, total, whole
from ._registry import handles
from ._sums import safe_softmax, softmax_backward

Tensor = torch.Tensor
HEAD_MAX = 256  # RO_ATTENTION_HEAD_MAX
KEYS_MAX = 2047 * 128


@handles("mm")
def mm(a: Tensor, b: Tensor) -> Tensor:
    return matmul(a, b)


@handles("bmm")
def bmm(a: Tensor, b: Tensor) -> Tensor:
    return matmul(a, b, 1)


@handles("mv")
def mv(a: Tensor, x: Tensor) -> Tensor:
    return matmul(a, x.reshape(-1, 1)).reshape(-1)


@handles("dot", "vdot")
def dot(a: Tensor, b: Tensor) -> Tensor:
    if a._is_zerotensor() or b._is_zerotensor():  # it has no memory
        return torch._efficientzerotensor((), dtype=a.dtype, device=a.device)
    return matmul(a.reshape(1, -1), b.reshape(-1, 1)).reshape(())


@functools.lru_cache(4096)
def _layer(rows: int, cols: int, out: int, transposed: int) -> Any:
    layer = LinearLayer(rows=rows, in_=cols, out=out, transposed=transposed)
    return layer, ctypes.byref(layer)


def linear_rows(x: Tensor, w: Tensor, bias: Tensor | None, transposed: int) -> Tensor:
    """x w + bias in one call; w is [out, in] if transposed, else [in, out]."""
    need(x, w, *(() if bias is None else (bias,)))
    *rows, cols = x.shape
    out, width = w.shape if transposed else (w.shape[1], w.shape[0])
    expect(width == cols and (bias is None or bias.numel() == out), "its sizes do not fit")
    layer = _layer(math.prod(rows), cols, out, transposed)[1]
    y = here.empty((*rows, out))
    bias = None if bias is None else bias.contiguous()
    fused(lib.ro_linear, layer, x.contiguous(), w.contiguous(), bias, None, y)
    return y


def linear_backward(dy: Tensor, x: Tensor, w: Tensor, wanted: Sequence[bool]) -> tuple:
    """Gradients of x, w [out, in] and bias, or None for those that are not wanted."""
    need(dy, x, w)
    out, cols = w.shape
    expect(x.shape[-1] == cols and dy.shape == (*x.shape[:-1], out), "its sizes do not fit")
    layer = _layer(math.prod(x.shape[:-1]), cols, out, 1)[1]
    sizes = (x.shape, w.shape, (out,))
    grads = [here.empty(size) if yes else None for size, yes in zip(sizes, wanted)]
    to = [Gradient(None if g is None else g.data_ptr(), 0) for g in grads]
    read = (x.contiguous() if wanted[1] else None, w.contiguous() if wanted[0] else None)
    fused(lib.ro_linear_backward, layer, *read, None, dy.contiguous(), *to)
    return tuple(grads)


def _scaled(x: Tensor, factor: float) -> Tensor:
    return x if factor == 1 else x * factor


def added(
    c: Tensor, beta: float, alpha: float, shape: Sequence[int], product: Callable[[], Tensor]
) -> Tensor:
    """beta c + alpha product(), of this shape. As in BLAS an operand with factor 0 is not read, so
    that a NaN in it does not matter."""
    if alpha == 0:
        need(c)
        return _scaled(c, beta).expand(shape).clone() if beta else here.zeros(shape)
    y = _scaled(product(), alpha)
    return _scaled(c, beta) + y if beta else y


@handles("addmm")
def addmm(c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    if beta == 1 and alpha == 1 and c.dim() == 1 and c.numel() == b.shape[1] and c.is_contiguous():
        if b.is_contiguous():
            return linear_rows(a, b, c, 0)
        if b.t().is_contiguous():
            return linear_rows(a, b.t(), c, 1)
    return added(c, beta, alpha, (a.shape[0], b.shape[1]), lambda: matmul(a, b))


@handles("baddbmm")
def baddbmm(c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return added(c, beta, alpha, (*a.shape[:2], b.shape[2]), lambda: matmul(a, b, 1))


@handles("addmv")
def addmv(c: Tensor, a: Tensor, x: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return added(c, beta, alpha, a.shape[:1], lambda: mv(a, x))


@handles("_grouped_mm")
def grouped_mm(
    a: Tensor, b: Tensor, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Tensor:
    """A product for each group. offs are the ends of the groups: of rows, of columns, or, if both
    are matrices, of terms."""
    need(a, b)
    if offs is None:
        return matmul(a, b, 1)
    return whole("grouped_mm", _of_groups, a, b, offs)


def _of_groups(a: Tensor, b: Tensor, offs: Tensor) -> Tensor:
    ends = offs.tolist()
    spans = [slice(i, j) for i, j in zip([0, *ends], ends)]
    rows, cols = a.shape[-2], b.shape[-1]
    if a.dim() == 2 and b.dim() == 2:
        y = here.zeros(len(ends), rows, cols)
        pairs = [(a[:, s], b[s], y[i]) for i, s in enumerate(spans)]
    else:
        y = here.zeros(rows, cols)
        if a.dim() == 2:
            pairs = [(a[s], b[i], y[s]) for i, s in enumerate(spans)]
        else:
            pairs = [(a[i], b[:, s], y[:, s]) for i, s in enumerate(spans)]
    for left, right, out in pairs:
        if out.numel() and left.shape[1]:
            out.copy_(matmul(left, right))
    return y


@handles("_trilinear")
def trilinear(
    a: Tensor, b: Tensor, c: Tensor, more_a: Any, more_b: Any, more_c: Any, dims: Any, *ignored: Any
) -> Tensor:
    """Sums of a b c, each of which gets new dimensions of size 1 first. All products are in memory
    at once."""
    need(a, b, c)
    for dim in sorted(more_a):
        a = a.unsqueeze(dim)
    for dim in sorted(more_b):
        b = b.unsqueeze(dim)
    for dim in sorted(more_c):
        c = c.unsqueeze(dim)
    return total(a * b * c, dims)


# ---- embeddings ----


@handles("embedding_dense_backward")
def embedding_backward(
    dy: Tensor, ids: Tensor, rows: int, padding: int, by_frequency: bool
) -> Tensor:
    need(dy)
    if by_frequency:
        raise Leftover("it scales gradients by frequency")
    near = ids.clamp(-1, rows) if ids.is_cpu else ids  # so that a bad index adds to no row
    places = numbers(near, rows)
    if padding >= 0:
        places = torch.where(ids == padding, -1, places)
    places = places.contiguous().reshape(-1)
    return run(
        "embedding_grad",
        (),
        (dy.contiguous().reshape(len(places), dy.shape[-1]), places),
        (rows, dy.shape[-1]),
    )


# ---- attention ----


def _heads(t: Tensor) -> tuple[Tensor, int]:
    """[B, H, T, D] as the library reads it, dense or with heads side by side in rows of tokens, and
    the row's stride."""
    b, h, n, d = t.shape
    row = t.stride(2)
    if (
        t.stride(3) == 1
        and t.stride(1) == d
        and row >= h * d
        and (b == 1 or t.stride(0) == n * row)
    ):
        return t, row
    return t.contiguous(), 0


def _described(
    q: Tensor, k: Tensor, causal: bool, scale: float | None, bias: Tensor | None
) -> Attention:
    b, h, n, d = q.shape
    it = Attention(batch=b, heads=h, kv_heads=k.shape[1], queries=n, keys=k.shape[2], head_size=d)
    it.causal, it.scale = causal, 1 / math.sqrt(d) if scale is None else scale
    if bias is not None:
        need(bias)
        it.key_bias = bias.data_ptr()
    return it


def _key_bias(mask: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
    """A mask that depends on keys alone, as [B, S]; None if there is no mask, or one that depends
    on more."""
    b, n, s = q.shape[0], q.shape[2], k.shape[2]
    if mask is None:
        return None
    view = mask.expand(b, q.shape[1], n, s)
    if (n > 1 and view.stride(2)) or (q.shape[1] > 1 and view.stride(1)):
        return None
    return view[:, 0, 0, :].contiguous()


def _fits(q: Tensor, k: Tensor, v: Tensor, causal: bool, mask: Tensor | None) -> bool:
    alike = q.shape[3] == v.shape[3] <= HEAD_MAX and q.shape[1] % k.shape[1] == 0
    square = not causal or q.shape[2] == k.shape[2]
    return (
        alike
        and square
        and k.shape[2] <= KEYS_MAX
        and (mask is None or _key_bias(mask, q, k) is not None)
    )


def _check_sizes(q: Tensor, k: Tensor, v: Tensor, *like_out: Tensor) -> None:
    """Raises Leftover for wrong sizes. PyTorch's kernel is not called, as it would read out of
    bounds."""
    right = q.dim() == k.dim() == v.dim() == 4 and k.shape[:3] == v.shape[:3]
    right = right and q.shape[0] == k.shape[0] and q.shape[3] == k.shape[3]
    if not right or any(t.shape != (*q.shape[:3], v.shape[3]) for t in like_out):
        raise Leftover("sizes of its queries, keys and values do not fit")


def _times(x: Tensor, factor: float) -> Tensor:
    """x times a number. On a device by the library, as no mode sees operators called from here."""
    return x * factor if x.is_cpu else elementwise("scale", (bits(factor),), x)


def _scores(q: Tensor, k: Tensor, causal: bool, mask: Tensor | None, scale: float) -> Tensor:
    n, s = q.shape[2], k.shape[2]
    x = _times(matmul(q, k.transpose(-1, -2), 2), scale)
    if mask is not None:
        x = x + mask if x.is_cpu else elementwise("add", (), x, mask)
    if causal:
        x = torch.where(here.ones(n, s, dtype=torch.bool).tril(), x, -float("inf"))
    return x


def _probabilities(
    q: Tensor, k: Tensor, causal: bool, mask: Tensor | None, scale: float | None
) -> tuple[Tensor, float]:
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    return safe_softmax(_scores(q, k, causal, mask, scale), -1), scale


def _repeated(t: Tensor, heads: int) -> Tensor:
    return t if t.shape[1] == heads else t.repeat_interleave(heads // t.shape[1], 1)


FLASH = "_scaled_dot_product_flash_attention_for_cpu"


@handles(FLASH)
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """out, and statistics for the backward function below, which are not PyTorch's logsumexp."""
    need(q, k, v)
    if dropout:
        raise Leftover("it drops weights of attention out")
    _check_sizes(q, k, v)
    if not _fits(q, k, v, causal, attn_mask):
        p, _ = _probabilities(q, _repeated(k, q.shape[1]), causal, attn_mask, scale)
        return matmul(p, _repeated(v, q.shape[1]), 2), here.zeros(2, *q.shape[:3])
    bias = _key_bias(attn_mask, q, k)
    it = _described(q, k, causal, scale, bias)
    (q, it.q_row), (k, it.k_row), (v, it.v_row) = _heads(q), _heads(k), _heads(v)
    b, h, n, d = q.shape
    out, it.out_row = here.empty(b, n, h, d).transpose(1, 2), h * d
    stats = here.empty(2, b, h, n)
    fused(
        lib.ro_attention_forward, ctypes.byref(it), q, k, v, out, stats[0], stats[1], strided=True
    )
    return out, stats


def _plain_backward(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool,
    mask: Tensor | None,
    scale: float | None,
) -> tuple[Tensor, Tensor, Tensor]:
    h, g = q.shape[1], k.shape[1]
    kk, vv = _repeated(k, h), _repeated(v, h)
    p, scale = _probabilities(q, kk, causal, mask, scale)
    dp = matmul(dout, vv.transpose(-1, -2), 2)
    ds = _times(softmax_backward(dp, p, -1, torch.float32), scale)
    dk, dv = matmul(ds.transpose(-1, -2), q, 2), matmul(p.transpose(-1, -2), dout, 2)
    if g != h:
        dk, dv = (total(t.reshape(t.shape[0], g, h // g, *t.shape[2:]), [2]) for t in (dk, dv))
    return matmul(ds, kk, 2), dk, dv


@handles(FLASH + "_backward")
def attention_backward(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    stats: Tensor,
    dropout: float,
    causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    need(dout, q, k, v)
    _check_sizes(q, k, v, out, dout)
    if stats.shape != (2, *q.shape[:3]):
        raise Leftover("its statistics are not the library's")
    if not _fits(q, k, v, causal, attn_mask):
        return _plain_backward(dout, q, k, v, causal, attn_mask, scale)
    bias = _key_bias(attn_mask, q, k)
    it = _described(q, k, causal, scale, bias)
    # Gradients have the layout of q, k and v: copy them to rows of tokens that are no wider than
    # the heads.
    q, k, v, out, dout = (
        t.transpose(1, 2).contiguous().transpose(1, 2) for t in (q, k, v, out, dout)
    )
    it.q_row = it.out_row = q.shape[1] * q.shape[3]
    it.k_row = it.v_row = k.shape[1] * k.shape[3]
    dq, dk, dv = (torch.empty_like(t) for t in (q, k, v))
    arrays = (q, k, v, out, stats[0], stats[1], dout, dq, dk, dv)
    fused(lib.ro_attention_backward, ctypes.byref(it), *arrays, strided=True)
    return dq, dk, dv
