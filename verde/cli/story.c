#include "verde/cli/story.h"

#include <string.h>

void vd_tell(void *user, const char *line) {
    (void)user;
    fprintf(stderr, "%s  %s\n", vd_is_terminal() ? "\r\033[K" : "", line);
}

void vd_tell_now(const char *text) {
    if (!vd_is_terminal())
        return;
    fprintf(stderr, "\r\033[K  ... %s", text);
    fflush(stderr);
}

vd_exit vd_exit_of(const vd_outcome *outcome) {
    switch (outcome->result) {
    case VD_RESULT_AGREED: return VD_EXIT_OK;
    case VD_RESULT_CONVICTED: return VD_EXIT_CONVICTED;
    case VD_RESULT_FORFEIT: return VD_EXIT_FORFEIT;
    case VD_RESULT_DISMISSED: return VD_EXIT_DISMISSED;
    default: return VD_EXIT_INCONCLUSIVE;
    }
}

static void tell_log(const vd_place *at) {
    char text[VD_F32_TEXT];
    switch (at->logged_as) {
    case VD_LOGGED_UNREAD: break;
    case VD_LOGGED_RANGE:
        vd_place_text(at, at->logged[0], text);
        printf("; the log says %s", text);
        break;
    case VD_LOGGED_NOTHING: printf("; the log says nothing"); break;
    case VD_LOGGED_OTHER: printf("; the log says none of them"); break;
    }
}

static void tell_reference(const vd_place *at) {
    char text[VD_F32_TEXT], most[VD_F32_TEXT];
    if (!at->computed)
        return;
    vd_place_text(at, at->expected, text);
    printf("reference    %s", text);
    vd_place_text(at, at->possible[0], text);
    vd_place_text(at, at->possible[1], most);
    if (at->rounded && at->possible[0] == at->possible[1])
        printf("; no other value is possible");
    else if (at->rounded)
        printf("; %s to %s are possible", text, most);
    tell_log(at);
    printf("\n");
}

static void tell_place(const vd_place *at) {
    if (at->step == VD_NO_STEP)
        return;
    printf("where        ");
    if (at->item >= 0)
        printf("%s %lld of the %s (item %lld), ", at->answers ? "batch" : "prompt",
               (long long)at->item + 1, at->answers ? "job" : "file", (long long)at->item);
    if (at->step < 0)
        printf("initialisation");
    else
        printf("step %lld", (long long)at->step);
    if (at->node >= 0)
        printf(", node %lld %s, operator %s", (long long)at->node, at->node_name,
               at->operator_name);
    if (at->element >= 0)
        printf(", element %lld", (long long)at->element);
    if (at->part >= 0)
        printf(", part %lld", (long long)at->part);
    printf("\n");
    tell_reference(at);
}

/* Tells what a provider states of the element in dispute, and how far it is from the reference. */
static void tell_value(const vd_place *at, uint32_t p) {
    char stated[VD_F32_TEXT];
    float value, reference;
    if (at->element < 0)
        return;
    vd_place_text(at, at->value[p], stated);
    printf("             element %s", stated);
    memcpy(&value, &at->value[p], sizeof value);
    memcpy(&reference, &at->expected, sizeof reference);
    const double apart = (double)value - (double)reference;
    if (at->computed && at->value[p] == at->expected)
        printf(", as the reference");
    else if (at->computed && at->dtype == RO_F32 && apart - apart == 0)
        printf(", %.3g %s the reference", apart < 0 ? -apart : apart,
               apart < 0 ? "below" : "above");
    printf("\n");
}

static void tell_challenge(const vd_outcome *o) {
    static const char *const text[] = {
        [VD_CHALLENGE_DECLINED] = "gave no second run",
        [VD_CHALLENGE_CONFIRMED] = "ran again and arrived at the claim that stands",
        [VD_CHALLENGE_FAILED] = "ran again, and could not show the claim that stands to be wrong",
        [VD_CHALLENGE_UPHELD] = "ran again, and the other's claim fell",
        [VD_CHALLENGE_INCONCLUSIVE] = "ran again; neither run could be shown to be wrong",
    };
    const struct vd_challenge_outcome *c = &o->challenge;
    if (c->end == VD_CHALLENGE_NONE)
        return;
    printf("challenge    provider %u %s\n", c->challenger + 1, text[c->end]);
    if (c->end < VD_CHALLENGE_FAILED)
        return;
    if (c->grade != VD_GRADE_NONE)
        printf("             %s: %s\n", vd_grade_name(c->grade), c->reason);
    tell_place(&c->place);
    for (uint32_t p = 0; p < o->party_count; p++)
        tell_value(&c->place, p);
}

