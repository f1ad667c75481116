/* A party of a run on free kernels: a trainer, who logs what it rounds, or an auditor, who follows
 * that log on a device of its own and must come to the same states. */
#ifndef VD_ROUNDED_H
#define VD_ROUNDED_H

#include "verde/log/free.h"

typedef struct {
    vd_role role;
    const vd_program *program; /* borrowed, as all that is pointed to */
    const ro_profile *profile;
    const vd_thresholds *thresholds; /* VD_LOG_SYMBOLS only */
    vd_log_run log;
    const char *dir;       /* DIR: DIR/log is written or followed; a copy of the text is kept */
    size_t memory_bytes;   /* trainer: most bytes of sections that wait to be written */
    const vd_fault *fault; /* a fault of logs is applied, others are ignored */
    bool contest;          /* auditor: where the log cannot be followed, go on without it */
    bool again;            /* the run was finished before: a trainer writes nothing */
} vd_rounded_options;

/* Counts of what was rounded and how, for one operator or for all. */
typedef struct {
    uint64_t elements;
    uint64_t decided; /* close calls, or symbols other than 1 */
    uint64_t escapes;
    uint64_t corrected; /* auditor: rounded otherwise than its own value alone would be */
    uint64_t refused;   /* auditor: corrections that no device could have needed */
} vd_rounded_count;

/* Where an auditor's run first was not the trainer's. */
typedef struct {
    bool found;
    int64_t step;
    char text[512]; /* a sentence that names step, node and element */
} vd_difference;

typedef struct vd_rounded vd_rounded;

/* A run's log with the interval and the steps of its program. */
vd_log_run vd_rounded_schedule(const vd_log_run *run, const vd_program *program);
VD_MUST_USE vd_status vd_rounded_create(const vd_rounded_options *options, vd_rounded **out,
                                        vd_err *err);
/* For vd_exec.kernels; stand as long as the party. */
const vd_kernels *vd_rounded_kernels(const vd_rounded *rounded);
/* The run that is logged or followed. */
const vd_log_run *vd_rounded_log(const vd_rounded *rounded);
/* The free nodes of a step (-1: of initialisation): those that its log has sections for. */
const vd_log_node *vd_rounded_nodes(const vd_rounded *rounded, int64_t step, uint32_t *count);

/* Around vd_exec_step from this step, or vd_exec_init (-1). An auditor compares every free node's
 * output with the log, and computes what the log moved by the reference: the first that differs, or
 * that no device could have rounded so, ends the step, VD_ERR_PEER, with a sentence that names
 * step, node and element. With `contest` it is remembered, nothing is compared from there on, what
 * is not possible is rounded to the nearest, and a section against the rules counts as empty.
 * `root`: what the trainer committed to, or NULL. */
VD_MUST_USE vd_status vd_rounded_begin(vd_rounded *rounded, int64_t step, const vd_hash *root,
                                       vd_err *err);
/* A trainer's log goes to disk while further steps run: with the last step before a checkpoint, all
 * since the one before. */
VD_MUST_USE vd_status vd_rounded_end(vd_rounded *rounded, vd_err *err);
/* Waits until a trainer's log of an ended step is on disk. A trainer tells of each step once, an
 * auditor of the last one that ended. */
VD_MUST_USE vd_status vd_rounded_done(vd_rounded *rounded, int64_t step, vd_log_done *done,
                                      vd_err *err);

/* Since the party was created; op 0: of all operators. */
vd_rounded_count vd_rounded_counted(const vd_rounded *rounded, int op);
/* May be set too: by who goes on with a run. */
vd_difference *vd_rounded_difference(vd_rounded *rounded);

/* NULL: VD_OK. Says what the log's writer could not. */
VD_MUST_USE vd_status vd_rounded_close(vd_rounded *rounded, vd_err *err);
void vd_rounded_drop(vd_rounded *rounded); /* the same, after a failure that says more */

/* ---- elements that a log decides: private to verde/log ---- */

/* Elements that the log moved away from their nearest rounding: those that no device could have
 * rounded so are set back to it. *refused: how many; *first: one of them, and what was possible. */
typedef struct {
    int64_t count, element;
    uint32_t word, low, high;
} vd_refused;
void vd_check_moved(const vd_free_node *node, const vd_log_section *section, double threshold,
                    vd_refused *refused);

/* A fault of logs: alters an output, and the calls or symbols that are about to be logged; *done is
 * set where it did. `calls` are the node's own copy, *count of them; `symbol` may be NULL. */
void vd_fault_log(const vd_fault *fault, const vd_free_node *node, ro_close_call *calls,
                  int64_t *count, uint8_t *symbol, bool *done);

#endif
