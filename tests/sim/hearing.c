/* A referee that asks over the simulated network: every provider again and again, within its time.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/game.h"

enum { WORD_MS = 120000, BUDGET_MS = 3600000, RETRY_MS = 300, POLL_MS = 1000 };

/* One sitting, and the time that each of its parties has left. */
typedef struct {
    sim_game *game;
    vd_referee *referee;
    const uint32_t *provider;
    int64_t now_ms, left_ms[VD_PARTIES_MAX];
} court;

/* Asks until there is an answer, or no time is left. Returns how long that took. */
static int64_t ask(court *c, const vd_outgoing *q, const vd_buf *request, vd_buf *note) {
    sim_line *line = &c->game->line[c->provider[q->party]];
    const int64_t left = q->whole_run ? BUDGET_MS : c->left_ms[q->party];
    int64_t took = 0, heard_ms = 0, pause = q->whole_run ? POLL_MS : RETRY_MS;
    while (true) {
        const int64_t most = left - took < WORD_MS ? left - took : WORD_MS;
        const sim_heard h = sim_request(line, request, q->text, c->now_ms + took, most, note);
        took += h.took_ms;
        if (h.kind == SIM_WORKING)
            heard_ms = took;
        if (h.kind == SIM_ANSWER || left - took <= pause || took - heard_ms >= WORD_MS)
            break;
        took += pause;
        if (h.kind == SIM_WORKING && pause < POLL_MS)
            pause *= 2;
    }
    if (!q->whole_run)
        c->left_ms[q->party] -= took;
    return took;
}

static int64_t put_question(court *c, const vd_outgoing *q) {
    sim_game *g = c->game;
    vd_buf request = {0}, note = {0};
    sim_need(vd_request_write(&g->note, q->note, &request, NULL) == VD_OK, "a request");
    const int64_t took = ask(c, q, &request, &note);
    sim_log(g, "%10lld ms: provider %u, %s: %zu bytes after %lld ms", (long long)c->now_ms,
            c->provider[q->party] + 1, q->text, note.size, (long long)took);
    if (note.size)
        vd_referee_answer(c->referee, q->party, note.data, note.size);
    else
        vd_referee_no_answer(c->referee, q->party, "did not answer in time");
    if (note.size) {
        vd_buf_free(&g->last);
        g->last = note;
    }
    vd_buf_free(&request);
    return took;
}

/* Answers of a round arrive in any order. */
static void shuffle(sim_game *g, void *items, size_t count, size_t size) {
    uint8_t *at = items, spare[sizeof(vd_outgoing) + sizeof(vd_sitting)];
    for (size_t i = count; i > 1; i--) {
        const size_t k = sim_below(&g->random, (uint32_t)i);
        memcpy(spare, at + (i - 1) * size, size);
        memmove(at + (i - 1) * size, at + k * size, size);
        memcpy(at + k * size, spare, size);
    }
}

static void hold_round(court *c, vd_outgoing *q, size_t count) {
    int64_t longest = 0;
    shuffle(c->game, q, count, sizeof *q);
    for (size_t i = 0; i < count; i++) {
        const int64_t took = put_question(c, &q[i]);
        longest = took > longest ? took : longest;
    }
    c->now_ms += longest;
}

/* Returns when it ended. */
static int64_t sit(sim_game *g, vd_referee *referee, const uint32_t *provider, int64_t now_ms) {
    court c = {.game = g, .referee = referee, .provider = provider, .now_ms = now_ms};
    vd_outgoing q[VD_PARTIES_MAX];
    size_t count;
    for (int p = 0; p < VD_PARTIES_MAX; p++)
        c.left_ms[p] = BUDGET_MS;
    while (g->status == VD_OK &&
           (g->status = vd_referee_next(referee, q, &count, &g->err)) == VD_OK && count > 0)
        hold_round(&c, q, count);
    return c.now_ms;
}

static vd_referee_options options_of(const sim_game *g) {
    return (vd_referee_options){.program = &g->table->job.program,
                                .assignment = &g->assignment,
                                .key = g->table->referee,
                                .leaf = vd_leaf_element};
}

static void play_many(sim_game *g) {
    const vd_referee_options options = options_of(g);
    vd_sitting s[VD_PARTIES_MAX];
    size_t count;
    g->status = vd_tournament_create(&options, &g->tournament, &g->err);
    while (g->status == VD_OK &&
           (g->status = vd_tournament_next(g->tournament, s, &count, &g->err)) == VD_OK &&
           count > 0) {
        int64_t last = g->end_ms;
        shuffle(g, s, count, sizeof *s);
        for (size_t i = 0; i < count; i++) {
            sim_log(g, "game %u", s[i].game);
            const int64_t end = sit(g, s[i].referee, s[i].provider, g->end_ms);
            last = end > last ? end : last;
        }
        g->end_ms = last;
    }
    if (g->status == VD_OK)
        g->status = vd_outcome_copy(vd_tournament_outcome(g->tournament), &g->outcome, &g->err);
}

static void play_two(sim_game *g) {
    static const uint32_t both[] = {0, 1};
    const vd_referee_options options = options_of(g);
    g->status = vd_referee_create(&options, &g->pair, &g->err);
    if (g->status == VD_OK)
        g->end_ms = sit(g, g->pair, both, 0);
    if (g->status == VD_OK)
        g->status = vd_outcome_copy(vd_referee_outcome(g->pair), &g->outcome, &g->err);
}

void sim_game_play(sim_game *g) {
    if (g->count == 2)
        play_two(g);
    else
        play_many(g);
    sim_log(g, "%10lld ms: %s", (long long)g->end_ms, vd_result_name(g->outcome.result));
    for (uint32_t p = 0; p < g->count; p++)
        sim_log(g, "provider %u %s: %s", p + 1, vd_standing_name(g->outcome.party[p].standing),
                g->outcome.party[p].reason);
}
