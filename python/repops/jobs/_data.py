"""Data of a step: rows, windows of tokens and tables, each with a tensor that stands for it."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .. import _operators
from .._library import Error
from .._table import TABLE
from ._graph import F32, I8, I32, INT32, U8, U16, Value
from ._lower import Lower
from ._memory import INTEGERS, code_of

Tensor = torch.Tensor
TABLE_BYTES_MAX = 64 << 20
PIECE_BYTES = 16 << 20  # bytes that are copied at a time
TEMPORARY = Path(tempfile.gettempdir())
# Random streams from here on are for the order of data; those below are for draws.
STREAM = 1 << 31
_HELD = [np.dtype(name) for name in ("float32", "int32", "uint8", "uint16", "int8")]
_TORCH = {np.dtype("u1"): torch.uint8, np.dtype("<i4"): torch.int32, np.dtype("<f4"): torch.float32}


Rows = Callable[[Lower, int, int], Value]


class Source:
    """A tensor whose content differs at each step.

    tensor: what the user's code reads. load: writes a step's content to it. lower: emits the same
    content in a program. bounds: least and greatest integer. batch: the number of its rows that
    belong to one batch; 0: it has no such rows. rows: as lower, for `count` rows from `first` on;
    None: such a part must be sliced from the whole."""

    def __init__(
        self,
        name: str,
        tensor: Tensor,
        load: Callable[[int], Tensor],
        lower: Callable[[Lower], Value],
        bounds: tuple[int, int] | None = None,
        batch: int = 0,
        rows: Rows | None = None,
    ) -> None:
        self.name, self.tensor, self.bounds, self.batch = name, tensor, bounds, batch
        self._load, self._lower, self._rows = load, lower, rows

    def load(self, step: int) -> None:
        """Makes the tensor hold a step's content, like a new tensor without gradient."""
        with torch.no_grad():
            self.tensor.requires_grad_(False).grad = None
            self.tensor.copy_(self._load(step).reshape(self.tensor.shape))

    def _bounded(self, value: Value) -> Value:
        return value if self.bounds is None else value.within(*self.bounds)

    def lower(self, low: Lower) -> Value:
        return self._bounded(self._lower(low))

    def parts(self, low: Lower, count: int) -> list[Callable[[], Value]]:
        """Functions that emit each of `count` equal parts of the rows; []: parts cannot be read
        alone."""
        if self._rows is None or count == 1 or self.batch % count:
            return []
        rows, each = self._rows, self.batch // count

        def part(m: int) -> Callable[[], Value]:
            return lambda: self._bounded(rows(low, m * each, each))

        return [part(m) for m in range(count)]


def room(shape: Sequence[int], dtype: Any, folder: Path) -> np.ndarray:
    """Memory for an array; for a large one an unlinked file."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size <= TABLE_BYTES_MAX:
        return np.empty(shape, dtype)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.truncate(size)
        return np.memmap(file, dtype, "r+", shape=tuple(shape)).view(np.ndarray)


def _pieces(a: np.ndarray) -> list[slice]:
    """Slices of rows that are copied at a time, so that a mapped array is never in memory whole."""
    row = max(1, a[:1].size * 8)
    step = max(1, PIECE_BYTES // row)
    return [slice(i, i + step) for i in range(0, a.shape[0], step)]


def _dense(a: np.ndarray, dtype: Any, folder: Path) -> np.ndarray:
    """A contiguous copy, of another type if asked."""
    out = room(a.shape, dtype, folder)
    for rows in _pieces(a):
        out[rows] = a[rows]
    return out


def is_several(x: Any) -> bool:
    """Is it a list of arrays, which stand for several files?"""
    return isinstance(x, (list, tuple)) and any(isinstance(a, (np.ndarray, Tensor)) for a in x)


def joined(x: Any, what: str, folder: Path) -> np.ndarray:
    """One array with the rows of all arrays in a list."""
    if not is_several(x):
        return array(x, what, folder)
    parts = [array(a, f"{what}, array {i} of them", folder) for i, a in enumerate(x)]
    first = parts[0]
    for i, a in enumerate(parts):
        if a.dtype != first.dtype or a.shape[1:] != first.shape[1:]:
            raise Error(
                f"{what}, array {i} of them is {a.dtype} {list(a.shape)}, and the first "
                f"{first.dtype} {list(first.shape)}; expected the same but for the number of rows"
            )
    out, at = room((sum(len(a) for a in parts), *first.shape[1:]), first.dtype, folder), 0
    for a in parts:
        for rows in _pieces(a):
            out[at : at + len(a[rows])] = a[rows]
            at += len(a[rows])
    return out


def array(x: Any, what: str, folder: Path) -> np.ndarray:
    """An array of a type that a program has: float32, int32, or integers of 8 or 16 bits. folder:
    for a file, if a large array must be copied."""
    if isinstance(x, Tensor) and x.dtype not in (*INTEGERS, torch.float32, torch.float64):
        raise Error(f"{what} is {str(x.dtype).removeprefix('torch.')}, which no program has")
    a = x.detach().numpy() if isinstance(x, Tensor) else np.asanyarray(x)
    if a.ndim == 0 or a.size == 0:
        raise Error(f"{what} has no elements or no dimension; expected at least one row")
    if a.dtype == np.bool_:
        return (a if a.flags.c_contiguous else _dense(a, a.dtype, folder)).view("u1")
    if a.dtype in _HELD:
        return a if a.flags.c_contiguous else _dense(a, a.dtype, folder)
    if a.dtype.kind in "iu":
        low, high = int(a.min()), int(a.max())
        if low < -(2**31) or high >= 2**31:
            raise Error(f"{what} has integers from {low} to {high}, which are beyond 32 bits")
        return _dense(a, "<i4", folder)
    if a.dtype == np.float64:
        raise Error(f"{what} is float64; give it as float32, in which a step computes")
    raise Error(f"{what} is {a.dtype}, which no program has")


def bounds_of(a: np.ndarray) -> tuple[int, int] | None:
    return None if a.dtype.kind == "f" else (int(a.min()), int(a.max()))


def _given(a: np.ndarray, like: Any) -> torch.dtype:
    """The type in which the user's code reads it: the given one, but int64 for tokens."""
    like = like[0] if is_several(like) else like
    if isinstance(like, Tensor):
        return like.dtype
    kind = np.asarray(like).dtype if not isinstance(like, np.ndarray) else like.dtype
    if kind == np.bool_:
        return torch.bool
    return torch.float32 if a.dtype.kind == "f" else torch.int64


