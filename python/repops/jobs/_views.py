"""Builds a new graph from another one; reshapes wait until a node needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .._table import TABLE
from ._graph import Graph, Node, Value


class View(NamedTuple):
    """A value of the new graph, seen with other dimensions. node: the old node that names a reshape
    to these dimensions."""

    base: Value
    dims: tuple[int, ...]
    node: Node | None = None


class Views:
    def __init__(self, graph: Graph) -> None:
        self.graph, self.nodes = graph, list[Node]()
        self.views: list[View] = []  # for each node of the old graph
        self.behind: dict[int, list[int]] = {}  # nodes that must come right after another one
        self._known: dict[object, Value] = {}

    def view(self, v: Value) -> View:
        return self.views[v.number] if v.kind == "node" else View(v, v.dims)

    def made_by(self, v: Value, name: str) -> Node | None:
        node = self.nodes[v.number] if v.kind == "node" else None
        return node if node is not None and node.operator.name == name else None

    def append(self, node: Node) -> Value:
        self.nodes.append(node)
        return Value("node", len(self.nodes) - 1, node.dtype, node.dims)

    def put(
        self,
        name: str,
        like: Node,
        inputs: Sequence[Value],
        dims: Sequence[int],
        words: Sequence[int] = (),
    ) -> Value:
        """Adds a node in place of an old graph's node, or of part of it."""
        scope = like.name.rpartition(".")[0]
        called = f"{scope}.{name}" if scope else name
        node = like._replace(name=called, operator=TABLE[name], attributes=tuple(words))
        return self.append(node._replace(inputs=tuple(inputs), dims=tuple(dims)))

    def real(self, view: View, like: Node | None = None) -> Value:
        """The value with the view's dimensions. A reshape is put right after the node that it
        reads, where it takes no time and lets fused functions begin with it."""
        base, dims = view.base, view.dims
        if base.dims == dims:
            return base
        key = base.kind, base.number, dims
        if key not in self._known:
            host = self.nodes[base.number] if base.kind == "node" else None
            if host is not None and host.part is not None and host.part.sum is not None:
                host = None  # sums over micro-batches belong to none of them
            node = view.node or like or host
            assert node is not None
            part = host.part if host is not None else like.part if like is not None else None
            node = node._replace(part=part, dtype=base.dtype)
            self._known[key] = self.put("reshape", node, (base,), dims)
            if host is not None:
                self.behind.setdefault(base.number, []).append(len(self.nodes) - 1)
        return self._known[key]

    def same(self, node: Node) -> View:
        """Copies a node unchanged."""
        inputs = tuple(self.real(self.view(v), node) for v in node.inputs)
        return View(self.append(node._replace(inputs=inputs)), node.dims, node)

    def origin(self, v: Value) -> Value:
        node = self.made_by(v, "reshape")
        return v if node is None else node.inputs[0]
