/* An audit of one provider: what is asked, in what order, and what came of it. No sockets, no
 * clock, no files. PROTOCOL.md section 13. */
#ifndef VD_AUDIT_H
#define VD_AUDIT_H

#include "verde/protocol/audit_draw.h"

typedef struct {
    const vd_program *program;
    const vd_buf *assignment; /* payload, of version 2 */
    const vd_key *key;        /* the checker's */
    vd_leaf_fn leaf;
    uint32_t steps, crumbs; /* to draw: different steps, and single elements in all of them */
    /* 32 bytes that nobody else knows. `crumb`: the number of the one whose long fold they draw,
     * from 1; else 0. */
    vd_status (*random)(void *user, uint64_t crumb, uint8_t bytes[VD_HASH_SIZE], vd_err *err);
    /* So many crumbs are right, of which this was the last. May be NULL. */
    vd_status (*passed)(void *user, const vd_crumb *place, uint64_t count, vd_err *err);
    void *user;
    uint64_t known; /* so many are known to be right, and not asked about */
} vd_audit_options;

typedef enum {
    VD_AUDIT_ASKS,   /* *out is to be asked */
    VD_AUDIT_WAITS,  /* the claim is known: for the beacon's value */
    VD_AUDIT_PASSED, /* all that was drawn is right */
    VD_AUDIT_FRAUD,  /* its own statements show that something is wrong */
    VD_AUDIT_SILENT, /* it gave no answer, which fails the audit */
} vd_audit_state;

/* A step that was drawn, how, and what was stated. */
typedef struct {
    int64_t step;
    bool inside; /* of an interval of several steps, from which it was drawn by the first secret */
    vd_hash secret[2], root[2]; /* of the sub-run, if it was inside; of the trace */
} vd_audited_step;

typedef struct {
    vd_hash run_root;
    bool claimed;
    uint32_t crumbs;         /* elements that were drawn */
    uint32_t whole;          /* leaves of nodes that are checked whole, */
    uint64_t whole_elements; /* and their elements */
    uint64_t parts;          /* of both, by a part of a long fold */
    uint64_t seams;          /* leaves of states */
    uint32_t nodes;          /* of steps, whose tensors the provider has computed again */
    vd_audited_step *step;   /* owned by the audit */
    uint32_t step_count;
    uint32_t questions;
    char why[256]; /* FRAUD, SILENT: what is wrong */
} vd_audit_result;

typedef struct vd_audit vd_audit;

VD_MUST_USE vd_status vd_audit_create(const vd_audit_options *options, vd_audit **out, vd_err *err);
void vd_audit_destroy(vd_audit *audit); /* accepts NULL */

/* What to do next. *out is borrowed until the next call. */
VD_MUST_USE vd_status vd_audit_next(vd_audit *audit, vd_audit_state *state, vd_outgoing *out,
                                    vd_err *err);
void vd_audit_answer(vd_audit *audit, const void *note, size_t size);
void vd_audit_no_answer(vd_audit *audit, const char *why);
/* The value of the beacon, once it is known. */
VD_MUST_USE vd_status vd_audit_beacon(vd_audit *audit, const void *value, size_t size, vd_err *err);

const vd_audit_result *vd_audit_results(const vd_audit *audit);
/* Crumbs, seams and leaves of whole nodes done of those that are known so far. */
void vd_audit_progress(const vd_audit *audit, uint64_t *done, uint64_t *of);
/* Is a crumb being looked at? Else what leads to all crumbs of a step. */
bool vd_audit_is_at_crumb(const vd_audit *audit);
/* What the provider states of its machine. */
const vd_pace *vd_audit_pace(const vd_audit *audit);
/* FRAUD: the referee that convicts, and the place. */
const vd_referee *vd_audit_referee(const vd_audit *audit);
const vd_crumb *vd_audit_place(const vd_audit *audit);

#endif
