/* Writes a verdict and its outcome as lines of text, the same in every program that decides it. */
#include <string.h>

#include "verde/protocol/verdict.h"

static void tell_log(vd_buf *out, const vd_place *at) {
    char text[VD_F32_TEXT];
    switch (at->logged_as) {
    case VD_LOGGED_UNREAD: break;
    case VD_LOGGED_RANGE:
        vd_place_text(at, at->logged[0], text);
        vd_printf(out, "; the log says %s", text);
        break;
    case VD_LOGGED_NOTHING: vd_printf(out, "; the log says nothing"); break;
    case VD_LOGGED_OTHER: vd_printf(out, "; the log says none of them"); break;
    }
}

static void tell_reference(vd_buf *out, const vd_place *at) {
    char text[VD_F32_TEXT], most[VD_F32_TEXT];
    if (!at->computed)
        return;
    vd_place_text(at, at->expected, text);
    vd_printf(out, "reference    %s", text);
    vd_place_text(at, at->possible[0], text);
    vd_place_text(at, at->possible[1], most);
    if (at->rounded && at->possible[0] == at->possible[1])
        vd_printf(out, "; no other value is possible");
    else if (at->rounded)
        vd_printf(out, "; %s to %s are possible", text, most);
    tell_log(out, at);
    vd_printf(out, "\n");
}

static void tell_place(vd_buf *out, const vd_place *at) {
    if (at->step == VD_NO_STEP)
        return;
    vd_printf(out, "where        ");
    if (at->item >= 0)
        vd_printf(out, "%s %lld of the %s (item %lld), ", at->answers ? "batch" : "prompt",
                  (long long)at->item + 1, at->answers ? "job" : "file", (long long)at->item);
    if (at->step < 0)
        vd_printf(out, "initialisation");
    else
        vd_printf(out, "step %lld", (long long)at->step);
    if (at->node >= 0)
        vd_printf(out, ", node %lld %s, operator %s", (long long)at->node, at->node_name,
                  at->operator_name);
    if (at->element >= 0)
        vd_printf(out, ", element %lld", (long long)at->element);
    if (at->part >= 0)
        vd_printf(out, ", part %lld", (long long)at->part);
    vd_printf(out, "\n");
    tell_reference(out, at);
}

/* Writes the element in dispute as a provider states it, and how far it is from the reference. */
static void tell_value(vd_buf *out, const vd_place *at, uint32_t p) {
    char stated[VD_F32_TEXT];
    float value, reference;
    if (at->element < 0)
        return;
    vd_place_text(at, at->value[p], stated);
    vd_printf(out, "             element %s", stated);
    memcpy(&value, &at->value[p], sizeof value);
    memcpy(&reference, &at->expected, sizeof reference);
    const double apart = (double)value - (double)reference;
    if (at->computed && at->value[p] == at->expected)
        vd_printf(out, ", as the reference");
    else if (at->computed && at->dtype == RO_F32 && apart - apart == 0)
        vd_printf(out, ", %.3g %s the reference", apart < 0 ? -apart : apart,
                  apart < 0 ? "below" : "above");
    vd_printf(out, "\n");
}

const char *vd_challenge_told(vd_challenge_end end) {
    static const char *const text[] = {
        [VD_CHALLENGE_NONE] = "was not asked",
        [VD_CHALLENGE_DECLINED] = "gave no second run",
        [VD_CHALLENGE_CONFIRMED] = "ran again and arrived at the claim that stands",
        [VD_CHALLENGE_FAILED] = "ran again, and could not show the claim that stands to be wrong",
        [VD_CHALLENGE_UPHELD] = "ran again, and the other's claim fell",
        [VD_CHALLENGE_INCONCLUSIVE] = "ran again; neither run could be shown to be wrong",
    };
    return text[end];
}

static void tell_challenge(vd_buf *out, const vd_outcome *o) {
    const struct vd_challenge_outcome *c = &o->challenge;
    if (c->end == VD_CHALLENGE_NONE)
        return;
    vd_printf(out, "challenge    provider %u %s\n", c->challenger + 1, vd_challenge_told(c->end));
    if (c->end < VD_CHALLENGE_FAILED)
        return;
    if (c->grade != VD_GRADE_NONE)
        vd_printf(out, "             %s: %s\n", vd_grade_name(c->grade), c->reason);
    tell_place(out, &c->place);
    for (uint32_t p = 0; p < o->party_count; p++)
        tell_value(out, &c->place, p);
}

static void tell_party(vd_buf *out, const vd_outcome *o, uint32_t p, const char *name) {
    static const char *const standing[] = {"stands", "CONVICTED", "forfeits", "dismissed"};
    const struct vd_party_outcome *party = &o->party[p];
    vd_printf(out, "provider %-3u %s  %s\n", p + 1, standing[party->standing], name);
    if (party->standing != VD_STANDS)
        vd_printf(out, "             %s: %s\n", vd_grade_name(party->grade), party->reason);
    tell_value(out, &o->place, p);
}

