/* A party of a run on free kernels: a trainer, who logs its roundings, or an auditor, who follows
 * that log on its own device and must reach the same states. */
#ifndef VD_ROUNDED_H
#define VD_ROUNDED_H

#include "verde/log/free.h"

typedef struct {
    vd_role role;
    const vd_program *program; /* borrowed, as all pointers are */
    const ro_profile *profile;
    const vd_thresholds *thresholds; /* for VD_LOG_SYMBOLS only */
    vd_log_run log;
    const char *dir;       /* DIR/log is written or followed; the text is copied */
    size_t memory_bytes;   /* trainer: limit of queued sections */
    const vd_fault *fault; /* only faults of logs are applied */
    bool contest;          /* auditor: goes on without the log where the log cannot be followed */
    bool again;            /* the run was finished before: a trainer writes nothing */
} vd_rounded_options;

/* Counts of roundings, for one operator or for all. */
typedef struct {
    uint64_t elements;
    uint64_t decided; /* close calls, or symbols other than 1 */
    uint64_t escapes;
    uint64_t corrected; /* auditor: rounded to another value than its own device would */
    uint64_t refused;   /* auditor: corrections that no device could need */
} vd_rounded_count;

/* The first place where an auditor's run differed from the trainer's. */
typedef struct {
    bool found;
    int64_t step;
    char text[512]; /* names step, node and element */
} vd_difference;

typedef struct vd_rounded vd_rounded;

/* Returns `run` with the interval and the steps of its program. */
vd_log_run vd_rounded_schedule(const vd_log_run *run, const vd_program *program);
VD_MUST_USE vd_status vd_rounded_create(const vd_rounded_options *options, vd_rounded **out,
                                        vd_err *err);
/* For vd_exec.kernels; valid until the party is closed. */
const vd_kernels *vd_rounded_kernels(const vd_rounded *rounded);
/* The run that is logged or followed. */
const vd_log_run *vd_rounded_log(const vd_rounded *rounded);
/* The free nodes of a step (-1: of initialisation), which have sections in its log. */
const vd_log_node *vd_rounded_nodes(const vd_rounded *rounded, int64_t step, uint32_t *count);

/* Call this before vd_exec_step from this step, or vd_exec_init (-1), and vd_rounded_end after it.
 * An auditor compares every free node's output with the log, and checks elements that the log moved
 * by the reference. The first element that differs, or that no device could have rounded so, ends
 * the step with VD_ERR_PEER; the error names step, node and element. With `contest` that is
 * remembered instead; then nothing more is compared, impossible values are rounded to the nearest,
 * and a section that breaks the rules counts as empty. `root` is what the trainer committed to, or
 * NULL. */
VD_MUST_USE vd_status vd_rounded_begin(vd_rounded *rounded, int64_t step, const vd_hash *root,
                                       vd_err *err);
/* Ends the step. A trainer's log is written while further steps run; the last step before a
 * checkpoint completes the file of all steps since the one before. */
VD_MUST_USE vd_status vd_rounded_end(vd_rounded *rounded, vd_err *err);
/* Waits until a trainer's log of an ended step is on disk. A trainer may ask once per step; an
 * auditor only about the last step that ended. */
VD_MUST_USE vd_status vd_rounded_done(vd_rounded *rounded, int64_t step, vd_log_done *done,
                                      vd_err *err);

/* Counts since creation; op 0: all operators together. */
vd_rounded_count vd_rounded_counted(const vd_rounded *rounded, int op);
/* The caller may also set it, when it resumes a run. */
vd_difference *vd_rounded_difference(vd_rounded *rounded);

/* Returns the writer's error if there was one. NULL: VD_OK. */
VD_MUST_USE vd_status vd_rounded_close(vd_rounded *rounded, vd_err *err);
void vd_rounded_drop(vd_rounded *rounded); /* as vd_rounded_close, after a failure that says more */

/* ---- elements that a log decides: private to verde/log ---- */

/* Elements that the log moved away from their nearest rounding, though no device could have rounded
 * so; they are set back. `count` of them; the others describe the first, and its possible words. */
typedef struct {
    int64_t count, element;
    uint32_t word, low, high;
} vd_refused;
void vd_check_moved(const vd_free_node *node, const vd_log_section *section, double threshold,
                    vd_refused *refused);

/* Applies a fault of logs: alters an output, and the calls or symbols before they are logged; sets
 * *done if it did. `calls` are the node's own copy, *count of them; `symbol` may be NULL. */
void vd_fault_log(const vd_fault *fault, const vd_free_node *node, ro_close_call *calls,
                  int64_t *count, uint8_t *symbol, bool *done);

#endif
