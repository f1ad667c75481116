/* Products of few rows of a with a b of 16-bit elements stored along k, as Llama's weight files
 * have it: memory decides how long they take. As in gemm_dots.c, each lane of a vector holds one
 * element's dot product. Two neighbours in a column are transposed as one word of 32 bits, and
 * widened in registers. */
#include "repops/cpu/gemm/gemm_dots.h"
#include "repops/cpu/gemm/gemm_kernel.h"
#include "repops/cpu/gemm/gemm_words.h"

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)

enum {
    MOST_GROUPS = 2,               /* most groups of VW columns that run together */
    STEPS = WORD_STEPS,            /* k steps in a square of VW words x VW columns */
    LINE = 32,                     /* elements in a cache line */
    ASK_LINES = 4,                 /* cache lines of a column in a block */
    BLOCK = LINE * ASK_LINES,      /* k steps in a block */
    ASK_COLS = STEPS * VW / BLOCK, /* columns of a block that are prefetched per square */
};

/* A product and the type of its b, which all columns share. */
typedef struct {
    const gemm *g;
    int dtype;
} halves;

/* Where to prefetch: `near` is read next, column by column, into L1; `far` are the columns after
 * these, in the order of addresses, into L2, or NULL if they are not contiguous. */
typedef struct {
    const uint16_t *near, *far;
    int64_t near_step;
} asked;

RO_INLINE void ask(asked *a) {
    RO_UNROLL
    for (int i = 0; i < ASK_COLS; i++, a->near += a->near_step) {
        RO_UNROLL
        for (int line = 0; line < ASK_LINES; line++)
            __builtin_prefetch(a->near + line * LINE);
    }
    if (!a->far)
        return;
    RO_UNROLL
    for (int line = 0; line < ASK_COLS * ASK_LINES; line++)
        __builtin_prefetch(a->far + line * LINE, 0, 2);
    a->far += STEPS * VW;
}

RO_INLINE asked asked_at(const gemm *g, const uint16_t *b, int64_t cols, int64_t p) {
    const uint16_t *next = b + cols * g->b_col;
    return (asked){p + BLOCK < g->k ? b + p + BLOCK : next,
                   g->b_col == g->k ? next + p * cols : NULL, g->b_col};
}

/* Adds `steps` steps of a square whose columns are `step` apart. */
RO_INLINE void square(const halves *s, const int rows, const int dtype, int64_t steps,
                      const float *a, const uint16_t *b, int64_t step, vf acc[DOTS_ROWS]) {
    vf r[VW];
    load_words_transposed(b, step, r);
    RO_UNROLL
    for (int q = 0; q < STEPS; q++) {
        if (q >= steps)
            return;
        const vf x = widened(dtype, q % 2, r[q / 2]);
        RO_UNROLL
        for (int i = 0; i < rows; i++)
            acc[i] = vf_fma(vf_set1(a[i * s->g->a_row + q]), x, acc[i]);
    }
}

/* Copies VW columns of `steps` steps, fewer than a square has, and pads them with zeros: b may end
 * after them. */
static __attribute__((noinline)) void copy_rest(const gemm *g, const uint16_t *b, int64_t steps,
                                                uint16_t to[VW * STEPS]) {
    memset(to, 0, VW * STEPS * sizeof *to);
    for (int l = 0; l < VW; l++)
        memcpy(to + l * STEPS, b + l * g->b_col, (size_t)steps * sizeof *to);
}

/* Runs one chunk of `rows` x (VW * groups) elements. */
RO_INLINE void chunk(const halves *s, const int rows, const int groups, const int dtype,
                     const uint16_t *b, int64_t from, int64_t to, vf acc[MOST_GROUPS][DOTS_ROWS]) {
    const gemm *g = s->g;
    const int64_t whole = from + (to - from) / STEPS * STEPS;
    for (int64_t p = from; p < whole;) {
        const int64_t end = min_i64(whole, p + BLOCK);
        asked ahead = asked_at(g, b, VW * groups, p);
        for (; p < end; p += STEPS) {
            RO_UNROLL
            for (int h = 0; h < groups; h++) {
                ask(&ahead);
                square(s, rows, dtype, STEPS, g->a + p, b + h * VW * g->b_col + p, g->b_col,
                       acc[h]);
                __asm__ volatile("" ::: "memory"); /* see one_after_another in gemm_dots.c */
            }
        }
    }
    for (int h = 0; whole < to && h < groups; h++) {
        uint16_t rest[VW * STEPS];
        copy_rest(g, b + h * VW * g->b_col + whole, to - whole, rest);
        square(s, rows, dtype, to - whole, g->a + whole, rest, STEPS, acc[h]);
    }
}

