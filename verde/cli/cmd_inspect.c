/* This file is `verde inspect`, which prints what a run, a trace or a proof holds. */
#include <string.h>
#include <sys/stat.h>

#include "verde/cli/cli.h"
#include "verde/cli/inspect_step.h"
#include "verde/cli/pages.h"
#include "verde/cli/rounded.h"
#include "verde/client/story.h"
#include "verde/exec/losses_svg.h"
#include "verde/run/checks.h"

/* Hashing so many bytes takes a few seconds. */
#define HASHED_BYTES (UINT64_C(1) << 30)

typedef struct {
    const char *path, *proof, *data, *plot, *html, *verifier;
    bool trace;
    long step;
    vd_common common;
} arguments;

/* ---- a run ---- */

/* The findings, and how many states they rest on. */
typedef struct {
    bool whole;
    vd_hash structure;             /* of the program: PROTOCOL.md section 1.7 */
    vd_hash run_root, final_state; /* set if `whole` */
    uint32_t hashed;               /* so many of the last states were hashed */
} seen;

static json_t *seen_json(const seen *s, const vd_run_log *log) {
    return json_pack("{si si sb}", "states_hashed", (int)s->hashed, "states_not_hashed",
                     (int)(log->count - s->hashed), "all", s->hashed == log->count);
}

static json_t *run_json(const vd_loaded *loaded, const vd_run_log *log, const seen *s) {
    json_t *out = json_pack("{sb so so sI sI ss so so}", "finished", s->whole, "program",
                            vd_hash_text(&log->program), "structure", vd_hash_text(&s->structure),
                            "steps", (json_int_t)loaded->program.steps, "checkpoints",
                            (json_int_t)log->count, "fault", log->fault, "checked",
                            seen_json(s, log), "ranges", vd_ranges_json(&loaded->program));
    if (s->whole)
        json_object_set_new(out, "run_root", vd_hash_text(&s->run_root));
    json_t *kept = vd_kept_json(log);
    if (kept)
        json_object_set_new(out, "rounding", kept);
    return out;
}

static void print_seen(const arguments *a, const vd_loaded *loaded, const vd_run_log *log,
                       const seen *s) {
    char size[32];
    const uint32_t left = log->count - s->hashed;
    const char *emits = log->backend ? log->backend->emits : NULL;
    vd_print_size(vd_state_bytes(&loaded->program), size);
    printf("checked      run.json against itself, sizes of all states, every byte of ");
    if (left == 0)
        printf("all states%s\n", log->keep ? " that were kept" : "");
    else if (s->hashed == 0)
        printf("no state\n");
    else
        printf("the last %u state%s\n", s->hashed, vd_plural(s->hashed));
    if (left)
        printf("not checked  %u state%s of %s, data%s%s; `verde check %s` does it\n", left,
               vd_plural(left), size, emits ? ", " : "", emits ? emits : "", a->path);
    else
        printf("not checked  data%s%s; `verde check %s` does it\n", emits ? ", " : "",
               emits ? emits : "", a->path);
}

static void print_run(const arguments *a, const vd_loaded *loaded, const vd_run_log *log,
                      const seen *s) {
    char hex[2 * VD_HASH_SIZE + 1];
    vd_print_hex("program", log->program.b);
    vd_print_hex("structure", s->structure.b);
    printf("progress     %s, %lld step%s, %u of %llu checkpoints\n",
           s->whole ? "finished" : "unfinished", (long long)loaded->program.steps,
           vd_plural((uint64_t)loaded->program.steps), log->count,
           (unsigned long long)vd_run_leaves(&loaded->program));
    vd_print_ranges(&loaded->program, "data         ");
    vd_print_kept(log);
    if (log->fault[0])
        printf("fault        %s (on purpose)\n", log->fault);
    if (log->losses && vd_has_loss(&loaded->program))
        printf("loss         %.4f -> %.4f\n", (double)log->loss_first, (double)log->loss_last);
    for (uint32_t i = 0; i < log->count; i++) {
        vd_hex(log->state[i].b, VD_HASH_SIZE, hex);
        printf("state %-6lld %s\n", (long long)log->step[i], hex);
    }
    print_seen(a, loaded, log, s);
    if (!s->whole)
        return;
    vd_hex(s->run_root.b, VD_HASH_SIZE, hex);
    printf("run root     %s\n", hex);
}

