/* The journal of a dispute on disk, open in one process. PROTOCOL.md section 8.8. */
#ifndef VD_ARBITRATE_JOURNAL_H
#define VD_ARBITRATE_JOURNAL_H

#include "verde/protocol/minutes.h"

typedef struct {
    int fd; /* -1: closed */
    char path[1100];
    vd_map map; /* the file as read */
    vd_minutes minutes;
} vd_court_journal;

/* Opens the file, or with `make` creates an empty one, and reads it. An unfinished write of the
 * last process is cut off. VD_ERR_USAGE: it is damaged, in use by another process, or does not
 * exist. */
VD_MUST_USE vd_status vd_court_journal_open(const char *path, bool make, vd_court_journal *out,
                                            vd_err *err);
/* Returns true if the journal has a signed answer. */
bool vd_court_journal_has_answers(const vd_court_journal *journal);
/* Empties the journal. */
VD_MUST_USE vd_status vd_court_journal_clear(vd_court_journal *journal, vd_err *err);
/* A vd_world.append. */
VD_MUST_USE vd_status vd_court_journal_append(vd_court_journal *journal, const void *bytes,
                                              size_t size, vd_err *err);
/* The same, but the bytes may be lost if the power fails. */
VD_MUST_USE vd_status vd_court_journal_write(const vd_court_journal *journal, const void *bytes,
                                             size_t size, vd_err *err);
/* Truncates the file to `size` bytes. */
VD_MUST_USE vd_status vd_court_journal_cut(const vd_court_journal *journal, uint64_t size,
                                           vd_err *err);
void vd_court_journal_remove(vd_court_journal *journal); /* deletes the file; call before closing */
void vd_court_journal_close(vd_court_journal *journal);  /* may be called twice */

#endif
