/* A one-layer recurrent net with other weights at each time step, and its backward pass: loops
 * whose inputs differ by a slope, which are of kind 3 in PROTOCOL.md section 1.5. */
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "repops/op_function.h"
#include "repops/op_product.h"
#include "tests/support/dispute.h"
#include "tests/support/shifted.h"
#include "verde/graph/build.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 4 };

static const ro_shape row = {RO_F32, 2, {1, SIZE}}, square = {RO_F32, 2, {SIZE, SIZE}};

/* Declares the inputs of all time steps, a weight for each, and a row that the loops do not
 * read. */
static void declare(vd_builder *b, uint32_t times) {
    const ro_shape inputs = VD_SHAPE(RO_F32, times, SIZE);
    char name[32];
    vd_add_leaf(b, "inputs", &inputs);
    for (uint32_t i = 0; i < times; i++) {
        snprintf(name, sizeof name, "weight.%u", i);
        vd_add_leaf(b, name, &square);
    }
    vd_add_leaf(b, "row", &row);
}

/* Declares data tensors: every second one belongs to a time step; the others are only read by the
 * initialisation. */
static void declare_data(vd_program *p, uint32_t times) {
    cr_assert(vd_program_take_data(p, 2 * times, NULL) == VD_OK);
    for (uint32_t i = 0; i < p->data_count; i++) {
        snprintf(p->data[i].tensor.name, VD_NAME_SIZE, "bias.%u", i);
        p->data[i].tensor.shape = row;
        p->data[i].root[0] = (uint8_t)i;
    }
}

static uint32_t *outputs(uint32_t count) {
    uint32_t *output = calloc(count, sizeof *output);
    cr_assert(output);
    return output;
}

static void build_init(vd_builder *b, uint32_t times) {
    const vd_program *p = b->program;
    const vd_op zeros = {RO_OP_FILL, {0}, &row};
    vd_value sum = vd_emit(b, "row", zeros, 0, NULL);
    b->graph->output = outputs(p->leaf_count);
    for (uint32_t i = 0; i <= times; i++) {
        const vd_op normal = {RO_OP_NORMAL, {5, i, 0, ro_attr_f32(1)}, &p->leaf[i].shape};
        b->graph->output[i] = vd_emit(b, p->leaf[i].name, normal, 0, NULL);
    }
    for (uint32_t i = 1; i < p->data_count; i += 2)
        sum = VD_EMIT(b, "row", ((vd_op){.op = RO_OP_ADD}), sum, vd_data_value(b, i));
    b->graph->output[times + 1] = sum;
}

void test_shift(vd_graph *g, vd_value value, uint32_t input, int64_t slope) {
    const vd_node *n = &g->stored[vd_node_spot(g, value - g->sources).stored];
    const uint32_t edge = n->first_input + input;
    vd_shifted *grown = realloc(g->shifted, (g->shifted_count + 1) * sizeof *grown);
    cr_assert(grown && g->stored_from[edge] == VD_FROM_VALUE);
    g->shifted = grown;
    grown[g->shifted_count] = (vd_shifted){
        g->stored_edge[edge], vd_repeat_of(g, (uint32_t)(n - g->stored))->count, slope};
    g->stored_from[edge] = VD_FROM_SHIFTED;
    g->stored_edge[edge] = g->shifted_count++;
}

static vd_op product(int64_t trans) {
    return (vd_op){RO_OP_MATMUL, {0, trans, ro_attr_f32(1), 256}, NULL};
}

/* The last layer's values, before and after its activation. */
typedef struct {
    vd_value sum, result;
} layer;

/* A time step's layer is one fused function, whose pre-activation the backward pass reads. */
static layer build_forward(vd_builder *b, uint32_t times) {
    const vd_op zeros = {RO_OP_FILL, {0}, &row}, gelu = {.op = RO_OP_GELU}, add = {.op = RO_OP_ADD};
    const vd_value begin = vd_emit(b, "begin", zeros, 0, NULL);
    vd_repeat_begin(b, times);
    const vd_value now = vd_slice(b, "m\1.now", 0, (vd_stretch){0, 0, 1, 1});
    vd_move(b, now, RO_SLICE_START, 1);
    vd_value biased = now;
    if (b->program->data_count)
        biased = VD_EMIT(b, "m\1.biased", add, now, vd_data_value(b, 0));
    const vd_value before = VD_EMIT(b, "m\1.before", product(0), begin, 1);
    const vd_value sum = VD_EMIT(b, "m\1.sum", add, before, biased);
    const vd_value result = VD_EMIT(b, "m\1.result", gelu, sum);
    vd_repeat_carry(b, begin, result);
    vd_repeat_end(b);
    test_shift(b->graph, before, 1, 1);
    if (b->program->data_count)
        test_shift(b->graph, biased, 1, 2);
    return (layer){vd_repeat_last(b, sum), vd_repeat_last(b, result)};
}

static void build_step(vd_builder *b, uint32_t times) {
    const vd_op ones = {RO_OP_FILL, {ro_attr_f32(1)}, &row}, gelu = {.op = RO_OP_GELU_GRAD};
    const layer last = build_forward(b, times);
    const vd_value weight = times;
    const vd_value end = vd_emit(b, "end", ones, 0, NULL);
    const int64_t apart = b->graph->repeat->size;
    b->graph->output = outputs(b->program->leaf_count);
    vd_repeat_begin(b, times);
    const vd_value slope = VD_EMIT(b, "m\1.slope", gelu, last.sum, end);
    const vd_value change = VD_EMIT(b, "m\1.change", product(1), last.result, slope);
    const vd_value next = VD_EMIT(b, "m\1.next", ((vd_op){.op = RO_OP_SUB}), weight, change);
    const vd_value back = VD_EMIT(b, "m\1.back", product(2), slope, weight);
    vd_repeat_carry(b, end, back);
    vd_repeat_end(b);
    test_shift(b->graph, slope, 0, -apart);
    test_shift(b->graph, change, 0, -apart);
    test_shift(b->graph, next, 0, -1);
    test_shift(b->graph, back, 1, -1);
    const uint32_t stored = vd_node_spot(b->graph, next - b->graph->sources).stored;
    for (uint32_t m = 0; m < times; m++)
        b->graph->output[times - m] = b->graph->sources + vd_node_number(b->graph, stored, m);
    b->graph->output[0] = vd_scale(b, "inputs", 0, 0.5f);
    b->graph->output[times + 1] = vd_scale(b, "row", times + 1, 0.5f);
    b->graph->loss = UINT32_MAX;
}

void test_shifted_program(vd_program *p, int64_t steps, uint32_t times, bool biased) {
    vd_err err = {0};
    *p = (vd_program){.seed = 5, .steps = steps, .checkpoint_interval = 1};
    if (biased)
        declare_data(p, times);
    vd_builder init = vd_builder_of(p, &p->init);
    declare(&init, times);
    build_init(&init, times);
    vd_builder step = vd_builder_of(p, &p->step);
    build_step(&step, times);
    cr_assert(init.status == VD_OK && step.status == VD_OK, "%s%s", init.err.text, step.err.text);
    cr_assert(vd_program_validate(p, &err) == VD_OK, "%s", err.text);
    vd_builder_free(&init);
    vd_builder_free(&step);
}

void test_job_open_shifted(test_job *job, int64_t steps, uint32_t times) {
    vd_err err = {0};
    *job = (test_job){0};
    test_shifted_program(&job->program, steps, times, false);
    cr_assert(vd_program_hash(&job->program, &job->hash, &err) == VD_OK, "%s", err.text);
}
