"""Sums, means and maxima of rows of a table, a bag of them at a time."""

from __future__ import annotations

from typing import Any

import torch

from . import _here as here
from ._call import need, numbers, run, total
from ._indexing import added
from ._products import embedding_backward
from ._registry import handles

Tensor = torch.Tensor
SUM, MEAN, MAX = 0, 1, 2  # torch's numbers for the modes


def _bags(ids: Tensor, offsets: Tensor, count: int) -> Tensor:
    """The index of each id's bag."""
    return torch.searchsorted(offsets[:count].long(), here.arange(len(ids)), right=True) - 1


def _largest(table: Tensor, ids: Tensor, starts: Tensor, padding: int) -> tuple[Tensor, Tensor]:
    """The maximum of each column over each bag (0 for an empty bag) and the table's row that it
    came from (-1: none). The first of equal rows wins. The bags are sorted, longest first, and step
    i compares the i-th id of all bags that have one, which are then the leading ones."""
    count, width = len(starts), table.shape[1]
    sizes = torch.diff(starts, append=here.tensor([len(ids)]))
    sizes, order = torch.sort(sizes, descending=True, stable=True)
    y = here.zeros(count, width)
    rows = here.full((count, width), -1, dtype=ids.dtype)
    for i in range(int(sizes[0]) if count else 0):
        held = int((sizes > i).sum())
        own = ids[starts[order[:held]] + i].unsqueeze(1)
        new = table[own[:, 0]]
        better = (new > y[:held]) | (rows[:held] < 0)
        if padding >= 0:
            better = better & (own != padding)
        y[:held] = torch.where(better, new, y[:held])
        rows[:held] = torch.where(better, own, rows[:held])
    back = torch.argsort(order)
    return y[back], rows[back]


def _sizes(bags: Tensor, count: int, ids: Tensor, padding: int) -> Tensor:
    """The number of ids in each bag that are not padding, from running sums, so that shapes are
    fixed."""
    sizes = torch.bincount(bags[bags >= 0], minlength=count)
    if padding < 0:
        return sizes
    ends = sizes.cumsum(0)
    before = here.zeros(1, dtype=torch.int64)
    up = torch.cat([before, torch.where(ids == padding, 1, 0)]).cumsum(0)
    down = torch.cat([before, torch.where(ids == padding, -1, 0)]).cumsum(0)
    return sizes + down[ends] + up[ends - sizes]


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
    """Adds rows in the order of the ids. The other three results are for the backward pass."""
    need(table)
    count = len(offsets) - int(last)
    bags = _bags(ids, offsets, count)
    if mode == MAX:
        y, chosen = _largest(table, ids, offsets[:count].long(), padding)
        return y, bags, _sizes(bags, count, ids, padding), chosen
    rows = table[ids] if factors is None else table[ids] * factors.unsqueeze(1)
    kept = bags if padding < 0 else torch.where(ids == padding, -1, bags)
    y = here.zeros(count, table.shape[1])
    if len(ids) and count:
        y = run("embedding_grad", (), (rows, numbers(kept, count)), tuple(y.shape))
    sizes = _sizes(bags, count, ids, padding)
    if mode == MEAN:
        y = y / torch.where(sizes == 0, 1, sizes).unsqueeze(1)
    return y, bags, sizes, here.zeros(0, dtype=torch.int64)


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
    if mode == MAX:
        width = dy.shape[1]
        places = torch.where(most < 0, -1, most.long() * width + here.arange(width))
        return added(here.zeros(rows, width), places, dy.reshape(-1, 1))
    if mode == MEAN:
        dy = dy / torch.where(sizes == 0, 1, sizes).unsqueeze(1)
    terms = dy[bags] if factors is None else dy[bags] * factors.unsqueeze(1)
    if sparse:
        kept = ids != padding
        return torch.sparse_coo_tensor(ids[kept][None], terms[kept], (rows, dy.shape[1]))
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
