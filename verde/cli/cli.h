/* The command line: options and printing. Exit codes are the same for all commands. */
#ifndef VD_CLI_H
#define VD_CLI_H

#include <getopt.h>

#include "verde/load/load.h"
#include "verde/run/results.h"

/* An option: one row says its name, what it takes, its help and where its value goes. */
typedef struct vd_option vd_option;
struct vd_option {
    const char
        *help; /* its lines, "  --name ARGUMENT  ..."; else lines between options; NULL: end */
    void *to;  /* a bool; with an argument a const char *, or a long if there are bounds */
    bool (*take)(void *to, const char *name, const char *text, const vd_option *option);
    long least, most;  /* of a number; of a list, how many there may be */
    uint32_t *count;   /* of a list, so far */
    const char *forms; /* of a command with several: the letters of those that have it; NULL: all */
    bool often;        /* may be given again: a list, or what changes no result */
    bool hidden;       /* the help does not name it */
};

typedef struct {
    const char *name, *summary;
    const char *usage; /* the help: before the options, */
    const vd_option *options;
    const char *after; /* and after them */
    vd_exit (*run)(int argc, char **argv);
    /* Of a command with several forms: has this one the option? And a line that it has not. */
    bool (*allows)(const vd_option *option);
    void (*refuse)(const char *name);
} vd_command;

extern const vd_command vd_cmd_keygen, vd_cmd_run, vd_cmd_serve, vd_cmd_arbitrate, vd_cmd_verify,
    vd_cmd_inspect, vd_cmd_graph, vd_cmd_calibrate, vd_cmd_check, vd_cmd_manifest, vd_cmd_export,
    vd_cmd_fetch, vd_cmd_delegate, vd_cmd_jobs, vd_cmd_provide, vd_cmd_diff, vd_cmd_audit;

/* ---- options ---- */

bool vd_take_int(void *to, const char *name, const char *text, const vd_option *option);
bool vd_take_word(void *to, const char *name, const char *text, const vd_option *option);
bool vd_take_url(void *to, const char *name, const char *text, const vd_option *option);
bool vd_parse_number(const char *name, const char *text, long lo, long hi, long *out);

#define VD_THREADS_ROW(common)                                                                     \
    .to = &(common).threads, .take = vd_take_int, .most = 1024, .often = true
#define VD_BACKEND_ROW(common) .to = &(common).backend, .take = vd_take_word
#define VD_COMMON_ROWS(common)                                                                     \
    {"  --threads N      worker threads (default: one per core)\n", VD_THREADS_ROW(common)},       \
        {"  --backend NAME   cpu (default), scalar, avx2, avx512, neon or cuda:0; the bits are "   \
         "the same\n",                                                                             \
         VD_BACKEND_ROW(common)},                                                                  \
        {"  --json           one JSON object on standard output at the end\n", &(common).json}, {  \
        "  --help, -h       this text\n"                                                           \
    }
/* Rows that commands which compute nothing take as well, without naming them in their help. */
#define VD_HIDDEN_ROWS(common)                                                                     \
    {"  --threads N\n", VD_THREADS_ROW(common), .hidden = true}, {                                 \
        "  --backend NAME\n", VD_BACKEND_ROW(common), .hidden = true                               \
    }
#define VD_EXIT_HELP                                                                               \
    "\nExit codes: 0 done, agreed or verified; 1 trouble of this machine; 2 usage; 3 convicted;\n" \
    "            4 forfeit; 5 inconclusive; 6 a verdict does not hold, a file is damaged, or\n"    \
    "            files do not fit together; 7 dismissed; 8 a file is of a version that this\n"     \
    "            verde does not know, and nothing is decided; 9 what was compared differs.\n"

/* Takes the options of a command; what is left begins at argv[optind]. An option with a value is
 * given once. False: the command ends with *code, and help, or why not, was printed. */
bool vd_take_options(const vd_command *command, int argc, char **argv, vd_exit *code);
/* Prints a help text; "models/jobs" and "docs/jobs.md" become their paths where they are installed.
 */
void vd_print_help(FILE *out, const char *text);
/* To standard output; if `verbose`, also what this was built with and finds here. */
void vd_print_version(bool verbose);

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

#endif
