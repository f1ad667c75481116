/* The innermost loops of products: a tile of sums in registers. */
#include "repops/free/vector.h"

/* Returns a * b + c, fused if `contract`. In binary64 both give the same number, since products of
 * binary32 numbers are exact. */
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

/* Sums a tile. `rows` and `contract` are constants where this is inlined. */
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

/* Written with vectors because gcc 12 at -O3 turns the plain loops into wrong masked loads. */
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

/* Returns the sum of squares of one lane's finite numbers. A result that involves others is not
 * finite either, so its bound does not matter. */
static double finite_squares(const real *x, int64_t steps, int width) {
    double sum = 0;
    for (int64_t p = 0; p < steps; p++, x += width)
        sum += *x - *x == 0 ? (double)*x * (double)*x : 0;
    return sum;
}

/* Sums the squares of `vectors` vectors of lanes, a constant where this is inlined. Takes four
 * steps at a time, since an addition waits for the one before. */
RO_INLINE void sum_squares(const real *x, int64_t steps, int width, int vectors, vr *sum) {
    vr s[4][2];
    int64_t p = 0;
    RO_UNROLL
    for (int i = 0; i < 4 * vectors; i++)
        s[i / vectors][i % vectors] = broadcast(0);
    for (; p + 4 <= steps; p += 4, x += 4 * width) {
        RO_UNROLL
        for (int i = 0; i < 4 * vectors; i++) {
            const vr v = load(x + i / vectors * width + i % vectors * FREE_LANES);
            s[i / vectors][i % vectors] = mul_add(v, v, s[i / vectors][i % vectors], 1);
        }
    }
    for (; p < steps; p++, x += width) {
        RO_UNROLL
        for (int i = 0; i < vectors; i++) {
            const vr v = load(x + i * FREE_LANES);
            s[0][i] = mul_add(v, v, s[0][i], 1);
        }
    }
    RO_UNROLL
    for (int i = 0; i < vectors; i++)
        sum[i] = (s[0][i] + s[1][i]) + (s[2][i] + s[3][i]);
}

/* Adds the squares of up to two vectors of lanes. */
static void add_two(const real *x, int64_t steps, int width, int count, double *square) {
    const vr none = broadcast(0);
    vr sum[2] = {none, none};
    real lane[2 * FREE_LANES];
    if (count > FREE_LANES)
        sum_squares(x, steps, width, 2, sum);
    else
        sum_squares(x, steps, width, 1, sum);
    const vr zero = (sum[0] - sum[0]) + (sum[1] - sum[1]);
    store(lane, sum[0]), store(lane + FREE_LANES, sum[1]);
    if (memcmp(&zero, &none, sizeof zero) == 0)
        for (int i = 0; i < count; i++)
            square[i] += (double)lane[i];
    else
        for (int i = 0; i < count; i++)
            square[i] +=
                lane[i] - lane[i] == 0 ? (double)lane[i] : finite_squares(x + i, steps, width);
}

void RO_FREE_NAME(ro_free_add_squares)(const real *x, int64_t steps, int width, int64_t lanes,
                                       double *square) {
    for (int64_t h = 0; h < lanes; h += 2 * FREE_LANES)
        add_two(x + h, steps, width, (int)min_i64(2 * FREE_LANES, lanes - h), square + h);
}
