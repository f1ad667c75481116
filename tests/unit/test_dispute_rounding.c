/* Disputes over runs with rounding logs: the trainer is provider 0, its auditor provider 1. */
#include "each_operator.h"
#include "repops/op_optimizer.h"
#include "repops/op_product.h"
#include "tests/support/dispute.h"
#include "verde/log/note.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 4, INTERVAL = 2 };

typedef struct {
    test_job job;
    test_provider trainer, auditor;
    vd_err err;
} bench;

static void open_job(bench *b, vd_model_kind kind, int bits, vd_log_encoding encoding) {
    test_job_open(&b->job, kind, STEPS, INTERVAL);
    test_job_round(&b->job, bits, encoding);
}

/* Flips bit 22, which no later rounding hides. */
static vd_fault fault_of(const test_job *job, const char *text) {
    vd_fault fault = test_fault(job, text);
    fault.bit = 22;
    return fault;
}

static void open_trainer(bench *b, const char *profile, const char *fault) {
    const test_party party = {.profile = profile};
    vd_fault f = {0};
    if (fault)
        f = fault_of(&b->job, fault);
    vd_status status = test_party_open(&b->trainer, &b->job, 1, &party, fault ? &f : NULL, &b->err);
    cr_assert(status == VD_OK, "%s", b->err.text);
}

static vd_status open_auditor(bench *b, const char *profile, const char *fault, bool contest) {
    vd_public_key key;
    vd_key_public(b->trainer.key, &key);
    const test_party party = {
        .profile = profile, .trainer = &b->trainer, .trainer_key = &key, .contest = contest};
    vd_fault f = {0};
    if (fault)
        f = fault_of(&b->job, fault);
    return test_party_open(&b->auditor, &b->job, 2, &party, fault ? &f : NULL, &b->err);
}

static void close_bench(bench *b) {
    test_provider_close(&b->auditor);
    test_provider_close(&b->trainer);
    test_job_close(&b->job);
}

static test_dispute settle(bench *b) {
    test_dispute d = {.job = &b->job, .side = {&b->trainer.side, &b->auditor.side}};
    test_settle(&d);
    cr_assert(d.status == VD_OK, "%s", d.err.text);
    return d;
}

/* ---- honest pairs ---- */

static void agree(vd_model_kind kind, int bits) {
    const ro_profile *of[2];
    for (int i = 0; (of[0] = ro_profile_at(i)); i++)
        for (int k = 0; (of[1] = ro_profile_at(k)); k++) {
            bench b;
            open_job(&b, kind, bits, VD_LOG_CALLS);
            open_trainer(&b, of[0]->name, NULL);
            cr_assert(open_auditor(&b, of[1]->name, NULL, k % 2) == VD_OK, "%s", b.err.text);
            cr_expect(!b.auditor.logged.difference.found, "%s", b.auditor.logged.difference.text);
            cr_expect(b.auditor.logged.rounded.refused == 0);
            test_dispute d = settle(&b);
            cr_expect(d.outcome.result == VD_RESULT_AGREED, "%s follows %s at b = %d: %s",
                      of[1]->name, of[0]->name, bits, vd_result_name(d.outcome.result));
            test_dispute_close(&d);
            close_bench(&b);
        }
}

Test(dispute_rounding, honest_trainers_and_auditors_agree, .timeout = 300) {
    agree(VD_MODEL_MLP, 16);
    agree(VD_MODEL_GPT2, 18);
}

Test(dispute_rounding, honest_pairs_agree_whatever_the_seed, .timeout = 300) {
    for (uint64_t seed = 2; seed < 12; seed++) {
        bench b;
        test_job_open_seed(&b.job, VD_MODEL_GPT2, STEPS, seed);
        test_job_round(&b.job, (int32_t)(16 + 4 * (seed % 5)), VD_LOG_CALLS);
        open_trainer(&b, ro_profile_at((int)(seed % 4))->name, NULL);
        cr_assert(open_auditor(&b, ro_profile_at((int)(seed / 4 % 4))->name, NULL, true) == VD_OK);
        cr_expect(!b.auditor.logged.difference.found, "%s", b.auditor.logged.difference.text);
        test_dispute d = settle(&b);
        cr_expect(d.outcome.result == VD_RESULT_AGREED);
        test_dispute_close(&d);
        close_bench(&b);
    }
}

/* ---- a trainer that continues a run ---- */

static bool stop(void *user, const vd_progress *progress) {
    (void)user, (void)progress;
    return false;
}

