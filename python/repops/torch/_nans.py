"""NaNs have one pattern of bits in each type, 0x7fc00000 and its like (SPEC.md, "NaN").

Where an operation has no result, processors make a NaN of either sign: inf - inf is 0xffc00000 on
x86 and 0x7fc00000 on ARM. So NaNs in what PyTorch computed or converted are overwritten. In the
CPU's memory a sum tells whether there may be one, in less time than it takes to compare each
element; a device would have to be waited for, so there all elements are compared."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .._context import current
from ._call import ONE, elementwise_, packed
from ._registry import COMPLEX, REAL

Tensor = torch.Tensor
_sum = torch.ops.aten.sum.default._op
_written = torch.ops.aten.nan_to_num_.default._op


def one_nan(result: Any) -> Any:
    """Overwrites NaNs in the tensors of an operator's result with the library's NaN. Returns the
    result."""
    watcher = current().watcher
    if watcher is None:
        _look(result)
    elif not watcher.shapes:  # with shapes only there are no numbers
        with _disable_current_modes():  # a recording must not see these operators
            _look(result)
    return result


def _look(result: Any) -> None:
    if isinstance(result, Tensor):
        if result.layout is not torch.strided or result.is_meta:
            return
        if result.dtype in REAL:
            _write(result)
        elif result.dtype in COMPLEX:
            _write(torch.view_as_real(result.resolve_conj()))
    elif isinstance(result, (list, tuple)):
        for each in result:
            _look(each)


def _write(t: Tensor) -> None:
    if t._is_zerotensor():  # it has no memory, and torch would read some
        return
    if not t.is_cpu:
        _write_there(t)
        return
    total = _sum(t).item()
    if total != total:
        _written(t, math.nan, math.inf, -math.inf)


def _write_there(t: Tensor) -> None:
    if t.dtype is torch.float32 and packed(t):
        elementwise_("scale", (ONE,), t)
    elif t.numel():
        t.masked_fill_(t != t, math.nan)
