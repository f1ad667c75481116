/* A download from beginning to end, as `verde fetch` and `verde delegate` make it. */
#ifndef VD_FETCHING_H
#define VD_FETCHING_H

#include "verde/client/fetched.h"
#include "verde/run/item_lines.h"

typedef struct {
    const char *out;
    bool force;
    vd_hash run_root;
    const vd_hash *program; /* that it must be of, by its hash, and whose it is; NULL: any */
    const char *program_of;
    vd_loaded *job; /* gives names of transformers, or programs with prompts; NULL: none */
    const vd_endpoint *provider;
    uint32_t provider_count;
    const uint32_t *number; /* what people call each of them; NULL: 1, 2, ... */
    const char *ca;
    const char *id;    /* of the job at a daemon; NULL: the run root stands for it */
    const vd_key *key; /* signs the requests; NULL: they are unsigned */
    int connections, patience_s;
} vd_fetch_options;

/* Empty to begin with. */
typedef struct {
    const vd_fetch_options *o;
    bool many; /* the job has prompts, even if it is one: results, else a model */
    char root_text[2 * VD_HASH_SIZE + 1];
    vd_download *download;
    vd_fetched model;
    vd_download_progress progress;
    double told;
    uint64_t told_done; /* bytes, in the last line */
    bool has_config, has_losses;
    uint32_t losses_by;
    /* OUT/results.jsonl, made here of what the job root proves, and OUT/results.proof. */
    vd_item_lines made; /* of the records so far */
    char part[1100];    /* the file that has arrived */
    int fd;             /* of it; -1: none */
    uint64_t at, found; /* bytes of it that are checked; of these, those that were there */
    vd_writer lines;
    bool writes;
    vd_ticker ticker;
    vd_err *err;
} vd_fetching;

/* Can a model, or results, be written to OUT? For who begins long work before it downloads. */
VD_MUST_USE vd_status vd_fetch_check(const char *out, bool many, bool force, vd_err *err);
/* Borrows the options and their job until vd_fetching_free. Of a job with prompts `run_root` is the
 * job root, and `program` the collection hash. */
VD_MUST_USE vd_status vd_fetch(const vd_fetch_options *options, vd_fetching *out, vd_err *err);
json_t *vd_fetch_json(const vd_fetching *fetching); /* for --json */
void vd_fetch_text(const vd_fetching *fetching);    /* for people */
void vd_fetching_free(vd_fetching *fetching);

/* ---- fetching_items.c: of a job with prompts; for fetching.c alone ---- */

VD_MUST_USE vd_status vd_fetch_items_check(const char *out, bool force, vd_err *err);
VD_MUST_USE vd_status vd_fetch_items(vd_fetching *fetching);
json_t *vd_fetch_items_json(const vd_fetching *fetching);
void vd_fetch_items_text(vd_buf *out, const vd_fetching *fetching);
void vd_fetch_items_free(vd_fetching *fetching);
/* Makes fetching->download; `progress` may be NULL. */
VD_MUST_USE vd_status vd_fetch_download(vd_fetching *fetching, int connections,
                                        void (*progress)(void *user,
                                                         const vd_download_progress *progress));
json_t *vd_fetch_providers(const vd_fetching *fetching);

#endif
