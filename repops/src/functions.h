/* Elementary functions, SPEC.md section 2, and formulas of section 6, written once for a float and
 * for vectors. math.h includes this file for float, cpu/functions.h for the vectors of an
 * instruction set; so it has no include guard.
 *
 * RO_F is the type, RO_OF(name) a function of it. The including file must define:
 *   set1(c)              the constant
 *   add(a, b), sub, mul, div, neg(a), fma(a, b, c)
 *   abs(x), minus_abs(x) |x| and -|x|
 *   cut_above(x, c)      x < c ? x : c, so c for a NaN
 *   cut_below(x, c)      x > c ? x : c
 *   if_ge(a, b, y, n)    a >= b ? y : n
 *   with_sign(y, x)      y with the sign of x, if y has none
 *   unless_nan(x, y)     the canonical NaN if x is a NaN, else y
 *   canon(y)             unless_nan(y, y)
 *   scale(y, t)          2^k y, rounded once, where t = k + 0x1.8p23 and 1/2 < y < 2
 *   scale_down(y, t)     the same for k <= 0
 *   scale_sum(p, t)      2^k (1 + p), where that is a normal number
 *   log_split(x, &m)     e * 2^23, where x is normal and x = 2^e m, 2/3 <= m < 4/3 */

#define K   RO_OF(set1)
#define ADD RO_OF(add)
#define SUB RO_OF(sub)
#define MUL RO_OF(mul)
#define DIV RO_OF(div)
#define NEG RO_OF(neg)
#define FMA RO_OF(fma)

/* SPEC 2.1: returns p with exp(x) = 2^k (1 + p); t = k + 0x1.8p23. */
RO_INLINE RO_F RO_OF(exp_core)(RO_F x, RO_F *t) {
    *t = FMA(x, K(0x1.715476p0f), K(0x1.8p23f));
    RO_F n = SUB(*t, K(0x1.8p23f));
    RO_F r = FMA(n, K(-0x1.62e400p-1f), x);
    r = FMA(n, K(-0x1.7f7d1cp-20f), r);
    RO_F p = K(0x1.a26762p-13f);
    p = FMA(p, r, K(0x1.6d2ep-10f));
    p = FMA(p, r, K(0x1.110ff2p-7f));
    p = FMA(p, r, K(0x1.555502p-5f));
    p = FMA(p, r, K(0x1.555556p-3f));
    p = FMA(p, r, K(0x1p-1f));
    return FMA(MUL(r, r), p, r);
}

/* SPEC 2.1. A NaN is first clamped to 90 like a large number, which saves an instruction, and
 * restored by unless_nan. */
RO_INLINE RO_F RO_OF(exp)(RO_F x) {
    RO_F t, c = RO_OF(cut_below)(RO_OF(cut_above)(x, K(90.0f)), K(-106.0f));
    RO_F p = RO_OF(exp_core)(c, &t);
    return RO_OF(unless_nan)(x, RO_OF(scale)(ADD(p, K(1.0f)), t));
}

/* Computes exp for -106 <= x <= 0. At -106 the result is +0, as for every smaller x. */
RO_INLINE RO_F RO_OF(exp_down)(RO_F x) {
    RO_F t, p = RO_OF(exp_core)(x, &t);
    return RO_OF(scale_down)(ADD(p, K(1.0f)), t);
}

/* Computes exp for |x| <= 87, where nothing is clamped and the result is a normal number. */
RO_INLINE RO_F RO_OF(exp_plain)(RO_F x) {
    RO_F t, p = RO_OF(exp_core)(x, &t);
    return RO_OF(scale_sum)(p, t);
}

/* SPEC 2.2, except that a NaN may become any NaN. */
RO_INLINE RO_F RO_OF(tanh_any)(RO_F x) {
    RO_F t, a = RO_OF(abs)(x);
    RO_F z = MUL(a, a);
    RO_F p = K(0x1.4d7b44p-9f);
    p = FMA(p, z, K(-0x1.1930dcp-7f));
    p = FMA(p, z, K(0x1.65fc46p-6f));
    p = FMA(p, z, K(-0x1.ba21bep-5f));
    p = FMA(p, z, K(0x1.111148p-3f));
    p = FMA(p, z, K(-0x1.555556p-2f));
    RO_F small = FMA(MUL(a, z), p, a);
    RO_F b = RO_OF(cut_above)(a, K(10.0f));
    RO_F e = RO_OF(exp_core)(ADD(b, b), &t);
    RO_F d = ADD(RO_OF(scale_sum)(e, t), K(1.0f));
    RO_F large = SUB(K(1.0f), DIV(K(2.0f), d));
    return RO_OF(with_sign)(RO_OF(if_ge)(a, K(0.6f), large, small), x);
}

RO_INLINE RO_F RO_OF(tanh)(RO_F x) {
    return RO_OF(canon)(RO_OF(tanh_any)(x));
}

