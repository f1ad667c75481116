/* States with many leaves and nodes with many inputs do not make answers large. Otherwise a liar
 * could choose a lie whose refutation is too large for the honest provider to send. */
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- a liar's run ---- */

/* A source in front of a real run. It forges one leaf of a state, which then does not follow from
 * the trace, or one input of a record. */
typedef struct {
    vd_source real;
    const test_job *job;
    int64_t state; /* number of the forged state; -1: none */
    uint32_t leaf;
    int64_t input; /* number of the last node's forged input; -1: none */
    vd_records records;
} forger;

static vd_status forge_leaves(void *user, int64_t step, vd_hash *tensor, vd_err *err) {
    const forger *f = user;
    const vd_status status = f->real.leaves(f->real.user, step, tensor, err);
    if (step == f->state)
        tensor[f->leaf].b[3] ^= 1;
    return status;
}

static vd_status forged_state(forger *f, vd_hash *out, vd_err *err) {
    const uint32_t count = f->job->program.leaf_count;
    vd_hash *tensor = calloc(count, sizeof *tensor);
    cr_assert(tensor);
    vd_status status = forge_leaves(f, f->state, tensor, err);
    if (status == VD_OK)
        status = vd_state_commit(&f->job->hash, f->state, tensor, count, out, err);
    free(tensor);
    return status;
}

static vd_status forge_run(void *user, vd_hash *state, vd_err *err) {
    forger *f = user;
    const vd_status status = f->real.run(f->real.user, state, err);
    return status == VD_OK && f->state >= 0 ? forged_state(f, &state[f->state], err) : status;
}

static vd_status forge_states(void *user, int64_t from, int64_t to, vd_hash *state, vd_err *err) {
    forger *f = user;
    vd_status status = f->real.states(f->real.user, from, to, state, err);
    if (status == VD_OK && from <= f->state && f->state <= to)
        status = forged_state(f, &state[f->state - from], err);
    return status;
}

static void copy_records(const vd_records *from, vd_records *to) {
    *to = (vd_records){.count = from->count, .end = calloc(from->count, sizeof *to->end)};
    cr_assert(to->end);
    memcpy(to->end, from->end, from->count * sizeof *to->end);
    vd_put(&to->bytes, from->bytes.data, from->bytes.size);
}

static vd_status forge_trace(void *user, int64_t step, const vd_records **out, vd_err *err) {
    forger *f = user;
    const vd_status status = f->real.trace(f->real.user, step, out, err);
    if (status != VD_OK || step < 0 || f->input < 0)
        return status;
    if (!f->records.count) {
        size_t size;
        copy_records(*out, &f->records);
        const uint8_t *last = vd_records_at(&f->records, f->records.count - 1, &size);
        f->records.bytes.data[(size_t)(last - f->records.bytes.data) + VD_HASH_SIZE + 4 +
                              VD_HASH_SIZE * (size_t)f->input] ^= 1;
    }
    *out = &f->records;
    return VD_OK;
}

static vd_status pass_tensor(void *user, int64_t step, uint32_t value, const void **data,
                             vd_err *err) {
    const forger *f = user;
    return f->real.tensor(f->real.user, step, value, data, err);
}

static vd_source source_of(forger *f) {
    vd_source out = {.user = f,
                     .run = forge_run,
                     .states = forge_states,
                     .trace = forge_trace,
                     .leaves = forge_leaves,
                     .tensor = pass_tensor,
                     .dishonest = true};
    vd_hash state[3];
    vd_tree tree;
    cr_assert(forge_run(f, state, NULL) == VD_OK);
    cr_assert(vd_tree_of_hashes(&tree, state, vd_run_leaves(&f->job->program), NULL) == VD_OK);
    cr_assert(vd_tree_root(&tree, &out.run_root, NULL) == VD_OK);
    vd_tree_free(&tree);
    return out;
}

typedef struct {
    size_t largest, allowed; /* the largest note sent, and the most that a question allowed */
    int records, opened;     /* questions to provider 0: about records, and opening a state */
} watch;

static void watch_answer(test_dispute *d, uint32_t party, const vd_outgoing *q, vd_buf *note) {
    watch *w = d->user;
    w->largest = note->size > w->largest ? note->size : w->largest;
    w->allowed = q->answer_max > w->allowed ? q->answer_max : w->allowed;
    w->records += party == 0 && strncmp(q->text, "prove trace", 11) == 0;
    w->opened += party == 0 && strncmp(q->text, "open state", 10) == 0;
}

