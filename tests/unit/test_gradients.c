/* Gradients of every layer against central differences of a forward pass in double precision,
 * written here; and the bits of every gradient, in tests/golden/gradients.txt (GOLDEN_UPDATE=1
 * writes the file). */
#include "exact_image.h"
#include "repops/src/philox.h"
#include "verde/commit/commit.h"
#include "verde/graph/build.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAVES = 6, IDS = 2, LAYERS = 6, SAMPLES = 150, SEED = 77, STREAM = 5 };

static const double tolerance = 1e-5; /* of the largest element of the gradient */
static const char golden[] = "tests/golden/gradients.txt";

/* ---- cases: layers over leaves ---- */

typedef enum {
    ADD,
    LINEAR,
    LOGITS,
    NORM,
    GELU,
    RELU,
    EMBEDDING,
    DROPOUT,
    ATTENTION,
    GROUPED,
    XENT,
    SUB,
    MUL,
    DIV,
    SCALE,
    EXP,
    LOG,
    SQRT,
    RSQRT,
    TANH,
    ERF,
    SIGMOID,
    SILU,
    GELU_ERF,
    SOFTMAX,
    LOG_SOFTMAX,
    XENT_IGNORE,
    XENT_MEAN,
    RMSNORM,
    SUM_AXIS,
    MEAN_AXIS,
    MAX_AXIS,
    CONV,
    MAX_POOL,
    AVG_POOL,
    BATCHNORM
} kind;

/* A value: a leaf by its number, or the output of layer j. */
#define OUT(j) (LEAVES + (j))

typedef struct {
    kind kind;
    int in[3];
    int ids;       /* embedding, xent: which */
    int64_t heads; /* attention; the axis of a reduction, the label that is ignored */
    int64_t kv_heads;
    bool causal, turns, pads; /* attention; pads: where the ids are 0 */
    float rate;               /* dropout, attention; the factor of scale */
    int64_t window[4]; /* conv: stride, pad, dilation, groups; pools: kernel, stride, pad, count */
} layer;

typedef struct {
    const char *name;
    int leaf_count, ids_count, layer_count;
    struct {
        const char *name;
        ro_shape shape;
        double scale; /* 0: not read by the loss */
    } leaf[LEAVES];
    struct {
        ro_shape shape;
        int64_t limit;
    } ids[IDS];
    layer layer[LAYERS]; /* the last one is xent: its rows' losses are summed */
} gradient_case;

/* clang-format off */
#define F(n, ...) {RO_F32, n, {__VA_ARGS__}}
#define I(n, ...) {RO_I32, n, {__VA_ARGS__}}
/* clang-format on */