/* Runs columns [j, j + VW * groups). */
RO_INLINE void columns(const halves *s, const int rows, const int groups, const int dtype,
                       const uint16_t *b, int64_t j) {
    const gemm *g = s->g;
    vf tot[MOST_GROUPS][DOTS_ROWS], acc[MOST_GROUPS][DOTS_ROWS];
    for (int h = 0; h < groups; h++)
        for (int i = 0; i < rows; i++)
            tot[h][i] = vf_set1(0.0f);
    for (int64_t from = 0; from < g->k; from += g->chunk) {
        RO_UNROLL
        for (int h = 0; h < groups; h++)
            RO_UNROLL
        for (int i = 0; i < rows; i++)
            acc[h][i] = vf_set1(0.0f);
        chunk(s, rows, groups, dtype, b + j * g->b_col, from, min_i64(from + g->chunk, g->k), acc);
        RO_UNROLL
        for (int h = 0; h < groups; h++)
            RO_UNROLL
        for (int i = 0; i < rows; i++)
            tot[h][i] = vf_add(tot[h][i], acc[h][i]);
    }
    for (int h = 0; h < groups; h++)
        for (int i = 0; i < rows; i++)
            vf_store(g->c + i * g->c_row + j + h * VW,
                     vf_canon(vf_mul(tot[h][i], vf_set1(g->alpha))));
}

/* Runs all columns. The last vector may overlap those before it, which are then stored twice. */
RO_INLINE void all_columns(const halves *s, const int rows, const int groups, const int dtype,
                           const uint16_t *b) {
    int64_t j = 0;
    for (; j + VW * groups <= s->g->n; j += VW * groups)
        columns(s, rows, groups, dtype, b, j);
    for (; j < s->g->n; j += VW)
        columns(s, rows, 1, dtype, b, min_i64(j, s->g->n - VW));
}

RO_INLINE void all_rows(const halves *s, const int dtype, const uint16_t *b) {
    switch (s->g->m) {
    case 1: all_columns(s, 1, 2, dtype, b); break;
    case 2: all_columns(s, 2, 2, dtype, b); break;
    case 3: all_columns(s, 3, 1, dtype, b); break;
    case 4: all_columns(s, 4, 1, dtype, b); break;
#if defined(RO_ISA_avx512)
    case 5: all_columns(s, 5, 1, dtype, b); break;
    case 6: all_columns(s, 6, 1, dtype, b); break;
    case 7: all_columns(s, 7, 1, dtype, b); break;
    case 8: all_columns(s, 8, 1, dtype, b); break;
#endif
    default: break;
    }
}

static int takes(const gemm *g) {
    return (VW == 16 || g->narrow.dtype == RO_BF16) && g->m >= 1 && g->m <= DOTS_ROWS &&
           g->n >= VW && g->k > 0 && g->a_col == 1 && g->b_row == 1 && g->b_col != 1 &&
           g->mask == RO_MASK_NONE && !g->c_chunk && g->beta == 0;
}

static void run(const gemm *g, float *workspace) {
    const halves s = {g, g->narrow.dtype};
    (void)workspace;
    if (s.dtype == RO_F16)
        all_rows(&s, RO_F16, g->narrow.data);
    else
        all_rows(&s, RO_BF16, g->narrow.data);
}

const gemm_kernel RO_NAME(ro_gemm_dots16) = {.name = "dots of halves", .takes = takes, .run = run};

#else

static int takes(const gemm *g) {
    (void)g;
    return 0;
}

const gemm_kernel RO_NAME(ro_gemm_dots16) = {.name = "dots of halves", .takes = takes};

#endif
