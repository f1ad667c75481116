#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/cli/checking.h"
#include "verde/cli/item_runs.h"
#include "verde/cli/patience.h"
#include "verde/cli/serve_team.h"
#include "verde/delivery/item_results.h"
#include "verde/delivery/offer.h"
#include "verde/net/net.h"
#include "verde/protocol/ask_counts.h"
#include "verde/protocol/desk.h"
#include "verde/protocol/signed_request.h"
#include "verde/provide/meter.h"

typedef struct {
    vd_provider provider;
    vd_desk *desk;
    vd_replay *replay; /* of a job of one program */
    vd_checking *checking;
    /* With --fetch, once all is hashed: what is handed out to who names this root. */
    vd_hash root;
    vd_offer *offer;
    char results[1024];  /* of a job with prompts, in place of the offer: a file */
    vd_item_runs *items; /* of a job with prompts; else NULL */
    const char *listen, *dir;
    vd_meter meter;
    vd_ask_counts counts; /* the handler's alone */
    bool quiet, json, fetch;
    double refused_s; /* when a refusal was last told of: screen's alone */
} service;

static vd_server *running;
static volatile sig_atomic_t stopping;

static void stop(int signal_number) {
    (void)signal_number;
    stopping = 1;
    if (running)
        vd_server_stop(running);
}

