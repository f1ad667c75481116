/* ro_sum and ro_sum_rows, which reduce level by level, and gradients that are added. */
#include "repops/src/layers.h"

#include "repops/device.h"
#include "repops/src/backend.h"
#include "repops/op_reduce.h"

int ro_matrix_fits(int64_t rows, int64_t cols) {
    return rows >= 0 && cols >= 0 && rows <= RO_MAX_NUMEL && cols <= RO_MAX_NUMEL &&
           (cols == 0 || rows <= RO_MAX_NUMEL / cols);
}

ro_status ro_temporary(ro_ctx *ctx, int64_t count, float **out) {
    *out = ro_alloc(ctx, (size_t)count * sizeof **out);
    return *out ? RO_OK : ro_ctx_on(ctx) ? RO_ERR_DEVICE : RO_ERR_MEMORY;
}

/* ---- levels ---- */

/* A sum of n terms for each of `others` results. The terms lie along rows or along columns. */
typedef struct {
    int op;    /* the operator of the first level */
    int along; /* 0: each row is summed; 1: each column */
    int group; /* terms that one level adds up */
    int64_t others;
} level_sum;

static int64_t groups_of(const level_sum *s, int64_t n) {
    return n == 0 ? 1 : (n + s->group - 1) / s->group;
}

static ro_tensor terms(const level_sum *s, int64_t n, float *at) {
    return s->along ? ro_matrix(at, n, s->others) : ro_matrix(at, s->others, n);
}

/* Runs one level: n terms become groups_of(n). */
static ro_status run_level(ro_ctx *ctx, const level_sum *s, int op, int64_t n, int32_t count,
                           const ro_tensor *const *in, float *to) {
    ro_tensor out = terms(s, groups_of(s, n), to);
    const int64_t of_rows[RO_MAX_ATTRS] = {n, s->group}, of_columns[RO_MAX_ATTRS] = {s->others};
    return ro_typed_call(ctx, op, count, in, s->along ? of_columns : of_rows, &out);
}

/* Runs all levels. Two temporary buffers take turns to hold results of all but the last. */
static ro_status run_levels(ro_ctx *ctx, const level_sum *s, int64_t n, int32_t count,
                            const ro_tensor *const *in, float *out) {
    const int64_t first = groups_of(s, n), second = groups_of(s, first);
    if (s->others == 0)
        return RO_OK;
    if (first == 1)
        return run_level(ctx, s, s->op, n, count, in, out);
    float *place[2] = {NULL};
    ro_status status = ro_temporary(ctx, (first + second) * s->others, &place[0]);
    if (status == RO_OK) {
        place[1] = place[0] + first * s->others;
        status = run_level(ctx, s, s->op, n, count, in, place[0]);
    }
    n = first;
    for (int turn = 0; n > 1 && status == RO_OK; turn = !turn) {
        const ro_tensor part = terms(s, n, place[turn]);
        const int64_t left = groups_of(s, n);
        status = run_level(ctx, s, s->along ? RO_OP_SUM_ROWS : RO_OP_REDUCE_SUM, n, 1,
                           (const ro_tensor *const[]){&part}, left == 1 ? out : place[!turn]);
        n = left;
    }
    ro_free(ctx, place[0]);
    return status;
}

ro_status ro_reduce_levels(ro_ctx *ctx, int op, int64_t rows, int64_t cols, int32_t count,
                           const ro_tensor *const *in, float *out) {
    return run_levels(ctx, &(level_sum){op, 0, RO_REDUCE_BLOCK, rows}, cols, count, in, out);
}

ro_status ro_column_levels(ro_ctx *ctx, int op, int64_t rows, int64_t cols, int32_t count,
                           const ro_tensor *const *in, float *out) {
    return run_levels(ctx, &(level_sum){op, 1, RO_COLUMN_GROUP, cols}, rows, count, in, out);
}

/* ---- gradients ---- */

ro_status ro_gradient_open(ro_ctx *ctx, ro_gradient g, int64_t count, float **at) {
    *at = g.data;
    return g.add && count > 0 ? ro_temporary(ctx, count, at) : RO_OK;
}

ro_status ro_gradient_close(ro_ctx *ctx, ro_gradient g, int64_t count, float *at,
                            ro_status status) {
    if (!at || at == g.data)
        return status;
    const ro_tensor part = ro_matrix(at, 1, count);
    ro_tensor sum = ro_matrix(g.data, 1, count);
    if (status == RO_OK)
        status = ro_op_add(ctx, &sum, &part, &sum);
    ro_free(ctx, at);
    return status;
}

/* ---- sums ---- */

static ro_status check_sum(ro_ctx *ctx, const char *name, int64_t rows, int64_t cols,
                           const float *x, const float *y, int64_t results) {
    const ro_operand operands[] = {{"x", ro_words(x, rows * cols), RO_READ},
                                   {"y", ro_words(y, results), RO_WRITTEN}};
    return ro_check_operands(ctx, name, operands, 2);
}

static ro_status check_sum_sizes(ro_ctx *ctx, const char *name, int64_t rows, int64_t cols) {
    if (!ctx)
        return ro_missing(ctx, name, "ctx");
    return ro_matrix_fits(rows, cols)
               ? RO_OK
               : ro_fail(ctx, RO_ERR_ARG,
                         "%s: rows * cols must be 0..2^40, got %lld rows, %lld cols", name,
                         (long long)rows, (long long)cols);
}

ro_status ro_sum(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x, float *y) {
    ro_status status = check_sum_sizes(ctx, "sum", rows, cols);
    if (status == RO_OK)
        status = check_sum(ctx, "sum", rows, cols, x, y, rows);
    if (status != RO_OK)
        return status;
    const ro_tensor in = ro_matrix(x, rows, cols);
    return ro_reduce_levels(ctx, RO_OP_REDUCE_SUM, rows, cols, 1, (const ro_tensor *const[]){&in},
                            y);
}

ro_status ro_sum_rows(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x, ro_gradient y) {
    ro_status status = check_sum_sizes(ctx, "sum_rows", rows, cols);
    if (status == RO_OK)
        status = check_sum(ctx, "sum_rows", rows, cols, x, y.data, cols);
    if (status != RO_OK)
        return status;
    const ro_tensor in = ro_matrix(x, rows, cols);
    float *at;
    status = ro_gradient_open(ctx, y, cols, &at);
    if (status == RO_OK)
        status = ro_column_levels(ctx, RO_OP_SUM_ROWS, rows, cols, 1,
                                  (const ro_tensor *const[]){&in}, at);
    return ro_gradient_close(ctx, y, cols, at, status);
}
