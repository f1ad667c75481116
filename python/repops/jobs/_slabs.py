"""Storages that a step writes piece by piece, as loops over time do. Pieces are joined only if a
read spans them; otherwise the piece's own value is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ._graph import Value
from ._record import Place


class Slab(NamedTuple):
    """Elements begin..end of each row of a storage, which has `outer` rows of `period` elements."""

    outer: int
    period: int
    begin: int
    end: int


def slab_of(offset: int, runs: Sequence[tuple[int, int]], whole: int) -> Slab | None:
    """A region, given by sizes and strides (see merged), as a slab; None: it is no slab."""
    if not runs:
        return Slab(1, whole, offset, offset + 1)
    rows, inner = list(runs), 1
    if rows[-1][1] == 1:
        inner = rows.pop()[0]
    if not rows:
        return Slab(1, whole, offset, offset + inner)
    outer, period = rows[0]
    if len(rows) > 1 or outer * period != whole or offset + inner > period:
        return None
    return Slab(outer, period, offset, offset + inner)


class Piece(NamedTuple):
    """Elements begin..end of each row are those of the value's rows from `at` on."""

    begin: int
    end: int
    value: Value  # [outer, length]; [length] if there is one row
    at: int

    def cut(self, begin: int, end: int) -> Piece:
        return Piece(begin, end, self.value, self.at + begin - self.begin)


class Pieces:
    def __init__(self, outer: int, period: int, value: Value) -> None:
        self.outer, self.period = outer, period
        self.pieces = [Piece(0, period, value, 0)]

    def put(self, slab: Slab, value: Value) -> None:
        new = []
        for p in self.pieces:
            if p.begin < slab.begin:
                new.append(p.cut(p.begin, min(p.end, slab.begin)))
            if p.end > slab.end:
                new.append(p.cut(max(p.begin, slab.end), p.end))
        new.append(Piece(slab.begin, slab.end, value, 0))
        self.pieces = sorted((p for p in new if p.begin < p.end), key=lambda p: p.begin)

    def place(self, p: Place) -> tuple[Value, int, list[int]] | None:
        """If one piece holds the whole place: its value, and the place's offset and strides in
        it."""
        row, first = divmod(p.offset, self.period)
        last = first
        for d, s in zip(p.size, p.stride):
            if d > 1 and s >= self.period and s % self.period:
                return None
            last += (d - 1) * s if s < self.period else 0
        for piece in self.pieces:
            if piece.begin <= first and last < piece.end:
                length = piece.value.dims[-1]
                strides = [s // self.period * length if s >= self.period else s for s in p.stride]
                return piece.value, row * length + first - piece.begin + piece.at, strides
        return None


class Held(dict[int, Value]):
    """The content of storages, by number. join: makes one value of pieces."""

    def __init__(self, join: Callable[[Pieces], Value]) -> None:
        super().__init__()
        self.torn: dict[int, Pieces] = {}
        self._join = join

    def __contains__(self, storage: object) -> bool:
        return super().__contains__(storage) or storage in self.torn

    def __getitem__(self, storage: int) -> Value:
        if storage in self.torn:
            self[storage] = self._join(self.torn[storage])
        return super().__getitem__(storage)

    def get(self, storage: int, default: Any = None) -> Any:
        return self[storage] if storage in self else default

    def __setitem__(self, storage: int, value: Value) -> None:
        self.torn.pop(storage, None)
        super().__setitem__(storage, value)

    def tear(self, storage: int, pieces: Pieces) -> Pieces:
        """Makes these pieces the storage's content."""
        self.pop(storage, None)
        self.torn[storage] = pieces
        return pieces
