/* The parts of `verde run`. */
#ifndef VD_RUN_COMMAND_H
#define VD_RUN_COMMAND_H

#include "verde/cli/cli.h"
#include "verde/job/profile.h"
#include "verde/run/faults.h"
#include "verde/run/progress.h"

/* ---- run_role.c ---- */

/* Options of --backend log; NULL, 0 and false: not given. */
typedef struct {
    const char *role, *profile, *encoding, *thresholds, *trainer, *key, *trainer_key;
    long bits; /* 0: as the job says, or 32 */
    bool contest;
} vd_log_options;

/* What `rounding` points at is in here. */
typedef struct {
    vd_run_rounding rounding;
    ro_profile profile;
    vd_thresholds thresholds;
    vd_key *key; /* owned */
    vd_public_key trainer_key;
} vd_log_role;

bool vd_has_log_options(const vd_log_options *options);
/* Takes the job's settings, which no option may contradict. VD_ERR_USAGE: one does, or options do
 * not go together. *out must not move afterwards. */
VD_MUST_USE vd_status vd_take_role(const vd_log_options *options, const vd_program_rounding *job,
                                   vd_log_role *out, vd_err *err);
/* What was rounded, on standard output. */
void vd_print_rounding(const vd_run_rounding *rounding, const vd_run_result *result);

/* ---- run_tell.c ---- */

/* Says what is about to run. */
void vd_announce_run(const char *job, const vd_loaded *loaded);
/* Says what checkpoints take, and warns if the file system has less for those to come. `keep`: 0:
 * all. */
void vd_tell_disk(const char *dir, const vd_program *program, long keep);
/* On standard output. `score`: what an evaluation arrived at; NULL: the job trains. */
void vd_print_result(const vd_run_result *result, const vd_loaded *loaded, const vd_common *common,
                     bool rounded, const vd_score *score);

#endif
