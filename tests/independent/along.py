"""Random draws of a step, indices along an axis, sorting and running totals: SPEC.md sections 5 and 6.1."""

from math import inf, isinf, isnan, nan
from struct import pack, unpack

from binary32 import F32, MASK32
from definitions import F, I32, NANS, Operator, ceil_div, has_stream, numel, outer_n_inner
from elementwise import larger
from movement import normal, uniform
from wide import exp64, log1p, number, rounded


def at_step(n):
    return n.shape[0] == F and has_stream(n) and numel(n.dims_of(0)) == 1 or None


Operator(251, "normal_at(step i32; seed, stream, mean f, std f)", at_step, normal)
Operator(252, "uniform_at(step i32; seed, stream, low f, high f)", at_step, uniform)


def like_but_along(n, i):
    """Has input i the dimensions of input 0 except along the axis?"""
    own, axis = n.dims_of(0), n["axis"]
    if not 0 <= axis < len(own) or len(n.dims_of(i)) != len(own):
        return False
    return all(a == b for d, (a, b) in enumerate(zip(own, n.dims_of(i))) if d != axis) and n.dims_of(i)[axis] <= 2**31


def place(n, e, count):
    """(start, step, at): the line of element e begins at `start` in input 0 with stride `step`; e is its element `at`
    of `count`."""
    _, length, inner = outer_n_inner(n.dims_of(0), n["axis"])
    rest, i = divmod(e, inner)
    o, at = divmod(rest, count)
    return o * length * inner + i, inner, at


def take_along(n, e, x):
    start, inner, _ = place(n, e, n.dims[n["axis"]])
    where = x(1, e)
    if not 0 <= where < n.dims_of(0)[n["axis"]]:
        return NANS.get(n.shape[0], 0)
    return x(0, start + where * inner)


Operator(253, "take_along(x any, ids i32; axis)",
         lambda n: (n.shapes[0][0], n.dims_of(1)) if like_but_along(n, 1) else None, take_along)


def signed(word):
    return word - 2**32 if word >> 31 else word


FLOATS = [lambda a, b: b, lambda a, b: a + b, lambda a, b: a * b, larger, lambda a, b: -larger(-a, -b)]
INTEGERS = [lambda a, b: b, lambda a, b: a + b, lambda a, b: a * b, max, min]


class Put:
    """The fold of put_along: the element's value so far."""

    words = 1

    def parts(self, n):
        return max(1, ceil_div(n.dims_of(2)[n["axis"]], 64))

    def step(self, n, e, j, state, x):
        count = n.dims_of(2)[n["axis"]]
        _, inner, at = place(n, e, n.dims[n["axis"]])
        first = e // inner // n.dims[n["axis"]] * count * inner + e % inner
        own = state[0]
        if j == 0:
            own = x(0, e).word if n.shape[0] == F else x(0, e) & MASK32
        for k in range(64 * j, min(count, 64 * j + 64)):
            if x(1, first + k * inner) != at:
                continue
            row = x(2, first + k * inner)
            if n.shape[0] == F:
                made = FLOATS[n["kind"]](F32(own), row)
                own = made.word if n["kind"] == 0 or not made.is_nan() else 0x7fc00000
            else:
                own = INTEGERS[n["kind"]](signed(own), row) & MASK32
        return [own]

    def end(self, n, e, state):
        return F32(state[0]) if n.shape[0] == F else state[0]


def put_shape(n):
    same = n.shapes[1][1] == n.shapes[2][1] and n.shapes[0][0] == n.shapes[2][0] and 0 <= n["kind"] < 5
    return n.shapes[0] if same and like_but_along(n, 1) else None


Operator(254, "put_along(x f32 i32, ids i32, rows f32 i32; axis, kind)", put_shape, fold=Put())


