"""Attention of jagged tensors. PyTorch computes it with nested tensors, which a block cannot see
into.

While any thread is in a block, each sequence is attended to separately.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nested._internal import ops
from torch.nested._internal.nested_tensor import nested_view_from_values_offsets_lengths
from torch.nn import functional as F

Tensor = torch.Tensor
_theirs = ops.jagged_scaled_dot_product_attention


def _sequences(x: Any) -> list[Tensor]:
    """Splits [batch, heads, length, size] into sequences [1, heads, length, size]."""
    lengths = x.offsets().diff().tolist()
    return [t.transpose(0, 1).unsqueeze(0) for t in x.transpose(1, 2).values().split(lengths)]


def _fits(x: Any) -> bool:
    return bool(x.is_nested and x.dim() == 4 and x._ragged_idx == 2 and x.lengths() is None)


def _attention(query: Any, key: Any, value: Any, **how: Any) -> Any:
    each = zip(*(_sequences(x) for x in (query, key, value)))
    parts = [F.scaled_dot_product_attention(q, k, v, **how)[0].transpose(0, 1) for q, k, v in each]
    sizes = {f"{n}_seqlen": getattr(query, f"_maybe_{n}_seqlen") for n in ("min", "max")}
    out = nested_view_from_values_offsets_lengths(torch.cat(parts), query.offsets(), None, **sizes)
    return out.transpose(1, 2)


def watch(active: Callable[[], Any]) -> None:
    """Replaces PyTorch's function. active() is the block that this thread is in, or None."""

    def attention(
        query: Any, key: Any, value: Any, attn_mask: Any = None, *a: Any, **how: Any
    ) -> Any:
        ours = active() is not None and attn_mask is None and all(map(_fits, (query, key, value)))
        if not ours or len(query.offsets()) != len(key.offsets()):
            return _theirs(query, key, value, attn_mask, *a, **how)
        names = ("dropout_p", "is_causal", "scale", "enable_gqa")
        return _attention(query, key, value, **dict(zip(names, a)), **how)

    ops.jagged_scaled_dot_product_attention = attention


def rest() -> None:
    """Restores PyTorch's function."""
    ops.jagged_scaled_dot_product_attention = _theirs
