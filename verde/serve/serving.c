/* This file answers requests about a served run over HTTPS until a signal ends it. */
#include "verde/serve/serving.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/delivery/item_results.h"
#include "verde/log/served.h"
#include "verde/net/net.h"
#include "verde/protocol/signed_request.h"
#include "verde/serve/patience.h"

static vd_server *running;
static volatile sig_atomic_t stopping;

void vd_serving_stop(int signal_number) {
    (void)signal_number;
    stopping = 1;
    if (running)
        vd_server_stop(running);
}

void vd_serving_tell(const char *line) {
    vd_say("verde serve: %s", line);
}

static void put_json(vd_response *response, json_t *object) {
    if (!object || !vd_json_dump(object, &response->body))
        response->status = 500;
    response->content_type = "application/json";
    json_decref(object);
}

static void refuse(vd_response *response, int status, const char *why) {
    response->status = status;
    put_json(response, json_pack("{ss}", "error", why));
}

/* Describes what is served, for people who ask with curl. */
static void describe(const vd_serving *s, vd_response *response) {
    vd_public_key key;
    char hex[2 * VD_KEY_SIZE + 1];
    vd_key_public(s->provider.key, &key);
    vd_hex(key.b, VD_KEY_SIZE, hex);
    const vd_provider *p = &s->provider;
    json_t *out = json_pack("{si ss so so}", "verde", 1, "key", hex, "program",
                            vd_hash_text(&p->program_hash), "speaks", vd_speaks());
    if (p->program)
        json_object_set_new(out, "steps", json_integer(p->program->steps));
    else
        json_object_set_new(out, "prompts", json_integer((json_int_t)p->collection->count));
    if (s->provider.source.served)
        json_object_set_new(out, "role",
                            json_string(vd_role_name(s->provider.source.served->role)));
    put_json(response, out);
}

/* Answers `working` (PROTOCOL.md section 8.4). */
static void say_working(vd_response *response, const vd_working *working, const char *why) {
    json_t *out = json_pack("{ss sb}", "error", why, "working", working->working);
    if (working->of > 0) {
        json_object_set_new(out, "done", json_integer(working->done));
        json_object_set_new(out, "of", json_integer(working->of));
    }
    response->status = 503;
    put_json(response, out);
}

static void say_hashing(vd_checking *c, vd_response *response) {
    char why[128];
    vd_checking_print(c, why, sizeof why);
    say_working(response, &(vd_working){.working = true}, why);
}

static bool is_get(const vd_request *request, const char *path) {
    return strcmp(request->method, "GET") == 0 && strcmp(request->path, path) == 0;
}

static void answer(const vd_serving *s, const vd_request *request, vd_response *response) {
    vd_err err = {0};
    vd_working working;
    double start = vd_seconds();
    vd_status status =
        vd_ask_desk(s->desk, request->body, request->body_size, &response->body, &working, &err);
    response->content_type = "application/json";
    while (status == VD_ERR_TIMEOUT && !stopping) /* deliberate silence */
        usleep(100000);
    if (status == VD_ERR_PEER)
        refuse(response, 400, err.text);
    else if (status == VD_ERR_IO)
        say_working(response, &working, err.text);
    else if (status != VD_OK)
        refuse(response, 503, "trouble of this provider");
    if (status != VD_OK && status != VD_ERR_TIMEOUT && status != VD_ERR_IO)
        vd_serving_tell(err.text);
    else if (!s->quiet && status != VD_ERR_IO) /* repeated every second */
        vd_say("verde serve: answered in %.2f s, %zu bytes", vd_seconds() - start,
               response->body.size);
}

/* Checks that the request is a referee's own to this provider. False: `response` says why not. */
static bool read_asked(const vd_serving *s, const vd_request *request, vd_public_key *referee,
                       int64_t *count, vd_response *response, vd_err *err) {
    vd_public_key key;
    vd_key_public(s->provider.key, &key);
    int refusal = 400;
    vd_status status =
        vd_provider_screen(&s->provider, request->body, request->body_size, referee, err);
    if (status == VD_OK) {
        refusal = 401;
        status = vd_ask_judge(vd_request_header(request, VD_REQUEST_HEADER), &key, referee,
                              request->body, request->body_size, count, err);
    }
    if (status != VD_OK)
        refuse(response, status == VD_ERR_PEER ? refusal : 503, err->text);
    return status == VD_OK;
}

