"""The canonical bytes of a program, decoded and validated: PROTOCOL.md section 1."""

from struct import calcsize, pack, unpack_from

import along  # noqa: F401: imported to fill the table of operators
import elementwise  # noqa: F401
import images  # noqa: F401
import movement  # noqa: F401
import sampling  # noqa: F401
import sums  # noqa: F401
import whole  # noqa: F401
import wide  # noqa: F401
from definitions import OPERATORS, Node
from notes import NotJudged, need, need_known, tagged
from trees import SIZES, elements

NO_LOSS = SEGMENTS = 0xffffffff
ADD = next(o for o in OPERATORS.values() if o.name == "add")
EXPERIMENTAL = 61440  # operators from this number on are experimental
EXPERIMENTAL_TYPE = 128  # element types from this number on are experimental
NUMBER = (2, (1,))
INTEGERS = {2: (-2**31, 2**31 - 1), 3: (0, 255), 4: (0, 65535), 7: (-128, 127)}  # by element type


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0
        self.names = []  # begin and end of each, including its length

    def take(self, size):
        need(len(self.data) - self.at >= size, "the program ends too early")
        self.at += size
        return self.data[self.at - size:self.at]

    def numbers(self, layout):
        return unpack_from("<" + layout, self.take(calcsize("<" + layout)))

    def number(self, kind):
        return self.numbers(kind)[0]

    def string(self, markers=0, digits=0):
        """A name; each of its bytes 1..markers stands for `digits` digits."""
        start = self.at
        data = self.take(self.number("H"))
        self.names.append((start, self.at))
        need(all(0x20 <= c <= 0x7e or 1 <= c <= markers for c in data), "a name is not allowed")
        need(sum(digits if c <= markers else 1 for c in data) <= 255, "a name is too long")
        return data.decode()

    def shape(self):
        dtype, ndim = self.numbers("BB")
        need(0 < dtype < EXPERIMENTAL_TYPE and ndim >= 1, "a shape is not allowed")
        need_known(dtype in SIZES, f"element type {dtype} is not known")
        need_known(ndim <= 8, f"a tensor has {ndim} dimensions")
        dims = self.numbers(f"{ndim}Q")
        need(min(dims) >= 1 and elements((dtype, dims)) <= 2**40, "a tensor has no elements, or too many")
        return dtype, dims

    def node(self, digits=None):
        """A node; in a repeat's body `digits` is the number of digits of the last iteration's number."""
        name = self.string(0 if digits is None else 1, digits)
        number, count = self.numbers("HH")
        need(0 < number < EXPERIMENTAL, f"node {name} has no operator, or an experimental one")
        need_known(number in OPERATORS, f"node {name} has operator {number}, which this verifier does not know")
        operator = OPERATORS[number]
        need_known(count <= 1024, f"node {name} has too many inputs")
        attributes = dict(zip((a[0] for a in operator.attributes), self.numbers(f"{len(operator.attributes)}q")))
        slopes = {}
        if digits is not None and (moving := self.number("B")):
            need(moving <= len(operator.attributes), f"node {name} has no such attribute")
            moving = operator.attributes[moving - 1][0]
            need(moving in ("first", "start", "stream"), f"node {name}: {moving} may not change")
            slopes = {moving: self.number("q")}
            need(slopes[moving] != 0, f"node {name} has a slope of 0")
        inputs = [(0, self.number("I"), 0) if digits is None else self.body_input(name) for _ in range(count)]
        return Listed(name, operator, attributes, slopes, inputs, self.shape())

    def body_input(self, name):
        kind, number = self.numbers("BI")
        need_known(kind <= 3, f"node {name} has an input of kind {kind}, which is not known")
        slope = self.number("q") if kind == 3 else 0
        need(slope != 0 or kind != 3, f"node {name} has an input with a slope of 0")
        return kind, number, slope

    def nodes(self, count, digits=None):
        edges = self.number("I")
        need(count >= 1, "there are no nodes")
        need_known(count <= 2**20 and edges <= 2**22, "there are too many nodes, or inputs of them")
        nodes = [self.node(digits) for _ in range(count)]
        need(sum(len(n.inputs) for n in nodes) == edges, "the number of inputs is another one")
        return nodes


class Listed:
    """A node as encoded; its inputs are (kind, number, slope)."""

    def __init__(self, name, operator, attributes, slopes, inputs, shape):
        self.name, self.operator, self.attributes, self.slopes = name, operator, attributes, slopes
        self.inputs, self.shape = inputs, shape

    def in_iteration(self, m):
        """The name and attributes in iteration m."""
        moved = {k: v + m * self.slopes.get(k, 0) for k, v in self.attributes.items()}
        need(all(-2**63 <= v < 2**63 for v in moved.values()), "an attribute is too large")
        return self.name.replace("\1", str(m)), moved


def without_ones(m, j):
    """m with its j lowest set bits cleared."""
    for _ in range(j):
        m &= m - 1
    return m


