/* Programs with many data tensors: their bytes, what is refused, and a run that reads them all. */
#include "repops/op_movement.h"
#include "tests/support/dispute.h"
#include "verde/exec/state_proof.h"
#include "verde/graph/build.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 300 };

static const ro_shape cell = {RO_F32, 1, {2}};

static void add_data(vd_program *p, uint32_t count) {
    cr_assert(vd_program_take_data(p, count, NULL) == VD_OK);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(p->data[i].tensor.name, VD_NAME_SIZE, "shard.%u", i);
        p->data[i].tensor.shape = cell;
        p->data[i].root[0] = (uint8_t)i;
        p->data[i].root[1] = (uint8_t)(i >> 8);
    }
}

/* The state is a sum that starts from zeros. Each step adds every data tensor to it. */
static vd_program program_of(uint32_t count) {
    vd_program p = {.steps = 2, .checkpoint_interval = 1};
    vd_err err;
    add_data(&p, count);
    vd_builder init = vd_builder_of(&p, &p.init), step = vd_builder_of(&p, &p.step);
    vd_value sum = vd_add_leaf(&init, "sum", &cell);
    p.init.output = calloc(1, sizeof *p.init.output);
    p.step.output = calloc(1, sizeof *p.step.output);
    p.init.output[0] = vd_emit(&init, "zero", (vd_op){RO_OP_FILL, {0}, &cell}, 0, NULL);
    for (uint32_t i = 0; i < count; i++)
        sum = vd_add(&step, "add", sum, vd_data_value(&step, i));
    p.step.output[0] = sum;
    cr_assert(init.status == VD_OK && step.status == VD_OK, "%s%s", init.err.text, step.err.text);
    cr_assert(vd_program_validate(&p, &err) == VD_OK, "%s", err.text);
    vd_builder_free(&init);
    vd_builder_free(&step);
    return p;
}

static vd_buf bytes_of(const vd_program *p) {
    vd_buf bytes = {0};
    vd_program_encode(p, &bytes);
    cr_assert(vd_buf_ok(&bytes));
    return bytes;
}

