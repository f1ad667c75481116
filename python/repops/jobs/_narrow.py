"""Lets products and look-ups read 16-bit weights as they are, without a 32-bit copy in memory."""

from __future__ import annotations

from .._table import TABLE
from ._graph import F32, Graph, Node, Value

FACTOR = 1  # the input of a product that may have 16 bits


def narrow(graph: Graph) -> None:
    """Removes casts of weights before products, whose bits stay the same, and moves them behind
    look-ups. Call it before pruning, which drops the unused casts."""
    wide = {
        i: node.inputs[0]
        for i, node in enumerate(graph.nodes)
        if node.operator.name == "cast" and node.dtype == F32 and node.inputs[0].kind == "data"
    }
    order: list[int] = []
    for i, node in enumerate(list(graph.nodes) if wide else ()):
        if node.operator.name == "matmul":
            graph.nodes[i] = _reading(node, FACTOR, wide)
        elif node.operator.name == "embedding" and _is_wide(node.inputs[0], wide):
            order.append(_looked_up(graph, i, wide))
        order.append(i)
    if wide:
        graph.reorder(order, [])


def _is_wide(v: Value, wide: dict[int, Value]) -> bool:
    return v.kind == "node" and v.number in wide


def _reading(node: Node, at: int, wide: dict[int, Value]) -> Node:
    v, inputs = node.inputs[at], list(node.inputs)
    if _is_wide(v, wide):
        inputs[at] = wide[v.number]
    return node._replace(inputs=tuple(inputs))


def _looked_up(graph: Graph, number: int, wide: dict[int, Value]) -> int:
    """Casts the rows that are looked up, not the table; returns the new look-up node."""
    node = graph.nodes[number]
    rows = _reading(node, 0, wide)
    rows = rows._replace(dtype=rows.inputs[0].dtype)
    graph.nodes.append(rows)
    value = Value("node", len(graph.nodes) - 1, rows.dtype, rows.dims)
    name = ".".join([*node.name.split(".")[:-1], "cast"])
    graph.nodes[number] = node._replace(
        name=name, operator=TABLE["cast"], attributes=(F32,), inputs=(value,)
    )
    return value.number
