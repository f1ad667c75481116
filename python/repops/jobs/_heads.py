"""Attention heads, which are side by side in rows of tokens (SPEC.md section 5)."""

from __future__ import annotations

from collections.abc import Sequence

from ._graph import Node, Value
from ._memory import product
from ._pieces import Pieces
from ._views import View

HEADS = (0, 2, 1, 3)  # the transpose that split_heads and join_heads stand for
STACKED = (1, 3, 0, 2, 4)  # the transpose that joins stacked queries, keys and values
HEADS_PARTS = 8  # the limit of parts in split_heads and join_heads


class Heads(Pieces):
    def transpose(self, node: Node) -> View:
        view, order = self.view(node.inputs[0]), node.attributes[: len(node.dims)]
        if order == (1, 0, 2):  # a batch of one
            return self._heads(node, view, (1, *view.dims)) or self._back(node, view, order)
        if order == HEADS:
            return self._heads(node, view, view.dims) or self._back(node, view, order)
        if order == STACKED:
            return self._stacked(node, view) or self._back(node, view, order)
        return self._back(node, view, order)

    def _back(self, node: Node, view: View, order: Sequence[int]) -> View:
        """Replaces two transposes by one, or by none if they cancel."""
        before = self.made_by(view.base, "transpose")
        if before is None or view.base.dims != view.dims:
            return self.same(node)
        order = tuple(before.attributes[i] for i in order)
        if order == tuple(range(len(order))):
            return View(before.inputs[0], node.dims, node)
        words = (*order, *node.attributes[len(order) :])
        new = self.append(node._replace(inputs=before.inputs, attributes=words))
        return View(new, node.dims, node)

    def _heads(self, node: Node, view: View, dims: tuple[int, ...]) -> View | None:
        """Turns a transpose of [b, x, y, d] to [b, y, x, d] into split_heads or join_heads, if it
        splits rows of tokens into heads or joins heads to rows."""
        b, x, y, d = dims
        joined, split = (
            self.made_by(view.base, "join_heads"),
            self.made_by(view.base, "split_heads"),
        )
        if joined is not None and joined.inputs[0].dims == (b, y, x, d):
            return View(joined.inputs[0], node.dims, node)
        if split is not None and split.attributes == (1, 0, x) and split.dims == dims:
            return View(split.inputs[0], node.dims, node)
        if view.base.dims == dims and self._has_heads(view.base):
            new = self.put("join_heads", node, (view.base,), (b, y, x * d))
            return View(new, node.dims, node)
        several = self._parts(view.base, x, (1, y, d)) if b == 1 else []
        if several:
            return self._join(node, several)
        if view.base.dims[-1] != y * d or view.base.dims == view.dims:
            return None
        source, parts, number = self._columns(view.base)
        row = self.real(View(source, (b, x, parts * y * d), view.node), node)
        new = self.put("split_heads", node, (row,), (b, y, x, d), (parts, number, y))
        return View(new, node.dims, node)

    def _has_heads(self, v: Value) -> bool:
        """Is it a result of attention, or of its gradient, which has heads?"""
        node = self.nodes[v.number] if v.kind == "node" else None
        name = "" if node is None else node.operator.name
        return name in ("attn_out", "rope", "repeat_heads_grad") or (
            node is not None and name == "matmul" and node.attributes[0] == 2
        )

    def _columns(self, v: Value) -> tuple[Value, int, int]:
        """If v is one of n equal ranges of columns of a value: that value, n, and the range's
        number; else v itself, 1, 0."""
        node = self.made_by(v, "slice")
        if node is None:
            return v, 1, 0
        axis, start, length, step = node.attributes
        row = node.inputs[0].dims[-1]
        last = axis == len(v.dims) - 1 and step == 1
        if not last or start % length or row % length or row // length > HEADS_PARTS:
            return v, 1, 0
        return node.inputs[0], row // length, start // length

    def _stacked(self, node: Node, view: View) -> View | None:
        """Turns [p, b, h, t, d] to [b, t, p, h, d]: joins p stacked parts side by side."""
        p, b, h, t, d = view.dims
        parts = self._parts(view.base, p * h, (b, t, d))
        return self._join(node, parts) if len(parts) == p else None

    def _parts(self, v: Value, heads: int, size: tuple[int, int, int]) -> list[View]:
        """The parts of a concatenation that holds `heads` heads in all; []: v is no such
        concatenation."""
        whole, (b, t, d) = self.made_by(v, "concat_axis"), size
        if whole is None or product(whole.dims[: whole.attributes[0]]) != 1:
            return []
        count = len(whole.inputs)
        alike = len({v.dims for v in whole.inputs}) == 1 and heads % count == 0
        origins = [self.origin(v) for v in whole.inputs]
        if not alike or count > HEADS_PARTS or not all(map(self._has_heads, origins)):
            return []
        return [View(v, (b, heads // count, t, d)) for v in origins]

    def _join(self, node: Node, parts: list[View]) -> View:
        b, h, t, d = parts[0].dims
        heads = [self.real(part, node) for part in parts]
        new = self.put("join_heads", node, heads, (b, t, len(parts) * h * d))
        return View(new, node.dims, node)

    def concat(self, node: Node) -> View:
        """Turns a concatenation of rows, each of joined heads, into one join_heads."""
        views = [self.view(v) for v in node.inputs]
        joins = [self.made_by(v.base, "join_heads") for v in views]
        axis = node.attributes[0]
        alone = len(views) == 1 or product(node.dims[axis + 1 :]) != 1 or len(views) > HEADS_PARTS
        if alone or not all(j is not None and len(j.inputs) == 1 for j in joins):
            return super().concat(node)
        heads = [j.inputs[0] for j in joins if j is not None]
        rows = {v.base.dims[:2] for v in views}
        wide = all(v.dims[axis] == v.base.dims[2] for v in views)
        if not wide or len({v.dims for v in heads}) != 1 or len(rows) != 1:
            return super().concat(node)
        (b, t), width = rows.pop(), product(node.dims[axis:])
        new = self.put("join_heads", node, heads, (b, t, width))
        return View(new, node.dims, node)
