/* The folder of a collection: DIR/run.json lists the programs and the run roots, and
 * DIR/prompts/KEY has the run of each. */
#ifndef VD_ITEMS_H
#define VD_ITEMS_H

#include "verde/commit/collection.h"
#include "verde/graph/graph.h"

typedef struct {
    uint32_t count;
    int64_t *key;      /* of each item; no two are equal */
    vd_hash *program;  /* its hash */
    vd_hash *run_root; /* if the item is done */
    bool *done;
    bool *delivered; /* somebody else delivered the run root; the run is not here */
} vd_items;

/* Makes zeroed items. */
VD_MUST_USE vd_status vd_items_create(uint32_t count, vd_items *out, vd_err *err);
void vd_items_free(vd_items *items);

/* Returns whether the directory is such a folder. */
bool vd_items_are_in(const char *dir);
/* Starts a folder, or checks that it has the same items. VD_ERR_USAGE: it has something else. */
VD_MUST_USE vd_status vd_items_begin(const char *dir, const vd_items *items, vd_err *err);
/* Writes DIR/run.json. */
VD_MUST_USE vd_status vd_items_save(const char *dir, const vd_items *items, vd_err *err);
/* VD_ERR_USAGE: there is no such folder. VD_ERR_PEER: it is damaged, or its root is wrong. */
VD_MUST_USE vd_status vd_items_load(const char *dir, vd_items *out, vd_err *err);

/* NAME of a leaf `answer.NAME`, a result of a program of batches; NULL: it is another leaf. */
const char *vd_answer_name(const vd_leaf *leaf);
bool vd_program_answers(const vd_program *program); /* whether it has such a leaf */

bool vd_items_all_here(const vd_items *items); /* no run root was delivered */
bool vd_items_all_done(const vd_items *items);
/* Computes the root over all run roots; all items must be done. */
VD_MUST_USE vd_status vd_items_job_root(const vd_items *items, vd_hash *out, vd_err *err);
/* Writes DIR/prompts/KEY. DIR has at most 900 bytes. */
void vd_items_path(char path[1024], const char *dir, int64_t key);

#endif
