/* The first difference of two runs: the step, node and element of every fault are found by
 * executing few steps. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "repops/op_product.h"
#include "repops/ref.h"
#include "tests/support/dispute.h"
#include "verde/exec/divergence.h"
#include "verde/exec/distance.h"

enum { STEPS = 12, INTERVAL = 4 };

typedef struct {
    test_job job;
    test_provider run[2];
    uint64_t executed;
} bench;

static void bench_open(bench *b, vd_model_kind kind, const char *fault) {
    b->executed = 0;
    test_job_open(&b->job, kind, STEPS, INTERVAL);
    const vd_fault f = test_fault(&b->job, fault);
    test_provider_open(&b->run[0], &b->job, 1, NULL);
    test_provider_open(&b->run[1], &b->job, 2, &f);
}

static void bench_close(bench *b) {
    test_provider_close(&b->run[0]);
    test_provider_close(&b->run[1]);
    test_job_close(&b->job);
}

static bool holds(void *user, uint32_t checkpoint) {
    (void)user, (void)checkpoint;
    return true;
}

static vd_diverge_side side_of(const test_provider *p, const test_job *job) {
    return (vd_diverge_side){.program = &job->program,
                             .program_hash = job->hash,
                             .source = p->side.source,
                             .checkpoints = (uint32_t)vd_run_leaves(&job->program),
                             .holds = holds};
}

/* The run with the fault is the second side or, if `turned`, the first. */
static vd_divergence find(bench *b, bool turned, bool executes) {
    const vd_diverge_side side[] = {side_of(&b->run[turned], &b->job),
                                    side_of(&b->run[!turned], &b->job)};
    const uint64_t before =
        vd_replay_executed(b->run[0].replay) + vd_replay_executed(b->run[1].replay);
    vd_divergence found;
    vd_err err = {0};
    cr_assert(vd_diverge(side, NULL, executes, &found, &err) == VD_OK, "%s", err.text);
    b->executed =
        vd_replay_executed(b->run[0].replay) + vd_replay_executed(b->run[1].replay) - before;
    return found;
}

static bool is_equal(const bench *b) {
    return vd_hash_equal(&b->run[0].run.run_root, &b->run[1].run.run_root);
}

/* ---- faults of each kind ---- */

static void expect_fault(vd_model_kind kind, const char *text, vd_diverge_kind expected) {
    bench b;
    bench_open(&b, kind, text);
    const vd_fault f = b.run[1].exec.fault;
    cr_expect(kind != VD_MODEL_GPT2 || !is_equal(&b), "%s changes nothing", text);
    for (int turned = 0; turned < 2 && !is_equal(&b); turned++) {
        const vd_divergence d = find(&b, turned, true);
        const int bad = turned ? 0 : 1;
        cr_expect_eq(d.kind, expected, "%s: kind %d", text, (int)d.kind);
        if (expected == VD_DIVERGE_COMMITMENT) {
            cr_expect(d.broken[bad] && !d.broken[!bad], "%s", text);
            continue;
        }
        cr_expect(d.has_step && d.step == f.step, "%s: step %lld", text, (long long)d.step);
        cr_expect(expected != VD_DIVERGE_NEXT || (d.skipped[bad] && !d.skipped[!bad]), "%s", text);
        if (expected != VD_DIVERGE_NODE)
            continue;
        cr_expect(d.tensor.known && d.tensor.count > 0, "%s", text);
        cr_expect(d.compares_inputs && d.inputs_differ == 0, "%s", text);
        cr_expect(d.tensor.has_reference && d.tensor.bits[!bad] == d.tensor.reference &&
                      d.tensor.bits[bad] != d.tensor.reference,
                  "%s: the reference is the honest run's", text);
    }
    cr_expect(b.executed <= 2 * 2 * INTERVAL + 2, "%s: %llu steps", text,
              (unsigned long long)b.executed);
    bench_close(&b);
}

Test(divergence, faults_of_each_kind_are_found_in_each_model) {
    static const struct {
        const char *fault;
        vd_diverge_kind kind;
    } faults[] = {{"element@0", VD_DIVERGE_NODE}, {"element@5", VD_DIVERGE_NODE},
                  {"element@7", VD_DIVERGE_NODE}, {"element@11", VD_DIVERGE_NODE},
                  {"lr@6", VD_DIVERGE_NODE},      {"poison@4", VD_DIVERGE_NODE},
                  {"seed@9", VD_DIVERGE_NODE},    {"weights", VD_DIVERGE_NODE},
                  {"input@8", VD_DIVERGE_NODE},   {"skip@4", VD_DIVERGE_NEXT},
                  {"skip@7", VD_DIVERGE_NEXT},    {"history", VD_DIVERGE_COMMITMENT}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        expect_fault(VD_MODEL_MLP, faults[i].fault, faults[i].kind);
        expect_fault(VD_MODEL_GPT2, faults[i].fault, faults[i].kind);
    }
}

