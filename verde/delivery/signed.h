/* Requests to a provider's daemon, signed by the client (PROTOCOL.md section 8.5). */
#ifndef VD_SIGNED_H
#define VD_SIGNED_H

#include "verde/net/net.h"

/* Like vd_client_ask with one exchange, whose `header` is filled in. `key` NULL: unsigned.
 * VD_ERR_USAGE: the endpoint has no key, and a request is signed for one provider. */
void vd_signed_ask(vd_client *client, const vd_key *key, const vd_exchange *exchange,
                   vd_answer *answer);
/* Writes why a provider refuses or fails, in printable characters: from {"error": sentence}, or as
 * the transport says. */
void vd_answer_why(const vd_answer *answer, char *why, size_t size);

#endif
