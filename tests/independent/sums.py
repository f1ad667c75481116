"""Operators that add in a fixed order: products, reductions, attention, images: SPEC.md sections 3, 8 and 12."""

from math import prod

from binary32 import F32, INF, NAN, ONE, ZERO, canon, exp, fma, of_half, of_int, rounded
from definitions import F, FRACTIONS, Operator, calls, ceil_div, numel, per_row, repeats, stands_for
from elementwise import larger


def widened(value, dtype):
    return of_half(value, FRACTIONS[dtype]) if dtype in FRACTIONS else value


class Dot:
    """dot_C as a fold. `terms(n, e)` gives K, the chunk size, and a function from k to both indices, the first None if
    the term is absent."""

    words = 1

    def __init__(self, terms):
        self.terms = terms

    def parts(self, n):
        k, chunk, _ = self.terms(n, 0)
        return ceil_div(k, chunk)

    def step(self, n, e, j, state, x):
        k, chunk, at = self.terms(n, e)
        total = ZERO
        for i in range(j * chunk, min(k, (j + 1) * chunk)):
            left, right = at(i)
            if left is not None:
                total = fma(x(0, left), widened(x(1, right), n.shapes[1][0]), total)
        return [(F32(state[0]) + total).word]

    def end(self, n, e, state):
        tot = F32(state[0])
        return tot * n.number("alpha") if "alpha" in n.attributes else canon(tot)


def matrices(n):
    """(batch, M, K, N) of a matmul, or None if its inputs do not fit."""
    d, trans = n["batch_dims"], n["trans"]
    left, right = n.dims_of(0), n.dims_of(1)
    if not (0 <= d <= min(len(left), len(right)) - 2 and 0 <= trans <= 3 and left[:d] == right[:d]):
        return None
    a, c = (prod(left[d:-1]), left[-1]), (prod(right[d:-1]), right[-1])
    m, k = a[::-1] if trans & 1 else a
    k2, columns = c[::-1] if trans & 2 else c
    return (prod(left[:d]), m, k, columns) if k == k2 else None


def product_shape(n):
    sizes = matrices(n)
    if sizes is None:
        return None
    d, left = n["batch_dims"], n.dims_of(0)
    dims = left[:d] + ((sizes[1],) if n["trans"] & 1 else left[d:-1]) + (sizes[3],)
    return (F, dims) if len(dims) <= 5 else None


def matmul_shape(n):
    if n["chunk"] not in (128, 256) or n["mask"] not in (0, 1, 2):
        return None
    if not 0 <= n["window"] <= (2**40 if n["mask"] else 0):
        return None
    return product_shape(n)


def product_places(n, e):
    """(K, row, both indices for each k) of an element of a product."""
    _, m, k, columns = matrices(n)
    batch, rest = divmod(e, m * columns)
    row, column = divmod(rest, columns)

    def at(i):
        return (batch * m * k + (i * m + row if n["trans"] & 1 else row * k + i),
                batch * k * columns + (column * k + i if n["trans"] & 2 else i * columns + column))
    return k, row, at


def matmul_terms(n, e):
    k, row, places = product_places(n, e)

    def at(i):
        if (n["mask"] == 1 and i > row) or (n["mask"] == 2 and i < row) or abs(row - i) >= (n["window"] or 2**62):
            return None, None
        return places(i)
    return k, n["chunk"], at


def exponent(x):
    """The least e >= -125 such that all |x| <= 127 * 2^(e - 7)."""
    e = -125
    for m, p in (abs(v).exact() for v in x):
        while m << max(p - e + 7, 0) > 127 << max(e - 7 - p, 0):
            e += 1
    return e


def integer(x, scale):
    """The integer nearest to x * 2^scale, ties to even."""
    m, p = x.exact()
    if p + scale >= 0:
        return m << p + scale
    whole, rest = m >> -p - scale, m & (1 << -p - scale) - 1
    return whole + (2 * rest > 1 << -p - scale or (2 * rest == 1 << -p - scale and whole & 1))


def line_scale(x, bits):
    """The power of two by which a line's numbers become integers, which have 16 instead of 8 bits if it is uneven."""
    e = exponent(x)
    sizes = [abs(v).exact() for v in x]
    numbers = sum(m > 0 for m, _ in sizes)
    small = sum(m > 0 and m << max(p - e + 6, 0) < 1 << max(e - 6 - p, 0) for m, p in sizes)
    return (16 if bits == 8 and 2 * small > numbers else bits) - 1 - e


