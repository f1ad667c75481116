/* Random valid applications of every operator. */
#ifndef TESTS_OP_CASES_H
#define TESTS_OP_CASES_H

#include "repops/src/conv.h"
#include "repops/tools/op_data.h"

typedef struct {
    uint64_t seed, at;
} dice;

static inline int64_t roll(dice *d, int64_t n) {
    return (int64_t)(case_word(d->seed, 0, (int64_t)d->at++) % (uint64_t)n);
}

/* A dimension of at most `most`, near the edges of blocks more often than not. */
static inline int64_t roll_dim(dice *d, int64_t most) {
    static const int64_t edges[] = {1,   2,   3,   5,   6,   7,   8,    13,   14,   15,  16,
                                    17,  28,  29,  31,  32,  33,  63,   64,   65,   66,  127,
                                    128, 129, 255, 256, 257, 300, 1023, 1024, 1025, 1100};
    int64_t n = roll(d, 4) ? edges[roll(d, sizeof edges / sizeof edges[0])] : 1 + roll(d, most);
    return n > most ? 1 + n % most : n;
}

static inline ro_shape shape_of(int dtype, int ndim, int64_t a, int64_t b, int64_t c, int64_t d) {
    ro_shape s = {.dtype = dtype, .ndim = ndim};
    const int64_t dim[] = {a, b, c, d};
    for (int i = 0; i < ndim; i++)
        s.dim[i] = dim[i];
    return s;
}

static inline ro_shape shape1(int64_t n) {
    return shape_of(RO_F32, 1, n, 0, 0, 0);
}

static inline ro_shape shape2(int64_t rows, int64_t cols) {
    return shape_of(RO_F32, 2, rows, cols, 0, 0);
}

static inline int64_t roll_f32(dice *d, int allow_special) {
    const float usual[] = {1.0f, 0.125f, -0.75f, 0.9f, 0.95f, 1e-5f, 3.0f};
    return allow_special && roll(d, 8) == 0 ? (int64_t)case_special((uint64_t)roll(d, 1 << 16))
                                            : ro_attr_f32(usual[roll(d, 7)]);
}

static inline int roll_type(dice *d) {
    const int dtype[] = {RO_F32, RO_F32, RO_I32, RO_U8, RO_U16, RO_BF16, RO_F16};
    return dtype[roll(d, 7)];
}

static inline int roll_float(dice *d) {
    const int dtype[] = {RO_F32, RO_BF16, RO_F16};
    return dtype[roll(d, 3)];
}

