#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "verde/cli/fetched.h"
#include "verde/cli/stop.h"
#include "verde/cli/story.h"

enum { QUIET_SECONDS = 2 };

typedef struct {
    const char *job, *out, *run_root, *verdict, *referee, *ca;
    const char *url[VD_DOWNLOAD_PROVIDERS_MAX];
    uint32_t urls;
    long connections, patience_s;
    bool force;
    vd_common common;
} fetch_arguments;

typedef struct {
    const fetch_arguments *a;
    vd_endpoint endpoint[VD_DOWNLOAD_PROVIDERS_MAX];
    vd_hash run_root, program; /* the program only with a verdict or a job */
    bool has_program, has_config;
    vd_loaded loaded; /* of the job */
    char root_text[2 * VD_HASH_SIZE + 1];
    vd_fetched model;
    vd_download *download;
    vd_download_progress progress;
    double told;
    bool has_losses;
    uint32_t losses_by;
    vd_err *err;
} fetching;

/* ---- what is wanted ---- */

static vd_status read_verdict(fetching *x) {
    vd_verdict verdict;
    vd_status status = vd_load_verdict(x->a->verdict, x->a->referee, false, &verdict, x->err);
    if (status != VD_OK)
        return status;
    if (!verdict.outcome.accepted)
        return vd_fail(x->err, VD_ERR_PEER, "%s: accepts no run (%s)", x->a->verdict,
                       vd_result_name(verdict.outcome.result));
    x->run_root = verdict.outcome.run_root;
    x->program = verdict.program;
    x->has_program = true;
    return VD_OK;
}

static vd_status read_root(fetching *x) {
    if (x->a->verdict)
        return read_verdict(x);
    return vd_unhex(x->a->run_root, x->run_root.b, VD_HASH_SIZE)
               ? VD_OK
               : vd_fail(x->err, VD_ERR_USAGE,
                         "--run-root must be 64 lower-case hexadecimal digits, got \"%.80s\"",
                         x->a->run_root);
}

static vd_status read_job(fetching *x) {
    vd_hash hash;
    if (!x->a->job)
        return VD_OK;
    vd_status status = vd_load_job(x->a->job, &x->loaded, x->err);
    if (status == VD_OK)
        status = vd_program_hash(&x->loaded.program, &hash, x->err);
    if (status == VD_OK && x->has_program && !vd_hash_equal(&hash, &x->program))
        status = vd_fail(x->err, VD_ERR_PEER, "%s: is about another program than %s", x->a->verdict,
                         x->a->job);
    x->program = hash;
    x->has_program = true;
    return status;
}

static vd_status read_wishes(fetching *x) {
    vd_status status = read_root(x);
    vd_hex(x->run_root.b, VD_HASH_SIZE, x->root_text);
    for (uint32_t p = 0; p < x->a->urls && status == VD_OK; p++)
        status = vd_endpoint_parse(x->a->url[p], &x->endpoint[p], x->err);
    return status == VD_OK ? read_job(x) : status;
}

/* ---- telling, while it goes on ---- */

static void fetch_line(void *user, const char *line) {
    (void)user;
    vd_say("%sverde fetch: %s", vd_is_terminal() ? "\r\033[K" : "", line);
}

static void fetch_progress(void *user, const vd_download_progress *p) {
    fetching *x = user;
    char done[32], total[32], rate[32], left[48] = "";
    const bool terminal = vd_is_terminal(), last = p->done == p->total;
    const double fresh = (double)(p->done - p->found), per_s = fresh / (p->seconds + 1e-9);
    x->progress = *p;
    if (p->seconds < QUIET_SECONDS || (!terminal && !last && p->seconds - x->told < 2))
        return;
    x->told = p->seconds;
    vd_print_size(p->done, done);
    vd_print_size(p->total, total);
    vd_print_size((uint64_t)per_s, rate);
    if (fresh > 0 && !last)
        snprintf(left, sizeof left, ", %.0f s left", (double)(p->total - p->done) / per_s);
    fprintf(stderr, "%sfetched and checked %s of %s, %s/s%s%s", terminal ? "\r\033[K" : "", done,
            total, rate, left, terminal && !last ? "" : "\n");
    fflush(stderr);
}

