"""Conversions between types of numbers.

Floats become floats as IEEE 754 rounds them, and NaNs become the library's: x86 keeps their first
bits, PyTorch's code for single halves sets all bits, and so does CUDA. A float that an integer type
cannot hold becomes the nearest integer that it can, and a NaN 0. Operators that would convert
floats inside are given tensors of one type. What keeps its type keeps its bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from .. import _context
from ._bits import RESOLVED, resolved
from ._call import Leftover
from ._integers import WHOLE, tensors, whole_of
from ._nans import one_nan
from ._overlaps import check_written
from ._registry import COMPLEX, REAL

Tensor = torch.Tensor
_HALVES = {torch.float16, torch.bfloat16}


def _inexact(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def _differ(a: torch.dtype, b: torch.dtype) -> bool:
    """Are these two types of floats?"""
    return a is not b and _inexact(a) and _inexact(b)


def copied(out: Tensor, x: Tensor) -> Tensor:
    """Writes x to a tensor of perhaps another type of floats."""
    out.copy_(x)
    return one_nan(out) if _differ(out.dtype, x.dtype) else out


def _cut(x: Tensor, dtype: torch.dtype) -> Tensor:
    """x with numbers that an integer type cannot hold replaced by the nearest that it can."""
    if not (dtype in WHOLE and x.is_floating_point()) or x.is_meta:
        return x
    context = _context.current()
    with context.host if x.is_cpu and context.host is not None else context:
        return whole_of(x, dtype)


def _expect_known(*kinds: torch.dtype) -> None:
    """On a device, refuses types of 8 bits and less: NaNs of halves may lose their sign on the
    way."""
    if _context.current().device is not None and not REAL | COMPLEX >= {*kinds}:
        raise Leftover(f"it converts {kinds[0]} to {kinds[1]}")


def _to(x: Tensor, dtype: torch.dtype) -> Tensor:
    _expect_known(x.dtype, dtype)
    y: Tensor = one_nan(x.to(dtype))
    return y


def _leaves(x: Tensor, to: Any) -> bool:
    """Does x go from a device to the CPU's memory? The program may go on before it is there."""
    return not x.is_cpu and to is not None and torch.device(to).type == "cpu"


def converted(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    """Copies between types and memories."""
    dtype: Any = args[0].dtype if len(args) > 1 else kwargs.get("dtype")
    if len(args) > 1:
        check_written(args[0], args[1])
    x = resolved(args[1] if len(args) > 1 else args[0])
    dtype = x.dtype if dtype is None else dtype
    if _differ(x.dtype, dtype):
        _expect_known(x.dtype, dtype)
        leaves = _leaves(x, args[0].device if len(args) > 1 else kwargs.get("device"))
        x = _to(x, dtype) if leaves else x
    differ, x = _differ(x.dtype, dtype), _cut(x, dtype)
    y = func(args[0], x, *args[2:], **kwargs) if len(args) > 1 else func(x, **kwargs)
    return one_nan(y) if differ else y


def multiplied(b: Any, alpha: Any, kind: torch.dtype) -> Any:
    """b times alpha, the second term of a sum whose result has this type: a tensor is converted
    first, as in torch, so that integers do not wrap."""
    return (b if b.dtype is kind else b.to(kind)) * alpha if isinstance(b, Tensor) else b * alpha


# ---- operators that move numbers ----

# The results of these operators have the type that torch promotes their tensors to.
_PROMOTED = set("cat stack where copysign threshold_backward block_diag".split())
# The results of these have the first tensor's type.
_FIRST = set("masked_fill fill index_fill slice_scatter select_scatter diagonal_scatter".split())
# Torch refuses to fill integers with numbers that they cannot hold.
_REFUSED = ("masked_fill", "index_fill")
# Torch's CPU kernels move some halves of these by way of float32.
WIDENED = set(
    """
    threshold_backward scatter upsample_nearest1d upsample_nearest2d upsample_nearest3d
    _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d
    """.split()
)


def _promoted(args: tuple) -> torch.dtype:
    if isinstance(args[0], (list, tuple)):
        return functools.reduce(torch.promote_types, [t.dtype for t in args[0]])
    return torch.result_type(*[t for t in tensors(args) if _inexact(t.dtype)])


def _in(kind: torch.dtype, value: Any) -> Any:
    """The same arguments, with all floats of one type, or fit for integers."""
    if isinstance(value, (list, tuple)):
        return type(value)(_in(kind, v) for v in value)
    if not isinstance(value, Tensor):
        return value
    return _to(value, kind) if _differ(value.dtype, kind) else _cut(value, kind)


def _of_promoted(op: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if len({t.dtype for t in tensors(args) if _inexact(t.dtype)}) > 1:
            args = _in(_promoted(args), args)
        return op(*args, **kwargs)

    return call


def _of_first(op: Callable[..., Any], cuts: bool) -> Callable[..., Any]:
    def call(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        return op(x, *(_in(x.dtype, args) if cuts or _inexact(x.dtype) else args), **kwargs)

    return call


def halves_looked_at(y: Tensor) -> Tensor:
    return one_nan(y) if y.dtype in _HALVES else y


def _name(func: Any) -> str:
    name: str = func._schema.name
    return name.removeprefix("aten::")


def converts(func: Any) -> bool:
    """Does torch's kernel convert floats to one type?"""
    return _name(func) in _PROMOTED | _FIRST and not func._overloadname.endswith("Scalar")


def moved(func: Any) -> Callable[..., Any]:
    """An operator that moves numbers: func._op, unless this would change NaNs."""
    name, call = _name(func), func._op
    if name in RESOLVED:
        return lambda x, *args, **kwargs: func._op(resolved(x), *args, **kwargs)
    if converts(func):
        call = _of_promoted(call) if name in _PROMOTED else _of_first(call, name not in _REFUSED)
    if name in WIDENED:
        return lambda *args, **kwargs: halves_looked_at(call(*args, **kwargs))
    return call
