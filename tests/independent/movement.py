"""Sources, data movement, batches, rotary positions: SPEC.md sections 5, 12.4 and 13."""

from fractions import Fraction
from math import prod

import binary32 as b
from binary32 import F32, MASK32, NAN, ZERO, canon, fma, of_int
from definitions import (BF16, F, FRACTIONS, I8, I32, NANS, SIZES, U8, U16, Operator, ceil_div, has_stream, numel, permute, place,
                         places, stands_for, stream_words)

I32_MIN, I32_MAX = -2**31, 2**31 - 1


def declared(dtype):
    return lambda n: n.shape[0] == dtype or None


def one_row(n):
    return n.shape[0] == I32 and len(n.dims) == 1 and n.dims[0] <= 2**31 or None


def drawn(n, e, x):
    """Random words; operators without an input draw the same in each step."""
    return stream_words(n, e, x(0, 0) if n.inputs else 0)


def normal(n, e, x):
    words = drawn(n, e, x)
    p, q = words[:2] if e % 4 < 2 else words[2:]
    u = of_int((p >> 8) + 1) * b.f("0x1p-24")
    rad = b.sqrt(b.f("-2") * b.log(u))
    z = rad * (b.sin_turn(q >> 8) if e & 1 else b.cos_turn(q >> 8))
    return fma(n.number("std"), z, n.number("mean"))


def uniform(n, e, x):
    u = of_int(drawn(n, e, x)[e % 4] >> 8) * b.f("0x1p-24")
    return fma(n.number("high") - n.number("low"), u, n.number("low"))


Operator(1, "fill(; value f)", declared(F), lambda n, e, x: n.number("value"))
Operator(2, "normal(; seed, stream, mean f, std f)", lambda n: n.shape[0] == F and has_stream(n) or None, normal)
Operator(202, "uniform(; seed, stream, low f, high f)", lambda n: n.shape[0] == F and has_stream(n) or None, uniform)
Operator(203, "permutation(step i32; seed, stream)",
         lambda n: one_row(n) and has_stream(n) and numel(n.dims_of(0)) == 1 or None,
         lambda n, e, x: permute(n["seed"], n["stream"], x(0, 0) & b.MASK32, n.dims[0], e))
Operator(9, "iota()", one_row, lambda n, e, x: e)


def batch_is_valid(n, rows):
    step = n.dims_of(-1)
    return (has_stream(n) and 1 <= n["batch"] < 2**31 and 0 <= n["first"] and n["first"] + rows <= n["batch"] and
            numel(step) == 1)


