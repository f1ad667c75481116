/* Providers whose statements fit together worse than any honest machine could make them: records,
 * leaves and states forged between the run and the answer. */
#include "repops/op_optimizer.h"
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    FORGE_DESCRIPTOR, /* in the record of `node` */
    FORGE_INPUT,      /* input number `input` of that record */
    FORGE_OUTPUT,
    FORGE_SHORT_RECORD,
    FORGE_LONG_RECORD,
    FORGE_MORE_INPUTS,
    FORGE_FEWER_INPUTS,
    FORGE_STATE_LEAF, /* a tensor's commitment in the state before the step */
    FORGE_OUTPUT_BYTES,
    FORGE_INPUT_BYTES,
    WITHHOLD_INPUTS,
    FORGE_LAST_STATE,  /* of the run; the states between checkpoints are unchanged */
    FORGE_INNER_STATE, /* between two checkpoints, which are unchanged */
} forgery;

/* A source in front of the real one that forges its answers. */
typedef struct {
    vd_source real;
    const test_job *job;
    forgery what;
    int64_t step;
    uint32_t node, value; /* the disputed node, and its value */
    int input;
    vd_records records;
    uint8_t *bytes;
} forger;

static vd_status forge_run(void *user, vd_hash *state, vd_err *err) {
    forger *f = user;
    vd_status status = f->real.run(f->real.user, state, err);
    if (f->what == FORGE_LAST_STATE)
        state[vd_run_leaves(&f->job->program) - 1].b[5] ^= 1;
    return status;
}

static vd_status forge_states(void *user, int64_t from, int64_t to, vd_hash *state, vd_err *err) {
    forger *f = user;
    vd_status status = f->real.states(f->real.user, from, to, state, err);
    if (f->what == FORGE_INNER_STATE && to - from > 1)
        state[1].b[5] ^= 1;
    return status;
}

static void forge_record(const forger *f, vd_buf *record) {
    enum { COUNT_AT = VD_HASH_SIZE, INPUTS_AT = VD_HASH_SIZE + 4 };
    vd_hash output;
    memcpy(output.b, record->data + record->size - VD_HASH_SIZE, VD_HASH_SIZE);
    switch (f->what) {
    case FORGE_DESCRIPTOR: record->data[0] ^= 1; break;
    case FORGE_INPUT: record->data[INPUTS_AT + VD_HASH_SIZE * f->input] ^= 1; break;
    case FORGE_OUTPUT: record->data[record->size - 1] ^= 1; break;
    case FORGE_SHORT_RECORD: record->size--; break;
    case FORGE_LONG_RECORD: vd_put_u8(record, 0); break;
    case FORGE_MORE_INPUTS:
        record->data[COUNT_AT]++;
        vd_put(record, output.b, VD_HASH_SIZE);
        break;
    case FORGE_FEWER_INPUTS:
        record->data[COUNT_AT]--;
        record->size -= VD_HASH_SIZE;
        memcpy(record->data + record->size - VD_HASH_SIZE, output.b, VD_HASH_SIZE);
        break;
    default: break;
    }
}

static void copy_records(forger *f, const vd_records *from) {
    vd_records_free(&f->records);
    f->records.end = calloc(from->count, sizeof *f->records.end);
    f->records.count = from->count;
    for (uint64_t i = 0; i < from->count; i++) {
        vd_buf record = {0};
        size_t size;
        const uint8_t *bytes = vd_records_at(from, i, &size);
        vd_put(&record, bytes, size);
        if (i == f->node)
            forge_record(f, &record);
        vd_put(&f->records.bytes, record.data, record.size);
        f->records.end[i] = f->records.bytes.size;
        vd_buf_free(&record);
    }
}

static vd_status forge_trace(void *user, int64_t step, const vd_records **out, vd_err *err) {
    forger *f = user;
    vd_status status = f->real.trace(f->real.user, step, out, err);
    if (status == VD_OK && step == f->step && f->what <= FORGE_FEWER_INPUTS) {
        copy_records(f, *out);
        *out = &f->records;
    }
    return status;
}

static vd_status forge_leaves(void *user, int64_t step, vd_hash *tensor, vd_err *err) {
    forger *f = user;
    vd_status status = f->real.leaves(f->real.user, step, tensor, err);
    if (f->what == FORGE_STATE_LEAF)
        tensor[0].b[5] ^= 1;
    return status;
}

static vd_status forge_tensor(void *user, int64_t step, uint32_t value, const void **data,
                              vd_err *err) {
    forger *f = user;
    const vd_program *p = &f->job->program;
    forgery what = value == f->value ? FORGE_OUTPUT_BYTES : FORGE_INPUT_BYTES;
    if (f->what == WITHHOLD_INPUTS && what == FORGE_INPUT_BYTES)
        return vd_fail(err, VD_ERR_TIMEOUT, "withheld");
    vd_status status = f->real.tensor(f->real.user, step, value, data, err);
    if (status == VD_OK && f->what == what) {
        size_t size = vd_shape_bytes(vd_value_shape(p, vd_step_graph(p, step), value));
        free(f->bytes);
        f->bytes = malloc(size);
        memcpy(f->bytes, *data, size);
        f->bytes[0] ^= 1;
        *data = f->bytes;
    }
    return status;
}

