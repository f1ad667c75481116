"""What a call is checked for before the library computes it: PyTorch's own errors come first.

The library reads memory by the sizes that it is told. Sizes, dimensions and types are checked by
PyTorch's kernels for tensors without memory ("meta"), once for each signature: the operator, its
tensors' shapes and types, its other arguments. Numbers are not part of a signature, as a rate of
learning changes at each step; `_values` checks these, and what tensors hold, at each call.
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
MAX_SIGNATURES = 4096  # that are kept for each operator; then all are forgotten


def copied(value: Any) -> Any:
    """The same arguments, with tensors of their own memory, which lie as they do."""
    if isinstance(value, Tensor):
        if value.layout is not torch.strided or value.is_nested or value.is_quantized:
            return value.clone()
        if not value.is_cpu:  # the error is the same, however it lies
            return value.clone()
        memory = value.untyped_storage().clone()
        return value.new_empty(0).set_(memory, value.storage_offset(), value.shape, value.stride())
    if isinstance(value, (list, tuple)):
        return type(value)(copied(v) for v in value)
    return value


def _computed(func: Any, args: tuple, kwargs: dict) -> Any:
    """Shape and type of the first result that PyTorch computes, or its error. No random number is
    drawn by it."""
    generator = kwargs.get("generator") or torch.default_generator
    state = generator.get_state()
    try:
        with _disable_current_modes():
            return _first(func(*copied(args), **{k: copied(v) for k, v in kwargs.items()}))
    finally:
        generator.set_state(state)


def refuse(func: Any, args: tuple, kwargs: dict, reason: Exception) -> None:
    """Raises the error that PyTorch has for this call; Leftover, if it has none."""
    _computed(func, args, kwargs)
    raise Leftover(f"the library does not take these arguments: {reason}") from None


def taken(formula: Callable[..., Any], func: Any, args: tuple, kwargs: dict) -> Any:
    """What `formula` gives for the call of `func`; refuses what it does not take."""
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
    """What calls have in common that are checked together."""
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
    """Shape and type of the first result, as PyTorch has it; its error, if it refuses the call.
    None: it does not say. Kernels without memory let integers pass among other numbers, so that
    PyTorch itself is asked there."""
    whole = [t.dtype in WHOLE for t in tensors([args, list(kwargs.values())])]
    if any(whole[:1]) or (any(whole) and not indexed):
        return _computed(func, args, kwargs)
    if not whole:  # what makes tensors; of random ones few may be integers
        return _computed(func, args, kwargs) if kwargs.get("dtype") in WHOLE else None
    given = [_without_memory(a) for a in args]
    named = {k: _without_memory(v) for k, v in kwargs.items() if k not in ("generator", "device")}
    try:
        with _disable_current_modes():
            return _first(func(*given, **named))
    except NotImplementedError:  # it has no kernel of this kind
        return None
    except Exception:  # noqa: BLE001
        return _computed(func, args, kwargs)


# ---- types of elements ----


def _inexact(args: tuple, kwargs: dict) -> Any:
    """Types of elements that are no integers: of tensors, of the result, of numbers."""
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
    """Leftover, unless the operator takes all elements. What integers it takes is its own affair:
    most are indices."""
    for dtype in _inexact(args, kwargs):
        if dtype not in types and dtype not in WHOLE:
            half = ", of autocast perhaps" if dtype in (torch.bfloat16, torch.float16) else ""
            raise Leftover(f"its input is {dtype}{half}; float32 is what the library computes in")


def _keep(seen: set[Any], key: Any) -> None:
    if len(seen) >= MAX_SIGNATURES:
        seen.clear()
    seen.add(key)


def check_once(seen: set[Any], func: Any, args: tuple, kwargs: dict) -> None:
    """PyTorch's error for this signature, if it has one."""
    key = signature(args, kwargs)
    if key not in seen:
        expected(func, args, kwargs, True)
        _keep(seen, key)


def checked(name: str, function: Callable[..., Any], signed: bool = True) -> Callable[..., Any]:
    """The handler of an operator, with all checks. signed: its signatures are; else, unless a table
    has its types, the handler does all of it, and PyTorch is not asked."""
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
