/* Honest runs of whole models: by the reference every value is possible, and the log names it where
 * it must (PROTOCOL.md 12.1, 12.6). */
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum { STEPS = 2, APART = 13 }; /* elements checked: every 13th, and all logged ones */

typedef struct {
    const char *profile;
    int64_t elements, several, unknown;
} looked;

static void look(looked *l, const vd_free_node *n, const vd_log_section *section, int64_t element) {
    const vd_possible p = vd_free_possible(n, element);
    const uint32_t word = vd_float_word(n->output[element]);
    const char *op = ro_op_describe(n->call->op)->name;
    l->elements++;
    l->unknown += !(p.y.bound < INFINITY) && p.y.value - p.y.value == 0;
    cr_assert(vd_possible_has(&p, word), "%s, %s, step %d, element %lld: %08x, %a +- %a",
              l->profile, op, (int)n->step, (long long)element, word, p.y.value, p.y.bound);
    if (!vd_possible_several(&p))
        return;
    const vd_told told = vd_possible_told(&p, section, 0, element);
    const int64_t place = vd_possible_place(&p, word);
    l->several++;
    cr_assert(told.recorded && !told.missing && told.low == place && told.high == place,
              "%s, %s, step %d, element %lld: %08x is not what the log names", l->profile, op,
              (int)n->step, (long long)element, word);
}

static vd_status ran(void *user, const vd_free_node *n, vd_err *err) {
    looked *l = user;
    const ro_free_report *r = n->report;
    const vd_log_section section = {.call = (ro_close_call *)(uintptr_t)r->call,
                                    .count = r->call_count};
    (void)err;
    for (int64_t i = n->node % APART; i < ro_shape_numel(n->shape); i += APART)
        look(l, n, &section, i);
    for (int64_t i = 0; i < r->call_count; i++)
        look(l, n, &section, r->call[i].element);
    return VD_OK;
}

static looked train(const test_job *job, const ro_profile *profile, int bits) {
    ro_ctx *ro;
    vd_err err = {0};
    vd_state state;
    looked l = {.profile = profile->name};
    cr_assert(ro_ctx_create(NULL, &ro) == RO_OK);
    const vd_free f = {.profile = profile,
                       .mode = RO_FREE_REPORT,
                       .bits = bits,
                       .ran = ran,
                       .user = &l,
                       .keep_inputs = true};
    vd_free_kernels kernels = {0};
    const vd_exec exec = {.program = &job->program,
                          .ro = ro,
                          .data = job->data,
                          .kernels = vd_free_kernels_open(&kernels, &f)};
    vd_status status = vd_exec_init(&exec, NULL, &state, &err);
    for (int s = 0; s < STEPS && status == VD_OK; s++)
        status = vd_exec_step(&exec, NULL, &state, NULL, &err);
    cr_assert(status == VD_OK, "%s", err.text);
    vd_state_free(&state);
    vd_free_kernels_close(&kernels);
    ro_ctx_destroy(ro);
    return l;
}

static void honest(test_job *job) {
    static const int bits[] = {32, 16, 22};
    const ro_profile *profile;
    int64_t several = 0;
    for (int i = 0; (profile = ro_profile_at(i)); i++) {
        const looked l = train(job, profile, bits[i % 3]);
        cr_expect(l.unknown == 0, "%lld elements without a bound", (long long)l.unknown);
        several += l.several;
    }
    cr_expect(several > 0, "no element had several possible values");
    test_job_close(job);
}

static void honest_model(vd_model_kind kind) {
    test_job job;
    test_job_open(&job, kind, STEPS, STEPS);
    honest(&job);
}

Test(possible_runs, mlp) {
    honest_model(VD_MODEL_MLP);
}
Test(possible_runs, gpt2, .timeout = 300) {
    honest_model(VD_MODEL_GPT2);
}
Test(possible_runs, llama, .timeout = 300) {
    honest_model(VD_MODEL_LLAMA);
}
Test(possible_runs, bert, .timeout = 300) {
    honest_model(VD_MODEL_BERT);
}
Test(possible_runs, resnet, .timeout = 300) {
    honest_model(VD_MODEL_RESNET);
}
Test(possible_runs, many_seeds, .timeout = 300) {
    for (uint64_t seed = 2; seed < 14; seed++) {
        test_job job;
        test_job_open_seed(&job, seed % 2 ? VD_MODEL_GPT2 : VD_MODEL_MLP, STEPS, seed);
        honest(&job);
    }
}
Test(possible_runs, operators_that_no_model_uses) {
    test_job job;
    test_job_open_operators(&job, STEPS);
    honest(&job);
}