static vd_source source_of(forger *f) {
    return (vd_source){.user = f,
                       .run = forge_run,
                       .states = forge_states,
                       .trace = forge_trace,
                       .leaves = forge_leaves,
                       .tensor = forge_tensor,
                       .dishonest = true};
}

/* ---- the bench: the run is wrong at one element of a late node of step 1 ---- */

typedef struct {
    test_job job;
    test_provider honest, liar;
    vd_fault fault;
    forger forger;
} bench;

static void bench_open(bench *b, int64_t steps, int64_t checkpoint_interval) {
    test_job_open(&b->job, VD_MODEL_MLP, steps, checkpoint_interval);
    b->fault = (vd_fault){VD_FAULT_ELEMENT, 1, test_node(&b->job, 1, RO_OP_ADAMW_M), 5, 20};
    test_provider_open(&b->honest, &b->job, 1, NULL);
    test_provider_open(&b->liar, &b->job, 2, &b->fault);
    b->forger = (forger){.real = b->liar.side.source, .job = &b->job, .step = 1};
    b->forger.value = vd_source_count(&b->job.program, &b->job.program.step) + b->fault.node;
    b->liar.side.source = source_of(&b->forger);
}

static void bench_close(bench *b) {
    vd_records_free(&b->forger.records);
    free(b->forger.bytes);
    test_provider_close(&b->honest);
    test_provider_close(&b->liar);
    test_job_close(&b->job);
}

static void expect_grade(bench *b, uint32_t place, vd_grade grade, int64_t node, const char *what) {
    test_dispute d;
    test_duel(&d, &b->job, &b->honest.side, &b->liar.side, place);
    test_expect_convicted(&d, place, grade, what);
    test_expect_place(&d, 1, node, what);
    test_dispute_close(&d);
}

/* ---- records ---- */

static const struct {
    forgery what;
    vd_grade grade;
    const char *name;
} records[] = {
    {FORGE_DESCRIPTOR, VD_GRADE_WRONG_GRAPH, "descriptor"},
    {FORGE_OUTPUT, VD_GRADE_BAD_PROOF, "output that no tensor leads to"},
    {FORGE_SHORT_RECORD, VD_GRADE_BAD_PROOF, "short record"},
    {FORGE_LONG_RECORD, VD_GRADE_BAD_PROOF, "long record"},
    {FORGE_MORE_INPUTS, VD_GRADE_BAD_PROOF, "one input more"},
    {FORGE_FEWER_INPUTS, VD_GRADE_BAD_PROOF, "one input less"},
};

Test(forged, records_are_convicted_where_they_are) {
    bench b;
    bench_open(&b, 3, 3);
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
        for (uint32_t node = 0; node < b.fault.node; node += b.fault.node - 1)
            for (uint32_t place = 0; place < 2; place++) {
                b.forger.what = records[i].what;
                b.forger.node = node;
                expect_grade(&b, place, records[i].grade, node, records[i].name);
            }
    bench_close(&b);
}

/* Where an input of a node comes from. */
typedef enum { FROM_NODE, FROM_STATE, FROM_DATA, FROM_STEP } origin;

static origin origin_of(const test_job *job, uint32_t value) {
    const vd_program *p = &job->program;
    uint32_t index;
    if (value >= vd_source_count(p, &p->step))
        return FROM_NODE;
    switch (vd_source_of(p, &p->step, value, &index)) {
    case VD_SOURCE_STATE: return FROM_STATE;
    case VD_SOURCE_DATA: return FROM_DATA;
    default: return FROM_STEP;
    }
}

/* Finds an input of that origin in the nodes before the fault's node: the first such input, or the
 * last. */
static bool find_input(bench *b, origin from, bool last) {
    const vd_graph *graph = &b->job.program.step;
    bool found = false;
    for (uint32_t i = 0; i < b->fault.node; i++)
        for (int k = 0; k < vd_node_stored(graph, i)->input_count && (last || !found); k++)
            if (origin_of(&b->job, vd_node_input(graph, i, k)) == from) {
                b->forger.node = i;
                b->forger.input = k;
                found = true;
            }
    return found;
}

Test(forged, inputs_of_every_origin_are_wrong_inputs) {
    static const char *const names[] = {"of a node", "of the state", "of the data", "the step"};
    bench b;
    bench_open(&b, 3, 3);
    b.forger.what = FORGE_INPUT;
    for (int from = FROM_NODE; from <= FROM_STEP; from++)
        for (uint32_t place = 0; place < 2; place++) {
            cr_assert(find_input(&b, (origin)from, place), "%s", names[from]);
            expect_grade(&b, place, VD_GRADE_WRONG_INPUT, b.forger.node, names[from]);
        }
    bench_close(&b);
}

