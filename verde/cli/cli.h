/* The command line: options, loading, printing. Exit codes are the same for all commands. */
#ifndef VD_CLI_H
#define VD_CLI_H

#include <getopt.h>
#include <jansson.h>

#include "repops/repops.h"
#include "verde/cli/known_data.h"
#include "verde/exec/check.h"
#include "verde/exec/item_pack.h"
#include "verde/exec/items.h"
#include "verde/exec/run.h"
#include "verde/exec/source.h"
#include "verde/job/job.h"

typedef enum {
    VD_EXIT_OK = 0,           /* done, agreed, verified */
    VD_EXIT_LOCAL = 1,        /* memory, disk, device, network of this machine */
    VD_EXIT_USAGE = 2,        /* options, job, files */
    VD_EXIT_CONVICTED = 3,    /* a provider was convicted */
    VD_EXIT_FORFEIT = 4,      /* a provider did not answer; nobody was convicted */
    VD_EXIT_INCONCLUSIVE = 5, /* nothing is accepted */
    VD_EXIT_REFUSED = 6,      /* a verdict does not hold, a file is damaged, or files do not fit */
    VD_EXIT_DISMISSED = 7,    /* an auditor could not show the trainer to be wrong */
    VD_EXIT_VERSION = 8,      /* of a version, or with a part, that this program does not know */
    VD_EXIT_DIFFERS = 9,      /* what was compared, or executed again, is not equal */
} vd_exit;

typedef struct {
    const char *name, *summary, *help;
    vd_exit (*run)(int argc, char **argv);
} vd_command;

extern const vd_command vd_cmd_keygen, vd_cmd_run, vd_cmd_serve, vd_cmd_arbitrate, vd_cmd_verify,
    vd_cmd_inspect, vd_cmd_graph, vd_cmd_calibrate, vd_cmd_check, vd_cmd_manifest, vd_cmd_export,
    vd_cmd_fetch, vd_cmd_delegate, vd_cmd_jobs, vd_cmd_provide, vd_cmd_diff, vd_cmd_audit;

/* ---- options ---- */

typedef struct {
    int threads;         /* 0: one per core */
    const char *backend; /* NULL: the best */
    bool json;
} vd_common;

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

/* ---- what commands load ---- */

/* Where a data tensor's bytes lie in a file. */
typedef struct {
    const char *path; /* NULL: in memory alone */
    uint64_t offset;
} vd_data_place;

typedef struct {
    vd_data_place *place; /* of each data tensor of the program; paths are borrowed */
    const void **tensor;  /* what exec.data is */
    vd_map *file;         /* of a run directory: what it reads */
    uint32_t file_count;
} vd_placed_data;

/* The programs of a job that came in a pack (packed_job.c). */
typedef struct {
    vd_map file;
    vd_pack pack;               /* count 0: there is none */
    vd_placed_data shared;      /* data tensors of all programs, from number pack.own on */
    void *own[VD_PACK_OWN_MAX]; /* of the item that is loaded */
} vd_given;

/* The state that a job goes on from: of another run, or of a program job perhaps of files alone. */
typedef struct {
    vd_program program; /* of that run */
    int64_t step;
    vd_weights file;      /* a state's tensors, or exported ones, or any files */
    bool present;         /* the file is there; else only what a proof or a manifest tells */
    bool exported;        /* `file` has names, and perhaps not all of the state */
    vd_manifest manifest; /* of files alone */
    vd_hash *commitment;
    vd_file_tensor *tensor; /* as vd_training.start wants them */
    uint32_t *at;           /* where each of them is in `file` */
    uint32_t count;
    uint32_t left_out; /* tensors of files that are no part of a program job's state */
    uint32_t inserted; /* nodes at the beginning of the step of a program job, which number it */
} vd_start;

