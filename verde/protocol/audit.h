/* An audit of one provider: decides what to ask in which order, and what the result is. It uses no
 * sockets, clock or files. PROTOCOL.md section 13. */
#ifndef VD_AUDIT_H
#define VD_AUDIT_H

#include "verde/protocol/audit_draw.h"

typedef struct {
    const vd_program *program;
    const vd_buf *assignment; /* payload, of version 2 */
    const vd_key *key;        /* the checker's */
    vd_leaf_fn leaf;
    uint32_t steps, crumbs; /* how many different steps to draw, and elements in all of them */
    /* Fills in 32 random bytes that nobody else knows. `crumb`: the number, from 1, of the crumb
     * whose long fold they draw a part of, or 0 for a step's secret. */
    vd_status (*random)(void *user, uint64_t crumb, uint8_t bytes[VD_HASH_SIZE], vd_err *err);
    /* Called after each place that is right; `count` places are right so far. May be NULL. */
    vd_status (*passed)(void *user, const vd_crumb *place, uint64_t count, vd_err *err);
    void *user;
    uint64_t known; /* the first so many places are known to be right, and are not asked about */
} vd_audit_options;

typedef enum {
    VD_AUDIT_ASKS,   /* *out must be sent */
    VD_AUDIT_WAITS,  /* the claim is known; vd_audit_beacon must be called */
    VD_AUDIT_PASSED, /* everything that was drawn is right */
    VD_AUDIT_FRAUD,  /* the provider's own statements show that something is wrong */
    VD_AUDIT_SILENT, /* the provider gave no answer, which fails the audit */
} vd_audit_state;

/* A drawn step, and the secrets and statements from which the draws follow. */
typedef struct {
    int64_t step;
    bool inside;                /* in an interval of several steps: the first secret drew it */
    vd_hash secret[2], root[2]; /* [0]: of the sub-run, if `inside`; [1]: of the trace */
} vd_audited_step;

typedef struct {
    vd_hash run_root;
    bool claimed;
    uint32_t crumbs;         /* drawn elements */
    uint32_t whole;          /* tensor leaves of nodes that are checked whole, */
    uint64_t whole_elements; /* and the number of elements in them */
    uint64_t parts;          /* crumbs of either kind that were checked by a part of a long fold */
    uint64_t seams;          /* leaves of states */
    uint32_t nodes;          /* nodes whose tensors the provider computed again, over all steps */
    vd_audited_step *step;   /* owned by the audit */
    uint32_t step_count;
    uint32_t questions;
    char why[256]; /* FRAUD, SILENT: what is wrong */
} vd_audit_result;

typedef struct vd_audit vd_audit;

VD_MUST_USE vd_status vd_audit_create(const vd_audit_options *options, vd_audit **out, vd_err *err);
void vd_audit_destroy(vd_audit *audit); /* accepts NULL */

/* Returns what to do next. *out is borrowed until the next call. */
VD_MUST_USE vd_status vd_audit_next(vd_audit *audit, vd_audit_state *state, vd_outgoing *out,
                                    vd_err *err);
void vd_audit_answer(vd_audit *audit, const void *note, size_t size);
void vd_audit_no_answer(vd_audit *audit, const char *why);
/* Passes the beacon's value, when the state is VD_AUDIT_WAITS. */
VD_MUST_USE vd_status vd_audit_beacon(vd_audit *audit, const void *value, size_t size, vd_err *err);

const vd_audit_result *vd_audit_results(const vd_audit *audit);
/* Returns how many places are done, of how many that are known so far. */
void vd_audit_progress(const vd_audit *audit, uint64_t *done, uint64_t *of);
/* Returns true while a crumb is examined, false while the questions lead to a step. */
bool vd_audit_is_at_crumb(const vd_audit *audit);
/* Returns the pace that the provider stated. */
const vd_pace *vd_audit_pace(const vd_audit *audit);
/* VD_AUDIT_FRAUD: returns the referee that convicted, and its place. */
const vd_referee *vd_audit_referee(const vd_audit *audit);
const vd_crumb *vd_audit_place(const vd_audit *audit);

#endif
