/* A program with the operators that no model uses, and all functions with an operator for their
 * gradient. It learns nothing, but its states depend on all of them, so that a wrong element of any
 * can be disputed. */
#include "repops/op_elementwise.h"
#include "repops/op_image.h"
#include "repops/op_movement.h"
#include "repops/op_reduce.h"
#include "tests/support/dispute.h"
#include "tests/support/numbers.h"
#include "tests/support/sample.h"
#include "verde/graph/functions.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum {
    IMAGES,
    WEIGHTS,
    LOSS,
    CACHE,
    KEPT,
    TOKENS,
    NUMBERS,
    LEAVES,
    ROWS = 18,
    COLS = 7,
    IGNORED = 2
};
/* positions in the cache of a decoded token, heads, and numbers in a head */
enum { PLACES = 9, HEADS = 2, SIZE = 4 };

static void declare(vd_builder *b) {
    const ro_shape shape[LEAVES] = {
        VD_SHAPE(RO_F32, 2, 5, 5, 4),  VD_SHAPE(RO_F32, 6, ROWS),
        VD_SHAPE(RO_F32, 1),           VD_SHAPE(RO_F32, 1, PLACES, HEADS * SIZE),
        VD_SHAPE(RO_I32, HEADS, SIZE), VD_SHAPE(RO_I32, HEADS, 1),
        VD_SHAPE(RO_F32, ROWS, COLS)};
    static const char *const name[LEAVES] = {"images", "weights", "loss",   "cache",
                                             "kept",   "tokens",  "numbers"};
    for (int i = 0; i < LEAVES; i++)
        vd_add_leaf(b, name[i], &shape[i]);
}

static uint32_t *outputs(void) {
    uint32_t *output = calloc(LEAVES, sizeof *output);
    cr_assert(output);
    return output;
}

/* Returns an i32 tensor filled with the number. */
static vd_value number_of(vd_builder *b, ro_shape shape, float number) {
    shape.dtype = RO_F32;
    const vd_op fill = {RO_OP_FILL, {ro_attr_f32(number)}, &shape};
    const vd_op to_integer = {RO_OP_CAST, {RO_I32}, NULL};
    return VD_EMIT(b, "number", to_integer, vd_emit(b, "number", fill, 0, NULL));
}

static void build_init(vd_builder *b) {
    const vd_leaf *leaf = b->program->leaf;
    const int64_t low = ro_attr_f32(-1), high = ro_attr_f32(1);
    const vd_op uniform = {RO_OP_UNIFORM, {5, 1, low, high}, &leaf[IMAGES].shape};
    const vd_op normal = {RO_OP_NORMAL, {5, 2, 0, high}, &leaf[WEIGHTS].shape};
    const vd_op zero = {RO_OP_FILL, {0}, &leaf[LOSS].shape};
    b->graph->output = outputs();
    b->graph->output[IMAGES] = vd_emit(b, "images", uniform, 0, NULL);
    b->graph->output[WEIGHTS] = vd_emit(b, "weights", normal, 0, NULL);
    b->graph->output[LOSS] = vd_emit(b, "loss", zero, 0, NULL);
    const vd_op cache = {RO_OP_FILL, {high}, &leaf[CACHE].shape};
    b->graph->output[CACHE] = vd_emit(b, "cache", cache, 0, NULL);
    b->graph->output[KEPT] = number_of(b, leaf[KEPT].shape, 0);
    b->graph->output[TOKENS] = number_of(b, leaf[TOKENS].shape, 0);
    const vd_op numbers = {RO_OP_FILL, {high}, &leaf[NUMBERS].shape};
    b->graph->output[NUMBERS] = vd_emit(b, "numbers", numbers, 0, NULL);
}

/* Makes for each row a number below ROWS, and a label below COLS. */
static vd_value order_of(vd_builder *b, vd_value *labels) {
    const ro_shape shape = VD_SHAPE(RO_I32, ROWS);
    const vd_op permute = {RO_OP_PERMUTATION, {5, 3}, &shape};
    const vd_op to_float = {RO_OP_CAST, {RO_F32}, NULL}, to_integer = {RO_OP_CAST, {RO_I32}, NULL};
    const vd_value order = VD_EMIT(b, "order", permute, vd_step_value(b));
    const vd_value number = VD_EMIT(b, "number", to_float, order);
    *labels = VD_EMIT(b, "labels", to_integer, vd_div_const(b, "labels", number, 3));
    return order;
}

