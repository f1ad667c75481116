/* Every operator has a gradient from its row of operators.def, a layer built here that has one, or
 * a reason in operators.def for having none. A missing gradient is an error when the graph is
 * built. */
#include "repops/operators.h"
#include "tests/support/sample.h"
#include "verde/graph/functions.h"
#include "verde/graph/tape.h"

#include <criterion/criterion.h>
#include <string.h>

/* ---- one graph for each layer ---- */

enum { X, ROW, TABLE, QKV, IMAGE, FILTER, LEAVES };

/* clang-format off */
#define F(n, ...) {RO_F32, n, {__VA_ARGS__}}
/* clang-format on */

static const ro_shape leaf_shape[LEAVES] = {
    [X] = F(3, 2, 4, 8),        [ROW] = F(1, 8),
    [TABLE] = F(2, 8, 8),       [QKV] = F(3, 2, 4, 24),
    [IMAGE] = F(4, 2, 8, 8, 8), [FILTER] = F(4, 3, 3, 8, 8),
};

typedef vd_value layer(vd_builder *b);

static vd_value ids(const vd_builder *b) {
    return vd_data_value(b, 0);
}
static vd_value add(vd_builder *b) {
    return vd_add(b, "layer", X, ROW);
}
static vd_value sub(vd_builder *b) {
    return vd_sub(b, "layer", X, ROW);
}
static vd_value mul(vd_builder *b) {
    return vd_mul(b, "layer", X, ROW);
}
static vd_value divided(vd_builder *b) {
    return vd_div(b, "layer", X, ROW);
}
static vd_value scale(vd_builder *b) {
    return vd_scale(b, "layer", X, 2);
}
static vd_value exponential(vd_builder *b) {
    return vd_exp(b, X);
}
static vd_value logarithm(vd_builder *b) {
    return vd_log(b, X);
}
static vd_value root(vd_builder *b) {
    return vd_sqrt(b, X);
}
static vd_value inverse_root(vd_builder *b) {
    return vd_rsqrt(b, X);
}
static vd_value larger(vd_builder *b) {
    return vd_max(b, "layer", X, ROW);
}
static vd_value smaller(vd_builder *b) {
    return vd_min(b, "layer", X, ROW);
}
static vd_value magnitude(vd_builder *b) {
    return vd_abs(b, X);
}
static vd_value chosen(vd_builder *b) {
    return vd_where(b, "layer", vd_compare(b, "choice", X, ROW, RO_LESS), X, X);
}
static vd_value product(vd_builder *b) {
    return vd_project(b, X, TABLE);
}
static vd_value fixed_product(vd_builder *b) {
    b->products = vd_products_alike(RO_FIXED_16);
    return vd_project(b, X, TABLE);
}
static vd_value embedding(vd_builder *b) {
    return vd_embedding(b, "layer", TABLE, ids(b));
}
static vd_value dropout(vd_builder *b) {
    return vd_dropout(b, "layer", X, (vd_dropout_attr){0.5f, 1, 2});
}
static vd_value layernorm(vd_builder *b) {
    return vd_layernorm(b, X, ROW, ROW, 1e-5f);
}
static vd_value rmsnorm(vd_builder *b) {
    return vd_rmsnorm(b, X, ROW, 1e-5f);
}
static vd_value softmax(vd_builder *b) {
    return vd_softmax(b, X);
}
static vd_value log_softmax(vd_builder *b) {
    return vd_log_softmax(b, X);
}
static vd_value loss(vd_builder *b) {
    return vd_xent(b, X, ids(b));
}
static vd_value loss_mean(vd_builder *b) {
    return vd_xent_mean(b, X, ids(b), 0);
}
/* Rotates X's rows as heads of `size` elements. */
static vd_rotation rotation(vd_builder *b, int64_t size) {
    const vd_frequencies frequencies = {.base = 10000};
    return (vd_rotation){vd_iota(b, "positions", 4), vd_rope_turns(b, "turns", size, &frequencies),
                         false};
}
static vd_value attention(vd_builder *b) {
    return vd_attention(b, QKV, 2, (vd_dropout_attr){0});
}
static vd_value grouped_attention(vd_builder *b) {
    const vd_rotation turn = rotation(b, 2);
    const vd_heads heads = {4, 2, true, &turn, {0}, NULL};
    vd_value k = vd_slice(b, "keys", X, (vd_stretch){2, 0, 4, 1});
    return vd_grouped_attention(b, (vd_value[]){X, k, k}, &heads);
}
static vd_value transpose(vd_builder *b) {
    return vd_transpose(b, "layer", X, (int[]){2, 0, 1});
}
static vd_value slice(vd_builder *b) {
    return vd_slice(b, "layer", X, (vd_stretch){1, 1, 2, 1});
}
static vd_value pad(vd_builder *b) {
    return vd_pad(b, "layer", X, 1, 1, 2);
}
static vd_value gather(vd_builder *b) {
    return vd_gather(b, "layer", TABLE, ids(b), 0);
}
static vd_value concat(vd_builder *b) {
    return vd_concat(b, "layer", 1, 2, (vd_value[]){X, X});
}
static vd_value reshape(vd_builder *b) {
    return vd_reshape(b, "layer", X, VD_SHAPE(RO_F32, 8, 8));
}
static vd_value rope(vd_builder *b) {
    return vd_rope(b, "layer", X, rotation(b, 8));
}
static vd_value sum_axis(vd_builder *b) {
    return vd_sum_axis(b, X, 1);
}
static vd_value mean_axis(vd_builder *b) {
    return vd_mean_axis(b, X, 1);
}
static vd_value max_axis(vd_builder *b) {
    return vd_max_axis(b, X, 1);
}
static vd_value conv2d(vd_builder *b) {
    return vd_conv2d(b, IMAGE, FILTER, (vd_conv_attr){1, 1, 1, 1});
}
static vd_value fixed_conv2d(vd_builder *b) {
    b->products = vd_products_alike(RO_FIXED_24);
    return vd_conv2d(b, IMAGE, FILTER, (vd_conv_attr){1, 1, 1, 1});
}
static vd_value max_pool2d(vd_builder *b) {
    return vd_max_pool2d(b, IMAGE, (vd_pool_attr){{2, 2}, {2, 2}, {0, 0}, 0});
}
static vd_value avg_pool2d(vd_builder *b) {
    return vd_avg_pool2d(b, IMAGE, (vd_pool_attr){{2, 2}, {2, 2}, {0, 0}, 0});
}
static vd_value batchnorm(vd_builder *b) {
    return vd_batchnorm(b, IMAGE, ROW, ROW, vd_batch_statistics(b, IMAGE));
}

