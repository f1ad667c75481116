"""Several operators in one call: faster than single calls, with the same bits.

Inputs are float32 arrays, ids int32; SPEC.md of the library defines every bit.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, NamedTuple

import numpy as np

from . import _arrays
from ._arrays import floats
from ._context import Context, current
from ._library import Attention, AttentionDropout, Error, LinearLayer, lib
from ._numbers import INT32, SEED, WORD, default_modes, single, whole

ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "gelu_erf": 3, "silu": 4}
IGNORE_NONE = -(2**63)


class Dropout(NamedTuple):
    """Dropout of attention weights: the attributes of operator dropout, and the step."""

    seed: int
    rate: float
    stream: int = 0
    step: int = 0


def _at(x: np.ndarray | None) -> int | None:
    return None if x is None else x.ctypes.data


def _matrix(x: np.ndarray) -> tuple[int, int]:
    cols = x.shape[-1]
    return (x.size // cols if cols else int(np.prod(x.shape[:-1]))), cols


def _expect(x: np.ndarray, what: str, *shape: int) -> None:
    if x.shape != shape:
        raise Error(f"{what} is {list(x.shape)}; expected {list(shape)}")


def _new(*shape: int) -> np.ndarray:
    return np.empty(shape, np.float32)


@default_modes
def linear(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    transposed: bool = False,
    activation: str | None = None,
    fixed_bits: int = 0,
    context: Context | None = None,
) -> Any:
    """activation(x w + bias): x [..., in], w [in, out] or, transposed, [out, in], bias [out].

    The product has matmul's bits, or with fixed_bits 8, 16 or 24 those of matmul_fixed."""
    a, b = floats(x, "x"), floats(w, "w")
    rows, cols = _matrix(a)
    out = b.shape[0] if transposed else b.shape[-1]
    _expect(b, "w", *((out, cols) if transposed else (cols, out)))
    c = None if bias is None else floats(bias, "bias")
    if c is not None:
        _expect(c, "bias", out)
    if activation not in ACTIVATIONS:
        raise Error(f"activation is {activation!r}; expected one of {list(ACTIVATIONS)}")
    y, context = _new(*a.shape[:-1], out), context or current()
    bits = whole(fixed_bits, "fixed_bits", INT32)
    layer = LinearLayer(
        activation=ACTIVATIONS[activation],
        rows=rows,
        in_=cols,
        out=out,
        transposed=bool(transposed),
        fixed_bits=bits,
    )
    context.check(
        lib.ro_linear(context.handle, ctypes.byref(layer), _at(a), _at(b), _at(c), None, _at(y))
    )
    return _arrays.like(y, x)


@default_modes
def layer_norm(
    x: Any, gamma: Any, beta: Any, *, eps: float = 1e-5, context: Context | None = None
) -> tuple[Any, Any, Any]:
    """The layer norm of rows, their means and 1 / their standard deviations.

    x, y: [..., C]; gamma, beta: [C]; mean, rstd: [...]."""
    a, g, b = floats(x, "x"), floats(gamma, "gamma"), floats(beta, "beta")
    rows, cols = _matrix(a)
    eps = single(eps, "eps")
    _expect(g, "gamma", cols)
    _expect(b, "beta", cols)
    y, mean, rstd = _new(*a.shape), _new(*a.shape[:-1]), _new(*a.shape[:-1])
    context = context or current()
    arrays = [_at(t) for t in (a, g, b, y, mean, rstd)]
    context.check(lib.ro_layer_norm(context.handle, rows, cols, eps, *arrays))
    return tuple(_arrays.like(t, x) for t in (y, mean, rstd))


