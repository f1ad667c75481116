/* The referee's process in a simulated world of clock, network and disk. It is killed between or
 * within writes, and continues from its journal. */
#include "tests/sim/hearing.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/questions.h"

enum { DOWNTIME_MS = 4 * 3600 * 1000 };

/* ---- the referee's world ---- */

static double world_now(void *user) {
    return (double)((const sim_game *)user)->now_ms / 1000;
}

/* Kills the referee before its next action. */
static vd_status killed(sim_game *g, vd_err *err) {
    g->killed = true;
    g->kills++;
    return vd_fail(err, VD_ERR_LOCAL, "killed");
}

static bool is_killed_now(sim_game *g) {
    g->calls++;
    return g->kills < g->kills_max && g->calls == g->kill_at_call;
}

/* Checks that a question belongs to this dispute and has not been answered. */
static void check_post(sim_game *g, const vd_post *post, const vd_hash *name) {
    static const char begin[] = "{\"assignment\":";
    const size_t at = sizeof begin - 1;
    if (g->first_note.size == 0)
        vd_put(&g->first_note, g->note.data, g->note.size);
    if (post->request->size < at + g->first_note.size ||
        memcmp(post->request->data + at, g->first_note.data, g->first_note.size) != 0)
        sim_object(g, "the questions are of another assignment than before");
    if (sim_names_has(&g->answered, post->provider, name))
        sim_object(g, "provider %u is asked what it has answered", post->provider + 1);
}

static vd_status world_send(void *user, const vd_post *post, vd_err *err) {
    sim_game *g = user;
    sim_post *p = &g->post[post->provider];
    const int64_t wait_ms = (int64_t)(post->seconds * 1000);
    vd_hash name;
    if (is_killed_now(g))
        return killed(g, err);
    sim_need(vd_hash_tagged(NULL, post->request->data, post->request->size, &name), "no hash");
    if (!vd_hash_equal(&name, &p->name)) {
        p->name = name;
        sim_question_text(post->request, p->text, sizeof p->text);
        check_post(g, post, &name);
    }
    p->note.size = 0;
    p->heard = sim_request(&g->line[post->provider], post->request, &name, p->text, g->now_ms,
                           wait_ms > 0 ? wait_ms : 1, &p->note);
    p->away = true;
    p->at_ms = g->now_ms + p->heard.took_ms;
    return VD_OK;
}

/* Returns the next reply; among those at the same time, a random one. */
static sim_post *next_post(sim_game *g) {
    sim_post *next = NULL;
    for (uint32_t p = 0; p < g->count; p++) {
        sim_post *post = &g->post[g->backwards ? g->count - 1 - p : p];
        if (post->away && (!next || post->at_ms < next->at_ms))
            next = post;
    }
    return next;
}

static void take_post(sim_game *g, sim_post *post, vd_reply *out) {
    static const vd_reply_kind kinds[] = {VD_REPLY_TROUBLE, VD_REPLY_WORKING, VD_REPLY_ANSWER};
    const uint32_t provider = (uint32_t)(post - g->post);
    post->away = false;
    *out = (vd_reply){.kind = kinds[post->heard.kind],
                      .provider = provider,
                      .bytes = post->note.data,
                      .size = post->note.size,
                      .seconds = (double)post->heard.took_ms / 1000};
    snprintf(out->why, sizeof out->why, "%s", sim_heard_name(post->heard.kind));
    if (post->heard.kind == SIM_ANSWER) {
        g->heard_provider = provider, g->heard = post->name;
        g->last.size = 0;
        vd_put(&g->last, post->note.data, post->note.size);
    }
    if (post->heard.kind != SIM_WORKING)
        sim_log(g, "%10lld ms: provider %u, %s: %s, %zu bytes", (long long)g->now_ms, provider + 1,
                post->text, out->why, post->note.size);
}

