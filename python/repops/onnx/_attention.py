"""Attention, and rotary positions."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from .._library import Error
from ._run import Call, is_known
from ._table import operator

Tensor = torch.Tensor
_HIDDEN = -1e30  # scores at or below this count as -inf: exp gives 0 beside any other score


def heads(x: Tensor, count: int) -> Tensor:
    """Turns [b, t, heads x d] into [b, heads, t, d]."""
    b, t, d = x.shape
    if count < 1 or d % count:
        raise Error(f"{d} numbers are not {count} heads")
    return x.reshape(b, t, count, d // count).transpose(1, 2)


def _together(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


def repeated(x: Tensor, count: int) -> Tensor:
    """Repeats heads of keys or values so that there are `count`, as many as of queries."""
    own = x.shape[1]
    if count % own:
        raise Error(f"{count} heads of queries, and {own} of keys")
    if own == count:
        return x
    b, _, t, d = x.shape
    return x[:, :, None].expand(b, own, count // own, t, d).reshape(b, count, t, d)


def _allowed(n: Call, queries: int, keys: int, past: int, lengths: Any) -> Tensor | None:
    """A mask of the keys that each query may attend to by position, or None if it may attend to
    all."""
    left, right = n.get("left_window_size", -1), n.get("right_window_size", -1)
    causal = n.get("is_causal", 0)
    seen: Tensor | None = None
    if causal or left >= 0 or right >= 0:
        first: Any = past
        if lengths is not None:
            first = lengths.reshape(-1, 1, 1, 1) - queries
        ahead = torch.arange(keys) - torch.arange(queries)[:, None] - first
        for wanted, own in ((causal, ahead <= 0), (right >= 0, ahead <= right)):
            if wanted:
                seen = own if seen is None else seen & own
        if left >= 0:
            seen = ahead >= -left if seen is None else seen & (ahead >= -left)
    if lengths is not None:
        there = torch.arange(keys) < lengths.reshape(-1, 1, 1, 1)
        seen = there if seen is None else seen & there
    return seen


def _bias(mask: Any, seen: Tensor | None, keys: int) -> Tensor | None:
    """The term that is added to scores: -inf for masked keys, and for keys beyond a short mask."""
    never = torch.full((), -math.inf)
    bias: Tensor | None = None
    if mask is not None:
        more = keys - mask.shape[-1]
        if mask.dtype is torch.bool:
            mask = torch.where(mask, torch.zeros(()), never)
        bias = F.pad(mask, [0, more], value=-math.inf) if more > 0 else mask
    if seen is None:
        return bias
    own = torch.where(seen, torch.zeros(()), never)
    return own if bias is None else bias + own


def _simple(bias: Any, known: bool, queries: int) -> tuple[Any, bool]:
    """Simplifies a constant bias. Returns the bias that remains, and whether attention is causal
    instead: none remains if all are 0, or if exactly the later keys are hidden."""
    if bias is None or not known or bias.numel() > 1 << 24:
        return bias, False
    if not bias.any():
        return None, False
    whole = bias.reshape(-1, *bias.shape[-2:])
    whole = torch.where(whole <= _HIDDEN, torch.full((), -math.inf), whole)
    later = torch.triu(torch.full((queries, queries), -math.inf), 1)
    is_causal = whole.shape[1:] == later.shape and all(torch.equal(w, later) for w in whole)
    return (None, True) if is_causal else (bias, False)


def _plain(n: Call, bias: Any) -> bool:
    """Can torch's attention compute it? Not with capped scores, nor if the scores are an output. A
    query without any visible key gives zeros, but NaN if the layer was recognised from parts."""
    return (bias is None or "parts" in n.attributes) and not n.get("softcap", 0.0) and not n.has(3)


@operator("Attention")
def _attention(
    n: Call,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    lengths: Any = None,
) -> Any:
    flat = q.dim() == 3
    if flat:
        q = heads(q, n.need("q_num_heads"))
        k, v = (heads(t, n.need("kv_num_heads")) for t in (k, v))
    past = 0 if past_key is None else past_key.shape[2]
    if past_key is not None:
        k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
    present = k, v
    k, v = repeated(k, q.shape[1]), repeated(v, q.shape[1])
    scale = n.get("scale", 1.0 / math.sqrt(q.shape[-1]))
    seen = _allowed(n, q.shape[2], k.shape[2], past, lengths)
    bias = _bias(mask, seen, k.shape[2])
    rest, causal = _simple(bias, is_known([mask, lengths]), q.shape[2])
    if _plain(n, rest):
        how: dict[str, Any] = {"is_causal": causal, "scale": scale}
        y, told = F.scaled_dot_product_attention(q, k, v, rest, **how), None
    else:
        y, told = _in_parts(n, q, k, v, bias, scale)
    return (_together(y) if flat else y), *present, told


def _in_parts(
    n: Call, q: Tensor, k: Tensor, v: Tensor, bias: Any, scale: float
) -> tuple[Tensor, Tensor]:
    """Attention in single operators. The second result is for the fourth output."""
    root = math.sqrt(scale)
    scores = torch.matmul(q * root, (k * root).transpose(2, 3))
    told, mode, cap = scores, n.get("qk_matmul_output_mode", 0), n.get("softcap", 0.0)
    scores = torch.tanh(scores / cap) * cap if cap else scores
    told = scores if mode == 1 else told
    scores = scores if bias is None else scores + bias
    told = scores if mode == 2 else told
    chances = torch.softmax(scores, -1)
    if bias is not None:  # a query without visible keys gives zeros
        none = bias.amax(-1, keepdim=True) == -math.inf
        chances = torch.where(none, torch.zeros(()), chances)
    return torch.matmul(chances, v), (chances if mode == 3 else told)


@operator("FlexAttention", domain="ai.onnx.preview")
def _flex(n: Call, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    k, v = repeated(k, q.shape[1]), repeated(v, q.shape[1])
    scale = n.get("scale", 1.0 / math.sqrt(q.shape[-1]))
    scores = torch.matmul(q, k.transpose(2, 3)) * scale
    if "score_mod" in n.attributes:
        scores = n.inner("score_mod", [scores])[0]
    chances = torch.softmax(scores, -1)
    if "prob_mod" in n.attributes:
        chances = n.inner("prob_mod", [chances])[0]
    return torch.matmul(chances, v)


@operator("LinearAttention", note="a turn for each position")
def _linear(
    n: Call,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    past: Any = None,
    decay: Any = None,
    beta: Any = None,
) -> Any:
    count, own = n.need("q_num_heads"), n.need("kv_num_heads")
    rule = n.get("update_rule", "gated_delta")
    q, k, v = heads(q, count), heads(k, own), heads(v, own)
    b, _, t, size = q.shape
    scale = n.get("scale", 0.0) or 1.0 / math.sqrt(size)
    if decay is not None:
        decay = heads(decay, own).exp()
    if beta is not None:
        beta = beta.transpose(1, 2)[..., None]
    state = torch.zeros(b, own, size, v.shape[-1]) if past is None else past
    outputs = []
    for i in range(t):
        key, value = k[:, :, i, :, None], v[:, :, i, None]
        if rule in ("gated", "gated_delta"):
            state = state * decay[:, :, i, :, None]
        if rule in ("delta", "gated_delta"):
            value = beta[:, :, i, None] * (value - (state * key).sum(2, keepdim=True))
        state = state + key * value
        outputs.append(torch.matmul(q[:, :, i, None], repeated(state, count)) * scale)
    return _together(torch.cat(outputs, 2)), state


@operator("RotaryEmbedding")
def _rotary(n: Call, x: Tensor, cos: Tensor, sin: Tensor, positions: Any = None) -> Tensor:
    flat = x.dim() == 3
    own = heads(x, n.need("num_heads")) if flat else x
    size = n.get("rotary_embedding_dim", 0) or own.shape[-1]
    if positions is not None:
        places = positions.to(torch.int64)
        cos, sin = (t[places] for t in (cos, sin))
    cos, sin = cos[:, None], sin[:, None]
    turned, rest = own[..., :size], own[..., size:]
    if n.get("interleaved", 0):
        a, b = turned[..., 0::2], turned[..., 1::2]
    else:
        a, b = turned[..., : size // 2], turned[..., size // 2 :]
    parts = [cos * a - sin * b, sin * a + cos * b]
    if n.get("interleaved", 0):
        y = torch.stack(parts, -1).flatten(-2)
    else:
        y = torch.cat(parts, -1)
    y = torch.cat([y, rest], -1) if rest.shape[-1] else y
    return _together(y) if flat else y
