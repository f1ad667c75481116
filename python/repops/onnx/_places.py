"""Operators that read and write at indices."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch

from .._library import Error
from ._run import Call, is_known, mark_known
from ._table import operator

Tensor = torch.Tensor


def counted(places: Tensor, size: int) -> Tensor:
    """Non-negative indices: negative ones count from the end. ONNX does not define indices out of
    range: constant ones are refused, others are taken modulo the size."""
    whole = places.to(torch.int64)
    if not is_known(places):
        return torch.remainder(whole, size)
    wrong = [p for p in whole.reshape(-1).tolist() if not -size <= p < size]
    if wrong:
        raise Error(f"place {wrong[0]} of {size}")
    return mark_known(torch.where(whole < 0, whole + size, whole))


@operator("Gather")
def _gather(n: Call, x: Tensor, places: Tensor) -> Tensor:
    axis = n.get("axis", 0) % x.dim()
    flat = counted(places, x.shape[axis]).reshape(-1)
    shape = [*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]]
    if is_known(places) and flat.numel() == 1:  # a slice, with a loop's counter as its start, say
        return x.narrow(axis, int(flat), 1).reshape(shape)
    return x.index_select(axis, flat).reshape(shape)


@operator("GatherElements")
def _gather_elements(n: Call, x: Tensor, places: Tensor) -> Tensor:
    axis = n.get("axis", 0)
    return torch.gather(x, axis, counted(places, x.shape[axis]))


def _flat(places: Tensor, dims: list[int]) -> Tensor:
    """Flat indices of multi-dimensional ones, whose last axis has one index for each of dims."""
    made = torch.zeros(places.shape[:-1], dtype=torch.int64)
    for i, d in enumerate(dims):
        made = made * d + counted(places[..., i], d)
    return made


@operator("GatherND")
def _gather_nd(n: Call, x: Tensor, places: Tensor) -> Tensor:
    batch, depth = n.get("batch_dims", 0), places.shape[-1]
    if not 1 <= depth <= x.dim() - batch:
        raise Error(f"places have {depth} numbers each; expected 1 to {x.dim() - batch}")
    rows = math.prod(x.shape[:batch])
    dims = list(x.shape[batch : batch + depth])
    flat = _flat(places, dims).reshape(rows, -1)
    table = x.reshape(rows * math.prod(dims), -1)
    first = torch.arange(rows)[:, None] * math.prod(dims)
    shape = [*places.shape[:-1], *x.shape[batch + depth :]]
    return table.index_select(0, (flat + first).reshape(-1)).reshape(shape)


@operator("ScatterElements")
def _scatter_elements(n: Call, x: Tensor, places: Tensor, updates: Tensor) -> Tensor:
    axis, how = n.get("axis", 0), n.get("reduction", "none")
    places = counted(places, x.shape[axis])
    if how == "none":
        return x.scatter(axis, places, updates)
    return _reduced(x, axis, places, updates, how)


def _reduced(x: Tensor, axis: int, places: Tensor, updates: Tensor, how: str) -> Tensor:
    if how == "add":
        return x.scatter_add(axis, places, updates)
    if how == "mul":
        with warnings.catch_warnings():  # torch advises scatter_reduce, which differs
            warnings.simplefilter("ignore")
            return x.scatter(axis, places, updates, reduce="multiply")
    kinds = {"max": "amax", "min": "amin"}
    if how not in kinds:
        raise Error(f"reduction {how} is refused; expected none, add, mul, max or min")
    return x.scatter_reduce(axis, places, updates, kinds[how], include_self=True)


@operator("ScatterND")
def _scatter_nd(n: Call, x: Tensor, places: Tensor, updates: Tensor) -> Tensor:
    depth, how = places.shape[-1], n.get("reduction", "none")
    dims = list(x.shape[:depth])
    flat = _flat(places, dims).reshape(-1)
    table = x.reshape(math.prod(dims), -1)
    rows = updates.reshape(flat.numel(), -1)
    whole = flat[:, None].expand(rows.shape)
    if how == "none":
        return table.scatter(0, whole, rows).reshape(x.shape)
    return _reduced(table, 0, whole, rows, how).reshape(x.shape)


@operator("TensorScatter")
def _tensor_scatter(n: Call, past: Tensor, update: Tensor, starts: Any = None) -> Tensor:
    axis = n.get("axis", -2) % past.dim()
    size, count = past.shape[axis], update.shape[axis]
    first = torch.zeros(past.shape[0], dtype=torch.int64) if starts is None else starts
    places = first.reshape([-1] + [1] * (past.dim() - 1))
    line = torch.arange(count).reshape([-1] + [1] * (past.dim() - axis - 1))
    places = places + line
    if n.get("mode", "linear") == "circular":
        places = torch.remainder(places, size)
    return past.scatter(axis, places.expand(update.shape), update)


# ---- output sizes that depend on values: of constants, or equal in all steps ----


@operator("NonZero", note="read: constant, or of data that are equal in all steps")
def _nonzero(n: Call, x: Tensor) -> Tensor:
    found = [i for i, v in enumerate(x.reshape(-1).tolist()) if v]
    rows, size = [], x.numel()
    for d in x.shape:
        size //= d
        rows.append([i // size % d for i in found])
    return torch.tensor(rows, dtype=torch.int64).reshape(x.dim(), len(found))


@operator("Compress", note="the condition is read")
def _compress(n: Call, x: Tensor, condition: Tensor) -> Tensor:
    axis = n.attributes.get("axis")
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
    chosen = [i for i, v in enumerate(condition.tolist()) if v]
    return x.index_select(axis, torch.tensor(chosen, dtype=torch.int64))


@operator("Unique", note="read: constant, or of data that are equal in all steps")
def _unique(n: Call, x: Tensor) -> Any:
    axis = n.attributes.get("axis")
    lines = x.reshape(-1, 1) if axis is None else x.movedim(axis, 0).reshape(x.shape[axis], -1)
    groups: dict[tuple[float, ...], list[int]] = {}
    for i, line in enumerate(lines.tolist()):
        groups.setdefault(tuple(line), []).append(i)
    order = sorted(groups) if n.get("sorted", 1) else list(groups)
    first = torch.tensor([groups[g][0] for g in order])
    turn = {g: i for i, g in enumerate(order)}
    back = torch.tensor([turn[tuple(line)] for line in lines.tolist()])
    counts = torch.tensor([len(groups[g]) for g in order])
    whole, along = (x.reshape(-1), 0) if axis is None else (x, axis)
    return whole.index_select(along, first), first, back, counts


@operator("ArrayFeatureExtractor", domain="ai.onnx.ml")
def _features(n: Call, x: Tensor, places: Tensor) -> Tensor:
    return x.index_select(x.dim() - 1, counted(places, x.shape[-1]).reshape(-1))
