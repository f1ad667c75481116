"""Every operator as a function, from the library's own table."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _arrays, _context
from ._library import PTR, Call, Error, Shape, lib
from ._numbers import INT64, SEED, default_modes, single, whole
from ._table import DEFAULTS, TABLE, Operator, document, signature

REDUCE_BLOCK = 1024
COLUMN_GROUP = 64


def bits(value: float) -> int:
    """The encoding of an attribute of kind f: the bits of the float32 nearest to value."""
    return int(np.float32(value).view(np.uint32))


def _attribute(
    operator: Operator, name: str, kind: str, given: dict[str, Any], inputs: Sequence[np.ndarray]
) -> int:
    if name in given:
        value = given[name]
    elif name == "cols" and inputs:
        value = inputs[0].shape[-1]
    elif name == "n" and not operator.declared:
        raise TypeError(f"{operator.name}() needs n, the number of elements of a row")
    elif name in DEFAULTS:
        value = DEFAULTS[name]
    else:
        raise TypeError(f"{operator.name}() needs the attribute {name}")
    what = f"{operator.name}: {name}"
    if kind == "f":
        return bits(single(value, what))
    return whole(value, what, SEED if name == "seed" else INT64)


def _rows(x: np.ndarray, cols: int) -> int:
    return x.size // cols if cols else 1


def _declared(
    operator: Operator, attributes: dict[str, int], inputs: Sequence[np.ndarray]
) -> Sequence[int]:
    """The output shape of a reduction, which the library's calls must declare."""
    if not inputs or "cols" not in attributes:
        raise TypeError(f"{operator.name}() needs shape=, which does not follow from its inputs")
    x, cols = inputs[0], attributes["cols"]
    if "block" not in attributes:
        return [max(1, -(-_rows(x, cols) // COLUMN_GROUP)), cols]
    blocks = max(1, -(-cols // attributes["block"])) if attributes["block"] > 0 else 1
    return [*x.shape[:-1], blocks] if x.shape[-1] == cols else [_rows(x, cols), blocks]


def infer(call: Call) -> None:
    """Calls ro_infer; raises Error with its reason."""
    why = ctypes.create_string_buffer(512)
    if lib.ro_infer(ctypes.byref(call), why, len(why)):
        raise Error(why.value.decode())


def call(
    operator: Operator, attributes: Sequence[int], shapes: Sequence[Shape], output: Shape | None
) -> Call:
    """A checked call, which keeps the input shapes alive."""
    it = Call(op=operator.number, input_count=len(shapes))
    it.input = ctypes.cast((Shape * max(1, len(shapes)))(*shapes), ctypes.POINTER(Shape))
    it.attr[: len(attributes)] = attributes
    if output is not None:
        it.output = output
    infer(it)
    return it


def _declare(shape: Sequence[int], dtype: int) -> Shape:
    if not 1 <= len(shape) <= _arrays.MAX_DIMS:
        raise Error(f"the shape has {len(shape)} dimensions; 1 to {_arrays.MAX_DIMS} are allowed")
    it = Shape(dtype, len(shape))
    it.dim[: len(shape)] = [whole(n, "a dimension of the shape") for n in shape]
    return it


# Operators whose declared output has integers.
_INTEGERS = ("iota", "permutation", "read_batch", "read_labels")


def _output(
    operator: Operator, attributes: dict[str, int], inputs: Sequence[np.ndarray], shape: Any
) -> Shape | None:
    if not operator.declared:
        if shape is not None:
            raise TypeError(f"{operator.name}() takes no shape: it follows from the inputs")
        return None
    shape = _declared(operator, attributes, inputs) if shape is None else shape
    dtype = _arrays.CODE[np.dtype(np.int32 if operator.name in _INTEGERS else np.float32)]
    if operator.name == "reshape":
        dtype = _arrays.CODE[inputs[0].dtype]
    return _declare([int(shape)] if isinstance(shape, (int, np.integer)) else list(shape), dtype)


@default_modes
def run(
    operator: Operator,
    inputs: Sequence[Any],
    given: dict[str, Any],
    shape: Any = None,
    out: Any = None,
    context: _context.Context | None = None,
) -> Any:
    """Runs an operator on arrays; all functions of this module end here."""
    arrays = [_arrays.array(x, f"input {i} of {operator.name}") for i, x in enumerate(inputs)]
    values = {n: _attribute(operator, n, kind, given, arrays) for n, kind in operator.attributes}
    if "block" in values and "block" not in given:
        values["block"] = max(1, min(REDUCE_BLOCK, values["cols"]))
    shapes = [_arrays.shape_of(x) for x in arrays]
    it = call(operator, list(values.values()), shapes, _output(operator, values, arrays, shape))
    result = _arrays.writable(out, _arrays.numbers(it.output), _arrays.DTYPE[it.output.dtype])
    pointers = (PTR * max(1, len(arrays)))(*[x.ctypes.data for x in arrays])
    context = context or _context.current()
    context.check(lib.ro_run(context.handle, ctypes.byref(it), pointers, result.ctypes.data))
    return _arrays.like(result, inputs[0] if inputs else None) if out is None else out


def function(operator: Operator) -> Callable[..., Any]:
    """Makes the Python function of an operator."""
    how = signature(operator)
    variadic = any(p.kind is p.VAR_POSITIONAL for p in how.parameters.values())
    inputs = [p.name for p in how.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    keys = {(n + "_" if n in inputs else n): n for n in operator.names}

    def operation(*args: Any, **kwargs: Any) -> Any:
        bound = how.bind(*args, **kwargs).arguments
        given = {keys[k]: v for k, v in bound.items() if k in keys and v is not None}
        tensors = bound.get("inputs", ()) if variadic else [bound[n] for n in inputs]
        return run(operator, tensors, given, *[bound.get(k) for k in ("shape", "out", "context")])

    operation.__name__ = operation.__qualname__ = operator.name
    operation.__module__ = "repops"
    operation.__signature__ = how  # type: ignore[attr-defined]
    operation.__doc__ = document(operator)
    return operation


FUNCTIONS = {name: function(operator) for name, operator in TABLE.items()}