static inline void roll_movement(op_case *c, dice *d) {
    static const int tokens[] = {RO_U8, RO_U16, RO_I32};
    ro_call *call = &c->call;
    int64_t heads = 1 + roll(d, 4), width = roll_dim(d, 40), parts = 1 + roll(d, 3);
    switch (call->op) {
    case RO_OP_FILL:
    case RO_OP_NORMAL:
        call->output = shape2(roll_dim(d, 300), roll_dim(d, 300));
        if (call->op == RO_OP_FILL) {
            call->attr[RO_FILL_VALUE] = roll_f32(d, 1);
            break;
        }
        call->attr[RO_NORMAL_SEED] = (int64_t)case_word(d->seed, 1, 0);
        call->attr[RO_NORMAL_STREAM] = roll(d, 1 << 30) * 3;
        call->attr[RO_NORMAL_MEAN] = roll_f32(d, 1);
        call->attr[RO_NORMAL_STD] = roll_f32(d, 1);
        break;
    case RO_OP_IOTA: call->output = shape_of(RO_I32, 1, roll_dim(d, 100000), 0, 0, 0); break;
    case RO_OP_READ_BATCH:
        call->output = shape_of(RO_I32, 2, roll_dim(d, 20), roll_dim(d, 300), 0, 0);
        call->input_count = roll(d, 2) ? 2 : 2 + (int)roll(d, CASE_INPUTS - 1);
        c->in[0].dtype = tokens[roll(d, 3)];
        for (int i = 0; i < call->input_count - 1; i++)
            c->in[i] = shape_of(c->in[0].dtype, 1,
                                1 + call->output.dim[1] * (1 + roll(d, 40)) + roll(d, 3), 0, 0, 0);
        c->in[call->input_count - 1] = shape_of(RO_I32, 1, 1, 0, 0, 0);
        call->attr[RO_READ_BATCH_SEED] = (int64_t)case_word(d->seed, 1, 0);
        call->attr[RO_READ_BATCH_STREAM] = roll(d, 100);
        call->attr[RO_READ_BATCH_FIRST] = roll(d, 10);
        call->attr[RO_READ_BATCH_BATCH] =
            call->attr[RO_READ_BATCH_FIRST] + call->output.dim[0] + roll(d, 5);
        call->attr[RO_READ_BATCH_SHIFT] = roll(d, 2);
        break;
    case RO_OP_EMBEDDING:
        c->ids = roll_dim(d, 300);
        c->in[0] = shape2(c->ids, roll_dim(d, 300));
        c->in[0].dtype = roll_float(d);
        c->in[1] = shape_of(RO_I32, 2, roll_dim(d, 20), roll_dim(d, 40), 0, 0);
        break;
    case RO_OP_EMBEDDING_GRAD:
        c->ids = roll(d, 3) ? roll_dim(d, 300) : 1 + roll(d, 3); /* few ids: several levels */
        c->in[0] = shape2(roll(d, 4) ? roll_dim(d, 1100) : 4096 + roll(d, 9000), roll_dim(d, 300));
        if (c->in[0].dim[0] > 1100)
            c->in[0].dim[1] = 1 + roll(d, 20);
        if (c->in[0].dim[0] > 1100 && roll(d, 3) == 0) { /* one id, past 64^2 of its positions */
            c->ids = 1;
            c->in[0].dim[0] += 17000;
        }
        c->in[1] = shape_of(RO_I32, 1, c->in[0].dim[0], 0, 0, 0);
        call->output = shape2(c->ids, c->in[0].dim[1]);
        break;
    case RO_OP_SPLIT_HEADS:
        c->in[0] =
            shape_of(roll_type(d), 3, 1 + roll(d, 4), roll_dim(d, 130), parts * heads * width, 0);
        call->attr[RO_SPLIT_HEADS_PARTS] = parts;
        call->attr[RO_SPLIT_HEADS_PART] = roll(d, parts);
        call->attr[RO_SPLIT_HEADS_HEADS] = heads;
        break;
    case RO_OP_JOIN_HEADS:
        call->input_count = (int)parts;
        for (int i = 0; i < parts; i++)
            c->in[i] =
                i ? c->in[0]
                  : shape_of(roll_type(d), 4, 1 + roll(d, 4), heads, roll_dim(d, 130), width);
        break;
    default:
        call->input_count = 1 + (int)roll(d, CASE_INPUTS);
        for (int i = 0; i < call->input_count; i++)
            c->in[i] = shape2(roll_dim(d, 80), roll_dim(d, 400));
        break;
    }
}

/* Integers of few values, so that some are equal. */
static inline void roll_compare(op_case *c, dice *d) {
    c->call.attr[RO_COMPARE_KIND] = roll(d, RO_AT_LEAST + 1);
    c->ids = 3;
    if (roll(d, 2))
        c->in[0].dtype = c->in[1].dtype = RO_I32;
}

static inline void roll_where(op_case *c, dice *d) {
    c->in[1].dtype = roll_type(d);
    c->in[2] = c->in[1];
    c->in[0].dtype = RO_I32;
    c->ids = 2;
}

static inline int rolls_choice(int op) {
    return op >= RO_OP_MAX && op <= RO_OP_WHERE;
}

static inline int rolls_leaky(int op) {
    return op == RO_OP_LEAKY_RELU || op == RO_OP_LEAKY_RELU_GRAD;
}

