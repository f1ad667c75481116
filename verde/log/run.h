/* The backend `log`: runs on free kernels with a rounding log; options, run.json, results. */
#ifndef VD_LOG_RUN_H
#define VD_LOG_RUN_H

#include "verde/exec/backend.h"
#include "verde/log/rounded.h"

extern const vd_backend vd_backend_log;

/* For vd_run_backend.options. A trainer's log is in the run's directory. */
typedef struct {
    vd_role role;
    const ro_profile *profile;
    const vd_thresholds *thresholds; /* for VD_LOG_SYMBOLS */
    vd_log_encoding encoding;        /* trainer; an auditor uses the trainer's */
    int32_t bits;                    /* trainer */
    const char *trainer;             /* auditor: directory of the run to follow */
    const vd_key *key; /* trainer: signs the log at each checkpoint; NULL: no signatures */
    const vd_public_key *trainer_key; /* auditor: must have signed the log; NULL: not checked */
    bool contest; /* auditor: goes on where it cannot follow the log (rounded.h) */
} vd_run_rounding;

/* For vd_run_backend.result. */
typedef struct {
    vd_log_encoding encoding;
    vd_rounded_count rounded; /* of steps that this process ran */
    vd_difference difference; /* of the whole run, if the auditor contests */
    uint64_t log_bytes;
    vd_rounded_count rounded_of[RO_OP_END]; /* as `rounded`, for each operator */
} vd_log_result;

/* The party and its device, so that serving repeats the run in the same way. */
typedef struct {
    vd_role role;
    ro_profile profile;
    char backend[16];
    bool contest; /* auditor */
    vd_difference difference;
} vd_run_party;

/* For vd_run_log.of_backend: what run.json keeps. */
typedef struct {
    vd_log_run rounding;
    vd_run_party party; /* role 0: written by an older version */
} vd_log_kept;

/* Returns NULL if the run is in fixed order. */
const vd_log_kept *vd_log_kept_of(const vd_run_log *log);

#endif