/* Checks run.json, the sizes of all files, and as many of the last states as HASHED_BYTES allows.
 */
static vd_status look(const arguments *a, vd_loaded *loaded, const vd_run_log *log, seen *out,
                      vd_err *err) {
    const uint64_t fit = HASHED_BYTES / vd_state_bytes(&loaded->program);
    const vd_check check = {.dir = a->path, .exec = &loaded->exec, .log = log};
    out->whole = log->count == vd_run_leaves(&loaded->program);
    out->hashed = fit < log->count ? (uint32_t)fit : log->count;
    vd_status status = vd_load_backend(loaded, &a->common, err);
    if (status == VD_OK && out->whole)
        status = vd_run_root(&loaded->exec, log, &out->run_root, &out->final_state, err);
    if (status == VD_OK)
        status = vd_program_structure(&loaded->program, &out->structure, err);
    if (status == VD_OK)
        status = vd_check_sizes(&check, err);
    return status == VD_OK ? vd_check_states(&check, log->count - out->hashed, out->hashed, err)
                           : status;
}

static vd_status show_run(const arguments *a, vd_loaded *loaded, const vd_run_log *log,
                          vd_err *err) {
    seen s = {0};
    vd_status status = look(a, loaded, log, &s, err);
    if (status == VD_OK && a->html)
        return vd_write_run_page(a->path, loaded, log, run_json(loaded, log, &s), a->html, err);
    if (status == VD_OK && a->common.json)
        vd_print_json(run_json(loaded, log, &s));
    else if (status == VD_OK)
        print_run(a, loaded, log, &s);
    return status;
}

/* ---- the command ---- */

static vd_status inspect_run(const arguments *a, vd_err *err) {
    vd_loaded loaded = {0};
    vd_run_log log = {0};
    vd_replay *replay = NULL;
    vd_status status = vd_load_run(a->path, &loaded, &log, err);
    bool executes = a->trace || a->proof;
    if (status == VD_OK && a->plot)
        status = vd_plot_losses(a->path, a->plot, err);
    if (status == VD_OK && a->trace && (a->step < -1 || a->step >= loaded.program.steps))
        status = vd_fail(err, VD_ERR_USAGE, "--trace must be -1..%lld, got %ld",
                         (long long)loaded.program.steps - 1, a->step);
    if (status == VD_OK && executes && log.count == vd_run_leaves(&loaded.program))
        status = vd_load_data(a->path, a->data, &loaded, err);
    if (status == VD_OK && executes)
        status = vd_load_backend(&loaded, &a->common, err);
    if (status == VD_OK && executes)
        status = vd_replay_create(a->path, &loaded.exec, &replay, err);
    if (status == VD_OK && executes) {
        vd_source source = vd_replay_source(replay);
        status = a->trace ? vd_print_trace(a->step, &loaded, &source, a->common.json, err)
                          : vd_print_proof(a->proof, &loaded, &source, a->common.json, err);
    } else if (status == VD_OK && !a->plot) {
        status = show_run(a, &loaded, &log, err);
    }
    vd_replay_destroy(replay);
    vd_run_log_free(&log);
    vd_loaded_free(&loaded);
    return status;
}

static vd_exit inspect_verdict(char *path, bool json) {
    char *again[] = {"verify", "--story", path, json ? "--json" : NULL, NULL};
    optind = 1;
    return vd_cmd_verify.run(json ? 4 : 3, again);
}

enum { NO_STEP = -2 };
static arguments given;