/* ---- the parts ---- */

static vd_status begin(fetching *x) {
    const fetch_arguments *a = x->a;
    const vd_download_options options = {.provider = x->endpoint,
                                         .provider_count = a->urls,
                                         .ca = a->ca,
                                         .job = x->root_text,
                                         .connections = (int)a->connections,
                                         .patience_s = (int)a->patience_s,
                                         .tell = fetch_line,
                                         .progress = fetch_progress,
                                         .user = x};
    vd_status status = vd_fetched_begin(&x->model, x->err);
    if (status == VD_OK)
        status = vd_download_create(&options, &x->download, x->err);
    vd_stop_line("stopped; what is checked stays in %s, and `%s` goes on from there",
                 x->model.partial, vd_command_line());
    return status;
}

static vd_status get_proof(fetching *x) {
    vd_buf text = {0};
    bool found;
    vd_status status = vd_fetched_proof(&x->model, &x->run_root, &found, x->err);
    if (status == VD_OK && !found) {
        status = vd_download_proof(x->download, &x->run_root, &text, &x->model.proof, x->err);
        if (status == VD_OK)
            status = vd_fetched_keep_proof(&x->model, &text, x->err);
    }
    vd_buf_free(&text);
    if (status == VD_OK && x->has_program &&
        !vd_hash_equal(&x->program, &x->model.proof.program_hash))
        status =
            vd_fail(x->err, VD_ERR_PEER, "run root %s is one of another program than that of %s",
                    x->root_text, x->a->job ? x->a->job : x->a->verdict);
    return status;
}

/* The job alone gives the names of transformers: what a provider said of them would be unproven. */
static vd_status open_model(fetching *x) {
    vd_buf config = {0};
    vd_status status = VD_OK;
    if (x->a->job)
        status = vd_config_save(x->model.partial, &x->loaded, x->err);
    if (status == VD_OK && x->a->job)
        status =
            vd_config_load(x->model.partial, VD_WEIGHTS_CONFIG, &config, &x->has_config, x->err);
    if (status == VD_OK)
        status = vd_fetched_open(&x->model, x->has_config ? &config : NULL, x->err);
    vd_buf_free(&config);
    return status;
}

static vd_status write_in(const fetching *x, const char *dir, const char *name,
                          const vd_buf *text) {
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return vd_write_file(path, text->data, text->size, 0644, x->err);
}

/* They come from one provider, unproven: what is wrong with them costs the model nothing. */
static vd_status get_losses(fetching *x) {
    vd_buf text = {0}, table = {0};
    vd_err why = {0};
    char path[1100], line[700];
    vd_status status = VD_OK;
    if (vd_download_losses(x->download, &text, &x->losses_by)) {
        status = vd_losses_csv(text.data, text.size, &table, &why);
        x->has_losses = status == VD_OK;
        if (x->has_losses)
            status = write_in(x, x->model.partial, "losses.jsonl", &text);
        if (x->has_losses && status == VD_OK)
            status = write_in(x, x->a->out, "losses.csv", &table);
        snprintf(path, sizeof path, "%s/losses.svg", x->a->out);
        if (x->has_losses && status == VD_OK &&
            vd_plot_losses(x->model.partial, path, &why) != VD_OK)
            x->has_losses = false;
        if (!x->has_losses) {
            snprintf(line, sizeof line, "losses of %s are left out: %s",
                     x->endpoint[x->losses_by].url, why.text);
            fetch_line(NULL, line);
            status = VD_OK;
        }
    }
    vd_buf_free(&text);
    vd_buf_free(&table);
    return status;
}

static vd_status fetch_all(fetching *x) {
    vd_status status = read_wishes(x);
    if (status == VD_OK)
        status = begin(x);
    if (status == VD_OK)
        status = get_proof(x);
    if (status == VD_OK)
        status = open_model(x);
    if (status == VD_OK)
        status = vd_download_tensors(x->download, &x->model.proof, x->model.target,
                                     x->model.row_count, x->err);
    if (status == VD_OK)
        status = get_losses(x);
    return status == VD_OK ? vd_fetched_finish(&x->model, x->has_config, x->err) : status;
}