static inline void roll_elementwise(op_case *c, dice *d) {
    const int64_t b = 1 + roll(d, 3), rows = roll_dim(d, 60), cols = roll_dim(d, 1100);
    c->in[0] = c->in[1] = shape_of(RO_F32, 3, b, rows, cols, 0);
    const int op = c->call.op, repeats = op == RO_OP_IADD || op == RO_OP_MAX || op == RO_OP_MIN ||
                                         op == RO_OP_COMPARE || op == RO_OP_ADD ||
                                         (op >= RO_OP_MUL && op <= RO_OP_DIV);
    if (repeats && roll(d, 3))
        c->in[1] = roll(d, 3) ? roll(d, 2) ? shape1(cols) : shape2(rows, cols) : shape1(1);
    if (op == RO_OP_DIV_CONST || op == RO_OP_SCALE || rolls_leaky(op))
        c->call.attr[0] = roll_f32(d, 1);
    if (op == RO_OP_COMPARE)
        roll_compare(c, d);
    if (op == RO_OP_WHERE)
        roll_where(c, d);
    if (op != RO_OP_DROPOUT && op != RO_OP_CAST_STOCHASTIC)
        return;
    c->in[1] = shape_of(RO_I32, 1, 1, 0, 0, 0);
    c->call.attr[RO_RANDOM_SEED] = (int64_t)case_word(d->seed, 1, 0);
    c->call.attr[RO_RANDOM_STREAM] = roll(d, 1 << 30) * 3;
    if (op == RO_OP_CAST_STOCHASTIC)
        return;
    c->call.attr[RO_DROPOUT_THRESHOLD] =
        roll(d, 3) ? roll(d, 1 << 30) * 4 : roll(d, 2) * UINT32_MAX;
    c->call.attr[RO_DROPOUT_SCALE] = roll_f32(d, 1);
}

/* Some products are large enough for several threads and blocks. */
static inline void roll_matmul(op_case *c, dice *d) {
    const int64_t trans = roll(d, 4), size = roll(d, 3);
    const int64_t most = size == 0 ? 40 : size == 1 ? 300 : 1100;
    const int64_t wide = size == 2 ? roll(d, 2) : 0; /* beyond the blocks of columns too */
    const int64_t m = roll_dim(d, size == 2 ? (wide ? 30 : 400) : most);
    const int64_t n = roll_dim(d, size == 2 ? (wide ? 1100 : 64) : most);
    const int64_t k = roll_dim(d, most), dims = size == 2 ? roll(d, 2) : roll(d, 3);
    const int64_t b0 = 1 + roll(d, 3), b1 = 1 + roll(d, 3);
    const ro_shape a = trans & 1 ? shape2(k, m) : shape2(m, k);
    const ro_shape b = trans & 2 ? shape2(n, k) : shape2(k, n);
    c->in[0] = dims == 0   ? a
               : dims == 1 ? shape_of(RO_F32, 3, b0, a.dim[0], a.dim[1], 0)
                           : shape_of(RO_F32, 4, b0, b1, a.dim[0], a.dim[1]);
    c->in[1] = dims == 0   ? b
               : dims == 1 ? shape_of(RO_F32, 3, b0, b.dim[0], b.dim[1], 0)
                           : shape_of(RO_F32, 4, b0, b1, b.dim[0], b.dim[1]);
    c->call.attr[RO_PRODUCT_BATCH_DIMS] = dims;
    c->call.attr[RO_PRODUCT_TRANS] = trans;
    c->call.attr[RO_PRODUCT_ALPHA] = roll(d, 3) ? ro_attr_f32(1.0f) : roll_f32(d, 1);
    if (c->call.op == RO_OP_MATMUL_FIXED) {
        c->call.attr[RO_MATMUL_FIXED_BITS] = roll(d, 2) ? RO_FIXED_24 : RO_FIXED_16;
        return;
    }
    if (roll(d, 3) == 0)
        c->in[1].dtype = roll_float(d);
    c->call.attr[RO_MATMUL_CHUNK] = roll(d, 2) ? RO_DOT_CHUNK : RO_ATTN_BLOCK;
    c->call.attr[RO_MATMUL_MASK] = roll(d, 3);
    if (c->call.attr[RO_MATMUL_MASK] && roll(d, 2))
        c->call.attr[RO_MATMUL_WINDOW] = roll_dim(d, k);
}

