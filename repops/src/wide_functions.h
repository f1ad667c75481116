/* Functions that are computed in binary64 and rounded once, SPEC.md section 2.9: shared by the
 * reference, the CPU kernels and CUDA. They are branch-free, so that loops can be vectorised; only
 * sines of large arguments need integers. */
#ifndef RO_WIDE_FUNCTIONS_H
#define RO_WIDE_FUNCTIONS_H

#include "repops/src/math.h"

/* Functions of one number, as f(name) for each. The trigonometric ones are apart since large angles
 * need a reduction of their own. */
#define RO_TURNED_FUNCTIONS(f) f(sin) f(cos) f(tan)
#define RO_WIDE_FUNCTIONS(f)                                                                       \
    f(asin) f(acos) f(atan) f(sinh) f(cosh) f(asinh) f(acosh) f(atanh) f(log1p) f(expm1) f(log2)   \
        f(exp2)

RO_INLINE double ro_sqrt64(double x) {
#if defined(__CUDA_ARCH__)
    return __dsqrt_rn(x);
#else
    return __builtin_sqrt(x);
#endif
}

RO_INLINE uint64_t ro_to_bits64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

RO_INLINE double ro_from_bits64(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

RO_INLINE double ro_abs64(double x) {
    return ro_from_bits64(ro_to_bits64(x) & (UINT64_MAX >> 1));
}

/* Returns y with its sign flipped if x is negative. */
RO_INLINE double ro_sign64(double y, float x) {
    return ro_from_bits64(ro_to_bits64(y) ^ ((uint64_t)(ro_to_bits(x) >> 31) << 63));
}

/* Rounds the result to f32; a NaN becomes the canonical one. */
RO_INLINE float ro_rounded64(double y) {
    return ro_canon((float)y);
}

#define RO_INF64 ((double)ro_from_bits(0x7f800000))
#define RO_NAN64 ((double)ro_from_bits(RO_QNAN_BITS))

/* ---- exponentials ---- */

/* ln 2 in two parts. The first has 40 bits, so that its products with exponents are exact. */
#define RO_LN2_HIGH 0x1.62e42fefa2000p-1
#define RO_LN2_LOW  0x1.9ef35793c7673p-41
#define RO_ROUNDER  0x1.8p52 /* adding it rounds a number below 2^51 to an integer */

/* Returns e^r - 1 for |r| <= ln 2 / 2. */
RO_INLINE double ro_exp_rest(double r) {
    double q = 0x1.af38a9b0ec855p-26;
    q = q * r + 0x1.289185613a3d6p-22;
    q = q * r + 0x1.71de0dae63bb3p-19;
    q = q * r + 0x1.a019b90d2ae7ap-16;
    q = q * r + 0x1.a01a01a7c41d5p-13;
    q = q * r + 0x1.6c16c1788bd90p-10;
    q = q * r + 0x1.11111111109b3p-7;
    q = q * r + 0x1.5555555553d63p-5;
    q = q * r + 0x1.5555555555556p-3;
    q = q * r + 0x1.0000000000001p-1;
    return r * r * q + r;
}

/* Returns 2^k, given k + RO_ROUNDER, |k| <= 1022. */
RO_INLINE double ro_power(double t) {
    return ro_from_bits64((ro_to_bits64(t) + 1023) << 52);
}

/* Returns p with e^x = s (1 + p), s a power of two, for |x| <= 700; arbitrary for a NaN. */
RO_INLINE double ro_exp_split(double x, double *s) {
    const double t = x * 0x1.71547652b82fep0 + RO_ROUNDER, n = t - RO_ROUNDER;
    *s = ro_power(t);
    return ro_exp_rest(x - n * RO_LN2_HIGH - n * RO_LN2_LOW);
}

RO_INLINE double ro_cut64(double x, double most) {
    const double above = x < most ? x : most;
    return above > -most ? above : -most;
}

RO_INLINE double ro_exp64(double x) {
    double s, p = ro_exp_split(ro_cut64(x, 700.0), &s);
    return p * s + s;
}

RO_INLINE double ro_expm1_64(double x) {
    double s, p = ro_exp_split(ro_cut64(x, 700.0), &s);
    return p * s + (s - 1.0);
}

RO_INLINE double ro_exp2_64(double x) {
    const double c = ro_cut64(x, 1000.0), t = c + RO_ROUNDER, n = t - RO_ROUNDER;
    const double s = ro_power(t), p = ro_exp_rest((c - n) * 0x1.62e42fefa39efp-1);
    return p * s + s;
}

/* ---- logarithms ---- */

/* Returns log(1 + f) for -1/3 <= f <= 1/3. */
RO_INLINE double ro_log_rest(double f) {
    const double s = f / (2.0 + f), z = s * s;
    double p = 0x1.16b68338bd78bp-3;
    p = p * z + 0x1.0e88ea4725d3dp-3;
    p = p * z + 0x1.3b29fcbbce66dp-3;
    p = p * z + 0x1.745cab2727663p-3;
    p = p * z + 0x1.c71c72e2f78d5p-3;
    p = p * z + 0x1.24924923dba6ap-2;
    p = p * z + 0x1.9999999999f30p-2;
    p = p * z + 0x1.5555555555555p-1;
    return s * z * p + (s + s);
}

/* Returns e and gives m with x = 2^e m, 2/3 <= m < 4/3, for a positive normal x. */
RO_INLINE double ro_log_parts(double x, double *m) {
    const uint64_t least = UINT64_C(0x3fe5555555555555); /* 2/3 */
    const uint64_t bits = ro_to_bits64(x), biased = (bits - least + (UINT64_C(1023) << 52)) >> 52;
    *m = ro_from_bits64(bits - ((biased - 1023) << 52));
    return ro_from_bits64(biased | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023.0);
}

RO_INLINE double ro_log2_64(double x) {
    double m;
    const double e = ro_log_parts(x, &m);
    return ro_log_rest(m - 1.0) * 0x1.71547652b82fep0 + e;
}

/* Returns log(1 + x) for a finite x > -1. */
RO_INLINE double ro_log1p_64(double x) {
    const int small = x >= -0x1.5555555555555p-2 && x <= 0x1.5555555555555p-2;
    double m, e = ro_log_parts(1.0 + x, &m);
    const double rest = ro_log_rest(small ? x : m - 1.0);
    e = small ? 0.0 : e;
    return e * RO_LN2_HIGH + (e * RO_LN2_LOW + rest);
}

/* ---- sines ---- */

RO_INLINE double ro_sin_rest(double r) {
    const double z = r * r;
    double p = 0x1.5e0af186af739p-33;
    p = p * z - 0x1.ae600a926c89ap-26;
    p = p * z + 0x1.71de37961e4c6p-19;
    p = p * z - 0x1.a01a019e8357dp-13;
    p = p * z + 0x1.1111111110bb1p-7;
    p = p * z - 0x1.5555555555555p-3;
    return r * z * p + r;
}

RO_INLINE double ro_cos_rest(double r) {
    const double z = r * r;
    double p = -0x1.907d7aebd5e3dp-37;
    p = p * z + 0x1.1eeb68b109173p-29;
    p = p * z - 0x1.27e4fa17a41b4p-22;
    p = p * z + 0x1.a01a019f4e867p-16;
    p = p * z - 0x1.6c16c16c16966p-10;
    p = p * z + 0x1.5555555555555p-5;
    return z * z * p + (1.0 - 0.5 * z);
}

/* pi / 2 in three parts; the first two have 33 bits. */
#define RO_HALF_PI_1 0x1.921fb54400000p0
#define RO_HALF_PI_2 0x1.0b4611a600000p-34
#define RO_HALF_PI_3 0x1.3198a2e037073p-69

#define RO_TURN_LARGE 0x1p17f /* from here on integers find the quadrant */

/* Returns r with |x| = n pi / 2 + r, where |r| is at most slightly above pi / 4, and gives n mod 4;
 * |x| is below RO_TURN_LARGE. */
RO_INLINE double ro_turn_small(float x, uint32_t *n) {
    const double a = ro_abs64((double)x), t = a * 0x1.45f306dc9c883p-1 + RO_ROUNDER;
    const double k = t - RO_ROUNDER;
    *n = (uint32_t)ro_to_bits64(t) & 3;
    return a - k * RO_HALF_PI_1 - k * RO_HALF_PI_2 - k * RO_HALF_PI_3;
}

/* Returns word i of the fractional bits of 2 / pi, after one word of zeros. */
RO_INLINE uint64_t ro_two_over_pi(int i) {
    static const uint32_t word[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                    0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a};
    return word[i];
}

/* Returns 64 of these bits, from bit `at` on. */
RO_INLINE uint64_t ro_bits_of_turn(int at) {
    const int i = at / 32, by = at % 32;
    const uint64_t high = ro_two_over_pi(i) << 32 | ro_two_over_pi(i + 1);
    return by ? high << by | ro_two_over_pi(i + 2) >> (32 - by) : high;
}

/* Does the same as ro_turn_small for a finite |x| from RO_TURN_LARGE on: computes |x| 2 / pi modulo
 * 4 in units of 2^-126. */
RO_INLINE double ro_turn_large(float x, uint32_t *n) {
    const uint32_t bits = ro_to_bits(x) & 0x7fffffff;
    const uint64_t m = (bits & 0x7fffff) | 0x800000;
    const int at = 30 + (int)(bits >> 23) - 150;
    const uint64_t high = ro_bits_of_turn(at), low = ro_bits_of_turn(at + 64);
    const uint64_t bottom = m * (low & UINT32_MAX), middle = m * (low >> 32) + (bottom >> 32);
    uint64_t p0 = middle << 32 | (bottom & UINT32_MAX), p1 = m * high + (middle >> 32);
    const uint64_t q = (p1 + (UINT64_C(1) << 61)) >> 62;
    p1 -= q << 62;
    const int negative = p1 >> 63;
    if (negative) {
        p0 = 0 - p0;
        p1 = ~p1 + (p0 == 0);
    }
    const double r = ((double)p1 * 0x1p64 + (double)p0) * 0x1p-126 * 0x1.921fb54442d18p0;
    *n = (uint32_t)q & 3;
    return negative ? -r : r;
}

/* Returns the sine or the cosine of r, as quadrant n asks for. */
RO_INLINE double ro_quadrant(double r, uint32_t n) {
    const double y = n & 1 ? ro_cos_rest(r) : ro_sin_rest(r);
    return n & 2 ? -y : y;
}

RO_INLINE double ro_tangent(double r, uint32_t n) {
    const double s = ro_sin_rest(r), c = ro_cos_rest(r);
    return (n & 1 ? -c : s) / (n & 1 ? s : c);
}

RO_INLINE int ro_is_large_turn(float x) {
    const uint32_t bits = ro_to_bits(x) & 0x7fffffff;
    return bits >= 0x48000000 && bits < 0x7f800000;
}

/* Defines function NAME of an angle x: NAME_large where ro_is_large_turn(x), else NAME_small. */
#define RO_TURNED(name, of_small)                                                                  \
    RO_INLINE double ro_##name##_turned(double r, uint32_t n, float x) {                           \
        const double y = of_small;                                                                 \
        return x - x == 0 ? y : RO_NAN64;                                                          \
    }                                                                                              \
    RO_INLINE float ro_##name##_small(float x) {                                                   \
        uint32_t n;                                                                                \
        const double r = ro_turn_small(x, &n);                                                     \
        return ro_rounded64(ro_##name##_turned(r, n, x));                                          \
    }                                                                                              \
    RO_INLINE float ro_##name##_large(float x) {                                                   \
        uint32_t n;                                                                                \
        const double r = ro_turn_large(x, &n);                                                     \
        return ro_rounded64(ro_##name##_turned(r, n, x));                                          \
    }                                                                                              \
    RO_INLINE float ro_##name(float x) {                                                           \
        return ro_is_large_turn(x) ? ro_##name##_large(x) : ro_##name##_small(x);                  \
    }

