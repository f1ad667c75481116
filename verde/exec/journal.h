/* A journal: what each step of a run wrote to its state, appended to DIR/journal. So a run whose
 * state changes little per step need not write whole states; the journal leads from an image of one
 * state to any later one. Private to verde/exec.
 *
 * The file has a header of the string "verde journal", a zero byte, u16 version 1 and the program's
 * hash, and then a record for each step from 0 on (S_0 counts as written into zeros). Integers are
 * little-endian. A record:
 *
 *     u64 size      bytes of the record, with these
 *     u64 step      of the state that was written
 *     hash          S of that state
 *     u32 count     of writes
 *     count times   u32 leaf, u64 from, u64 size: bytes [from, from + size) of a leaf's tensor
 *     bytes         the written bytes, in order
 *     hash          H("verde/journal/1", everything before)
 *
 * A record that is cut short or does not match its hash was being written when the machine stopped:
 * it and all after it are dropped. The caller says how many records must be on disk, because an
 * image followed; if one of these is bad, that is an error. */
#ifndef VD_JOURNAL_H
#define VD_JOURNAL_H

#include "verde/exec/live.h"

enum {
    VD_JOURNAL_VERSION = 1,
    VD_JOURNAL_WRITES_MAX = 1 << 19, /* in a record: two for each leaf that a state may have */
    VD_IMAGE_STEPS = 256,            /* between two images of a state */
};

typedef struct {
    uint64_t at;   /* offset of the record */
    vd_hash state; /* S */
} vd_journal_step;

typedef struct {
    int fd; /* -1: closed */
    char path[1024];
    const vd_program *program; /* borrowed */
    uint64_t size;             /* of complete records, with the header */
    vd_journal_step *step;     /* one per record; owned */
    int64_t count, capacity;
} vd_journal;

/* Starts an empty journal, and replaces an existing one. */
VD_MUST_USE vd_status vd_journal_create(const char *dir, const vd_program *program,
                                        const vd_hash *program_hash, vd_journal *out, vd_err *err);
/* Reads a journal, and cuts off an incomplete end; `synced` records must be on disk. VD_ERR_IO:
 * there is none. VD_ERR_PEER: it is another program's, or one of those records is damaged. */
VD_MUST_USE vd_status vd_journal_open(const char *dir, const vd_program *program,
                                      const vd_hash *program_hash, int64_t synced, vd_journal *out,
                                      vd_err *err);
void vd_journal_close(vd_journal *journal); /* may be called twice, and on zeros */

/* Appends the record of state->step, which must be the next one. S is that state's. */
VD_MUST_USE vd_status vd_journal_put(vd_journal *journal, const vd_state *state, const vd_hash *S,
                                     const vd_written *written, uint32_t count, vd_err *err);
VD_MUST_USE vd_status vd_journal_sync(vd_journal *journal, vd_err *err);
/* Drops the records from index `count` on. */
VD_MUST_USE vd_status vd_journal_cut(vd_journal *journal, int64_t count, vd_err *err);

/* Advances a state in host memory, of step -1 (zeros) or any later one, to step `to`. *err says
 * what does not fit if the file has changed since it was opened. */
VD_MUST_USE vd_status vd_journal_apply(const vd_journal *journal, int64_t to, vd_state *state,
                                       vd_err *err);

/* ---- journal_state.c: the journal with its images ---- */

/* Returns whether the directory has a journal. */
bool vd_journal_is_in(const char *dir);
/* Makes the state of a step in host memory, and compares it with its commitment. Images are named
 * as by vd_store_save_state. VD_ERR_IO: the journal does not lead to the state. */
VD_MUST_USE vd_status vd_journal_state(ro_ctx *ro, const char *dir, const vd_journal *journal,
                                       const vd_hash *program_hash, int64_t step, vd_state *out,
                                       vd_err *err);

#endif
