"""Conversions between types of numbers.

Floats become floats as IEEE 754 rounds them, and NaNs become the library's: x86 keeps their first
bits, PyTorch's code for single halves sets all bits, and so does CUDA. Operators that would convert
floats inside are given tensors of one type. What keeps its type keeps its bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from .. import _context
from ._bits import resolved
from ._integers import WHOLE, tensors, whole_of
from ._nans import one_nan

Tensor = torch.Tensor
# The results of these operators have the type that torch promotes their tensors to.
_PROMOTED = set("cat stack where copysign threshold_backward block_diag".split())
# The results of these have the first tensor's type.
_FIRST = set("masked_fill fill index_fill slice_scatter select_scatter diagonal_scatter".split())


def _inexact(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def _differ(a: torch.dtype, b: torch.dtype) -> bool:
    """Are these two types of floats?"""
    return a is not b and _inexact(a) and _inexact(b)


def copied(out: Tensor, x: Tensor) -> Tensor:
    """Writes x to a tensor of perhaps another type of floats."""
    out.copy_(x)
    return one_nan(out) if _differ(out.dtype, x.dtype) else out


def converted(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    """Copies between types and memories. Numbers outside an integer type's range become the nearest
    integers."""
    dtype: Any = args[0].dtype if len(args) > 1 else kwargs.get("dtype")
    x = resolved(args[1] if len(args) > 1 else args[0])
    if dtype in WHOLE and dtype is not torch.bool and x.is_floating_point() and not x.is_meta:
        context = _context.current()
        with context.host if x.is_cpu and context.host is not None else context:
            x = whole_of(x, dtype)
    y = func(args[0], x, *args[2:], **kwargs) if len(args) > 1 else func(x, **kwargs)
    return one_nan(y) if dtype is not None and _differ(x.dtype, dtype) else y


# ---- operators that convert their tensors to one type ----


def _promoted(args: tuple) -> torch.dtype:
    if isinstance(args[0], (list, tuple)):
        return functools.reduce(torch.promote_types, [t.dtype for t in args[0]])
    return torch.result_type(*[t for t in tensors(args) if _inexact(t.dtype)])


def _of_first(args: tuple) -> torch.dtype:
    kind: torch.dtype = args[0].dtype
    return kind


def _in(kind: torch.dtype, value: Any) -> Any:
    """The same arguments, with all floats of one type."""
    if isinstance(value, (list, tuple)):
        return type(value)(_in(kind, v) for v in value)
    if isinstance(value, Tensor) and _differ(value.dtype, kind):
        return one_nan(value.to(kind))
    return value


def converts(func: Any) -> bool:
    """Does torch's kernel convert floats to one type?"""
    base = func._schema.name.removeprefix("aten::")
    return base in _PROMOTED | _FIRST and not func._overloadname.endswith("Scalar")


def of_one_type(func: Any) -> Callable[..., Any]:
    """Such an operator, which is called with floats of one type."""
    op = func._op
    kind_of = _of_first if func._schema.name.removeprefix("aten::") in _FIRST else _promoted

    def call(*args: Any, **kwargs: Any) -> Any:
        if len({t.dtype for t in tensors(args) if _inexact(t.dtype)}) > 1:
            args = _in(kind_of(args), args)
        return op(*args, **kwargs)

    return call