/* Returns true if the request came before, by its count. It may be the referee's own, and late. */
static bool was_sent_before(vd_serving *s, const vd_request *request, vd_response *response) {
    vd_public_key referee;
    int64_t count, have;
    vd_err err = {0};
    if (!read_asked(s, request, &referee, &count, response, &err))
        return true;
    if (vd_ask_counts_take(&s->counts, &referee, count, &have))
        return false;
    response->status = 409;
    put_json(response,
             json_pack("{ss sI}", "error",
                       "request: its count is not greater than that of an earlier one: it was sent "
                       "before, or is late; sign it anew",
                       "have", (json_int_t)have));
    return true;
}

static void handle(void *user, const vd_request *request, vd_response *response) {
    vd_serving *s = user;
    if (is_get(request, "/v1/metrics"))
        vd_meter_put(&s->meter, s->dir, response);
    else if (was_sent_before(s, request, response))
        return;
    else if (atomic_load(&s->checking.done))
        answer(s, request, response);
    else
        say_hashing(&s->checking, response);
}

/* ---- downloads ---- */

#define JOBS "/v1/jobs/"
enum { ROOT_TEXT = 2 * VD_HASH_SIZE };

/* Lets anybody read who names the run root: nobody knows it before it is revealed. */
static vd_screened screen_read(vd_serving *s, const char *path, vd_response *response) {
    vd_hash root;
    char hex[ROOT_TEXT + 1] = "";
    if (!s->fetch) {
        refuse(response, 404, "this provider hands out no states (`verde serve --fetch` does)");
        return VD_ANSWERED;
    }
    if (!atomic_load(&s->checking.done)) {
        say_hashing(&s->checking, response);
        return VD_ANSWERED;
    }
    snprintf(hex, sizeof hex, "%s", path + strlen(JOBS));
    if (vd_unhex(hex, root.b, VD_HASH_SIZE) && vd_hash_equal(&root, &s->root))
        return VD_READS;
    refuse(response, 404, "no run with this root is served here");
    return VD_ANSWERED;
}

static void read_state(void *user, const vd_request *request, vd_response *response) {
    const vd_serving *s = user;
    const char *rest = request->path + strlen(JOBS) + ROOT_TEXT;
    if (s->offer)
        vd_offer_answer(s->offer, rest, response);
    else
        vd_item_results_answer(s->results, rest, response);
}

static vd_status offer_items(vd_serving *s, vd_err *err) {
    const vd_served *x = &s->served;
    snprintf(s->results, sizeof s->results, "%.900s/results.offer", x->dir);
    s->root = x->job_root;
    return vd_item_results_write(x->ro, x->dir, &x->items, s->results, err);
}

static vd_status offer_run(vd_serving *s, vd_err *err) {
    const vd_served_run *r = &s->served.run[0];
    const vd_check run = {.dir = r->dir, .exec = &r->loaded.exec, .log = &r->log};
    const vd_status status = vd_offer_create(&run, &s->offer, err);
    if (status == VD_OK)
        s->root = *vd_offer_run_root(s->offer);
    return status;
}

vd_status vd_serving_prepare(void *user, vd_err *err) {
    vd_serving *s = user;
    vd_served_measure(&s->served, &s->provider.pace, NULL);
    if (!s->fetch)
        return VD_OK;
    return s->served.many ? offer_items(s, err) : offer_run(s, err);
}

/* ---- screening ---- */

static void tell_refusal(vd_serving *s, const vd_err *err) {
    atomic_fetch_add(&s->meter.refused, 1);
    if (vd_seconds() - s->refused_s >= 1) { /* at most a line a second */
        s->refused_s = vd_seconds();
        vd_say("verde serve: %s", err->text);
    }
}