static const gradient_case cases[] = {
    {"add",
     2,
     1,
     2,
     {{"x", F(2, 5, 7), 2}, {"y", F(2, 5, 7), 1}},
     {{I(1, 5), 7}},
     {{ADD, {0, 1}}, {XENT, {OUT(0)}}}},
    {"add_repeated_row_in_two_groups",
     2,
     1,
     2,
     {{"x", F(2, 70, 7), 2}, {"y", F(1, 7), 1}},
     {{I(1, 70), 7}},
     {{ADD, {0, 1}}, {XENT, {OUT(0)}}}},
    {"add_repeated_matrix",
     2,
     1,
     2,
     {{"x", F(3, 3, 4, 7), 2}, {"y", F(2, 4, 7), 1}},
     {{I(2, 3, 4), 7}},
     {{ADD, {0, 1}}, {XENT, {OUT(0)}}}},
    {"add_value_to_itself",
     1,
     1,
     2,
     {{"x", F(2, 5, 7), 1}},
     {{I(1, 5), 7}},
     {{ADD, {0, 0}}, {XENT, {OUT(0)}}}},
    {"linear_over_two_chunks",
     3,
     1,
     2,
     {{"x", F(3, 2, 3, 300), 1}, {"weight", F(2, 300, 7), 0.25}, {"bias", F(1, 7), 1}},
     {{I(2, 2, 3), 7}},
     {{LINEAR, {0, 1, 2}}, {XENT, {OUT(0)}}}},
    {"logits_over_two_chunks",
     2,
     1,
     2,
     {{"x", F(3, 2, 3, 300), 1}, {"table", F(2, 7, 300), 0.25}},
     {{I(2, 2, 3), 7}},
     {{LOGITS, {0, 1}}, {XENT, {OUT(0)}}}},
    {"layernorm",
     3,
     1,
     2,
     {{"x", F(3, 2, 35, 9), 3}, {"gamma", F(1, 9), 2}, {"beta", F(1, 9), 1}},
     {{I(2, 2, 35), 9}},
     {{NORM, {0, 1, 2}}, {XENT, {OUT(0)}}}},
    {"layernorm_over_two_blocks",
     3,
     1,
     2,
     {{"x", F(2, 3, 1030), 3}, {"gamma", F(1, 1030), 2}, {"beta", F(1, 1030), 1}},
     {{I(1, 3), 1030}},
     {{NORM, {0, 1, 2}}, {XENT, {OUT(0)}}}},
    {"gelu", 1, 1, 2, {{"x", F(2, 9, 11), 4}}, {{I(1, 9), 11}}, {{GELU, {0}}, {XENT, {OUT(0)}}}},
    {"relu", 1, 1, 2, {{"x", F(2, 9, 11), 4}}, {{I(1, 9), 11}}, {{RELU, {0}}, {XENT, {OUT(0)}}}},
    {"embedding",
     1,
     2,
     2,
     {{"table", F(2, 5, 11), 2}},
     {{I(2, 3, 130), 5}, {I(2, 3, 130), 11}},
     {{EMBEDDING, {0}, .ids = 0}, {XENT, {OUT(0)}, .ids = 1}}},
    {"dropout",
     1,
     1,
     2,
     {{"x", F(2, 9, 11), 2}},
     {{I(1, 9), 11}},
     {{DROPOUT, {0}, .rate = 0.3f}, {XENT, {OUT(0)}}}},
    {"attention",
     2,
     1,
     3,
     {{"qkv", F(3, 2, 6, 24), 3}, {"table", F(2, 7, 8), 1}},
     {{I(2, 2, 6), 7}},
     {{ATTENTION, {0}, .heads = 2}, {LOGITS, {OUT(0), 1}}, {XENT, {OUT(1)}}}},
    {"attention_over_two_blocks",
     2,
     1,
     3,
     {{"qkv", F(3, 1, 140, 24), 3}, {"table", F(2, 7, 8), 1}},
     {{I(2, 1, 140), 7}},
     {{ATTENTION, {0}, .heads = 2}, {LOGITS, {OUT(0), 1}}, {XENT, {OUT(1)}}}},
    {"attention_with_dropout_over_two_blocks",
     2,
     1,
     3,
     {{"qkv", F(3, 1, 140, 24), 3}, {"table", F(2, 7, 8), 1}},
     {{I(2, 1, 140), 7}},
     {{ATTENTION, {0}, .heads = 2, .rate = 0.25f}, {LOGITS, {OUT(0), 1}}, {XENT, {OUT(1)}}}},
    {"grouped_causal_attention_over_two_blocks",
     4,
     1,
     3,
     {{"q", F(3, 1, 135, 12), 3},
      {"k", F(3, 1, 135, 6), 2},
      {"v", F(3, 1, 135, 6), 2},
      {"table", F(2, 7, 12), 1}},
     {{I(2, 1, 135), 7}},
     {{GROUPED, {0, 1, 2}, .heads = 4, .kv_heads = 2, .causal = true, .rate = 0.2f},
      {LOGITS, {OUT(0), 3}},
      {XENT, {OUT(1)}}}},
    {"rotated_grouped_attention",
     4,
     1,
     3,
     {{"q", F(3, 2, 9, 16), 3},
      {"k", F(3, 2, 9, 8), 2},
      {"v", F(3, 2, 9, 8), 2},
      {"table", F(2, 7, 16), 1}},
     {{I(2, 2, 9), 7}},
     {{GROUPED, {0, 1, 2}, .heads = 4, .kv_heads = 2, .causal = true, .turns = true},
      {LOGITS, {OUT(0), 3}},
      {XENT, {OUT(1)}}}},
    {"full_attention_to_other_rows",
     4,
     1,
     3,
     {{"q", F(3, 2, 5, 8), 3},
      {"k", F(3, 2, 133, 8), 2},
      {"v", F(3, 2, 133, 8), 2},
      {"table", F(2, 7, 8), 1}},
     {{I(2, 2, 5), 7}},
     {{GROUPED, {0, 1, 2}, .heads = 2, .kv_heads = 2}, {LOGITS, {OUT(0), 3}}, {XENT, {OUT(1)}}}},
    {"attention_over_padding_in_two_blocks",
     4,
     2,
     3,
     {{"q", F(3, 2, 5, 8), 3},
      {"k", F(3, 2, 133, 8), 2},
      {"v", F(3, 2, 133, 8), 2},
      {"table", F(2, 7, 8), 1}},
     {{I(2, 2, 5), 7}, {I(2, 2, 133), 2}},
     {{GROUPED, {0, 1, 2}, .heads = 2, .kv_heads = 2, .pads = true, .ids = 1, .rate = 0.1f},
      {LOGITS, {OUT(0), 3}},
      {XENT, {OUT(1)}}}},
    {"xent_over_two_blocks", 1, 1, 1, {{"x", F(2, 3, 1030), 4}}, {{I(1, 3), 1030}}, {{XENT, {0}}}},
    {"value_read_by_three_layers",
     2,
     1,
     4,
     {{"x", F(2, 4, 7), 1}, {"y", F(2, 4, 7), 0}},
     {{I(1, 4), 7}},
     {{GELU, {0}}, {ADD, {OUT(0), 0}}, {ADD, {OUT(1), 0}}, {XENT, {OUT(2)}}}},
    {"tied_embedding",
     1,
     2,
     3,
     {{"table", F(2, 5, 6), 2}},
     {{I(1, 8), 5}, {I(1, 8), 5}},
     {{EMBEDDING, {0}, .ids = 0},
      {GELU, {OUT(0)}},
      {LOGITS, {OUT(1), 0}},
      {XENT, {OUT(2)}, .ids = 1}}},
    {"sub_repeated_row_in_two_groups",
     2,
     1,
     2,
     {{"x", F(2, 70, 7), 2}, {"y", F(1, 7), 1}},
     {{I(1, 70), 7}},
     {{SUB, {0, 1}}, {XENT, {OUT(0)}}}},
    {"mul",
     2,
     1,
     2,
     {{"x", F(2, 5, 7), 2}, {"y", F(2, 5, 7), 2}},
     {{I(1, 5), 7}},
     {{MUL, {0, 1}}, {XENT, {OUT(0)}}}},
    {"mul_repeated_row_in_two_groups",
     2,
     1,
     2,
     {{"x", F(2, 70, 7), 2}, {"y", F(1, 7), 2}},
     {{I(1, 70), 7}},
     {{MUL, {0, 1}}, {XENT, {OUT(0)}}}},
    {"square", 1, 1, 2, {{"x", F(2, 5, 7), 2}}, {{I(1, 5), 7}}, {{MUL, {0, 0}}, {XENT, {OUT(0)}}}},
    {"div_by_exp_of_repeated_row",
     2,
     1,
     3,
     {{"x", F(2, 70, 7), 2}, {"y", F(1, 7), 1}},
     {{I(1, 70), 7}},
     {{EXP, {1}}, {DIV, {0, OUT(0)}}, {XENT, {OUT(1)}}}},
    {"scale",
     1,
     1,
     2,
     {{"x", F(2, 5, 7), 2}},
     {{I(1, 5), 7}},
     {{SCALE, {0}, .rate = -1.5f}, {XENT, {OUT(0)}}}},
    {"log_of_twice_exp",
     1,
     1,
     4,
     {{"x", F(2, 5, 7), 2}},
     {{I(1, 5), 7}},
     {{EXP, {0}}, {ADD, {OUT(0), OUT(0)}}, {LOG, {OUT(1)}}, {XENT, {OUT(2)}}}},
    {"sqrt_of_exp",
     1,
     1,
     3,
     {{"x", F(2, 5, 7), 2}},
     {{I(1, 5), 7}},
     {{EXP, {0}}, {SQRT, {OUT(0)}}, {XENT, {OUT(1)}}}},
    {"rsqrt_of_exp",
     1,
     1,
     3,
     {{"x", F(2, 5, 7), 2}},
     {{I(1, 5), 7}},
     {{EXP, {0}}, {RSQRT, {OUT(0)}}, {XENT, {OUT(1)}}}},
    {"tanh", 1, 1, 2, {{"x", F(2, 9, 11), 2}}, {{I(1, 9), 11}}, {{TANH, {0}}, {XENT, {OUT(0)}}}},
    {"erf", 1, 1, 2, {{"x", F(2, 9, 11), 2}}, {{I(1, 9), 11}}, {{ERF, {0}}, {XENT, {OUT(0)}}}},
    {"sigmoid",
     1,
     1,
     2,
     {{"x", F(2, 9, 11), 4}},
     {{I(1, 9), 11}},
     {{SIGMOID, {0}}, {XENT, {OUT(0)}}}},
    {"silu", 1, 1, 2, {{"x", F(2, 9, 11), 4}}, {{I(1, 9), 11}}, {{SILU, {0}}, {XENT, {OUT(0)}}}},
    {"gelu_erf",
     1,
     1,
     2,
     {{"x", F(2, 9, 11), 4}},
     {{I(1, 9), 11}},
     {{GELU_ERF, {0}}, {XENT, {OUT(0)}}}},
    {"softmax",
     1,
     1,
     2,
     {{"x", F(2, 9, 11), 3}},
     {{I(1, 9), 11}},
     {{SOFTMAX, {0}}, {XENT, {OUT(0)}}}},
    {"softmax_over_two_blocks",
     2,
     1,
     3,
     {{"x", F(2, 3, 1030), 6}, {"table", F(2, 7, 1030), 30}},
     {{I(1, 3), 7}},
     {{SOFTMAX, {0}}, {LOGITS, {OUT(0), 1}}, {XENT, {OUT(1)}}}},
    {"log_softmax",
     1,
     1,
     3,
     {{"x", F(2, 9, 11), 3}},
     {{I(1, 9), 11}},
     {{LOG_SOFTMAX, {0}}, {MUL, {OUT(0), OUT(0)}}, {XENT, {OUT(1)}}}},
    {"xent_ignore",
     1,
     1,
     1,
     {{"x", F(2, 30, 5), 4}},
     {{I(1, 30), 5}},
     {{XENT_IGNORE, {0}, .heads = 2}}},
    {"xent_mean_over_two_blocks",
     1,
     1,
     1,
     {{"x", F(2, 1030, 5), 4}},
     {{I(1, 1030), 5}},
     {{XENT_MEAN, {0}, .heads = 3}}},
    {"rmsnorm",
     2,
     1,
     2,
     {{"x", F(3, 2, 35, 9), 3}, {"gamma", F(1, 9), 2}},
     {{I(2, 2, 35), 9}},
     {{RMSNORM, {0, 1}}, {XENT, {OUT(0)}}}},
    {"rmsnorm_over_two_blocks",
     2,
     1,
     2,
     {{"x", F(2, 3, 1030), 3}, {"gamma", F(1, 1030), 2}},
     {{I(1, 3), 1030}},
     {{RMSNORM, {0, 1}}, {XENT, {OUT(0)}}}},
    {"sum_over_the_middle_in_two_groups",
     1,
     1,
     3,
     {{"x", F(3, 3, 70, 7), 1}},
     {{I(1, 3), 7}},
     {{MUL, {0, 0}}, {SUM_AXIS, {OUT(0)}, .heads = 1}, {XENT, {OUT(1)}}}},
    {"sum_over_the_first",
     1,
     1,
     3,
     {{"x", F(2, 130, 7), 0.25}},
     {{I(1, 1), 7}},
     {{MUL, {0, 0}}, {SUM_AXIS, {OUT(0)}, .heads = 0}, {XENT, {OUT(1)}}}},
    {"mean_over_the_last",
     2,
     1,
     4,
     {{"x", F(3, 3, 5, 9), 3}, {"table", F(2, 7, 1), 1}},
     {{I(2, 3, 5), 7}},
     {{MUL, {0, 0}}, {MEAN_AXIS, {OUT(0)}, .heads = 2}, {LOGITS, {OUT(1), 1}}, {XENT, {OUT(2)}}}},
    {"mean_over_the_middle",
     1,
     1,
     3,
     {{"x", F(3, 3, 5, 7), 3}},
     {{I(1, 3), 7}},
     {{MUL, {0, 0}}, {MEAN_AXIS, {OUT(0)}, .heads = 1}, {XENT, {OUT(1)}}}},
    {"max_over_the_middle_in_two_groups",
     1,
     1,
     2,
     {{"x", F(3, 3, 70, 7), 2}},
     {{I(1, 3), 7}},
     {{MAX_AXIS, {0}, .heads = 1}, {XENT, {OUT(0)}}}},
    {"max_over_the_last",
     2,
     1,
     3,
     {{"x", F(2, 12, 9), 3}, {"table", F(2, 7, 1), 1}},
     {{I(1, 12), 7}},
     {{MAX_AXIS, {0}, .heads = 1}, {LOGITS, {OUT(0), 1}}, {XENT, {OUT(1)}}}},
    {"conv2d_with_stride_and_groups",
     2,
     1,
     2,
     {{"x", F(4, 2, 6, 5, 4), 2}, {"weight", F(4, 3, 3, 2, 6), 0.5}},
     {{I(1, 18), 6}},
     {{CONV, {0, 1}, .window = {2, 1, 1, 2}}, {XENT, {OUT(0)}}}},
    {"conv2d_dilated_over_two_chunks",
     2,
     1,
     2,
     {{"x", F(4, 1, 5, 6, 40), 1}, {"weight", F(4, 3, 3, 40, 5), 0.2}},
     {{I(1, 12), 5}},
     {{CONV, {0, 1}, .window = {1, 1, 2, 1}}, {XENT, {OUT(0)}}}},
    {"max_pool2d",
     1,
     1,
     2,
     {{"x", F(4, 2, 6, 5, 7), 20}},
     {{I(1, 18), 7}},
     {{MAX_POOL, {0}, .window = {3, 2, 1}}, {XENT, {OUT(0)}}}},
    {"avg_pool2d",
     1,
     1,
     2,
     {{"x", F(4, 2, 6, 5, 7), 4}},
     {{I(1, 18), 7}},
     {{AVG_POOL, {0}, .window = {3, 2, 1, 0}}, {XENT, {OUT(0)}}}},
    {"avg_pool2d_over_padding",
     1,
     1,
     2,
     {{"x", F(4, 2, 6, 5, 7), 4}},
     {{I(1, 24), 7}},
     {{AVG_POOL, {0}, .window = {2, 2, 1, 1}}, {XENT, {OUT(0)}}}},
    {"batchnorm_over_two_groups",
     3,
     1,
     2,
     {{"x", F(4, 2, 6, 6, 5), 3}, {"gamma", F(1, 5), 2}, {"beta", F(1, 5), 1}},
     {{I(1, 72), 5}},
     {{BATCHNORM, {0, 1, 2}}, {XENT, {OUT(0)}}}},
    {"batchnorm_over_two_levels",
     3,
     1,
     2,
     {{"x", F(4, 1, 65, 64, 3), 3}, {"gamma", F(1, 3), 2}, {"beta", F(1, 3), 1}},
     {{I(1, 4160), 3}},
     {{BATCHNORM, {0, 1, 2}}, {XENT, {OUT(0)}}}},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* ---- data ---- */

static uint32_t mix(uint32_t n) {
    n = (n ^ n >> 16) * UINT32_C(0x85ebca6b);
    n = (n ^ n >> 13) * UINT32_C(0xc2b2ae35);
    return n ^ n >> 16;
}

/* In (-1, 1), never 0: at 0, relu has no derivative. */
static double fraction(int tensor, int64_t e) {
    return ((double)(mix((uint32_t)(tensor * 1000003 + e)) >> 16) - 32767.5) / 32768;
}

/* One case in both arithmetics. Values: leaves, then outputs of layers. */
typedef struct {
    const gradient_case *c;
    ro_shape shape[LEAVES + LAYERS];
    double *exact[LEAVES + LAYERS];
    float *leaf[LEAVES];
    int32_t *ids[IDS];
    int32_t step;
    vd_program program;
    vd_value loss, gradient[LEAVES];
    void **value; /* of the graph, after running it */
    uint32_t value_count;
} example;

static int64_t last(const ro_shape *s) {
    return s->dim[s->ndim - 1];
}

static void fill_leaves(example *x) {
    for (int i = 0; i < x->c->leaf_count; i++) {
        x->shape[i] = x->c->leaf[i].shape;
        const int64_t count = ro_shape_numel(&x->shape[i]);
        x->leaf[i] = calloc((size_t)count, sizeof(float));
        x->exact[i] = calloc((size_t)count, sizeof(double));
        for (int64_t e = 0; e < count; e++) {
            x->leaf[i][e] = (float)(x->c->leaf[i].scale * fraction(i, e));
            x->exact[i][e] = (double)x->leaf[i][e];
        }
    }
    for (int i = 0; i < x->c->ids_count; i++) {
        const int64_t count = ro_shape_numel(&x->c->ids[i].shape);
        x->ids[i] = calloc((size_t)count, sizeof(int32_t));
        for (int64_t e = 0; e < count; e++)
            x->ids[i][e] = (int32_t)(mix((uint32_t)(i * 7919 + e + 99)) % x->c->ids[i].limit);
    }
}

/* ---- the graph ---- */

static const vd_rotation ROTATION = {100, 3, false};

static vd_value build_grouped(vd_builder *b, const layer *l, const vd_value qkv[3]) {
    vd_heads heads = {
        l->heads, l->kv_heads, l->causal, l->turns ? &ROTATION : NULL, {l->rate, SEED, STREAM},
        NULL};
    if (!l->pads)
        return vd_grouped_attention(b, qkv, &heads);
    const vd_value kept =
        VD_EMIT(b, "kept", ((vd_op){.op = RO_OP_KEPT}), vd_data_value(b, (uint32_t)l->ids));
    const vd_value padding = VD_EMIT(b, "padding", ((vd_op){.op = RO_OP_LOG}), kept);
    heads.padding = &padding;
    return vd_grouped_attention(b, qkv, &heads);
}

static vd_value build_layer(vd_builder *b, const layer *l, const vd_value *value) {
    const vd_value x = value[l->in[0]], y = value[l->in[1]], z = value[l->in[2]];
    const vd_dropout_attr dropout = {l->rate, SEED, STREAM};
    const int64_t *p = l->window;
    const vd_pool_attr pool = {{p[0], p[0]}, {p[1], p[1]}, {p[2], p[2]}, p[3]};
    switch (l->kind) {
    case ADD: return vd_add(b, "add", x, y);
    case LINEAR: return vd_linear(b, x, y, z);
    case LOGITS: return vd_logits(b, x, y);
    case NORM: return vd_layernorm(b, x, y, z);
    case GELU: return vd_gelu(b, x);
    case RELU: return vd_relu(b, x);
    case EMBEDDING: return vd_embedding(b, "embedding", x, vd_data_value(b, (uint32_t)l->ids));
    case DROPOUT: return vd_dropout(b, "dropout", x, dropout);
    case ATTENTION: return vd_attention(b, x, l->heads, dropout);
    case GROUPED: return build_grouped(b, l, (vd_value[]){x, y, z});
    case XENT: return vd_xent(b, x, vd_data_value(b, (uint32_t)l->ids));
    case SUB: return vd_sub(b, "sub", x, y);
    case MUL: return vd_mul(b, "mul", x, y);
    case DIV: return vd_div(b, "div", x, y);
    case SCALE: return vd_scale(b, "scale", x, l->rate);
    case EXP: return vd_exp(b, x);
    case LOG: return vd_log(b, x);
    case SQRT: return vd_sqrt(b, x);
    case RSQRT: return vd_rsqrt(b, x);
    case TANH: return vd_tanh(b, x);
    case ERF: return vd_erf(b, x);
    case SIGMOID: return vd_sigmoid(b, x);
    case SILU: return vd_silu(b, x);
    case GELU_ERF: return vd_gelu_erf(b, x);
    case SOFTMAX: return vd_softmax(b, x);
    case LOG_SOFTMAX: return vd_log_softmax(b, x);
    case XENT_IGNORE:
        return vd_xent_ignore(b, x, vd_data_value(b, (uint32_t)l->ids), (int32_t)l->heads);
    case XENT_MEAN:
        return vd_xent_mean(b, x, vd_data_value(b, (uint32_t)l->ids), (int32_t)l->heads);
    case RMSNORM: return vd_rmsnorm(b, x, y, 1e-5f);
    case SUM_AXIS: return vd_sum_axis(b, x, (int)l->heads);
    case MEAN_AXIS: return vd_mean_axis(b, x, (int)l->heads);
    case MAX_AXIS: return vd_max_axis(b, x, (int)l->heads);
    case CONV: return vd_conv2d(b, x, y, (vd_conv_attr){p[0], p[1], p[2], p[3]});
    case MAX_POOL: return vd_max_pool2d(b, x, pool);
    case AVG_POOL: return vd_avg_pool2d(b, x, pool);
    case BATCHNORM: return vd_batchnorm(b, x, y, z, vd_batch_statistics(b, x));
    }
    return 0;
}

static void build_graph(example *x) {
    vd_program *p = &x->program;
    vd_builder b = vd_builder_of(p, &p->step);
    vd_value value[LEAVES + LAYERS] = {0};
    p->data_count = (uint32_t)x->c->ids_count;
    for (int i = 0; i < x->c->ids_count; i++)
        p->data[i].tensor.shape = x->c->ids[i].shape;
    for (int i = 0; i < x->c->leaf_count; i++)
        value[i] = vd_add_leaf(&b, x->c->leaf[i].name, &x->c->leaf[i].shape);
    for (int j = 0; j < x->c->layer_count; j++) {
        vd_scope(&b, "layer.%d", j);
        value[OUT(j)] = x->loss = build_layer(&b, &x->c->layer[j], value);
        x->shape[OUT(j)] = *vd_shape_of(&b, x->loss);
    }
    vd_backward(&b, x->loss, 1);
    cr_assert(b.status == VD_OK, "%s: %s", x->c->name, b.err.text);
    for (int i = 0; i < x->c->leaf_count; i++)
        x->gradient[i] = vd_grad(&b, (vd_value)i);
    vd_builder_free(&b);
}

static void run_node(example *x, ro_ctx *ctx, uint32_t node, uint32_t sources) {
    const vd_graph *g = &x->program.step;
    const vd_node *n = &g->node[node];
    ro_shape shapes[8];
    const void *input[8];
    ro_call call;
    cr_assert(n->input_count <= 8);
    vd_node_call(&x->program, g, node, &call, shapes);
    for (int i = 0; i < n->input_count; i++)
        input[i] = x->value[g->edge[n->first_input + (uint32_t)i]];
    x->value[sources + node] = malloc((size_t)ro_shape_numel(&n->shape) * 4);
    cr_assert(ro_run(ctx, &call, input, x->value[sources + node]) == RO_OK, "%s",
              ro_ctx_error(ctx));
}

static void run_graph(example *x) {
    const uint32_t sources = vd_source_count(&x->program, &x->program.step);
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(&(ro_options){.threads = 1}, &ctx) == RO_OK);
    x->value_count = sources + x->program.step.node_count;
    x->value = calloc(x->value_count, sizeof *x->value);
    for (int i = 0; i < x->c->leaf_count; i++)
        x->value[i] = x->leaf[i];
    for (int i = 0; i < x->c->ids_count; i++)
        x->value[x->c->leaf_count + i] = x->ids[i];
    x->value[sources - 1] = &x->step;
    for (uint32_t i = 0; i < x->program.step.node_count; i++)
        run_node(x, ctx, i, sources);
    ro_ctx_destroy(ctx);
}

