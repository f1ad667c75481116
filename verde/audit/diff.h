/* `verde diff`: compares two runs, models or programs. Private to diff*.c and cmd_diff.c. */
#ifndef VD_DIFF_H
#define VD_DIFF_H

#include "verde/exec/divergence.h"
#include "verde/load/load.h"

typedef struct {
    const char *path[2];
    const char *data;       /* where the runs' data files are now; NULL: unchanged */
    const char *backend[2]; /* NULL: the run's own, or the best */
    bool no_run;
    const char *key_dir, *ca; /* for a provider's run */
    long patience_s;
    vd_common common;
} vd_diff_options;

/* Each compares, prints the result, and sets *differs. */
VD_MUST_USE vd_status vd_diff_runs(const vd_diff_options *options, bool *differs, vd_err *err);
VD_MUST_USE vd_status vd_diff_items(const vd_diff_options *options, bool *differs, vd_err *err);
VD_MUST_USE vd_status vd_diff_models(const vd_diff_options *options, bool *differs, vd_err *err);
VD_MUST_USE vd_status vd_diff_programs(const vd_diff_options *options, bool *differs, vd_err *err);

/* ---- diff_program.c: differences between two programs ---- */

enum { VD_DIFF_LINES_MAX = 40, VD_DIFF_KEPT_MAX = 1000 }; /* most differences printed; in JSON */

typedef struct {
    vd_hash hash[2], structure[2];
    vd_alignment pairs; /* set only if the hashes differ */
    json_t *list;       /* differences, at most VD_DIFF_KEPT_MAX; owned */
    uint64_t count;     /* number of differences */
    json_t *places[2];  /* of captured jobs: the source of each node of the step; or NULL */
} vd_program_diff;

VD_MUST_USE vd_status vd_program_diff_make(const vd_program *a, const vd_program *b,
                                           vd_program_diff *out, vd_err *err);
void vd_program_diff_free(vd_program_diff *diff);
void vd_program_diff_print(vd_buf *out, const vd_program_diff *diff);
json_t *vd_program_diff_json(const vd_program_diff *diff);
/* Writes a node's differences, such as "attribute lr: 0.1, and 0.2". False: there are none. */
bool vd_program_diff_at(const vd_program_diff *diff, bool init, uint32_t node, char *text,
                        size_t size);

/* ---- diff_run.c ---- */

/* One of the runs compared. */
typedef struct {
    const char *dir;
    vd_loaded loaded;
    vd_run_log log;
    vd_replay *replay;
    bool journaled;
    bool remote; /* `dir` is a provider's URL, and `loaded` is the other run's */
} vd_diff_run;

/* ---- diff_remote.c ---- */

bool vd_is_remote(const char *path);
/* Opens a provider's run beside our own, which is open and whose program `run` borrows. */
typedef struct vd_diff_remote vd_diff_remote;
VD_MUST_USE vd_status vd_diff_remote_open(const vd_diff_options *options, const char *url,
                                          const vd_diff_run *own, const vd_source *source,
                                          vd_diff_run *run, vd_diff_remote **out, vd_err *err);
void vd_diff_remote_close(vd_diff_remote *remote); /* accepts NULL */
vd_source vd_diff_remote_source(const vd_diff_remote *remote);

/* ---- diff_tell.c ---- */

/* Appends step, node, element, both values and possible causes, for two runs of one program. */
void vd_divergence_print_place(vd_buf *out, const vd_diff_run run[2], const vd_divergence *found);

/* `programs`: NULL if both runs have the same program. */
void vd_divergence_print(const vd_diff_run run[2], const vd_divergence *found,
                         const vd_program_diff *programs);
json_t *vd_divergence_json(const vd_diff_run run[2], const vd_divergence *found,
                           const vd_program_diff *programs);

#endif
