/* Conducts a tournament: the opening, then level by level. PROTOCOL.md section 5.8. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "verde/protocol/tournament_internal.h"

static void tell_of_game(void *user, const char *line) {
    const vd_teller *teller = user;
    vd_tournament_tell(teller->tournament, "Game %u: %s", teller->game, line);
}

/* ---- life ---- */

static vd_status tournament_start(vd_tournament *t, vd_err *err) {
    const vd_buf *payload = t->options.assignment;
    vd_outcome *o = &t->outcome;
    vd_status status = vd_assignment_read(payload->data, payload->size, &t->assignment, err);
    if (status == VD_OK && t->assignment.provider_count < 3)
        status = vd_fail(err, VD_ERR_USAGE, "the assignment names two providers, and not more");
    if (status != VD_OK)
        return status;
    o->party_count = t->assignment.provider_count;
    o->place = VD_NO_PLACE;
    o->game = calloc(VD_GAMES_MAX, sizeof *o->game);
    o->contest = calloc(VD_PARTIES_MAX, sizeof *o->contest);
    return o->game && o->contest ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

vd_status vd_tournament_create(const vd_referee_options *options, vd_tournament **out,
                               vd_err *err) {
    vd_tournament *t = calloc(1, sizeof *t);
    if (!t)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    t->options = *options;
    vd_status status = tournament_start(t, err);
    if (status == VD_OK)
        *out = t;
    else
        vd_tournament_destroy(t);
    return status;
}

void vd_tournament_destroy(vd_tournament *t) {
    if (!t)
        return;
    for (size_t i = 0; i < t->sittings; i++)
        vd_referee_destroy(t->sitting[i].referee);
    for (uint32_t p = 0; p < VD_PARTIES_MAX; p++)
        vd_said_free(&t->seat[p].said);
    vd_outcome_free(&t->outcome);
    free(t);
}

void vd_sitting_text(const vd_sitting *sitting, char text[VD_SITTING_TEXT]) {
    if (sitting->game)
        snprintf(text, VD_SITTING_TEXT, "Game %u: provider %u against provider %u.", sitting->game,
                 sitting->provider[0] + 1, sitting->provider[1] + 1);
    else
        snprintf(text, VD_SITTING_TEXT, "All providers are asked.");
}

const vd_outcome *vd_tournament_outcome(const vd_tournament *t) {
    return &t->outcome;
}

const vd_sitting *vd_tournament_sittings(const vd_tournament *t, size_t *count) {
    *count = t->sittings;
    return t->sitting;
}

/* ---- sittings ---- */

static vd_status open_sitting(vd_tournament *t, const vd_referee_options *options,
                              const vd_part *part, vd_err *err) {
    vd_sitting *sitting = &t->sitting[t->sittings];
    uint32_t *provider = t->provider[t->sittings];
    for (uint32_t p = 0; p < VD_PARTIES_MAX; p++)
        provider[p] = p;
    if (part->scope == VD_SCOPE_GAME)
        memcpy(provider, part->provider, sizeof part->provider);
    *sitting = (vd_sitting){.game = part->game, .provider = provider};
    vd_status status = vd_referee_open(options, part, &sitting->referee, err);
    t->sittings += status == VD_OK;
    return status;
}

static vd_status open_all(vd_tournament *t, vd_scope scope, vd_err *err) {
    const vd_part part = {.scope = scope, .challenger = t->challenger};
    return open_sitting(t, &t->options, &part, err);
}

static vd_status open_game(vd_tournament *t, uint32_t game, const uint32_t pair[2], vd_err *err) {
    vd_referee_options options = t->options;
    vd_part part = {.scope = VD_SCOPE_GAME, .game = game};
    for (int i = 0; i < 2; i++) {
        vd_seat *seat = &t->seat[pair[i]];
        part.provider[i] = pair[i];
        part.root[i] = seat->root;
        part.run_name[i] = seat->run_name;
        part.again[i] = seat->again;
        part.said[i] = &seat->said;
    }
    t->teller[game - 1] = (vd_teller){t, game};
    options.story = t->options.story ? tell_of_game : NULL;
    options.user = &t->teller[game - 1];
    return open_sitting(t, &options, &part, err);
}

static vd_status open_level(vd_tournament *t, vd_err *err) {
    uint32_t pair[VD_PARTIES_MAX / 2][2];
    const size_t pairs = vd_tournament_pairs(t, pair);
    vd_status status = VD_OK;
    t->level += pairs > 0;
    for (size_t i = 0; i < pairs && status == VD_OK; i++)
        status = open_game(t, t->outcome.game_count + (uint32_t)i + 1, pair[i], err);
    return status;
}

/* ---- the course ---- */

static uint32_t count_groups(const vd_tournament *t) {
    uint32_t groups = 0;
    for (uint32_t p = 0; p < t->outcome.party_count; p++)
        groups += vd_tournament_speaks(t, p);
    return groups;
}

/* Takes the results of the sittings that were held since the last call. */
static void take_sittings(vd_tournament *t) {
    for (; t->taken < t->sittings; t->taken++) {
        const vd_sitting *sitting = &t->sitting[t->taken];
        if (sitting->game) {
            vd_tournament_take_game(t, sitting);
        } else if (t->stage == VD_STAGE_OPENING) {
            vd_tournament_take_opening(t, sitting->referee);
            vd_tournament_tell(t, "%u different run roots were revealed.", count_groups(t));
        } else {
            vd_tournament_take_contest(t, sitting->referee);
        }
    }
}

/* Goes to the next stage: no games are left in this one. */
static vd_status open_next(vd_tournament *t, vd_err *err) {
    if (t->stage == VD_STAGE_FIRST && vd_tournament_contest_due(t)) {
        t->stage = VD_STAGE_CONTEST;
        vd_tournament_tell(t, "All that are convicted may run the job again and contest the claim "
                              "left standing.");
        return open_all(t, VD_SCOPE_CONTEST, err);
    }
    vd_tournament_conclude(t);
    t->stage = VD_STAGE_DONE;
    return VD_OK;
}

static vd_status go_on(vd_tournament *t, vd_err *err) {
    if (t->stage == VD_STAGE_START) {
        t->stage = VD_STAGE_OPENING;
        return open_all(t, VD_SCOPE_OPENING, err);
    }
    take_sittings(t);
    if (t->stage == VD_STAGE_OPENING || t->stage == VD_STAGE_CONTEST)
        t->stage++;
    vd_status status = open_level(t, err);
    return status == VD_OK && t->sittings == t->taken ? open_next(t, err) : status;
}

vd_status vd_tournament_next(vd_tournament *t, vd_sitting out[VD_PARTIES_MAX], size_t *count,
                             vd_err *err) {
    *count = 0;
    vd_status status = t->stage == VD_STAGE_DONE ? VD_OK : go_on(t, err);
    for (size_t i = t->taken; i < t->sittings && status == VD_OK; i++)
        out[(*count)++] = t->sitting[i];
    return status;
}
