/* Products whose b has elements of 16 bits, by the kernels for f32: blocks of b are widened to f32,
 * which is exact, in memory that does not grow with b. A total adds one chunk after the other
 * (SPEC.md section 3.1). So a block has one chunk of k, whose sum is added to what the blocks
 * before left in c; or it has all of k: with a mask, and for few rows with b stored along k, as its
 * long lines are then read in full. */
#include "repops/cpu/gemm/gemm_kernel.h"
#include "repops/cpu/gemm/gemm_words.h"

enum {
    BLOCK_COLS = 1024,       /* columns of a block of one chunk: a is packed once for all */
    BLOCK_SIZE = 1 << 17,    /* elements of a block with all of k: half a megabyte, for L2 */
    BLOCK_LONGEST = 1 << 14, /* most steps of k in a block, for few rows */
    BLOCK_PAD = 16,          /* keeps lines of a block from being a page apart */
};

typedef struct {
    int64_t k, n; /* sizes of the largest block */
    int64_t line; /* stride of a block's lines, in floats */
} block_plan;

static block_plan plan_blocks(const gemm *g) {
    const int along_k = g->b_col != 1 && g->m <= PLACE_ROWS && g->k <= BLOCK_LONGEST;
    const int whole = g->mask != RO_MASK_NONE || g->k <= g->chunk || along_k;
    const int64_t k = whole ? g->k : g->chunk;
    const int64_t cols = whole ? max_i64(NR, BLOCK_SIZE / max_i64(1, k) / NR * NR) : BLOCK_COLS;
    const int64_t n = min_i64(g->n, min_i64(cols, BLOCK_COLS));
    return (block_plan){k, n, (g->b_col == 1 ? n : k) + BLOCK_PAD};
}

static int64_t block_floats(const gemm *g, const block_plan *p) {
    return ceil_div((g->b_col == 1 ? p->k : p->n) * p->line, 16) * 16;
}

/* Returns the product with one block: k steps from k0 on, n columns from j0 on. */
static gemm block_of(const gemm *g, const block_plan *p, int64_t k0, int64_t j0) {
    gemm part = *g;
    part.k = min_i64(p->k, g->k - k0);
    part.n = min_i64(p->n, g->n - j0);
    part.narrow.data = NULL;
    part.a_all = max_i64(g->a_all, g->m * g->k);
    part.a += k0 * g->a_col;
    part.c += j0;
    part.b_row = g->b_col == 1 ? p->line : 1;
    part.b_col = g->b_col == 1 ? 1 : p->line;
    if (p->k < g->k)
        part.alpha = 1.0f, part.beta = k0 > 0 ? 1.0f : 0.0f;
    return part;
}

static int takes(const gemm *g) {
    (void)g;
    return 1;
}

static int64_t workspace_of(const gemm *g) {
    const block_plan p = plan_blocks(g);
    int64_t most = 0;
    for (int i = 0; i < 4; i++) { /* whole blocks, and those cut off at the edges */
        const int64_t k0 = i / 2 ? (ceil_div(g->k, max_i64(1, p.k)) - 1) * p.k : 0;
        const int64_t j0 = i % 2 ? (ceil_div(g->n, max_i64(1, p.n)) - 1) * p.n : 0;
        const gemm part = block_of(g, &p, max_i64(0, k0), max_i64(0, j0));
        most = max_i64(most, kernel_workspace(choose_kernel(&part), &part));
    }
    return block_floats(g, &p) + most;
}

static void widen_block(const gemm *g, const gemm *part, int64_t k0, int64_t j0, float *to) {
    const int along_n = g->b_col == 1;
    const int64_t lines = along_n ? part->k : part->n, length = along_n ? part->n : part->k;
    const int64_t step = along_n ? g->b_row : g->b_col;
    const int64_t line = along_n ? part->b_row : part->b_col;
    const uint16_t *from = g->narrow.data + k0 * g->b_row + j0 * g->b_col;
    for (int64_t i = 0; i < lines; i++, from += step, to += line) {
        if (g->narrow.dtype == RO_BF16)
            widen_line(RO_BF16, from, length, to);
        else
            widen_line(RO_F16, from, length, to);
    }
}

static void scale(const gemm *g) {
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++)
            g->c[i * g->c_row + j] = ro_canon(g->c[i * g->c_row + j] * g->alpha);
}

static void run(const gemm *g, float *workspace) {
    const block_plan p = plan_blocks(g);
    float *rest = workspace + block_floats(g, &p);
    for (int64_t j0 = 0; j0 < g->n; j0 += p.n) {
        int64_t k0 = 0;
        do { /* runs once even if k is 0: the results are +0 */
            gemm part = block_of(g, &p, k0, j0);
            part.b = workspace;
            widen_block(g, &part, k0, j0, workspace);
            run_kernel(choose_kernel(&part), &part, rest);
            k0 += p.k;
        } while (k0 < g->k);
    }
    if (p.k < g->k && g->alpha != 1)
        scale(g);
}

const gemm_kernel RO_NAME(ro_gemm_widened) = {
    .name = "widened", .takes = takes, .workspace = workspace_of, .run = run};