/* ---- every operator ---- */

typedef struct {
    layer *build; /* a layer whose forward pass has the operator */
    vd_value leaf;
} rule;

/* The layers of operators whose gradient operators.def does not state. */
/* clang-format off */
static const rule rules[RO_OP_END] = {
    [RO_OP_EMBEDDING] = {embedding, TABLE}, [RO_OP_SPLIT_HEADS] = {attention, QKV},
    [RO_OP_JOIN_HEADS] = {attention, QKV}, [RO_OP_TRANSPOSE] = {transpose}, [RO_OP_SLICE] = {slice},
    [RO_OP_PAD] = {pad}, [RO_OP_GATHER] = {gather, TABLE}, [RO_OP_CONCAT_AXIS] = {concat},
    [RO_OP_RESHAPE] = {reshape}, [RO_OP_ROPE] = {rope}, [RO_OP_ADD] = {add}, [RO_OP_SUB] = {sub},
    [RO_OP_MUL] = {mul}, [RO_OP_DIV] = {divided}, [RO_OP_SCALE] = {scale},
    [RO_OP_DIV_CONST] = {mean_axis}, [RO_OP_EXP] = {exponential}, [RO_OP_LOG] = {logarithm},
    [RO_OP_SQRT] = {root}, [RO_OP_RSQRT] = {inverse_root}, [RO_OP_MAX] = {larger},
    [RO_OP_MIN] = {smaller}, [RO_OP_ABS] = {magnitude}, [RO_OP_WHERE] = {chosen},
    [RO_OP_DROPOUT] = {dropout}, [RO_OP_MATMUL] = {product}, [RO_OP_MATMUL_FIXED] = {fixed_product},
    [RO_OP_REDUCE_SUM] = {layernorm}, [RO_OP_REDUCE_MAX] = {softmax},
    [RO_OP_REDUCE_DOT] = {rmsnorm}, [RO_OP_REDUCE_SQDEV] = {layernorm},
    [RO_OP_REDUCE_EXPSUM] = {softmax}, [RO_OP_LN_RSTD] = {layernorm},
    [RO_OP_LAYERNORM] = {layernorm}, [RO_OP_RMSNORM] = {rmsnorm}, [RO_OP_XENT] = {loss},
    [RO_OP_XENT_IGNORE] = {loss_mean}, [RO_OP_SOFTMAX] = {softmax},
    [RO_OP_LOG_SOFTMAX] = {log_softmax}, [RO_OP_ATTN_MAX] = {attention, QKV},
    [RO_OP_ATTN_EXP] = {attention, QKV}, [RO_OP_ATTN_AV] = {attention, QKV},
    [RO_OP_ATTN_L] = {attention, QKV}, [RO_OP_ATTN_OUT] = {attention, QKV},
    [RO_OP_REPEAT_HEADS] = {grouped_attention}, [RO_OP_SUM_AXIS] = {sum_axis},
    [RO_OP_MAX_AXIS] = {max_axis}, [RO_OP_CONV2D] = {conv2d, IMAGE},
    [RO_OP_CONV2D_FIXED] = {fixed_conv2d, IMAGE}, [RO_OP_MAX_POOL2D] = {max_pool2d, IMAGE},
    [RO_OP_AVG_POOL2D] = {avg_pool2d, IMAGE}, [RO_OP_BN_MEAN] = {batchnorm, IMAGE},
    [RO_OP_BN_SQDEV] = {batchnorm, IMAGE}, [RO_OP_BN_MERGE_MEAN] = {batchnorm, IMAGE},
    [RO_OP_BN_MERGE_SQDEV] = {batchnorm, IMAGE}, [RO_OP_BATCHNORM] = {batchnorm, IMAGE},
};
/* clang-format on */

