"""Reads files with a size limit; writes files so that they are whole or absent."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from repops import Error

PIECE = 1 << 20  # bytes that are read at once: Python allocates the size that is asked for


def read(path: str | os.PathLike[str], limit: int) -> bytes:
    """The bytes of a file. Raises Error if it exceeds the limit or cannot be read."""
    data = bytearray()
    try:
        with open(path, "rb") as file:
            while len(data) <= limit and (piece := file.read(PIECE)):
                data += piece
    except OSError as error:
        raise Error(f"cannot read {os.fspath(path)}: {error.strerror}") from None
    if len(data) > limit:
        raise Error(f"{os.fspath(path)}: expected at most {limit} bytes")
    return bytes(data)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is there twice")
    return members


def parse(data: bytes, what: str) -> dict[str, Any]:
    """Parses a JSON object; duplicate members are refused."""
    try:
        value = json.loads(data, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Error(f"{what} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Error(f"{what} is no JSON object")
    return value


def version(found: Any, what: str, file: str, last: int = 1) -> None:
    """Raises Error unless `found` is an integer from 1 to `last`."""
    if type(found) is not int:
        raise Error(f"{file} is not {what}: its version is {found!r}")
    if not 1 <= found <= last:
        known = "version 1" if last == 1 else f"versions 1 and {last}"
        raise Error(f"{file}: version {found} of {what}; this verde reads {known}")


def members(value: Any, known: tuple[str, ...], file: str, place: str = "") -> None:
    """Raises Error unless value is an object whose members are all known."""
    if not isinstance(value, dict):
        raise Error(f"{file}: {place or 'this'} must be an object")
    for name in value:
        if name not in known:
            raise Error(f"{file}: unknown member `{name}`{f' in {place}' if place else ''}")


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file, which gets its name once it is whole and on disk, and is removed on an error."""
    path = Path(path)
    new = path.with_name(path.name + ".new")
    try:
        with open(new, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise Error(f"cannot write {path}: {error.strerror}") from None
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
