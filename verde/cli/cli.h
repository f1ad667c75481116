/* Commands, their options, and how they print. All commands have the same exit codes. */
#ifndef VD_CLI_H
#define VD_CLI_H

#include <getopt.h>

#include "verde/load/load.h"
#include "verde/run/results.h"

/* A row of a command's table of options. */
typedef struct vd_option vd_option;
struct vd_option {
    const char *help; /* "  --name ARGUMENT  ...": the option's lines of the help; other text is a
                         heading; NULL ends the table */
    void *to; /* where the value goes: a bool; of an option with an argument a const char *, or a
                  long if the row has bounds */
    bool (*take)(void *to, const char *name, const char *text, const vd_option *option);
    long least, most;  /* bounds of a number; of a list, `most` is its capacity */
    uint32_t *count;   /* entries of a list that are filled */
    const char *forms; /* letters of the command's forms that have the option; NULL: all */
    bool often;        /* may be repeated: a list, or an option that changes no result */
    bool hidden;       /* not in the help */
};

typedef struct {
    const char *name, *summary;
    const char *usage; /* the help before the options */
    const vd_option *options;
    const char *after; /* the help after the options */
    vd_exit (*run)(int argc, char **argv);
    /* For a command with several forms: whether the given form has the option, and the error
     * line if it does not. NULL otherwise. */
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
/* Rows that commands without computation accept too, so that scripts can pass them everywhere;
 * the help does not show them. */
#define VD_HIDDEN_ROWS(common)                                                                     \
    {"  --threads N\n", VD_THREADS_ROW(common), .hidden = true}, {                                 \
        "  --backend NAME\n", VD_BACKEND_ROW(common), .hidden = true                               \
    }
#define VD_EXIT_HELP                                                                               \
    "\nExit codes: 0 done, agreed or verified; 1 trouble of this machine; 2 usage; 3 convicted;\n" \
    "            4 forfeit; 5 inconclusive; 6 a verdict does not hold, a file is damaged, or\n"    \
    "            files do not fit together; 7 dismissed; 8 a file is of a version that this\n"     \
    "            verde does not know, and nothing is decided; 9 what was compared differs.\n"

/* Reads a command's options; its other arguments begin at argv[optind]. An option with a value may
 * be given once. Returns false if the command is to end with *code: the help or an error was
 * printed. */
bool vd_take_options(const vd_command *command, int argc, char **argv, vd_exit *code);
/* Prints a help text; "models/jobs" and "docs/jobs.md" become their paths where they are installed.
 */
void vd_print_help(FILE *out, const char *text);
/* Prints the version; if `verbose`, also compilers, libraries and what this machine has. */
void vd_print_version(bool verbose);

/* ---- printing ---- */

void vd_print_results(void);        /* has the results of the layers below printed */
void vd_print_json(json_t *object); /* prints one line; frees the object */

/* ---- program.c: what is told of a program ---- */

/* Prints a line that begins with `label` for each range of data, or returns them as a list. */
void vd_print_ranges(const vd_program *program, const char *label);
json_t *vd_ranges_json(const vd_program *program);
/* Prints the hashes and sizes of a program's file. */
VD_MUST_USE vd_status vd_show_program(const char *path, bool json, vd_err *err);
/* Prints a line with a hash or a key. */
void vd_print_hex(const char *name, const uint8_t bytes[VD_HASH_SIZE]);

#endif
