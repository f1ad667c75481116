/* A provider that answers while it computes: a referee that asks meanwhile is told to ask again,
 * and nobody waits for another referee's work. */
#include "tests/support/dispute.h"
#include "verde/protocol/desk.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A slow source in front of the real one. */
typedef struct {
    vd_source real;
    atomic_bool open;    /* while false, re-executions wait */
    atomic_int executed; /* number of re-executions */
    atomic_int failing;  /* number of re-executions that will fail */
    int64_t order[16];   /* steps at which re-executions began, in their order */
    int slow_ms;
} gate;

static vd_status wait_for_states(void *user, int64_t from, int64_t to, vd_hash *state,
                                 vd_err *err) {
    gate *g = user;
    const int i = atomic_fetch_add(&g->executed, 1);
    if (i < 16)
        g->order[i] = from;
    usleep((useconds_t)g->slow_ms * 1000);
    while (!atomic_load(&g->open))
        usleep(1000);
    if (atomic_load(&g->failing) > 0) {
        atomic_fetch_sub(&g->failing, 1);
        return vd_fail(err, VD_ERR_LOCAL, "no memory just now");
    }
    return g->real.states(g->real.user, from, to, state, err);
}

static vd_status real_run(void *user, vd_hash *state, vd_err *err) {
    gate *g = user;
    return g->real.run(g->real.user, state, err);
}

static vd_status real_trace(void *user, int64_t step, const vd_records **out, vd_err *err) {
    gate *g = user;
    return g->real.trace(g->real.user, step, out, err);
}

static vd_status real_leaves(void *user, int64_t step, vd_hash *tensor, vd_err *err) {
    gate *g = user;
    return g->real.leaves(g->real.user, step, tensor, err);
}

static vd_status real_tensor(void *user, int64_t step, uint32_t value, const void **data,
                             vd_err *err) {
    gate *g = user;
    return g->real.tensor(g->real.user, step, value, data, err);
}

static void real_progress(void *user, int64_t *done, int64_t *of) {
    (void)user;
    *done = 3;
    *of = 7;
}

static void open_gate(void *user) {
    gate *g = user;
    atomic_store(&g->open, true);
}

static void put_gate(gate *g, test_provider *p) {
    g->real = p->side.source;
    p->side.source = (vd_source){.user = g,
                                 .run = real_run,
                                 .states = wait_for_states,
                                 .trace = real_trace,
                                 .leaves = real_leaves,
                                 .tensor = real_tensor,
                                 .run_root = g->real.run_root,
                                 .progress = real_progress,
                                 .stop = open_gate,
                                 .dishonest = true}; /* an answer then takes one call of `states` */
}

typedef struct {
    test_job job;
    test_provider p;
    vd_key *other;
    gate gate;
    vd_desk *desk;
} bench;

static vd_public_key public_of(const vd_key *key) {
    vd_public_key out;
    vd_key_public(key, &out);
    return out;
}

static vd_key *key_of(uint8_t name) {
    uint8_t seed[32];
    vd_key *key;
    memset(seed, name, sizeof seed);
    cr_assert(vd_key_from_seed(seed, &key, NULL) == VD_OK);
    return key;
}

static void bench_open(bench *b) {
    test_job_open(&b->job, VD_MODEL_MLP, 12, 2);
    test_provider_open(&b->p, &b->job, 1, NULL);
    b->other = key_of(2);
    b->gate = (gate){.slow_ms = 0};
    put_gate(&b->gate, &b->p);
    cr_assert(vd_desk_create(&b->p.side, &b->desk, NULL) == VD_OK);
}

static void bench_close(bench *b) {
    vd_desk_destroy(b->desk);
    vd_key_destroy(b->other);
    test_provider_close(&b->p);
    test_job_close(&b->job);
}