static vd_status world_wait(void *user, double until, vd_reply *out, vd_err *err) {
    sim_game *g = user;
    sim_post *next = next_post(g);
    if (is_killed_now(g))
        return killed(g, err);
    *out = (vd_reply){.kind = VD_REPLY_NONE};
    if (!next && until > 1e15)
        return vd_fail(err, VD_ERR_LOCAL, "the referee waits for nobody, for ever");
    if (next && (double)next->at_ms / 1000 <= until) {
        g->now_ms = next->at_ms > g->now_ms ? next->at_ms : g->now_ms;
        take_post(g, next, out);
        return VD_OK;
    }
    /* Rounds up, so that it does not wait again for the same moment. */
    const int64_t until_ms = (int64_t)(until * 1000) + 1;
    g->now_ms = until_ms > g->now_ms ? until_ms : g->now_ms;
    return VD_OK;
}

/* Kills the referee at a write: before it, within it (as with a full disk), or after it. */
static vd_status torn(sim_game *g, const void *bytes, size_t size, vd_err *err) {
    const uint32_t how = g->kill_how % 3;
    const size_t part = how == 0 ? 0 : how == 1 ? sim_below(&g->random, (uint32_t)size) : size;
    vd_put(&g->disk, bytes, part);
    sim_log(g, "%10lld ms: the referee is killed, %zu of %zu bytes written", (long long)g->now_ms,
            part, size);
    return killed(g, err);
}

static vd_status world_append(void *user, const void *bytes, size_t size, vd_err *err) {
    sim_game *g = user;
    g->writes++;
    if (g->kills < g->kills_max && g->writes == g->kill_at_write)
        return torn(g, bytes, size, err);
    vd_put(&g->disk, bytes, size);
    sim_need(vd_buf_ok(&g->disk), "out of memory");
    if (!vd_hash_equal(&g->heard, &(vd_hash){{0}}))
        sim_names_add(&g->answered, g->heard_provider, &g->heard);
    g->heard = (vd_hash){{0}};
    return VD_OK;
}

/* ---- one life of the referee's process ---- */

/* Makes an assignment, with a new nonce each time. */
static void make_assignment(sim_game *g) {
    vd_assignment a = {.program = g->table->job.hash,
                       .nonce = {(uint8_t)(42 + g->assigned++)},
                       .provider_count = g->count,
                       .challenge = g->challenge};
    vd_key_public(g->table->referee, &a.referee);
    for (uint32_t p = 0; p < g->count; p++)
        vd_key_public(g->party[p].key, &a.provider[p]);
    g->assignment.size = g->note.size = 0;
    sim_need(vd_assignment_write(&a, &g->assignment, NULL) == VD_OK &&
                 vd_note_sign(g->table->referee, VD_TYPE_ASSIGNMENT, g->assignment.data,
                              g->assignment.size, &g->note, NULL) == VD_OK,
             "the assignment");
}

static void take_assignment(sim_game *g, const vd_noted *first) {
    vd_public_key referee;
    vd_key_public(g->table->referee, &referee);
    g->assignment.size = g->note.size = 0;
    vd_put(&g->note, first->bytes, first->size);
    if (vd_note_open(first->bytes, first->size, VD_QUESTION_BYTES_MAX, VD_TYPE_ASSIGNMENT, &referee,
                     &g->assignment, NULL) != VD_OK)
        sim_object(g, "the journal has no assignment");
}

/* Reads the journal into separate memory, which stays unchanged while more is appended. */
static vd_status read_journal(sim_game *g) {
    g->read.size = 0;
    vd_put(&g->read, g->disk.data, g->disk.size);
    vd_status status = vd_minutes_read(g->read.data, g->read.size, &g->minutes, &g->err);
    if (status != VD_OK)
        return status;
    g->disk.size = (size_t)g->minutes.whole;
    if (g->minutes.count)
        take_assignment(g, &g->minutes.noted[0]);
    else
        make_assignment(g);
    return VD_OK;
}

