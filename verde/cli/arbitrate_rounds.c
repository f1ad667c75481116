/* Rounds of questions in a dispute: who is asked again, for how long, and what silence means. */
#include <string.h>
#include <unistd.h>

#include "verde/base/thread.h"
#include "verde/cli/arbitrate.h"
#include "verde/cli/story.h"

enum { RETRY_MS = 300, POLL_MS = 1000 };

/* The time that is left to a provider. */
static int deadline_ms(const vd_court *x, const vd_outgoing *out) {
    const double seconds = x->left_s[out->party];
    return seconds < 0.001 ? 1 : seconds > 1e6 ? 1000000000 : (int)(seconds * 1000);
}

/* A provider that answers nothing may say why, unsigned: {"error": sentence, "working": true}, of
 * printable characters only. True: it works on an answer (PROTOCOL.md section 8.4). */
static bool why_not(const vd_answer *answer, char *why, size_t size) {
    json_t *body = NULL;
    vd_err printable;
    if (answer->http_status && answer->body.size)
        (void)!vd_json_read(answer->body.data, answer->body.size, VD_SMALL_ELEMENTS, &body, NULL);
    const char *error = json_string_value(json_object_get(body, "error"));
    const bool working =
        answer->http_status == 503 && json_is_true(json_object_get(body, "working"));
    vd_fail(&printable, VD_ERR_IO, "%.200s", error ? error : answer->err.text);
    snprintf(why, size, "%.200s", printable.text);
    json_decref(body);
    return working;
}

static void no_answer(vd_court *x, uint32_t p, const vd_answer *answer) {
    char text[220], why[256];
    (void)why_not(answer, text, sizeof text);
    snprintf(why, sizeof why, "HTTP status %d: %.200s", answer->http_status, text);
    vd_referee_no_answer(x->referee, p, answer->http_status ? why : text);
}

static void take_answer(vd_court *x, uint32_t p, vd_answer *answer) {
    x->left_s[p] -= answer->seconds;
    x->bytes_in += answer->bytes_in;
    x->bytes_out += answer->bytes_out;
    if (answer->err.status == VD_OK)
        vd_referee_answer(x->referee, p, answer->body.data, answer->body.size);
    else
        no_answer(x, p, answer);
}

/* One request waits no longer than for any answer: who works on it says so meanwhile. */
static int at_most(const vd_court *x, int left_ms) {
    return left_ms / 1000 < x->a->question_s ? left_ms : (int)(x->a->question_s * 1000);
}

/* A question that is asked again and again, all waiting counted: time, bytes. */
typedef struct {
    const vd_outgoing *out;
    vd_exchange *exchange;
    vd_answer *answer;
    int total_ms, wait_ms;
    bool working;   /* by its last answer */
    double heard_s; /* when it last said that it works, in the answer's seconds */
    double told;    /* when we last said so */
    char why[220];  /* what it says */
} asking;

static bool may_go_away(const vd_answer *answer) {
    return answer->err.status == VD_ERR_IO || answer->err.status == VD_ERR_TIMEOUT;
}

static bool has_anybody_said(const vd_court *x) {
    size_t said;
    (void)vd_referee_statements(x->referee, &said);
    return x->said || said > 0;
}

/* Before anybody has said anything, a key or a name that does not fit is most likely a mistake in
 * the URL. Afterwards it would be a way out of what was said, and is silence. */
static bool is_wrong_address(const vd_court *x, const vd_answer *answer) {
    return (answer->other_key || answer->unknown_host) && !has_anybody_said(x);
}

static vd_status wrong_addresses(const vd_court *x, const vd_outgoing *out, const vd_answer *answer,
                                 size_t count) {
    for (size_t i = 0; i < count; i++)
        if (is_wrong_address(x, &answer[i]))
            return vd_fail(x->err, VD_ERR_LOCAL, "provider %u: %s", x->number[out[i].party] + 1,
                           answer[i].err.text);
    return VD_OK;
}

static int left_ms(const asking *a) {
    return a->total_ms - (int)(a->answer->seconds * 1000);
}

/* Until its time is over; or its provider said nothing for as long as one answer may take. */
static bool goes_on(const vd_court *x, const asking *a) {
    return may_go_away(a->answer) && !is_wrong_address(x, a->answer) && left_ms(a) > a->wait_ms &&
           a->answer->seconds - a->heard_s < (double)x->a->question_s;
}

static void take_heard(asking *a) {
    a->working = may_go_away(a->answer) && why_not(a->answer, a->why, sizeof a->why);
    if (a->working)
        a->heard_s = a->answer->seconds;
}

/* At first, and then how far the provider says it is: a line that changes, or now and then one of
 * its own. */
static void tell_waiting(const vd_court *x, asking *a, const char *why) {
    char line[700];
    const bool first = a->told == 0;
    if (first)
        snprintf(line, sizeof line, "Provider %u: %s. %s for up to %d s.",
                 x->number[a->out->party] + 1, why, a->working ? "Waiting" : "Asking again",
                 (a->working ? left_ms(a) : at_most(x, left_ms(a))) / 1000);
    else
        snprintf(line, sizeof line, "Provider %u: %s", x->number[a->out->party] + 1, why);
    if (!first && vd_is_terminal())
        vd_tell_now(line);
    else if (first || (a->working && vd_seconds() - a->told >= 5)) {
        a->told = vd_seconds();
        vd_tell(NULL, line);
    }
}

