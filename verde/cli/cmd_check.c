#include <string.h>
#include <sys/stat.h>

#include "verde/cli/check_model.h"
#include "verde/cli/check_prompts.h"
#include "verde/cli/cli.h"
#include "verde/cli/stop.h"
#include "verde/cli/story.h"

typedef struct {
    const char *path, *verdict, *referee, *job, *data;
    long step; /* of an exported model; -1: the last one */
    vd_common common;
} arguments;

typedef struct {
    const arguments *a;
    char dir[1024];
    bool one; /* one state's file, not the whole run */
    vd_loaded loaded;
    vd_run_log log;
    vd_verdict verdict;
    vd_hash run_root, final_state; /* of a finished run */
    bool whole, has_data;
    uint32_t index; /* of the state in the one file */
    vd_err *err;
} checking;

/* ---- where the run lies ---- */

static void parent_of(const char *path, char dir[1024]) {
    const char *slash = strrchr(path, '/');
    const int length = slash ? (int)(slash - path) + (slash == path) : 1;
    snprintf(dir, 1024, "%.*s", length, slash ? path : ".");
}

static bool lies_in(const checking *c, const char *name) {
    char path[1100];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", c->dir, name);
    return stat(path, &info) == 0;
}

static vd_status find_run(checking *c) {
    struct stat info;
    if (strlen(c->a->path) > 900)
        return vd_fail(c->err, VD_ERR_USAGE, "%.60s...: path longer than 900 bytes", c->a->path);
    if (stat(c->a->path, &info) != 0)
        return vd_fail(c->err, VD_ERR_USAGE, "%s: no such file or directory", c->a->path);
    c->one = !S_ISDIR(info.st_mode);
    if (c->one)
        parent_of(c->a->path, c->dir);
    else
        snprintf(c->dir, sizeof c->dir, "%s", c->a->path);
    if (!lies_in(c, "run.json"))
        return vd_fail(c->err, VD_ERR_USAGE, "%s: no run lies there, as there is no run.json",
                       c->dir);
    return VD_OK;
}

/* ---- against the verdict ---- */

static const char *role_of(const checking *c, char text[80]) {
    static const char *const standing[] = {"stands", "is convicted", "forfeits", "is dismissed"};
    const vd_outcome *o = &c->verdict.outcome;
    for (uint32_t p = 0; p < o->party_count; p++)
        if (o->party[p].claimed && vd_hash_equal(&o->party[p].run_root, &c->run_root)) {
            snprintf(text, 80, ", the claim of provider %u, which %s", p + 1,
                     standing[o->party[p].standing]);
            return text;
        }
    return "";
}

static vd_status check_accepted(const checking *c) {
    const vd_outcome *o = &c->verdict.outcome;
    const char *verdict = c->a->verdict;
    char mine[2 * VD_HASH_SIZE + 1], accepted[2 * VD_HASH_SIZE + 1], role[80];
    if (!c->whole)
        return vd_fail(c->err, VD_ERR_PEER,
                       "%s: the run is not finished, so that no verdict can accept it", c->dir);
    vd_hex(c->run_root.b, VD_HASH_SIZE, mine);
    vd_hex(o->run_root.b, VD_HASH_SIZE, accepted);
    if (!o->accepted)
        return vd_fail(c->err, VD_ERR_PEER, "%s: accepts no run (%s)", verdict,
                       vd_result_name(o->result));
    if (!vd_hash_equal(&o->run_root, &c->run_root))
        return vd_fail(c->err, VD_ERR_PEER, "%s: accepts run root %s; %s has run root %s%s",
                       verdict, accepted, c->dir, mine, role_of(c, role));
    return VD_OK;
}

static vd_status check_verdict(checking *c) {
    const arguments *a = c->a;
    if (!a->verdict)
        return VD_OK;
    vd_status status = vd_load_verdict(a->verdict, a->referee, false, &c->verdict, c->err);
    if (status == VD_OK)
        vd_verdict_free(&c->verdict); /* its games are not looked at */
    if (status == VD_OK && !vd_hash_equal(&c->verdict.program, &c->log.program))
        status = vd_fail(c->err, VD_ERR_PEER, "%s: is about another program than the run in %s",
                         a->verdict, c->dir);
    return status == VD_OK ? check_accepted(c) : status;
}

/* ---- files ---- */

static vd_status load(checking *c) {
    vd_status status = vd_load_run(c->dir, &c->loaded, &c->log, c->err);
    c->whole = status == VD_OK && c->log.count == vd_run_leaves(&c->loaded.program);
    if (c->whole)
        status = vd_run_root(&c->loaded.exec, &c->log, &c->run_root, &c->final_state, c->err);
    c->has_data = c->whole && lies_in(c, "data.json");
    if (status == VD_OK && c->has_data && !c->one)
        status = vd_load_data(c->dir, c->a->data, &c->loaded, c->err);
    /* A run that was handed over may have left its data behind; its states can be hashed. */
    if (status == VD_ERR_USAGE && c->has_data && !c->a->data) {
        c->has_data = false;
        status = VD_OK;
    }
    /* The directory holds no run, or a broken one: that is no mistake in the options. */
    return status == VD_ERR_USAGE ? vd_fail(c->err, VD_ERR_PEER, "%s", c->err->text) : status;
}

