"""Rows written into a tensor, queries whose position is data, tokens drawn by weights: SPEC.md sections 5, 8 and
10.3."""

from math import prod

from binary32 import INF, MASK32, ZERO, exp, f, fma, to_int
from definitions import (F, I32, Operator, calls, ceil_div, has_stream, numel, outer_n_inner, per_row, philox, repeats,
                         stands_for)
from elementwise import larger

MASK64 = 2**64 - 1


def iadd_shape(n):
    return n.shapes[0] if repeats(n.dims_of(1), n.dims_of(0)) else None


def iadd(n, e, x):
    return x(0, e) + x(1, e % numel(n.dims_of(1)))


Operator(214, "iadd(a i32, b i32)", iadd_shape, iadd)


def put_rows_shape(n):
    (dtype, dims), (same, rows), axis = n.shapes[0], n.shapes[1], n["axis"]
    if dtype != same or len(dims) != len(rows) or not 0 <= axis < len(dims) or numel(n.dims_of(2)) != 1:
        return None
    others = all(a == b for i, (a, b) in enumerate(zip(dims, rows)) if i != axis)
    return (dtype, dims) if others else None


def put_rows(n, e, x):
    _, count, inner = outer_n_inner(n.dims, n["axis"])
    rest, i = divmod(e, inner)
    o, j = divmod(rest, count)
    rows, k = n.dims_of(1)[n["axis"]], j - x(2, 0)
    return x(1, (o * rows + k) * inner + i) if 0 <= k < rows else x(0, e)


Operator(215, "put_rows(x any, rows any, at i32; axis)", put_rows_shape, put_rows)

# Attention: query t is at key position first + t.


def placed_fits(n):
    s = n.dims_of(0)
    return len(s) >= 2 and s[-2] <= s[-1] and 0 <= n["window"] <= 2**40 and numel(n.dims_of(-1)) == 1


def blocks_of(s):
    return s[:-1] + (ceil_div(s[-1], 128),)


def admitted(n, q, x, keys):
    at = x(len(n.shapes) - 1, 0) + q % n.dims_of(0)[-2]
    return [j for j in keys if 0 <= at - j < (n["window"] or 2**62)]


def block(c, keys):
    return range(128 * c, min(keys, 128 * (c + 1)))


def attn_max_at(n, e, x):
    keys = n.dims_of(0)[-1]
    q, c = divmod(e, n.dims[-1])
    m = -INF
    for j in admitted(n, q, x, block(c, keys)):
        m = larger(m, x(0, q * keys + j))
    return m


def attn_exp_at_shape(n):
    s = n.dims_of(0)
    return (F, s) if placed_fits(n) and stands_for(n.dims_of(1), blocks_of(s)) else None


