/* `verde audit JOB --provider URL`: audits one provider over the network. */
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
    const char *beacon_source, *beacon; /* the beacon, NULL: drawn here; its value's file or "-" */
    const char *work;                   /* folder for intervals that are executed again */
    long beacon_round, steps, crumbs, intervals, patience_s, step_s_max;
    bool force, all;
    bool anew;       /* discard the journal of an audit that was stopped */
    bool accepted;   /* the provider has taken the job from this key: a refusal is no mistake */
    json_t **report; /* receives the report instead of standard output; or NULL */
    vd_common common;
} vd_audit_arguments;

/* The values of an audit without options. */
#define VD_AUDIT_DEFAULTS                                                                          \
    .patience_s = VD_PATIENCE_S, .beacon_round = -1, .steps = VD_AUDIT_STEPS,                      \
    .crumbs = VD_AUDIT_CRUMBS
/* Runs the whole audit. *root becomes the run root of a provider that passes. */
vd_exit vd_audit_run(const vd_audit_arguments *arguments, vd_hash *root);

/* The cost of the crumbs of one operator; kind -1: of seams. */
typedef struct {
    int64_t kind;
    uint64_t crumbs, bytes, most_bytes;
    double cpu, most_cpu; /* seconds */
} vd_kind_cost;

typedef struct {
    vd_kind_cost *list; /* owned */
    uint32_t count;
    uint64_t crumbs; /* of all kinds together */
    uint64_t bytes;  /* when the current crumb began */
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
    vd_buf beacon;                /* the value, once known */
    vd_drawn_interval *again;     /* intervals to execute again; owned */
    uint32_t again_count, passed; /* `passed`: number that are right */
    vd_referee *referee;          /* if an interval convicts: the referee, */
    vd_crumb place;               /* and the place */
    char why[300];                /* what is wrong, if the crumbs had passed */
    vd_court_journal journal;
    vd_minutes mark;        /* journal up to here is kept: bytes and seal only */
    size_t secrets_read;    /* entries of the opened journal already searched */
    uint64_t passed_crumbs; /* number of places that are right */
    bool begun, heard;      /* an assignment exists; the provider has signed a statement */
    vd_cost cost;
    vd_kind_costs costs;
    bool proven; /* the proof of fraud was written */
    uint32_t questions;
    double start, told;
    double progress_told; /* vd_seconds() of the last report; 0: never */
    double pace_at;       /* vd_seconds() since when the rate is measured, */
    uint64_t pace_done;   /* and the places done by then */
    vd_err *err;
} vd_auditing;

/* audit_provider.c: loads the job and has the provider commit to its run and reveal it, without a
 * journal. vd_audit_part frees everything but the job. */
VD_MUST_USE vd_status vd_audit_meet(vd_auditing *x);
void vd_audit_part(vd_auditing *x);
/* audit_provider_again.c: opens a line for single questions about the revealed run. */
VD_MUST_USE vd_status vd_audit_open_line(vd_auditing *x, vd_audit_line *line);

/* audit_provider_ask.c: puts one question, repeatedly, until it is answered or time is over: then
 * *answered is false and reply->why says why. The reply is borrowed until the next question. */
VD_MUST_USE vd_status vd_audit_put(vd_auditing *x, const vd_outgoing *question, vd_reply *reply,
                                   bool *answered);

/* audit_provider_again.c: executes the drawn intervals, or all of the run, after the crumbs. Sets
 * x->state, and x->referee and x->place if one convicts. */
VD_MUST_USE vd_status vd_audit_again(vd_auditing *x);

/* audit_provider_beacon.c: waits for a file (standard input for "-") and appends its value. */
VD_MUST_USE vd_status vd_beacon_read(const char *path, vd_buf *out, vd_err *err);
/* Waits for the beacon's value of the audit. */
VD_MUST_USE vd_status vd_audit_take_beacon(vd_auditing *x);

/* audit_provider_journal.c: opens the journal beside the proof. *found: it is of this audit, and
 * its assignment was taken. Otherwise x makes a new one, which _begin writes. */
VD_MUST_USE vd_status vd_audit_journal_open(vd_auditing *x, bool *found);
VD_MUST_USE vd_status vd_audit_journal_begin(vd_auditing *x);
/* `ended`: there is a result, and the journal is not needed any more. */
void vd_audit_journal_close(vd_auditing *x, bool ended);
VD_MUST_USE vd_status vd_audit_note_reply(vd_auditing *x, const vd_outgoing *question,
                                          const vd_reply *reply, bool answered);
VD_MUST_USE vd_status vd_audit_note_beacon(vd_auditing *x);
VD_MUST_USE vd_status vd_audit_note_passed(vd_auditing *x, uint64_t count);
VD_MUST_USE vd_status vd_audit_note_executed(vd_auditing *x, uint32_t count);
/* Read the journal: the answer to a question, which is passed to the audit; the beacon's value; how
 * many places, and how many intervals, are right. */
bool vd_audit_recall(vd_auditing *x, const vd_outgoing *question);
bool vd_audit_recall_beacon(vd_auditing *x);
uint64_t vd_audit_known(const vd_auditing *x);
uint64_t vd_audit_known_intervals(const vd_auditing *x);
/* A vd_audit_options.random; `user` is the vd_auditing. */
VD_MUST_USE vd_status vd_audit_secret(void *user, uint64_t crumb, uint8_t bytes[VD_HASH_SIZE],
                                      vd_err *err);

/* audit_provider_cost.c: _begin starts counting a crumb's cost, _add assigns it to this place. */
void vd_audit_cost_begin(vd_auditing *x);
void vd_audit_cost_add(vd_auditing *x, const vd_crumb *place);
json_t *vd_audit_costs_json(const vd_auditing *x);
void vd_audit_costs_tell(vd_buf *out, const vd_auditing *x);

/* audit_provider_report.c */
void vd_audit_report(const vd_auditing *x);

/* audit_provider_odds.c: the probability of finding some kinds of cheats. */
typedef struct {
    const char *name, *cheat; /* for machines; for people */
    double share;             /* of elements or steps; 0: of neither */
    double found;             /* a lower bound of the probability */
} vd_odds;
enum { VD_ODDS = 9 };
void vd_audit_odds(const vd_program *program, const vd_audit_result *result, vd_odds odds[VD_ODDS]);

#endif
