"""Layers with gradients as operators of torch.library, for direct use without a block.

Tensors are float32 in the CPU's memory; ids and targets are int64. Results have the same bits on
every machine, forward and backward.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import _context
from .._library import Error, lib
from .._operators import bits
from . import _detection, _images, _norms, _products, _random
from . import _here as here
from ._arguments import checked, expect_kind
from ._call import elementwise, fused, run, total

KERNELS: dict[str, Any] = {}  # by the operator's name


def _op(name: str, signature: str | None = None) -> Any:
    """Registers a function as an operator that checks its tensors."""

    def register(function: Any) -> Any:
        own = KERNELS[f"repops::{name}"] = checked(signature or name)(function)
        schema = torch.library.infer_schema(function, mutates_args=())
        return torch.library.custom_op(f"repops::{name}", own, mutates_args=(), schema=schema)

    return register


def _fake(operator: Any, name: str) -> Any:
    """Registers the function that tells the shapes of the operator's results."""
    return lambda function: operator.register_fake(checked(name, fake=True)(function))


# ---- linear ----


@_op("linear")
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x weight^T + bias: x [..., in], weight [out, in], bias [out]; the result is [..., out]."""
    return _products.linear_rows(x, weight, bias, 1)


@_fake(linear, "linear")
def _(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return x.new_empty(*x.shape[:-1], weight.shape[0])


@_op("linear_backward")
def linear_backward(dy: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x [..., in], weight [out, in] and bias [out]; dy is [..., out]."""
    return _products.linear_backward(dy, x, weight, (True, True, True))


@_fake(linear_backward, "linear_backward")
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


