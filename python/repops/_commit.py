"""Commitments to tensors and to states (PROTOCOL.md section 2), by Verde's own C code.

The code is in a library of its own, libverde_commit.so, beside the other one.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from . import _arrays
from ._context import current
from ._library import I32, I64, MAX_DIMS, PTR, Error, Shape, path

FILE = "libverde_commit.so"
SIZE = 32  # bytes of a hash
PIECE = 16 << 20  # bytes that are hashed at a time: a power of two, of whole leaves
U8 = _arrays.CODE[np.dtype("uint8")]

Hash = ctypes.c_uint8 * SIZE


class _Err(ctypes.Structure):
    _fields_ = [("status", I32), ("text", ctypes.c_char * 512)]


class _Tree(ctypes.Structure):
    _fields_ = [("leaf", PTR), ("node", PTR), ("count", ctypes.c_uint64)]


@functools.cache
def _library() -> ctypes.CDLL:
    file = path().with_name(FILE)
    try:
        lib = ctypes.CDLL(str(file))
    except OSError as error:
        raise Error(f"commitments need {FILE} beside {path().name}: {error}") from None
    tree, err, byte = ctypes.POINTER(_Tree), ctypes.POINTER(_Err), ctypes.c_bool
    lib.vd_tensor_hash.argtypes = [PTR, ctypes.POINTER(Shape), PTR, Hash, Hash, err]
    lib.vd_root_of_leaves.argtypes = [PTR, ctypes.c_uint64, Hash, err]
    lib.vd_tree_of_hashes.argtypes = [tree, PTR, ctypes.c_uint64, err]
    lib.vd_tree_root.argtypes = [tree, Hash, err]
    lib.vd_tree_free.argtypes, lib.vd_tree_free.restype = [tree], None
    lib.vd_state_of_root.argtypes, lib.vd_state_of_root.restype = [Hash, I64, Hash, Hash], byte
    return lib


def _check(status: int, err: _Err) -> None:
    if status:
        raise Error(err.text.decode())


def shape(dtype: int | None, dims: Iterable[int], size: int, what: str) -> Shape:
    """The type and dimensions to commit to; [1] if there are none. If dtype is None the library
    lacks the type, and the tensor counts as `size` bytes."""
    dims = tuple(dims) or (1,)
    if not size:
        raise Error(f"{what} has no elements; a commitment is to one at least")
    if dtype is None:
        dims, dtype = (size,), U8
    if len(dims) > MAX_DIMS:
        raise Error(f"{what} has {len(dims)} dimensions; 1 to {MAX_DIMS} are allowed")
    it = Shape(dtype, len(dims))
    it.dim[: len(dims)] = dims
    return it


def of_memory(what: Shape, address: int) -> bytes:
    """The commitment of a contiguous tensor at this address, in the machine's byte order."""
    return _hashed(what, address)[1]


def _hashed(what: Shape, address: Any) -> tuple[bytes, bytes]:
    """The root over a tensor's bytes, and its commitment."""
    byte_root, out, err = Hash(), Hash(), _Err()
    handle = current().handle
    status = _library().vd_tensor_hash(
        handle, ctypes.byref(what), address, byte_root, out, ctypes.byref(err)
    )
    _check(status, err)
    return bytes(byte_root), bytes(out)


def of_pieces(what: Shape, pieces: Iterable[bytes]) -> bytes:
    """The commitment of a tensor whose little-endian bytes come in pieces of PIECE, the last one
    shorter: each piece's root is a node of the tree over all bytes."""
    roots = [_hashed(shape(None, (), len(p), "a piece"), p)[0] for p in pieces]
    root, err = Hash(), _Err()
    status = _library().vd_root_of_leaves(b"".join(roots), len(roots), root, ctypes.byref(err))
    _check(status, err)
    head = struct.pack(f"<II{what.ndim}Q", what.dtype, what.ndim, *what.dim[: what.ndim])
    return hashlib.sha256(b"verde/tensor/1\0" + head + bytes(root)).digest()


def commitment(x: Any) -> str:
    """The commitment of a tensor, as 64 hexadecimal digits: its type, shape and all its bytes.

    x is a numpy array or has DLPack. A tensor without dimensions counts as shape [1]; a tensor
    of a type that the library does not have, such as int64, as its bytes (docs/weights.md).
    """
    if hasattr(x, "__dlpack__") and not isinstance(x, np.generic):
        x = _arrays.view(x)
    a = np.asarray(x, order="C")
    code = _arrays.CODE.get(a.dtype.newbyteorder("="))
    a = np.ascontiguousarray(a, a.dtype.newbyteorder("<" if code is None else "="))
    return of_memory(shape(code, a.shape, a.nbytes, "a tensor"), a.ctypes.data).hex()


def root(commitments: Iterable[str]) -> str:
    """The root over the commitments of a state's tensors, in their order; at least one."""
    items = b"".join(_bytes(c) for c in commitments)
    lib, tree, out, err = _library(), _Tree(), Hash(), _Err()
    at = ctypes.byref(tree)
    _check(lib.vd_tree_of_hashes(at, items, len(items) // SIZE, ctypes.byref(err)), err)
    try:
        _check(lib.vd_tree_root(at, out, ctypes.byref(err)), err)
    finally:
        lib.vd_tree_free(at)
    return bytes(out).hex()


def state(program: str, step: int, tensors: str) -> str:
    """The commitment of a run's state after `step` steps, from the root over its tensors."""
    out = Hash()
    parts = [Hash.from_buffer_copy(_bytes(h)) for h in (program, tensors)]
    if not _library().vd_state_of_root(parts[0], step, parts[1], out):
        raise Error("out of memory in committing to a state")
    return bytes(out).hex()


def _bytes(digits: str) -> bytes:
    if len(digits) != 2 * SIZE or digits != digits.lower():
        raise Error(f"{digits!r} is no hash; expected {2 * SIZE} lower-case hexadecimal digits")
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise Error(f"{digits!r} is no hash; expected hexadecimal digits") from None