def record_of(n, row, step, records):
    """The record that row `row` of a batch reads."""
    g = (step & b.MASK32) * n["batch"] + n["first"] + row & 2**64 - 1
    return permute(n["seed"], n["stream"], g // records, records, g % records)


def windows(n):
    """The number of windows in each data tensor."""
    return [(dims[0] - 1) // n.dims[1] for _, dims in n.shapes[:-1]]


def read_batch_shape(n):
    data = n.shapes[:-1]
    if n.shape[0] != I32 or len(n.dims) != 2 or len(data) > 1023 or n["shift"] not in (0, 1):
        return None
    if any(dtype != data[0][0] or len(dims) != 1 for dtype, dims in data) or not batch_is_valid(n, n.dims[0]):
        return None
    return min(windows(n)) >= 1 and sum(windows(n)) <= 2**40 or None


def read_batch(n, e, x):
    row, t = places(e, n.dims)
    w, q = record_of(n, row, x(len(n.shapes) - 1, 0), sum(windows(n))), 0
    for count in windows(n):
        if w < count:
            break
        w, q = w - count, q + 1
    return x(q, w * n.dims[1] + t + n["shift"])


Operator(3, "read_batch(data u8 u16 i32 ..., step i32; seed, stream, batch, first, shift)", read_batch_shape, read_batch)


def from_record_shape(dtype, ndim):
    def shape(n):
        data = n.dims_of(0)
        last = n["offset"] + (prod(n.dims[1:]) if ndim > 1 else 1)
        if n.shape[0] != dtype or len(n.dims) != ndim or len(data) != 1 or not 0 <= n["offset"] < last <= n["record"]:
            return None
        return batch_is_valid(n, n.dims[0]) and data[0] // n["record"] >= 1 or None
    return shape


def read_images(n, e, x):
    r, h, w, c = places(e, n.dims)
    _, height, width, _ = n.dims
    record = record_of(n, r, x(1, 0), n.dims_of(0)[0] // n["record"])
    byte = x(0, record * n["record"] + n["offset"] + (c * height + h) * width + w)
    return fma(of_int(byte), n.number("scale"), n.number("shift"))


def read_labels(n, e, x):
    record = record_of(n, e, x(1, 0), n.dims_of(0)[0] // n["record"])
    return x(0, record * n["record"] + n["offset"])


Operator(152, "read_images(data u8, step i32; seed, stream, batch, first, record, offset, scale f, shift f)",
         from_record_shape(F, 4), read_images)
Operator(153, "read_labels(data u8, step i32; seed, stream, batch, first, record, offset)",
         from_record_shape(I32, 1), read_labels)


def outside(dtype):
    """The value of an element out of range."""
    return NAN if dtype == F else NANS.get(dtype, 0)


def embedding_shape(n):
    table, ids = n.dims_of(0), n.dims_of(1)
    return (n.shapes[0][0], ids + table[1:]) if len(table) == 2 else None


def embedding(n, e, x):
    v, c = n.dims_of(0)
    row, i = e // c, x(1, e // c)
    return x(0, i * c + e % c) if 0 <= i < v else outside(n.shapes[0][0])


Operator(4, "embedding(table f32 bf16 f16, ids i32)", embedding_shape, embedding)


class SumById:
    """The fold of embedding_grad: sums the rows with one id by levels of 64 (3.3)."""

    words = 8

    @staticmethod
    def view(n, e):
        """(ids, the id that element e sums, position p -> index in dy)."""
        c = n.dims[1]
        return numel(n.dims_of(1)), e // c, lambda p: p * c + e % c

    def parts(self, n):
        return ceil_div(self.view(n, 0)[0], 256)

    def step(self, n, e, j, state, x):
        count, levels = state[0], [F32(w) for w in state[1:]]
        ids, wanted, at = self.view(n, e)
        for p in range(256 * j, min(ids, 256 * (j + 1))):
            if x(1, p) != wanted:
                continue
            levels[0] = levels[0] + x(0, at(p))
            count = count + 1 & b.MASK32
            for k in range(6):
                if count % 64**(k + 1):
                    break
                levels[k + 1], levels[k] = levels[k + 1] + levels[k], ZERO
        return [count] + [canon(s).word for s in levels]

    def end(self, n, e, state):
        levels = [F32(w) for w in state[1:]]
        total = levels[0]
        for level in levels[1:]:
            total = level + total
        return canon(total)


def embedding_grad_shape(n):
    dy, ids = n.dims_of(0), n.dims_of(1)
    fits = n.shape[0] == F and len(n.dims) == 2 and dy[-1] == n.dims[1] and prod(dy[:-1]) == numel(ids) <= 2**31
    return fits or None


Operator(5, "embedding_grad(dy, ids i32)", embedding_grad_shape, fold=SumById())


def split_heads_shape(n):
    dims, parts, heads = n.dims_of(0), n["parts"], n["heads"]
    if len(dims) != 3 or not 1 <= parts <= 8 or not 0 <= n["part"] < parts or not 1 <= heads <= 2**20:
        return None
    return None if dims[2] % (parts * heads) else (n.shapes[0][0], (dims[0], heads, dims[1], dims[2] // (parts * heads)))


def split_heads(n, e, x):
    i, h, t, d = places(e, n.dims)
    return x(0, place((i, t, (n["part"] * n["heads"] + h) * n.dims[3] + d), n.dims_of(0)))


def join_heads_shape(n):
    dims = n.dims_of(0)
    if len(dims) != 4 or len(n.shapes) > 8 or any(s != n.shapes[0] for s in n.shapes):
        return None
    return n.shapes[0][0], (dims[0], dims[2], len(n.shapes) * dims[1] * dims[3])


def join_heads(n, e, x):
    _, heads, _, width = n.dims_of(0)
    i, t, column = places(e, n.dims)
    part, rest = divmod(column, heads * width)
    return x(part, place((i, rest // width, t, rest % width), n.dims_of(0)))


Operator(6, "split_heads(x any; parts, part, heads)", split_heads_shape, split_heads)
Operator(7, "join_heads(x any ...)", join_heads_shape, join_heads)


def concat(n, e, x):
    for i in range(len(n.shapes)):
        size = numel(n.dims_of(i))
        if e < size:
            return x(i, e)
        e -= size
    raise IndexError


Operator(8, "concat(x ...)", lambda n: (F, (sum(numel(s[1]) for s in n.shapes),)) if len(n.shapes) <= 1024 else None,
         concat)

RANGES = {I32: (I32_MIN, I32_MAX), U8: (0, 255), U16: (0, 65535), I8: (-128, 127)}


def cast(n, e, x):
    value, dtype, to = x(0, e), n.shapes[0][0], n["dtype"]
    if dtype == to:
        return value
    if dtype in FRACTIONS:
        value = b.of_half(value, FRACTIONS[dtype])
    if to not in RANGES and not isinstance(value, F32):
        value = of_int(value)
    if to not in RANGES:
        return b.to_half(value, FRACTIONS[to]) if to in FRACTIONS else canon(value)
    lo, hi = RANGES[to]
    if isinstance(value, F32):
        if value.is_nan():
            return 0
        value = (lo if value.negative() else hi) if value.is_inf() else b.to_int(value)
    return max(lo, min(hi, value))


def cast_stochastic(n, e, x):
    value, step = x(0, e), x(1, 0)
    if value.is_nan():
        return b.to_half(value, FRACTIONS[BF16])
    word = stream_words(n, e // 8 * 4, step)[e // 2 % 4]
    return value.word + (word >> 16 if e % 2 else word & 0xffff) >> 16


Operator(15, "cast(x any; dtype)", lambda n: (n["dtype"], n.dims_of(0)) if n["dtype"] in SIZES else None, cast)
Operator(226, "cast_stochastic(x, step i32; seed, stream)",
         lambda n: (BF16, n.dims_of(0)) if has_stream(n) and numel(n.dims_of(1)) == 1 else None, cast_stochastic)


def repeat_heads_shape(n):
    dims = n.dims_of(0)
    return (n.shapes[0][0], (dims[0], dims[1] * n["times"]) + dims[2:]) if len(dims) == 4 and 1 <= n["times"] <= 1024 else None


def repeat_heads(n, e, x):
    i, h, t, d = places(e, n.dims)
    return x(0, place((i, h // n["times"], t, d), n.dims_of(0)))


def repeat_heads_grad_shape(n):
    dims, times = n.dims_of(0), n["times"]
    if len(dims) != 4 or not 1 <= times <= 1024 or dims[1] % times:
        return None
    return F, (dims[0], dims[1] // times) + dims[2:]


def repeat_heads_grad(n, e, x):
    i, g, t, d = places(e, n.dims)
    total = ZERO
    for k in range(n["times"]):
        total = total + x(0, place((i, g * n["times"] + k, t, d), n.dims_of(0)))
    return total


Operator(79, "repeat_heads(x any; times)", repeat_heads_shape, repeat_heads)
Operator(80, "repeat_heads_grad(dy; times)", repeat_heads_grad_shape, repeat_heads_grad)


def within(number, least, below):
    return not number < least and number < below


def rope_turns_shape(n):
    if n.shape[0] != I32 or len(n.dims) != 2 or n.dims[0] > 2**19 or n.dims[1] != 2:
        return None
    kind, unused = n["kind"], {0: ("factor", "low", "high", "original"), 1: ("low", "high", "original"), 2: ()}
    if kind not in unused or any(n[name] for name in unused[kind]):
        return None
    if not within(n.number("base"), b.ONE, b.f("0x1p32")):
        return None
    if kind and not within(n.number("factor"), b.ONE, b.f("0x1p32")):
        return None
    ends = [n.number("low"), n.number("high")]
    fits = all(within(x, b.f("0x1p-8"), b.f("0x1p14")) for x in ends) and ends[0] < ends[1] and 1 <= n["original"] < 2**31
    return True if kind < 2 or fits else None


def frequency(base, h, i):
    """base^(-i/h) / (2 pi) turns, in units of 2^-64: section 13."""
    def high(u, v):
        return u * v >> 64
    m, exponent = base.exact()
    y, fraction = m << 40, 0
    for _ in range(56):
        v = high(y, y)
        y, fraction = (v, 2 * fraction + 1) if v >= 1 << 63 else (2 * v, 2 * fraction)
    log2 = (exponent + 23 << 56) + fraction
    x = i * (log2 // h) + i * (log2 % h) // h
    t = high((x & (1 << 56) - 1) << 8, 0xb17217f7d1cf79ac)
    e = 1 << 62
    for j in range(20, 0, -1):
        e = (1 << 62) - high(t, e) // j
    return high(2 * e, 0x517cc1b727220a95) >> (x >> 56)


def scaled(n, f):
    def fraction(name):
        m, exponent = n.number(name).exact()
        return Fraction(m) * Fraction(2)**exponent
    if n["kind"] == 0:
        return f
    divided = int(f / fraction("factor"))
    if n["kind"] == 1:
        return divided
    v, low, high = n["original"] * f >> 32, fraction("low") * 2**32, fraction("high") * 2**32
    if v < low:
        return divided
    return f if v >= high else divided + (int((v - low) * 2**32 / (high - low)) * (f - divided) >> 32)


def rope_turns(n, e, x):
    f = scaled(n, frequency(n.number("base"), n.dims[0], e // 2))
    word = f >> 32 if e % 2 else f & MASK32
    return word - (word >> 31 << 32)


def rope_shape(n):
    dims = n.dims_of(0)
    if len(dims) < 2 or dims[-1] % 2 or dims[-1] > 2**20 or n["pairs"] not in (0, 1) or n["inverse"] not in (0, 1):
        return None
    lines = stands_for(n.dims_of(1), dims[-2:-1]) or (len(dims) > 2 and stands_for(n.dims_of(1), (dims[0], dims[-2])))
    return n.shapes[0] if lines and stands_for(n.dims_of(2), (dims[-1] // 2, 2)) else None


def rope(n, e, x):
    length, width = n.dims[-2:]
    row, d = divmod(e, width)
    i, second = (d // 2, d % 2) if n["pairs"] else (d % (width // 2), d // (width // 2))
    first, other = (2 * i, 2 * i + 1) if n["pairs"] else (i, i + width // 2)
    left, right = x(0, row * width + first), x(0, row * width + other)
    line = 0 if numel(n.dims_of(1)) == length else row // (numel(n.dims) // width // n.dims[0])
    f = (x(2, 2 * i) & MASK32) + ((x(2, 2 * i + 1) & MASK32) << 32)
    k = (x(1, line * length + row % length) * f + (1 << 39) & (1 << 64) - 1) >> 40
    c, s = b.cos_turn(k), b.sin_turn(k)
    s = -s if n["inverse"] else s
    return fma(right, c, left * s) if second else fma(left, c, -(right * s))


Operator(205, "rope_turns(; base f, kind, factor f, low f, high f, original)", rope_turns_shape, rope_turns)
Operator(206, "rope(x, position i32, turns i32; pairs, inverse)", rope_shape, rope)

# Around an axis a tensor is [outer, n, inner].


def around(dims, axis):
    return prod(dims[:axis]), dims[axis], prod(dims[axis + 1:])


def axis_fits(n, i=0):
    return 0 <= n["axis"] < len(n.dims_of(i))


def with_axis(dims, axis, *lengths):
    return dims[:axis] + lengths + dims[axis + 1:]


def transpose_shape(n):
    dims = n.dims_of(0)
    order, rest = [n[f"d{i}"] for i in range(len(dims))], [n[f"d{i}"] for i in range(len(dims), 8)]
    return (n.shapes[0][0], [dims[d] for d in order]) if sorted(order) == list(range(len(dims))) and not any(
        rest) else None


def transpose(n, e, x):
    dims = n.dims_of(0)
    index = [0] * len(dims)
    for i, at in enumerate(places(e, n.dims)):
        index[n[f"d{i}"]] = at
    return x(0, place(index, dims))


def slice_shape(n):
    if not axis_fits(n) or not 1 <= n["step"] <= 2**40 or n["start"] < 0 or n["length"] < 0:
        return None
    dims, axis = n.dims_of(0), n["axis"]
    inside = not n["length"] or n["start"] + (n["length"] - 1) * n["step"] < dims[axis]
    return (n.shapes[0][0], with_axis(dims, axis, n["length"])) if inside else None


def slice_(n, e, x):
    o, j, i = places(e, around(n.dims, n["axis"]))
    return x(0, place((o, n["start"] + j * n["step"], i), around(n.dims_of(0), n["axis"])))


def pad_shape(n):
    if not axis_fits(n) or not 1 <= n["step"] <= 2**40 or not all(0 <= n[s] <= 2**40 for s in ("before", "after")):
        return None
    dtype, dims = n.shapes[0]
    if n["value"] >= 1 << 8 * SIZES[dtype]:
        return None
    return dtype, with_axis(dims, n["axis"], n["before"] + (dims[n["axis"]] - 1) * n["step"] + 1 + n["after"])


def pad(n, e, x):
    dtype, dims = n.shapes[0]
    o, j, i = places(e, around(n.dims, n["axis"]))
    k, rest = divmod(j - n["before"], n["step"])
    if rest or not 0 <= k < dims[n["axis"]]:
        return F32(n["value"]) if dtype == F else n["value"]
    return x(0, place((o, k, i), around(dims, n["axis"])))


def gather_shape(n):
    if not axis_fits(n):
        return None
    dims = with_axis(n.dims_of(0), n["axis"], *n.dims_of(1))
    return (n.shapes[0][0], dims) if len(dims) <= 5 else None


def gather(n, e, x):
    dtype, dims = n.shapes[0]
    outer, count, inner = around(dims, n["axis"])
    o, p, i = places(e, (outer, numel(n.dims_of(1)), inner))
    v = x(1, p)
    if 0 <= v < count:
        return x(0, place((o, v, i), (outer, count, inner)))
    return outside(dtype)


class SumByIdAlong(SumById):
    @staticmethod
    def view(n, e):
        outer, count, inner = around(n.dims, n["axis"])
        ids = numel(n.dims_of(1))
        o, v, i = places(e, (outer, count, inner))
        return ids, v, lambda p: place((o, p, i), (outer, ids, inner))


def gather_grad_shape(n):
    if n.shape[0] != F or not 0 <= n["axis"] < len(n.dims) or numel(n.dims_of(1)) > 2**31:
        return None
    return with_axis(n.dims, n["axis"], *n.dims_of(1)) == n.dims_of(0) or None


def concat_axis_shape(n):
    if not axis_fits(n) or len(n.shapes) > 1024:
        return None
    axis, (dtype, dims) = n["axis"], n.shapes[0]
    if any(s[0] != dtype or len(s[1]) != len(dims) or with_axis(s[1], axis) != with_axis(dims, axis) for s in n.shapes):
        return None
    return dtype, with_axis(dims, axis, sum(s[1][axis] for s in n.shapes))


def concat_axis(n, e, x):
    outer, _, inner = around(n.dims, n["axis"])
    o, j, i = places(e, around(n.dims, n["axis"]))
    for k, (_, dims) in enumerate(n.shapes):
        if j < dims[n["axis"]]:
            return x(k, place((o, j, i), (outer, dims[n["axis"]], inner)))
        j -= dims[n["axis"]]
    raise IndexError


def expand_shape(n):
    if not axis_fits(n) or not 0 <= n["count"] <= 2**31 or n.dims_of(0)[n["axis"]] != 1:
        return None
    return n.shapes[0][0], with_axis(n.dims_of(0), n["axis"], n["count"])


def expand(n, e, x):
    o, _, i = places(e, around(n.dims, n["axis"]))
    return x(0, o * around(n.dims, n["axis"])[2] + i)


def max_grad_shape(n):
    shape = expand_shape(n)
    return (F, shape[1]) if shape and n.dims_of(0) == n.dims_of(1) else None


def max_grad(n, e, x):
    o, j, i = places(e, around(n.dims, n["axis"]))
    at = o * around(n.dims, n["axis"])[2] + i
    chosen, dy = x(0, at), x(1, at)
    return dy if j == chosen else ZERO


class ArgMax:
    """The fold of argmax: the best so far, and its index."""

    words = 2

    def parts(self, n):
        return ceil_div(n.dims_of(0)[n["axis"]], 512)

    def step(self, n, e, j, state, x):
        _, count, inner = around(n.dims_of(0), n["axis"])
        best, at = F32(state[0]), state[1]
        for k in range(512 * j, min(count, 512 * (j + 1))):
            value = x(0, (e // inner * count + k) * inner + e % inner)
            if k == 0 or value > best or (value.is_nan() and not best.is_nan()):
                best, at = value, k
        return [canon(best).word, at]

    def end(self, n, e, state):
        return state[1]


def argmax_shape(n):
    return (I32, with_axis(n.dims_of(0), n["axis"], 1)) if axis_fits(n) and n.dims_of(0)[n["axis"]] <= 2**31 else None


Operator(10, "transpose(x any; d0, d1, d2, d3, d4, d5, d6, d7)", transpose_shape, transpose)
Operator(11, "slice(x any; axis, start, length, step)", slice_shape, slice_)
Operator(12, "pad(x any; axis, before, after, step, value f)", pad_shape, pad)
Operator(13, "gather(x any, ids i32; axis)", gather_shape, gather)
Operator(14, "concat_axis(x any ...; axis)", concat_axis_shape, concat_axis)
Operator(119, "argmax(x; axis)", argmax_shape, fold=ArgMax())
Operator(120, "max_grad(at i32, dy; axis, count)", max_grad_shape, max_grad)
Operator(121, "expand(x any; axis, count)", expand_shape, expand)
Operator(200, "reshape(x any)", lambda n: n.shape[0] == n.shapes[0][0] and numel(n.dims) == numel(n.dims_of(0)) or None,
         lambda n, e, x: x(0, e))
Operator(201, "gather_grad(dy, ids i32; axis)", gather_grad_shape, fold=SumByIdAlong())
