"""An ONNX model as a torch module."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .._library import Error
from ..torch._mode import reproducible
from ._graph import Graph, Node, Port, Whole, shown
from ._read import read
from ._recognise import recognised
from ._run import Run, Scope, find, is_known, mark_known
from ._table import TABLE
from ._types import HALVES, NAMES, type_of

Tensor = torch.Tensor
Chooses = Callable[[str, Tensor], bool]


class Model(torch.nn.Module):
    """Takes the inputs in order or by name; returns a tuple of the outputs.

    Initializers to be trained are parameters, all others are buffers; both keep their names. Values
    that follow from constants are computed once, at construction, in the block."""

    def __init__(
        self, whole: Whole, trained: Chooses | None = None, recognise: bool = True
    ) -> None:
        super().__init__()
        self.whole, self.graph = whole, whole.graph
        self.recognised: dict[str, int] = {}
        if recognise:
            self.graph, self.recognised = recognised(whole.graph)
        self.held: dict[str, tuple[torch.nn.Module, str]] = {}
        self.trained = [
            name
            for name, t in self.graph.constants.items()
            if trained is not None and t.dtype is torch.float32 and trained(name, t)
        ]
        self.moving = _moving(self.graph)
        self.folded = 0
        self.steps = self._unfolded()
        self._keep()

    @property
    def inputs(self) -> list[Port]:
        return self.graph.inputs

    @property
    def outputs(self) -> list[Port]:
        return self.graph.outputs

    # ---- constants ----

    def _unfolded(self) -> Graph:
        """The graph without nodes whose results follow from constants; these become constants."""
        rest = Graph(self.graph.name)
        rest.inputs, rest.outputs = self.graph.inputs, self.graph.outputs
        never = {*self.trained, *self.moving}
        known = {n: t for n, t in self.graph.constants.items() if n not in never}
        mark_known(list(known.values()))
        run, scope = Run(self.whole.functions), Scope(None)
        scope.values.update(known)
        with torch.no_grad(), reproducible(leftovers="list"):
            for node in self.graph.nodes:
                results = self._fold(run, node, scope)
                if results is None:
                    rest.nodes.append(node)
                    continue
                made = {n: t for n, t in zip(node.outputs, results) if n}
                scope.values.update(made)
                known.update(made)
                self.folded += 1
        rest.constants = {**self.graph.constants, **known}
        return rest

    def _fold(self, run: Run, node: Node, scope: Scope) -> Sequence[Any] | None:
        """The node's results if it only reads constants and all results are tensors, else None."""
        if any(True for _ in node.graphs()) or (node.domain, node.kind) in self.whole.functions:
            return None
        if any(n and n not in scope.values for n in node.inputs):
            return None
        entry = TABLE.get((node.domain, node.kind))
        if entry is None or entry.random:
            return None
        results = run.node(node, scope, {})
        whole = all(isinstance(t, Tensor) for t in results)
        return results if whole and is_known(list(results)) else None

    def _keep(self) -> None:
        """Turns constants that are read into parameters and buffers."""
        names = self.steps.reads() | {o.name for o in self.steps.outputs}
        kept = {n: t for n, t in self.steps.constants.items() if n in names}
        self.steps.constants = {}
        for name, t in kept.items():
            holder, key = self._holder(name)
            if name in self.trained:
                holder.register_parameter(key, torch.nn.Parameter(t))
            else:
                holder.register_buffer(key, t.contiguous())
            self.held[name] = holder, key
        inner = [t for node in self.steps.nodes for g in node.graphs() for t in g.tensors()]
        for function in self.whole.functions.values():
            inner += list(function.graph.tensors())
        for i, t in enumerate(inner):
            self.register_buffer(f"inner_{i}", t, persistent=False)

    def _holder(self, name: str) -> tuple[torch.nn.Module, str]:
        """The module for a dotted name, as PyTorch's exporter writes it, and the attribute in
        it."""
        parts = name.split(".")
        taken = hasattr(torch.nn.Module, parts[-1]) or len(parts) > 16
        if taken or not all(parts) or not all(p.isprintable() for p in parts):
            return self._plain(name)
        holder: torch.nn.Module = self
        for p in parts[:-1]:
            inner = holder._modules.get(p)
            if inner is None:
                if hasattr(holder, p):
                    return self._plain(name)
                inner = torch.nn.Module()
                holder.add_module(p, inner)
            holder = inner
        return self._plain(name) if hasattr(holder, parts[-1]) else (holder, parts[-1])

    def _plain(self, name: str) -> tuple[torch.nn.Module, str]:
        key = "constant_" + "".join(c if c.isalnum() else "_" for c in name[:60])
        while hasattr(self, key):
            key += "_"
        return self, key

    # ---- running ----

    def forward(self, *inputs: Any, **named: Any) -> tuple[Any, ...]:
        given = self._given(inputs, named)
        run, scope, never = Run(self.whole.functions), Scope(None), {*self.trained, *self.moving}
        for name, (holder, key) in self.held.items():
            t = getattr(holder, key)
            scope.values[name] = t if name in never else mark_known(t)
        scope.values.update(given)
        run.nodes(self.steps, scope, {})
        if self.training:
            self._move(run.moved)
        return tuple(scope.find(o.name) for o in self.outputs)

    def _move(self, moved: dict[str, Tensor]) -> None:
        """Stores running means and variances that a training norm has updated."""
        with torch.no_grad():
            for name in self.moving & moved.keys():
                holder, key = self.held[name]
                getattr(holder, key).copy_(moved[name])

    def _given(self, inputs: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
        names = [p.name for p in self.inputs]
        if len(inputs) > len(names):
            raise Error(f"{self.whole.path} has {len(names)} inputs; {len(inputs)} are given")
        given = {**dict(zip(names, inputs)), **named}
        for p in self.inputs:
            if p.name not in given and p.kind != "optional":
                raise Error(f"{self.whole.path}: input {shown(p.name)} is not given")
            self._fits(p, given.setdefault(p.name, None))
        for name in given.keys() - set(names):
            raise Error(f"{self.whole.path} has no input {shown(name)}")
        return given

    def _fits(self, p: Port, t: Any) -> None:
        what = f"{self.whole.path}: input {shown(p.name)}"
        if p.kind != "tensor" or not isinstance(t, Tensor):
            return
        want = type_of(p.type, what)
        if t.dtype is not want:
            raise Error(f"{what} is {str(t.dtype)[6:]}; expected {str(want)[6:]}")
        dims = p.dims
        if dims is None:
            return
        fits = len(dims) == t.dim() and all(
            d == n for d, n in zip(dims, t.shape) if isinstance(d, int)
        )
        if not fits:
            raise Error(f"{what} is {list(t.shape)}; expected {told_dims(dims)}")


def _moving(graph: Graph) -> set[str]:
    """Initializers that a training norm updates: running means and variances."""
    return {
        name
        for node in graph.nodes
        if node.kind == "BatchNormalization" and node.attributes.get("training_mode")
        for name in node.inputs[3:5]
        if name in graph.constants
    }


def told_dims(dims: list[int | str | None] | None) -> str:
    if dims is None:
        return "[...]"
    parts = ["?" if d is None else shown(d) if isinstance(d, str) else str(d) for d in dims]
    return f"[{', '.join(parts)}]"


def told_port(p: Port) -> str:
    kind = NAMES.get(p.type, "?")
    wide = " (computed as float32)" if p.type in HALVES else ""
    return f"{shown(p.name)}: {kind} {told_dims(p.dims)}{wide}"


def unknown_operators(whole: Whole) -> list[str]:
    """A line for each operator of a model that is not supported."""
    lines: dict[str, None] = {}

    def look(graph: Graph) -> None:
        for node in graph.nodes:
            if (node.domain, node.kind) not in whole.functions:
                try:
                    find(node)
                except Error as error:
                    lines.setdefault(f"{node.where}: {error}")
            for inner in node.graphs():
                look(inner)

    look(whole.graph)
    for function in whole.functions.values():
        look(function.graph)
    return list(lines)


def load(
    path: str | os.PathLike[str], trained: Chooses | None = None, recognise: bool = True
) -> Model:
    """Loads a model. trained: tells, by an initializer's name and content, whether it is a
    parameter; None: none is. recognise: replace groups of nodes by the layers that they form.

    Raises Error with one line that says what is wrong, and at which node."""
    whole = read(path)
    wrong = unknown_operators(whole)
    if wrong:
        more = f" (and {len(wrong) - 1} more nodes)" if len(wrong) > 1 else ""
        raise Error(wrong[0] + more)
    return Model(whole, trained, recognise)
