/* `verde audit JOB --provider URL`: an audit of one provider, over the network. */
#ifndef VD_AUDIT_PROVIDER_H
#define VD_AUDIT_PROVIDER_H

#include "verde/client/arbitrate_journal.h"
#include "verde/client/arbitrate_post.h"
#include "verde/load/load.h"
#include "verde/protocol/audit.h"
#include "verde/protocol/audit_line.h"
#include "verde/protocol/verdict.h"

enum {
    VD_AUDIT_STEPS = 8,
    VD_AUDIT_CRUMBS = 3000,
    VD_AUDIT_STEPS_MAX = 4096,
    VD_AUDIT_CRUMBS_MAX = 1000000,
    VD_BEACON_VALUE_MAX = 1024, /* bytes */
};

typedef struct {
    const char *job, *prompt, *url, *proof, *key_dir, *ca;
    const char *beacon_source, *beacon; /* NULL: this checker draws; the value's file, or "-" */
    const char *work;                   /* a folder for what is executed again */
    long beacon_round, steps, crumbs, intervals, patience_s, step_s_max;
    bool force, all;
    bool anew;       /* forgets one that was stopped */
    bool accepted;   /* the provider has taken the job from this key: a refusal is no mistake */
    json_t **report; /* gets it, in place of standard output; or NULL */
    vd_common common;
} vd_audit_arguments;

/* What an audit is without options. */
#define VD_AUDIT_DEFAULTS                                                                          \
    .patience_s = VD_PATIENCE_S, .beacon_round = -1, .steps = VD_AUDIT_STEPS,                      \
    .crumbs = VD_AUDIT_CRUMBS
/* All of it; *root becomes the run root of a provider that passes. */
vd_exit vd_audit_run(const vd_audit_arguments *arguments, vd_hash *root);

/* The cost of crumbs of one operator, or of states (kind -1). */
typedef struct {
    int64_t kind;
    uint64_t crumbs, bytes, most_bytes;
    double cpu, most_cpu; /* seconds */
} vd_kind_cost;

typedef struct {
    vd_kind_cost *list; /* owned */
    uint32_t count;
    uint64_t crumbs; /* of all kinds */
    uint64_t bytes;  /* up to the crumb that is being looked at */
    double cpu;
} vd_kind_costs;

typedef struct {
    const vd_audit_arguments *a;
    vd_loaded loaded;
    vd_key *key;
    vd_endpoint endpoint;
    vd_assignment assignment;
    vd_buf payload, note;
    vd_post_office *office;
    vd_audit *audit;
    vd_audit_state state;
    vd_buf beacon;                /* its value, once it is known */
    vd_drawn_interval *again;     /* that are executed again; owned */
    uint32_t again_count, passed; /* so many of them are right */
    vd_referee *referee;          /* that convicts by one of them, */
    vd_crumb place;               /* at this place */
    char why[300];                /* what is wrong with it, where crumbs have passed */
    vd_court_journal journal;
    vd_minutes mark;        /* of the journal: what lasts, its bytes and seal alone */
    size_t secrets_read;    /* of the journal, as it was opened */
    uint64_t passed_crumbs; /* so many are right */
    bool begun, heard;      /* there is an assignment; the provider has signed something */
    vd_cost cost;
    vd_kind_costs costs;
    bool proven; /* the proof of fraud is written */
    uint32_t questions;
    double start, told;
    double progress_told; /* when; 0: never */
    double pace_at;       /* since when the rate is measured, */
    uint64_t pace_done;   /* and what was done by then */
    vd_err *err;
} vd_auditing;

/* audit_provider.c: of a job that is loaded, has the provider commit to its run and reveal it,
 * without a journal; and forgets all but that job. */
VD_MUST_USE vd_status vd_audit_meet(vd_auditing *x);
void vd_audit_part(vd_auditing *x);
/* audit_provider_again.c: single questions, of a run that is revealed. */
VD_MUST_USE vd_status vd_audit_open_line(vd_auditing *x, vd_audit_line *line);

/* audit_provider_ask.c: puts one question, again and again, until there is an answer, or it is too
 * late for one: then *answered is false, and reply->why says why. The reply is borrowed until the
 * next one. */
VD_MUST_USE vd_status vd_audit_put(vd_auditing *x, const vd_outgoing *question, vd_reply *reply,
                                   bool *answered);

/* audit_provider_again.c: after crumbs, executes intervals again, or all of the run. Sets x->state,
 * and what convicts. */
VD_MUST_USE vd_status vd_audit_again(vd_auditing *x);

/* audit_provider_beacon.c: appends the value in a file, which is waited for, or on standard input
 * for "-". */
VD_MUST_USE vd_status vd_beacon_read(const char *path, vd_buf *out, vd_err *err);
/* Waits for the audit's value. */
VD_MUST_USE vd_status vd_audit_take_beacon(vd_auditing *x);

/* audit_provider_journal.c: beside the proof. *found: there is one of this audit, whose assignment
 * is taken; else x has a new one, and _begin notes it. */
VD_MUST_USE vd_status vd_audit_journal_open(vd_auditing *x, bool *found);
VD_MUST_USE vd_status vd_audit_journal_begin(vd_auditing *x);
/* `ended`: there is a result, and nothing to go on with. */
void vd_audit_journal_close(vd_auditing *x, bool ended);
VD_MUST_USE vd_status vd_audit_note_reply(vd_auditing *x, const vd_outgoing *question,
                                          const vd_reply *reply, bool answered);
VD_MUST_USE vd_status vd_audit_note_beacon(vd_auditing *x);
VD_MUST_USE vd_status vd_audit_note_passed(vd_auditing *x, uint64_t count);
VD_MUST_USE vd_status vd_audit_note_executed(vd_auditing *x, uint32_t count);
/* What was noted: the answer to a question, which the audit then has; the beacon's value; how many
 * crumbs, and intervals, are right. */
bool vd_audit_recall(vd_auditing *x, const vd_outgoing *question);
bool vd_audit_recall_beacon(vd_auditing *x);
uint64_t vd_audit_known(const vd_auditing *x);
uint64_t vd_audit_known_intervals(const vd_auditing *x);
/* As vd_audit_options.random; `user` is the vd_auditing. */
VD_MUST_USE vd_status vd_audit_secret(void *user, uint64_t crumb, uint8_t bytes[VD_HASH_SIZE],
                                      vd_err *err);

/* audit_provider_cost.c: from here on what is spent is the next crumb's; and it was this one's. */
void vd_audit_cost_begin(vd_auditing *x);
void vd_audit_cost_add(vd_auditing *x, const vd_crumb *place);
json_t *vd_audit_costs_json(const vd_auditing *x);
void vd_audit_costs_tell(vd_buf *out, const vd_auditing *x);

/* audit_provider_report.c */
void vd_audit_report(const vd_auditing *x);

/* audit_provider_odds.c: how likely it is that a cheat of some kind is found. */
typedef struct {
    const char *name, *cheat; /* for machines; for people */
    double share;             /* of elements, or steps; 0: of neither */
    double found;             /* at least so likely */
} vd_odds;
enum { VD_ODDS = 9 };
void vd_audit_odds(const vd_program *program, const vd_audit_result *result, vd_odds odds[VD_ODDS]);

#endif