/* ---- the same layers in double precision ---- */

static void exact_matmul(const example *x, const layer *l, double *out, bool transposed) {
    const double *a = x->exact[l->in[0]], *w = x->exact[l->in[1]];
    const double *bias = transposed ? NULL : x->exact[l->in[2]];
    const ro_shape *shape = &x->shape[l->in[0]];
    const int64_t inner = last(shape), rows = ro_shape_numel(shape) / inner;
    const int64_t cols = ro_shape_numel(&x->shape[l->in[1]]) / inner;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t n = 0; n < cols; n++) {
            double sum = bias ? bias[n] : 0;
            for (int64_t k = 0; k < inner; k++)
                sum += a[r * inner + k] * w[transposed ? n * inner + k : k * cols + n];
            out[r * cols + n] = sum;
        }
}

static void exact_norm(const example *x, const layer *l, double *out) {
    const double *a = x->exact[l->in[0]], *gamma = x->exact[l->in[1]], *beta = x->exact[l->in[2]];
    const int64_t cols = last(&x->shape[l->in[0]]),
                  rows = ro_shape_numel(&x->shape[l->in[0]]) / cols;
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < cols; i++)
            mean += a[r * cols + i] / (double)cols;
        for (int64_t i = 0; i < cols; i++)
            variance += pow(a[r * cols + i] - mean, 2) / (double)cols;
        for (int64_t i = 0; i < cols; i++)
            out[r * cols + i] =
                (a[r * cols + i] - mean) / sqrt(variance + 1e-5) * gamma[i] + beta[i];
    }
}