static vd_builder open_with_data(vd_program *p, uint32_t count, const ro_shape *shape) {
    vd_builder b = vd_builder_of(p, &p->step);
    cr_assert(vd_program_take_data(p, count, NULL) == VD_OK);
    for (uint32_t i = 0; i < count; i++)
        p->data[i].tensor.shape = shape[i];
    for (int i = 0; i < LEAVES; i++)
        vd_add_leaf(&b, "leaf", &leaf_shape[i]);
    return b;
}

static vd_builder open_graph(vd_program *p) {
    const ro_shape ids = VD_SHAPE(RO_I32, 2, 4);
    return open_with_data(p, 1, &ids);
}

static bool graph_has(const vd_graph *graph, int op) {
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (vd_node_stored(graph, i)->op == op)
            return true;
    return false;
}

static vd_value build(vd_builder *b, int op, const ro_op_info *info) {
    vd_op node = {.op = op};
    if (!info->gradient)
        return rules[op].build(b);
    test_sample_attributes(op, node.attr);
    return VD_APPLY(b, info->name, node, X);
}

static void expect_rule(int op, const ro_op_info *info) {
    vd_program p = {0};
    vd_builder b = open_graph(&p);
    vd_value out = build(&b, op, info);
    cr_expect(graph_has(&p.step, op), "%s: its layer has no such node", info->name);
    vd_backward(&b, out, 1);
    cr_expect(b.status == VD_OK, "%s: %s", info->name, b.err.text);
    cr_expect(vd_grad(&b, rules[op].leaf) != VD_NONE, "%s: no gradient arrives", info->name);
    vd_builder_free(&b);
    vd_program_free(&p);
}

