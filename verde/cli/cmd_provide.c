/* This file is `verde provide`, which starts a provider's daemon. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verde/cli/cli.h"
#include "verde/exec/exec.h"
#include "verde/provide/daemon.h"
#include "verde/provide/page.h"
#include "verde/serve/child.h"

enum {
    CLIENTS_MAX = 1024,
    CORES_MAX = 1000000,
    CORES_OF_GPU =
        200, /* A GPU counts as so many cores: half of what an H100 was worth for GPT-2. */
};

static vd_daemon *running;

static void stop(int signal_number) {
    (void)signal_number;
    vd_daemon_stop(running);
}

typedef struct {
    const char *dir, *listen, *key_dir, *fault;
    vd_public_key client[CLIENTS_MAX];
    uint32_t client_count;
    vd_provide_limits limits;
    long jobs, page; /* `page` is a port; -1: no page */
    long cores;      /* for estimates of seconds; 0: those that a job has */
    vd_common common;
} arguments;

/* ---- options ---- */

/* Takes a number of bytes, which k, M, G or T behind it multiply by powers of 1000. */
static bool take_size(void *to, const char *name, const char *text, const vd_option *option) {
    int64_t *out = to;
    (void)option;
    static const char units[] = "kMGT";
    char *end;
    const long long value = strtoll(text, &end, 10);
    const char *unit = *end && !end[1] ? strchr(units, *end) : NULL;
    int64_t size = value;
    bool fine = end != text && *text != '-' && (!*end || unit);
    for (int i = 0; fine && unit && i <= unit - units; i++)
        fine = !__builtin_mul_overflow(size, (int64_t)1000, &size);
    if (fine && size > 0 && size <= INT64_C(1) << 53) {
        *out = size;
        return true;
    }
    fprintf(stderr,
            "verde: --%s must be a number of bytes, or of thousands of them with k, M, G or T "
            "behind it, as in 4G; got \"%s\"\n",
            name, text);
    return false;
}

static bool take_count(void *to, const char *name, const char *text, const vd_option *option) {
    long value;
    (void)option;
    if (!vd_parse_number(name, text, 0, INT32_MAX, &value))
        return false;
    *(int64_t *)to = value;
    return true;
}

static bool add_client(void *to, const char *name, const char *text, const vd_option *option) {
    arguments *a = to;
    (void)name;
    (void)option;
    vd_err err = {0};
    vd_public_key *key = &a->client[a->client_count];
    if (a->client_count == CLIENTS_MAX) {
        fprintf(stderr, "verde: at most %d clients can be enrolled\n", CLIENTS_MAX);
        return false;
    }
    if (vd_read_key("--client", text, key, &err) != VD_OK) {
        fprintf(stderr, "verde: %s\n", err.text);
        return false;
    }
    a->client_count++;
    return true;
}

/* ---- the daemon ---- */

/* Writes the URL to DATA/url, where `verde jobs --data` looks for it. */
static void tell_operator(const char *dir, const char *url) {
    char path[1100], line[600];
    vd_err err = {0};
    snprintf(path, sizeof path, "%.1000s/url", dir);
    const int size = snprintf(line, sizeof line, "%s\n", url);
    if (vd_write_file(path, line, (size_t)size, 0644, &err) != VD_OK)
        vd_say("verde provide: %s; `verde jobs --data` does not find this daemon", err.text);
}

/* The page is served before the URL is printed, so that whoever reads the URL can open it. */
static void announce(const arguments *a, const vd_key *key, const vd_loopback *page) {
    vd_public_key public_key;
    char hex[VD_ID_SIZE], url[512], at[64];
    const char *colon = strrchr(a->listen, ':');
    vd_key_public(key, &public_key);
    vd_hex(public_key.b, VD_KEY_SIZE, hex);
    snprintf(url, sizeof url, "https://%.*s:%d#%s", colon ? (int)(colon - a->listen) : 0, a->listen,
             vd_daemon_port(running), hex);
    tell_operator(a->dir, url);
    if (page) {
        snprintf(at, sizeof at, "http://127.0.0.1:%d/", vd_loopback_port(page));
        vd_say("page for people: %s", at);
    }
    if (a->common.json)
        vd_print_json(page ? json_pack("{ss ss}", "url", url, "page", at)
                           : json_pack("{ss}", "url", url));
    else
        printf("%s\n", url);
    fflush(stdout);
}

