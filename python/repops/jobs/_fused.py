"""The library's fused functions in operators, as repops/include/repops/fused.h and layers.h define
them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._graph import I32, Value
from ._lower import FUSED, Lower, rule
from ._memory import EXACT
from ._record import Place

Several = tuple[Value, ...]


@rule(FUSED, "sum")
def _sum(self: Lower, x: Place) -> Value:
    v = self.read(x)
    word = self.graph.filled(v)
    number = 0.5 if word is None else float(np.uint32(word).view(np.float32))
    if number % 1 == 0 and abs(number) * x.size[1] <= EXACT and number:  # partial sums are exact
        return self.fill(number * x.size[1], (x.size[0],))
    return self.rows("reduce_sum", x.size[1], v)


@rule(FUSED, "sum_rows")
def _sum_rows(self: Lower, x: Place) -> Value:
    return self.columns("sum_rows", x.size[1], self.read(x))


# ---- linear layers ----


@rule(FUSED, "linear")
def _linear(self: Lower, x: Place, w: Place, bias: Place | None, transposed: int) -> Value:
    trans = 2 if transposed else 0
    y = self.graph.emit("matmul", self.read(x), self.read(w), trans=trans)
    return y if bias is None else self.graph.emit("add", y, self.read(bias))


@rule(FUSED, "linear_dx")
def _linear_dx(self: Lower, x: Place, w: Place, dy: Place, transposed: int) -> Value:
    trans = 0 if transposed else 2
    return self.graph.emit("matmul", self.read(dy), self.read(w), trans=trans)


@rule(FUSED, "linear_dw")
def _linear_dw(self: Lower, x: Place, w: Place, dy: Place, transposed: int) -> Value:
    a, b = (dy, x) if transposed else (x, dy)
    return self.graph.emit("matmul", self.read(a), self.read(b), trans=1)


@rule(FUSED, "linear_db")
def _linear_db(self: Lower, x: Place, w: Place, dy: Place, transposed: int) -> Value:
    return self.columns("sum_rows", dy.size[1], self.read(dy))


# ---- rows ----


def _statistics(self: Lower, x: Value) -> tuple[Value, Value]:
    cols = x.dims[-1]
    m = self.rows("reduce_max", cols, x)
    return m, self.rows("reduce_expsum", cols, x, m)


def _softmax(name: str) -> Any:
    def lower(self: Lower, x: Place) -> Several:
        v = self.read(x)
        m, total = _statistics(self, v)
        return self.graph.emit(name, v, m, total), m, total

    return lower


for _name in ("softmax", "log_softmax"):
    rule(FUSED, _name)(_softmax(_name))


@rule(FUSED, "softmax_backward")
def _softmax_backward(self: Lower, y: Place, dy: Place) -> Value:
    out, d = self.read(y), self.read(dy)
    total = self.rows("reduce_dot", out.dims[-1], d, out)
    return self.graph.emit("softmax_grad", out, d, total)


@rule(FUSED, "log_softmax_backward")
def _log_softmax_backward(self: Lower, y: Place, dy: Place) -> Value:
    out, d = self.read(y), self.read(dy)
    return self.graph.emit("log_softmax_grad", out, d, self.rows("reduce_sum", d.dims[-1], d))


@rule(FUSED, "cross_entropy")
def _cross_entropy(self: Lower, x: Place, ids: Place, ignore: int) -> Value:
    v = self.read(x)
    m, total = _statistics(self, v)
    labels = self.typed(ids, I32)
    if _counts(labels, ignore):
        return self.graph.emit("xent", v, m, total, labels)
    return self.graph.emit("xent_ignore", v, m, total, labels, ignore=ignore)


def _counts(labels: Value, ignore: int) -> bool:
    """Does every row count, because no label can equal `ignore`?"""
    return labels.low > ignore or labels.high < ignore


@rule(FUSED, "cross_entropy_grad")
def _cross_entropy_grad(self: Lower, x: Place, ids: Place, dloss: Place, ignore: int) -> Value:
    v = self.read(x)
    m, total = _statistics(self, v)
    labels, d = self.typed(ids, I32), self.read(dloss)
    if _counts(labels, ignore):
        return self.graph.emit("xent_grad", v, m, total, labels, d)
    return self.graph.emit("xent_ignore_grad", v, m, total, labels, d, ignore=ignore)


@rule(FUSED, "layer_norm")
def _layer_norm(self: Lower, x: Place, gamma: Place, beta: Place, eps: float) -> Several:
    v, c = self.read(x), x.size[1]
    weight, bias = self.read(gamma), self.read(beta)  # first, so that executors fuse all
    mean = self.graph.emit("div_const", self.rows("reduce_sum", c, v), divisor=float(c))
    squares = self.rows("reduce_sqdev", c, v, mean)
    rstd = self.graph.emit("ln_rstd", squares, n=c, eps=eps)
    y = self.graph.emit("layernorm", v, mean, rstd, weight, bias)
    return y, mean, rstd


@rule(FUSED, "layer_norm_backward")
def _layer_norm_backward(
    self: Lower, x: Place, gamma: Place, mean: Place, rstd: Place, dy: Place
) -> Several:
    v, g, m, r, d = (self.read(p) for p in (x, gamma, mean, rstd, dy))
    c = x.size[1]
    sg = self.rows("reduce_dot", c, d, g)
    sgx = self.rows("reduce_ln_gx", c, d, g, v, m, r)
    dx = self.graph.emit("ln_dx", d, g, v, m, r, sg, sgx)
    return dx, self.columns("ln_dgamma", c, d, v, m, r), self.columns("sum_rows", c, d)


# ---- attention ----


def _scores(
    self: Lower,
    q: Value,
    k: Value,
    bias: Place | None,
    times: int,
    scale: float,
    again: bool = False,
) -> tuple[Value, Value]:
    """Scores and probabilities of attention. again: the backward pass recomputes them, so that they
    need not be kept."""
    if times > 1:
        k = self.graph.emit("repeat_heads", k, times=times)
    how: dict[str, Any] = {"batch_dims": 2, "trans": 2, "alpha": scale, "again": again}
    s = self.graph.emit("matmul", q, k, called="scores", **how)
    if bias is not None:
        b = self.reshape(self.read(bias), (s.dims[0], 1, 1, s.dims[3]))
        s = self.graph.emit("add", s, self.expand(b, s.dims), again=again)
    return k, s


@rule(FUSED, "attention")
def _attention(
    self: Lower,
    q: Place,
    k: Place,
    v: Place,
    bias: Place | None,
    times: int,
    causal: int,
    window: int,
    scale: float,
) -> Several:
    values = self.read(v)
    _, s = _scores(self, self.read(q), self.read(k), bias, times, scale)
    if times > 1:
        values = self.graph.emit("repeat_heads", values, times=times)
    how: dict[str, Any] = {"causal": causal, "window": window}
    mc = self.graph.emit("attn_max", s, **how)
    ex = self.graph.emit("attn_exp", s, mc, **how)
    lc = self.graph.emit("reduce_sum", ex, cols=s.dims[3], block=128, shape=mc.dims)
    ac = self.graph.emit("attn_av", ex, values, **how)
    total = self.graph.emit("attn_l", mc, lc)
    m = self.rows("reduce_max", mc.dims[-1], mc, shape=total.dims)
    return self.graph.emit("attn_out", mc, ac, total), m, total


@rule(FUSED, "attention_backward")
def _attention_backward(
    self: Lower,
    q: Place,
    k: Place,
    v: Place,
    bias: Place | None,
    out: Place,
    m: Place,
    total: Place,
    dout: Place,
    times: int,
    causal: int,
    window: int,
    scale: float,
) -> Several:
    queries, values, o, do = (self.read(p) for p in (q, v, out, dout))
    keys, s = _scores(self, queries, self.read(k), bias, times, scale, again=True)
    if times > 1:
        values = self.graph.emit("repeat_heads", values, times=times)
    how: dict[str, Any] = {"causal": causal, "window": window}
    delta = self.rows("reduce_dot", o.dims[3], do, o, shape=(*s.dims[:3], 1))
    p = self.graph.emit("attn_prob", s, self.read(m), self.read(total), **how)
    dp = self.graph.emit("matmul", do, values, batch_dims=2, trans=2)
    ds = self.graph.emit("attn_dscore", p, dp, delta, **how)
    by_row: dict[str, Any] = {
        "batch_dims": 2,
        "chunk": 128,
        "mask": 1 if causal else 0,
        "window": window,
    }
    by_column: dict[str, Any] = {**by_row, "mask": 2 if causal else 0, "trans": 1}
    dv = self.graph.emit("matmul", p, do, **by_column)
    dk = self.graph.emit("matmul", ds, queries, alpha=scale, **by_column)
    dq = self.graph.emit("matmul", ds, keys, alpha=scale, **by_row)
    if times > 1:
        dk, dv = (self.graph.emit("repeat_heads_grad", x, times=times) for x in (dk, dv))
    return dq, dk, dv


# ---- optimizers ----


def _flat(self: Lower, *tensors: Place) -> list[Value]:
    """Reads tensors in one shape: that of the first one's storage, if it fits."""
    first = self.held.get(tensors[0].storage)
    fits = first is not None and first.numel == tensors[0].numel
    shape = first.dims if first is not None and fits else tensors[0].size
    return [self.reshape(self.read(p), shape) for p in tensors]


