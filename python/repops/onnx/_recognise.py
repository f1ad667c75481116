"""Finds layers that an exporter took apart: each is one node again.

A match is exact: what a layer's parts are, in any order of operands, and nothing else. Nodes that
nobody reads afterwards are left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from ._graph import Graph, Node

FORMS = ("attention", "layer norm", "rms norm", "gelu")


class Matcher:
    """Of one graph: who makes a value, and what constants are."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.makers = {n: node for node in graph.nodes for n in node.outputs if n}
        self.values = dict(graph.constants)
        for node in graph.nodes:
            if node.kind == "Constant" and "value" in node.attributes and not node.domain:
                self.values[node.outputs[0]] = node.attributes["value"]

    def made(self, name: str, *kinds: str) -> Node | None:
        """The node that makes a value, if it is of such a kind of ONNX's own."""
        node = self.makers.get(name)
        return node if node and not node.domain and node.kind in kinds else None

    def number(self, name: str) -> float | None:
        value = self.values.get(name)
        return float(value.reshape(-1)[0]) if value is not None and value.numel() == 1 else None

    def ints(self, name: str) -> list[int]:
        value = self.values.get(name)
        return [] if value is None else [int(v) for v in value.reshape(-1).tolist()]

    def is_number(self, name: str, want: float) -> bool:
        found = self.number(name)
        return found is not None and math.isclose(found, want, rel_tol=1e-5, abs_tol=1e-12)

    def either(self, node: Node) -> Iterator[tuple[str, str]]:
        """Both operands, in both orders."""
        if len(node.inputs) == 2:
            a, b = node.inputs
            yield a, b
            yield b, a

    def with_number(self, name: str, kind: str, want: float) -> str | None:
        """x, of a value that is x plus, or times, this number; of a quotient by one over it."""
        node = self.made(name, kind)
        for x, c in self.either(node) if node else ():
            if self.is_number(c, want):
                return x
        node = self.made(name, "Div") if kind == "Mul" else None
        if node and self.is_number(node.inputs[1], 1 / want):
            return node.inputs[0]
        return None

    def factors(self, name: str, depth: int = 3) -> list[str]:
        """What a product is of: products in it are taken apart."""
        node = self.made(name, "Mul") if depth else None
        if node is None:
            return [name]
        return [f for i in node.inputs for f in self.factors(i, depth - 1)]

    def square(self, name: str) -> str | None:
        """x, of a value that is its square."""
        node = self.made(name, "Pow", "Mul")
        if node is None:
            return None
        x, y = node.inputs
        same = x == y if node.kind == "Mul" else self.is_number(y, 2.0)
        return x if same else None

    def last_mean(self, name: str) -> str | None:
        """x, of its mean over the last axis, which stays as 1."""
        node = self.made(name, "ReduceMean")
        if node is None or node.attributes.get("keepdims", 1) != 1:
            return None
        axes = node.attributes.get("axes")
        if axes is None and len(node.inputs) > 1 and node.inputs[1] in self.values:
            axes = self.values[node.inputs[1]].reshape(-1).tolist()
        return node.inputs[0] if axes == [-1] else None

    def spread(self, name: str) -> tuple[str, float] | None:
        """x and eps, of sqrt(mean(x x) + eps)."""
        root = self.made(name, "Sqrt")
        total = self.made(root.inputs[0], "Add") if root else None
        for mean, eps in self.either(total) if total else ():
            found, squared = self.number(eps), self.last_mean(mean)
            x = self.square(squared) if squared else None
            if found is not None and x:
                return x, found
        return None

    def scaled(self, name: str) -> tuple[str, float] | None:
        """x and eps, of x / sqrt(mean(x x) + eps)."""
        node = self.made(name, "Div", "Mul")
        for x, root in self.either(node) if node else ():
            if node and node.kind == "Mul":
                inverse = self.made(root, "Reciprocal", "Div")
                if (
                    inverse is None
                    or inverse.kind == "Div"
                    and not self.is_number(inverse.inputs[0], 1.0)
                ):
                    continue
                root = inverse.inputs[-1]
            found = self.spread(root)
            if (
                found
                and found[0] == x
                and (node is None or node.kind == "Mul" or x == node.inputs[0])
            ):
                return found
        return None