static void tell(const char *line) {
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

/* For who wants to know what is served here, with curl. */
static void describe(const service *s, vd_response *response) {
    vd_public_key key;
    char hex[2 * VD_KEY_SIZE + 1];
    vd_key_public(s->provider.key, &key);
    vd_hex(key.b, VD_KEY_SIZE, hex);
    const vd_provider *p = &s->provider;
    json_t *out =
        json_pack("{si ss so}", "verde", 1, "key", hex, "program", vd_hash_text(&p->program_hash));
    if (p->program)
        json_object_set_new(out, "steps", json_integer(p->program->steps));
    else
        json_object_set_new(out, "prompts", json_integer((json_int_t)p->collection->count));
    if (s->provider.source.role)
        json_object_set_new(
            out, "role",
            json_string(s->provider.source.role == VD_TRAINER ? "trainer" : "auditor"));
    put_json(response, out);
}

/* PROTOCOL.md section 8.4. */
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

static void answer(const service *s, const vd_request *request, vd_response *response) {
    vd_err err = {0};
    vd_working working;
    double start = vd_seconds();
    vd_status status =
        vd_ask_desk(s->desk, request->body, request->body_size, &response->body, &working, &err);
    response->content_type = "application/json";
    while (status == VD_ERR_TIMEOUT && !stopping) /* silence on purpose */
        usleep(100000);
    if (status == VD_ERR_PEER)
        refuse(response, 400, err.text);
    else if (status == VD_ERR_IO)
        say_working(response, &working, err.text);
    else if (status != VD_OK)
        refuse(response, 503, "trouble of this provider");
    if (status != VD_OK && status != VD_ERR_TIMEOUT && status != VD_ERR_IO)
        tell(err.text);
    else if (!s->quiet && status != VD_ERR_IO) /* that is asked every second */
        vd_say("verde serve: answered in %.2f s, %zu bytes", vd_seconds() - start,
               response->body.size);
}

/* Is it a referee's own request to this provider? False: `response` says why not. */
static bool read_asked(const service *s, const vd_request *request, vd_public_key *referee,
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

/* These very bytes came before. They may be the referee's own, which were late. */
static bool was_sent_before(service *s, const vd_request *request, vd_response *response) {
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
    service *s = user;
    if (is_get(request, "/v1/metrics"))
        vd_meter_put(&s->meter, s->dir, response);
    else if (was_sent_before(s, request, response))
        return;
    else if (atomic_load(&s->checking->done))
        answer(s, request, response);
    else
        say_hashing(s->checking, response);
}

/* ---- downloads ---- */

#define JOBS "/v1/jobs/"
enum { ROOT_TEXT = 2 * VD_HASH_SIZE };

/* Whoever names the run root may read. Nobody knows it before it is revealed. */
static vd_screened screen_read(service *s, const char *path, vd_response *response) {
    vd_hash root;
    char hex[ROOT_TEXT + 1] = "";
    if (!s->fetch) {
        refuse(response, 404, "this provider hands out no states (`verde serve --fetch` does)");
        return VD_ANSWERED;
    }
    if (!atomic_load(&s->checking->done)) {
        say_hashing(s->checking, response);
        return VD_ANSWERED;
    }
    snprintf(hex, sizeof hex, "%s", path + strlen(JOBS));
    if (vd_unhex(hex, root.b, VD_HASH_SIZE) && vd_hash_equal(&root, &s->root))
        return VD_READS;
    refuse(response, 404, "no run with this root is served here");
    return VD_ANSWERED;
}

static void read_state(void *user, const vd_request *request, vd_response *response) {
    const service *s = user;
    const char *rest = request->path + strlen(JOBS) + ROOT_TEXT;
    if (s->offer)
        vd_offer_answer(s->offer, rest, response);
    else
        vd_item_results_answer(s->results, rest, response);
}

static vd_status offer_items(service *s, vd_err *err) {
    const vd_item_runs *x = s->items;
    snprintf(s->results, sizeof s->results, "%.900s/results.offer", x->dir);
    s->root = x->job_root;
    return vd_item_results_write(x->ro, x->dir, &x->items, s->results, err);
}

/* After the hashing: what a referee is told of this machine's pace, and what downloads get. */
static vd_status get_ready(void *user, vd_err *err) {
    service *s = user;
    if (s->items)
        vd_item_runs_measure(s->items, &s->provider.pace, NULL);
    else
        vd_measure(s->replay, s->checking->check.exec->program, &s->provider.pace, NULL);
    if (!s->fetch)
        return VD_OK;
    if (s->items)
        return offer_items(s, err);
    vd_status status = vd_offer_create(&s->checking->check, &s->offer, err);
    if (status == VD_OK)
        s->root = *vd_offer_run_root(s->offer);
    return status;
}

/* ---- whose turn it is ---- */

static void tell_refusal(service *s, const vd_err *err) {
    atomic_fetch_add(&s->meter.refused, 1);
    if (vd_seconds() - s->refused_s >= 1) { /* a flood needs no line each */
        s->refused_s = vd_seconds();
        vd_say("verde serve: %s", err->text);
    }
}

/* The computing is not confined: this program is its own user's. */
static vd_screened screen_get(service *s, const vd_request *request, vd_response *response) {
    if (is_get(request, "/v1/metrics"))
        return VD_WAITS;
    if (strcmp(request->method, "GET") == 0 && strncmp(request->path, JOBS, strlen(JOBS)) == 0)
        return screen_read(s, request->path, response);
    if (is_get(request, "/v1/provider"))
        describe(s, response);
    else if (is_get(request, "/v1/health"))
        vd_meter_health(false, atomic_load(&s->checking->done) ? "ok" : "hashing", response);
    else
        refuse(response, 404, "GET /v1/provider, /v1/health or /v1/metrics, or POST /v1/ask");
    return VD_ANSWERED;
}

/* Only a whole question by a referee that is served waits for its turn. All else is answered at
 * once, and costs no more than reading it. */
static vd_screened screen(void *user, const vd_request *request, uint8_t asker[VD_ASKER_SIZE],
                          vd_response *response) {
    service *s = user;
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

static void say_dishonest(const char *fault) {
    vd_say("*** FAULT ON PURPOSE: %s. This provider is dishonest. ***", fault);
}

static void host_of(const char *listen, char *host, size_t size) {
    const char *colon = strrchr(listen, ':');
    snprintf(host, size, "%.*s", colon ? (int)(colon - listen) : 0, listen);
}

static void announce(const service *s) {
    vd_public_key key;
    char hex[2 * VD_KEY_SIZE + 1], host[256], url[512];
    if (s->items && s->items->dishonest) /* known from the hashing */
        say_dishonest("in a prompt's run");
    vd_key_public(s->provider.key, &key);
    vd_hex(key.b, VD_KEY_SIZE, hex);
    host_of(s->listen, host, sizeof host);
    snprintf(url, sizeof url, "https://%s:%d#%s", host, vd_server_port(running), hex);
    if (s->json)
        vd_print_json(json_pack("{ss}", "url", url));
    else
        printf("%s\n", url);
    fflush(stdout);
}

/* Runs at the end of the hashing, on its thread. */
static void ended(void *user, bool fits) {
    if (fits)
        announce(user);
    else
        vd_server_stop(running);
}

static vd_status run_server(service *s, vd_err *err) {
    if (atomic_load(&s->checking->done)) {
        announce(s);
        return vd_server_run(running, err);
    }
    vd_status status = vd_checking_start(s->checking, err), checked;
    if (status != VD_OK)
        return status;
    status = vd_server_run(running, err);
    checked = vd_checking_end(s->checking, err);
    return status == VD_OK ? checked : status;
}

static vd_status serve_until_signal(service *s, const char *key_dir, vd_err *err) {
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
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    status = run_server(s, err);
    signal(SIGTERM, SIG_DFL); /* a second run ends after its step: asked twice, we go at once */
    signal(SIGINT, SIG_DFL);
    vd_desk_destroy(s->desk); /* its thread may stop the server until it ends */
    s->desk = NULL;
    vd_server_destroy(running);
    return status;
}

typedef struct {
    const char *dir, *listen, *key_dir, *lie, *referee, *data;
    bool fetch;
    vd_common common;
} arguments;

/* All that answering takes. The second run gets a context of its own: it executes while questions
 * are answered. */
typedef struct {
    service service;
    vd_checking checking;
    vd_loaded loaded, second;
    vd_run_log log;
    vd_replay *replay;
    vd_item_runs items; /* of a job with prompts, in place of all these */
    vd_serve_team team; /* if MPI started other processes */
    vd_key *key;
    vd_public_key referee;
    const char *key_dir;
    char own_key_dir[1100]; /* if none was given */
} provider;

/* By this process alone, also where others share the first run's steps. */
static vd_status prepare_again(const arguments *a, provider *p, vd_err *err) {
    char dir[1024];
    vd_again *again;
    p->second.exec = p->loaded.exec;
    p->second.exec.placed = NULL; /* they are the first context's */
    p->second.exec.part = NULL;
    vd_status status = vd_load_backend(&p->second, &a->common, err);
    snprintf(dir, sizeof dir, "%s/again", a->dir);
    if (status == VD_OK)
        status = vd_again_create(dir, &p->second.exec, NULL, p->log.keep, &again, err);
    if (status != VD_OK)
        return status;
    p->service.provider.run_again = vd_again_source;
    p->service.provider.again = again;
    return VD_OK;
}

static vd_status read_wishes(const arguments *a, provider *p, vd_err *err) {
    p->service.quiet = p->service.json = a->common.json;
    p->service.listen = a->listen;
    p->service.dir = a->dir;
    p->service.meter.started = vd_seconds();
    p->service.fetch = a->fetch;
    p->service.checking = &p->checking;
    snprintf(p->own_key_dir, sizeof p->own_key_dir, "%s/keys", a->dir);
    p->key_dir = a->key_dir ? a->key_dir : p->own_key_dir;
    if (a->referee && !vd_unhex(a->referee, p->referee.b, VD_KEY_SIZE))
        return vd_fail(err, VD_ERR_USAGE,
                       "--referee must be 64 lower-case hexadecimal digits, got \"%.80s\"",
                       a->referee);
    p->service.provider.referee = a->referee ? &p->referee : NULL;
    return a->lie ? vd_lie_parse(a->lie, &p->service.provider.lie, err) : VD_OK;
}

/* A signature cannot be taken back, so nothing is said about a run whose files do not fit. Nobody
 * has been told of a key that is yet to be made: then there is time to hash everything, and no key
 * is made for a run that is not served. */
static vd_status check_or_load_key(const arguments *a, provider *p, vd_err *err) {
    char path[1200];
    p->checking.check = (vd_check){.dir = a->dir, .exec = &p->loaded.exec, .log = &p->log};
    p->checking.fits = get_ready;
    p->checking.ended = ended;
    p->checking.user = &p->service;
    snprintf(path, sizeof path, "%s/key.pem", p->key_dir);
    vd_status status = access(path, F_OK) == 0 ? VD_OK : vd_checking_run(&p->checking, err);
    return status == VD_OK ? vd_load_key(p->key_dir, &p->key, err) : status;
}

static vd_status check_items(vd_checking *checking, vd_err *err) {
    const service *s = checking->user;
    return vd_item_runs_check(s->items, checking, err);
}

static vd_status load_items(const arguments *a, provider *p, vd_err *err) {
    vd_status status = vd_item_runs_open(a->dir, a->data, &a->common, &p->items, err);
    vd_item_runs_serve(&p->items, &p->service.provider);
    p->service.items = &p->items;
    p->checking.all = check_items;
    return status == VD_OK ? check_or_load_key(a, p, err) : status;
}

static void stop_serving(void *user) {
    (void)user;
    stop(0);
}

static vd_status open_replay(const arguments *a, provider *p, vd_err *err) {
    vd_status status = vd_serve_share(&p->team, &p->loaded.exec, stop_serving, NULL, err);
    if (status == VD_OK)
        status = vd_replay_create(a->dir, &p->loaded.exec, &p->replay, err);
    if (status == VD_OK && p->loaded.exec.part)
        vd_replay_share(p->replay, &p->team.team);
    p->service.replay = p->replay;
    return status;
}

/* What every process loads, if there are several. */
static vd_status load_own(const arguments *a, provider *p, vd_err *err) {
    vd_status status = vd_load_run(a->dir, &p->loaded, &p->log, err);
    if (status == VD_OK && p->log.rounded)
        status = vd_serve_alone(a->dir, "a run with rounding logs", err);
    if (status == VD_OK && p->log.count == vd_run_leaves(&p->loaded.program))
        status = vd_load_data(a->dir, a->data, &p->loaded, err);
    return status == VD_OK ? vd_load_backend(&p->loaded, &a->common, err) : status;
}

static vd_status load(const arguments *a, provider *p, bool *follows, vd_err *err) {
    const bool items = vd_items_are_in(a->dir);
    vd_status status = items ? vd_serve_alone(a->dir, "a run of prompts", err) : VD_OK;
    if (status == VD_OK && items)
        return load_items(a, p, err);
    if (status == VD_OK)
        status = load_own(a, p, err);
    if (status == VD_OK)
        status = vd_serve_join(&p->team, &p->loaded, follows, err);
    if (*follows)
        return status;
    if (status == VD_OK)
        status = open_replay(a, p, err);
    if (status == VD_OK)
        status = check_or_load_key(a, p, err);
    /* Whoever logs, or follows a log, has no second run: PROTOCOL.md section 12.6. */
    return status == VD_OK && !p->log.rounded ? prepare_again(a, p, err) : status;
}

static vd_status answer_questions(const arguments *a, provider *p, vd_err *err) {
    vd_provider *to = &p->service.provider;
    to->key = p->key;
    to->tell = tell;
    if (!to->collection) {
        to->program = &p->loaded.program;
        to->program_hash = p->log.program;
        to->source = vd_replay_source(p->replay);
    }
    if (p->log.fault[0] || a->lie)
        say_dishonest(a->lie ? a->lie : p->log.fault);
    vd_status status = vd_desk_create(to, &p->service.desk, err);
    return status == VD_OK ? serve_until_signal(&p->service, p->key_dir, err) : status;
}

static void unload(provider *p) {
    vd_desk_destroy(p->service.desk);
    vd_offer_destroy(p->service.offer);
    vd_again_destroy(p->service.provider.again);
    vd_loaded_free(&p->second);
    vd_replay_destroy(p->replay);
    vd_item_runs_close(&p->items);
    vd_key_destroy(p->key);
    vd_run_log_free(&p->log);
    vd_loaded_free(&p->loaded);
}

static vd_exit serve_run(const arguments *a, vd_err *err) {
    provider p = {.replay = NULL};
    bool follows = false;
    vd_status status = read_wishes(a, &p, err);
    if (status == VD_OK)
        status = load(a, &p, &follows, err);
    status = vd_serve_outcome(&p.team, status, err);
    if (status == VD_OK && !follows)
        status = answer_questions(a, &p, err);
    vd_desk_destroy(p.service.desk); /* nothing is computed for an answer any more */
    p.service.desk = NULL;
    status = vd_serve_outcome(&p.team, status, err);
    const vd_exit code = status == VD_OK ? VD_EXIT_OK : vd_report(err);
    vd_serve_leave(&p.team, status == VD_OK); /* may end this process too */
    unload(&p);
    return code;
}

static vd_exit serve(int argc, char **argv) {
    static const struct option options[] = {{"listen", required_argument, NULL, 'l'},
                                            {"key", required_argument, NULL, 'k'},
                                            {"fault", required_argument, NULL, 'f'},
                                            {"referee", required_argument, NULL, 'r'},
                                            {"data", required_argument, NULL, 'D'},
                                            {"fetch", no_argument, NULL, 'F'},
                                            VD_COMMON_OPTIONS};
    arguments a = {.listen = "127.0.0.1:0"};
    bool exit_now = false;
    vd_err err = {0};
    for (int o; (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (o == 'l')
            a.listen = optarg;
        else if (o == 'k')
            a.key_dir = optarg;
        else if (o == 'f')
            a.lie = optarg;
        else if (o == 'r')
            a.referee = optarg;
        else if (o == 'D')
            a.data = optarg;
        else if (o == 'F')
            a.fetch = true;
        else if (!vd_take_common(&vd_cmd_serve, o, &a.common, &exit_now))
            return VD_EXIT_USAGE;
        if (exit_now)
            return VD_EXIT_OK;
    }
    if (argc - optind != 1 || strlen(argv[optind]) > 900) {
        fprintf(stderr, "verde: serve takes one directory of a run\n");
        return VD_EXIT_USAGE;
    }
    a.dir = argv[optind];
    return serve_run(&a, &err);
}

const vd_command vd_cmd_serve = {
    "serve", "answer a referee about a finished run",
    "Usage: verde serve DIR [--listen ADDR:PORT] [options]\n\n"
    "Answers a referee's questions over HTTPS about the run in DIR, re-executing from its\n"
    "checkpoints. Prints the URL to give to `verde arbitrate`; it ends in the provider's key.\n"
    "Stops at SIGTERM or SIGINT. If the run is shown to be wrong, executes the job again, into\n"
    "DIR/again, to contest the other provider's claim. Hashes all of DIR first, as `verde check`\n"
    "does, and does not serve a run whose files do not fit together (exit code 6). Started again\n"
    "with its key, it tells a referee meanwhile that it works. DIR of a job with prompts: about\n"
    "all of them. Of processes that MPI starts the first one answers, and all execute; each\n"
    "reads DIR's program and data.\n\n"
    "  --listen ADDR:PORT  default 127.0.0.1:0, any free port; [::1]:PORT for IPv6; 0.0.0.0:PORT "
    "is\n"
    "                      every address: the URL then needs this machine's name in its place\n"
    "  --key DIR           identity made by `verde keygen` (default: DIR/keys, made if absent)\n"
    "  --referee KEY       answer this referee only (hexadecimal). Without it whoever can reach "
    "this\n"
    "                      provider and names its key can make it work, and referees take turns\n"
    "  --data DIR          where the run's data files are now, if they have moved\n"
    "  --fetch             also hand out the final state, to whoever names the run root: for\n"
    "                      `verde fetch`. The root is no secret once it is revealed\n"
    "  --fault KIND        lie on purpose: proof, withhold, silence or contradict\n" VD_COMMON_HELP
    "\nExample:\n"
    "  verde serve run --listen 127.0.0.1:8443\n"
    "  verde serve run --fetch --referee $(cat referee/key.pub)\n"
    "  mpirun -n 4 verde serve run   # steps are executed again by 4 processes\n" VD_EXIT_HELP,
    serve};
