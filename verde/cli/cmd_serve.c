#include <string.h>
#include <unistd.h>

#include "verde/cli/cli.h"
#include "verde/serve/serve_team.h"
#include "verde/serve/serving.h"

typedef struct {
    const char *dir, *listen, *key_dir, *lie, *referee, *data;
    bool fetch;
    vd_common common;
} arguments;

/* All that answering takes. The second run gets a context of its own: it executes while questions
 * are answered. */
typedef struct {
    vd_serving service;
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
    p->second.exec.kept = NULL;
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
    vd_status status = a->referee ? vd_read_key("--referee", a->referee, &p->referee, err) : VD_OK;
    if (status != VD_OK)
        return status;
    p->service.provider.referee = a->referee ? &p->referee : NULL;
    return a->lie ? vd_lie_parse(a->lie, &p->service.provider.lie, err) : VD_OK;
}

/* A signature cannot be taken back, so nothing is said about a run whose files do not fit. Nobody
 * has been told of a key that is yet to be made: then there is time to hash everything, and no key
 * is made for a run that is not served. */
static vd_status check_or_load_key(const arguments *a, provider *p, vd_err *err) {
    char path[1200];
    p->checking.check = (vd_check){.dir = a->dir, .exec = &p->loaded.exec, .log = &p->log};
    p->checking.fits = vd_serving_prepare;
    p->checking.ended = vd_serving_announce;
    p->checking.user = &p->service;
    snprintf(path, sizeof path, "%s/key.pem", p->key_dir);
    vd_status status = access(path, F_OK) == 0 ? VD_OK : vd_checking_run(&p->checking, err);
    return status == VD_OK ? vd_load_key(p->key_dir, &p->key, err) : status;
}

static vd_status check_items(vd_checking *checking, vd_err *err) {
    const vd_serving *s = checking->user;
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
    vd_serving_stop(0);
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
    if (status == VD_OK)
        status = vd_refuse_experimental(&p->loaded.program, err);
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
    to->tell = vd_serving_tell;
    if (!to->collection) {
        to->program = &p->loaded.program;
        to->program_hash = p->log.program;
        to->source = vd_replay_source(p->replay);
    }
    if (p->log.fault[0] || a->lie)
        vd_serving_say_dishonest(a->lie ? a->lie : p->log.fault);
    vd_status status = vd_desk_create(to, &p->service.desk, err);
    return status == VD_OK ? vd_serving_run(&p->service, p->key_dir, err) : status;
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
    for (int o; (o = vd_next_option(argc, argv, "h", options, "")) != -1;) {
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
    "  --fault KIND        lie on purpose: proof, withhold, silence, contradict or "
    "pad\n" VD_COMMON_HELP "\nExample:\n"
    "  verde serve run --listen 127.0.0.1:8443\n"
    "  verde serve run --fetch --referee $(cat referee/key.pub)\n"
    "  mpirun -n 4 verde serve run   # steps are executed again by 4 processes\n" VD_EXIT_HELP,
    serve};