Test(gradient_rules, every_operator_has_one_or_a_reason_for_having_none) {
    for (int op = 1; op < RO_OP_END; op++) {
        const ro_op_info *info = ro_op_describe(op);
        if (!info)
            continue;
        cr_expect((rules[op].build != NULL) + (info->gradient != RO_OP_NONE) +
                          (info->no_gradient != NULL) ==
                      1,
                  "%s: expected one of a layer here, RO_GRADIENT and RO_NO_GRADIENT", info->name);
        if (!info->no_gradient && (rules[op].build || info->gradient))
            expect_rule(op, info);
    }
}

static bool has_attribute(const ro_op_info *info, const ro_attr_info *attr) {
    for (int i = 0; i < info->attr_count; i++)
        if (strcmp(info->attr[i].name, attr->name) == 0)
            return info->attr[i].kind == attr->kind;
    return false;
}

Test(gradient_rules, operators_of_gradients_take_what_the_rule_gives_them) {
    for (int op = 1; op < RO_OP_END; op++) {
        const ro_op_info *info = ro_op_describe(op);
        const ro_op_info *gradient = info ? ro_op_describe(info->gradient) : NULL;
        if (!gradient)
            continue;
        cr_expect(info->max_inputs == 1 && gradient->min_inputs == 2, "%s", info->name);
        cr_expect(gradient->no_gradient && strstr(gradient->no_gradient, "part of a gradient"),
                  "%s", gradient->name);
        for (int i = 0; i < gradient->attr_count; i++)
            cr_expect(has_attribute(info, &gradient->attr[i]), "%s has no attribute %s", info->name,
                      gradient->attr[i].name);
    }
}

/* Attributes are copied by name, since their positions may differ. */
Test(gradient_rules, attributes_reach_the_gradient) {
    vd_program p = {0};
    vd_builder b = open_graph(&p);
    vd_backward(&b, vd_leaky_relu(&b, X, 0.375f), 1);
    const vd_node *last = vd_node_stored(&p.step, p.step.node_count - 1);
    cr_expect(last->op == RO_OP_LEAKY_RELU_GRAD);
    cr_expect(last->attr[RO_LEAKY_RELU_GRAD_SLOPE] == ro_attr_f32(0.375f));
    vd_builder_free(&b);
    vd_program_free(&p);
}

/* ---- different products forward and backward ---- */

static const vd_products mixed = {RO_FIXED_16, 0, RO_FIXED_24};

static int64_t bits_of(const vd_node *n) {
    switch (n->op) {
    case RO_OP_MATMUL: return 0;
    case RO_OP_MATMUL_FIXED: return n->attr[RO_MATMUL_FIXED_BITS];
    case RO_OP_CONV2D:
    case RO_OP_CONV2D_DX:
    case RO_OP_CONV2D_DW:
    case RO_OP_CONV2D_FIXED:
    case RO_OP_CONV2D_FIXED_DX:
    case RO_OP_CONV2D_FIXED_DW: return n->attr[RO_CONV_FIXED_BITS];
    default: return -1;
    }
}

/* Expects the products of a graph in this order: forward, gradient of x, gradient of the
 * weights. */
static void expect_mixed(layer *of) {
    const int64_t expected[] = {mixed.forward, mixed.gradient_x, mixed.gradient_w};
    vd_program p = {0};
    vd_builder b = open_graph(&p);
    int count = 0;
    b.products = mixed;
    vd_backward(&b, of(&b), 1);
    cr_assert(b.status == VD_OK, "%s", b.err.text);
    for (uint32_t i = 0; i < p.step.node_count; i++) {
        const int64_t bits = bits_of(vd_node_stored(&p.step, i));
        if (bits < 0)
            continue;
        cr_assert_lt(count, 3);
        cr_expect_eq(bits, expected[count], "product %d has %lld bits", count, (long long)bits);
        count++;
    }
    cr_expect_eq(count, 3);
    vd_builder_free(&b);
    vd_program_free(&p);
}

static vd_value product_of_rows(vd_builder *b) {
    return vd_project_rows(b, X, TABLE);
}

Test(gradient_rules, gradients_have_products_of_their_own) {
    expect_mixed(product);
    expect_mixed(product_of_rows);
    expect_mixed(conv2d);
}

