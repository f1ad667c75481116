/* Disputes continued from the journal: a referee that dies at any write comes to the same verdict,
 * and does not repeat answered questions. Clocks: a slow provider makes no other provider wait. */
#include "verde/protocol/arbiter.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/dispute.h"

enum { STEPS = 4, EVERY = 2, MOST = 4 };

/* BUSY always says that it is working; ASTRAY answers with another key; FLEES does so after it has
 * said that it is working; REFUSES refuses every question. */
typedef enum { PROMPT, SLOW, MUTE, BUSY, ASTRAY, FLEES, REFUSES } manner;

/* A machine; its disk survives its processes. */
typedef struct {
    test_job job;
    test_provider provider[MOST];
    uint32_t count;
    manner manner[MOST];
    bool own_rival, mistaken;
    double slow_s, patience_s; /* patience_s: the referee's; 0: its default */
    double now;
    struct letter {
        bool away;
        vd_reply reply;
        vd_buf note;
        double comes;
    } letter[MOST];
    vd_key *key;
    vd_buf payload, note; /* of the assignment */
    vd_buf disk;
    uint32_t appends, dies_at; /* dies_at: number of the write; 0: never */
    uint32_t sent;
    uint32_t lines; /* number of lines about working providers */
    double told_s;  /* end of game 1, according to the log */
    vd_buf verdict;
    vd_outcome outcome;
    vd_minutes minutes;
} machine;

/* ---- the referee's world ---- */

static double now(void *user) {
    return ((machine *)user)->now;
}

static void expect_unanswered(machine *m, uint32_t provider, const vd_hash *question) {
    vd_minutes on_disk;
    cr_assert(vd_minutes_read(m->disk.data, m->disk.size, &on_disk, NULL) == VD_OK);
    bool noted = false;
    for (size_t i = 0; i < on_disk.count; i++) {
        const vd_noted *n = &on_disk.noted[i];
        if (n->provider != provider || !vd_hash_equal(&n->question, question))
            continue;
        noted |= n->kind == VD_NOTED_QUESTION;
        cr_expect(n->kind == VD_NOTED_QUESTION || n->kind == VD_NOTED_CLOCK,
                  "provider %u is asked again", provider);
    }
    cr_expect(noted, "a question is sent that is not in the journal");
    vd_minutes_free(&on_disk);
}

static vd_hash question_of(const vd_post *post) {
    json_t *request, *payload;
    vd_hash out;
    cr_assert(vd_json_read(post->request->data, post->request->size, 100, &request, NULL) == VD_OK);
    vd_buf bytes = {0};
    const char *text =
        json_string_value(json_object_get(json_object_get(request, "question"), "payload"));
    cr_assert(text && vd_unbase64(text, strlen(text), &bytes, NULL) == VD_OK);
    cr_assert(vd_json_read(bytes.data, bytes.size, 1000, &payload, NULL) == VD_OK);
    cr_assert(vd_hash_tagged("verde/question/1", bytes.data, bytes.size, &out));
    json_decref(payload);
    json_decref(request);
    vd_buf_free(&bytes);
    return out;
}

static vd_status send_post(void *user, const vd_post *post, vd_err *err) {
    machine *m = user;
    struct letter *l = &m->letter[post->provider];
    const vd_hash question = question_of(post);
    (void)err;
    cr_assert(!l->away);
    expect_unanswered(m, post->provider, &question);
    m->sent++;
    *l = (struct letter){.away = true, .reply = {.provider = post->provider}, .note = l->note};
    l->note.size = 0;
    const manner how = m->manner[post->provider];
    l->reply.seconds = how == SLOW ? m->slow_s : how == MUTE ? post->seconds : 0.01;
    l->comes = m->now + l->reply.seconds;
    l->reply.kind = how == MUTE                   ? VD_REPLY_TROUBLE
                    : how == BUSY || how == FLEES ? VD_REPLY_WORKING
                    : how == ASTRAY               ? VD_REPLY_ASTRAY
                    : how == REFUSES              ? VD_REPLY_REFUSED
                                                  : VD_REPLY_ANSWER;
    l->reply.said = how == REFUSES;
    if (how == FLEES)
        m->manner[post->provider] = ASTRAY;
    snprintf(l->reply.why, sizeof l->reply.why, "did not answer in time");
    if (l->reply.kind == VD_REPLY_ANSWER &&
        vd_provider_answer(&m->provider[post->provider].side, post->request->data,
                           post->request->size, &l->note, NULL) != VD_OK)
        l->reply.kind = VD_REPLY_REFUSED;
    l->reply.bytes = l->note.data;
    l->reply.size = l->note.size;
    return VD_OK;
}