/* Pooling and movement; returns [ROWS, COLS]. */
static vd_value moved(vd_builder *b, vd_value order) {
    const vd_pool_attr pool = {{2, 2}, {2, 2}, {1, 1}, 0};
    vd_value x = vd_max_pool2d(b, IMAGES, pool);
    x = vd_reshape(b, "rows", x, VD_SHAPE(RO_F32, ROWS, 4));
    x = vd_gather(b, "shuffled", x, order, 0);
    vd_value w = vd_transpose(b, "turned", WEIGHTS, (const int[]){1, 0});
    w = vd_slice(b, "columns", w, (vd_stretch){1, 1, 2, 2});
    w = vd_pad(b, "padded", w, 1, 1, 0);
    return vd_concat(b, "joined", 1, 2, (vd_value[]){x, w});
}

/* Returns x clamped to [-0.25, 2] where that exceeds x / 2 in magnitude, else x / 2. */
static vd_value limited(vd_builder *b, vd_value x) {
    const ro_shape one = VD_SHAPE(RO_F32, 1);
    const vd_op two = {RO_OP_FILL, {ro_attr_f32(2)}, &one};
    const vd_value most = vd_emit(b, "most", two, 0, NULL), small = vd_scale(b, "small", x, 0.5f);
    const vd_value y =
        vd_max(b, "above", vd_min(b, "below", x, most), vd_scale(b, "least", most, -0.125f));
    return vd_where(b, "chosen", vd_compare(b, "less", small, vd_abs(b, y), RO_LESS), y, small);
}

/* Returns a sixteenth of the sum of all functions with an operator for their gradient. */
static vd_value sum_of_functions(vd_builder *b, vd_value x) {
    vd_value sum = x;
    for (int op = 1; op < RO_OP_END; op++) {
        const ro_op_info *info = ro_op_describe(op);
        vd_op node = {.op = op};
        if (!info || !info->gradient)
            continue;
        test_sample_attributes(op, node.attr);
        sum = vd_add(b, "sum", sum, VD_APPLY(b, info->name, node, x));
    }
    return vd_scale(b, "part", sum, 0.0625f);
}

/* sqrt(e) / e + rsqrt(e) * s, e = exp(tanh(s) / 2), s = sum_of_functions(x). */
static vd_value functions(vd_builder *b, vd_value x) {
    const vd_value s = sum_of_functions(b, limited(b, x));
    const vd_value e = vd_exp(b, vd_scale(b, "half", vd_tanh(b, s), 0.5f));
    const vd_value ratio = vd_div(b, "ratio", vd_sqrt(b, e), e);
    return vd_add(b, "sum", ratio, vd_mul(b, "gated", vd_rsqrt(b, e), s));
}

/* Returns the losses of all rows. */
static vd_value losses(vd_builder *b, vd_value x, vd_value labels) {
    const vd_value share = vd_sum_axis(b, vd_softmax(b, x), 0);
    const vd_value most = vd_max_axis(b, x, 0);
    vd_value y = vd_add(b, "shifted", vd_log_softmax(b, vd_add(b, "shifted", x, share)), most);
    return vd_add(b, "losses", vd_xent(b, y, labels), vd_xent_ignore(b, x, labels, IGNORED));
}

/* Updates a leaf: the next state's numbers have 16 bits, stored as f32. */
static vd_value descend(vd_builder *b, vd_value leaf) {
    const vd_op rate = {RO_OP_SCALE, {ro_attr_f32(0.5f)}, NULL};
    const vd_op narrow = {RO_OP_CAST_STOCHASTIC, {5, 6}, NULL}, wide = {RO_OP_CAST, {RO_F32}, NULL};
    const vd_value next = VD_EMIT(b, "next", ((vd_op){.op = RO_OP_SUB}), leaf,
                                  VD_EMIT(b, "change", rate, vd_grad(b, leaf)));
    return VD_EMIT(b, "wide", wide, VD_EMIT(b, "narrow", narrow, next, vd_step_value(b)));
}

/* Returns `to` + x (x^T x) / 2^14, with fixed products of 24 and of 16 bits. */
static vd_value squared(vd_builder *b, vd_value to, vd_value x) {
    b->products = vd_products_alike(RO_FIXED_24);
    const vd_value square = vd_project(b, vd_transpose(b, "turned", x, (const int[]){1, 0}), x);
    b->products = vd_products_alike(RO_FIXED_16);
    const vd_value y = vd_project(b, x, square);
    b->products = vd_products_alike(0);
    return vd_add(b, "moved", to, vd_scale(b, "smaller", y, 0x1p-14f));
}

static vd_value emit_fixed(vd_builder *b, const char *name, int op, int64_t bits,
                           const ro_shape *shape, const vd_value *input) {
    const vd_op node = {op, {1, 1, 1, 1, 1, 1, 1, bits}, shape};
    return vd_emit(b, name, node, 2, input);
}

