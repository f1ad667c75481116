/* A party of a run on free kernels: a trainer, who logs what it rounds, or an auditor, who follows
 * that log on a device of its own and must come to the same states. */
#ifndef VD_ROUNDED_H
#define VD_ROUNDED_H

#include "verde/exec/exec.h"
#include "verde/log/log.h"

typedef enum { VD_TRAINER = 1, VD_AUDITOR = 2 } vd_role;

typedef struct {
    vd_role role;
    const vd_program *program; /* borrowed, as the profile and the thresholds are */
    const ro_profile *profile;
    const vd_thresholds *thresholds; /* VD_LOG_SYMBOLS only */
    vd_log_run log;
    const char *dir;     /* the trainer's: DIR/log; borrowed */
    size_t memory_bytes; /* trainer: of sections that wait to be written */
} vd_rounded_options;

/* What was rounded how, of one operator or of all. */
typedef struct {
    uint64_t elements;
    uint64_t decided; /* close calls, or symbols other than 1 */
    uint64_t escapes;
    uint64_t corrected; /* auditor: not what its own value would have been rounded to */
} vd_rounded_count;

typedef struct vd_rounded vd_rounded;

VD_MUST_USE vd_status vd_rounded_create(const vd_rounded_options *options, vd_rounded **out,
                                        vd_err *err);
/* For vd_exec.free; stands as long as the party. */
const vd_free *vd_rounded_free(const vd_rounded *rounded);

/* Around vd_exec_step from this step, or vd_exec_init (-1). An auditor compares every free node's
 * output with the log: the first that differs ends the step, VD_ERR_PEER, with a sentence that
 * names step, node and element. `root`: what the trainer committed to, or NULL. */
VD_MUST_USE vd_status vd_rounded_begin(vd_rounded *rounded, int64_t step, const vd_hash *root,
                                       vd_err *err);
/* A trainer's step is then on disk. */
VD_MUST_USE vd_status vd_rounded_end(vd_rounded *rounded, vd_log_done *done, vd_err *err);

/* Since the party was created; op 0: of all operators. */
vd_rounded_count vd_rounded_counted(const vd_rounded *rounded, int op);

/* NULL: VD_OK. Says what the log's writer could not. */
VD_MUST_USE vd_status vd_rounded_close(vd_rounded *rounded, vd_err *err);
void vd_rounded_drop(vd_rounded *rounded); /* the same, after a failure that says more */

#endif
