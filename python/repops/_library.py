"""The C library: its location, structures and functions."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

I32, I64, F32, PTR = ctypes.c_int32, ctypes.c_int64, ctypes.c_float, ctypes.c_void_p
U32, U64 = ctypes.c_uint32, ctypes.c_uint64
MAX_DIMS = 8
MAX_INPUTS = 1024
MAX_ATTRS = 16
MAX_OPERATORS = 1024  # ro_op_describe is called for numbers below this
SONAME = "librepops.so.1"


class Error(Exception):
    """The library refused a call. The text is the library's message."""


class Shape(ctypes.Structure):
    _fields_ = [("dtype", I32), ("ndim", I32), ("dim", I64 * MAX_DIMS)]


class AttrInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_char)]


class OpInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("min_inputs", ctypes.c_int),
        ("max_inputs", ctypes.c_int),
        ("attr_count", ctypes.c_int),
        ("attr", AttrInfo * MAX_ATTRS),
        ("declared_shape", ctypes.c_int),
        ("gradient", ctypes.c_int),
        ("gradient_reads", ctypes.c_int),
        ("no_gradient", ctypes.c_char_p),
    ]


class Call(ctypes.Structure):
    _fields_ = [
        ("op", I32),
        ("input_count", I32),
        ("attr", I64 * MAX_ATTRS),
        ("input", ctypes.POINTER(Shape)),
        ("output", Shape),
    ]


class Sized(ctypes.Structure):
    """A structure whose first member is its size: later versions of the library may have more
    members."""

    def __init__(self, **members: Any) -> None:
        super().__init__(ctypes.sizeof(self), **members)


class Options(Sized):
    _fields_ = [
        ("size", U32),
        ("threads", ctypes.c_int),
        ("backend", ctypes.c_char_p),
        ("alloc", PTR),
        ("free", PTR),
        ("user", PTR),
        ("parallel", PTR),
        ("stream", PTR),
        ("device_alloc", PTR),
        ("device_free", PTR),
    ]


class LinearLayer(Sized):
    _fields_ = [
        ("size", U32),
        ("activation", ctypes.c_int),
        ("rows", I64),
        ("in_", I64),
        ("out", I64),
        ("transposed", ctypes.c_int),
        ("fixed_bits", ctypes.c_int),
    ]


class Gradient(ctypes.Structure):
    _fields_ = [("data", PTR), ("add", I64)]


class AttentionDropout(ctypes.Structure):
    _fields_ = [
        ("seed", U64),
        ("stream", U32),
        ("threshold", U32),
        ("scale", F32),
        ("step", I32),
    ]


class Attention(Sized):
    _fields_ = [
        *[(name, U32) for name in ("size", "reserved")],
        *[(name, I64) for name in ("batch", "heads", "kv_heads", "queries", "keys")],
        ("head_size", I64),
        ("kv_rows", I64),
        ("window", I64),
        ("causal", ctypes.c_int),
        ("scale", F32),
        ("dropout", ctypes.POINTER(AttentionDropout)),
        ("key_bias", PTR),
        *[(name, I64) for name in ("q_row", "k_row", "v_row", "out_row")],
    ]


class AdamwStep(Sized):
    _fields_ = [
        *[(name, U32) for name in ("size", "reserved")],
        ("count", I64),
        *[(name, F32) for name in ("beta1", "beta2", "eps", "decay")],
        *[(name, PTR) for name in ("clip", "c1", "c2", "rate")],
    ]


class AdamwParameter(Sized):
    _fields_ = [
        *[(name, U32) for name in ("size", "reserved")],
        ("step", ctypes.POINTER(AdamwStep)),
        *[(name, PTR) for name in ("w", "m", "v", "gradient", "w_out", "m_out", "v_out")],
    ]


class SgdStep(Sized):
    _fields_ = [
        ("size", U32),
        ("nesterov", ctypes.c_int),
        ("count", I64),
        ("momentum", F32),
        ("decay", F32),
        ("clip", PTR),
        ("rate", PTR),
    ]


