"""Records what a step computes: every torch operator that reaches memory, and every call of the
library.

`Below` is outside the block and sees what the block's handlers call; `Above` is inside and sees
what the user's code calls, so that it can say where. Tensors are places in storages, so views and
in-place writes need no rules. A result that depends on no state, data or draw is a constant: it is
not recorded, but its bytes are kept if a recorded operator reads it.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from .. import _context
from .._library import Attention, Error
from ..torch._call import sum_columns, sum_rows
from ..torch._integers import tensors
from ..torch._nearest import KERNELS as NEAREST
from ..torch._nearest import indexed as nearest
from ..torch._sites import Site as Site
from ..torch._sites import Sites
from ..torch.functional import KERNELS
from . import _shapes
from ._bits import Contents
from ._masks import MASKED
from ._taken import READ, reader, reading

Tensor = torch.Tensor


class Place:
    """Elements of a storage. const: their content if they are constant, else None. negated: their
    sign is flipped, or they are conjugated if complex."""

    __slots__ = ("storage", "offset", "size", "stride", "dtype", "const", "negated")

    def __init__(
        self,
        storage: int,
        offset: int,
        size: Sequence[int],
        stride: Sequence[int],
        dtype: torch.dtype,
    ) -> None:
        self.storage, self.offset, self.dtype = storage, offset, dtype
        self.size, self.stride = tuple(size), tuple(stride)
        self.const: Tensor | None = None
        self.negated = False

    @property
    def numel(self) -> int:
        n = 1
        for d in self.size:
            n *= d
        return n

    @property
    def words(self) -> int:
        """Float32 or other words in memory: a complex number is two."""
        return self.numel * (2 if self.dtype is torch.complex64 else 1)

    def __repr__(self) -> str:
        known = "=" if self.const is not None else ""
        return f"{known}{self.storage}+{self.offset}{list(self.size)}"


class Event(NamedTuple):
    """kind: "torch", "run" (an operator of the library) or "fused".

    outs are new tensors, writes are existing ones. before: for storages among them that were
    constant, their content; None if undefined."""

    kind: str
    name: str
    args: Any
    kwargs: dict[str, Any]
    outs: list[Place]
    writes: list[Place]
    site: Site
    before: dict[int, Tensor | None]


class Read(NamedTuple):
    """A number or tensor by which Python decides, and which depends only on the step's data.

    at: the number of events before it. name: the torch operator that returns it, or the method by
    which Python takes the content of args. held: its value in this step."""

    at: int
    name: str
    args: Any
    kwargs: dict[str, Any]
    held: Any
    site: Site


class Problem(NamedTuple):
    """Why a step cannot become a program."""

    site: Site
    name: str
    why: str


class Unread(Exception):
    """Python reads a number that does not exist, so the step cannot continue."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems[-1].why)
        self.problems = list(problems)


class _Storage:
    """The weak reference keeps `identity` from being reused."""

    __slots__ = ("number", "identity", "start", "size", "elements", "dtype", "weak", "outside")

    def __init__(self, number: int, t: Tensor) -> None:
        s = t.untyped_storage()
        self.number, self.identity = number, s._cdata
        self.start, self.size = s.data_ptr(), s.nbytes()
        self.dtype = torch.float32 if t.dtype is torch.complex64 else t.dtype
        self.elements = self.size // self.dtype.itemsize
        self.weak = StorageWeakRef(s)  # type: ignore[no-untyped-call]
        self.outside = True  # it existed before the step

    def gone(self) -> bool:
        return bool(self.weak.expired())  # type: ignore[no-untyped-call]


def places(value: Any) -> Iterator[Place]:
    """All places in nested lists."""
    if isinstance(value, Place):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from places(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from places(v)


_PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
}


def parts(t: Tensor) -> list[Tensor]:
    """The dense tensors that a sparse tensor consists of; a dense tensor itself."""
    if t.layout is torch.strided:
        return [t]
    if t.layout not in _PARTS:
        raise Error(f"a tensor that is {t.layout}")
    with _disable_current_modes(), torch.no_grad():
        return [getattr(t, name)() for name in _PARTS[t.layout]]


