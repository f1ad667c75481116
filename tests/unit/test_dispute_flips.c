/* Bits that flip in an honest provider's memory between computing and signing: it computes again or
 * says nothing, and is never convicted. PROTOCOL.md section 4.3. */
#include "repops/op_product.h"
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

typedef enum { RUN, STATES, TRACE, LEAVES, TENSOR, TREE, FOLD, LOGS, SECTION, KINDS } kind;
static const char *const names[KINDS] = {"run",  "states", "trace", "leaves", "tensor",
                                         "tree", "fold",   "logs",  "section"};

/* A source in front of the real one that flips bits in its memory. */
typedef struct {
    vd_source real;
    vd_emitted_source served;
    const vd_program *program;
    kind what;
    int at;      /* number of the call of that kind in which a bit flips */
    bool always; /* also in all later calls */
    int calls, flipped;
    uint64_t random;
    vd_buf copy; /* a copy to spoil, of memory that the replay does not own */
} spoiler;

static void flip(spoiler *s, kind what, void *bytes, size_t size) {
    if (what != s->what || size == 0)
        return;
    const int call = s->calls++;
    if (call < s->at || (call > s->at && !s->always))
        return;
    ((uint8_t *)bytes)[test_random(&s->random) % size] ^=
        (uint8_t)(1u << test_random(&s->random) % 8);
    s->flipped++;
}

static vd_status spoil_run(void *user, vd_hash *state, vd_err *err) {
    spoiler *s = user;
    vd_status status = s->real.run(s->real.user, state, err);
    flip(s, RUN, state, vd_run_leaves(s->program) * sizeof *state);
    return status;
}

static vd_status spoil_states(void *user, int64_t from, int64_t to, vd_hash *state, vd_err *err) {
    spoiler *s = user;
    vd_status status = s->real.states(s->real.user, from, to, state, err);
    flip(s, STATES, state, (size_t)(to - from + 1) * sizeof *state);
    return status;
}

/* Spoils a trace in the replay's own memory, where the flip persists. */
static vd_status spoil_trace(void *user, int64_t step, const vd_records **out, vd_err *err) {
    spoiler *s = user;
    vd_status status = s->real.trace(s->real.user, step, out, err);
    if (status == VD_OK)
        flip(s, TRACE, (*out)->bytes.data, (*out)->bytes.size);
    return status;
}

static vd_status spoil_leaves(void *user, int64_t step, vd_hash *tensor, vd_err *err) {
    spoiler *s = user;
    vd_status status = s->real.leaves(s->real.user, step, tensor, err);
    flip(s, LEAVES, tensor, s->program->leaf_count * sizeof *tensor);
    return status;
}

/* Spoils a tensor in the replay's memory, or a copy of the job's data, which both providers of a
 * test share. */
static vd_status spoil_tensor(void *user, int64_t step, uint32_t value, const void **data,
                              vd_err *err) {
    spoiler *s = user;
    const vd_graph *graph = vd_step_graph(s->program, step);
    const size_t size = vd_shape_bytes(vd_value_shape(s->program, graph, value));
    uint32_t index;
    vd_status status = s->real.tensor(s->real.user, step, value, data, err);
    if (status == VD_OK && value < vd_source_count(s->program, graph) &&
        vd_source_of(s->program, graph, value, &index) == VD_SOURCE_DATA) {
        s->copy.size = 0;
        vd_put(&s->copy, *data, size);
        *data = s->copy.data;
    }
    if (status == VD_OK)
        flip(s, TENSOR, (void *)(uintptr_t)*data, size);
    return status;
}

/* Spoils a tree that the replay keeps. */
static vd_status spoil_tree(void *user, int64_t step, uint32_t value, const void *data,
                            const vd_tree **out, vd_err *err) {
    spoiler *s = user;
    vd_status status = s->real.tree(s->real.user, step, value, data, out, err);
    if (status == VD_OK)
        flip(s, TREE, (*out)->leaf, (2 * (*out)->count - 1) * sizeof *(*out)->leaf);
    return status;
}

