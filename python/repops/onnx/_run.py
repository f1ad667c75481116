"""Runs graphs node by node; each node is a function of torch operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import torch

from .._library import Error
from ._graph import Function, Graph, Node, Reference, shown
from ._limits import DEPTH_MAX, NODES_MAX
from ._read import shown_line
from ._table import REFUSED, TABLE, Entry
from ._types import sized

Tensor = torch.Tensor
T = TypeVar("T")
# Exceptions that an operator raises for unexpected inputs.
FAULTS = (
    RuntimeError, ValueError, IndexError, TypeError, KeyError, ArithmeticError, AttributeError,
    AssertionError,
)  # fmt: skip
_KINDS = {int: "an integer", float: "a number", str: "a text", list: "a list"}


def mark_known(value: T) -> T:
    """Marks tensors that follow from constants and shapes alone, so that Python may read them."""
    for t in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(t, Tensor):
            t._known = True  # type: ignore[attr-defined]
    return value


def is_known(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(is_known(v) for v in value)
    return value is None or getattr(value, "_known", False)


class Scope:
    """The values of a graph by name, and the scope of the graph around it."""

    def __init__(self, outer: Scope | None) -> None:
        self.outer, self.values = outer, dict[str, Any]()

    def find(self, name: str) -> Any:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        raise Error(f"nothing has made {shown(name)} before it is read")


class Call:
    """A call of an operator: its attributes, and how to run graphs in them."""

    def __init__(self, run: Run, node: Node, scope: Scope, given: dict[str, Any]) -> None:
        self.run, self.node, self.scope = run, node, scope
        self.version, self.outputs = node.version, node.outputs
        self.attributes = {
            name: given.get(v.name) if isinstance(v, Reference) else v
            for name, v in node.attributes.items()
        }

    @overload
    def get(self, name: str) -> Any: ...
    @overload
    def get(self, name: str, default: list[Any]) -> list[Any]: ...
    @overload
    def get(self, name: str, default: T) -> T: ...
    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, which must have the default's type."""
        found = self.attributes.get(name)
        if found is None or default is None:
            return default if found is None else found
        taken = (int, float) if isinstance(default, float) else type(default)
        if not isinstance(found, taken):
            raise Error(f"{name} is {shown(repr(found))}; expected {_KINDS[type(default)]}")
        return found

    @overload
    def need(self, name: str) -> int: ...
    @overload
    def need(self, name: str, kind: type[list[Any]]) -> list[Any]: ...
    @overload
    def need(self, name: str, kind: Callable[[], T]) -> T: ...
    def need(self, name: str, kind: Callable[[], Any] = int) -> Any:
        if self.attributes.get(name) is None:
            raise Error(f"it has no {name}")
        return self.get(name, kind())

    def has(self, i: int) -> bool:
        """Is output i used?"""
        return len(self.outputs) > i and self.outputs[i] != ""

    def inner(self, name: str, inputs: Sequence[Any]) -> list[Any]:
        """Runs a graph in an attribute."""
        graph = self.attributes.get(name)
        if not isinstance(graph, Graph):
            raise Error(f"{name} is no graph")
        if len(inputs) != len(graph.inputs):
            raise Error(f"its graph has {len(graph.inputs)} inputs; expected {len(inputs)}")
        return self.run.graph(graph, inputs, self.scope, {})


class Run:
    """One pass through a model."""

    def __init__(self, functions: dict[tuple[str, str], Function]) -> None:
        self.functions, self.count, self.depth = functions, 0, 0
        self.moved: dict[str, Tensor] = {}  # running means that a training norm has updated

    def graph(
        self, graph: Graph, inputs: Sequence[Any], outer: Scope | None, given: dict[str, Any]
    ) -> list[Any]:
        scope = Scope(outer)
        scope.values.update(graph.constants)
        mark_known(list(graph.constants.values()))
        scope.values.update({p.name: v for p, v in zip(graph.inputs, inputs)})
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise Error(f"functions and graphs lie in more than {DEPTH_MAX} others")
        self.nodes(graph, scope, given)
        self.depth -= 1
        return [scope.find(o.name) for o in graph.outputs]

    def nodes(self, graph: Graph, scope: Scope, given: dict[str, Any]) -> None:
        last = graph.last()
        for i, node in enumerate(graph.nodes):
            results = self.node(node, scope, given)
            scope.values.update({n: v for n, v in zip(node.outputs, results) if n})
            for name in last.get(i, ()):
                scope.values.pop(name, None)

    def node(self, node: Node, scope: Scope, given: dict[str, Any]) -> Sequence[Any]:
        self.count += 1
        if self.count > NODES_MAX:
            raise Error(f"{node.where}: more than {NODES_MAX} nodes are run")
        try:
            return self._node(node, scope, given)
        except Error as error:
            told = str(error)
            raise Error(told if told.startswith(node.file) else f"{node.where}: {told}") from None
        except (
            RuntimeError,
            ValueError,
            IndexError,
            TypeError,
            KeyError,
            ArithmeticError,
        ) as error:
            told = f"{type(error).__name__}: {error}"
            raise Error(f"{node.where}: {shown_line(told)}") from error
        except (MemoryError, RecursionError) as error:
            raise Error(f"{node.where}: {type(error).__name__}") from None

    def _node(self, node: Node, scope: Scope, given: dict[str, Any]) -> Sequence[Any]:
        inputs = [scope.find(n) if n else None for n in node.inputs]
        while inputs and inputs[-1] is None and not node.inputs[len(inputs) - 1]:
            inputs.pop()
        call = Call(self, node, scope, given)
        function = self.functions.get((node.domain, node.kind))
        if function is not None:
            return self._function(function, call, inputs)
        entry = find(node)
        results = node.stub(entry.function, call, inputs)
        results = results if isinstance(results, tuple) else (results,)
        if sum(map(call.has, range(len(node.outputs)))) > len(results):
            raise Error(f"it has {len(node.outputs)} outputs, of which {len(results)} are made")
        for t in results:
            if isinstance(t, Tensor):
                sized(t.shape, "its output")
        if not entry.random and is_known(inputs) and not any(True for _ in node.graphs()):
            mark_known(results)
        return results

    def _function(self, function: Function, call: Call, inputs: Sequence[Any]) -> Sequence[Any]:
        given = {**function.defaults, **call.attributes}
        more = [None] * (len(function.graph.inputs) - len(inputs))
        return self.graph(function.graph, [*inputs, *more], None, given)


def find(node: Node) -> Entry:
    key = node.domain, node.kind
    if key in TABLE:
        return TABLE[key]
    why = REFUSED.get(key, "no operator of this name is known")
    raise Error(f"{node.told} of opset {node.version} is refused: {why}")
