/* Products of so few elements that the processor would wait for each one's chain of fmas. The
 * chunks of one element run side by side, each in its own lane, and their sums are then added in
 * order. A product of one element and one chunk comes here too: no other kernel has less
 * overhead. */
#include "repops/cpu/gemm/gemm_kernel.h"
#include "repops/cpu/gemm/gemm_pack.h"

enum {
    MOST_ELEMENTS = 4, /* with more elements, one lane per element is as fast */
    SIDE_BY_SIDE = 4,  /* chunks that run together if there are no vectors */
};

/* Returns the sums of VW whole chunks, one per lane. Prefetches the next chunks in the order of
 * addresses, since no processor's own prefetcher follows 2 * VW streams. */
static vf lane_sums(const float *a, const float *b, int64_t chunk) {
    vf acc = vf_set1(0.0f);
    for (int64_t p = 0; p < chunk; p += VW) {
        vf x[VW], y[VW];
        for (int64_t l = 0; l < VW * VW; l += 16) {
            __builtin_prefetch(a + (chunk + p) * VW + l, 0, 2);
            __builtin_prefetch(b + (chunk + p) * VW + l, 0, 2);
        }
        load_transposed(a + p, chunk, x);
        load_transposed(b + p, chunk, y);
        RO_UNROLL
        for (int q = 0; q < VW; q++)
            acc = vf_fma(x[q], y[q], acc);
    }
    return acc;
}

RO_INLINE void run_side_by_side(const float *const a[SIDE_BY_SIDE],
                                const float *const b[SIDE_BY_SIDE], int64_t from, int64_t to,
                                float acc[SIDE_BY_SIDE]) {
    for (int64_t p = from; p < to; p++) {
        RO_UNROLL
        for (int j = 0; j < SIDE_BY_SIDE; j++)
            acc[j] = ro_fma(a[j][p], b[j][p], acc[j]);
    }
}

/* Computes the sums of up to SIDE_BY_SIDE chunks, the last of which has `steps` steps. Unused
 * places repeat the first chunk. */
static void few_sums(const float *a, const float *b, int64_t chunk, int count, int64_t steps,
                     float *sum) {
    const float *x[SIDE_BY_SIDE], *y[SIDE_BY_SIDE];
    float acc[SIDE_BY_SIDE] = {0};
    for (int j = 0; j < SIDE_BY_SIDE; j++) {
        x[j] = a + (j < count ? j * chunk : 0);
        y[j] = b + (j < count ? j * chunk : 0);
    }
    run_side_by_side(x, y, 0, steps, acc);
    const float last = acc[count - 1];
    x[count - 1] = a, y[count - 1] = b;
    if (count > 1)
        run_side_by_side(x, y, steps, chunk, acc);
    acc[count - 1] = last;
    memcpy(sum, acc, (size_t)count * sizeof *sum);
}

/* Most chunks that chunk_sums takes at a time. */
enum { GROUP = (int)VW > (int)SIDE_BY_SIDE ? (int)VW : (int)SIDE_BY_SIDE };

static void chunk_sums(const float *a, const float *b, int64_t k, int64_t chunk, float *sum) {
    if ((int)GROUP == (int)VW && k == VW * chunk) {
        vf_store(sum, lane_sums(a, b, chunk));
        return;
    }
    for (int64_t from = 0; from < k; from += SIDE_BY_SIDE * chunk, sum += SIDE_BY_SIDE) {
        const int64_t steps = min_i64(SIDE_BY_SIDE * chunk, k - from);
        const int64_t count = ceil_div(steps, chunk);
        few_sums(a + from, b + from, chunk, (int)count, steps - (count - 1) * chunk, sum);
    }
}

/* Returns x itself if its elements are contiguous, otherwise a copy of them. */
static const float *contiguous(const float *x, int64_t step, int64_t count, float *copy) {
    for (int64_t p = 0; p < count && step != 1; p++)
        copy[p] = x[p * step];
    return step == 1 ? x : copy;
}

static float dot(const gemm *g, const float *a, const float *b, float *workspace) {
    const int64_t most = GROUP * g->chunk;
    float tot = 0.0f;
    for (int64_t from = 0; from < g->k; from += most) {
        const int64_t k = min_i64(most, g->k - from);
        const float *x = contiguous(a + from * g->a_col, g->a_col, k, workspace);
        const float *y = contiguous(b + from * g->b_row, g->b_row, k, workspace + most);
        float sum[GROUP];
        chunk_sums(x, y, k, g->chunk, sum);
        for (int64_t j = 0; j * g->chunk < k; j++)
            tot = tot + sum[j];
    }
    return tot;
}

static int takes(const gemm *g) {
    const int few = g->m <= MOST_ELEMENTS && g->n <= MOST_ELEMENTS && g->m * g->n <= MOST_ELEMENTS;
    const int64_t least_k = g->m * g->n == 1 ? 1 : g->chunk + 1;
    return few && g->k >= least_k && g->mask == RO_MASK_NONE && !g->c_chunk;
}

/* Returns how many floats copies of operands need that are not contiguous. */
static int64_t workspace_of(const gemm *g) {
    return g->a_col == 1 && g->b_row == 1 ? 0 : 2 * GROUP * g->chunk;
}

static void run(const gemm *g, float *workspace) {
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = 0; j < g->n; j++) {
            float *c = g->c + i * g->c_row + j;
            const float t = dot(g, g->a + i * g->a_row, g->b + j * g->b_col, workspace) * g->alpha;
            *c = ro_canon(g->beta == 0 ? t : ro_fma(g->beta, *c, t));
        }
    }
}

const gemm_kernel RO_NAME(ro_gemm_chunks) = {
    .name = "chunks", .takes = takes, .workspace = workspace_of, .run = run};
