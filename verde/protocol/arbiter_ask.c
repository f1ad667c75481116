/* The course of one question to one provider: it goes into the journal, is sent, repeated if need
 * be, and its answer goes into the journal. PROTOCOL.md sections 8.3, 8.4 and 8.8. */
#include <math.h>
#include <string.h>

#include "verde/protocol/arbiter_internal.h"
#include "verde/protocol/provider.h"

#define RETRY_S        0.3  /* first pause before a question is sent again; it doubles each time */
#define TROUBLE_MOST_S 5.0  /* longest pause after trouble */
#define WORKING_MOST_S 1.0  /* longest pause while the provider works */
#define NOTED_EVERY_S  10.0 /* a question's time between clock entries in the journal, */
#define NOTED_SHARE    0.01 /* or this share of its time if longer */
#define TOLD_EVERY_S   5.0

/* ---- the journal ---- */

static vd_status no_such(vd_arbiter *a, uint32_t p, const char *what) {
    return vd_fail(a->err, VD_ERR_USAGE, "the journal does not fit: provider %u %s", p + 1, what);
}

/* Returns the journal's next entry about provider p, or NULL if there is none. */
static const vd_noted *next_noted(vd_arbiter *a, uint32_t p) {
    const vd_minutes *m = a->minutes;
    while (a->noted[p] < m->count && (m->noted[a->noted[p]].kind == VD_NOTED_ASSIGNMENT ||
                                      m->noted[a->noted[p]].provider != p))
        a->noted[p]++;
    return a->noted[p] < m->count ? &m->noted[a->noted[p]] : NULL;
}

static vd_noted entry_of(const vd_arbiter *a, uint32_t p, vd_noted_kind kind) {
    const vd_asking *q = &a->asking[p];
    return (vd_noted){.kind = kind,
                      .provider = p,
                      .question = q->question,
                      .used_us = (uint64_t)(q->used_s * 1e6)};
}

/* ---- the end of a question ---- */

static void take_pace(vd_arbiter *a, uint32_t p, const vd_referee *referee) {
    if (a->asking[p].work == VD_WORK_COMMIT)
        vd_referee_pace(referee, a->asking[p].party, &a->pace[p]);
}

/* Charges the provider's clock for the question and clears it, so that the sitting can go on. */
static void end_asking(vd_arbiter *a, uint32_t p) {
    vd_asking *q = &a->asking[p];
    if (!vd_is_in_no_game(q->work))
        a->clock[p].left_s -= q->used_s;
    a->seat[q->seat].open--;
    vd_buf_free(&q->note);
    vd_buf_free(&q->request);
    *q = (vd_asking){.asked = false};
}

/* Hands an answer to the referee. An invalid one counts as none, and is not kept. */
static vd_status give_answer(vd_arbiter *a, uint32_t p, const void *bytes, size_t size) {
    vd_asking *q = &a->asking[p];
    vd_referee *referee = a->seat[q->seat].sitting.referee;
    vd_referee_answer(referee, q->party, bytes, size);
    const vd_statement *s = vd_referee_last(referee, q->party);
    if (!s)
        return vd_fail(a->err, VD_ERR_LOCAL, "out of memory");
    const bool counted = s->stated.payload.size > 0;
    a->heard |= counted;
    take_pace(a, p, referee);
    vd_noted noted = entry_of(a, p, counted ? VD_NOTED_ANSWER : VD_NOTED_ABSENT);
    noted.bytes = counted ? bytes : (const uint8_t *)s->why;
    noted.size = counted ? size : strlen(s->why);
    end_asking(a, p);
    return vd_arbiter_append(a, &noted, 1);
}

static vd_status give_none(vd_arbiter *a, uint32_t p, const char *why) {
    vd_asking *q = &a->asking[p];
    vd_referee *referee = a->seat[q->seat].sitting.referee;
    vd_referee_no_answer(referee, q->party, why);
    const vd_statement *s = vd_referee_last(referee, q->party);
    if (!s)
        return vd_fail(a->err, VD_ERR_LOCAL, "out of memory");
    vd_noted noted = entry_of(a, p, VD_NOTED_ABSENT);
    noted.bytes = (const uint8_t *)s->why;
    noted.size = strlen(s->why);
    end_asking(a, p);
    return vd_arbiter_append(a, &noted, 1);
}

/* ---- what the journal knows ---- */

static vd_status recall_answer(vd_arbiter *a, uint32_t p, const vd_noted *noted) {
    vd_asking *q = &a->asking[p];
    vd_referee *referee = a->seat[q->seat].sitting.referee;
    vd_referee_answer(referee, q->party, noted->bytes, noted->size);
    const vd_statement *s = vd_referee_last(referee, q->party);
    if (!s || s->stated.payload.size == 0)
        return no_such(a, p, "did not sign an answer that it has");
    a->heard = true;
    take_pace(a, p, referee);
    end_asking(a, p);
    return VD_OK;
}

