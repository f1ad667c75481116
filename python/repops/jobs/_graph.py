"""Builds programs: values, nodes, and their canonical bytes (PROTOCOL.md section 1)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .. import _arrays, _commit, _operators
from .._library import MAX_DIMS, Call, Error, Shape
from .._table import DEFAULTS, TABLE, Operator
from ._stored import FLOATS, Stored

F32, I32, U8, U16, BF16, F16, I8 = (
    _arrays.CODE[_arrays._NUMPY[name]] for name in ("f32", "i32", "u8", "u16", "bf16", "f16", "i8")
)
INT32 = (-(2**31), 2**31 - 1)
# Least and greatest element of each type; a program states only narrower ranges (1.6).
INTEGERS = {I32: INT32, U8: (0, 255), U16: (0, 65535), I8: (-128, 127)}
NAME_MAX = 255
NO_LOSS = 0xFFFFFFFF
RANGES = 1  # the part of a program that states ranges of data


class Value(NamedTuple):
    """A source of a graph, or a node's output.

    low, high: bounds of every element, for integers. origin: (leaf, least, most): the value is this
    leaf of the state plus a number in that range."""

    kind: str  # "leaf", "data", "step" or "node"
    number: int
    dtype: int
    dims: tuple[int, ...]
    low: int = INT32[0]
    high: int = INT32[1]
    origin: tuple[int, int, int] | None = None

    @property
    def numel(self) -> int:
        return int(np.prod(self.dims, dtype=object))

    def within(self, low: int, high: int) -> Value:
        """The same value with narrower bounds."""
        return self._replace(low=max(self.low, low), high=min(self.high, high))

    def like(self, v: Value) -> Value:
        """The same value with v's bounds, as its elements are v's."""
        if self.dtype in (F32, BF16, F16) or v.dtype in (F32, BF16, F16):
            return self
        return self.within(v.low, v.high)._replace(origin=v.origin)


class Bits(int):
    """The bits of an attribute of kind f. Other numbers given for one are rounded to float32."""


class Part(NamedTuple):
    """The micro-batch that a node belongs to: the loop, its number of micro-batches, this one's
    number. sum: (i, name of the parameter): the node is addition i of those that sum the
    parameter's gradients after this micro-batch."""

    loop: int
    parts: int
    number: int
    sum: tuple[int, str] | None = None


class Node(NamedTuple):
    name: str
    operator: Operator
    attributes: tuple[int, ...]
    inputs: tuple[Value, ...]
    dtype: int
    dims: tuple[int, ...]
    place: Any  # where in the user's code: for people, not part of the program
    part: Part | None = None


# How a node of a repeat's body reads an input: a value from before the repeat; a node of the same
# iteration, in this or an earlier repeat's body; a value carried from the iteration before; a value
# from before the repeat whose number grows with each iteration (PROTOCOL.md 1.5).
OUTSIDE, LISTED, CARRIED, SHIFTED = 0, 1, 2, 3
ITERATION, LAST = "\x01", "\x02"  # stand for iteration numbers in names
REPEATS = 0xFFFFFFFF


