"""Records what a data loader gives, as a table with a row for each step."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._library import Error
from . import _data
from ._data import TABLE_BYTES_MAX, Source

Tensor = torch.Tensor
Pad = Any  # a number, or a structure of numbers like that of a batch

PARTIAL = (
    "the loader's batch {number} has {own} rows and its first one {first}; drop_last=True leaves "
    "such batches out"
)


class Recording:
    """Records the batches of a loader: one table for each leaf of a batch's structure."""

    def __init__(self, steps: int, pad: Pad, drop_last: bool) -> None:
        self.steps, self.pad, self.drop_last = steps, pad, drop_last
        self.first: Any = None
        self.paths: list[str] = []
        self._tables: list[Any] = []  # for each leaf a table, or with pad a _Spool
        self._folder, self._allow = Path(), False

    def begin(self, batch: Any, allow: bool, folder: Path) -> None:
        """Takes the structure, shapes and types from the first batch."""
        self.first = batch
        leaves = dict(_leaves(batch))
        self.paths = list(leaves)
        if not leaves:
            raise Error(f"the loader gives {type(batch).__name__}; expected tensors")
        self._folder, self._allow = folder, allow
        size = self.steps * sum(_bytes(t) for t in leaves.values())
        self._check(size)
        if size > TABLE_BYTES_MAX:
            print(f"repops.jobs: {self._told(size)}", file=sys.stderr)
        if self.pad is None:
            self._tables = [
                _empty((self.steps, *t.shape), t.dtype, folder) for t in leaves.values()
            ]
        else:
            self._tables = [_Spool(path, folder) for path in leaves]

    def _told(self, size: int) -> str:
        return f"{self.steps} batches of the loader take {size / 1e6:.0f} MB"

    def _check(self, size: int) -> None:
        if size > TABLE_BYTES_MAX and not self._allow:
            raise Error(
                f"{self._told(size)}, more than {TABLE_BYTES_MAX >> 20} MiB; allow_large=True "
                "takes them all the same"
            )

    def fits(self, number: int, batch: Any) -> bool:
        """Has the batch as many rows as the first? False: leave it out."""
        own, first = _rows(batch), _rows(self.first)
        if own >= first:
            return True
        if not self.drop_last:
            raise Error(PARTIAL.format(number=number, own=own, first=first))
        return False

    def put(self, step: int, number: int, batch: Any) -> None:
        leaves = dict(_leaves(batch))
        _check_others(number, self.first, batch)
        if list(leaves) != self.paths:
            raise Error(f"the loader's batch {number} has {list(leaves)}; its first {self.paths}")
        for path, t, table in zip(self.paths, leaves.values(), self._tables):
            if self.pad is not None:
                table.put(t.detach())
                continue
            if t.shape != table.shape[1:] or t.dtype != table.dtype:
                raise Error(
                    f"{path} of the loader's batch {number} is {_told(t)}, and of its first one "
                    f"{_told(table[0])}; pad= makes sizes alike"
                )
            table[step].copy_(t)

    def tables(self) -> Iterator[tuple[str, Tensor]]:
        if self.pad is not None:
            self._check(sum(s.size for s in self._tables))
        for path, table in zip(self.paths, self._tables):
            if self.pad is not None:
                yield path, table.padded(_at(self.pad, path))
            else:
                yield path, table


def _rows(batch: Any) -> int:
    return next((t.shape[0] for _, t in _leaves(batch) if t.dim()), 1)


def _bytes(t: Tensor) -> int:
    return t.numel() * min(4, t.element_size())


def _told(t: Tensor) -> str:
    return f"{list(t.shape)} {str(t.dtype).removeprefix('torch.')}"


def _empty(shape: Sequence[int], dtype: torch.dtype, folder: Path) -> Tensor:
    """Memory for a table; for a large one an unlinked file."""
    size = math.prod(shape) * dtype.itemsize
    return torch.from_numpy(_data.room((size,), np.uint8, folder)).view(dtype).view(*shape)