static vd_status spoil_fold(void *user, int64_t step, uint32_t node, int64_t element,
                            vd_records *out, vd_err *err) {
    spoiler *s = user;
    vd_status status = s->real.fold(s->real.user, step, node, element, out, err);
    if (status == VD_OK)
        flip(s, FOLD, out->bytes.data, out->bytes.size);
    return status;
}

static vd_status spoil_logs(void *user, vd_hash *run, vd_hash *logs, vd_err *err) {
    spoiler *s = user;
    vd_status status = s->real.served->logs(s->real.served->user, run, logs, err);
    flip(s, LOGS, logs, vd_run_leaves(s->program) * sizeof *logs);
    return status;
}

static vd_status spoil_section(void *user, int64_t step, uint64_t index, vd_section_proof *out,
                               vd_err *err) {
    spoiler *s = user;
    vd_status status = s->real.served->section(s->real.served->user, step, index, out, err);
    if (status == VD_OK) {
        flip(s, SECTION, out->bytes.data, out->bytes.size);
        flip(s, SECTION, &out->tree_root, sizeof out->tree_root);
        flip(s, SECTION, &out->run, sizeof out->run);
        flip(s, SECTION, out->section.path, out->section.length * sizeof(vd_hash));
        flip(s, SECTION, out->step.path, out->step.length * sizeof(vd_hash));
    }
    return status;
}

static vd_status real_note(void *user, uint64_t leaf, const vd_public_key *trainer, vd_buf *out,
                           vd_err *err) {
    spoiler *s = user;
    return s->real.served->note(s->real.served->user, leaf, trainer, out, err);
}

static void real_forget(void *user) {
    spoiler *s = user;
    s->real.forget(s->real.user);
}

static vd_source source_of(spoiler *s) {
    vd_source out = s->real;
    out.user = s;
    out.run = spoil_run;
    out.states = spoil_states;
    out.trace = spoil_trace;
    out.leaves = spoil_leaves;
    out.tensor = spoil_tensor;
    out.tree = spoil_tree;
    out.fold = spoil_fold;
    out.forget = real_forget;
    out.progress = NULL;
    out.stop = NULL;
    if (out.served) {
        s->served = (vd_emitted_source){s, out.served->role, spoil_logs, spoil_section, real_note};
        out.served = &s->served;
    }
    return out;
}

/* ---- disputes ---- */

typedef struct {
    test_job job;
    test_provider side[2];
    uint32_t honest;
    vd_grade grade; /* the dishonest provider's */
} bench;

static void bench_open(bench *b, const char *fault) {
    test_job_open(&b->job, VD_MODEL_MLP, 6, 3);
    const vd_fault f = test_fault(&b->job, fault);
    test_provider_open(&b->side[0], &b->job, 1, NULL);
    test_provider_open(&b->side[1], &b->job, 2, &f);
    b->honest = 0;
}

static void bench_open_folds(bench *b) {
    test_job_open_folds(&b->job, 2, 2000, 2);
    const vd_fault fault = {VD_FAULT_ELEMENT, 1, test_node(&b->job, 1, RO_OP_MATMUL), 5, 20};
    test_provider_open(&b->side[0], &b->job, 1, NULL);
    test_provider_open(&b->side[1], &b->job, 2, &fault);
    b->side[1].side.source.dishonest = true;
    b->honest = 0;
    b->grade = VD_GRADE_WRONG_OUTPUT;
}

/* honest == 0: the trainer is honest, and the auditor rounds otherwise. honest == 1: the auditor is
 * honest, and the trainer does not log its roundings. */
static void bench_open_rounding(bench *b, uint32_t honest) {
    vd_public_key key;
    vd_err err = {0};
    test_job_open(&b->job, VD_MODEL_GPT2, 4, 2);
    test_job_round(&b->job, 32, VD_LOG_CALLS);
    const vd_fault f = test_fault(&b->job, honest ? "drop-record@1" : "steer@2");
    test_party party = {.profile = "sim-wide"};
    cr_assert(test_party_open(&b->side[0], &b->job, 1, &party, honest ? &f : NULL, &err) == VD_OK);
    vd_key_public(b->side[0].key, &key);
    party = (test_party){"sim-deep", &b->side[0], &key, .contest = true};
    cr_assert(test_party_open(&b->side[1], &b->job, 2, &party, honest ? NULL : &f, &err) == VD_OK);
    b->honest = honest;
    b->grade = honest ? VD_GRADE_LOG_INCOMPLETE : VD_GRADE_DISMISSED;
}

