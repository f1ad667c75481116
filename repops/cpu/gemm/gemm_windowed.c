/* Products whose mask has a window: row by row. */
#include "repops/cpu/gemm/gemm_kernel.h"

/* Returns row i as a product of its own. The mask excludes what precedes the window in its first
 * chunk, and k ends with the window. Fused attention does not use this. */
static gemm windowed_row(const gemm *g, int64_t i) {
    const ro_range r = ro_masked_range(g->mask, g->window, g->row0 + i, g->k);
    const int64_t first = min_i64(r.first, g->k), k0 = first / g->chunk * g->chunk;
    gemm row = *g;
    row.m = 1, row.k = max_i64(0, r.last - k0);
    row.a += i * g->a_row + k0 * g->a_col;
    row.b += k0 * g->b_row;
    row.c += i * g->c_row + k0 / g->chunk * g->c_chunk;
    row.mask = RO_MASK_FROM_ROW, row.row0 = first - k0, row.window = 0;
    return row;
}

static int takes(const gemm *g) {
    return g->window != 0;
}

/* Returns the workspace of the longest row, since longer rows need more. */
static int64_t workspace_of(const gemm *g) {
    gemm row = *g;
    row.m = 1, row.k = min_i64(g->k, g->window + g->chunk);
    row.mask = RO_MASK_FROM_ROW, row.row0 = 0, row.window = 0;
    return RO_NAME(ro_gemm_blocks).workspace(&row);
}

static void run(const gemm *g, float *workspace) {
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = 0; g->c_chunk && j * g->chunk < g->k; j++)
            memset(g->c + i * g->c_row + j * g->c_chunk, 0, (size_t)g->n * sizeof(float));
        const gemm row = windowed_row(g, i);
        if (row.k > 0 || !g->c_chunk)
            RO_NAME(ro_gemm_blocks).run(&row, workspace);
    }
}

const gemm_kernel RO_NAME(ro_gemm_windowed) = {
    .name = "windowed", .takes = takes, .workspace = workspace_of, .run = run};
