"""Grouped products, whose group sizes depend on the step, by operators of constant sizes.

An element's bits depend only on its row and its column, so each row is multiplied with the
matrices of all groups, and its own group's product is chosen. Where a product sums over a group's
terms, these are moved to the front, and what is behind them is zero in both operands, which changes
no bit (SPEC.md 3.1). Other groups' terms are not masked by a product with 0: they may be NaN."""

from __future__ import annotations

from ._aten import AT_MOST, EQUAL, LESS, multiple
from ._graph import F32, I32, Value
from ._lower import FUSED, Lower, rule
from ._record import Place


@rule(FUSED, "grouped_mm")
def _grouped_mm(self: Lower, a: Place, b: Place, ends: Place) -> Value:
    """Groups are of rows of a, of columns of b, or of terms if both are matrices."""
    x, y, groups = self.read(a), self.read(b), ends.size[0]
    last = len(a.size) == 2 and len(b.size) == 2
    size = a.size[-1] if last else b.size[-1] if len(a.size) == 3 else a.size[0]
    # The block has refused ends outside of [0, size].
    offs = self.typed(ends, I32).within(0, size)
    if last:
        at = _terms(self, offs, size)
        parts = [_grouped(self, v, at, groups) for v in (self.transpose(x, (1, 0)), y)]
        return self.graph.emit("matmul", *parts, batch_dims=1, trans=1)
    if len(a.size) == 2:
        rows = self.expand(x, (groups, *x.dims))
        z = self.graph.emit("matmul", rows, y, batch_dims=1)
        return _chosen(self, z, offs)
    z = self.graph.emit("matmul", x, self.expand(y, (groups, *y.dims)), batch_dims=1)
    return self.transpose(_chosen(self, self.transpose(z, (0, 2, 1)), offs), (1, 0))


def _with_zeros(self: Lower, v: Value) -> Value:
    """v with a row of zeros appended."""
    return self.graph.emit("pad", v, axis=0, before=0, after=1, value=0.0)


def _numbers(self: Lower, count: int) -> Value:
    return self.graph.emit("iota", shape=(count,), dtype=I32).within(0, count - 1)


def _chosen(self: Lower, z: Value, ends: Value) -> Value:
    """[groups, rows, n] to [rows, n]: for each row its own group's product; zeros without a
    group."""
    groups, rows, n = z.dims
    table = _with_zeros(self, self.reshape(z, (groups * rows, n)))
    row = _numbers(self, rows)
    over = self.expand(self.reshape(row, (rows, 1)), (rows, groups))
    # A row's group is the number of groups that end at or before it.
    ended = self.graph.emit("compare", self.expand(ends, over.dims), over, kind=AT_MOST)
    count = self.rows("reduce_sum", groups, self.cast(ended.within(0, 1), F32))
    own = self.graph.emit("cast", self.reshape(count, (rows,)), dtype_=I32).within(0, groups)
    none = self.graph.emit("compare", own, self.fill(groups, (1,), I32), kind=EQUAL).within(0, 1)
    at = self.iadd(multiple(self, own, rows), row)
    at = self.where(none, self.fill(groups * rows, (rows,), I32), at)
    return self.graph.emit("gather", table, at, axis=0)


def _terms(self: Lower, ends: Value, size: int) -> Value:
    """[groups, size]: the indices of a group's terms, padded with that of the row of zeros."""
    groups = ends.numel
    starts = self.fill(0, (1,), I32)
    if groups > 1:
        starts = self.concat(0, [starts, self.slice(ends, 0, 0, groups - 1)])
    whole = (groups, size)
    first, end = (self.expand(self.reshape(v, (groups, 1)), whole) for v in (starts, ends))
    at = self.iadd(first, _numbers(self, size))
    inside = self.graph.emit("compare", at, end, kind=LESS).within(0, 1)
    return self.where(inside, at, self.fill(size, whole, I32))


def _grouped(self: Lower, v: Value, at: Value, groups: int) -> Value:
    """[groups, size, n]: each group's rows of v, padded with zeros."""
    flat = self.reshape(at, (at.numel,))
    y = self.graph.emit("gather", _with_zeros(self, v), flat, axis=0)
    return self.reshape(y, (groups, *v.dims))
