"""Tensors in safetensors files: where they are, and their bytes piece by piece."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from verde._files import parse, read

from .. import _arrays, _commit
from .._library import MAX_DIMS, Error, Shape

Tensor = torch.Tensor
HEADER_BYTES_MAX = 100_000_000  # safetensors' own limit
INDEX_BYTES_MAX = 32 << 20
INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
# numpy's types; BF16, which numpy lacks, is read as its bits.
TYPES = {
    "F32": "<f4",
    "BF16": "<u2",
    "F16": "<f2",
    "F64": "<f8",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}
# Types that a program reads as a model's numbers, with their codes there.
FLOATS = {
    name: _arrays.CODE[_arrays._NUMPY[own]]
    for name, own in (("F32", "f32"), ("BF16", "bf16"), ("F16", "f16"))
}


class Stored(NamedTuple):
    """A tensor in a file. offset: of its first byte. kind: the type's name in safetensors."""

    file: Path
    name: str
    kind: str
    shape: tuple[int, ...]
    offset: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * np.dtype(TYPES[self.kind]).itemsize

    @property
    def told(self) -> str:
        return f"{self.kind} {list(self.shape)} in {self.file}"

    def pieces(self) -> Iterator[bytes]:
        """Reads the bytes in pieces of the size that commitments are computed in."""
        left = self.nbytes
        try:
            with open(self.file, "rb", buffering=0) as file:
                file.seek(self.offset)
                while left:
                    piece = _whole_piece(file, min(left, _commit.PIECE))
                    left -= len(piece)
                    yield piece
        except OSError as error:
            raise Error(f"cannot read {self.file}: {error.strerror}") from None

    def commitment(self, shape: Shape) -> bytes:
        """The commitment of a tensor with this shape and these bytes."""
        return _commit.of_pieces(shape, self.pieces())

    def numbers(self) -> Iterator[Tensor]:
        """Gives the elements as a step computes with them: floats as float32, integers and bool
        unchanged."""
        for piece in self.pieces():
            a = np.frombuffer(piece, TYPES[self.kind])
            if self.kind == "BF16":
                a = (a.astype("<u4") << 16).view("<f4")
            elif self.kind == "F16":
                a = a.astype("<f4")
            yield torch.from_numpy(np.array(a))


def _whole_piece(file: Any, size: int) -> bytes:
    piece = file.read(size)
    while len(piece) < size:
        more = file.read(size - len(piece))
        if not more:
            raise Error(f"{file.name} has become shorter")
        piece += more
    return bytes(piece)


class Bound(NamedTuple):
    """stored: the models' tensors that are in files, by their first names. absent: names of those
    that are not in memory."""

    stored: dict[str, Stored]
    absent: frozenset[str]


NOTHING = Bound({}, frozenset())


# ---- files ----


def in_folder(folder: Path) -> dict[str, Stored]:
    """The tensors in a folder by name: those of the files in its index, or of its only file."""
    index, names = folder / INDEX, {SINGLE}
    if index.exists():
        named = parse(read(index, INDEX_BYTES_MAX), str(index)).get("weight_map")
        names = set(_texts(named))
    for name in names:
        if not name or os.path.basename(name) != name:
            raise Error(f"{index}: {name!r} is no name of a file")
    return in_files([folder / name for name in sorted(names)])


def _texts(named: Any) -> list[str]:
    """The values of a JSON object; a value that is not a text becomes ""."""
    if not isinstance(named, dict):
        return [""]
    return [v if isinstance(v, str) else "" for v in named.values()]


def in_files(files: list[Path]) -> dict[str, Stored]:
    """Tensors by name. Raises Error if two files have the same name."""
    found: dict[str, Stored] = {}
    for file in files:
        for name, it in _in_file(file).items():
            if name in found:
                raise Error(f"{name} is in {found[name].file} and in {file}")
            found[name] = it
    return found


def _in_file(file: Path) -> dict[str, Stored]:
    try:
        with open(file, "rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            length = int.from_bytes(opened.read(8), "little")
            if size < 8 or length > min(HEADER_BYTES_MAX, size - 8):
                raise Error(f"{file} is no file of safetensors")
            header = parse(opened.read(length), str(file))
    except OSError as error:
        raise Error(f"cannot read {file}: {error.strerror}") from None
    begin = 8 + length
    return {n: _one(file, n, x, begin, size) for n, x in header.items() if n[:2] != "__"}


def whole(x: Any) -> int:
    """A JSON number that must be whole."""
    if type(x) is not int:
        raise TypeError
    return x


def _one(file: Path, name: str, entry: Any, begin: int, size: int) -> Stored:
    try:
        kind, shape = str(entry["dtype"]), tuple(map(whole, entry["shape"]))
        first, end = map(whole, entry["data_offsets"])
    except (KeyError, TypeError, ValueError):
        raise Error(f"{file}: {name} has no place") from None
    it = Stored(file, name, kind, shape, begin + first)
    fits = kind not in TYPES or end - first == it.nbytes
    if not 0 <= first <= end <= size - begin or not fits or min(shape, default=0) < 0:
        raise Error(f"{file}: {name} is not where the file says")
    if len(shape) > MAX_DIMS:
        raise Error(f"{file}: {name} has {len(shape)} dimensions; at most {MAX_DIMS} are allowed")
    return it
