/* What the functions of repops/layers.h are made of: calls of operators on matrices. */
#ifndef RO_LAYERS_H
#define RO_LAYERS_H

#include "repops/layers.h"
#include "repops/src/typed.h"

static inline ro_tensor ro_matrix(const float *at, int64_t rows, int64_t cols) {
    return (ro_tensor){{RO_F32, 2, {rows, cols}}, (void *)(uintptr_t)at};
}

/* 1 if a matrix of these sizes is no larger than a tensor may be. */
int ro_matrix_fits(int64_t rows, int64_t cols);

/* Copies a caller's layer and checks it: RO_OK, or RO_ERR_ARG with a sentence. `what`: the
 * function that is called. */
ro_status ro_take_linear(ro_ctx *ctx, const char *what, const ro_linear_layer *given,
                         const float *z, ro_linear_layer *own);

/* Temporary memory for `count` numbers: given back by ro_free. */
ro_status ro_temporary(ro_ctx *ctx, int64_t count, float **out);

/* R of `op` over rows (SPEC 3.2), or K over columns (SPEC 3.3), all levels, of `count` inputs, the
 * first of which is [rows, cols]. */
ro_status ro_reduce_levels(ro_ctx *ctx, int op, int64_t rows, int64_t cols, int32_t count,
                           const ro_tensor *const *in, float *out);
ro_status ro_column_levels(ro_ctx *ctx, int op, int64_t rows, int64_t cols, int32_t count,
                           const ro_tensor *const *in, float *out);

/* Where a gradient of `count` numbers is computed: its own memory, or temporary memory, from which
 * ro_gradient_close adds it if `status` is RO_OK. It returns the first failure. */
ro_status ro_gradient_open(ro_ctx *ctx, ro_gradient g, int64_t count, float **at);
ro_status ro_gradient_close(ro_ctx *ctx, ro_gradient g, int64_t count, float *at, ro_status status);

#endif