def _gelu(m: Matcher, node: Node) -> Any:
    """x / 2 (1 + erf(x / sqrt(2))), or with tanh."""
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
    """Whether it is x + 0.044715 x^3."""
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
    """A vector that is an initializer."""
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


def _turned(m: Matcher, name: str) -> str | None:
    """x, of a value of four dimensions whose last two are exchanged."""
    node = m.made(name, "Transpose")
    if node is None:
        return _turned_flat(m, m.made(name, "Reshape"))
    return node.inputs[0] if node.attributes.get("perm") == [0, 1, 3, 2] else None


def _turned_flat(m: Matcher, last: Node | None) -> str | None:
    """The same as PyTorch's exporter writes it, of heads [b, h, t, d]: as [b h, t, d], turned, and
    as [b, h, d, t]."""
    middle = m.made(last.inputs[0], "Transpose") if last else None
    first = m.made(middle.inputs[0], "Reshape") if middle else None
    heads = m.made(first.inputs[0], "Transpose") if first else None
    whole = m.made(heads.inputs[0], "Reshape") if heads else None
    if not (last and middle and first and heads and whole):
        return None
    if middle.attributes.get("perm") != [0, 2, 1] or heads.attributes.get("perm") != [0, 2, 1, 3]:
        return None
    b, c, a = (m.ints(node.inputs[1]) for node in (whole, first, last))
    fits = len(b) == len(a) == 4 and len(c) == 3 and c[1:] == [b[1], b[3]] == a[:1:-1]
    return first.inputs[0] if fits and b[2] in (a[1], -1) else None


def _times(m: Matcher, name: str) -> tuple[str, float]:
    """x and a number, of their product."""
    node = m.made(name, "Mul", "Div")
    for x, c in m.either(node) if node else ():
        number = m.number(c)
        if node and number and (node.kind == "Mul" or c == node.inputs[1]):
            return x, number if node.kind == "Mul" else 1 / number
    return name, 1.0


def _attention(m: Matcher, node: Node) -> Any:
    """softmax(q k^T scale + mask) v, of four dimensions."""
    softmax, guarded = m.made(node.inputs[0], "Softmax"), False
    guard = m.made(node.inputs[0], "Where")
    if guard:  # zeros where a query may see nothing
        own = m.made(guard.inputs[0], "IsNaN")
        guarded = bool(own and own.inputs[0] == guard.inputs[2])
        guarded = guarded and m.is_number(guard.inputs[1], 0.0)
        softmax = m.made(guard.inputs[2], "Softmax") if guarded else None
    if softmax is None or softmax.attributes.get("axis", -1) not in (-1, 3):
        return None
    scores, mask = softmax.inputs[0], ""
    total = m.made(scores, "Add")
    for inner, other in m.either(total) if total else ():
        if m.made(_times(m, inner)[0], "MatMul"):
            scores, mask = inner, other
            break
    scores, scale = _times(m, scores)
    product = m.made(scores, "MatMul")
    if product is None:
        return None
    (q, a), (k, b) = (_times(m, name) for name in product.inputs)
    keys = _turned(m, k)
    if keys is None:
        return None
    inputs = [q, keys, node.inputs[1]] + ([mask] if mask else [])
    how = {"scale": scale * a * b}
    return "Attention", inputs, how if guarded else {**how, "parts": 1}


_ROOTS: dict[str, list[tuple[str, Callable[[Matcher, Node], Any]]]] = {
    "MatMul": [("attention", _attention)],
    "Add": [("layer norm", _layer_norm)],
    "Mul": [("gelu", _gelu), ("rms norm", _rms_norm)],
}


def recognised(graph: Graph) -> tuple[Graph, dict[str, int]]:
    """The graph with layers in place of their parts, and how many of each form."""
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
                break
        nodes.append(node)
    new = Graph(graph.name)
    new.inputs, new.outputs, new.constants = graph.inputs, graph.outputs, graph.constants
    new.nodes = _needed(nodes, graph)
    return new, counts


def _needed(nodes: list[Node], graph: Graph) -> list[Node]:
    """Nodes whose results anybody reads."""
    wanted, kept = {o.name for o in graph.outputs}, []
    for node in reversed(nodes):
        if any(n in wanted for n in node.outputs):
            kept.append(node)
            wanted.update(node.inputs)
            for inner in node.graphs():
                wanted |= inner.reads() | {o.name for o in inner.outputs}
    return kept[::-1]
