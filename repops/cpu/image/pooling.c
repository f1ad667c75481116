/* Pooling, SPEC.md section 12.2. An item is a pixel of the output; compilers vectorise across its
 * channels, a tile of which stays in the first-level cache. */
#include "repops/cpu/isa.h"
#include "repops/src/conv.h"
#include "repops/op_image.h"

enum { TILE = 512 };

static int64_t pixels(const ro_call *call) {
    return ro_shape_numel(&call->output) / call->output.dim[3];
}

/* A pixel of the output, and a tile of its channels. */
typedef struct {
    int64_t n, h, w, col, count;
} pool_place;

static pool_place pool_place_of(const ro_job *job, int64_t item) {
    const int64_t *d = job->call->output.dim;
    return (pool_place){item / d[2] / d[1], item / d[2] % d[1], item % d[2], 0, 0};
}

/* Returns the index in x of channel `col` under tap (i, j) of window p, or -1 outside. */
static int64_t under(const ro_pooling *v, const pool_place *p, int64_t i, int64_t j) {
    const int64_t h = p->h * v->stride[0] - v->pad[0] + i;
    const int64_t w = p->w * v->stride[1] - v->pad[1] + j;
    const int inside = h >= 0 && h < v->in[0] && w >= 0 && w < v->in[1];
    return inside ? ((p->n * v->in[0] + h) * v->in[1] + w) * v->channels + p->col : -1;
}

/* ---- maximum ---- */

typedef struct {
    int32_t rank[TILE], tap[TILE];
} greatest;