static vd_status serve(const arguments *a, const vd_daemon_options *options, vd_err *err) {
    vd_status status = vd_daemon_create(options, &running, err);
    if (status != VD_OK)
        return status;
    const struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    vd_loopback *page = NULL;
    if (a->page >= 0)
        status = vd_page_start(running, (int)a->page, &page, err);
    if (status == VD_OK) {
        announce(a, options->key, page);
        status = vd_daemon_run(running, err);
    }
    vd_loopback_stop(page);
    vd_daemon_destroy(running);
    return status;
}

/* The path is absolute, because children run in other folders and a run's data.json names blobs by
 * it. */
static vd_status make_dir(const char *dir, char **out, vd_err *err) {
    uint32_t made;
    vd_status status = vd_make_dirs(dir, &made, err);
    *out = status == VD_OK ? realpath(dir, NULL) : NULL;
    return status == VD_OK && !*out ? vd_fail(err, VD_ERR_LOCAL, "%s: no such folder", dir)
                                    : status;
}

static int threads_of(const arguments *a) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return a->common.threads ? a->common.threads : online > 0 ? (int)online : 1;
}

/* Returns the cores for which seconds are estimated. Jobs that run at once share the machine. */
static int cores_of(const arguments *a) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN), share = online / a->jobs;
    const int threads = threads_of(a);
    if (a->cores)
        return (int)a->cores;
    if (vd_child_has_gpu(&a->common))
        return CORES_OF_GPU;
    return share < 1 ? 1 : share < threads ? (int)share : threads;
}

static vd_status provide_jobs(const arguments *a, vd_err *err) {
    char own_keys[1100], cert[1200], key_file[1200], memory[32], threads[16];
    char cores[16], job_threads[16], *dir = NULL;
    vd_key *key = NULL;
    vd_status status = make_dir(a->dir, &dir, err);
    if (status != VD_OK)
        return status;
    snprintf(own_keys, sizeof own_keys, "%.1000s/keys", dir);
    const char *key_dir = a->key_dir ? a->key_dir : own_keys;
    snprintf(cert, sizeof cert, "%.1100s/tls.crt", key_dir);
    snprintf(key_file, sizeof key_file, "%.1100s/key.pem", key_dir);
    snprintf(memory, sizeof memory, "%lld", (long long)a->limits.memory);
    snprintf(threads, sizeof threads, "%d", a->common.threads);
    snprintf(cores, sizeof cores, "%d", cores_of(a));
    snprintf(job_threads, sizeof job_threads, "%d", threads_of(a));
    char *backend = (char *)(uintptr_t)(a->common.backend ? a->common.backend : "-");
    char *fault = (char *)(uintptr_t)(a->fault ? a->fault : "-");
    char *const run_argv[] = {"/proc/self/exe", "provide", VD_CHILD_RUN, memory,
                              threads,          backend,   fault,        NULL};
    char *const judge_argv[] = {"/proc/self/exe", "provide", VD_CHILD_JUDGE, cores,
                                job_threads,      NULL};
    char *const answer_argv[] = {"/proc/self/exe", "provide", VD_CHILD_ANSWER, memory, threads,
                                 backend,          NULL};
    const vd_daemon_options options = {.dir = dir,
                                       .listen = a->listen,
                                       .cert_path = cert,
                                       .key_path = key_file,
                                       .client = a->client,
                                       .client_count = a->client_count,
                                       .limits = a->limits,
                                       .jobs = (int)a->jobs,
                                       .run_argv = run_argv,
                                       .answer_argv = answer_argv,
                                       .judge_argv = judge_argv,
                                       .say = vd_say};
    status = vd_load_key(key_dir, &key, err);
    if (status == VD_OK && a->fault)
        vd_say("*** FAULT ON PURPOSE: %s. This provider is dishonest. ***", a->fault);
    vd_daemon_options with_key = options;
    with_key.key = key;
    if (status == VD_OK)
        status = serve(a, &with_key, err);
    vd_key_destroy(key);
    free(dir);
    return status;
}

static int64_t half_of_memory(void) {
    const int64_t pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
    return pages > 0 && size > 0 ? pages / 2 * size : INT64_C(4) << 30;
}

static arguments given;

