/* Pooling, SPEC.md section 12.2. An item is a pixel of the output; compilers vectorise across its
 * channels, a tile of which stays in the first-level cache. */
#include "repops/cpu/isa.h"
#include "repops/src/conv.h"

enum { TILE = 512 };

static int64_t pixels(const ro_call *call) {
    return ro_shape_numel(&call->output) / call->output.dim[3];
}

/* A pixel of the output and some of its channels. */
typedef struct {
    int64_t n, h, w, col, count;
} place;

static place place_of(const ro_job *job, int64_t item) {
    const int64_t *d = job->call->output.dim;
    return (place){item / d[2] / d[1], item / d[2] % d[1], item % d[2], 0, 0};
}

/* The place of channel `col` under tap (i, j) of window p, in x; -1 outside. */
static int64_t under(const ro_pooling *v, const place *p, int64_t i, int64_t j) {
    const int64_t h = p->h * v->stride[0] - v->pad[0] + i;
    const int64_t w = p->w * v->stride[1] - v->pad[1] + j;
    const int inside = h >= 0 && h < v->in[0] && w >= 0 && w < v->in[1];
    return inside ? ((p->n * v->in[0] + h) * v->in[1] + w) * v->channels + p->col : -1;
}

/* ---- maximum ---- */

typedef struct {
    int32_t rank[TILE], tap[TILE];
} greatest;

static void start(greatest *g, const float *restrict x, int32_t tap, int64_t count) {
    for (int64_t c = 0; c < count; c++) {
        g->rank[c] = ro_rank(x[c]);
        g->tap[c] = tap;
    }
}

static void compare(greatest *g, const float *restrict x, int32_t tap, int64_t count) {
    for (int64_t c = 0; c < count; c++) {
        const int32_t rank = ro_rank(x[c]);
        g->tap[c] = rank > g->rank[c] ? tap : g->tap[c];
        g->rank[c] = rank > g->rank[c] ? rank : g->rank[c];
    }
}

static void search(const ro_pooling *v, const place *p, const float *x, greatest *g) {
    int started = 0;
    for (int64_t t = 0; t < v->kernel[0] * v->kernel[1]; t++) {
        const int64_t at = under(v, p, t / v->kernel[1], t % v->kernel[1]);
        if (at < 0)
            continue;
        (started ? compare : start)(g, x + at, (int32_t)t, p->count);
        started = 1;
    }
}

static void max_pool(const ro_job *job, int64_t first, int64_t last) {
    const ro_pooling v = ro_pooling_of(job->call);
    const int index = job->call->op == RO_OP_MAX_POOL2D_INDEX;
    greatest g;
    for (int64_t i = first; i < last; i++) {
        place p = place_of(job, i);
        for (; p.col < v.channels; p.col += TILE) {
            uint32_t *restrict out = (uint32_t *)job->out + i * v.channels + p.col;
            p.count = min_i64(TILE, v.channels - p.col);
            search(&v, &p, job->in[0], &g);
            for (int64_t c = 0; c < p.count; c++)
                out[c] = index ? (uint32_t)g.tap[c] : ro_unrank(g.rank[c]);
        }
    }
}

/* ---- sums: a group of 64 taps at a time ---- */

typedef struct {
    float total[TILE], sum[TILE];
} sums;

static void end_group(sums *s, int64_t count) {
    for (int64_t c = 0; c < count; c++) {
        s->total[c] = s->total[c] + s->sum[c];
        s->sum[c] = 0.0f;
    }
}

static void add_to(float *restrict sum, const float *restrict x, int64_t count) {
    for (int64_t c = 0; c < count; c++)
        sum[c] = sum[c] + x[c];
}

static void add_part(float *restrict sum, const float *restrict x, float n, int64_t count) {
    for (int64_t c = 0; c < count; c++)
        sum[c] = sum[c] + x[c] / n;
}

static void add_where(float *restrict sum, const float *restrict x, const int32_t *restrict index,
                      int32_t tap, int64_t count) {
    for (int64_t c = 0; c < count; c++)
        sum[c] = index[c] == tap ? sum[c] + x[c] : sum[c];
}