/* The operand that repeats is a tensor, a row, several rows, a part of a row, or one element. */
static inline void roll_repeated(op_case *c, dice *d, int64_t rows, int64_t cols) {
    c->in[1] = roll(d, 2) ? c->in[0] : roll(d, 2) ? shape1(cols) : shape1(1);
    if (rows % 2 == 0 && roll(d, 4) == 0) {
        c->in[0] = shape_of(RO_F32, 3, rows / 2, 2, cols, 0);
        c->in[1] = roll(d, 2) ? shape2(2, cols) : shape1(2 * cols);
    } else if (cols % 3 == 0 && roll(d, 2)) {
        c->in[0] = shape_of(RO_F32, 3, rows, cols / 3, 3, 0);
        c->in[1] = shape1(3);
    }
}

static inline void roll_reduce(op_case *c, dice *d) {
    const int64_t rows = roll_dim(d, 100), cols = roll_dim(d, 2200);
    const int64_t block = roll(d, 3) == 0 ? roll_dim(d, 1024) : roll(d, 2) ? 1024 : 128;
    for (int i = 0; i < c->call.input_count; i++)
        c->in[i] = shape1(rows);
    c->in[0] = shape2(rows, cols);
    c->call.attr[RO_ROWS_COLS] = cols;
    c->call.attr[RO_ROWS_BLOCK] = block;
    c->call.output = shape1(rows * ((cols + block - 1) / block));
    if (c->call.op == RO_OP_REDUCE_DOT)
        roll_repeated(c, d, rows, cols);
    if (c->call.op == RO_OP_REDUCE_LN_GX) {
        c->in[1] = shape1(cols);
        c->in[2] = c->in[0];
    }
}

static inline void roll_columns(op_case *c, dice *d) {
    const int64_t rows = roll_dim(d, 600), cols = roll_dim(d, 600);
    c->in[0] = c->in[1] = shape2(rows, cols);
    c->in[2] = c->in[3] = shape1(rows);
    c->call.attr[RO_COLUMNS_COLS] = cols;
    c->call.output = shape2((rows + RO_COLUMN_GROUP - 1) / RO_COLUMN_GROUP, cols);
}

static inline void roll_norm(op_case *c, dice *d) {
    const int64_t rows = roll_dim(d, 200), cols = roll_dim(d, 1100);
    switch (c->call.op) {
    case RO_OP_LN_RSTD:
        c->in[0] = shape1(rows);
        c->call.attr[RO_LN_RSTD_N] = roll(d, 2) ? cols : roll(d, INT64_C(1) << 40) + 1;
        c->call.attr[RO_LN_RSTD_EPS] = roll_f32(d, 1);
        break;
    case RO_OP_LAYERNORM:
        c->in[0] = shape2(rows, cols);
        c->in[1] = c->in[2] = shape1(rows);
        c->in[3] = c->in[4] = shape1(cols);
        break;
    case RO_OP_LN_DX:
        c->in[0] = c->in[2] = shape2(rows, cols);
        c->in[1] = shape1(cols);
        c->in[3] = c->in[4] = c->in[5] = c->in[6] = shape1(rows);
        break;
    default: /* xent, xent_grad */
        c->ids = cols;
        c->in[0] = shape2(rows, cols);
        c->in[1] = c->in[2] = c->in[4] = shape1(rows);
        c->in[3] = shape_of(RO_I32, 1, rows, 0, 0, 0);
        break;
    }
}

