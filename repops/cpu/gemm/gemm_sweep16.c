/* Products of few rows of a, such as those of decoded tokens, with a b of 16-bit elements stored
 * along n: memory decides how long they take. The sums of a block of columns stay in L1 while all
 * steps of k run over them: b is read once, in the order of addresses, and widened in registers. */
#include "repops/cpu/gemm/gemm_kernel.h"
#include "repops/cpu/gemm/gemm_tile.h"
#include "repops/cpu/gemm/gemm_words.h"

enum {
    MOST_ROWS = 8,
    KEPT = 4096,              /* sums of a block, over all rows */
    MOST_TILE = 8 * VW,       /* columns of the widest tile */
    WIDER = VW == 16 ? 4 : 2, /* vectors of a tile of 2 to 4 rows: AVX-512 has 32 registers */
    LEAST = 4 * MOST_TILE,    /* fewer columns are not worth it */
};

/* The state of a block, which all its tiles share. */
typedef struct {
    const gemm *g;
    int dtype;
    int64_t cols, line; /* columns; stride of rows of sums, in floats */
    float *sums, *tot;
} sweep;

/* sums = fma(a, b, sums) for `steps` steps of a tile, from +0 if `first`. With several rows blocks
 * are narrow, so lines of coming steps lie apart; these are prefetched. */
RO_INLINE void sweep_tile(const sweep *s, int rows, int vectors, int steps, const float *a,
                          const uint16_t *b, int64_t row_step, int first, float *sums) {
    vf acc[MOST_ROWS][8];
    RO_UNROLL
    for (int r = 0; r < rows; r++)
        RO_UNROLL
    for (int v = 0; v < vectors; v++)
        acc[r][v] = first ? vf_set1(0.0f) : vf_load(sums + r * s->line + v * VW);
    RO_UNROLL
    for (int p = 0; p < steps; p++, a += s->g->a_col, b += row_step) {
        for (int v = 0; rows > 1 && v < vectors; v += 32 / VW)
            __builtin_prefetch(b + steps * row_step + v * VW);
        RO_UNROLL
        for (int v = 0; v < vectors; v++) {
            const vf x = load_numbers(s->dtype, b + v * VW);
            RO_UNROLL
            for (int r = 0; r < rows; r++)
                acc[r][v] = vf_fma(vf_set1(a[r * s->g->a_row]), x, acc[r][v]);
        }
    }
    RO_UNROLL
    for (int r = 0; r < rows; r++)
        RO_UNROLL
    for (int v = 0; v < vectors; v++)
        vf_store(sums + r * s->line + v * VW, acc[r][v]);
}

/* Runs the last columns, fewer than a vector. b is copied, as it may end after them. */
RO_INLINE void sweep_last(const sweep *s, int rows, int steps, const float *a, const uint16_t *b,
                          int64_t n, int first, float *sums) {
    uint16_t copy[VW] = {0};
    for (int p = 0; p < steps; p++, a += s->g->a_col, b += s->g->b_row) {
        memcpy(copy, b, (size_t)n * sizeof *copy);
        sweep_tile(s, rows, 1, 1, a, copy, 0, first && p == 0, sums);
    }
}

RO_INLINE void sweep_columns(const sweep *s, int rows, int vectors, int steps, const float *a,
                             const uint16_t *b, int first) {
    const int64_t row = s->g->b_row;
    int64_t j = 0;
    for (; j + vectors * VW <= s->cols; j += vectors * VW)
        sweep_tile(s, rows, vectors, steps, a, b + j, row, first, s->sums + j);
    for (; j + VW <= s->cols; j += VW)
        sweep_tile(s, rows, 1, steps, a, b + j, row, first, s->sums + j);
    if (j < s->cols)
        sweep_last(s, rows, steps, a, b + j, s->cols - j, first, s->sums + j);
}

/* Adds a chunk: tot = tot + sums, from +0 on. After the last chunk, stores the result in c. */
static void end_chunk(const sweep *s, int first, int last, float *c) {
    const gemm *g = s->g;
    const vf alpha = vf_set1(g->alpha);
    for (int64_t r = 0; r < g->m; r++)
        for (int64_t j = 0; j < s->cols; j += VW) {
            float *tot = s->tot + r * s->line + j;
            const vf x =
                vf_add(first ? vf_set1(0.0f) : vf_load(tot), vf_load(s->sums + r * s->line + j));
            if (last)
                vf_store_n(c + r * g->c_row + j, vf_canon(vf_mul(x, alpha)), s->cols - j);
            else
                vf_store(tot, x);
        }
}

/* Runs all of k for a block of columns. `rows`, `vectors` and `steps` are constants in every
 * call. */
RO_INLINE void sweep_block(const sweep *s, int rows, int vectors, int steps, const uint16_t *b,
                           float *c) {
    const gemm *g = s->g;
    for (int64_t from = 0; from < g->k; from += g->chunk) {
        const int64_t end = min_i64(from + g->chunk, g->k);
        int64_t p = from;
        for (; p + steps <= end; p += steps)
            sweep_columns(s, rows, vectors, steps, g->a + p * g->a_col, b + p * g->b_row,
                          p == from);
        for (; p < end; p++)
            sweep_columns(s, rows, vectors, 1, g->a + p * g->a_col, b + p * g->b_row, p == from);
        end_chunk(s, from == 0, end == g->k, c);
    }
}

/* More rows leave registers for fewer columns, and use each element of b more often. */
RO_INLINE void sweep_rows(const sweep *s, const uint16_t *b, float *c) {
    switch (s->g->m) {
    case 1: sweep_block(s, 1, 8, 1, b, c); break;
    case 2: sweep_block(s, 2, WIDER, 2, b, c); break;
    case 3: sweep_block(s, 3, WIDER, 2, b, c); break;
    case 4: sweep_block(s, 4, WIDER, 2, b, c); break;
    case 5: sweep_block(s, 5, WIDER / 2, 4, b, c); break;
    case 6: sweep_block(s, 6, WIDER / 2, 4, b, c); break;
    case 7: sweep_block(s, 7, WIDER / 2, 4, b, c); break;
    default: sweep_block(s, 8, WIDER / 2, 4, b, c); break;
    }
}

static int takes(const gemm *g) {
    return VW >= 8 && g->m >= 1 && g->m <= MOST_ROWS && g->b_col == 1 && g->n >= LEAST &&
           g->k > 0 && g->mask == RO_MASK_NONE && !g->c_chunk && g->beta == 0;
}

static int64_t workspace_of(const gemm *g) {
    (void)g;
    return 2 * KEPT;
}

static void run(const gemm *g, float *workspace) {
    const int64_t line = KEPT / g->m / MOST_TILE * MOST_TILE;
    const uint16_t *b = g->narrow.data;
    for (int64_t j = 0; j < g->n; j += line) {
        sweep s = {g, g->narrow.dtype, min_i64(line, g->n - j), line, workspace, workspace + KEPT};
        if (s.dtype == RO_F16) {
            s.dtype = RO_F16;
            sweep_rows(&s, b + j, g->c + j);
        } else {
            s.dtype = RO_BF16;
            sweep_rows(&s, b + j, g->c + j);
        }
    }
}

const gemm_kernel RO_NAME(ro_gemm_sweep16) = {
    .name = "sweep of halves", .takes = takes, .workspace = workspace_of, .run = run};
