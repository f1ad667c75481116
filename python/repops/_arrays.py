"""Arrays in and out without copies: numpy's, and all that support DLPack."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._library import MAX_DIMS, Error, Shape, lib
from ._numbers import INT32, single, whole

# numpy has no bfloat16. A structured type of 16 bits cannot be mistaken for integers.
bfloat16 = np.dtype([("bfloat16", "u2")])
# numpy's types by the library's names.
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
    """The module of an array's package."""
    return sys.modules[type(x).__module__.split(".")[0]]


def view(x: Any) -> np.ndarray:
    """A numpy view of an array with DLPack. Any bfloat16 becomes repops.bfloat16."""
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
    """Checks a list's numbers and converts them to int32 or float32."""
    if x.dtype.kind == "i" and x.size:
        for number in (x.min(), x.max()):
            whole(number, f"a number of {what}", INT32)
    if x.dtype.kind == "f" and x.size:
        single(np.abs(x, where=np.isfinite(x), out=np.zeros_like(x)).max(), f"a number of {what}")
    return x.astype({"f": np.float32, "i": np.int32}.get(x.dtype.kind, x.dtype))


def array(x: Any, what: str = "an input") -> np.ndarray:
    """x as a contiguous array: itself, or a view of its memory if it has DLPack.

    Lists, numbers and arrays that are not contiguous are copied. Lists of floats become float32,
    lists of ints int32; every other type must be one of the library's.
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
    """A view of `out`, which must be contiguous with this shape and type; a new array if it is
    None."""
    if out is None:
        return np.empty(shape, dtype)
    seen = view(out)
    if seen.shape != tuple(shape) or seen.dtype != dtype or not seen.flags.c_contiguous:
        given, wanted = f"{_name(seen.dtype)} {list(seen.shape)}", f"{_name(dtype)} {list(shape)}"
        raise Error(f"out is {given}; expected dense {wanted}")
    # numpy marks DLPack memory read-only if its owner does not say, so only numpy's own flag
    # counts.
    if isinstance(out, np.ndarray) and not seen.flags.writeable:
        raise Error("out is read-only")
    return seen


def like(result: np.ndarray, first: Any) -> Any:
    """The result as the same kind of array as the first input, without a copy."""
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
    """The library's description of an array: type and dimensions."""
    shape = Shape(CODE[x.dtype], x.ndim)
    shape.dim[: x.ndim] = x.shape
    return shape


def numbers(shape: Shape) -> list[int]:
    """The dimensions in the library's description."""
    return list(shape.dim[: shape.ndim])
