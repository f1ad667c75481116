/* Sends the questions of a dispute over the network, with a thread for each provider. */
#ifndef VD_ARBITRATE_POST_H
#define VD_ARBITRATE_POST_H

#include "verde/net/net.h"
#include "verde/protocol/arbiter.h"

typedef struct vd_post_office vd_post_office;

/* The parties of a dispute. Everything is borrowed. */
typedef struct {
    const char *ca;
    const vd_key *referee;
    const vd_assignment *assignment;
    const vd_endpoint *endpoint; /* one for each provider */
    /* Reports, now and then within vd_post_wait, that a provider has neither answered nor moved a
     * byte for so many seconds. */
    void (*silent)(uint32_t provider, double seconds);
} vd_post_options;

VD_MUST_USE vd_status vd_post_create(const vd_post_options *options, vd_post_office **out,
                                     vd_err *err);
void vd_post_destroy(vd_post_office *office); /* cuts off exchanges under way; accepts NULL */

/* Functions of a vd_world; `user` is the office. */
VD_MUST_USE vd_status vd_post_send(void *user, const vd_post *post, vd_err *err);
VD_MUST_USE vd_status vd_post_wait(void *user, double until, vd_reply *out, vd_err *err);

/* Returns the bytes of HTTP so far. */
void vd_post_bytes(vd_post_office *office, uint64_t *in, uint64_t *out);

#endif
