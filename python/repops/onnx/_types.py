"""Element types: which torch has, which are widened, and which are refused."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from .._library import Error
from ._limits import ELEMENTS_MAX, RANK_MAX

# By ONNX's number of the type. 16-bit floats are computed as float32.
TYPES = {
    1: torch.float32,
    2: torch.uint8,
    3: torch.int8,
    5: torch.int16,
    6: torch.int32,
    7: torch.int64,
    9: torch.bool,
    10: torch.float32,
    11: torch.float64,
    16: torch.float32,
}
HALVES = {10: "float16", 16: "bfloat16"}
NAMES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    8: "string", 9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64",
    14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8e4m3fn", 18: "float8e4m3fnuz",
    19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4e2m1",
    24: "float8e8m0", 25: "uint2", 26: "int2",
}  # fmt: skip
TAKEN = "float32, float16, bfloat16, int64, int32, int16, int8, uint8 or bool"


def type_of(number: int, what: str) -> torch.dtype:
    if number not in TYPES:
        told = NAMES.get(number, f"of the unknown type {number}")
        raise Error(f"{what} is {told}; expected {TAKEN}")
    return TYPES[number]


def sized(dims: Sequence[int], what: str) -> tuple[int, ...]:
    """The dimensions, checked against the limits of a tensor."""
    if len(dims) > RANK_MAX:
        raise Error(f"{what} has {len(dims)} dimensions; expected at most {RANK_MAX}")
    if any(d < 0 for d in dims):
        raise Error(f"{what} has a negative dimension, {min(dims)}")
    if math.prod(dims) > ELEMENTS_MAX:
        raise Error(f"{what} has {math.prod(dims)} elements; expected at most {ELEMENTS_MAX}")
    return tuple(int(d) for d in dims)


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    return sized(torch.broadcast_shapes(*shapes), "its output")  # type: ignore[no-untyped-call]
