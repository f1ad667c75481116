/* Messages between the ranks of a team. Each has a number. Messages of different numbers may arrive
 * in any order; those of one number from one rank arrive in the order of sending. Threads may use a
 * transport at the same time, for messages of different numbers. */
#ifndef VD_TRANSPORT_H
#define VD_TRANSPORT_H

#include "verde/base/base.h"

typedef struct {
    void *user;
    uint32_t rank, ranks; /* of this process; of the team */
    /* Copies the bytes and returns at once. */
    vd_status (*send)(void *user, uint32_t to, uint32_t number, const void *data, size_t size,
                      vd_err *err);
    /* Sends without a copy, and returns when the bytes have left. */
    vd_status (*give)(void *user, uint32_t to, uint32_t number, const void *data, size_t size,
                      vd_err *err);
    /* Waits for a message of exactly `size` bytes. VD_ERR_IO: the rank ended, or was silent for too
     * long; the error names it. VD_ERR_PEER: the message has another size. */
    vd_status (*receive)(void *user, uint32_t from, uint32_t number, void *data, size_t size,
                         vd_err *err);
    /* Waits until such a message can be received, using little of the CPU. */
    vd_status (*await)(void *user, uint32_t from, uint32_t number, vd_err *err);
    /* Waits until all sent messages have left this process. */
    vd_status (*flush)(void *user, vd_err *err);
} vd_transport;

#endif