static void bench_close(bench *b) {
    test_provider_close(&b->side[1]);
    test_provider_close(&b->side[0]);
    test_job_close(&b->job);
}

/* Returns false if the dispute has no such call. */
static bool try_flip(bench *b, kind what, int at, bool always) {
    char text[96];
    vd_provider *honest = &b->side[b->honest].side;
    spoiler s = {.real = honest->source,
                 .program = &b->job.program,
                 .what = what,
                 .at = at,
                 .always = always,
                 .random = (uint64_t)at + 1};
    snprintf(text, sizeof text, "%s, call %d%s", names[what], at, always ? " and all after" : "");
    honest->source = source_of(&s);
    test_dispute d = {
        .job = &b->job, .side = {&b->side[0].side, &b->side[1].side}, .refused = always};
    test_settle(&d);
    honest->source = s.real;
    honest->source.forget(honest->source.user);
    const struct vd_party_outcome *party = &d.outcome.party[b->honest];
    cr_assert(d.status == VD_OK, "%s: %s", text, d.err.text);
    cr_expect(party->standing == VD_STANDS || (always && party->standing == VD_FORFEITED),
              "%s: %s: %s", text, vd_grade_name(party->grade), party->reason);
    if (party->standing == VD_STANDS)
        cr_expect(d.outcome.party[1 - b->honest].grade == b->grade, "%s: %s", text,
                  vd_grade_name(d.outcome.party[1 - b->honest].grade));
    test_dispute_close(&d);
    vd_buf_free(&s.copy);
    return s.flipped > 0;
}

/* Flips a bit in every call of every kind that the dispute makes, up to `most` of each. */
static void try_flips(bench *b, int most, int *flips) {
    for (kind what = 0; what < KINDS; what++)
        for (int at = 0; at < most && try_flip(b, what, at, false); at++) {
            flips[what]++;
            (void)try_flip(b, what, at, true);
        }
}

static void expect_tried(const int *flips, uint32_t kinds, const char *what) {
    for (kind k = 0; k < KINDS; k++)
        cr_expect(flips[k] > 0 || !(kinds >> k & 1), "%s: no bit of the kind %s flipped", what,
                  names[k]);
}

Test(flips, in_what_is_said_of_states_traces_and_tensors_convict_nobody, .timeout = 300) {
    int flips[KINDS] = {0};
    bench b;
    bench_open(&b, "element@4:adamw.layer.1.bias.m");
    b.grade = VD_GRADE_WRONG_OUTPUT;
    try_flips(&b, 40, flips);
    bench_close(&b);
    bench_open(&b, "skip@4");
    b.grade = VD_GRADE_CONTRADICTION;
    try_flips(&b, 12, flips);
    bench_close(&b);
    bench_open(&b, "weights");
    b.grade = VD_GRADE_WRONG_OUTPUT;
    try_flips(&b, 12, flips);
    bench_close(&b);
    expect_tried(flips,
                 1u << RUN | 1u << STATES | 1u << TRACE | 1u << LEAVES | 1u << TENSOR | 1u << TREE,
                 "an mlp");
}

Test(flips, in_what_is_said_of_long_sums_convict_nobody, .timeout = 300) {
    int flips[KINDS] = {0};
    bench b;
    bench_open_folds(&b);
    try_flips(&b, 12, flips);
    bench_close(&b);
    expect_tried(flips, 1u << FOLD, "a long sum");
}

Test(flips, in_what_is_said_of_rounding_logs_convict_nobody, .timeout = 300) {
    for (uint32_t honest = 0; honest < 2; honest++) {
        int flips[KINDS] = {0};
        bench b;
        bench_open_rounding(&b, honest);
        try_flips(&b, 8, flips);
        bench_close(&b);
        expect_tried(flips, 1u << LOGS | (honest ? 0 : 1u << SECTION), "a log");
    }
}
