/* The innermost loops of products: a tile of sums in registers. */
#include "repops/free/gemm.h"

typedef real vr __attribute__((vector_size(FREE_VECTOR)));
typedef real vr_anywhere
    __attribute__((vector_size(FREE_VECTOR), aligned(sizeof(real)), may_alias));

RO_INLINE vr broadcast(real x) {
#if defined(RO_ISA_avx512) && defined(RO_IS_f64)
    return (vr)_mm512_set1_pd(x);
#elif defined(RO_ISA_avx512)
    return (vr)_mm512_set1_ps(x);
#elif defined(RO_ISA_avx2) && defined(RO_IS_f64)
    return (vr)_mm256_set1_pd(x);
#elif defined(RO_ISA_avx2)
    return (vr)_mm256_set1_ps(x);
#elif defined(RO_IS_f64)
    return (vr){x, x};
#else
    return (vr){x, x, x, x};
#endif
}

/* In binary64 both are the same number: products of binary32 numbers are exact. */
RO_INLINE vr mul_add(vr a, vr b, vr c, int contract) {
#if defined(RO_ISA_avx512) && defined(RO_IS_f64)
    (void)contract;
    return (vr)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(RO_ISA_avx512)
    return contract ? (vr)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c) : a * b + c;
#elif defined(RO_ISA_avx2) && defined(RO_IS_f64)
    (void)contract;
    return (vr)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(RO_ISA_avx2)
    return contract ? (vr)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c) : a * b + c;
#elif defined(RO_ISA_neon) && defined(RO_IS_f64)
    (void)contract;
    return (vr)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#elif defined(RO_ISA_neon)
    return contract ? (vr)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b) : a * b + c;
#else
    for (int i = 0; i < FREE_LANES; i++)
        c[i] = free_mul_add(a[i], b[i], c[i], contract && sizeof(real) == 4);
    return c;
#endif
}

RO_INLINE vr load(const real *p) {
    return *(const vr_anywhere *)(const void *)p;
}

RO_INLINE void store(real *p, vr x) {
    *(vr_anywhere *)(void *)p = x;
}

/* Inlined with constants `rows` and `contract`. */
RO_INLINE void sum_tile(int rows, int contract, int64_t k, const real *restrict a,
                        const real *restrict b, real *restrict c, free_mode mode) {
    vr s[FREE_MR][2];
    RO_UNROLL
    for (int i = 0; i < rows; i++) {
        s[i][0] = mode == FREE_CONTINUE ? load(c + i * FREE_NR) : broadcast(0);
        s[i][1] = mode == FREE_CONTINUE ? load(c + i * FREE_NR + FREE_LANES) : broadcast(0);
    }
    for (int64_t p = 0; p < k; p++, a += FREE_PANEL, b += FREE_NR) {
        const vr x = load(b), y = load(b + FREE_LANES);
        RO_UNROLL
        for (int i = 0; i < rows; i++) {
            const vr w = broadcast(a[i]);
            s[i][0] = mul_add(w, x, s[i][0], contract);
            s[i][1] = mul_add(w, y, s[i][1], contract);
        }
    }
    RO_UNROLL
    for (int i = 0; i < rows; i++, c += FREE_NR) {
        store(c, mode == FREE_ADD ? load(c) + s[i][0] : s[i][0]);
        store(c + FREE_LANES, mode == FREE_ADD ? load(c + FREE_LANES) + s[i][1] : s[i][1]);
    }
}

#define CASE(n)                                                                                    \
    case n: sum_tile(n, contract, k, a, b, c, mode); break

RO_INLINE void any_tile(int rows, int contract, int64_t k, const real *a, const real *b, real *c,
                        free_mode mode) {
    switch (rows) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
#if defined(RO_ISA_avx512)
        CASE(7);
        CASE(8);
        CASE(9);
        CASE(10);
        CASE(11);
        CASE(12);
        CASE(13);
        CASE(14);
#endif
    default: break;
    }
}

void RO_FREE_NAME(ro_free_tile)(int rows, int contract, int64_t k, const real *a, const real *b,
                                real *c, free_mode mode) {
#if defined(RO_IS_f32) && RO_HAS_FMA
    if (contract) {
        any_tile(rows, 1, k, a, b, c, mode);
        return;
    }
#endif
    (void)contract;
    any_tile(rows, 0, k, a, b, c, mode);
}

/* Vectors by hand: gcc 12 at -O3 makes wrong masked loads of the plain loops. */
void RO_FREE_NAME(ro_free_tile_exact)(int rows, int64_t k, const real *a, const real *b, real *c,
                                      free_mode mode) {
    for (int i = 0; i < rows; i++, c += FREE_NR)
        for (int h = 0; h < FREE_NR; h += FREE_LANES) {
            vr s = mode == FREE_CONTINUE ? load(c + h) : broadcast(0);
            for (int64_t p = 0; p < k; p++)
                if (!free_is_absent(a[p * FREE_PANEL + i]))
                    s += broadcast(a[p * FREE_PANEL + i]) * load(b + p * FREE_NR + h);
            store(c + h, mode == FREE_ADD ? load(c + h) + s : s);
        }
}

/* ---- norms ---- */

/* The squares of one lane, without those of numbers that are not finite: a result that has them is
 * not finite either. */
static double finite_squares(const real *x, int64_t steps, int width) {
    double sum = 0;
    for (int64_t p = 0; p < steps; p++, x += width)
        sum += *x - *x == 0 ? (double)*x * (double)*x : 0;
    return sum;
}

/* Of `vectors` vectors of lanes side by side, a constant where the call is inlined: as many chains
 * of additions as that, times two. */
RO_INLINE void sum_squares(const real *x, int64_t steps, int width, int vectors, real *sum) {
    vr s[2], t[2];
    int64_t p = 0;
    RO_UNROLL
    for (int i = 0; i < vectors; i++)
        s[i] = t[i] = broadcast(0);
    for (; p + 1 < steps; p += 2, x += 2 * width) {
        RO_UNROLL
        for (int i = 0; i < vectors; i++) {
            const vr v = load(x + i * FREE_LANES), w = load(x + width + i * FREE_LANES);
            s[i] += v * v, t[i] += w * w;
        }
    }
    RO_UNROLL
    for (int i = 0; i < vectors; i++) {
        if (p < steps)
            s[i] += load(x + i * FREE_LANES) * load(x + i * FREE_LANES);
        store(sum + i * FREE_LANES, s[i] + t[i]);
    }
}

/* Adds them, or does nothing and returns 0: one is not finite. */
static int add_finite(const real *restrict sum, int count, double *restrict square) {
    real zero = 0;
    for (int i = 0; i < count; i++)
        zero += sum[i] - sum[i];
    for (int i = 0; i < count && zero == 0; i++)
        square[i] += (double)sum[i];
    return zero == 0;
}

void RO_FREE_NAME(ro_free_add_squares)(const real *x, int64_t steps, int width, int64_t lanes,
                                       double *square) {
    real sum[2 * FREE_LANES];
    for (int h = 0, count; h < lanes; h += count) {
        count = h + FREE_LANES < lanes ? 2 * FREE_LANES : FREE_LANES;
        if (count > FREE_LANES)
            sum_squares(x + h, steps, width, 2, sum);
        else
            sum_squares(x + h, steps, width, 1, sum);
        count = count < lanes - h ? count : (int)(lanes - h);
        if (add_finite(sum, count, square + h))
            continue;
        for (int i = 0; i < count; i++)
            square[h + i] +=
                sum[i] - sum[i] == 0 ? (double)sum[i] : finite_squares(x + h + i, steps, width);
    }
}
