"""Refuses writes to memory that is read, or written again, in another place of the same operator.

The result would depend on the order in which a kernel visits the elements, and so on the width of a
processor's vectors. PyTorch refuses some of these writes, where strides alone tell of them.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from ._call import Leftover

Tensor = torch.Tensor
# Whether two views meet is an equation in whole numbers, which may take long. After so many
# candidates they are taken to meet.
_CANDIDATES = 10_000_000
_is_alias_of: Any = torch._C._is_alias_of  # type: ignore[attr-defined]


class _Places:
    """A tensor's places in memory, for numpy, which does not read them."""

    def __init__(self, x: Tensor) -> None:
        width = x.element_size()
        self.__array_interface__ = {
            "data": (x.data_ptr(), False),
            "shape": tuple(x.shape),
            "strides": tuple(s * width for s in x.stride()),
            "typestr": f"|V{width}",
            "version": 3,
        }


def overlaps(size: Any, stride: Any) -> bool:
    """Do places of these sizes and strides meet?"""
    reach = 0
    for step, n in sorted(zip(stride, size)):
        if n > 1 and step <= reach:
            break  # they may still lie between one another
        reach += step * (n - 1)
    else:
        return False
    steps = (np.arange(n) * step for n, step in zip(size, stride))
    places = functools.reduce(np.add.outer, steps)
    return len(np.unique(places)) < places.size


def _same(x: Tensor, y: Tensor) -> bool:
    return x.data_ptr() == y.data_ptr() and x.shape == y.shape and x.stride() == y.stride()


def _meet(x: Tensor, y: Tensor) -> bool:
    try:
        x_places, y_places = np.asarray(_Places(x)), np.asarray(_Places(y))
        return np.shares_memory(x_places, y_places, _CANDIDATES)  # type: ignore[arg-type]
    except RuntimeError:  # numpy's TooHardError
        return True


def check_written(out: Tensor, *given: Any) -> None:
    """Refuses a write to `out` from tensors among the given values. Strides of 0 are left to
    PyTorch."""
    if out.layout is torch.strided and not out.is_contiguous():
        if 0 not in out.stride() and overlaps(out.shape, out.stride()):
            raise Leftover("it writes to places that overlap; clone() makes them distinct")
    for x in given:
        if isinstance(x, Tensor) and x is not out and _is_alias_of(x, out) and not _same(x, out):
            if not x.is_meta and _meet(x, out):
                raise Leftover("it writes to what it reads as another view; clone() one of them")
