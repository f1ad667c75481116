"""Finds layers that an exporter wrote as several nodes, and replaces them by one node each.

Matches are exact: exactly the layer's operators, with operands in any order. Nodes that nothing
reads afterwards are dropped."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ._graph import Graph, Node
from ._layers import attention, rotary
from ._match import Matcher

FORMS = ("attention", "rotary positions", "layer norm", "rms norm", "gelu", "silu")


def _gelu(m: Matcher, node: Node) -> Any:
    """x / 2 (1 + erf(x / sqrt(2))), or the form with tanh."""
    parts = m.factors(node.outputs[0])
    half = [p for p in parts if m.is_number(p, 0.5)]
    if len(parts) != 3 or len(half) != 1:
        return None
    parts.remove(half[0])
    for x, other in (parts, parts[::-1]):
        inner = m.with_number(other, "Add", 1.0)
        function = m.made(inner, "Erf", "Tanh") if inner else None
        if function is None:
            continue
        u = function.inputs[0]
        if function.kind == "Erf" and m.with_number(u, "Mul", math.sqrt(0.5)) == x:
            return "Gelu", [x], {}
        if function.kind == "Tanh" and _bent(m, m.with_number(u, "Mul", math.sqrt(2 / math.pi)), x):
            return "Gelu", [x], {"approximate": "tanh"}
    return None


def _bent(m: Matcher, name: str | None, x: str) -> bool:
    """Is it x + 0.044715 x^3?"""
    node = m.made(name, "Add") if name else None
    for a, b in m.either(node) if node else ():
        if a != x:
            continue
        cube = m.with_number(b, "Mul", 0.044715)
        power = m.made(cube, "Pow") if cube else None
        if power and power.inputs[0] == x and m.is_number(power.inputs[1], 3.0):
            return True
        parts = m.factors(b, 4)
        numbers = [p for p in parts if m.is_number(p, 0.044715)]
        if len(numbers) == 1 and parts.count(x) == 3 == len(parts) - 1:
            return True
    return False


def _weight(m: Matcher, name: str) -> bool:
    """Is it an initializer that is a vector?"""
    t = m.graph.constants.get(name)
    return t is not None and t.dim() == 1


def _layer_norm(m: Matcher, node: Node) -> Any:
    """(x - mean) / sqrt(mean((x - mean)^2) + eps) scale + bias."""
    for scaled, bias in m.either(node):
        product = m.made(scaled, "Mul") if _weight(m, bias) else None
        for inner, scale in m.either(product) if product else ():
            found = m.scaled(inner) if _weight(m, scale) else None
            less = m.made(found[0], "Sub") if found else None
            if found and less and m.last_mean(less.inputs[1]) == less.inputs[0]:
                how = {"axis": -1, "epsilon": found[1]}
                return "LayerNormalization", [less.inputs[0], scale, bias], how
    return None


def _rms_norm(m: Matcher, node: Node) -> Any:
    """x / sqrt(mean(x^2) + eps) scale."""
    for inner, scale in m.either(node):
        found = m.scaled(inner) if _weight(m, scale) else None
        if found and not m.made(found[0], "Sub"):
            return "RMSNormalization", [found[0], scale], {"axis": -1, "epsilon": found[1]}
    return None


def _silu(m: Matcher, node: Node) -> Any:
    """x sigmoid(x)."""
    for x, gate in m.either(node):
        function = m.made(gate, "Sigmoid")
        if function and function.inputs[0] == x:
            return "Swish", [x], {}
    return None


_ROOTS: dict[str, list[tuple[str, Callable[[Matcher, Node], Any]]]] = {
    "MatMul": [("attention", attention)],
    "Add": [("layer norm", _layer_norm), ("rotary positions", rotary)],
    "Mul": [("gelu", _gelu), ("rms norm", _rms_norm), ("silu", _silu)],
}


def recognised(graph: Graph) -> tuple[Graph, dict[str, int]]:
    """The graph with layers in place of their parts, and how often each layer was found."""
    m, counts, nodes = Matcher(graph), dict[str, int](), []
    for node in graph.nodes:
        for form, find in _ROOTS.get(node.kind, []) if not node.domain else ():
            found = find(m, node)
            if found:
                kind, inputs, attributes = found
                own = Node(node.file, node.number, "", kind, node.name)
                own.version, own.inputs, own.attributes = node.version, inputs, attributes
                own.outputs, node = node.outputs, own
                counts[form] = counts.get(form, 0) + 1
                nodes += m.made_nodes
                break
        m.made_nodes = []
        nodes.append(node)
    new = Graph(graph.name)
    new.inputs, new.outputs = graph.inputs, graph.outputs
    new.constants = {**graph.constants, **m.made_constants}
    new.nodes = _needed(nodes, graph)
    return new, counts


def _needed(nodes: list[Node], graph: Graph) -> list[Node]:
    """Drops nodes whose results nothing reads."""
    wanted, kept = {o.name for o in graph.outputs}, []
    for node in reversed(nodes):
        if any(n in wanted for n in node.outputs):
            kept.append(node)
            wanted.update(node.inputs)
            for inner in node.graphs():
                wanted |= inner.reads() | {o.name for o in inner.outputs}
    return kept[::-1]
