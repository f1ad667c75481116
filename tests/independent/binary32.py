"""IEEE 754 binary32 arithmetic, with integers only, and the functions of SPEC.md section 2."""

from functools import cache
from math import isqrt
from struct import pack, unpack

MASK32 = 0xffffffff


def rounded(negative, m, e):
    """The float nearest to m * 2^e, m > 0: ties to even, with subnormals."""
    drop = max(m.bit_length() - 24, -149 - e)
    if drop > 0:
        m, rest, half, e = m >> drop, m & ((1 << drop) - 1), 1 << (drop - 1), e + drop
        m += rest > half or (rest == half and m & 1)
    else:
        m, e = m << -drop, e + drop
    if m >> 24:
        m, e = m >> 1, e + 1
    word = m if m < 1 << 23 else (e + 150 << 23) + m - (1 << 23)
    return F32(min(word, 0x7f800000) | negative << 31)


class F32:
    """A number, by its bits. Operations return no NaN but 0x7fc00000."""

    __slots__ = ("word",)

    def __init__(self, word):
        self.word = word

    def is_nan(self):
        return self.word & 0x7fffffff > 0x7f800000

    def is_inf(self):
        return self.word & 0x7fffffff == 0x7f800000

    def is_zero(self):
        return self.word & 0x7fffffff == 0

    def negative(self):
        return self.word >> 31

    def exact(self):
        """(m, e) so that the finite number is m * 2^e."""
        field, m = self.word >> 23 & 255, self.word & 0x7fffff
        m |= (field > 0) << 23
        return (-m if self.negative() else m), max(field, 1) - 150

    def __neg__(self):
        return F32(self.word ^ 0x80000000)

    def __abs__(self):
        return F32(self.word & 0x7fffffff)

    def __add__(self, other):
        return fma(self, ONE, other)

    def __sub__(self, other):
        return fma(self, ONE, -other)

    def __mul__(self, other):
        return fma(self, other, NEGATIVE_ZERO)

    def __truediv__(self, other):
        sign = self.negative() ^ other.negative()
        if self.is_nan() or other.is_nan():
            return NAN
        if (self.is_inf() and other.is_inf()) or (self.is_zero() and other.is_zero()):
            return NAN
        if self.is_inf() or other.is_zero():
            return F32(sign << 31 | 0x7f800000)
        if self.is_zero() or other.is_inf():
            return F32(sign << 31)
        (a, ea), (b, eb) = self.exact(), other.exact()
        quotient, rest = divmod(abs(a) << 64, abs(b))
        return rounded(sign, quotient << 1 | (rest > 0), ea - eb - 65)

    def order(self):
        return -(self.word & 0x7fffffff) if self.negative() else self.word

    def __gt__(self, other):
        return not self.is_nan() and not other.is_nan() and self.order() > other.order()

    def __lt__(self, other):
        return other > self

    def __ge__(self, other):
        return self > other or self.same(other)

    def same(self, other):
        """Equality of numbers: 0 equals -0, a NaN equals nothing."""
        return not self.is_nan() and not other.is_nan() and self.order() == other.order()


NAN, INF = F32(0x7fc00000), F32(0x7f800000)
ZERO, NEGATIVE_ZERO, ONE = F32(0), F32(0x80000000), F32(0x3f800000)


@cache
def f(text):
    """An exact binary32 number from hexadecimal or decimal digits."""
    return F32(unpack("<I", pack("<f", float.fromhex(text) if "x" in text else float(text)))[0])


def canon(x):
    return NAN if x.is_nan() else x


def of_int(n):
    return rounded(n < 0, abs(n), 0) if n else ZERO


def to_int(x):
    """Rounds toward zero; x must be finite."""
    m, e = x.exact()
    size = abs(m) << e if e >= 0 else abs(m) >> -e
    return -size if m < 0 else size


def of_half(word, fraction):
    """Converts a 16-bit word; `fraction` is the number of fraction bits: 7 for bf16, 10 for f16."""
    negative, m, ones = word >> 15, word & (1 << fraction) - 1, (1 << 15 - fraction) - 1
    field = word >> fraction & ones
    if field == ones:
        return NAN if m else F32(negative << 31 | INF.word)
    m |= (field > 0) << fraction
    return rounded(negative, m, max(field, 1) - (ones >> 1) - fraction) if m else F32(negative << 31)