class Repeat:
    """Expands a repeat, and appends its nodes to a graph: section 1.5."""

    def __init__(self, reader, graph):
        self.graph, self.count = graph, reader.number("I")
        need(self.count >= 2, "a repeat does not repeat")
        digits = len(str(self.count - 1))
        self.begin, self.values = len(graph.bodies), len(graph.shapes)
        self.body = reader.nodes(reader.number("I"), digits)
        graph.bodies += [self] * len(self.body)
        self.carried = [reader.numbers("II") for _ in range(self.some(reader))]
        for before, after in self.carried:
            need(before < self.values and graph.shapes[before] == self.own(after).shape, "a carried value")
        self.sums = [(reader.number("I"), reader.string(2, digits)) for _ in range(self.some(reader))]
        nodes = self.count * len(self.body) + (self.count - 1) * len(self.sums)
        need_known(len(graph.nodes) + nodes <= 2**26, "a graph means too many nodes")
        graph.inputs += self.count * sum(len(n.inputs) for n in self.body) + 2 * (self.count - 1) * len(self.sums)
        need_known(graph.inputs <= 2**28, "nodes have too many inputs")
        graph.shifted += self.count * sum(kind == 3 for n in self.body for kind, _, _ in n.inputs)
        need_known(graph.shifted <= 2**20, "inputs of kind 3 read too many values")
        self.made = {}  # (listed node, m): value
        self.totals = {(self.own(node) and i, m, m): (node, m) for i, (node, _) in enumerate(self.sums)
                        for m in range(self.count)}
        for m in range(self.count):
            self.put_iteration(m)

    @staticmethod
    def some(reader):
        count = reader.number("I")
        need_known(count <= 65536, "a repeat carries or sums too much")
        return count

    def own(self, listed):
        need(self.begin <= listed < self.begin + len(self.body), "a node is not in the repeat's body")
        return self.body[listed - self.begin]

    def check_shifted(self, number, slope):
        """Checks the values that an input of kind 3 reads in all iterations."""
        values = [number + m * slope for m in range(self.count)]
        need(all(0 <= v < self.values for v in values), "an input with a slope is no value from before the repeat")
        need(len({self.graph.shapes[v] for v in values}) == 1, "an input with a slope has several shapes")
        need(len({self.graph.kind_of(v) for v in values}) == 1, "an input with a slope is of several kinds")

    def value_of(self, kind, number, slope, listed, m):
        if kind == 3:
            if m == 0:
                self.check_shifted(number, slope)
            return number + m * slope
        if kind == 0:
            need(number < self.values, "an input is no value from before the repeat")
            return number
        if kind == 1:
            need(number < listed and self.graph.bodies[number] is not None and
                 self.graph.bodies[number].count == self.count, "an input is no earlier node of an iteration")
            return self.graph.bodies[number].made[number, m]
        need(number < len(self.carried), "an input is nothing that is carried")
        before, after = self.carried[number]
        return before if m == 0 else self.made[after, m - 1]

    def put_iteration(self, m):
        for listed, node in enumerate(self.body, self.begin):
            inputs = [self.value_of(*read, listed, m) for read in node.inputs]
            self.made[listed, m] = self.graph.put(*node.in_iteration(m), node.operator, inputs, node.shape)
        ones = bin(m)[2:]
        for j in range(1, 1 + (ones.count("1") if m == self.count - 1 else len(ones) - len(ones.rstrip("1")))):
            for i in range(len(self.sums)):
                self.put_addition(m, j, i)

    def total(self, i, first, last):
        node = self.totals[i, first, last]
        return self.made[node] if isinstance(node, tuple) else node

    def put_addition(self, m, j, i):
        first, split = without_ones(m, j), without_ones(m, j - 1)
        inputs = [self.total(i, first, split - 1), self.total(i, split, m)]
        name = self.sums[i][1].replace("\1", str(first)).replace("\2", str(m))
        shape = self.own(self.sums[i][0]).shape
        self.totals[i, first, m] = self.graph.put(name, {}, ADD, inputs, shape)