/* 16-bit weights are widened to f32 if one of the products that read them is fixed. */
static void expect_widened(vd_products products, bool widened) {
    const ro_shape table = {RO_BF16, 2, {8, 8}};
    vd_program p = {0};
    vd_builder b = open_with_data(&p, 1, &table);
    b.products = products;
    vd_backward(&b, vd_project(&b, X, vd_data_value(&b, 0)), 1);
    cr_expect(b.status == VD_OK, "%s", b.err.text);
    cr_expect_eq(graph_has(&p.step, RO_OP_CAST), widened);
    vd_builder_free(&b);
    vd_program_free(&p);
}

Test(gradient_rules, weights_of_16_bits_are_widened_for_fixed_products_alone) {
    expect_widened((vd_products){0, 0, RO_FIXED_16}, false);
    expect_widened((vd_products){0, RO_FIXED_16, 0}, true);
    expect_widened((vd_products){RO_FIXED_16, 0, 0}, true);
}

/* ---- what has none ---- */

static void expect_refused(vd_record record, const char *why) {
    vd_program p = {0};
    vd_builder b = open_graph(&p);
    record.out = vd_relu(&b, X);
    record.in[0] = X;
    b.tape_count = 0; /* drops relu's own record */
    vd_tape_put(&b, record);
    vd_backward(&b, record.out, 1);
    cr_expect(b.status == VD_ERR_USAGE, "accepted: %s", why);
    cr_expect(strstr(b.err.text, why), "\"%s\" lacks \"%s\"", b.err.text, why);
    vd_builder_free(&b);
    vd_program_free(&p);
}

static void expect_refused_operator(int op, const char *name, const char *why) {
    const vd_record record = {.layer = VD_LAYER_OPERATOR, .number = op};
    expect_refused(record, name);
    expect_refused(record, why);
}

Test(gradient_rules, operator_without_one_is_an_error_when_the_graph_is_built) {
    for (int op = 1; op < RO_OP_END; op++)
        if (ro_op_describe(op) && ro_op_describe(op)->no_gradient)
            expect_refused_operator(op, ro_op_describe(op)->name, ro_op_describe(op)->no_gradient);
    expect_refused_operator(RO_OP_ADD, "add", "layer of its own");
    expect_refused_operator(RO_OP_END, "unknown", "no such number");
    expect_refused_operator(-1, "unknown", "no such number");
}

/* The built-in rule would pass the gradient to the second input only. */
Test(gradient_rules, operator_that_is_applied_needs_one) {
    vd_program p = {0};
    vd_builder b = open_graph(&p);
    const ro_shape shape = leaf_shape[X];
    const vd_value data = vd_emit(&b, "data", (vd_op){.op = RO_OP_FILL, .shape = &shape}, 0, NULL);
    const vd_value out = VD_APPLY(&b, "sum", ((vd_op){.op = RO_OP_ADD}), data, X);
    cr_assert(b.status == VD_OK, "%s", b.err.text);
    vd_backward(&b, out, 1);
    cr_expect(b.status == VD_ERR_USAGE);
    cr_expect(strstr(b.err.text, "(add)"), "%s", b.err.text);
    vd_builder_free(&b);
    vd_program_free(&p);
}

Test(gradient_rules, layer_without_one_is_an_error_when_the_graph_is_built) {
    expect_refused((vd_record){.layer = (vd_layer)(VD_LAYER_CAST + 1)}, "layer");
}

/* ---- what is not trained ---- */

enum { FROZEN_TABLE, FROZEN_ROW, FROZEN_X, FROZEN_IMAGE, FROZEN_FILTER, FROZEN };

static const ro_shape frozen_shape[FROZEN] = {
    F(2, 8, 8), F(1, 8), F(3, 2, 4, 8), F(4, 2, 8, 8, 8), F(4, 3, 3, 8, 8),
};

static vd_builder open_frozen(vd_program *p) {
    return open_with_data(p, FROZEN, frozen_shape);
}

