/* This file estimates the bytes that a run takes on disk and beside its tensors. */
#include "verde/exec/estimate.h"

#include "repops/op_movement.h"
#include "verde/exec/journal.h"
#include "verde/exec/losses.h"

/* Adds without overflow: foreign programs may have 2^20 tensors of 2^40 elements. */
static uint64_t add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t vd_estimate_shape(const ro_shape *shape) {
    uint64_t bytes = ro_dtype_size(shape->dtype);
    for (int i = 0; i < shape->ndim; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)shape->dim[i], &bytes))
            return UINT64_MAX;
    return bytes;
}

static uint64_t state_bytes(const vd_program *program) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->leaf_count; i++)
        bytes = add(bytes, vd_estimate_shape(&program->leaf[i].shape));
    return bytes;
}

uint64_t vd_estimate_disk(const vd_program *program, int64_t keep) {
    const uint64_t leaves = vd_run_leaves(program), all = add(leaves, 1);
    const uint64_t kept = keep > 0 && (uint64_t)keep < leaves ? (uint64_t)keep + 1 : all;
    uint64_t bytes;
    return __builtin_mul_overflow(kept, state_bytes(program), &bytes) ? UINT64_MAX : bytes;
}

static uint64_t multiply(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

uint64_t vd_estimate_beside(const vd_program *program, uint64_t program_bytes) {
    enum { HEAD = 4096, LEAF = 2 * (VD_NAME_SIZE + 3 * VD_HASH_SIZE), BLOCK = 1 << 20 };
    const uint64_t hashes = multiply(state_bytes(program) / BLOCK + 1, VD_HASH_SIZE);
    const uint64_t losses = multiply((uint64_t)program->steps, VD_LOSSES_STEP_BYTES);
    const uint64_t states =
        multiply(vd_run_leaves(program), 2 * VD_RUN_STATE_BYTES + VD_CHECKPOINT_BYTES);
    const uint64_t leaves = multiply(program->leaf_count, LEAF);
    return add(add(add(program_bytes, HEAD), add(losses, states)), add(leaves, hashes));
}

/* Bytes that a step writes of a leaf: only rows, if they are put into the leaf as it was. */
static uint64_t written_bytes(const vd_program *program, uint32_t leaf) {
    enum { PLACE = 4 + 8 + 8 };
    const vd_graph *g = &program->step;
    const uint32_t sources = vd_source_count(program, g), value = g->output[leaf];
    const uint32_t node = value - sources;
    const vd_node *n = value >= sources ? vd_node_stored(g, node) : NULL;
    uint64_t places = 1;
    if (!n || n->op != RO_OP_PUT_ROWS || vd_node_input(g, node, 0) != leaf)
        return add(vd_estimate_shape(&program->leaf[leaf].shape), PLACE);
    for (int64_t i = 0; i < vd_node_attr(g, node, RO_PUT_ROWS_AXIS) && i < n->shape.ndim; i++)
        places = multiply(places, (uint64_t)n->shape.dim[i]);
    return add(vd_estimate_shape(vd_value_shape(program, g, vd_node_input(g, node, 1))),
               multiply(places, PLACE));
}

uint64_t vd_estimate_journal(const vd_program *program) {
    enum { HEAD = 64, RECORD = 8 + 8 + 4 + 2 * VD_HASH_SIZE };
    uint64_t step = RECORD, all;
    for (uint32_t i = 0; i < program->leaf_count; i++)
        step = add(step, written_bytes(program, i));
    all = add(multiply(step, (uint64_t)program->steps), HEAD + RECORD);
    return add(all, add(state_bytes(program), multiply(program->leaf_count, 4 + 8 + 8)));
}