/* A fault in any node, element and bit is found, unless it changes no committed state. */
Test(divergence, an_element_of_any_node_is_found_or_changes_nothing) {
    uint64_t seed = 11;
    uint32_t changed = 0;
    for (int i = 0; i < 40; i++) {
        test_job job;
        bench b;
        test_job_open(&job, VD_MODEL_GPT2, STEPS, INTERVAL);
        const int64_t step = (int64_t)(test_random(&seed) % (STEPS + 1)) - 1;
        const vd_graph *g = step < 0 ? &job.program.init : &job.program.step;
        const vd_fault f = {VD_FAULT_ELEMENT, step, (uint32_t)(test_random(&seed) % g->node_count),
                            (uint32_t)test_random(&seed), (uint32_t)(test_random(&seed) % 32)};
        b.job = job;
        test_provider_open(&b.run[0], &b.job, 1, NULL);
        test_provider_open(&b.run[1], &b.job, 2, &f);
        const vd_divergence d = find(&b, false, true);
        changed += !is_equal(&b);
        if (is_equal(&b))
            cr_expect_eq(d.kind, VD_DIVERGE_NOT);
        else
            cr_expect(d.kind == VD_DIVERGE_NODE && d.step == f.step && d.node[0] == f.node &&
                          d.node[1] == f.node && d.tensor.count == 1,
                      "step %lld, node %u: kind %d, step %lld, node %u", (long long)f.step, f.node,
                      (int)d.kind, (long long)d.step, d.node[0]);
        bench_close(&b);
    }
    cr_expect_gt(changed, 20);
}

Test(divergence, nothing_is_executed_where_that_is_not_wanted) {
    bench b;
    bench_open(&b, VD_MODEL_GPT2, "element@5");
    const vd_divergence d = find(&b, false, false);
    cr_expect(d.kind == VD_DIVERGE_CHECKPOINT && !d.has_step && d.of_leaf && d.tensor.known);
    cr_expect(d.equal_at == 4 && d.differs_at == 8);
    cr_expect_eq(b.executed, 0);
    bench_close(&b);
}

/* ---- errors that do not happen again ---- */

/* The fault is removed from the second run's replay, like an error that happened only once. */
Test(divergence, an_error_that_came_once_is_told_by_its_checkpoint) {
    for (int64_t interval = 1; interval <= INTERVAL; interval += 3) {
        bench b;
        vd_err err = {0};
        test_job_open(&b.job, VD_MODEL_GPT2, STEPS, interval);
        const vd_fault f = test_fault(&b.job, "element@5");
        test_provider_open(&b.run[0], &b.job, 1, NULL);
        test_provider_open(&b.run[1], &b.job, 2, &f);
        vd_replay_destroy(b.run[1].replay);
        b.run[1].exec.fault = (vd_fault){0};
        cr_assert(vd_replay_create(b.run[1].dir, &b.run[1].exec, &b.run[1].replay, &err) == VD_OK);
        b.run[1].side.source = vd_replay_source(b.run[1].replay);
        const vd_divergence d = find(&b, false, true);
        cr_expect_eq(d.kind, VD_DIVERGE_STORED);
        cr_expect(!d.broken[0] && d.broken[1] && d.of_leaf && d.tensor.known);
        cr_expect_eq(d.has_step, interval == 1, "only one step could be it");
        cr_expect(interval > 1 || d.step == 5);
        cr_expect_eq(d.tensor.has_reference, interval == 1);
        cr_expect(interval > 1 || (d.tensor.bits[0] == d.tensor.reference &&
                                   d.tensor.bits[1] != d.tensor.reference),
                  "the definition gives what the right run has");
        bench_close(&b);
    }
}

/* ---- parts of a sum ---- */

typedef struct {
    vd_source inner;
    uint32_t value;
    int64_t element;
    uint32_t bits;
    void *copy;
    size_t size;
} patched;

/* Replaces one element of the output by a value other than the fault's. */
static vd_status patched_tensor(void *user, int64_t step, uint32_t value, const void **data,
                                vd_err *err) {
    patched *p = user;
    vd_status status = p->inner.tensor(p->inner.user, step, value, data, err);
    if (status != VD_OK || value != p->value)
        return status;
    memcpy(p->copy, *data, p->size);
    memcpy((char *)p->copy + (size_t)p->element * sizeof p->bits, &p->bits, sizeof p->bits);
    *data = p->copy;
    return VD_OK;
}

static vd_status patched_run(void *user, vd_hash *state, vd_err *err) {
    patched *p = user;
    return p->inner.run(p->inner.user, state, err);
}
static vd_status patched_states(void *user, int64_t from, int64_t to, vd_hash *state, vd_err *err) {
    patched *p = user;
    return p->inner.states(p->inner.user, from, to, state, err);
}
static vd_status patched_trace(void *user, int64_t step, const vd_records **out, vd_err *err) {
    patched *p = user;
    return p->inner.trace(p->inner.user, step, out, err);
}
static vd_status patched_leaves(void *user, int64_t step, vd_hash *tensor, vd_err *err) {
    patched *p = user;
    return p->inner.leaves(p->inner.user, step, tensor, err);
}