RO_TURNED(sin, ro_sign64(ro_quadrant(r, n), x))
RO_TURNED(cos, ro_quadrant(r, n + 1))
RO_TURNED(tan, ro_sign64(ro_tangent(r, n), x))

/* ---- inverse functions ---- */

#define RO_HALF_PI 0x1.921fb54442d18p0

/* Returns asin(s) for 0 <= s <= 1/2; z is s^2. */
RO_INLINE double ro_asin_rest(double s, double z) {
    double p = 0x1.d72b2bc8155f8p-6;
    p = p * z - 0x1.e6aaa8a0a04ccp-7;
    p = p * z + 0x1.1d189408314eep-6;
    p = p * z + 0x1.65a9c4dfcf8b2p-8;
    p = p * z + 0x1.52420b04b37bep-7;
    p = p * z + 0x1.782651caa6547p-7;
    p = p * z + 0x1.c9cf07674736ap-7;
    p = p * z + 0x1.1c4d35cf95421p-6;
    p = p * z + 0x1.6e8bb1c8209a2p-6;
    p = p * z + 0x1.f1c71c1db0623p-6;
    p = p * z + 0x1.6db6db6e31f13p-5;
    p = p * z + 0x1.3333333332ecap-4;
    p = p * z + 0x1.5555555555556p-3;
    return s * z * p + s;
}