@rule(FUSED, "adamw")
def _adamw(
    self: Lower,
    w: Place,
    m: Place,
    v: Place,
    gradient: Place,
    clip: Place,
    c1: Place,
    c2: Place,
    rate: Place,
    **how: float,
) -> Several:
    weights, first, second, g = _flat(self, w, m, v, gradient)
    scale, *one = (self.read(p) for p in (clip, c1, c2, rate))
    new_m = self.graph.emit("adamw_m", first, g, scale, beta=how["beta1"])
    new_v = self.graph.emit("adamw_v", second, g, scale, beta=how["beta2"])
    eps: dict[str, Any] = {"eps": how["eps"], "decay": how["decay"]}
    return self.graph.emit("adamw_w", weights, new_m, new_v, *one, **eps), new_m, new_v


@rule(FUSED, "sgd")
def _sgd(
    self: Lower,
    w: Place,
    m: Place,
    gradient: Place,
    clip: Place,
    rate: Place,
    momentum: float,
    decay: float,
    nesterov: int,
) -> Several:
    weights, before, g = _flat(self, w, m, gradient)
    scale, lr = self.read(clip), self.read(rate)
    how: dict[str, Any] = {"momentum": momentum, "decay": decay}
    new_m = self.graph.emit("sgd_m", before, g, weights, scale, **how)
    if nesterov:
        return self.graph.emit("sgd_nesterov", weights, new_m, g, scale, lr, **how), new_m
    return self.graph.emit("sgd_w", weights, new_m, lr), new_m
