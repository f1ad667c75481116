/* Attention as single operators, composed as in SPEC.md section 8: fused functions must have the
 * same bytes. */
#ifndef TESTS_ATTENTION_NODES_H
#define TESTS_ATTENTION_NODES_H

#include "repops/tools/op_data.h"
#include "repops/fused.h"
#include "repops/op_attention.h"
#include "repops/op_elementwise.h"
#include "repops/op_product.h"
#include "repops/op_reduce.h"

#include <criterion/criterion.h>

typedef struct {
    float *q, *k, *v, *dout;        /* inputs */
    float *out, *m, *l;             /* forward */
    float *dq, *dk, *dv;            /* backward */
    int64_t q_count, k_count, rows; /* elements of q, of k; number of queries of all heads */
} attention_tensors;

static inline float *floats(int64_t count) {
    float *x = malloc((size_t)count * sizeof *x);
    cr_assert(x);
    memset(x, 0xa5, (size_t)count * sizeof *x);
    return x;
}

static inline attention_tensors tensors_of(const ro_attention *a) {
    const int64_t rows = a->batch * a->heads * a->queries, q = rows * a->head_size;
    const int64_t k = a->batch * a->kv_heads * a->keys * a->head_size;
    return (attention_tensors){
        floats(q), floats(k), floats(k), floats(q), floats(q), floats(rows), floats(rows),
        floats(q), floats(k), floats(k), q,         k,         rows};
}

