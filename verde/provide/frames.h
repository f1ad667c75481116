/* The frames that the daemon and a child that answers questions exchange over pairs of sockets: a
 * u32 length, then so many bytes.
 *
 * Descriptor 3 of the child, for questions: the child sends an empty frame once it has loaded the
 * job's files. Then the daemon sends a referee's request; the child replies with a status
 * (vd_status) and `working`, each a u8, `done` and `of`, each a u64, and the answer or a sentence.
 * To an empty frame it replies with its account: a u64 with the microseconds that a referee's
 * answers may take (0: not known yet), then for each referee its key and a u64 with the
 * microseconds used since the last account.
 * Descriptor 4, for signatures: the child sends a message; the daemon replies with the signature,
 * or with an empty frame if it does not sign this. */
#ifndef VD_FRAMES_H
#define VD_FRAMES_H

#include "verde/base/base.h"

enum {
    VD_CHILD_QUESTIONS = 3,
    VD_CHILD_SIGNATURES = 4,
    VD_FRAME_MAX = 64 << 20, /* bytes of a frame */
    VD_REPLY_HEAD = 18,      /* bytes of a reply before the answer */
    VD_ACCOUNT_HEAD = 8,     /* bytes of an account before its entries */
    VD_ACCOUNT_ENTRY = 40,   /* bytes of an entry */
    VD_ACCOUNT_ENTRIES = 64,
};

VD_MUST_USE vd_status vd_frame_put(int fd, const void *bytes, size_t size, vd_err *err);
/* Appends a frame of at most `limit` bytes. timeout_ms < 0: no limit. VD_ERR_IO: the other side has
 * closed. VD_ERR_TIMEOUT: nothing came in time. */
VD_MUST_USE vd_status vd_frame_get(int fd, size_t limit, int timeout_ms, vd_buf *out, vd_err *err);

#endif
