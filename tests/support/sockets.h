/* A team of ranks that are processes on one machine, with a stream socket between any two. */
#ifndef TEST_SOCKETS_H
#define TEST_SOCKETS_H

#include "verde/team/transport.h"

typedef struct test_sockets test_sockets;
/* socket[r] is connected to rank r; socket[rank] is ignored. All become non-blocking, and
 * test_sockets_destroy closes them. A rank that neither sends nor receives for `patience_ms`, while
 * this one waits for it, counts as failed. */
VD_MUST_USE vd_status test_sockets_create(uint32_t rank, uint32_t ranks, const int *socket,
                                          int patience_ms, test_sockets **out, vd_err *err);
/* Tells the others that this rank has ended properly, if `whole`; otherwise they fail. Accepts
 * NULL. */
void test_sockets_destroy(test_sockets *sockets, bool whole);
vd_transport test_sockets_transport(test_sockets *sockets);

#endif
