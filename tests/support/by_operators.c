#include "tests/support/by_operators.h"

#include "repops/device.h"
#include "repops/src/call.h"
#include "repops/operators.h"

enum { INPUTS = 5 };

/* A reduction: operator `op` with these inputs on the lowest level, `next` on all others. */
typedef struct {
    int op, next;
    int64_t rows, cols;
    int inputs;
    ro_shape in[INPUTS];
    const void *data[INPUTS];
} reduction;

/* ---- levels of a reduction ---- */

typedef struct {
    int64_t attr[2];
    ro_shape output;
    int64_t left; /* blocks or groups that remain after this level */
} level;

static level level_of_rows(const reduction *r, int64_t left) {
    const int64_t block = left < RO_REDUCE_BLOCK ? left : RO_REDUCE_BLOCK;
    const int64_t blocks = ro_blocks_of(left, block);
    return (level){{left, block}, {RO_F32, 2, {r->rows, blocks}}, blocks};
}

static level level_of_columns(const reduction *r, int64_t left) {
    const int64_t groups = ro_blocks_of(left, RO_COLUMN_GROUP);
    return (level){{r->cols, 0}, {RO_F32, 2, {groups, r->cols}}, groups};
}

static ro_status levels(ro_ctx *ctx, const reduction *r, int64_t left,
                        level (*level_of)(const reduction *r, int64_t left), float *room,
                        float *out) {
    reduction now = *r;
    for (;;) {
        const level l = level_of(r, left);
        float *to = l.left > 1 ? room : out;
        const ro_call call = {now.op, now.inputs, {l.attr[0], l.attr[1]}, now.in, l.output};
        const ro_status status = ro_run(ctx, &call, now.data, to);
        if (status != RO_OK || l.left == 1)
            return status;
        now.op = r->next, now.inputs = 1, now.in[0] = l.output, now.data[0] = to;
        room += ro_shape_numel(&l.output), left = l.left;
    }
}

static ro_status reduce_rows(ro_ctx *ctx, const reduction *r, float *room, float *out) {
    return levels(ctx, r, r->cols, level_of_rows, room, out);
}

static ro_status reduce_columns(ro_ctx *ctx, const reduction *r, float *room, float *out) {
    return levels(ctx, r, r->rows, level_of_columns, room, out);
}

/* ---- linear layers ---- */

static ro_status linear(ro_ctx *ctx, const ro_linear_job *j) {
    static const int op[] = {[RO_ACTIVATION_RELU] = RO_OP_RELU,
                             [RO_ACTIVATION_GELU] = RO_OP_GELU,
                             [RO_ACTIVATION_GELU_ERF] = RO_OP_GELU_ERF,
                             [RO_ACTIVATION_SILU] = RO_OP_SILU};
    const ro_linear_layer *l = &j->layer;
    const ro_shape x = {RO_F32, 2, {l->rows, l->in}}, row = {RO_F32, 1, {l->out}};
    const ro_shape w = {
        RO_F32, 2, {l->transposed ? l->out : l->in, l->transposed ? l->in : l->out}};
    const ro_shape y = {RO_F32, 2, {l->rows, l->out}}, in[] = {x, w}, terms[] = {y, row};
    float *z = j->z ? j->z : j->y;
    const int64_t trans = l->transposed ? 2 : 0, bits = l->fixed_bits;
    const ro_call matmul = {RO_OP_MATMUL, 2, {0, trans, ro_attr_f32(1), RO_DOT_CHUNK, 0}, in, y};
    const ro_call fixed = {RO_OP_MATMUL_FIXED, 2, {0, trans, ro_attr_f32(1), bits}, in, y};
    const ro_call sum = {RO_OP_ADD, 2, {0}, terms, y};
    const ro_call function = {op[l->activation], 1, {0}, &y, y};
    ro_status status = ro_run(ctx, bits ? &fixed : &matmul, (const void *[]){j->x, j->w}, z);
    if (status == RO_OK && j->bias)
        status = ro_run(ctx, &sum, (const void *[]){z, j->bias}, z);
    if (status == RO_OK && l->activation != RO_ACTIVATION_NONE)
        status = ro_run(ctx, &function, (const void *[]){z}, j->y);
    return status;
}

/* ---- rows, forward ---- */

static ro_status reduce(ro_ctx *ctx, const ro_row_job *j, int op, int next, const float *second,
                        float *out) {
    const reduction r = {op,
                         next,
                         j->rows,
                         j->cols,
                         second ? 2 : 1,
                         {{RO_F32, 2, {j->rows, j->cols}}, {RO_F32, 1, {j->rows}}},
                         {j->x, second}};
    return reduce_rows(ctx, &r, j->y, out); /* y is large enough for all levels */
}

static ro_status run_one(ro_ctx *ctx, int op, const int64_t attr[2], const ro_shape *in, int inputs,
                         const void *const *data, ro_shape output, float *out) {
    const ro_call call = {op, inputs, {attr[0], attr[1]}, in, output};
    return ro_run(ctx, &call, data, out);
}

