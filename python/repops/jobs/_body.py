"""How the nodes of a loop's body read their inputs in each iteration (PROTOCOL.md 1.5)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ._graph import (
    CARRIED,
    ITERATION,
    LISTED,
    NAME_MAX,
    OUTSIDE,
    SHIFTED,
    Graph,
    Repeat,
    Value,
    printable,
)

Array = np.ndarray
SLOPED = ("first", "start", "stream")  # attributes that may grow linearly


class Edges:
    """The inputs of all nodes, as numbers of values; those of node i begin at first[i]."""

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
        # Shapes without the kind of value, because a carried value may begin as any kind.
        plain = {i: k[1:] for k, i in shapes.items()}
        ids: dict[Any, int] = {}
        self.plain = np.array([ids.setdefault(plain[i], len(ids)) for i in range(len(plain))], "i8")


def _lasting(good: Array) -> Array:
    """Returns for each column the number of leading rows that are true."""
    return np.where(good.all(0), len(good), good.argmin(0))


class Body:
    """A candidate for a loop: `most` iterations of `size` nodes, from `start` on. count: how many
    of them, from the first one on, are alike."""

    def __init__(self, edges: Edges, start: int, size: int, most: int) -> None:
        self.edges, self.start, self.size = edges, start, size
        low, high = edges.first[start], edges.first[start + most * size]
        self.values = edges.value[low:high].reshape(most, -1)
        self.shapes = edges.shape[low:high].reshape(most, -1)
        self.reader = np.repeat(
            np.arange(size), np.diff(edges.first[start : start + size + 1])
        )  # for each input its node
        self.lasting = self._inputs(most)
        self.slopes, lasting = self._slopes(most)
        self.count = int(min([lasting, *self.lasting.max(0)]))

    def _inputs(self, most: int) -> Array:
        """[way of reading, input]: for how many iterations each way explains each input."""
        v, m = self.values, np.arange(most)[:, None]
        begin = self.edges.sources + self.start
        own = v - begin - m * self.size  # as nodes of the same iteration
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
        """Each node's attribute that grows, and by how much; and for how many iterations this
        holds."""
        nodes, lasting = self.edges.nodes, most
        slopes: list[tuple[int, int] | None] = []
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
            slope[np.arange(len(moves)) != first] = 0  # only one attribute may grow
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
        """The node's name, with ITERATION in place of numbers that count with the iterations."""
        ms = (0, 1, self.count - 1)
        names = [printable(self.edges.nodes[k + m * self.size].name) for m in ms]
        words = [re.split(r"(\d+)", name) for name in names]
        own = words[0]
        told = False
        for i in range(1, len(own), 2):
            numbers = [int(w[i]) if len(w) == len(own) else -1 for w in words]
            slope = numbers[1] - numbers[0]
            if slope in (1, -1) and numbers[2] == numbers[0] + slope * ms[2]:
                ahead = f"{numbers[0]}{'+' if slope > 0 else '-'}"
                own[i] = ITERATION if numbers[0] == 0 and slope > 0 else ahead + ITERATION
                told = True
        name, more = "".join(own), len(str(self.count - 1)) - 1
        fits = len(name) + more * name.count(ITERATION) <= NAME_MAX
        return name if told and fits else f"m{ITERATION}.{names[0][-(NAME_MAX - more - 3) :]}"