/* Expects exactly these nodes in the backward pass, by their names. */
static void expect_backward(vd_builder *b, vd_value loss, const char *expected) {
    char got[512] = "";
    const uint32_t forward = b->graph->node_count;
    vd_backward(b, loss, 1);
    cr_assert(b->status == VD_OK, "%s", b->err.text);
    for (uint32_t i = forward + 1; i < b->graph->node_count; i++) { /* starts after d_loss */
        strncat(got, vd_node_name(b->graph, i).text, sizeof got - strlen(got) - 1);
        strncat(got, " ", sizeof got - strlen(got) - 1);
    }
    cr_expect_str_eq(got, expected);
    vd_builder_free(b);
}

typedef vd_value frozen_layer(vd_builder *b, const vd_value *data);

static vd_value frozen_weight(vd_builder *b, const vd_value *data) {
    return vd_linear(b, X, data[FROZEN_TABLE], data[FROZEN_ROW]);
}
static vd_value frozen_input(vd_builder *b, const vd_value *data) {
    return vd_linear(b, data[FROZEN_X], TABLE, ROW);
}
static vd_value frozen_below(vd_builder *b, const vd_value *data) {
    return vd_mul(b, "mul", vd_gelu(b, vd_relu(b, data[FROZEN_X])), ROW);
}
static vd_value frozen_norm(vd_builder *b, const vd_value *data) {
    return vd_layernorm(b, X, data[FROZEN_ROW], data[FROZEN_ROW], 1e-5f);
}
static vd_value normed_data(vd_builder *b, const vd_value *data) {
    return vd_layernorm(b, data[FROZEN_X], ROW, data[FROZEN_ROW], 1e-5f);
}
static vd_value frozen_rms(vd_builder *b, const vd_value *data) {
    return vd_rmsnorm(b, X, data[FROZEN_ROW], 1e-5f);
}
static vd_value frozen_factor(vd_builder *b, const vd_value *data) {
    return vd_div(b, "div",
                  vd_sub(b, "sub", vd_mul(b, "mul", X, data[FROZEN_ROW]), data[FROZEN_ROW]),
                  data[FROZEN_ROW]);
}
static vd_value frozen_filter(vd_builder *b, const vd_value *data) {
    return vd_conv2d(b, IMAGE, data[FROZEN_FILTER], (vd_conv_attr){1, 1, 1, 1});
}
static vd_value frozen_image(vd_builder *b, const vd_value *data) {
    return vd_conv2d(b, data[FROZEN_IMAGE], FILTER, (vd_conv_attr){1, 1, 1, 1});
}
static vd_value frozen_concat(vd_builder *b, const vd_value *data) {
    return vd_concat(b, "concat", 1, 2, (vd_value[]){data[FROZEN_X], X});
}

Test(gradient_rules, no_node_is_emitted_for_what_is_not_trained) {
    static const struct {
        frozen_layer *build;
        const char *backward;
    } rows[] = {
        {frozen_weight, "d_input "},       {frozen_input, "d_bias d_weight "},
        {frozen_below, "d_right d_bias "}, {frozen_norm, "d_sum_g d_sum_gx d_input "},
        {normed_data, "d_gamma "},         {frozen_rms, "d_sum_gx d_input "},
        {frozen_factor, "d_left d_left "}, {frozen_filter, "d_input "},
        {frozen_image, "d_weight "},       {frozen_concat, "d_concat "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        vd_program p = {0};
        vd_builder b = open_frozen(&p);
        vd_value data[FROZEN];
        for (uint32_t k = 0; k < FROZEN; k++)
            data[k] = vd_data_value(&b, k);
        expect_backward(&b, rows[i].build(&b, data), rows[i].backward);
        vd_program_free(&p);
    }
}

Test(gradient_rules, frozen_values_have_no_gradient) {
    vd_program p = {0};
    vd_builder b = open_frozen(&p);
    const vd_value weight = vd_data_value(&b, FROZEN_TABLE);
    vd_backward(&b, vd_project(&b, X, weight), 1);
    cr_expect(vd_grad(&b, weight) == VD_NONE);
    cr_expect(vd_grad(&b, X) != VD_NONE);
    vd_builder_free(&b);
    vd_program_free(&p);
}
