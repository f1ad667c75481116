/* Attention, SPEC.md section 8. */
#include "repops/ref/ref.h"
#include "repops/op_attention.h"
#include "repops/src/keys.h"

static ro_range admitted(const ro_call *call, int64_t row, const ro_access *in) {
    return ro_keys_of(call, row,
                      ro_is_placed(call) ? (int32_t)load(in, call->input_count - 1, 0) : 0);
}

ro_ref_score ro_ref_score_of(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t keys = last_dim(&call->input[0]);
    ro_ref_score p = {e / keys, e % keys, (keys + RO_ATTN_BLOCK - 1) / RO_ATTN_BLOCK, 1};
    const ro_range r = admitted(call, p.row, in);
    p.admitted = p.key >= r.first && p.key < r.last;
    return p;
}

void ro_ref_attn_keys(const ro_call *call, int64_t row, int64_t c, const ro_access *in,
                      int64_t *from, int64_t *to) {
    const ro_range r = admitted(call, row, in);
    *from = c * RO_ATTN_BLOCK;
    *to = *from + RO_ATTN_BLOCK < r.last ? *from + RO_ATTN_BLOCK : r.last;
    *from = *from > r.first ? *from : r.first;
}

/* Reads the keys of a block and, for placed queries, the place of the first one. */
RO_LOADS(key_loads, RO_ATTN_BLOCK + ro_is_placed(call))

static uint32_t attn_max(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    int64_t keys = last_dim(&call->input[0]), blocks = last_dim(&call->output), from, to;
    float m = ro_from_bits(RO_MINUS_INFINITY_BITS);
    (void)acc;
    ro_ref_attn_keys(call, e / blocks, e % blocks, in, &from, &to);
    for (int64_t j = from; j < to; j++)
        m = ro_max(m, loadf(in, 0, e / blocks * keys + j));
    return result(m);
}
RO_REFERENCE(attn_max, .finish = attn_max, .loads = key_loads)
RO_REFERENCE(attn_max_at, .finish = attn_max, .loads = key_loads)

static uint32_t attn_exp(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    ro_ref_score p = ro_ref_score_of(call, e, in);
    float m = loadf(in, 1, p.row * p.blocks + p.key / RO_ATTN_BLOCK);
    if (!p.admitted || is_minus_infinity(m))
        return 0;
    return result(ro_exp(loadf(in, 0, e) - m));
}
RO_REFERENCE(attn_exp, .finish = attn_exp)
RO_REFERENCE(attn_exp_at, .finish = attn_exp)

static uint32_t attn_av(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const ro_shape *s = &call->input[0];
    int64_t keys = last_dim(s), size = last_dim(&call->output), from, to;
    int64_t blocks = (keys + RO_ATTN_BLOCK - 1) / RO_ATTN_BLOCK, row = e / size / blocks;
    int64_t first = row / s->dim[s->ndim - 2] * keys; /* first row of this batch's keys in v */
    float sum = 0;
    (void)acc;
    ro_ref_attn_keys(call, row, e / size % blocks, in, &from, &to);
    for (int64_t j = from; j < to; j++)
        sum =
            ro_fma(loadf(in, 0, row * keys + j), loadf(in, 1, (first + j) * size + e % size), sum);
    return result(0.0f + sum);
}
RO_LOADS(av_loads, 2 * RO_ATTN_BLOCK + ro_is_placed(call))
RO_REFERENCE(attn_av, .finish = attn_av, .loads = av_loads)
RO_REFERENCE(attn_av_at, .finish = attn_av, .loads = av_loads)

/* Walks over the blocks of a row. Input 1 has the numbers to combine, `size` per block. Returns
 * whether any block has keys. */
static int walk(const ro_access *in, int64_t row, int64_t blocks, int64_t size, int64_t offset,
                float *total) {
    float m = 0, sum = 0;
    int started = 0;
    for (int64_t c = 0; c < blocks; c++) {
        float mc = loadf(in, 0, row * blocks + c);
        float x = loadf(in, 1, (row * blocks + c) * size + offset);
        if (is_minus_infinity(mc))
            continue;
        if (!started) {
            m = mc, sum = x, started = 1;
            continue;
        }
        float next = ro_max(m, mc);
        sum = ro_fma(sum, ro_exp(m - next), ro_exp(mc - next) * x);
        m = next;
    }
    *total = sum;
    return started;
}

static uint32_t attn_l(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    float l;
    (void)acc;
    return walk(in, e, last_dim(&call->input[0]), 1, 0, &l) ? result(l) : 0;
}
RO_LOADS(walk_loads, 2 * last_dim(&call->input[0]) + 1)
RO_REFERENCE(attn_l, .finish = attn_l, .loads = walk_loads)

static uint32_t attn_out(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    int64_t blocks = last_dim(&call->input[0]), size = last_dim(&call->output), row = e / size;
    float sum, l = loadf(in, 2, row);
    (void)acc;
    return walk(in, row, blocks, size, e % size, &sum) ? result(sum * (1.0f / l)) : 0;
}
RO_REFERENCE(attn_out, .finish = attn_out, .loads = walk_loads)

static uint32_t attn_prob(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    ro_ref_score p = ro_ref_score_of(call, e, in);
    float m = loadf(in, 1, p.row), l = loadf(in, 2, p.row);
    if (!p.admitted || is_minus_infinity(m))
        return 0;
    return result(ro_exp(loadf(in, 0, e) - m) * (1.0f / l));
}
RO_REFERENCE(attn_prob, .finish = attn_prob)

static uint32_t attn_dscore(const ro_call *call, int64_t e, const ro_acc *acc,
                            const ro_access *in) {
    (void)acc;
    ro_ref_score p = ro_ref_score_of(call, e, in);
    float ds = loadf(in, 0, e) * (loadf(in, 1, e) - loadf(in, 2, p.row));
    return p.admitted ? result(ds) : 0;
}
RO_REFERENCE(attn_dscore, .finish = attn_dscore)

/* Copies heads. The heads of all batches count as one row: no group spans two batches. */
static uint32_t repeat_heads(const ro_call *call, int64_t e, const ro_acc *acc,
                             const ro_access *in) {
    int64_t size = call->output.dim[2] * call->output.dim[3];
    (void)acc;
    return load(in, 0, e / size / call->attr[RO_REPEAT_HEADS_TIMES] * size + e % size);
}
RO_REFERENCE(repeat_heads, .finish = repeat_heads)

static uint32_t repeat_heads_grad(const ro_call *call, int64_t e, const ro_acc *acc,
                                  const ro_access *in) {
    int64_t size = call->output.dim[2] * call->output.dim[3],
            times = call->attr[RO_REPEAT_HEADS_GRAD_TIMES];
    float sum = 0;
    (void)acc;
    for (int64_t i = 0; i < times; i++)
        sum = sum + loadf(in, 0, (e / size * times + i) * size + e % size);
    return result(sum);
}
RO_LOADS(group_loads, call->attr[RO_REPEAT_HEADS_GRAD_TIMES])
RO_REFERENCE(repeat_heads_grad, .finish = repeat_heads_grad, .loads = group_loads)