static ro_status layer_norm(ro_ctx *ctx, const ro_row_job *j) {
    const ro_shape x = {RO_F32, 2, {j->rows, j->cols}}, row = {RO_F32, 1, {j->rows}};
    const ro_shape col = {RO_F32, 1, {j->cols}};
    float *mean = j->statistic[0], *rstd = j->statistic[1];
    float *ss = ro_alloc(ctx, (size_t)j->rows * sizeof *ss);
    if (!ss)
        return RO_ERR_MEMORY;
    const int64_t divide[] = {ro_attr_f32((float)j->cols), 0};
    const int64_t root[] = {j->cols, ro_attr_f32(j->eps)}, none[] = {0, 0};
    ro_status status = reduce(ctx, j, RO_OP_REDUCE_SUM, RO_OP_REDUCE_SUM, NULL, mean);
    if (status == RO_OK)
        status = run_one(ctx, RO_OP_DIV_CONST, divide, &row, 1, (const void *[]){mean}, row, mean);
    if (status == RO_OK)
        status = reduce(ctx, j, RO_OP_REDUCE_SQDEV, RO_OP_REDUCE_SUM, mean, ss);
    if (status == RO_OK)
        status = run_one(ctx, RO_OP_LN_RSTD, root, &row, 1, (const void *[]){ss}, row, rstd);
    ro_free(ctx, ss);
    if (status == RO_OK)
        status = run_one(ctx, RO_OP_LAYERNORM, none, (const ro_shape[]){x, row, row, col, col}, 5,
                         (const void *[]){j->x, mean, rstd, j->gamma, j->beta}, x, j->y);
    return status;
}

static ro_status either(ro_ctx *ctx, const ro_row_job *j, int op) {
    const ro_shape x = {RO_F32, 2, {j->rows, j->cols}}, row = {RO_F32, 1, {j->rows}};
    float *m = j->statistic[0], *l = j->statistic[1];
    ro_status status = reduce(ctx, j, RO_OP_REDUCE_MAX, RO_OP_REDUCE_MAX, NULL, m);
    if (status == RO_OK)
        status = reduce(ctx, j, RO_OP_REDUCE_EXPSUM, RO_OP_REDUCE_SUM, m, l);
    if (status == RO_OK)
        status = run_one(ctx, op, (const int64_t[]){0, 0}, (const ro_shape[]){x, row, row}, 3,
                         (const void *[]){j->x, m, l}, x, j->y);
    return status;
}

static ro_status softmax(ro_ctx *ctx, const ro_row_job *j) {
    return either(ctx, j, RO_OP_SOFTMAX);
}

static ro_status log_softmax(ro_ctx *ctx, const ro_row_job *j) {
    return either(ctx, j, RO_OP_LOG_SOFTMAX);
}

/* ---- rows, backward: sums of dy and x come first, as dx may overwrite one of them ---- */

/* Buffers for sums: twice one number for each row, and room for lower levels. */
typedef struct {
    float *sg, *sgx, *room;
} sums;

static ro_shape whole(const ro_row_grad_job *j) {
    return (ro_shape){RO_F32, 2, {j->rows, j->cols}};
}

static ro_shape of_rows(const ro_row_grad_job *j) {
    return (ro_shape){RO_F32, 1, {j->rows}};
}

static ro_shape of_columns(const ro_row_grad_job *j) {
    return (ro_shape){RO_F32, 1, {j->cols}};
}

static int64_t room_of(const ro_row_grad_job *j) {
    const int64_t rows = j->rows * ro_blocks_of(j->cols, RO_REDUCE_BLOCK);
    const int64_t columns = j->dgamma ? j->cols * ro_blocks_of(j->rows, RO_COLUMN_GROUP) : 0;
    return 2 * (rows > columns ? rows : columns);
}

static ro_status norm_column_sums(ro_ctx *ctx, const ro_row_grad_job *j, const sums *s) {
    const ro_shape x = whole(j), row = of_rows(j);
    const float *mean = j->statistic[0], *rstd = j->statistic[1];
    const reduction gamma = {RO_OP_LN_DGAMMA,  RO_OP_SUM_ROWS,           j->rows, j->cols, 4,
                             {x, x, row, row}, {j->dy, j->x, mean, rstd}};
    const reduction beta = {RO_OP_SUM_ROWS, RO_OP_SUM_ROWS, j->rows, j->cols, 1, {x}, {j->dy}};
    const ro_status status = reduce_columns(ctx, &gamma, s->room, j->dgamma);
    return status == RO_OK ? reduce_columns(ctx, &beta, s->room, j->dbeta) : status;
}

static ro_status norm_row_sums(ro_ctx *ctx, const ro_row_grad_job *j, const sums *s) {
    const ro_shape x = whole(j), row = of_rows(j), col = of_columns(j);
    const reduction sg = {RO_OP_REDUCE_DOT, RO_OP_REDUCE_SUM, j->rows, j->cols, 2,
                          {x, col},         {j->dy, j->gamma}};
    const reduction sgx = {RO_OP_REDUCE_LN_GX,
                           RO_OP_REDUCE_SUM,
                           j->rows,
                           j->cols,
                           5,
                           {x, col, x, row, row},
                           {j->dy, j->gamma, j->x, j->statistic[0], j->statistic[1]}};
    const ro_status status = reduce_rows(ctx, &sg, s->room, s->sg);
    return status == RO_OK ? reduce_rows(ctx, &sgx, s->room, s->sgx) : status;
}