def fixed(left, right, bits):
    """The sum that a chunk of a fixed product adds."""
    if any(x.is_nan() or x.is_inf() for x in left + right):
        return NAN
    a, c = line_scale(left, bits), line_scale(right, bits)
    total = sum(integer(x, a) * integer(y, c) for x, y in zip(left, right))
    return rounded(total < 0, abs(total), -a - c) if total else ZERO


class FixedDot(Dot):
    """The same with fixed_bits: an absent term counts as +0."""

    def step(self, n, e, j, state, x):
        k, chunk, at = self.terms(n, e)
        places = [at(i) for i in range(chunk * j, min(k, chunk * (j + 1)))]
        left = [ZERO if place is None else x(0, place) for place, _ in places]
        right = [x(1, place) for _, place in places]
        return [(F32(state[0]) + fixed(left, right, n["bits"])).word]


def matmul_fixed_terms(n, e):
    k, _, at = product_places(n, e)
    return k, 256, at


Operator(32, "matmul(a, b f32 bf16 f16; batch_dims, trans, alpha f, chunk, mask, window)", matmul_shape, fold=Dot(matmul_terms))
Operator(225, "matmul_fixed(a, b; batch_dims, trans, alpha f, bits)",
         lambda n: product_shape(n) if n["bits"] in (8, 16, 24) else None, fold=FixedDot(matmul_fixed_terms))

# Rows.


def blocks_shape(kinds):
    """A shape rule: the output is declared, one element for each block of each row. Kinds of further inputs: like the
    first (x), for each row (r) or column (c), or broadcast (+)."""
    @calls("reduction", kinds)
    def shape(n):
        dims, cols = n.dims_of(0), n["cols"]
        if cols < 1 or numel(dims) % cols or not 1 <= n["block"] <= 1024 or n.shape[0] != F:
            return None
        fits = {"x": lambda d: d == dims, "r": lambda d: per_row(d, dims, cols), "c": lambda d: stands_for(d, (cols,)),
                "+": lambda d: repeats(d, dims)}
        blocks = numel(dims) // cols * ceil_div(cols, n["block"])
        return all(fits[k](s[1]) for k, s in zip(kinds, n.shapes)) and numel(n.dims) == blocks or None
    return shape


def block_of(n, e):
    """(row, first, end) of the block that element e reduces."""
    blocks = ceil_div(n["cols"], n["block"])
    row, j = divmod(e, blocks)
    return row, j * n["block"], min(n["cols"], (j + 1) * n["block"])


def reduction(number, signature, kinds, term):
    """Order R: term(lane, n, operands) adds one element to a lane."""
    def element(n, e, x):
        row, first, end = block_of(n, e)
        lanes = [ZERO] * 128
        for i in range(first, end):
            at = row * n["cols"] + i
            index = {"x": at, "r": row, "c": i}
            values = [x(j, index[k] if k != "+" else at % numel(n.dims_of(j))) for j, k in enumerate(kinds)]
            lane = (i - first) % 128
            lanes[lane] = term(lanes[lane], *values)
        width = 64
        while width:
            lanes = [lanes[i] + lanes[i + width] for i in range(width)]
            width //= 2
        return lanes[0]
    Operator(number, signature + "; cols, block)", blocks_shape(kinds), element)


def squared(lane, x, mean):
    d = x - mean
    return fma(d, d, lane)


reduction(40, "reduce_sum(x", "x", lambda lane, x: lane + x)
reduction(42, "reduce_dot(a, b", "x+", lambda lane, a, c: fma(a, c, lane))
reduction(43, "reduce_sqdev(x, mean", "xr", squared)
reduction(44, "reduce_expsum(x, m", "xr", lambda lane, x, m: lane + exp(x - m))
reduction(45, "reduce_ln_gx(dy, gamma, x, mean, rstd", "xcxrr",
          lambda lane, dy, gamma, x, mean, rstd: fma(dy * gamma, (x - mean) * rstd, lane))
reduction(124, "reduce_rms_gx(dy, gamma, x, rstd", "xcxr",
          lambda lane, dy, gamma, x, rstd: fma(dy * gamma, x * rstd, lane))


def reduce_max(n, e, x):
    row, first, end = block_of(n, e)
    m = -INF
    for i in range(first, end):
        m = larger(m, x(0, row * n["cols"] + i))
    return m


