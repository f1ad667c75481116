#include "repops/tools/fused_functions.h"
#include "repops/fused.h"
#include "repops/tools/golden.h"

enum { ALIGNED = 64 /* words; a device aligns its allocations at least to this */ };

void golden_add(golden_block *b, int64_t count) {
    b->count[b->parts] = count;
    b->at[b->parts++] = b->words;
    b->words += (count + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* ---- attention ---- */

static const ro_attention_dropout thinned = {0x123456789abcdef, 77, 0x40000000, 0x1.555556p0f, 5};

static ro_attention attention_of(const golden_fused *g) {
    const long long *n = g->size;
    return (ro_attention){.size = sizeof(ro_attention),
                          .batch = n[0],
                          .heads = n[1],
                          .kv_heads = n[2],
                          .queries = n[3],
                          .keys = n[4],
                          .head_size = n[5],
                          .causal = g->causal != 0,
                          .window = g->causal > 1 ? g->causal : 0,
                          .scale = strtof(g->scale, NULL),
                          .dropout = g->dropout & 1 ? &thinned : NULL};
}

static int decodes(const ro_attention *a) {
    return a->causal && a->queries != a->keys;
}

enum { Q, K, V, DOUT, BIAS, OUT, M, L, DQ, DK, DV };

static int has_bias(const golden_fused *g) {
    return g->dropout & 2;
}

/* Lays out attention. The tensor of a missing bias is empty. */
static void plan_attention(const golden_fused *g, golden_block *b) {
    const ro_attention a = attention_of(g);
    const int64_t rows = a.batch * a.heads * a.queries, q = rows * a.head_size;
    const int64_t k = a.batch * a.kv_heads * a.keys * a.head_size;
    const int64_t bias = has_bias(g) ? a.batch * a.keys : 0;
    const int64_t count[PARTS] = {q, k, k, q, bias, q, rows, rows, q, k, k};
    b->inputs = OUT;
    for (int i = 0; i < (decodes(&a) ? DQ : PARTS); i++)
        golden_add(b, count[i]);
}

/* Makes a third of the keys padding. */
static void fill_bias(const golden_fused *g, const golden_block *b) {
    for (int64_t e = 0; e < b->count[BIAS]; e++)
        b->host[b->at[BIAS] + e] =
            case_word(golden_seed(g->name), BIAS, e) % 3 ? 0 : UINT32_C(0xff800000);
}

static ro_status run_attention(ro_ctx *ctx, const golden_fused *g, const golden_block *b,
                               float *x) {
    ro_attention a = attention_of(g);
    float *p[PARTS] = {0};
    for (int i = 0; i < b->parts; i++)
        p[i] = x + b->at[i];
    a.key_bias = has_bias(g) ? p[BIAS] : NULL;
    const ro_status status = ro_attention_forward(ctx, &a, p[Q], p[K], p[V], p[OUT], p[M], p[L]);
    if (status != RO_OK || decodes(&a))
        return status;
    return ro_attention_backward(ctx, &a, p[Q], p[K], p[V], p[OUT], p[M], p[L], p[DOUT], p[DQ],
                                 p[DK], p[DV]);
}

/* ---- linear layers ---- */

static ro_linear_layer layer_of(const golden_fused *g) {
    const int bits = atoi(g->scale);
    return (ro_linear_layer){.size = sizeof(ro_linear_layer),
                             .activation = (ro_activation)g->dropout,
                             .rows = g->size[0],
                             .in = g->size[1],
                             .out = g->size[2],
                             .transposed = g->causal,
                             .fixed_bits = bits > 1 ? bits : 0};
}

/* x, w, bias; y, z */
static void plan_linear(const golden_fused *g, golden_block *b) {
    const ro_linear_layer l = layer_of(g);
    b->inputs = 3;
    golden_add(b, l.rows * l.in);
    golden_add(b, l.in * l.out);
    golden_add(b, l.out);
    golden_add(b, l.rows * l.out);
    if (l.activation != RO_ACTIVATION_NONE)
        golden_add(b, l.rows * l.out);
}

static ro_status run_linear(ro_ctx *ctx, const golden_fused *g, const golden_block *b, float *x) {
    const ro_linear_layer l = layer_of(g);
    const int64_t *at = b->at;
    return ro_linear(ctx, &l, x + at[0], x + at[1], x + at[2], b->parts > 4 ? x + at[4] : NULL,
                     x + at[3]);
}

/* ---- cross-entropy ---- */

enum { X, DLOSS, IDS, LOSS, ROW_MAX, ROW_SUM, DX };

static void plan_cross_entropy(const golden_fused *g, golden_block *b) {
    const int64_t rows = g->size[0], all = rows * g->size[1];
    const int64_t count[] = {all, rows, rows, rows, rows, rows, all};
    b->inputs = LOSS;
    for (int i = 0; i <= DX; i++)
        golden_add(b, count[i]);
}

enum { IGNORED = -100 };

/* Fills labels: some lie outside [0, cols), and every third is the ignored one, if there is one. */
static void fill_ids(const golden_fused *g, const golden_block *b) {
    for (int64_t r = 0; r < g->size[0]; r++)
        b->host[b->at[IDS] + r] =
            g->causal && r % 3 == 1
                ? (uint32_t)IGNORED
                : case_i32(case_word(golden_seed(g->name), IDS, r), (int64_t)g->size[1]);
}

static ro_status run_cross_entropy(ro_ctx *ctx, const golden_fused *g, const golden_block *b,
                                   float *x) {
    return ro_cross_entropy(ctx, g->size[0], g->size[1], x + b->at[X],
                            (const int32_t *)(const void *)(x + b->at[IDS]),
                            g->causal ? IGNORED : RO_IGNORE_NONE, x + b->at[DLOSS], x + b->at[LOSS],
                            x + b->at[ROW_MAX], x + b->at[ROW_SUM], x + b->at[DX]);
}

/* ---- rows: their inputs, then their outputs ---- */

enum { ALL = -1, ROWS = -2, COLS = -3 };

static void plan_rows(const golden_fused *g, golden_block *b, int inputs, int parts,
                      const int *size) {
    const int64_t rows = g->size[0], cols = g->size[1];
    b->inputs = inputs;
    for (int i = 0; i < parts; i++)
        golden_add(b, size[i] == ALL ? rows * cols : size[i] == ROWS ? rows : cols);
}

static void plan_layer_norm(const golden_fused *g, golden_block *b) {
    plan_rows(g, b, 3, 6, (const int[]){ALL, COLS, COLS, ALL, ROWS, ROWS});
}

static ro_status run_layer_norm(ro_ctx *ctx, const golden_fused *g, const golden_block *b,
                                float *x) {
    const int64_t *at = b->at;
    return ro_layer_norm(ctx, g->size[0], g->size[1], 1e-5f, x + at[0], x + at[1], x + at[2],
                         x + at[3], x + at[4], x + at[5]);
}

/* x, gamma, mean, rstd, dy; dx, dgamma, dbeta */
static void plan_layer_norm_backward(const golden_fused *g, golden_block *b) {
    plan_rows(g, b, 5, 8, (const int[]){ALL, COLS, ROWS, ROWS, ALL, ALL, COLS, COLS});
}

static ro_status run_layer_norm_backward(ro_ctx *ctx, const golden_fused *g, const golden_block *b,
                                         float *x) {
    const int64_t *at = b->at;
    return ro_layer_norm_backward(ctx, g->size[0], g->size[1], x + at[0], x + at[1], x + at[2],
                                  x + at[3], x + at[4], x + at[5], x + at[6], x + at[7]);
}

static void plan_softmax(const golden_fused *g, golden_block *b) {
    plan_rows(g, b, 1, 4, (const int[]){ALL, ALL, ROWS, ROWS});
}

static ro_status run_softmax(ro_ctx *ctx, const golden_fused *g, const golden_block *b, float *x) {
    const int64_t *at = b->at;
    return ro_softmax(ctx, g->size[0], g->size[1], x + at[0], x + at[1], x + at[2], x + at[3]);
}

static ro_status run_log_softmax(ro_ctx *ctx, const golden_fused *g, const golden_block *b,
                                 float *x) {
    const int64_t *at = b->at;
    return ro_log_softmax(ctx, g->size[0], g->size[1], x + at[0], x + at[1], x + at[2], x + at[3]);
}

static void plan_softmax_backward(const golden_fused *g, golden_block *b) {
    plan_rows(g, b, 2, 3, (const int[]){ALL, ALL, ALL});
}

static ro_status run_softmax_backward(ro_ctx *ctx, const golden_fused *g, const golden_block *b,
                                      float *x) {
    return ro_softmax_backward(ctx, g->size[0], g->size[1], x + b->at[0], x + b->at[1],
                               x + b->at[2]);
}

static ro_status run_log_softmax_backward(ro_ctx *ctx, const golden_fused *g, const golden_block *b,
                                          float *x) {
    return ro_log_softmax_backward(ctx, g->size[0], g->size[1], x + b->at[0], x + b->at[1],
                                   x + b->at[2]);
}

/* ---- all ---- */

static const golden_function functions[] = {
    {"attention", plan_attention, fill_bias, run_attention},
    {"linear", plan_linear, NULL, run_linear},
    {"cross_entropy", plan_cross_entropy, fill_ids, run_cross_entropy},
    {"layer_norm", plan_layer_norm, NULL, run_layer_norm},
    {"layer_norm_backward", plan_layer_norm_backward, NULL, run_layer_norm_backward},
    {"softmax", plan_softmax, NULL, run_softmax},
    {"log_softmax", plan_softmax, NULL, run_log_softmax},
    {"softmax_backward", plan_softmax_backward, NULL, run_softmax_backward},
    {"log_softmax_backward", plan_softmax_backward, NULL, run_log_softmax_backward},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

const golden_function *golden_function_at(int i) {
    return i < FUNCTIONS ? &functions[i] : golden_optimizer_at(i - FUNCTIONS);
}
