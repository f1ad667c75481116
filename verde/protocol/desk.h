/* A provider that answers while it computes: nothing here waits for a re-execution. */
#ifndef VD_DESK_H
#define VD_DESK_H

#include "verde/protocol/provider.h"

typedef struct vd_desk vd_desk;

/* The state of an answer that is not there yet. */
typedef struct {
    bool working;     /* false: it failed before, and whoever waits does so on its own account */
    bool waits;       /* another question is worked on */
    bool fresh;       /* it was not asked before */
    int64_t done, of; /* steps executed again; 0 of 0: not known */
} vd_working;

/* The provider is borrowed; its source is used by one thread of the desk's, and by the caller's
 * for what is known without executing anything. */
VD_MUST_USE vd_status vd_desk_create(const vd_provider *provider, vd_desk **out, vd_err *err);
/* A re-execution under way ends after its step. Accepts NULL. */
void vd_desk_destroy(vd_desk *desk);
/* As vd_provider_answer, but VD_ERR_IO, with *working, until the answer is there: ask again. One
 * caller at a time. */
VD_MUST_USE vd_status vd_desk_answer(vd_desk *desk, const void *request, size_t size, vd_buf *out,
                                     vd_working *working, vd_err *err);

/* Tells of the seconds of computing that each referee's answers have taken since this was called
 * last, what is under way included; `charge` must not call the desk. */
typedef void (*vd_desk_charge)(void *user, const vd_public_key *referee, double seconds);
void vd_desk_settle(vd_desk *desk, vd_desk_charge charge, void *user);

#endif
