/* `verde audit`: one's own run, executed again. Private to cmd_audit.c and audit_*.c. */
#ifndef VD_CLI_AUDIT_H
#define VD_CLI_AUDIT_H

#include "verde/cli/diff.h"
#include "verde/exec/audit.h"

typedef struct {
    const char *dir, *data, *state;
    long count; /* of stretches; 0: all */
    bool seeded;
    uint64_t seed;
    vd_common common;
} vd_audit_options;

typedef enum { VD_UNSEEN, VD_EQUAL, VD_DIFFERS } vd_stretch_result;

/* What was found where one checkpoint differs. */
typedef struct {
    uint32_t checkpoint;
    uint32_t last; /* of its stretch: what lies between was not executed */
    vd_divergence place;
    char own_backend[16]; /* on which the run was executed again */
    bool same_machine;    /* as the run states */
} vd_audit_difference;

typedef struct {
    const vd_audit_options *o;
    vd_diff_run run; /* on the backend that it is executed on now, without its fault */
    vd_machine here;
    vd_hash run_root;
    uint32_t stretches;
    uint32_t *drawn, drawn_count; /* those to execute; owned */
    vd_stretch_result *result;    /* of each stretch; owned */
    uint32_t *differs;            /* of each: the checkpoint; owned */
    vd_audit_difference *difference;
    uint32_t difference_count;
    int64_t steps; /* executed by this call */
    double start, told, saved;
    vd_err *err;
} vd_auditing;

/* ---- audit_backend.c ---- */

/* Opens a context on another backend than the run's, by what it states of itself, or the one of an
 * option. */
VD_MUST_USE vd_status vd_audit_backend(vd_auditing *a);
/* What to open to compute as a machine did: its backend, of several devices the one with its UUID.
 */
void vd_audit_own_backend(const vd_machine *machine, char name[16]);
/* What the run states of the steps that led to a checkpoint; NULL: nothing. */
const vd_machine *vd_audit_machine(const vd_auditing *a, uint32_t checkpoint);

/* ---- audit_state.c: the file of --state, by which an audit goes on ---- */

/* Takes what the file says, or makes it. VD_ERR_USAGE: it is of another run. */
VD_MUST_USE vd_status vd_audit_state_open(vd_auditing *a);
/* After a stretch, as often as the whole file is written in a blink; at the end with `last`. */
VD_MUST_USE vd_status vd_audit_state_save(vd_auditing *a, bool last);

/* ---- audit_tell.c ---- */

void vd_audit_tell_progress(void *auditing, int64_t steps);
void vd_audit_print(const vd_auditing *a);
void vd_audit_print_json(const vd_auditing *a);

#endif