/* What dropout multiplies element e by: SPEC.md section 6. */
static double exact_mask(const example *x, float rate, int64_t e) {
    uint32_t word[4];
    ro_philox_block(SEED, (uint64_t)e / 4, (uint32_t)x->step, STREAM, word);
    return word[e % 4] / 4294967296.0 < (double)rate ? 0 : 1 / (1 - (double)rate);
}

/* One head: rows of queries q and of keys k and values v, each row `q_step` or `kv_step` numbers
 * from the next; its scores are elements first_score + t keys + j for dropout. */
typedef struct {
    const double *q, *k, *v;
    int64_t q_step, kv_step, size, keys, first_score;
    float rate;
    const int32_t *padding; /* of the keys: 0 where they are; NULL: none is */
} exact_head;

/* Query t over the first `admitted` keys: out[0..size). */
static void exact_query(const example *x, const exact_head *h, int64_t t, int64_t admitted,
                        double *out) {
    double p[256], most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < admitted; j++) {
        p[j] = 0;
        for (int64_t d = 0; d < h->size; d++)
            p[j] += h->q[t * h->q_step + d] * h->k[j * h->kv_step + d] / sqrt((double)h->size);
        if (h->padding && h->padding[j] == 0)
            p[j] = -INFINITY;
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < admitted; j++)
        sum += p[j] = exp(p[j] - most);
    for (int64_t d = 0; d < h->size; d++)
        out[d] = 0;
    for (int64_t j = 0; j < admitted; j++) {
        const int64_t e = h->first_score + t * h->keys + j;
        const double weight = p[j] / sum * (h->rate != 0 ? exact_mask(x, h->rate, e) : 1);
        for (int64_t d = 0; d < h->size; d++)
            out[d] += weight * h->v[j * h->kv_step + d];
    }
}