static inline void roll_attention(op_case *c, dice *d) {
    const int64_t b = 1 + roll(d, 2), h = 1 + roll(d, 2), t = roll_dim(d, 300),
                  width = roll_dim(d, 70);
    const int64_t causal = roll(d, 2), s = causal ? t : roll_dim(d, 300), blocks = (s + 127) / 128;
    const ro_shape per_query = shape_of(RO_F32, 4, b, h, t, 1);
    c->call.attr[RO_MASKED_CAUSAL] = causal;
    c->call.attr[RO_MASKED_WINDOW] = causal && roll(d, 2) ? roll_dim(d, 300) : 0;
    c->in[0] = shape_of(RO_F32, 4, b, h, t, s);
    c->in[1] = c->in[2] = per_query;
    switch (c->call.op) {
    case RO_OP_ATTN_EXP: c->in[1].dim[3] = blocks; break;
    case RO_OP_ATTN_AV: c->in[1] = shape_of(RO_F32, 4, b, h, s, width); break;
    case RO_OP_ATTN_DSCORE: c->in[1] = c->in[0]; break;
    case RO_OP_ATTN_L:
    case RO_OP_ATTN_OUT:
        c->call.attr[RO_MASKED_CAUSAL] = c->call.attr[RO_MASKED_WINDOW] = 0;
        c->in[0] = c->in[1] = shape_of(RO_F32, 4, b, h, t, roll_dim(d, 20));
        if (c->call.op == RO_OP_ATTN_OUT) {
            c->in[1].ndim = 5;
            c->in[1].dim[4] = width;
        }
        break;
    default: break;
    }
}

/* Kernels reach over the edges, strides leave remainders, groups divide channels. */
static inline void roll_conv(op_case *c, dice *d) {
    int64_t *a = c->call.attr, in[2], out[2], kernel[2];
    const int64_t groups = roll(d, 3) ? 1 : 1 + roll(d, 3), large = roll(d, 4) == 0;
    const int64_t depth = roll_dim(d, large ? 130 : 20), width = roll_dim(d, large ? 70 : 20);
    for (int i = 0; i < 2; i++) {
        kernel[i] = roll(d, 3) ? 1 + 2 * roll(d, 2) : 1 + roll(d, 5);
        a[i] = roll(d, 2) ? 1 : 1 + roll(d, 3);
        a[2 + i] = roll(d, 2) ? kernel[i] / 2 : roll(d, 4);
        a[4 + i] = roll(d, 3) ? 1 : 1 + roll(d, 2);
        out[i] = roll_dim(d, large ? 20 : 9);
        in[i] = (out[i] - 1) * a[i] + a[4 + i] * (kernel[i] - 1) + 1 - 2 * a[2 + i] + roll(d, a[i]);
        in[i] = in[i] < 1 ? 1 : in[i];
        out[i] = (in[i] + 2 * a[2 + i] - a[4 + i] * (kernel[i] - 1) - 1) / a[i] + 1;
    }
    a[6] = groups;
    const int op = ro_conv_kind(c->call.op);
    if (op != c->call.op)
        a[RO_CONV_FIXED_BITS] = roll(d, 2) ? RO_FIXED_24 : RO_FIXED_16;
    const int64_t n = 1 + roll(d, roll(d, 3) ? 3 : 20);
    const ro_shape x = shape_of(RO_F32, 4, n, in[0], in[1], groups * depth);
    const ro_shape w = shape_of(RO_F32, 4, kernel[0], kernel[1], depth, groups * width);
    const ro_shape y = shape_of(RO_F32, 4, n, out[0], out[1], groups * width);
    c->in[0] = op == RO_OP_CONV2D_DX ? y : x;
    c->in[1] = op == RO_OP_CONV2D_DW ? y : w;
    if (op != RO_OP_CONV2D)
        c->call.output = op == RO_OP_CONV2D_DX ? x : w;
}

static inline void roll_repeat_heads(op_case *c, dice *d) {
    const int64_t times = roll(d, 4) ? 1 + roll(d, 5) : 1 + roll(d, 70), heads = 1 + roll(d, 3);
    c->call.attr[RO_REPEAT_TIMES] = times;
    c->in[0] = shape_of(RO_F32, 4, 1 + roll(d, 2), heads, roll_dim(d, 60), roll_dim(d, 40));
    if (c->call.op == RO_OP_REPEAT_HEADS_GRAD)
        c->in[0].dim[1] *= times;
    else
        c->in[0].dtype = roll_type(d);
}