class Graph:
    """A graph: its sources, its nodes, and the values that become the next state."""

    def __init__(self, reader, sources, leaves, states):
        shapes = self.shapes = list(sources)
        self.sources, self.states, self.nodes, self.inputs, self.shifted = len(sources), states, [], 0, 0
        self.bodies = []  # for each listed node its repeat, or None
        count = reader.number("I")
        if count != SEGMENTS:
            self.put_plain(reader, count)
        else:
            self.put_segments(reader)
        need_known(len(self.bodies) <= 2**20 and len(self.nodes) <= 2**26, "there are too many nodes")
        need_known(self.inputs <= 2**28, "nodes have too many inputs")
        self.outputs = reader.numbers(f"{len(leaves)}I")
        for value, (name, shape) in zip(self.outputs, leaves):
            need(self.sources <= value < len(shapes), f"state leaf {name} is not made by a node")
            need(shapes[value] == shape, f"state leaf {name} has another shape")
        loss = reader.number("I")
        need(loss == NO_LOSS or (loss < len(shapes) and shapes[loss] == (1, (1,))), "the loss is no number")

    def kind_of(self, value):
        """0: a leaf of the state, 1: data, 2: the step's number, 3: a node."""
        return sum(value >= first for first in (self.states, self.sources - 1, self.sources))

    def put(self, name, attributes, operator, inputs, shape):
        """Appends a node; returns its value."""
        need(all(i < len(self.shapes) for i in inputs), f"node {name} has an input that is no earlier value")
        text = name.encode()
        layout = f"<H{len(text)}sHH{len(attributes)}q{len(inputs)}IBB{len(shape[1])}Q"
        node = Node(name, operator, attributes, inputs, [self.shapes[i] for i in inputs], shape,
                    pack(layout, len(text), text, operator.number, len(inputs), *attributes.values(), *inputs,
                         shape[0], len(shape[1]), *shape[1]))
        operator.check(node)
        self.nodes.append(node)
        self.shapes.append(shape)
        return len(self.shapes) - 1

    def put_plain(self, reader, count):
        for node in reader.nodes(count):
            self.inputs += len(node.inputs)
            self.bodies.append(None)
            self.put(node.name, node.attributes, node.operator, [number for _, number, _ in node.inputs], node.shape)

    def put_segments(self, reader):
        last, repeats = None, 0
        for _ in range(reader.number("I")):
            kind = reader.number("B")
            need_known(kind in (0, 1), f"a segment of kind {kind} is not known")
            need((last, kind) != (0, 0), "a segment is not allowed")
            if kind == 0:
                self.put_plain(reader, reader.number("I"))
            else:
                Repeat(reader, self)
            last, repeats = kind, repeats + kind
        need(repeats >= 1, "there is no repeat")
        need_known(repeats <= 64, "there are too many repeats")


def without(data, names):
    """Yields the bytes in pieces, with all names empty: section 1.7."""
    last = 0
    for begin, end in names:
        yield data[last:begin] + b"\0\0"
        last = end
    yield data[last:]


class Program:
    def __init__(self, data):
        reader = Reader(data)
        need(reader.take(15) == b"\x0d\0verde program", "it is no program")
        for version, what in zip(reader.numbers("HH"), ("a program", "the specification")):
            need_known(version == 1, f"version {version} of {what}")
        need_known(len(data) <= 64 << 20, "the program is too large")
        self.hash = tagged("verde/program/1", data)
        _, self.steps, self.interval = reader.numbers("QQQ")
        need(1 <= self.steps <= 2**31 - 1 and 1 <= self.interval <= self.steps, "the steps are not allowed")
        count = reader.number("I")
        need_known(count <= 1 << 17, "there are too many data tensors")
        self.data = [(reader.string(), reader.shape(), reader.take(32)) for _ in range(count)]
        count = reader.number("I")
        need(count >= 1, "there are no state leaves")
        need_known(count <= 1 << 18, "there are too many state leaves")
        self.leaves = [(reader.string(), reader.shape()) for _ in range(count)]
        need(len({name for name, _ in self.leaves}) == count, "two state leaves have one name")
        shapes = [shape for _, shape, _ in self.data] + [NUMBER]
        self.init = Graph(reader, shapes, self.leaves, 0)
        self.step = Graph(reader, [shape for _, shape in self.leaves] + shapes, self.leaves, count)
        self.structure = tagged("verde/structure/1", *without(data, reader.names))
        self.ranges = {}  # data tensor: (least, greatest element)
        self.read_parts(reader)

    def read_parts(self, reader):
        """Reads the parts after the graphs: section 1.6."""
        last = 0
        while reader.at < len(reader.data):
            part = reader.number("B")
            need_known(part in (1, *range(16, 33)), f"part {part} of a program is not known")
            need(last < part, "the parts do not ascend")
            last = part
            if part > 1:
                raise NotJudged("the program has rounding (section 12), which is not judged here")
            self.read_ranges(reader)

    def read_ranges(self, reader):
        count, last = reader.number("I"), -1
        need(count >= 1, "there are no ranges")
        for _ in range(count):
            number, least, greatest = reader.numbers("Iqq")
            need(last < number < len(self.data), "a range is of no data tensor, or not in order")
            dtype, last = self.data[number][1][0], number
            need(dtype in INTEGERS, "a range is of a tensor that has no integers")
            low, high = INTEGERS[dtype]
            need(low <= least <= greatest <= high, "a range is not within the element type")
            need((least, greatest) != (low, high), "a range is the whole of the element type")
            self.ranges[number] = least, greatest

    def graph(self, step):
        return self.init if step < 0 else self.step

    def run_steps(self):
        """The steps whose states are leaves of a run's tree."""
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