/* The value of the element from a kernel that treats part `part` in this wrong way. */
static uint32_t broken_sum(const vd_fold *f, const void *const *input, vd_fold_guess how,
                           uint64_t part) {
    ro_ref_memory memory = {&f->call, input};
    uint8_t state[VD_PART_BYTES] = {0};
    for (uint64_t i = 0; i < f->parts; i++) {
        const int times = i == part                          ? (how == VD_FOLD_TWICE ? 2 : 0)
                          : how == VD_FOLD_ENDED && i > part ? 0
                                                             : 1;
        for (int k = 0; k < times; k++)
            vd_fold_part(f, i, state, ro_ref_load_memory, &memory, state);
    }
    return vd_fold_element(f, state);
}

static void expect_guess(vd_fold_guess how, uint64_t part) {
    bench b;
    vd_fold fold;
    const void *data, *input[2];
    void *copy[2];
    test_job_open_folds(&b.job, 2, 2000, 4);
    const vd_program *p = &b.job.program;
    const vd_fault f = {VD_FAULT_ELEMENT, 1, test_node(&b.job, 1, RO_OP_MATMUL), 5, 20};
    test_provider_open(&b.run[0], &b.job, 1, NULL);
    test_provider_open(&b.run[1], &b.job, 2, &f);
    cr_assert(vd_fold_open(&fold, p, &p->step, f.node, f.element) && fold.parts > part);
    const vd_source *s = &b.run[0].side.source;
    for (int i = 0; i < 2; i++) {
        const uint32_t value = vd_node_input(&p->step, f.node, i);
        const size_t size = vd_shape_bytes(vd_value_shape(p, &p->step, value));
        cr_assert(s->tensor(s->user, 1, value, &data, NULL) == VD_OK);
        copy[i] = malloc(size);
        memcpy(copy[i], data, size);
        input[i] = copy[i];
    }
    patched wrong = {.inner = b.run[1].side.source,
                     .value = vd_source_count(p, &p->step) + f.node,
                     .element = f.element,
                     .bits = broken_sum(&fold, input, how, part),
                     .size = vd_shape_bytes(&vd_node_stored(&p->step, f.node)->shape)};
    wrong.copy = malloc(wrong.size);
    vd_diverge_side side[] = {side_of(&b.run[0], &b.job), side_of(&b.run[1], &b.job)};
    vd_divergence d;
    side[1].source = (vd_source){.user = &wrong,
                                 .run = patched_run,
                                 .states = patched_states,
                                 .trace = patched_trace,
                                 .leaves = patched_leaves,
                                 .tensor = patched_tensor};
    cr_assert(vd_diverge(side, NULL, true, &d, NULL) == VD_OK);
    cr_expect(d.kind == VD_DIVERGE_NODE && d.tensor.parts == fold.parts);
    cr_expect(d.tensor.guess == how && d.tensor.part == (int64_t)part && d.tensor.guessed == 1,
              "guess %d of part %lld, expected %d of %llu", (int)d.tensor.guess,
              (long long)d.tensor.part, (int)how, (unsigned long long)part);
    free(copy[0]);
    free(copy[1]);
    free(wrong.copy);
    bench_close(&b);
}

Test(divergence, a_part_that_a_kernel_loses_is_named) {
    expect_guess(VD_FOLD_WITHOUT, 0);
    expect_guess(VD_FOLD_WITHOUT, 3);
    expect_guess(VD_FOLD_TWICE, 2);
    expect_guess(VD_FOLD_ENDED, 3);
}

/* ---- two different programs ---- */

Test(divergence, runs_of_two_programs_part_at_the_node_that_is_another) {
    test_job job[2];
    test_provider run[2];
    vd_alignment pairs;
    vd_divergence d;
    vd_err err = {0};
    for (int i = 0; i < 2; i++) {
        test_job_open(&job[i], VD_MODEL_GPT2, STEPS, INTERVAL);
        if (i == 1) {
            const uint32_t node = test_node(&job[1], 0, RO_OP_MATMUL);
            cr_assert(vd_graph_unroll(&job[1].program.step, &err) == VD_OK);
            job[1].program.step.stored[node].attr[RO_MATMUL_ALPHA] = ro_attr_f32(0.75f);
            cr_assert(vd_program_hash(&job[1].program, &job[1].hash, &err) == VD_OK);
        }
        test_provider_open(&run[i], &job[i], (uint8_t)(i + 1), NULL);
    }
    const vd_diverge_side side[] = {side_of(&run[0], &job[0]), side_of(&run[1], &job[1])};
    cr_assert(vd_align(&job[0].program, &job[1].program, false, &pairs, &err) == VD_OK);
    cr_assert(vd_diverge(side, &pairs, true, &d, &err) == VD_OK, "%s", err.text);
    cr_expect(d.kind == VD_DIVERGE_NODE && d.step == 0 && d.equal_at == 0 && d.differs_at == 4);
    cr_expect_eq(d.node[0], test_node(&job[0], 0, RO_OP_MATMUL));
    cr_expect(d.compares_inputs && d.inputs_differ == 0);
    vd_alignment_free(&pairs);
    for (int i = 0; i < 2; i++) {
        test_provider_close(&run[i]);
        test_job_close(&job[i]);
    }
}
