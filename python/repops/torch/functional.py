"""Layers with gradients as operators of torch.library, for direct use without the mode.

Tensors are float32 in the CPU's memory; ids and targets are int64. Each has the same bits on every
machine, forward and backward.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

import torch
from torch import Tensor

from .._library import lib
from .._operators import bits
from . import _images, _norms, _products, _random
from ._call import elementwise, fused, need, run, total

_op = torch.library.custom_op


def _rows(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1])


# ---- linear ----


@_op("repops::linear", mutates_args=())
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x weight^T + bias: x [..., in], weight [out, in], bias [out]; the result is [..., out]."""
    return _products.linear_rows(x, weight, bias, 1)


@linear.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return x.new_empty(*x.shape[:-1], weight.shape[0])


@_op("repops::linear_backward", mutates_args=())
def linear_backward(dy: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, weight and bias."""
    return _products.linear_backward(dy, x, weight, (True, True, True))


@linear_backward.register_fake
def _(dy: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(weight), weight.new_empty(weight.shape[0])


def _linear_save(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias = inputs
    ctx.save_for_backward(x, weight)
    ctx.bias = bias is not None


def _linear_grad(ctx: Any, dy: Tensor) -> Any:
    dx, dw, db = linear_backward(dy, *ctx.saved_tensors)
    return dx, dw, db if ctx.bias else None


linear.register_autograd(_linear_grad, setup_context=_linear_save)


# ---- norms ----


@_op("repops::layer_norm", mutates_args=())
def _layer_norm(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    return _norms.layer_norm(x, [x.shape[-1]], weight, bias, eps)


@_layer_norm.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    row = x.new_empty(*x.shape[:-1], 1)
    return torch.empty_like(x), row, torch.empty_like(row)


@_op("repops::layer_norm_backward", mutates_args=())
def _layer_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return _norms.layer_norm_backward(
        dy, x, [x.shape[-1]], mean, rstd, weight, None, (True, True, True)
    )


@_layer_norm_backward.register_fake
def _(
    dy: Tensor, x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)


def _layer_norm_save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0], inputs[1], output[1], output[2])
    ctx.mark_non_differentiable(output[1], output[2])


def _layer_norm_grad(ctx: Any, dy: Tensor, *_: Any) -> Any:
    return (*_layer_norm_backward(dy, *ctx.saved_tensors), None)


_layer_norm.register_autograd(_layer_norm_grad, setup_context=_layer_norm_save)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """The layer norm of rows: x [..., C], weight and bias [C]."""
    return _layer_norm(x, weight, bias, eps)[0]


@_op("repops::rms_norm", mutates_args=())
def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return _norms.rms_norm(x, [x.shape[-1]], weight, eps)


@_rms_norm.register_fake
def _(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), x.new_empty(*x.shape[:-1], 1)


@_op("repops::rms_norm_backward", mutates_args=())
def _rms_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    return _norms.rms_norm_backward(dy, x, [x.shape[-1]], rstd, weight, (True, True))


@_rms_norm_backward.register_fake
def _(dy: Tensor, x: Tensor, weight: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(weight)


def _rms_norm_save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0], inputs[1], output[1])
    ctx.mark_non_differentiable(output[1])


_rms_norm.register_autograd(
    lambda ctx, dy, _: (*_rms_norm_backward(dy, *ctx.saved_tensors), None),
    setup_context=_rms_norm_save,
)


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """Rows over their root mean square: x [..., C], weight [C]."""
    return _rms_norm(x, weight, eps)[0]


# ---- attention ----


@_op("repops::attention", mutates_args=())
def _attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    return _products.attention(q, k, v, 0.0, causal, attn_mask=mask, scale=scale)


@_attention.register_fake
def _(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    b, h, n, d = q.shape
    return q.new_empty(b, n, h, d).transpose(1, 2), q.new_empty(2, b, h, n)


@_op("repops::attention_backward", mutates_args=())
def _attention_backward(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    stats: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    return _products.attention_backward(
        dout, q, k, v, out, stats, 0.0, causal, attn_mask=mask, scale=scale
    )


@_attention_backward.register_fake
def _(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    stats: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    def empty(t: Tensor) -> Tensor:
        return t.new_empty(t.shape[0], t.shape[2], t.shape[1], t.shape[3]).transpose(1, 2)

    return empty(q), empty(k), empty(v)


def _attention_save(ctx: Any, inputs: Any, output: Any) -> None:
    q, k, v, mask, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(q, k, v, *output, *([] if mask is None else [mask]))
    ctx.mark_non_differentiable(output[1])


def _attention_grad(ctx: Any, dout: Tensor, _: Any) -> Any:
    q, k, v, out, stats, *mask = ctx.saved_tensors
    given = (mask[0] if mask else None, ctx.causal, ctx.scale)
    return (*_attention_backward(dout, q, k, v, out, stats, *given), None, None, None)


_attention.register_autograd(_attention_grad, setup_context=_attention_save)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """softmax(q k^T scale + mask) v: q [B, H, T, D]; k, v [B, G, S, D], where G divides H.

    mask: numbers that are added, of a shape that expands to [B, H, T, S], without gradient. scale:
    1 / sqrt(D) if None."""
    return _attention(q, k, v, mask, causal, 1 / math.sqrt(q.shape[3]) if scale is None else scale)[
        0
    ]


# ---- convolution ----


@_op("repops::conv2d", mutates_args=())
def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Tensor:
    """x [N, C, H, W], weight [F, C / groups, KH, KW], bias [F]; the result is [N, F, OH, OW]."""
    return _images.convolution(x, weight, bias, [stride], [padding], [dilation], False, [0], groups)


@conv2d.register_fake
def _(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Tensor:
    size = [
        (x.shape[i] + 2 * padding - dilation * (weight.shape[i] - 1) - 1) // stride + 1
        for i in (2, 3)
    ]
    return x.new_empty(x.shape[0], weight.shape[0], *size)


@_op("repops::conv2d_backward", mutates_args=())
def _conv2d_backward(
    dy: Tensor, x: Tensor, weight: Tensor, stride: int, padding: int, dilation: int, groups: int
) -> tuple[Tensor, Tensor, Tensor]:
    at = ([stride], [padding], [dilation], False, [0], groups, (True, True, True))
    return _images.convolution_backward(dy, x, weight, None, *at)


@_conv2d_backward.register_fake
def _(
    dy: Tensor, x: Tensor, weight: Tensor, stride: int, padding: int, dilation: int, groups: int
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(weight), weight.new_empty(weight.shape[0])


def _conv2d_save(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias, *ctx.at = inputs
    ctx.save_for_backward(x, weight)
    ctx.bias = bias is not None


def _conv2d_grad(ctx: Any, dy: Tensor) -> Any:
    dx, dw, db = _conv2d_backward(dy, *ctx.saved_tensors, *ctx.at)
    return dx, dw, db if ctx.bias else None, None, None, None, None


conv2d.register_autograd(_conv2d_grad, setup_context=_conv2d_save)


# ---- cross-entropy ----


@_op("repops::cross_entropy", mutates_args=())
def _cross_entropy(x: Tensor, target: Tensor, ignore: int, mean: bool) -> tuple[Tensor, Tensor]:
    """The sum of the rows' losses, or their mean, and what it was divided by."""
    need(x)
    rows, cols = x.shape
    ids, loss = target.to(torch.int32).contiguous(), torch.empty(rows)
    fused(
        lib.ro_cross_entropy, rows, cols, x.contiguous(), ids, ignore, None, loss, None, None, None
    )
    kept = total((target != ignore).float()) if mean else torch.ones(())
    return (total(loss) / kept if mean else total(loss)), kept


@_cross_entropy.register_fake
def _(x: Tensor, target: Tensor, ignore: int, mean: bool) -> tuple[Tensor, Tensor]:
    return x.new_empty(()), x.new_empty(())


@_op("repops::cross_entropy_backward", mutates_args=())
def _cross_entropy_backward(
    dy: Tensor, x: Tensor, target: Tensor, kept: Tensor, ignore: int
) -> Tensor:
    rows, cols = x.shape
    ids, dx, loss = target.to(torch.int32).contiguous(), torch.empty(rows, cols), torch.empty(rows)
    each = (dy / kept).expand(rows).contiguous()
    fused(lib.ro_cross_entropy, rows, cols, x.contiguous(), ids, ignore, each, loss, None, None, dx)
    return dx


@_cross_entropy_backward.register_fake
def _(dy: Tensor, x: Tensor, target: Tensor, kept: Tensor, ignore: int) -> Tensor:
    return x.new_empty(x.shape)


def _backward_save(ctx: Any, inputs: Any, output: Any) -> None:
    dy, x, target, kept, ctx.ignore = inputs
    ctx.save_for_backward(dy, x, target, kept)


def _backward_grad(ctx: Any, ddx: Tensor) -> Any:
    """Of dx = dy / kept (softmax(x) - the target's one), by operators, so that it has its own."""
    from ._mode import active, reproducible

    dy, x, target, kept = ctx.saved_tensors
    with contextlib.nullcontext() if active() else reproducible():
        row = torch.where(target == ctx.ignore, 0.0, ddx.new_ones(())).unsqueeze(1) * ddx / kept
        p = torch.softmax(x, 1)
        inner = (p * row).sum(1, keepdim=True)
        at = target.masked_fill(target == ctx.ignore, 0).unsqueeze(1)
        return (inner - row.gather(1, at)).sum(), dy * (p * (row - inner)), None, None, None


_cross_entropy_backward.register_autograd(_backward_grad, setup_context=_backward_save)


def _cross_entropy_save(ctx: Any, inputs: Any, output: Any) -> None:
    x, target, ctx.ignore, _ = inputs
    ctx.save_for_backward(x, target, output[1])
    ctx.mark_non_differentiable(output[1])


def _cross_entropy_grad(ctx: Any, dy: Tensor, _: Any) -> Any:
    return _cross_entropy_backward(dy, *ctx.saved_tensors, ctx.ignore), None, None, None


_cross_entropy.register_autograd(_cross_entropy_grad, setup_context=_cross_entropy_save)


def cross_entropy(x: Tensor, target: Tensor, ignore: int = -100, reduction: str = "mean") -> Tensor:
    """The mean loss of rows, or with reduction "sum" the sum: x [rows, classes], target [rows].

    Rows whose target is `ignore` are left out. A target that is no class is an IndexError."""
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction is {reduction!r}; expected 'mean' or 'sum'")
    wrong = (target != ignore) & ((target < 0) | (target >= x.shape[1]))
    if wrong.any():
        raise IndexError(f"Target {target[wrong][0].item()} is out of bounds.")
    return _cross_entropy(x, target, ignore, reduction == "mean")[0]


# ---- embeddings, activations, dropout ----


@_op("repops::embedding", mutates_args=())
def embedding(ids: Tensor, table: Tensor) -> Tensor:
    """Rows of the table [V, C]: ids [...]; the result is [..., C]."""
    return table[ids]


@embedding.register_fake
def _(ids: Tensor, table: Tensor) -> Tensor:
    return table.new_empty(*ids.shape, table.shape[1])


@_op("repops::embedding_backward", mutates_args=())
def _embedding_backward(dy: Tensor, ids: Tensor, rows: int) -> Tensor:
    return _products.embedding_backward(dy, ids, rows, -1, False)


@_embedding_backward.register_fake
def _(dy: Tensor, ids: Tensor, rows: int) -> Tensor:
    return dy.new_empty(rows, dy.shape[-1])


def _embedding_save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.rows = inputs[1].shape[0]


embedding.register_autograd(
    lambda ctx, dy: (None, _embedding_backward(dy, *ctx.saved_tensors, ctx.rows)),
    setup_context=_embedding_save,
)


def _activation(name: str, of_result: bool, text: str) -> Any:
    @_op(f"repops::{name}", mutates_args=())
    def forward(x: Tensor) -> Tensor:
        return elementwise(name, (), x.contiguous())

    @_op(f"repops::{name}_backward", mutates_args=())
    def backward(saved: Tensor, dy: Tensor) -> Tensor:
        return elementwise(f"{name}_grad", (), saved.contiguous(), dy.contiguous())

    forward.register_fake(torch.empty_like)
    backward.register_fake(lambda saved, dy: torch.empty_like(dy))
    forward.register_autograd(
        lambda ctx, dy: backward(*ctx.saved_tensors, dy),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(
            output if of_result else inputs[0]
        ),
    )
    forward.__doc__ = text
    return forward


relu = _activation("relu", False, "max(x, 0).")
gelu = _activation("gelu", False, "The GELU by tanh.")
gelu_erf = _activation("gelu_erf", False, "The GELU by erf.")
silu = _activation("silu", False, "x sigmoid(x).")
tanh = _activation("tanh", True, "The hyperbolic tangent.")
sigmoid = _activation("sigmoid", True, "1 / (1 + exp(-x)).")


@_op("repops::dropout", mutates_args=())
def _dropout(x: Tensor, seed: int, rate: float) -> Tensor:
    step = torch.zeros(1, dtype=torch.int32)
    attributes = (seed, 0, int(rate * 2**32), bits(1 / (1 - rate)))
    return run("dropout", attributes, (x.contiguous().reshape(-1), step)).reshape(x.shape)


@_dropout.register_fake
def _(x: Tensor, seed: int, rate: float) -> Tensor:
    return torch.empty_like(x)


def _dropout_save(ctx: Any, inputs: Any, output: Any) -> None:
    _, ctx.seed, ctx.rate = inputs


_dropout.register_autograd(
    lambda ctx, dy: (_dropout(dy, ctx.seed, ctx.rate), None, None), setup_context=_dropout_save
)


def dropout(x: Tensor, rate: float, generator: torch.Generator | None = None) -> Tensor:
    """0 with this probability, below 1, else x / (1 - rate). The key comes from the generator."""
    if not 0 <= rate < 1:
        raise ValueError(f"rate is {rate}; expected at least 0 and below 1")
    return _dropout(x, _random.key(generator), rate)
