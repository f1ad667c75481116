/* This file uploads to a provider's daemon, starts jobs there, and asks for their progress. */
#include "verde/delivery/remote.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verde/commit/json.h"
#include "verde/delivery/signed.h"
#include "verde/graph/graph.h"

enum {
    ANSWER_BYTES_MAX = 9 << 20, /* a list of all blobs of a submission */
    ANSWER_ELEMENTS_MAX = VD_DATA_MAX + 256,
    STALLS_MAX = 8,
    HASHED_PER_S = 16 << 20, /* bytes that a provider hashes per second, at least */
};

/* ---- one question ---- */

static void remote_pause(void) {
    nanosleep(&(struct timespec){.tv_nsec = VD_REMOTE_RETRY_MS * 1000000L}, NULL);
}

static bool remote_stopped(const vd_remote *r) {
    return r->stop && atomic_load(r->stop);
}

/* Returns true if the trouble may pass: the provider may be starting or busy. */
static bool may_pass(const vd_answer *answer) {
    const bool transport = answer->err.status == VD_ERR_IO || answer->err.status == VD_ERR_TIMEOUT;
    const bool said = answer->http_status >= 400 && answer->http_status < 500;
    return transport && !said && answer->http_status != 507 && !answer->other_key &&
           !answer->unknown_host && !answer->untrusted;
}

static vd_status remote_failed(const vd_remote *r, const vd_answer *answer, vd_err *err) {
    char why[512];
    vd_status status = answer->err.status;
    vd_answer_why(answer, why, sizeof why);
    if (answer->http_status && status == VD_ERR_IO && !may_pass(answer))
        status = VD_ERR_PEER;
    else if (status == VD_ERR_TIMEOUT)
        status = VD_ERR_IO;
    const bool named = strncmp(why, r->at->url, strlen(r->at->url)) == 0; /* by the transport */
    return named ? vd_fail(err, status, "%.450s", why)
                 : vd_fail(err, status, "%s: %.400s", r->at->url, why);
}

static void tell_news(const vd_remote *r, vd_remote_news news, const char *why) {
    if (r->news)
        r->news(r->user, news, why);
}

static void tell_trouble(const vd_remote *r, const vd_exchange *exchange, const vd_answer *answer) {
    char why[512];
    if (answer->http_status)
        vd_answer_why(answer, why, sizeof why);
    else
        snprintf(why, sizeof why, "%s", vd_answer_reason(exchange, answer));
    tell_news(r, VD_REMOTE_TROUBLE, why);
}

/* Asks until the provider answers 200 or `also`, refuses, or its patience is over. */
static vd_status remote_ask(const vd_remote *r, const vd_exchange *wish, int also, json_t **out,
                            int *http_status, vd_err *err) {
    vd_exchange exchange = *wish;
    const double start = vd_seconds();
    vd_answer answer = {0};
    exchange.to = r->at;
    exchange.deadline_ms = VD_REMOTE_DEADLINE_MS;
    exchange.answer_max = ANSWER_BYTES_MAX;
    exchange.stop = r->stop;
    exchange.moved = r->moved;
    for (;;) {
        tell_news(r, VD_REMOTE_ASKS, NULL);
        vd_signed_ask(r->client, r->key, &exchange, &answer);
        if (remote_stopped(r) || !may_pass(&answer) || vd_seconds() - start >= r->patience_s)
            break;
        tell_trouble(r, &exchange, &answer);
        vd_answer_free(&answer);
        remote_pause();
    }
    if (!may_pass(&answer))
        tell_news(r, VD_REMOTE_ANSWERED, NULL);
    vd_err unread = {0};
    const bool answered = answer.err.status == VD_OK || (also && answer.http_status == also);
    vd_status status = VD_OK;
    *out = NULL;
    *http_status = answer.http_status;
    if (remote_stopped(r))
        status = vd_fail(err, VD_ERR_TIMEOUT, "%s: stopped", r->at->url);
    else if (!answered)
        status = remote_failed(r, &answer, err);
    else if (vd_json_read(answer.body.data, answer.body.size, ANSWER_ELEMENTS_MAX, out, &unread) !=
             VD_OK)
        status = vd_fail(err, unread.status, "%s%s: its answer: %.300s", r->at->url, exchange.path,
                         unread.text);
    vd_answer_free(&answer);
    return status;
}

/* ---- uploads ---- */

/* How far an upload has come. */
typedef struct {
    uint64_t have;
    bool complete; /* all bytes are there and have the hash */
} upload_place;

static vd_status read_place(const vd_remote *r, const vd_parcel *parcel, const json_t *answer,
                            upload_place *at, vd_err *err) {
    const json_t *have = json_object_get(answer, "have");
    at->complete = json_is_true(json_object_get(answer, "complete"));
    at->have = (uint64_t)json_integer_value(have);
    return json_is_integer(have) && json_integer_value(have) >= 0 && at->have <= parcel->size
               ? VD_OK
               : vd_fail(err, VD_ERR_PEER, "%s: does not say how much of an upload it has",
                         r->at->url);
}