/* Signs a different log of the same run, as another build might have. */
static void sign_another(const char *dir, const vd_key *key) {
    vd_run_log log;
    vd_buf note = {0};
    cr_assert(vd_store_load_log(dir, &log, NULL) == VD_OK);
    const vd_log_claim claim = {log.program, log.name, {{7}}, INTERVAL};
    cr_assert(vd_log_note_sign(key, &claim, &note, NULL) == VD_OK);
    cr_assert(vd_log_note_save(dir, INTERVAL, &note, NULL) == VD_OK);
    vd_buf_free(&note);
    vd_run_log_free(&log);
}

Test(dispute_rounding, a_trainer_never_signs_a_second_log_of_one_run) {
    bench b;
    open_job(&b, VD_MODEL_MLP, 32, VD_LOG_CALLS);
    open_trainer(&b, "sim-wide", NULL);
    char dir[96];
    snprintf(dir, sizeof dir, "%s/again", b.trainer.dir);
    const vd_run_rounding rounding = {.role = VD_TRAINER,
                                      .profile = ro_profile_at(0),
                                      .encoding = VD_LOG_CALLS,
                                      .bits = 32,
                                      .key = b.trainer.key};
    const vd_run_backend backend = {&vd_backend_log, &rounding, NULL};
    vd_run_options options = {
        .exec = &b.trainer.exec, .dir = dir, .progress = stop, .backend = &backend};
    vd_run_result result;
    cr_assert(vd_run(&options, &result, &b.err) == VD_ERR_TIMEOUT, "%s", b.err.text);
    sign_another(dir, b.trainer.key);
    options.progress = NULL;
    cr_expect(vd_run(&options, &result, &b.err) == VD_ERR_LOCAL);
    cr_expect(strstr(b.err.text, "was signed before"), "%s", b.err.text);
    test_provider_close(&b.trainer);
    test_job_close(&b.job);
}

/* ---- a dishonest trainer ---- */

/* A run's auditor stops with the message `said`. If it contests instead, the trainer is convicted
 * with this grade. */
static void expect_trainer(vd_model_kind kind, vd_log_encoding encoding, const char *fault,
                           const char *said, vd_grade grade) {
    bench b;
    open_job(&b, kind, encoding == VD_LOG_CALLS ? 32 : 24, encoding);
    open_trainer(&b, "sim-wide", fault);
    cr_expect(open_auditor(&b, "sim-deep", NULL, false) == VD_ERR_PEER, "%s: not noticed", fault);
    cr_expect(strstr(b.err.text, said), "%s: expected \"%s\", got: %s", fault, said, b.err.text);
    test_provider_close(&b.auditor);
    cr_assert(open_auditor(&b, "sim-deep", NULL, true) == VD_OK, "%s: %s", fault, b.err.text);
    cr_expect(b.auditor.logged.difference.found && strstr(b.auditor.logged.difference.text, said),
              "%s: %s", fault, b.auditor.logged.difference.text);
    test_dispute d = settle(&b);
    test_expect_convicted(&d, 0, grade, fault);
    test_dispute_close(&d);
    close_bench(&b);
}

Test(dispute_rounding, a_dishonest_trainer_is_convicted, .timeout = 300) {
    static const vd_model_kind kinds[] = {VD_MODEL_MLP, VD_MODEL_GPT2};
    for (int i = 0; i < 2; i++) {
        /* Not at step 0: there the element that the fault changes in the perceptron reaches no
         * state. */
        expect_trainer(kinds[i], VD_LOG_CALLS, "element@1", "does not lead", VD_GRADE_WRONG_OUTPUT);
        expect_trainer(kinds[i], VD_LOG_CALLS, "element@3", "does not lead", VD_GRADE_WRONG_OUTPUT);
        expect_trainer(kinds[i], VD_LOG_CALLS, "forge-both@1", "no device could",
                       VD_GRADE_WRONG_OUTPUT);
        expect_trainer(kinds[i], VD_LOG_CALLS, "two-logs@2", "checkpoint after",
                       VD_GRADE_CONTRADICTION);
        expect_trainer(kinds[i], VD_LOG_CALLS, "lr@1", "does not lead", VD_GRADE_WRONG_GRAPH);
        expect_trainer(kinds[i], VD_LOG_CALLS, "skip@1", "", VD_GRADE_CONTRADICTION);
    }
}

Test(dispute_rounding, a_trainer_whose_log_is_not_what_it_rounded_is_convicted, .timeout = 300) {
    for (int step = 0; step < STEPS; step++) {
        char fault[64];
        snprintf(fault, sizeof fault, "drop-record@%d", step);
        expect_trainer(VD_MODEL_GPT2, VD_LOG_CALLS, fault, "does not lead",
                       VD_GRADE_LOG_INCOMPLETE);
        snprintf(fault, sizeof fault, "forge-record@%d", step);
        expect_trainer(VD_MODEL_GPT2, VD_LOG_CALLS, fault, "does not lead", VD_GRADE_CONTRADICTION);
    }
}

