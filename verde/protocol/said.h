/* What a provider has answered in a dispute between many, so that no game asks it again. Private to
 * verde/protocol. */
#ifndef VD_SAID_H
#define VD_SAID_H

#include "verde/commit/commit.h"

typedef struct {
    vd_hash plain;  /* the question without the number of its game, hashed */
    vd_buf payload; /* of the answer; borrowed from whoever keeps the statements */
} vd_said_answer;

/* Sorted by `plain`. All zeros: it has answered nothing. */
typedef struct {
    vd_said_answer *answer;
    size_t count, capacity;
} vd_said;

/* NULL: it has not answered that. Borrowed until the next vd_said_put. */
const vd_said_answer *vd_said_find(const vd_said *said, const vd_hash *plain);
/* False: out of memory. An answer to the same question stays as it is. */
VD_MUST_USE bool vd_said_put(vd_said *said, const vd_said_answer *answer);
void vd_said_free(vd_said *said);

#endif
