/* ro_linear_backward: checks, and runs the products. */
#include "repops/src/layers.h"

#include "repops/device.h"
#include "repops/src/backend.h"
#include "repops/op_product.h"
#include "repops/op_function.h"

typedef struct {
    const ro_linear_layer *layer;
    const float *x, *w, *z, *dy;
    ro_gradient dx, dw, db;
} linear_gradients;

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

/* Computes the gradient of z in temporary memory. */
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

/* A product of op(a), m x k, and op(b), k x n, which is written to c. */
typedef struct {
    int trans_a, trans_b;
    int64_t m, n, k;
    const float *a, *b;
    ro_gradient c;
} gradient_product;

static ro_status multiply_fixed(ro_ctx *ctx, int bits, const gradient_product *p) {
    const int64_t attr[RO_MAX_ATTRS] = {[RO_MATMUL_FIXED_TRANS] = p->trans_a | p->trans_b << 1,
                                        [RO_MATMUL_FIXED_ALPHA] = ro_attr_f32(1.0f),
                                        [RO_MATMUL_FIXED_BITS] = bits};
    const ro_tensor a = ro_matrix(p->a, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k);
    const ro_tensor b = ro_matrix(p->b, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n);
    float *at;
    ro_status status = ro_gradient_open(ctx, p->c, p->m * p->n, &at);
    if (status == RO_OK) {
        ro_tensor c = ro_matrix(at, p->m, p->n);
        status =
            ro_typed_call(ctx, RO_OP_MATMUL_FIXED, 2, (const ro_tensor *const[]){&a, &b}, attr, &c);
    }
    return ro_gradient_close(ctx, p->c, p->m * p->n, at, status);
}

/* Multiplies by ro_sgemm: with alpha 1 and beta 0 it gives the bytes of matmul, and with beta 1
 * those of matmul and add. */
static ro_status multiply(ro_ctx *ctx, int fixed_bits, const gradient_product *p) {
    if (fixed_bits)
        return multiply_fixed(ctx, fixed_bits, p);
    return ro_sgemm(ctx, p->trans_a, p->trans_b, p->m, p->n, p->k, 1, p->a,
                    width(p->trans_a ? p->m : p->k), p->b, width(p->trans_b ? p->k : p->n),
                    p->c.add ? 1 : 0, p->c.data, width(p->n));
}

static ro_status input_gradient(ro_ctx *ctx, const linear_gradients *g, const float *dz) {
    const ro_linear_layer *l = g->layer;
    const gradient_product p = {0, !l->transposed, l->rows, l->in, l->out, dz, g->w, g->dx};
    return multiply(ctx, l->fixed_bits, &p);
}

static ro_status weight_gradient(ro_ctx *ctx, const linear_gradients *g, const float *dz) {
    const ro_linear_layer *l = g->layer;
    const gradient_product of_w = {1, 0, l->in, l->out, l->rows, g->x, dz, g->dw};
    const gradient_product of_transposed = {1, 0, l->out, l->in, l->rows, dz, g->x, g->dw};
    return multiply(ctx, l->fixed_bits, l->transposed ? &of_transposed : &of_w);
}

static ro_status gradients_of(ro_ctx *ctx, const linear_gradients *g, const float *dz) {
    const ro_linear_layer *l = g->layer;
    ro_status status = RO_OK;
    if (g->dx.data)
        status = input_gradient(ctx, g, dz);
    if (g->dw.data && status == RO_OK)
        status = weight_gradient(ctx, g, dz);
    if (g->db.data && status == RO_OK)
        status = ro_sum_rows(ctx, l->rows, l->out, dz, g->db);
    return status;
}

ro_status ro_linear_backward(ro_ctx *ctx, const ro_linear_layer *layer, const float *x,
                             const float *w, const float *z, const float *dy, ro_gradient dx,
                             ro_gradient dw, ro_gradient db) {
    ro_linear_layer own;
    const linear_gradients g = {&own, x, w, z, dy, dx, dw, db};
    float *dz = NULL;
    ro_status status = ro_take_linear(ctx, "linear_backward", layer, z, &own);
    if (status != RO_OK)
        return status;
    status = check_memory(ctx, &g);
    if (status == RO_OK && own.activation)
        status = before_activation(ctx, &g, &dz);
    if (status == RO_OK)
        status = gradients_of(ctx, &g, dz ? dz : dy);
    ro_free(ctx, dz);
    return status;
}
