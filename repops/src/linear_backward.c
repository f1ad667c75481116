/* ro_linear_backward: checks, and the products. */
#include "repops/src/layers.h"

#include "repops/device.h"
#include "repops/src/backend.h"

typedef struct {
    const ro_linear_layer *layer;
    const float *x, *w, *z, *dy;
    ro_gradient dx, dw, db;
} linear_gradients;

static ro_status check_layer(ro_ctx *ctx, const linear_gradients *g) {
    const ro_linear_layer *l = g->layer;
    if (!ro_matrix_fits(l->rows, l->in) || !ro_matrix_fits(l->in, l->out) ||
        !ro_matrix_fits(l->rows, l->out))
        return ro_fail(ctx, RO_ERR_ARG,
                       "linear_backward: rows * in, in * out and rows * out must be 0..2^40, got "
                       "%lld rows, %lld in, %lld out",
                       (long long)l->rows, (long long)l->in, (long long)l->out);
    if (l->activation < RO_ACTIVATION_NONE || l->activation > RO_ACTIVATION_SILU)
        return ro_fail(ctx, RO_ERR_ARG, "linear_backward: no activation has the number %d",
                       (int)l->activation);
    if (g->z && l->activation == RO_ACTIVATION_NONE)
        return ro_fail(ctx, RO_ERR_ARG, "linear_backward: z must be NULL without an activation");
    return RO_OK;
}

static ro_status check_memory(ro_ctx *ctx, const linear_gradients *g) {
    const ro_linear_layer *l = g->layer;
    const int wanted = RO_WRITTEN | RO_OPTIONAL;
    const ro_operand operands[] = {
        {"x", ro_words(g->x, l->rows * l->in), g->dw.data ? RO_READ : RO_OPTIONAL},
        {"w", ro_words(g->w, l->in * l->out), g->dx.data ? RO_READ : RO_OPTIONAL},
        {"z", ro_words(g->z, l->rows * l->out), l->activation ? RO_READ : RO_OPTIONAL},
        {"dy", ro_words(g->dy, l->rows * l->out), RO_READ},
        {"dx", ro_words(g->dx.data, l->rows * l->in), wanted},
        {"dw", ro_words(g->dw.data, l->in * l->out), wanted},
        {"db", ro_words(g->db.data, l->out), wanted}};
    return ro_check_operands(ctx, "linear_backward", operands, 7);
}

static const int activation_grad[] = {RO_OP_NONE, RO_OP_RELU_GRAD, RO_OP_GELU_GRAD,
                                      RO_OP_GELU_ERF_GRAD, RO_OP_SILU_GRAD};

/* The gradient of z, in temporary memory. */
static ro_status before_activation(ro_ctx *ctx, const linear_gradients *g, float **out) {
    const ro_linear_layer *l = g->layer;
    const ro_status status = ro_temporary(ctx, l->rows * l->out, out);
    if (status != RO_OK)
        return status;
    const ro_tensor z = ro_matrix(g->z, l->rows, l->out), dy = ro_matrix(g->dy, l->rows, l->out);
    ro_tensor dz = ro_matrix(*out, l->rows, l->out);
    return ro_typed_call(ctx, activation_grad[l->activation], 2,
                         (const ro_tensor *const[]){&z, &dy}, NULL, &dz);
}

static int64_t width(int64_t cols) {
    return cols > 1 ? cols : 1;
}

/* m x n is the product of op(a) and op(b): with alpha 1, and beta 0 or 1, these are the bytes of
 * matmul, and of add. */
static ro_status multiply(ro_ctx *ctx, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                          const float *a, const float *b, ro_gradient c) {
    return ro_sgemm(ctx, trans_a, trans_b, m, n, k, 1, a, width(trans_a ? m : k), b,
                    width(trans_b ? k : n), c.add ? 1 : 0, c.data, width(n));
}

static ro_status weight_gradient(ro_ctx *ctx, const linear_gradients *g, const float *dz) {
    const ro_linear_layer *l = g->layer;
    return l->transposed ? multiply(ctx, 1, 0, l->out, l->in, l->rows, dz, g->x, g->dw)
                         : multiply(ctx, 1, 0, l->in, l->out, l->rows, g->x, dz, g->dw);
}

static ro_status gradients_of(ro_ctx *ctx, const linear_gradients *g, const float *dz) {
    const ro_linear_layer *l = g->layer;
    ro_status status = RO_OK;
    if (g->dx.data)
        status = multiply(ctx, 0, !l->transposed, l->rows, l->in, l->out, dz, g->w, g->dx);
    if (g->dw.data && status == RO_OK)
        status = weight_gradient(ctx, g, dz);
    if (g->db.data && status == RO_OK)
        status = ro_sum_rows(ctx, l->rows, l->out, dz, g->db);
    return status;
}

ro_status ro_linear_backward(ro_ctx *ctx, const ro_linear_layer *layer, const float *x,
                             const float *w, const float *z, const float *dy, ro_gradient dx,
                             ro_gradient dw, ro_gradient db) {
    if (!ctx || !layer)
        return ro_missing(ctx, "linear_backward", ctx ? "layer" : "ctx");
    const linear_gradients g = {layer, x, w, z, dy, dx, dw, db};
    float *dz = NULL;
    ro_status status = check_layer(ctx, &g);
    if (status == RO_OK)
        status = check_memory(ctx, &g);
    if (status == RO_OK && layer->activation)
        status = before_activation(ctx, &g, &dz);
    if (status == RO_OK)
        status = gradients_of(ctx, &g, dz ? dz : dy);
    ro_free(ctx, dz);
    return status;
}
