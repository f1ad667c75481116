"""Arrays in and out, without a copy: numpy's, and all that speak DLPack."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._library import MAX_DIMS, Error, Shape, lib
from ._numbers import INT32, single, whole

# numpy has no bfloat16. A record of its 16 bits is a type of its own: nobody takes it for integers.
bfloat16 = np.dtype([("bfloat16", "u2")])
# Types of the library, by the library's names.
_NUMPY = {
    "f32": np.dtype("float32"),
    "i32": np.dtype("int32"),
    "u8": np.dtype("uint8"),
    "u16": np.dtype("uint16"),
    "bf16": bfloat16,
    "f16": np.dtype("float16"),
    "i8": np.dtype("int8"),
}
MAX_DTYPES = 16


def _dtypes() -> dict[Any, int]:
    names = {
        code: lib.ro_dtype_name(code) for code in range(1, MAX_DTYPES) if lib.ro_dtype_size(code)
    }
    return {_NUMPY[n.decode()]: c for c, n in names.items() if n.decode() in _NUMPY}


CODE = _dtypes()
DTYPE = {code: dtype for dtype, code in CODE.items()}


def _name(dtype: Any) -> str:
    return "bfloat16" if dtype == bfloat16 else str(np.dtype(dtype))


def _module(x: Any) -> Any:
    """The package that an array is of."""
    return sys.modules[type(x).__module__.split(".")[0]]


def view(x: Any) -> np.ndarray:
    """numpy's view of an array that has DLPack. torch's bfloat16, or another's, becomes ours."""
    if getattr(x, "requires_grad", False):
        x = x.detach()
    if isinstance(x, np.ma.MaskedArray):
        raise Error("an array has a mask, which the library would ignore; give x.filled(...)")
    half = str(getattr(x, "dtype", "")).endswith("bfloat16")
    if half:
        x = x.view(getattr(_module(x), "int16", "int16"))
    x = x if isinstance(x, np.ndarray) else np.from_dlpack(x)
    return x.view(bfloat16) if half else x


def _listed(x: np.ndarray, what: str) -> np.ndarray:
    """A list's numbers in the type that they are given."""
    if x.dtype.kind == "i" and x.size:
        for number in (x.min(), x.max()):
            whole(number, f"a number of {what}", INT32)
    if x.dtype.kind == "f" and x.size:
        single(np.abs(x, where=np.isfinite(x), out=np.zeros_like(x)).max(), f"a number of {what}")
    return x.astype({"f": np.float32, "i": np.int32}.get(x.dtype.kind, x.dtype))


def array(x: Any, what: str = "an input") -> np.ndarray:
    """x as a dense array: itself where it is one, a view of its memory where it has DLPack.

    Copied are lists, numbers and what is not dense. Lists of Python's floats become float32, of
    its whole numbers int32; every other type must be one that the library has.
    """
    if hasattr(x, "__dlpack__") and not isinstance(x, np.generic):
        x = view(x)
    elif not isinstance(x, (np.ndarray, np.generic)):
        x = _listed(np.asarray(x), what)
    x = np.ascontiguousarray(x)
    if x.dtype not in CODE:
        known = ", ".join(_name(d) for d in CODE)
        raise Error(f"{what} is {x.dtype}; the library has {known}")
    if not 1 <= x.ndim <= MAX_DIMS:
        raise Error(f"{what} has {x.ndim} dimensions; 1 to {MAX_DIMS} are allowed")
    return x


def floats(x: Any, what: str) -> np.ndarray:
    """x as an array of float32, as the fused functions take them."""
    x = array(x, what)
    if x.dtype != np.float32:
        raise Error(f"{what} is {x.dtype}; expected float32")
    return x


def writable(out: Any, shape: Sequence[int], dtype: Any) -> np.ndarray:
    """A view of `out`, which must be dense and have this shape and type; None: a new array."""
    if out is None:
        return np.empty(shape, dtype)
    seen = view(out)
    if seen.shape != tuple(shape) or seen.dtype != dtype or not seen.flags.c_contiguous:
        given, wanted = f"{_name(seen.dtype)} {list(seen.shape)}", f"{_name(dtype)} {list(shape)}"
        raise Error(f"out is {given}; expected dense {wanted}")
    # numpy says of memory that came by DLPack that it is read-only, where its owner did not say.
    if isinstance(out, np.ndarray) and not seen.flags.writeable:
        raise Error("out is read-only")
    return seen


def like(result: np.ndarray, first: Any) -> Any:
    """The result in the caller's kind of array, without a copy: that of its first input."""
    if (
        first is None
        or isinstance(first, (np.ndarray, np.generic))
        or not hasattr(first, "__dlpack__")
    ):
        return result
    if hasattr(first, "__array_namespace__"):
        module = first.__array_namespace__()
    else:
        module = _module(first)
    if not hasattr(module, "from_dlpack"):
        return result
    if result.dtype == bfloat16:
        return module.from_dlpack(result.view("i2")).view(module.bfloat16)
    return module.from_dlpack(result)


def shape_of(x: np.ndarray) -> Shape:
    """A tensor's type, as the library has it."""
    shape = Shape(CODE[x.dtype], x.ndim)
    shape.dim[: x.ndim] = x.shape
    return shape


def numbers(shape: Shape) -> list[int]:
    """The dimensions of the library's type."""
    return list(shape.dim[: shape.ndim])