static vd_status recall_absence(vd_arbiter *a, uint32_t p, const vd_noted *noted) {
    vd_asking *q = &a->asking[p];
    char why[128];
    snprintf(why, sizeof why, "%.*s", (int)(noted->size < 127 ? noted->size : 127),
             (const char *)noted->bytes);
    vd_referee_no_answer(a->seat[q->seat].sitting.referee, q->party, why);
    end_asking(a, p);
    return VD_OK;
}

/* Replays what the journal says of the question just asked: an answer may be missing. */
static vd_status recall_course(vd_arbiter *a, uint32_t p) {
    vd_asking *q = &a->asking[p];
    for (const vd_noted *n; (n = next_noted(a, p)); a->noted[p]++) {
        if (n->kind == VD_NOTED_QUESTION || !vd_hash_equal(&n->question, &q->question))
            return no_such(a, p, "answers what it was not asked");
        q->used_s = q->noted_s = q->heard_s = (double)n->used_us / 1e6;
        if (n->kind == VD_NOTED_CLOCK)
            continue;
        a->noted[p]++;
        return n->kind == VD_NOTED_ANSWER ? recall_answer(a, p, n) : recall_absence(a, p, n);
    }
    return VD_OK;
}

/* Looks for the question in the journal, whose next entry must be exactly this question. */
static vd_status recall(vd_arbiter *a, uint32_t p, bool *known) {
    const vd_asking *q = &a->asking[p];
    const vd_noted *n = next_noted(a, p);
    *known = n != NULL;
    if (!n)
        return VD_OK;
    if (n->kind != VD_NOTED_QUESTION || !vd_hash_equal(&n->question, &q->question) ||
        n->size != q->note.size || memcmp(n->bytes, q->note.data, n->size) != 0)
        return no_such(a, p, "was asked something else");
    a->noted[p]++;
    return recall_course(a, p);
}

/* ---- a new question ---- */

static vd_status begin_asking(vd_arbiter *a, uint32_t p, uint32_t seat, const vd_outgoing *out) {
    vd_asking *q = &a->asking[p];
    const vd_referee *referee = a->seat[seat].sitting.referee;
    *q = (vd_asking){.asked = true,
                     .first = a->rounds == 1,
                     .seat = seat,
                     .party = out->party,
                     .work = out->work,
                     .question = out->question,
                     .answer_max = out->answer_max,
                     .pause_s = RETRY_S};
    q->allowance_s = vd_clock_allow(a, p, out->work, vd_referee_program(referee));
    a->seat[seat].open++;
    vd_put(&q->note, out->note->data, out->note->size);
    if (!vd_buf_ok(&q->note))
        return vd_fail(a->err, VD_ERR_LOCAL, "out of memory");
    return vd_request_write(a->options.assignment, &q->note, &q->request, a->err);
}

vd_status vd_arbiter_put(vd_arbiter *a, uint32_t seat, const vd_outgoing *out) {
    const uint32_t p = a->seat[seat].sitting.provider[out->party];
    vd_asking *q = &a->asking[p];
    bool known = false;
    vd_status status = begin_asking(a, p, seat, out);
    if (status == VD_OK)
        status = recall(a, p, &known);
    if (status != VD_OK || !q->asked)
        return status;
    q->again_at = a->world->now(a->world->user);
    if (known)
        return VD_OK;
    a->fresh[a->fresh_count] = entry_of(a, p, VD_NOTED_QUESTION);
    a->fresh[a->fresh_count].bytes = q->note.data;
    a->fresh[a->fresh_count++].size = q->note.size;
    return VD_OK;
}

/* ---- sending ---- */

static vd_status send_one(vd_arbiter *a, uint32_t p) {
    vd_asking *q = &a->asking[p];
    const double left = q->allowance_s - q->used_s;
    const double most = left < a->options.patience_s ? left : a->options.patience_s;
    const vd_post post = {.provider = p,
                          .request = &q->request,
                          .answer_max = q->answer_max,
                          .seconds = most > 0.001 ? most : 0.001};
    q->away = true;
    return a->world->send(a->world->user, &post, a->err);
}

/* Sends all questions that are due. *next becomes the time when the next one is. */
static vd_status send_due(vd_arbiter *a, double *next) {
    const double now = a->world->now(a->world->user);
    vd_status status = VD_OK;
    *next = HUGE_VAL;
    for (uint32_t p = 0; p < a->assignment.provider_count && status == VD_OK; p++) {
        vd_asking *q = &a->asking[p];
        if (!q->asked || q->away)
            continue;
        if (q->again_at <= now)
            status = send_one(a, p);
        else if (q->again_at < *next)
            *next = q->again_at;
    }
    return status;
}

/* ---- replies that are no answer ---- */

/* Returns the seconds left. If the length of the work is unknown, silence also ends them. */
static double seconds_left(const vd_arbiter *a, const vd_asking *q) {
    const double left = q->allowance_s - q->used_s;
    const double silent = q->heard_s + a->options.patience_s - q->used_s;
    return vd_is_in_no_game(q->work) && silent < left ? silent : left;
}