static void exact_attention(const example *x, const layer *l, double *out) {
    const ro_shape *s = &x->shape[l->in[0]];
    const int64_t rows = s->dim[1], width = s->dim[2], channels = width / 3;
    exact_head h = {.q_step = width, .kv_step = width, .size = channels / l->heads, .keys = rows};
    h.rate = l->rate;
    for (int64_t i = 0; i < s->dim[0] * l->heads; i++) {
        const int64_t b = i / l->heads, column = i % l->heads * h.size;
        h.q = x->exact[l->in[0]] + b * rows * width + column;
        h.k = h.q + channels, h.v = h.k + channels;
        h.first_score = i * rows * rows;
        for (int64_t t = 0; t < rows; t++)
            exact_query(x, &h, t, t + 1, out + (b * rows + t) * channels + column);
    }
}

/* SPEC 13, pairs (i, i + size / 2), each head by itself: a copy. */
static double *exact_turn(const double *in, const ro_shape *s, int64_t size) {
    const int64_t count = ro_shape_numel(s), width = s->dim[2], half = size / 2;
    double *out = malloc((size_t)count * sizeof *out);
    for (int64_t e = 0; e < count; e++) {
        const int64_t d = e % width % size, i = d % half;
        const double position = (double)(ROTATION.first + e / width % s->dim[1]);
        const double angle = position * pow((double)ROTATION.base, -2.0 * (double)i / (double)size);
        const double other = d < half ? -in[e + half] : in[e - half];
        out[e] = in[e] * cos(angle) + other * sin(angle);
    }
    return out;
}

