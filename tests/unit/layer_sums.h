/* Sums written out as in SPEC.md sections 3.2 and 3.3, and operators run one by one, for tests of
 * repops/layers.h. */
#ifndef TESTS_UNIT_LAYER_SUMS_H
#define TESTS_UNIT_LAYER_SUMS_H

#include "tests/unit/layer_data.h"

#include <math.h>

static float other[MOST], z[MOST];

static float canon(float v) {
    const uint32_t bits = RO_QNAN_BITS;
    if (v != v)
        memcpy(&v, &bits, 4);
    return v;
}

static void expect_bytes(const float *a, const float *b, int64_t count, const char *what,
                         int64_t rows, int64_t cols, const char *backend) {
    cr_expect(memcmp(a, b, (size_t)count * sizeof *a) == 0, "%s of %lld x %lld on %s", what,
              (long long)rows, (long long)cols, backend);
}

/* ---- sums as in SPEC.md ---- */

static float block_of(const float *v, int64_t n) {
    float lane[RO_LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        lane[i % RO_LANES] += v[i];
    for (int w = RO_LANES / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++)
            lane[i] += lane[i + w];
    return canon(lane[0]);
}

/* Section 3.2, all levels; overwrites the n numbers. */
static float row_sum(float *v, int64_t n) {
    do {
        int64_t blocks = 0;
        for (int64_t at = 0; at < n || at == 0; at += RO_REDUCE_BLOCK)
            v[blocks++] = block_of(v + at, n - at < RO_REDUCE_BLOCK ? n - at : RO_REDUCE_BLOCK);
        n = blocks;
    } while (n > 1);
    return v[0];
}

/* Section 3.3, all levels, for one column. */
static float column_sum(float *v, int64_t n) {
    do {
        int64_t groups = 0;
        for (int64_t at = 0; at < n || at == 0; at += RO_COLUMN_GROUP) {
            float acc = 0;
            for (int64_t i = at; i < n && i < at + RO_COLUMN_GROUP; i++)
                acc += v[i];
            v[groups++] = canon(acc);
        }
        n = groups;
    } while (n > 1);
    return v[0];
}

static void sum_of_rows(int64_t rows, int64_t cols, const float *of, float *to) {
    for (int64_t r = 0; r < rows; r++) {
        memcpy(other, of + r * cols, (size_t)cols * 4);
        to[r] = row_sum(other, cols);
    }
}

static void sum_of_columns(int64_t rows, int64_t cols, const float *of, float *to) {
    for (int64_t c = 0; c < cols; c++) {
        for (int64_t r = 0; r < rows; r++)
            other[r] = of[r * cols + c];
        to[c] = column_sum(other, rows);
    }
}

/* ---- operators one by one ---- */

typedef struct {
    const float *data;
    int64_t rows, cols;
} matrix;

static void apply(ro_ctx *ctx, int op, const int64_t *attr, int count, const matrix *in,
                  matrix out) {
    ro_shape shape[8];
    const void *data[8];
    char why[256];
    ro_call call = {op, count, {0}, shape, {RO_F32, 2, {out.rows, out.cols}}};
    for (int i = 0; i < ro_op_describe(op)->attr_count; i++)
        call.attr[i] = attr[i];
    for (int i = 0; i < count; i++) {
        shape[i] = (ro_shape){RO_F32, 2, {in[i].rows, in[i].cols}};
        data[i] = in[i].data;
    }
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s", why);
    cr_assert(ro_run(ctx, &call, data, (void *)(uintptr_t)out.data) == RO_OK);
}

/* Adds `before` to `to` if a gradient is accumulated. */
static void added(float *to, const float *before, int64_t count, int add) {
    for (int64_t e = 0; add && e < count; e++)
        to[e] = canon(before[e] + to[e]);
}

#endif
