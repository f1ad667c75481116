/* A model that is being downloaded. Until all files are complete, they are in OUT/partial, under
 * their final names and with their final contents. */
#ifndef VD_FETCHED_H
#define VD_FETCHED_H

#include "verde/delivery/download.h"
#include "verde/load/export.h"

typedef struct {
    const char *out;
    bool force;
    char partial[1024];
    int lock;     /* descriptor of the folder's lock; -1: not locked */
    bool resumed; /* an earlier download began here */
    vd_state_proof proof;
    vd_export_row *row;
    uint32_t row_count;
    vd_weight_out *tensor; /* one for each row, sorted; `data` is the row */
    vd_weights_plan plan;
    vd_target *target; /* one for each tensor */
    int *fd;           /* one for each file */
    int laid_fd;       /* tensors whose layout differs between state and files; -1: none */
    uint64_t laid_bytes;
    char (*path)[1100]; /* of each file, and of the one with `laid_fd` */
} vd_fetched;

/* Checks that a model can be written to OUT, before long work. VD_ERR_USAGE: OUT has a model or a
 * run, and `force` is not set. */
VD_MUST_USE vd_status vd_fetched_check(const char *out, bool force, vd_err *err);
/* Makes OUT and OUT/partial, and locks the latter. VD_ERR_USAGE: OUT has a model or a run. */
VD_MUST_USE vd_status vd_fetched_begin(vd_fetched *f, vd_err *err);
/* Reads the proof of an earlier download; *found becomes false if it does not lead to this root. */
VD_MUST_USE vd_status vd_fetched_proof(vd_fetched *f, const vd_hash *run_root, bool *found,
                                       vd_err *err);
VD_MUST_USE vd_status vd_fetched_keep_proof(const vd_fetched *f, const vd_buf *text, vd_err *err);
/* Plans the files by f->proof, opens them and writes their headers. `config`: see
 * vd_export_rows. */
VD_MUST_USE vd_status vd_fetched_open(vd_fetched *f, const vd_buf *config, vd_err *err);
/* When all targets are filled: gives the files their names, proof.json last. */
VD_MUST_USE vd_status vd_fetched_finish(vd_fetched *f, bool has_config, vd_err *err);
/* After an error: deletes what was created, unless something has been downloaded. */
void vd_fetched_abandon(const vd_fetched *f);
void vd_fetched_free(vd_fetched *f);

/* Converts losses.jsonl, which is untrusted, to a table: step, loss, lr, grad_norm, tokens or
 * images, seconds, evaluation, accuracy. VD_ERR_PEER: it is malformed. */
VD_MUST_USE vd_status vd_losses_csv(const void *text, size_t size, vd_buf *out, vd_err *err);

#endif
