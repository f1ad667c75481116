/* A download of the results of a job with prompts: OUT/results.jsonl, made here of what the job
 * root proves, and OUT/results.proof, which proves it. */
#ifndef VD_FETCHING_ITEMS_H
#define VD_FETCHING_ITEMS_H

#include "verde/client/fetching.h"
#include "verde/delivery/download_items.h"
#include "verde/run/item_lines.h"

/* Empty to begin with. */
typedef struct {
    const vd_fetch_options *o; /* `run_root` is the job root, `program` the collection hash */
    vd_item_lines made;        /* of the records so far */
    char root_text[2 * VD_HASH_SIZE + 1], part[1100]; /* the file that has arrived */
    int fd;                                           /* of it; -1: none */
    uint64_t at, found; /* bytes of it that are checked; of these, those that were there */
    vd_download *download;
    vd_writer lines;
    bool writes;
    double start, told;
    vd_err *err;
} vd_item_fetching;

/* Can results be written to OUT? For who begins long work before it downloads. */
VD_MUST_USE vd_status vd_fetch_items_check(const char *out, bool force, vd_err *err);
/* Borrows the options and the job (vd_load_prompts) until vd_item_fetching_free. */
VD_MUST_USE vd_status vd_fetch_items(const vd_fetch_options *options, vd_loaded *job,
                                     vd_item_fetching *out, vd_err *err);
json_t *vd_fetch_items_json(const vd_item_fetching *fetching); /* for --json */
void vd_fetch_items_text(const vd_item_fetching *fetching);    /* for people */
void vd_item_fetching_free(vd_item_fetching *fetching);

#endif