def to_half(x, fraction):
    """Rounds to a 16-bit format: ties to even, with subnormals."""
    sign, ones = x.negative() << 15, (1 << 15 - fraction) - 1
    infinity = ones << fraction
    if x.is_nan():
        return infinity | 1 << fraction - 1
    if x.is_inf() or x.is_zero():
        return sign | (infinity if x.is_inf() else 0)
    m, e = abs(x).exact()
    least = 1 - (ones >> 1) - fraction  # exponent of the last bit of subnormals
    last = max(m.bit_length() + e - fraction - 1, least)
    quotient, rest = divmod(2 * m, 2 << last - e)
    half = 1 << last - e
    quotient += rest > half or (rest == half and quotient & 1)
    return sign | min((last - least << fraction) + quotient, infinity)


def fma(a, b, c):
    sign = a.negative() ^ b.negative()
    if a.is_nan() or b.is_nan() or c.is_nan():
        return NAN
    if a.is_inf() or b.is_inf():
        lost = a.is_zero() or b.is_zero() or (c.is_inf() and c.negative() != sign)
        return NAN if lost else F32(sign << 31 | 0x7f800000)
    if c.is_inf():
        return c
    (ma, ea), (mb, eb), (mc, ec) = a.exact(), b.exact(), c.exact()
    e = min(ea + eb, ec)
    m = (ma * mb << ea + eb - e) + (mc << ec - e)
    if m:
        return rounded(m < 0, abs(m), e)
    return NEGATIVE_ZERO if sign and c.negative() and ma * mb == 0 else ZERO


