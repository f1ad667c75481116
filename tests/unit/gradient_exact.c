/* A case's layers in double precision. */
#include "gradient_exact.h"

#include "exact_image.h"
#include "repops/op_elementwise.h"
#include "tests/support/sample.h"
#include "repops/op_function.h"

#include <criterion/criterion.h>
#include <math.h>

static void exact_matmul(const example *x, const layer *l, double *out, bool transposed) {
    const double *a = x->exact[l->in[0]], *w = x->exact[l->in[1]];
    const double *bias = transposed ? NULL : x->exact[l->in[2]];
    const ro_shape *shape = &x->shape[l->in[0]];
    const int64_t inner = last(shape), rows = ro_shape_numel(shape) / inner;
    const int64_t cols = ro_shape_numel(&x->shape[l->in[1]]) / inner;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t n = 0; n < cols; n++) {
            double sum = bias ? bias[n] : 0;
            for (int64_t k = 0; k < inner; k++)
                sum += a[r * inner + k] * w[transposed ? n * inner + k : k * cols + n];
            out[r * cols + n] = sum;
        }
}

static void attributes_of(int op, double *attr) {
    const ro_op_info *info = ro_op_describe(op);
    int64_t word[RO_MAX_ATTRS];
    test_sample_attributes(op, word);
    for (int i = 0; i < info->attr_count; i++)
        attr[i] = info->attr[i].kind == 'f' ? (double)ro_attr_to_f32(word[i]) : (double)word[i];
}

static double exact_gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

/* Elementwise functions: one row for each operator that has one. */
static double exact_function(int op, double x) {
    const ro_op_info *info = ro_op_describe(op);
    double attr[RO_MAX_ATTRS];
    attributes_of(op, attr);
    switch (op) {
    case RO_OP_EXP: return exp(x);
    case RO_OP_LOG: return log(x);
    case RO_OP_SQRT: return sqrt(x);
    case RO_OP_RSQRT: return 1 / sqrt(x);
    case RO_OP_ABS: return fabs(x);
    case RO_OP_TANH: return tanh(x);
    case RO_OP_ERF: return erf(x);
    case RO_OP_SIGMOID: return 1 / (1 + exp(-x));
    case RO_OP_SILU: return x / (1 + exp(-x));
    case RO_OP_GELU: return exact_gelu(x);
    case RO_OP_GELU_ERF: return 0.5 * x * (1 + erf(x * sqrt(0.5)));
    case RO_OP_RELU: return x > 0 ? x : 0;
    case RO_OP_LEAKY_RELU: return x > 0 ? x : x * attr[RO_LEAKY_RELU_SLOPE];
    case RO_OP_SOFT_SHRINK:
        return x - fmax(-attr[RO_SOFT_SHRINK_LAMBD], fmin(x, attr[RO_SOFT_SHRINK_LAMBD]));
    default: cr_assert_fail("%s has no formula in tests/unit/gradient_exact.c", info->name);
    }
    return 0;
}

static double exact_element(const example *x, const layer *l, int64_t e) {
    const double a = x->exact[l->in[0]][e];
    const double y = x->exact[l->in[1]][e % ro_shape_numel(&x->shape[l->in[1]])];
    switch (l->kind) {
    case SUB: return a - y;
    case MUL: return a * y;
    case DIV: return a / y;
    case SCALE: return a * (double)l->rate;
    case LARGER: return fmax(a, y);
    case SMALLER:
    case CHOSEN: return fmin(a, y);
    case FUNCTION: return exact_function(l->op, a);
    case DROPOUT: return a * exact_mask(x, l->rate, e);
    default: return a + y;
    }
}

static exact_image image_of(const example *x, int value) {
    return (exact_image){x->exact[value], x->shape[value].dim};
}

static void exact_on_images(const example *x, const layer *l, exact_image out) {
    const exact_image a = image_of(x, l->in[0]);
    switch (l->kind) {
    case CONV:
    case FIXED_CONV: exact_conv(a, image_of(x, l->in[1]), l->window, out); break;
    case BATCHNORM: exact_batchnorm(a, x->exact[l->in[1]], x->exact[l->in[2]], out); break;
    case GLOBAL_AVG_POOL: exact_global_mean(a, out); break;
    default: exact_pool(a, l->window, l->kind == MAX_POOL, out); break;
    }
}

static void exact_layer(const example *x, int j) {
    const layer *l = &x->c->layer[j];
    double *out = x->exact[OUT(j)];
    const int64_t count = ro_shape_numel(&x->shape[OUT(j)]), cols = last(&x->shape[OUT(j)]);
    switch (l->kind) {
    case LINEAR: exact_matmul(x, l, out, false); break;
    case LOGITS:
    case FIXED_LOGITS: exact_matmul(x, l, out, true); break;
    case NORM: exact_norm(x, l, out); break;
    case ATTENTION: exact_attention(x, l, out); break;
    case GROUPED: exact_grouped(x, l, out); break;
    case XENT: exact_xent(x, l, out); break;
    case XENT_IGNORE:
    case XENT_MEAN: exact_xent_ignore(x, l, out); break;
    case SOFTMAX:
    case LOG_SOFTMAX: exact_softmax(x, l, out); break;
    case RMSNORM: exact_rmsnorm(x, l, out); break;
    case SUM_AXIS:
    case MEAN_AXIS:
    case MAX_AXIS: exact_along(x, l, out); break;
    case CONV:
    case FIXED_CONV:
    case MAX_POOL:
    case AVG_POOL:
    case GLOBAL_AVG_POOL:
    case BATCHNORM: exact_on_images(x, l, image_of(x, OUT(j))); break;
    case EMBEDDING:
        for (int64_t e = 0; e < count; e++)
            out[e] = x->exact[l->in[0]][x->ids[l->ids][e / cols] * cols + e % cols];
        break;
    default:
        for (int64_t e = 0; e < count; e++)
            out[e] = exact_element(x, l, e);
        break;
    }
}

double exact_loss(const example *x) {
    double sum = 0;
    for (int j = 0; j < x->c->layer_count; j++)
        exact_layer(x, j);
    const int end = OUT(x->c->layer_count - 1);
    for (int64_t e = 0; e < ro_shape_numel(&x->shape[end]); e++)
        sum += x->exact[end][e];
    return sum;
}