def _typed(low: Lower, v: Value) -> Value:
    return low.cast(v, I32) if v.dtype in (U8, U16, I8) else v


# ---- the order of read_batch, SPEC 5 ----


def _read(
    tokens: Sequence[np.ndarray], step: int, shape: tuple[int, int], how: dict[str, int]
) -> Tensor:
    number = np.array([step], "<i4")
    out = _operators.run(TABLE["read_batch"], [*tokens, number], how, shape=shape)
    return torch.from_numpy(np.asarray(out))


def _lower_read(
    low: Lower, name: str, tokens: Sequence[np.ndarray], how: dict[str, Any], shape: tuple[int, int]
) -> Value:
    data = [low.input(f"{name}.{i}" if i else name, a) for i, a in enumerate(tokens)]
    return low.graph.emit("read_batch", *data, low.step, shape=shape, dtype=I32, **how)


FILES_MAX = 1023  # limit of read_batch


def _tokens(x: Any, length: int, folder: Path) -> list[np.ndarray]:
    several = isinstance(x, (list, tuple)) and any(np.ndim(a) for a in x)
    held = [array(a, "tokens", folder) for a in (x if several else [x])]
    held = [_dense(a, "<i4", folder) if a.dtype == np.int8 else a for a in held]  # of read_batch
    if len(held) > FILES_MAX:
        raise Error(f"there are {len(held)} arrays of tokens; at most {FILES_MAX} are allowed")
    for a in held:
        if a.ndim != 1 or a.dtype.kind == "f":
            raise Error(f"tokens must be integers in one dimension, got {a.dtype} {list(a.shape)}")
        if (a.size - 1) // length < 1:
            raise Error(f"there are {a.size} tokens; a window of {length} takes {length + 1}")
        if a.dtype != held[0].dtype:
            raise Error(f"tokens of one array are {held[0].dtype}, and of another {a.dtype}")
    return held


def _sizes(**sizes: int) -> None:
    for name, n in sizes.items():
        if not 1 <= n < 2**31:
            raise Error(f"{name} is {n}; expected 1 to 2^31 - 1")


def windows(
    tokens: Any,
    batch: int,
    length: int,
    seed: int,
    stream: int,
    name: str,
    folder: Path = TEMPORARY,
) -> tuple[Source, Source]:
    """Windows of tokens, and the token after each of theirs, in a new order in each epoch."""
    _sizes(batch=batch, length=length)
    held, made = _tokens(tokens, length, folder), []
    bounds = [bounds_of(a) or INT32 for a in held]
    for shift, what in ((0, name), (1, f"{name}.next")):
        how = {"seed": seed, "stream": stream, "batch": batch, "shift": shift}

        def load(step: int, how: dict[str, int] = how) -> Tensor:
            return _read(held, step, (batch, length), how)

        def part(low: Lower, first: int, count: int, how: dict[str, int] = how) -> Value:
            return _lower_read(low, name, held, {**how, "first": first}, (count, length))

        def lower(low: Lower, part: Rows = part) -> Value:
            return part(low, 0, batch)

        tensor = torch.zeros(batch, length, dtype=torch.int64)
        within = min(b[0] for b in bounds), max(b[1] for b in bounds)
        made.append(Source(what, tensor, load, lower, within, batch, part))
    return made[0], made[1]


