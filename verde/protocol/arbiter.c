/* Runs a dispute: sittings in turn, those of one level of a tournament at the same time. A round
 * sends all of its questions, then takes answers as they arrive. */
#include "verde/protocol/arbiter.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "verde/protocol/arbiter_internal.h"

static const uint32_t both[2] = {0, 1};

/* ---- life ---- */

static vd_status arbiter_start(vd_arbiter *a, vd_err *err) {
    const vd_buf *payload = a->options.referee.assignment;
    vd_status status = vd_assignment_read(payload->data, payload->size, &a->assignment, err);
    if (status != VD_OK)
        return status;
    return a->assignment.provider_count > 2
               ? vd_tournament_create(&a->options.referee, &a->many, err)
               : vd_referee_create(&a->options.referee, &a->two, err);
}

vd_status vd_arbiter_create(const vd_arbiter_options *options, vd_arbiter **out, vd_err *err) {
    vd_arbiter *a = calloc(1, sizeof *a);
    if (!a)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    a->options = *options;
    a->world = options->world;
    a->minutes = options->minutes;
    if (a->options.patience_s == 0)
        a->options.patience_s = VD_PATIENCE_S;
    vd_status status = arbiter_start(a, err);
    if (status == VD_OK)
        *out = a;
    else
        vd_arbiter_destroy(a);
    return status;
}

void vd_arbiter_destroy(vd_arbiter *a) {
    if (!a)
        return;
    for (uint32_t p = 0; p < VD_PARTIES_MAX; p++) {
        vd_buf_free(&a->asking[p].note);
        vd_buf_free(&a->asking[p].request);
    }
    vd_referee_destroy(a->two);
    vd_tournament_destroy(a->many);
    free(a);
}

bool vd_arbiter_mistaken(const vd_arbiter *a) {
    return a->mistaken;
}

bool vd_arbiter_heard(const vd_arbiter *a) {
    return a->heard;
}

const vd_outcome *vd_arbiter_outcome(const vd_arbiter *a) {
    return a->many ? vd_tournament_outcome(a->many) : vd_referee_outcome(a->two);
}

const vd_referee *vd_arbiter_referee(const vd_arbiter *a) {
    return a->two;
}

const vd_tournament *vd_arbiter_tournament(const vd_arbiter *a) {
    return a->many;
}

const double *vd_arbiter_level_seconds(const vd_arbiter *a) {
    return a->level_s;
}

/* ---- the journal's beginning ---- */

static vd_status begin_minutes(vd_arbiter *a) {
    const vd_buf *note = a->options.assignment;
    const vd_noted *first = a->minutes->noted;
    const vd_noted noted = {.kind = VD_NOTED_ASSIGNMENT, .bytes = note->data, .size = note->size};
    if (a->minutes->count == 0)
        return vd_arbiter_append(a, &noted, 1);
    if (first->size != note->size || memcmp(first->bytes, note->data, note->size) != 0)
        return vd_fail(a->err, VD_ERR_USAGE, "the journal is of another dispute");
    return VD_OK;
}

/* ---- sittings ---- */

static uint32_t parties_of(const vd_arbiter *a, const vd_sitting *s) {
    return s->game || !a->many ? 2 : a->assignment.provider_count;
}

static void tell_asking(const vd_arbiter *a, const vd_sitting *s, const vd_outgoing *out) {
    if (s->game)
        vd_arbiter_tell(a, VD_TELL_PASSING, "game %u: asking: %s", s->game, out->text);
    else
        vd_arbiter_tell(a, VD_TELL_PASSING, "asking: %s", out->text);
}

/* Adds a finished round's seconds to its level, and starts to count the next round's. */
static void count_seconds(vd_arbiter *a, vd_seat_of_hearing *h) {
    const double now = a->world->now(a->world->user);
    if (h->begun)
        a->level_s[h->level] += now - h->asked_at;
    h->begun = true;
    h->asked_at = now;
    h->level = vd_referee_level(h->sitting.referee);
}

