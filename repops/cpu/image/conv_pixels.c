/* Convolutions with 1 x 1 kernels as matrix products: pixels by channels of x, times w. */
#include "repops/cpu/gemm/gemm_kernel.h"
#include "repops/cpu/image/conv_kernel.h"

/* With so few pixels, packing the weights does not pay. */
enum { FEW_PIXELS = 4 * MR };

static int64_t pixels_of(const conv_call *c) {
    return c->v->batch * c->v->in[0] * c->v->in[1];
}

static gemm product_of(const conv_call *c) {
    const gather *x = c->g;
    return (gemm){.m = pixels_of(c),
                  .n = x->out_pixel,
                  .k = x->pixel,
                  .a = c->job->in[0],
                  .b = c->job->in[1],
                  .a_row = x->pixel,
                  .a_col = 1,
                  .b_row = x->b_row,
                  .b_col = x->b_col,
                  .c = c->job->out,
                  .c_row = x->out_pixel,
                  .chunk = RO_DOT_CHUNK,
                  .alpha = 1.0f};
}

/* ---- an ordinary product ---- */

static int are_few(conv_call *c) {
    return pointwise(c->v) && pixels_of(c) <= FEW_PIXELS;
}

static int are_all(conv_call *c) {
    return pointwise(c->v);
}

static ro_status multiply(conv_call *c) {
    const gemm g = product_of(c);
    return RO_NAME(ro_gemm_shared)(c->job->ctx, &g);
}

/* Computes dw = x^T dy. */
static ro_status multiply_transposed(conv_call *c) {
    const ro_conv *v = c->v;
    const gemm g = {.m = v->channels,
                    .n = v->filters,
                    .k = pixels_of(c),
                    .a = c->job->in[0],
                    .b = c->job->in[1],
                    .a_row = 1,
                    .a_col = v->channels,
                    .b_row = v->filters,
                    .b_col = 1,
                    .c = c->job->out,
                    .c_row = v->filters,
                    .chunk = RO_DOT_CHUNK,
                    .alpha = 1.0f};
    return RO_NAME(ro_gemm_shared)(c->job->ctx, &g);
}

const conv_kernel RO_NAME(ro_conv_few_pixels) = {"few pixels", are_few, multiply};
const conv_kernel RO_NAME(ro_conv_pixels_weight) = {"pixels", are_all, multiply_transposed};

/* ---- rows of pixels, with few weights ---- */

typedef struct {
    gemm whole;
    int64_t rows; /* rows of an item */
} pixel_rows;

static void run_rows(void *user, int64_t first, int64_t last, int worker) {
    const pixel_rows *p = user;
    gemm g = p->whole;
    (void)worker;
    g.a += first * p->rows * g.a_row, g.c += first * p->rows * g.c_row;
    g.m = min_i64(last * p->rows, g.m) - first * p->rows;
    RO_NAME(ro_gemm_small).run(&g, NULL);
}

/* Returns whether weights are so few that products read them in place, once stored row by row. */
static int few_weights(conv_call *c) {
    if (!pointwise(c->v))
        return 0;
    gemm g = product_of(c);
    g.b_row = g.b_col == 1 ? g.b_row : round_up(g.n, VW), g.b_col = 1;
    return RO_NAME(ro_gemm_small).takes(&g);
}

static ro_status run_pixels(conv_call *c) {
    ro_ctx *ctx = c->job->ctx;
    gemm g = product_of(c);
    const int64_t items = g.m * g.n * g.k < 2 * CONV_PIECE_WORK ? 1 : 4 * ro_ctx_threads(ctx);
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

const conv_kernel RO_NAME(ro_conv_pixels) = {"pixels", few_weights, run_pixels};