static vd_status wait_reply(void *user, double until, vd_reply *out, vd_err *err) {
    machine *m = user;
    struct letter *first = NULL;
    (void)err;
    for (uint32_t p = 0; p < m->count; p++)
        if (m->letter[p].away && (!first || m->letter[p].comes < first->comes))
            first = &m->letter[p];
    *out = (vd_reply){.kind = VD_REPLY_NONE};
    if (!first || first->comes > until) {
        cr_assert(until != HUGE_VAL, "waits for nothing");
        m->now = until > m->now ? until : m->now;
        return VD_OK;
    }
    m->now = first->comes > m->now ? first->comes : m->now;
    first->away = false;
    *out = first->reply;
    return VD_OK;
}

/* A process that dies has written nothing, a part, or everything. */
static vd_status append(void *user, const void *bytes, size_t size, vd_err *err) {
    machine *m = user;
    const bool dies = ++m->appends == m->dies_at;
    const size_t part[] = {0, 1, size / 2, size - 1, size};
    vd_put(&m->disk, bytes, dies ? part[m->dies_at % 5] : size);
    cr_assert(vd_buf_ok(&m->disk));
    return dies ? vd_fail(err, VD_ERR_LOCAL, "killed") : VD_OK;
}

/* Counts log lines about a provider that is working. */
static void tell(void *user, vd_telling how, const char *line) {
    machine *m = user;
    if (how != VD_TELL_PASSING && strstr(line, "did not answer in time"))
        m->lines++;
}

/* ---- machines ---- */

static void assign(machine *m) {
    vd_assignment a = {.program = m->job.hash, .nonce = {42}, .provider_count = m->count};
    const uint8_t seed[32] = {77};
    cr_assert(vd_key_from_seed(seed, &m->key, NULL) == VD_OK);
    vd_key_public(m->key, &a.referee);
    for (uint32_t p = 0; p < m->count; p++)
        vd_key_public(m->provider[p].key, &a.provider[p]);
    cr_assert(vd_assignment_write(&a, &m->payload, NULL) == VD_OK);
    cr_assert(vd_note_sign(m->key, VD_TYPE_ASSIGNMENT, m->payload.data, m->payload.size, &m->note,
                           NULL) == VD_OK);
}

/* faults: NULL for an honest provider. */
static machine *build(const char *const *faults, uint32_t count) {
    machine *m = calloc(1, sizeof *m);
    cr_assert(m);
    m->count = count;
    test_job_open(&m->job, VD_MODEL_MLP, STEPS, EVERY);
    for (uint32_t p = 0; p < count; p++) {
        vd_fault fault = {0};
        if (faults[p])
            fault = test_fault(&m->job, faults[p]);
        test_provider_open(&m->provider[p], &m->job, (uint8_t)(p + 1), faults[p] ? &fault : NULL);
        m->provider[p].side.pace = (vd_pace){
            .plain_us = 500000, .committed_us = 600000, .traced_us = 900000, .distance = EVERY};
    }
    assign(m);
    return m;
}

static void tear_down(machine *m) {
    for (uint32_t p = 0; p < m->count; p++) {
        test_provider_close(&m->provider[p]);
        vd_buf_free(&m->letter[p].note);
    }
    test_job_close(&m->job);
    vd_buf_free(&m->payload);
    vd_buf_free(&m->note);
    vd_buf_free(&m->disk);
    vd_buf_free(&m->verdict);
    vd_outcome_free(&m->outcome);
    vd_key_destroy(m->key);
    free(m);
}

static void write_verdict(machine *m, const vd_arbiter *a) {
    const vd_cost cost = {.bytes_in = 1};
    const vd_tournament *many = vd_arbiter_tournament(a);
    m->mistaken = vd_arbiter_mistaken(a);
    if (m->mistaken)
        return;
    vd_buf_free(&m->verdict);
    m->verdict = (vd_buf){0};
    vd_status status = many ? vd_verdict_write_many(m->key, &m->job.program, &m->note, many, &cost,
                                                    &m->verdict, NULL)
                            : vd_verdict_write(m->key, &m->job.program, &m->note,
                                               vd_arbiter_referee(a), &cost, &m->verdict, NULL);
    cr_assert(status == VD_OK);
    vd_outcome_free(&m->outcome);
    cr_assert(vd_outcome_copy(vd_arbiter_outcome(a), &m->outcome, NULL) == VD_OK);
}

