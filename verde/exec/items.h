/* The folder of a job with many programs: DIR/run.json, which names them and has the root
 * of each one's run, and a run of each in DIR/prompts/KEY. */
#ifndef VD_ITEMS_H
#define VD_ITEMS_H

#include "verde/commit/collection.h"
#include "verde/graph/graph.h"

typedef struct {
    uint32_t count;
    int64_t *key;      /* of each item, none of them twice */
    vd_hash *program;  /* its hash */
    vd_hash *run_root; /* of its run, if it is done */
    bool *done;
    bool *delivered; /* its run is not here: run_root is what somebody else delivered */
} vd_items;

/* Zeros, with room for so many. */
VD_MUST_USE vd_status vd_items_create(uint32_t count, vd_items *out, vd_err *err);
void vd_items_free(vd_items *items);

/* Is the directory such a folder? */
bool vd_items_are_in(const char *dir);
/* Begins a folder, or finds that it is one of the same items. VD_ERR_USAGE: it holds something
 * else, which stays as it is. */
VD_MUST_USE vd_status vd_items_begin(const char *dir, const vd_items *items, vd_err *err);
/* Writes DIR/run.json. */
VD_MUST_USE vd_status vd_items_save(const char *dir, const vd_items *items, vd_err *err);
/* VD_ERR_USAGE: there is no such folder. VD_ERR_PEER: it is broken, or its roots do not give the
 * root that it names. */
VD_MUST_USE vd_status vd_items_load(const char *dir, vd_items *out, vd_err *err);

/* NAME of a leaf `answer.NAME`, which is what a program of answers results in; NULL: another one.
 */
const char *vd_answer_name(const vd_leaf *leaf);
bool vd_program_answers(const vd_program *program); /* has it such a leaf? */

bool vd_items_all_here(const vd_items *items); /* no run root is somebody else's */
bool vd_items_all_done(const vd_items *items);
/* The root over all run roots, which must be there. */
VD_MUST_USE vd_status vd_items_job_root(const vd_items *items, vd_hash *out, vd_err *err);
/* DIR/prompts/KEY; DIR has at most 900 bytes. */
void vd_items_path(char path[1024], const char *dir, int64_t key);

#endif