@default_modes
def layer_norm_backward(
    x: Any, gamma: Any, mean: Any, rstd: Any, dy: Any, *, context: Context | None = None
) -> tuple[Any, Any, Any]:
    """Gradients of x [..., C], gamma [C] and beta [C] from dy [..., C]."""
    a, g, m, r, d = (
        floats(t, n)
        for t, n in ((x, "x"), (gamma, "gamma"), (mean, "mean"), (rstd, "rstd"), (dy, "dy"))
    )
    rows, cols = _matrix(a)
    _expect(g, "gamma", cols)
    _expect(d, "dy", *a.shape)
    if m.size != rows or r.size != rows:
        raise Error(f"mean has {m.size} and rstd {r.size} elements; expected {rows}, one per row")
    dx, dg, db = _new(*a.shape), _new(cols), _new(cols)
    context = context or current()
    arrays = [_at(t) for t in (a, g, m, r, d, dx, dg, db)]
    context.check(lib.ro_layer_norm_backward(context.handle, rows, cols, *arrays))
    return tuple(_arrays.like(t, x) for t in (dx, dg, db))


def _rows(function: Any, x: Any, context: Context | None) -> Any:
    a = floats(x, "x")
    rows, cols = _matrix(a)
    y, m, l = _new(*a.shape), _new(rows), _new(rows)
    context = context or current()
    context.check(function(context.handle, rows, cols, _at(a), _at(y), _at(m), _at(l)))
    return _arrays.like(y, x)


def _rows_backward(function: Any, y: Any, dy: Any, context: Context | None) -> Any:
    a, d = floats(y, "y"), floats(dy, "dy")
    _expect(d, "dy", *a.shape)
    rows, cols = _matrix(a)
    dx, context = _new(*a.shape), context or current()
    context.check(function(context.handle, rows, cols, _at(a), _at(d), _at(dx)))
    return _arrays.like(dx, y)


@default_modes
def softmax(x: Any, *, context: Context | None = None) -> Any:
    """The softmax of rows: x, y [..., C]."""
    return _rows(lib.ro_softmax, x, context)


@default_modes
def log_softmax(x: Any, *, context: Context | None = None) -> Any:
    """The logarithm of the softmax of rows: x, y [..., C]."""
    return _rows(lib.ro_log_softmax, x, context)


@default_modes
def softmax_backward(y: Any, dy: Any, *, context: Context | None = None) -> Any:
    """The gradient of x from y = softmax(x) and dy, both [..., C]."""
    return _rows_backward(lib.ro_softmax_backward, y, dy, context)


@default_modes
def log_softmax_backward(y: Any, dy: Any, *, context: Context | None = None) -> Any:
    """The gradient of x from y = log_softmax(x) and dy, both [..., C]."""
    return _rows_backward(lib.ro_log_softmax_backward, y, dy, context)


@default_modes
def cross_entropy(
    x: Any,
    ids: Any,
    *,
    dloss: Any = None,
    ignore: int | None = None,
    context: Context | None = None,
) -> Any:
    """Losses of rows: x [..., C], ids and losses [...]. With dloss [...] also returns the gradient
    of x."""
    a, labels = floats(x, "x"), _arrays.array(ids, "ids")
    rows, cols = _matrix(a)
    if labels.dtype != np.int32 or labels.size != rows:
        raise Error(
            f"ids is {labels.dtype} of {labels.size}; expected int32, one of {rows} rows each"
        )
    d = None if dloss is None else floats(dloss, "dloss")
    if d is not None and d.size != rows:
        raise Error(f"dloss has {d.size} elements; expected {rows}, one per row")
    loss, dx = _new(*a.shape[:-1]), None if d is None else _new(*a.shape)
    context = context or current()
    context.check(
        lib.ro_cross_entropy(
            context.handle,
            rows,
            cols,
            _at(a),
            _at(labels),
            IGNORE_NONE if ignore is None else whole(ignore, "ignore"),
            _at(d),
            _at(loss),
            None,
            None,
            _at(dx),
        )
    )
    loss = _arrays.like(loss, x)
    return loss if dx is None else (loss, _arrays.like(dx, x))


