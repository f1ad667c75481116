/* Which keys a query of an attention operator admits: SPEC.md section 8, written plainly. */
#ifndef TESTS_ATTENTION_KEYS_H
#define TESTS_ATTENTION_KEYS_H

#include "repops/tools/op_data.h"
#include "repops/op_attention.h"

static inline int query_admits(const op_case *c, int64_t row, int64_t key) {
    const ro_shape *s = &c->in[0];
    const int op = c->call.op;
    const int placed = op == RO_OP_ATTN_MAX_AT || op == RO_OP_ATTN_EXP_AT || op == RO_OP_ATTN_AV_AT;
    const int64_t first = placed ? *(const int32_t *)c->data[c->call.input_count - 1] : 0;
    const int64_t at = first + row % s->dim[s->ndim - 2];
    const int64_t window = c->call.attr[placed ? RO_PLACED_WINDOW : RO_MASKED_WINDOW];
    if (!placed && !c->call.attr[RO_MASKED_CAUSAL])
        return 1;
    return key <= at && (window == 0 || at - key < window);
}

#endif
