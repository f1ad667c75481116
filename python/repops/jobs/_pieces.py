"""Simplifies slices and concatenations."""

from __future__ import annotations

from collections.abc import Sequence

from ._graph import Node, Value
from ._memory import product
from ._views import View, Views


class Pieces(Views):
    def slice(self, node: Node) -> View:
        """Turns a slice of contiguous elements into one of a row; of a concatenation, into its
        parts."""
        axis, start, length, step = node.attributes
        view = self.view(node.inputs[0])
        if product(view.dims[:axis]) != 1 or step != 1:
            return self.same(node)
        inner = product(view.dims[axis + 1 :])
        row = self.real(View(view.base, (product(view.dims),), view.node), node)
        return self._joined(node, self._cut(node, row, start * inner, length * inner))

    def concat(self, node: Node) -> View:
        """Turns a concatenation of contiguous parts into one of a row."""
        if product(node.dims[: node.attributes[0]]) != 1:
            return self.same(node)
        parts: list[Value] = []
        for v in map(self.view, node.inputs):
            row = self.real(View(v.base, (product(v.dims),), v.node), node)
            for part in self._cut(node, row, 0, row.dims[0]):
                self._add_part(node, parts, part)
        return self._joined(node, parts)

    def _joined(self, node: Node, parts: Sequence[Value]) -> View:
        size = sum(v.dims[0] for v in parts)
        whole = parts[0] if len(parts) == 1 else self.put("concat_axis", node, parts, (size,), (0,))
        return View(self.origin(whole), node.dims, node)

    def _cut(self, node: Node, row: Value, start: int, length: int) -> list[Value]:
        """Elements start..start + length of a row, as a list of parts."""
        whole, filled = self.made_by(row, "concat_axis"), self.made_by(row, "fill")
        parts: list[Value] = []
        if start == 0 and length == row.dims[0] and whole is None:
            parts.append(row)
        elif filled is not None:
            parts.append(self.put("fill", node, (), (length,), filled.attributes))
        elif whole is None:
            before = self.made_by(row, "slice")
            words = (0, start, length, 1)
            if before is not None and len(before.inputs[0].dims) == 1 and before.attributes[3] == 1:
                row, words = before.inputs[0], (0, before.attributes[1] + start, length, 1)
            parts.append(self.put("slice", node, (row,), (length,), words))
        for part in () if whole is None else whole.inputs:
            size = part.dims[0]
            first, end = max(start, 0), min(start + length, size)
            if first < end:
                parts += self._cut(node, part, first, end - first)
            start -= size
        return parts

    def _add_part(self, node: Node, parts: list[Value], part: Value) -> None:
        """Appends a part. A slice that continues the slice before it is merged with it."""
        before = self.made_by(parts[-1], "slice") if parts else None
        own = self.made_by(part, "slice")
        if before is None or own is None or before.inputs[0][:2] != own.inputs[0][:2]:
            parts.append(part)
            return
        (row,), (_, start, length, step) = before.inputs, before.attributes
        if len(row.dims) != 1 or step != 1 or own.attributes[1] != start + length:
            parts.append(part)
            return
        parts.pop()
        parts += self._cut(node, row, start, length + own.attributes[2])
