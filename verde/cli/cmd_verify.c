/* This file is `verde verify`, which decides a verdict again from its evidence. */
#include "verde/cli/cli.h"
#include "verde/cli/release.h"
#include "verde/client/story.h"

typedef struct {
    const char *file, *referee, *job;
    bool quiet, story;
    vd_common common;
} verify_arguments;

static vd_status verify_file(const verify_arguments *a, vd_verdict *verdict, vd_err *err) {
    vd_status status = vd_load_verdict(a->file, a->referee, a->story, verdict, err);
    return status == VD_OK && a->job ? vd_compare_job(a->job, &verdict->program, a->file, err)
                                     : status;
}

static void print_verdict(const verify_arguments *a, const vd_verdict *v) {
    char referee[2 * VD_KEY_SIZE + 1];
    if (!a->common.json) {
        vd_tell_verdict(v);
        return;
    }
    json_t *out = vd_dispute_json(&v->outcome, &v->assignment, &v->cost);
    vd_hex(v->referee.b, VD_KEY_SIZE, referee);
    json_object_set_new(out, "verified", json_true());
    json_object_set_new(out, "referee", json_string(referee));
    json_object_set_new(out, "program", vd_hash_text(&v->program));
    if (vd_verdict_has_structure(v))
        json_object_set_new(out, "structure", vd_hash_text(&v->structure));
    vd_print_json(out);
}

static verify_arguments given;

static vd_exit verify_release(void) {
    vd_err err = {0};
    if (given.job || given.story) {
        fprintf(stderr, "verde: %s is the list of a release, which has no job and no story\n",
                given.file);
        return VD_EXIT_USAGE;
    }
    return vd_verify_release(given.file, given.referee, given.quiet, given.common.json, &err) ==
                   VD_OK
               ? VD_EXIT_OK
               : vd_report(&err);
}

static vd_exit verify(int argc, char **argv) {
    vd_exit code;
    vd_err err = {0};
    vd_verdict verdict = {0};
    if (!vd_take_options(&vd_cmd_verify, argc, argv, &code))
        return code;
    if (argc - optind != 1) {
        fprintf(stderr, "verde: verify takes one verdict file, got %d arguments\n", argc - optind);
        return VD_EXIT_USAGE;
    }
    given.file = argv[optind];
    if (vd_is_release(given.file))
        return verify_release();
    const vd_status status = verify_file(&given, &verdict, &err);
    if (status == VD_OK && !given.quiet)
        print_verdict(&given, &verdict);
    vd_verdict_free(&verdict);
    return status == VD_OK ? VD_EXIT_OK : vd_report(&err);
}

static const vd_option options[] = {
    {"  --referee KEY    whose verdict it must be (hexadecimal); default: whoever signed it\n",
     &given.referee},
    {"  --job JOB        also check that it is about this job\n", &given.job},
    {"  --story          tell the dispute again\n", &given.story},
    {"  --quiet          nothing on standard output: the exit code tells\n", &given.quiet},
    VD_COMMON_ROWS(given.common),
    {NULL}};

const vd_command vd_cmd_verify = {
    "verify",
    "decide again from a verdict's evidence",
    "Usage: verde verify FILE [options]\n\n"
    "Checks the verdict's signature, runs the referee again on the signed statements in it, and\n"
    "compares. Needs neither provider nor network. Exit code 0: the verdict holds. 6: it does "
    "not.\n"
    "8: it is of a version, has a part or is of a size that this verde does not know, and one "
    "line\n"
    "names it: nothing is said about whether it holds.\n\n"
    "FILE may also be the signed list of a release's files: those that lie beside it are "
    "compared.\n\n",
    options,
    "\n"
    "Example:\n"
    "  verde verify verdict.json --job models/jobs/demo.yaml\n" VD_EXIT_HELP,
    verify};