static void ask_again(const vd_court *x, vd_client *client, asking *a) {
    vd_answer again = {0};
    usleep((useconds_t)a->wait_ms * 1000);
    a->exchange->deadline_ms = at_most(x, left_ms(a) - a->wait_ms);
    vd_client_ask(client, 1, a->exchange, &again);
    again.seconds += a->answer->seconds + a->wait_ms / 1000.0;
    again.bytes_in += a->answer->bytes_in;
    again.bytes_out += a->answer->bytes_out;
    vd_answer_free(a->answer);
    *a->answer = again;
    if (a->working && a->wait_ms < POLL_MS) /* else it may be starting again */
        a->wait_ms *= 2;
}

/* A provider may be computing, or restarting, or the network be down for a moment. */
static void ask_on(const vd_court *x, vd_client *client, asking *a) {
    while (goes_on(x, a)) {
        tell_waiting(x, a, a->why);
        ask_again(x, client, a);
        take_heard(a);
    }
}

/* ---- all of them at once: nobody waits for another one's answer ---- */

typedef struct {
    const vd_court *x;
    asking a;
    vd_client *client; /* its own */
    pthread_t thread;
    bool started;
} waiting;

static void *wait_for_answer(void *user) {
    waiting *w = user;
    ask_on(w->x, w->client, &w->a);
    return NULL;
}

/* Where there is no thread to be had, they wait in turn. */
static void start_waiting(waiting *w) {
    vd_err unread = {0};
    w->started = vd_client_create(w->x->a->ca, &w->client, &unread) == VD_OK &&
                 vd_thread_start(&w->thread, wait_for_answer, w) == 0;
}

static void end_waiting(waiting *w) {
    if (w->started)
        pthread_join(w->thread, NULL);
    else
        ask_on(w->x, w->x->client, &w->a);
    vd_client_destroy(w->client);
}

static void ask_all_on(const vd_court *x, waiting *w, size_t count) {
    size_t unanswered = 0;
    for (size_t i = 0; i < count; i++)
        unanswered += goes_on(x, &w[i].a);
    for (size_t i = 0; i < count && unanswered > 1; i++)
        if (goes_on(x, &w[i].a))
            start_waiting(&w[i]);
    for (size_t i = 0; i < count; i++)
        end_waiting(&w[i]);
}

/* All refuse the first request. Of one alone it would be a way out of its forfeit. */
static bool do_all_refuse(const vd_court *x, const vd_answer *answer, size_t count) {
    size_t refusals = 0;
    for (size_t i = 0; i < count; i++)
        refusals += answer[i].err.status == VD_ERR_PEER;
    return refusals == x->parties && !has_anybody_said(x);
}

static vd_status ask_until_answered(vd_court *x, const vd_outgoing *out, size_t count,
                                    vd_exchange *exchange, vd_answer *answer) {
    waiting w[VD_PARTIES_MAX] = {0};
    for (size_t i = 0; i < count; i++) {
        const int total_ms = deadline_ms(x, &out[i]);
        exchange[i].deadline_ms = at_most(x, total_ms);
        w[i].x = x;
        w[i].a = (asking){.out = &out[i],
                          .exchange = &exchange[i],
                          .answer = &answer[i],
                          .total_ms = total_ms,
                          .wait_ms = out[i].whole_run ? POLL_MS : RETRY_MS};
    }
    vd_client_ask(x->client, count, exchange, answer);
    for (size_t i = 0; i < count; i++)
        take_heard(&w[i].a);
    x->mistaken = do_all_refuse(x, answer, count);
    vd_status status = wrong_addresses(x, out, answer, count);
    if (status != VD_OK || x->mistaken)
        return status;
    ask_all_on(x, w, count);
    return wrong_addresses(x, out, answer, count);
}

/* Our own trouble, in any answer, is nobody's fault. */
static vd_status local_trouble(const vd_answer *answer, size_t count, vd_err *err) {
    for (size_t i = 0; i < count; i++)
        if (answer[i].err.status == VD_ERR_LOCAL || answer[i].err.status == VD_ERR_USAGE)
            return vd_fail(err, VD_ERR_LOCAL, "%s", answer[i].err.text);
    return VD_OK;
}

vd_status vd_ask_round(vd_court *x, const vd_outgoing *out, size_t count) {
    vd_exchange exchange[VD_PARTIES_MAX] = {0};
    vd_answer answer[VD_PARTIES_MAX] = {0};
    vd_buf body[VD_PARTIES_MAX] = {0};
    vd_status status = VD_OK;
    for (size_t i = 0; i < count && status == VD_OK; i++) {
        status = vd_request_write(x->assignment, out[i].note, &body[i], x->err);
        exchange[i] = (vd_exchange){.to = x->party[out[i].party],
                                    .path = "/v1/ask",
                                    .body = body[i].data,
                                    .body_size = body[i].size,
                                    .answer_max = out[i].answer_max};
    }
    if (status == VD_OK)
        status = ask_until_answered(x, out, count, exchange, answer);
    if (status == VD_OK)
        status = local_trouble(answer, count, x->err);
    for (size_t i = 0; i < count; i++) {
        if (status == VD_OK)
            take_answer(x, out[i].party, &answer[i]);
        vd_answer_free(&answer[i]);
        vd_buf_free(&body[i]);
    }
    return status;
}
