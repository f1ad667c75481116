"""Reads an .onnx file, and files of external data beside it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._library import Error
from ._external import external
from ._graph import Function, Graph, Node, Port, Reference, Whole, shown
from ._limits import (
    DEPTH_MAX,
    FILE_BYTES_MAX,
    NAME_BYTES_MAX,
    NODES_MAX,
    OPSET_MAX,
    OPSET_MIN,
)
from ._types import sized, type_of

try:
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from onnx import numpy_helper
except ImportError:
    raise Error("repops.onnx needs the package onnx (pip install onnx)") from None

MAIN = ("", "ai.onnx")  # both name ONNX's own domain
_BITS = {1: 4, 2: 1, 3: 1, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 16: 2}  # bytes of an element


class Reader:
    """Reads one file."""

    def __init__(self, path: Path) -> None:
        self.path, self.file, self.count = path, shown(path.name), 0

    def refuse(self, why: str) -> Error:
        return Error(f"{self.file}: {why}")

    # ---- the file ----

    def read(self) -> Whole:
        model = self._parsed()
        self._checked(model)
        opsets = self._opsets(model.opset_import)
        functions = {}
        for f in model.functions:
            functions[_domain(f.domain), f.name] = self._function(f, opsets)
        graph = self._graph(model.graph, opsets, 0)
        producer = shown(f"{model.producer_name} {model.producer_version}".strip())
        return Whole(self.file, graph, opsets, functions, producer)

    def _parsed(self) -> Any:
        try:
            if not self.path.is_file():
                raise self.refuse("is no file")
            size = self.path.stat().st_size
            if size > FILE_BYTES_MAX:
                raise self.refuse(f"has {size} bytes; expected at most {FILE_BYTES_MAX}")
            content = self.path.read_bytes()
        except OSError as error:
            raise Error(f"cannot read {shown(str(self.path))}: {error.strerror}") from None
        try:
            return onnx.ModelProto.FromString(content)
        except DecodeError:
            raise self.refuse("is no ONNX model: protobuf cannot read it") from None

    def _checked(self, model: Any) -> None:
        """Runs onnx's own checker: attributes by each operator's schema, names, order, cycles."""
        self._deep(model.graph, 0)
        for f in model.functions:
            self._deep(f, 0)
        light = onnx.ModelProto()
        light.CopyFrom(model)
        _without_data(light.graph)
        try:
            onnx.checker.check_model(light)
        except onnx.checker.ValidationError as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            raise self.refuse(shown_line(lines[0] if lines else "no valid model")) from None
        except (ValueError, TypeError, RuntimeError) as error:
            raise self.refuse(shown_line(str(error))) from None

    def _deep(self, graph: Any, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise self.refuse(f"graphs lie in more than {DEPTH_MAX} others")
        self.count += len(graph.node)
        if self.count > NODES_MAX:
            raise self.refuse(f"has more than {NODES_MAX} nodes")
        for node in graph.node:
            for name in (node.name, *node.input, *node.output):
                if len(name) > NAME_BYTES_MAX:
                    raise self.refuse(f"a name has {len(name)} letters; at most {NAME_BYTES_MAX}")
            for a in node.attribute:
                for inner in [a.g] if a.HasField("g") else a.graphs:
                    self._deep(inner, depth + 1)

    def _opsets(self, imports: Any) -> dict[str, int]:
        opsets = {_domain(o.domain): int(o.version) for o in imports}
        version = opsets.get("", OPSET_MIN)
        if not OPSET_MIN <= version <= OPSET_MAX:
            raise self.refuse(f"is of opset {version}; expected {OPSET_MIN} to {OPSET_MAX}")
        return opsets

    # ---- graphs ----

    def _function(self, f: Any, outer: dict[str, int]) -> Function:
        opsets = {**outer, **self._opsets(f.opset_import)}
        graph = Graph(f.name)
        graph.inputs = [Port(n, "tensor", 0, None) for n in f.input]
        graph.outputs = [Port(n, "tensor", 0, None) for n in f.output]
        graph.nodes = [self._node(n, i + 1, opsets, 0) for i, n in enumerate(f.node)]
        defaults = {a.name: self._attribute(a, opsets, 0, f.name) for a in f.attribute_proto}
        return Function(graph, opsets, defaults)

    def _graph(self, g: Any, opsets: dict[str, int], depth: int) -> Graph:
        graph = Graph(g.name)
        if g.sparse_initializer:
            raise self.refuse("has sparse initializers; expected dense ones")
        for t in g.initializer:
            graph.constants[t.name] = self.tensor(t, f"initializer {shown(t.name)}")
        graph.inputs = [self._port(i) for i in g.input if i.name not in graph.constants]
        graph.outputs = [self._port(o) for o in g.output]
        graph.nodes = [self._node(n, i + 1, opsets, depth) for i, n in enumerate(g.node)]
        return graph

    def _port(self, v: Any) -> Port:
        kind, t = v.type.WhichOneof("value") or "tensor_type", v.type
        while kind in ("sequence_type", "optional_type"):
            t = getattr(t, kind).elem_type
            inner = t.WhichOneof("value") or "tensor_type"
            if inner == "tensor_type":
                return Port(v.name, kind.removesuffix("_type"), t.tensor_type.elem_type, None)
            kind = inner
        if kind != "tensor_type":
            raise self.refuse(f"{shown(v.name)} is a {kind}; expected a tensor")
        dims: list[int | str | None] | None = None
        if t.tensor_type.HasField("shape"):
            dims = [_dim(d) for d in t.tensor_type.shape.dim]
        return Port(v.name, "tensor", t.tensor_type.elem_type, dims)

    def _node(self, n: Any, number: int, opsets: dict[str, int], depth: int) -> Node:
        node = Node(self.file, number, _domain(n.domain), n.op_type, n.name)
        node.version = opsets.get(node.domain, 0)
        node.inputs, node.outputs = list(n.input), list(n.output)
        for a in n.attribute:
            node.attributes[a.name] = self._attribute(a, opsets, depth, node.where)
        return node

    def _attribute(self, a: Any, opsets: dict[str, int], depth: int, where: str) -> Any:
        if a.ref_attr_name:
            return Reference(a.ref_attr_name)
        if a.type == onnx.AttributeProto.GRAPH:
            return self._graph(a.g, opsets, depth + 1)
        if a.type == onnx.AttributeProto.TENSOR:
            return self.tensor(a.t, f"{a.name} of {where}")
        if a.type == onnx.AttributeProto.TYPE_PROTO:
            return None  # the type of an absent optional value
        read = _PLAIN.get(a.type)
        if read is None:
            kind = onnx.AttributeProto.AttributeType.Name(a.type)
            raise Error(
                f"{where}: {shown(a.name)} is an attribute of type {kind}, which is refused"
            )
        return read(a)  # type: ignore[no-untyped-call]

    # ---- tensors ----

    def tensor(self, t: Any, what: str) -> torch.Tensor:
        what = what if what.startswith(self.file) else f"{self.file}, {what}"
        dtype = type_of(t.data_type, what)
        dims = sized(t.dims, what)
        if t.HasField("segment"):
            raise Error(f"{what} lies in segments, which is refused")
        if t.data_location == onnx.TensorProto.EXTERNAL:
            t = self._with_data(t, dims, what)
        if t.HasField("raw_data"):
            want = math.prod(dims) * _BITS[t.data_type]
            if len(t.raw_data) != want:
                raise Error(f"{what} has {len(t.raw_data)} bytes; its shape needs {want}")
        try:
            array = numpy_helper.to_array(t)
        except (ValueError, TypeError, KeyError) as error:
            raise Error(f"{what}: {shown_line(str(error))}") from None
        if array.shape != dims:
            raise Error(f"{what} has {array.size} elements; its shape needs {math.prod(dims)}")
        if t.data_type in (10, 16):
            array = array.astype(np.float32)
        return torch.from_numpy(np.array(array, order="C")).to(dtype)

    def _with_data(self, t: Any, dims: tuple[int, ...], what: str) -> Any:
        own = onnx.TensorProto(data_type=t.data_type, dims=dims)
        entries = {e.key: e.value for e in t.external_data}
        own.raw_data = external(
            self.path.parent, entries, math.prod(dims) * _BITS[t.data_type], what
        )
        return own


def _domain(name: str) -> str:
    return "" if name in MAIN else name


def _dim(d: Any) -> int | str | None:
    kind = d.WhichOneof("value")
    return int(d.dim_value) if kind == "dim_value" else d.dim_param or None if kind else None


def _without_data(graph: Any) -> None:
    """Strips data: the checker would look for external files in the working directory."""
    for t in graph.initializer:
        _light(t)
    for node in graph.node:
        for a in node.attribute:
            if a.HasField("t"):
                _light(a.t)
            for inner in [a.g] if a.HasField("g") else a.graphs:
                _without_data(inner)


def _light(t: Any) -> None:
    if t.data_location == onnx.TensorProto.EXTERNAL:
        name, dims = t.name, [0]
        t.Clear()
        t.name, t.data_type = name, 1
        t.dims.extend(dims)


def shown_line(text: str) -> str:
    first = " ".join(text.split())
    told = "".join(c if c.isprintable() else "?" for c in first)
    return told if len(told) <= 300 else told[:300] + "..."


_A = onnx.AttributeProto
_PLAIN = {
    _A.FLOAT: lambda a: float(a.f),
    _A.INT: lambda a: int(a.i),
    _A.STRING: lambda a: a.s.decode(errors="replace"),
    _A.FLOATS: lambda a: [float(x) for x in a.floats],
    _A.INTS: lambda a: [int(x) for x in a.ints],
    _A.STRINGS: lambda a: [s.decode(errors="replace") for s in a.strings],
}


def read(path: Any) -> Whole:
    """Reads a model. Raises Error with one line that says what is wrong, and where."""
    return Reader(Path(path)).read()
