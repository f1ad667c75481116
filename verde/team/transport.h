/* How the ranks of a team reach one another. A message has a number, and may come before those that
 * were sent earlier; two of one number come from a rank in the order in which they were sent.
 * Threads may use one at the same time, for messages of different numbers. */
#ifndef VD_TRANSPORT_H
#define VD_TRANSPORT_H

#include "verde/base/base.h"

typedef struct {
    void *user;
    uint32_t rank, ranks; /* this one's, and how many there are */
    /* Takes a copy of the bytes and returns at once. */
    vd_status (*send)(void *user, uint32_t to, uint32_t number, const void *data, size_t size,
                      vd_err *err);
    /* Makes no copy, and returns when the bytes have left. */
    vd_status (*give)(void *user, uint32_t to, uint32_t number, const void *data, size_t size,
                      vd_err *err);
    /* Waits for exactly `size` bytes. VD_ERR_IO: the rank ended, or has sent nothing for too long;
     * the sentence names it. VD_ERR_PEER: it sent another number of bytes. */
    vd_status (*receive)(void *user, uint32_t from, uint32_t number, void *data, size_t size,
                         vd_err *err);
    /* Waits until a message of that number is there to be received, however long that takes, and
     * uses little of a core meanwhile. */
    vd_status (*await)(void *user, uint32_t from, uint32_t number, vd_err *err);
    /* Waits until all that was sent has left this process. */
    vd_status (*flush)(void *user, vd_err *err);
} vd_transport;

#endif