typedef struct {
    vd_job job;             /* only from a job file */
    vd_job_weights weights; /* of a pretrained model */
    vd_start start;
    vd_dataset data;
    vd_prompts prompts;    /* of a job that generates or scores: in place of data */
    vd_given given;        /* of a job that has a pack: in place of prompts */
    const char *prompt;    /* the key of the one that the program is about; NULL: none was named */
    int32_t words[2];      /* of its key, as the program's data has it */
    bool packed;           /* the program is one of many, which came without a job */
    bool bare;             /* whoever loads it needs no data, if the program alone can be had */
    vd_known_data *known;  /* what need not be hashed again when a run's data are loaded, or NULL */
    vd_placed_data placed; /* where each data tensor of the program lies */
    vd_program program;
    ro_ctx *ro;
    vd_exec exec;
} vd_loaded;

/* From a job file, or a folder with a program: data, program. Of a job with prompts the program is
 * that of out->prompt, which must be named: VD_ERR_USAGE. */
VD_MUST_USE vd_status vd_load_job(const char *path, vd_loaded *out, vd_err *err);
/* The same without the program of a job with prompts: that of prompt `index` then follows. */
VD_MUST_USE vd_status vd_load_prompts(const char *path, vd_loaded *out, vd_err *err);
VD_MUST_USE vd_status vd_load_prompt(vd_loaded *out, uint32_t index, vd_err *err);
/* program_job.c: a job whose program is given. A folder as the job; then its program, whose hash is
 * compared with the job's, and its data, whose hashes are compared with the program's. */
bool vd_is_folder(const char *path);
VD_MUST_USE vd_status vd_folder_job(const char *path, vd_job *out, vd_err *err);
VD_MUST_USE vd_status vd_load_program_job(vd_loaded *loaded, vd_err *err);
/* The file `places.json` beside the program: where each node of the step comes from, as a list
 * `step`, for people alone. *out: the caller's, or NULL if there is no such file. */
enum { VD_NODE_PLACES_BYTES_MAX = 16 << 20 };
VD_MUST_USE vd_status vd_load_node_places(const vd_loaded *loaded, json_t **out, vd_err *err);
/* packed_job.c: a job of many programs that are given. Its data likewise. */
bool vd_has_pack(const char *dir);
VD_MUST_USE vd_status vd_load_packed_job(vd_loaded *loaded, vd_err *err);
VD_MUST_USE vd_status vd_list_packed(const vd_loaded *loaded, vd_items *out, vd_err *err);
VD_MUST_USE vd_status vd_load_packed(vd_loaded *loaded, uint32_t item, vd_err *err);
void vd_given_free(vd_given *given);
/* How many prompts, or programs of a pack, a job has; the key of one. */
uint32_t vd_prompt_count(const vd_loaded *loaded);
int64_t vd_prompt_key(const vd_loaded *loaded, uint32_t index);
/* What people, and members of JSON, call them: "prompt", or "batch" of a pack; in the plural but
 * for 1. */
const char *vd_prompt_word(const vd_loaded *loaded, uint64_t count);
/* Data tensors that each prompt's program has for itself, which come first: the prompt, and its key
 * if tokens are drawn. */
uint32_t vd_prompt_own_data(const vd_loaded *loaded);
/* Keys and program hashes of all prompts; each program is built for it. */
VD_MUST_USE vd_status vd_list_prompts(const vd_loaded *loaded, vd_items *out, vd_err *err);
/* The prompt of a key in decimal digits. */
VD_MUST_USE vd_status vd_find_prompt(const vd_loaded *loaded, const char *key, uint32_t *index,
                                     vd_err *err);
/* Finds the state that a job goes on from, if it has `weights`: checks its bytes, or without the
 * run's directory the proof RUN.proof.json, and sets training.start. */
VD_MUST_USE vd_status vd_load_start(vd_job *job, const vd_data_reader *reader, vd_start *out,
                                    vd_err *err);