def dense(values: Any) -> Iterator[Tensor]:
    """All dense tensors in nested lists, including the parts of sparse ones."""
    for t in tensors(values):
        yield from parts(t)


class Recorder:
    """Records everything of one step that is not constant, as the context's watcher.

    shapes: results that do not follow from constants and data are not computed: they only have a
    shape and a place in memory."""

    def __init__(self, sites: Sites, contents: Contents, shapes: bool = False) -> None:
        self._contents, self.shapes = contents, shapes
        self.events: list[Event] = []
        self.problems: list[Problem] = []
        self.sites = sites
        self.site = Site("", "", False, "")
        self._storages: list[_Storage] = []
        self._by_identity: dict[int, _Storage] = {}
        self._starts: list[tuple[int, int]] = []  # (address, number) of each storage, sorted
        self.live: set[int] = set()  # storages whose content is not constant
        self._declared: set[int] = set()  # live from the beginning
        self._of_data: set[int] = set()  # live, but determined by the step's data
        self._weights: set[int] = set()  # storages of weights in files
        self.reads: list[Read] = []
        self._empty: set[int] = set()  # storages with undefined content
        # Constants from before the step, and where they are first read.
        self.strangers: dict[int, tuple[Site, Place]] = {}
        self.passed: set[int] = set()  # identities of storages that the user's code uses
        self._written: set[int] = set()  # storages that the step makes or writes to
        # Constants that only Python reads, with their content at the time of the read.
        self.asked: dict[int, tuple[Site, Place, Tensor]] = {}
        self._known: set[int] = set()  # storages that may be constants of the program
        self.micro_batches = 1
        self.paused = False  # reads belong to a call that `whole` reports

    # ---- places ----

    def storage(self, t: Tensor) -> _Storage:
        identity = t.untyped_storage()._cdata
        found = self._by_identity.get(identity)
        if found is None:
            found = _Storage(len(self._storages), t)
            self._storages.append(found)
            self._by_identity[identity] = found
            if found.size:
                bisect.insort(self._starts, (found.start, found.number))
        return found

    def elements(self, storage: int) -> int:
        return self._storages[storage].elements

    def size(self, storage: int) -> int:
        """A storage's bytes."""
        return self._storages[storage].size

    def is_reading(self, p: Place) -> bool:
        """Does the place have the storage's type, rather than reinterpret its bytes?"""
        own = self._storages[p.storage].dtype
        return p.dtype is own or (own, p.dtype) == (torch.bool, torch.uint8)

    def made(self, t: Tensor) -> Place:
        """The place of a new tensor, or of a view of a known one."""
        known = len(self._storages)
        p = self.place(t)
        if p.storage == known:
            self._storages[known].outside = False
        return p

    def place(self, t: Tensor) -> Place:
        p = Place(self.storage(t).number, int(t.storage_offset()), t.shape, t.stride(), t.dtype)
        p.negated = t.is_conj() if t.is_complex() else t.is_neg()
        if t.is_complex() and t.is_neg():
            raise Error("a view that shows complex numbers with the other sign")
        return p

    def at(
        self,
        address: int,
        size: Sequence[int],
        stride: Sequence[int] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Place:
        """The place at an address; contiguous unless strides are given."""
        if stride is None:
            stride, n = [], 1
            for d in reversed(size):
                stride.insert(0, n)
                n *= d
        i = bisect.bisect_right(self._starts, (address, len(self._storages)))
        while i > 0:
            i -= 1
            s = self._storages[self._starts[i][1]]
            if address < s.start + s.size and not s.gone():
                return Place(s.number, (address - s.start) // dtype.itemsize, size, stride, dtype)
            if s.start + (1 << 40) < address:
                break
        raise Error("memory that is no tensor's of the step, nor of the state")

    def content(self, p: Place) -> Tensor:
        """A contiguous copy of a place's content."""
        storage = self._storages[p.storage].weak.cdata
        s = torch.UntypedStorage._new_with_weak_ptr(storage)
        t = torch.empty(0, dtype=p.dtype).set_(s, p.offset, p.size, p.stride)
        if p.negated:
            t = t.conj_physical() if t.is_complex() else t.neg()
        return t.clone(memory_format=torch.contiguous_format)

    # ---- what is recorded ----

    def declare(self, t: Tensor) -> Place:
        """Declares state: from now on its content is not constant."""
        p = self.place(t)
        self.live.add(p.storage)
        self._declared.add(p.storage)
        return p

    def declare_data(self, t: Tensor) -> Place:
        """Declares data, which are known for each step at capture."""
        p = self.declare(t)
        self._of_data.add(p.storage)
        return p

    def declare_weight(self, t: Tensor) -> Place:
        """Declares a weight whose values are in a file: they are unknown here, and no step may
        change them."""
        p = self.place(t)
        self.live.add(p.storage)
        self._weights.add(p.storage)
        return p

    def known(self, t: Tensor) -> None:
        """Allows the tensor's content to be a constant of the program, unless it is declared."""
        self._known.add(self.place(t).storage)

    def undeclared(self, t: Tensor) -> bool:
        """Did the step write to a tensor that was taken for a constant?"""
        storage = self.place(t).storage
        return storage in self._written and storage not in self._declared

    def end(self, t: Tensor) -> Place:
        """The place of a tensor that the step leaves, with its content if that is constant."""
        p = self.place(t)
        self._read(p)
        return p

    def is_live(self, value: Any) -> bool:
        return any(p.storage in self.live for p in places(value) if p.numel)

    def is_of_data(self, value: Any) -> bool:
        """Does all of it follow from constants and the step's data?"""
        found = {p.storage for p in places(value) if p.numel}
        return found & self.live <= self._of_data

    def read(self, name: str, args: Any, kwargs: dict[str, Any], value: Any) -> None:
        """Notes a value by which Python decides. If it follows from data, it is checked for all
        steps later; else it is refused."""
        if not self.is_of_data([args, kwargs]):
            weights = {p.storage for p in places([args, kwargs])} & self._weights
            self.refuse_read(name, reader() or (LYING if weights else READ))
            return
        self.prepare([args, kwargs], [])
        held = [t.clone() for t in tensors([value])] or value
        self.reads.append(Read(len(self.events), name, args, kwargs, held, self.site))

    def prepare(self, given: Any, written: Sequence[Place]) -> dict[int, Tensor | None]:
        """Call it before an operator runs. Saves the content of constant inputs, and returns the
        content of constants that will be overwritten."""
        for p in places(given):
            self._read(p)
        before: dict[int, Tensor | None] = {}
        for p in written:
            if p.storage not in self.live:
                s = self._storages[p.storage]
                if s.outside and p.words != s.elements:
                    self._stranger(p)
                dtype = s.dtype if p.dtype is torch.complex64 else p.dtype
                whole = Place(s.number, 0, (s.elements,), (1,), dtype)
                empty = s.number in self._empty
                before[s.number] = None if empty else self._contents.of(self.content(whole))
        return before

    def _read(self, p: Place) -> None:
        if p.storage not in self.live and p.numel and p.const is None:
            p.const = self._contents.of(self.content(p))
            if self._storages[p.storage].outside:
                self._stranger(p)

    def _stranger(self, p: Place) -> None:
        """Notes a constant from outside the step. Buffers that the library keeps are not in
        `passed`."""
        if p.storage not in self._known and self._storages[p.storage].identity in self.passed:
            self.strangers.setdefault(p.storage, (self.site, p))

    def outside(self, read: Sequence[Place]) -> None:
        """Notes tensors from outside that only lead to constants; it is checked later that they
        never change."""
        for p in read:
            s = self._storages[p.storage]
            if p.storage in self.live | self._known or not p.numel or not s.outside:
                continue
            if s.identity in self.passed and s.identity not in self.asked:
                whole = Place(s.number, 0, (s.elements,), (1,), s.dtype)
                self.asked[s.identity] = (self.site, whole, self._contents.of(self.content(whole)))

    def put(
        self,
        kind: str,
        name: str,
        args: Any,
        kwargs: dict[str, Any],
        outs: list[Place],
        writes: list[Place],
        before: dict[int, Tensor | None],
    ) -> None:
        self.events.append(Event(kind, name, args, kwargs, outs, writes, self.site, before))
        again = kind != "fused" or name in AGAIN
        of_data = again and self.is_of_data([args, kwargs, outs, writes])
        self.written(outs + writes)
        for p in outs + writes:
            self.live.add(p.storage)
            (self._of_data.add if of_data else self._of_data.discard)(p.storage)

    def constant(self, made: Sequence[Place], empty: bool = False) -> None:
        for p in made:
            (self._empty.add if empty else self._empty.discard)(p.storage)

    def written(self, places: Sequence[Place]) -> None:
        self._written.update(p.storage for p in places)

    def mark(self, what: str, tensors: Sequence[Tensor], numbers: dict[str, Any]) -> None:
        """Records an event that computes nothing: what happens to a micro-batch."""
        found = [self.place(t) for t in tensors]
        self.prepare(found, [])
        self.micro_batches = numbers.get("count", self.micro_batches)
        self.events.append(Event("micro", what, found, numbers, [], [], self.site, {}))

    def refuse(self, name: str, why: str) -> None:
        self.problems.append(Problem(self.site, name, why))

    def refuse_read(self, name: str, why: str) -> None:
        """Refuses a read. The step continues with the number, if there is one."""
        self.refuse(name, why)
        if self.shapes:
            raise Unread(self.problems)

    def is_unknown(self, *given: Any) -> bool:
        """Do an operator's inputs only have shapes, no numbers?"""
        return self.shapes and not self.is_of_data(given)

    # ---- the library's calls, of which _call tells its watcher first; True: compute the call ----

    def run(self, name: str, words: Sequence[int], inputs: Sequence[Tensor], out: Tensor) -> bool:
        with _disable_current_modes():
            ins, to = [self.place(t) for t in inputs], self.place(out)
            return self._called("run", name, ins, {"words": tuple(words)}, [to])

    def run_flat(
        self, name: str, words: Sequence[int], inputs: Sequence[Tensor], out: Tensor
    ) -> bool:
        """An elementwise call: all tensors are flat, in memory order."""
        with _disable_current_modes():
            flat = [
                Place(self.storage(t).number, int(t.storage_offset()), (t.numel(),), (1,), t.dtype)
                for t in (*inputs, out)
            ]
            return self._called("run", name, flat[:-1], {"words": tuple(words)}, flat[-1:])

    def fused(self, name: str, arguments: Sequence[Any]) -> bool:
        with _disable_current_modes():
            it = _Arguments(self, [getattr(a, "_obj", a) for a in arguments])
            try:
                return all([self._called("fused", *part) for part in FUSED[name](it)])
            except Error as why:
                self.refuse(name, str(why))
                return not self.shapes

    def whole(self, name: str, inputs: Sequence[Tensor], out: Tensor) -> None:
        """Records a call that is already computed; its parts were hidden."""
        with _disable_current_modes():
            to = self.made(out)
            self.constant([to], empty=True)  # undefined before the call
            self._called("fused", name, [self.place(t) for t in inputs], {}, [to])

    def _called(
        self, kind: str, name: str, ins: list[Any], attributes: dict[str, Any], outs: list[Any]
    ) -> bool:
        to = [p for p in outs if p is not None]
        if not self.is_live(ins) and not self.is_live(to):
            self.constant(to)
            self.written(to)
            return True
        before = self.prepare(ins, to)
        self.put(kind, name, ins, attributes, outs, [], before)
        return not self.is_unknown(to)


# ---- functions of fused.h: the operators that each stands for ----

# The name of a rule, its inputs, attributes and outputs; None for an absent input or output.
Part = tuple[str, list[Any], dict[str, Any], list[Any]]


class _Arguments:
    """A call's arguments: numbers, structures, and places of memory."""

    def __init__(self, recorder: Recorder, given: Sequence[Any]) -> None:
        self.recorder, self.given = recorder, given

    def __getitem__(self, i: int) -> Any:
        return self.given[i]

    def place(self, i: Any, size: Sequence[int], **how: Any) -> Place | None:
        """The place at argument i, an address, or at a structure's member; None if it is NULL."""
        value = self.given[i] if isinstance(i, int) else i[0]
        if isinstance(value, Tensor):
            self.recorder.storage(value)  # the library may be the first to read it
        address = _address(value)
        return self.recorder.at(address, size, **how) if address else None


def _address(value: Any) -> int:
    if isinstance(value, Tensor):
        return value.data_ptr()
    data = getattr(value, "data", value)  # a Gradient
    return int(getattr(data, "value", data) or 0)


def _sum(it: _Arguments) -> Iterator[Part]:
    rows, cols = it[0], it[1]
    yield "sum", [it.place(2, (rows, cols))], {}, [it.place(3, (rows,))]


def _sum_rows(it: _Arguments) -> Iterator[Part]:
    rows, cols = it[0], it[1]
    yield "sum_rows", [it.place(2, (rows, cols))], {}, [it.place(3, (cols,))]


def _linear(it: _Arguments) -> Iterator[Part]:
    n = it[0]
    ins = [it.place(1, (n.rows, n.in_)), it.place(2, _weight(n)), it.place(3, (n.out,))]
    yield "linear", ins, {"transposed": n.transposed}, [it.place(5, (n.rows, n.out))]


def _weight(n: Any) -> tuple[int, int]:
    return (n.out, n.in_) if n.transposed else (n.in_, n.out)


def _linear_backward(it: _Arguments) -> Iterator[Part]:
    n = it[0]
    ins = [it.place(1, (n.rows, n.in_)), it.place(2, _weight(n)), it.place(4, (n.rows, n.out))]
    sizes = {"dx": (n.rows, n.in_), "dw": _weight(n), "db": (n.out,)}
    for i, (name, size) in enumerate(sizes.items()):
        to = it.place(5 + i, size)
        if to is not None:
            yield f"linear_{name}", ins, {"transposed": n.transposed}, [to]


def _heads(
    it: _Arguments, i: int, batch: int, heads: int, rows: int, size: int, row: int
) -> Place | None:
    """A place [B, H, T, D]: contiguous, or with `row` numbers from one row to the next."""
    stride = (rows * row, size, row, 1) if row else None
    return it.place(i, (batch, heads, rows, size), stride=stride)


def _attention(it: _Arguments) -> tuple[Attention, list[Any], dict[str, Any]]:
    a = it[0]
    if a.kv_rows or a.dropout:
        raise Error("attention with a cache or with dropout is no part of a step")
    ins = [
        _heads(it, 1, a.batch, a.heads, a.queries, a.head_size, a.q_row),
        _heads(it, 2, a.batch, a.kv_heads, a.keys, a.head_size, a.k_row),
        _heads(it, 3, a.batch, a.kv_heads, a.keys, a.head_size, a.v_row),
        it.place([a.key_bias], (a.batch, a.keys)),
    ]
    times = a.heads // a.kv_heads
    return a, ins, {"times": times, "causal": a.causal, "window": a.window, "scale": a.scale}


def _attention_forward(it: _Arguments) -> Iterator[Part]:
    a, ins, how = _attention(it)
    rows = (a.batch, a.heads, a.queries, 1)
    out = _heads(it, 4, a.batch, a.heads, a.queries, a.head_size, a.out_row)
    yield "attention", ins, how, [out, it.place(5, rows), it.place(6, rows)]


def _attention_backward(it: _Arguments) -> Iterator[Part]:
    a, ins, how = _attention(it)
    rows = (a.batch, a.heads, a.queries, 1)
    query = (a.batch, a.heads, a.queries, a.head_size)
    key = (a.batch, a.kv_heads, a.keys, a.head_size)
    ins += [_heads(it, 4, *query, a.out_row), it.place(5, rows), it.place(6, rows)]
    ins += [_heads(it, 7, *query, a.out_row)]
    outs = [_heads(it, 8, *query, a.q_row), _heads(it, 9, *key, a.k_row)]
    yield "attention_backward", ins, how, [*outs, _heads(it, 10, *key, a.v_row)]


def _cross_entropy(it: _Arguments) -> Iterator[Part]:
    rows, cols = it[0], it[1]
    ins = [it.place(2, (rows, cols)), it.place(3, (rows,), dtype=torch.int32)]
    how = {"ignore": it[4]}
    dx = it.place(9, (rows, cols))
    if dx is not None:
        yield "cross_entropy_grad", [*ins, it.place(5, (rows,))], how, [dx]
    yield "cross_entropy", ins, how, [it.place(6, (rows,))]


def _layer_norm(it: _Arguments) -> Iterator[Part]:
    rows, cols = it[0], it[1]
    ins = [it.place(3, (rows, cols)), it.place(4, (cols,)), it.place(5, (cols,))]
    outs = [it.place(6, (rows, cols)), it.place(7, (rows,)), it.place(8, (rows,))]
    yield "layer_norm", ins, {"eps": it[2]}, outs


def _layer_norm_backward(it: _Arguments) -> Iterator[Part]:
    rows, cols = it[0], it[1]
    ins = [it.place(2, (rows, cols)), it.place(3, (cols,)), it.place(4, (rows,))]
    ins += [it.place(5, (rows,)), it.place(6, (rows, cols))]
    outs = [it.place(7, (rows, cols)), it.place(8, (cols,)), it.place(9, (cols,))]
    yield "layer_norm_backward", ins, {}, outs


def _softmax(name: str) -> Any:
    def parts(it: _Arguments) -> Iterator[Part]:
        rows, cols = it[0], it[1]
        outs = [it.place(3, (rows, cols)), it.place(4, (rows,)), it.place(5, (rows,))]
        yield name, [it.place(2, (rows, cols))], {}, outs

    return parts


def _softmax_backward(name: str) -> Any:
    def parts(it: _Arguments) -> Iterator[Part]:
        rows, cols = it[0], it[1]
        ins = [it.place(2, (rows, cols)), it.place(3, (rows, cols))]
        yield name, ins, {}, [it.place(4, (rows, cols))]

    return parts


def _adamw_all(it: _Arguments) -> Iterator[Part]:
    for i in range(it[0]):
        p = it[1][i]
        s = p.step.contents
        own = [it.place([a], (s.count,)) for a in (p.w, p.m, p.v, p.gradient)]
        one = [it.place([a], (1,)) for a in (s.clip, s.c1, s.c2, s.rate)]
        how = {"beta1": s.beta1, "beta2": s.beta2, "eps": s.eps, "decay": s.decay}
        outs = [it.place([a], (s.count,)) for a in (p.w_out, p.m_out, p.v_out)]
        yield "adamw", own + one, how, outs


def _sgd(it: _Arguments) -> Iterator[Part]:
    s = it[0]
    size = (s.count,)
    ins = [it.place(i, size) for i in (1, 2, 3)]
    ins += [it.place([s.clip], (1,)), it.place([s.rate], (1,))]
    how = {"momentum": s.momentum, "decay": s.decay, "nesterov": s.nesterov}
    yield "sgd", ins, how, [it.place(4, size), it.place(5, size)]


FUSED = {
    "ro_sum": _sum,
    "ro_sum_rows": _sum_rows,
    "ro_linear": _linear,
    "ro_linear_backward": _linear_backward,
    "ro_attention_forward": _attention_forward,
    "ro_attention_backward": _attention_backward,
    "ro_cross_entropy": _cross_entropy,
    "ro_layer_norm": _layer_norm,
    "ro_layer_norm_backward": _layer_norm_backward,
    "ro_softmax": _softmax("softmax"),
    "ro_log_softmax": _softmax("log_softmax"),
    "ro_softmax_backward": _softmax_backward("softmax_backward"),
    "ro_log_softmax_backward": _softmax_backward("log_softmax_backward"),
    "ro_adamw_all": _adamw_all,
    "ro_sgd": _sgd,
}


# Replays can recompute these from their inputs, where Python reads data.
AGAIN = {"sum": sum_rows, "sum_rows": sum_columns}


# ---- torch's operators ----

# The memory that these return has undefined content.
_EMPTY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
_UNDEFINED = {*_EMPTY, "resize_"}
_BLANK = {*_EMPTY, "zeros", "zeros_like", "new_zeros"}
_READS = {"_local_scalar_dense", "equal", "is_nonzero", "item"}  # they give Python a number
# The output sizes of these operators depend on values. If these follow from data, the output is
# taken for a constant and compared at each step.
_DYNAMIC = {"nonzero", "unique_consecutive", "_unique2", "bincount"}
_DYNAMIC |= {"repeat_interleave"}
_SHAPES = {*_UNDEFINED, "zeros_like", "ones_like", "full_like", "rand_like", "randn_like"}
_SHAPES |= {"new_zeros", "new_ones", "new_full"}  # these read no element
_LIFTED = {"lift_fresh", "lift_fresh_copy", "lift"}
_REPLACES = {"copy_", "zero_", "fill_"}  # the old content does not matter


def _base(func: Any) -> str:
    return str(func._schema.name).split("::")[-1]


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for i, a in enumerate(func._schema.arguments):
        if a.alias_info is not None and a.alias_info.is_write:
            found += dense([args[i] if i < len(args) else kwargs.get(a.name)])
    return found


class Below(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the torch operators that the block's handlers call."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recorder = recorder

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        base = _base(func)
        if func.namespace == "repops":
            with self:  # records the parts, as its kernel is Python
                return KERNELS[func._schema.name](*args, **kwargs)
        if func.namespace != "aten":
            return func(*args, **kwargs)
        if base == "_coalesced_":  # says that a sparse tensor's indices differ
            return func(*args, **kwargs)
        masked = MASKED.get(base)
        if masked and self._is_fixed(args, masked[0](*args)):
            func(*args)  # raises its errors first
            with self:
                return masked[1](self._fixed, *args)
        if base in NEAREST:
            with self:
                return nearest(self._fixed, func, *args)
        if func._can_decompose() and base not in _READS:
            with self:
                return func.decompose(*args, **kwargs)
        return self._record(func, base, args, kwargs)

    def _is_fixed(self, args: Any, masks: list[Tensor]) -> bool:
        """Do the masks of an operator to record follow from constants and data?"""
        r = self.recorder
        return bool(masks) and r.is_live(self._flat(args)) and r.is_of_data(self._flat(masks))

    def _fixed(self, t: Tensor) -> Tensor:
        """A constant with the tensor's content, which must be the same at each step."""
        with _disable_current_modes():
            p, own = self.recorder.place(t), t.clone()
            if self.recorder.is_live([p]):
                self.recorder.read("mask", [p], {}, t)
            self.recorder.constant([self.recorder.made(own)])
            return own

    def _flat(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            sparse = value.layout is not torch.strided
            return self._flat(parts(value)) if sparse else self.recorder.place(value)
        if isinstance(value, (list, tuple)):
            return [self._flat(v) for v in value]
        return value

    def _record(self, func: Any, base: str, args: Any, kwargs: Any) -> Any:
        r = self.recorder
        if base in _LIFTED:
            r.made(args[0])  # torch.tensor makes it unseen by modes
        given, named = self._flat(args), {k: self._flat(v) for k, v in kwargs.items()}
        written = _written(func, args, kwargs)
        writes = [r.place(t) for t in written]
        random = torch.Tag.nondeterministic_seeded in func.tags and base not in _UNDEFINED
        read = [*places(given), *places(named)]
        if base in _REPLACES:
            own = {p.storage for p in writes}
            read = [p for p in read if p.storage not in own]
        live = random or r.is_live(read) or r.is_live(writes)
        if base in _READS:
            value = func(*args, **kwargs)
            if live:
                r.read(str(func), given, named, value)
            r.outside(read)
            return value
        if not live or base in _UNDEFINED:
            if r.shapes and base in _BLANK:
                out = _shapes.zeros(func, args, kwargs)
            else:
                out = func(*args, **kwargs)
                if base in _EMPTY:  # unwritten memory must not differ between steps
                    out.zero_()
            known = {p.storage for p in (*places(given), *places(named))}
            made = [r.made(t) for t in dense([out])]  # views show known storages
            made = [p for p in made if p.storage not in known] + writes
            if made and base not in _SHAPES:  # else a view, or nothing is read
                r.outside(read)
            r.constant([p for p in made if p.storage not in r.live], base in _UNDEFINED)
            r.written(writes)
            return out
        if torch.Tag.inplace_view in func.tags:
            return func(*args, **kwargs)
        if random:
            r.refuse(str(func), RANDOM)
        if base in _DYNAMIC and r.is_of_data([given, named]):
            out = func(*args, **kwargs)
            r.read(str(func), given, named, out)
            r.constant([r.made(t) for t in tensors([out])])
            return out
        return self._live(func, args, kwargs, (given, named), (written, writes))

    def _live(self, func: Any, args: Any, kwargs: Any, read: Any, write: Any) -> Any:
        r = self.recorder
        (given, named), (written, writes) = read, write
        inputs = [args, list(kwargs.values())]
        known = {t.untyped_storage()._cdata for t in dense(inputs)}
        replaced = {p.storage for p in writes} if _base(func) in _REPLACES else set()
        taken = [p for p in (*places(given), *places(named)) if p.storage not in replaced]
        before = r.prepare(taken, writes)
        out = self._computed(func, args, kwargs, [given, named, writes])
        own = {id(t) for t in written}
        fresh = [
            t for t in dense([out]) if id(t) not in own and t.untyped_storage()._cdata not in known
        ]
        if fresh or written:
            outs = [r.made(t) for t in fresh]
            if any(t.layout is not torch.strided for t in tensors([inputs, out])):
                r.refuse(str(func), SPARSE)
            r.put("torch", str(func), given, named, outs, writes, before)
        return out  # neither fresh nor written: a view

    def _computed(self, func: Any, args: Any, kwargs: Any, places: Any) -> Any:
        if not self.recorder.is_unknown(places):
            return func(*args, **kwargs)
        try:
            return _shapes.of_operator(func, args, kwargs)
        except _shapes.Unshaped:
            self.recorder.refuse_read(str(func), UNSHAPED)


SPARSE = "a sparse tensor whose numbers the step computes"
LYING = f"{READ}, as it is of a weight that job.weights names"
UNSHAPED = "its shape depends on numbers of weights that are not in memory"
RANDOM = "it draws from torch's generator, which no program has"


class Above(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Tells the recorder where in the user's code an operator is called."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recorder, self._depth = recorder, 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        r = self.recorder
        if self._depth == 0:
            r.site = r.sites.here(str(func))
            given = dense([args, list((kwargs or {}).values())])
            r.passed.update(t.untyped_storage()._cdata for t in given)
        self._depth += 1
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self._depth -= 1


class _Classes(TorchFunctionMode):
    """PyTorch's one_hot reads the least and the largest class and refuses classes out of range; in
    a program these give a row of zeros."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.nn.functional.one_hot and args:
            count = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
            if count > 0 and args[0].dtype is torch.int64:
                return (args[0].unsqueeze(-1) == torch.arange(count)).to(torch.int64)
        return func(*args, **kwargs)


@contextlib.contextmanager
def recording(recorder: Recorder, block: Any) -> Iterator[None]:
    """Records everything that runs inside. block: another context to enter."""
    with (
        _disable_current_modes(),
        Below(recorder),
        block,
        Above(recorder),
        recorder.sites,
        _Classes(),
        reading(recorder),
    ):
        context = _context.current()
        context.watcher = recorder
        try:
            yield
        finally:
            context.watcher = None
