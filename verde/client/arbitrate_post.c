/* This file sends a dispute's questions to providers, with a thread for each. */
#include "verde/client/arbitrate_post.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verde/base/thread.h"
#include "verde/commit/json.h"
#include "verde/protocol/signed_request.h"

/* Silence is reported after SILENT_S, then every TELL_S. */
enum { SILENT_S = 5, TELL_S = 10, LOOK_S = 1 };

/* The thread of one provider, which has one exchange at a time. */
typedef struct {
    vd_post_office *office;
    vd_client *client;
    pthread_t thread;
    pthread_cond_t sent;
    bool started, waiting, ready; /* waiting: to be sent; ready: `answer` is there */
    vd_exchange exchange;
    vd_buf header; /* header of the exchange, with the referee's signature */
    vd_answer answer;
    int64_t count; /* count in the last request */
    atomic_ullong moved;
    bool away;           /* the exchange is under way */
    uint64_t moved_then; /* bytes sent and received at the last look, */
    double silent, told; /* when they last grew (vd_seconds()); last report, or 0 */
} postman;

struct vd_post_office {
    vd_post_options options;
    pthread_mutex_t lock;
    pthread_cond_t came;
    atomic_bool stop;
    postman man[VD_PARTIES_MAX];
    vd_buf taken; /* body of the last reply */
    uint64_t bytes_in, bytes_out;
};

/* ---- life ---- */

