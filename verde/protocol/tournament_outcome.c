/* Turns the results of a tournament's sittings into its outcome. PROTOCOL.md sections 5.8 and 6. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verde/protocol/tournament_internal.h"

void vd_tournament_tell(const vd_tournament *t, const char *format, ...) {
    char line[256];
    va_list args;
    if (!t->options.story)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    t->options.story(t->options.user, line);
}

/* ---- as the sittings end ---- */

void vd_tournament_take_opening(vd_tournament *t, const vd_referee *opening) {
    const vd_outcome *o = vd_referee_outcome(opening);
    for (uint32_t p = 0; p < t->outcome.party_count; p++) {
        vd_seat *seat = &t->seat[p];
        t->outcome.party[p] = o->party[p];
        seat->in = o->party[p].standing == VD_STANDS && o->party[p].claimed;
        seat->root = o->party[p].run_root;
        seat->run_name = opening->party[p].run_name;
    }
}

static vd_contest_outcome *contest_of(vd_tournament *t, uint32_t provider) {
    for (uint32_t i = 0; i < t->outcome.contest_count; i++)
        if (t->outcome.contest[i].provider == provider)
            return &t->outcome.contest[i];
    return NULL;
}

/* Records the game in which a provider fell. Of a challenger, it is the second run that fell. */
static void take_fall(vd_tournament *t, uint32_t provider, uint32_t game,
                      const struct vd_party_outcome *fallen) {
    struct vd_party_outcome *party = &t->outcome.party[provider];
    vd_contest_outcome *contest = t->seat[provider].again ? contest_of(t, provider) : NULL;
    t->seat[provider].in = false;
    vd_tournament_tell(t, "Game %u: provider %u falls (%s).", game, provider + 1,
                       vd_grade_name(fallen->grade));
    if (contest) {
        contest->grade = fallen->grade;
        contest->game = game;
        memcpy(contest->reason, fallen->reason, sizeof contest->reason);
        return;
    }
    party->standing = fallen->standing;
    party->grade = fallen->grade;
    party->game = game;
    memcpy(party->reason, fallen->reason, sizeof party->reason);
}

void vd_tournament_take_game(vd_tournament *t, const vd_sitting *sitting) {
    const vd_outcome *o = vd_referee_outcome(sitting->referee);
    vd_game_outcome *game = &t->outcome.game[sitting->game - 1];
    *game = (vd_game_outcome){.level = t->level,
                              .second_hearing = t->stage == VD_STAGE_SECOND,
                              .place = o->place,
                              .rounds = o->rounds,
                              .inconclusive = true};
    for (int i = 0; i < 2; i++) {
        game->provider[i] = sitting->provider[i];
        game->standing[i] = o->party[i].standing;
        game->inconclusive &= game->standing[i] == VD_STANDS;
        if (game->standing[i] != VD_STANDS)
            take_fall(t, game->provider[i], sitting->game, &o->party[i]);
    }
    t->outcome.game_count = sitting->game;
    t->stuck |= game->inconclusive;
}

/* ---- second runs ---- */

/* Returns the only claim that stands, with rounding logs the trainer's; NULL: none or several. */
static const vd_hash *standing_claim(const vd_tournament *t) {
    const vd_hash *claim = NULL;
    for (uint32_t p = 0; p < t->outcome.party_count; p++) {
        const struct vd_party_outcome *party = &t->outcome.party[p];
        const bool stands = party->standing == VD_STANDS && party->claimed;
        if (p == 0 && !stands && t->assignment.rounded)
            return NULL;
        if (stands && claim && !vd_hash_equal(claim, &party->run_root))
            return NULL;
        if (stands)
            claim = &party->run_root;
    }
    return claim;
}

bool vd_tournament_contest_due(vd_tournament *t) {
    bool due = false;
    if (!t->assignment.challenge || t->stuck || !standing_claim(t))
        return false;
    for (uint32_t p = 0; p < t->outcome.party_count; p++) {
        t->challenger[p] = t->outcome.party[p].standing == VD_CONVICTED;
        due |= t->challenger[p];
    }
    return due;
}

/* Takes a second run. If its root differs from the claim left standing, its provider takes part in
 * the second hearing. */
static void take_second_run(vd_tournament *t, uint32_t p, const struct vd_party_outcome *answer) {
    vd_contest_outcome *contest = &t->outcome.contest[t->outcome.contest_count++];
    const bool contests = answer->claimed && !vd_hash_equal(&answer->run_root, standing_claim(t));
    *contest = (vd_contest_outcome){
        .provider = p, .claimed = answer->claimed, .run_root = answer->run_root};
    t->seat[p].in = t->seat[p].again = contests;
    t->seat[p].root = answer->run_root;
    if (contests)
        t->outcome.challenge.end = VD_CHALLENGE_FAILED;
    else if (answer->claimed && t->outcome.challenge.end == VD_CHALLENGE_DECLINED)
        t->outcome.challenge.end = VD_CHALLENGE_CONFIRMED;
}

