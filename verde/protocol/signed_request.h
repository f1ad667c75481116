/* A signed note over a client's or referee's request, so that nobody can use it for another
 * request, for another provider, or twice. PROTOCOL.md section 8.5. */
#ifndef VD_SIGNED_REQUEST_H
#define VD_SIGNED_REQUEST_H

#include "verde/commit/commit.h"

#define VD_REQUEST_HEADER "Verde-Request" /* the HTTP header that holds the note in base64 */

enum {
    VD_REQUEST_TARGET_MAX = 1024, /* bytes of a path with its query */
    VD_REQUEST_NOTE_MAX = 4096,   /* bytes of a note */
    VD_REQUEST_HEADER_MAX = (VD_REQUEST_NOTE_MAX + 2) / 3 * 4,
    VD_REQUEST_CLOCK_S = 300, /* largest difference between the clocks of client and provider */
    VD_NONCE_SIZE = 16,
};

/* The parts of a request that are known before its body arrives. */
typedef struct {
    const char *method, *target; /* such as "PUT"; the path with its query, beginning with "/" */
    uint64_t length;             /* bytes of the body */
} vd_request_head;

/* The contents of a signed note. */
typedef struct {
    vd_public_key client;
    vd_hash body; /* SHA-256 of the body */
    int64_t time; /* seconds since 1970, UTC */
    uint8_t nonce[VD_NONCE_SIZE];
    int64_t count; /* in a referee's question, instead of time and nonce; else 0 */
} vd_request_claim;

/* Appends the header's value: base64 without a terminating NUL. It covers head->length bytes of
 * `body`. `nonce` must be random, and new for each request that is sent. */
VD_MUST_USE vd_status vd_request_sign(const vd_key *key, const vd_public_key *provider,
                                      const vd_request_head *head, const void *body, int64_t time,
                                      const uint8_t nonce[VD_NONCE_SIZE], vd_buf *out, vd_err *err);

/* Checks the header's value, of `size` bytes, for `provider` at time `now`. VD_ERR_PEER: it is no
 * valid note over this very request, or the clocks differ too much. The caller checks that the
 * client is enrolled and has not used the nonce before. */
VD_MUST_USE vd_status vd_request_judge(const char *header, size_t size,
                                       const vd_public_key *provider, const vd_request_head *head,
                                       int64_t now, vd_request_claim *out, vd_err *err);

/* Checks the body. VD_ERR_PEER: it is not the one that was signed. */
VD_MUST_USE vd_status vd_request_judge_body(const vd_request_claim *claim, const void *body,
                                            size_t size, vd_err *err);

/* ---- a referee's question: PROTOCOL.md section 8.1 ---- */

#define VD_ASK_PATH "/v1/ask"
/* Any JSON reader represents counts up to this exactly. */
#define VD_ASK_COUNT_MAX (INT64_C(1) << 53)

/* Appends the header's value for `body`, from `referee` to `provider`. `count` must be greater than
 * in all earlier ones to this provider, so that no clocks are compared. */
VD_MUST_USE vd_status vd_ask_sign(const vd_key *referee, const vd_public_key *provider,
                                  const void *body, size_t size, int64_t count, vd_buf *out,
                                  vd_err *err);
/* Checks the header's value (NULL: there is none). VD_ERR_PEER: it is no valid note of `referee`
 * over this very request to `provider`. The caller checks that the count is new. */
VD_MUST_USE vd_status vd_ask_judge(const char *header, const vd_public_key *provider,
                                   const vd_public_key *referee, const void *body, size_t size,
                                   int64_t *count, vd_err *err);

#endif