/* Between two providers each second belongs to one level; simultaneous games count separately. A
 * dispute that ends as a mistake has no verdict with times. */
static void expect_seconds(const machine *m, const vd_arbiter *a, double began) {
    double sum = 0;
    if (vd_arbiter_mistaken(a))
        return;
    for (int i = 0; i < VD_LEVELS; i++)
        sum += vd_arbiter_level_seconds(a)[i];
    cr_expect(m->count > 2 ? sum >= m->now - began - 1e-6 : fabs(sum - (m->now - began)) < 1e-6,
              "%.9f s of all levels, of %.9f", sum, m->now - began);
}

/* One life of the process: reads the journal and continues. */
static vd_status live(machine *m, vd_err *err) {
    const vd_world world = {.user = m,
                            .now = now,
                            .send = send_post,
                            .wait = wait_reply,
                            .append = append,
                            .tell = tell};
    vd_minutes minutes;
    vd_arbiter *a;
    uint8_t *read = malloc(m->disk.size + 1);
    cr_assert(read);
    if (m->disk.size)
        memcpy(read, m->disk.data, m->disk.size);
    for (uint32_t p = 0; p < m->count; p++)
        m->letter[p].away = false;
    m->appends = m->sent = 0;
    vd_status status = vd_minutes_read(read, m->disk.size, &minutes, err);
    cr_assert(status == VD_OK, "%s", err->text);
    m->disk.size = (size_t)minutes.whole;
    const vd_arbiter_options options = {.referee = {.program = &m->job.program,
                                                    .assignment = &m->payload,
                                                    .key = m->key,
                                                    .leaf = vd_leaf_element},
                                        .assignment = &m->note,
                                        .world = &world,
                                        .own_rival = m->own_rival,
                                        .patience_s = m->patience_s,
                                        .minutes = &minutes};
    cr_assert(vd_arbiter_create(&options, &a, err) == VD_OK, "%s", err->text);
    const double began = m->now;
    status = vd_arbiter_run(a, err);
    if (status == VD_OK)
        expect_seconds(m, a, began);
    if (status == VD_OK)
        write_verdict(m, a);
    vd_arbiter_destroy(a);
    vd_minutes_free(&minutes);
    free(read);
    return status;
}

static void settle(machine *m) {
    vd_err err = {0};
    cr_assert(live(m, &err) == VD_OK, "%s", err.text);
}

/* ---- death at every write ---- */

static size_t count_questions(const machine *m) {
    vd_minutes on_disk;
    size_t count = 0;
    cr_assert(vd_minutes_read(m->disk.data, m->disk.size, &on_disk, NULL) == VD_OK);
    for (size_t i = 0; i < on_disk.count; i++)
        count += on_disk.noted[i].kind == VD_NOTED_QUESTION;
    vd_minutes_free(&on_disk);
    return count;
}

static void die_everywhere(machine *m) {
    vd_err err = {0};
    settle(m);
    const uint32_t appends = m->appends;
    const size_t questions = count_questions(m);
    vd_buf whole = m->verdict;
    m->verdict = (vd_buf){0};
    cr_assert(appends > 20);
    for (uint32_t at = 1; at <= appends; at++) {
        m->disk.size = 0;
        m->dies_at = at;
        cr_assert(live(m, &err) == VD_ERR_LOCAL);
        m->dies_at = 0;
        settle(m);
        cr_expect(m->verdict.size == whole.size &&
                      memcmp(m->verdict.data, whole.data, whole.size) == 0,
                  "killed at write %u: another verdict", at);
        cr_expect(count_questions(m) == questions, "killed at write %u: %zu questions, not %zu", at,
                  count_questions(m), questions);
    }
    settle(m); /* again, after the end: nothing is asked */
    cr_expect(m->sent == 0 && m->appends == 0);
    vd_buf_free(&whole);
}

Test(arbiter, dies_between_two) {
    machine *m = build((const char *[]){NULL, "element@3"}, 2);
    die_everywhere(m);
    cr_expect(m->outcome.party[1].grade == VD_GRADE_WRONG_OUTPUT && m->outcome.accepted);
    tear_down(m);
}