/* `confined` is false in /v1/health: the computing runs as this program's own user. */
static vd_screened screen_get(vd_serving *s, const vd_request *request, vd_response *response) {
    if (is_get(request, "/v1/metrics"))
        return VD_WAITS;
    if (strcmp(request->method, "GET") == 0 && strncmp(request->path, JOBS, strlen(JOBS)) == 0)
        return screen_read(s, request->path, response);
    if (is_get(request, "/v1/provider"))
        describe(s, response);
    else if (is_get(request, "/v1/health"))
        vd_meter_health(false, atomic_load(&s->checking.done) ? "ok" : "hashing", response);
    else
        refuse(response, 404, "GET /v1/provider, /v1/health or /v1/metrics, or POST /v1/ask");
    return VD_ANSWERED;
}

/* Only complete questions of a referee that is served wait for their turn. Everything else is
 * answered at once, and costs only its reading. */
static vd_screened screen(void *user, const vd_request *request, uint8_t asker[VD_ASKER_SIZE],
                          vd_response *response) {
    vd_serving *s = user;
    vd_public_key referee;
    int64_t count;
    vd_err err = {0};
    atomic_fetch_add(&s->meter.requests, 1);
    if (strcmp(request->method, "POST") != 0 || strcmp(request->path, "/v1/ask") != 0)
        return screen_get(s, request, response);
    if (!read_asked(s, request, &referee, &count, response, &err)) {
        tell_refusal(s, &err);
        return VD_ANSWERED;
    }
    memcpy(asker, referee.b, VD_KEY_SIZE);
    return VD_WAITS;
}

void vd_serving_say_dishonest(const char *fault) {
    vd_say("*** FAULT ON PURPOSE: %s. This provider is dishonest. ***", fault);
}

static void host_of(const char *listen, char *host, size_t size) {
    const char *colon = strrchr(listen, ':');
    snprintf(host, size, "%.*s", colon ? (int)(colon - listen) : 0, listen);
}

static void announce(const vd_serving *s) {
    vd_public_key key;
    char hex[2 * VD_KEY_SIZE + 1], host[256], url[512];
    vd_buf line = {0};
    if (s->served.many && s->served.dishonest) /* known once hashed */
        vd_serving_say_dishonest("in a prompt's run");
    vd_key_public(s->provider.key, &key);
    vd_hex(key.b, VD_KEY_SIZE, hex);
    host_of(s->listen, host, sizeof host);
    snprintf(url, sizeof url, "https://%s:%d#%s", host, vd_server_port(running), hex);
    vd_printf(&line, "%s\n", url);
    if (s->json)
        vd_result_json(json_pack("{ss}", "url", url));
    else
        vd_result_text(&line);
    vd_buf_free(&line);
}

void vd_serving_announce(void *user, bool fits) {
    if (fits)
        announce(user);
    else
        vd_server_stop(running);
}

static vd_status run_server(vd_serving *s, vd_err *err) {
    if (atomic_load(&s->checking.done)) {
        announce(s);
        return vd_server_run(running, err);
    }
    vd_status status = vd_checking_start(&s->checking, err), checked;
    if (status != VD_OK)
        return status;
    status = vd_server_run(running, err);
    checked = vd_checking_end(&s->checking, err);
    return status == VD_OK ? checked : status;
}

vd_status vd_serving_run(vd_serving *s, const char *key_dir, vd_err *err) {
    char cert[1200], key[1200];
    snprintf(cert, sizeof cert, "%s/tls.crt", key_dir);
    snprintf(key, sizeof key, "%s/key.pem", key_dir);
    vd_server_options options = {.listen = s->listen,
                                 .cert_path = cert,
                                 .key_path = key,
                                 .screen = screen,
                                 .read = s->fetch ? read_state : NULL,
                                 .request_max = 2 * VD_QUESTION_BYTES_MAX};
    vd_status status = vd_server_create(&options, handle, s, &running, err);
    if (status != VD_OK)
        return status;
    struct sigaction action = {.sa_handler = vd_serving_stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    status = run_server(s, err);
    signal(SIGTERM, SIG_DFL); /* a second signal need not wait for a second run's step */
    signal(SIGINT, SIG_DFL);
    vd_desk_destroy(s->desk); /* its thread may still stop the server */
    s->desk = NULL;
    vd_server_destroy(running);
    return status;
}
