/* The command line: options and printing. Exit codes are the same for all commands. */
#ifndef VD_CLI_H
#define VD_CLI_H

#include <getopt.h>

#include "verde/load/load.h"
#include "verde/run/results.h"

typedef struct {
    const char *name, *summary, *help;
    vd_exit (*run)(int argc, char **argv);
} vd_command;

extern const vd_command vd_cmd_keygen, vd_cmd_run, vd_cmd_serve, vd_cmd_arbitrate, vd_cmd_verify,
    vd_cmd_inspect, vd_cmd_graph, vd_cmd_calibrate, vd_cmd_check, vd_cmd_manifest, vd_cmd_export,
    vd_cmd_fetch, vd_cmd_delegate, vd_cmd_jobs, vd_cmd_provide, vd_cmd_diff, vd_cmd_audit;

/* ---- options ---- */

#define VD_COMMON_OPTIONS                                                                          \
    {"threads", required_argument, NULL, 't'}, {"backend", required_argument, NULL, 'b'},          \
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {                      \
        NULL, 0, NULL, 0                                                                           \
    }
#define VD_COMMON_HELP                                                                             \
    "  --threads N      worker threads (default: one per core)\n"                                  \
    "  --backend NAME   cpu (default), scalar, avx2, avx512, neon or cuda:0; the bits are the "    \
    "same\n"                                                                                       \
    "  --json           one JSON object on standard output at the end\n"                           \
    "  --help, -h       this text\n"
#define VD_EXIT_HELP                                                                               \
    "\nExit codes: 0 done, agreed or verified; 1 trouble of this machine; 2 usage; 3 convicted;\n" \
    "            4 forfeit; 5 inconclusive; 6 a verdict does not hold, a file is damaged, or\n"    \
    "            files do not fit together; 7 dismissed; 8 a file is of a version that this\n"     \
    "            verde does not know, and nothing is decided; 9 what was compared differs.\n"

/* As getopt_long. An option with a value is given once, but for those whose letters are in `often`,
 * --threads and --timeout. '?': it was given before, or getopt refuses it; a line was printed. */
int vd_next_option(int argc, char **argv, const char *letters, const struct option *options,
                   const char *often);
/* Handles an option that all commands have; false: unknown, and a line was printed. `exit_now` is
 * set by --help. */
bool vd_take_common(const vd_command *command, int option, vd_common *common, bool *exit_now);
/* Prints a help text; "models/jobs" and "docs/jobs.md" become their paths where they are installed.
 */
void vd_print_help(FILE *out, const char *text);
/* To standard output; if `verbose`, also what this was built with and finds here. */
void vd_print_version(bool verbose);
bool vd_parse_number(const char *name, const char *text, long lo, long hi, long *out);

/* ---- printing ---- */

void vd_print_results(void);        /* from now on, what work comes to */
void vd_print_json(json_t *object); /* one line on standard output; takes the object */

/* ---- program.c: what is told of a program ---- */

/* A line that begins with `label` for each range of data; a list of them. */
void vd_print_ranges(const vd_program *program, const char *label);
json_t *vd_ranges_json(const vd_program *program);
/* Prints what is in its file. */
VD_MUST_USE vd_status vd_show_program(const char *path, bool json, vd_err *err);
/* A line on standard output, of a hash or a key. */
void vd_print_hex(const char *name, const uint8_t bytes[VD_HASH_SIZE]);
/* Counts of a run with a rounding log, of each operator. */
void vd_print_rounded(const vd_run_result *r);
json_t *vd_rounded_json(const vd_run_result *r);

#endif
