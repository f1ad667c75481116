/* This file is `verde serve`, which answers a referee's questions about a run. */
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

/* The state of the command: the run, the key and the connections. */
typedef struct {
    vd_serving service;
    vd_serve_team team; /* used if MPI started other processes */
    vd_key *key;
    vd_public_key referee;
    const char *key_dir;
    char own_key_dir[1100]; /* where the key is if --key was not given */
} provider;

static vd_status read_wishes(const arguments *a, provider *p, vd_err *err) {
    vd_serving *s = &p->service;
    s->quiet = s->json = a->common.json;
    s->listen = a->listen;
    s->dir = a->dir;
    s->meter.started = vd_seconds();
    s->fetch = a->fetch;
    snprintf(p->own_key_dir, sizeof p->own_key_dir, "%s/keys", a->dir);
    p->key_dir = a->key_dir ? a->key_dir : p->own_key_dir;
    vd_status status = a->referee ? vd_read_key("--referee", a->referee, &p->referee, err) : VD_OK;
    if (status != VD_OK)
        return status;
    s->provider.referee = a->referee ? &p->referee : NULL;
    return a->lie ? vd_lie_parse(a->lie, &s->provider.lie, err) : VD_OK;
}

/* A signature cannot be taken back, so a run whose files do not fit is not served. While there is
 * no key, nobody can be asking yet: everything is hashed before one is made. */
static vd_status check_or_load_key(provider *p, vd_err *err) {
    vd_checking *checking = &p->service.checking;
    checking->served = &p->service.served;
    checking->fits = vd_serving_prepare;
    checking->ended = vd_serving_announce;
    checking->user = &p->service;
    vd_status status = vd_lies_in(p->key_dir, "key.pem") ? VD_OK : vd_checking_run(checking, err);
    return status == VD_OK ? vd_load_key(p->key_dir, &p->key, err) : status;
}

static void stop_serving(void *user) {
    (void)user;
    vd_serving_stop(0);
}

/* Shares one run: every process loads it, and the first one answers. */
static vd_status share_run(provider *p, bool *follows, vd_err *err) {
    vd_served *served = &p->service.served;
    vd_loaded *loaded = &served->run[0].loaded;
    vd_status status = vd_serve_join(&p->team, loaded, follows, err);
    if (status != VD_OK || *follows)
        return status;
    status = vd_serve_share(&p->team, &loaded->exec, stop_serving, NULL, err);
    return status == VD_OK ? vd_served_replay(served, &p->team.team, err) : status;
}

static vd_status load(const arguments *a, provider *p, bool *follows, vd_err *err) {
    vd_served *served = &p->service.served;
    vd_status status =
        vd_items_are_in(a->dir) ? vd_serve_alone(a->dir, "a run of prompts", err) : VD_OK;
    if (status == VD_OK)
        status = vd_served_open(a->dir, a->data, &a->common, served, err);
    const vd_backend *backend =
        status == VD_OK && !served->many ? served->run[0].log.backend : NULL;
    char why[64];
    snprintf(why, sizeof why, "a run with %s", backend ? backend->emits : "");
    if (backend)
        status = vd_serve_alone(a->dir, why, err);
    if (status == VD_OK && !served->many)
        status = share_run(p, follows, err);
    if (*follows)
        return status;
    if (status == VD_OK)
        status = check_or_load_key(p, err);
    return status == VD_OK && !served->many && !backend ? vd_served_prepare_again(served, err)
                                                        : status;
}

static vd_status answer_questions(const arguments *a, provider *p, vd_err *err) {
    vd_serving *s = &p->service;
    const bool dishonest = !s->served.many && s->served.dishonest;
    s->provider.key = p->key;
    s->provider.tell = vd_serving_tell;
    vd_served_provide(&s->served, &s->provider);
    if (dishonest || a->lie)
        vd_serving_say_dishonest(a->lie ? a->lie : s->served.run[0].log.fault);
    vd_status status = vd_desk_create(&s->provider, &s->desk, err);
    return status == VD_OK ? vd_serving_run(s, p->key_dir, err) : status;
}

