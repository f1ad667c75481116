/* This file finds the command that was asked for, and ends with its exit code. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "repops/modes.h"
#include "verde/cli/cli.h"
#include "verde/exec/exec.h"

static const vd_command *const commands[] = {
    &vd_cmd_keygen,    &vd_cmd_run,      &vd_cmd_serve,  &vd_cmd_arbitrate, &vd_cmd_verify,
    &vd_cmd_check,     &vd_cmd_diff,     &vd_cmd_audit,  &vd_cmd_inspect,   &vd_cmd_graph,
    &vd_cmd_calibrate, &vd_cmd_manifest, &vd_cmd_export, &vd_cmd_fetch,     &vd_cmd_delegate,
    &vd_cmd_jobs,      &vd_cmd_provide,
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *out) {
    fprintf(out, "verde: use machines that you do not trust, and know that the result is right\n"
                 "\nUsage: verde COMMAND [ARGUMENTS]\n\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    vd_print_help(out,
                  "\n`verde COMMAND --help` explains one, with examples; `verde --version` says "
                  "which this is,\nand with `--verbose` what it was built with.\n"
                  "Jobs are YAML files: docs/jobs.md has all their keys, models/jobs "
                  "examples.\n" VD_EXIT_HELP);
}

/* Fails if standard output could not be written, for example because the disk is full. */
static int finish(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "verde: cannot write to standard output: %s\n", strerror(errno));
    return code == VD_EXIT_OK ? VD_EXIT_LOCAL : code;
}

static bool is_one_of(const char *text, const char *a, const char *b, const char *c) {
    return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

/* Handles SIGBUS: another process has shortened a file that is mapped here. */
static void cut_off(int number, siginfo_t *info, void *context) {
    static const char before[] = "verde: ", after[] = ": was cut off while it was read; bring the "
                                                      "whole file back, and run again\n";
    const char *path = vd_map_at(info->si_addr);
    (void)context;
    if (!path) {
        signal(number, SIG_DFL); /* the access is repeated, and then ends the process */
        return;
    }
    (void)!write(STDERR_FILENO, before, sizeof before - 1);
    (void)!write(STDERR_FILENO, path, strlen(path));
    (void)!write(STDERR_FILENO, after, sizeof after - 1);
    _exit(VD_EXIT_LOCAL);
}

int main(int argc, char **argv) {
    char name[32];
    /* The floating-point modes are set before any number is read: a library may have changed them
     * while it was loaded. Threads and forked children inherit them. */
    (void)ro_modes_set();
    /* Line buffering keeps the order of lines where standard output and error are one file. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    vd_print_results();
    if (argc < 2) {
        print_usage(stderr);
        return VD_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        vd_print_version(argc > 2 && strcmp(argv[2], "--verbose") == 0);
        return finish(VD_EXIT_OK);
    }
    const bool help = is_one_of(argv[1], "--help", "-h", "help");
    if (help && argc == 2) {
        print_usage(stdout);
        return finish(VD_EXIT_OK);
    }
    if (help) { /* `verde help run` becomes `verde run --help` */
        argv[1] = argv[2];
        argv[2] = "--help";
        argc = 3;
    }
    const struct sigaction on_cut = {.sa_sigaction = cut_off, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &on_cut, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit on file sizes then fails with EFBIG */
    vd_keep_pages();
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i]->name) == 0) {
            snprintf(name, sizeof name, "verde %s", argv[1]);
            argv[1] = name; /* getopt's messages begin with it */
            return finish((int)commands[i]->run(argc - 1, argv + 1));
        }
    fprintf(stderr, "verde: no command \"%s\"; `verde --help` lists them\n", argv[1]);
    return VD_EXIT_USAGE;
}