void vd_start_free(vd_start *start);
/* Lists the tensors of start->program, with their commitments, as the job's start. */
VD_MUST_USE vd_status vd_list_start(vd_job *job, vd_start *start, vd_err *err);
/* start_files.c: the same of files alone, `weights.dir` of a program job, or of DIR.manifest. */
VD_MUST_USE vd_status vd_load_start_files(vd_job *job, const vd_data_reader *reader, vd_start *out,
                                          vd_err *err);
/* program_start.c: gives the program of a job the first state that its `weights` name, and its data
 * the places of that; after both were loaded. */
VD_MUST_USE vd_status vd_begin_program(vd_loaded *loaded, vd_err *err);
/* program_weights.c: gives a program that evaluates the weights that the job names, and their
 * places; after both were loaded. Does a data tensor wait for that? */
VD_MUST_USE vd_status vd_give_weights(vd_loaded *loaded, vd_err *err);
bool vd_is_wanted(const vd_data *d);
/* Maps the file of a state, whose bytes are not looked at. */
VD_MUST_USE vd_status vd_map_state(const char *dir, const vd_program *program, const vd_hash *state,
                                   vd_weights *out, vd_err *err);
/* Opens the file of checkpoint `index` of the run in DIR, hashes it, and compares it with what the
 * run commits to. `commitment` has room for each leaf. VD_ERR_USAGE: the state was not kept;
 * VD_ERR_PEER: it has changed. */
VD_MUST_USE vd_status vd_open_state(const char *dir, const vd_program *program,
                                    const vd_run_log *log, uint32_t index,
                                    const vd_weights_hashing *how, vd_weights *out,
                                    vd_hash *commitment, vd_err *err);
/* From a run directory: program and fault; program and log fit together. */
VD_MUST_USE vd_status vd_load_run(const char *dir, vd_loaded *out, vd_run_log *log, vd_err *err);
enum { VD_PLACES_BYTES_MAX = VD_DATA_MAX << 10 }; /* of data.json: 1 KiB for each tensor */
/* The data of a finished run, to execute its steps again: from where DIR/data.json says, or from
 * files of the same names in the directory `moved`, if it is not NULL. VD_ERR_USAGE: a file
 * is not there; VD_ERR_PEER: it is not the program's. */
VD_MUST_USE vd_status vd_load_data(const char *dir, const char *moved, vd_loaded *out, vd_err *err);
/* The same of a folder that somebody else wrote, which may name plain files in itself alone. */
VD_MUST_USE vd_status vd_load_own_data(const char *dir, vd_loaded *out, vd_err *err);
/* Of a pack's first program, which has `own` tensors more than the folder. */
VD_MUST_USE vd_status vd_load_shared_data(const char *dir, uint32_t own, vd_loaded *out,
                                          vd_err *err);
/* Reads such a file; *out is the caller's. Its version and the names of its members are known.
 * VD_ERR_USAGE: it is not there; VD_ERR_PEER: it is none. */
VD_MUST_USE vd_status vd_load_places(const char *path, json_t **out, vd_err *err);
/* DIR/data.json, so that a run directory serves without its job file. Copies small tensors, and
 * those that lie in no file, to DIR/data. */
VD_MUST_USE vd_status vd_save_data(const char *dir, const vd_loaded *loaded, vd_err *err);
VD_MUST_USE vd_status vd_place_data(vd_loaded *loaded, vd_err *err); /* that of the job */
/* That of a job with prompts, whose program is the one of `prompt`. */
VD_MUST_USE vd_status vd_place_prompt(vd_loaded *loaded, const vd_prompt *prompt, vd_err *err);
void vd_placed_data_free(vd_placed_data *data);
/* Are the files there that a job's model starts from? Its manifest alone lets nothing run. */
VD_MUST_USE vd_status vd_need_weights(const vd_loaded *loaded, vd_err *err);
VD_MUST_USE vd_status vd_load_backend(vd_loaded *loaded, const vd_common *common, vd_err *err);
/* Opens the device that a profile computes on, before anything is computed. */
VD_MUST_USE vd_status vd_load_device(const vd_loaded *loaded, const ro_profile *profile,
                                     vd_err *err);
