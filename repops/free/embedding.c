/* The gradients of embedding and gather, SPEC.md sections 3.3 and 5: sums over the positions that
 * carry one id. Positions are first sorted by id; a counting sort keeps them ascending. */
#include "repops/free/sums.h"
#include "repops/op_movement.h"

typedef struct {
    const ro_free_job *job;
    int64_t outer, rows, cols, positions; /* dy [outer, positions, cols], out [outer, rows, cols] */
    int64_t *start; /* [rows + 1]: the positions of id v are order[start[v]..start[v + 1]) */
    int64_t *place; /* [positions]: positions sorted by id */
} plan;

static void sort_positions(plan *p) {
    const int32_t *ids = p->job->in[1];
    memset(p->start, 0, (size_t)(p->rows + 1) * sizeof *p->start);
    for (int64_t i = 0; i < p->positions; i++)
        if (ids[i] >= 0 && ids[i] < p->rows)
            p->start[ids[i] + 1]++;
    for (int64_t v = 0; v < p->rows; v++)
        p->start[v + 1] += p->start[v];
    for (int64_t i = 0; i < p->positions; i++)
        if (ids[i] >= 0 && ids[i] < p->rows)
            p->place[p->start[ids[i]]++] = i;
    /* Filling moved each id's start to its end, which is the start of the next id. */
    memmove(p->start + 1, p->start, (size_t)p->rows * sizeof *p->start);
    p->start[0] = 0;
}

/* An item is a row of the output. */
static void sum_items(void *user, int64_t first, int64_t last, int worker) {
    const plan *p = user;
    const ro_profile *profile = p->job->profile;
    sums s;
    writer w;
    writer_open(&w, &p->job->emitter[worker], first * p->cols);
    for (int64_t row = first; row < last; row++) {
        const int64_t o = row / p->rows, from = p->start[row % p->rows];
        const int64_t n = p->start[row % p->rows + 1] - from;
        const float *dy = free_in(p->job, 0) + o * p->positions * p->cols;
        if (n == 0) {
            write_zeros(&w, p->cols);
            continue;
        }
        for (int64_t col = 0; col < p->cols; col += SUM_COLUMNS) {
            sums_open(&s, profile, n, min_i64(SUM_COLUMNS, p->cols - col), w.bounds);
            for (int64_t k = 0; k < n; k++)
                sums_add(&s, dy + p->place[from + sums_term(profile, k, n)] * p->cols + col);
            sums_write(&s, &w, n, 0);
        }
    }
    writer_flush(&w);
}

static ro_status scatter(const ro_free_job *job, int64_t axis) {
    const ro_axis out = ro_axis_of(&job->call->output, axis);
    plan p = {job, out.outer, out.n, out.inner, free_numel(job, 1), NULL, NULL};
    p.start = ro_workspace(job->ctx, (size_t)(p.rows + 1 + p.positions) * sizeof *p.start);
    if (!p.start)
        return RO_ERR_MEMORY;
    p.place = p.start + p.rows + 1;
    sort_positions(&p);
    /* Cuts the rows into many pieces, since some ids are far more frequent than others, and threads
     * should finish together. */
    const int64_t items = p.outer * p.rows, work = p.outer * (p.rows + p.positions) * p.cols;
    const int64_t pieces = min_i64(work / 4096 + 1, 64 * ro_ctx_threads(job->ctx));
    ro_pool_for(ro_ctx_pool(job->ctx), items, ceil_div(items, pieces), sum_items, &p);
    return RO_OK;
}

static ro_status embedding_grad(const ro_free_job *job) {
    return scatter(job, 0);
}
RO_FREE_KERNEL(embedding_grad, .run = embedding_grad)

static ro_status gather_grad(const ro_free_job *job) {
    return scatter(job, job->call->attr[RO_GATHER_GRAD_AXIS]);
}
RO_FREE_KERNEL(gather_grad, .run = gather_grad)
