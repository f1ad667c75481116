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

/* ---- ranks on one machine, joined by a stream socket for each two ---- */

typedef struct vd_sockets vd_sockets;
/* socket[r] leads to rank r; that of `rank` itself is not looked at. All are closed by
 * vd_sockets_destroy, and made non-blocking. A rank that neither sends nor takes anything for
 * `patience_ms` while this one waits for it is given up. */
VD_MUST_USE vd_status vd_sockets_create(uint32_t rank, uint32_t ranks, const int *socket,
                                        int patience_ms, vd_sockets **out, vd_err *err);
/* Tells the others that this rank ended as it should, if `whole`; else they fail. Accepts NULL. */
void vd_sockets_destroy(vd_sockets *sockets, bool whole);
vd_transport vd_sockets_transport(vd_sockets *sockets);

#endif
