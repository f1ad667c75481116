#!/usr/bin/env python3
"""Writes products.txt: fixed products and some of their elements, computed by SPEC.md section 3.5 in rational arithmetic.

    numbers NAME LOW-HIGH ...
        A set of numbers: ranges of words, both ends included.
    product NAME bits batch M N K trans alpha A B seed [SIDE:LINE:K-END:WORD ...] = WORD ...
        a is drawn from set A, and b from set B. For element i of operand `side`, h = case_word(seed, side, i)
        (repops/tools/op_data.h) chooses range h mod their count, and word (h >> 20) mod its size in it. Then some numbers of the
        first product are replaced by WORD: elements K to END - 1 of row LINE of a (side 0), or of column LINE of b (side 1). After
        "=" come elements 0, s, 2s, ... of the output, where s is the least odd number that gives at most 16 of them."""

from fractions import Fraction
from functools import cache
from pathlib import Path

MASK = 2**64 - 1
NAN, INFINITY, MOST = 0x7fc00000, 0x7f800000, 16
LARGEST = 127 << 16  # the largest 24-bit integer
ENDS = (0x3f7e0000, 0x3f7e0001, 0x3f7dffff, 0x3f7fffff, 0x3f800000)


def both_signs(*words):
    return [(w, w) for w in words] + [(w | 1 << 31, w | 1 << 31) for w in words]


def magnitudes(low, high):
    return [(low, high), (low | 1 << 31, high | 1 << 31)]


def whole(i):
    """The word of i 2^-23, i > 0: a 24-bit integer in a chunk whose largest number has one bit less."""
    return to_word(Fraction(i, 2**23))


@cache
def val(w):
    field, m = w >> 23 & 255, w & 0x7fffff
    if field == 255:
        return None
    return (-1 if w >> 31 else 1) * Fraction(m | (field > 0) << 23) * Fraction(2) ** (max(field, 1) - 150)


def is_nan(w):
    return w & 0x7fffffff > INFINITY


def nearest(q):
    floor, rest = divmod(q, 1)
    return floor + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor % 2))


def to_word(q):
    """Rounds q to the nearest number: ties to even, subnormals kept, and +0 for 0."""
    size, sign = abs(q), (q < 0) << 31
    # size < 2^(e + 24), and size >= 2^(e + 23) unless e is the least exponent.
    e = max(size.numerator.bit_length() - size.denominator.bit_length() - 24, -149) if q else -149
    e += size >= Fraction(2) ** (e + 24)
    m = nearest(size / Fraction(2) ** e)
    return sign | min(m if e == -149 else (e + 149 << 23) + m, INFINITY)


def plus(x, y):
    a, b = val(x), val(y)
    if is_nan(x) or is_nan(y) or (a is None and b is None and x != y):
        return NAN
    if a is None or b is None:
        return x if a is None else y
    return to_word(a + b)


def times(x, y):
    a, b, sign = val(x), val(y), (x ^ y) & 1 << 31
    if is_nan(x) or is_nan(y) or (a is None and b == 0) or (b is None and a == 0):
        return NAN
    if a is None or b is None:
        return sign | INFINITY
    return to_word(a * b) | sign


@cache
def exponent(most):
    e = -125
    while most > 127 * Fraction(2) ** (e - 7):
        e += 1
    return e


@cache
def integer(w, scale):
    return nearest(val(w) * Fraction(2) ** scale)


def line_scale(x, bits):
    """Returns the exponent of the power of two that turns a line's numbers into integers."""
    sizes = [abs(val(w)) for w in x]
    e = exponent(max(sizes))
    small = sum(0 < size < Fraction(2) ** (e - 6) for size in sizes)
    if bits == 8 and 2 * small > sum(size > 0 for size in sizes):
        bits = 16
    return bits - 1 - e


def chunk(a, b, bits):
    if None in map(val, a + b):
        return NAN
    scale_a, scale_b = line_scale(a, bits), line_scale(b, bits)
    total = sum(integer(x, scale_a) * integer(y, scale_b) for x, y in zip(a, b))
    return to_word(total * Fraction(2) ** -(scale_a + scale_b))