void vd_loaded_free(vd_loaded *loaded);

/* The job of `evaluate` beside a job that trains: its weights are each time another state's. */
typedef struct {
    vd_loaded held;
    const vd_loaded *trained;
    const char *dir; /* of the run */
} vd_evaluation;

/* Leaves it empty if the job has no `evaluate`. Borrows both. */
VD_MUST_USE vd_status vd_evaluation_open(const vd_loaded *trained, const char *dir,
                                         vd_evaluation *out, vd_err *err);
/* vd_run_options.evaluate */
VD_MUST_USE vd_status vd_evaluate(void *evaluation, int64_t step, const vd_hash *state,
                                  vd_score *score, bool *told, vd_err *err);
/* The score of the last state, whose model lies in a directory as `verde export` writes it. */
VD_MUST_USE vd_status vd_evaluate_model(vd_evaluation *evaluation, const char *dir, vd_score *score,
                                        vd_err *err);
void vd_evaluation_close(vd_evaluation *evaluation);

/* out_dir.c: a folder for results, with the folders that it lies in, each made if it is not there.
 * A line says which other files are in it. For a run: how many folders were made. */
VD_MUST_USE vd_status vd_open_run_dir(const char *dir, uint32_t *made, vd_err *err);
/* For a model or results: VD_ERR_USAGE where a run is. */
VD_MUST_USE vd_status vd_open_model_dir(const char *dir, vd_err *err);
/* Can a file be written there, and is there none yet, unless `force`? For what is written after
 * long work. */
VD_MUST_USE vd_status vd_check_new(const char *path, bool force, vd_err *err);
/* The key in a directory; made there if there is none yet. */
/* The public key of an option. VD_ERR_USAGE: it is none, with the option's name. */
VD_MUST_USE vd_status vd_read_key(const char *option, const char *hex, vd_public_key *out,
                                  vd_err *err);
VD_MUST_USE vd_status vd_load_key(const char *dir, vd_key **out, vd_err *err);

/* ---- printing ---- */

vd_exit
vd_report(const vd_err *err); /* one line on standard error; the exit code of the category */
/* A line on standard error of at most 1,000 bytes, dropped if nobody reads there: whoever answers
 * others never waits for it. */
void vd_say(const char *format, ...) VD_PRINTF(1, 2);
void vd_print_json(json_t *object); /* one line on standard output; takes the object */
json_t *vd_hash_text(const vd_hash *hash);

/* ---- program.c: what is told of a program ---- */

/* A line that begins with `label` for each range of data; a list of them. */
void vd_print_ranges(const vd_program *program, const char *label);
json_t *vd_ranges_json(const vd_program *program);
/* Whether a file begins as a program does; prints what is in it. */
bool vd_is_program_file(const char *path);
VD_MUST_USE vd_status vd_show_program(const char *path, bool json, vd_err *err);
/* A line on standard output, of a hash or a key. */
void vd_print_hex(const char *name, const uint8_t bytes[VD_HASH_SIZE]);
const char *vd_plural(uint64_t count); /* "s", but of one thing "" */
/* Counts of a run with a rounding log, of each operator. */
void vd_print_rounded(const vd_run_result *r);
json_t *vd_rounded_json(const vd_run_result *r);
bool vd_is_terminal(void); /* standard error */
/* The losses of DIR/losses.jsonl as a picture, to a file (SVG). */
VD_MUST_USE vd_status vd_plot_losses(const char *dir, const char *out, vd_err *err);

/* How far a check is, on standard error, once it has taken two seconds: vd_check.progress. */
typedef struct {
    double start, last_line; /* vd_seconds(), 0 */
} vd_hashing;
void vd_tell_hashing(void *hashing, uint64_t done, uint64_t total);
void vd_tell_hashed_items(vd_hashing *hashing, uint32_t done, uint32_t total); /* prompts */

#endif
