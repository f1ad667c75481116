"""Rewrites a captured graph into forms that executors run as one function (docs/any-model.md).

Nodes that PyTorch's views leave are dropped where the bits stay the same: a reshape waits until a
node needs its dimensions, a transpose and its inverse cancel, and heads are split from rows of
tokens and joined to them as in models built in C."""

from __future__ import annotations

from collections.abc import Callable

from .._operators import bits
from ._graph import Graph, Node, Value
from ._heads import Heads
from ._memory import product
from ._views import View

UPDATES = {"adamw_m": (1, 2), "adamw_v": (1, 2), "sgd_m": (1, 3), "sgd_nesterov": (2, 3)}


class Forms(Heads):
    def run(self) -> None:
        old = self.graph
        for node in old.nodes:
            self.views.append(RULES.get(node.operator.name, Forms.same)(self, node))
        outputs = [self._output(v) for v in old.output]
        loss = None if old.loss is None else self._output(old.loss)
        old.nodes, old.output, old.loss = self.nodes, outputs, loss
        old.reorder(self._order(), [])

    def _output(self, v: Value) -> Value:
        """The output for a value of the next state: it stays a node."""
        view = self.view(v)
        if v.kind == "node" and view.base.kind != "node":
            node = self.graph.nodes[v.number]._replace(part=None)
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
        """Moves the factor of each row's loss before the loss, so that executors can run loss and
        gradient at once."""
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

    # ---- rules ----

    def reshape(self, node: Node) -> View:
        return View(self.view(node.inputs[0]).base, node.dims, node)

    def elements(self, node: Node) -> View:
        """Emits an elementwise operator in the dimensions that most of its operands have."""
        views, count = [self.view(v) for v in node.inputs], product(node.dims)
        turned = self._turned(node, views)
        if turned is not None:
            return turned
        full = [v.base.dims for v in views if product(v.dims) == count]
        dims = max(full, key=full.count) if full else node.dims
        small = [v.dims for v in views if product(v.dims) != count]
        if any(d != (1,) and dims[-len(d) :] != d for d in small):
            dims = node.dims
        inputs = [
            self.real(v._replace(dims=dims) if product(v.dims) == count else v, node) for v in views
        ]
        new = self.append(node._replace(inputs=tuple(inputs), dims=dims))
        return View(new, node.dims, node)

    def _turned(self, node: Node, views: list[View]) -> View | None:
        """Moves a transpose from the inputs to the output, if all inputs allow it. Not for dropout,
        whose draws depend on the order of elements."""
        count, before = product(node.dims), [self.made_by(v.base, "transpose") for v in views]
        first = next((b for b in before if b is not None), None)
        is_sum = node.part is not None and node.part.sum is not None  # a sum over micro-batches
        if first is None or node.operator.name == "dropout" or is_sum:
            return None
        (inner,), words, inputs = first.inputs, first.attributes, list[Value]()
        for v, own in zip(views, before):
            if own is not None and (own.attributes, own.inputs[0].dims) == (words, inner.dims):
                inputs.append(own.inputs[0])
            elif product(v.dims) == 1:
                inputs.append(self.real(v, node))
            elif self.made_by(v.base, "fill") is not None and product(v.dims) == count:
                inputs.append(self.real(View(v.base, inner.dims, v.node), node))
            else:
                return None
        new = self.append(node._replace(inputs=tuple(inputs), dims=inner.dims))
        turned = self.put("transpose", node, (new,), first.dims, words)
        return View(turned, node.dims, node)

    # ---- optimizers ----

    def update(self, node: Node) -> View:
        """Passes a gradient's common factor to the optimizer's node, which multiplies as it
        reads."""
        inputs = [self.real(self.view(v), node) for v in node.inputs]
        at, by = UPDATES[node.operator.name]  # the gradient's input, and its factor's
        one, scaled = self.made_by(inputs[by], "fill"), self.view(node.inputs[at]).base
        times = self.made_by(scaled, "mul")
        if one is not None and one.attributes == (bits(1.0),) and times is not None:
            g, factor = times.inputs
            if factor.dims == (1,):
                inputs[at] = self.real(View(g, inputs[at].dims, node), node)
                inputs[by] = factor
        new = self.append(node._replace(inputs=tuple(inputs)))
        return View(new, node.dims, node)


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
sigmoid_grad dropout cast compare where""".split()
for _name in ELEMENTS:
    RULES[_name] = Forms.elements


def form(graph: Graph) -> None:
    Forms(graph).run()