def _dropout(it: Dropout) -> AttentionDropout:
    rate = single(it.rate, "dropout: rate")
    if not 0 <= rate < 1:
        raise Error(f"dropout: rate is {rate}; expected 0 or more and less than 1")
    return AttentionDropout(
        whole(it.seed, "dropout: seed", SEED),
        whole(it.stream, "dropout: stream", WORD),
        int(rate * 2**32),
        1 / (1 - rate),
        whole(it.step, "dropout: step", INT32),
    )


def _attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    causal: bool,
    window: int,
    scale: float | None,
    dropout: Dropout | None,
    key_bias: np.ndarray | None,
) -> Attention:
    if q.ndim != 4 or k.ndim != 4:
        raise Error(
            f"q has {q.ndim} and k {k.ndim} dimensions; expected [B, H, T, D] and [B, G, S, D]"
        )
    batch, heads, queries, size = q.shape
    _expect(k, "k", batch, k.shape[1], k.shape[2], size)
    _expect(v, "v", *k.shape)
    if key_bias is not None:
        _expect(key_bias, "key_bias", batch, k.shape[2])
    it = Attention(batch=batch, heads=heads, kv_heads=k.shape[1], queries=queries, keys=k.shape[2])
    it.head_size, it.causal, it.key_bias = size, bool(causal), _at(key_bias)
    it.window = whole(window, "window")
    it.scale = 1 / math.sqrt(size) if scale is None else single(scale, "scale")
    if dropout:
        it.dropout = ctypes.pointer(_dropout(dropout))
    return it


@default_modes
def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = False,
    window: int = 0,
    scale: float | None = None,
    dropout: Dropout | None = None,
    key_bias: Any = None,
    context: Context | None = None,
) -> tuple[Any, Any, Any]:
    """softmax(q k^T scale + key_bias) v, and statistics for the gradient: (out, m, l).

    q, out: [B, H, T, D]; k, v: [B, G, S, D], where G divides H; key_bias: [B, S]; m, l: [B, H, T].
    causal: queries are the last T of S positions. window: with causal, a query sees that many keys
    at most, its own included; 0: all before. scale: 1 / sqrt(D) if None."""
    a, b, c = floats(q, "q"), floats(k, "k"), floats(v, "v")
    bias = None if key_bias is None else floats(key_bias, "key_bias")
    it = _attention(a, b, c, causal, window, scale, dropout, bias)
    out, m, l = _new(*a.shape), _new(*a.shape[:3]), _new(*a.shape[:3])
    context = context or current()
    arrays = [_at(t) for t in (a, b, c, out, m, l)]
    context.check(lib.ro_attention_forward(context.handle, ctypes.byref(it), *arrays))
    return tuple(_arrays.like(t, q) for t in (out, m, l))


@default_modes
def attention_backward(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    m: Any,
    l: Any,
    dout: Any,
    *,
    causal: bool = False,
    window: int = 0,
    scale: float | None = None,
    dropout: Dropout | None = None,
    key_bias: Any = None,
    context: Context | None = None,
) -> tuple[Any, Any, Any]:
    """Gradients of q, k and v from dout [B, H, T, D] and what attention returned."""
    tensors = [
        floats(t, n) for t, n in zip((q, k, v, out, m, l, dout), "q k v out m l dout".split())
    ]
    a, b, c = tensors[:3]
    bias = None if key_bias is None else floats(key_bias, "key_bias")
    it = _attention(a, b, c, causal, window, scale, dropout, bias)
    for t, name, shape in zip(
        tensors[3:], ("out", "m", "l", "dout"), (a.shape, a.shape[:3], a.shape[:3], a.shape)
    ):
        _expect(t, name, *shape)
    gradients = [_new(*t.shape) for t in (a, b, c)]
    context = context or current()
    arrays = [_at(t) for t in (*tensors, *gradients)]
    context.check(lib.ro_attention_backward(context.handle, ctypes.byref(it), *arrays))
    return tuple(_arrays.like(t, q) for t in gradients)
