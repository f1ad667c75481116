"""The parts that operators' definitions are made of: SPEC.md sections 1, 4 and 10."""

import re
from math import prod

from binary32 import F32, MASK32
from notes import need
from trees import SIZES

F, I32, U8, U16, BF16, F16, I8 = 1, 2, 3, 4, 5, 6, 7
TYPE_NAMES = {"f32": F, "i32": I32, "u8": U8, "u16": U16, "bf16": BF16, "f16": F16, "i8": I8}
FRACTIONS = {BF16: 7, F16: 10}  # numbers of fraction bits
NANS = {F: 0x7fc00000, BF16: 0x7fc0, F16: 0x7e00}  # canonical ones
OPERATORS = {}


class Operator:
    """An operator, defined by its signature in SPEC.md: `embedding(table, ids i32; axis, value f)`."""

    def __init__(self, number, signature, shape, element=None, fold=None):
        self.name, inputs, attributes = re.fullmatch(r"(\w+)\(([^;]*)(?:;(.*))?\)", signature).groups()
        self.number, self.shape, self.element, self.fold = number, shape, element, fold
        self.variadic = "..." in inputs  # the first input repeats; inputs named after it come last
        self.types = [self.type_of(word.split()) for word in inputs.split(",") if word.strip()]
        self.attributes = [word.split() for word in (attributes or "").split(",") if word.strip()]
        OPERATORS[number] = self

    @staticmethod
    def type_of(words):
        """The dtypes that an input may have; f32 if none is given."""
        return {TYPE_NAMES[w] for w in words[1:] if w in TYPE_NAMES} or (set(SIZES) if "any" in words else {F})

    def check(self, node):
        """Refuses a node that breaks a condition of the operator."""
        where = f"node {node.name}, {self.name}"
        more = max(0, len(node.inputs) - len(self.types)) if self.variadic else 0
        types = self.types[:1] * more + self.types
        need(len(types) == len(node.inputs) >= len(self.types), f"{where}: the number of inputs")
        need(all(s[0] in t for s, t in zip(node.shapes, types)), f"{where}: the type of an input")
        for name, *kind in self.attributes:
            need(not kind or 0 <= node[name] <= MASK32, f"{where}: {name} is not the bits of an f32")
        want = self.shape(node)
        need(want is not None, f"{where}: a shape or an attribute is not allowed")
        need(want is True or (want[0], tuple(want[1])) == node.shape, f"{where}: the output has another shape")


def calls(*generator):
    """Marks a shape rule with the generator in cases.py that makes calls for it, and its arguments."""
    def mark(rule):
        rule.calls = generator
        return rule
    return mark


class Node:
    """A node of a graph; attributes are by name."""

    def __init__(self, name, operator, attributes, inputs, shapes, shape, encoded):
        self.name, self.operator, self.inputs, self.shapes = name, operator, inputs, shapes
        self.attributes, self.shape, self.encoded = attributes, shape, encoded
        self.dims = shape[1]

    def __getitem__(self, name):
        return self.attributes[name]

    def number(self, name):
        return F32(self.attributes[name])

    def dims_of(self, i):
        return self.shapes[i][1]


def numel(dims):
    return prod(dims)


def squeezed(dims):
    return [d for d in dims if d != 1]


def stands_for(dims, want):
    """Has it an element for each of `want`? Dimensions of 1 are ignored; one dimension may stand for all."""
    return squeezed(dims) in (squeezed(want), squeezed([prod(want)]))


def repeats(dims, into):
    """Does an operand broadcast to `into`?"""
    bare = list(dims)
    while bare and bare[0] == 1:
        bare.pop(0)
    last = len(dims) <= len(into) and bare == list(into)[len(into) - len(bare):]
    return prod(dims) == 1 or last or (len(dims) == 1 and any(prod(into[i:]) == dims[0] for i in range(len(into))))


def per_row(dims, of, cols):
    """Has it an element for each row of `cols` elements?"""
    rows, left = list(of), cols
    while left > 1 and rows and left % rows[-1] == 0:
        left //= rows.pop()
    return stands_for(dims, rows) if left == 1 else squeezed(dims) == squeezed([prod(of) // cols])


def ceil_div(a, b):
    return -(-a // b)


def outer_n_inner(dims, axis):
    return prod(dims[:axis]), dims[axis], prod(dims[axis + 1:])


def places(e, dims):
    """The multi-dimensional index of element e."""
    index = []
    for d in reversed(dims):
        e, i = divmod(e, d)
        index.insert(0, i)
    return index


def place(index, dims):
    e = 0
    for i, d in zip(index, dims):
        e = e * d + i
    return e


def philox(seed, counter):
    """Philox4x32-10: the four words for a counter."""
    a, b, c, d = counter
    low, high = seed & MASK32, seed >> 32 & MASK32
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = q >> 32 ^ b ^ low, q & MASK32, p >> 32 ^ d ^ high, p & MASK32
        low, high = low + 0x9E3779B9 & MASK32, high + 0xBB67AE85 & MASK32
    return a, b, c, d


def stream_words(node, e, step=0):
    """The words of the block with element e."""
    block = e // 4
    return philox(node["seed"], (block & MASK32, block >> 32, step & MASK32, node["stream"]))


def permute(seed, stream, epoch, w, i):
    if w == 1:
        return 0
    h = 1
    while 4**h < w:
        h += 1
    while True:
        left, right = i >> h, i & (1 << h) - 1
        for turn in range(4):
            word = philox(seed, (right, epoch & MASK32, turn, stream))[0]
            left, right = right, left ^ word & (1 << h) - 1
        i = left << h | right
        if i < w:
            return i


def has_stream(node):
    return 0 <= node["stream"] <= MASK32
