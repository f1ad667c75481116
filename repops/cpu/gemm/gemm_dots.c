/* Products of few rows whose b is stored along k. Each lane of a vector holds one element's dot
 * product, and blocks of VW columns of b are transposed in registers. Every element of b is read
 * once, and nothing is packed. */
#include "repops/cpu/gemm/gemm_dots.h"
#include "repops/cpu/gemm/gemm_kernel.h"
#include "repops/cpu/gemm/gemm_pack.h"

enum { MOST_GROUPS = 4 };

/* b is read in squares of VW steps x VW columns, grouped into blocks of steps. While one block is
 * read, the next one is prefetched column by column, each column's lines at once: memory is slower
 * if lines of different columns take turns. */
enum {
    LINE = 16,                  /* floats in a cache line */
    ASK_LINES = VW < 8 ? 1 : 4, /* cache lines of a column in a block */
    BLOCK = LINE * ASK_LINES,   /* k steps in a block */
};
enum { ASK_COLS = VW * VW / BLOCK /* columns prefetched per square; without vectors 0 */ };

enum { FAR_B = 1 << 18 }; /* elements from which b does not stay in a cache between uses */

enum {
    CROWDED_STEP = 512,   /* with column strides of a multiple of this, L1 keeps only 16 columns */
    FEW_GROUPS = 16 / VW, /* groups of columns in that case, and with b_ahead */
};

enum {
    ROWS_MOST = 2 * DOTS_ROWS, /* rows beyond DOTS_ROWS read b a second time */
    STRIP_COLS = 64,           /* columns of a block in that case, which then stay in a cache */
};

/* Returns the first elements of VW columns that are `step` apart. */
RO_INLINE vf load_step(const float *b, int64_t step) {
    float x[VW];
    for (int l = 0; l < VW; l++)
        x[l] = b[l * step];
    return vf_load(x);
}

/* Stores lanes [from, VW) of tot in row i of c, lane 0 in column j. */
RO_INLINE void store_lanes(const gemm *g, int64_t c_col, int64_t i, int64_t j, int from, vf tot) {
    float x[VW], *to = g->c + i * g->c_row + j * c_col;
    tot = vf_mul(tot, vf_set1(g->alpha));
    if (c_col == 1 && from == 0) {
        if (g->beta != 0)
            tot = vf_fma(vf_set1(g->beta), vf_load(to), tot);
        vf_store(to, vf_canon(tot));
        return;
    }
    vf_store(x, tot);
    for (int l = from; l < VW; l++) {
        float *c = to + l * c_col;
        *c = ro_canon(g->beta == 0 ? x[l] : ro_fma(g->beta, *c, x[l]));
    }
}

/* Where to prefetch: `near` for L1, columns near_step apart; `far` for L2, in the order of
 * addresses, or NULL. */
typedef struct {
    const float *near, *far;
    int64_t near_step;
} asked;

/* Returns what to prefetch while the block at step p of `cols` columns of b is read: the next block
 * of these columns, the first block of the next columns, or what b_ahead says. The next columns of
 * a large b are prefetched in the order of addresses if they are contiguous, as memory is fastest
 * so. */
RO_INLINE asked block_ahead(const gemm *g, const float *b, int64_t cols, int64_t p) {
    if (g->b_ahead)
        return (asked){b + g->b_ahead + p * cols, NULL, BLOCK};
    const float *next = b + cols * g->b_col;
    return (asked){p + BLOCK < g->k ? b + p + BLOCK : next,
                   g->b_col == g->k && g->n * g->k >= FAR_B ? next + p * cols : NULL, g->b_col};
}

/* Prefetches as many lines as a square has. */
RO_INLINE void ask(asked *a) {
    RO_UNROLL
    for (int i = 0; i < ASK_COLS; i++) {
        const float *at = whole_address(a->near + i * a->near_step);
        RO_UNROLL
        for (int line = 0; line < ASK_LINES; line++)
            __builtin_prefetch(at + line * LINE);
    }
    a->near += ASK_COLS * a->near_step;
    if (!a->far)
        return;
    RO_UNROLL
    for (int line = 0; line < ASK_COLS * ASK_LINES; line++)
        __builtin_prefetch(a->far + line * LINE, 0, 2);
    a->far += ASK_COLS * BLOCK;
}

