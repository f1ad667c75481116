/* A journal: what each step of a run wrote of its state, appended to DIR/journal as it is computed,
 * so that a run whose states change a little at a time need not write whole ones. From an image of
 * one state it leads to any later one. Private to verde/exec.
 *
 * The file has a header of the string "verde journal", a zero byte, u16 version 1 and the program's
 * hash, and then a record for each step from 0 on (the state S_0 counts as what a step wrote into
 * zeros). Integers are little-endian. A record:
 *
 *     u64 size      bytes of the record, with these
 *     u64 step      of the state that was written
 *     hash          S of that state
 *     u32 count     of what was written
 *     count times   u32 leaf, u64 from, u64 size: bytes [from, from + size) of a leaf's tensor
 *     bytes         what was written there, one after the other
 *     hash          H("verde/journal/1", everything before)
 *
 * A record that the end of the file cuts short, or that does not fit its hash, was being written
 * when the machine stopped: it and what follows are dropped. Who knows that a record was on disk
 * already, because an image came after it, says so, and then this is an error. */
#ifndef VD_JOURNAL_H
#define VD_JOURNAL_H

#include "verde/exec/live.h"

enum {
    VD_JOURNAL_VERSION = 1,
    VD_JOURNAL_WRITES_MAX = 1 << 19, /* of one record: two for each leaf that a state may have */
    VD_IMAGE_STEPS = 256,            /* from one image of a state to the next, in such a run */
};

typedef struct {
    uint64_t at;   /* where the record begins */
    vd_hash state; /* S */
} vd_journal_step;

typedef struct {
    int fd; /* -1: closed */
    char path[1024];
    const vd_program *program; /* borrowed */
    uint64_t size;             /* bytes of whole records, with the header */
    vd_journal_step *step;     /* of each record; owned */
    int64_t count, capacity;
} vd_journal;

/* Begins an empty one, in place of what is there. */
VD_MUST_USE vd_status vd_journal_create(const char *dir, const vd_program *program,
                                        const vd_hash *program_hash, vd_journal *out, vd_err *err);
/* Reads one, and cuts off its torn end. `synced` records at least were on disk. VD_ERR_IO: there is
 * no journal. VD_ERR_USAGE: it is another program's, or one of those records is damaged. */
VD_MUST_USE vd_status vd_journal_open(const char *dir, const vd_program *program,
                                      const vd_hash *program_hash, int64_t synced, vd_journal *out,
                                      vd_err *err);
void vd_journal_close(vd_journal *journal); /* harmless twice, and to zeros */

/* Appends the record of state->step, which must be the next one; S is that state's. */
VD_MUST_USE vd_status vd_journal_put(vd_journal *journal, const vd_state *state, const vd_hash *S,
                                     const vd_written *written, uint32_t count, vd_err *err);
VD_MUST_USE vd_status vd_journal_sync(vd_journal *journal, vd_err *err);
/* Forgets the records from `count` on. */
VD_MUST_USE vd_status vd_journal_cut(vd_journal *journal, int64_t count, vd_err *err);

/* Brings a state in host memory, of step -1 (all zeros) or of any step before, to step `to`. *err
 * names what does not fit if the file has changed since it was opened. */
VD_MUST_USE vd_status vd_journal_apply(const vd_journal *journal, int64_t to, vd_state *state,
                                       vd_err *err);

/* ---- journal_state.c: with the images beside it ---- */

/* Does a journal lie there? */
bool vd_journal_is_in(const char *dir);
/* The state of a step, in host memory, compared with its commitment; images are named as
 * vd_store_save_state names them. VD_ERR_IO: the journal does not lead there. */
VD_MUST_USE vd_status vd_journal_state(ro_ctx *ro, const char *dir, const vd_journal *journal,
                                       const vd_hash *program_hash, int64_t step, vd_state *out,
                                       vd_err *err);

#endif
