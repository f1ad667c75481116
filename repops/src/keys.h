/* The keys that a query of attention sees. Private to repops. */
#ifndef RO_KEYS_H
#define RO_KEYS_H

#include "repops/op_attention.h"
#include "repops/src/call.h"

/* SPEC 8: returns the keys that query `row` of scores [..., T, S] sees, by the attributes that
 * attn_max, attn_exp, attn_av, attn_prob and attn_dscore share. */
RO_INLINE ro_range ro_admitted_keys(const ro_call *call, int64_t row) {
    const ro_shape *s = &call->input[0];
    return ro_masked_range(call->attr[RO_MASKED_CAUSAL] ? RO_MASK_UPTO_ROW : RO_MASK_NONE,
                           call->attr[RO_MASKED_WINDOW], row % s->dim[s->ndim - 2],
                           s->dim[s->ndim - 1]);
}

/* Returns nonzero for attn_max_at, attn_exp_at and attn_av_at (SPEC 8), whose last input is the
 * position of their first query. */
RO_INLINE int ro_is_placed(const ro_call *call) {
    return call->op >= RO_OP_ATTN_MAX_AT && call->op <= RO_OP_ATTN_AV_AT;
}

/* SPEC 8: returns the keys that query `row` sees; `place` is the position of the first query. No
 * range reaches beyond the keys. */
RO_INLINE ro_range ro_keys_of(const ro_call *call, int64_t row, int32_t place) {
    const ro_shape *s = &call->input[0];
    if (!ro_is_placed(call))
        return ro_admitted_keys(call, row);
    const int64_t keys = s->dim[s->ndim - 1], at = place + row % s->dim[s->ndim - 2];
    ro_range r = {0, 0};
    if (at >= 0)
        r = ro_masked_range(RO_MASK_UPTO_ROW, call->attr[RO_PLACED_WINDOW], at, keys);
    r.first = r.first < r.last ? r.first : r.last;
    return r;
}

#endif
