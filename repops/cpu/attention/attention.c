/* Operators of attention other than products (SPEC.md section 8). An item is a query, that is a row
 * of scores, unless stated otherwise. */
#include "repops/cpu/rows/max.h"
#include "repops/cpu/rows/softmax.h"
#include "repops/op_attention.h"
#include "repops/src/keys.h"

enum { MAX_BLOCKS = (RO_CRUMB_LOADS - 1) / 2 }; /* most blocks of keys: SPEC.md section 11 */

/* ---- rows of scores ---- */

static int64_t keys_of(const ro_call *call) {
    return call->input[0].dim[call->input[0].ndim - 1];
}

static int64_t queries(const ro_call *call) {
    return ro_rows_of(&call->input[0]);
}

static int64_t blocks_of(const ro_call *call) {
    return ceil_div(keys_of(call), RO_ATTN_BLOCK);
}

static ro_range keys_of_row(const ro_job *job, int64_t row) {
    const int last = job->call->input_count - 1;
    return ro_keys_of(job->call, row,
                      ro_is_placed(job->call) ? *(const int32_t *)job->in[last] : 0);
}

static void attn_max(const ro_job *job, int64_t first, int64_t last) {
    const int64_t keys = keys_of(job->call), blocks = blocks_of(job->call);
    for (int64_t row = first; row < last; row++) {
        const float *s = (const float *)job->in[0] + row * keys;
        float *out = (float *)job->out + row * blocks;
        const ro_range r = keys_of_row(job, row);
        for (int64_t c = 0; c < blocks; c++) {
            const int64_t from = max_i64(r.first, c * RO_ATTN_BLOCK);
            const int64_t count = min_i64(r.last, (c + 1) * RO_ATTN_BLOCK) - from;
            out[c] = count > 0 ? max_of(s + from, count) : ro_from_bits(RO_MINUS_INFINITY_BITS);
        }
    }
}
RO_KERNEL(attn_max, .range = attn_max, .items = queries)
RO_KERNEL(attn_max_at, .range = attn_max, .items = queries)

static void attn_exp_row(const float *s, const float *mc, ro_range r, float *out) {
    for (int64_t c = r.first / RO_ATTN_BLOCK; c * RO_ATTN_BLOCK < r.last; c++) {
        const int64_t from = max_i64(r.first, c * RO_ATTN_BLOCK);
        const int64_t count = min_i64(r.last, (c + 1) * RO_ATTN_BLOCK) - from;
        if (is_minus_infinity(mc[c]))
            clear(out + from, count);
        else
            map(exp_minus, (constants){.a = mc[c]}, s + from, count, out + from);
    }
}

/* Stores +0 for the keys that a row of scores does not attend to. */
static void clear_others(float *out, ro_range r, int64_t keys) {
    clear(out, r.first);
    clear(out + r.last, keys - r.last);
}

static void attn_exp(const ro_job *job, int64_t first, int64_t last) {
    const int64_t keys = keys_of(job->call), blocks = blocks_of(job->call);
    for (int64_t row = first; row < last; row++) {
        const ro_range r = keys_of_row(job, row);
        float *out = (float *)job->out + row * keys;
        attn_exp_row((const float *)job->in[0] + row * keys,
                     (const float *)job->in[1] + row * blocks, r, out);
        clear_others(out, r, keys);
    }
}
RO_KERNEL(attn_exp, .range = attn_exp, .items = queries)
RO_KERNEL(attn_exp_at, .range = attn_exp, .items = queries)

/* Computes out = the sum of the values [from, to), each times its weight. */
static void weigh(const float *e, const float *v, int64_t from, int64_t to, int64_t width,
                  float *restrict out) {
    clear(out, width);
    for (int64_t j = from; j < to; j++)
        for (int64_t d = 0; d < width; d++)
            out[d] = ro_fma(e[j], v[j * width + d], out[d]);
    for (int64_t d = 0; d < width; d++)
        out[d] = ro_canon(0.0f + out[d]);
}

/* Does what attn_av does, but reads only the admitted keys, whatever their position. */
static void attn_av_at(const ro_job *job, int64_t first, int64_t last) {
    const ro_shape *s = &job->call->input[0], *out = &job->call->output;
    const int64_t keys = keys_of(job->call), blocks = blocks_of(job->call);
    const int64_t width = out->dim[out->ndim - 1], tokens = s->dim[s->ndim - 2];
    for (int64_t row = first; row < last; row++) {
        const ro_range r = keys_of_row(job, row);
        const float *e = (const float *)job->in[0] + row * keys;
        const float *v = (const float *)job->in[1] + row / tokens * keys * width;
        for (int64_t c = 0; c < blocks; c++)
            weigh(e, v, max_i64(r.first, c * RO_ATTN_BLOCK),
                  min_i64(r.last, (c + 1) * RO_ATTN_BLOCK), width,
                  (float *)job->out + (row * blocks + c) * width);
    }
}
RO_KERNEL(attn_av_at, .range = attn_av_at, .items = queries)

