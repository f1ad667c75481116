/* A request of an enrolled client or of a referee, as a signed note over all that matters of it:
 * nobody can use it for another request, at another provider, or again. PROTOCOL.md section 8.5. */
#ifndef VD_SIGNED_REQUEST_H
#define VD_SIGNED_REQUEST_H

#include "verde/commit/commit.h"

#define VD_REQUEST_HEADER "Verde-Request" /* the HTTP header that holds the note in base64 */

enum {
    VD_REQUEST_TARGET_MAX = 1024, /* bytes of a path with its query */
    VD_REQUEST_NOTE_MAX = 4096,   /* bytes of a note */
    VD_REQUEST_HEADER_MAX = (VD_REQUEST_NOTE_MAX + 2) / 3 * 4,
    VD_REQUEST_CLOCK_S = 300, /* the clocks of client and provider differ by at most so much */
    VD_NONCE_SIZE = 16,
};

/* What is known of a request before its body has come. */
typedef struct {
    const char *method, *target; /* "PUT"; the path with its query, from "/" on */
    uint64_t length;             /* bytes of the body */
} vd_request_head;

/* What a client has signed. */
typedef struct {
    vd_public_key client;
    vd_hash body; /* SHA-256 of it */
    int64_t time; /* seconds since 1970, UTC */
    uint8_t nonce[VD_NONCE_SIZE];
    int64_t count; /* of a referee's question, in place of these two; else 0 */
} vd_request_claim;

/* Appends the value of the header, base64 without a NUL. `head.length` bytes of `body` are hashed.
 * `nonce` are random bytes, new for each request that is sent. */
VD_MUST_USE vd_status vd_request_sign(const vd_key *key, const vd_public_key *provider,
                                      const vd_request_head *head, const void *body, int64_t time,
                                      const uint8_t nonce[VD_NONCE_SIZE], vd_buf *out, vd_err *err);

/* Judges the value of the header, of `size` bytes, for `provider` at the time `now`. VD_ERR_PEER:
 * it is no note of its signer over this very request, or the clocks differ too much. Whether the
 * client is enrolled, and has not used the nonce before, is for the caller to say. */
VD_MUST_USE vd_status vd_request_judge(const char *header, size_t size,
                                       const vd_public_key *provider, const vd_request_head *head,
                                       int64_t now, vd_request_claim *out, vd_err *err);

/* VD_ERR_PEER: it is not the body that was signed. */
VD_MUST_USE vd_status vd_request_judge_body(const vd_request_claim *claim, const void *body,
                                            size_t size, vd_err *err);

/* ---- a referee's question: PROTOCOL.md section 8.1 ---- */

#define VD_ASK_PATH "/v1/ask"
/* Counts stay exact in any reader of JSON. */
#define VD_ASK_COUNT_MAX (INT64_C(1) << 53)

/* Appends the value of the header for `body`, the request of `referee` to `provider`. `count` is
 * greater than in all of its requests to this provider before: no clocks are compared. */
VD_MUST_USE vd_status vd_ask_sign(const vd_key *referee, const vd_public_key *provider,
                                  const void *body, size_t size, int64_t count, vd_buf *out,
                                  vd_err *err);
/* Judges the value of the header (NULL: there is none). VD_ERR_PEER: it is no note of `referee`
 * over this very request to `provider`. Whether the count is new is for the caller to say. */
VD_MUST_USE vd_status vd_ask_judge(const char *header, const vd_public_key *provider,
                                   const vd_public_key *referee, const void *body, size_t size,
                                   int64_t *count, vd_err *err);

#endif
