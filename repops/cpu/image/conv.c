/* conv2d and conv2d_dx, SPEC.md section 12.1. */
#include "repops/cpu/image/conv_depthwise.h"
#include "repops/cpu/image/conv_few.h"
#include "repops/cpu/image/conv_groups.h"
#include "repops/cpu/image/conv_narrow.h"
#include "repops/cpu/gemm/gemm_kernel.h"

/* ---- 1x1: pixels by channels of x times w ---- */

/* With so few pixels, packing the weights does not pay. */
enum { FEW_PIXELS = 4 * MR };

static gemm pixels(const ro_job *job, const ro_conv *v, int backward) {
    const int64_t from = backward ? v->filters : v->channels;
    const int64_t to = backward ? v->channels : v->filters;
    return (gemm){.m = v->batch * v->in[0] * v->in[1],
                  .n = to,
                  .k = from,
                  .a = job->in[0],
                  .b = job->in[1],
                  .a_row = from,
                  .a_col = 1,
                  .b_row = backward ? 1 : to,
                  .b_col = backward ? from : 1,
                  .c = job->out,
                  .c_row = to,
                  .chunk = RO_DOT_CHUNK,
                  .alpha = 1.0f};
}

typedef struct {
    gemm whole;
    int64_t rows; /* of an item */
} pixel_rows;

static void run_rows(void *user, int64_t first, int64_t last, int worker) {
    const pixel_rows *p = user;
    gemm g = p->whole;
    (void)worker;
    g.a += first * p->rows * g.a_row, g.c += first * p->rows * g.c_row;
    g.m = min_i64(last * p->rows, g.m) - first * p->rows;
    RO_NAME(ro_gemm_small).run(&g, NULL);
}

/* Whether the weights are so few that products read them in place, once they are stored in rows. */
static int few_weights(const gemm *g) {
    gemm t = *g;
    t.b_row = g->b_col == 1 ? g->b_row : round_up(g->n, VW), t.b_col = 1;
    return RO_NAME(ro_gemm_small).takes(&t);
}

static ro_status multiply_pixels(ro_ctx *ctx, gemm g) {
    const int64_t items = g.m * g.n * g.k < 2 * CONV_PIECE_WORK ? 1 : 4 * ro_ctx_threads(ctx);
    if (g.m <= FEW_PIXELS)
        return RO_NAME(ro_gemm_shared)(ctx, &g);
    if (g.b_col != 1) {
        const int64_t width = round_up(g.n, VW);
        float *b = ro_workspace(ctx, (size_t)(width * g.k) * sizeof(float));
        if (!b)
            return RO_ERR_MEMORY;
        pack(&(panel){g.b, g.b_col, g.b_row, g.n, width, g.k}, b);
        g.b = b, g.b_row = width, g.b_col = 1;
    }
    pixel_rows p = {g, round_up(ceil_div(g.m, items), 4 * MR)};
    ro_pool_for(ro_ctx_pool(ctx), ceil_div(g.m, p.rows), 1, run_rows, &p);
    return RO_OK;
}

/* ---- the whole operator ---- */

/* Whether reading +0 for pixels outside gives the same bits as leaving them out. It does if the
 * weights are finite, or if nothing lies outside; a gradient's edges reach outside even without
 * padding. */
static int may_read_zeros(const ro_job *job, const ro_conv *v, int backward) {
    return (!backward && v->pad[0] == 0 && v->pad[1] == 0) ||
           all_finite(job->in[1], in_numel(job, 1));
}

static ro_status conv_run(const ro_job *job, gather *g) {
    grouped f;
    if (RO_NAME(ro_conv_is_few)(g) && may_read_zeros(job, g->v, g->backward))
        return RO_NAME(ro_conv_few)(job->ctx, g);
    if (RO_NAME(ro_conv_is_depthwise)(g) && may_read_zeros(job, g->v, g->backward))
        return RO_NAME(ro_conv_depthwise)(job->ctx, g);
    if (RO_NAME(ro_conv_plan_groups)(&f, g, 0))
        return RO_NAME(ro_conv_grouped)(job->ctx, &f, !may_read_zeros(job, g->v, g->backward));
    return RO_NAME(ro_conv_gather)(job->ctx, g);
}

static ro_status conv2d(const ro_job *job) {
    const ro_conv v = conv_of(job);
    if (no_terms(job))
        return RO_OK;
    const gemm product = pixels(job, &v, 0);
    if (pointwise(&v) && (product.m <= FEW_PIXELS || few_weights(&product)))
        return multiply_pixels(job->ctx, product);
    if (narrow(&v) && may_read_zeros(job, &v, 0))
        return RO_NAME(ro_conv_narrow)(job, &v);
    gather g = forward_gather(&v, job->in[0]);
    g.weights = job->in[1], g.b_row = v.filters, g.b_col = 1, g.b_group = v.width;
    g.out = job->out;
    return conv_run(job, &g);
}

/* All pixels of x that leave the same remainder by the strides meet the same taps, so spans step by
 * the stride. */
static ro_status conv2d_dx(const ro_job *job) {
    const ro_conv v = conv_of(job);
    if (no_terms(job))
        return RO_OK;
    const gemm product = pixels(job, &v, 1);
    if (pointwise(&v) && (product.m <= FEW_PIXELS || few_weights(&product)))
        return multiply_pixels(job->ctx, product);
    gather g = {.v = &v, .backward = 1, .image = job->in[0], .pixel = v.filters, .depth = v.width};
    g.weights = job->in[1], g.b_row = 1, g.b_col = v.filters, g.b_group = v.width, g.n = v.depth;
    g.out = job->out, g.out_pixel = v.channels;
    for (int d = 0; d < 2; d++) {
        g.size[d] = v.out[d], g.out_size[d] = v.in[d];
        g.step[d] = 1, g.spread[d] = v.stride[d];
    }
    return conv_run(job, &g);
}

void RO_NAME(ro_add_conv)(ro_table *table) {
    table->kernel[RO_OP_CONV2D] = (ro_kernel){.run = conv2d};
    table->kernel[RO_OP_CONV2D_DX] = (ro_kernel){.run = conv2d_dx};
}
