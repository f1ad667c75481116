"""Converts Python's numbers for the library or raises Error: ctypes would truncate them."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ._library import Error, lib

INT32 = (-(2**31), 2**31 - 1)
INT64 = (-(2**63), 2**63 - 1)
WORD = (0, 2**32 - 1)
SEED = (-(2**63), 2**64 - 1)  # any 64 bits, with a sign or without
F32_MAX = 2.0**128 - 2.0**104
F32_BEYOND = 2.0**128 - 2.0**103  # the least number that rounds to an infinite float32

_Function = TypeVar("_Function", bound=Callable[..., Any])


def whole(value: Any, what: str, bounds: tuple[int, int] = INT64) -> int:
    """value as an integer within inclusive bounds. Floats are refused, even 2.0."""
    try:
        number = int(value) if isinstance(value, np.bool_) else operator.index(value)
    except TypeError:
        raise Error(f"{what} is {value!r}; expected an integer") from None
    if not bounds[0] <= number <= bounds[1]:
        raise Error(f"{what} is {number}; expected {bounds[0]} to {bounds[1]}")
    return number


def single(value: Any, what: str) -> float:
    """value as a float whose nearest float32 is finite, unless value itself is infinite or NaN."""
    try:
        number = None if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or F32_BEYOND <= abs(number) < math.inf:
        raise Error(f"{what} is {value!r}; expected a number of float32, at most {F32_MAX:.9g}")
    return number


def default_modes(function: _Function) -> _Function:
    """Runs the function with the floating-point modes of SPEC.md section 1.

    Otherwise what Python and numpy compute here (the float32 nearest to a number, 1 / sqrt(D))
    would depend on the modes set in this thread, which are restored afterwards.
    """

    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        before = lib.ro_modes_set()
        try:
            return function(*args, **kwargs)
        finally:
            lib.ro_modes_restore(before)

    return inside  # type: ignore[return-value]