static void attn_prob(const ro_job *job, int64_t first, int64_t last) {
    const int64_t keys = keys_of(job->call);
    const float *s = job->in[0], *m = job->in[1], *l = job->in[2];
    for (int64_t row = first; row < last; row++) {
        const ro_range none = {0, 0};
        const ro_range r = is_minus_infinity(m[row]) ? none : ro_admitted_keys(job->call, row);
        float *out = (float *)job->out + row * keys;
        map(exp_scaled, (constants){.a = m[row], .b = 1.0f / l[row]}, s + row * keys + r.first,
            r.last - r.first, out + r.first);
        clear_others(out, r, keys);
    }
}
RO_KERNEL(attn_prob, .range = attn_prob, .items = queries)

static void dscore_row(const float *restrict p, const float *restrict dp, float delta,
                       int64_t count, float *restrict out) {
    for (int64_t j = 0; j < count; j++)
        out[j] = ro_canon(p[j] * (dp[j] - delta));
}

static void attn_dscore(const ro_job *job, int64_t first, int64_t last) {
    const int64_t keys = keys_of(job->call);
    const float *p = job->in[0], *dp = job->in[1], *delta = job->in[2];
    for (int64_t row = first; row < last; row++) {
        const ro_range r = ro_admitted_keys(job->call, row);
        const int64_t at = row * keys + r.first;
        float *out = (float *)job->out + row * keys;
        dscore_row(p + at, dp + at, delta[row], r.last - r.first, out + r.first);
        clear_others(out, r, keys);
    }
}
RO_KERNEL(attn_dscore, .range = attn_dscore, .items = queries)

/* ---- the walk over blocks ---- */

/* The blocks that are not skipped, and the factors A and B (SPEC.md section 8) of each but the
 * first. */
typedef struct {
    int64_t count;
    int32_t block[MAX_BLOCKS];
    float a[MAX_BLOCKS], b[MAX_BLOCKS];
} walk;

static void find_factors(const float *mc, int64_t blocks, walk *w) {
    int64_t n = 0;
    float m = 0;
    for (int64_t c = 0; c < blocks; c++) {
        if (is_minus_infinity(mc[c]))
            continue;
        const float next = n == 0 ? mc[c] : ro_max(m, mc[c]);
        w->block[n] = (int32_t)c;
        w->a[n] = m - next;
        w->b[n] = mc[c] - next;
        m = next;
        n++;
    }
    w->count = n;
    map(exp_minus, (constants){0}, w->a, n, w->a);
    map(exp_minus, (constants){0}, w->b, n, w->b);
}

static void attn_l(const ro_job *job, int64_t first, int64_t last) {
    const int64_t blocks = keys_of(job->call); /* the last dimension of mc */
    walk w;
    for (int64_t row = first; row < last; row++) {
        const float *lc = (const float *)job->in[1] + row * blocks;
        find_factors((const float *)job->in[0] + row * blocks, blocks, &w);
        float l = w.count > 0 ? lc[w.block[0]] : 0.0f;
        for (int64_t i = 1; i < w.count; i++)
            l = ro_fma(l, w.a[i], w.b[i] * lc[w.block[i]]);
        ((float *)job->out)[row] = ro_canon(l);
    }
}
RO_KERNEL(attn_l, .range = attn_l, .items = queries)

static void attn_out(const ro_job *job, int64_t first, int64_t last) {
    const ro_shape *shape = &job->call->input[1];
    const int64_t blocks = keys_of(job->call), width = shape->dim[shape->ndim - 1];
    const float *l = job->in[2];
    walk w;
    for (int64_t row = first; row < last; row++) {
        const float *ac = (const float *)job->in[1] + row * blocks * width;
        float *o = (float *)job->out + row * width;
        find_factors((const float *)job->in[0] + row * blocks, blocks, &w);
        if (w.count == 0) {
            clear(o, width);
            continue;
        }
        memcpy(o, ac + w.block[0] * width, (size_t)width * sizeof *o);
        for (int64_t i = 1; i < w.count; i++)
            combine(o, w.a[i], w.b[i], ac + w.block[i] * width, width);
        scale_row(o, 1.0f / l[row], width);
    }
}
RO_KERNEL(attn_out, .range = attn_out, .items = queries)

/* ---- heads of a group: an item is a position of one head of the output ---- */

static int64_t positions(const ro_call *call) {
    return ro_shape_numel(&call->output) / call->output.dim[3];
}

static void add_row(float *restrict sum, const float *restrict x, int64_t width) {
    for (int64_t d = 0; d < width; d++)
        sum[d] = sum[d] + x[d];
}

static void repeat_heads_grad(const ro_job *job, int64_t first, int64_t last) {
    const int64_t times = job->call->attr[RO_REPEAT_TIMES], tokens = job->call->output.dim[2];
    const int64_t width = job->call->output.dim[3];
    for (int64_t i = first; i < last; i++) {
        const int64_t from = i / tokens * times * tokens + i % tokens;
        float *sum = (float *)job->out + i * width;
        clear(sum, width);
        for (int64_t g = 0; g < times; g++)
            add_row(sum, (const float *)job->in[0] + (from + g * tokens) * width, width);
        for (int64_t d = 0; d < width; d++)
            sum[d] = ro_canon(sum[d]);
    }
}
RO_KERNEL(repeat_heads_grad, .range = repeat_heads_grad, .items = positions)
