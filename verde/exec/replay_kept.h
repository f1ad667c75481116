/* What a replay has computed and keeps, so that a range of states and the trace of a step are
 * executed once, however many disputes come back to them. Private to verde/exec. */
#ifndef VD_REPLAY_KEPT_H
#define VD_REPLAY_KEPT_H

#include "verde/commit/record.h"

enum {
    VD_KEPT_RANGES = 128,           /* of states; each is at most a checkpoint interval or two */
    VD_KEPT_STEPS = 32,             /* traces, and commitments of a state's tensors */
    VD_KEPT_TRACE_BYTES = 64 << 20, /* of all traces but the last one */
};

/* What lies in memory from one question to the next is sealed: what no longer fits its seal is
 * computed again, as a statement about it may have been signed. */
typedef struct {
    int64_t from, to;
    vd_hash *state, seal;
} vd_kept_range;

typedef struct {
    int64_t step;
    vd_records records;
    vd_hash seal;
} vd_kept_trace;

/* The commitments of a state's leaves. Nobody guards these: whoever takes them compares them with
 * the state. */
typedef struct {
    int64_t step;
    vd_hash *tensor;
} vd_kept_leaves;

/* All zeros: nothing is kept. The oldest makes room. */
typedef struct {
    vd_kept_range range[VD_KEPT_RANGES];
    vd_kept_trace trace[VD_KEPT_STEPS];
    vd_kept_leaves leaves[VD_KEPT_STEPS];
    size_t next_range, next_trace, next_leaves;
} vd_kept;

bool vd_seal(const void *bytes, size_t size, vd_hash *out);
bool vd_is_sealed(const void *bytes, size_t size, const vd_hash *expected);

/* The states from .. to; NULL: to be executed. */
const vd_hash *vd_kept_states(const vd_kept *kept, int64_t from, int64_t to);
/* Takes the array. NULL: out of memory. Borrowed until the next call. */
const vd_hash *vd_kept_put_states(vd_kept *kept, int64_t from, int64_t to, vd_hash *state);
/* NULL: to be executed. */
const vd_records *vd_kept_find_trace(const vd_kept *kept, int64_t step);
/* Takes the records. NULL: out of memory. Borrowed until the next call. */
const vd_records *vd_kept_put_trace(vd_kept *kept, int64_t step, vd_records *records);
const vd_hash *vd_kept_find_leaves(const vd_kept *kept, int64_t step);
/* Copies them. Where there is no memory, they are not kept. */
void vd_kept_put_leaves(vd_kept *kept, int64_t step, const vd_hash *tensor, size_t count);
void vd_kept_clear(vd_kept *kept);

#endif