static inline void roll_pool(op_case *c, dice *d) {
    int64_t *a = c->call.attr, in[2], out[2];
    const int64_t large = roll(d, 8) == 0, n = 1 + roll(d, 3), channels = roll_dim(d, 600);
    const int average = c->call.op >= RO_OP_AVG_POOL2D;
    for (int i = 0; i < 2; i++) {
        a[i] = large ? 7 + roll(d, 5) : 1 + roll(d, 4);
        a[2 + i] = roll(d, 2) ? a[i] : 1 + roll(d, 3);
        a[4 + i] = roll(d, a[i] / 2 + 1);
        in[i] = a[i] + roll(d, 9);
        out[i] = (in[i] + 2 * a[4 + i] - a[i]) / a[2 + i] + 1;
    }
    a[6] = average ? roll(d, 2) : 0;
    c->ids = a[0] * a[1];
    const ro_shape x = shape_of(RO_F32, 4, n, in[0], in[1], channels);
    const ro_shape y = shape_of(RO_F32, 4, n, out[0], out[1], channels);
    const int backward = c->call.op == RO_OP_MAX_POOL2D_GRAD || c->call.op == RO_OP_AVG_POOL2D_GRAD;
    c->in[0] = c->in[1] = backward ? y : x;
    c->in[1].dtype = RO_I32;
    if (backward)
        c->call.output = x;
}

static inline void roll_batchnorm(op_case *c, dice *d) {
    const int64_t rows = roll_dim(d, 1100), cols = roll_dim(d, 600);
    const int64_t groups = (rows + RO_COLUMN_GROUP - 1) / RO_COLUMN_GROUP;
    c->call.attr[RO_COLUMNS_COLS] = cols;
    c->call.output = shape2(groups, cols);
    c->in[0] = c->in[1] = shape2(rows, cols);
    for (int i = 2; i < CASE_INPUTS; i++)
        c->in[i] = shape1(cols);
    switch (c->call.op) {
    case RO_OP_BN_SQDEV: c->in[1] = c->call.output; break;
    case RO_OP_BN_MERGE_MEAN:
    case RO_OP_BN_MERGE_SQDEV:
        c->call.attr[RO_MERGE_PER] = 1 + roll(d, roll(d, 2) ? 100 : INT64_C(1) << 28);
        c->call.attr[RO_MERGE_ROWS] =
            rows * c->call.attr[RO_MERGE_PER] - roll(d, c->call.attr[RO_MERGE_PER]);
        break;
    case RO_OP_BATCHNORM: c->in[1] = shape1(cols); break;
    case RO_OP_BN_RUNNING:
        c->call.attr[RO_BN_RUNNING_MOMENTUM] = roll_f32(d, 1);
        c->call.attr[RO_BN_RUNNING_DIVISOR] = roll_f32(d, 1);
        break;
    default: break;
    }
    if (!ro_op_describe(c->call.op)->declared_shape)
        c->call.output = (ro_shape){0};
    if (c->call.op == RO_OP_BATCHNORM || c->call.op == RO_OP_BN_DX)
        c->call.attr[RO_COLUMNS_COLS] = 0;
}

static inline void roll_images(op_case *c, dice *d) {
    int64_t *a = c->call.attr;
    const int images = c->call.op == RO_OP_READ_IMAGES;
    const int64_t rows = roll_dim(d, 20), h = roll_dim(d, 12), w = roll_dim(d, 12);
    const int64_t channels = 1 + roll(d, 4), bytes = images ? h * w * channels : 1;
    c->call.output =
        images ? shape_of(RO_F32, 4, rows, h, w, channels) : shape_of(RO_I32, 1, rows, 0, 0, 0);
    a[0] = (int64_t)case_word(d->seed, 1, 0);
    a[1] = roll(d, 100);
    a[3] = roll(d, 10);
    a[2] = a[3] + rows + roll(d, 5);
    a[5] = roll(d, 4);
    a[4] = a[5] + bytes + roll(d, 3);
    a[6] = images ? roll_f32(d, 1) : 0;
    a[7] = images ? roll_f32(d, 1) : 0;
    c->in[0] = shape_of(RO_U8, 1, a[4] * (1 + roll(d, 40)) + roll(d, a[4]), 0, 0, 0);
    c->in[1] = shape_of(RO_I32, 1, 1, 0, 0, 0);
}