/* ---- one wrong element of every free operator ---- */

static uint32_t middle_node(const vd_graph *graph, int op) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++)
        count += vd_node_stored(graph, i)->op == op;
    for (uint32_t i = 0, want = count / 2; i < graph->node_count; i++)
        if (vd_node_stored(graph, i)->op == op && want-- == 0)
            return i;
    return UINT32_MAX;
}

/* Returns false if no state differed. */
static bool try_element(test_job *job, uint32_t node) {
    const vd_node *n = vd_node_stored(&job->program.step, node);
    const uint32_t element = (uint32_t)ro_shape_numel(&n->shape) / 3;
    const vd_fault fault = {VD_FAULT_ELEMENT, 1, node, element, 23};
    test_provider trainer, auditor;
    vd_err err = {0};
    test_party party = {.profile = "sim-wide"};
    cr_assert(test_party_open(&trainer, job, 1, &party, &fault, &err) == VD_OK, "%s", err.text);
    party = (test_party){.profile = "sim-narrow", .trainer = &trainer, .contest = true};
    cr_assert(test_party_open(&auditor, job, 2, &party, NULL, &err) == VD_OK, "%s", err.text);
    test_dispute d = {.job = job, .side = {&trainer.side, &auditor.side}};
    test_settle(&d);
    const bool noticed = d.outcome.result != VD_RESULT_AGREED;
    if (noticed) {
        test_expect_convicted(&d, 0, VD_GRADE_WRONG_OUTPUT,
                              vd_node_name(&job->program.step, node).text);
        test_expect_place(&d, 1, node, vd_node_name(&job->program.step, node).text);
        cr_expect(d.outcome.place.element == element && d.outcome.place.rounded, "%s",
                  vd_node_name(&job->program.step, node).text);
    }
    test_dispute_close(&d);
    test_provider_close(&auditor);
    test_provider_close(&trainer);
    return noticed;
}

static void try_operators(test_job *job, bool *tried, int *noticed) {
    test_job_round(job, 32, VD_LOG_CALLS);
    for (int op = next_operator(0); op; op = next_operator(op)) {
        const uint32_t node = ro_op_is_free(op) ? middle_node(&job->program.step, op) : UINT32_MAX;
        if (tried[op] || node == UINT32_MAX)
            continue;
        tried[op] = true;
        *noticed += try_element(job, node);
    }
    test_job_close(job);
}

Test(dispute_rounding, convicts_one_wrong_element_of_every_free_operator, .timeout = 300) {
    static const vd_model_kind kinds[] = {VD_MODEL_GPT2, VD_MODEL_MLP, VD_MODEL_LLAMA,
                                          VD_MODEL_BERT, VD_MODEL_RESNET};
    bool tried[RO_OP_END] = {false};
    int noticed = 0, count = 0;
    test_job job;
    for (int i = 0; i < 5; i++) {
        test_job_open(&job, kinds[i], 2, 2);
        try_operators(&job, tried, &noticed);
    }
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        test_job_open_sgd(&job, 2, nesterov);
        try_operators(&job, tried, &noticed);
    }
    test_job_open_operators(&job, 2);
    try_operators(&job, tried, &noticed);
    for (int op = next_operator(0); op; op = next_operator(op)) {
        count += ro_op_is_free(op);
        cr_expect(tried[op] || !ro_op_is_free(op), "%s", ro_op_describe(op)->name);
    }
    cr_expect(noticed > count / 2 || only_operator(), "%d of %d were noticed by a state", noticed,
              count);
}

/* A trainer may choose any possible value: the auditor follows it, and counts the correction. */
Test(dispute_rounding, steering_inside_what_is_possible_is_followed_and_counted) {
    bench b;
    uint64_t corrected[2];
    for (int i = 0; i < 2; i++) {
        open_job(&b, VD_MODEL_MLP, 32, VD_LOG_CALLS);
        open_trainer(&b, "sim-wide", i ? "steer@1" : NULL);
        cr_assert(open_auditor(&b, "sim-wide", NULL, false) == VD_OK, "%s", b.err.text);
        corrected[i] = b.auditor.logged.rounded.corrected;
        test_dispute d = settle(&b);
        cr_expect(d.outcome.result == VD_RESULT_AGREED);
        test_dispute_close(&d);
        close_bench(&b);
    }
    cr_expect(corrected[0] == 0 && corrected[1] == 1, "%d and %d corrections", (int)corrected[0],
              (int)corrected[1]);
}

/* ---- symbols, as in the published scheme ---- */

