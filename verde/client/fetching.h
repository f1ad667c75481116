/* A download from beginning to end, as `verde fetch` and `verde delegate` make it. */
#ifndef VD_FETCHING_H
#define VD_FETCHING_H

#include "verde/client/fetched.h"

typedef struct {
    const char *out;
    bool force;
    vd_hash run_root;
    const vd_hash *program; /* that it must be of, by its hash, and whose it is; NULL: any */
    const char *program_of;
    const vd_loaded *job; /* gives names of transformers; NULL: none */
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
    char root_text[2 * VD_HASH_SIZE + 1];
    vd_fetched model;
    vd_download *download;
    vd_download_progress progress;
    double told;
    uint64_t told_done; /* bytes, in the last line */
    bool has_config, has_losses;
    uint32_t losses_by;
    vd_err *err;
} vd_fetching;

/* Borrows the options until vd_fetching_free. */
VD_MUST_USE vd_status vd_fetch(const vd_fetch_options *options, vd_fetching *out, vd_err *err);
json_t *vd_fetch_json(const vd_fetching *fetching); /* for --json */
void vd_fetch_text(const vd_fetching *fetching);    /* for people */
void vd_fetching_free(vd_fetching *fetching);

/* What all downloads say. */
void vd_fetch_line(void *user, const char *line); /* vd_download_options.tell */
json_t *vd_fetch_providers(const vd_fetch_options *options, const vd_download *download);
void vd_fetch_print_providers(vd_buf *out, const vd_fetch_options *options,
                              const vd_download *download);

#endif