/* Asks as the referee of this name. Gives the body of its answer, if there is one. */
static vd_status ask(bench *b, uint8_t referee, const vd_question *question, vd_buf *note,
                     vd_working *working) {
    vd_key *key = key_of(referee);
    vd_buf assignment = {0}, payload = {0}, notes[2] = {0}, request = {0};
    vd_hash hash;
    vd_err err = {0};
    vd_assignment a = {.program = b->job.hash,
                       .referee = public_of(key),
                       .provider = {public_of(b->p.key), public_of(b->other)},
                       .provider_count = 2};
    cr_assert(vd_assignment_write(&a, &assignment, NULL) == VD_OK);
    cr_assert(vd_assignment_hash(assignment.data, assignment.size, &hash));
    cr_assert(vd_question_write(question, &hash, &payload, NULL) == VD_OK);
    cr_assert(vd_note_sign(key, VD_TYPE_ASSIGNMENT, assignment.data, assignment.size, &notes[0],
                           NULL) == VD_OK);
    cr_assert(vd_note_sign(key, VD_TYPE_QUESTION, payload.data, payload.size, &notes[1], NULL) ==
              VD_OK);
    cr_assert(vd_request_write(&notes[0], &notes[1], &request, NULL) == VD_OK);
    vd_status status = vd_desk_answer(b->desk, request.data, request.size, note, working, &err);
    vd_buf_free(&assignment);
    vd_buf_free(&payload);
    vd_buf_free(&notes[0]);
    vd_buf_free(&notes[1]);
    vd_buf_free(&request);
    vd_key_destroy(key);
    return status;
}

static vd_question subrun(int64_t from) {
    return (vd_question){.kind = VD_ASK_SUBRUN,
                         .tree = {.kind = VD_TREE_SUBRUN, .step = from, .to = from + 2}};
}

static vd_status ask_once(bench *b, uint8_t referee, int64_t from, vd_working *working) {
    const vd_question q = subrun(from);
    vd_buf note = {0};
    vd_status status = ask(b, referee, &q, &note, working);
    cr_expect((status == VD_OK) == (note.size > 0));
    vd_buf_free(&note);
    return status;
}

static vd_status ask_until(bench *b, uint8_t referee, int64_t from) {
    vd_working working;
    vd_status status;
    while ((status = ask_once(b, referee, from, &working)) == VD_ERR_IO)
        usleep(1000);
    return status;
}

static void expect_working(bench *b, uint8_t referee, int64_t from, bool waits) {
    vd_working working;
    cr_expect(ask_once(b, referee, from, &working) == VD_ERR_IO);
    cr_expect(working.working && working.waits == waits, "from %lld", (long long)from);
    if (!waits)
        cr_expect(working.done == 3 && working.of == 7);
}

static void wait_until_executed(bench *b, int count) {
    while (atomic_load(&b->gate.executed) < count)
        usleep(1000);
}

Test(desk, tells_to_ask_again_and_keeps_the_answer, .timeout = 60) {
    bench b;
    vd_working working;
    bench_open(&b);
    cr_expect(ask_once(&b, 7, 0, &working) == VD_ERR_IO && working.working);
    wait_until_executed(&b, 1);
    for (int i = 0; i < 5; i++)
        expect_working(&b, 7, 0, false);
    open_gate(&b.gate);
    cr_expect(ask_until(&b, 7, 0) == VD_OK);
    cr_expect(ask_once(&b, 7, 0, &working) == VD_OK, "asked again after its answer");
    cr_expect(atomic_load(&b.gate.executed) == 1, "executed %d times", b.gate.executed);
    bench_close(&b);
}

Test(desk, a_question_that_waits_holds_up_no_other, .timeout = 60) {
    static const vd_question commit = {.kind = VD_ASK_COMMIT};
    static const vd_question run = {
        .kind = VD_ASK_OPEN, .tree = {.kind = VD_TREE_RUN}, .hi = 7, .depth = 3};
    bench b;
    vd_working working;
    vd_buf note = {0};
    bench_open(&b);
    (void)!ask_once(&b, 7, 0, &working);
    wait_until_executed(&b, 1);
    expect_working(&b, 7, 2, true);
    cr_expect(ask(&b, 7, &commit, &note, &working) == VD_OK, "nothing is executed for it");
    cr_expect(ask(&b, 8, &run, &note, &working) == VD_OK, "nor for this");
    vd_buf_free(&note);
    bench_close(&b); /* while an answer is being computed */
}

