/* The innermost part of conv_bytes.h: windows times a panel of weights, with sums in registers. */
#include "repops/cpu/image/conv_bytes.h"

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)

#if defined(RO_ISA_avx512)
#define VNNI __attribute__((target("avx512vnni")))
typedef __m512i vi;

RO_INLINE vi terms_at(const bytes_x *x) {
    int32_t four;
    memcpy(&four, x, sizeof four);
    return _mm512_set1_epi32(four);
}
/* Written in assembly since the compiler copies each sum to another register and back. */
VNNI RO_INLINE vi add_terms(vi sum, vi x, vi w) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
    return sum;
}
RO_INLINE vi load_sums(const void *p) {
    return _mm512_loadu_si512(p);
}
RO_INLINE vf as_floats(vi sum, vi more) {
    return _mm512_cvtepi32_ps(_mm512_add_epi32(sum, more));
}
RO_INLINE vi times(vi x, int32_t by) {
    return _mm512_mullo_epi32(x, _mm512_set1_epi32(by));
}
RO_INLINE vi no_sum(void) {
    return _mm512_setzero_si512();
}
#else
#define VNNI
typedef __m256i vi;

RO_INLINE vi terms_at(const bytes_x *x) {
    int32_t two;
    memcpy(&two, x, sizeof two);
    return _mm256_set1_epi32(two);
}
RO_INLINE vi add_terms(vi sum, vi x, vi w) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w));
}
RO_INLINE vi load_sums(const void *p) {
    return _mm256_loadu_si256(p);
}
RO_INLINE vf as_floats(vi sum, vi more) {
    return _mm256_cvtepi32_ps(_mm256_add_epi32(sum, more));
}
RO_INLINE vi times(vi x, int32_t by) {
    return _mm256_mullo_epi32(x, _mm256_set1_epi32(by));
}
RO_INLINE vi no_sum(void) {
    return _mm256_setzero_si256();
}
#endif

/* One pointer serves three rows, as an address mode adds a row once or twice. */
VNNI RO_INLINE void tile_rows(const int rows, const bytes_tile *t) {
    const bytes_x *x[(TILE_ROWS + 2) / 3];
    const bytes_w *w = t->w;
    const int64_t row = t->row;
    vi sum[TILE_ROWS][TILE_VECTORS];
    RO_UNROLL
    for (int i = 0; i < rows; i++)
        RO_UNROLL
    for (int j = 0; j < TILE_VECTORS; j++)
        sum[i][j] = no_sum();
    RO_UNROLL
    for (int i = 0; i < (rows + 2) / 3; i++)
        x[i] = t->x + 3 * i * row;
    for (int64_t turn = t->turns; turn > 0; turn--, w += TERMS * TILE_COLS) {
        vi wv[TILE_VECTORS];
        RO_UNROLL
        for (int j = 0; j < TILE_VECTORS; j++)
            wv[j] = load_sums(w + j * TERMS * VW);
        RO_UNROLL
        for (int i = 0; i < rows; i++) {
            const vi xv = terms_at(x[i / 3] + i % 3 * row);
            RO_UNROLL
            for (int j = 0; j < TILE_VECTORS; j++)
                sum[i][j] = add_terms(sum[i][j], xv, wv[j]);
        }
        RO_UNROLL
        for (int i = 0; i < (rows + 2) / 3; i++)
            x[i] += TERMS;
    }
    RO_UNROLL
    for (int j = 0; j < TILE_VECTORS; j++) {
        const vi more = times(load_sums(t->sum + j * VW), t->low);
        RO_UNROLL
        for (int i = 0; i < rows; i++)
            vf_store_n(t->y + i * t->y_row + j * VW, as_floats(sum[i][j], more), t->cols - j * VW);
    }
}

#define CASE(rows)                                                                                 \
    case rows: tile_rows(rows, t); break

VNNI void RO_NAME(ro_conv_bytes_tile)(int64_t rows, const bytes_tile *t) {
    switch (rows) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
#if defined(RO_ISA_avx512)
        CASE(6);
        CASE(7);
        CASE(8);
        CASE(9);
        CASE(10);
        CASE(11);
        CASE(12);
        CASE(13);
#endif
    default: tile_rows(TILE_ROWS, t);
    }
}

#endif