/* SPEC 12. */
static inline int rolls_image(op_case *c, dice *d) {
    const int op = ro_conv_kind(c->call.op);
    if (op < RO_OP_CONV2D || op > RO_OP_READ_LABELS)
        return 0;
    if (op <= RO_OP_CONV2D_DW)
        roll_conv(c, d);
    else if (op <= RO_OP_AVG_POOL2D_GRAD)
        roll_pool(c, d);
    else if (op <= RO_OP_BN_RUNNING)
        roll_batchnorm(c, d);
    else
        roll_images(c, d);
    return 1;
}

static inline void roll_optimizer(op_case *c, dice *d) {
    const ro_shape one = shape1(1), many = shape2(roll_dim(d, 200), roll_dim(d, 500));
    const int op = c->call.op,
              tensors = op < RO_OP_ADAMW_M                                                     ? 0
                        : op == RO_OP_ADAMW_W || op == RO_OP_SGD_M || op == RO_OP_SGD_NESTEROV ? 3
                                                                                               : 2;
    for (int i = 0; i < c->call.input_count; i++)
        c->in[i] = i < tensors ? many : one;
    for (int i = 0; op != RO_OP_LR_SCHEDULE && i < ro_op_describe(op)->attr_count; i++)
        c->call.attr[i] = roll_f32(d, 1);
    if (op != RO_OP_LR_SCHEDULE)
        return;
    c->in[0].dtype = RO_I32;
    c->call.attr[RO_LR_SCHEDULE_KIND] = roll(d, 3);
    c->call.attr[RO_LR_SCHEDULE_BASE] = roll_f32(d, 1);
    c->call.attr[RO_LR_SCHEDULE_MIN] = roll_f32(d, 1);
    c->call.attr[RO_LR_SCHEDULE_WARMUP] = roll(d, 2) ? roll(d, 3000) : 0;
    if (c->call.attr[RO_LR_SCHEDULE_KIND] != RO_LR_CONSTANT)
        c->call.attr[RO_LR_SCHEDULE_TOTAL] =
            c->call.attr[RO_LR_SCHEDULE_WARMUP] + 1 + roll(d, 3000);
}

#include "op_cases_axes.h"
#include "op_cases_reduce.h"
#include "op_cases_sampling.h"

/* A valid application of `op`, with data. Call case_free. NULL, or why ro_infer refused it. */
static inline const char *case_roll(op_case *c, int op, uint64_t seed) {
    static char why[200];
    dice d = {seed, 0};
    memset(c, 0, sizeof *c);
    c->call.op = op;
    c->call.input = c->in;
    c->call.input_count = ro_op_describe(op)->min_inputs;
    if (op <= RO_OP_IOTA)
        roll_movement(c, &d);
    else if (rolls_axes(op))
        roll_axes(c, &d);
    else if (rolls_sampling(op))
        roll_sampling(c, &d);
    else if (op <= RO_OP_RSQRT || (op >= RO_OP_TANH && op <= RO_OP_GELU_ERF_GRAD) ||
             rolls_leaky(op) || rolls_choice(op) || op == RO_OP_CAST_STOCHASTIC)
        roll_elementwise(c, &d);
    else if (rolls_reductions(op))
        roll_reductions(c, &d);
    else if (op == RO_OP_MATMUL || op == RO_OP_MATMUL_FIXED)
        roll_matmul(c, &d);
    else if (op <= RO_OP_REDUCE_LN_GX)
        roll_reduce(c, &d);
    else if (op <= RO_OP_LN_DGAMMA)
        roll_columns(c, &d);
    else if (op <= RO_OP_XENT_GRAD)
        roll_norm(c, &d);
    else if (op <= RO_OP_ATTN_DSCORE)
        roll_attention(c, &d);
    else if (rolls_image(c, &d))
        ;
    else if (op <= RO_OP_REPEAT_HEADS_GRAD)
        roll_repeat_heads(c, &d);
    else
        roll_optimizer(c, &d);
    if (ro_infer(&c->call, why, sizeof why) != RO_OK)
        return why;
    case_fill(c, seed, (data_class)roll(&d, DATA_END));
    return NULL;
}

#endif
