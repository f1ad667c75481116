#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "verde/cli/cli.h"
#include "verde/exec/exec.h"

static const vd_command *const commands[] = {
    &vd_cmd_keygen, &vd_cmd_run,     &vd_cmd_serve, &vd_cmd_arbitrate,
    &vd_cmd_verify, &vd_cmd_inspect, &vd_cmd_graph, &vd_cmd_calibrate,
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *out) {
    fprintf(out,
            "verde: train on machines that you do not trust, and know that the result is right\n"
            "\nUsage: verde COMMAND [ARGUMENTS]\n\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "\n`verde COMMAND --help` explains one, with examples.\n" VD_EXIT_HELP);
}

/* What was printed may not have arrived: on a full disk, say. */
static int finish(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "verde: cannot write to standard output: %s\n", strerror(errno));
    return code == VD_EXIT_OK ? VD_EXIT_LOCAL : code;
}

int main(int argc, char **argv) {
    char name[32];
    if (argc < 2) {
        print_usage(stderr);
        return VD_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return finish(VD_EXIT_OK);
    }
    vd_keep_pages();
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i]->name) == 0) {
            snprintf(name, sizeof name, "verde %s", argv[1]);
            argv[1] = name; /* for getopt's messages */
            return finish((int)commands[i]->run(argc - 1, argv + 1));
        }
    fprintf(stderr, "verde: no command \"%s\"; `verde --help` lists them\n", argv[1]);
    return VD_EXIT_USAGE;
}
