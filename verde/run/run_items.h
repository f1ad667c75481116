/* Runs all programs of a job with many, each into DIR/prompts/KEY, and what comes of them:
 * DIR/run.json and DIR/results.jsonl. */
#ifndef VD_RUN_ITEMS_H
#define VD_RUN_ITEMS_H

#include "verde/exec/item_pack.h"
#include "verde/run/answers.h"
#include "verde/run/results.h"

enum {
    VD_TOGETHER = 8,        /* prompts that run together if nobody says how many */
    VD_TOGETHER_ROWS = 128, /* tokens of prompts that a pass takes in beside those that it makes */
};

/* How far it is. */
typedef struct {
    uint32_t ended; /* prompts */
    int64_t made;   /* tokens that this process has made, or steps of prompts that make none */
    int64_t found, passed; /* steps that were on disk; those since, of stopped prompts too */
    int64_t void_choices;  /* of `made`: tokens that do not follow from their logits (choice.h) */
    bool alone;            /* prompts run one after the other; then also: */
    uint32_t at;           /* the one that runs */
    int64_t step, steps;
} vd_items_progress;

typedef struct {
    vd_loaded
        *loaded; /* its context computes; program and data become those of one item or other */
    const char *dir;
    vd_items *items; /* keys and programs; run roots are filled in */
    /* Makes loaded->program, loaded->placed and what exec has of them those of an item, after the
     * ones before were dropped (vd_items_drop). */
    vd_status (*load)(void *user, uint32_t item, vd_err *err);
    uint32_t own_data; /* data tensors that each item has for itself; they come first */
    bool answers;      /* DIR/answers is wanted, if programs answer */
    bool makes_tokens; /* programs may run together, as batch.h wants them */
    uint32_t together; /* at a time, 1 or more */
    const char *fault; /* in item `faulty`; NULL: none */
    uint32_t faulty;
    void (*progress)(void *user, const vd_items_progress *progress);
    void *user;
    /* Filled in. */
    vd_score_sum sum;
    bool idle; /* the fault changed nothing */
} vd_items_run;

/* Goes on with what lies in DIR, which vd_items_begin was told of. Until all is there, the lines of
 * results.jsonl are in results.jsonl.part. */
VD_MUST_USE vd_status vd_run_items(vd_items_run *run, vd_err *err);
/* "KEY/KIND..." or "KIND...", which is about the first: `faulty` and `fault`. */
VD_MUST_USE vd_status vd_items_fault(vd_items_run *run, const char *fault, vd_err *err);
/* Has it the leaves of a program that makes tokens? */
bool vd_program_makes_tokens(const vd_program *program);
/* Frees the program and the data of the item that was loaded. */
void vd_items_drop(vd_loaded *loaded);

/* ---- run_together.c: by the batch's executor ---- */

/* What vd_run_together runs, and the callbacks by which it tells of progress. */
typedef struct {
    const vd_items_run *run;
    /* made, found, passed and void_choices since the call before, and `ended`. */
    void (*made)(void *user, const vd_items_progress *more);
    /* An item has ended: its last state, and its run's root. */
    vd_status (*ended)(void *user, uint32_t item, const vd_program *program, const vd_state *state,
                       const vd_hash *run_root, vd_err *err);
    /* An item's program cannot run beside those of the others; it was not begun. */
    void (*refused)(void *user, uint32_t item, const char *why);
    void *user;
} vd_together;
VD_MUST_USE vd_status vd_run_together(const vd_together *t, vd_err *err);

#endif