def rows(
    arrays: Sequence[Any], batch: int, seed: int, stream: int, names: Sequence[str], folder: Path
) -> list[Source]:
    """The same rows of several arrays, each once in an epoch. A batch at an epoch's end continues
    with the next epoch's rows."""
    _sizes(batch=batch)
    held = _held(arrays, names, folder)
    count = held[0].shape[0]
    # The order of rows is that of windows of one token each; windows need one token more.
    numbers = np.arange(count + 1, dtype="<i4")
    how = {"seed": seed, "stream": stream, "batch": batch, "shift": 0}

    def chosen(step: int) -> np.ndarray:
        return _read([numbers], step, (batch, 1), how).numpy().reshape(-1)

    def order(low: Lower, first: int, rows: int) -> Value:
        x = _lower_read(low, "rows", [numbers], {**how, "first": first}, (rows, 1))
        return low.reshape(x, (rows,)).within(0, count - 1)

    return [_rows_of(a, x, n, batch, chosen, order) for a, x, n in zip(held, arrays, names)]


def _held(arrays: Sequence[Any], names: Sequence[str], folder: Path) -> list[np.ndarray]:
    if not arrays:
        raise Error("rows of no array; expected one at least")
    held = [joined(x, n, folder) for x, n in zip(arrays, names)]
    for a, n in zip(held, names):
        if a.shape[0] != held[0].shape[0]:
            raise Error(f"{n} has {a.shape[0]} rows, and {names[0]} has {held[0].shape[0]}")
    return held


def _rows_of(
    a: np.ndarray,
    given: Any,
    name: str,
    batch: int,
    chosen: Callable[[int], np.ndarray],
    order: Rows,
    divides: bool = True,
) -> Source:
    """A source of a's rows. order: emits the numbers of some of a step's rows. divides: can it emit
    any range, or only all?"""
    tensor = torch.zeros((batch, *a.shape[1:]), dtype=_given(a, given))

    def load(step: int) -> Tensor:
        return torch.from_numpy(a[chosen(step)]).to(tensor.dtype)

    def part(low: Lower, first: int, count: int) -> Value:
        flat = a.reshape(a.shape[0], -1)
        v = low.graph.emit("gather", low.input(name, flat), order(low, first, count), axis=0)
        v = _typed(low, v)
        if v.dtype == I32 and code_of(tensor.dtype) == F32:
            v = low.cast(v, F32)
        return v

    def lower(low: Lower) -> Value:
        return part(low, 0, batch)

    return Source(name, tensor, load, lower, bounds_of(a), batch, part if divides else None)


def ordered(
    arrays: Sequence[Any], order: np.ndarray, names: Sequence[str], allow: bool, folder: Path
) -> list[Source]:
    """Rows by a table of their numbers, [steps, batch]."""
    held = _held(arrays, names, folder)
    table_of(order, "the order", allow)
    if order.dtype.kind not in "iu":
        raise Error(f"order is {order.dtype}; expected numbers of rows")
    low, high, count = int(order.min()), int(order.max()), held[0].shape[0]
    if low < 0 or high >= count:
        raise Error(f"order has numbers from {low} to {high}; there are rows 0 to {count - 1}")
    numbers: np.ndarray = order.astype("<i4")

    def chosen(step: int) -> np.ndarray:
        return np.asarray(numbers[step])

    def all_of(low: Lower, _first: int, _count: int) -> Value:
        return at_step(low, "order", numbers).within(0, held[0].shape[0] - 1)

    return [
        _rows_of(a, x, n, order.shape[1], chosen, all_of, divides=False)
        for a, x, n in zip(held, arrays, names)
    ]


# ---- tables: one row for each step ----


def table_of(a: np.ndarray, what: str, allow: bool) -> None:
    if a.nbytes > TABLE_BYTES_MAX and not allow:
        raise Error(
            f"{what} is a table of {a.nbytes / 1e6:.0f} MB, more than {TABLE_BYTES_MAX >> 20} MiB; "
            "allow_large=True takes it all the same"
        )


def at_step(low: Lower, name: str, a: np.ndarray) -> Value:
    """Row number `step` of a table."""
    flat = a.reshape(a.shape[0], -1)
    v = low.graph.emit("gather", low.input(name, flat), low.step, axis=0)
    return low.reshape(_typed(low, v), (math.prod(a.shape[1:]),))


def table(
    values: Any, steps: int, name: str, allow: bool = False, folder: Path = TEMPORARY
) -> Source:
    """values[step] as a tensor."""
    a = array(values, name, folder)
    if a.shape[0] < steps:
        raise Error(f"{name} has {a.shape[0]} rows, and the job has {steps} steps")
    table_of(a, name, allow)
    a = a[:steps]
    tensor = torch.zeros(a.shape[1:], dtype=_given(a, values))

    def load(step: int) -> Tensor:
        return torch.from_numpy(a[step : step + 1]).to(tensor.dtype)

    def lower(low: Lower) -> Value:
        v = at_step(low, name, a)
        if v.dtype == I32 and code_of(tensor.dtype) == F32:
            v = low.cast(v, F32)
        return v

    return Source(name, tensor, load, lower, bounds_of(a))