/* Makes one request: sends the next chunk, or asks how far the upload has come. */
static vd_status upload_step(const vd_remote *r, const vd_parcel *parcel, bool ask,
                             upload_place *at, vd_err *err) {
    char hex[2 * VD_HASH_SIZE + 1], path[200];
    const uint64_t left = parcel->size - at->have;
    json_t *answer;
    int http_status;
    vd_hex(parcel->hash.b, VD_HASH_SIZE, hex);
    vd_exchange exchange = {.path = path};
    if (ask) {
        snprintf(path, sizeof path, "/v1/blobs/%s", hex);
    } else {
        snprintf(path, sizeof path, "/v1/blobs/%s?size=%llu&from=%llu", hex,
                 (unsigned long long)parcel->size, (unsigned long long)at->have);
        exchange.method = "PUT";
        exchange.body = parcel->bytes + at->have;
        exchange.body_size = left < VD_REMOTE_CHUNK_BYTES ? (size_t)left : VD_REMOTE_CHUNK_BYTES;
        exchange.content_type = "application/octet-stream";
    }
    vd_status status = remote_ask(r, &exchange, ask ? 0 : 409, &answer, &http_status, err);
    vd_map_pass(exchange.body, exchange.body_size);
    if (status == VD_OK)
        status = read_place(r, parcel, answer, at, err);
    json_decref(answer);
    return status;
}

/* Watches whether an upload makes progress. */
typedef struct {
    uint64_t most; /* most bytes seen */
    int stalls;    /* answers since with no more */
    double whole;  /* vd_seconds() when all were there; 0: not yet */
} upload_progress;

/* A restarted provider hashes the bytes again, which takes as long as a slow disk needs. */
static bool has_stalled(upload_progress *p, const upload_place *at, uint64_t size, int patience_s) {
    const double now = vd_seconds();
    if (at->have == size) {
        p->whole = p->whole > 0 ? p->whole : now;
        return now - p->whole > patience_s + (double)size / HASHED_PER_S;
    }
    p->stalls = at->have > p->most ? 0 : p->stalls + 1;
    p->most = at->have > p->most ? at->have : p->most;
    return p->stalls > STALLS_MAX;
}

vd_status vd_remote_upload(const vd_remote *r, const vd_parcel *parcel,
                           void (*sent)(void *user, uint64_t have), void *user, vd_err *err) {
    upload_place at = {0};
    upload_progress progress = {.most = 0};
    vd_status status = upload_step(r, parcel, true, &at, err);
    if (status == VD_OK && sent)
        sent(user, at.complete ? parcel->size : at.have);
    while (status == VD_OK && !at.complete) {
        /* the provider may have all bytes and still be hashing them */
        const bool wait = at.have == parcel->size;
        if (wait)
            remote_pause();
        status = upload_step(r, parcel, wait, &at, err);
        if (status == VD_OK && !at.complete &&
            has_stalled(&progress, &at, parcel->size, r->patience_s))
            status = vd_fail(err, VD_ERR_PEER, "%s: takes bytes of an upload, and has no more",
                             r->at->url);
        if (status == VD_OK && sent)
            sent(user, at.have);
    }
    return status;
}

/* ---- jobs ---- */

vd_status vd_remote_submit(const vd_remote *r, const vd_buf *submission, char id[VD_REMOTE_ID_SIZE],
                           vd_err *err) {
    const vd_exchange exchange = {
        .path = "/v1/jobs", .body = submission->data, .body_size = submission->size};
    json_t *answer;
    int http_status;
    uint8_t bytes[VD_HASH_SIZE];
    vd_status status = remote_ask(r, &exchange, 0, &answer, &http_status, err);
    const char *said = json_string_value(json_object_get(answer, "job"));
    if (status == VD_OK && said && vd_unhex(said, bytes, sizeof bytes))
        snprintf(id, VD_REMOTE_ID_SIZE, "%s", said);
    else if (status == VD_OK)
        status = vd_fail(err, VD_ERR_PEER, "%s: gives the job no name", r->at->url);
    json_decref(answer);
    return status;
}

const char *vd_remote_state_name(vd_remote_state state) {
    static const char *const name[] = {"queued", "running", "done", "failed", "cancelled"};
    return name[state];
}

static bool read_state(const json_t *answer, vd_remote_state *out) {
    const char *said = json_string_value(json_object_get(answer, "state"));
    for (int i = 0; said && i <= VD_REMOTE_CANCELLED; i++)
        if (strcmp(said, vd_remote_state_name((vd_remote_state)i)) == 0) {
            *out = (vd_remote_state)i;
            return true;
        }
    return false;
}

