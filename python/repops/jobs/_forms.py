"""A captured graph in the forms that executors run as one function (docs/any-model.md).

What PyTorch's views leave between nodes is taken away where the bits are the same without it:
reshapes wait until a node needs their dimensions, what was moved there and back is itself again,
and heads are split from rows of tokens and joined to them as models built in C have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .._operators import bits
from .._table import TABLE
from ._graph import Graph, Node, Value
from ._memory import product

HEADS = (0, 2, 1, 3)  # the order in which split_heads and join_heads move dimensions
STACKED = (1, 3, 0, 2, 4)  # and in which queries, keys and values that are stacked are joined
PARTS_MAX = 8  # of split_heads and join_heads
UPDATES = {"adamw_m": (1, 2), "adamw_v": (1, 2), "sgd_m": (1, 3), "sgd_nesterov": (2, 3)}


class View(NamedTuple):
    """A value of the new graph with other dimensions. node: of the old one, after which a node that
    makes it is named."""

    base: Value
    dims: tuple[int, ...]
    node: Node | None = None


class Forms:
    def __init__(self, graph: Graph) -> None:
        self.graph, self.nodes = graph, list[Node]()
        self.views: list[View] = []  # of each node of the old graph
        self.behind: dict[int, list[int]] = {}  # nodes that come right after another one
        self._known: dict[object, Value] = {}

    def run(self) -> None:
        old = self.graph
        for node in old.nodes:
            self.views.append(RULES.get(node.operator.name, Forms.same)(self, node))
        outputs = [self._output(v) for v in old.output]
        loss = None if old.loss is None else self._output(old.loss)
        old.nodes, old.output, old.loss = self.nodes, outputs, loss
        old.reorder(self._order(), [])

    def _output(self, v: Value) -> Value:
        """What the next state takes is a node, as it was."""
        view = self.view(v)
        if v.kind == "node" and view.base.kind != "node":
            node = self.graph.nodes[v.number]
            return self.put("reshape", node, (view.base,), v.dims)
        return self.real(view)

    def _order(self) -> list[int]:
        hosted = {i for all_ in self.behind.values() for i in all_}
        order: list[int] = []
        todo = [i for i in reversed(range(len(self.nodes))) if i not in hosted]
        while todo:
            i = todo.pop()
            order.append(i)
            todo += reversed(self.behind.get(i, []))
        for i, node in enumerate(self.nodes):
            if node.operator.name in ("xent_grad", "xent_ignore_grad"):
                order = self._with_share(order, i)
        return order

    def _with_share(self, order: list[int], grad: int) -> list[int]:
        """What each row's loss is multiplied by comes before the loss, so that both directions can
        run at once."""
        first, share = self.nodes[grad].inputs[1], self.nodes[grad].inputs[4]
        while self.nodes[first.number].operator.name == "reduce_max":
            first = self.nodes[first.number].inputs[0]
        if first.kind != "node":
            return order
        at, needed, todo = order.index(first.number) + 1, set[int](), [share]
        late = set(order[at:])
        while todo:
            v = todo.pop()
            if v.kind == "node" and v.number in late and v.number not in needed:
                needed.add(v.number)
                todo += self.nodes[v.number].inputs
        row = {v.number for v in self.nodes[grad].inputs[1:3]}
        if needed & row:
            return order
        before = [i for i in order[at:] if i in needed]
        return [*order[:at], *before, *[i for i in order[at:] if i not in needed]]

    # ---- nodes and views of the new graph ----

    def view(self, v: Value) -> View:
        return self.views[v.number] if v.kind == "node" else View(v, v.dims)

    def made_by(self, v: Value, name: str) -> Node | None:
        node = self.nodes[v.number] if v.kind == "node" else None
        return node if node is not None and node.operator.name == name else None

    def _append(self, node: Node) -> Value:
        self.nodes.append(node)
        return Value("node", len(self.nodes) - 1, node.dtype, node.dims)

    def put(
        self,
        name: str,
        like: Node,
        inputs: Sequence[Value],
        dims: Sequence[int],
        words: Sequence[int] = (),
    ) -> Value:
        """A node that stands for this one of the old graph, or for a part of it."""
        scope = like.name.rpartition(".")[0]
        called = f"{scope}.{name}" if scope else name
        node = like._replace(name=called, operator=TABLE[name], attributes=tuple(words))
        return self._append(node._replace(inputs=tuple(inputs), dims=tuple(dims)))

    def real(self, view: View, like: Node | None = None) -> Value:
        """The value with its own dimensions: a reshape right after what it is of, which takes no
        time there, and lets functions of several nodes begin with it."""
        base, dims = view.base, view.dims
        if base.dims == dims:
            return base
        key = base.kind, base.number, dims
        if key not in self._known:
            host = self.nodes[base.number] if base.kind == "node" else None
            if host is not None and host.part is not None and host.part.sum is not None:
                host = None  # an addition of micro-batches is in none of them
            node = view.node or like or host
            assert node is not None
            part = host.part if host is not None else like.part if like is not None else None
            node = node._replace(part=part, dtype=base.dtype)
            self._known[key] = self.put("reshape", node, (base,), dims)
            if host is not None:
                self.behind.setdefault(base.number, []).append(len(self.nodes) - 1)
        return self._known[key]

    def same(self, node: Node) -> View:
        """The node as it was."""
        inputs = tuple(self.real(self.view(v), node) for v in node.inputs)
        return View(self._append(node._replace(inputs=inputs)), node.dims, node)

    # ---- rules ----

    def reshape(self, node: Node) -> View:
        return View(self.view(node.inputs[0]).base, node.dims, node)

    def elements(self, node: Node) -> View:
        """An operator of elements, in the dimensions that most of its operands lie in."""
        views, count = [self.view(v) for v in node.inputs], product(node.dims)
        full = [v.base.dims for v in views if product(v.dims) == count]
        dims = max(full, key=full.count) if full else node.dims
        small = [v.dims for v in views if product(v.dims) != count]
        if any(d != (1,) and dims[-len(d) :] != d for d in small):
            dims = node.dims
        inputs = [
            self.real(v._replace(dims=dims) if product(v.dims) == count else v, node) for v in views
        ]
        new = self._append(node._replace(inputs=tuple(inputs), dims=dims))
        return View(new, node.dims, node)

    def slice(self, node: Node) -> View:
        """A slice of what was put together is one of its parts."""
        view = self.view(node.inputs[0])
        axis, start, length, step = node.attributes
        whole = self.made_by(view.base, "concat_axis")
        if whole is None or view.dims != whole.dims or whole.attributes != (axis,) or step != 1:
            return self.same(node)
        for part in whole.inputs:
            if start == 0 and length == part.dims[axis]:
                return View(self._origin(part), node.dims, node)
            start -= part.dims[axis]
        return self.same(node)

    def transpose(self, node: Node) -> View:
        view, order = self.view(node.inputs[0]), node.attributes[: len(node.dims)]
        if order == (1, 0, 2):  # of a batch of one
            return self._heads(node, view, (1, *view.dims)) or self._back(node, view, order)
        if order == HEADS:
            return self._heads(node, view, view.dims) or self._back(node, view, order)
        if order == STACKED:
            return self._stacked(node, view) or self._back(node, view, order)
        return self._back(node, view, order)

    def _back(self, node: Node, view: View, order: Sequence[int]) -> View:
        """What was transposed twice is transposed once, or not at all."""
        before = self.made_by(view.base, "transpose")
        if before is None or view.base.dims != view.dims:
            return self.same(node)
        order = tuple(before.attributes[i] for i in order)
        if order == tuple(range(len(order))):
            return View(before.inputs[0], node.dims, node)
        words = (*order, *node.attributes[len(order) :])
        new = self._append(node._replace(inputs=before.inputs, attributes=words))
        return View(new, node.dims, node)

    # ---- heads ----

    def _heads(self, node: Node, view: View, dims: tuple[int, ...]) -> View | None:
        """Dimensions [b, x, y, d] of the view become [b, y, x, d]: heads are split from rows of
        tokens, or joined to them."""
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
        if view.base.dims[-1] != y * d or view.base.dims == view.dims:
            return None
        source, parts, number = self._columns(view.base)
        row = self.real(View(source, (b, x, parts * y * d), view.node), node)
        new = self.put("split_heads", node, (row,), (b, y, x, d), (parts, number, y))
        return View(new, node.dims, node)

    def _has_heads(self, v: Value) -> bool:
        """Whether attention made it by heads, or its gradient."""
        node = self.nodes[v.number] if v.kind == "node" else None
        name = "" if node is None else node.operator.name
        return name in ("attn_out", "rope", "repeat_heads_grad") or (
            node is not None and name == "matmul" and node.attributes[0] == 2
        )

    def _columns(self, v: Value) -> tuple[Value, int, int]:
        """What v is some columns of, in how many parts as wide, and which of them; or v itself."""
        node = self.made_by(v, "slice")
        if node is None:
            return v, 1, 0
        axis, start, length, step = node.attributes
        row = node.inputs[0].dims[-1]
        last = axis == len(v.dims) - 1 and step == 1
        if not last or start % length or row % length or row // length > PARTS_MAX:
            return v, 1, 0
        return node.inputs[0], row // length, start // length

    def _stacked(self, node: Node, view: View) -> View | None:
        """[p, b, h, t, d] becomes [b, t, p, h, d]: parts that are stacked lie side by side."""
        p, b, h, t, d = view.dims
        whole = self.made_by(view.base, "concat_axis")
        if whole is None or p > PARTS_MAX or len(whole.inputs) != p or not _leads(whole):
            return None
        parts = [self.real(View(self._origin(v), (b, h, t, d)), node) for v in whole.inputs]
        new = self.put("join_heads", node, parts, (b, t, p * h * d))
        return View(new, node.dims, node)

    def _origin(self, v: Value) -> Value:
        node = self.made_by(v, "reshape")
        return v if node is None else node.inputs[0]

    def concat(self, node: Node) -> View:
        """Rows of joined heads side by side are one join."""
        views = [self.view(v) for v in node.inputs]
        joins = [self.made_by(v.base, "join_heads") for v in views]
        axis = node.attributes[0]
        alone = len(views) == 1 or product(node.dims[axis + 1 :]) != 1 or len(views) > PARTS_MAX
        if alone or not all(j is not None and len(j.inputs) == 1 for j in joins):
            return self.same(node)
        heads = [j.inputs[0] for j in joins if j is not None]
        rows = {v.base.dims[:2] for v in views}
        wide = all(v.dims[axis] == v.base.dims[2] for v in views)
        if not wide or len({v.dims for v in heads}) != 1 or len(rows) != 1:
            return self.same(node)
        (b, t), width = rows.pop(), product(node.dims[axis:])
        new = self.put("join_heads", node, heads, (b, t, width))
        return View(new, node.dims, node)

    # ---- optimizers ----

    def update(self, node: Node) -> View:
        """Gradients that were multiplied by one number are multiplied as they are read."""
        inputs = [self.real(self.view(v), node) for v in node.inputs]
        at, by = UPDATES[node.operator.name]  # the gradient, and its factor
        one, scaled = self.made_by(inputs[by], "fill"), self.view(node.inputs[at]).base
        times = self.made_by(scaled, "mul")
        if one is not None and one.attributes == (bits(1.0),) and times is not None:
            g, factor = times.inputs
            if factor.dims == (1,):
                inputs[at] = self.real(View(g, inputs[at].dims, node), node)
                inputs[by] = factor
        new = self._append(node._replace(inputs=tuple(inputs)))
        return View(new, node.dims, node)


def _leads(whole: Node) -> bool:
    """Whether the parts lie one after the other."""
    return product(whole.dims[: whole.attributes[0]]) == 1


Rule = Callable[[Forms, Node], View]
RULES: dict[str, Rule] = {
    "reshape": Forms.reshape,
    "slice": Forms.slice,
    "transpose": Forms.transpose,
    "concat_axis": Forms.concat,
}
for _name in UPDATES:
    RULES[_name] = Forms.update
ELEMENTS = """add sub mul div max min scale div_const abs exp log sqrt rsqrt gelu gelu_grad gelu_erf
gelu_erf_grad relu relu_grad leaky_relu leaky_relu_grad silu silu_grad tanh tanh_grad sigmoid
sigmoid_grad dropout cast""".split()
for _name in ELEMENTS:
    RULES[_name] = Forms.elements


def form(graph: Graph) -> None:
    Forms(graph).run()