def sqrt(x):
    if x.is_zero() or x.word == INF.word:
        return x
    if x.is_nan() or x.negative():
        return NAN
    m, e = x.exact()
    m, e = m << 64 + (e & 1), e - 64 - (e & 1)
    root = isqrt(m)
    return rounded(0, root << 1 | (root * root < m), e // 2 - 1)


def power_of_two(n):
    return rounded(0, 1, n)


def horner(v, coefficients):
    first, *others = [f(c) for c in coefficients.split()]
    for c in others:
        first = fma(first, v, c)
    return first


def at_most(x, limit):
    return limit if x > limit else x


def at_least(x, limit):
    return limit if x < limit else x


def with_sign(y, x):
    return F32(y.word & 0x7fffffff | x.word & 0x80000000)


def exp_core(c):
    """(k, p) with e^c = 2^k (1 + p): section 2.1."""
    t = fma(c, f("0x1.715476p0"), f("0x1.8p23"))
    k = (t.word - 0x4b400000 + (1 << 31) & MASK32) - (1 << 31)
    n = t - f("0x1.8p23")
    r = fma(n, f("-0x1.62e4p-1"), c)
    r = fma(n, f("-0x1.7f7d1cp-20"), r)
    q = horner(r, "0x1.a26762p-13 0x1.6d2ep-10 0x1.110ff2p-7 0x1.555502p-5 0x1.555556p-3 0x1p-1")
    return k, fma(r * r, q, r)


def exp(x):
    if x.is_nan():
        return NAN
    k, p = exp_core(at_least(at_most(x, f("90")), f("-106")))
    h = k // 2
    return (p + ONE) * power_of_two(h) * power_of_two(k - h)


def tanh(x):
    if x.is_nan():
        return NAN
    a = abs(x)
    if a < f("0x1.333334p-1"):
        z = a * a
        p = horner(z, "0x1.4d7b44p-9 -0x1.1930dcp-7 0x1.65fc46p-6 -0x1.ba21bep-5 0x1.111148p-3 -0x1.555556p-2")
        return with_sign(fma(a * z, p, a), x)
    b = at_most(a, f("10"))
    k, p = exp_core(b + b)
    s = power_of_two(k)
    return with_sign(ONE - f("2") / (fma(p, s, s) + ONE), x)


def log(x):
    if x.is_nan() or (x.negative() and not x.is_zero()):
        return NAN
    if x.is_zero():
        return -INF
    if x.is_inf():
        return INF
    small = x < f("0x1p-126")
    c, d = (x * f("0x1p25"), f("-25")) if small else (x, ZERO)
    e = c.word - 0x3f2aaaab >> 23
    g = F32(c.word - (e << 23)) - ONE
    n = of_int(e) + d
    p = horner(g, "-0x1.04ff52p-3 0x1.132ee2p-3 -0x1.f4c81p-4 0x1.211ab6p-3 -0x1.558a74p-3 0x1.99addep-3"
                  " -0x1.ffff74p-3 0x1.55554cp-2")
    z = g * g
    t = fma(n, f("0x1.7f7d1cp-20"), fma(g * z, p, f("-0.5") * z))
    return fma(n, f("0x1.62e4p-1"), t + g)


def sin_turn(k):
    k &= 0xffffff
    j = k + (1 << 21) >> 22
    x = of_int(k - (j << 22)) * f("0x1.921fb6p-22")
    z = x * x
    if j & 1:
        y = fma(z, horner(z, "0x1.98e616p-16 -0x1.6c06dcp-10 0x1.55553cp-5 -0x1p-1"), ONE)
    else:
        y = fma(x * z, horner(z, "0x1.6cd878p-19 -0x1.a00f9ep-13 0x1.1111p-7 -0x1.555556p-3"), x)
    return -y if j & 2 else y


def cos_turn(k):
    return sin_turn(k + (1 << 22))


def erf(x):
    if x.is_nan():
        return NAN
    a = abs(x)
    if a < f("0x1.cp-1"):
        z = a * a
        p = horner(z, "-0x1.44aba8p-11 0x1.499f5cp-8 -0x1.b6ea32p-6 0x1.ce2036p-4 -0x1.812702p-2 0x1.06eba6p-3")
        return with_sign(fma(a, p, a), x)
    b = at_most(a, f("4"))
    q = horner(b, "0x1.a58abp-13 -0x1.95533ep-9 0x1.6f56ap-6 -0x1.ab53fcp-4 -0x1.460256p-1 -0x1.20c072p0"
                  " -0x1.17f666p-13")
    k, p = exp_core(q)
    s = power_of_two(k)
    return with_sign(ONE - fma(p, s, s), x)


def rsqrt(x):
    return ONE / sqrt(x)


def sigmoid(x):
    e = exp(-abs(x)) if not x.is_nan() else NAN
    return e / (ONE + e) if x < ZERO else ONE / (ONE + e)


def positive_part(v):
    return v if v > ZERO else ZERO


def gelu_erf(x):
    if x.is_nan():
        return NAN
    b = at_most(abs(x), f("0x1.55c2a6p2"))
    z = b * b
    n = horner(z, "0x1.8823a2p-26 0x1.b0c98ep-18 0x1.6c46f8p-13 0x1.34822ep-8 0x1.18b0f2p-5 0x1.98844cp-2")
    d = horner(z, "0x1.43f93ep-21 0x1.3cde42p-15 0x1.f51e38p-11 0x1.d967e6p-7 0x1.029d1cp-3 0x1p-1")
    q = positive_part(fma(-b, n, d)) / (d + d)
    return fma(-b, q, positive_part(x))


def gelu_erf_slope(x):
    if x.is_nan():
        return NAN
    limit = f("0x1.7999aap2")
    b = at_least(at_most(x, limit), -limit)
    z = b * b
    n = horner(z, "0x1.197bfcp-26 0x1.bf3eaap-21 0x1.1dd906p-15 0x1.62538ep-13 0x1.c878f8p-7 -0x1.8d2dp-6"
                  " 0x1.988452p-1")
    d = horner(z, "0x1.6470a6p-30 0x1.51b49ap-22 0x1.4b04a6p-17 0x1.f0bcdap-13 0x1.fbf0a4p-9 0x1.63e3d4p-5"
                  " 0x1.3638aep-2 0x1p0")
    return (b * n) / d + f("0.5")
