/* Signed notes beside a log: a trainer's statements about its own log. PROTOCOL.md section 12.3. */
#ifndef VD_LOG_NOTE_H
#define VD_LOG_NOTE_H

#include "verde/log/log.h"

enum { VD_LOG_NOTE_MAX = 4096 }; /* bytes */

/* A note's statement: in this run of mine, the steps between the checkpoint at `step` and the one
 * before have the log root `logs`. */
typedef struct {
    vd_hash program, run, logs;
    int64_t step;
} vd_log_claim;

VD_MUST_USE vd_status vd_log_note_sign(const vd_key *key, const vd_log_claim *claim, vd_buf *out,
                                       vd_err *err);
/* Opens a note. VD_ERR_PEER: it is not of this key, kind and version. */
VD_MUST_USE vd_status vd_log_note_open(const void *note, size_t size, const vd_public_key *key,
                                       vd_log_claim *out, vd_err *err);

/* Writes DIR/log/note-00000012.json for the checkpoint at a step. */
VD_MUST_USE vd_status vd_log_note_save(const char *dir, int64_t step, const vd_buf *note,
                                       vd_err *err);
/* Reads that file. VD_ERR_IO: there is none, or it cannot be read. */
VD_MUST_USE vd_status vd_log_note_load(const char *dir, int64_t step, vd_buf *out, vd_err *err);

#endif
