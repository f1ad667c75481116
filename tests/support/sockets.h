/* A team whose ranks are processes on one machine, each two of them joined by a stream socket. */
#ifndef TEST_SOCKETS_H
#define TEST_SOCKETS_H

#include "verde/team/transport.h"

typedef struct test_sockets test_sockets;
/* socket[r] leads to rank r; that of `rank` itself is not looked at. All are closed by
 * test_sockets_destroy, and made non-blocking. A rank that neither sends nor takes anything for
 * `patience_ms` while this one waits for it is given up. */
VD_MUST_USE vd_status test_sockets_create(uint32_t rank, uint32_t ranks, const int *socket,
                                          int patience_ms, test_sockets **out, vd_err *err);
/* Tells the others that this rank ended as it should, if `whole`; else they fail. Accepts NULL. */
void test_sockets_destroy(test_sockets *sockets, bool whole);
vd_transport test_sockets_transport(test_sockets *sockets);

#endif
