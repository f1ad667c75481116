/* A model that is being downloaded: OUT/partial holds its files, under the names and with the bytes
 * that they will have, until all of them are whole. */
#ifndef VD_FETCHED_H
#define VD_FETCHED_H

#include "verde/delivery/download.h"
#include "verde/load/export.h"

typedef struct {
    const char *out;
    bool force;
    char partial[1024];
    int lock;     /* of the folder, as long as it is used; -1: not taken */
    bool resumed; /* an earlier download began here */
    vd_state_proof proof;
    vd_export_row *row;
    uint32_t row_count;
    vd_weight_out *tensor; /* of each row, sorted; `data` is the row */
    vd_weights_plan plan;
    vd_target *target; /* of each tensor */
    int *fd;           /* of each file */
    int laid_fd;       /* of what lies otherwise in files than in the state; -1: nothing does */
    uint64_t laid_bytes;
    char (*path)[1100]; /* of each file, and of the laid ones */
} vd_fetched;

/* Can a model be written to OUT? VD_ERR_USAGE: a model or a run lies there already, and it is not
 * forced to. For what is written after long work. */
VD_MUST_USE vd_status vd_fetched_check(const char *out, bool force, vd_err *err);
/* Takes OUT and OUT/partial. VD_ERR_USAGE: a model or a run lies there already. */
VD_MUST_USE vd_status vd_fetched_begin(vd_fetched *f, vd_err *err);
/* The proof of an earlier download, if it leads to this root; *found is false if not. */
VD_MUST_USE vd_status vd_fetched_proof(vd_fetched *f, const vd_hash *run_root, bool *found,
                                       vd_err *err);
VD_MUST_USE vd_status vd_fetched_keep_proof(const vd_fetched *f, const vd_buf *text, vd_err *err);
/* With f->proof: which files there will be, opened, with their headers. `config`: as
 * vd_export_rows. */
VD_MUST_USE vd_status vd_fetched_open(vd_fetched *f, const vd_buf *config, vd_err *err);
/* All targets are filled: gives the files their names, proof.json last. */
VD_MUST_USE vd_status vd_fetched_finish(vd_fetched *f, bool has_config, vd_err *err);
/* After an error: takes away what was made, if nothing has been downloaded. */
void vd_fetched_abandon(const vd_fetched *f);
void vd_fetched_free(vd_fetched *f);

/* losses.jsonl, which anybody may have written, as a table: step, loss, lr, grad_norm, tokens or
 * images, seconds, evaluation, accuracy. VD_ERR_PEER: it is none. */
VD_MUST_USE vd_status vd_losses_csv(const void *text, size_t size, vd_buf *out, vd_err *err);

#endif
