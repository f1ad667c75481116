"""The base of pattern matching: which node makes a value, and the values of constants."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from ._graph import Graph, Node


class Matcher:
    """Knows which node of a graph makes each value, and the values of constants."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.makers = {n: node for node in graph.nodes for n in node.outputs if n}
        self.values = dict(graph.constants)
        for node in graph.nodes:
            if node.kind == "Constant" and "value" in node.attributes and not node.domain:
                self.values[node.outputs[0]] = node.attributes["value"]
        self.made_constants: dict[str, torch.Tensor] = {}
        self.made_nodes: list[Node] = []

    def made(self, name: str, *kinds: str) -> Node | None:
        """The node that makes a value, if it is one of these operators of ONNX's own domain."""
        node = self.makers.get(name)
        return node if node and not node.domain and node.kind in kinds else None

    def constant(self, name: str, value: torch.Tensor) -> str:
        """Adds a constant; returns its name, made unique."""
        while name in self.values or name in self.makers:
            name += "_"
        self.values[name] = self.made_constants[name] = value
        return name

    def reshaped(self, like: Node, name: str, shape: list[int]) -> str:
        """Adds a node that reshapes a value, placed like `like`; returns the new name."""
        sizes = self.constant(f"{name}/shape", torch.tensor(shape))
        node = Node(like.file, like.number, "", "Reshape", like.name)
        node.version, node.inputs, node.outputs = like.version, [name, sizes], [sizes + "d"]
        self.made_nodes.append(node)
        return node.outputs[0]

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
        """Yields both operands, in both orders."""
        if len(node.inputs) == 2:
            a, b = node.inputs
            yield a, b
            yield b, a

    def with_number(self, name: str, kind: str, want: float) -> str | None:
        """x, if the value is x + want (kind Add) or x * want (kind Mul), or for kind Mul x / (1 /
        want)."""
        node = self.made(name, kind)
        for x, c in self.either(node) if node else ():
            if self.is_number(c, want):
                return x
        node = self.made(name, "Div") if kind == "Mul" else None
        if node and self.is_number(node.inputs[1], 1 / want):
            return node.inputs[0]
        return None

    def factors(self, name: str, depth: int = 3) -> list[str]:
        """The factors of a product, including those of nested products."""
        node = self.made(name, "Mul") if depth else None
        if node is None:
            return [name]
        return [f for i in node.inputs for f in self.factors(i, depth - 1)]

    def square(self, name: str) -> str | None:
        """x, if the value is x squared."""
        node = self.made(name, "Pow", "Mul")
        if node is None:
            return None
        x, y = node.inputs
        same = x == y if node.kind == "Mul" else self.is_number(y, 2.0)
        return x if same else None

    def last_mean(self, name: str) -> str | None:
        """x, if the value is its mean over the last axis, which stays with size 1."""
        node = self.made(name, "ReduceMean")
        if node is None or node.attributes.get("keepdims", 1) != 1:
            return None
        axes = node.attributes.get("axes")
        if axes is None and len(node.inputs) > 1 and node.inputs[1] in self.values:
            axes = self.values[node.inputs[1]].reshape(-1).tolist()
        return node.inputs[0] if axes == [-1] else None

    def spread(self, name: str) -> tuple[str, float] | None:
        """(x, eps), if the value is sqrt(mean(x x) + eps)."""
        root = self.made(name, "Sqrt")
        total = self.made(root.inputs[0], "Add") if root else None
        for mean, eps in self.either(total) if total else ():
            found, squared = self.number(eps), self.last_mean(mean)
            x = self.square(squared) if squared else None
            if found is not None and x:
                return x, found
        return None

    def scaled(self, name: str) -> tuple[str, float] | None:
        """(x, eps), if the value is x / sqrt(mean(x x) + eps)."""
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