def fixed(a, b, bits):
    total = 0
    for k in range(0, len(a), 256):
        total = plus(total, chunk(a[k:k + 256], b[k:k + 256], bits))
    return total


def hashed(seed, side, i):
    z = (seed + (side << 40) + i) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def draw(ranges, h):
    low, high = ranges[h % len(ranges)]
    return low + (h >> 20) % (high - low + 1)


NUMBERS = {
    "even": magnitudes(0x3d000000, 0x40ffffff),
    "any": magnitudes(0x00000000, 0x7f7fffff),
    "large": magnitudes(0x5f000000, 0x7f7fffff),
    "small": magnitudes(0x19000000, 0x1bffffff),
    "subnormal": magnitudes(0x00000000, 0x01000000),
    # Around the least exponent, and around 127/128 of a power of two.
    "edges": both_signs(0, 1, 2, 0x7fffff, 0x800000, 0x7e0000, 0x7f0000, 0x7f0001, 0xfe0000, 0xfe0001),
    "ends": both_signs(*ENDS),
    # Ties at 24, 16 and 8 bits, beside a number that determines the exponent.
    "ties24": both_signs(0x3f7e0000, 0x33800000, 0x33800001, 0x337fffff, 0x34400000, 0x34a00000, 0x34a00001),
    "ties16": both_signs(0x3f7e0000, 0x37800000, 0x37800001, 0x377fffff, 0x38400000, 0x38a00000, 0x38a00001),
    "ties8": both_signs(0x3f7e0000, 0x3b800000, 0x3b800001, 0x3b7fffff, 0x3c400000, 0x3ca00000, 0x3ca00001),
    # For 8 bits: lines that may be uneven, with about as many small numbers as others, and numbers at the limit of
    # small.
    "halves": magnitudes(0x3f000000, 0x3f7e0000) + magnitudes(0x3a000000, 0x3c7fffff),
    "sparse": magnitudes(0x3f000000, 0x3f7e0000) + magnitudes(0x3a000000, 0x3c7fffff) + both_signs(0),
    "limit": both_signs(0x3f7e0000, 0x3f7e0000, 0x3c7fffff, 0x3c7fffff, 0x3c800000),
    "uneven": magnitudes(0x3f000000, 0x3f7e0000) + 3 * magnitudes(0x3a000000, 0x3c7fffff),
    "tiny_uneven": magnitudes(0x00700000, 0x007fffff) + 2 * magnitudes(0x00000001, 0x0003ffff),
    "small_uneven": magnitudes(0x1f000000, 0x1f7e0000) + 3 * magnitudes(0x1a000000, 0x1c7fffff),
    "largest": [(0x3f7e0000, 0x3f7e0000)],
    "near_largest": [(0x3f7dfffe, 0x3f7e0000)],
    # The largest and smallest words of 12 bits, together and apart, whose sums wrap around.
    "words": both_signs(*(whole(4096 * high + low) for high, low in
                          ((2031, 2047), (2031, -2048), (2032, 0), (1, -2048), (0, 2047), (2032, -2048)))),
    "words_up": [(whole(4096 * 2031 + 2047), whole(4096 * 2032))],
    "half_last": [(0x1a000000, 0x1a000000)],  # products are half of the least number
    "zero": both_signs(0),
    "one": both_signs(0x3f800000),
    "huge": [(0x5f700000, 0x5f7dffff)],  # a chunk of 8 products overflows
}