@dataclass
class Repeat:
    """A loop: `count` iterations of `size` nodes, from node `start` on, with sums in between.

    For each node of the body, slopes has the attribute that grows and by how much, and inputs what
    it reads: a value; (repeat or -1 for this one, node of its body); (number of the carried value,
    0); or (value of the first iteration, slope). carried: (value that the first iteration reads,
    node of the body whose output the next one reads). sums: (node of the body that is summed,
    name). names: the nodes' names with ITERATION; []: names of the first iteration, prefixed by
    their number."""

    count: int
    start: int
    size: int
    slopes: list[tuple[int, int] | None] = field(default_factory=list)
    inputs: list[list[tuple[int, Any]]] = field(default_factory=list)
    carried: list[tuple[Value, int]] = field(default_factory=list)
    sums: list[tuple[int, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    @property
    def meant(self) -> int:
        return self.count * self.size + (self.count - 1) * len(self.sums)

    def carry(self, before: Value, node: int) -> int:
        for i, (v, k) in enumerate(self.carried):
            if v[:2] == before[:2] and k == node:
                return i
        self.carried.append((before, node))
        return len(self.carried) - 1


class Leaf(NamedTuple):
    name: str
    dtype: int
    dims: tuple[int, ...]


class Data(NamedTuple):
    """A data tensor: a numpy array, perhaps mapped from a file. given: the job holds the content;
    if false, it comes from a run's state. stored: the content is in that file, and the array only
    has the shape."""

    name: str
    array: np.ndarray
    dtype: int
    low: int | None = None  # the range of the content; None if it has no integers
    high: int | None = None
    given: bool = True
    stored: Stored | None = None

    def commitment(self, shape: Shape) -> bytes:
        if self.stored is not None:
            return self.stored.commitment(shape)
        return _commit.of_memory(shape, _address(self.array)) if self.given else bytes(32)


def shape_of(dtype: int, dims: Sequence[int]) -> Shape:
    if not 1 <= len(dims) <= MAX_DIMS:
        raise Error(f"a tensor has {len(dims)} dimensions; 1 to {MAX_DIMS} are allowed")
    it = Shape(dtype, len(dims))
    it.dim[: len(dims)] = dims
    return it


def _word(value: Any, kind: str) -> int:
    if kind == "f":
        return int(value) if isinstance(value, Bits) else _operators.bits(float(value))
    number = int(value)
    return number - (1 << 64) if number >= 1 << 63 else number  # a seed of 2^63 or more


class Graph:
    """Nodes in order. A node equal to an earlier one is not emitted again."""

    def __init__(self, program: Program, has_leaves: bool) -> None:
        self.program, self.has_leaves = program, has_leaves
        self.nodes: list[Node] = []
        self.output: list[Value] = []
        self.loss: Value | None = None
        self.scope = ""
        self.place: Any = None
        self.part: Part | None = None  # given to nodes that are emitted
        self.repeats: list[Repeat] = []
        self._known: dict[Any, Value] = {}

    def emit(
        self,
        name: str,
        *inputs: Value,
        shape: Sequence[int] | None = None,
        dtype: int = F32,
        called: str = "",
        again: bool = False,
        **attributes: Any,
    ) -> Value:
        """Emits an operator and returns its output. Attributes are given by name, `dtype_` for
        "dtype". shape, dtype: of a declared output. called: the node's name instead of the
        operator's. again: emit a new node even if an equal one exists."""
        operator = TABLE[name]
        words = []
        for attribute, kind in operator.attributes:
            key = "dtype_" if attribute == "dtype" else attribute
            value = attributes.pop(key, DEFAULTS.get(attribute))
            if value is None:
                raise TypeError(f"{name} needs the attribute {attribute}")
            words.append(_word(value, kind))
        if attributes:
            raise TypeError(f"{name} has no attribute {next(iter(attributes))}")
        return self.emit_words(operator, inputs, words, shape, dtype, called, again)

    def emit_words(
        self,
        operator: Operator,
        inputs: Sequence[Value],
        words: Sequence[int],
        shape: Sequence[int] | None = None,
        dtype: int = F32,
        called: str = "",
        again: bool = False,
    ) -> Value:
        """Like `emit`, but attributes are encoded as in a call."""
        declared = tuple(shape) if operator.declared and shape is not None else None
        places = tuple((v.kind, v.number) for v in inputs)
        key = (operator.number, tuple(words), places, declared, dtype if declared else 0)
        known = self._known.get(key)
        if known is not None and not again:
            return known
        output = None if declared is None else shape_of(dtype, declared)
        call = _operators.call(operator, words, [shape_of(v.dtype, v.dims) for v in inputs], output)
        value = self._put(operator, inputs, words, call, called or operator.name)
        self._known[key] = value
        return value

    def _put(
        self,
        operator: Operator,
        inputs: Sequence[Value],
        words: Sequence[int],
        call: Call,
        called: str,
    ) -> Value:
        dims = tuple(call.output.dim[: call.output.ndim])
        name = f"{self.scope}.{called}" if self.scope else called
        node = Node(
            name[-NAME_MAX:],
            operator,
            tuple(words),
            tuple(inputs),
            call.output.dtype,
            dims,
            self.place,
            self.part,
        )
        self.nodes.append(node)
        return Value("node", len(self.nodes) - 1, node.dtype, dims)

    def filled(self, v: Value) -> Bits | None:
        """The number that fills a float32 value v, or None if v is not a fill."""
        node = self.nodes[v.number] if v.kind == "node" else None
        is_fill = node is not None and node.operator.name == "fill"
        return Bits(node.attributes[0] & 0xFFFFFFFF) if node is not None and is_fill else None

    def mark_sum(self, v: Value, number: int, name: str) -> None:
        """Marks v as an addition of micro-batches."""
        node = self.nodes[v.number]
        if v.kind == "node" and node.part is not None:
            self.nodes[v.number] = node._replace(part=node.part._replace(sum=(number, name)))

    # ---- what is needed ----

    def _roots(self) -> list[int]:
        values = self.output + ([self.loss] if self.loss is not None else [])
        return [v.number for v in values if v.kind == "node"]

    def prune(self) -> int:
        """Drops nodes that neither the next state nor the loss needs; returns their number."""
        needed: set[int] = set()
        todo = self._roots()
        while todo:
            i = todo.pop()
            if i not in needed:
                needed.add(i)
                todo += [v.number for v in self.nodes[i].inputs if v.kind == "node"]
        gone = len(self.nodes) - len(needed)
        self.reorder(sorted(needed), [])
        return gone

    def reorder(self, order: Sequence[int], repeats: Sequence[Repeat]) -> None:
        """Keeps these nodes in this order. repeats: the loops that some of them belong to."""
        number = {old: new for new, old in enumerate(order)}

        def moved(v: Value) -> Value:
            return v._replace(number=number[v.number]) if v.kind == "node" else v

        kept = [self.nodes[i] for i in order]
        self.nodes = [n._replace(inputs=tuple(map(moved, n.inputs))) for n in kept]
        self.output = [moved(v) for v in self.output]
        self.loss = None if self.loss is None else moved(self.loss)
        for r in repeats:
            r.carried = [(moved(v), k) for v, k in r.carried]
            for read in r.inputs:
                read[:] = [(kind, moved(x) if kind == OUTSIDE else x) for kind, x in read]
        self.repeats = list(repeats)
        self._known = {}

    def data_read(self) -> Iterator[int]:
        """Numbers of the data tensors that nodes read."""
        for node in self.nodes:
            yield from (v.number for v in node.inputs if v.kind == "data")

    # ---- bytes ----

    def sources(self) -> int:
        """How many values come before the first node's."""
        leaves = len(self.program.leaves) if self.has_leaves else 0
        return leaves + len(self.program.data) + 1

    def number(self, v: Value) -> int:
        nodes, data = self.sources(), len(self.program.data)
        first = {"leaf": 0, "data": nodes - 1 - data, "step": nodes - 1, "node": nodes}
        return first[v.kind] + v.number

    def encode(self) -> bytes:
        out = bytearray()
        if self.repeats:
            segments = list(self._segments())
            out += struct.pack("<II", REPEATS, len(segments)) + b"".join(segments)
        else:
            out += self._nodes(self.nodes)
        out += struct.pack(f"<{len(self.output)}I", *map(self.number, self.output))
        loss = NO_LOSS if self.loss is None else self.number(self.loss)
        return bytes(out + struct.pack("<I", loss))

    def _nodes(self, nodes: Sequence[Node]) -> bytes:
        out = bytearray(_list_head(nodes))
        for n in nodes:
            out += _node_head(n, n.name)
            out += struct.pack(f"<{len(n.inputs)}I", *map(self.number, n.inputs))
            out += _shape_bytes(n.dtype, n.dims)
        return bytes(out)

    def _segments(self) -> Iterator[bytes]:
        """Encodes runs of single nodes and repeats, in turn."""
        at = listed = 0
        begins: list[int] = []  # where each body begins in the list of nodes
        for r in self.repeats:
            if r.start > at:
                yield b"\0" + self._nodes(self.nodes[at : r.start])
            begins.append(listed + r.start - at)
            yield self._repeat(r, begins)
            listed, at = begins[-1] + r.size, r.start + r.meant
        if at < len(self.nodes):
            yield b"\0" + self._nodes(self.nodes[at:])

    def _repeat(self, r: Repeat, begins: list[int]) -> bytes:
        body = self.nodes[r.start : r.start + r.size]
        digits = len(str(r.count - 1))
        out = bytearray(struct.pack("<BI", 1, r.count) + _list_head(body))
        own = [printable(n.name)[-(NAME_MAX - digits - 2) :] for n in body]
        names = r.names or [f"m{ITERATION}.{name}" for name in own]
        for n, name, slope, read in zip(body, names, r.slopes, r.inputs):
            out += _node_head(n, name, ITERATION)
            out += b"\0" if slope is None else struct.pack("<Bq", 1 + slope[0], slope[1])
            for kind, x in read:
                number = x[0] if kind == CARRIED else 0
                if kind in (OUTSIDE, SHIFTED):
                    number = self.number(x if kind == OUTSIDE else x[0])
                elif kind == LISTED:
                    number = begins[x[0]] + x[1]
                out += struct.pack("<BI", kind, number)
                if kind == SHIFTED:
                    out += struct.pack("<q", x[1])
            out += _shape_bytes(n.dtype, n.dims)
        out += struct.pack("<I", len(r.carried))
        for before, k in r.carried:
            out += struct.pack("<II", self.number(before), begins[-1] + k)
        out += struct.pack("<I", len(r.sums))
        for k, name in r.sums:
            added = printable(name)[-(NAME_MAX - 2 * digits - 7) :]
            out += struct.pack("<I", begins[-1] + k)
            out += _string(f"sum.m{ITERATION}-{LAST}.{added}", ITERATION + LAST)
        return bytes(out)


def _list_head(nodes: Sequence[Node]) -> bytes:
    return struct.pack("<II", len(nodes), sum(len(n.inputs) for n in nodes))


def _node_head(n: Node, name: str, marks: str = "") -> bytes:
    out = _string(name, marks) + struct.pack("<HH", n.operator.number, len(n.inputs))
    return out + struct.pack(f"<{len(n.attributes)}q", *n.attributes)


def printable(text: str, marks: str = "") -> str:
    """The name with characters replaced that a program does not allow: it takes printable ASCII,
    and marks of iterations."""
    return "".join(c if " " <= c <= "~" or c in marks else "?" for c in text)


def _string(text: str, marks: str = "") -> bytes:
    data = printable(text, marks).encode()
    return struct.pack("<H", len(data)) + data


def _shape_bytes(dtype: int, dims: Sequence[int]) -> bytes:
    return struct.pack(f"<BB{len(dims)}Q", dtype, len(dims), *dims)


class Program:
    """A training run, as `verde run` takes it."""

    def __init__(self, seed: int = 0, steps: int = 1, interval: int = 1) -> None:
        self.seed, self.steps, self.interval = seed, steps, interval
        self.leaves: list[Leaf] = []
        self.names: dict[str, str] = {}  # maps leaves to their names in the user's model
        self.data: list[Data] = []
        self.init, self.step = Graph(self, False), Graph(self, True)
        self._content: dict[Any, Value] = {}

    def leaf(self, name: str, dtype: int, dims: Sequence[int]) -> Value:
        """Adds a tensor of the state. Its name is made ASCII, short enough and unique."""
        name = "".join(c if " " <= c <= "~" else "?" for c in name)[-NAME_MAX:]
        taken, whole = {leaf.name for leaf in self.leaves}, name
        while name in taken:
            more = f".{len(self.leaves)}"
            name = whole[len(more) :] + more if len(whole) + len(more) > NAME_MAX else whole + more
        self.leaves.append(Leaf(name, dtype, tuple(dims)))
        return Value("leaf", len(self.leaves) - 1, dtype, tuple(dims))

    def constant(self, name: str, array: np.ndarray) -> Value:
        """A data tensor with this content; equal contents share one."""
        array = np.ascontiguousarray(array)
        dtype = _arrays.CODE[array.dtype.newbyteorder("=")]
        digest = hashlib.sha256(array.reshape(-1).view("u1").data).digest()
        key = (dtype, array.shape, digest)
        if key not in self._content:
            self._content[key] = self.input(name, array)
        return self._content[key]

    def input(self, name: str, array: np.ndarray) -> Value:
        """A new data tensor, even if one has the same content."""
        dtype = _arrays.CODE[array.dtype.newbyteorder("=")]
        low, high = (int(array.min()), int(array.max())) if dtype in INTEGERS else (None, None)
        self.data.append(Data(name[-NAME_MAX:], array, dtype, low, high))
        value = Value("data", len(self.data) - 1, dtype, array.shape)
        return value if low is None or high is None else value.within(low, high)

    def weight(self, name: str, dtype: int, dims: Sequence[int]) -> Value:
        """A data tensor to be taken from a run's state, by its name there."""
        self.data.append(Data(name, _of_shape(dtype, dims), dtype, given=False))
        return Value("data", len(self.data) - 1, dtype, tuple(dims))

    def stored(self, name: str, it: Stored, dims: Sequence[int]) -> Value:
        """A data tensor whose content is in a file; uses of one part of a file share it."""
        key = (it.file, it.offset, tuple(dims))
        if key not in self._content:
            dtype = FLOATS[it.kind]
            array = _of_shape(dtype, dims)
            self.data.append(Data(name[-NAME_MAX:], array, dtype, stored=it))
            self._content[key] = Value("data", len(self.data) - 1, dtype, tuple(dims))
        return self._content[key]

    def drop_idle(self, ending: str) -> None:
        """Drops leaves of the state with this ending that are written but never read."""
        idle = {i for i, leaf in enumerate(self.leaves) if leaf.name.endswith(ending)}
        step, todo = self.step, [] if self.step.loss is None else [self.step.loss]
        todo += [v for i, v in enumerate(step.output) if i not in idle]
        seen: set[tuple[str, int]] = set()
        while todo:
            v = todo.pop()
            if (v.kind, v.number) in seen:
                continue
            seen.add((v.kind, v.number))
            if v.kind == "node":
                todo += step.nodes[v.number].inputs
            elif v.kind == "leaf" and v.number in idle:
                idle.discard(v.number)
                todo.append(step.output[v.number])
        self._drop_leaves(idle)

    def _drop_leaves(self, gone: set[int]) -> None:
        left = [i for i in range(len(self.leaves)) if i not in gone]
        number = {old: new for new, old in enumerate(left)}
        self.leaves = [self.leaves[i] for i in left]
        for graph in (self.init, self.step):
            graph.output = [graph.output[i] for i in left]
        self.step.prune()
        self.init.prune()

        def moved(v: Value) -> Value:
            return v._replace(number=number[v.number]) if v.kind == "leaf" else v

        nodes = self.step.nodes
        nodes[:] = [n._replace(inputs=tuple(map(moved, n.inputs))) for n in nodes]

    def drop_unread(self) -> None:
        """Drops data that no node reads. Call it after prune."""
        read = sorted({*self.init.data_read(), *self.step.data_read()})
        read.sort(key=lambda i: not self.data[i].given)  # given data come first, as in files
        number = {old: new for new, old in enumerate(read)}
        self.data = [self.data[i] for i in read]
        for graph in (self.init, self.step):
            for at, n in enumerate(graph.nodes):
                inputs = [
                    v._replace(number=number[v.number]) if v.kind == "data" else v for v in n.inputs
                ]
                graph.nodes[at] = n._replace(inputs=tuple(inputs))
        self._content = {}

    def _ranges(self) -> bytes:
        items = [
            struct.pack("<Iqq", i, d.low, d.high)
            for i, d in enumerate(self.data)
            if d.low is not None and (d.low, d.high) != INTEGERS[d.dtype]
        ]
        return struct.pack("<BI", RANGES, len(items)) + b"".join(items) if items else b""

    def encode(self) -> bytes:
        out = bytearray(_string("verde program"))
        out += struct.pack("<HHQQQ", 1, 1, self.seed, self.steps, self.interval)
        out += struct.pack("<I", len(self.data))
        for d in self.data:
            shape = shape_of(d.dtype, d.array.shape)
            out += _string(d.name) + _shape_bytes(d.dtype, d.array.shape)
            out += d.commitment(shape)
        out += struct.pack("<I", len(self.leaves))
        for leaf in self.leaves:
            out += _string(leaf.name) + _shape_bytes(leaf.dtype, leaf.dims)
        return bytes(out + self.init.encode() + self.step.encode() + self._ranges())


def _of_shape(dtype: int, dims: Sequence[int]) -> np.ndarray:
    return np.broadcast_to(np.zeros(1, _arrays.DTYPE[dtype]), tuple(dims))


def _address(array: np.ndarray) -> int:
    if not array.flags.c_contiguous or array.dtype.byteorder == ">":
        raise Error("a data tensor must lie dense in memory, in the machine's order of bytes")
    return array.ctypes.data


def hash_of(program: bytes) -> str:
    """The program's hash, as 64 hexadecimal digits."""
    return hashlib.sha256(b"verde/program/1\0" + program).hexdigest()


__all__ = [
    "BF16",
    "F16",
    "F32",
    "I8",
    "I32",
    "U16",
    "U8",
    "Bits",
    "Data",
    "Graph",
    "Program",
    "Value",
]