static vd_exit inspect(int argc, char **argv) {
    given.step = NO_STEP;
    vd_exit code;
    vd_err err = {0};
    struct stat info;
    if (!vd_take_options(&vd_cmd_inspect, argc, argv, &code))
        return code;
    given.trace = given.step != NO_STEP;
    if (argc - optind != 1) {
        fprintf(stderr, "verde: inspect takes one run directory, verdict or program\n");
        return VD_EXIT_USAGE;
    }
    given.path = argv[optind];
    const bool file = stat(given.path, &info) == 0 && S_ISREG(info.st_mode);
    if (given.verifier && !given.html) {
        fprintf(stderr, "verde: inspect takes --verifier for a page alone, with --html\n");
        return VD_EXIT_USAGE;
    }
    if (given.verifier && !file) {
        fprintf(stderr, "verde: inspect takes --verifier for a verdict or a proof of fraud: the "
                        "page of a run has none\n");
        return VD_EXIT_USAGE;
    }
    if (given.html && (given.trace || given.proof || given.plot)) {
        fprintf(stderr, "verde: inspect takes --html without --trace, --proof and --plot\n");
        return VD_EXIT_USAGE;
    }
    if (given.html && file)
        return vd_write_page(given.path, given.html, given.verifier, &err) == VD_OK
                   ? VD_EXIT_OK
                   : vd_report(&err);
    if (given.trace + (given.proof != NULL) + (given.plot != NULL) + file > 1) {
        fprintf(
            stderr,
            "verde: inspect takes a verdict, a program, or a run with one of --trace, --proof and "
            "--plot\n");
        return VD_EXIT_USAGE;
    }
    if (file && vd_is_program_file(given.path))
        return vd_show_program(given.path, given.common.json, &err) == VD_OK ? VD_EXIT_OK
                                                                             : vd_report(&err);
    if (file)
        return inspect_verdict(argv[optind], given.common.json);
    if (given.html && vd_items_are_in(given.path))
        return vd_write_prompts_page(given.path, given.html, &err) == VD_OK ? VD_EXIT_OK
                                                                            : vd_report(&err);
    if (!given.trace && !given.proof && !given.plot && vd_items_are_in(given.path))
        return vd_show_prompts(given.path, &given.common, &err) == VD_OK ? VD_EXIT_OK
                                                                         : vd_report(&err);
    if (vd_results_are_in(given.path)) {
        fprintf(stderr,
                "verde: %s: no run lies there, but results of a job with prompts; `verde check %s "
                "--job JOB` compares them with what proves them\n",
                given.path, given.path);
        return VD_EXIT_USAGE;
    }
    return inspect_run(&given, &err) == VD_OK ? VD_EXIT_OK : vd_report(&err);
}

static const vd_option options[] = {
    {"  --trace STEP     node by node, with the commitment of each output; -1: initialisation\n",
     &given.step, .least = -1, .most = INT32_MAX},
    {"  --plot FILE      draw the loss of each step, from losses.jsonl, as an SVG picture; of a "
     "job\n"
     "                   with `evaluate`, the loss on other data as a second, thick curve\n",
     &given.plot},
    {"  --html FILE      a page for people: one file, which loads nothing and works offline; of a\n"
     "                   verdict, a run, or what `verde audit` and `verde diff` wrote with "
     "--json\n",
     &given.html},
    {"  --verifier FILE  with --html: the verify.html whose verifier the page gets too; default: "
     "the\n"
     "                   one that is installed with verde, if there is one\n",
     &given.verifier},
    {"  --data DIR       where the run's data files are now, if they have moved\n", &given.data},
    {"  --proof S:V:L    leaf L of value V of step S (values are numbered as in PROTOCOL.md)\n",
     &given.proof},
    VD_COMMON_ROWS(given.common),
    {NULL}};

const vd_command vd_cmd_inspect = {
    "inspect",
    "look into a run, a trace, a proof, a verdict or a program",
    "Usage: verde inspect DIR [--trace STEP | --proof STEP:VALUE:LEAF] [options]\n"
    "       verde inspect VERDICT | PROGRAM\n"
    "       verde inspect VERDICT | REPORT | DIR --html FILE [--verifier FILE]\n\n"
    "Prints what a run committed to; the records of one step (re-executed); one leaf of one\n"
    "tensor with its proof; a verdict with its story; or the hashes and sizes of a program. Of a\n"
    "run, run.json is checked against itself, the size of each state, and the last states up to\n"
    "1 GiB byte by byte: the rest is left to `verde check`, and said. What does not fit is an\n"
    "error (exit code 6). Of a job with prompts, DIR has the root of each prompt's run, which "
    "lies\n"
    "in DIR/prompts/KEY.\n\n",
    options,
    "\n"
    "Examples:\n"
    "  verde inspect run\n"
    "  verde inspect run --trace 7\n"
    "  verde inspect verdict.json\n"
    "  verde inspect verdict.json --html page.html\n"
    "  verde inspect run/program\n" VD_EXIT_HELP,
    inspect};
