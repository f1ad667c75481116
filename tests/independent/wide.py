"""Functions computed in binary64: SPEC.md section 2.9. Python's floats are binary64, and its operators round as in IEEE
754."""

from math import copysign, inf, isinf, isnan, ldexp, nan, sqrt
from struct import pack, unpack

from binary32 import F32, NAN
from definitions import Operator, numel
from elementwise import like_first, second_repeats

ROUNDER = float.fromhex("0x1.8p52")
LN2_1, LN2_2 = float.fromhex("0x1.62e42fefa2p-1"), float.fromhex("0x1.9ef35793c7673p-41")
LOG2E, HALF_PI = float.fromhex("0x1.71547652b82fep0"), float.fromhex("0x1.921fb54442d18p0")
# floor(2^320 * 2 / pi)
TWO_OVER_PI = 0xa2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e0


def horner(v, text):
    first, *rest = map(float.fromhex, text.split())
    p = first
    for c in rest:
        p = p * v + c
    return p


def divided(a, b):
    """a / b, also for b = 0."""
    if b:
        return a / b
    return nan if a == 0 or isnan(a) else copysign(inf, a) * copysign(1, b)


def signed(y, x):
    return -y if copysign(1, x) < 0 else y


def cut(x, most):
    return max(-most, min(most, x))


def exp_rest(r):
    q = horner(r, "0x1.af38a9b0ec855p-26 0x1.289185613a3d6p-22 0x1.71de0dae63bb3p-19 0x1.a019b90d2ae7ap-16 "
                  "0x1.a01a01a7c41d5p-13 0x1.6c16c1788bd90p-10 0x1.11111111109b3p-7 0x1.5555555553d63p-5 "
                  "0x1.5555555555556p-3 0x1.0000000000001p-1")
    return r * r * q + r


def exp_split(x):
    x = cut(x, 700.0)
    n = (x * LOG2E + ROUNDER) - ROUNDER
    return exp_rest((x - n * LN2_1) - n * LN2_2), ldexp(1.0, int(n))


def exp64(x):
    p, s = exp_split(x)
    return p * s + s


def expm1(x):
    p, s = exp_split(x)
    return x if x == 0 else p * s + (s - 1)


def exp2(x):
    x = cut(x, 1000.0)
    n = (x + ROUNDER) - ROUNDER
    p, s = exp_rest((x - n) * float.fromhex("0x1.62e42fefa39efp-1")), ldexp(1.0, int(n))
    return p * s + s


def log_rest(f):
    s = f / (2 + f)
    z = s * s
    p = horner(z, "0x1.16b68338bd78bp-3 0x1.0e88ea4725d3dp-3 0x1.3b29fcbbce66dp-3 0x1.745cab2727663p-3 "
                  "0x1.c71c72e2f78d5p-3 0x1.24924923dba6ap-2 0x1.9999999999f30p-2 0x1.5555555555555p-1")
    return s * z * p + (s + s)


def parts(v):
    bits = unpack("<q", pack("<d", v))[0]
    e = (bits - 0x3fe5555555555555) >> 52
    return float(e), unpack("<d", pack("<q", bits - (e << 52)))[0]


def log2_of(a):
    if a == 0 or isinf(a):
        return inf if a else -inf
    e, m = parts(a)
    return log_rest(m - 1) * LOG2E + e


def log2(x):
    return log2_of(x) if x >= 0 else nan


def log1p(x):
    if x == 0 or x == inf:
        return x
    if x <= -1:
        return -inf if x == -1 else nan
    third = float.fromhex("0x1.5555555555555p-2")
    if -third <= x <= third:
        return log_rest(x)
    e, m = parts(1 + x)
    return e * LN2_1 + (e * LN2_2 + log_rest(m - 1))


def sin_rest(r):
    z = r * r
    p = horner(z, "0x1.5e0af186af739p-33 -0x1.ae600a926c89ap-26 0x1.71de37961e4c6p-19 -0x1.a01a019e8357dp-13 "
                  "0x1.1111111110bb1p-7 -0x1.5555555555555p-3")
    return r * z * p + r


def cos_rest(r):
    z = r * r
    p = horner(z, "-0x1.907d7aebd5e3dp-37 0x1.1eeb68b109173p-29 -0x1.27e4fa17a41b4p-22 0x1.a01a019f4e867p-16 "
                  "-0x1.6c16c16c16966p-10 0x1.5555555555555p-5")
    return z * z * p + (1 - 0.5 * z)


def turn(x):
    """(n mod 4, r) for a finite |x|."""
    a = abs(x)
    if a < 2**17:
        n = (a * float.fromhex("0x1.45f306dc9c883p-1") + ROUNDER) - ROUNDER
        r = ((a - n * float.fromhex("0x1.921fb544p0")) - n * float.fromhex("0x1.0b4611a6p-34"))
        return int(n) % 4, r - n * float.fromhex("0x1.3198a2e037073p-69")
    m, e = F32(unpack("<I", pack("<f", a))[0]).exact()
    p = m * ((TWO_OVER_PI << 126 + e >> 320) % 2**128) % 2**128
    n = (p + 2**125 >> 126) % 4
    rest = p - n * 2**126
    rest -= 2**128 if rest >= 2**127 else 0
    high, low = divmod(abs(rest), 2**64)
    r = (float(high) * 2.0**64 + float(low)) * 2.0**-126 * HALF_PI
    return n, -r if rest < 0 else r