class _Spool:
    """A list of tensors of several shapes; in a file if it is long."""

    def __init__(self, path: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path, self._folder, self._shapes = path, folder, list[torch.Size]()
        self._dtype = torch.float32
        self._file = tempfile.SpooledTemporaryFile(TABLE_BYTES_MAX, dir=str(folder))

    def put(self, t: Tensor) -> None:
        if self._shapes and (t.dim() != len(self._shapes[0]) or t.dtype != self._dtype):
            raise Error(
                f"{self._path} of the loader has other dimensions or another type in some batches"
            )
        self._dtype = t.dtype
        self._shapes.append(t.shape)
        if t.numel():
            self._file.write(t.contiguous().view(-1).view(torch.uint8).numpy().data)

    @property
    def _most(self) -> list[int]:
        return [max(d) for d in zip(*self._shapes)]

    @property
    def size(self) -> int:
        """Bytes of the table that a program holds, in which each tensor is as large as the
        largest."""
        return len(self._shapes) * math.prod(self._most) * min(4, self._dtype.itemsize)

    def padded(self, value: float) -> Tensor:
        """All tensors as one table, each padded with this value at its ends."""
        table = _empty((len(self._shapes), *self._most), self._dtype, self._folder)
        self._file.seek(0)
        for row, shape in zip(table, self._shapes):
            row.fill_(value)
            held = bytearray(self._file.read(math.prod(shape) * self._dtype.itemsize))
            if held:
                t = torch.frombuffer(held, dtype=self._dtype).view(shape)
                row[tuple(slice(n) for n in shape)].copy_(t)
        self._file.close()
        return table


# ---- structures ----


def _parts(value: Any) -> list[tuple[str, Any]] | None:
    """The items of a container, with the suffix that each adds to its path; None: not a
    container."""
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", item) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [(f"[{i}]", item) for i, item in enumerate(value)]
    return None


def _leaves(value: Any, path: str = "batch") -> Iterator[tuple[str, Tensor]]:
    parts = _parts(value)
    for name, item in parts or ():
        yield from _leaves(item, path + name)
    if parts is None and _is_number(value):
        yield path, _tensor(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray, np.generic, bool, int, float))


def _tensor(value: Any) -> Tensor:
    if isinstance(value, (bool, int, float)):
        return torch.tensor(value)
    return value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))


def _others(value: Any, path: str = "batch") -> Iterator[tuple[str, Any]]:
    parts = _parts(value)
    for name, item in parts or ():
        yield from _others(item, path + name)
    if parts is None and not _is_number(value):
        yield path, value


def _check_others(number: int, first: Any, batch: Any) -> None:
    for (path, one), (_, other) in zip(_others(first), _others(batch)):
        if one is not other and one != other:
            raise Error(
                f"{path} of the loader's batch {number} is {other!r} and of its first one {one!r}; "
                "a program has numbers alone"
            )


def _rebuilt(value: Any, made: dict[str, Tensor], path: str = "batch") -> Any:
    """A copy of the structure whose leaves are taken from `made`, by path."""
    if path in made:
        return made[path]
    parts = _parts(value)
    if parts is None:
        return value
    items = [_rebuilt(item, made, path + name) for name, item in parts]
    if isinstance(value, Mapping):
        together = dict(zip(value, items))
        return together if type(value) is dict else type(value)(together)  # type: ignore[call-arg]
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def _at(pad: Pad, path: str) -> float:
    """The padding value of a leaf: one number for all, or from a structure like a batch's."""
    found = {p: t for p, t in _leaves(pad)}
    value = found.get("batch", found.get(path))
    if value is None:
        raise Error(f"pad says nothing of {path}; expected a number, or one for each tensor")
    return value.item()


# ---- all batches ----


def _batches(loader: Iterable[Any]) -> Iterator[Any]:
    """The loader's batches, again and again if it can be restarted."""
    while True:
        number = 0
        for number, batch in enumerate(loader, 1):  # noqa: B007
            yield batch
        if not number or isinstance(loader, Iterator):
            return


def record(
    loader: Iterable[Any],
    steps: int,
    name_of: Callable[[str], str],
    folder: Path,
    allow: bool,
    pad: Pad,
    drop_last: bool,
) -> tuple[list[Source], Any]:
    """Records a loader. Returns the sources and their tensors in a batch's structure."""
    it, step, number, left_out = Recording(steps, pad, drop_last), 0, -1, 0
    for number, batch in enumerate(_batches(loader)):
        if it.first is None:
            it.begin(batch, allow, folder)
        if it.fits(number, batch):
            it.put(step, number, batch)
            step, left_out = step + 1, 0
        else:
            left_out += 1
        if step == steps or left_out > step + 1:
            break
    if step < steps:
        raise Error(f"the loader gives {step} batches, and the job has {steps} steps")
    sources = [_data.table(t, steps, name_of(path), True, folder) for path, t in it.tables()]
    made = {path: s.tensor for path, s in zip(it.paths, sources)}
    return sources, _rebuilt(it.first, made)