static void exact_grouped(const example *x, const layer *l, double *out) {
    const ro_shape *q = &x->shape[l->in[0]], *k = &x->shape[l->in[1]];
    const int64_t rows = q->dim[1], channels = q->dim[2], group = l->heads / l->kv_heads;
    exact_head h = {.q_step = channels, .kv_step = k->dim[2], .keys = k->dim[1]};
    h.size = channels / l->heads, h.rate = l->rate;
    double *turned[2] = {0};
    for (int i = 0; i < 2 && l->turns; i++)
        turned[i] = exact_turn(x->exact[l->in[i]], &x->shape[l->in[i]], h.size);
    const double *queries = l->turns ? turned[0] : x->exact[l->in[0]];
    const double *keys = l->turns ? turned[1] : x->exact[l->in[1]];
    for (int64_t i = 0; i < q->dim[0] * l->heads; i++) {
        const int64_t b = i / l->heads, column = i % l->heads * h.size;
        const int64_t kv = b * h.keys * h.kv_step + i % l->heads / group * h.size;
        h.q = queries + b * rows * channels + column;
        h.k = keys + kv, h.v = x->exact[l->in[2]] + kv;
        h.first_score = i * rows * h.keys;
        h.padding = l->pads ? x->ids[l->ids] + b * h.keys : NULL;
        for (int64_t t = 0; t < rows; t++)
            exact_query(x, &h, t, l->causal ? t + 1 : h.keys,
                        out + (b * rows + t) * channels + column);
    }
    free(turned[0]);
    free(turned[1]);
}

static void exact_xent(const example *x, const layer *l, double *out) {
    const double *a = x->exact[l->in[0]];
    const int64_t cols = last(&x->shape[l->in[0]]),
                  rows = ro_shape_numel(&x->shape[l->in[0]]) / cols;
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < cols; i++)
            sum += exp(a[r * cols + i]);
        out[r] = log(sum) - a[r * cols + x->ids[l->ids][r]];
    }
}

static void exact_xent_ignore(const example *x, const layer *l, double *out) {
    const int32_t *ids = x->ids[l->ids];
    const int64_t rows = ro_shape_numel(&x->c->ids[l->ids].shape);
    double *each = l->kind == XENT_MEAN ? calloc((size_t)rows, sizeof *each) : out, sum = 0,
           kept = 0;
    exact_xent(x, l, each);
    for (int64_t r = 0; r < rows; r++) {
        each[r] = ids[r] == l->heads ? 0 : each[r];
        kept += ids[r] != l->heads;
        sum += each[r];
    }
    if (l->kind != XENT_MEAN)
        return;
    out[0] = sum / kept;
    free(each);
}

static void exact_softmax(const example *x, const layer *l, double *out) {
    const double *a = x->exact[l->in[0]];
    const int64_t cols = last(&x->shape[l->in[0]]), count = ro_shape_numel(&x->shape[l->in[0]]);
    for (int64_t r = 0; r < count; r += cols) {
        double sum = 0;
        for (int64_t i = 0; i < cols; i++)
            sum += exp(a[r + i]);
        for (int64_t i = 0; i < cols; i++)
            out[r + i] = l->kind == SOFTMAX ? exp(a[r + i]) / sum : a[r + i] - log(sum);
    }
}