/* Keeps the compiler from interleaving two groups, for which it has no registers. The processor
 * overlaps them by itself: it transposes the next group while the sums of one wait for each
 * other. */
RO_INLINE void one_after_another(void) {
    __asm__ volatile("" ::: "memory");
}

/* Runs steps [p, end) of `rows` x (VW * groups) elements in whole squares. Prefetches as *ahead
 * says. */
RO_INLINE void dots_block(const int rows, const int groups, const gemm *g, const float *b,
                          int64_t p, int64_t end, asked *ahead, vf acc[DOTS_ROWS][MOST_GROUPS]) {
    const int64_t step = g->b_col, a_row = g->a_row;
    const float *a = g->a + p;
    for (b += p; p < end; p += VW, a += VW, b += VW) {
        const float *row[DOTS_ROWS];
        RO_UNROLL
        for (int i = 0; i < rows; i++)
            row[i] = i ? whole_address(a + i * a_row) : a;
        RO_UNROLL
        for (int h = 0; h < groups; h++) {
            vf r[VW];
            load_transposed(b + h * VW * step, step, r);
            ask(ahead);
            RO_UNROLL
            for (int q = 0; q < VW; q++) {
                RO_UNROLL
                for (int i = 0; i < rows; i++)
                    acc[i][h] = vf_fma(vf_set1(row[i][q]), r[q], acc[i][h]);
            }
            one_after_another();
        }
    }
}

#if defined(RO_ISA_avx2)
enum { QUADS = 1 };

/* Runs four steps of all groups. Elements of a and b are read `past` floats after a and after the
 * pointers in `at`. */
RO_INLINE void dots_quad(const int rows, const int groups, const gemm *g, const float *a,
                         const float *const *at, const int past, const int asks, asked *ahead,
                         vf acc[DOTS_ROWS][MOST_GROUPS]) {
    vf x[4], r[4];
    RO_UNROLL
    for (int q = 0; q < 4; q++)
        x[q] = vf_set1(a[past + q]);
    RO_UNROLL
    for (int h = 0; h < groups; h++) {
        load_quad(at[2 * h] + past, at[2 * h + 1] + past, g->b_col, r);
        if (asks)
            ask(ahead);
        RO_UNROLL
        for (int q = 0; q < 4; q++) {
            acc[0][h] = vf_fma(x[q], r[q], acc[0][h]);
            RO_UNROLL
            for (int i = 1; i < rows; i++)
                acc[i][h] = vf_fma(vf_set1(a[i * g->a_row + past + q]), r[q], acc[i][h]);
        }
        one_after_another();
    }
}

/* Does what dots_block does, four steps of all groups at a time; end - p is a multiple of 4. Groups
 * share the elements of a, and their sums wait less for each other. Every cache line of b is read
 * four times, so L1 must keep one line of each column. */
RO_INLINE void dots_quads(const int rows, const int groups, const gemm *g, const float *b,
                          int64_t p, int64_t end, asked *ahead, vf acc[DOTS_ROWS][MOST_GROUPS]) {
    const float *a = g->a + p, *at[2 * MOST_GROUPS];
    RO_UNROLL
    for (int h = 0; h < 2 * groups; h++)
        at[h] = b + p + 4 * h * g->b_col;
    for (; p + VW <= end; p += VW, a += VW) {
        dots_quad(rows, groups, g, a, at, 0, 1, ahead, acc);
        dots_quad(rows, groups, g, a, at, 4, 0, ahead, acc);
        RO_UNROLL
        for (int h = 0; h < 2 * groups; h++)
            at[h] = whole_address(at[h] + VW);
    }
    if (p < end)
        dots_quad(rows, groups, g, a, at, 0, 0, ahead, acc);
}

