/* This file keeps states and traces that a replay computed, and drops the oldest ones. */
#include "verde/exec/replay_kept.h"

#include <stdlib.h>
#include <string.h>

bool vd_seal(const void *bytes, size_t size, vd_hash *out) {
    return vd_hash_tagged(NULL, bytes, size, out);
}

bool vd_is_sealed(const void *bytes, size_t size, const vd_hash *expected) {
    vd_hash now;
    return vd_seal(bytes, size, &now) && vd_hash_equal(&now, expected);
}

/* ---- states ---- */

static size_t range_size(const vd_kept_range *r) {
    return (size_t)(r->to - r->from + 1) * sizeof *r->state;
}

const vd_hash *vd_kept_states(const vd_kept *kept, int64_t from, int64_t to) {
    for (int i = 0; i < VD_KEPT_RANGES; i++) {
        const vd_kept_range *r = &kept->range[i];
        if (r->state && from >= r->from && to <= r->to &&
            vd_is_sealed(r->state, range_size(r), &r->seal))
            return &r->state[from - r->from];
    }
    return NULL;
}

const vd_hash *vd_kept_put_states(vd_kept *kept, int64_t from, int64_t to, vd_hash *state) {
    vd_kept_range *r = &kept->range[kept->next_range++ % VD_KEPT_RANGES];
    free(r->state);
    *r = (vd_kept_range){.from = from, .to = to, .state = state};
    if (vd_seal(state, range_size(r), &r->seal))
        return state;
    free(state);
    r->state = NULL;
    return NULL;
}

/* ---- traces ---- */

const vd_records *vd_kept_find_trace(const vd_kept *kept, int64_t step) {
    for (int i = 0; i < VD_KEPT_STEPS; i++) {
        const vd_kept_trace *t = &kept->trace[i];
        if (t->records.count && t->step == step &&
            vd_is_sealed(t->records.bytes.data, t->records.bytes.size, &t->seal))
            return &t->records;
    }
    return NULL;
}

/* Drops the oldest traces until all but `last` fit the limit. */
static void kept_make_room(vd_kept *kept, const vd_kept_trace *last) {
    size_t bytes = 0;
    for (int i = 0; i < VD_KEPT_STEPS; i++)
        bytes += &kept->trace[i] == last ? 0 : kept->trace[i].records.bytes.size;
    for (size_t i = 0; i < VD_KEPT_STEPS && bytes > VD_KEPT_TRACE_BYTES; i++) {
        vd_kept_trace *t = &kept->trace[(kept->next_trace + i) % VD_KEPT_STEPS];
        if (t == last)
            continue;
        bytes -= t->records.bytes.size;
        vd_records_free(&t->records);
    }
}

const vd_records *vd_kept_put_trace(vd_kept *kept, int64_t step, vd_records *records) {
    vd_kept_trace *t = &kept->trace[kept->next_trace++ % VD_KEPT_STEPS];
    vd_records_free(&t->records);
    *t = (vd_kept_trace){.step = step, .records = *records};
    *records = (vd_records){0};
    kept_make_room(kept, t);
    if (vd_seal(t->records.bytes.data, t->records.bytes.size, &t->seal))
        return &t->records;
    vd_records_free(&t->records);
    return NULL;
}

/* ---- commitments of leaves ---- */

const vd_hash *vd_kept_find_leaves(const vd_kept *kept, int64_t step) {
    for (int i = 0; i < VD_KEPT_STEPS; i++)
        if (kept->leaves[i].tensor && kept->leaves[i].step == step)
            return kept->leaves[i].tensor;
    return NULL;
}

void vd_kept_put_leaves(vd_kept *kept, int64_t step, const vd_hash *tensor, size_t count) {
    vd_kept_leaves *l = &kept->leaves[kept->next_leaves++ % VD_KEPT_STEPS];
    free(l->tensor);
    *l = (vd_kept_leaves){.step = step, .tensor = malloc(count * sizeof *tensor)};
    if (l->tensor)
        memcpy(l->tensor, tensor, count * sizeof *tensor);
}

void vd_kept_clear(vd_kept *kept) {
    for (int i = 0; i < VD_KEPT_RANGES; i++)
        free(kept->range[i].state);
    for (int i = 0; i < VD_KEPT_STEPS; i++) {
        vd_records_free(&kept->trace[i].records);
        free(kept->leaves[i].tensor);
    }
    *kept = (vd_kept){0};
}
