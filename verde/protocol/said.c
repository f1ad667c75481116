/* This file keeps a provider's answers by the hash of the question, for use in later games. */
#include "verde/protocol/said.h"

#include <stdlib.h>
#include <string.h>

/* Returns the index of the answer to this question, or where to insert it. */
static size_t said_place(const vd_said *said, const vd_hash *plain) {
    size_t lo = 0, hi = said->count;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (memcmp(said->answer[mid].plain.b, plain->b, VD_HASH_SIZE) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const vd_said_answer *vd_said_find(const vd_said *said, const vd_hash *plain) {
    const size_t at = said_place(said, plain);
    return at < said->count && vd_hash_equal(&said->answer[at].plain, plain) ? &said->answer[at]
                                                                             : NULL;
}

static bool said_grow(vd_said *said) {
    const size_t capacity = said->capacity ? 2 * said->capacity : 64;
    vd_said_answer *grown = realloc(said->answer, capacity * sizeof *grown);
    if (!grown)
        return false;
    said->answer = grown;
    said->capacity = capacity;
    return true;
}

bool vd_said_put(vd_said *said, const vd_said_answer *answer) {
    if (vd_said_find(said, &answer->plain))
        return true;
    if (said->count == said->capacity && !said_grow(said))
        return false;
    const size_t at = said_place(said, &answer->plain);
    memmove(&said->answer[at + 1], &said->answer[at], (said->count - at) * sizeof *said->answer);
    said->answer[at] = *answer;
    said->count++;
    return true;
}

void vd_said_free(vd_said *said) {
    free(said->answer);
    *said = (vd_said){0};
}
