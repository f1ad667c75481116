/* Operators of attention other than products (SPEC.md section 8). An item is a query, that is a row
 * of scores, unless stated otherwise. */
#include "repops/free/probabilities.h"
#include "repops/free/sums.h"
#include "repops/op_attention.h"
#include "repops/src/keys.h"

RO_INLINE int is_minus_infinity(float x) {
    return ro_to_bits(x) == RO_MINUS_INFINITY_BITS;
}

/* ---- rows of scores ---- */

static ro_range keys_of_row(const ro_free_job *job, int64_t row) {
    const int last = job->call->input_count - 1;
    return ro_keys_of(job->call, row,
                      ro_is_placed(job->call) ? *(const int32_t *)job->in[last] : 0);
}

RO_INLINE void attn_exp_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                             order o) {
    const int64_t keys = free_width(job), blocks = ceil_div(keys, RO_ATTN_BLOCK);
    writer w;
    writer_open(&w, t, first * keys);
    for (int64_t row = first; row < last; row++) {
        const ro_range r = keys_of_row(job, row);
        const float *mc = free_in(job, 1) + row * blocks;
        write_zeros(&w, r.first);
        for (int64_t from = r.first, to; from < r.last; from = to) {
            const int64_t block = from / RO_ATTN_BLOCK;
            const operands x = {.a = free_in(job, 0) + row * keys + from, .p = at(mc, block)};
            to = min_i64(r.last, (block + 1) * RO_ATTN_BLOCK);
            if (is_minus_infinity(mc[block]))
                write_zeros(&w, to - from);
            else
                write_each(&w, attn_exp_of, x, to - from, o);
        }
        write_zeros(&w, keys - r.last);
    }
    writer_flush(&w);
}

RO_INLINE void attn_prob_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                              order o) {
    const int64_t keys = free_width(job);
    writer w;
    writer_open(&w, t, first * keys);
    for (int64_t row = first; row < last; row++) {
        const approx m = free_at(job, 1, row), l = free_at(job, 2, row);
        const ro_range none = {0, 0};
        const ro_range r =
            is_minus_infinity(free_in(job, 1)[row]) ? none : ro_admitted_keys(job->call, row);
        const operands x = {.a = free_in(job, 0) + row * keys + r.first, .p = m, .q = inverse(l)};
        write_zeros(&w, r.first);
        write_each(&w, softmax_of, x, r.last - r.first, o);
        write_zeros(&w, keys - r.last);
    }
    writer_flush(&w);
}

RO_INLINE void attn_dscore_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                                order o) {
    const int64_t keys = free_width(job);
    writer w;
    writer_open(&w, t, first * keys);
    for (int64_t row = first; row < last; row++) {
        const ro_range r = ro_admitted_keys(job->call, row);
        const operands x = {.a = free_in(job, 0) + row * keys + r.first,
                            .b = free_in(job, 1) + row * keys + r.first,
                            .p = free_at(job, 2, row)};
        write_zeros(&w, r.first);
        write_each(&w, softmax_grad_of, x, r.last - r.first, o);
        write_zeros(&w, keys - r.last);
    }
    writer_flush(&w);
}

/* ---- over blocks: over the reals, the walk of SPEC 8 is a sum with weights exp(mc - max) ---- */

typedef struct {
    int64_t count; /* blocks that are not skipped */
    double worst;  /* largest |mc - max| of a weight above 0 */
    int32_t block[SUM_TERMS];
    real weight[SUM_TERMS], distance[SUM_TERMS];
} weights;

RO_INLINE void find_weights(const float *mc, int64_t blocks, weights *x, order o) {
    int64_t n = 0;
    float greatest = ro_from_bits(RO_MINUS_INFINITY_BITS);
    for (int64_t c = 0; c < blocks; c++) {
        if (is_minus_infinity(mc[c]))
            continue;
        greatest = n == 0 ? mc[c] : ro_max(greatest, mc[c]);
        x->block[n++] = (int32_t)c;
    }
    x->count = n;
    x->worst = 0;
    for (int64_t i = 0; i < n; i++) {
        const real d = n == 1 ? 0 : (real)mc[x->block[i]] - (real)greatest;
        x->weight[i] = free_exp(d, o);
        x->distance[i] = ap_abs(d);
        x->worst = x->weight[i] > 0 && ap_size(d) > x->worst ? ap_size(d) : x->worst;
    }
}

