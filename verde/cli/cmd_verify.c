#include <string.h>

#include "verde/cli/cli.h"
#include "verde/cli/story.h"

typedef struct {
    const char *file, *referee, *job;
    bool quiet, story;
    vd_common common;
} arguments;

static vd_status read_referee(const char *hex, vd_public_key *key, vd_err *err) {
    if (vd_unhex(hex, key->b, VD_KEY_SIZE))
        return VD_OK;
    return vd_fail(err, VD_ERR_USAGE,
                   "--referee must be 64 lower-case hexadecimal digits, got \"%.80s\"", hex);
}

/* Is it the program that this job file means? */
static vd_status compare_job(const char *job, const vd_verdict *verdict, vd_err *err) {
    vd_loaded loaded = {0};
    vd_hash program;
    vd_status status = vd_load_job(job, &loaded, err);
    if (status == VD_OK)
        status = vd_program_hash(&loaded.program, &program, err);
    if (status == VD_OK && !vd_hash_equal(&program, &verdict->program))
        status = vd_fail(err, VD_ERR_PEER, "verdict is about another program than %s", job);
    vd_loaded_free(&loaded);
    return status;
}

static vd_status verify_file(const arguments *a, vd_verdict *verdict, vd_err *err) {
    vd_buf text = {0};
    vd_public_key referee;
    vd_status status = vd_leaf_self_test(err);
    if (status == VD_OK && a->referee)
        status = read_referee(a->referee, &referee, err);
    if (status == VD_OK)
        status = vd_read_file(a->file, VD_VERDICT_BYTES_MAX, &text, err);
    if (status == VD_OK && text.size && text.data[text.size - 1] == '\n')
        text.size--;
    if (status == VD_OK)
        status = vd_verdict_verify(text.data, text.size, a->referee ? &referee : NULL,
                                   vd_leaf_element, a->story ? vd_tell : NULL, NULL, verdict, err);
    if (status == VD_OK && a->job)
        status = compare_job(a->job, verdict, err);
    if (status == VD_ERR_PEER)
        status = vd_fail(err, status, "%s: %s", a->file, err->text);
    vd_buf_free(&text);
    return status;
}

static void print_verdict(const arguments *a, const vd_verdict *v) {
    char key[VD_PARTIES_MAX][2 * VD_KEY_SIZE + 1], referee[2 * VD_KEY_SIZE + 1];
    char program[2 * VD_HASH_SIZE + 1];
    const char *names[VD_PARTIES_MAX];
    for (uint32_t p = 0; p < v->assignment.provider_count; p++) {
        vd_hex(v->assignment.provider[p].b, VD_KEY_SIZE, key[p]);
        names[p] = key[p];
    }
    if (a->common.json) {
        json_t *out = vd_dispute_json(&v->outcome, &v->assignment, &v->cost);
        vd_hex(v->referee.b, VD_KEY_SIZE, referee);
        json_object_set_new(out, "verified", json_true());
        json_object_set_new(out, "referee", json_string(referee));
        json_object_set_new(out, "program", vd_hash_text(&v->program));
        vd_print_json(out);
        return;
    }
    vd_hex(v->referee.b, VD_KEY_SIZE, referee);
    vd_hex(v->program.b, VD_HASH_SIZE, program);
    printf("verified     %zu statements decided again, with the same outcome\n", v->statements);
    printf("referee      %s\nprogram      %s\n", referee, program);
    vd_tell_outcome(&v->outcome, names, &v->cost, NULL);
}

static vd_exit verify(int argc, char **argv) {
    static const struct option options[] = {{"referee", required_argument, NULL, 'r'},
                                            {"job", required_argument, NULL, 'J'},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"story", no_argument, NULL, 's'},
                                            VD_COMMON_OPTIONS};
    arguments a = {0};
    bool exit_now = false;
    vd_err err = {0};
    vd_verdict verdict;
    for (int o; (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (o == 'r')
            a.referee = optarg;
        else if (o == 'J')
            a.job = optarg;
        else if (o == 'q')
            a.quiet = true;
        else if (o == 's')
            a.story = true;
        else if (!vd_take_common(&vd_cmd_verify, o, &a.common, &exit_now))
            return VD_EXIT_USAGE;
        if (exit_now)
            return VD_EXIT_OK;
    }
    if (argc - optind != 1) {
        fprintf(stderr, "verde: verify takes one verdict file, got %d arguments\n", argc - optind);
        return VD_EXIT_USAGE;
    }
    a.file = argv[optind];
    if (verify_file(&a, &verdict, &err) != VD_OK)
        return vd_report(&err);
    if (!a.quiet)
        print_verdict(&a, &verdict);
    return VD_EXIT_OK;
}

const vd_command vd_cmd_verify = {
    "verify", "decide again from a verdict's evidence",
    "Usage: verde verify FILE [options]\n\n"
    "Checks the verdict's signature, runs the referee again on the signed statements in it, and\n"
    "compares. Needs neither provider nor network. Exit code 0: the verdict holds.\n\n"
    "  --referee KEY    whose verdict it must be (hexadecimal); default: whoever signed it\n"
    "  --job JOB        also check that it is about this job\n"
    "  --story          tell the dispute again\n"
    "  --quiet          nothing on standard output: the exit code tells\n" VD_COMMON_HELP
    "\nExample:\n"
    "  verde verify verdict.json --job models/jobs/demo.yaml\n" VD_EXIT_HELP,
    verify};