Test(program_data, many_tensors_come_back_in_order) {
    vd_program p = program_of(MANY), again;
    vd_buf bytes = bytes_of(&p);
    vd_err err;
    cr_assert(vd_program_decode(bytes.data, bytes.size, &again, &err) == VD_OK, "%s", err.text);
    cr_assert_eq(again.data_count, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert(strcmp(again.data[i].tensor.name, p.data[i].tensor.name) == 0 &&
                      memcmp(again.data[i].root, p.data[i].root, sizeof p.data[i].root) == 0,
                  "tensor %u", i);
    vd_buf_free(&bytes);
    vd_program_free(&again);
    vd_program_free(&p);
}

/* Expects that a number of data tensors or leaves is refused for which the bytes do not suffice. */
static void expect_refused_count(uint32_t count, bool leaves) {
    vd_program p = program_of(1), again;
    vd_buf bytes = bytes_of(&p);
    vd_err err;
    const size_t header = 2 + 13 + 2 + 2 + 3 * 8, data = 4 + (2 + 7) + 2 + 8 + 32;
    const size_t at = header + (leaves ? data : 0);
    for (int i = 0; i < 4; i++)
        bytes.data[at + (size_t)i] = (uint8_t)(count >> 8 * i);
    const uint32_t most = leaves ? VD_LEAVES_MAX : VD_DATA_MAX;
    const vd_status status = vd_program_decode(bytes.data, bytes.size, &again, &err);
    cr_expect(status == (count > most ? VD_ERR_VERSION : VD_ERR_PEER), "%u", count);
    cr_expect(again.data == NULL && again.leaf == NULL, "a refused program is empty");
    cr_expect(strstr(err.text, count > most ? "; this verde reads at most"
                               : leaves     ? "byte 102"
                                            : "byte 47"),
              "%u: %s", count, err.text);
    vd_buf_free(&bytes);
    vd_program_free(&p);
}

Test(program_data, counts_beyond_the_bytes_are_refused_before_memory_is_taken) {
    const uint32_t count[] = {VD_DATA_MAX, VD_DATA_MAX + 1, UINT32_MAX};
    for (size_t i = 0; i < sizeof count / sizeof count[0]; i++) {
        expect_refused_count(count[i], false);
        expect_refused_count(count[i], true);
    }
}

/* ---- the largest number of data tensors and leaves ---- */

/* One node computes all leaves. */
static vd_program largest_program(void) {
    vd_program p = {.steps = 1, .checkpoint_interval = 1, .leaf_count = VD_LEAVES_MAX};
    vd_err err;
    add_data(&p, VD_DATA_MAX);
    p.leaf = calloc(p.leaf_count + 1, sizeof *p.leaf);
    p.init.output = calloc(p.leaf_count, sizeof *p.init.output);
    p.step.output = calloc(p.leaf_count, sizeof *p.step.output);
    cr_assert(p.leaf && p.init.output && p.step.output);
    for (uint32_t i = 0; i < p.leaf_count; i++) {
        snprintf(p.leaf[i].name, VD_NAME_SIZE, "l%u", i);
        p.leaf[i].shape = cell;
    }
    vd_builder init = vd_builder_of(&p, &p.init), step = vd_builder_of(&p, &p.step);
    const vd_op fill = {RO_OP_FILL, {0}, &cell};
    const vd_value zero = vd_emit(&init, "zero", fill, 0, NULL);
    const vd_value next = vd_emit(&step, "zero", fill, 0, NULL);
    for (uint32_t i = 0; i < p.leaf_count; i++) {
        p.init.output[i] = zero;
        p.step.output[i] = next;
    }
    p.init.loss = p.step.loss = UINT32_MAX;
    vd_builder_free(&init);
    vd_builder_free(&step);
    cr_assert(vd_program_validate(&p, &err) == VD_OK, "%s", err.text);
    return p;
}

/* The proof of the last state, with an arbitrary hash for S_0. */
static vd_state_proof proof_of(vd_program *p) {
    vd_state_proof proof = {.program = *p, .step = 1};
    vd_hash state[2] = {{{1}}};
    vd_tree tree;
    proof.tensor = calloc(p->leaf_count, sizeof *proof.tensor);
    cr_assert(proof.tensor && vd_program_hash(p, &proof.program_hash, NULL) == VD_OK);
    cr_assert(vd_state_commit(&proof.program_hash, 1, proof.tensor, p->leaf_count, &state[1],
                              NULL) == VD_OK);
    cr_assert(vd_tree_of_hashes(&tree, state, 2, NULL) == VD_OK);
    cr_assert(vd_tree_root(&tree, &proof.run_root, NULL) == VD_OK);
    cr_assert(vd_tree_prove(&tree, 1, &proof.path, NULL) == VD_OK);
    vd_tree_free(&tree);
    return proof;
}

Test(program_data, the_most_leaves_and_tensors_are_read_and_proven) {
    vd_program p = largest_program(), again;
    vd_buf bytes = bytes_of(&p), text = {0};
    vd_err err = {0};
    cr_assert(vd_program_decode(bytes.data, bytes.size, &again, &err) == VD_OK, "%s", err.text);
    cr_expect(again.leaf_count == 1 << 18 && again.data_count == 1 << 17);
    vd_program_free(&again);
    vd_state_proof proof = proof_of(&p), read;
    cr_assert(vd_state_proof_put(&proof, &text, &err) == VD_OK, "%s", err.text);
    cr_expect(text.size < 70 * (size_t)VD_LEAVES_MAX + (bytes.size + 2) / 3 * 4 + 1000, "%zu",
              text.size);
    cr_assert(vd_state_proof_parse(text.data, text.size, &read, &err) == VD_OK, "%s", err.text);
    cr_expect(vd_hash_equal(&read.run_root, &proof.run_root));
    vd_state_proof_free(&read);
    vd_state_proof_free(&proof); /* also frees the program */
    vd_buf_free(&text);
    vd_buf_free(&bytes);
}

Test(program_data, a_step_reads_every_tensor) {
    vd_program p = program_of(MANY);
    vd_state state;
    vd_err err;
    float tensor[MANY][2];
    const void *data[MANY];
    double expected[2] = {0, 0};
    for (int i = 0; i < MANY; i++) {
        data[i] = tensor[i];
        for (int k = 0; k < 2; k++)
            expected[k] += tensor[i][k] = (float)(i + 1) * (float)(k + 1); /* exact sums */
    }
    vd_exec exec = {.program = &p, .data = data};
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &exec.ro) ==
              RO_OK);
    cr_assert(vd_exec_init(&exec, NULL, &state, &err) == VD_OK, "%s", err.text);
    for (int step = 1; step <= 2; step++) {
        cr_assert(vd_exec_step(&exec, NULL, &state, NULL, &err) == VD_OK, "%s", err.text);
        const float *sum = state.tensor[0];
        for (int k = 0; k < 2; k++)
            cr_expect(sum[k] == step * expected[k], "step %d: %g", step, (double)sum[k]);
    }
    vd_state_free(&state);
    ro_ctx_destroy(exec.ro);
    vd_program_free(&p);
}
