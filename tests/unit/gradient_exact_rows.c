/* Norms, losses and reductions in double precision. */
#include "gradient_exact.h"

#include <math.h>
#include <stdlib.h>

void exact_norm(const example *x, const layer *l, double *out) {
    const double *a = x->exact[l->in[0]], *gamma = x->exact[l->in[1]], *beta = x->exact[l->in[2]];
    const int64_t cols = last(&x->shape[l->in[0]]),
                  rows = ro_shape_numel(&x->shape[l->in[0]]) / cols;
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < cols; i++)
            mean += a[r * cols + i] / (double)cols;
        for (int64_t i = 0; i < cols; i++)
            variance += pow(a[r * cols + i] - mean, 2) / (double)cols;
        for (int64_t i = 0; i < cols; i++)
            out[r * cols + i] =
                (a[r * cols + i] - mean) / sqrt(variance + 1e-5) * gamma[i] + beta[i];
    }
}

void exact_xent(const example *x, const layer *l, double *out) {
    const double *a = x->exact[l->in[0]];
    const int64_t cols = last(&x->shape[l->in[0]]),
                  rows = ro_shape_numel(&x->shape[l->in[0]]) / cols;
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < cols; i++)
            sum += exp(a[r * cols + i]);
        out[r] = log(sum) - a[r * cols + x->ids[l->ids][r]];
    }
}

void exact_xent_ignore(const example *x, const layer *l, double *out) {
    const int32_t *ids = x->ids[l->ids];
    const int64_t rows = ro_shape_numel(&x->c->ids[l->ids].shape);
    double *each = l->kind == XENT_MEAN ? calloc((size_t)rows, sizeof *each) : out, sum = 0,
           kept = 0;
    exact_xent(x, l, each);
    for (int64_t r = 0; r < rows; r++) {
        each[r] = ids[r] == l->heads ? 0 : each[r];
        kept += ids[r] != l->heads;
        sum += each[r];
    }
    if (l->kind != XENT_MEAN)
        return;
    out[0] = sum / kept;
    free(each);
}

void exact_softmax(const example *x, const layer *l, double *out) {
    const double *a = x->exact[l->in[0]];
    const int64_t cols = last(&x->shape[l->in[0]]), count = ro_shape_numel(&x->shape[l->in[0]]);
    for (int64_t r = 0; r < count; r += cols) {
        double sum = 0;
        for (int64_t i = 0; i < cols; i++)
            sum += exp(a[r + i]);
        for (int64_t i = 0; i < cols; i++)
            out[r + i] = l->kind == SOFTMAX ? exp(a[r + i]) / sum : a[r + i] - log(sum);
    }
}

void exact_rmsnorm(const example *x, const layer *l, double *out) {
    const double *a = x->exact[l->in[0]], *gamma = x->exact[l->in[1]];
    const int64_t cols = last(&x->shape[l->in[0]]), count = ro_shape_numel(&x->shape[l->in[0]]);
    for (int64_t r = 0; r < count; r += cols) {
        double ss = 0;
        for (int64_t i = 0; i < cols; i++)
            ss += a[r + i] * a[r + i];
        for (int64_t i = 0; i < cols; i++)
            out[r + i] = a[r + i] / sqrt(ss / (double)cols + 1e-5) * gamma[i];
    }
}

/* Reduces along the axis given by `heads`. */
void exact_along(const example *x, const layer *l, double *out) {
    const ro_shape *s = &x->shape[l->in[0]];
    const double *a = x->exact[l->in[0]];
    int64_t inner = 1, n = s->dim[l->heads], count = ro_shape_numel(s);
    for (int64_t i = l->heads + 1; i < s->ndim; i++)
        inner *= s->dim[i];
    for (int64_t e = 0; e < count / n; e++) {
        const double *first = a + e / inner * n * inner + e % inner;
        out[e] = first[0];
        for (int64_t j = 1; j < n; j++)
            out[e] =
                l->kind == MAX_AXIS ? fmax(out[e], first[j * inner]) : out[e] + first[j * inner];
        out[e] /= l->kind == MEAN_AXIS ? (double)n : 1;
    }
}