static void exact_rmsnorm(const example *x, const layer *l, double *out) {
    const double *a = x->exact[l->in[0]], *gamma = x->exact[l->in[1]];
    const int64_t cols = last(&x->shape[l->in[0]]), count = ro_shape_numel(&x->shape[l->in[0]]);
    for (int64_t r = 0; r < count; r += cols) {
        double ss = 0;
        for (int64_t i = 0; i < cols; i++)
            ss += a[r + i] * a[r + i];
        for (int64_t i = 0; i < cols; i++)
            out[r + i] = a[r + i] / sqrt(ss / (double)cols + 1e-5) * gamma[i];
    }
}

/* The axis is in `heads`. */
static void exact_along(const example *x, const layer *l, double *out) {
    const ro_shape *s = &x->shape[l->in[0]];
    const double *a = x->exact[l->in[0]];
    int64_t inner = 1, n = s->dim[l->heads], count = ro_shape_numel(s);
    for (int64_t i = l->heads + 1; i < s->ndim; i++)
        inner *= s->dim[i];
    for (int64_t e = 0; e < count / n; e++) {
        const double *first = a + e / inner * n * inner + e % inner;
        out[e] = first[0];
        for (int64_t j = 1; j < n; j++)
            out[e] =
                l->kind == MAX_AXIS ? fmax(out[e], first[j * inner]) : out[e] + first[j * inner];
        out[e] /= l->kind == MEAN_AXIS ? (double)n : 1;
    }
}

static double exact_gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static double exact_element(const example *x, const layer *l, int64_t e) {
    const double a = x->exact[l->in[0]][e];
    const double y = x->exact[l->in[1]][e % ro_shape_numel(&x->shape[l->in[1]])];
    switch (l->kind) {
    case SUB: return a - y;
    case MUL: return a * y;
    case DIV: return a / y;
    case SCALE: return a * (double)l->rate;
    case EXP: return exp(a);
    case LOG: return log(a);
    case SQRT: return sqrt(a);
    case RSQRT: return 1 / sqrt(a);
    case TANH: return tanh(a);
    case ERF: return erf(a);
    case SIGMOID: return 1 / (1 + exp(-a));
    case SILU: return a / (1 + exp(-a));
    case GELU_ERF: return 0.5 * a * (1 + erf(a * sqrt(0.5)));
    case GELU: return exact_gelu(a);
    case RELU: return a > 0 ? a : 0;
    case DROPOUT: return a * exact_mask(x, l->rate, e);
    default: return a + y;
    }
}

static exact_image image_of(const example *x, int value) {
    return (exact_image){x->exact[value], x->shape[value].dim};
}

static void exact_on_images(const example *x, const layer *l, exact_image out) {
    const exact_image a = image_of(x, l->in[0]);
    switch (l->kind) {
    case CONV: exact_conv(a, image_of(x, l->in[1]), l->window, out); break;
    case BATCHNORM: exact_batchnorm(a, x->exact[l->in[1]], x->exact[l->in[2]], out); break;
    default: exact_pool(a, l->window, l->kind == MAX_POOL, out); break;
    }
}

static void exact_layer(const example *x, int j) {
    const layer *l = &x->c->layer[j];
    double *out = x->exact[OUT(j)];
    const int64_t count = ro_shape_numel(&x->shape[OUT(j)]), cols = last(&x->shape[OUT(j)]);
    switch (l->kind) {
    case LINEAR: exact_matmul(x, l, out, false); break;
    case LOGITS: exact_matmul(x, l, out, true); break;
    case NORM: exact_norm(x, l, out); break;
    case ATTENTION: exact_attention(x, l, out); break;
    case GROUPED: exact_grouped(x, l, out); break;
    case XENT: exact_xent(x, l, out); break;
    case XENT_IGNORE:
    case XENT_MEAN: exact_xent_ignore(x, l, out); break;
    case SOFTMAX:
    case LOG_SOFTMAX: exact_softmax(x, l, out); break;
    case RMSNORM: exact_rmsnorm(x, l, out); break;
    case SUM_AXIS:
    case MEAN_AXIS:
    case MAX_AXIS: exact_along(x, l, out); break;
    case CONV:
    case MAX_POOL:
    case AVG_POOL:
    case BATCHNORM: exact_on_images(x, l, image_of(x, OUT(j))); break;
    case EMBEDDING:
        for (int64_t e = 0; e < count; e++)
            out[e] = x->exact[l->in[0]][x->ids[l->ids][e / cols] * cols + e % cols];
        break;
    default:
        for (int64_t e = 0; e < count; e++)
            out[e] = exact_element(x, l, e);
        break;
    }
}

static double exact_loss(const example *x) {
    double sum = 0;
    for (int j = 0; j < x->c->layer_count; j++)
        exact_layer(x, j);
    const int end = OUT(x->c->layer_count - 1);
    for (int64_t e = 0; e < ro_shape_numel(&x->shape[end]); e++)
        sum += x->exact[end][e];
    return sum;
}

/* ---- opening and closing ---- */

static example open_example(const gradient_case *c) {
    example x = {.c = c, .step = 3};
    fill_leaves(&x);
    build_graph(&x);
    run_graph(&x);
    for (int j = 0; j < c->layer_count; j++)
        x.exact[OUT(j)] = calloc((size_t)ro_shape_numel(&x.shape[OUT(j)]), sizeof(double));
    return x;
}

static void close_example(example *x) {
    const uint32_t sources = vd_source_count(&x->program, &x->program.step);
    for (uint32_t i = sources; i < x->value_count; i++)
        free(x->value[i]);
    for (int i = 0; i < LEAVES + LAYERS; i++)
        free(x->exact[i]);
    for (int i = 0; i < LEAVES; i++)
        free(x->leaf[i]);
    for (int i = 0; i < IDS; i++)
        free(x->ids[i]);
    free(x->value);
    vd_program_free(&x->program);
}

/* ---- comparison ---- */

static double difference(const example *x, int leaf, int64_t e) {
    const double h = 1e-4, at = x->exact[leaf][e];
    x->exact[leaf][e] = at + h;
    const double above = exact_loss(x);
    x->exact[leaf][e] = at - h;
    const double below = exact_loss(x);
    x->exact[leaf][e] = at;
    return (above - below) / (2 * h);
}

