/* Runs on free kernels with a rounding log: what is asked of one, what run.json keeps of it, and
 * what came of it. The backend `log`. */
#ifndef VD_LOG_RUN_H
#define VD_LOG_RUN_H

#include "verde/exec/backend.h"
#include "verde/log/rounded.h"

extern const vd_backend vd_backend_log;

/* For vd_run_backend.options. A trainer's log lies in the run's directory. */
typedef struct {
    vd_role role;
    const ro_profile *profile;
    const vd_thresholds *thresholds; /* with VD_LOG_SYMBOLS */
    vd_log_encoding encoding;        /* trainer; an auditor takes the trainer's */
    int32_t bits;                    /* trainer */
    const char *trainer;             /* auditor: the directory of the run that is followed */
    const vd_key *key;               /* trainer: signs its log at each checkpoint; NULL: not */
    const vd_public_key
        *trainer_key; /* auditor: who must have signed it; NULL: anybody, or nobody */
    bool contest;     /* auditor: goes on where the log cannot be followed (rounded.h) */
} vd_run_rounding;

/* For vd_run_backend.result. */
typedef struct {
    vd_log_encoding encoding;
    vd_rounded_count rounded; /* of the steps that ran now */
    vd_difference difference; /* of the whole run, if it contests */
    uint64_t log_bytes;
    vd_rounded_count rounded_of[RO_OP_END]; /* the same, of each operator */
} vd_log_result;

/* Who ran and on what, so that serving the run repeats it. */
typedef struct {
    vd_role role;
    ro_profile profile;
    char backend[16];
    bool contest; /* auditor */
    vd_difference difference;
} vd_run_party;

/* vd_run_log.of_backend: what run.json keeps. */
typedef struct {
    vd_log_run rounding;
    vd_run_party party; /* role 0: an older version wrote it */
} vd_log_kept;

/* NULL: the run is in fixed order. */
const vd_log_kept *vd_log_kept_of(const vd_run_log *log);

#endif