/* log(2^e m), n = e * 2^23. */
RO_INLINE RO_F RO_OF(log_core)(RO_F m, RO_F n) {
    RO_F f = SUB(m, K(1.0f));
    RO_F p = K(-0x1.04ff52p-3f);
    p = FMA(p, f, K(0x1.132ee2p-3f));
    p = FMA(p, f, K(-0x1.f4c81p-4f));
    p = FMA(p, f, K(0x1.211ab6p-3f));
    p = FMA(p, f, K(-0x1.558a74p-3f));
    p = FMA(p, f, K(0x1.99addep-3f));
    p = FMA(p, f, K(-0x1.ffff74p-3f));
    p = FMA(p, f, K(0x1.55554cp-2f));
    RO_F z = MUL(f, f);
    RO_F t = FMA(n, K(0x1.7f7d1cp-43f), FMA(MUL(f, z), p, MUL(K(-0.5f), z)));
    return FMA(n, K(0x1.62e400p-24f), ADD(t, f));
}

/* SPEC 2.3. */
RO_INLINE RO_F RO_OF(log)(RO_F x) {
    RO_F c = RO_OF(if_ge)(x, K(0x1p-126f), x, MUL(x, K(0x1p25f)));
    RO_F m, n = RO_OF(log_split)(c, &m);
    n = RO_OF(if_ge)(x, K(0x1p-126f), n, SUB(n, K(25 * 0x1p23f)));
    RO_F r = RO_OF(log_core)(m, n);
    r = RO_OF(if_ge)(x, K(0x1p-149f), r, K(ro_from_bits(RO_MINUS_INFINITY_BITS)));
    r = RO_OF(if_ge)(x, K(ro_from_bits(RO_INFINITY_BITS)), x, r);
    return RO_OF(if_ge)(x, K(0.0f), r, K(ro_from_bits(RO_QNAN_BITS)));
}

/* Computes log for positive normal numbers. */
RO_INLINE RO_F RO_OF(log_plain)(RO_F x) {
    RO_F m, n = RO_OF(log_split)(x, &m);
    return RO_OF(log_core)(m, n);
}

/* SPEC 2.5, except that a NaN may become any NaN. */
RO_INLINE RO_F RO_OF(erf_any)(RO_F x) {
    RO_F t, a = RO_OF(abs)(x);
    RO_F z = MUL(a, a);
    RO_F b = RO_OF(cut_above)(a, K(4.0f));
    RO_F p = K(-0x1.44aba8p-11f), q = K(0x1.a58abp-13f);
    p = FMA(p, z, K(0x1.499f5cp-8f)), q = FMA(q, b, K(-0x1.95533ep-9f));
    p = FMA(p, z, K(-0x1.b6ea32p-6f)), q = FMA(q, b, K(0x1.6f56ap-6f));
    p = FMA(p, z, K(0x1.ce2036p-4f)), q = FMA(q, b, K(-0x1.ab53fcp-4f));
    p = FMA(p, z, K(-0x1.812702p-2f)), q = FMA(q, b, K(-0x1.460256p-1f));
    p = FMA(p, z, K(0x1.06eba6p-3f)), q = FMA(q, b, K(-0x1.20c072p0f));
    q = FMA(q, b, K(-0x1.17f666p-13f));
    RO_F small = FMA(a, p, a);
    RO_F e = RO_OF(exp_core)(q, &t);
    RO_F large = SUB(K(1.0f), RO_OF(scale_sum)(e, t));
    return RO_OF(with_sign)(RO_OF(if_ge)(a, K(0.875f), large, small), x);
}

RO_INLINE RO_F RO_OF(erf)(RO_F x) {
    return RO_OF(canon)(RO_OF(erf_any)(x));
}

/* SPEC 2.7. */
RO_INLINE RO_F RO_OF(sigmoid)(RO_F x) {
    RO_F e = RO_OF(exp_down)(RO_OF(cut_below)(RO_OF(minus_abs)(x), K(-106.0f)));
    RO_F y = DIV(RO_OF(if_ge)(x, K(0.0f), K(1.0f), e), ADD(K(1.0f), e));
    return RO_OF(unless_nan)(x, y);
}

/* ---- SPEC 6 ---- */

RO_INLINE RO_F RO_OF(relu)(RO_F x) {
    return RO_OF(unless_nan)(x, RO_OF(cut_below)(x, K(0.0f)));
}

/* tanh(c0 x (1 + c1 x^2)). */
RO_INLINE RO_F RO_OF(gelu_tanh)(RO_F x) {
    RO_F w = FMA(K(RO_GELU_C1), MUL(x, x), K(1.0f));
    return RO_OF(tanh_any)(MUL(MUL(K(RO_GELU_C0), x), w));
}

/* Returns x, but the least finite number for -inf. Functions of the form x times a factor that is
 * +0 far below 0 then reach their limit at -inf, where -inf * +0 would be a NaN. A NaN in x still
 * comes out, through the factor. */
RO_INLINE RO_F RO_OF(above_minus_infinity)(RO_F x) {
    return RO_OF(cut_below)(x, K(-RO_F32_MAX));
}

