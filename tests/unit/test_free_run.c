/* Training with free kernels: with the reports of one profile, every other gives its states. */
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, NODES_MAX = 4096 };

/* The reports of a run, by step (from -1 on) and node. */
typedef struct {
    ro_close_call *call[STEPS + 1][NODES_MAX];
    int64_t count[STEPS + 1][NODES_MAX];
    uint8_t *symbol[STEPS + 1][NODES_MAX];
    int64_t nodes, calls, corrected;
} record;

static vd_status keep(void *user, const vd_free_node *n, vd_err *err) {
    record *r = user;
    (void)err;
    cr_assert(n->node < NODES_MAX && n->step < STEPS);
    r->nodes++;
    r->corrected += n->report->corrected;
    if (n->rounding->mode == RO_FREE_REPORT && n->report->call_count > 0) {
        const size_t size = (size_t)n->report->call_count * sizeof(ro_close_call);
        r->call[n->step + 1][n->node] = malloc(size);
        memcpy(r->call[n->step + 1][n->node], n->report->call, size);
        r->count[n->step + 1][n->node] = n->report->call_count;
        r->calls += n->report->call_count;
    }
    if (n->rounding->mode == RO_FREE_SYMBOLS) {
        const size_t size = (size_t)ro_shape_numel(n->shape);
        r->symbol[n->step + 1][n->node] = malloc(size);
        memcpy(r->symbol[n->step + 1][n->node], n->rounding->symbol, size);
    }
    return VD_OK;
}

static vd_status follow(void *user, int64_t step, uint32_t node, ro_rounding *rounding,
                        vd_err *err) {
    const record *r = user;
    (void)err;
    rounding->call = r->call[step + 1][node];
    rounding->call_count = r->count[step + 1][node];
    rounding->symbol = r->symbol[step + 1][node];
    return VD_OK;
}

static void close_record(record *r) {
    for (int s = 0; s <= STEPS; s++)
        for (int n = 0; n < NODES_MAX; n++) {
            free(r->call[s][n]);
            free(r->symbol[s][n]);
        }
    free(r);
}

static vd_hash train(const test_job *job, const ro_profile *profile, ro_free_mode mode, int bits,
                     record *r) {
    static double threshold[RO_OP_END];
    ro_ctx *ro;
    vd_err err = {0};
    vd_state state;
    vd_hash hash;
    cr_assert(ro_ctx_create(NULL, &ro) == RO_OK);
    const vd_free f = {profile, mode, bits, threshold, follow, keep, r};
    vd_free_kernels kernels = {0};
    const vd_exec exec = {.program = &job->program,
                          .ro = ro,
                          .data = job->data,
                          .kernels = profile ? vd_free_kernels_open(&kernels, &f) : NULL};
    vd_status status = vd_exec_init(&exec, NULL, &state, &err);
    for (int s = 0; s < STEPS && status == VD_OK; s++)
        status = vd_exec_step(&exec, NULL, &state, NULL, &err);
    cr_assert(status == VD_OK, "%s", err.text);
    cr_assert(vd_state_hash(NULL, &job->program, &job->hash, &state, NULL, &hash, &err) == VD_OK);
    vd_free_kernels_close(&kernels);
    vd_state_free(&state);
    ro_ctx_destroy(ro);
    return hash;
}

static record *new_record(void) {
    record *r = calloc(1, sizeof *r);
    cr_assert(r);
    return r;
}

static void follow_each_other(const test_job *job, ro_free_mode trainer, ro_free_mode auditor,
                              int bits) {
    const ro_profile *a, *b;
    for (int i = 0; (a = ro_profile_at(i)); i++) {
        record *r = new_record();
        const vd_hash said = train(job, a, trainer, bits, r);
        cr_assert(r->nodes > 0, "no node is free");
        for (int k = 0; (b = ro_profile_at(k)); k++) {
            const vd_hash followed = train(job, b, auditor, bits, r);
            cr_assert(vd_hash_equal(&said, &followed), "%s does not follow %s at b = %d", b->name,
                      a->name, bits);
        }
        close_record(r);
    }
}

Test(free_run, profiles_follow_each_other) {
    static const vd_model_kind kinds[] = {VD_MODEL_GPT2, VD_MODEL_MLP, VD_MODEL_RESNET,
                                          VD_MODEL_LLAMA, VD_MODEL_BERT};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        test_job job;
        test_job_open(&job, kinds[i], STEPS, STEPS);
        follow_each_other(&job, RO_FREE_REPORT, RO_FREE_REPLAY, 32);
        follow_each_other(&job, RO_FREE_REPORT, RO_FREE_REPLAY, 22);
        test_job_close(&job);
    }
}

Test(free_run, operators_that_no_model_uses_follow_too) {
    test_job job;
    test_job_open_operators(&job, STEPS);
    follow_each_other(&job, RO_FREE_REPORT, RO_FREE_REPLAY, 32);
    test_job_close(&job);
}

/* With b = 32 the threshold of symbols must be small. With 0, every rounding would be marked. */
Test(free_run, symbols_are_followed) {
    test_job job;
    test_job_open(&job, VD_MODEL_MLP, STEPS, STEPS);
    follow_each_other(&job, RO_FREE_SYMBOLS, RO_FREE_FOLLOW, 27);
    test_job_close(&job);
}

Test(free_run, in_binary32_profiles_drift_apart) {
    test_job job;
    test_job_open(&job, VD_MODEL_GPT2, STEPS, STEPS);
    vd_hash seen[8];
    int count = 0;
    for (const ro_profile *p; (p = ro_profile_at(count)); count++) {
        record *r = new_record();
        seen[count] = train(&job, p, RO_FREE_F32, 0, r);
        close_record(r);
        for (int i = 0; i < count; i++)
            cr_assert(!vd_hash_equal(&seen[i], &seen[count]), "%s and %s agree in binary32",
                      ro_profile_at(i)->name, p->name);
    }
    cr_assert(count >= 3);
    test_job_close(&job);
}
