/* A download from beginning to end, as in `verde fetch` and `verde delegate`. */
#ifndef VD_FETCHING_H
#define VD_FETCHING_H

#include "verde/client/fetched.h"
#include "verde/run/item_lines.h"

typedef struct {
    const char *out;
    bool force;
    vd_hash run_root;
    const vd_hash *program; /* hash the program must have, and its file; NULL: any */
    const char *program_of;
    vd_loaded *job; /* for names of transformers, or programs of prompts; or NULL */
    const vd_endpoint *provider;
    uint32_t provider_count;
    const uint32_t *number; /* numbers to show for them; NULL: 1, 2, ... */
    const char *ca;
    const char *id;    /* job's id at a daemon; NULL: the run root is used */
    const vd_key *key; /* signs the requests; NULL: unsigned */
    int connections, patience_s;
} vd_fetch_options;

/* A download. Zeros at first. */
typedef struct {
    const vd_fetch_options *o;
    bool many; /* the job has prompts, even if only one: downloads results, not a model */
    char root_text[2 * VD_HASH_SIZE + 1];
    vd_download *download;
    vd_fetched model;
    vd_download_progress progress;
    double told;
    uint64_t told_done; /* bytes, when last printed */
    bool has_config, has_losses;
    uint32_t losses_by;
    /* OUT/results.jsonl is written here, from what the job root proves, with OUT/results.proof. */
    vd_item_lines made; /* of the records so far */
    char part[1100];    /* the partial file of records */
    int fd;             /* the partial file; -1: none */
    uint64_t at, found; /* bytes of it checked; of these, bytes there before */
    vd_writer lines;
    bool writes;
    vd_ticker ticker;
    vd_err *err;
} vd_fetching;

/* Checks that a model, or results, can be written to OUT, before long work. */
VD_MUST_USE vd_status vd_fetch_check(const char *out, bool many, bool force, vd_err *err);
/* Downloads. The options and their job are borrowed until vd_fetching_free. With prompts `run_root`
 * is the job root, and `program` the collection hash. */
VD_MUST_USE vd_status vd_fetch(const vd_fetch_options *options, vd_fetching *out, vd_err *err);
json_t *vd_fetch_json(const vd_fetching *fetching); /* output of --json */
void vd_fetch_text(const vd_fetching *fetching);    /* prints the result */
void vd_fetching_free(vd_fetching *fetching);

/* ---- fetching_items.c: jobs with prompts; only used by fetching.c ---- */

VD_MUST_USE vd_status vd_fetch_items_check(const char *out, bool force, vd_err *err);
VD_MUST_USE vd_status vd_fetch_items(vd_fetching *fetching);
json_t *vd_fetch_items_json(const vd_fetching *fetching);
void vd_fetch_items_text(vd_buf *out, const vd_fetching *fetching);
void vd_fetch_items_free(vd_fetching *fetching);
/* Creates fetching->download. `progress` may be NULL. */
VD_MUST_USE vd_status vd_fetch_download(vd_fetching *fetching, int connections,
                                        void (*progress)(void *user,
                                                         const vd_download_progress *progress));
json_t *vd_fetch_providers(const vd_fetching *fetching);

#endif