/* Returns asin(|x|), or half of acos(|x|) if |x| is above 1/2 (*beyond). */
RO_INLINE double ro_arc(float x, int *beyond) {
    const double a = ro_abs64((double)x);
    *beyond = a > 0.5;
    const double z = *beyond ? (1.0 - a) * 0.5 : a * a, s = *beyond ? ro_sqrt64(z) : a;
    return ro_asin_rest(s, z);
}

RO_INLINE float ro_asin(float x) {
    int beyond;
    const double w = ro_arc(x, &beyond);
    return ro_rounded64(ro_sign64(beyond ? RO_HALF_PI - 2.0 * w : w, x));
}

RO_INLINE float ro_acos(float x) {
    int beyond;
    const double w = ro_arc(x, &beyond);
    const double inner = RO_HALF_PI - ro_sign64(w, x);
    const double outer = x > 0 ? w + w : 2.0 * RO_HALF_PI - 2.0 * w;
    return ro_rounded64(beyond ? outer : inner);
}

/* Returns atan(a) for a >= 0. */
RO_INLINE double ro_atan64(double a) {
    const int low = a <= 0x1.a827999fcef32p-2, high = a > 0x1.3504f333f9de6p1;
    const double top = low ? a : high ? -1.0 : a - 1.0, under = low ? 1.0 : high ? a : a + 1.0;
    const double y = top / under, z = y * y;
    double p = -0x1.3a254249c2220p-6;
    p = p * z + 0x1.415dac51cd10bp-5;
    p = p * z - 0x1.a097da67e4438p-5;
    p = p * z + 0x1.dfe5f37f19c8bp-5;
    p = p * z - 0x1.10fa72be60a88p-4;
    p = p * z + 0x1.3b1262ac559fcp-4;
    p = p * z - 0x1.745d0b24c84b9p-4;
    p = p * z + 0x1.c71c718525179p-4;
    p = p * z - 0x1.2492492435f94p-3;
    p = p * z + 0x1.9999999999349p-3;
    p = p * z - 0x1.5555555555555p-2;
    return y * z * p + y + (low ? 0.0 : high ? RO_HALF_PI : 0.5 * RO_HALF_PI);
}