@_op("layer_norm")
def _layer_norm(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    return _norms.layer_norm(x, [x.shape[-1]], weight, bias, eps)


@_fake(_layer_norm, "layer_norm")
def _(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    row = x.new_empty(*x.shape[:-1], 1)
    return torch.empty_like(x), row, torch.empty_like(row)


@_op("layer_norm_backward")
def _layer_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return _norms.layer_norm_backward(
        dy, x, [x.shape[-1]], mean, rstd, weight, None, (True, True, True)
    )


@_fake(_layer_norm_backward, "layer_norm_backward")
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
    """Layer norm of rows: x [..., C], weight and bias [C]."""
    return _layer_norm(x, weight, bias, eps)[0]


@_op("rms_norm")
def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return _norms.rms_norm(x, [x.shape[-1]], weight, eps)


@_fake(_rms_norm, "rms_norm")
def _(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), x.new_empty(*x.shape[:-1], 1)


@_op("rms_norm_backward")
def _rms_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    return _norms.rms_norm_backward(dy, x, [x.shape[-1]], rstd, weight, (True, True))


@_fake(_rms_norm_backward, "rms_norm_backward")
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
    """Rows divided by their root mean square, times weight: x [..., C], weight [C]."""
    return _rms_norm(x, weight, eps)[0]


# ---- attention ----


def _check_heads(q: Tensor, k: Tensor, mask: Tensor | None, devices: Sequence[str]) -> None:
    (b, h, n, d), (_, g, s, _) = q.shape, k.shape
    if not d:
        raise Error(f"attention: q is {list(q.shape)}; expected heads of one element at least")
    if not g or h % g:
        raise Error(f"attention: q has {h} heads and k {g}; expected a number that divides them")
    if mask is None:
        return
    expect_kind("attention: mask", mask, (torch.float32,), devices)
    sizes = list(zip(reversed(mask.shape), (s, n, h, b)))
    if mask.dim() > 4 or any(own not in (1, whole) for own, whole in sizes):
        raise Error(
            f"attention: mask is {list(mask.shape)}; expected what expands to {[b, h, n, s]}"
        )


@_op("attention")
def _attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    _check_heads(q, k, mask, ("cpu",))
    return _products.attention(q, k, v, 0.0, causal, attn_mask=mask, scale=scale)


@_fake(_attention, "attention")
def _(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    _check_heads(q, k, mask, ("cpu", "meta"))
    b, h, n, d = *q.shape[:3], v.shape[3]
    return q.new_empty(b, n, h, d).transpose(1, 2), q.new_empty(2, b, h, n)


@_op("attention_backward")
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
    _check_heads(q, k, mask, ("cpu",))
    return _products.attention_backward(
        dout, q, k, v, out, stats, 0.0, causal, attn_mask=mask, scale=scale
    )


@_fake(_attention_backward, "attention_backward")
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
    _check_heads(q, k, mask, ("cpu", "meta"))

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
    """softmax(q k^T scale + mask) v: q [B, H, T, D]; k [B, G, S, D], v [B, G, S, E], where G
    divides H; the result is [B, H, T, E].

    mask: is added; its shape expands to [B, H, T, S]; it gets no gradient. scale:
    1 / sqrt(D) if None."""
    if scale is None:
        scale = 1 / math.sqrt(q.shape[3]) if q.dim() == 4 and q.shape[3] else 1.0
    return _attention(q, k, v, mask, causal, scale)[0]


# ---- convolution ----


def _window_size(
    x: Tensor, weight: Tensor, stride: int, padding: int, dilation: int, groups: int
) -> list[int]:
    """Height and width of the result. Raises Error if it is empty."""
    if min(stride, dilation, groups) < 1 or padding < 0:
        raise Error(
            f"conv2d: stride {stride}, padding {padding}, dilation {dilation}, groups {groups}; "
            "expected positive numbers, and a padding of 0 at least"
        )
    (f, c), channels = weight.shape[:2], x.shape[1]
    if f % groups or c * groups != channels:
        raise Error(
            f"conv2d: weight is {list(weight.shape)}, of {groups} groups and {channels} channels; "
            "expected [F, channels / groups, KH, KW], where groups divides F"
        )
    size = [
        (x.shape[i] + 2 * padding - dilation * (weight.shape[i] - 1) - 1) // stride + 1
        for i in (2, 3)
    ]
    if min(size) < 1 or min(weight.shape[2:]) < 1:
        raise Error(
            f"conv2d: windows of {list(weight.shape[2:])} do not fit an image of "
            f"{list(x.shape[2:])} with padding {padding}, dilation {dilation}"
        )
    return size


def _check_windows(dy: Tensor, x: Tensor, weight: Tensor, *at: int) -> None:
    size = _window_size(x, weight, *at)
    if list(dy.shape[2:]) != size:
        expected = [*dy.shape[:2], *size]
        raise Error(f"conv2d_backward: dy is {list(dy.shape)}; expected {expected}")


@_op("conv2d")
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
    _window_size(x, weight, stride, padding, dilation, groups)
    return _images.convolution(x, weight, bias, [stride], [padding], [dilation], False, [0], groups)


@_fake(conv2d, "conv2d")
def _(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Tensor:
    size = _window_size(x, weight, stride, padding, dilation, groups)
    return x.new_empty(x.shape[0], weight.shape[0], *size)


@_op("conv2d_backward")
def _conv2d_backward(
    dy: Tensor, x: Tensor, weight: Tensor, stride: int, padding: int, dilation: int, groups: int
) -> tuple[Tensor, Tensor, Tensor]:
    _check_windows(dy, x, weight, stride, padding, dilation, groups)
    at = ([stride], [padding], [dilation], False, [0], groups, (True, True, True))
    return _images.convolution_backward(dy, x, weight, None, *at)


@_fake(_conv2d_backward, "conv2d_backward")
def _(
    dy: Tensor, x: Tensor, weight: Tensor, stride: int, padding: int, dilation: int, groups: int
) -> tuple[Tensor, Tensor, Tensor]:
    _check_windows(dy, x, weight, stride, padding, dilation, groups)
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


def _classes(target: Tensor, ignore: int, classes: int) -> Tensor:
    """Class ids as the library takes them, with -1 for `ignore`. Raises IndexError for ids out of
    range."""
    ignored = target == ignore
    context = _context.current()
    if context.device is not None:
        target = target.masked_fill((target < 0) | (target >= classes), classes)
    if context.job is not None or context.device is not None:
        # Python must not read values here; an id out of range gives NaN.
        return target.masked_fill(ignored, -1).to(torch.int32)
    wrong = ~ignored & ((target < 0) | (target >= classes))
    if wrong.any():
        raise IndexError(f"Target {target[wrong][0].item()} is out of bounds.")
    return target.masked_fill(ignored, -1).to(torch.int32)


@_op("cross_entropy")
def _cross_entropy(x: Tensor, target: Tensor, ignore: int, mean: bool) -> tuple[Tensor, Tensor]:
    """The sum or mean of the rows' losses, and the divisor."""
    rows, cols = x.shape
    ids, loss = _classes(target, ignore, cols), here.empty(rows)
    fused(lib.ro_cross_entropy, rows, cols, x.contiguous(), ids, -1, None, loss, None, None, None)
    kept = total((target != ignore).float()) if mean else here.ones(())
    return (elementwise("div", (), total(loss), kept) if mean else total(loss)), kept


@_fake(_cross_entropy, "cross_entropy")
def _(x: Tensor, target: Tensor, ignore: int, mean: bool) -> tuple[Tensor, Tensor]:
    return x.new_empty(()), x.new_empty(())


@_op("cross_entropy_backward")
def _cross_entropy_backward(
    dy: Tensor, x: Tensor, target: Tensor, kept: Tensor, ignore: int
) -> Tensor:
    rows, cols = x.shape
    ids, dx, loss = _classes(target, ignore, cols), here.empty(rows, cols), here.empty(rows)
    each = (dy / kept).expand(rows).contiguous()
    fused(lib.ro_cross_entropy, rows, cols, x.contiguous(), ids, -1, each, loss, None, None, dx)
    return dx


@_fake(_cross_entropy_backward, "cross_entropy_backward")
def _(dy: Tensor, x: Tensor, target: Tensor, kept: Tensor, ignore: int) -> Tensor:
    return x.new_empty(x.shape)


def _backward_save(ctx: Any, inputs: Any, output: Any) -> None:
    dy, x, target, kept, ctx.ignore = inputs
    ctx.save_for_backward(dy, x, target, kept)


def _backward_grad(ctx: Any, ddx: Tensor) -> Any:
    """The gradient of dx = dy / kept (softmax(x) - onehot(target)), by operators that have
    gradients."""
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
    """The mean of the rows' losses, or with reduction "sum" their sum: x [rows, classes], target
    [rows]. Rows whose target is `ignore` are left out. Raises IndexError for targets out of
    range."""
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction is {reduction!r}; expected 'mean' or 'sum'")
    return _cross_entropy(x, target, ignore, reduction == "mean")[0]


# ---- embeddings, activations, dropout ----


def _rows(ids: Tensor, rows: int) -> Tensor:
    wrong = (ids < 0) | (ids >= rows)
    if wrong.any():
        raise IndexError(f"embedding: id {ids[wrong][0].item()} is no row of {rows}")
    return ids


@_op("embedding")
def embedding(ids: Tensor, table: Tensor) -> Tensor:
    """Rows of the table [V, C]: ids [...], result [..., C]. Raises IndexError for ids out of
    range."""
    flat = _rows(ids, table.shape[0]).reshape(-1)
    return table.index_select(0, flat).reshape(*ids.shape, table.shape[1])


@_fake(embedding, "embedding")
def _(ids: Tensor, table: Tensor) -> Tensor:
    return table.new_empty(*ids.shape, table.shape[1])


@_op("embedding_backward")
def _embedding_backward(dy: Tensor, ids: Tensor, rows: int) -> Tensor:
    return _products.embedding_backward(dy, _rows(ids, rows), rows, -1, False)


@_fake(_embedding_backward, "embedding_backward")
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
    @_op(name, "activation")
    def forward(x: Tensor) -> Tensor:
        return elementwise(name, (), x.contiguous())

    @_op(f"{name}_backward", "activation_backward")
    def backward(saved: Tensor, dy: Tensor) -> Tensor:
        return elementwise(f"{name}_grad", (), saved.contiguous(), dy.contiguous())

    _fake(forward, "activation")(torch.empty_like)
    _fake(backward, "activation_backward")(lambda saved, dy: torch.empty_like(dy))
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


@_op("dropout")
def _dropout(x: Tensor, seed: int, rate: float) -> Tensor:
    if not 0 <= rate < 1:
        raise ValueError(f"rate is {rate}; expected at least 0 and below 1")
    step = here.zeros(1, dtype=torch.int32)
    attributes = (seed, 0, int(rate * 2**32), bits(1 / (1 - rate)))
    return run("dropout", attributes, (x.contiguous().reshape(-1), step)).reshape(x.shape)


@_fake(_dropout, "dropout")
def _(x: Tensor, seed: int, rate: float) -> Tensor:
    return torch.empty_like(x)


def _dropout_save(ctx: Any, inputs: Any, output: Any) -> None:
    _, ctx.seed, ctx.rate = inputs


_dropout.register_autograd(
    lambda ctx, dy: (_dropout(dy, ctx.seed, ctx.rate), None, None), setup_context=_dropout_save
)


def dropout(x: Tensor, rate: float, generator: torch.Generator | None = None) -> Tensor:
    """0 with probability `rate`, which is below 1, else x / (1 - rate). The generator draws the
    key."""
    return _dropout(x, _random.key(generator), rate)


# ---- boxes ----


def nms_mask(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """For each box whether torchvision's nms keeps it: boxes [n, 4], scores [n]; the result is bool
    [n]. A step of a job, whose shapes are fixed, uses it as weights in place of nms."""
    from ._mode import active, reproducible

    expect_kind("nms_mask: boxes", boxes, (torch.float32,), ("cpu",))
    expect_kind("nms_mask: scores", scores, (torch.float32,), ("cpu",))
    if boxes.shape != (*scores.shape, 4) or scores.dim() != 1:
        raise Error(
            f"nms_mask: boxes are {list(boxes.shape)} and scores {list(scores.shape)}; "
            "expected [n, 4] and [n]"
        )
    with contextlib.nullcontext() if active() else reproducible():
        return _detection.kept_boxes(boxes.detach(), scores.detach(), threshold)
