"""Loops of a step as repeats (PROTOCOL.md 1.5): steps of time, layers, and their backward passes.

A recording has what a loop did as a run of nodes in which each `period` nodes are of the same kinds
as those before. Such a run is a repeat as it lies, if all that its nodes read can be told by an
iteration's number; nodes keep their order, so that the graph means what it meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .._library import Error
from ._graph import (
    CARRIED,
    ITERATION,
    LISTED,
    NAME_MAX,
    OUTSIDE,
    SHIFTED,
    Graph,
    Node,
    Repeat,
    Value,
)

Array = np.ndarray
SLOPED = ("first", "start", "stream")  # attributes that may grow from one iteration to the next
SAVED = 1000  # nodes that a repeat stores less, at least: fewer are not worth it
REPEATS_MAX = 64  # of a graph
SHIFTED_MAX = 1 << 20  # values that shifted inputs of a graph take
WINDOW = 3  # a run is looked for where 2 to the power of so many nodes follow each other twice
STARTS = 16  # iterations at the begin of a run that may be left out, as they are not like the rest


class Run(NamedTuple):
    """Nodes begin..end: each is of the kind of the one `period` before it."""

    saved: int
    begin: int
    end: int
    period: int


# ---- where nodes follow each other again ----


def _kinds(nodes: list[Node]) -> Array:
    """Equal numbers for nodes that may be one of a body."""
    known: dict[Any, int] = {}
    kinds = []
    for n in nodes:
        names = [name for name, _ in n.operator.attributes]
        fixed = tuple(w for w, name in zip(n.attributes, names) if name not in SLOPED)
        key = (n.operator.number, n.dtype, n.dims, fixed, len(n.inputs))
        kinds.append(known.setdefault(key, len(known)))
    return np.array(kinds, "i8")


def _periods(kinds: Array, saved: int) -> Array:
    """How far equal windows lie apart, for as many of them as a run that is worth it has."""
    ids, width = kinds, 1
    for _ in range(WINDOW):
        if len(ids) <= width:
            return np.array([], "i8")
        pairs = ids[:-width] * (ids.max() + 1) + ids[width:]
        ids, width = np.unique(pairs, return_inverse=True)[1].reshape(-1), 2 * width
    order = np.argsort(ids, kind="stable")
    again = ids[order[1:]] == ids[order[:-1]]
    apart, counts = np.unique((order[1:] - order[:-1])[again], return_counts=True)
    return apart[counts >= saved // 2]


def _runs(kinds: Array, saved: int) -> list[Run]:
    """The longest first."""
    runs = []
    for period in map(int, _periods(kinds, saved)):
        same = np.concatenate([[False], kinds[:-period] == kinds[period:], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        for begin, end in zip(edges[::2], edges[1::2]):
            whole = int(end - begin) // period * period
            if whole >= saved:
                runs.append(Run(whole, int(begin), int(end) + period, period))
    return sorted(runs, key=lambda r: (-r.saved, r.period, r.begin))


# ---- what an iteration reads ----


class Edges:
    """All inputs of all nodes as numbers of values; first[i]: where those of node i begin."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = graph.nodes
        self.sources = graph.sources()
        values = [v for n in graph.nodes for v in n.inputs]
        self.first = np.cumsum([0, *(len(n.inputs) for n in graph.nodes)])
        self.value = np.array([graph.number(v) for v in values], "i8")
        shapes: dict[Any, int] = {}
        self.shape = np.array(
            [shapes.setdefault((v.kind, v.dtype, v.dims), len(shapes)) for v in values], "i8"
        )
        self.made = np.array(
            [shapes.setdefault(("node", n.dtype, n.dims), len(shapes)) for n in graph.nodes], "i8"
        )
        # The same with what kind of value it is left out, as a carried one may begin as any.
        plain = {i: k[1:] for k, i in shapes.items()}
        ids: dict[Any, int] = {}
        self.plain = np.array([ids.setdefault(plain[i], len(ids)) for i in range(len(plain))], "i8")


def _lasting(good: Array) -> Array:
    """Of each column, how many rows from the first one on are true."""
    return np.where(good.all(0), len(good), good.argmin(0))