static vd_status hash(checking *c) {
    vd_hashing hashing = {.start = vd_seconds()};
    vd_stop_line("stopped before all was hashed, which says nothing; `%s` begins again",
                 vd_command_line());
    const vd_check check = {.dir = c->dir,
                            .exec = &c->loaded.exec,
                            .log = &c->log,
                            .progress = vd_tell_hashing,
                            .user = &hashing};
    return c->one ? vd_check_file(&check, c->a->path, &c->index, c->err)
                  : vd_check_run(&check, c->err);
}

/* Runs all checks. Quick ones come before hours of hashing. */
static vd_status check_all(checking *c) {
    vd_status status = find_run(c);
    if (status == VD_OK)
        status = load(c);
    if (status == VD_OK && c->a->job)
        status = vd_compare_job(c->a->job, &c->log.program, c->dir, c->err);
    if (status == VD_OK)
        status = check_verdict(c);
    if (status == VD_OK)
        status = vd_load_backend(&c->loaded, &c->a->common, c->err);
    return status == VD_OK ? hash(c) : status;
}

/* ---- telling ---- */

static uint32_t states_hashed(const checking *c) {
    return c->one ? 1 : vd_run_log_kept_count(&c->log);
}

static uint64_t bytes_hashed(const checking *c) {
    return states_hashed(c) * vd_state_bytes(&c->loaded.program);
}

static json_t *verdict_json(const checking *c) {
    char referee[2 * VD_KEY_SIZE + 1];
    vd_hex(c->verdict.referee.b, VD_KEY_SIZE, referee);
    return json_pack("{ss sb ss ss sb}", "file", c->a->verdict, "verified", 1, "referee", referee,
                     "result", vd_result_name(c->verdict.outcome.result), "accepts_this", 1);
}

static void print_json(const checking *c) {
    json_t *out = json_pack("{sb ss so sI sb sI sI}", "fits", 1, "path", c->a->path, "program",
                            vd_hash_text(&c->log.program), "steps",
                            (json_int_t)c->loaded.program.steps, "finished", c->whole, "states",
                            (json_int_t)states_hashed(c), "bytes", (json_int_t)bytes_hashed(c));
    if (c->one) {
        json_object_set_new(out, "step", json_integer(c->log.step[c->index]));
        json_object_set_new(out, "state", vd_hash_text(&c->log.state[c->index]));
    }
    if (c->whole) {
        json_object_set_new(out, "final_state_root", vd_hash_text(&c->final_state));
        json_object_set_new(out, "run_root", vd_hash_text(&c->run_root));
    }
    if (c->a->verdict)
        json_object_set_new(out, "verdict", verdict_json(c));
    vd_print_json(out);
}

static void print_states(const checking *c) {
    const long long steps = c->loaded.program.steps;
    char size[32];
    vd_print_size(bytes_hashed(c), size);
    if (c->one) {
        const long long step = c->log.step[c->index];
        vd_print_hex("state", c->log.state[c->index].b);
        printf("it is        the state after step %lld of %lld%s: every byte, %s\n", step, steps,
               step == steps ? ", the final one" : "", size);
        return;
    }
    printf("states       %u of %llu, every byte: %s\n", states_hashed(c),
           (unsigned long long)vd_run_leaves(&c->loaded.program), size);
    if (c->log.keep)
        printf("not kept     %u state%s, by --keep %d\n", c->log.count - states_hashed(c),
               vd_plural(c->log.count - states_hashed(c)), (int)c->log.keep);
    if (c->log.rounded)
        printf("logs         every byte\n");
    printf("data         %s\n", c->has_data ? "every byte"
                                : c->whole  ? "not there; `verde serve` needs it"
                                            : "not there yet: the run is not finished");
}

static void print_verdict(const checking *c) {
    const vd_outcome *o = &c->verdict.outcome;
    vd_print_hex("referee", c->verdict.referee.b);
    printf("verdict      verified (signature, and %zu statements decided again): it accepts this "
           "run%s\n",
           c->verdict.statements, o->result == VD_RESULT_FORFEIT ? ", by forfeit" : "");
}

static void print_text(const checking *c) {
    vd_print_hex("program", c->log.program.b);
    print_states(c);
    if (c->log.fault[0])
        printf("fault        %s (on purpose)\n", c->log.fault);
    if (c->whole && !c->one)
        vd_print_hex("final state", c->final_state.b);
    if (c->whole)
        vd_print_hex("run root", c->run_root.b);
    if (c->a->verdict)
        print_verdict(c);
    printf("fits         yes%s\n", c->whole ? "" : ", as far as the run came");
}

/* ---- the command ---- */