Test(arbiter, dies_among_four) {
    machine *m = build((const char *[]){"lr@1", NULL, "element@3", "lr@1"}, 4);
    m->manner[2] = MUTE; /* the journal also has missing answers */
    die_everywhere(m);
    cr_expect(m->outcome.party[1].standing == VD_STANDS && m->outcome.accepted);
    tear_down(m);
}

/* Killed at every second write, the referee still comes to the end. */
Test(arbiter, dies_often) {
    machine *m = build((const char *[]){"lr@1", NULL, "element@3", "skip@1"}, 4);
    vd_err err = {0};
    settle(m);
    vd_buf whole = m->verdict;
    m->verdict = (vd_buf){0};
    m->disk.size = 0;
    uint32_t deaths = 0;
    for (m->dies_at = 4; live(m, &err) != VD_OK; deaths++) /* all of that write is on disk */
        cr_assert(deaths < 1000);
    cr_expect(deaths > 10);
    cr_expect(m->verdict.size == whole.size &&
              memcmp(m->verdict.data, whole.data, whole.size) == 0);
    vd_buf_free(&whole);
    tear_down(m);
}

/* Unsigned answers are detected, even if their frames fit their hashes. */
Test(arbiter, forged_answers) {
    machine *m = build((const char *[]){NULL, "element@3"}, 2);
    vd_err err = {0};
    settle(m);
    vd_minutes old, new = {0};
    vd_buf forged = {0};
    cr_assert(vd_minutes_read(m->disk.data, m->disk.size, &old, NULL) == VD_OK);
    for (size_t i = 0; i < old.count; i++) {
        vd_noted n = old.noted[i];
        vd_buf bytes = {0};
        vd_put(&bytes, n.bytes, n.size);
        if (n.kind == VD_NOTED_ANSWER)
            bytes.data[n.size / 2] ^= 1;
        n.bytes = bytes.data;
        cr_assert(vd_minutes_frame(&new, &n, 1, &forged, NULL) == VD_OK);
        vd_buf_free(&bytes);
    }
    vd_minutes_free(&old);
    vd_minutes_free(&new);
    vd_buf_free(&m->disk);
    m->disk = forged;
    cr_assert(live(m, &err) == VD_ERR_USAGE);
    cr_expect_str_eq(err.text,
                     "the journal does not fit: provider 1 did not sign an answer that it has");
    tear_down(m);
}

/* ---- clocks ---- */

/* Returns a provider's longest game, whose limit is in THREATS.md. */
static double longest_game(const machine *m, uint32_t p) {
    const vd_program *program = &m->job.program;
    const vd_pace *pace = &m->provider[p].side.pace;
    const vd_pace_caps most = vd_pace_caps_of(program, 0);
    return VD_PATIENCE_ANSWERS * VD_PATIENCE_S +
           VD_WORK_FACTOR * (vd_work_seconds(VD_WORK_STATES, program, pace, &most) +
                             vd_work_seconds(VD_WORK_STEP, program, pace, &most));
}

Test(arbiter, works_for_ever) {
    machine *m = build((const char *[]){NULL, "element@3"}, 2);
    const double longest = longest_game(m, 1);
    m->manner[1] = BUSY;
    settle(m); /* from the first question on */
    cr_expect(m->outcome.party[1].grade == VD_GRADE_TIMEOUT && m->now < 700, "%f s", m->now);
    cr_expect(m->outcome.accepted);
    cr_expect(longest < 620, "%f s", longest);
    cr_expect(m->lines == 1, "%u lines say the same", m->lines);
    tear_down(m);
}

/* A stated pace of years is capped. */
Test(arbiter, boasts_of_slowness) {
    machine *m = build((const char *[]){NULL, "element@3"}, 2);
    m->provider[1].side.pace =
        (vd_pace){VD_PACE_US_LIMIT, VD_PACE_US_LIMIT, VD_PACE_US_LIMIT, INT32_MAX};
    cr_expect(longest_game(m, 1) <= 600 + 3 * (4 + 2 + 4 + 2 + 2), "%f", longest_game(m, 1));
    tear_down(m);
}

