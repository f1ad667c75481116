/* `verde audit RUN`: executes one's own run again. Private to cmd_audit.c and recheck*.c. */
#ifndef VD_AUDIT_RECHECK_H
#define VD_AUDIT_RECHECK_H

#include "verde/audit/diff.h"
#include "verde/exec/recheck.h"

typedef struct {
    const char *dir, *data, *state;
    long count; /* number of stretches; 0: all */
    bool seeded;
    uint64_t seed;
    vd_common common;
} vd_recheck_options;

typedef enum {
    VD_UNSEEN,
    VD_EQUAL,
    VD_DIFFERS,
    VD_DAMAGED, /* the state before it is missing or damaged */
} vd_stretch_result;

typedef struct {
    uint32_t stretch;
    char why[400];
} vd_recheck_damage;

/* What was found at a checkpoint that differs. */
typedef struct {
    uint32_t checkpoint;
    uint32_t last; /* last checkpoint of its stretch: those between were not executed */
    vd_divergence place;
    char own_backend[16]; /* backend on which the run's own way was repeated */
    bool same_machine;    /* it is the machine that the run states */
} vd_recheck_difference;

typedef struct {
    const vd_recheck_options *o;
    vd_diff_run run; /* opened on the backend of this audit, without its fault */
    vd_machine here;
    bool finished;
    vd_hash run_root; /* if not finished: of its checkpoints so far */
    uint32_t stretches;
    uint32_t *drawn, drawn_count; /* stretches to execute; owned */
    vd_stretch_result *result;    /* one for each stretch; owned */
    uint32_t *differs;            /* one for each stretch: the checkpoint; owned */
    vd_recheck_difference *difference;
    uint32_t difference_count;
    vd_recheck_damage *damage; /* damaged stretches; owned */
    uint32_t damage_count;
    int64_t steps; /* executed by this call */
    vd_ticker ticker;
    double saved;
    vd_err *err;
} vd_rechecking;

/* ---- recheck_backend.c ---- */

/* Opens the backend of an option, or else the fastest one that the run states for none of its
 * steps; the best one, if there is none such. */
VD_MUST_USE vd_status vd_recheck_backend(vd_rechecking *a);
/* Returns the machine that the run states for the steps before a checkpoint; NULL: none. */
const vd_machine *vd_recheck_machine(const vd_rechecking *a, uint32_t checkpoint);

/* ---- recheck_state.c: the file of --state, by which an audit can be continued ---- */

/* Takes results from the file, for stretches that the run still has. VD_ERR_USAGE: the file is of
 * another run. */
VD_MUST_USE vd_status vd_recheck_state_open(vd_rechecking *a);
/* Saves the file after a stretch, at most every SAVE_SECONDS; always with `last`. */
VD_MUST_USE vd_status vd_recheck_state_save(vd_rechecking *a, bool last);

/* ---- recheck_tell.c ---- */

void vd_recheck_tell_progress(void *auditing, int64_t steps);
void vd_recheck_print(const vd_rechecking *a);
void vd_recheck_print_json(const vd_rechecking *a);

vd_exit vd_recheck_all(const vd_recheck_options *options);

#endif