static bool take_option(arguments *a, int option, bool *exit_now) {
    switch (option) {
    case 'v': a->verdict = optarg; return true;
    case 'r': a->referee = optarg; return true;
    case 'J': a->job = optarg; return true;
    case 'D': a->data = optarg; return true;
    case 's': return vd_parse_number("step", optarg, 0, INT32_MAX, &a->step);
    default: return vd_take_common(&vd_cmd_check, option, &a->common, exit_now);
    }
}

static vd_exit check_run(const arguments *a) {
    vd_err err = {0};
    checking c = {.a = a, .err = &err};
    const vd_status status = check_all(&c);
    if (status == VD_OK && a->common.json)
        print_json(&c);
    else if (status == VD_OK)
        print_text(&c);
    vd_run_log_free(&c.log);
    vd_loaded_free(&c.loaded);
    return status == VD_OK ? VD_EXIT_OK : vd_report(&err);
}

static vd_exit check_prompts(const arguments *a) {
    vd_err err = {0};
    const vd_prompt_check_options options = {a->path,    a->data,    a->job,
                                             a->verdict, a->referee, &a->common};
    const vd_status status = vd_items_are_in(a->path) ? vd_check_prompts(&options, &err)
                                                      : vd_check_results(&options, &err);
    return status == VD_OK ? VD_EXIT_OK : vd_report(&err);
}

static vd_exit check(int argc, char **argv) {
    static const struct option options[] = {
        {"verdict", required_argument, NULL, 'v'}, {"referee", required_argument, NULL, 'r'},
        {"job", required_argument, NULL, 'J'},     {"data", required_argument, NULL, 'D'},
        {"step", required_argument, NULL, 's'},    VD_COMMON_OPTIONS};
    arguments a = {.step = -1};
    bool exit_now = false;
    vd_stop_command(argc, argv);
    for (int o; (o = vd_next_option(argc, argv, "h", options, "")) != -1;) {
        if (!take_option(&a, o, &exit_now))
            return VD_EXIT_USAGE;
        if (exit_now)
            return VD_EXIT_OK;
    }
    if (argc - optind != 1 || (a.referee && !a.verdict)) {
        fprintf(stderr,
                "verde: check takes one directory of a run, one state's file, or one exported "
                "model; --referee goes with --verdict\n");
        return VD_EXIT_USAGE;
    }
    a.path = argv[optind];
    const vd_check_model_options model = {a.path, a.verdict, a.referee, a.job, a.step, &a.common};
    if (vd_is_model(a.path))
        return vd_check_model(&model);
    if (a.step >= 0) {
        fprintf(stderr, "verde: --step goes with an exported model, a directory with proof.json\n");
        return VD_EXIT_USAGE;
    }
    return vd_items_are_in(a.path) || vd_results_are_in(a.path) ? check_prompts(&a) : check_run(&a);
}

const vd_command vd_cmd_check = {
    "check", "hash a run, a state or a model; compare it with a verdict",
    "Usage: verde check DIR   [--verdict FILE] [options]\n"
    "       verde check FILE  [--verdict FILE] [options]\n"
    "       verde check MODEL [--verdict FILE] [options]\n\n"
    "Hashes every byte of every state of the run in DIR, and of its rounding logs and data, and\n"
    "compares with run.json, whose hashes give the run root. With --verdict also says whether "
    "this\n"
    "is the run that the verdict accepts. FILE is one state, such as trained weights that were\n"
    "delivered, under any name; run.json and program of its run must lie beside it, and prove "
    "that\n"
    "it is a state of that run. MODEL is a directory that `verde export` wrote, with safetensors\n"
    "files and proof.json, which lead to the run root. In the folder of a job with prompts, all\n"
    "runs, results.jsonl and the job root are checked; in a folder with results that were\n"
    "downloaded, each line of results.jsonl, by results.proof, which needs --job. Executes\n"
    "nothing and needs no network.\n\n"
    "  --verdict FILE   verified first, as by `verde verify`: its signature, and the decision\n"
    "                   again from its evidence\n"
    "  --referee KEY    whose verdict it must be (hexadecimal); default: whoever signed it\n"
    "  --data DIR       where the run's data files are now, if they have moved\n"
    "  --job JOB        also check that the run is of this job; its data and weights' manifest "
    "must\n"
    "                   be where it says\n"
    "  --step N         MODEL must be of the checkpoint after step N (default: the last "
    "one)\n" VD_COMMON_HELP
    "\nExit code 0: all fits. 6: something does not; one line names the file, what was expected\n"
    "and what was found. 5: MODEL holds rounded weights, of which nothing can be said. 1: a file\n"
    "cannot be read. 2: no run lies there, or wrong options.\n"
    "\nExamples:\n"
    "  verde check run\n"
    "  verde check run --verdict verdict.json --job models/jobs/demo.yaml\n"
    "  verde check tuned --verdict verdict.json\n"
    "  verde check delivered/state-4f0c... --verdict verdict.json\n" VD_EXIT_HELP,
    check};
