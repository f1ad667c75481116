/* Training with fixed products: operands that stay packed within a step give the same states as
 * operands packed for each product, and nothing stays packed after the step. */
#include "tests/support/dispute.h"
#include "verde/exec/kept_weights.h"

#include <criterion/criterion.h>

enum { STEPS = 2 };

static vd_hash run(const test_job *job, const vd_exec *exec) {
    vd_state state;
    vd_hash last;
    vd_err err = {0};
    cr_assert(vd_exec_init(exec, NULL, &state, &err) == VD_OK, "%s", err.text);
    while (state.step < STEPS)
        cr_assert(vd_exec_step(exec, NULL, &state, NULL, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_state_hash(exec->ro, &job->program, &job->hash, &state, NULL, &last, &err) ==
              VD_OK);
    vd_state_free(&state);
    return last;
}

/* `packings` is the expected number in a step. */
static void check(vd_model_kind kind, int bits, const char *backend, uint64_t packings) {
    test_job job;
    ro_ctx *ro;
    vd_err err = {0};
    test_job_open_fixed(&job, kind, STEPS, bits);
    const ro_options options = {.size = sizeof options, .threads = 2, .backend = backend};
    cr_assert(ro_ctx_create(&options, &ro) == RO_OK);
    vd_exec kept = {.program = &job.program, .ro = ro, .data = job.data};
    cr_assert(vd_exec_place(&kept, &err) == VD_OK, "%s", err.text);
    vd_exec anew = kept, alone;
    anew.kept = NULL;
    alone = anew;
    alone.unfused = true;
    const vd_hash want = run(&job, &alone), first = run(&job, &anew), second = run(&job, &kept);
    cr_expect(vd_hash_equal(&want, &first), "model %d, %d bits: packed anew", kind, bits);
    cr_expect(vd_hash_equal(&want, &second), "model %d, %d bits: packed once", kind, bits);
    cr_expect_eq(vd_kept_weights_packings(kept.kept), STEPS * packings, "model %d: %llu", kind,
                 (unsigned long long)vd_kept_weights_packings(kept.kept));
    cr_expect_eq(vd_kept_weights_bytes(kept.kept), 0);
    vd_exec_drop(&kept);
    ro_ctx_destroy(ro);
    test_job_close(&job);
}

/* Four layers and the head. Two micro-batches read their weights forward and backward. */
Test(kept_operands, weights_are_packed_once_for_all_micro_batches) {
    enum { PACKINGS = 2 * 5 };
    for (int bits = RO_FIXED_16; bits <= RO_FIXED_24; bits += RO_FIXED_24 - RO_FIXED_16) {
        check(VD_MODEL_GPT2, bits, NULL, PACKINGS);
        check(VD_MODEL_GPT2, bits, "scalar", PACKINGS);
    }
}

/* Eight layers with weights. In each micro-batch, q, k and v share one x, and gate and up another.
 * Both are read forward, and transposed for the gradients of the weights. */
Test(kept_operands, x_is_packed_once_for_layers_that_read_the_same) {
    enum { PACKINGS = 2 * 8 + 2 * 4 };
    for (int bits = RO_FIXED_16; bits <= RO_FIXED_24; bits += RO_FIXED_24 - RO_FIXED_16) {
        check(VD_MODEL_LLAMA, bits, NULL, PACKINGS);
        check(VD_MODEL_LLAMA, bits, "scalar", PACKINGS);
    }
}

Test(kept_operands, products_of_f32_have_none) {
    check(VD_MODEL_GPT2, 0, NULL, 0);
}