class Body:
    """Up to `most` iterations of `size` nodes from `start` on; count: as many as are alike."""

    def __init__(self, edges: Edges, start: int, size: int, most: int) -> None:
        self.edges, self.start, self.size = edges, start, size
        low, high = edges.first[start], edges.first[start + most * size]
        self.values = edges.value[low:high].reshape(most, -1)
        self.shapes = edges.shape[low:high].reshape(most, -1)
        self.reader = np.repeat(
            np.arange(size), np.diff(edges.first[start : start + size + 1])
        )  # of each input, the node
        self.lasting = self._inputs(most)
        self.slopes, lasting = self._slopes(most)
        self.count = int(min([lasting, *self.lasting.max(0)]))

    def _inputs(self, most: int) -> Array:
        """For each way to read, and each input, how many iterations it holds."""
        v, m = self.values, np.arange(most)[:, None]
        begin = self.edges.sources + self.start
        own = v - begin - m * self.size  # as numbers of nodes of the same iteration
        listed = (own == own[0]) & (own[0] >= 0) & (own[0] < self.reader)
        before = own + self.size
        carries = before[1] if most > 1 else before[0]
        made = self.edges.made[self.start + np.clip(carries, 0, self.size - 1)]
        carried = (before == carries) & (carries >= 0) & (carries < self.size)
        plain = self.edges.plain
        carried[0] = (v[0] < begin) & (plain[self.shapes[0]] == plain[made])
        self.slope = v[1] - v[0] if most > 1 else np.zeros_like(v[0])
        shifted = (v == v[0] + m * self.slope) & (v < begin) & (self.shapes == self.shapes[0])
        shifted &= self.slope != 0
        outside = (v == v[0]) & (v[0] < begin)
        self.own, self.carries = own[0], carries
        return np.stack([_lasting(x) for x in (outside, listed, carried, shifted)])

    def _slopes(self, most: int) -> tuple[list[tuple[int, int] | None], int]:
        """Of each node of the body, and for how many iterations that holds."""
        nodes, slopes, lasting = self.edges.nodes, [], most
        for k in range(self.start, self.start + self.size):
            moves = [
                i for i, (name, _) in enumerate(nodes[k].operator.attributes) if name in SLOPED
            ]
            if not moves or most == 1:
                slopes.append(None)
                continue
            words = np.array(
                [[nodes[k + m * self.size].attributes[i] for i in moves] for m in range(most)]
            )
            slope = words[1] - words[0]
            first = int(np.flatnonzero(slope)[0]) if slope.any() else 0
            slope[np.arange(len(moves)) != first] = 0  # one attribute may grow
            good = (words == words[0] + np.arange(most)[:, None] * slope).all(1, keepdims=True)
            lasting = min(lasting, int(_lasting(good)[0]))
            slopes.append((moves[first], int(slope[first])) if slope.any() else None)
        return slopes, lasting

    def repeat(self) -> Repeat:
        r = Repeat(self.count, self.start, self.size, slopes=self.slopes)
        at = 0
        for k in range(self.start, self.start + self.size):
            inputs = self.edges.nodes[k].inputs
            r.inputs.append([self._input(v, at + i, r) for i, v in enumerate(inputs)])
            r.names.append(self._name(k))
            at += len(inputs)
        return r

    def _input(self, v: Value, at: int, r: Repeat) -> tuple[int, Any]:
        outside, listed, carried, _ = self.lasting[:, at] >= self.count
        if outside:
            return OUTSIDE, v
        if listed:
            return LISTED, (-1, int(self.own[at]))
        if carried:
            return CARRIED, (r.carry(v, int(self.carries[at])), 0)
        return SHIFTED, (v, int(self.slope[at]))

    def _name(self, k: int) -> str:
        """With what stands for the iteration's number, where names differ by it."""
        ms = (0, 1, self.count - 1)
        words = [re.split(r"(\d+)", self.edges.nodes[k + m * self.size].name) for m in ms]
        own = words[0]
        told = False
        for i in range(1, len(own), 2):
            numbers = [int(w[i]) if len(w) == len(own) else -1 for w in words]
            slope = numbers[1] - numbers[0]
            if slope in (1, -1) and numbers[2] == numbers[0] + slope * ms[2]:
                ahead = f"{numbers[0]}{'+' if slope > 0 else '-'}"
                own[i] = ITERATION if numbers[0] == 0 and slope > 0 else ahead + ITERATION
                told = True
        name = "".join(own) if told else f"m{ITERATION}.{''.join(own)}"
        digits = len(str(self.count - 1))
        room = NAME_MAX - name.count(ITERATION) * (digits - 1)
        return name if len(name) <= room else f"m{ITERATION}.{words[0][-1]}"[-room:]


