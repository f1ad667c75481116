/* Helpers of repops/layers.h: calls of operators on matrices. */
#ifndef RO_LAYERS_H
#define RO_LAYERS_H

#include "repops/layers.h"
#include "repops/src/typed.h"

static inline ro_tensor ro_matrix(const float *at, int64_t rows, int64_t cols) {
    return (ro_tensor){{RO_F32, 2, {rows, cols}}, (void *)(uintptr_t)at};
}

/* Returns 1 if a matrix of these sizes is no larger than a tensor may be. */
int ro_matrix_fits(int64_t rows, int64_t cols);

/* Copies and checks a caller's layer: RO_OK, or RO_ERR_ARG with a sentence that names `what`. */
ro_status ro_take_linear(ro_ctx *ctx, const char *what, const ro_linear_layer *given,
                         const float *z, ro_linear_layer *own);

/* Allocates temporary memory for `count` numbers; ro_free frees it. */
ro_status ro_temporary(ro_ctx *ctx, int64_t count, float **out);

/* Reduces by R of `op` over rows (SPEC 3.2), or by K over columns (SPEC 3.3), with all levels. The
 * first of `count` inputs is [rows, cols]. */
ro_status ro_reduce_levels(ro_ctx *ctx, int op, int64_t rows, int64_t cols, int32_t count,
                           const ro_tensor *const *in, float *out);
ro_status ro_column_levels(ro_ctx *ctx, int op, int64_t rows, int64_t cols, int32_t count,
                           const ro_tensor *const *in, float *out);

/* ro_gradient_open gives memory to compute a gradient of `count` numbers in: the gradient's own, or
 * temporary memory if it is to be added. ro_gradient_close adds it if `status` is RO_OK, frees
 * temporary memory, and returns the first failure. */
ro_status ro_gradient_open(ro_ctx *ctx, ro_gradient g, int64_t count, float **at);
ro_status ro_gradient_close(ro_ctx *ctx, ro_gradient g, int64_t count, float *at, ro_status status);

#endif