RO_INLINE float ro_atan(float x) {
    return ro_rounded64(ro_sign64(ro_atan64(ro_abs64((double)x)), x));
}

/* Computes atan2. The quotient counts as 0 if y is zero, and as 1 if both are infinite. */
RO_INLINE float ro_atan2(float y, float x) {
    const double b = ro_abs64((double)y), a = ro_abs64((double)x);
    const double quotient = b == 0 ? 0.0 : b == a ? 1.0 : b / a;
    const double v = ro_atan64(quotient);
    const double w = ro_to_bits(x) >> 31 ? 2 * RO_HALF_PI - v : v;
    return ro_rounded64(x != x || y != y ? RO_NAN64 : ro_sign64(w, y));
}

/* ---- hyperbolic functions ---- */

RO_INLINE float ro_sinh(float x) {
    const double t = ro_expm1_64(ro_abs64((double)x));
    return ro_rounded64(x != x ? RO_NAN64 : ro_sign64(0.5 * (t + t / (t + 1.0)), x));
}

RO_INLINE float ro_cosh(float x) {
    const double t = ro_exp64(ro_abs64((double)x));
    return ro_rounded64(x != x ? RO_NAN64 : 0.5 * (t + 1.0 / t));
}

RO_INLINE float ro_asinh(float x) {
    const double a = ro_abs64((double)x), b = a * a;
    const double y = ro_log1p_64(a + b / (1.0 + ro_sqrt64(1.0 + b)));
    return ro_rounded64(ro_sign64(a < RO_INF64 ? y : a, x));
}