Test(desk, referees_take_turns, .timeout = 60) {
    static const int64_t order[] = {0, 8, 10, 2, 4, 6};
    bench b;
    vd_working working;
    bench_open(&b);
    (void)!ask_once(&b, 7, 0, &working);
    wait_until_executed(&b, 1);
    for (int64_t from = 2; from <= 6; from += 2)
        (void)!ask_once(&b, 7, from, &working);
    (void)!ask_once(&b, 8, 8, &working);
    (void)!ask_once(&b, 9, 10, &working);
    open_gate(&b.gate);
    cr_expect(ask_until(&b, 7, 6) == VD_OK);
    for (int i = 0; i < 6; i++)
        cr_expect(b.gate.order[i] == order[i], "turn %d: %lld", i, (long long)b.gate.order[i]);
    bench_close(&b);
}

typedef struct {
    double of[2]; /* seconds of referees 7 and 8 */
    int others;
} bill;

static void note_charge(void *user, const vd_public_key *referee, double seconds) {
    bill *out = user;
    bool found = false;
    for (uint8_t i = 0; i < 2; i++) {
        vd_key *key = key_of((uint8_t)(7 + i));
        const vd_public_key public = public_of(key);
        if (memcmp(&public, referee, sizeof public) == 0)
            out->of[i] += seconds;
        found |= memcmp(&public, referee, sizeof public) == 0;
        vd_key_destroy(key);
    }
    out->others += !found;
}

static bill settle(bench *b) {
    bill out = {.others = 0};
    vd_desk_settle(b->desk, note_charge, &out);
    return out;
}

/* A referee that waits for another one's answer is charged nothing for this, and nothing is charged
 * twice. */
Test(desk, tells_what_each_referee_has_taken, .timeout = 60) {
    bench b;
    vd_working working;
    bench_open(&b);
    bill now = settle(&b);
    cr_expect(now.of[0] == 0 && now.of[1] == 0);
    (void)!ask_once(&b, 7, 0, &working);
    (void)!ask_once(&b, 8, 2, &working);
    wait_until_executed(&b, 1);
    usleep(50000);
    now = settle(&b);
    cr_expect(now.of[0] >= 0.05 && now.of[1] == 0, "%f, %f", now.of[0], now.of[1]);
    b.gate.slow_ms = 100; /* slows the second re-execution down */
    const double start = vd_seconds();
    open_gate(&b.gate);
    cr_expect(ask_until(&b, 8, 2) == VD_OK && ask_until(&b, 7, 0) == VD_OK);
    now = settle(&b);
    cr_expect(now.of[1] >= 0.1, "%f", now.of[1]);
    cr_expect(now.of[0] + now.of[1] <= vd_seconds() - start + 0.05, "%f", now.of[0]);
    cr_expect(ask_until(&b, 7, 0) == VD_OK); /* the answer is ready */
    now = settle(&b);
    cr_expect(now.of[0] == 0 && now.of[1] == 0 && now.others == 0);
    bench_close(&b);
}

/* A provider in trouble must not say for ever that it is working. */
Test(desk, tells_of_a_failure_and_tries_again, .timeout = 60) {
    bench b;
    vd_working working;
    bench_open(&b);
    open_gate(&b.gate);
    atomic_store(&b.gate.failing, 3);
    for (int i = 0; i < 3; i++)
        cr_expect(ask_until(&b, 7, 0) == VD_ERR_LOCAL, "failure %d", i);
    cr_expect(ask_until(&b, 7, 0) == VD_OK);
    atomic_store(&b.gate.failing, 3);
    for (int i = 0; i < 2; i++)
        cr_expect(ask_until(&b, 7, 2) == VD_ERR_LOCAL, "failure %d", i);
    atomic_store(&b.gate.open, false);
    while (ask_once(&b, 7, 2, &working) != VD_ERR_IO || working.working)
        usleep(1000);
    bench_close(&b);
}

/* With more questions than places, the one asked for longest ago gives way, and gets a place again
 * when it is asked once more. */
Test(desk, has_so_many_places, .timeout = 60) {
    bench b;
    vd_working working;
    bench_open(&b);
    (void)!ask_once(&b, 7, 0, &working);
    wait_until_executed(&b, 1);
    for (int name = 0; name < 3 * VD_DESK_MAX; name++)
        (void)!ask_once(&b, (uint8_t)(10 + name), 2, &working);
    expect_working(&b, 7, 0, false);
    open_gate(&b.gate);
    cr_expect(ask_until(&b, 7, 0) == VD_OK);
    cr_expect(ask_until(&b, 10, 2) == VD_OK);
    bench_close(&b);
}