/* All elements of a small leaf, a sample of a large one. */
static void expect_gradient(const example *x, int leaf) {
    const int64_t count = ro_shape_numel(&x->shape[leaf]),
                  samples = count < SAMPLES ? count : SAMPLES;
    const char *name = x->c->leaf[leaf].name;
    const bool read = x->c->leaf[leaf].scale != 0;
    cr_assert((x->gradient[leaf] != VD_NONE) == read, "%s: gradient of %s", x->c->name, name);
    if (!read)
        return;
    cr_assert(ro_shape_equal(vd_value_shape(&x->program, &x->program.step, x->gradient[leaf]),
                             &x->shape[leaf]));
    const float *got = x->value[x->gradient[leaf]];
    double most = 0, worst = 0;
    for (int64_t i = 0; i < samples; i++) {
        const int64_t e = count <= SAMPLES ? i : (int64_t)mix((uint32_t)i) % count;
        const double want = difference(x, leaf, e), error = fabs((double)got[e] - want);
        most = fmax(most, fabs(want));
        worst = error > worst || isnan(error) ? error : worst;
    }
    cr_expect(most > 1e-3, "%s: the gradient of %s is all zero: not a test", x->c->name, name);
    cr_expect(worst <= tolerance * most, "%s: gradient of %s is off by %g of its largest element",
              x->c->name, name, worst / most);
}

static void expect_loss(const example *x) {
    const int64_t rows = ro_shape_numel(&x->shape[OUT(x->c->layer_count - 1)]);
    const double want = exact_loss(x);
    double got = 0;
    for (int64_t r = 0; r < rows; r++)
        got += (double)((const float *)x->value[x->loss])[r];
    cr_expect(fabs(got - want) <= 1e-5 * fabs(want), "%s: loss %g, expected %g", x->c->name, got,
              want);
}

Test(gradients, those_of_every_layer_agree_with_differences) {
    for (int i = 0; i < CASES; i++) {
        example x = open_example(&cases[i]);
        expect_loss(&x);
        for (int k = 0; k < x.c->leaf_count; k++)
            expect_gradient(&x, k);
        close_example(&x);
    }
}

Test(gradients, the_cases_use_every_operator_of_a_backward_pass) {
    static const int wanted[] = {
        RO_OP_FILL,
        RO_OP_ADD,
        RO_OP_MATMUL,
        RO_OP_EMBEDDING_GRAD,
        RO_OP_JOIN_HEADS,
        RO_OP_SPLIT_HEADS,
        RO_OP_GELU_GRAD,
        RO_OP_RELU_GRAD,
        RO_OP_DROPOUT,
        RO_OP_REDUCE_DOT,
        RO_OP_REDUCE_LN_GX,
        RO_OP_SUM_ROWS,
        RO_OP_LN_DGAMMA,
        RO_OP_LN_DX,
        RO_OP_XENT_GRAD,
        RO_OP_ATTN_PROB,
        RO_OP_ATTN_DSCORE,
        RO_OP_REPEAT_HEADS_GRAD,
        RO_OP_SCALE,
        RO_OP_MUL,
        RO_OP_DIV,
        RO_OP_TANH_GRAD,
        RO_OP_ERF_GRAD,
        RO_OP_SIGMOID_GRAD,
        RO_OP_SILU_GRAD,
        RO_OP_GELU_ERF_GRAD,
        RO_OP_SOFTMAX_GRAD,
        RO_OP_LOG_SOFTMAX_GRAD,
        RO_OP_XENT_IGNORE_GRAD,
        RO_OP_REDUCE_RMS_GX,
        RO_OP_RMS_DX,
        RO_OP_RMS_DGAMMA,
        RO_OP_EXPAND,
        RO_OP_ARGMAX,
        RO_OP_MAX_GRAD,
        RO_OP_CONV2D_DX,
        RO_OP_CONV2D_DW,
        RO_OP_MAX_POOL2D_GRAD,
        RO_OP_BN_DGAMMA,
        RO_OP_BN_DX,
        RO_OP_AVG_POOL2D_GRAD,
    };
    bool seen[RO_OP_END] = {false};
    for (int i = 0; i < CASES; i++) {
        example x = {.c = &cases[i]};
        fill_leaves(&x);
        build_graph(&x);
        for (uint32_t n = x.loss - vd_source_count(&x.program, &x.program.step) + 1;
             n < x.program.step.node_count; n++)
            seen[x.program.step.node[n].op] = true;
        close_example(&x);
    }
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        cr_expect(seen[wanted[i]], "%s", ro_op_describe(wanted[i])->name);
}

/* ---- bits ---- */

static void put_hashes(const example *x, vd_buf *out) {
    for (int i = 0; i < x->c->leaf_count; i++) {
        if (x->gradient[i] == VD_NONE)
            continue;
        vd_hash hash;
        char text[2 * VD_HASH_SIZE + 1];
        const size_t size = (size_t)ro_shape_numel(&x->shape[i]) * sizeof(float);
        cr_assert(vd_hash_tagged(NULL, x->value[x->gradient[i]], size, &hash));
        vd_hex(hash.b, VD_HASH_SIZE, text);
        vd_printf(out, "%s %s %s\n", text, x->c->name, x->c->leaf[i].name);
    }
}

Test(gradients, bits_are_those_on_file) {
    vd_buf got = {0}, want = {0};
    vd_err err;
    for (int i = 0; i < CASES; i++) {
        example x = open_example(&cases[i]);
        put_hashes(&x, &got);
        close_example(&x);
    }
    cr_assert(vd_buf_ok(&got));
    if (getenv("GOLDEN_UPDATE"))
        cr_assert(vd_write_file(golden, got.data, got.size, 0644, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_read_file(golden, 1 << 20, &want, &err) == VD_OK, "%s", err.text);
    vd_put_u8(&got, 0);
    vd_put_u8(&want, 0);
    cr_expect_str_eq((const char *)got.data, (const char *)want.data);
    vd_buf_free(&got);
    vd_buf_free(&want);
}