/* ---- telling, at the end ---- */

static json_t *providers_json(const fetching *x) {
    json_t *list = json_array();
    for (uint32_t p = 0; p < x->a->urls; p++) {
        json_t *one = json_pack("{ss sI}", "url", x->endpoint[p].url, "bytes",
                                (json_int_t)vd_download_received(x->download, p));
        const char *dropped = vd_download_dropped(x->download, p);
        if (dropped)
            json_object_set_new(one, "dropped", json_string(dropped));
        json_array_append_new(list, one);
    }
    return list;
}

static void fetch_json(const fetching *x) {
    const vd_state_proof *proof = &x->model.proof;
    vd_print_json(json_pack("{ss so so sI sI sI sI sf sb sb so}", "dir", x->a->out, "run_root",
                            vd_hash_text(&x->run_root), "program",
                            vd_hash_text(&proof->program_hash), "step", (json_int_t)proof->step,
                            "tensors", (json_int_t)x->model.row_count, "bytes",
                            (json_int_t)x->progress.total, "found", (json_int_t)x->progress.found,
                            "seconds", x->progress.seconds, "config", x->has_config, "losses",
                            x->has_losses, "providers", providers_json(x)));
}

static void fetch_text(const fetching *x) {
    char size[32], found[32];
    vd_print_size(x->progress.total, size);
    vd_print_size(x->progress.found, found);
    printf("wrote        %s: %u tensors of step %lld, %s, every byte checked\n", x->a->out,
           x->model.row_count, (long long)x->model.proof.step, size);
    printf("run root     %s, to which proof.json leads\n", x->root_text);
    if (x->progress.found)
        printf("were there   %s, from an earlier download\n", found);
    for (uint32_t p = 0; p < x->a->urls; p++) {
        const char *dropped = vd_download_dropped(x->download, p);
        vd_print_size(vd_download_received(x->download, p), size);
        printf("provider %u   %s%s%s\n", p + 1, size, dropped ? "; dropped: " : "",
               dropped ? dropped : "");
    }
    if (x->has_losses)
        printf("losses       losses.csv, losses.svg: as provider %u says, no root leads to them\n",
               x->losses_by + 1);
}

/* ---- the command ---- */

static bool take_url(fetch_arguments *a) {
    if (a->urls < VD_DOWNLOAD_PROVIDERS_MAX) {
        a->url[a->urls++] = optarg;
        return true;
    }
    fprintf(stderr, "verde: fetch takes at most %d providers\n", VD_DOWNLOAD_PROVIDERS_MAX);
    return false;
}

static bool take_option(int o, fetch_arguments *a, bool *exit_now) {
    switch (o) {
    case 'p': return take_url(a);
    case 'o': a->out = optarg; return true;
    case 'R': a->run_root = optarg; return true;
    case 'v': a->verdict = optarg; return true;
    case 'r': a->referee = optarg; return true;
    case 'c': a->ca = optarg; return true;
    case 'f': a->force = true; return true;
    case 'n':
        return vd_parse_number("connections", optarg, 1, VD_DOWNLOAD_CONNECTIONS_MAX,
                               &a->connections);
    case 'q': return vd_parse_number("timeout", optarg, 1, 86400, &a->patience_s);
    default: return vd_take_common(&vd_cmd_fetch, o, &a->common, exit_now);
    }
}

static vd_exit fetch_between(const fetch_arguments *a) {
    vd_err err = {0};
    fetching x = {.a = a,
                  .err = &err,
                  .model = {.out = a->out, .force = a->force, .lock = -1, .laid_fd = -1}};
    signal(SIGXFSZ, SIG_IGN); /* a limit on files' sizes is an error of the write */
    const vd_status status = fetch_all(&x);
    if (status == VD_OK && a->common.json)
        fetch_json(&x);
    else if (status == VD_OK)
        fetch_text(&x);
    if (status != VD_OK)
        vd_fetched_abandon(&x.model);
    vd_download_destroy(x.download);
    vd_fetched_free(&x.model);
    vd_loaded_free(&x.loaded);
    return status == VD_OK ? VD_EXIT_OK : vd_report(&err);
}