static void pool_start(greatest *g, const float *restrict x, int32_t tap, int64_t count) {
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

static void search(const ro_pooling *v, const pool_place *p, const float *x, greatest *g) {
    int started = 0;
    for (int64_t t = 0; t < v->kernel[0] * v->kernel[1]; t++) {
        const int64_t at = under(v, p, t / v->kernel[1], t % v->kernel[1]);
        if (at < 0)
            continue;
        (started ? compare : pool_start)(g, x + at, (int32_t)t, p->count);
        started = 1;
    }
}

static void max_pool(const ro_job *job, int64_t first, int64_t last) {
    const ro_pooling v = ro_pooling_of(job->call);
    const int index = job->call->op == RO_OP_MAX_POOL2D_INDEX;
    greatest g;
    for (int64_t i = first; i < last; i++) {
        pool_place p = pool_place_of(job, i);
        for (; p.col < v.channels; p.col += TILE) {
            uint32_t *restrict out = (uint32_t *)job->out + i * v.channels + p.col;
            p.count = min_i64(TILE, v.channels - p.col);
            search(&v, &p, job->in[0], &g);
            for (int64_t c = 0; c < p.count; c++)
                out[c] = index ? (uint32_t)g.tap[c] : ro_unrank(g.rank[c]);
        }
    }
}
RO_KERNEL(max_pool2d, .range = max_pool, .items = pixels)
RO_KERNEL(max_pool2d_index, .range = max_pool, .items = pixels)

/* ---- sums: a few taps at a time, in groups of 64 ---- */

/* The term of a tap: an element, its share of a mean, or the element if this tap was chosen. */
typedef enum { ELEMENT, PART, CHOSEN } term;

typedef struct {
    const float *x;
    const int32_t *index;
    int32_t tap;
    float n;
} tap;

enum { FEW = 4 };

typedef struct {
    tap few[FEW]; /* taps that are still to be added */
    int waiting;
    int begun; /* total and sum are set */
    int64_t group, count;
    float total[TILE], sum[TILE];
} sums;

static void start_sums(sums *s, int64_t count) {
    s->waiting = 0, s->begun = 0, s->group = 0, s->count = count;
}

static void begin(sums *s) {
    if (!s->begun) {
        memset(s->total, 0, (size_t)s->count * sizeof *s->total);
        memset(s->sum, 0, (size_t)s->count * sizeof *s->sum);
    }
    s->begun = 1;
}

/* Returns sum plus the terms of the waiting taps. */
RO_INLINE float with_taps(const sums *s, const term kind, const int taps, int64_t c, float sum) {
    for (int k = 0; k < taps; k++) {
        const tap *t = &s->few[k];
        if (kind == CHOSEN)
            sum = t->index[c] == t->tap ? sum + t->x[c] : sum;
        else
            sum = sum + (kind == PART ? t->x[c] / t->n : t->x[c]);
    }
    return sum;
}

RO_INLINE void add_taps(sums *s, const term kind, const int taps) {
    const int64_t count = s->count;
    RO_SAME_INDEX
    for (int64_t c = 0; c < count; c++)
        s->sum[c] = with_taps(s, kind, taps, c, s->sum[c]);
}

/* Finishes sums of these taps alone: adding a total of +0 to a sum that began at +0 changes no
 * bit. */
RO_INLINE void only_taps(const sums *s, const term kind, const int taps, float n, float *out) {
    const int64_t count = s->count;
    RO_SAME_INDEX
    for (int64_t c = 0; c < count; c++) {
        const float sum = with_taps(s, kind, taps, c, 0.0f);
        out[c] = ro_canon(kind == ELEMENT ? sum / n : sum);
    }
}

RO_INLINE void add_waiting(sums *s, const term kind) {
    begin(s);
    switch (s->waiting) {
    case 1: add_taps(s, kind, 1); break;
    case 2: add_taps(s, kind, 2); break;
    case 3: add_taps(s, kind, 3); break;
    case 4: add_taps(s, kind, 4); break;
    default: break;
    }
    s->waiting = 0;
}

/* Stores the sums; those of elements are divided by n. */
RO_INLINE void pool_finish(sums *s, const term kind, float n, float *restrict out) {
    if (s->begun) {
        add_waiting(s, kind);
        for (int64_t c = 0; c < s->count; c++) {
            const float sum = s->total[c] + s->sum[c];
            out[c] = ro_canon(kind == ELEMENT ? sum / n : sum);
        }
        return;
    }
    switch (s->waiting) {
    case 1: only_taps(s, kind, 1, n, out); break;
    case 2: only_taps(s, kind, 2, n, out); break;
    case 3: only_taps(s, kind, 3, n, out); break;
    case 4: only_taps(s, kind, 4, n, out); break;
    default: only_taps(s, kind, 0, n, out); break;
    }
}

static void end_group(sums *s) {
    for (int64_t c = 0; c < s->count; c++) {
        s->total[c] = s->total[c] + s->sum[c];
        s->sum[c] = 0.0f;
    }
}

RO_INLINE void add_tap(sums *s, const term kind, tap t) {
    const int64_t group = t.tap / RO_POOL_GROUP;
    if (group != s->group || s->waiting == FEW)
        add_waiting(s, kind);
    if (group != s->group)
        end_group(s);
    s->group = group;
    s->few[s->waiting++] = t;
}

/* ---- averages ---- */

/* Finds the taps, `first` to `last`, of a window beginning at `from` that are inside the image. */
RO_INLINE void taps_inside(const ro_pooling *v, int d, int64_t from, int64_t *first,
                           int64_t *last) {
    *first = max_i64(0, -from);
    *last = min_i64(v->kernel[d], v->in[d] - from);
}

static void sum_window(const ro_pooling *v, const pool_place *p, const float *x, sums *s) {
    const int64_t h = p->h * v->stride[0] - v->pad[0], w = p->w * v->stride[1] - v->pad[1];
    int64_t i, rows, left, cols;
    taps_inside(v, 0, h, &i, &rows);
    taps_inside(v, 1, w, &left, &cols);
    for (; i < rows; i++)
        for (int64_t j = left; j < cols; j++) {
            const int64_t at = ((p->n * v->in[0] + h + i) * v->in[1] + w + j) * v->channels;
            add_tap(s, ELEMENT,
                    (tap){.x = x + at + p->col, .tap = (int32_t)(i * v->kernel[1] + j)});
        }
}

static void avg_pool(const ro_job *job, int64_t first, int64_t last) {
    const ro_pooling v = ro_pooling_of(job->call);
    sums s;
    for (int64_t i = first; i < last; i++) {
        pool_place p = pool_place_of(job, i);
        const float n = (float)ro_pool_count(&v, p.h, p.w);
        for (; p.col < v.channels; p.col += TILE) {
            float *out = (float *)job->out + i * v.channels + p.col;
            p.count = min_i64(TILE, v.channels - p.col);
            start_sums(&s, p.count);
            sum_window(&v, &p, job->in[0], &s);
            pool_finish(&s, ELEMENT, n, out);
        }
    }
}
RO_KERNEL(avg_pool2d, .range = avg_pool, .items = pixels)

/* ---- gradients: an item is a pixel of x ---- */

/* Adds the windows that see a pixel, by ascending tap: every stride-th tap, one window back
 * each. */
RO_INLINE void sum_windows(const ro_job *job, const ro_pooling *v, const pool_place *p,
                           const term kind, sums *s) {
    const int64_t h = p->h + v->pad[0], w = p->w + v->pad[1];
    for (int64_t i = h % v->stride[0]; i < v->kernel[0] && i <= h; i += v->stride[0]) {
        int64_t y = (h - i) / v->stride[0], j = w % v->stride[1], x = w / v->stride[1];
        if (y >= v->out[0])
            continue;
        for (; j < v->kernel[1] && x >= 0; j += v->stride[1], x--) {
            if (x >= v->out[1])
                continue;
            const int64_t at = ((p->n * v->out[0] + y) * v->out[1] + x) * v->channels + p->col;
            add_tap(s, kind,
                    (tap){.x = (const float *)job->in[0] + at,
                          .index = kind == CHOSEN ? (const int32_t *)job->in[1] + at : NULL,
                          .tap = (int32_t)(i * v->kernel[1] + j),
                          .n = kind == PART ? (float)ro_pool_count(v, y, x) : 0.0f});
        }
    }
}

RO_INLINE void pool_grad(const ro_job *job, int64_t first, int64_t last, const term kind) {
    const ro_pooling v = ro_pooling_of(job->call);
    sums s;
    for (int64_t i = first; i < last; i++) {
        pool_place p = pool_place_of(job, i);
        for (; p.col < v.channels; p.col += TILE) {
            float *out = (float *)job->out + i * v.channels + p.col;
            p.count = min_i64(TILE, v.channels - p.col);
            start_sums(&s, p.count);
            sum_windows(job, &v, &p, kind, &s);
            pool_finish(&s, kind, 1.0f, out);
        }
    }
}

static void max_pool_grad(const ro_job *job, int64_t first, int64_t last) {
    pool_grad(job, first, last, CHOSEN);
}
RO_KERNEL(max_pool2d_grad, .range = max_pool_grad, .items = pixels)

static void avg_pool_grad(const ro_job *job, int64_t first, int64_t last) {
    pool_grad(job, first, last, PART);
}
RO_KERNEL(avg_pool2d_grad, .range = avg_pool_grad, .items = pixels)
