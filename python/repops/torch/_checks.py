"""Checks of a call before the library computes it, so that PyTorch's own errors come first.

The library trusts the sizes that it is given. PyTorch's kernels for tensors without memory ("meta")
check sizes, dimensions and types, once for each signature: the operator, its tensors' shapes and
types, its other arguments. A signature leaves out numbers, because a learning rate, say, changes at
each step; `_values` checks these, and values of tensors, at each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ._call import Leftover, Misfit
from ._integers import WHOLE, tensors
from ._registry import FLOAT32, INDEXED, TYPES
from ._values import VALUES

Tensor = torch.Tensor
MAX_SIGNATURES = 4096  # cached for each operator; at the limit its cache is emptied


def copied(value: Any) -> Any:
    """The same arguments, with each tensor replaced by a copy that has its strides."""
    if isinstance(value, Tensor):
        if value.layout is not torch.strided or value.is_nested or value.is_quantized:
            return value.clone()
        if not value.is_cpu:  # the error does not depend on the strides
            return value.clone()
        memory = value.untyped_storage().clone()
        return value.new_empty(0).set_(memory, value.storage_offset(), value.shape, value.stride())
    if isinstance(value, (list, tuple)):
        return type(value)(copied(v) for v in value)
    return value


def _computed(func: Any, args: tuple, kwargs: dict) -> Any:
    """Shape and type of the first result that PyTorch computes, or its error. The generator's state
    is restored, so that no random number is used up."""
    generator = kwargs.get("generator") or torch.default_generator
    state = generator.get_state()
    try:
        with _disable_current_modes():
            return _first(func(*copied(args), **{k: copied(v) for k, v in kwargs.items()}))
    finally:
        generator.set_state(state)


def refuse(func: Any, args: tuple, kwargs: dict, reason: Exception) -> None:
    """Raises PyTorch's own error for this call, or Leftover if it has none."""
    _computed(func, args, kwargs)
    raise Leftover(f"the library does not take these arguments: {reason}") from None


def taken(formula: Callable[..., Any], func: Any, args: tuple, kwargs: dict) -> Any:
    """Returns formula(*args, **kwargs). If that fails, raises PyTorch's error for the call."""
    try:
        return formula(*args, **kwargs)
    except Leftover:
        raise
    except Exception as reason:  # noqa: BLE001
        refuse(func, args, kwargs, reason)


# ---- signatures ----


def _one(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.shape, value.dtype
    if isinstance(value, list):
        return tuple(value)
    kind = type(value)
    return kind if kind in (float, complex, torch.Generator) else value


def signature(args: tuple, kwargs: dict) -> Any:
    """The key of a call: calls with equal keys are checked once."""
    key = [
        (a.shape, a.dtype)
        if isinstance(a, Tensor)
        else tuple(a)
        if type(a) is list
        else float
        if type(a) is float
        else a
        for a in args
    ]
    if kwargs:
        key += [(name, _one(value)) for name, value in kwargs.items()]
    return tuple(key)


def _without_memory(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return value


def _first(result: Any) -> Any:
    while isinstance(result, (list, tuple)) and result:
        result = result[0]
    return (result.shape, result.dtype) if isinstance(result, Tensor) else None


def expected(func: Any, args: tuple, kwargs: dict, indexed: bool) -> Any:
    """Shape and type of PyTorch's first result, or its error if it refuses the call. None: unknown.
    Meta kernels accept integers mixed with other numbers that the real kernels refuse, so PyTorch
    itself is called then."""
    whole = [t.dtype in WHOLE for t in tensors([args, list(kwargs.values())])]
    if any(whole[:1]) or (any(whole) and not indexed):
        return _computed(func, args, kwargs)
    if not whole:  # it creates tensors; few random operators take an integer type
        return _computed(func, args, kwargs) if kwargs.get("dtype") in WHOLE else None
    given = [_without_memory(a) for a in args]
    named = {k: _without_memory(v) for k, v in kwargs.items() if k not in ("generator", "device")}
    try:
        with _disable_current_modes():
            return _first(func(*given, **named))
    except NotImplementedError:  # it has no meta kernel
        return None
    except Exception:  # noqa: BLE001
        return _computed(func, args, kwargs)


# ---- types of elements ----


def _inexact(args: tuple, kwargs: dict) -> Any:
    """The non-integer types of the call's tensors, of its result and of its numbers."""
    given = [*args, *kwargs.values()]
    for t in tensors(given):
        if t.layout is not torch.strided or t.is_nested:
            raise Leftover(f"one of its inputs is {'nested' if t.is_nested else t.layout}")
        yield t.dtype
    for value in given:
        if isinstance(value, torch.dtype):
            yield value
        elif isinstance(value, complex):
            yield torch.complex64


def check_types(types: frozenset[torch.dtype], args: tuple, kwargs: dict) -> None:
    """Raises Leftover unless the operator takes all types. Integers pass: most are indices, and
    each operator checks its own."""
    for dtype in _inexact(args, kwargs):
        if dtype not in types and dtype not in WHOLE:
            half = ", of autocast perhaps" if dtype in (torch.bfloat16, torch.float16) else ""
            raise Leftover(f"its input is {dtype}{half}; float32 is what the library computes in")


def _keep(seen: set[Any], key: Any) -> None:
    if len(seen) >= MAX_SIGNATURES:
        seen.clear()
    seen.add(key)


def check_once(seen: set[Any], func: Any, args: tuple, kwargs: dict) -> None:
    """Raises PyTorch's error for this signature, if it has one."""
    key = signature(args, kwargs)
    if key not in seen:
        expected(func, args, kwargs, True)
        _keep(seen, key)


def checked(name: str, function: Callable[..., Any], signed: bool = True) -> Callable[..., Any]:
    """The handler of an operator, with all checks. signed: check signatures. If not, and no table
    has the operator's types, the function checks all by itself, and PyTorch is not called."""
    base = name.split(".")[0]
    if not signed and base not in TYPES:
        return lambda mode, func, args, kwargs: function(*args, **kwargs)
    values = VALUES.get(name) or VALUES.get(base)
    types = TYPES.get(name) or TYPES.get(base) or FLOAT32
    indexed, seen = base in INDEXED, set[Any]()

    def known(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        try:
            if values is not None:
                values(*args, **kwargs)
            return function(*args, **kwargs)
        except (Leftover, Misfit):
            raise
        except Exception as reason:  # noqa: BLE001
            refuse(func, args, kwargs, reason)

    def first(mode: Any, func: Any, args: tuple, kwargs: dict, key: Any) -> Any:
        check_types(types, args, kwargs)
        wanted = expected(func, args, kwargs, indexed)
        result = known(mode, func, args, kwargs)
        found = _first(result)
        if wanted not in (None, found) and found != _computed(func, args, kwargs):
            raise Leftover(f"its result would be {_text(found)} in place of {_text(wanted)}")
        _keep(seen, key)
        return result

    def call(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        key = signature(args, kwargs)
        if key in seen:
            return known(mode, func, args, kwargs)
        return first(mode, func, args, kwargs, key)

    def unsigned(mode: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        check_types(types, args[:1], {})
        return known(mode, func, args, kwargs)

    return call if signed else unsigned


def _text(kind: Any) -> str:
    return "none" if kind is None else f"{kind[1]} {list(kind[0])}"
