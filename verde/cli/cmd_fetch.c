/* This file is `verde fetch`, which downloads the model or the results of a finished job. */
#include "verde/client/fetching.h"
#include "verde/cli/cli.h"
#include "verde/client/story.h"
#include "verde/tell/stop.h"

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
    vd_hash run_root, program; /* the program is known only from a verdict or a job */
    bool has_program;
    vd_loaded loaded; /* of the job */
    vd_err *err;
} fetch_wishes;

/* ---- what is wanted ---- */

static vd_status read_verdict(fetch_wishes *x) {
    vd_verdict verdict = {0};
    vd_status status = vd_load_verdict(x->a->verdict, x->a->referee, false, &verdict, x->err);
    if (status != VD_OK)
        return status;
    vd_verdict_free(&verdict); /* the outcome is enough */
    if (!verdict.outcome.accepted)
        return vd_fail(x->err, VD_ERR_PEER, "%s: accepts no run (%s)", x->a->verdict,
                       vd_result_name(verdict.outcome.result));
    x->run_root = verdict.outcome.run_root;
    x->program = verdict.program;
    x->has_program = true;
    return VD_OK;
}

static vd_status read_root(fetch_wishes *x) {
    if (x->a->verdict)
        return read_verdict(x);
    return vd_unhex(x->a->run_root, x->run_root.b, VD_HASH_SIZE)
               ? VD_OK
               : vd_fail(x->err, VD_ERR_USAGE,
                         "--run-root must be 64 lower-case hexadecimal digits, got \"%.80s\"",
                         x->a->run_root);
}

static vd_status read_job(fetch_wishes *x) {
    vd_hash hash;
    if (!x->a->job)
        return VD_OK;
    x->loaded.bare = true;
    vd_status status = vd_load_prompts(x->a->job, &x->loaded, x->err);
    if (status != VD_OK || vd_job_has_prompts(&x->loaded.job))
        return status; /* the hash of a collection is compared once its programs are made */
    if (status == VD_OK)
        status = vd_program_hash(&x->loaded.program, &hash, x->err);
    if (status == VD_OK && x->has_program && !vd_hash_equal(&hash, &x->program))
        status = vd_fail(x->err, VD_ERR_PEER, "%s: is about another program than %s", x->a->verdict,
                         x->a->job);
    x->program = hash;
    x->has_program = true;
    return status;
}

static vd_status read_wishes(fetch_wishes *x) {
    vd_status status = read_root(x);
    for (uint32_t p = 0; p < x->a->urls && status == VD_OK; p++)
        status = vd_endpoint_parse(x->a->url[p], &x->endpoint[p], x->err);
    return status == VD_OK ? read_job(x) : status;
}

/* ---- the command ---- */

static vd_status fetch_and_tell(const vd_fetch_options *o, bool json, vd_err *err) {
    vd_fetching fetching = {0};
    const vd_status status = vd_fetch(o, &fetching, err);
    if (status == VD_OK && json)
        vd_print_json(vd_fetch_json(&fetching));
    else if (status == VD_OK)
        vd_fetch_text(&fetching);
    vd_fetching_free(&fetching);
    return status;
}

static vd_exit fetch_between(const fetch_arguments *a) {
    vd_err err = {0};
    fetch_wishes x = {.a = a, .err = &err};
    vd_status status = read_wishes(&x);
    const bool prompts = status == VD_OK && vd_job_has_prompts(&x.loaded.job);
    const vd_fetch_options options = {.out = a->out,
                                      .force = a->force,
                                      .run_root = x.run_root,
                                      .program = x.has_program ? &x.program : NULL,
                                      .program_of = a->job && !prompts ? a->job : a->verdict,
                                      .job = a->job ? &x.loaded : NULL,
                                      .provider = x.endpoint,
                                      .provider_count = a->urls,
                                      .ca = a->ca,
                                      .connections = (int)a->connections,
                                      .patience_s = (int)a->patience_s};
    if (status == VD_OK)
        status = fetch_and_tell(&options, a->common.json, &err);
    vd_loaded_free(&x.loaded);
    return status == VD_OK ? VD_EXIT_OK : vd_report(&err);
}

static fetch_arguments given;

static vd_exit fetch(int argc, char **argv) {
    vd_exit code;
    if (!vd_take_options(&vd_cmd_fetch, argc, argv, &code))
        return code;
    if (argc - optind > 1 || !given.out || !given.urls || !given.run_root == !given.verdict ||
        (given.referee && !given.verdict)) {
        fprintf(stderr, "verde: fetch takes one job file or none, --run-root ROOT or --verdict "
                        "FILE, --provider URL once or more, and --out DIR; --referee goes with "
                        "--verdict\n");
        return VD_EXIT_USAGE;
    }
    given.job = optind < argc ? argv[optind] : NULL;
    return fetch_between(&given);
}

static const vd_option options[] = {
    {"  --run-root ROOT  whose result: 64 hexadecimal digits\n", &given.run_root},
    {"  --verdict FILE   or the run that this verdict accepts; verified first\n", &given.verdict},
    {"  --referee KEY    whose verdict it must be (hexadecimal); default: whoever signed it\n",
     &given.referee},
    {"  --provider URL   as `verde serve` prints it: https://host:port#key; up to 16\n", given.url,
     vd_take_url, .most = VD_DOWNLOAD_PROVIDERS_MAX, .count = &given.urls, .often = true},
    {"  --out DIR        made if it is not there\n", &given.out},
    {"  --force          overwrite a model in DIR, once all is there\n", &given.force},
    {"  --connections N  to each provider (default: 4); fewer on a slow line\n", &given.connections,
     .least = 1, .most = VD_DOWNLOAD_CONNECTIONS_MAX},
    {"  --timeout S      seconds without an answer after which a provider is dropped (default: "
     "30)\n",
     &given.patience_s, .least = 1, .most = 86400, .often = true},
    {"  --cacert FILE    certificates to trust for URLs without a key\n", &given.ca},
    VD_COMMON_ROWS(given.common),
    {NULL}};

const vd_command vd_cmd_fetch = {
    "fetch",
    "download a result, each byte checked against a run root",
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
    "Of a job with prompts, which must be given as JOB, ROOT is the job root, and DIR gets\n"
    "results.jsonl, as `verde run` writes it, made here of what the root proves, and "
    "results.proof.\n\n"
    "Stopped at any moment, the same command goes on: DIR/partial, or DIR/results.part of a job\n"
    "with prompts, holds what has arrived. It is\n"
    "hashed again, and nothing that is right is downloaded twice.\n\n",
    options,
    "\n"
    "Exit code 0: all is there and right. 6: no provider is left, and one of them has sent what\n"
    "is wrong, or has no run with this root. 1: none answers, or the disk is full.\n\n"
    "Examples:\n"
    "  verde fetch models/jobs/demo.yaml --verdict verdict.json --out result \\\n"
    "    --provider https://a.example:8443#KEY --provider https://b.example:8443#KEY\n"
    "  verde fetch --run-root ROOT --provider https://a.example:8443#KEY --out "
    "result\n" VD_EXIT_HELP,
    fetch};