/* A symbol marks each rounding that is nearer to a boundary than about a thousandth of the last
 * place. */
static void open_symbols(bench *b, vd_model_kind kind) {
    const int bits = 24;
    open_job(b, kind, bits, VD_LOG_SYMBOLS);
    for (int op = 1; op < RO_OP_END; op++)
        if (ro_op_is_free(op))
            b->job.program.rounding.threshold[op] = (1 - 0x1p-10) * 0x1p-16;
    cr_assert(vd_program_hash(&b->job.program, &b->job.hash, NULL) == VD_OK);
}

static void expect_symbols(vd_model_kind kind, const char *fault, vd_grade grade) {
    bench b;
    open_symbols(&b, kind);
    open_trainer(&b, "sim-wide", fault);
    cr_assert(open_auditor(&b, "sim-deep", NULL, true) == VD_OK, "%s", b.err.text);
    test_dispute d = settle(&b);
    if (grade != VD_GRADE_NONE)
        test_expect_convicted(&d, 0, grade, fault);
    else
        cr_expect(d.outcome.result == VD_RESULT_AGREED, "%s", vd_result_name(d.outcome.result));
    test_dispute_close(&d);
    close_bench(&b);
}

Test(dispute_rounding, symbols_are_judged_too, .timeout = 300) {
    expect_symbols(VD_MODEL_MLP, NULL, VD_GRADE_NONE);
    expect_symbols(VD_MODEL_GPT2, NULL, VD_GRADE_NONE);
    expect_symbols(VD_MODEL_GPT2, "element@2", VD_GRADE_WRONG_OUTPUT);
    expect_symbols(VD_MODEL_GPT2, "two-logs@1", VD_GRADE_CONTRADICTION);
    expect_symbols(VD_MODEL_GPT2, "forge-both@2", VD_GRADE_WRONG_OUTPUT);
    expect_symbols(VD_MODEL_GPT2, "drop-record@0", VD_GRADE_LOG_INCOMPLETE);
    expect_symbols(VD_MODEL_GPT2, "drop-record@3", VD_GRADE_LOG_INCOMPLETE);
    expect_symbols(VD_MODEL_GPT2, "forge-record@1", VD_GRADE_CONTRADICTION);
    expect_symbols(VD_MODEL_GPT2, "steer@2", VD_GRADE_NONE);
}

/* About a quarter of the state's elements are marked: those within 2^-26 of a half of the last
 * place. */
Test(dispute_rounding, symbols_of_the_state_are_for_its_32_bits) {
    bench b;
    open_symbols(&b, VD_MODEL_GPT2);
    open_trainer(&b, "sim-wide", NULL);
    const vd_rounded_count *weights = &b.trainer.logged.rounded_of[RO_OP_ADAMW_W];
    const vd_rounded_count *products = &b.trainer.logged.rounded_of[RO_OP_MATMUL];
    const double share = (double)weights->decided / (double)weights->elements;
    cr_expect(share > 0.22 && share < 0.28, "%g of the weights", share);
    cr_expect((double)products->decided < 0.01 * (double)products->elements);
    test_provider_close(&b.trainer);
    test_job_close(&b.job);
}

/* ---- a dishonest auditor ---- */

static void expect_auditor(const char *fault, vd_standing standing, vd_grade grade) {
    bench b;
    open_job(&b, VD_MODEL_GPT2, 32, VD_LOG_CALLS);
    open_trainer(&b, "sim-narrow", NULL);
    cr_assert(open_auditor(&b, "sim-plain", fault, true) == VD_OK, "%s", b.err.text);
    test_dispute d = settle(&b);
    const struct vd_party_outcome *party = d.outcome.party;
    cr_expect(party[0].standing == VD_STANDS, "%s: the honest trainer: %s", fault, party[0].reason);
    cr_expect(party[1].standing == standing && party[1].grade == grade, "%s: %s, %s", fault,
              vd_grade_name(party[1].grade), party[1].reason);
    cr_expect(d.outcome.accepted && vd_hash_equal(&d.outcome.run_root, &party[0].run_root));
    cr_expect((d.outcome.result == VD_RESULT_DISMISSED) == (standing == VD_DISMISSED));
    test_dispute_close(&d);
    close_bench(&b);
}

Test(dispute_rounding, a_dishonest_auditor_is_convicted_or_dismissed) {
    expect_auditor("element@2", VD_CONVICTED, VD_GRADE_WRONG_OUTPUT);
    expect_auditor("steer@2", VD_DISMISSED, VD_GRADE_DISMISSED);
    expect_auditor("attr@1", VD_CONVICTED, VD_GRADE_WRONG_GRAPH);
}