def _starts(edges: Edges, run: Run) -> int | None:
    """From which of its first nodes on an iteration reads no further back than the one before it.
    None: from none."""
    low = run.begin + run.period
    nodes = np.arange(low, min(low + run.period, run.end))
    reader = np.repeat(nodes, np.diff(edges.first[low : nodes[-1] + 2]))
    read = edges.value[edges.first[low] : edges.first[nodes[-1] + 1]] - edges.sources
    far = (read >= run.begin) & (reader - read > run.period)
    reader, read = reader[far] - run.begin, read[far] - run.begin
    for offset in range(run.period):
        if ((reader - offset) // run.period - (read - offset) // run.period <= 1).all():
            return offset
    return None


def _bodies(edges: Edges, run: Run, saved: int) -> Iterator[Body]:
    """Those parts of a run that are repeats."""
    if run.end - run.begin < 2 * run.period:
        return
    offset = _starts(edges, run)
    if offset is None:
        if 4 * run.period <= run.end - run.begin:  # each two iterations as one
            yield from _bodies(edges, run._replace(period=2 * run.period), saved)
        return
    at, failed = run.begin + offset, 0
    while failed < STARTS and run.end - at - run.period >= max(saved, run.period):
        body = Body(edges, at, run.period, (run.end - at) // run.period)
        if run.end - at >= 3 * run.period:  # the first iteration is often another one
            later = Body(edges, at + run.period, run.period, (run.end - at) // run.period - 1)
            body = later if later.count > body.count else body
        if (body.count - 1) * run.period < saved:
            at, failed = at + run.period, failed + 1
            continue
        yield body
        at, failed = body.start + body.count * run.period, 0


# ---- all of a graph ----


def _free(run: Run, taken: list[Repeat]) -> Iterator[Run]:
    """What of a run is in no repeat yet."""
    at = run.begin
    for r in sorted(taken, key=lambda r: r.start):
        if at < r.start and r.start + r.meant > run.begin:
            yield run._replace(begin=at, end=min(r.start, run.end))
        at = max(at, r.start + r.meant)
    if at < run.end:
        yield run._replace(begin=at)


def fold(graph: Graph) -> None:
    """Loops become repeats, where each saves enough nodes; micro-batches, which are repeats
    already, stay as they are."""
    saved = SAVED
    if graph.repeats or any(n.part is not None for n in graph.nodes):
        return
    edges, found, shifted = Edges(graph), [], 0
    for run in _runs(_kinds(graph.nodes), saved):
        for part in list(_free(run, found)):
            for body in _bodies(edges, part, saved):
                r = body.repeat()
                values = r.count * sum(kind == SHIFTED for read in r.inputs for kind, _ in read)
                if len(found) < REPEATS_MAX and shifted + values <= SHIFTED_MAX:
                    found.append(r)
                    shifted += values
    graph.repeats = sorted(found, key=lambda r: r.start)
    _compare(graph)


def meant(graph: Graph, r: Repeat) -> Iterator[tuple[list[int], list[int]]]:
    """Attributes, and values that are read, of each node that a repeat without sums means."""
    first = graph.sources() + r.start
    for m in range(r.count):
        for k, (slope, read) in enumerate(zip(r.slopes, r.inputs)):
            words = list(graph.nodes[r.start + k].attributes)
            if slope is not None:
                words[slope[0]] += m * slope[1]
            values = []
            for kind, x in read:
                if kind == OUTSIDE:
                    values.append(graph.number(x))
                elif kind == LISTED:
                    values.append(first + m * r.size + x[1])
                elif kind == CARRIED:
                    before, after = r.carried[x[0]]
                    values.append(
                        first + (m - 1) * r.size + after if m else graph.number(before)
                    )
                else:
                    values.append(graph.number(x[0]) + m * x[1])
            yield words, values


def _compare(graph: Graph) -> None:
    """What repeats mean is what was there."""
    for r in graph.repeats:
        for i, (words, values) in enumerate(meant(graph, r)):
            node, like = graph.nodes[r.start + i], graph.nodes[r.start + i % r.size]
            same = (node.operator, node.dtype, node.dims) == (like.operator, like.dtype, like.dims)
            own = list(node.attributes), [graph.number(v) for v in node.inputs]
            if not same or own != (words, values):
                raise Error(f"{node.name} is another node in a repeat; this is an error of repops")
