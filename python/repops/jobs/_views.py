"""A graph in the making from another one, in which reshapes wait until a node needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .._table import TABLE
from ._graph import Graph, Node, Value


class View(NamedTuple):
    """A value of the new graph with other dimensions. node: of the old one, after which a node that
    makes it is named."""

    base: Value
    dims: tuple[int, ...]
    node: Node | None = None


class Views:
    def __init__(self, graph: Graph) -> None:
        self.graph, self.nodes = graph, list[Node]()
        self.views: list[View] = []  # of each node of the old graph
        self.behind: dict[int, list[int]] = {}  # nodes that come right after another one
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
        """A node that stands for this one of the old graph, or for a part of it."""
        scope = like.name.rpartition(".")[0]
        called = f"{scope}.{name}" if scope else name
        node = like._replace(name=called, operator=TABLE[name], attributes=tuple(words))
        return self.append(node._replace(inputs=tuple(inputs), dims=tuple(dims)))

    def real(self, view: View, like: Node | None = None) -> Value:
        """The value with its own dimensions: a reshape right after what it is of, which takes no
        time there, and lets functions of several nodes begin with it."""
        base, dims = view.base, view.dims
        if base.dims == dims:
            return base
        key = base.kind, base.number, dims
        if key not in self._known:
            host = self.nodes[base.number] if base.kind == "node" else None
            if host is not None and host.part is not None and host.part.sum is not None:
                host = None  # an addition of micro-batches is in none of them
            node = view.node or like or host
            assert node is not None
            part = host.part if host is not None else like.part if like is not None else None
            node = node._replace(part=part, dtype=base.dtype)
            self._known[key] = self.put("reshape", node, (base,), dims)
            if host is not None:
                self.behind.setdefault(base.number, []).append(len(self.nodes) - 1)
        return self._known[key]

    def same(self, node: Node) -> View:
        """The node as it was."""
        inputs = tuple(self.real(self.view(v), node) for v in node.inputs)
        return View(self.append(node._replace(inputs=inputs)), node.dims, node)

    def origin(self, v: Value) -> Value:
        node = self.made_by(v, "reshape")
        return v if node is None else node.inputs[0]
