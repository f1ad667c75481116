/* Results that a replay keeps, so that a range of states or a step's trace is executed only once,
 * however many disputes ask about it. Private to verde/exec. */
#ifndef VD_REPLAY_KEPT_H
#define VD_REPLAY_KEPT_H

#include "verde/commit/record.h"

enum {
    VD_KEPT_RANGES = 128, /* ranges of states, each of a checkpoint interval or two at most */
    VD_KEPT_STEPS = 32,   /* traces, and states' lists of commitments */
    VD_KEPT_TRACE_BYTES = 64 << 20, /* of all traces but the last one */
};

/* Kept results are sealed: changed ones are computed again, as statements may rest on them. */
typedef struct {
    int64_t from, to;
    vd_hash *state, seal;
} vd_kept_range;

typedef struct {
    int64_t step;
    vd_records records;
    vd_hash seal;
} vd_kept_trace;

/* The commitments of a state's leaves, without a seal: readers compare them with the state. */
typedef struct {
    int64_t step;
    vd_hash *tensor;
} vd_kept_leaves;

/* All zeros: nothing is kept. New results replace the oldest. */
typedef struct {
    vd_kept_range range[VD_KEPT_RANGES];
    vd_kept_trace trace[VD_KEPT_STEPS];
    vd_kept_leaves leaves[VD_KEPT_STEPS];
    size_t next_range, next_trace, next_leaves;
} vd_kept;

bool vd_seal(const void *bytes, size_t size, vd_hash *out);
bool vd_is_sealed(const void *bytes, size_t size, const vd_hash *expected);

/* Returns states from .. to; NULL: they are not kept. */
const vd_hash *vd_kept_states(const vd_kept *kept, int64_t from, int64_t to);
/* Takes ownership of the array; returns it, valid until the next call. NULL: out of memory. */
const vd_hash *vd_kept_put_states(vd_kept *kept, int64_t from, int64_t to, vd_hash *state);
/* Returns NULL if the trace is not kept. */
const vd_records *vd_kept_find_trace(const vd_kept *kept, int64_t step);
/* Takes ownership of the records; returns them, valid until the next call. NULL: out of memory. */
const vd_records *vd_kept_put_trace(vd_kept *kept, int64_t step, vd_records *records);
const vd_hash *vd_kept_find_leaves(const vd_kept *kept, int64_t step);
/* Keeps a copy, if there is memory. */
void vd_kept_put_leaves(vd_kept *kept, int64_t step, const vd_hash *tensor, size_t count);
void vd_kept_clear(vd_kept *kept);

#endif