static vd_exit fetch(int argc, char **argv) {
    static const struct option options[] = {{"provider", required_argument, NULL, 'p'},
                                            {"out", required_argument, NULL, 'o'},
                                            {"run-root", required_argument, NULL, 'R'},
                                            {"verdict", required_argument, NULL, 'v'},
                                            {"referee", required_argument, NULL, 'r'},
                                            {"cacert", required_argument, NULL, 'c'},
                                            {"connections", required_argument, NULL, 'n'},
                                            {"timeout", required_argument, NULL, 'q'},
                                            {"force", no_argument, NULL, 'f'},
                                            VD_COMMON_OPTIONS};
    fetch_arguments a = {0};
    bool exit_now = false;
    vd_stop_command(argc, argv);
    for (int o; (o = getopt_long(argc, argv, "ho:", options, NULL)) != -1;) {
        if (!take_option(o, &a, &exit_now))
            return VD_EXIT_USAGE;
        if (exit_now)
            return VD_EXIT_OK;
    }
    if (argc - optind > 1 || !a.out || !a.urls || !a.run_root == !a.verdict ||
        (a.referee && !a.verdict)) {
        fprintf(stderr, "verde: fetch takes one job file or none, --run-root ROOT or --verdict "
                        "FILE, --provider URL once or more, and --out DIR; --referee goes with "
                        "--verdict\n");
        return VD_EXIT_USAGE;
    }
    a.job = optind < argc ? argv[optind] : NULL;
    return fetch_between(&a);
}

const vd_command vd_cmd_fetch = {
    "fetch", "download a result, each byte checked against a run root",
    "Usage: verde fetch [JOB] --run-root ROOT --provider URL [...] --out DIR [options]\n"
    "       verde fetch [JOB] --verdict FILE  --provider URL [...] --out DIR [options]\n\n"
    "Downloads the weights of a finished run from providers that need not be trusted: `verde "
    "serve\n"
    "--fetch` hands them out. Everything is checked against the run root while it arrives: first\n"
    "the hashes of all tensors, then those of each tensor's blocks, then the blocks of 1 MiB.\n"
    "Several providers are asked at once; one that sends anything wrong is dropped, by name, and\n"
    "one that does not answer is asked again for a while. DIR is then what `verde export` writes:\n"
    "safetensors and proof.json; with JOB config.json and the names of transformers too; and\n"
    "losses.csv and losses.svg, if a provider has the losses, which no root proves.\n\n"
    "Stopped at any moment, the same command goes on: DIR/partial holds what has arrived. It is\n"
    "hashed again, and nothing that is right is downloaded twice.\n\n"
    "  --run-root ROOT  whose result: 64 hexadecimal digits\n"
    "  --verdict FILE   or the run that this verdict accepts; verified first\n"
    "  --referee KEY    whose verdict it must be (hexadecimal); default: whoever signed it\n"
    "  --provider URL   as `verde serve` prints it: https://host:port#key; up to 16\n"
    "  --out DIR        made if it is not there\n"
    "  --force          overwrite a model in DIR, once all is there\n"
    "  --connections N  to each provider (default: 4); fewer on a slow line\n"
    "  --timeout S      seconds without an answer after which a provider is dropped (default: 30)\n"
    "  --cacert FILE    certificates to trust for URLs without a key\n" VD_COMMON_HELP
    "\nExit code 0: all is there and right. 6: no provider is left, and one of them has sent what\n"
    "is wrong, or has no run with this root. 1: none answers, or the disk is full.\n"
    "\nExamples:\n"
    "  verde fetch models/jobs/demo.yaml --verdict verdict.json --out result \\\n"
    "    --provider https://a.example:8443#KEY --provider https://b.example:8443#KEY\n"
    "  verde fetch --run-root ROOT --provider https://a.example:8443#KEY --out "
    "result\n" VD_EXIT_HELP,
    fetch};
