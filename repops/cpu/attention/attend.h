/* Helpers that the kernels of fused attention share. */
#ifndef REPOPS_CPU_ATTEND_H
#define REPOPS_CPU_ATTEND_H

#include "repops/cpu/gemm/gemm_tile.h"
#include "repops/cpu/rows/lanes.h"
#include "repops/cpu/rows/softmax.h"
#include "repops/src/call.h"

enum {
    KB = RO_ATTN_BLOCK, /* keys in a block, and queries in a chunk */
    PAD = 64,           /* floats after an array: packing's whole vectors run past its end */
};

/* Returns whether this is a forward pass of a few queries, whose keys are read once, in place. */
int RO_NAME(ro_attend_is_decoding)(const ro_attention *a);
ro_status RO_NAME(ro_attend_decode)(ro_ctx *ctx, const ro_attention_job *job);

/* Takes `count` floats of a workspace in which `used` are taken already, and stores their address
 * in *at: NULL if `workspace` is NULL, to measure it. Returns how many are taken now. */
RO_INLINE int64_t take(float **at, float *workspace, int64_t used, int64_t count) {
    *at = workspace ? workspace + used : NULL;
    return used + ceil_div(count, 16) * 16 + PAD;
}

/* Adds each key's bias to its scores, whose rows lie KB apart; `bias` may be NULL. */
RO_INLINE void add_bias(const float *restrict bias, int64_t rows, int64_t count,
                        float *restrict s) {
    for (int64_t r = 0; bias && r < rows; r++, s += KB)
        for (int64_t j = 0; j < count; j++)
            s[j] = ro_canon(s[j] + bias[j]);
}

/* Returns the range of keys that query `query` may attend to. */
RO_INLINE ro_range keys_of_query(const ro_attention *a, int64_t query) {
    return ro_masked_range(a->causal ? RO_MASK_UPTO_ROW : RO_MASK_NONE, a->window,
                           a->causal ? query + a->keys - a->queries : query, a->keys);
}

/* Returns the part of `keys` among `count` keys from key `from` on, relative to `from`; {0, 0} if
 * there is none. */
RO_INLINE ro_range part_of_keys(ro_range keys, int64_t from, int64_t count) {
    const ro_range r = {max_i64(0, keys.first - from), min_i64(count, keys.last - from)};
    return r.first < r.last ? r : (ro_range){0, 0};
}

/* Rows of a matrix, or of one head: `step` elements apart. */
typedef struct {
    const float *at;
    int64_t step;
} matrix_rows;

RO_INLINE matrix_rows rows_from(matrix_rows x, int64_t row) {
    return (matrix_rows){x.at + row * x.step, x.step};
}

/* These return the rows of one head from row `from` on: `head` counts query heads over the whole
 * batch (x: queries or results), `kv` counts key-value heads (x: keys or values). `row` is the
 * stride of ro_attention, such as q_row. */
RO_INLINE matrix_rows rows_of_queries(const ro_attention *a, const float *x, int64_t row,
                                      int64_t head, int64_t from) {
    const ro_head_rows r = ro_rows_of_head(head, a->heads, a->queries, a->head_size, row);
    return (matrix_rows){x + r.first + from * r.step, r.step};
}

RO_INLINE matrix_rows rows_of_keys(const ro_attention *a, const float *x, int64_t row, int64_t kv,
                                   int64_t from) {
    const ro_head_rows r = ro_rows_of_head(kv, a->kv_heads, a->kv_rows, a->head_size, row);
    return (matrix_rows){x + r.first + from * r.step, r.step};
}

/* Returns the bias of a key-value head from key `from` on, or NULL if there is none. */
RO_INLINE const float *bias_of(const ro_attention *a, int64_t kv, int64_t from) {
    return a->key_bias ? a->key_bias + kv / a->kv_heads * a->keys + from : NULL;
}

#endif