/* ---- more than two providers ---- */

static void tell_game(vd_buf *out, const vd_outcome *o, uint32_t index) {
    const vd_game_outcome *game = &o->game[index];
    vd_printf(out, "game %-3u     providers %u and %u:", index + 1, game->provider[0] + 1,
              game->provider[1] + 1);
    for (int i = 0; i < 2; i++)
        if (game->standing[i] != VD_STANDS)
            vd_printf(out, " %u %s%s", game->provider[i] + 1,
                      game->standing[i] == VD_CONVICTED   ? "convicted"
                      : game->standing[i] == VD_FORFEITED ? "forfeits"
                                                          : "dismissed",
                      i == 0 && game->standing[1] != VD_STANDS ? "," : "");
    vd_printf(out, "%s\n", game->inconclusive ? " nobody falls" : "");
    tell_place(out, &game->place);
}

static void tell_contests(vd_buf *out, const vd_outcome *o) {
    if (o->challenge.end == VD_CHALLENGE_NONE)
        return;
    vd_printf(out, "challenge    %s\n", vd_challenge_name(o->challenge.end));
    for (uint32_t i = 0; i < o->contest_count; i++) {
        const vd_contest_outcome *contest = &o->contest[i];
        vd_printf(out, "             provider %u %s", contest->provider + 1,
                  contest->claimed ? "ran again" : "gave no second run");
        if (contest->game)
            vd_printf(out, ", and fell in game %u: %s: %s", contest->game,
                      vd_grade_name(contest->grade), contest->reason);
        vd_printf(out, "\n");
    }
}

static void tell_games(vd_buf *out, const vd_outcome *o) {
    for (uint32_t i = 0; i < o->game_count; i++)
        tell_game(out, o, i);
    tell_contests(out, o);
}

/* ---- all of it ---- */

static void tell_level_seconds(vd_buf *out, const vd_cost *cost) {
    bool any = false;
    for (int i = 0; i < VD_LEVELS; i++) {
        if (cost->level_seconds[i] > 0)
            vd_printf(out, "%s%s %.3f", any ? ", " : "seconds      ", vd_level_name(i),
                      cost->level_seconds[i]);
        any |= cost->level_seconds[i] > 0;
    }
    vd_printf(out, any ? "\n" : "");
}

void vd_outcome_told(const vd_outcome *o, const char *const *names, const vd_cost *cost,
                     vd_buf *out) {
    char in[32], sent[32], peak[32], root[2 * VD_HASH_SIZE + 1];
    vd_printf(out, "result       %s\n", vd_result_name(o->result));
    tell_place(out, &o->place);
    for (uint32_t p = 0; p < o->party_count; p++)
        tell_party(out, o, p, names[p]);
    if (o->party_count > 2)
        tell_games(out, o);
    else
        tell_challenge(out, o);
    vd_hex(o->run_root.b, VD_HASH_SIZE, root);
    vd_printf(out, "accepted     %s%s\n", o->accepted ? root : "nothing",
              o->accepted && o->result == VD_RESULT_FORFEIT ? " (by forfeit)" : "");
    vd_print_size(cost->bytes_in, in);
    vd_print_size(cost->bytes_out, sent);
    vd_print_size(cost->peak_bytes, peak);
    vd_printf(out,
              "cost         %u rounds, %s in, %s out, %.2f s (%.3f s of CPU), %s peak memory\n",
              o->rounds, in, sent, cost->seconds, cost->cpu_seconds, peak);
    tell_level_seconds(out, cost);
}

/* ---- a verified verdict ---- */

static void tell_hash(vd_buf *out, const char *name, const uint8_t *bytes) {
    char hex[2 * VD_HASH_SIZE + 1];
    vd_hex(bytes, VD_HASH_SIZE, hex);
    vd_printf(out, "%-12s %s\n", name, hex);
}

/* Returns false for a collection, which has no structure hash. */
bool vd_verdict_has_structure(const vd_verdict *v) {
    static const vd_hash none;
    return !vd_hash_equal(&v->structure, &none);
}

void vd_verdict_told(const vd_verdict *v, vd_buf *out) {
    char key[VD_PARTIES_MAX][2 * VD_KEY_SIZE + 1];
    const char *names[VD_PARTIES_MAX];
    for (uint32_t p = 0; p < VD_PARTIES_MAX; p++) {
        vd_hex(v->assignment.provider[p].b, VD_KEY_SIZE, key[p]);
        names[p] = key[p];
    }
    vd_printf(out, "verified     %zu statements decided again, with the same outcome\n",
              v->statements);
    tell_hash(out, "referee", v->referee.b);
    tell_hash(out, "program", v->program.b);
    if (vd_verdict_has_structure(v))
        tell_hash(out, "structure", v->structure.b);
    vd_outcome_told(&v->outcome, names, &v->cost, out);
}