void vd_tournament_take_contest(vd_tournament *t, const vd_referee *contest) {
    const vd_outcome *o = vd_referee_outcome(contest);
    t->outcome.challenge.end = VD_CHALLENGE_DECLINED;
    for (uint32_t p = 0; p < t->outcome.party_count; p++)
        if (t->challenger[p])
            take_second_run(t, p, &o->party[p]);
}

static void conclude_challenge(vd_tournament *t, bool claim_stands) {
    vd_challenge_end *end = &t->outcome.challenge.end;
    if (*end != VD_CHALLENGE_FAILED)
        return;
    if (!claim_stands)
        *end = VD_CHALLENGE_UPHELD;
    else if (t->stuck)
        *end = VD_CHALLENGE_INCONCLUSIVE;
}

/* ---- the end ---- */

static bool is_first_of_claim(const vd_outcome *o, uint32_t p) {
    for (uint32_t q = 0; q < p; q++)
        if (o->party[q].claimed && vd_hash_equal(&o->party[q].run_root, &o->party[p].run_root))
            return false;
    return o->party[p].claimed;
}

/* Counts the providers that made the same claim as p and have this standing. */
static uint32_t count_of_claim(const vd_outcome *o, uint32_t p, vd_standing standing) {
    uint32_t count = 0;
    for (uint32_t q = 0; q < o->party_count; q++)
        count += o->party[q].claimed && o->party[q].standing == standing &&
                 vd_hash_equal(&o->party[q].run_root, &o->party[p].run_root);
    return count;
}

static bool has_any(const vd_outcome *o, vd_standing standing) {
    for (uint32_t p = 0; p < o->party_count; p++)
        if (o->party[p].standing == standing)
            return true;
    return false;
}

static bool is_agreed(const vd_outcome *o) {
    uint32_t groups = 0, standing = 0;
    for (uint32_t p = 0; p < o->party_count; p++)
        if (is_first_of_claim(o, p)) {
            groups++;
            standing = count_of_claim(o, p, VD_STANDS);
        }
    return o->accepted && groups == 1 && standing >= 2 && !has_any(o, VD_CONVICTED);
}

/* Returns true if every claim that is not accepted has a maker that is convicted. */
static bool are_all_refuted(const vd_outcome *o) {
    for (uint32_t p = 0; p < o->party_count; p++)
        if (is_first_of_claim(o, p) &&
            !(o->accepted && vd_hash_equal(&o->party[p].run_root, &o->run_root)) &&
            count_of_claim(o, p, VD_CONVICTED) == 0)
            return false;
    return has_any(o, VD_CONVICTED);
}

static vd_result result_of(const vd_tournament *t) {
    const vd_outcome *o = &t->outcome;
    if (is_agreed(o))
        return VD_RESULT_AGREED;
    if (!has_any(o, VD_STANDS) && !has_any(o, VD_CONVICTED) && !has_any(o, VD_DISMISSED))
        return VD_RESULT_INCONCLUSIVE; /* all providers are silent */
    if (!t->assignment.rounded)
        return are_all_refuted(o) ? VD_RESULT_CONVICTED : VD_RESULT_FORFEIT;
    return has_any(o, VD_CONVICTED)   ? VD_RESULT_CONVICTED
           : has_any(o, VD_FORFEITED) ? VD_RESULT_FORFEIT
                                      : VD_RESULT_DISMISSED;
}

/* Returns the number of questions to the busiest provider, over all sittings. */
static uint32_t count_rounds(const vd_tournament *t) {
    uint32_t asked[VD_PARTIES_MAX] = {0}, most = 0;
    for (size_t i = 0; i < t->sittings; i++) {
        size_t count;
        const vd_statement *s = vd_referee_statements(t->sitting[i].referee, &count);
        for (size_t k = 0; k < count; k++) {
            const uint32_t p = t->sitting[i].provider[s[k].party];
            most = ++asked[p] > most ? asked[p] : most;
        }
    }
    return most;
}

void vd_tournament_conclude(vd_tournament *t) {
    vd_outcome *o = &t->outcome;
    const bool first = o->challenge.end == VD_CHALLENGE_NONE;
    const vd_hash *claim = standing_claim(t);
    conclude_challenge(t, claim != NULL);
    o->accepted = claim && !t->stuck;
    if (o->accepted)
        o->run_root = *claim;
    o->result = t->stuck && first ? VD_RESULT_INCONCLUSIVE : result_of(t);
    o->rounds = count_rounds(t);
}

/* ---- copies ---- */

static void *copy_of(const void *from, size_t size) {
    void *copy = malloc(size + 1);
    if (copy && size)
        memcpy(copy, from, size);
    return copy;
}

vd_status vd_outcome_copy(const vd_outcome *outcome, vd_outcome *out, vd_err *err) {
    *out = *outcome;
    if (!outcome->game)
        return VD_OK;
    out->game = copy_of(outcome->game, outcome->game_count * sizeof *out->game);
    out->contest = copy_of(outcome->contest, outcome->contest_count * sizeof *out->contest);
    if (out->game && out->contest)
        return VD_OK;
    vd_outcome_free(out);
    return vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

void vd_outcome_free(vd_outcome *outcome) {
    free(outcome->game);
    free(outcome->contest);
    outcome->game = NULL;
    outcome->contest = NULL;
}
