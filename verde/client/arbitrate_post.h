/* The questions of a dispute on the network: a thread for each provider. */
#ifndef VD_ARBITRATE_POST_H
#define VD_ARBITRATE_POST_H

#include "verde/net/net.h"
#include "verde/protocol/arbiter.h"

typedef struct vd_post_office vd_post_office;

/* Who asks whom, and where. All is borrowed. */
typedef struct {
    const char *ca;
    const vd_key *referee;
    const vd_assignment *assignment;
    const vd_endpoint *endpoint; /* of each of its providers */
    /* A provider has said nothing for so many seconds, nor taken a byte. Told now and then, while
     * vd_post_wait waits. */
    void (*silent)(uint32_t provider, double seconds);
} vd_post_options;

VD_MUST_USE vd_status vd_post_create(const vd_post_options *options, vd_post_office **out,
                                     vd_err *err);
void vd_post_destroy(vd_post_office *office); /* what is on its way is cut off; accepts NULL */

/* As vd_world has them; `user` is the office. */
VD_MUST_USE vd_status vd_post_send(void *user, const vd_post *post, vd_err *err);
VD_MUST_USE vd_status vd_post_wait(void *user, double until, vd_reply *out, vd_err *err);

/* Bytes of HTTP so far. */
void vd_post_bytes(vd_post_office *office, uint64_t *in, uint64_t *out);

#endif