static vd_exit provide(int argc, char **argv) {
    vd_exit code;
    vd_err err = {0};
    umask(077); /* no other user may read clients' data */
    if (argc > 1 && strcmp(argv[1], VD_CHILD_JUDGE) == 0)
        return vd_provide_judge_child(argc - 2, argv + 2);
    if (argc > 1 && strcmp(argv[1], VD_CHILD_RUN) == 0)
        return vd_provide_run_child(argc - 2, argv + 2);
    if (argc > 1 && strcmp(argv[1], VD_CHILD_ANSWER) == 0)
        return vd_provide_answer_child(argc - 2, argv + 2);
    given = (arguments){.jobs = 1, .page = -1};
    given.limits = (vd_provide_limits){.client_bytes = INT64_C(100000000000),
                                       .client_blobs = 1 << 18,
                                       .client_jobs = 8,
                                       .memory = half_of_memory(),
                                       .job_seconds = 86400,
                                       .keep_s = 86400,
                                       .referee_seconds = VD_REFEREE_MEASURED};
    if (!vd_take_options(&vd_cmd_provide, argc, argv, &code))
        return code;
    if (argc != optind || !given.dir || !given.listen || given.client_count == 0) {
        fprintf(stderr, "verde: provide takes --dir, --listen and at least one --client\n");
        return VD_EXIT_USAGE;
    }
    return provide_jobs(&given, &err) == VD_OK ? VD_EXIT_OK : vd_report(&err);
}

static const vd_option options[] = {
    {"  --dir DATA           jobs, data and their ledger; made if absent\n", &given.dir},
    {"  --listen ADDR:PORT   [::1]:PORT for IPv6; 0.0.0.0:PORT is every address\n", &given.listen},
    {"  --client KEY         a client's public key (key.pub of `verde keygen`); may be repeated\n",
     &given, add_client, .often = true},
    {"  --key DIR            identity made by `verde keygen` (default: DATA/keys, made if "
     "absent)\n",
     &given.key_dir},
    {"  --jobs N             jobs that run at once (default: 1)\n", &given.jobs, .least = 1,
     .most = 64},
    {"  --memory SIZE        bytes that a job's tensors may take, as 4G (default: half of this\n"
     "                       machine's); a job that needs more is refused before it starts\n",
     &given.limits.memory, take_size},
    {"  --job-seconds N      a job that computes longer is stopped, and one that will, by an "
     "estimate\n"
     "                       from its program, is refused (0: no limit; default: 86400, a day)\n",
     &given.limits.job_seconds, take_count},
    {"  --cores N            seconds are estimated for N cores with AVX-512 (default: those that "
     "a\n"
     "                       job has; 200 for a GPU)\n",
     &given.cores, .least = 1, .most = CORES_MAX},
    {"  --client-bytes SIZE  what a client may have here, uploads and results (default: 100G)\n",
     &given.limits.client_bytes, take_size},
    {"  --client-blobs N     how many files it may have uploaded (default: 262144)\n",
     &given.limits.client_blobs, take_count},
    {"  --client-jobs N      its jobs that wait or run at a time (default: 8)\n",
     &given.limits.client_jobs, take_count},
    {"  --client-seconds N   seconds that its jobs may compute, all together (default: 0, no "
     "limit)\n",
     &given.limits.client_seconds, take_count},
    {"  --referee-seconds N  seconds a day that one referee's questions about one job may compute\n"
     "                       (0: no limit; default: an hour, or three times what 126 games take "
     "on\n"
     "                       this machine, if that is more: no honest dispute comes near it)\n",
     &given.limits.referee_seconds, take_count},
    {"  --keep-seconds N     how long data is kept that no job needs (default: 86400)\n",
     &given.limits.keep_s, take_count},
    {"  --page PORT          a page for people on this machine: jobs, losses, clients, disk; "
     "plain\n"
     "                       HTTP on 127.0.0.1 alone, for reading alone\n",
     &given.page, .least = 0, .most = 65535},
    {"  --fault KIND         compute wrongly on purpose, as `verde run --fault`; of a job with\n"
     "                       prompts KEY/KIND, in the prompt of this key\n",
     &given.fault},
    VD_COMMON_ROWS(given.common),
    {NULL}};

const vd_command vd_cmd_provide = {
    "provide",
    "take jobs of clients, and run them",
    "Usage: verde provide --dir DATA --listen ADDR:PORT --client KEY [options]\n\n"
    "Takes jobs over HTTPS from the clients whose keys are given, runs them one after the other,\n"
    "each in a process of its own, and says how far they are. Prints the URL to give to clients;\n"
    "it ends in this provider's key. Stops at SIGTERM or SIGINT, as suddenly as you like: what "
    "was\n"
    "accepted is on disk, and a job that ran goes on from its last checkpoint at the next "
    "start.\n\n",
    options,
    "\n"
    "Example:\n"
    "  verde provide --dir /srv/verde --listen 0.0.0.0:8443 --client $(cat key.pub)\n" VD_EXIT_HELP,
    provide};