#else
enum { QUADS = 0 };
#define dots_quads dots_block
#endif

/* Runs one chunk of `rows` x (VW * groups) elements. */
RO_INLINE void dots_chunk(const int rows, const int groups, const int quads, const gemm *g,
                          const float *b, int64_t from, int64_t to,
                          vf acc[DOTS_ROWS][MOST_GROUPS]) {
    const int square = quads ? 4 : VW;
    const int64_t whole = from + (to - from) / square * square;
    int64_t p = from;
    for (; p < whole; p = min_i64(whole, p + BLOCK)) {
        asked ahead = block_ahead(g, b, VW * groups, p);
        if (quads)
            dots_quads(rows, groups, g, b, p, min_i64(whole, p + BLOCK), &ahead, acc);
        else
            dots_block(rows, groups, g, b, p, min_i64(whole, p + BLOCK), &ahead, acc);
    }
    for (; p < to; p++) {
        RO_UNROLL
        for (int h = 0; h < groups; h++) {
            const vf r = load_step(b + h * VW * g->b_col + p, g->b_col);
            RO_UNROLL
            for (int i = 0; i < rows; i++)
                acc[i][h] = vf_fma(vf_set1(g->a[i * g->a_row + p]), r, acc[i][h]);
        }
    }
}

/* Runs columns [j, j + VW * groups). Columns before j + skip are stored already. */
RO_INLINE void dots_columns(const int rows, const int groups, const int quads, const gemm *g,
                            int64_t c_col, int64_t j, int skip) {
    vf tot[DOTS_ROWS][MOST_GROUPS];
    for (int i = 0; i < rows; i++)
        for (int h = 0; h < groups; h++)
            tot[i][h] = vf_set1(0.0f);
    for (int64_t from = 0; from < g->k; from += g->chunk) {
        vf acc[DOTS_ROWS][MOST_GROUPS];
        RO_UNROLL
        for (int i = 0; i < rows; i++) {
            RO_UNROLL
            for (int h = 0; h < groups; h++)
                acc[i][h] = vf_set1(0.0f);
        }
        dots_chunk(rows, groups, quads, g, g->b + j * g->b_col, from,
                   min_i64(from + g->chunk, g->k), acc);
        RO_UNROLL
        for (int i = 0; i < rows; i++) {
            RO_UNROLL
            for (int h = 0; h < groups; h++)
                tot[i][h] = vf_add(tot[i][h], acc[i][h]);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int h = 0; h < groups; h++)
            store_lanes(g, c_col, i, j + h * VW, h ? 0 : skip, tot[i][h]);
}

/* Runs columns from j on while VW * groups of them remain. Returns the first that is left. */
RO_INLINE int64_t dots_wide(const int rows, const int groups, const int quads, const gemm *g,
                            int64_t c_col, int64_t j) {
    for (; j + VW * groups <= g->n; j += VW * groups)
        dots_columns(rows, groups, quads, g, c_col, j, 0);
    return j;
}

/* Runs all columns. The last vector overlaps the one before it, without storing results again. */
RO_INLINE void dots_rows(const int rows, const int groups, const gemm *g, int64_t c_col) {
    const int few = g->b_ahead || g->b_col % CROWDED_STEP == 0;
    int64_t j = 0;
    if (groups > FEW_GROUPS && !few)
        j = dots_wide(rows, groups, 0, g, c_col, j);
    if (QUADS && rows < DOTS_ROWS && !few)
        j = dots_wide(rows, groups, 1, g, c_col, j);
    else if (FEW_GROUPS > 1)
        j = dots_wide(rows, groups < FEW_GROUPS ? groups : FEW_GROUPS, 0, g, c_col, j);
    for (; j < g->n; j += VW) {
        const int64_t at = min_i64(j, g->n - VW);
        dots_columns(rows, 1, 0, g, c_col, at, (int)(j - at));
    }
}

static void dots(const gemm *g, int64_t c_col) {
    switch (g->m) {
    case 1: dots_rows(1, DOTS_GROUPS, g, c_col); break;
    case 2: dots_rows(2, DOTS_GROUPS, g, c_col); break;
    case 3: dots_rows(3, DOTS_GROUPS > 2 ? 2 : DOTS_GROUPS, g, c_col); break;
    case 4: dots_rows(4, DOTS_GROUPS > 2 ? 2 : DOTS_GROUPS, g, c_col); break;
#if defined(RO_ISA_avx512)
    case 5: dots_rows(5, 1, g, c_col); break;
    case 6: dots_rows(6, 1, g, c_col); break;
    case 7: dots_rows(7, 1, g, c_col); break;
    case 8: dots_rows(8, 1, g, c_col); break;
#endif
    default: break;
    }
}

/* Runs strips of rows, one block of columns after the other. */
static void dots_strips(const gemm *g, int64_t c_col) {
    const int64_t height = ceil_div(g->m, ceil_div(g->m, DOTS_ROWS));
    gemm s = *g;
    for (int64_t j = 0; j < g->n; j += s.n) {
        s.n = g->n - j < STRIP_COLS + VW ? g->n - j : STRIP_COLS; /* never less than VW */
        s.b = g->b + j * g->b_col;
        for (int64_t i = 0; i < g->m; i += height) {
            s.m = min_i64(height, g->m - i);
            s.a = g->a + i * g->a_row;
            s.c = g->c + i * g->c_row + j * c_col;
            dots(&s, c_col);
        }
    }
}

static int usable(const gemm *g) {
    return g->m <= ROWS_MOST && g->n >= VW && g->b_row == 1 && g->b_col != 1;
}

/* Returns the transposed product, whose columns of c are c_row apart. */
static gemm transposed(const gemm *g) {
    gemm t = *g;
    t.m = g->n, t.n = g->m;
    t.a = g->b, t.a_row = g->b_col, t.a_col = g->b_row;
    t.b = g->a, t.b_row = g->a_col, t.b_col = g->a_row;
    return t;
}

/* Returns whether an AVX2 tile in place is faster: the columns fill it, and rows of a do not evict
 * each other from L1. */
static int fills_tile(const gemm *g) {
    return VW == 8 && g->n > 6 && g->n <= VW && g->b_col == 1 && g->a_row % 1024 != 0;
}

/* Returns whether transposing a small b first is faster, for many rows of a: with more columns than
 * run together, a would be read twice. Gains 1.2 to 3.5. */
static int turns(const gemm *g) {
    return VW >= 8 && g->n > DOTS_ROWS && g->m > ROWS_MOST && RO_NAME(ro_gemm_turned).takes(g);
}

static int takes(const gemm *g) {
    const gemm t = transposed(g);
    return g->mask == RO_MASK_NONE && !g->c_chunk && g->k > 0 &&
           (usable(g) || (usable(&t) && !fills_tile(g) && !turns(g)));
}

/* Copies a with contiguous rows to `to`. */
static void gather_a(gemm *g, float *to) {
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t p = 0; p < g->k; p++)
            to[i * g->k + p] = g->a[i * g->a_row + p * g->a_col];
    g->a = to, g->a_row = g->k, g->a_col = 1;
}

/* Returns how many floats a copy of a needs, or of b if the product is transposed. */
static int64_t workspace_of(const gemm *g) {
    if (usable(g))
        return g->a_col == 1 ? 0 : g->m * g->k;
    return g->b_row == 1 ? 0 : g->n * g->k;
}

static void run(const gemm *g, float *workspace) {
    const int as_given = usable(g);
    gemm t = as_given ? *g : transposed(g);
    const int64_t c_col = as_given ? 1 : g->c_row;
    if (!as_given)
        t.c_row = 1;
    if (t.a_col != 1)
        gather_a(&t, workspace);
    if (t.m > DOTS_ROWS)
        dots_strips(&t, c_col);
    else
        dots(&t, c_col);
}

const gemm_kernel RO_NAME(ro_gemm_dots) = {
    .name = "dots", .takes = takes, .workspace = workspace_of, .run = run};
