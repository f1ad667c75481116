/* `verde audit`: one's own run, executed again. Private to cmd_audit.c and recheck*.c. */
#ifndef VD_AUDIT_RECHECK_H
#define VD_AUDIT_RECHECK_H

#include "verde/audit/diff.h"
#include "verde/exec/recheck.h"

typedef struct {
    const char *dir, *data, *state;
    long count; /* of stretches; 0: all */
    bool seeded;
    uint64_t seed;
    vd_common common;
} vd_recheck_options;

typedef enum {
    VD_UNSEEN,
    VD_EQUAL,
    VD_DIFFERS,
    VD_DAMAGED, /* the state that it begins from is not there, or is another */
} vd_stretch_result;

typedef struct {
    uint32_t stretch;
    char why[400];
} vd_recheck_damage;

/* What was found where one checkpoint differs. */
typedef struct {
    uint32_t checkpoint;
    uint32_t last; /* of its stretch: what lies between was not executed */
    vd_divergence place;
    char own_backend[16]; /* on which the run was executed again */
    bool same_machine;    /* as the run states */
} vd_recheck_difference;

typedef struct {
    const vd_recheck_options *o;
    vd_diff_run run; /* on the backend that it is executed on now, without its fault */
    vd_machine here;
    bool finished;
    vd_hash run_root; /* of a run that is not: of its checkpoints so far */
    uint32_t stretches;
    uint32_t *drawn, drawn_count; /* those to execute; owned */
    vd_stretch_result *result;    /* of each stretch; owned */
    uint32_t *differs;            /* of each: the checkpoint; owned */
    vd_recheck_difference *difference;
    uint32_t difference_count;
    vd_recheck_damage *damage; /* of drawn stretches; owned */
    uint32_t damage_count;
    int64_t steps; /* executed by this call */
    vd_ticker ticker;
    double saved;
    vd_err *err;
} vd_rechecking;

/* ---- audit_backend.c ---- */

/* Opens a context on another backend than the run's, by what it states of itself, or the one of an
 * option. */
VD_MUST_USE vd_status vd_recheck_backend(vd_rechecking *a);
/* What the run states of the steps that led to a checkpoint; NULL: nothing. */
const vd_machine *vd_recheck_machine(const vd_rechecking *a, uint32_t checkpoint);

/* ---- audit_state.c: the file of --state, by which an audit goes on ---- */

/* Takes what the file says of stretches that are still the run's. VD_ERR_USAGE: it is of another
 * run. */
VD_MUST_USE vd_status vd_recheck_state_open(vd_rechecking *a);
/* After a stretch, as often as the whole file is written in a blink; at the end with `last`. */
VD_MUST_USE vd_status vd_recheck_state_save(vd_rechecking *a, bool last);

/* ---- audit_tell.c ---- */

void vd_recheck_tell_progress(void *auditing, int64_t steps);
void vd_recheck_print(const vd_rechecking *a);
void vd_recheck_print_json(const vd_rechecking *a);

vd_exit vd_recheck_all(const vd_recheck_options *options);

#endif