Operator(41, "reduce_max(x; cols, block)", blocks_shape("x"), reduce_max)

# Columns.


def groups_shape(kinds):
    """A shape rule: the output is declared, a row for each 64 rows. Kinds of further inputs: like the first (x), for
    each row (r), column (c) or group (g)."""
    @calls("columns", kinds)
    def shape(n):
        dims, cols = n.dims_of(0), n["cols"]
        if cols < 1 or numel(dims) % cols or n.shape[0] != F:
            return None
        rows = numel(dims) // cols
        fits = {"x": lambda d: d == dims, "r": lambda d: per_row(d, dims, cols), "c": lambda d: stands_for(d, (cols,)),
                "g": lambda d: stands_for(d, (ceil_div(rows, 64), cols))}
        operands = all(fits[k](s[1]) for k, s in zip(kinds, n.shapes))
        return operands and numel(n.dims) == ceil_div(rows, 64) * cols or None
    return shape


def group_of(n, e):
    """(group, column, rows of the group) of element e."""
    group, c = divmod(e, n["cols"])
    return group, c, range(64 * group, min(64 * (group + 1), numel(n.dims_of(0)) // n["cols"]))


def columns(number, signature, kinds, term, end=lambda total, rows: total):
    """Order K: term(acc, operands) adds one row."""
    def element(n, e, x):
        group, c, rows = group_of(n, e)
        total = ZERO
        for r in rows:
            index = {"x": r * n["cols"] + c, "r": r, "c": c, "g": e}
            total = term(total, *[x(j, index[k]) for j, k in enumerate(kinds)])
        return end(total, of_int(len(rows)))
    Operator(number, signature + "; cols)", groups_shape(kinds), element)


columns(48, "sum_rows(x", "x", lambda acc, x: acc + x)
columns(49, "ln_dgamma(dy, x, mean, rstd", "xxrr",
        lambda acc, dy, x, mean, rstd: fma(dy, (x - mean) * rstd, acc))
columns(125, "rms_dgamma(dy, x, rstd", "xxr", lambda acc, dy, x, rstd: fma(dy, x * rstd, acc))
columns(144, "bn_mean(x", "x", lambda acc, x: acc + x, lambda total, rows: total / rows)
columns(145, "bn_sqdev(x, mean", "xg", squared)
columns(149, "bn_dgamma(dy, x, mean, rstd", "xxcc",
        lambda acc, dy, x, mean, rstd: fma(dy, (x - mean) * rstd, acc))

# Attention: s is [..., T, S], blocks of 128 keys.


def query(n, e, width):
    """(query number over all leading dimensions, t, index in the last dimension)."""
    q, j = divmod(e, width)
    return q, q % n.dims_of(0)[-2], j


def admitted(n, t, keys):
    return [j for j in keys if not n["causal"] or 0 <= t - j < (n["window"] or 2**62)]


def mask_fits(n, dims):
    """Causal attention needs as many keys as queries, and a window needs causal attention."""
    if n["causal"] not in (0, 1) or (n["causal"] and dims[-1] != dims[-2]):
        return False
    return 0 <= n["window"] <= (2**40 if n["causal"] else 0)


def scores_shape(out, *others):
    def shape(n):
        s = n.dims_of(0)
        if len(s) < 2 or not mask_fits(n, s):
            return None
        wanted = {"s": s, "c": s[:-1] + (ceil_div(s[-1], 128),), "1": s[:-1] + (1,)}
        fits = all(n.dims_of(i + 1) == s if k == "s" else stands_for(n.dims_of(i + 1), wanted[k])
                   for i, k in enumerate(others))
        return (F, wanted[out]) if fits else None
    return shape


def attn_max(n, e, x):
    keys = n.dims_of(0)[-1]
    q, t, c = query(n, e, n.dims[-1])
    m = -INF
    for j in admitted(n, t, range(128 * c, min(keys, 128 * (c + 1)))):
        m = larger(m, x(0, q * keys + j))
    return m


def attn_exp(n, e, x):
    keys = n.dims[-1]
    q, t, j = query(n, e, keys)
    m = x(1, q * ceil_div(keys, 128) + j // 128)
    return exp(x(0, e) - m) if admitted(n, t, [j]) and m.word != (-INF).word else ZERO


def attn_av_shape(n):
    e, v = n.dims_of(0), n.dims_of(1)
    if len(e) < 2 or len(v) != len(e) or v[:-2] != e[:-2] or v[-2] != e[-1] or not mask_fits(n, e):
        return None
    dims = e[:-1] + (ceil_div(e[-1], 128), v[-1])
    return (F, dims) if len(dims) <= 5 else None


def attn_av(n, e, x):
    keys, width = n.dims_of(0)[-1], n.dims[-1]
    rest, d = divmod(e, width)
    q, t, c = query(n, rest, n.dims[-2])
    head = q // n.dims_of(0)[-2]
    total = ZERO
    for j in admitted(n, t, range(128 * c, min(keys, 128 * (c + 1)))):
        total = fma(x(0, q * keys + j), x(1, (head * keys + j) * width + d), total)
    return ZERO + total


def walk(blocks):
    """Merges blocks as attn_l and attn_out do: (maximum, value) after each."""
    m = total = None
    for mine, value in blocks:
        if mine.word == (-INF).word:
            continue
        if m is None:
            m, total = mine, value
            continue
        most = larger(m, mine)
        total = fma(total, exp(m - most), exp(mine - most) * value)
        m = most
    return total


def attn_l_shape(n):
    mc = n.dims_of(0)
    return (F, mc[:-1] + (1,)) if n.dims_of(1) == mc and len(mc) >= 2 and mc[-1] <= 2047 else None


def attn_l(n, e, x):
    blocks = n.dims_of(0)[-1]
    total = walk([(x(0, e * blocks + c), x(1, e * blocks + c)) for c in range(blocks)])
    return ZERO if total is None else canon(total)


def attn_out_shape(n):
    mc, ac, l = (n.dims_of(i) for i in range(3))
    fits = len(mc) >= 2 and mc[-1] <= 2047 and ac[:-1] == mc and len(ac) > len(mc) and stands_for(l, mc[:-1])
    return (F, mc[:-1] + ac[-1:]) if fits else None


def attn_out(n, e, x):
    blocks, width = n.dims_of(0)[-1], n.dims[-1]
    q, d = divmod(e, width)
    total = walk([(x(0, q * blocks + c), x(1, (q * blocks + c) * width + d)) for c in range(blocks)])
    scale = ONE / x(2, q)
    return ZERO if total is None else total * scale


def attn_prob(n, e, x):
    q, t, j = query(n, e, n.dims[-1])
    m, l = x(1, q), x(2, q)
    return exp(x(0, e) - m) * (ONE / l) if admitted(n, t, [j]) and m.word != (-INF).word else ZERO


def attn_dscore(n, e, x):
    q, t, j = query(n, e, n.dims[-1])
    score = x(0, e) * (x(1, e) - x(2, q))
    return score if admitted(n, t, [j]) else ZERO


Operator(72, "attn_max(s; causal, window)", scores_shape("c"), attn_max)
Operator(73, "attn_exp(s, mc; causal, window)", scores_shape("s", "c"), attn_exp)
Operator(74, "attn_av(e, v; causal, window)", attn_av_shape, attn_av)
Operator(75, "attn_l(mc, lc)", attn_l_shape, attn_l)
Operator(76, "attn_out(mc, ac, l)", attn_out_shape, attn_out)
Operator(77, "attn_prob(s, m, l; causal, window)", scores_shape("s", "1", "1"), attn_prob)
Operator(78, "attn_dscore(p, dp, delta; causal, window)", scores_shape("s", "s", "1"), attn_dscore)

# Along any axis.


def axis_groups_shape(n):
    dims, axis = n.dims_of(0), n["axis"]
    return (F, dims[:axis] + (ceil_div(dims[axis], 64),) + dims[axis + 1:]) if 0 <= axis < len(dims) else None


def along_axis(start, term):
    def element(n, e, x):
        dims, axis = n.dims_of(0), n["axis"]
        count, inner = dims[axis], prod(dims[axis + 1:])
        rest, i = divmod(e, inner)
        o, group = divmod(rest, ceil_div(count, 64))
        total = start
        for k in range(64 * group, min(count, 64 * (group + 1))):
            total = term(total, x(0, (o * count + k) * inner + i))
        return total
    return element


Operator(117, "sum_axis(x; axis)", axis_groups_shape, along_axis(ZERO, lambda acc, x: acc + x))
Operator(118, "max_axis(x; axis)", axis_groups_shape, along_axis(-INF, larger))
