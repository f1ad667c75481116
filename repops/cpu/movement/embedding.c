/* The gradients of embedding and gather, SPEC.md sections 3.3 and 5: a column reduction over the
 * positions that carry one id. Positions are first sorted by id (a counting sort keeps them
 * ascending), so the time is proportional to the sizes of dy and of the output. */
#include "repops/cpu/isa.h"
#include "repops/op_movement.h"

enum { TILE = 256, LEVELS = 7 }; /* 64^7 > 2^40 positions */

typedef struct {
    int64_t outer, rows, cols, positions; /* dy [outer, positions, cols], out [outer, rows, cols] */
    const float *dy;
    const int32_t *ids;
    float *out;
    int add;        /* if not 0, sums are added to `out` */
    int64_t *start; /* [rows + 1]: the positions of id v are order[start[v]..start[v + 1]) */
    int64_t *order; /* [positions] */
} plan;

static int in_table(const plan *p, int32_t id) {
    return id >= 0 && id < p->rows;
}

static void sort_positions(plan *p) {
    const int32_t *ids = p->ids;
    memset(p->start, 0, (size_t)(p->rows + 1) * sizeof *p->start);
    for (int64_t i = 0; i < p->positions; i++)
        if (in_table(p, ids[i]))
            p->start[ids[i] + 1]++;
    for (int64_t v = 0; v < p->rows; v++)
        p->start[v + 1] += p->start[v];
    for (int64_t i = 0; i < p->positions; i++)
        if (in_table(p, ids[i]))
            p->order[p->start[ids[i]]++] = i;
    /* The loop moved each id's start to its end, which is the start of the next id. */
    memmove(p->start + 1, p->start, (size_t)p->rows * sizeof *p->start);
    p->start[0] = 0;
}

static void add_to(float *restrict acc, const float *restrict x, int64_t count) {
    for (int64_t c = 0; c < count; c++)
        acc[c] = acc[c] + x[c];
}

/* Adds the sum of level l to level l + 1, and clears level l to +0. */
static void carry(float level[LEVELS][TILE], int l, int64_t count) {
    add_to(level[l + 1], level[l], count);
    memset(level[l], 0, (size_t)count * sizeof(float));
}

/* Stores sums, or adds them to `out`. An addition makes any NaN canonical. */
static void put_sums(const float *restrict sum, int add, int64_t count, float *restrict out) {
    if (add)
        for (int64_t c = 0; c < count; c++)
            out[c] = ro_canon(out[c] + sum[c]);
    else
        for (int64_t c = 0; c < count; c++)
            out[c] = ro_canon(sum[c]);
}

/* Sums the positions of an id. A sum that starts from +0 is never -0, so adding the +0 of an empty
 * level, or passing a sum through higher levels, changes no bit. */
static void sum_positions(const plan *p, const int64_t *order, int64_t n, const float *dy,
                          int64_t count, float *restrict out) {
    float level[LEVELS][TILE];
    int top = 0;
    memset(level[0], 0, (size_t)count * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        add_to(level[0], dy + order[i] * p->cols, count);
        for (int64_t l = 0, seen = i + 1; seen % RO_COLUMN_GROUP == 0;
             l++, seen /= RO_COLUMN_GROUP) {
            if (l == top)
                memset(level[++top], 0, (size_t)count * sizeof(float));
            carry(level, (int)l, count);
        }
    }
    for (int l = 0; l < top; l++)
        add_to(level[l + 1], level[l], count);
    put_sums(level[top], p->add, count, out);
}

/* An item is a tile of columns in a row of the output. */
static void sum_items(void *user, int64_t first, int64_t last, int worker) {
    const plan *p = user;
    const int64_t across = ceil_div(p->cols, TILE);
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = i / across, o = row / p->rows, v = row % p->rows;
        const int64_t col = i % across * TILE;
        const float *dy = p->dy + o * p->positions * p->cols + col;
        sum_positions(p, p->order + p->start[v], p->start[v + 1] - p->start[v], dy,
                      min_i64(TILE, p->cols - col), p->out + row * p->cols + col);
    }
}

static ro_status scatter(ro_ctx *ctx, plan *p) {
    p->start = ro_workspace(ctx, (size_t)(p->rows + 1 + p->positions) * sizeof *p->start);
    if (!p->start)
        return RO_ERR_MEMORY;
    p->order = p->start + p->rows + 1;
    sort_positions(p);
    /* Many pieces, as some ids are far more frequent than others and threads should finish
     * together. */
    const int64_t items = p->outer * p->rows * ceil_div(p->cols, TILE);
    const int64_t work = p->outer * (p->rows + p->positions) * p->cols;
    const int64_t pieces = min_i64(work / 4096 + 1, 64 * ro_ctx_threads(ctx));
    ro_pool_for(ro_ctx_pool(ctx), items, ceil_div(items, pieces), sum_items, p);
    return RO_OK;
}

static ro_status scatter_along(const ro_job *job, int64_t axis) {
    const ro_axis out = ro_axis_of(&job->call->output, axis);
    plan p = {.outer = out.outer, .rows = out.n, .cols = out.inner, .positions = in_numel(job, 1)};
    p.dy = job->in[0], p.ids = job->in[1], p.out = job->out;
    return scatter(job->ctx, &p);
}

static ro_status embedding_grad(const ro_job *job) {
    return scatter_along(job, 0);
}
RO_KERNEL(embedding_grad, .run = embedding_grad)

static ro_status gather_grad(const ro_job *job) {
    return scatter_along(job, job->call->attr[RO_GATHER_GRAD_AXIS]);
}
RO_KERNEL(gather_grad, .run = gather_grad)

static ro_status embedding_backward(ro_ctx *ctx, const ro_embedding_job *job) {
    plan p = {1,       job->rows, job->cols,       job->positions,
              job->dy, job->ids,  job->table.data, job->table.add};
    return scatter(ctx, &p);
}
RO_FUSED(embedding_backward, embedding_backward)