/* A slow answer only uses up its provider's time; each game has its own clock. */
Test(arbiter, slow_for_itself) {
    machine *m = build((const char *[]){NULL, NULL, "element@3", "lr@1"}, 4);
    m->manner[3] = MUTE;
    settle(m);
    cr_expect(m->outcome.party[0].standing == VD_STANDS);
    cr_expect(m->outcome.party[1].standing == VD_STANDS);
    cr_expect(m->outcome.party[3].grade == VD_GRADE_TIMEOUT);
    tear_down(m);
    /* Every answer of the first two takes 40 s: that is within the clock for one game, but would
     * not be for two. */
    m = build((const char *[]){NULL, "skip@1", "lr@1", "element@3"}, 4);
    m->manner[0] = SLOW;
    m->slow_s = 40;
    settle(m);
    cr_expect(m->outcome.party[0].standing == VD_STANDS, "%s", m->outcome.party[0].reason);
    cr_expect(m->outcome.accepted && m->outcome.game_count >= 2);
    cr_expect(m->now > 600, "%f s: the test tries nothing", m->now);
    tear_down(m);
}

/* After a restart a provider's clock continues with the time used before; it stands still while the
 * referee is dead. */
Test(arbiter, downtime_is_free) {
    machine *m = build((const char *[]){NULL, "element@3"}, 2);
    vd_err err = {0};
    m->manner[1] = BUSY;
    m->dies_at = 30;
    cr_assert(live(m, &err) == VD_ERR_LOCAL);
    const double died = m->now;
    m->now += 1e6;
    m->dies_at = 0;
    settle(m);
    const double in_all = died + (m->now - died - 1e6);
    cr_expect(m->outcome.party[0].standing == VD_STANDS && m->outcome.accepted);
    cr_expect(died > 100 && in_all > 550 && in_all < 700, "%f s after %f s", in_all, died);
    tear_down(m);
}

/* A provider that answers first with its key and then with another forfeits: its URL was right. */
Test(arbiter, flees_from_the_first_round) {
    machine *m = build((const char *[]){NULL, "element@3"}, 2);
    vd_err err = {0};
    m->manner[1] = ASTRAY;
    cr_expect(live(m, &err) == VD_ERR_LOCAL);
    cr_expect(strstr(err.text, "provider 2: "), "%s", err.text);
    m->disk.size = 0;
    m->manner[1] = FLEES;
    settle(m);
    cr_expect(m->outcome.party[1].grade == VD_GRADE_TIMEOUT && m->outcome.accepted);
    cr_expect(m->outcome.result == VD_RESULT_FORFEIT);
    tear_down(m);
}

/* A refusal is a forfeit if the other's claim stands against it. Against the referee's own rival it
 * is probably due to an unknown key, and nobody is blamed. */
Test(arbiter, a_refusal_beside_an_own_rival_is_a_mistake) {
    machine *m = build((const char *[]){"element@3", NULL}, 2);
    m->manner[0] = REFUSES;
    settle(m);
    cr_expect(!m->mistaken && m->outcome.result == VD_RESULT_FORFEIT);
    cr_expect(m->outcome.party[0].standing == VD_FORFEITED);
    m->disk.size = 0;
    m->own_rival = true;
    settle(m);
    cr_expect(m->mistaken);
    tear_down(m);
    m = build((const char *[]){"element@3", NULL}, 2);
    m->own_rival = true;
    m->manner[1] = REFUSES;
    settle(m);
    cr_expect(!m->mistaken && m->outcome.party[1].standing == VD_FORFEITED, "the rival's own");
    tear_down(m);
}

/* A second run of weeks does not fill the journal, which has all of its time but a hundredth. */
Test(arbiter, weeks_take_few_entries) {
    machine *m = build((const char *[]){NULL, "element@3"}, 2);
    vd_minutes on_disk;
    size_t clocks = 0;
    double last = 0, now_us = 0;
    m->manner[1] = BUSY;
    m->patience_s = 1000; /* the first answer has five times that */
    settle(m);
    cr_expect(m->now > 4900, "%f s", m->now);
    cr_assert(vd_minutes_read(m->disk.data, m->disk.size, &on_disk, NULL) == VD_OK);
    for (size_t i = 0; i < on_disk.count; i++)
        if (on_disk.noted[i].kind == VD_NOTED_CLOCK) {
            clocks++;
            now_us = (double)on_disk.noted[i].used_us;
            cr_expect(now_us - last < 12e6 + 0.0102 * now_us, "%.0f s after %.0f s", now_us / 1e6,
                      last / 1e6);
            last = now_us;
        }
    cr_expect(clocks > 200 && clocks < 350, "%zu, and not 500", clocks);
    vd_minutes_free(&on_disk);
    tear_down(m);
}