/* Convolves the images with the weights, and updates both by the result. */
static void convolve(vd_builder *b) {
    const ro_shape filters = VD_SHAPE(RO_F32, 3, 3, 4, 3), *leaf = &b->program->leaf[IMAGES].shape;
    const ro_shape weights = b->program->leaf[WEIGHTS].shape;
    uint32_t *next = b->graph->output;
    const vd_value w = vd_reshape(b, "filters", WEIGHTS, filters);
    const vd_value y =
        emit_fixed(b, "convolved", RO_OP_CONV2D_FIXED, RO_FIXED_24, NULL, (vd_value[]){IMAGES, w});
    const vd_value dx =
        emit_fixed(b, "images", RO_OP_CONV2D_FIXED_DX, RO_FIXED_16, leaf, (vd_value[]){y, w});
    vd_value dw = emit_fixed(b, "weights", RO_OP_CONV2D_FIXED_DW, RO_FIXED_24, &filters,
                             (vd_value[]){IMAGES, y});
    dw = vd_reshape(b, "weights", dw, weights);
    next[IMAGES] = vd_add(b, "moved", next[IMAGES], vd_scale(b, "smaller", dx, 0x1p-10f));
    next[WEIGHTS] = vd_add(b, "moved", next[WEIGHTS], vd_scale(b, "smaller", dw, 0x1p-12f));
}

/* Looks up a token's [HEADS, SIZE] in the cache, whose row is written at position step + 3. */
static vd_value looked_up(vd_builder *b, vd_value at) {
    const vd_op split = {RO_OP_SPLIT_HEADS, {1, 0, HEADS}, NULL};
    vd_value row = vd_slice(b, "row", WEIGHTS, (vd_stretch){0, 2, 1, 1});
    row = vd_slice(b, "row", row, (vd_stretch){1, 5, HEADS * SIZE, 1});
    row = vd_reshape(b, "row", row, VD_SHAPE(RO_F32, 1, 1, HEADS * SIZE));
    const vd_value cache = vd_put_rows(b, "cache", CACHE, row, at, 1);
    const vd_value keys = VD_EMIT(b, "keys", split, cache);
    const vd_value qkv[] = {VD_EMIT(b, "query", split, row), keys, keys};
    b->graph->output[CACHE] = cache;
    return vd_reshape(b, "logits", vd_attention_at(b, qkv, at, 3), VD_SHAPE(RO_F32, HEADS, SIZE));
}

static void generate(vd_builder *b) {
    const vd_value at = vd_iadd(b, "place", vd_step_value(b), number_of(b, VD_SHAPE(RO_I32, 1), 3));
    const vd_value x = looked_up(b, at), key = number_of(b, VD_SHAPE(RO_I32, HEADS, 2), 7);
    const vd_value q =
        vd_weight(b, "weight", x, vd_reduce(b, "max", RO_OP_REDUCE_MAX, SIZE, 1, &x));
    const vd_value some = vd_keep_top(b, "some", q, vd_top_k(b, "top_k", q, 3));
    const vd_value most = vd_keep_top(b, "most", q, vd_top_p(b, "top_p", q, 14 << 20));
    const vd_value words = vd_random_words(b, "words", key, at, 5, 4);
    b->graph->output[KEPT] = vd_iadd(b, "kept", some, most);
    b->graph->output[TOKENS] = vd_draw(b, "token", some, words);
}

static void build_step(vd_builder *b) {
    vd_value labels, order = order_of(b, &labels);
    const vd_value loss = losses(b, functions(b, moved(b, order)), labels);
    b->graph->output = outputs();
    b->graph->output[LOSS] = vd_reduce(b, "loss", RO_OP_REDUCE_SUM, ROWS, 1, &loss);
    b->graph->loss = b->graph->output[LOSS];
    vd_backward(b, loss, 1);
    for (vd_value leaf = 0; leaf < LOSS; leaf++)
        b->graph->output[leaf] = descend(b, leaf);
    b->graph->output[WEIGHTS] = squared(b, b->graph->output[WEIGHTS], WEIGHTS);
    b->graph->output[NUMBERS] = test_numbers(b, NUMBERS, &b->program->leaf[NUMBERS].shape);
    convolve(b);
    generate(b);
}

void test_operators_program(vd_program *p, int64_t steps) {
    vd_err err;
    vd_builder init = vd_builder_of(p, &p->init), step = vd_builder_of(p, &p->step);
    p->seed = 5, p->steps = p->checkpoint_interval = steps;
    declare(&init);
    build_init(&init);
    build_step(&step);
    cr_assert(init.status == VD_OK && step.status == VD_OK, "%s%s", init.err.text, step.err.text);
    cr_assert(vd_program_validate(p, &err) == VD_OK, "%s", err.text);
    vd_builder_free(&init);
    vd_builder_free(&step);
}