static bool monotonic_cond(pthread_cond_t *cond) {
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return false;
    const bool done = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                      pthread_cond_init(cond, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return done;
}

vd_status vd_post_create(const vd_post_options *options, vd_post_office **out, vd_err *err) {
    vd_post_office *o = calloc(1, sizeof *o);
    if (!o)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (!monotonic_cond(&o->came)) {
        free(o);
        return vd_fail(err, VD_ERR_LOCAL, "could not create a condition variable");
    }
    pthread_mutex_init(&o->lock, NULL);
    o->options = *options;
    *out = o;
    return VD_OK;
}

static void end_postman(postman *m) {
    if (!m->started)
        return;
    pthread_mutex_lock(&m->office->lock);
    pthread_cond_signal(&m->sent);
    pthread_mutex_unlock(&m->office->lock);
    pthread_join(m->thread, NULL);
    pthread_cond_destroy(&m->sent);
    vd_client_destroy(m->client);
    vd_answer_free(&m->answer);
    vd_buf_free(&m->header);
}

void vd_post_destroy(vd_post_office *o) {
    if (!o)
        return;
    atomic_store(&o->stop, true);
    for (int p = 0; p < VD_PARTIES_MAX; p++)
        end_postman(&o->man[p]);
    vd_buf_free(&o->taken);
    pthread_cond_destroy(&o->came);
    pthread_mutex_destroy(&o->lock);
    free(o);
}

/* ---- sending ---- */

static void *deliver(void *user) {
    postman *m = user;
    vd_post_office *o = m->office;
    pthread_mutex_lock(&o->lock);
    while (!atomic_load(&o->stop)) {
        if (!m->waiting) {
            pthread_cond_wait(&m->sent, &o->lock);
            continue;
        }
        m->waiting = false;
        pthread_mutex_unlock(&o->lock);
        vd_client_ask(m->client, 1, &m->exchange, &m->answer);
        pthread_mutex_lock(&o->lock);
        m->ready = true;
        m->away = false;
        pthread_cond_signal(&o->came);
    }
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

static vd_status start_postman(vd_post_office *o, postman *m, vd_err *err) {
    m->office = o;
    vd_status status = vd_client_create(o->options.ca, &m->client, err);
    if (status != VD_OK)
        return status;
    const int error =
        pthread_cond_init(&m->sent, NULL) == 0 ? vd_thread_start(&m->thread, deliver, m) : ENOMEM;
    m->started = error == 0;
    if (m->started)
        return VD_OK;
    vd_client_destroy(m->client);
    return vd_fail(err, VD_ERR_LOCAL, "could not start a thread: %s", strerror(error));
}

/* Sets the count to the microseconds since 1970, or one more than before: it grows even over
 * restarts. If the clock was set back, the provider says what count it has. */
static void count_on(postman *m) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    m->count = us > m->count ? us : m->count + 1;
}

/* Signs a request anew each time, so that nobody can use it again or for another provider. */
static vd_status sign_request(postman *m, const vd_post *post, vd_err *err) {
    const vd_post_options *o = &m->office->options;
    const vd_public_key *to = &o->assignment->provider[post->provider];
    count_on(m);
    m->header.size = 0;
    vd_printf(&m->header, VD_REQUEST_HEADER ": ");
    vd_status status = vd_ask_sign(o->referee, to, post->request->data, post->request->size,
                                   m->count, &m->header, err);
    vd_put_u8(&m->header, 0);
    return status == VD_OK && !vd_buf_ok(&m->header) ? vd_fail(err, VD_ERR_LOCAL, "out of memory")
                                                     : status;
}

vd_status vd_post_send(void *user, const vd_post *post, vd_err *err) {
    vd_post_office *o = user;
    postman *m = &o->man[post->provider];
    vd_status status = m->started ? VD_OK : start_postman(o, m, err);
    if (status == VD_OK)
        status = sign_request(m, post, err);
    if (status != VD_OK)
        return status;
    pthread_mutex_lock(&o->lock);
    m->exchange = (vd_exchange){.to = &o->options.endpoint[post->provider],
                                .path = VD_ASK_PATH,
                                .body = post->request->data,
                                .body_size = post->request->size,
                                .header = (const char *)m->header.data,
                                .answer_max = post->answer_max,
                                .deadline_ms = (int)(post->seconds * 1000),
                                .stop = &o->stop,
                                .moved = &m->moved};
    m->away = true;
    m->silent = vd_seconds();
    m->told = 0;
    if (m->exchange.deadline_ms < 1)
        m->exchange.deadline_ms = 1;
    m->waiting = true;
    pthread_cond_signal(&m->sent);
    pthread_mutex_unlock(&o->lock);
    return VD_OK;
}

/* ---- replies ---- */

/* Writes the reason why there is no answer, in printable characters. A provider may give it in an
 * unsigned reply, {"error": sentence, "working": true}. Returns true if the provider is working on
 * the answer (PROTOCOL.md section 8.4). */
static bool why_not(const vd_answer *answer, char why[VD_REPLY_WHY]) {
    json_t *body = NULL;
    vd_err printable;
    if (answer->http_status && answer->body.size)
        (void)!vd_json_read(answer->body.data, answer->body.size, VD_SMALL_ELEMENTS, &body, NULL);
    const char *error = json_string_value(json_object_get(body, "error"));
    const bool working =
        answer->http_status == 503 && json_is_true(json_object_get(body, "working"));
    vd_fail(&printable, VD_ERR_IO, "%.500s", error ? error : answer->err.text);
    if (answer->http_status && !working)
        snprintf(why, VD_REPLY_WHY, "HTTP status %d: %.180s", answer->http_status, printable.text);
    else
        snprintf(why, VD_REPLY_WHY, "%s", printable.text);
    json_decref(body);
    return working;
}

/* Takes the greater count that a provider states (409). A false one only hurts itself. */
static void take_count(postman *m) {
    const vd_answer *answer = &m->answer;
    json_t *body = NULL;
    if (answer->http_status != 409 || !answer->body.size)
        return;
    (void)!vd_json_read(answer->body.data, answer->body.size, VD_SMALL_ELEMENTS, &body, NULL);
    const int64_t have = json_integer_value(json_object_get(body, "have"));
    if (have > m->count && have < VD_ASK_COUNT_MAX)
        m->count = have;
    json_decref(body);
}

static vd_status read_reply(vd_post_office *o, uint32_t p, vd_reply *out, vd_err *err) {
    vd_answer *answer = &o->man[p].answer;
    *out = (vd_reply){.provider = p, .seconds = answer->seconds};
    o->bytes_in += answer->bytes_in;
    o->bytes_out += answer->bytes_out;
    const bool working = answer->err.status != VD_OK && why_not(answer, out->why);
    switch (answer->err.status) {
    case VD_OK:
        out->kind = VD_REPLY_ANSWER;
        out->bytes = answer->body.data;
        out->size = answer->body.size;
        return VD_OK;
    case VD_ERR_PEER:
        out->kind = VD_REPLY_REFUSED;
        out->said = answer->http_status >= 400;
        return VD_OK;
    case VD_ERR_IO:
    case VD_ERR_TIMEOUT:
        out->kind = working                                     ? VD_REPLY_WORKING
                    : answer->other_key || answer->unknown_host ? VD_REPLY_ASTRAY
                                                                : VD_REPLY_TROUBLE;
        return VD_OK;
    default: return vd_fail(err, VD_ERR_LOCAL, "%s", answer->err.text);
    }
}

/* Takes a reply. Its body is valid until the next call. */
static vd_status take_reply(vd_post_office *o, uint32_t p, vd_reply *out, vd_err *err) {
    postman *m = &o->man[p];
    take_count(m);
    vd_status status = read_reply(o, p, out, err);
    vd_buf_free(&o->taken);
    o->taken = m->answer.body;
    m->answer.body = (vd_buf){0};
    vd_answer_free(&m->answer);
    m->answer = (vd_answer){0};
    m->ready = false;
    return status;
}

static struct timespec time_of(double seconds) {
    struct timespec out = {.tv_sec = (time_t)seconds};
    out.tv_nsec = (long)((seconds - (double)out.tv_sec) * 1e9);
    return out;
}

static void tell_silence(vd_post_office *o) {
    const double now = vd_seconds();
    for (uint32_t p = 0; p < VD_PARTIES_MAX; p++) {
        postman *m = &o->man[p];
        const uint64_t moved = atomic_load(&m->moved);
        if (moved != m->moved_then)
            m->silent = now;
        m->moved_then = moved;
        if (!m->away || now - m->silent < SILENT_S || (m->told > 0 && now - m->told < TELL_S))
            continue;
        m->told = now;
        o->options.silent(p, now - m->silent);
    }
}

static void wait_until(vd_post_office *o, double until) {
    const double most = vd_seconds() + LOOK_S;
    const struct timespec at = time_of(until < most ? until : most);
    pthread_cond_timedwait(&o->came, &o->lock, &at);
    tell_silence(o);
}

static postman *find_ready(vd_post_office *o) {
    for (int p = 0; p < VD_PARTIES_MAX; p++)
        if (o->man[p].ready)
            return &o->man[p];
    return NULL;
}

vd_status vd_post_wait(void *user, double until, vd_reply *out, vd_err *err) {
    vd_post_office *o = user;
    postman *m;
    vd_status status = VD_OK;
    *out = (vd_reply){.kind = VD_REPLY_NONE};
    pthread_mutex_lock(&o->lock);
    while (!(m = find_ready(o)) && vd_seconds() < until)
        wait_until(o, until);
    if (m)
        status = take_reply(o, (uint32_t)(m - o->man), out, err);
    pthread_mutex_unlock(&o->lock);
    return status;
}

void vd_post_bytes(vd_post_office *o, uint64_t *in, uint64_t *out) {
    *in = o->bytes_in;
    *out = o->bytes_out;
}
