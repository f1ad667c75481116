"""Sums, means, extremes and so on along axes; running ones; sorting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ._run import Call
from ._table import operator

Tensor = torch.Tensor


def axes_of(n: Call, given: Any, rank: int) -> list[int] | None:
    """Axes from the input, or in older versions from the attribute; None: all."""
    axes = n.get("axes") if given is None else given.reshape(-1).tolist()
    return None if not axes else [a % rank if -rank <= a < rank else a for a in axes]


def _reduces(name: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Registers a reduction. The function takes floats or integers, the axes, and whether these
    stay with size 1."""

    def register(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def call(n: Call, x: Tensor, given: Any = None) -> Tensor:
            axes = axes_of(n, given, x.dim())
            keep = bool(n.get("keepdims", 1))
            if axes is None:
                if n.get("noop_with_empty_axes", 0):
                    return _alone(name, x)
                axes = list(range(x.dim()))
            return function(x, axes, keep) if axes else _alone(name, x)

        call.__module__ = __name__
        operator(name)(call)
        return function

    return register


def _alone(name: str, x: Tensor) -> Tensor:
    """Reductions over axes that all have size 1."""
    changed: dict[str, Callable[[Tensor], Tensor]] = {
        "ReduceL1": torch.abs,
        "ReduceL2": torch.abs,
        "ReduceLogSum": torch.log,
        "ReduceSumSquare": lambda t: t * t,
    }
    return changed[name](x) if name in changed else x


def total(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return x.sum(axes, keepdim=keep, dtype=x.dtype)


_reduces("ReduceSum")(total)


def mean_of_images(x: Tensor) -> Tensor:
    """The mean of each channel. Pixels are added one after another, in channels-last layout without
    a copy."""
    n, c, high, wide = x.shape
    lines = x.permute(2, 3, 0, 1).reshape(high * wide, n, c)
    return lines.mean(0).reshape(n, c, 1, 1)


@_reduces("ReduceMean")
def _mean(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    if x.dtype.is_floating_point and x.dim() == 4 and sorted(axes) == [2, 3]:
        y = mean_of_images(x)
        return y if keep else y.reshape(y.shape[:2])
    if x.dtype.is_floating_point:
        return x.mean(axes, keepdim=keep)
    count = math.prod(x.shape[a] for a in axes)
    return torch.div(total(x, axes, keep), count, rounding_mode="trunc").to(x.dtype)


@_reduces("ReduceL1")
def _l1(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return total(x.abs(), axes, keep)


@_reduces("ReduceL2")
def _l2(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return total(x * x, axes, keep).sqrt().to(x.dtype)


@_reduces("ReduceSumSquare")
def _squares(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return total(x * x, axes, keep)


@_reduces("ReduceLogSum")
def _log_sum(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return total(x, axes, keep).log()


@_reduces("ReduceLogSumExp")
def _log_sum_exp(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    if x.numel() == 0:
        return total(x.exp(), axes, keep).log()
    return torch.logsumexp(x, axes, keepdim=keep)


@_reduces("ReduceProd")
def _product(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    for a in sorted(axes, reverse=True):
        x = x.prod(a, keepdim=keep, dtype=x.dtype)
    return x


def _extreme(x: Tensor, axes: list[int], keep: bool, largest: bool) -> Tensor:
    if x.dtype is torch.bool:
        return _extreme(x.to(torch.uint8), axes, keep, largest).to(torch.bool)
    if x.numel() == 0:
        shape = [1 if i in axes else d for i, d in enumerate(x.shape)]
        if x.dtype.is_floating_point:
            least = -math.inf
        else:
            least = torch.iinfo(x.dtype).min
        most = math.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).max
        full = torch.full(shape, least if largest else most, dtype=x.dtype)
        return full if keep else full.reshape([d for i, d in enumerate(shape) if i not in axes])
    return (torch.amax if largest else torch.amin)(x, axes, keep)


@_reduces("ReduceMax")
def _max(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return _extreme(x, axes, keep, True)


@_reduces("ReduceMin")
def _min(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return _extreme(x, axes, keep, False)


def _place(n: Call, x: Tensor, largest: bool) -> Tensor:
    axis, keep = n.get("axis", 0), bool(n.get("keepdims", 1))
    find = torch.argmax if largest else torch.argmin
    if not n.get("select_last_index", 0):
        return find(x, axis, keep)
    return x.shape[axis] - 1 - find(x.flip(axis), axis, keep)


@operator("ArgMax")
def _argmax(n: Call, x: Tensor) -> Tensor:
    return _place(n, x, True)


@operator("ArgMin")
def _argmin(n: Call, x: Tensor) -> Tensor:
    return _place(n, x, False)


def _running(n: Call, x: Tensor, axis: Tensor, function: Any, first: int) -> Tensor:
    along = int(axis)
    x = x.flip(along) if n.get("reverse", 0) else x
    if n.get("exclusive", 0):
        head = torch.full_like(x.narrow(along, 0, 1), first)
        x = torch.cat([head, x.narrow(along, 0, x.shape[along] - 1)], along)
    made: Tensor = function(x, along, dtype=x.dtype)
    return made.flip(along) if n.get("reverse", 0) else made


@operator("CumSum")
def _cumsum(n: Call, x: Tensor, axis: Tensor) -> Tensor:
    return _running(n, x, axis, torch.cumsum, 0)


@operator("CumProd")
def _cumprod(n: Call, x: Tensor, axis: Tensor) -> Tensor:
    return _running(n, x, axis, torch.cumprod, 1)


@operator("TopK")
def _topk(n: Call, x: Tensor, k: Tensor) -> Any:
    """Equal elements keep their order."""
    axis, count = n.get("axis", -1), int(k)
    largest = bool(n.get("largest", 1))
    values, places = torch.sort(x, dim=axis, descending=largest, stable=True)
    return values.narrow(axis, 0, count), places.narrow(axis, 0, count)
