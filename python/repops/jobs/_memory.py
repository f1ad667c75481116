"""Turns places in memory into values of a graph: views become slices, transposes and expansions,
and an in-place write becomes a new value of its storage."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from .._library import MAX_DIMS, MAX_INPUTS
from ._graph import F32, I32, Bits, Graph, Program, Value
from ._pairs import is_complex, pairs
from ._record import Place, Recorder
from ._slabs import Held, Pieces, Slab, slab_of

Tensor = torch.Tensor
INTEGERS = {
    torch.bool: (0, 1),
    torch.uint8: (0, 255),
    torch.int8: (-128, 127),
    torch.int16: (-(2**15), 2**15 - 1),
    torch.int32: (-(2**31), 2**31 - 1),
    torch.int64: (-(2**63), 2**63 - 1),
}
EXACT = 1 << 24  # float32 has every integer up to here
MANY = f"more than {MAX_DIMS} dimensions that no merging brings together"
BYTES = "a view of memory as another type"
EMPTY = "a tensor without elements, which no program has"


class Missing(Exception):
    """No operator of the library computes this. The text says what is missing."""


def product(sizes: Sequence[int]) -> int:
    n = 1
    for d in sizes:
        n *= d
    return n


def code_of(dtype: torch.dtype) -> int:
    """The element type in programs: integers become i32, bool becomes 0 and 1."""
    if dtype is torch.float32:
        return F32
    if dtype in INTEGERS:
        return I32
    raise Missing(f"it computes in {str(dtype).removeprefix('torch.')}, which no program has")


def fitting(size: Sequence[int]) -> tuple[int, ...]:
    """The dimensions as a program may have them: at least one, at most MAX_DIMS."""
    size = tuple(size) or (1,)
    return size if len(size) <= MAX_DIMS else (product(size),)


def merged(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """(size, stride) pairs in descending order, with dimensions merged that are contiguous in each
    other."""
    runs: list[tuple[int, int]] = []
    for size, stride in pairs:
        if runs and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    return runs


def neighbours(order: Sequence[int]) -> list[list[int]]:
    """Groups neighbouring positions of `order` whose entries are consecutive numbers."""
    groups: list[list[int]] = []
    for i, d in enumerate(order):
        if groups and order[groups[-1][-1]] + 1 == d:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


class Memory:
    """The content of each storage: a value with its elements in memory order."""

    def __init__(self, recorder: Recorder, program: Program) -> None:
        self.recorder, self.program = recorder, program
        self.graph: Graph = program.step
        self.held = Held(self._join)
        # Storages that are read in equal parts: functions that make each part on demand.
        self.parts: dict[int, list[Callable[[], Value]]] = {}
        self._inputs: dict[Any, Value] = {}
        self.tables = 0  # views and writes that needed a table of indices

    @contextlib.contextmanager
    def scoped(self, scope: str) -> Iterator[None]:
        """Names of nodes emitted inside begin with `scope`; they have no place in the user's
        code."""
        graph, held = self.graph, (self.graph.scope, self.graph.place)
        graph.scope, graph.place = scope, None
        try:
            yield
        finally:
            graph.scope, graph.place = held

    def later(self, scope: str, make: Callable[[], Value]) -> Callable[[], Value]:
        def made() -> Value:
            with self.scoped(scope):
                return make()

        return made

    # ---- constants ----

    def fill(self, number: float, dims: Sequence[int], code: int = F32) -> Value:
        """The same number everywhere; integers must be below 2^24."""
        if code == I32:
            if number != int(number) or abs(number) > EXACT:
                return self.constant(torch.full(tuple(dims), int(number), dtype=torch.int64))
            x = self.graph.emit("fill", shape=fitting(dims), value=float(number), called="constant")
            whole = self.graph.emit("cast", x, dtype_=I32, called="constant")
            return whole.within(int(number), int(number))
        return self.graph.emit("fill", shape=fitting(dims), value=float(number), called="constant")

    def constant(self, t: Tensor) -> Value:
        """A tensor that is known at capture."""
        code, dims = code_of(t.dtype), fitting(t.shape)
        a = t.detach().resolve_conj().contiguous().numpy().reshape(dims)
        if code == I32:
            return self._integers(a, dims)
        words = a.reshape(-1).view("<u4")
        if (words == words[0]).all():
            return self.graph.emit("fill", shape=dims, value=Bits(int(words[0])), called="constant")
        return self.program.constant("constant", a)

    def _integers(self, a: np.ndarray, dims: tuple[int, ...]) -> Value:
        low, high = int(a.min()), int(a.max())
        if low < -(2**31) or high >= 2**31:
            raise Missing("a constant integer beyond 32 bits")
        flat = a.reshape(-1)
        if low == high and abs(low) <= EXACT:
            return self.fill(low, dims, I32)
        if a.size > 1 and low == 0 and (flat == np.arange(a.size)).all():
            x = self.graph.emit("iota", shape=(a.size,), dtype=I32)
            return self.reshape(x, dims).within(0, a.size - 1)
        return self.program.constant("constant", a.astype("<i4"))

    def input(self, name: str, array: np.ndarray) -> Value:
        """A data tensor that the user gave. Each array becomes one data tensor."""
        key = (array.ctypes.data, array.dtype.str, array.shape)
        if key not in self._inputs:
            self._inputs[key] = self.program.input(name, array)
        return self._inputs[key]

    def table(self, numbers: np.ndarray) -> Value:
        """Indices as a data tensor."""
        return self.program.constant("places", numbers.astype("<i4"))

    # ---- shapes; bounds of integers are kept ----

    def _kept(self, v: Value, new: Value) -> Value:
        return new.like(v)

    def reshape(self, v: Value, dims: Sequence[int]) -> Value:
        dims = fitting(dims)
        if v.dims == dims:
            return v
        word = self.graph.filled(v)
        if word is not None:
            return self.graph.emit("fill", shape=dims, value=word, called="constant")
        return self._kept(v, self.graph.emit("reshape", v, shape=dims, dtype=v.dtype))

    def slice(self, v: Value, axis: int, start: int, length: int, step: int = 1) -> Value:
        if start == 0 and length == v.dims[axis] and step == 1:
            return v
        new = self.graph.emit("slice", v, axis=axis, start=start, length=length, step=step)
        return self._kept(v, new)

    def transpose(self, v: Value, order: Sequence[int]) -> Value:
        if list(order) == sorted(order):
            return v
        places: dict[str, Any] = {f"d{i}": d for i, d in enumerate(order)}
        return self._kept(v, self.graph.emit("transpose", v, **places))

    def expand(self, v: Value, dims: Sequence[int]) -> Value:
        """v with dimensions of size 1 repeated."""
        word = self.graph.filled(v)
        if word is not None:
            return self.graph.emit("fill", shape=tuple(dims), value=word, called="constant")
        v = self.reshape(v, (1,) * (len(dims) - len(v.dims)) + v.dims)
        for axis, n in enumerate(dims):
            if v.dims[axis] != n:
                v = self._kept(v, self.graph.emit("expand", v, axis=axis, count=n))
        return v

    def gather(self, v: Value, places: np.ndarray) -> Value:
        """Elements of v at flat indices, in the indices' shape."""
        self.tables += 1
        flat = self.reshape(v, (v.numel,))
        new = self.graph.emit("gather", flat, self.table(places.reshape(-1)), axis=0)
        return self.reshape(self._kept(v, new), places.shape)

    def concat(self, axis: int, parts: Sequence[Value]) -> Value:
        if len(parts) == 1:
            return parts[0]
        new = self.graph.emit("concat_axis", *parts, axis=axis)
        if new.dtype == F32:
            return new
        return new.within(min(p.low for p in parts), max(p.high for p in parts))

    def cast(self, v: Value, code: int) -> Value:
        if v.dtype == code:
            return v
        if code == F32 and v.low == v.high and abs(v.low) <= EXACT:
            return self.fill(v.low, v.dims)
        return self._kept(v, self.graph.emit("cast", v, dtype_=code))

    def moved(self, v: Value, size: Sequence[int], order: Sequence[int]) -> Value:
        """v, reshaped to `size`, with its dimensions permuted to `order`."""
        live = [d for d in order if size[d] != 1]
        base = sorted(live)
        groups = neighbours([base.index(d) for d in live])
        if len(groups) > MAX_DIMS:
            raise Missing(MANY)
        if len(groups) > 1:
            ranked = sorted(range(len(groups)), key=lambda k: live[groups[k][0]])
            v = self.reshape(v, [product([size[live[i]] for i in groups[k]]) for k in ranked])
            v = self.transpose(v, [ranked.index(k) for k in range(len(groups))])
        return self.reshape(v, [size[d] for d in order])

    # ---- views ----

    def strided(self, v: Value, offset: int, size: Sequence[int], stride: Sequence[int]) -> Value:
        """The elements of a view, from v with the storage's elements in order."""
        if product(size) == 0:
            raise Missing(EMPTY)
        live = [(d, s) for d, s in zip(size, stride) if d != 1]
        if any(s == 0 for _, s in live):
            return self._repeated(v, offset, size, live)
        order = sorted(range(len(live)), key=lambda i: -live[i][1])
        lying = [live[i] for i in order]
        x = self._region(v, offset, merged(lying))
        return self.reshape(self._ordered(x, lying, order), size)

    def _repeated(
        self, v: Value, offset: int, size: Sequence[int], live: list[tuple[int, int]]
    ) -> Value:
        core = [(d, s) for d, s in live if s]
        x = self.strided(v, offset, [d for d, _ in core], [s for _, s in core])
        groups: list[tuple[int, bool]] = []  # sizes of runs of dimensions, and whether these repeat
        for d, s in live:
            if groups and groups[-1][1] == (s == 0):
                groups[-1] = (groups[-1][0] * d, s == 0)
            else:
                groups.append((d, s == 0))
        if len(groups) > MAX_DIMS:
            raise Missing(MANY)
        x = self.reshape(x, [1 if repeats else d for d, repeats in groups])
        return self.reshape(self.expand(x, [d for d, _ in groups]), size)

    def _ordered(self, v: Value, lying: list[tuple[int, int]], order: list[int]) -> Value:
        """Permutes v from memory order to the view's order: dimension i of v becomes dimension
        order[i] of the view."""
        groups = neighbours(order)
        if len(groups) <= 1:
            return v
        if len(groups) > MAX_DIMS:
            raise Missing(MANY)
        v = self.reshape(v, [product([lying[i][0] for i in g]) for g in groups])
        return self.transpose(v, sorted(range(len(groups)), key=lambda k: order[groups[k][0]]))

    def _region(self, v: Value, offset: int, runs: list[tuple[int, int]]) -> Value:
        """The elements at offset + sums of multiples of strides, which are descending."""
        length = v.numel
        if not runs:
            return self.slice(self.reshape(v, (length,)), 0, offset, 1)
        if len(runs) == 1 and runs[0] == (length, 1):
            return v
        digits = _digits(offset, runs, length)
        if digits is None:
            places = np.full((), offset, "i8")
            for d, s in runs:
                places = places[..., None] + np.arange(d) * s
            return self.gather(v, places)
        radix, starts, counts, whole = digits
        flat = self.reshape(v, (length,))
        if whole != length:
            flat = self._kept_zero(flat, whole - length)
        x = self.reshape(flat, radix)
        for axis, (start, count) in enumerate(zip(starts, counts)):
            x = self.slice(x, axis, start, count)
        return x

    def _kept_zero(self, v: Value, after: int) -> Value:
        new = self.graph.emit("pad", v, axis=0, before=0, after=after, value=0.0)
        return new.within(min(v.low, 0), max(v.high, 0)) if v.dtype != F32 else new

    # ---- reading and writing ----

    def read(self, p: Place) -> Value:
        if p.numel == 0:
            raise Missing(EMPTY)
        code_of(p.dtype)
        if p.const is not None:
            return self.constant(p.const)
        if p.storage not in self.held and p.storage not in self.parts:
            raise Missing("memory that nothing of the step has written")
        if not self.recorder.is_reading(p):
            raise Missing(BYTES)
        torn = self.held.torn.get(p.storage)
        piece = torn.place(p) if torn is not None else None
        if piece is not None:
            value, offset, stride = piece
            return self.signed(p, self.strided(value, offset, p.size, stride))
        v, start = self._part(p)
        return self.signed(p, self.strided(v, p.offset - start, p.size, p.stride))

    def signed(self, p: Place, v: Value) -> Value:
        """Applies the place's sign: converts between what is stored and what the place shows."""
        return self.graph.emit("scale", v, factor=-1.0) if p.negated else v

    def _part(self, p: Place) -> tuple[Value, int]:
        """The value that holds a place, and the storage's offset at which that value begins."""
        parts = self.parts.get(p.storage)
        if p.storage in self.held or parts is None:
            return self.held[p.storage], 0
        each = self.recorder.elements(p.storage) // len(parts)
        last = p.offset + sum((d - 1) * s for d, s in zip(p.size, p.stride))
        if p.offset // each == last // each:
            return parts[p.offset // each](), p.offset // each * each
        self.held[p.storage] = self.concat(0, [part() for part in parts])
        return self.held[p.storage], 0

    def write(self, p: Place, v: Value, before: dict[int, Tensor | None]) -> None:
        """Writes v, whose elements are in the order of the place's dimensions."""
        if p.numel == 0:
            return
        p, v = (pairs(p), v) if is_complex(p) else (p, self.signed(p, v))
        if not self.recorder.is_reading(p):
            raise Missing(BYTES)
        live = [(d, s) for d, s in zip(p.size, p.stride) if d != 1]
        order = sorted(range(len(live)), key=lambda i: -live[i][1])
        v = self._as_it_lies(v, live, order)
        runs = merged([live[i] for i in order])
        whole = self.recorder.elements(p.storage)
        if p.numel == whole:
            self.held[p.storage] = v
            return
        slab = slab_of(p.offset, runs, whole)
        if slab is not None:
            self._put_slab(p, v, slab, before)
            return
        old = self.reshape(self._old(p, before, whole), (whole,))
        self.held[p.storage] = self._put(old, v, p.offset, runs)

    def _put_slab(self, p: Place, v: Value, slab: Slab, before: dict[int, Tensor | None]) -> None:
        rows = (slab.outer,) if slab.outer > 1 else ()
        torn = self.held.torn.get(p.storage)
        if torn is None or torn.period != slab.period:
            old = self._old(p, before, slab.outer * slab.period)
            whole = Pieces(slab.outer, slab.period, self.reshape(old, (*rows, slab.period)))
            torn = self.held.tear(p.storage, whole)
        torn.put(slab, self.reshape(v, (*rows, slab.end - slab.begin)))

    def _join(self, torn: Pieces) -> Value:
        axis = int(torn.outer > 1)
        parts = [self.slice(p.value, axis, p.at, p.end - p.begin) for p in torn.pieces]
        while len(parts) > 1:
            some = range(0, len(parts), MAX_INPUTS)
            parts = [self.concat(axis, parts[i : i + MAX_INPUTS]) for i in some]
        return self.reshape(parts[0], (torn.outer * torn.period,))

    def _old(self, p: Place, before: dict[int, Tensor | None], whole: int) -> Value:
        if p.storage in self.parts and p.storage not in self.held:
            whole_place = Place(p.storage, 0, (whole,), (1,), p.dtype)
            self.held[p.storage] = self.read(whole_place)
        if p.storage in self.held:
            return self.held[p.storage]
        known = before.get(p.storage)
        return self.fill(0, (whole,), code_of(p.dtype)) if known is None else self.constant(known)

    def _as_it_lies(self, v: Value, live: list[tuple[int, int]], order: list[int]) -> Value:
        groups = neighbours(order)
        if len(groups) <= 1:
            return v
        if len(groups) > MAX_DIMS:
            raise Missing(MANY)
        ranked = sorted(range(len(groups)), key=lambda k: order[groups[k][0]])
        v = self.reshape(v, [product([live[order[i]][0] for i in groups[k]]) for k in ranked])
        return self.transpose(v, [ranked.index(k) for k in range(len(groups))])

    def _put(self, old: Value, v: Value, offset: int, runs: list[tuple[int, int]]) -> Value:
        """`old`, which is flat, with v's elements in the region."""
        length = old.numel
        digits = _digits(offset, runs or [(1, 1)], length)
        if digits is None or digits[3] != length:
            return self._put_by_table(old, v, offset, runs)
        radix, starts, counts, _ = digits
        old, v = self.reshape(old, radix), self.reshape(v, counts)
        for axis in reversed(range(len(radix))):
            part = old
            for outer in range(axis):
                part = self.slice(part, outer, starts[outer], counts[outer])
            start, end = starts[axis], starts[axis] + counts[axis]
            parts = [v]
            if start:
                parts.insert(0, self.slice(part, axis, 0, start))
            if end < radix[axis]:
                parts.append(self.slice(part, axis, end, radix[axis] - end))
            v = self.concat(axis, parts)
        return self.reshape(v, (length,))

    def _put_by_table(
        self, old: Value, v: Value, offset: int, runs: list[tuple[int, int]]
    ) -> Value:
        self.tables += 1
        places = np.full((), offset, "i8")
        for d, s in runs:
            places = places[..., None] + np.arange(d) * s
        at = places.reshape(-1)
        hit, source = np.zeros(old.numel, "<i4"), np.zeros(old.numel, "<i4")
        hit[at], source[at] = 1, np.arange(at.size)
        new = self.gather(v, source)
        out = self.graph.emit("where", self.table(hit), new, old)
        if out.dtype == F32:
            return out
        return out.within(min(v.low, old.low), max(v.high, old.high))


Digits = tuple[list[int], list[int], list[int], int]


def _digits(offset: int, runs: Sequence[tuple[int, int]], length: int) -> Digits | None:
    """A region of a row as a box: the dimensions to reshape the row to, the box's start and length
    along each, and the dimensions' product, which may exceed the row. None: it is no box."""
    runs = list(runs)
    if runs[-1][1] > 1:
        runs.append((1, 1))
    if len(runs) > MAX_DIMS or any(a[1] % b[1] for a, b in zip(runs, runs[1:])):
        return None
    radix, starts, rest = [], [], offset
    for i, (_, stride) in enumerate(runs):
        starts.append(rest // stride)
        rest %= stride
        radix.append(runs[i - 1][1] // stride if i else -(-length // stride))
    counts = [d for d, _ in runs]
    if any(start + d > r for start, d, r in zip(starts, counts, radix)):
        return None
    return radix, starts, counts, product(radix)