RO_INLINE float ro_acosh(float x) {
    const double t = (double)x - 1.0, y = ro_log1p_64(t + ro_sqrt64(t * (t + 2.0)));
    return ro_rounded64(t < 0 ? RO_NAN64 : t < RO_INF64 ? y : t);
}

RO_INLINE float ro_atanh(float x) {
    const double a = ro_abs64((double)x), y = 0.5 * ro_log1p_64((a + a) / (1.0 - a));
    return ro_rounded64(a > 1.0 || x != x ? RO_NAN64 : ro_sign64(a < 1.0 ? y : RO_INF64, x));
}

/* ---- exponentials and logarithms of f32 ---- */

RO_INLINE float ro_expm1(float x) {
    return ro_rounded64(x != x ? RO_NAN64 : x == 0 ? (double)x : ro_expm1_64((double)x));
}

RO_INLINE float ro_exp2(float x) {
    return ro_rounded64(x != x ? RO_NAN64 : ro_exp2_64((double)x));
}

RO_INLINE float ro_log1p(float x) {
    const double y = ro_log1p_64((double)x);
    const double end = x == -1 ? -RO_INF64 : x > 0 ? (double)x : RO_NAN64; /* x not in (-1, inf) */
    return ro_rounded64(x == 0 ? (double)x : x > -1 && (double)x < RO_INF64 ? y : end);
}

/* Returns log2(a) for a >= 0, also for 0 and infinity; for a NaN the result is arbitrary. */
RO_INLINE double ro_log2_any(double a) {
    return a == 0 ? -RO_INF64 : a < RO_INF64 ? ro_log2_64(a) : a;
}

RO_INLINE float ro_log2(float x) {
    return ro_rounded64(x >= 0 ? ro_log2_any(ro_abs64((double)x)) : RO_NAN64);
}

RO_INLINE float ro_pow(float x, float y) {
    const double a = ro_abs64((double)x), l = ro_log2_any(a);
    const double power = ro_exp2_64(a == 1 ? 0.0 : (double)y * l), b = ro_abs64((double)y);
    const double half = b * 0.5, below = b < 0x1p25 ? b : 0x1p25,
                 whole = (below + RO_ROUNDER) - RO_ROUNDER;
    const double halves = half < 0x1p24 ? half : 0x1p24;
    const int integer = whole == below, even = (halves + RO_ROUNDER) - RO_ROUNDER == halves;
    const int negative = ro_to_bits(x) >> 31;
    const double huge = l * (double)y; /* beyond the range to which exp2_64 clamps its argument */
    double z = huge >= 1000.0 ? RO_INF64 : huge <= -1000.0 ? 0.0 : power;
    z = a == 1 ? 1.0 : z;
    z = negative && integer && !even ? -z : z;
    z = negative && !integer && a != 0 && a < RO_INF64 ? RO_NAN64 : z;
    z = x != x || y != y ? RO_NAN64 : z;
    return ro_rounded64(x == 1 || y == 0 ? 1.0 : z);
}

#endif