/* Puts the next questions of a sitting. The journal may already have some of the answers. */
static vd_status ask_round(vd_arbiter *a, uint32_t seat) {
    vd_seat_of_hearing *h = &a->seat[seat];
    vd_outgoing out[VD_PARTIES_MAX];
    size_t count;
    vd_status status = vd_referee_next(h->sitting.referee, out, &count, a->err);
    h->over = status == VD_OK && count == 0;
    count_seconds(a, h);
    if (status != VD_OK || h->over)
        return status;
    a->rounds++;
    tell_asking(a, &h->sitting, out);
    for (size_t i = 0; i < count && status == VD_OK; i++)
        status = vd_arbiter_put(a, seat, &out[i]);
    if (out[0].whole_run) /* the second hearing has its own clocks */
        vd_clocks_renew(a, &h->sitting, parties_of(a, &h->sitting));
    return status;
}

static bool is_waited_for(const vd_arbiter *a) {
    for (size_t i = 0; i < a->seats; i++)
        if (a->seat[i].open)
            return true;
    return false;
}

/* If all refuse the first request, the user most likely made a mistake. One refusal among several
 * is a forfeit. With `own_rival` provider 0's is enough: no other claim gains by it. */
static bool do_all_refuse(vd_arbiter *a) {
    const uint32_t all = a->options.own_rival ? 1 : a->assignment.provider_count;
    a->mistaken = a->refusals >= all;
    return a->mistaken;
}

static vd_status ask_all(vd_arbiter *a) {
    vd_status status = VD_OK;
    a->fresh_count = 0;
    for (uint32_t i = 0; i < a->seats; i++)
        while (status == VD_OK && !a->seat[i].over && a->seat[i].open == 0)
            status = ask_round(a, i);
    if (status == VD_OK && a->fresh_count)
        status = vd_arbiter_append(a, a->fresh, a->fresh_count);
    return status;
}

static vd_status hold(vd_arbiter *a, const vd_sitting *sitting, size_t count) {
    vd_status status = VD_OK;
    a->seats = count;
    for (size_t i = 0; i < count; i++) {
        a->seat[i] = (vd_seat_of_hearing){.sitting = sitting[i]};
        vd_clocks_renew(a, &sitting[i], parties_of(a, &sitting[i]));
    }
    while (status == VD_OK && !do_all_refuse(a)) {
        status = ask_all(a);
        if (status == VD_OK && !is_waited_for(a))
            return VD_OK;
        if (status == VD_OK)
            status = vd_arbiter_go_on(a);
    }
    return status;
}

static void tell_sitting(const vd_arbiter *a, const vd_sitting *s) {
    char text[VD_SITTING_TEXT];
    vd_sitting_text(s, text);
    if (s->game)
        vd_arbiter_tell(a, VD_TELL_LINE, "%s", text);
}

static vd_status hold_levels(vd_arbiter *a) {
    vd_sitting sitting[VD_PARTIES_MAX];
    size_t count;
    vd_status status;
    for (int level = 0; (status = vd_tournament_next(a->many, sitting, &count, a->err)) == VD_OK;
         level++) {
        if (level == 1 && a->options.opened)
            a->options.opened(a->world->user, a->many);
        if (count == 0)
            break;
        for (size_t i = 0; i < count; i++)
            tell_sitting(a, &sitting[i]);
        status = hold(a, sitting, count);
        if (status != VD_OK || a->mistaken)
            break;
    }
    return status;
}

vd_status vd_arbiter_run(vd_arbiter *a, vd_err *err) {
    vd_err unread = {0};
    a->err = err ? err : &unread;
    vd_status status = begin_minutes(a);
    if (status != VD_OK)
        return status;
    const vd_sitting of_two = {.referee = a->two, .provider = both};
    return a->many ? hold_levels(a) : hold(a, &of_two, 1);
}
