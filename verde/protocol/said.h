/* The answers that a provider has given in a dispute between many, so that no game asks the same
 * again. Private to verde/protocol. */
#ifndef VD_SAID_H
#define VD_SAID_H

#include "verde/commit/commit.h"

typedef struct {
    vd_hash plain;  /* hash of the question without its game's number */
    vd_buf payload; /* of the answer; borrowed from the referee that keeps the statement */
} vd_said_answer;

/* Sorted by `plain`. All zeros: no answers yet. */
typedef struct {
    vd_said_answer *answer;
    size_t count, capacity;
} vd_said;

/* Returns NULL if there is no answer yet. Borrowed until the next vd_said_put. */
const vd_said_answer *vd_said_find(const vd_said *said, const vd_hash *plain);
/* Adds an answer; an earlier one to the same question stays. False: out of memory. */
VD_MUST_USE bool vd_said_put(vd_said *said, const vd_said_answer *answer);
void vd_said_free(vd_said *said);

#endif
