"""Sums and means of rows of a table, a bag of them at a time."""

from __future__ import annotations

from typing import Any

import torch

from ._call import Leftover, need, numbers, run, total
from ._products import embedding_backward
from ._registry import handles

Tensor = torch.Tensor
SUM, MEAN = 0, 1  # torch's numbers of modes


def _bags(ids: Tensor, offsets: Tensor, count: int) -> Tensor:
    """The bag of each id."""
    return torch.searchsorted(offsets[:count].long(), torch.arange(len(ids)), right=True) - 1


def _mode(mode: int) -> None:
    if mode not in (SUM, MEAN):
        raise Leftover("it takes the largest of a bag; sums and means are supported")


@handles("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    table: Tensor,
    ids: Tensor,
    offsets: Tensor,
    by_frequency: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    factors: Any = None,
    last: bool = False,
    padding: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows are added in the order of the ids. What else is returned is for the backward pass."""
    need(table)
    _mode(mode)
    count = len(offsets) - int(last)
    bags = _bags(ids, offsets, count)
    rows = table[ids] if factors is None else table[ids] * factors.unsqueeze(1)
    kept = bags if padding < 0 else torch.where(ids == padding, -1, bags)
    y = torch.zeros(count, table.shape[1])
    if len(ids) and count:
        y = run("embedding_grad", (), (rows, numbers(kept, count)), tuple(y.shape))
    sizes = torch.bincount(kept[kept >= 0], minlength=count)
    if mode == MEAN:
        y = y / torch.where(sizes == 0, 1, sizes).unsqueeze(1)
    return y, bags, sizes, torch.zeros(0, dtype=torch.int64)


@handles("_embedding_bag_backward")
def embedding_bag_backward(
    dy: Tensor,
    ids: Tensor,
    offsets: Tensor,
    bags: Tensor,
    sizes: Tensor,
    most: Tensor,
    rows: int,
    by_frequency: bool,
    mode: int,
    sparse: bool,
    factors: Any,
    padding: int = -1,
) -> Tensor:
    need(dy)
    _mode(mode)
    if sparse:
        raise Leftover("its gradient is sparse")
    if mode == MEAN:
        dy = dy / torch.where(sizes == 0, 1, sizes).unsqueeze(1)
    terms = dy[bags] if factors is None else dy[bags] * factors.unsqueeze(1)
    return embedding_backward(terms, ids, rows, padding, by_frequency)


@handles("_embedding_bag_per_sample_weights_backward")
def factors_backward(
    dy: Tensor,
    table: Tensor,
    ids: Tensor,
    offsets: Tensor,
    bags: Tensor,
    mode: int,
    padding: int = -1,
) -> Tensor:
    dots = total(dy[bags] * table[ids], [1])
    return dots if padding < 0 else torch.where(ids == padding, 0.0, dots)