static inline void tensors_free(attention_tensors *t) {
    float *all[] = {t->q, t->k, t->v, t->dout, t->out, t->m, t->l, t->dq, t->dk, t->dv};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* Fills all inputs with data of this class. */
static inline void tensors_fill(attention_tensors *t, uint64_t seed, data_class class) {
    float *x[] = {t->q, t->k, t->v, t->dout};
    for (int i = 0; i < 4; i++) {
        const int64_t count = i == 0 || i == 3 ? t->q_count : t->k_count;
        for (int64_t e = 0; e < count; e++) {
            const uint32_t bits = case_f32(case_word(seed, i, e), class);
            memcpy(&x[i][e], &bits, sizeof bits);
        }
    }
}

/* ---- one node ---- */

typedef struct {
    ro_ctx *ctx;
    ro_shape in[3];
    const void *data[3];
    ro_call call;
} node;

static inline void input(node *n, ro_shape shape, const void *data) {
    n->in[n->call.input_count] = shape;
    n->data[n->call.input_count++] = data;
}

/* Runs a node into `out`, or into new memory if that is NULL. */
static inline float *evaluate_node(node *n, float *out) {
    char why[200] = "";
    n->call.input = n->in;
    cr_assert(ro_infer(&n->call, why, sizeof why) == RO_OK, "%s: %s",
              ro_op_describe(n->call.op)->name, why);
    out = out ? out : floats(ro_shape_numel(&n->call.output));
    cr_assert(ro_run(n->ctx, &n->call, n->data, out) == RO_OK, "%s", ro_ctx_error(n->ctx));
    return out;
}

static inline node node_of(ro_ctx *ctx, int op, int64_t a0, int64_t a1, int64_t a2, int64_t a3,
                           int64_t a4) {
    return (node){.ctx = ctx, .call = {.op = op, .attr = {a0, a1, a2, a3, a4}}};
}

static inline ro_shape heads_shape(int64_t b, int64_t h, int64_t t, int64_t d) {
    return (ro_shape){RO_F32, 4, {b, h, t, d}};
}

static inline float *product(ro_ctx *ctx, int trans, float alpha, int chunk, int mask,
                             int64_t window, ro_shape a, const float *x, ro_shape b, const float *y,
                             float *out) {
    node n = node_of(ctx, RO_OP_MATMUL, 2, trans, ro_attr_f32(alpha), chunk, mask);
    n.call.attr[RO_MATMUL_WINDOW] = window;
    input(&n, a, x), input(&n, b, y);
    return evaluate_node(&n, out);
}

/* Applies dropout into new memory; without dropout returns a copy of x. */
static inline float *dropped(ro_ctx *ctx, const ro_attention *a, ro_shape shape, const float *x) {
    const int64_t count = ro_shape_numel(&shape);
    if (!a->dropout)
        return memcpy(floats(count), x, (size_t)count * sizeof *x);
    const ro_attention_dropout *d = a->dropout;
    node n = node_of(ctx, RO_OP_DROPOUT, (int64_t)d->seed, d->stream, d->threshold,
                     ro_attr_f32(d->scale), 0);
    input(&n, shape, x), input(&n, (ro_shape){RO_I32, 1, {1}}, &d->step);
    return evaluate_node(&n, NULL);
}

/* Repeats keys or values for every query head. */
static inline float *repeated_heads(const ro_attention *a, const float *x) {
    const int64_t group = a->heads / a->kv_heads, size = a->keys * a->head_size;
    float *out = floats(a->batch * a->heads * size);
    for (int64_t h = 0; h < a->batch * a->heads; h++)
        memcpy(out + h * size, x + h / group * size, (size_t)size * sizeof *x);
    return out;
}

/* q k^T, plus the keys' bias. */
static inline float *scores_of(ro_ctx *ctx, const ro_attention *a, ro_shape q, const float *x,
                               ro_shape k, const float *y) {
    const ro_shape s = heads_shape(a->batch, a->heads, a->queries, a->keys);
    float *scores = product(ctx, 2, a->scale, 256, 0, 0, q, x, k, y, NULL);
    if (!a->key_bias)
        return scores;
    const int64_t count = ro_shape_numel(&s), per = a->heads * a->queries;
    float *bias = floats(count);
    for (int64_t e = 0; e < count; e++)
        bias[e] = a->key_bias[e / a->keys / per * a->keys + e % a->keys];
    node n = node_of(ctx, RO_OP_ADD, 0, 0, 0, 0, 0);
    input(&n, s, scores), input(&n, s, bias);
    float *sum = evaluate_node(&n, NULL);
    free(scores), free(bias);
    return sum;
}

/* ---- both directions; kv_rows is 0, causal means T = S ---- */

static inline void nodes_forward(ro_ctx *ctx, const ro_attention *a, attention_tensors *t) {
    const int64_t b = a->batch, h = a->heads, blocks = (a->keys + 127) / 128;
    const ro_shape q = heads_shape(b, h, a->queries, a->head_size);
    const ro_shape k = heads_shape(b, h, a->keys, a->head_size);
    const ro_shape s = heads_shape(b, h, a->queries, a->keys);
    const ro_shape c = heads_shape(b, h, a->queries, blocks),
                   one = heads_shape(b, h, a->queries, 1);
    const ro_shape ac = {RO_F32, 5, {b, h, a->queries, blocks, a->head_size}};
    float *keys = repeated_heads(a, t->k), *values = repeated_heads(a, t->v);
    float *scores = scores_of(ctx, a, q, t->q, k, keys);
    node n = node_of(ctx, RO_OP_ATTN_MAX, a->causal, a->window, 0, 0, 0);
    input(&n, s, scores);
    float *mc = evaluate_node(&n, NULL);
    n = node_of(ctx, RO_OP_ATTN_EXP, a->causal, a->window, 0, 0, 0);
    input(&n, s, scores), input(&n, c, mc);
    float *e = evaluate_node(&n, NULL);
    n = node_of(ctx, RO_OP_REDUCE_SUM, a->keys, 128, 0, 0, 0);
    input(&n, s, e);
    n.call.output = c;
    float *lc = evaluate_node(&n, NULL);
    float *ez = dropped(ctx, a, s, e);
    n = node_of(ctx, RO_OP_ATTN_AV, a->causal, a->window, 0, 0, 0);
    input(&n, s, ez), input(&n, k, values);
    float *av = evaluate_node(&n, NULL);
    n = node_of(ctx, RO_OP_REDUCE_MAX, blocks, blocks > 0 ? blocks : 1, 0, 0, 0);
    input(&n, c, mc);
    n.call.output = one;
    evaluate_node(&n, t->m);
    n = node_of(ctx, RO_OP_ATTN_L, 0, 0, 0, 0, 0);
    input(&n, c, mc), input(&n, c, lc);
    evaluate_node(&n, t->l);
    n = node_of(ctx, RO_OP_ATTN_OUT, 0, 0, 0, 0, 0);
    input(&n, c, mc), input(&n, ac, av), input(&n, one, t->l);
    evaluate_node(&n, t->out);
    float *all[] = {keys, values, scores, mc, e, lc, ez, av};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* Adds the heads of a group in ascending order, from +0. */
static inline void add_groups(const ro_attention *a, const float *x, float *out) {
    const int64_t group = a->heads / a->kv_heads, size = a->keys * a->head_size;
    for (int64_t i = 0; i < a->batch * a->kv_heads * size; i++) {
        float sum = 0;
        for (int64_t g = 0; g < group; g++)
            sum += x[(i / size * group + g) * size + i % size];
        const uint32_t nan = RO_QNAN_BITS;
        memcpy(&out[i], sum != sum ? (const void *)&nan : (const void *)&sum, sizeof sum);
    }
    if (group == 1) /* a single head: no operator runs, so nothing is added */
        memcpy(out, x, (size_t)(a->batch * a->heads * size) * sizeof *x);
}

static inline void nodes_backward(ro_ctx *ctx, const ro_attention *a, attention_tensors *t) {
    const int64_t b = a->batch, h = a->heads, size = a->head_size;
    const ro_shape q = heads_shape(b, h, a->queries, size), k = heads_shape(b, h, a->keys, size);
    const ro_shape s = heads_shape(b, h, a->queries, a->keys),
                   one = heads_shape(b, h, a->queries, 1);
    const int from_row = a->causal ? RO_MASK_FROM_ROW : 0, upto = a->causal ? RO_MASK_UPTO_ROW : 0;
    float *keys = repeated_heads(a, t->k), *values = repeated_heads(a, t->v);
    node n = node_of(ctx, RO_OP_REDUCE_DOT, size, size, 0, 0, 0);
    input(&n, q, t->dout), input(&n, q, t->out);
    n.call.output = one;
    float *delta = evaluate_node(&n, NULL);
    float *scores = scores_of(ctx, a, q, t->q, k, keys);
    n = node_of(ctx, RO_OP_ATTN_PROB, a->causal, a->window, 0, 0, 0);
    input(&n, s, scores), input(&n, one, t->m), input(&n, one, t->l);
    float *p = evaluate_node(&n, NULL);
    float *dp = product(ctx, 2, 1, 256, 0, 0, q, t->dout, k, values, NULL);
    float *dpz = dropped(ctx, a, s, dp), *pz = dropped(ctx, a, s, p);
    n = node_of(ctx, RO_OP_ATTN_DSCORE, a->causal, a->window, 0, 0, 0);
    input(&n, s, p), input(&n, s, dpz), input(&n, one, delta);
    float *ds = evaluate_node(&n, NULL);
    float *dv = product(ctx, 1, 1, 128, from_row, a->window, s, pz, q, t->dout, NULL);
    float *dk = product(ctx, 1, a->scale, 128, from_row, a->window, s, ds, q, t->q, NULL);
    product(ctx, 0, a->scale, 128, upto, a->window, s, ds, k, keys, t->dq);
    add_groups(a, dk, t->dk);
    add_groups(a, dv, t->dv);
    float *all[] = {keys, values, delta, scores, p, dp, dpz, pz, ds, dv, dk};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

#endif
