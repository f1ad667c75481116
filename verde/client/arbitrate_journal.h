/* The journal of a dispute on disk: beside the verdict, of one process. PROTOCOL.md section 8.8. */
#ifndef VD_ARBITRATE_JOURNAL_H
#define VD_ARBITRATE_JOURNAL_H

#include "verde/protocol/minutes.h"

typedef struct {
    int fd; /* -1: closed */
    char path[1100];
    vd_map map; /* what was read */
    vd_minutes minutes;
} vd_court_journal;

/* Opens the file, or makes an empty one where `make`, and reads it. What the last process did not
 * finish writing is cut off. VD_ERR_USAGE: it is damaged, another process has it, or it is not
 * there. */
VD_MUST_USE vd_status vd_court_journal_open(const char *path, bool make, vd_court_journal *out,
                                            vd_err *err);
/* Somebody has signed something in it. */
bool vd_court_journal_has_answers(const vd_court_journal *journal);
/* Forgets all that it holds. */
VD_MUST_USE vd_status vd_court_journal_clear(vd_court_journal *journal, vd_err *err);
/* As vd_world.append. */
VD_MUST_USE vd_status vd_court_journal_append(vd_court_journal *journal, const void *bytes,
                                              size_t size, vd_err *err);
/* The same, but it may be lost with the machine's power. */
VD_MUST_USE vd_status vd_court_journal_write(const vd_court_journal *journal, const void *bytes,
                                             size_t size, vd_err *err);
/* Takes back what was written behind this many bytes. */
VD_MUST_USE vd_status vd_court_journal_cut(const vd_court_journal *journal, uint64_t size,
                                           vd_err *err);
void vd_court_journal_remove(vd_court_journal *journal); /* the file, before it is closed */
void vd_court_journal_close(vd_court_journal *journal);  /* harmless twice */

#endif
