"""NaNs have one pattern of bits, 0x7fc00000 and its like of float64 (SPEC.md, "NaN").

Where an operation has no result, processors make a NaN of either sign: inf - inf is 0xffc00000 on
x86 and 0x7fc00000 on ARM. So NaNs in what PyTorch computed are overwritten. A sum
tells whether there may be one, in less time than it takes to compare each element."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .._context import current

Tensor = torch.Tensor
FLOATS = frozenset({torch.float32, torch.float64})
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
        if result.dtype in FLOATS:
            _write(result)
        elif result.dtype is torch.complex64:
            _write(torch.view_as_real(result.resolve_conj()))
    elif isinstance(result, (list, tuple)):
        for each in result:
            _look(each)


def _write(t: Tensor) -> None:
    if t._is_zerotensor():  # it has no memory, and torch would read some
        return
    total = _sum(t).item()
    if total != total:
        _written(t, math.nan, math.inf, -math.inf)