static void unload(provider *p) {
    vd_desk_destroy(p->service.desk);
    vd_offer_destroy(p->service.offer);
    vd_served_close(&p->service.served);
    vd_key_destroy(p->key);
}

static vd_exit serve_run(const arguments *a, vd_err *err) {
    static provider p;
    bool follows = false;
    vd_status status = read_wishes(a, &p, err);
    if (status == VD_OK)
        status = load(a, &p, &follows, err);
    status = vd_serve_outcome(&p.team, status, err);
    if (status == VD_OK && !follows)
        status = answer_questions(a, &p, err);
    vd_desk_destroy(p.service.desk); /* ends the computation of answers */
    p.service.desk = NULL;
    status = vd_serve_outcome(&p.team, status, err);
    const vd_exit code = status == VD_OK ? VD_EXIT_OK : vd_report(err);
    vd_serve_leave(&p.team, status == VD_OK); /* may end this process too */
    unload(&p);
    return code;
}

static arguments given;

static vd_exit serve(int argc, char **argv) {
    given = (arguments){.listen = "127.0.0.1:0"};
    vd_exit code;
    vd_err err = {0};
    if (!vd_take_options(&vd_cmd_serve, argc, argv, &code))
        return code;
    if (argc - optind != 1 || strlen(argv[optind]) > 900) {
        fprintf(stderr, "verde: serve takes one directory of a run\n");
        return VD_EXIT_USAGE;
    }
    given.dir = argv[optind];
    return serve_run(&given, &err);
}

static const vd_option options[] = {
    {"  --listen ADDR:PORT  default 127.0.0.1:0, any free port; [::1]:PORT for IPv6; 0.0.0.0:PORT "
     "is\n"
     "                      every address: the URL then needs this machine's name in its place\n",
     &given.listen},
    {"  --key DIR           identity made by `verde keygen` (default: DIR/keys, made if absent)\n",
     &given.key_dir},
    {"  --referee KEY       answer this referee only (hexadecimal). Without it whoever can reach "
     "this\n"
     "                      provider and names its key can make it work, and referees take turns\n",
     &given.referee},
    {"  --data DIR          where the run's data files are now, if they have moved\n", &given.data},
    {"  --fetch             also hand out the final state, to whoever names the run root: for\n"
     "                      `verde fetch`. The root is no secret once it is revealed\n",
     &given.fetch},
    {"  --fault KIND        lie on purpose: proof, withhold, silence, contradict or pad\n",
     &given.lie},
    VD_COMMON_ROWS(given.common),
    {NULL}};

const vd_command vd_cmd_serve = {
    "serve",
    "answer a referee about a finished run",
    "Usage: verde serve DIR [--listen ADDR:PORT] [options]\n\n"
    "Answers a referee's questions over HTTPS about the run in DIR, re-executing from its\n"
    "checkpoints. Prints the URL to give to `verde arbitrate`; it ends in the provider's key.\n"
    "Stops at SIGTERM or SIGINT. If the run is shown to be wrong, executes the job again, into\n"
    "DIR/again, to contest the other provider's claim. Hashes all of DIR first, as `verde check`\n"
    "does, and does not serve a run whose files do not fit together (exit code 6). Started again\n"
    "with its key, it tells a referee meanwhile that it works. DIR of a job with prompts: about\n"
    "all of them. Of processes that MPI starts the first one answers, and all execute; each\n"
    "reads DIR's program and data.\n\n",
    options,
    "\n"
    "Example:\n"
    "  verde serve run --listen 127.0.0.1:8443\n"
    "  verde serve run --fetch --referee $(cat referee/key.pub)\n"
    "  mpirun -n 4 verde serve run   # steps are executed again by 4 processes\n" VD_EXIT_HELP,
    serve};
