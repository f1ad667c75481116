"""The canonical bytes of a program, decoded and validated: PROTOCOL.md section 1."""

from struct import calcsize, unpack_from

import elementwise  # noqa: F401: it fills the table of operators
import images  # noqa: F401
import movement  # noqa: F401
import sampling  # noqa: F401
import sums  # noqa: F401
from definitions import OPERATORS, Node
from notes import NotJudged, need, tagged
from trees import SIZES, elements

NO_LOSS = 0xffffffff
NUMBER = (2, (1,))


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        need(len(self.data) - self.at >= size, "the program ends too early")
        self.at += size
        return self.data[self.at - size:self.at]

    def numbers(self, layout):
        return unpack_from("<" + layout, self.take(calcsize("<" + layout)))

    def number(self, kind):
        return self.numbers(kind)[0]

    def string(self):
        data = self.take(self.number("H"))
        need(len(data) <= 63 and all(0x20 <= c <= 0x7e for c in data), "a name is not allowed")
        return data.decode()

    def shape(self):
        dtype, ndim = self.numbers("BB")
        need(dtype in SIZES and 1 <= ndim <= 5, "a shape is not allowed")
        dims = self.numbers(f"{ndim}Q")
        need(min(dims) >= 1 and elements((dtype, dims)) <= 2**40, "a tensor has no elements, or too many")
        return dtype, dims

    def node(self, shapes):
        start = self.at
        name = self.string()
        number, count = self.numbers("HH")
        if number not in OPERATORS:
            raise NotJudged(f"node {name} has operator {number}, which this verifier does not know")
        operator = OPERATORS[number]
        need(count <= 1024, f"node {name} has too many inputs")
        attributes = dict(zip((a[0] for a in operator.attributes), self.numbers(f"{len(operator.attributes)}q")))
        inputs = self.numbers(f"{count}I")
        need(all(i < len(shapes) for i in inputs), f"node {name} has an input that is no earlier value")
        node = Node(name, operator, attributes, inputs, [shapes[i] for i in inputs], self.shape(),
                    self.data[start:self.at])
        operator.check(node)
        return node


class Graph:
    """Its sources, its nodes, the values that are the leaves of the next state."""

    def __init__(self, reader, sources, leaves):
        count, edges = reader.numbers("II")
        need(1 <= count <= 2**20 and edges <= 2**22, "the number of nodes or inputs is not allowed")
        shapes = list(sources)
        self.sources, self.nodes = len(sources), []
        for _ in range(count):
            self.nodes.append(reader.node(shapes))
            shapes.append(self.nodes[-1].shape)
        need(sum(len(n.inputs) for n in self.nodes) == edges, "the number of inputs is another one")
        self.outputs = reader.numbers(f"{len(leaves)}I")
        for value, (name, shape) in zip(self.outputs, leaves):
            need(self.sources <= value < len(shapes), f"state leaf {name} is not made by a node")
            need(shapes[value] == shape, f"state leaf {name} has another shape")
        loss = reader.number("I")
        need(loss == NO_LOSS or (loss < len(shapes) and shapes[loss] == (1, (1,))), "the loss is no number")
        self.shapes = shapes


class Program:
    def __init__(self, data):
        need(len(data) <= 64 << 20, "the program is too large")
        reader = Reader(data)
        need(reader.take(15) == b"\x0d\0verde program", "it is no program")
        need(reader.numbers("HH") == (1, 1), "the program is of another version")
        self.hash = tagged("verde/program/1", data)
        _, self.steps, self.interval = reader.numbers("QQQ")
        need(1 <= self.steps <= 2**31 - 1 and 1 <= self.interval <= self.steps, "the steps are not allowed")
        count = reader.number("I")
        need(count <= 65536, "there are too many data tensors")
        self.data = [(reader.string(), reader.shape(), reader.take(32)) for _ in range(count)]
        count = reader.number("I")
        need(1 <= count <= 65536, "the number of state leaves is not allowed")
        self.leaves = [(reader.string(), reader.shape()) for _ in range(count)]
        shapes = [shape for _, shape, _ in self.data] + [NUMBER]
        self.init = Graph(reader, shapes, self.leaves)
        self.step = Graph(reader, [shape for _, shape in self.leaves] + shapes, self.leaves)
        if reader.at < len(data):
            raise NotJudged("the program has bytes after its graphs: rounding (section 12) is not judged here")

    def graph(self, step):
        return self.init if step < 0 else self.step

    def run_steps(self):
        """The steps at which a run has leaves."""
        last = -(-self.steps // self.interval)
        return [min(i * self.interval, self.steps) for i in range(last + 1)]

    def kind_of(self, step, value):
        """("leaf", i), ("data", i), ("step", 0) or ("node", i)."""
        leaves = 0 if step < 0 else len(self.leaves)
        for kind, count in (("leaf", leaves), ("data", len(self.data)), ("step", 1)):
            if value < count:
                return kind, value
            value -= count
        return "node", value
