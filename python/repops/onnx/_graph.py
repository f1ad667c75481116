"""A model as it was read: graphs of nodes, independent of protobuf."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import torch

Tensor = torch.Tensor
NAME_SHOWN = 60  # characters of a name that errors show


def shown(name: str) -> str:
    """A name from a file, made printable and short for an error."""
    told = "".join(c if c.isprintable() else "?" for c in name)
    return told if len(told) <= NAME_SHOWN else told[:NAME_SHOWN] + "..."


class Port(NamedTuple):
    """An input or output of a model. kind: "tensor", "sequence" or "optional". dims: None if no
    shape is given; else for each dimension a number, a name or None for unknown."""

    name: str
    kind: str
    type: int
    dims: list[int | str | None] | None


class Node:
    """A node. version: of its domain's operators. number: its position in its graph, from 1."""

    def __init__(self, file: str, number: int, domain: str, kind: str, name: str) -> None:
        self.file, self.number, self.domain, self.kind, self.name = file, number, domain, kind, name
        self.version = 0
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.attributes: dict[str, Any] = {}

    @property
    def where(self) -> str:
        called = f" {shown(self.name)}" if self.name else ""
        return f"{self.file}, node {self.number} ({self.told}{called})"

    @property
    def told(self) -> str:
        """The operator, with its domain unless that is ONNX's own."""
        return shown(f"{self.domain}.{self.kind}" if self.domain else self.kind)

    @cached_property
    def stub(self) -> Callable[..., Any]:
        return _stub(self)

    def graphs(self) -> Iterator[Graph]:
        for value in self.attributes.values():
            if isinstance(value, Graph):
                yield value


def _calls(function: Callable[..., Any], call: Any, inputs: Sequence[Any]) -> Any:
    return function(call, *inputs)


def _stub(node: Node) -> Callable[..., Any]:
    """A function that calls its argument, with the model as its file and the node as its line, so
    that errors of a capture, and `verde graph`, name nodes as they name lines of a script."""
    called = f" {shown(node.name)}" if node.name else ""
    file = f"{node.file}, {node.told}{called}"
    code = _calls.__code__.replace(co_filename=file, co_firstlineno=node.number - 1)
    return types.FunctionType(code, {})


class Graph:
    """Nodes, sorted so that each reads what earlier ones made."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[Port] = []
        self.outputs: list[Port] = []
        self.constants: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self._last: dict[int, list[str]] | None = None

    def tensors(self) -> Iterator[Tensor]:
        """The constants of the graph's nodes, and of graphs inside them."""
        yield from self.constants.values()
        for node in self.nodes:
            yield from (v for v in node.attributes.values() if isinstance(v, torch.Tensor))
            for inner in node.graphs():
                yield from inner.tensors()

    def reads(self) -> set[str]:
        """Names that nodes read, including nodes of inner graphs."""
        found = {n for node in self.nodes for n in node.inputs}
        for node in self.nodes:
            for inner in node.graphs():
                found |= inner.reads() | {o.name for o in inner.outputs}
        return found

    def last(self) -> dict[int, list[str]]:
        """For each node's position, the names that no later node reads."""
        if self._last is None:
            at: dict[str, int] = {}
            for i, node in enumerate(self.nodes):
                names = set(node.inputs) | set(node.outputs)
                for inner in node.graphs():
                    names |= inner.reads() | {o.name for o in inner.outputs}
                at.update(dict.fromkeys(names, i))
            for o in self.outputs:
                at.pop(o.name, None)
            self._last = {}
            for name, i in at.items():
                self._last.setdefault(i, []).append(name)
        return self._last


class Function(NamedTuple):
    """A function defined by the model: a graph whose nodes may take attributes from the call."""

    graph: Graph
    opsets: dict[str, int]
    defaults: dict[str, Any]


class Reference(NamedTuple):
    """An attribute of a function's node whose value the call gives."""

    name: str


class Whole(NamedTuple):
    """A model. functions: by (domain, name and overload)."""

    path: str
    graph: Graph
    opsets: dict[str, int]
    functions: dict[tuple[str, str], Function]
    producer: str