def attn_exp_at(n, e, x):
    keys = n.dims[-1]
    q, j = divmod(e, keys)
    m = x(1, q * ceil_div(keys, 128) + j // 128)
    return exp(x(0, e) - m) if m.word != (-INF).word and admitted(n, q, x, [j]) else ZERO


def attn_av_at_shape(n):
    e, v = n.dims_of(0), n.dims_of(1)
    if not placed_fits(n) or len(v) != len(e) or v[:-2] != e[:-2] or v[-2] != e[-1]:
        return None
    dims = blocks_of(e) + v[-1:]
    return (F, dims) if len(dims) <= 5 else None


def attn_av_at(n, e, x):
    keys, width = n.dims_of(0)[-1], n.dims[-1]
    rest, d = divmod(e, width)
    q, c = divmod(rest, n.dims[-2])
    head, total = q // n.dims_of(0)[-2], ZERO
    for j in admitted(n, q, x, block(c, keys)):
        total = fma(x(0, q * keys + j), x(1, (head * keys + j) * width + d), total)
    return ZERO + total


Operator(216, "attn_max_at(s, first i32; window)", lambda n: (F, blocks_of(n.dims_of(0))) if placed_fits(n) else None,
         attn_max_at)
Operator(217, "attn_exp_at(s, mc, first i32; window)", attn_exp_at_shape, attn_exp_at)
Operator(218, "attn_av_at(e, v, first i32; window)", attn_av_at_shape, attn_av_at)

# Draws by weights [..., V].


@calls("rows", "xr")
def weight_shape(n):
    dims = n.dims_of(0)
    return (I32, dims) if per_row(n.dims_of(1), dims, dims[-1]) else None


def weight(n, e, x):
    y = exp(x(0, e) - x(1, e // n.dims[-1])) * f("0x1p31")
    if y.is_nan():
        return 0
    return 2**31 - 1 if y > f("0x1.fffffep30") else to_int(y)


def row_shape(last, name=None, most=None):
    """A shape rule: weights, an attribute between 1 and `most`; the output is [..., last]."""
    def shape(n):
        dims = n.dims_of(0)
        if dims[-1] >= 2**31 or (name and not 1 <= n[name] <= most):
            return None
        return I32, dims[:-1] + (last,)
    return shape


def pairs_fit(n, i):
    return stands_for(n.dims_of(i), n.dims_of(0)[:-1] + (2,))


def keep_top(n, e, x):
    row, i = divmod(e, n.dims[-1])
    q, t, c = max(x(0, e), 0), x(1, 2 * row), x(1, 2 * row + 1)
    return q if q > t or (q == t and i < c) else 0


def random_words(n, e, x):
    counter = (x(0, e // 2 * 2), x(0, e // 2 * 2 + 1), x(1, 0), n["stream"])
    return philox(n["seed"], [word & MASK32 for word in counter])[e % 2]


def wide(words):
    return words[0] | words[1] << 32


def narrow(*numbers):
    return [word for number in numbers for word in (number & MASK32, number >> 32 & MASK32)]


class Passes:
    """A fold that passes several times over a row, by steps of 512 weights."""

    def per_pass(self, n):
        return ceil_div(n.dims_of(0)[-1], 512)

    def weights(self, n, row, s, x):
        """(index, weight) of all weights in step s of a pass."""
        count = n.dims_of(0)[-1]
        return [(i, max(x(0, row * count + i), 0)) for i in range(512 * s, min(count, 512 * (s + 1)))]


class Top(Passes):
    """The fold of top_k and top_p: threshold t digit by digit, then count c."""

    words = 134

    def __init__(self, measure, goal, is_all):
        self.measure, self.goal, self.is_all = measure, goal, is_all

    def parts(self, n):
        return 7 * self.per_pass(n)

    def step(self, n, e, j, state, x):
        p, s = divmod(j, self.per_pass(n))
        t, c, above, goal = state[0], state[1], wide(state[2:4]), wide(state[4:6])
        sums = [wide(state[i:i + 2]) for i in range(6, 134, 2)]
        weights = self.weights(n, e // 2, s, x)
        if p == 6:
            for i, q in weights:
                if q == t and above < goal:
                    c, above = i + 1, above + self.measure(q) & MASK64
            return [t, c, *narrow(above, goal, *sums)]
        before, shift = (31, 25, 19, 13, 7, 1)[p], (25, 19, 13, 7, 1, 0)[p]
        for _, q in weights:
            if p == 0 or q >> before == t >> before:
                b = (q >> shift) % (2 if p == 5 else 64)
                sums[b] = sums[b] + self.measure(q) & MASK64
        if s == self.per_pass(n) - 1:
            if p == 0:
                goal = self.goal(n, sum(sums) & MASK64)
            b = 63
            while b and above + sums[b] & MASK64 < goal:
                above, b = above + sums[b] & MASK64, b - 1
            t, sums = t + (b << shift) & MASK32, [0] * 64
        return [t, c, *narrow(above, goal, *sums)]

    def end(self, n, e, state):
        return (0, n.dims_of(0)[-1])[e % 2] if self.is_all(n, wide(state[4:6])) else state[e % 2]


class Draw(Passes):
    """The fold of draw: the random words, the sum, the index."""

    words = 6

    def parts(self, n):
        return 1 + 2 * self.per_pass(n)

    def step(self, n, e, j, state, x):
        r, total, index, found = wide(state[:2]), wide(state[2:4]), state[4], state[5]
        count = self.per_pass(n)
        if j == 0:
            r = x(1, 2 * e) & MASK32 | (x(1, 2 * e + 1) & MASK32) << 32
        elif j <= count:
            total = total + sum(q for _, q in self.weights(n, e, j - 1, x)) & MASK64
            if j == count:
                r, total = r * total >> 64, 0
        else:
            for i, q in self.weights(n, e, j - 1 - count, x):
                if not found:
                    total = total + q & MASK64
                    index, found = (i, 1) if total > r else (index, 0)
        return [*narrow(r, total), index, found]

    def end(self, n, e, state):
        return state[4]


def draw_shape(n):
    return row_shape(1)(n) if pairs_fit(n, 1) and n.dims_of(0)[-1] >= 1 else None


def random_words_shape(n):
    fits = n.dims_of(0)[-1] == 2 and numel(n.dims_of(1)) == 1 and has_stream(n)
    return (I32, n.dims_of(0)) if fits else None


Operator(219, "weight(x, m)", weight_shape, weight)
Operator(220, "top_k(q i32; k)", row_shape(2, "k", 2**31 - 1),
         fold=Top(lambda q: 1, lambda n, total: n["k"], lambda n, goal: n["k"] >= n.dims_of(0)[-1]))
Operator(221, "top_p(q i32; p)", row_shape(2, "p", 2**24),
         fold=Top(lambda q: q, lambda n, total: ceil_div(n["p"] * total, 2**24), lambda n, goal: goal == 0))
Operator(222, "keep_top(q i32, cut i32)",
         lambda n: row_shape(n.dims_of(0)[-1])(n) if pairs_fit(n, 1) else None, keep_top)
Operator(223, "random_words(key i32, position i32; seed, stream)", random_words_shape, random_words)
Operator(224, "draw(q i32, words i32)", draw_shape, fold=Draw())
