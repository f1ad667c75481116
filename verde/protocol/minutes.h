/* The journal of a dispute, or an audit: what a referee asked, what it heard and when it gave up,
 * so that one that was killed goes on where it was. No files: whoever has one appends what is made
 * here, and hands over what it read. PROTOCOL.md section 8.8.
 *
 * The file begins with the string "verde dispute", a zero byte and u16 version 1. Frames follow,
 * integers in them little-endian:
 *
 *     u64 size       bytes of entries
 *     u64            its complement
 *     entries
 *     hash           H("verde/dispute/1", the hash of the frame before (zeros), size, entries)
 *
 * An entry: u8 kind; u32 provider; hash of the question; u64 microseconds; u32 size; bytes. A frame
 * that the end of the file cuts short, or a last one that does not fit its hash, was being written
 * when the machine stopped, and is left out. All else that does not fit is damage. */
#ifndef VD_MINUTES_H
#define VD_MINUTES_H

#include "verde/commit/commit.h"
#include "verde/protocol/limits.h"

#define VD_MINUTES_BYTES_MAX ((uint64_t)64 << 30) /* file: all games of all verdicts, and more */

typedef enum {
    VD_NOTED_ASSIGNMENT = 1, /* bytes: its note. The first entry, and no other */
    VD_NOTED_QUESTION,       /* before it is sent; bytes: its note */
    VD_NOTED_CLOCK,          /* microseconds that its answer has taken so far */
    VD_NOTED_ANSWER,         /* the same, to its end; bytes: the statement */
    VD_NOTED_ABSENT,         /* the same; bytes: what the referee saw instead */
    /* of an audit alone: PROTOCOL.md section 13.9 */
    VD_NOTED_PLAN,   /* bytes: what is looked at, as text; behind the assignment */
    VD_NOTED_SECRET, /* before a question has its hash; bytes: it. Microseconds: number of the crumb
                        whose long fold it draws, from 1; else 0 */
    VD_NOTED_BEACON, /* bytes: its value */
    VD_NOTED_PASSED, /* microseconds: so many crumbs are right */
    VD_NOTED_EXECUTED, /* microseconds: so many intervals, executed again, are right */
    VD_NOTED_KINDS,
} vd_noted_kind;

typedef struct {
    vd_noted_kind kind;
    uint32_t provider; /* 0 of an assignment, whose question is zeros */
    vd_hash question;
    uint64_t used_us;
    const uint8_t *bytes; /* borrowed */
    size_t size;
} vd_noted;

/* All zeros: a journal that is to be begun. */
typedef struct {
    vd_noted *noted; /* what was read, in order; owned. Its bytes lie in what it was read from */
    size_t count, capacity;
    uint64_t whole; /* bytes of whole frames: those read, and those made since */
    vd_hash seal;   /* of the last frame */
} vd_minutes;

/* `bytes` are borrowed as long as *out is used. VD_ERR_USAGE: it is damaged, and where. */
VD_MUST_USE vd_status vd_minutes_read(const void *bytes, size_t size, vd_minutes *out, vd_err *err);
void vd_minutes_free(vd_minutes *minutes);

/* Appends the bytes of a frame to *out, with the file's beginning before the first one. They are to
 * be on disk before anything comes of them. VD_ERR_LOCAL: the file would be too large. */
VD_MUST_USE vd_status vd_minutes_frame(vd_minutes *minutes, const vd_noted *noted, size_t count,
                                       vd_buf *out, vd_err *err);

#endif