static ro_status norm_grad(ro_ctx *ctx, const ro_row_grad_job *j, const sums *s) {
    const ro_shape x = whole(j), row = of_rows(j), col = of_columns(j);
    const ro_shape in[] = {x, col, x, row, row, row, row};
    const void *data[] = {j->dy, j->gamma, j->x, j->statistic[0], j->statistic[1], s->sg, s->sgx};
    const ro_call call = {RO_OP_LN_DX, 7, {0}, in, x};
    ro_status status = norm_column_sums(ctx, j, s);
    if (status == RO_OK)
        status = norm_row_sums(ctx, j, s);
    return status == RO_OK ? ro_run(ctx, &call, data, j->dx) : status;
}

static ro_status softmax_grad(ro_ctx *ctx, const ro_row_grad_job *j, const sums *s) {
    const ro_shape x = whole(j), in[] = {x, x, of_rows(j)};
    const reduction sum = {RO_OP_REDUCE_DOT, RO_OP_REDUCE_SUM, j->rows, j->cols, 2,
                           {x, x},           {j->dy, j->x}};
    const ro_call call = {RO_OP_SOFTMAX_GRAD, 3, {0}, in, x};
    const ro_status status = reduce_rows(ctx, &sum, s->room, s->sg);
    return status == RO_OK ? ro_run(ctx, &call, (const void *[]){j->x, j->dy, s->sg}, j->dx)
                           : status;
}

static ro_status log_softmax_grad(ro_ctx *ctx, const ro_row_grad_job *j, const sums *s) {
    const ro_shape x = whole(j), in[] = {x, x, of_rows(j)};
    const reduction sum = {RO_OP_REDUCE_SUM, RO_OP_REDUCE_SUM, j->rows, j->cols, 1, {x}, {j->dy}};
    const ro_call call = {RO_OP_LOG_SOFTMAX_GRAD, 3, {0}, in, x};
    const ro_status status = reduce_rows(ctx, &sum, s->room, s->sg);
    return status == RO_OK ? ro_run(ctx, &call, (const void *[]){j->x, j->dy, s->sg}, j->dx)
                           : status;
}

static ro_status run_operators(ro_ctx *ctx, const ro_row_grad_job *j,
                               ro_status (*each)(ro_ctx *, const ro_row_grad_job *, const sums *)) {
    sums s;
    s.sg = ro_alloc(ctx, (size_t)(2 * j->rows + room_of(j)) * sizeof(float));
    if (!s.sg)
        return RO_ERR_MEMORY;
    s.sgx = s.sg + j->rows, s.room = s.sgx + j->rows;
    const ro_status status = each(ctx, j, &s);
    ro_free(ctx, s.sg);
    return status;
}

static ro_status layer_norm_backward(ro_ctx *ctx, const ro_row_grad_job *j) {
    return run_operators(ctx, j, norm_grad);
}

static ro_status softmax_backward(ro_ctx *ctx, const ro_row_grad_job *j) {
    return run_operators(ctx, j, softmax_grad);
}

static ro_status log_softmax_backward(ro_ctx *ctx, const ro_row_grad_job *j) {
    return run_operators(ctx, j, log_softmax_grad);
}

/* ---- SGD ---- */

/* Computes m before w, which may be overwritten. */
static ro_status sgd(ro_ctx *ctx, const ro_sgd_job *j) {
    const ro_sgd_step *s = &j->step;
    const ro_shape all = {RO_F32, 1, {s->count}}, one = {RO_F32, 1, {1}};
    const ro_shape in_m[] = {all, all, all, one}, in_w[] = {all, all, one};
    const ro_shape in_nesterov[] = {all, all, all, one, one};
    const int64_t momentum = ro_attr_f32(s->momentum), decay = ro_attr_f32(s->decay);
    const ro_call m = {RO_OP_SGD_M, 4, {momentum, decay}, in_m, all};
    const ro_call w = {RO_OP_SGD_W, 3, {0}, in_w, all};
    const ro_call nesterov = {RO_OP_SGD_NESTEROV, 5, {momentum, decay}, in_nesterov, all};
    const ro_status status =
        ro_run(ctx, &m, (const void *[]){j->m, j->gradient, j->w, s->clip}, j->m_out);
    if (status != RO_OK)
        return status;
    if (!s->nesterov)
        return ro_run(ctx, &w, (const void *[]){j->w, j->m_out, s->rate}, j->w_out);
    return ro_run(ctx, &nesterov, (const void *[]){j->w, j->m_out, j->gradient, s->clip, s->rate},
                  j->w_out);
}

void by_operators(ro_table *table) {
    table->linear = linear;
    table->layer_norm = layer_norm, table->layer_norm_backward = layer_norm_backward;
    table->softmax = softmax, table->softmax_backward = softmax_backward;
    table->log_softmax = log_softmax, table->log_softmax_backward = log_softmax_backward;
    table->sgd = sgd;
}