static void tell_waiting(vd_arbiter *a, uint32_t p, const vd_reply *reply) {
    vd_asking *q = &a->asking[p];
    const double now = a->world->now(a->world->user);
    const bool working = reply->kind == VD_REPLY_WORKING;
    const bool news = !working || strcmp(q->told_why, reply->why) != 0;
    const vd_telling how =
        news && now - q->told_at >= TOLD_EVERY_S ? VD_TELL_EITHER : VD_TELL_PASSING;
    if (!q->told)
        vd_arbiter_tell(a, VD_TELL_LINE, "Provider %u: %s. %s for up to %.0f s.", p + 1, reply->why,
                        working ? "Waiting" : "Asking again", seconds_left(a, q));
    else if (working)
        vd_arbiter_tell(a, how, "Provider %u: %s", p + 1, reply->why);
    else
        vd_arbiter_tell(a, how, "Provider %u: no answer for %.0f s: %s", p + 1,
                        q->used_s - q->heard_s, reply->why);
    if (!q->told || how == VD_TELL_EITHER) {
        q->told_at = now;
        snprintf(q->told_why, sizeof q->told_why, "%s", reply->why);
    }
    q->told = true;
}

static vd_status note_clock(vd_arbiter *a, uint32_t p) {
    vd_asking *q = &a->asking[p];
    const double share = NOTED_SHARE * q->used_s;
    if (q->used_s - q->noted_s < (share > NOTED_EVERY_S ? share : NOTED_EVERY_S))
        return VD_OK;
    q->noted_s = q->used_s;
    const vd_noted noted = entry_of(a, p, VD_NOTED_CLOCK);
    return vd_arbiter_append(a, &noted, 1);
}

/* Schedules the question again, which the provider's clock pays, or gives up if time is over. */
static vd_status wait_on(vd_arbiter *a, uint32_t p, const vd_reply *reply) {
    vd_asking *q = &a->asking[p];
    const bool working = reply->kind == VD_REPLY_WORKING;
    const double most = working ? WORKING_MOST_S : TROUBLE_MOST_S;
    q->met |= working;
    if (working)
        q->heard_s = q->used_s;
    q->pause_s = q->pause_s < most ? q->pause_s : most;
    if (seconds_left(a, q) <= q->pause_s)
        return give_none(a, p, reply->why);
    tell_waiting(a, p, reply);
    q->again_at = a->world->now(a->world->user) + q->pause_s;
    q->used_s += q->pause_s;
    q->pause_s *= 2;
    return note_clock(a, p);
}

/* In the first round a wrong address is most likely the user's mistake. Afterwards it counts as
 * silence: otherwise a provider could leave a dispute by it. */
static vd_status astray(vd_arbiter *a, uint32_t p, const vd_reply *reply) {
    if (!a->asking[p].first || a->asking[p].met)
        return wait_on(a, p, reply);
    a->asking[p].again_at = HUGE_VAL;
    if (a->astray && a->astray_provider < p)
        return VD_OK;
    a->astray = true;
    a->astray_provider = p;
    memcpy(a->astray_why, reply->why, sizeof a->astray_why);
    return VD_OK;
}

/* Ends the dispute with the first wrong address, once every provider has replied. */
static vd_status end_astray(vd_arbiter *a) {
    for (uint32_t p = 0; p < a->assignment.provider_count; p++)
        if (a->asking[p].asked && !a->asking[p].replied)
            return VD_OK;
    a->mistaken = true;
    return vd_fail(a->err, VD_ERR_LOCAL, "provider %u: %s", a->astray_provider + 1, a->astray_why);
}

static vd_status take_reply(vd_arbiter *a, const vd_reply *reply) {
    vd_asking *q = &a->asking[reply->provider];
    q->away = false;
    q->replied = true;
    q->used_s += reply->seconds;
    switch (reply->kind) {
    case VD_REPLY_ANSWER: return give_answer(a, reply->provider, reply->bytes, reply->size);
    case VD_REPLY_REFUSED:
        a->refusals += q->first && (!a->options.own_rival || (reply->provider == 0 && reply->said));
        return give_none(a, reply->provider, reply->why);
    case VD_REPLY_ASTRAY: return astray(a, reply->provider, reply);
    default: return wait_on(a, reply->provider, reply);
    }
}

vd_status vd_arbiter_go_on(vd_arbiter *a) {
    vd_reply reply = {.kind = VD_REPLY_NONE};
    double next;
    vd_status status = send_due(a, &next);
    if (status == VD_OK)
        status = a->world->wait(a->world->user, next, &reply, a->err);
    if (status == VD_OK && reply.kind != VD_REPLY_NONE)
        status = take_reply(a, &reply);
    return status == VD_OK && a->astray ? end_astray(a) : status;
}
