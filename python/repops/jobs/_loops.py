"""Turns loops of a step into repeats (PROTOCOL.md 1.5): time steps, layers, and their backward
passes.

A recording has a loop as a run of nodes in which each node is of the kind of the one `period` nodes
before. Such a run becomes a repeat if its nodes' inputs can be told by the iteration's number. The
nodes' order does not change, so the graph means the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .._library import Error
from ._body import SLOPED, Array, Body, Edges
from ._graph import CARRIED, LISTED, OUTSIDE, SHIFTED, Graph, Node, Repeat

SAVED = 1000  # nodes that a repeat must save to be worth it
REPEATS_MAX = 64  # in a graph
SUMS_MAX = 1 << 16  # carried values of a repeat
SHIFTED_MAX = 1 << 20  # values that all shifted inputs of a graph take
WINDOW = 3  # log2 of the length of the equal windows of nodes by which runs are found
STARTS = 16  # leading iterations of a run that may be left out as different


class Run(NamedTuple):
    """A run of nodes: each one from begin + period to end is of the kind of the one `period` before
    it."""

    saved: int
    begin: int
    end: int
    period: int


# ---- finding runs ----


def _kinds(nodes: list[Node]) -> Array:
    """A number for each node; nodes with equal numbers may be the same node of a body."""
    known: dict[Any, int] = {}
    kinds = []
    for n in nodes:
        names = [name for name, _ in n.operator.attributes]
        fixed = tuple(w for w, name in zip(n.attributes, names) if name not in SLOPED)
        key = (n.operator.number, n.dtype, n.dims, fixed, len(n.inputs))
        kinds.append(known.setdefault(key, len(known)))
    return np.array(kinds, "i8")


def _periods(kinds: Array, saved: int) -> Array:
    """Distances at which equal windows repeat, if often enough for a run that saves `saved`
    nodes."""
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
    """All runs, the one that saves most first."""
    runs = []
    for period in map(int, _periods(kinds, saved)):
        same = np.concatenate([[False], kinds[:-period] == kinds[period:], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        for begin, end in zip(edges[::2], edges[1::2]):
            whole = int(end - begin) // period * period
            if whole >= saved:
                runs.append(Run(whole, int(begin), int(end) + period, period))
    return sorted(runs, key=lambda r: (-r.saved, r.period, r.begin))


# ---- choosing iterations ----


def _starts(edges: Edges, run: Run) -> int | None:
    """The offset at which iterations must begin so that none reads further back than the iteration
    before it, or None."""
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
    """The parts of a run that can be repeats."""
    if run.end - run.begin < 2 * run.period:
        return
    offset = _starts(edges, run)
    if offset is None:
        if 4 * run.period <= run.end - run.begin:  # tries two iterations as one
            yield from _bodies(edges, run._replace(period=2 * run.period), saved)
        return
    at, failed = run.begin + offset, 0
    while failed < STARTS and run.end - at - run.period >= max(saved, run.period):
        body = Body(edges, at, run.period, (run.end - at) // run.period)
        if run.end - at >= 3 * run.period:  # the first iteration often differs
            later = Body(edges, at + run.period, run.period, (run.end - at) // run.period - 1)
            body = later if later.count > body.count else body
        if (body.count - 1) * run.period < saved:
            at, failed = at + run.period, failed + 1
            continue
        yield body
        at, failed = body.start + body.count * run.period, 0


# ---- the graph ----


def _free(run: Run, taken: list[Repeat]) -> Iterator[Run]:
    """The parts of a run that are not in a repeat yet."""
    at = run.begin
    for r in sorted(taken, key=lambda r: r.start):
        if at < r.start and r.start + r.meant > run.begin:
            yield run._replace(begin=at, end=min(r.start, run.end))
        at = max(at, r.start + r.meant)
    if at < run.end:
        yield run._replace(begin=at)


def fold(graph: Graph) -> None:
    """Turns loops into repeats where each saves enough nodes. Graphs with micro-batches, which are
    repeats already, stay as they are."""
    saved = SAVED
    if graph.repeats or any(n.part is not None for n in graph.nodes):
        return
    edges, shifted = Edges(graph), 0
    found: list[Repeat] = []
    for run in _runs(_kinds(graph.nodes), saved):
        for part in list(_free(run, found)):
            for body in _bodies(edges, part, saved):
                r = body.repeat()
                values = r.count * sum(kind == SHIFTED for read in r.inputs for kind, _ in read)
                fits = shifted + values <= SHIFTED_MAX and len(r.carried) <= SUMS_MAX
                if fits and len(found) < REPEATS_MAX:
                    found.append(r)
                    shifted += values
    graph.repeats = sorted(found, key=lambda r: r.start)
    _compare(graph)


def meant(graph: Graph, r: Repeat) -> Iterator[tuple[list[int], list[int]]]:
    """The attributes and inputs of each node that a repeat without sums stands for."""
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
                    values.append(first + (m - 1) * r.size + after if m else graph.number(before))
                else:
                    values.append(graph.number(x[0]) + m * x[1])
            yield words, values


def _compare(graph: Graph) -> None:
    """Checks that the repeats stand for the nodes that were there."""
    for r in graph.repeats:
        for i, (words, values) in enumerate(meant(graph, r)):
            node, like = graph.nodes[r.start + i], graph.nodes[r.start + i % r.size]
            same = (node.operator, node.dtype, node.dims) == (like.operator, like.dtype, like.dims)
            own = list(node.attributes), [graph.number(v) for v in node.inputs]
            if not same or own != (words, values):
                raise Error(f"{node.name} is another node in a repeat; this is an error of repops")
