/* One small valid call of every operator, and calls at random around them. */
#ifndef TESTS_VALID_CALLS_H
#define TESTS_VALID_CALLS_H

#include "repops/repops.h"

#include <string.h>

/* clang-format off */
#define F32(n, ...) {RO_F32, n, {__VA_ARGS__}}
#define I32(n, ...) {RO_I32, n, {__VA_ARGS__}}
/* clang-format on */
#define ONE  F32(1, 1)
#define STEP I32(1, 1)

typedef struct {
    int op, input_count;
    int64_t attr[RO_MAX_ATTRS];
    ro_shape input[7];
    ro_shape output; /* what ro_infer must give, or what is declared */
} valid_call;

#define FLOAT_1 0x3f800000

static const valid_call valid_calls[] = {
    {RO_OP_FILL, 0, {FLOAT_1}, {{0}}, F32(2, 3, 4)},
    {RO_OP_NORMAL, 0, {-1, UINT32_MAX, 0, FLOAT_1}, {{0}}, F32(1, 7)},
    {RO_OP_READ_BATCH, 2, {7, 0, 5, 2, 1}, {{RO_U16, 1, {9}}, STEP}, I32(2, 3, 4)},
    {RO_OP_EMBEDDING, 2, {0}, {F32(2, 5, 3), I32(2, 2, 4)}, F32(3, 2, 4, 3)},
    {RO_OP_EMBEDDING_GRAD, 2, {0}, {F32(3, 2, 4, 3), I32(2, 2, 4)}, F32(2, 5, 3)},
    {RO_OP_SPLIT_HEADS, 1, {3, 2, 2}, {F32(3, 2, 4, 18)}, F32(4, 2, 2, 4, 3)},
    {RO_OP_JOIN_HEADS, 2, {0}, {F32(4, 2, 2, 4, 3), F32(4, 2, 2, 4, 3)}, F32(3, 2, 4, 12)},
    {RO_OP_CONCAT, 3, {0}, {F32(2, 2, 3), ONE, F32(1, 4)}, F32(1, 11)},
    {RO_OP_IOTA, 0, {0}, {{0}}, I32(1, 6)},
    {RO_OP_TRANSPOSE, 1, {2, 0, 1}, {F32(3, 2, 3, 4)}, F32(3, 4, 2, 3)},
    {RO_OP_SLICE, 1, {1, 2, 3, 2}, {F32(2, 3, 8)}, F32(2, 3, 3)},
    {RO_OP_PAD, 1, {0, 2, 1, 3, FLOAT_1}, {F32(2, 3, 4)}, F32(2, 10, 4)},
    {RO_OP_GATHER, 2, {1}, {F32(2, 3, 4), I32(2, 5, 6)}, F32(3, 3, 5, 6)},
    {RO_OP_CONCAT_AXIS, 3, {1}, {I32(2, 3, 4), I32(2, 3, 1), I32(2, 3, 2)}, I32(2, 3, 7)},
    {RO_OP_CAST, 1, {RO_U8}, {F32(2, 3, 4)}, {RO_U8, 2, {3, 4}}},
    {RO_OP_ADD, 2, {0}, {F32(2, 3, 4), F32(1, 4)}, F32(2, 3, 4)},
    {RO_OP_DIV_CONST, 1, {FLOAT_1}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_GELU, 1, {0}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_GELU_GRAD, 2, {0}, {F32(2, 3, 4), F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_RELU, 1, {0}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_RELU_GRAD, 2, {0}, {F32(2, 3, 4), F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_MAX, 2, {0}, {F32(2, 3, 4), F32(1, 4)}, F32(2, 3, 4)},
    {RO_OP_MIN, 2, {0}, {F32(2, 3, 4), ONE}, F32(2, 3, 4)},
    {RO_OP_ABS, 1, {0}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_COMPARE, 2, {RO_LESS}, {F32(2, 3, 4), F32(1, 4)}, I32(2, 3, 4)},
    {RO_OP_WHERE, 3, {0}, {I32(2, 3, 4), F32(2, 3, 4), F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_IADD, 2, {0}, {I32(2, 3, 4), I32(1, 4)}, I32(2, 3, 4)},
    {RO_OP_PUT_ROWS, 3, {1}, {F32(3, 2, 5, 4), F32(3, 2, 3, 4), STEP}, F32(3, 2, 5, 4)},
    {RO_OP_ATTN_MAX_AT, 2, {0}, {F32(3, 2, 3, 130), STEP}, F32(3, 2, 3, 2)},
    {RO_OP_ATTN_EXP_AT, 3, {0}, {F32(3, 2, 3, 130), F32(3, 2, 3, 2), STEP}, F32(3, 2, 3, 130)},
    {RO_OP_ATTN_AV_AT, 3, {5}, {F32(3, 2, 3, 130), F32(3, 2, 130, 4), STEP}, F32(4, 2, 3, 2, 4)},
    {RO_OP_WEIGHT, 2, {0}, {F32(2, 3, 5), F32(2, 3, 1)}, I32(2, 3, 5)},
    {RO_OP_TOP_K, 1, {3}, {I32(2, 3, 5)}, I32(2, 3, 2)},
    {RO_OP_TOP_P, 1, {1 << 23}, {I32(2, 3, 5)}, I32(2, 3, 2)},
    {RO_OP_KEEP_TOP, 2, {0}, {I32(2, 3, 5), I32(2, 3, 2)}, I32(2, 3, 5)},
    {RO_OP_RANDOM_WORDS, 2, {-1, UINT32_MAX}, {I32(2, 3, 2), STEP}, I32(2, 3, 2)},
    {RO_OP_DRAW, 2, {0}, {I32(2, 3, 5), I32(2, 3, 2)}, I32(2, 3, 1)},
    {RO_OP_LEAKY_RELU, 1, {FLOAT_1}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_LEAKY_RELU_GRAD, 2, {FLOAT_1}, {F32(2, 3, 4), F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_CAST_STOCHASTIC, 2, {1, 2}, {F32(2, 3, 4), STEP}, {RO_BF16, 2, {3, 4}}},
    {RO_OP_DROPOUT, 2, {1, 2, UINT32_MAX, FLOAT_1}, {F32(2, 3, 4), STEP}, F32(2, 3, 4)},
    {RO_OP_MUL, 2, {0}, {F32(2, 3, 4), F32(1, 4)}, F32(2, 3, 4)},
    {RO_OP_SUB, 2, {0}, {F32(2, 3, 4), F32(2, 1, 1)}, F32(2, 3, 4)},
    {RO_OP_DIV, 2, {0}, {F32(2, 3, 4), ONE}, F32(2, 3, 4)},
    {RO_OP_SCALE, 1, {FLOAT_1}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_EXP, 1, {0}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_LOG, 1, {0}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_SQRT, 1, {0}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_RSQRT, 1, {0}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_MATMUL,
     2,
     {1, 2, FLOAT_1, 128, 1},
     {F32(4, 2, 3, 4, 5), F32(3, 2, 6, 5)},
     F32(4, 2, 3, 4, 6)},
    {RO_OP_MATMUL_FIXED,
     2,
     {1, 2, FLOAT_1, RO_FIXED_16},
     {F32(4, 2, 3, 4, 5), F32(3, 2, 6, 5)},
     F32(4, 2, 3, 4, 6)},
    {RO_OP_REDUCE_SUM, 1, {6, 4}, {F32(2, 3, 6)}, F32(2, 3, 2)},
    {RO_OP_REDUCE_MAX, 1, {6, 1024}, {F32(2, 3, 6)}, F32(1, 3)},
    {RO_OP_REDUCE_DOT, 2, {6, 6}, {F32(2, 3, 6), F32(1, 6)}, F32(2, 3, 1)},
    {RO_OP_REDUCE_SQDEV, 2, {6, 6}, {F32(2, 3, 6), F32(1, 3)}, F32(2, 3, 1)},
    {RO_OP_REDUCE_EXPSUM, 2, {6, 6}, {F32(2, 3, 6), F32(2, 3, 1)}, F32(2, 3, 1)},
    {RO_OP_REDUCE_LN_GX,
     5,
     {6, 6},
     {F32(2, 3, 6), F32(1, 6), F32(2, 3, 6), F32(1, 3), F32(1, 3)},
     F32(1, 3)},
    {RO_OP_SUM_ROWS, 1, {2}, {F32(2, 65, 2)}, F32(2, 2, 2)},
    {RO_OP_LN_DGAMMA, 4, {2}, {F32(2, 64, 2), F32(2, 64, 2), F32(1, 64), F32(1, 64)}, F32(1, 2)},
    {RO_OP_LN_RSTD, 1, {6, 0}, {F32(2, 3, 1)}, F32(2, 3, 1)},
    {RO_OP_LAYERNORM,
     5,
     {0},
     {F32(2, 3, 6), F32(1, 3), F32(1, 3), F32(1, 6), F32(1, 6)},
     F32(2, 3, 6)},
    {RO_OP_LN_DX,
     7,
     {0},
     {F32(2, 3, 6), F32(1, 6), F32(2, 3, 6), F32(1, 3), F32(1, 3), F32(1, 3), F32(1, 3)},
     F32(2, 3, 6)},
    {RO_OP_XENT, 4, {0}, {F32(3, 2, 3, 5), F32(1, 6), F32(1, 6), I32(2, 2, 3)}, F32(2, 2, 3)},
    {RO_OP_XENT_GRAD,
     5,
     {0},
     {F32(3, 2, 3, 5), F32(1, 6), F32(1, 6), I32(2, 2, 3), F32(1, 6)},
     F32(3, 2, 3, 5)},
    {RO_OP_ATTN_MAX, 1, {1}, {F32(3, 2, 130, 130)}, F32(3, 2, 130, 2)},
    {RO_OP_ATTN_EXP, 2, {0}, {F32(3, 2, 3, 130), F32(3, 2, 3, 2)}, F32(3, 2, 3, 130)},
    {RO_OP_ATTN_AV, 2, {0}, {F32(3, 2, 3, 130), F32(3, 2, 130, 4)}, F32(4, 2, 3, 2, 4)},
    {RO_OP_ATTN_L, 2, {0}, {F32(3, 2, 3, 5), F32(3, 2, 3, 5)}, F32(3, 2, 3, 1)},
    {RO_OP_ATTN_OUT,
     3,
     {0},
     {F32(3, 2, 3, 5), F32(4, 2, 3, 5, 4), F32(3, 2, 3, 1)},
     F32(3, 2, 3, 4)},
    {RO_OP_ATTN_PROB, 3, {1}, {F32(3, 2, 4, 4), F32(3, 2, 4, 1), F32(3, 2, 4, 1)}, F32(3, 2, 4, 4)},
    {RO_OP_ATTN_DSCORE,
     3,
     {1},
     {F32(3, 2, 4, 4), F32(3, 2, 4, 4), F32(3, 2, 4, 1)},
     F32(3, 2, 4, 4)},
    {RO_OP_REPEAT_HEADS, 1, {3}, {F32(4, 2, 2, 4, 3)}, F32(4, 2, 6, 4, 3)},
    {RO_OP_REPEAT_HEADS_GRAD, 1, {3}, {F32(4, 2, 6, 4, 3)}, F32(4, 2, 2, 4, 3)},
    {RO_OP_LR_SCHEDULE, 1, {RO_LR_COSINE, FLOAT_1, 0, 3, 10}, {STEP}, ONE},
    {RO_OP_BIAS_CORRECTION, 1, {FLOAT_1}, {ONE}, ONE},
    {RO_OP_CLIP_SCALE, 1, {FLOAT_1}, {ONE}, ONE},
    {RO_OP_ADAMW_M, 3, {FLOAT_1}, {F32(2, 3, 4), F32(2, 3, 4), ONE}, F32(2, 3, 4)},
    {RO_OP_ADAMW_V, 3, {FLOAT_1}, {F32(2, 3, 4), F32(2, 3, 4), ONE}, F32(2, 3, 4)},
    {RO_OP_ADAMW_W,
     6,
     {0, 0},
     {F32(2, 3, 4), F32(2, 3, 4), F32(2, 3, 4), ONE, ONE, ONE},
     F32(2, 3, 4)},
    {RO_OP_TANH, 1, {0}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_ERF, 1, {0}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_SIGMOID, 1, {0}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_SILU, 1, {0}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_GELU_ERF, 1, {0}, {F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_TANH_GRAD, 2, {0}, {F32(2, 3, 4), F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_ERF_GRAD, 2, {0}, {F32(2, 3, 4), F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_SIGMOID_GRAD, 2, {0}, {F32(2, 3, 4), F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_SILU_GRAD, 2, {0}, {F32(2, 3, 4), F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_GELU_ERF_GRAD, 2, {0}, {F32(2, 3, 4), F32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_SGD_M, 4, {FLOAT_1, 0}, {F32(2, 3, 4), F32(2, 3, 4), F32(2, 3, 4), ONE}, F32(2, 3, 4)},
    {RO_OP_SGD_W, 3, {0}, {F32(2, 3, 4), F32(2, 3, 4), ONE}, F32(2, 3, 4)},
    {RO_OP_SGD_NESTEROV,
     5,
     {FLOAT_1, 0},
     {F32(2, 3, 4), F32(2, 3, 4), F32(2, 3, 4), ONE, ONE},
     F32(2, 3, 4)},
    {RO_OP_UNIFORM, 0, {-1, UINT32_MAX, 0, FLOAT_1}, {{0}}, F32(1, 7)},
    {RO_OP_PERMUTATION, 1, {-1, UINT32_MAX}, {STEP}, I32(1, 7)},
    {RO_OP_ROPE_TURNS,
     0,
     {FLOAT_1, RO_ROPE_LLAMA3, FLOAT_1, FLOAT_1, 0x40800000, 8192},
     {{0}},
     I32(2, 4, 2)},
    {RO_OP_ROPE, 3, {1, 1}, {F32(3, 2, 3, 4), I32(2, 2, 3), I32(2, 2, 2)}, F32(3, 2, 3, 4)},
    {RO_OP_SOFTMAX, 3, {0}, {F32(3, 2, 3, 5), F32(1, 6), F32(3, 2, 3, 1)}, F32(3, 2, 3, 5)},
    {RO_OP_SOFTMAX_GRAD, 3, {0}, {F32(2, 3, 5), F32(2, 3, 5), F32(1, 3)}, F32(2, 3, 5)},
    {RO_OP_LOG_SOFTMAX, 3, {0}, {F32(2, 3, 5), F32(1, 3), F32(1, 3)}, F32(2, 3, 5)},
    {RO_OP_LOG_SOFTMAX_GRAD, 3, {0}, {F32(1, 5), F32(1, 5), ONE}, F32(1, 5)},
    {RO_OP_XENT_IGNORE,
     4,
     {-100},
     {F32(3, 2, 3, 5), F32(1, 6), F32(1, 6), I32(2, 2, 3)},
     F32(2, 2, 3)},
    {RO_OP_XENT_IGNORE_GRAD,
     5,
     {0},
     {F32(3, 2, 3, 5), F32(1, 6), F32(1, 6), I32(2, 2, 3), F32(1, 6)},
     F32(3, 2, 3, 5)},
    {RO_OP_KEPT, 1, {-1}, {I32(2, 3, 4)}, F32(2, 3, 4)},
    {RO_OP_SUM_AXIS, 1, {1}, {F32(3, 3, 130, 2)}, F32(3, 3, 3, 2)},
    {RO_OP_MAX_AXIS, 1, {0}, {F32(2, 64, 2)}, F32(2, 1, 2)},
    {RO_OP_ARGMAX, 1, {1}, {F32(3, 3, 600, 2)}, I32(3, 3, 1, 2)},
    {RO_OP_MAX_GRAD, 2, {1, 4}, {I32(3, 3, 1, 2), F32(3, 3, 1, 2)}, F32(3, 3, 4, 2)},
    {RO_OP_EXPAND, 1, {0, 4}, {F32(2, 1, 2)}, F32(2, 4, 2)},
    {RO_OP_RMSNORM, 3, {0}, {F32(2, 3, 6), F32(1, 3), F32(1, 6)}, F32(2, 3, 6)},
    {RO_OP_RMS_DX,
     5,
     {0},
     {F32(2, 3, 6), F32(1, 6), F32(2, 3, 6), F32(1, 3), F32(1, 3)},
     F32(2, 3, 6)},
    {RO_OP_REDUCE_RMS_GX, 4, {6, 6}, {F32(2, 3, 6), F32(1, 6), F32(2, 3, 6), F32(1, 3)}, F32(1, 3)},
    {RO_OP_RMS_DGAMMA, 3, {2}, {F32(2, 64, 2), F32(2, 64, 2), F32(1, 64)}, F32(1, 2)},
    {RO_OP_RESHAPE, 1, {0}, {F32(2, 3, 4)}, F32(3, 2, 3, 2)},
    {RO_OP_GATHER_GRAD, 2, {1}, {F32(3, 3, 5, 6), I32(2, 5, 6)}, F32(2, 3, 4)},
    {RO_OP_CONV2D,
     2,
     {2, 1, 1, 2, 1, 3, 2},
     {F32(4, 2, 5, 9, 6), F32(4, 3, 3, 3, 4)},
     F32(4, 2, 3, 7, 4)},
    {RO_OP_CONV2D_DX,
     2,
     {2, 1, 1, 2, 1, 3, 2},
     {F32(4, 2, 3, 7, 4), F32(4, 3, 3, 3, 4)},
     F32(4, 2, 5, 9, 6)},
    {RO_OP_CONV2D_DW,
     2,
     {2, 1, 1, 2, 1, 3, 2},
     {F32(4, 2, 5, 9, 6), F32(4, 2, 3, 7, 4)},
     F32(4, 3, 3, 3, 4)},
    {RO_OP_CONV2D_FIXED,
     2,
     {2, 1, 1, 2, 1, 3, 2, RO_FIXED_16},
     {F32(4, 2, 5, 9, 6), F32(4, 3, 3, 3, 4)},
     F32(4, 2, 3, 7, 4)},
    {RO_OP_CONV2D_FIXED_DX,
     2,
     {2, 1, 1, 2, 1, 3, 2, RO_FIXED_24},
     {F32(4, 2, 3, 7, 4), F32(4, 3, 3, 3, 4)},
     F32(4, 2, 5, 9, 6)},
    {RO_OP_CONV2D_FIXED_DW,
     2,
     {2, 1, 1, 2, 1, 3, 2, RO_FIXED_16},
     {F32(4, 2, 5, 9, 6), F32(4, 2, 3, 7, 4)},
     F32(4, 3, 3, 3, 4)},
    {RO_OP_MAX_POOL2D, 1, {3, 2, 2, 1, 1, 0}, {F32(4, 2, 6, 4, 5)}, F32(4, 2, 3, 3, 5)},
    {RO_OP_MAX_POOL2D_INDEX, 1, {3, 2, 2, 1, 1, 0}, {F32(4, 2, 6, 4, 5)}, I32(4, 2, 3, 3, 5)},
    {RO_OP_MAX_POOL2D_GRAD,
     2,
     {3, 2, 2, 1, 1, 0},
     {F32(4, 2, 3, 3, 5), I32(4, 2, 3, 3, 5)},
     F32(4, 2, 6, 4, 5)},
    {RO_OP_AVG_POOL2D, 1, {3, 2, 2, 1, 1, 0, 1}, {F32(4, 2, 6, 4, 5)}, F32(4, 2, 3, 3, 5)},
    {RO_OP_AVG_POOL2D_GRAD, 1, {3, 2, 2, 1, 1, 0, 0}, {F32(4, 2, 3, 3, 5)}, F32(4, 2, 6, 4, 5)},
    {RO_OP_BN_MEAN, 1, {3}, {F32(4, 2, 5, 9, 3)}, F32(2, 2, 3)},
    {RO_OP_BN_SQDEV, 2, {3}, {F32(4, 2, 5, 9, 3), F32(2, 2, 3)}, F32(2, 2, 3)},
    {RO_OP_BN_MERGE_MEAN, 1, {3, 90, 64}, {F32(2, 2, 3)}, F32(1, 3)},
    {RO_OP_BN_MERGE_SQDEV, 2, {3, 90, 64}, {F32(2, 2, 3), F32(2, 2, 3)}, F32(1, 3)},
    {RO_OP_BATCHNORM,
     5,
     {0},
     {F32(4, 2, 5, 9, 3), F32(1, 3), F32(1, 3), F32(1, 3), F32(1, 3)},
     F32(4, 2, 5, 9, 3)},
    {RO_OP_BN_DGAMMA,
     4,
     {3},
     {F32(4, 2, 5, 9, 3), F32(4, 2, 5, 9, 3), F32(1, 3), F32(1, 3)},
     F32(2, 2, 3)},
    {RO_OP_BN_DX,
     7,
     {0},
     {F32(4, 2, 5, 9, 3), F32(4, 2, 5, 9, 3), F32(1, 3), F32(1, 3), F32(1, 3), F32(1, 3),
      F32(1, 3)},
     F32(4, 2, 5, 9, 3)},
    {RO_OP_BN_RUNNING, 2, {FLOAT_1, FLOAT_1}, {F32(1, 3), F32(1, 3)}, F32(1, 3)},
    {RO_OP_READ_IMAGES,
     2,
     {7, 0, 5, 2, 26, 1, FLOAT_1, 0},
     {{RO_U8, 1, {70}}, STEP},
     F32(4, 3, 2, 4, 3)},
    {RO_OP_READ_LABELS, 2, {7, 0, 5, 2, 26, 25}, {{RO_U8, 1, {70}}, STEP}, I32(1, 3)},
};
enum { VALID_CALLS = sizeof valid_calls / sizeof valid_calls[0], MANY_INPUTS = 1024 };

#undef F32
#undef I32
#undef ONE
#undef STEP

/* A call with its own copy of the input shapes. */
typedef struct {
    ro_call call;
    ro_shape input[MANY_INPUTS];
} any_call;

static inline void copy_call(any_call *out, const valid_call *from) {
    memset(out, 0, offsetof(any_call, input) + 16 * sizeof *out->input);
    memcpy(out->input, from->input, sizeof from->input);
    out->call = (ro_call){from->op, from->input_count, {0}, out->input, from->output};
    memcpy(out->call.attr, from->attr, sizeof from->attr);
}

/* SplitMix64 (Steele et al., 2014). */
static inline uint64_t random_word(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Numbers at which conditions of SPEC.md turn over, and any bits. */
static inline int64_t random_number(uint64_t *state) {
    static const int64_t edge[] = {
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        8,
        64,
        65,
        127,
        128,
        129,
        256,
        257,
        1024,
        1025,
        2047,
        2048,
        INT32_MAX,
        INT32_MIN,
        UINT32_MAX,
        -1,
        -2,
        1025,
        4097,
        1 << 20,
        (int64_t)1 << 31,
        (int64_t)1 << 32,
        (int64_t)1 << 40,
        ((int64_t)1 << 40) + 1,
        INT64_MAX,
        INT64_MIN,
        FLOAT_1,
        RO_QNAN_BITS,
    };
    const uint64_t h = random_word(state);
    if (h % 16 == 0)
        return (int64_t)random_word(state);
    return h % 2 ? (int64_t)(h >> 8) % 7 : edge[(h >> 8) % (sizeof edge / sizeof edge[0])];
}

static inline void mutate_shape(ro_shape *shape, uint64_t *state) {
    const uint64_t h = random_word(state);
    const int i = (int)((h >> 32) % RO_MAX_DIMS);
    switch (h % 8) {
    case 0: shape->dtype = (int32_t)random_number(state); break;
    case 1: shape->dtype = 1 + i % 4; break;
    case 2: shape->ndim = (int32_t)random_number(state); break;
    case 3:
        if (shape->ndim >= 0 && shape->ndim < RO_MAX_DIMS)
            shape->dim[shape->ndim++] = random_number(state);
        break;
    default: shape->dim[i] = random_number(state); break;
    }
}

/* Another attribute, shape, operator or number of inputs. */
static inline void mutate_call(any_call *c, uint64_t *state) {
    const uint64_t h = random_word(state), i = h >> 32;
    switch (h % 16) {
    case 0: c->call.op = (int32_t)random_number(state); break;
    case 1: c->call.op = 1 + (int32_t)(i % RO_OP_END); break;
    case 2: c->call.input_count = (int32_t)random_number(state); break;
    case 3: c->input[i % 7] = c->input[(i >> 8) % 7]; break;
    case 4:
    case 5: mutate_shape(&c->call.output, state); break;
    case 6: c->call.output = (ro_shape){0}; break;
    case 7:
    case 8:
    case 9:
    case 10: c->call.attr[i % RO_MAX_ATTRS] = random_number(state); break;
    default: mutate_shape(&c->input[i % 7], state); break;
    }
}

/* A valid call with up to four changes. */
static inline void random_call(any_call *c, uint64_t *state) {
    const uint64_t h = random_word(state);
    copy_call(c, &valid_calls[h % VALID_CALLS]);
    for (uint64_t n = (h >> 32) % 5; n > 0; n--)
        mutate_call(c, state);
}

#endif