def quadrant(n, r):
    y = cos_rest(r) if n & 1 else sin_rest(r)
    return -y if n & 2 else y


def sin(x):
    if isinf(x):
        return nan
    return signed(quadrant(*turn(x)), x)


def cos(x):
    if isinf(x):
        return nan
    n, r = turn(x)
    return quadrant(n + 1, r)


def tan(x):
    if isinf(x):
        return nan
    n, r = turn(x)
    s, c = sin_rest(r), cos_rest(r)
    return signed(divided(-c, s) if n & 1 else s / c, x)


def arc(x):
    a = abs(x)
    z = (1 - a) * 0.5 if a > 0.5 else a * a
    s = sqrt(z) if a > 0.5 else a
    p = horner(z, "0x1.d72b2bc8155f8p-6 -0x1.e6aaa8a0a04ccp-7 0x1.1d189408314eep-6 0x1.65a9c4dfcf8b2p-8 "
                  "0x1.52420b04b37bep-7 0x1.782651caa6547p-7 0x1.c9cf07674736ap-7 0x1.1c4d35cf95421p-6 "
                  "0x1.6e8bb1c8209a2p-6 0x1.f1c71c1db0623p-6 0x1.6db6db6e31f13p-5 0x1.3333333332ecap-4 "
                  "0x1.5555555555556p-3")
    return s * z * p + s


def asin(x):
    if abs(x) > 1:
        return nan
    w = arc(x)
    return signed(HALF_PI - 2 * w if abs(x) > 0.5 else w, x)


def acos(x):
    if abs(x) > 1:
        return nan
    w = arc(x)
    if abs(x) <= 0.5:
        return HALF_PI - signed(w, x)
    return w + w if x > 0 else 2 * HALF_PI - 2 * w


def atan64(a):
    if a <= float.fromhex("0x1.a827999fcef32p-2"):
        y, base = a, 0.0
    elif a > float.fromhex("0x1.3504f333f9de6p1"):
        y, base = -1 / a, HALF_PI
    else:
        y, base = (a - 1) / (a + 1), 0.5 * HALF_PI
    z = y * y
    p = horner(z, "-0x1.3a254249c2220p-6 0x1.415dac51cd10bp-5 -0x1.a097da67e4438p-5 0x1.dfe5f37f19c8bp-5 "
                  "-0x1.10fa72be60a88p-4 0x1.3b1262ac559fcp-4 -0x1.745d0b24c84b9p-4 0x1.c71c718525179p-4 "
                  "-0x1.2492492435f94p-3 0x1.9999999999349p-3 -0x1.5555555555555p-2")
    return y * z * p + y + base


def atan(x):
    return signed(atan64(abs(x)), x)


def atan2(y, x):
    b, a = abs(y), abs(x)
    v = atan64(0.0 if b == 0 else 1.0 if b == a else divided(b, a))
    return signed(2 * HALF_PI - v if copysign(1, x) < 0 else v, y)


def sinh(x):
    t = expm1(abs(x))
    return signed(0.5 * (t + t / (t + 1)), x)


def cosh(x):
    t = exp64(abs(x))
    return 0.5 * (t + 1 / t)


def asinh(x):
    if isinf(x):
        return x
    a = abs(x)
    b = a * a
    return signed(log1p(a + b / (1 + sqrt(1 + b))), x)


def acosh(x):
    t = x - 1
    return nan if t < 0 else t if isinf(t) else log1p(t + sqrt(t * (t + 2)))


def atanh(x):
    a = abs(x)
    if a >= 1:
        return signed(inf, x) if a == 1 else nan
    return signed(0.5 * log1p((a + a) / (1 - a)), x)


def power(x, y):
    """x^y; neither is NaN, x is not 1 and y is not 0."""
    if abs(x) == 1:
        size = 1.0
    else:
        v = y * log2_of(abs(x))
        size = inf if v >= 1000 else 0.0 if v <= -1000 else exp2(v)
    whole = isinf(y) or y == int(y)
    if copysign(1, x) > 0:
        return size
    if not whole and x != 0 and not isinf(x):
        return nan
    return -size if whole and not isinf(y) and int(y) % 2 else size


def number(x):
    return unpack("<f", pack("<I", x.word))[0]


def rounded(y):
    """Rounds once to f32."""
    if isnan(y):
        return NAN
    try:
        return F32(unpack("<I", pack("<f", y))[0])
    except OverflowError:
        return F32(0xff800000 if y < 0 else 0x7f800000)


def of_one(function):
    def element(n, e, x):
        value = x(0, e)
        return NAN if value.is_nan() else rounded(function(number(value)))
    return element


def of_two(n, e, x):
    return x(0, e), x(1, e % numel(n.dims_of(1)))


def atan2_element(n, e, x):
    y, z = of_two(n, e, x)
    return NAN if y.is_nan() or z.is_nan() else rounded(atan2(number(y), number(z)))


def pow_element(n, e, x):
    a, b = of_two(n, e, x)
    if a.word == 0x3f800000 or b.is_zero():
        return F32(0x3f800000)
    return NAN if a.is_nan() or b.is_nan() else rounded(power(number(a), number(b)))


FUNCTIONS = (sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, log1p, expm1, log2, exp2)
for place, function in enumerate(FUNCTIONS):
    Operator(234 + place, f"{function.__name__}(x)", like_first, of_one(function))
Operator(249, "atan2(y, x)", second_repeats, atan2_element)
Operator(250, "pow(x, y)", second_repeats, pow_element)