/* ---- bytes ---- */

Test(forged, bytes_that_do_not_lead_to_the_commitment_are_bad_proofs) {
    bench b;
    bench_open(&b, 3, 3);
    b.forger.node = UINT32_MAX;
    b.forger.what = FORGE_STATE_LEAF;
    for (uint32_t place = 0; place < 2; place++)
        expect_grade(&b, place, VD_GRADE_BAD_PROOF, b.fault.node, "leaf of the state");
    b.forger.what = FORGE_OUTPUT_BYTES;
    for (uint32_t place = 0; place < 2; place++)
        expect_grade(&b, place, VD_GRADE_BAD_PROOF, b.fault.node, "bytes of the output");
    b.forger.what = FORGE_INPUT_BYTES; /* agreed inputs are asked only of the first provider */
    expect_grade(&b, 0, VD_GRADE_BAD_PROOF, b.fault.node, "bytes of an input");
    expect_grade(&b, 1, VD_GRADE_WRONG_OUTPUT, b.fault.node, "bytes of an input, never asked for");
    bench_close(&b);
}

Test(forged, withheld_inputs_come_from_the_other_one) {
    bench b;
    bench_open(&b, 3, 3);
    b.forger.node = UINT32_MAX;
    b.forger.what = WITHHOLD_INPUTS;
    for (uint32_t place = 0; place < 2; place++)
        expect_grade(&b, place, VD_GRADE_WRONG_OUTPUT, b.fault.node, "withheld inputs");
    bench_close(&b);
}

static void drop_inputs(test_dispute *d, uint32_t party, const vd_outgoing *question,
                        vd_buf *note) {
    const bench *b = d->user;
    char output[64];
    (void)party;
    snprintf(output, sizeof output, "tensor %u ", b->forger.value);
    if (strstr(question->text, "tensor") && !strstr(question->text, output))
        note->size = 0;
}

Test(forged, inputs_that_nobody_gives_cost_both_their_claims) {
    bench b;
    bench_open(&b, 3, 3);
    b.forger.node = UINT32_MAX;
    b.forger.what = WITHHOLD_INPUTS;
    test_dispute d = {
        .job = &b.job, .side = {&b.honest.side, &b.liar.side}, .transit = drop_inputs, .user = &b};
    test_settle(&d);
    cr_expect(d.outcome.result == VD_RESULT_INCONCLUSIVE && !d.outcome.accepted);
    for (int p = 0; p < 2; p++)
        cr_expect(d.outcome.party[p].standing == VD_FORFEITED);
    test_dispute_close(&d);
    bench_close(&b);
}

/* ---- states ---- */

static void try_last_state(int64_t checkpoint_interval, const vd_fault *fault) {
    test_job job;
    test_provider honest, liar;
    test_job_open(&job, VD_MODEL_MLP, 3, checkpoint_interval);
    test_provider_open(&honest, &job, 1, NULL);
    test_provider_open(&liar, &job, 2, fault);
    forger f = {.real = liar.side.source, .job = &job, .what = FORGE_LAST_STATE};
    liar.side.source = source_of(&f);
    for (uint32_t place = 0; place < 2; place++) {
        test_dispute d;
        test_duel(&d, &job, &honest.side, &liar.side, place);
        test_expect_convicted(&d, place, VD_GRADE_CONTRADICTION, "last state");
        cr_expect(d.outcome.place.node == -1, "seen before any node is looked for");
        test_dispute_close(&d);
    }
    test_provider_close(&honest);
    test_provider_close(&liar);
    test_job_close(&job);
}

/* The final state does not follow from the steps before it. The run itself is right or wrong in the
 * last step, and checkpoints lie one to three steps apart. */
Test(forged, a_last_state_that_is_not_the_runs_contradicts) {
    vd_fault fault = {.kind = VD_FAULT_POISON, .step = 2};
    for (int64_t interval = 1; interval <= 3; interval++) {
        try_last_state(interval, NULL);
        try_last_state(interval, &fault);
    }
}

/* Both ends are those of its run, but no trace leads to the state that it states in between. */
Test(forged, a_state_inside_a_run_that_no_trace_leads_to_contradicts) {
    bench b;
    bench_open(&b, 3, 3);
    b.forger.what = FORGE_INNER_STATE;
    for (uint32_t place = 0; place < 2; place++) {
        test_dispute d;
        test_duel(&d, &b.job, &b.honest.side, &b.liar.side, place);
        test_expect_convicted(&d, place, VD_GRADE_CONTRADICTION, "inner state");
        test_expect_place(&d, 0, -1, "inner state");
        test_dispute_close(&d);
    }
    bench_close(&b);
}
