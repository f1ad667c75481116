"""Packs: the programs of a job of many, which differ only in their own data (PROTOCOL.md 8.7)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence

import numpy as np

from .. import _commit
from .._library import Error
from ._graph import Program, _address, _shape_bytes, _string, shape_of

MAGIC = b"verde pack\0"
VERSION = 1
PACK_ITEMS_MAX = 1 << 16
PACK_BYTES_MAX = 1 << 28
COMMITMENT = 32


def _places(program: Program, own: int) -> Iterator[int]:
    """Offsets of the first data tensors' commitments in the program's bytes."""
    at = len(_string("verde program") + struct.pack("<HHQQQI", 1, 1, 0, 0, 0, 0))
    for d in program.data[:own]:
        at += len(_string(d.name) + _shape_bytes(d.dtype, d.array.shape))
        yield at
        at += COMMITMENT


def packed(program: Program, items: Sequence[Sequence[np.ndarray]]) -> tuple[bytes, str]:
    """A pack, and the collection's hash. program: of item 0. items: for each item the tensors that
    replace the program's first ones. An item's key is its number."""
    if not 1 <= len(items) <= PACK_ITEMS_MAX:
        raise Error(
            f"there are {len(items)} batches; expected 1 to {PACK_ITEMS_MAX}: a larger batch"
        )
    own = len(items[0])
    out = bytearray(MAGIC + struct.pack("<HIH", VERSION, len(items), own))
    first, hashes = bytearray(program.encode()), []
    places = list(_places(program, own))
    for number, tensors in enumerate(items):
        code, changes = bytearray(first), b""
        for at, d, array in zip(places, program.data, tensors):
            commitment = _commit.of_memory(shape_of(d.dtype, d.array.shape), _address(array))
            if code[at : at + COMMITMENT] != commitment:
                code[at : at + COMMITMENT] = commitment
                changes += struct.pack("<II", at, COMMITMENT) + commitment
        if number == 0:  # the others are stored as changes to it
            first, changes = code, bytes(code)
        content = b"".join(array.tobytes() for array in tensors)
        out += struct.pack("<QII", number, 0, len(changes)) + changes
        out += struct.pack("<I", len(content)) + content
        hashes.append(hashlib.sha256(b"verde/program/1\0" + code).hexdigest())
    if len(out) > PACK_BYTES_MAX:
        raise Error(f"the programs take {len(out)} bytes; at most {PACK_BYTES_MAX}: a larger batch")
    root = bytes.fromhex(_commit.root(hashes))
    told = b"verde/collection/1\0" + struct.pack("<Q", len(items)) + root
    return bytes(out), hashlib.sha256(told).hexdigest()
