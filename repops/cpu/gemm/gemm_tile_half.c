/* Tiles of up to half a vector of columns, in which AVX-512 would waste the other lanes. */
#include "repops/cpu/elements/wide.h"
#include "repops/cpu/gemm/gemm_tile.h"

#if defined(RO_ISA_avx512)

/* A tile of up to half a vector of columns. The processor does two operations of 256 bits in the
 * time of one of 512. */
RO_INLINE void half_tile(const int rows, const tile *t) {
    const __mmask8 mask = (__mmask8)((1u << t->cols) - 1);
    const __m256 alpha = _mm256_set1_ps(t->alpha), beta = _mm256_set1_ps(t->beta);
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32((int)RO_QNAN_BITS));
    const tile_run whole = {0, 0, t->k}, *run = t->runs ? t->runs : &whole;
    const tile_run *end = run + (t->runs ? t->run_count : 1);
    __m256 acc[MR];
    RO_UNROLL
    for (int i = 0; i < rows; i++)
        acc[i] = _mm256_setzero_ps();
    for (; run < end; run++) {
        const float *a = t->a + run->a, *b = t->b + run->b;
        for (int64_t p = run->k; p > 0; p--, a += t->a_step, b += t->b_step) {
            const __m256 bv = _mm256_maskz_loadu_ps(mask, b);
            RO_UNROLL
            for (int i = 0; i < rows; i++)
                acc[i] = _mm256_fmadd_ps(_mm256_set1_ps(a[i * t->a_row]), bv, acc[i]);
        }
    }
    RO_UNROLL
    for (int i = 0; i < rows; i++) {
        float *c = t->c + i * t->c_row, *out = t->out + i * t->out_row;
        __m256 x = _mm256_setzero_ps();
        if (!(t->flags & TILE_FIRST))
            x = _mm256_maskz_loadu_ps(mask, c);
        x = _mm256_add_ps(x, acc[i]);
        if (t->flags & TILE_LAST) {
            x = _mm256_mul_ps(x, alpha);
            if (t->beta != 0)
                x = _mm256_fmadd_ps(beta, _mm256_maskz_loadu_ps(mask, out), x);
            if (t->bias)
                x = _mm256_add_ps(x, _mm256_maskz_loadu_ps(mask, t->bias));
            if (t->relu)
                x = _mm256_mask_mov_ps(_mm256_max_ps(x, _mm256_setzero_ps()),
                                       _mm256_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
            x = _mm256_mask_mov_ps(x, _mm256_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
        }
        _mm256_mask_storeu_ps(t->flags & TILE_LAST ? out : c, mask, x);
    }
}

static void half_rows(int rows, const tile *t) {
    switch (rows) {
    case 8: half_tile(8, t); break;
    case 9: half_tile(9, t); break;
    case 10: half_tile(10, t); break;
    case 11: half_tile(11, t); break;
    case 12: half_tile(12, t); break;
    case 13: half_tile(13, t); break;
    case 14: half_tile(14, t); break;
    default: break;
    }
}

enum { QUADS = QUAD_ROWS / 4 };

/* Loads four floats of each of four rows. */
RO_INLINE __m512 load_whole_quad(const float *p, int64_t row) {
    __m512 x = _mm512_castps128_ps512(_mm_loadu_ps(p));
    x = _mm512_insertf32x4(x, _mm_loadu_ps(p + row), 1);
    x = _mm512_insertf32x4(x, _mm_loadu_ps(p + 2 * row), 2);
    return _mm512_insertf32x4(x, _mm_loadu_ps(p + 3 * row), 3);
}

/* Does what load_whole_quad does, but loads only the floats of the mask. */
RO_INLINE __m512 load_quad(const float *p, int64_t row, __mmask8 mask) {
    __m512 x = _mm512_castps128_ps512(_mm_maskz_loadu_ps(mask, p));
    x = _mm512_insertf32x4(x, _mm_maskz_loadu_ps(mask, p + row), 1);
    x = _mm512_insertf32x4(x, _mm_maskz_loadu_ps(mask, p + 2 * row), 2);
    return _mm512_insertf32x4(x, _mm_maskz_loadu_ps(mask, p + 3 * row), 3);
}

/* Returns acc + bv times element `step` of each row in x; bv has four columns of b. */
RO_INLINE __m512 quad_fma(__m512 x, const int step, __m512 bv, __m512 acc) {
    switch (step) {
    case 0: return vf_fma(_mm512_permute_ps(x, 0x00), bv, acc);
    case 1: return vf_fma(_mm512_permute_ps(x, 0x55), bv, acc);
    case 2: return vf_fma(_mm512_permute_ps(x, 0xaa), bv, acc);
    default: return vf_fma(_mm512_permute_ps(x, 0xff), bv, acc);
    }
}

/* Finishes rows [row + stored, row + 4); those before are stored already. */
RO_INLINE void finish_quad(const tile *t, int row, int stored, __mmask8 cols, __m512 x) {
    float *to = (t->flags & TILE_LAST ? t->out : t->c);
    const int64_t step = t->flags & TILE_LAST ? t->out_row : t->c_row;
    __m512 c = vf_set1(0.0f);
    if (!(t->flags & TILE_FIRST))
        c = load_quad(t->c + row * t->c_row, t->c_row, cols);
    x = vf_add(c, x);
    if (t->flags & TILE_LAST) {
        x = vf_mul(x, vf_set1(t->alpha));
        if (t->beta != 0)
            x = vf_fma(vf_set1(t->beta), load_quad(t->out + row * t->out_row, t->out_row, cols), x);
        if (t->bias)
            x = vf_add(x, _mm512_broadcast_f32x4(_mm_maskz_loadu_ps(cols, t->bias)));
        x = t->relu ? vf_relu(x) : vf_canon(x);
    }
    __m128 lanes[4] = {_mm512_castps512_ps128(x), _mm512_extractf32x4_ps(x, 1),
                       _mm512_extractf32x4_ps(x, 2), _mm512_extractf32x4_ps(x, 3)};
    for (int i = stored; i < 4; i++) {
        /* gcc would merge the extraction and the store into vextractf32x4, whose masked-off columns
         * fault if they lie in a page that is not mapped. */
        __asm__("" : "+v"(lanes[i]));
        _mm_mask_storeu_ps(to + (row + i) * step, cols, lanes[i]);
    }
}

/* Runs `steps` k steps, at most four. */
RO_INLINE void quad_steps(const int quads, const int steps, __mmask8 cols, const float *a,
                          const float *a_last, const float *b, const tile *t, __m512 acc[QUADS]) {
    __m512 x[QUADS];
    RO_UNROLL
    for (int q = 0; q < quads; q++) {
        const float *rows = q == quads - 1 ? a_last : a + 4 * q * t->a_row;
        x[q] = steps == 4 ? load_whole_quad(rows, t->a_row)
                          : load_quad(rows, t->a_row, (__mmask8)((1 << steps) - 1));
    }
    RO_UNROLL
    for (int p = 0; p < steps; p++) {
        const __m512 bv = _mm512_broadcast_f32x4(_mm_maskz_loadu_ps(cols, b + p * t->b_step));
        RO_UNROLL
        for (int q = 0; q < quads; q++)
            acc[q] = quad_fma(x[q], p, bv, acc[q]);
    }
}

/* A tile in place of up to four columns, with a stored along k: each vector holds four rows x four
 * columns. The last four rows may overlap those before, whose results are stored only once. */
RO_INLINE void quad_tile(const int quads, int rows, const tile *t) {
    const __mmask8 cols = (__mmask8)((1u << t->cols) - 1);
    const float *a = t->a, *a_last = a + (rows - 4) * t->a_row, *b = t->b;
    int64_t left = t->k;
    __m512 acc[QUADS];
    RO_UNROLL
    for (int q = 0; q < quads; q++)
        acc[q] = vf_set1(0.0f);
    for (; left >= 4; left -= 4, a += 4, a_last += 4, b += 4 * t->b_step)
        quad_steps(quads, 4, cols, a, a_last, b, t, acc);
    switch (left) {
    case 1: quad_steps(quads, 1, cols, a, a_last, b, t, acc); break;
    case 2: quad_steps(quads, 2, cols, a, a_last, b, t, acc); break;
    case 3: quad_steps(quads, 3, cols, a, a_last, b, t, acc); break;
    default: break;
    }
    RO_UNROLL
    for (int q = 0; q < quads; q++) {
        const int row = q == quads - 1 ? rows - 4 : 4 * q;
        finish_quad(t, row, 4 * q - row, cols, acc[q]);
    }
}

static void quad_rows(int rows, const tile *t) {
    switch ((rows + 3) / 4) {
    case 2: quad_tile(2, rows, t); break;
    case 3: quad_tile(3, rows, t); break;
    case 4: quad_tile(4, rows, t); break;
    case 5: quad_tile(5, rows, t); break;
    case 6: quad_tile(6, rows, t); break;
    case 7: quad_tile(7, rows, t); break;
    case 8: quad_tile(8, rows, t); break;
    case 9: quad_tile(9, rows, t); break;
    default: break;
    }
}

void RO_NAME(ro_tile_half)(int rows, const tile *t) {
    if (t->cols <= QUAD_COLS && t->a_step == 1 && !t->runs)
        quad_rows(rows, t);
    else
        half_rows(rows, t);
}

#endif