RO_INLINE void attn_l_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                           order o) {
    const int64_t blocks = free_width(job);
    weights x;
    real lc[SUM_TERMS];
    writer w;
    writer_open(&w, t, first);
    for (int64_t row = first; row < last; row++) {
        find_weights(free_in(job, 0) + row * blocks, blocks, &x, o);
        for (int64_t i = 0; i < x.count; i++)
            lc[i] = (real)free_in(job, 1)[row * blocks + x.block[i]];
        for (int64_t i = 0; i < x.count; i++)
            x.distance[i] /= (real)x.count;
        approx y = {0, 0};
        if (w.bounds)
            y.e = sum_error(x.count, RO_EXP_ROUNDINGS + 1) *
                  sum_size(x.weight, lc, x.distance, x.count);
        y.v = sum_row(job->profile, x.weight, lc, x.count, o.contract);
        write_one(&w, y);
    }
    writer_flush(&w);
}

/* Writes some columns of one query. */
RO_INLINE void write_out(const ro_free_job *job, const weights *x, const float *ac, int64_t width,
                         int64_t count, approx over, writer *w, order o) {
    real a[SUM_COLUMNS], b[SUM_COLUMNS];
    sums s;
    sums_open(&s, job->profile, x->count, count, w->bounds);
    for (int64_t k = 0; k < x->count; k++) {
        const int64_t i = sums_term(job->profile, k, x->count);
        const float *restrict from = ac + x->block[i] * width;
        for (int64_t c = 0; c < count; c++) {
            a[c] = x->weight[i];
            b[c] = (real)from[c];
        }
        sums_add_products(&s, a, b, o.contract);
    }
    const real *y = sums_close(&s);
    const double error = sum_error(x->count, RO_EXP_ROUNDINGS + 1 + x->worst);
    for (int64_t c = 0; c < count; c++) {
        const approx sum = {y[c], w->bounds ? error * s.size[c] : 0};
        write_one(w, ap_either_sign(ap_mul(sum, over), sum, over));
    }
}

RO_INLINE void attn_out_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                             order o) {
    const ro_shape *shape = &job->call->input[1];
    const int64_t blocks = free_width(job), width = shape->dim[shape->ndim - 1];
    weights x;
    writer w;
    writer_open(&w, t, first * width);
    for (int64_t row = first; row < last; row++) {
        const float *ac = free_in(job, 1) + row * blocks * width;
        const approx over = inverse(free_at(job, 2, row));
        find_weights(free_in(job, 0) + row * blocks, blocks, &x, o);
        if (x.count == 0)
            write_zeros(&w, width);
        for (int64_t col = 0; x.count > 0 && col < width; col += SUM_COLUMNS)
            write_out(job, &x, ac + col, width, min_i64(SUM_COLUMNS, width - col), over, &w, o);
    }
    writer_flush(&w);
}

/* ---- heads of a group: an item is a position in one head of the output ---- */

static int64_t positions(const ro_call *call) {
    return ro_shape_numel(&call->output) / call->output.dim[3];
}

static void repeat_heads_grad(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {
    const int64_t times = job->call->attr[RO_REPEAT_TIMES], tokens = job->call->output.dim[2];
    const int64_t width = job->call->output.dim[3];
    sums s;
    writer w;
    writer_open(&w, t, first * width);
    for (int64_t i = first; i < last; i++) {
        const float *dy = free_in(job, 0) + (i / tokens * times * tokens + i % tokens) * width;
        for (int64_t col = 0; col < width; col += SUM_COLUMNS) {
            sums_open(&s, job->profile, times, min_i64(SUM_COLUMNS, width - col), w.bounds);
            for (int64_t k = 0; k < times; k++)
                sums_add(&s, dy + sums_term(job->profile, k, times) * tokens * width + col);
            sums_write(&s, &w, times, 0);
        }
    }
    writer_flush(&w);
}
RO_FREE_KERNEL(repeat_heads_grad, .range = repeat_heads_grad, .items = positions)

#define KERNEL(name)                                                                               \
    static void name(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {         \
        by_order(name##_body, job, first, last, t);                                                \
    }

KERNEL(attn_exp)
RO_FREE_KERNEL(attn_exp, .range = attn_exp, .items = free_rows)
RO_FREE_KERNEL(attn_exp_at, .range = attn_exp, .items = free_rows)
KERNEL(attn_prob)
RO_FREE_KERNEL(attn_prob, .range = attn_prob, .items = free_rows)
KERNEL(attn_dscore)
RO_FREE_KERNEL(attn_dscore, .range = attn_dscore, .items = free_rows)
KERNEL(attn_l)
RO_FREE_KERNEL(attn_l, .range = attn_l, .items = free_rows, .weight = 8)
KERNEL(attn_out)
RO_FREE_KERNEL(attn_out, .range = attn_out, .items = free_rows)