/* ---- equal traces ---- */

/* The run behind the liar is correct. */
static watch try_leaf(const test_job *job, const test_provider *honest, const test_provider *other,
                      int64_t step, uint32_t leaf, uint32_t place) {
    char what[64];
    forger f = {
        .real = other->side.source, .job = job, .state = step + 1, .leaf = leaf, .input = -1};
    vd_provider liar = other->side;
    watch w = {0};
    liar.source = source_of(&f);
    test_dispute d = {.job = job, .transit = watch_answer, .user = &w};
    d.side[place] = &liar;
    d.side[1 - place] = &honest->side;
    test_settle(&d);
    snprintf(what, sizeof what, "leaf %u of %u after step %lld", leaf, job->program.leaf_count,
             (long long)step);
    test_expect_convicted(&d, place, VD_GRADE_CONTRADICTION, what);
    test_expect_place(&d, step, -1, what);
    cr_expect(d.rounds <= 12, "%s: %u rounds", what, d.rounds);
    test_dispute_close(&d);
    return w;
}

Test(wide, a_state_of_many_leaves_that_its_trace_does_not_lead_to_is_found_leaf_by_leaf,
     .timeout = 1200) {
    enum { LEAVES = 12000 };
    static const uint32_t leaf[] = {0, 4321, LEAVES - 1};
    test_job job;
    test_provider honest, other;
    test_job_open_leaves(&job, LEAVES);
    test_provider_open(&honest, &job, 1, NULL);
    test_provider_open(&other, &job, 2, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        const watch w = try_leaf(&job, &honest, &other, (int64_t)(i % 2) - 1, leaf[i], i % 2);
        cr_expect(w.opened == (i == 2 ? 3 : 4) && w.records == 1, "%d, %d", w.opened, w.records);
        cr_expect(w.largest < 8192 && w.allowed < 32768, "%zu, %zu bytes", w.largest, w.allowed);
    }
    test_provider_close(&other);
    test_provider_close(&honest);
    test_job_close(&job);
}

/* The tree of a state with one leaf has nothing to open. */
Test(wide, a_state_of_one_leaf_that_its_trace_does_not_lead_to_is_found) {
    test_job job;
    test_provider honest, other;
    test_job_open_leaves(&job, 1);
    test_provider_open(&honest, &job, 1, NULL);
    test_provider_open(&other, &job, 2, NULL);
    for (uint32_t i = 0; i < 4; i++) {
        const watch w = try_leaf(&job, &honest, &other, (int64_t)(i % 2) - 1, 0, i / 2);
        cr_expect(w.opened == 0 && w.records == 1, "%d, %d", w.opened, w.records);
    }
    test_provider_close(&other);
    test_provider_close(&honest);
    test_job_close(&job);
}

/* ---- records in pieces ---- */

enum { INPUTS = 700, PIECE = VD_PROVE_RECORDS_MAX };

/* The run behind the liar is wrong at an element of the node with many inputs. Returns the number
 * of questions about records. */
static int try_input(const test_job *job, const test_provider *honest, const test_provider *wrong,
                     int64_t input, uint32_t place) {
    char what[64];
    forger f = {.real = wrong->side.source, .job = job, .state = -1, .input = input};
    vd_provider liar = wrong->side;
    watch w = {0};
    liar.source = source_of(&f);
    test_dispute d = {.job = job, .transit = watch_answer, .user = &w};
    d.side[place] = &liar;
    d.side[1 - place] = &honest->side;
    test_settle(&d);
    snprintf(what, sizeof what, "input %lld", (long long)input);
    test_expect_convicted(&d, place, input < 0 ? VD_GRADE_WRONG_OUTPUT : VD_GRADE_WRONG_INPUT,
                          what);
    test_expect_place(&d, 0, INPUTS - 1, what);
    test_dispute_close(&d);
    vd_records_free(&f.records);
    return w.records;
}