static vd_question state_leaf(int64_t step, uint64_t *leaf) {
    return (vd_question){.kind = VD_ASK_PROVE,
                         .tree = {.kind = VD_TREE_STATE, .step = step},
                         .leaf = leaf,
                         .leaf_count = 1};
}

static void ask_of_every_state(bench *b, uint8_t referee) {
    vd_working working;
    vd_buf note = {0};
    for (uint64_t i = 0; i < 4 * VD_DESK_MAX; i++) {
        uint64_t leaf = i / 13;
        const vd_question q = state_leaf((int64_t)(i % 13), &leaf);
        vd_status status = ask(b, referee, &q, &note, &working);
        cr_assert(status == VD_OK || status == VD_ERR_IO, "%d", (int)status);
    }
    vd_buf_free(&note);
}

/* A referee asks more different questions than there are places. This pushes out neither a question
 * that another referee waits for, nor its answer before it is fetched. */
Test(desk, one_referees_many_questions_cost_another_one_no_place, .timeout = 60) {
    bench b;
    vd_working working;
    bench_open(&b);
    (void)!ask_once(&b, 7, 0, &working);
    wait_until_executed(&b, 1);
    (void)!ask_once(&b, 8, 2, &working);
    ask_of_every_state(&b, 7);
    open_gate(&b.gate);
    wait_until_executed(&b, 2);
    cr_expect(b.gate.order[1] == 2, "the other referee's question waits no longer");
    cr_expect(ask_until(&b, 8, 2) == VD_OK);
    ask_of_every_state(&b, 7);
    cr_expect(ask_once(&b, 8, 2, &working) == VD_OK, "its answer is gone");
    bench_close(&b);
}

/* Hundreds of unknown keys ask between two questions of a referee that has fetched an answer
 * before. It keeps its place, and has its turn after one of theirs. */
Test(desk, new_keys_push_out_no_referee_that_has_fetched_an_answer, .timeout = 60) {
    bench b;
    vd_working working;
    bench_open(&b);
    open_gate(&b.gate);
    cr_assert(ask_until(&b, 7, 0) == VD_OK);
    atomic_store(&b.gate.open, false);
    (void)!ask_once(&b, 9, 10, &working);
    wait_until_executed(&b, 2);
    expect_working(&b, 7, 2, true);
    for (int name = 0; name < 4 * VD_DESK_MAX; name++)
        (void)!ask_once(&b, (uint8_t)(10 + name), 4 + name % 3 * 2, &working);
    open_gate(&b.gate);
    wait_until_executed(&b, 4);
    cr_expect(b.gate.order[2] == 2, "turn 2 is of %lld", (long long)b.gate.order[2]);
    for (int name = 0; name < 4 * VD_DESK_MAX; name++)
        (void)!ask_once(&b, (uint8_t)(10 + name), 0, &working);
    cr_expect(ask_once(&b, 7, 2, &working) == VD_OK, "its answer is gone before it was fetched");
    bench_close(&b);
}

/* ---- disputes ---- */

Test(desk, a_dispute_is_settled_as_without_it, .timeout = 120) {
    test_job job;
    test_provider honest, liar;
    gate slow = {.slow_ms = 30};
    test_job_open(&job, VD_MODEL_MLP, 6, 3);
    const vd_fault fault = test_fault(&job, "poison@4");
    test_provider_open(&honest, &job, 1, NULL);
    test_provider_open(&liar, &job, 2, &fault);
    test_dispute d = {.job = &job, .side = {&honest.side, &liar.side}};
    atomic_store(&slow.open, true);
    put_gate(&slow, &honest);
    honest.side.source.dishonest = false;
    for (int p = 0; p < 2; p++)
        cr_assert(vd_desk_create(d.side[p], &d.desk[p], NULL) == VD_OK);
    test_settle(&d);
    test_expect_convicted(&d, 1, VD_GRADE_WRONG_OUTPUT, "through desks");
    test_dispute_close(&d);
    for (int p = 0; p < 2; p++)
        vd_desk_destroy(d.desk[p]);
    test_provider_close(&liar);
    test_provider_close(&honest);
    test_job_close(&job);
}
