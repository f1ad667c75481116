"""Tensors in files beside the model, which must be inside its folder."""

from __future__ import annotations

import os
from pathlib import Path

from .._library import Error
from ._graph import shown
from ._limits import EXTERNAL_BYTES_MAX


def _number(entries: dict[str, str], key: str, otherwise: int, what: str) -> int:
    text = entries.get(key, str(otherwise))
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Error(f"{what}: {key} of its external data is {shown(text)}; expected an integer")
    return int(text)


def _inside(folder: Path, location: str, what: str) -> Path:
    """The path of an external file. It must be a regular file inside the model's folder after links
    are resolved."""
    parts = location.replace("\\", "/").split("/")
    if not location or "\0" in location or os.path.isabs(location) or ".." in parts:
        raise Error(f"{what}: {shown(location)} lies outside of the model's folder")
    root = os.path.realpath(folder)
    try:
        found = os.path.realpath(os.path.join(root, location), strict=True)
    except OSError as error:
        raise Error(f"{what}: cannot read {shown(location)}: {error.strerror}") from None
    if os.path.commonpath([root, found]) != root:
        raise Error(f"{what}: {shown(location)} lies outside of the model's folder")
    if not os.path.isfile(found):
        raise Error(f"{what}: {shown(location)} is no file")
    return Path(found)


def external(folder: Path, entries: dict[str, str], want: int, what: str) -> bytes:
    """The bytes of a tensor in an external file; `want` is the size that its shape needs."""
    file = _inside(folder, entries.get("location", ""), what)
    size = file.stat().st_size
    if size > EXTERNAL_BYTES_MAX:
        raise Error(f"{what}: {file.name} has {size} bytes; at most {EXTERNAL_BYTES_MAX}")
    offset = _number(entries, "offset", 0, what)
    length = _number(entries, "length", want, what)
    if length != want:
        raise Error(f"{what}: its external data has {length} bytes; its shape needs {want}")
    if offset + length > size:
        told = f"{offset} to {offset + length}"
        raise Error(f"{what}: bytes {told} of {shown(file.name)}, which has {size}")
    with open(file, "rb") as opened:
        opened.seek(offset)
        return opened.read(length)
