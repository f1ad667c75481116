/* The layout of a journal's file. Private to journal.c and journal_read.c. */
#ifndef VD_JOURNAL_INTERNAL_H
#define VD_JOURNAL_INTERNAL_H

#include "verde/exec/journal.h"

#define VD_JOURNAL_MAGIC "verde journal"
#define VD_JOURNAL_TAG   "verde/journal/1"

enum {
    VD_JOURNAL_HEADER_BYTES = sizeof VD_JOURNAL_MAGIC + 2 + VD_HASH_SIZE,
    VD_JOURNAL_HEAD_BYTES = 8 + 8 + VD_HASH_SIZE + 4,               /* before the list of writes */
    VD_JOURNAL_WRITE_BYTES = 4 + 8 + 8,                             /* one entry of this list */
    VD_JOURNAL_RECORD_BYTES = VD_JOURNAL_HEAD_BYTES + VD_HASH_SIZE, /* a record without writes */
};

void vd_journal_header(const vd_hash *program_hash, vd_buf *out);
/* Appends a record to the list in memory. False: out of memory. */
bool vd_journal_note(vd_journal *j, uint64_t at, const vd_hash *S);
/* Fails with the text of errno. */
vd_status vd_journal_fail(const vd_journal *j, const char *verb, vd_err *err);

#endif
