/* Checks that every game must pass. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/game.h"
#include "verde/protocol/verdict.h"

enum {
    HONEST_GAME_ROUNDS = 32,     /* limit of questions to an honest provider in one game */
    HONEST_GAME_BYTES = 1 << 16, /* limit of bytes of its answers */
    GAME_MS = 4 * 3600 * 1000,   /* limit of a level of games with second runs */
};

bool sim_is_honest(const sim_game *g, uint32_t p) {
    return g->run[p] == 0 && (g->party[p].way == SIM_TELLS || g->party[p].way == SIM_ADDS);
}

/* Can the provider be reached in time? Questions are repeated for at least two minutes. */
bool sim_is_reachable(const sim_game *g, uint32_t p) {
    return sim_unreachable_ms(&g->line[p]) <= 60000 && g->line[p].loss <= 100;
}

/* Does it only sign what a correct run says, or refusals? Then at worst it is silent. */
static bool signs_truth(const sim_game *g, uint32_t p) {
    switch (g->party[p].way) {
    case SIM_SILENT:
    case SIM_GARBAGE:
    case SIM_OTHER_KEY:
    case SIM_BAD_SIGNATURE:
    case SIM_REFUSES:
    case SIM_REPLAYS:
    case SIM_COPIES: return g->run[p] == 0;
    default: return sim_is_honest(g, p);
    }
}

void sim_object(sim_game *g, const char *format, ...) {
    va_list args;
    if (g->objection[0])
        return;
    va_start(args, format);
    vsnprintf(g->objection, sizeof g->objection, format, args);
    va_end(args);
}

static void check_honest(sim_game *g, uint32_t p) {
    const struct vd_party_outcome *party = &g->outcome.party[p];
    if (party->standing == VD_CONVICTED)
        sim_object(g, "provider %u is honest, and convicted: %.150s", p + 1, party->reason);
    if (party->standing != VD_STANDS && sim_is_honest(g, p) && sim_is_reachable(g, p))
        sim_object(g, "provider %u is honest and can be reached, and %s: %.120s", p + 1,
                   vd_standing_name(party->standing), party->reason);
}

static bool is_right(const sim_game *g) {
    return g->outcome.accepted && vd_hash_equal(&g->outcome.run_root, &g->table->run[0].root);
}

static void check_result(sim_game *g) {
    for (uint32_t p = 0; p < g->count; p++)
        if (sim_is_honest(g, p) && sim_is_reachable(g, p) && !is_right(g))
            sim_object(g, "provider %u is honest, and its result is not accepted: %s", p + 1,
                       vd_result_name(g->outcome.result));
}

static void check_bounds(sim_game *g) {
    const vd_outcome *o = &g->outcome;
    const uint32_t games = g->count == 2 ? 2 : o->game_count;
    if (games > 2 * (g->count - 1))
        sim_object(g, "%u games of %u providers", games, g->count);
    if (g->now_ms - g->downtime_ms > (int64_t)(games + 3) * GAME_MS)
        sim_object(g, "%lld virtual ms", (long long)g->now_ms);
    for (uint32_t p = 0; p < g->count; p++) {
        const sim_line *line = &g->line[p];
        if (!sim_is_honest(g, p))
            continue;
        if (line->bytes > (uint64_t)(games + 2) * HONEST_GAME_BYTES)
            sim_object(g, "provider %u had to send %llu bytes", p + 1,
                       (unsigned long long)line->bytes);
        if (g->party[p].asked > (games + 2) * HONEST_GAME_ROUNDS && line->loss == 0)
            sim_object(g, "provider %u was asked %u times", p + 1, g->party[p].asked);
    }
}

static void write_verdict(sim_game *g, vd_buf *note) {
    const vd_cost cost = {.bytes_in = 1, .seconds = 0.5};
    const vd_referee *two = vd_arbiter_referee(g->arbiter);
    const vd_key *key = g->table->referee;
    const vd_program *program = &g->table->job.program;
    const vd_status status =
        two ? vd_verdict_write(key, program, &g->note, two, &cost, note, &g->err)
            : vd_verdict_write_many(key, program, &g->note, vd_arbiter_tournament(g->arbiter),
                                    &cost, note, &g->err);
    if (status != VD_OK)
        sim_object(g, "no verdict: %.150s", g->err.text);
}

void sim_game_verdict(sim_game *g, vd_buf *note) {
    vd_public_key referee;
    vd_verdict verdict;
    vd_err err = {0};
    vd_key_public(g->table->referee, &referee);
    write_verdict(g, note);
    if (vd_verdict_verify(note->data, note->size, &referee, vd_leaf_element, NULL, NULL, &verdict,
                          &err) != VD_OK) {
        sim_object(g, "the verdict does not verify: %.150s", err.text);
        return;
    }
    if (verdict.outcome.result != g->outcome.result ||
        verdict.outcome.accepted != g->outcome.accepted)
        sim_object(g, "the verdict is verified as another one");
    vd_verdict_free(&verdict);
}

void sim_game_check(sim_game *g) {
    if (g->status == VD_OK && vd_arbiter_mistaken(g->arbiter))
        return;
    if (g->status != VD_OK) {
        sim_object(g, "no outcome: %.200s", g->err.text);
        return;
    }
    for (uint32_t p = 0; p < g->count; p++)
        if (signs_truth(g, p))
            check_honest(g, p);
    check_result(g);
    check_bounds(g);
    if (g->verdict) {
        vd_buf note = {0};
        sim_game_verdict(g, &note);
        vd_buf_free(&note);
    }
}
