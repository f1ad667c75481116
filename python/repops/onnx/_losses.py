"""Losses."""

from __future__ import annotations

from typing import Any

import torch

from ._run import Call
from ._table import operator

Tensor = torch.Tensor


def _loss(n: Call, scores: Tensor, labels: Tensor, weight: Any) -> Tensor:
    """scores: log probabilities, [n, classes, ...]."""
    ignored = n.attributes.get("ignore_index")
    whole = labels.to(torch.int64)
    kept = None if ignored is None else whole != ignored
    own = whole
    if kept is not None:
        zero = torch.zeros((), dtype=torch.int64)
        own = torch.where(kept, whole, zero).clamp(0, scores.shape[1] - 1)
    taken = -scores.gather(1, own.unsqueeze(1)).squeeze(1)
    weights = None
    if weight is not None:
        weights = weight.index_select(0, own.reshape(-1)).reshape(own.shape)
    if kept is not None:
        one = torch.ones(()) if weights is None else weights
        weights = torch.where(kept, one, torch.zeros(()))
    taken = taken if weights is None else taken * weights
    how = n.get("reduction", "mean")
    if how == "none":
        return taken
    if how == "sum":
        return taken.sum()
    return taken.mean() if weights is None else taken.sum() / weights.sum()


@operator("NegativeLogLikelihoodLoss")
def _likelihood(n: Call, x: Tensor, labels: Tensor, weight: Any = None) -> Tensor:
    return _loss(n, x, labels, weight)


@operator("SoftmaxCrossEntropyLoss")
def _cross_entropy(n: Call, x: Tensor, labels: Tensor, weight: Any = None) -> Any:
    scores = torch.log_softmax(x, 1)
    return _loss(n, scores, labels, weight), scores