RO_INLINE RO_F RO_OF(gelu)(RO_F x) {
    RO_F t = RO_OF(gelu_tanh)(x);
    return MUL(MUL(K(0.5f), RO_OF(above_minus_infinity)(x)), ADD(K(1.0f), t));
}

RO_INLINE RO_F RO_OF(silu)(RO_F x) {
    return MUL(RO_OF(above_minus_infinity)(x), RO_OF(sigmoid)(x));
}

/* SPEC 2.8: max(x, 0) minus |x| times the probability of the normal distribution beyond |x|. */
RO_INLINE RO_F RO_OF(gelu_erf)(RO_F x) {
    RO_F b = RO_OF(cut_above)(RO_OF(abs)(x), K(0x1.55c2a6p2f));
    RO_F z = MUL(b, b);
    RO_F n = K(0x1.8823a2p-26f), d = K(0x1.43f93ep-21f);
    n = FMA(n, z, K(0x1.b0c98ep-18f)), d = FMA(d, z, K(0x1.3cde42p-15f));
    n = FMA(n, z, K(0x1.6c46f8p-13f)), d = FMA(d, z, K(0x1.f51e38p-11f));
    n = FMA(n, z, K(0x1.34822ep-8f)), d = FMA(d, z, K(0x1.d967e6p-7f));
    n = FMA(n, z, K(0x1.18b0f2p-5f)), d = FMA(d, z, K(0x1.029d1cp-3f));
    n = FMA(n, z, K(0x1.98844cp-2f)), d = FMA(d, z, K(0x1p-1f));
    RO_F r = RO_OF(cut_below)(FMA(NEG(b), n, d), K(0.0f));
    RO_F y = FMA(NEG(b), DIV(r, ADD(d, d)), RO_OF(cut_below)(x, K(0.0f)));
    return RO_OF(unless_nan)(x, y);
}

/* Clamps x to [-c, c]. A NaN becomes c. */
RO_INLINE RO_F RO_OF(cut_both)(RO_F x, float c) {
    return RO_OF(cut_below)(RO_OF(cut_above)(x, K(c)), K(-c));
}

/* Functions from here on give the factor of dy in gradients. y: the function's result. */

/* Returns the slope of gelu. From |x| = 8 on, s is +0 whatever b is; b is clamped since an infinite
 * v would make the product a NaN. */
RO_INLINE RO_F RO_OF(gelu_slope)(RO_F x) {
    RO_F t = RO_OF(gelu_tanh)(x), s = FMA(NEG(t), t, K(1.0f)), b = RO_OF(cut_both)(x, 8.0f);
    RO_F v = MUL(K(RO_GELU_C0), FMA(K(3.0f * RO_GELU_C1), MUL(b, b), K(1.0f)));
    return FMA(MUL(MUL(K(0.5f), b), s), v, MUL(K(0.5f), ADD(K(1.0f), t)));
}

RO_INLINE RO_F RO_OF(tanh_slope)(RO_F y) {
    return FMA(NEG(y), y, K(1.0f));
}

RO_INLINE RO_F RO_OF(erf_slope)(RO_F x) {
    return MUL(K(0x1.20dd76p0f), RO_OF(exp)(NEG(MUL(x, x))));
}

RO_INLINE RO_F RO_OF(sigmoid_slope)(RO_F y) {
    return MUL(y, SUB(K(1.0f), y));
}

RO_INLINE RO_F RO_OF(silu_slope)(RO_F x) {
    RO_F s = RO_OF(sigmoid)(x), b = RO_OF(cut_both)(x, RO_F32_MAX);
    return MUL(s, FMA(b, SUB(K(1.0f), s), K(1.0f)));
}

/* SPEC 2.8. */
RO_INLINE RO_F RO_OF(gelu_erf_slope)(RO_F x) {
    RO_F b = RO_OF(cut_both)(x, 0x1.7999aap2f), z = MUL(b, b);
    RO_F n = K(0x1.197bfcp-26f), d = FMA(K(0x1.6470a6p-30f), z, K(0x1.51b49ap-22f));
    n = FMA(n, z, K(0x1.bf3eaap-21f)), d = FMA(d, z, K(0x1.4b04a6p-17f));
    n = FMA(n, z, K(0x1.1dd906p-15f)), d = FMA(d, z, K(0x1.f0bcdap-13f));
    n = FMA(n, z, K(0x1.62538ep-13f)), d = FMA(d, z, K(0x1.fbf0a4p-9f));
    n = FMA(n, z, K(0x1.c878f8p-7f)), d = FMA(d, z, K(0x1.63e3d4p-5f));
    n = FMA(n, z, K(-0x1.8d2dp-6f)), d = FMA(d, z, K(0x1.3638aep-2f));
    n = FMA(n, z, K(0x1.988452p-1f)), d = FMA(d, z, K(0x1p0f));
    return RO_OF(unless_nan)(x, ADD(DIV(MUL(b, n), d), K(0.5f)));
}

#undef K
#undef ADD
#undef SUB
#undef MUL
#undef DIV
#undef NEG
#undef FMA