static void sum_window(const ro_pooling *v, const place *p, const float *x, sums *s) {
    for (int64_t t = 0; t < v->kernel[0] * v->kernel[1]; t++) {
        const int64_t at = under(v, p, t / v->kernel[1], t % v->kernel[1]);
        if (t > 0 && t % RO_POOL_GROUP == 0)
            end_group(s, p->count);
        if (at >= 0)
            add_to(s->sum, x + at, p->count);
    }
    end_group(s, p->count);
}

static void avg_pool(const ro_job *job, int64_t first, int64_t last) {
    const ro_pooling v = ro_pooling_of(job->call);
    for (int64_t i = first; i < last; i++) {
        place p = place_of(job, i);
        const float n = (float)ro_pool_count(&v, p.h, p.w);
        for (; p.col < v.channels; p.col += TILE) {
            float *restrict out = (float *)job->out + i * v.channels + p.col;
            sums s = {{0}, {0}};
            p.count = min_i64(TILE, v.channels - p.col);
            sum_window(&v, &p, job->in[0], &s);
            for (int64_t c = 0; c < p.count; c++)
                out[c] = ro_canon(s.total[c] / n);
        }
    }
}

/* ---- gradients: an item is a pixel of x ---- */

/* What this pixel receives as tap t of the window over it, if there is one. */
static void add_window(const ro_job *job, const ro_pooling *v, const place *p, int64_t t,
                       float *sum) {
    const int64_t y = p->h + v->pad[0] - t / v->kernel[1];
    const int64_t x = p->w + v->pad[1] - t % v->kernel[1];
    const int64_t h = y / v->stride[0], w = x / v->stride[1];
    if (y < 0 || x < 0 || y % v->stride[0] != 0 || x % v->stride[1] != 0 || h >= v->out[0] ||
        w >= v->out[1])
        return;
    const int64_t at = ((p->n * v->out[0] + h) * v->out[1] + w) * v->channels + p->col;
    const float *dy = (const float *)job->in[0] + at;
    if (job->call->op == RO_OP_MAX_POOL2D_GRAD)
        add_where(sum, dy, (const int32_t *)job->in[1] + at, (int32_t)t, p->count);
    else
        add_part(sum, dy, (float)ro_pool_count(v, h, w), p->count);
}

static void pool_grad(const ro_job *job, int64_t first, int64_t last) {
    const ro_pooling v = ro_pooling_of(job->call);
    for (int64_t i = first; i < last; i++) {
        place p = place_of(job, i);
        for (; p.col < v.channels; p.col += TILE) {
            float *restrict out = (float *)job->out + i * v.channels + p.col;
            sums s = {{0}, {0}};
            p.count = min_i64(TILE, v.channels - p.col);
            for (int64_t t = 0; t < v.kernel[0] * v.kernel[1]; t++) {
                if (t > 0 && t % RO_POOL_GROUP == 0)
                    end_group(&s, p.count);
                add_window(job, &v, &p, t, s.sum);
            }
            end_group(&s, p.count);
            for (int64_t c = 0; c < p.count; c++)
                out[c] = ro_canon(s.total[c]);
        }
    }
}

void RO_NAME(ro_add_pooling)(ro_table *table) {
    table->kernel[RO_OP_MAX_POOL2D] = (ro_kernel){.range = max_pool, .items = pixels};
    table->kernel[RO_OP_MAX_POOL2D_INDEX] = (ro_kernel){.range = max_pool, .items = pixels};
    table->kernel[RO_OP_MAX_POOL2D_GRAD] = (ro_kernel){.range = pool_grad, .items = pixels};
    table->kernel[RO_OP_AVG_POOL2D] = (ro_kernel){.range = avg_pool, .items = pixels};
    table->kernel[RO_OP_AVG_POOL2D_GRAD] = (ro_kernel){.range = pool_grad, .items = pixels};
}
