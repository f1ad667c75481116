/* Fills the leaves of a case; builds and runs its graph. */
#include "gradient_case.h"

#include "repops/op_movement.h"
#include "repops/op_softmax.h"
#include "tests/support/sample.h"
#include "repops/op_function.h"

#include <criterion/criterion.h>
#include <stdlib.h>

const float ROTATION_BASE = 100;
const int64_t ROTATION_FIRST = 3;

/* ---- data ---- */

uint32_t mix(uint32_t n) {
    n = (n ^ n >> 16) * UINT32_C(0x85ebca6b);
    n = (n ^ n >> 13) * UINT32_C(0xc2b2ae35);
    return n ^ n >> 16;
}

/* Returns a number in (-1, 1), never 0: at 0, relu has no derivative. */
static double fraction(int tensor, int64_t e) {
    return ((double)(mix((uint32_t)(tensor * 1000003 + e)) >> 16) - 32767.5) / 32768;
}

void fill_leaves(example *x) {
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

/* ---- graph ---- */

/* Makes a rotation for the rows of q, at positions from ROTATION_FIRST on. */
static vd_rotation rotation_of(vd_builder *b, const layer *l, vd_value q) {
    const ro_shape *s = vd_shape_of(b, q);
    const int64_t length = s->dim[1], size = s->dim[2] / l->heads;
    const vd_frequencies frequencies = {.base = ROTATION_BASE};
    const vd_value all = vd_iota(b, "positions", ROTATION_FIRST + length);
    const vd_op slice = {RO_OP_SLICE, {0, ROTATION_FIRST, length, 1}, NULL};
    return (vd_rotation){VD_EMIT(b, "positions", slice, all),
                         vd_rope_turns(b, "turns", size, &frequencies), false};
}

static vd_value build_grouped(vd_builder *b, const layer *l, const vd_value qkv[3]) {
    const vd_rotation rotation = l->turns ? rotation_of(b, l, qkv[0]) : (vd_rotation){0};
    vd_heads heads = {
        l->heads, l->kv_heads, l->causal, l->turns ? &rotation : NULL, {l->rate, SEED, STREAM},
        NULL,     l->window[0]};
    if (!l->pads)
        return vd_grouped_attention(b, qkv, &heads);
    const vd_value kept =
        VD_EMIT(b, "kept", ((vd_op){.op = RO_OP_KEPT}), vd_data_value(b, (uint32_t)l->ids));
    const vd_value padding = VD_EMIT(b, "padding", ((vd_op){.op = RO_OP_LOG}), kept);
    heads.padding = &padding;
    return vd_grouped_attention(b, qkv, &heads);
}

static vd_value fixed_conv(vd_builder *b, vd_value x, vd_value weight, const int64_t *p) {
    b->products = vd_products_alike(RO_FIXED_24);
    const vd_value y = vd_conv2d(b, x, weight, (vd_conv_attr){p[0], p[1], p[2], p[3]});
    b->products = vd_products_alike(0);
    return y;
}

static vd_value fixed_logits(vd_builder *b, vd_value x, vd_value table) {
    b->products = vd_products_alike(RO_FIXED_24);
    const vd_value y = vd_project_rows(b, x, table);
    b->products = vd_products_alike(0);
    return y;
}

static vd_value apply(vd_builder *b, int function, vd_value x) {
    vd_op op = {.op = function};
    test_sample_attributes(function, op.attr);
    return VD_APPLY(b, ro_op_describe(function)->name, op, x);
}

static vd_value build_layer(vd_builder *b, const layer *l, const vd_value *value) {
    const vd_value x = value[l->in[0]], y = value[l->in[1]], z = value[l->in[2]];
    const vd_dropout_attr dropout = {l->rate, SEED, STREAM};
    const int64_t *p = l->window;
    const vd_pool_attr pool = {{p[0], p[0]}, {p[1], p[1]}, {p[2], p[2]}, p[3]};
    switch (l->kind) {
    case ADD: return vd_add(b, "add", x, y);
    case LINEAR: return vd_linear(b, x, y, z);
    case LOGITS: return vd_project_rows(b, x, y);
    case FIXED_LOGITS: return fixed_logits(b, x, y);
    case NORM: return vd_layernorm(b, x, y, z, 1e-5f);
    case LARGER: return vd_max(b, "max", x, y);
    case SMALLER: return vd_min(b, "min", x, y);
    case CHOSEN: return vd_where(b, "where", vd_compare(b, "compare", x, y, RO_LESS), x, y);
    case FUNCTION: return apply(b, l->op, x);
    case EMBEDDING: return vd_embedding(b, "embedding", x, vd_data_value(b, (uint32_t)l->ids));
    case DROPOUT: return vd_dropout(b, "dropout", x, dropout);
    case ATTENTION: return vd_attention(b, x, l->heads, dropout);
    case GROUPED: return build_grouped(b, l, (vd_value[]){x, y, z});
    case XENT: return vd_xent(b, x, vd_data_value(b, (uint32_t)l->ids));
    case SUB: return vd_sub(b, "sub", x, y);
    case MUL: return vd_mul(b, "mul", x, y);
    case DIV: return vd_div(b, "div", x, y);
    case SCALE: return vd_scale(b, "scale", x, l->rate);
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
    case FIXED_CONV: return fixed_conv(b, x, y, p);
    case CONV: return vd_conv2d(b, x, y, (vd_conv_attr){p[0], p[1], p[2], p[3]});
    case MAX_POOL: return vd_max_pool2d(b, x, pool);
    case AVG_POOL: return vd_avg_pool2d(b, x, pool);
    case GLOBAL_AVG_POOL: return vd_global_avg_pool2d(b, x);
    case BATCHNORM: return vd_batchnorm(b, x, y, z, vd_batch_statistics(b, x));
    }
    return 0;
}

void build_graph(example *x) {
    vd_program *p = &x->program;
    vd_builder b = vd_builder_of(p, &p->step);
    vd_value value[LEAVES + LAYERS] = {0};
    cr_assert(vd_program_take_data(p, (uint32_t)x->c->ids_count, NULL) == VD_OK);
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
    const vd_node *n = vd_node_stored(g, node);
    ro_shape shapes[8];
    const void *input[8];
    ro_call call;
    cr_assert(n->input_count <= 8);
    vd_node_call(&x->program, g, node, &call, shapes);
    for (int i = 0; i < n->input_count; i++)
        input[i] = x->value[vd_node_input(g, node, i)];
    x->value[sources + node] = malloc((size_t)ro_shape_numel(&n->shape) * 4);
    cr_assert(ro_run(ctx, &call, input, x->value[sources + node]) == RO_OK, "%s",
              ro_ctx_error(ctx));
}

void run_graph(example *x) {
    const uint32_t sources = vd_source_count(&x->program, &x->program.step);
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ctx) ==
              RO_OK);
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