static double real_or_nan(const json_t *answer, const char *name) {
    const json_t *value = json_object_get(answer, name);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* Reads a text member, reduced to printable characters; empty if it is missing. */
static void read_text(const json_t *answer, const char *name, char *out, size_t size) {
    const char *text = json_string_value(json_object_get(answer, name));
    vd_err printable;
    vd_fail(&printable, VD_ERR_IO, "%.299s", text ? text : "");
    snprintf(out, size, "%.*s", (int)size - 1, printable.text);
}

static vd_status read_job(const vd_remote *r, const json_t *answer, vd_remote_job *out,
                          vd_err *err) {
    const char *root = json_string_value(json_object_get(answer, "run_root"));
    *out =
        (vd_remote_job){.step = json_integer_value(json_object_get(answer, "step")),
                        .steps = json_integer_value(json_object_get(answer, "steps")),
                        .prompts = json_integer_value(json_object_get(answer, "prompts")),
                        .prompts_done = json_integer_value(json_object_get(answer, "prompts_done")),
                        .loss = real_or_nan(answer, "loss"),
                        .rate = real_or_nan(answer, "rate"),
                        .seconds_left = real_or_nan(answer, "seconds_left")};
    if (!read_state(answer, &out->state) || out->step < 0 || out->steps < 0 || out->prompts < 0 ||
        (out->state == VD_REMOTE_DONE && (!root || !vd_unhex(root, out->run_root.b, VD_HASH_SIZE))))
        return vd_fail(err, VD_ERR_PEER, "%s: does not say how the job is", r->at->url);
    read_text(answer, "error", out->error, sizeof out->error);
    return VD_OK;
}

vd_status vd_remote_ask_job(const vd_remote *r, const char *id, vd_remote_job *out, vd_err *err) {
    char path[32 + VD_REMOTE_ID_SIZE];
    const vd_exchange exchange = {.path = path};
    json_t *answer;
    int http_status;
    snprintf(path, sizeof path, "/v1/jobs/%s", id);
    vd_status status = remote_ask(r, &exchange, 0, &answer, &http_status, err);
    if (status == VD_OK)
        status = read_job(r, answer, out, err);
    json_decref(answer);
    return status;
}

static vd_status read_entry(const vd_remote *r, const json_t *answer, vd_remote_entry *out,
                            vd_err *err) {
    const char *id = json_string_value(json_object_get(answer, "job"));
    uint8_t bytes[VD_HASH_SIZE];
    vd_status status = read_job(r, answer, &out->job, err);
    if (status == VD_OK && (!id || !vd_unhex(id, bytes, sizeof bytes)))
        status = vd_fail(err, VD_ERR_PEER, "%s: lists a job without a name", r->at->url);
    if (status != VD_OK)
        return status;
    snprintf(out->id, sizeof out->id, "%s", id);
    read_text(answer, "name", out->name, sizeof out->name);
    read_text(answer, "client", out->client, sizeof out->client);
    out->created = json_integer_value(json_object_get(answer, "created"));
    out->seconds = json_integer_value(json_object_get(answer, "seconds"));
    return VD_OK;
}

vd_status vd_remote_list_jobs(const vd_remote *r, vd_remote_entry **out, uint32_t *count,
                              vd_err *err) {
    const vd_exchange exchange = {.path = "/v1/jobs"};
    json_t *answer;
    int http_status;
    *out = NULL;
    *count = 0;
    vd_status status = remote_ask(r, &exchange, 0, &answer, &http_status, err);
    const json_t *list = json_object_get(answer, "jobs");
    const size_t size = json_array_size(list);
    if (status == VD_OK && !json_is_array(list))
        status = vd_fail(err, VD_ERR_PEER, "%s: gives no list of jobs", r->at->url);
    if (status == VD_OK && !(*out = calloc(size + 1, sizeof **out)))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (; status == VD_OK && *count < size; ++*count)
        status = read_entry(r, json_array_get(list, *count), &(*out)[*count], err);
    json_decref(answer);
    return status;
}

static vd_status change_job(const vd_remote *r, const char *method, const char *id,
                            const char *rest, vd_err *err) {
    char path[40 + VD_REMOTE_ID_SIZE];
    const vd_exchange exchange = {.path = path, .method = method};
    json_t *answer;
    int http_status;
    snprintf(path, sizeof path, "/v1/jobs/%s%s", id, rest);
    vd_status status = remote_ask(r, &exchange, 0, &answer, &http_status, err);
    json_decref(answer);
    return status;
}

vd_status vd_remote_cancel_job(const vd_remote *r, const char *id, vd_err *err) {
    return change_job(r, "POST", id, "/cancel", err);
}

vd_status vd_remote_delete_job(const vd_remote *r, const char *id, vd_err *err) {
    return change_job(r, "DELETE", id, "", err);
}
