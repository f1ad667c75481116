/* Answers a provider's questions without blocking: what takes long is computed by a thread. */
#ifndef VD_DESK_H
#define VD_DESK_H

#include "verde/protocol/provider.h"

typedef struct vd_desk vd_desk;

/* The state of an answer that is not ready yet. */
typedef struct {
    bool working;     /* false: `working` is not replied: computing has failed twice */
    bool waits;       /* another question is computed first */
    bool fresh;       /* the question was asked for the first time */
    int64_t done, of; /* steps executed so far, and in all; 0 and 0: not known */
} vd_working;

/* `provider` is borrowed. Its source is used by a thread of the desk, and by the caller's thread
 * for what needs no execution. */
VD_MUST_USE vd_status vd_desk_create(const vd_provider *provider, vd_desk **out, vd_err *err);
/* Stops an execution that is running after its current step. Accepts NULL. */
void vd_desk_destroy(vd_desk *desk);
/* Like vd_provider_answer, but never waits: while the answer is computed it returns VD_ERR_IO and
 * sets *working, and the caller asks again. One caller at a time. */
VD_MUST_USE vd_status vd_desk_answer(vd_desk *desk, const void *request, size_t size, vd_buf *out,
                                     vd_working *working, vd_err *err);

/* Calls `charge` for each referee with the seconds of computing since the last call, including an
 * answer that is being computed. `charge` must not call the desk. */
typedef void (*vd_desk_charge)(void *user, const vd_public_key *referee, double seconds);
void vd_desk_settle(vd_desk *desk, vd_desk_charge charge, void *user);

#endif
