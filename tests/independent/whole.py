"""Integer arithmetic, and rounding to whole numbers: SPEC.md section 6."""

from binary32 import F32, NAN, of_int
from definitions import Operator, numel
from elementwise import like_first
from sampling import iadd_shape


def toward_zero(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def quotient(divide):
    return lambda a, b: divide(a, b) if b else 0


def remainder(divide):
    return lambda a, b: a - b * divide(a, b) if b else a


def floor(a, b):
    return a // b


KINDS = [
    lambda a, b: a * b,
    quotient(toward_zero), remainder(toward_zero), quotient(floor), remainder(floor),
    lambda a, b: a << b if 0 <= b < 32 else 0,
    lambda a, b: a >> (b if 0 <= b < 32 else 32),
    lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b, min, max,
]


def integer_shape(n):
    return iadd_shape(n) if 0 <= n["kind"] < len(KINDS) else None


def integer(n, e, x):
    return KINDS[n["kind"]](x(0, e), x(1, e % numel(n.dims_of(1))))


Operator(232, "integer(a i32, b i32; kind)", integer_shape, integer)


def round_shape(n):
    return like_first(n) if 0 <= n["kind"] < 4 else None


def round_to(n, e, x):
    value = x(0, e)
    if value.is_nan():
        return NAN
    if value.is_inf():
        return value
    m, power = value.exact()
    if power >= 0:
        return value
    whole, rest, half = m >> -power, m & (1 << -power) - 1, 1 << -power - 1
    up = [False, rest > 0, rest > half or (rest == half and whole & 1), rest > 0 and m < 0][n["kind"]]
    word = of_int(abs(whole + up)).word
    return F32(word & 0x7fffffff | value.negative() << 31)


Operator(233, "round(x; kind)", round_shape, round_to)
