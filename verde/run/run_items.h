/* Runs all programs of a collection into DIR/prompts/KEY; writes DIR/run.json,
 * DIR/results.jsonl. */
#ifndef VD_RUN_ITEMS_H
#define VD_RUN_ITEMS_H

#include "verde/exec/item_pack.h"
#include "verde/run/answers.h"
#include "verde/run/results.h"

enum {
    VD_TOGETHER = 8,        /* default number of prompts that run together */
    VD_TOGETHER_ROWS = 128, /* tokens of prompts that a pass reads besides those that it makes */
};

/* Progress of the collection. */
typedef struct {
    uint32_t ended;        /* number of prompts that have ended */
    int64_t made;          /* tokens made by this process, or steps where prompts make no tokens */
    int64_t found, passed; /* steps found on disk; other steps, also of stopped prompts */
    int64_t void_choices;  /* of `made`: tokens that do not follow from their logits (choice.h) */
    bool alone;            /* prompts run one after the other; these members are used then: */
    uint32_t at;           /* index of the current prompt */
    int64_t step, steps;
} vd_items_progress;

typedef struct {
    vd_loaded *loaded; /* its context computes; its program and data change from item to item */
    const char *dir;
    vd_items *items; /* keys and programs; run roots are filled in */
    /* Loads an item: sets loaded->program, loaded->placed and their parts of exec, after
     * vd_items_drop has freed the previous ones. */
    vd_status (*load)(void *user, uint32_t item, vd_err *err);
    uint32_t own_data; /* number of an item's own data tensors, which come first */
    bool answers;      /* writes DIR/answers if programs have answers */
    bool makes_tokens; /* programs may run together, as batch.h requires */
    uint32_t together; /* how many run together, 1 or more */
    const char *fault; /* of item `faulty`; NULL: no fault */
    uint32_t faulty;
    void (*progress)(void *user, const vd_items_progress *progress);
    void *user;
    /* Results: */
    vd_score_sum sum;
    bool idle; /* the fault changed nothing */
} vd_items_run;

/* Runs all items, or goes on with those in DIR, for which vd_items_begin was called. Until all have
 * ended, the lines of results.jsonl are in results.jsonl.part. */
VD_MUST_USE vd_status vd_run_items(vd_items_run *run, vd_err *err);
/* Sets `faulty` and `fault` from "KEY/KIND...", or "KIND..." for the first item. */
VD_MUST_USE vd_status vd_items_fault(vd_items_run *run, const char *fault, vd_err *err);
/* Returns whether the program has the leaves of one that makes tokens. */
bool vd_program_makes_tokens(const vd_program *program);
/* Frees the program and the data of the item that was loaded. */
void vd_items_drop(vd_loaded *loaded);

/* ---- run_together.c: items that run together in a batch ---- */

/* Input of vd_run_together, and callbacks for its progress. */
typedef struct {
    const vd_items_run *run;
    /* Gets the increase of made, found, passed and void_choices since the last call; and
     * `ended`. */
    void (*made)(void *user, const vd_items_progress *more);
    /* An item ended, with this last state and run root. */
    vd_status (*ended)(void *user, uint32_t item, const vd_program *program, const vd_state *state,
                       const vd_hash *run_root, vd_err *err);
    /* An item's program cannot run together with the others; it was not started. */
    void (*refused)(void *user, uint32_t item, const char *why);
    void *user;
} vd_together;
VD_MUST_USE vd_status vd_run_together(const vd_together *t, vd_err *err);

#endif