class Sort:
    """The fold of argsort: the key digit by digit, then the index."""

    words = 68

    def per_pass(self, n):
        return max(1, ceil_div(n.dims_of(0)[n["axis"]], 256))

    def parts(self, n):
        return 7 * self.per_pass(n)

    def key(self, n, value):
        if n.shapes[0][0] == I32:
            key = (value & MASK32) ^ 1 << 31
        elif value.is_nan():
            key = MASK32
        elif value.is_zero():
            key = 1 << 31
        else:
            key = value.word ^ MASK32 if value.negative() else value.word + (1 << 31)
        return key ^ MASK32 if n["descending"] else key

    def step(self, n, e, j, state, x):
        key, before, found_at, found, *counts = state
        length = n.dims_of(0)[n["axis"]]
        start, inner, rank = place(n, e, length)
        p, s = divmod(j, self.per_pass(n))
        keys = [(k, self.key(n, x(0, start + k * inner))) for k in range(256 * s, min(length, 256 * s + 256))]
        if p == 6:
            for k, own in keys:
                if own == key and not found:
                    found_at, found, before = k, int(before == rank), before + 1
            return [key, before, found_at, found, *counts]
        shift, bits = ((26, 6), (20, 6), (14, 6), (8, 6), (2, 6), (0, 2))[p]
        for _, own in keys:
            if own >> shift + bits == key >> shift + bits:
                counts[(own >> shift) % 2**bits] += 1
        if s == self.per_pass(n) - 1:
            b = 0
            while b < 63 and before + counts[b] <= rank:
                before, b = before + counts[b], b + 1
            key, counts = (key | b << shift) & MASK32, [0] * 64
        return [key, before, found_at, found, *counts]

    def end(self, n, e, state):
        return state[2]


def sort_shape(n):
    return (I32, n.dims_of(0)) if like_but_along(n, 0) and 0 <= n["descending"] <= 1 else None


Operator(255, "argsort(x f32 i32; axis, descending)", sort_shape, fold=Sort())


def log_sum(a, b):
    high, low = max(a, b), min(a, b)
    return high if isinf(high) or isinf(low) else high + log1p(exp64(low - high))


STARTS = (0.0, 1.0, -inf)
JOINS = (lambda a, b: a + b, lambda a, b: a * b, log_sum)


def join(n, a, b):
    if isnan(a) or isnan(b):
        return nan
    return JOINS[n["kind"]](a, b)


def words_of(total):
    word = 0x7ff8 << 48 if isnan(total) else unpack("<Q", pack("<d", total))[0]
    return [word & MASK32, word >> 32]


def total_of(words):
    return unpack("<d", pack("<Q", words[0] | words[1] << 32))[0]


class Running:
    """The fold of running: the total of earlier chunks, and of the current one."""

    def __init__(self):
        self.words = 4

    def parts(self, n):
        return max(1, ceil_div(n.dims_of(0)[n["axis"]], 256))

    def step(self, n, e, j, state, x):
        start, inner, at = place(n, e, n.dims[n["axis"]])
        values = [x(0, start + k * inner) for k in range(256 * j, min(at + 1, 256 * j + 256))]
        if n.shape[0] == I32:
            own = n["kind"] if j == 0 else state[0]
            for value in values:
                own = (own * value if n["kind"] else own + value) & MASK32
            return [own, *state[1:]]
        if not values:
            return state
        total = join(n, total_of(state[:2]), total_of(state[2:])) if j else STARTS[n["kind"]]
        chunk = STARTS[n["kind"]]
        for value in values:
            chunk = join(n, chunk, nan if value.is_nan() else number(value))
        return [*words_of(total), *words_of(chunk)]

    def end(self, n, e, state):
        if n.shape[0] == I32:
            return state[0]
        return rounded(join(n, total_of(state[:2]), total_of(state[2:])))


def running_shape(n):
    kinds = 2 if n.shapes[0][0] == I32 else 3
    return n.shapes[0] if like_but_along(n, 0) and 0 <= n["kind"] < kinds else None


Operator(256, "running(x f32 i32; axis, kind)", running_shape, fold=Running())


class Total:
    """The fold of isum."""

    words = 1

    def parts(self, n):
        return max(1, ceil_div(n.dims_of(0)[n["axis"]], 256))

    def step(self, n, e, j, state, x):
        length = n.dims_of(0)[n["axis"]]
        start, inner, _ = place(n, e, 1)
        return [state[0] + sum(x(0, start + k * inner) for k in range(256 * j, min(length, 256 * j + 256))) & MASK32]

    def end(self, n, e, state):
        return state[0]


def isum_shape(n):
    if not like_but_along(n, 0):
        return None
    return I32, tuple(1 if d == n["axis"] else length for d, length in enumerate(n.dims_of(0)))


Operator(257, "isum(x i32; axis)", isum_shape, fold=Total())