static vd_status live(sim_game *g) {
    const vd_world world = {.user = g,
                            .now = world_now,
                            .send = world_send,
                            .wait = world_wait,
                            .append = world_append};
    const vd_arbiter_options options = {.referee = {.program = &g->table->job.program,
                                                    .assignment = &g->assignment,
                                                    .key = g->table->referee,
                                                    .leaf = vd_leaf_element},
                                        .assignment = &g->note,
                                        .world = &world,
                                        .step_us_max = g->step_us_max,
                                        .minutes = &g->minutes};
    vd_status status = read_journal(g);
    if (status == VD_OK)
        status = vd_arbiter_create(&options, &g->arbiter, &g->err);
    return status == VD_OK ? vd_arbiter_run(g->arbiter, &g->err) : status;
}

/* Checks that a changed byte in the journal is detected, unless its frame is torn and dropped
 * anyway. */
static void check_damage(sim_game *g) {
    vd_buf damaged = {0};
    vd_minutes minutes = {0};
    vd_err err = {0};
    if (g->disk.size == 0)
        return;
    const uint32_t at = sim_below(&g->random, (uint32_t)g->disk.size);
    vd_put(&damaged, g->disk.data, g->disk.size);
    damaged.data[at] ^= (uint8_t)(1 + sim_below(&g->random, 255));
    const vd_status status = vd_minutes_read(damaged.data, damaged.size, &minutes, &err);
    if (status == VD_OK && minutes.whole > at)
        sim_object(g, "byte %u of the journal is another one, and it is read", at);
    if (status != VD_OK && (status != VD_ERR_USAGE || !err.text[0] || strchr(err.text, '\n')))
        sim_object(g, "a damaged journal is no clear error: %.150s", err.text);
    vd_minutes_free(&minutes);
    vd_buf_free(&damaged);
}

/* Ends the referee's process: replies on their way are lost, and it is restarted some time
 * later. */
static void die(sim_game *g) {
    check_damage(g);
    vd_arbiter_destroy(g->arbiter);
    vd_minutes_free(&g->minutes);
    g->arbiter = NULL;
    g->minutes = (vd_minutes){0};
    g->killed = false;
    g->heard = (vd_hash){{0}};
    for (uint32_t p = 0; p < g->count; p++) {
        g->post[p].away = false;
        g->post[p].name = (vd_hash){{0}};
    }
    const int64_t away_ms = sim_below(&g->random, DOWNTIME_MS);
    g->now_ms += away_ms;
    g->downtime_ms += away_ms;
    g->kill_at_write = g->writes + 1 + sim_below(&g->random, 60);
    g->kill_at_call = g->calls + 1 + sim_below(&g->random, 400);
    g->kill_how = (uint32_t)sim_random(&g->random);
    sim_log(g, "%10lld ms: the referee goes on, with %zu bytes of its journal",
            (long long)g->now_ms, g->disk.size);
}

static void log_end(const sim_game *g) {
    sim_log(g, "%10lld ms: %s", (long long)g->now_ms, vd_result_name(g->outcome.result));
    for (uint32_t p = 0; p < g->count; p++)
        sim_log(g, "provider %u %s: %s", p + 1, vd_standing_name(g->outcome.party[p].standing),
                g->outcome.party[p].reason);
}

void sim_game_play(sim_game *g) {
    while ((g->status = live(g)) != VD_OK && g->killed)
        die(g);
    if (g->status == VD_OK)
        g->status = vd_outcome_copy(vd_arbiter_outcome(g->arbiter), &g->outcome, &g->err);
    log_end(g);
}

void sim_game_forget(sim_game *g) {
    vd_arbiter_destroy(g->arbiter);
    vd_minutes_free(&g->minutes);
    for (uint32_t p = 0; p < g->count; p++)
        vd_buf_free(&g->post[p].note);
    vd_buf_free(&g->disk);
    vd_buf_free(&g->read);
    vd_buf_free(&g->first_note);
}