Test(wide, the_records_of_many_inputs_are_asked_for_in_pieces_up_to_the_first_wrong_one) {
    static const int64_t input[] = {-1, 0, PIECE - 1, PIECE, 2 * PIECE, INPUTS - 2, INPUTS - 1};
    test_job job;
    test_provider honest, wrong;
    test_job_open_inputs(&job, INPUTS);
    const vd_fault fault = {VD_FAULT_ELEMENT, 0, INPUTS - 1, 5, 20};
    test_provider_open(&honest, &job, 1, NULL);
    test_provider_open(&wrong, &job, 2, &fault);
    for (uint32_t i = 0; i < sizeof input / sizeof input[0]; i++) {
        const int64_t at = input[i] < 0 ? INPUTS - 2 : input[i] % (INPUTS - 1);
        const int pieces = (int)(at / PIECE) + 1;
        const int records = try_input(&job, &honest, &wrong, input[i], i % 2);
        cr_expect(records == 1 + pieces, "input %lld: %d questions", (long long)input[i], records);
    }
    test_provider_close(&wrong);
    test_provider_close(&honest);
    test_job_close(&job);
}

/* ---- how much one question may ask for ---- */

static vd_status read_leaves(const test_job *job, const vd_tree_name *tree, uint32_t count,
                             vd_answer_most *most) {
    const vd_job_programs programs = {.program = &job->program};
    uint64_t leaf[2000];
    const vd_hash assignment = {{1}};
    const vd_question out = {
        .kind = VD_ASK_PROVE, .tree = *tree, .leaf = leaf, .leaf_count = count};
    vd_question in = {0};
    vd_buf payload = {0};
    for (uint32_t i = 0; i < count; i++)
        leaf[i] = i;
    cr_assert(vd_question_write(&out, &assignment, &payload, NULL) == VD_OK);
    const vd_status status =
        vd_question_read(payload.data, payload.size, &programs, &assignment, &in, NULL, NULL);
    *most = vd_answer_most_of(&out, &programs);
    vd_question_free(&in);
    vd_buf_free(&payload);
    return status;
}

Test(wide, a_question_asks_for_no_more_leaves_than_an_answer_may_have) {
    static const struct {
        vd_tree_name tree;
        uint32_t leaves;
    } each[] = {
        {{.kind = VD_TREE_STATE, .step = 1}, 1024},
        {{.kind = VD_TREE_TENSOR, .step = 0, .value = 0}, 1024},
        {{.kind = VD_TREE_TRACE, .step = -1}, 256},
        {{.kind = VD_TREE_TRACE, .step = 0}, 256},
        {{.kind = VD_TREE_RUN}, 2},
        {{.kind = VD_TREE_SUBRUN, .step = 0, .to = 3}, 2},
    };
    const ro_shape large = {RO_F32, 1, {1 << 20}};
    test_job job;
    test_job_open_leaves(&job, 2000);
    job.program.steps = job.program.checkpoint_interval = 3; /* the program is not run */
    job.program.leaf[0].shape = large;
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
        const bool is_run = each[i].tree.kind == VD_TREE_RUN;
        vd_answer_most most;
        job.program.checkpoint_interval = is_run ? 1 : 3;
        cr_expect(read_leaves(&job, &each[i].tree, each[i].leaves, &most) == VD_OK, "%zu", i);
        cr_expect(most.payload < 4 << 20, "%zu: %zu bytes", i, most.payload);
        cr_expect(read_leaves(&job, &each[i].tree, each[i].leaves + 1, &most) == VD_ERR_PEER, "%zu",
                  i);
    }
    test_job_close(&job);
}

/* One game needs many records, or many leaves and a section, but not both: PROTOCOL.md section 9.
 */
Test(wide, operators_of_more_than_eight_inputs_read_two_elements_and_are_not_free) {
    static const char *const known[] = {"read_batch", "concat", "concat_axis"};
    enum { KNOWN = sizeof known / sizeof known[0] };
    int wide = 0;
    for (int op = 1; op < RO_OP_END; op++) {
        const ro_op_info *info = ro_op_describe(op);
        if (!info || info->max_inputs <= 8)
            continue;
        bool is_known = false;
        for (int i = 0; i < KNOWN; i++)
            is_known |= strcmp(info->name, known[i]) == 0;
        cr_expect(is_known && !ro_op_is_free(op), "%s", info->name);
        wide++;
    }
    cr_expect(wide == KNOWN, "%d", wide);
}
