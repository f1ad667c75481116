/* The journal of a dispute or an audit: what a referee asked, the answers, and when it gave up
 * waiting, so that a referee that was killed can go on. This code uses no files: the caller reads
 * and appends the bytes. PROTOCOL.md section 8.8.
 *
 * The file begins with the string "verde dispute", a zero byte and u16 version 1. Frames follow,
 * with little-endian integers:
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

#define VD_MINUTES_BYTES_MAX ((uint64_t)64 << 30) /* of a file: holds any dispute */

typedef enum {
    VD_NOTED_ASSIGNMENT = 1, /* bytes: its note. Always the first entry, and only that */
    VD_NOTED_QUESTION,       /* written before the question is sent; bytes: its note */
    VD_NOTED_CLOCK,          /* microseconds: time that the answer has taken so far */
    VD_NOTED_ANSWER,         /* microseconds: time that the answer took; bytes: the statement */
    VD_NOTED_ABSENT,         /* the same; bytes: what came instead of an answer */
    /* only in an audit (PROTOCOL.md section 13.9): */
    VD_NOTED_PLAN,     /* bytes: a description of what is audited; follows the assignment */
    VD_NOTED_SECRET,   /* bytes: a secret, before its hash is sent; microseconds: crumb, or 0 */
    VD_NOTED_BEACON,   /* bytes: the beacon's value */
    VD_NOTED_PASSED,   /* microseconds: a count: so many first crumbs are right */
    VD_NOTED_EXECUTED, /* microseconds: a count of intervals executed again and found right */
    VD_NOTED_KINDS,
} vd_noted_kind;

typedef struct {
    vd_noted_kind kind;
    uint32_t provider; /* 0 for an assignment, whose `question` is zeros */
    vd_hash question;
    uint64_t used_us;
    const uint8_t *bytes; /* borrowed */
    size_t size;
} vd_noted;

/* A journal. All zeros: a new one. */
typedef struct {
    vd_noted *noted; /* entries, owned; their `bytes` point into the buffer that was read */
    size_t count, capacity;
    uint64_t whole; /* bytes of whole frames, both read and added since */
    vd_hash seal;   /* of the last frame */
} vd_minutes;

/* Reads a journal; `bytes` must outlive *out. VD_ERR_USAGE: it is damaged, and at which byte. */
VD_MUST_USE vd_status vd_minutes_read(const void *bytes, size_t size, vd_minutes *out, vd_err *err);
void vd_minutes_free(vd_minutes *minutes);

/* Appends a frame to *out, before the first one also the file's header. The caller must have it on
 * disk before acting on the entries. VD_ERR_LOCAL: the file would be too large. */
VD_MUST_USE vd_status vd_minutes_frame(vd_minutes *minutes, const vd_noted *noted, size_t count,
                                       vd_buf *out, vd_err *err);

#endif