# Functions of fused.h and layers.h. All take the context first, then numbers and structures, then
# pointers.
_FUSED: dict[str, list[Any]] = {
    "ro_sum": [I64, I64, PTR, PTR],
    "ro_sum_rows": [I64, I64, PTR, Gradient],
    "ro_linear": [ctypes.POINTER(LinearLayer)] + [PTR] * 5,
    "ro_linear_backward": [ctypes.POINTER(LinearLayer)] + [PTR] * 4 + [Gradient] * 3,
    "ro_attention_forward": [ctypes.POINTER(Attention)] + [PTR] * 6,
    "ro_attention_backward": [ctypes.POINTER(Attention)] + [PTR] * 10,
    "ro_cross_entropy": [I64, I64, PTR, PTR, I64] + [PTR] * 5,
    "ro_layer_norm": [I64, I64, F32] + [PTR] * 6,
    "ro_layer_norm_backward": [I64, I64] + [PTR] * 8,
    "ro_softmax": [I64, I64] + [PTR] * 4,
    "ro_log_softmax": [I64, I64] + [PTR] * 4,
    "ro_softmax_backward": [I64, I64] + [PTR] * 3,
    "ro_log_softmax_backward": [I64, I64] + [PTR] * 3,
    "ro_adamw": [ctypes.POINTER(AdamwStep)] + [PTR] * 7,
    "ro_adamw_all": [I64, ctypes.POINTER(AdamwParameter)],
    "ro_sgd": [ctypes.POINTER(SgdStep)] + [PTR] * 5,
}


def path() -> Path:
    """The library's path: REPOPS_LIBRARY, else the copy in this package."""
    given = os.environ.get("REPOPS_LIBRARY")
    return Path(given) if given else Path(__file__).parent / "lib" / SONAME


def _declare(lib: ctypes.CDLL) -> None:
    lib.ro_version.restype = ctypes.c_char_p
    lib.ro_modes_set.restype = ctypes.c_uint64
    lib.ro_modes_restore.argtypes = [ctypes.c_uint64]
    lib.ro_modes_restore.restype = None
    lib.ro_op_describe.restype = ctypes.POINTER(OpInfo)
    lib.ro_op_describe.argtypes = [ctypes.c_int]
    lib.ro_op_in_place.restype = ctypes.c_uint32
    lib.ro_op_in_place.argtypes = [ctypes.c_int]
    lib.ro_dtype_name.restype = ctypes.c_char_p
    lib.ro_dtype_name.argtypes = [ctypes.c_int]
    lib.ro_dtype_size.restype = ctypes.c_size_t
    lib.ro_dtype_size.argtypes = [ctypes.c_int]
    lib.ro_infer.argtypes = [ctypes.POINTER(Call), ctypes.c_char_p, ctypes.c_size_t]
    lib.ro_ctx_create.argtypes = [ctypes.POINTER(Options), ctypes.POINTER(PTR)]
    lib.ro_ctx_destroy.argtypes = [PTR]
    lib.ro_ctx_destroy.restype = None
    for name in ("ro_ctx_error", "ro_ctx_backend"):
        getattr(lib, name).argtypes = [PTR]
        getattr(lib, name).restype = ctypes.c_char_p
    lib.ro_ctx_threads.argtypes = [PTR]
    for name in ("ro_team_modes_set", "ro_team_modes_restore"):
        getattr(lib, name).argtypes = [PTR]
        getattr(lib, name).restype = None
    lib.ro_run.argtypes = [PTR, ctypes.POINTER(Call), PTR, PTR]
    for name, arguments in _FUSED.items():
        getattr(lib, name).argtypes = [PTR, *arguments]


def _load() -> ctypes.CDLL:
    file = path()
    try:
        lib = ctypes.CDLL(os.fspath(file))
    except OSError as error:
        raise ImportError(
            f"repops needs its C library: {error}. It is looked for in REPOPS_LIBRARY "
            f"({os.environ.get('REPOPS_LIBRARY') or 'not set'}), else beside this package"
        ) from None
    _declare(lib)
    return lib


lib = _load()
VERSION = lib.ro_version().decode()