def summing_to(sum_, start=0, count=256):
    """Returns non-negative 24-bit integers (a, b) of a chunk whose products have this sum."""
    full = min(sum_ // LARGEST**2, count - 2)
    quotient, rest = divmod(sum_ - full * LARGEST**2, LARGEST)
    pairs = [(LARGEST, LARGEST)] * full + [(LARGEST, quotient), (rest, 1)]
    assert quotient <= LARGEST and sum(x * y for x, y in pairs) == sum_
    # The largest numbers determine the exponents of both operands.
    assert full > 0
    return pairs


def planted(pairs, up=(0, 0), negative=False):
    """Returns replacements for the first row of a, times 2^up[0], and the first column of b, times 2^up[1]."""
    words = []
    for k, pair in enumerate(pairs):
        for side, i in enumerate(pair):
            q = Fraction(-i if negative and side == 0 else i, 2**23) * Fraction(2) ** up[side]
            words.append((side, 0, k, to_word(q)))
    return words


def text_of(plants):
    """Writes SIDE:LINE:K-END:WORD for each run of equal words."""
    runs = []
    for side, line, k, w in sorted(plants):
        if runs and [*runs[-1][:2], *runs[-1][3:]] == [side, line, k, w]:
            runs[-1][3] = k + 1
        else:
            runs.append([side, line, k, k + 1, w])
    return [f"{side}:{line}:{k}-{end}:{w:08x}" for side, line, k, end, w in runs]


def product(name, bits, dims, trans, alpha, a, b, plants=()):
    batch, m, n, k = dims
    seed = sum((i + 1) * ord(c) for i, c in enumerate(name)) * 1000 + bits * 10 + trans
    data = [[draw(NUMBERS[kind], hashed(seed, side, i)) for i in range(batch * lines * k)]
            for side, (kind, lines) in enumerate(((a, m), (b, n)))]

    def place(side, line, at):
        lines, across = (m, trans & 1) if side == 0 else (n, not trans & 2)
        return at * lines + line if across else line * k + at

    for side, line, at, w in plants:
        data[side][place(side, line, at)] = w

    def element(e):
        first, row, column = e // n // m, e // n % m, e % n
        left = [data[0][first * m * k + place(0, row, i)] for i in range(k)]
        right = [data[1][first * n * k + place(1, column, i)] for i in range(k)]
        return times(fixed(left, right, bits), alpha)

    count = batch * m * n
    stride = -(-count // MOST) | 1
    said = ["product", name, bits, *dims, trans, f"{alpha:08x}", a, b, seed, *text_of(plants), "=",
            *(f"{element(e):08x}" for e in range(0, count, stride))]
    return " ".join(map(str, said))


ONE, MINUS_ONE, EIGHTH, THREE = 0x3f800000, 0xbf800000, 0x3e000000, 0x40400000


def shapes(bits):
    """Varies lengths and transposition; tiles are partial in both directions."""
    for trans in range(4):
        for k in (1, 255, 256, 257, 600):
            yield product("lengths", bits, (1, 2, 5, k), trans, ONE, "even", "any" if k == 255 else "even")
        yield product("tiles", bits, (1, 13, 33, 257), trans, ONE, "even", "even")
        yield product("batches", bits, (3, 5, 3, 130), trans, EIGHTH, "even", "even")
        yield product("no_terms", bits, (2, 2, 3, 0), trans, MINUS_ONE, "even", "even")


def sizes(bits):
    """Varies the sizes of numbers."""
    pairs = (("any", "any"), ("edges", "edges"), ("edges", "even"), ("edges", "large"), ("ends", "ends"), ("largest", "largest"),
             ("ties24", "ends"), ("ties24", "ties16"), ("ties16", "ties16"), ("near_largest", "near_largest"),
             ("words", "words"), ("words_up", "words_up"), ("small", "small"), ("subnormal", "large"), ("subnormal", "subnormal"),
             ("large", "large"), ("zero", "any"))
    for i, (a, b) in enumerate(pairs):
        yield product(a, bits, (1, 9, 7, (256, 300, 600)[i % 3]), i % 4, ONE, a, b)
    for k in (1, 2, 3, 5, 255):
        yield product("half_last", bits, (1, 1, 2, k), 0, ONE if k % 3 else MINUS_ONE, "half_last", "half_last")
    for alpha in (THREE, 0, 1 << 31, 1, 0x7f7fffff):
        yield product("alpha", bits, (1, 3, 2, 33), 1, alpha, "even", "even")


def uneven():
    """With 8 bits, some lines have two digits: few or many of them, with exactly half of their numbers small, or one
    more."""
    pairs = (("halves", "halves"), ("halves", "even"), ("even", "halves"), ("uneven", "uneven"), ("uneven", "even"), ("even", "uneven"),
             ("sparse", "sparse"), ("limit", "limit"), ("tiny_uneven", "tiny_uneven"), ("small_uneven", "small_uneven"),
             ("tiny_uneven", "uneven"), ("ties8", "ties8"), ("any", "even"))
    for i, (a, b) in enumerate(pairs):
        yield product(a, 8, (1, 29, 35, (256, 300, 70)[i % 3]), i % 4, ONE, a, b)
        yield product(a, 8, (1, (1, 3)[i % 2], 34, (5, 257, 600)[i % 3]), (i + 1) % 4, ONE, a, b)
    for small in (127, 128, 129):
        few = [(side, line, k, 0x3c7fffff) for side, line in ((0, 1), (1, 2), (1, 33)) for k in range(small)]
        yield product("few", 8, (1, 3, 34, 256), 2, ONE, "near_largest", "near_largest", few)
        yield product("few", 8, (1, 26, 34, 300), 1, ONE, "largest", "ends", few)
    # Many columns that lie side by side, beside as many that have one digit.
    for first in (0, 17):
        beside = [(side, line, k, 0x3c7fffff) for side, lines in ((0, range(1, 4)), (1, range(first, first + 15))) for line in lines
                  for k in range(129)]
        yield product("beside", 8, (1, 13, 32, 256), 2, ONE, "near_largest", "near_largest", beside)
    # The largest sums of two digits.
    most = [(side, line, k, 0x3c7fffff) for side, lines in ((0, 24), (1, 36)) for line in range(lines) for k in range(129)]
    yield product("most", 8, (1, 24, 36, 256), 2, ONE, "largest", "largest", most)
    yield product("most", 8, (1, 24, 36, 256), 2, ONE, "largest", "largest", [(s, l, k, w | s << 31) for s, l, k, w in most])


def not_finite(bits):
    """One number in one line and chunk is not finite, even where all other factors are zero; totals overflow."""
    for k, w in ((0, INFINITY), (255, 0x7f800001), (256, 0xff800000), (599, NAN)):
        for side in (0, 1):
            line = (12, 25)[side]
            yield product("one_line", bits, (1, 13, 26, 600), 3 * side, ONE, "even", "even",
                          [(side, line, k, w), (1 - side, 0, 1, 0)])
    yield product("times_zero", bits, (1, 1, 1, 3), 0, ONE, "zero", "zero", [(0, 0, 1, INFINITY)])
    one_chunk = [(1, 0, k, 0) for k in range(8, 256)]
    up = [(1, 0, k, 0x5f780000) for k in range(256, 264)]
    yield product("overflow", bits, (1, 1, 1, 264), 0, ONE, "huge", "huge", one_chunk)
    yield product("overflow", bits, (1, 1, 1, 264), 0, ONE, "huge", "huge",
                  one_chunk + [(s, l, k, w | 1 << 31) for s, l, k, w in up])
    yield product("total_overflows", bits, (1, 1, 1, 512), 0, ONE, "zero", "zero",
                  [(s, 0, k, 0x5f7e0000) for s in (0, 1) for k in (0, 1, 2, 256, 257, 258)])


def roundings():
    """Sums of 54 and 53 bits lie next to a tie of binary32, onto which a first rounding to binary64 would move them.
    The same where the result is subnormal, or next to an infinity."""
    tie = (2**23 + 0x6eabcd) * 2**30 + 2**29
    for off in (-3, -2, -1, 0, 1, 2, 3):
        for even in (0, 2**30):
            for negative in (False, True):
                yield product("wide", 24, (1, 1, 1, 256), 0, ONE, "zero", "zero",
                              planted(summing_to(tie + even + off), negative=negative))
    for off in (-1, 0, 1):
        yield product("wide_subnormal", 24, (1, 1, 1, 256), 0, ONE, "zero", "zero",
                      planted(summing_to(2**53 + 3 * 2**40 + 2**39 + off), (-70, -73)))
        yield product("to_infinity", 24, (1, 1, 1, 256), 3, ONE, "zero", "zero",
                      planted(summing_to((2**25 - 1) * 2**28 + off), (60, 61)))


def main():
    lines = [" ".join(["numbers", name, *(f"{low:08x}-{high:08x}" for low, high in ranges)])
             for name, ranges in NUMBERS.items()]
    for bits in (16, 24, 8):
        lines += [*shapes(bits), *sizes(bits), *not_finite(bits)]
    lines += [*uneven(), *roundings()]
    Path(__file__).with_name("products.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