static void tell_party(const vd_outcome *o, uint32_t p, const char *name) {
    static const char *const standing[] = {"stands", "CONVICTED", "forfeits", "dismissed"};
    const struct vd_party_outcome *party = &o->party[p];
    printf("provider %-3u %s  %s\n", p + 1, standing[party->standing], name);
    if (party->standing != VD_STANDS)
        printf("             %s: %s\n", vd_grade_name(party->grade), party->reason);
    tell_value(&o->place, p);
}

/* ---- more than two providers ---- */

static void tell_game(const vd_outcome *o, uint32_t index) {
    const vd_game_outcome *game = &o->game[index];
    printf("game %-3u     providers %u and %u:", index + 1, game->provider[0] + 1,
           game->provider[1] + 1);
    for (int i = 0; i < 2; i++)
        if (game->standing[i] != VD_STANDS)
            printf(" %u %s%s", game->provider[i] + 1,
                   game->standing[i] == VD_CONVICTED   ? "convicted"
                   : game->standing[i] == VD_FORFEITED ? "forfeits"
                                                       : "dismissed",
                   i == 0 && game->standing[1] != VD_STANDS ? "," : "");
    printf("%s\n", game->inconclusive ? " nobody falls" : "");
    tell_place(&game->place);
}

static void tell_contests(const vd_outcome *o) {
    if (o->challenge.end == VD_CHALLENGE_NONE)
        return;
    printf("challenge    %s\n", vd_challenge_name(o->challenge.end));
    for (uint32_t i = 0; i < o->contest_count; i++) {
        const vd_contest_outcome *contest = &o->contest[i];
        printf("             provider %u %s", contest->provider + 1,
               contest->claimed ? "ran again" : "gave no second run");
        if (contest->game)
            printf(", and fell in game %u: %s: %s", contest->game, vd_grade_name(contest->grade),
                   contest->reason);
        printf("\n");
    }
}

static void tell_games(const vd_outcome *o) {
    for (uint32_t i = 0; i < o->game_count; i++)
        tell_game(o, i);
    tell_contests(o);
}

/* ---- all of it ---- */

void vd_tell_outcome(const vd_outcome *o, const char *const *names, const vd_cost *cost,
                     const char *verdict) {
    char in[32], out[32], peak[32], root[2 * VD_HASH_SIZE + 1];
    if (vd_is_terminal())
        fprintf(stderr, "\r\033[K");
    printf("result       %s\n", vd_result_name(o->result));
    tell_place(&o->place);
    for (uint32_t p = 0; p < o->party_count; p++)
        tell_party(o, p, names[p]);
    if (o->party_count > 2)
        tell_games(o);
    else
        tell_challenge(o);
    vd_hex(o->run_root.b, VD_HASH_SIZE, root);
    printf("accepted     %s%s\n", o->accepted ? root : "nothing",
           o->accepted && o->result == VD_RESULT_FORFEIT ? " (by forfeit)" : "");
    vd_print_size(cost->bytes_in, in);
    vd_print_size(cost->bytes_out, out);
    vd_print_size(cost->peak_bytes, peak);
    printf("cost         %u rounds, %s in, %s out, %.2f s (%.3f s of CPU), %s peak memory\n",
           o->rounds, in, out, cost->seconds, cost->cpu_seconds, peak);
    if (verdict)
        printf("verdict      %s\n", verdict);
}

static json_t *convicted_keys(const vd_outcome *o, const vd_assignment *assignment) {
    json_t *list = json_array();
    for (uint32_t p = 0; p < o->party_count; p++) {
        char hex[2 * VD_KEY_SIZE + 1];
        if (o->party[p].standing != VD_CONVICTED)
            continue;
        vd_hex(assignment->provider[p].b, VD_KEY_SIZE, hex);
        json_array_append_new(list, json_string(hex));
    }
    return list;
}

static const char *first_grade(const vd_outcome *o) {
    for (int standing = VD_CONVICTED; standing <= VD_DISMISSED; standing++)
        for (uint32_t p = 0; p < o->party_count; p++)
            if ((int)o->party[p].standing == standing)
                return vd_grade_name(o->party[p].grade);
    return vd_grade_name(VD_GRADE_NONE);
}

json_t *vd_dispute_json(const vd_outcome *o, const vd_assignment *assignment, const vd_cost *cost) {
    json_t *out = vd_outcome_json(o, assignment);
    json_t *more =
        json_pack("{ss so sI sI sf sf sI}", "grade", first_grade(o), "convicted",
                  convicted_keys(o, assignment), "bytes_in", (json_int_t)cost->bytes_in,
                  "bytes_out", (json_int_t)cost->bytes_out, "seconds", cost->seconds, "cpu_seconds",
                  cost->cpu_seconds, "peak_bytes", (json_int_t)cost->peak_bytes);
    static const char *const places[] = {"step", "node", "operator"};
    for (int i = 0; i < 3; i++) /* always there, for machines */
        if (!json_object_get(out, places[i]))
            json_object_set_new(out, places[i], json_null());
    json_object_update(out, more);
    json_decref(more);
    return out;
}
