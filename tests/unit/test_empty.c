/* Tensors without elements: repops/SPEC.md section 4. */
#include "repops/fused.h"
#include "repops/ref.h"
#include "repops/operators.h"
#include "each_operator.h"
#include "valid_calls.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* clang-format off */
#define F(n, ...) {RO_F32, n, {__VA_ARGS__}}
#define I(n, ...) {RO_I32, n, {__VA_ARGS__}}
#define U(n, ...) {RO_U8, n, {__VA_ARGS__}}
/* clang-format on */

#define NAN_BITS  RO_QNAN_BITS
#define MINUS_INF 0xff800000

/* Every element of the output must be `want`. All elements of inputs are zero. */
typedef struct {
    const char *shows;
    uint32_t want;
    valid_call call;
} empty_case;

static const empty_case cases[] = {
    {"fill", 0, {RO_OP_FILL, 0, {FLOAT_1}, {{0}}, F(2, 0, 3)}},
    {"normal", 0, {RO_OP_NORMAL, 0, {0, 0, 0, 0}, {{0}}, F(1, 0)}},
    {"uniform", 0, {RO_OP_UNIFORM, 0, {0, 0, 0, 0}, {{0}}, F(1, 0)}},
    {"iota", 0, {RO_OP_IOTA, 0, {0}, {{0}}, I(1, 0)}},
    {"permutation", 0, {RO_OP_PERMUTATION, 1, {0, 0}, {I(1, 1)}, I(1, 0)}},
    {"embedding, no ids", 0, {RO_OP_EMBEDDING, 2, {0}, {F(2, 3, 4), I(1, 0)}, F(2, 0, 4)}},
    {"embedding, no rows", NAN_BITS, {RO_OP_EMBEDDING, 2, {0}, {F(2, 0, 4), I(1, 2)}, F(2, 2, 4)}},
    {"embedding_grad, no ids",
     0,
     {RO_OP_EMBEDDING_GRAD, 2, {0}, {F(2, 0, 4), I(1, 0)}, F(2, 3, 4)}},
    {"embedding_grad, no columns",
     0,
     {RO_OP_EMBEDDING_GRAD, 2, {0}, {F(2, 5, 0), I(1, 5)}, F(2, 3, 0)}},
    {"split_heads", 0, {RO_OP_SPLIT_HEADS, 1, {3, 0, 2}, {F(3, 2, 0, 12)}, F(4, 2, 2, 0, 2)}},
    {"join_heads", 0, {RO_OP_JOIN_HEADS, 1, {0}, {F(4, 2, 2, 3, 0)}, F(3, 2, 3, 0)}},
    {"concat", 0, {RO_OP_CONCAT, 3, {0}, {F(2, 0, 5), F(1, 2), F(1, 0)}, F(1, 2)}},
    {"transpose", 0, {RO_OP_TRANSPOSE, 1, {1, 2, 0}, {F(3, 2, 0, 3)}, F(3, 0, 3, 2)}},
    {"slice to nothing", 0, {RO_OP_SLICE, 1, {1, 4, 0, 1}, {U(2, 3, 4)}, U(2, 3, 0)}},
    {"slice of nothing", 0, {RO_OP_SLICE, 1, {0, 0, 0, 3}, {F(2, 0, 4)}, F(2, 0, 4)}},
    {"pad of nothing", FLOAT_1, {RO_OP_PAD, 1, {1, 2, 3, 7, FLOAT_1}, {F(2, 2, 0)}, F(2, 2, 5)}},
    {"pad elsewhere", 0, {RO_OP_PAD, 1, {0, 2, 3, 1, FLOAT_1}, {F(2, 2, 0)}, F(2, 7, 0)}},
    {"gather from nothing", NAN_BITS, {RO_OP_GATHER, 2, {1}, {F(2, 2, 0), I(1, 3)}, F(2, 2, 3)}},
    {"gather nothing", 0, {RO_OP_GATHER, 2, {0}, {F(2, 2, 3), I(2, 0, 4)}, F(3, 0, 4, 3)}},
    {"gather_grad of nothing", 0, {RO_OP_GATHER_GRAD, 2, {1}, {F(2, 2, 0), I(1, 0)}, F(2, 2, 3)}},
    {"concat_axis",
     0,
     {RO_OP_CONCAT_AXIS, 3, {1}, {F(2, 2, 0), F(2, 2, 3), F(2, 2, 0)}, F(2, 2, 3)}},
    {"cast", 0, {RO_OP_CAST, 1, {RO_U8}, {F(2, 0, 3)}, U(2, 0, 3)}},
    {"cast_stochastic",
     0,
     {RO_OP_CAST_STOCHASTIC, 2, {0}, {F(2, 0, 3), I(1, 1)}, {RO_BF16, 2, {0, 3}}}},
    {"reshape", 0, {RO_OP_RESHAPE, 1, {0}, {F(2, 0, 3)}, F(1, 0)}},
    {"rope", 0, {RO_OP_ROPE, 3, {0}, {F(2, 0, 4), I(1, 0), I(2, 2, 2)}, F(2, 0, 4)}},
    {"rope_turns", 0, {RO_OP_ROPE_TURNS, 0, {FLOAT_1}, {{0}}, I(2, 0, 2)}},
    {"add", 0, {RO_OP_ADD, 2, {0}, {F(2, 0, 4), F(1, 4)}, F(2, 0, 4)}},
    {"add of nothing to nothing", 0, {RO_OP_ADD, 2, {0}, {F(2, 4, 0), F(1, 0)}, F(2, 4, 0)}},
    {"compare", 0, {RO_OP_COMPARE, 2, {RO_LESS}, {F(2, 0, 4), F(1, 4)}, I(2, 0, 4)}},
    {"where", 0, {RO_OP_WHERE, 3, {0}, {I(2, 0, 4), F(2, 0, 4), F(2, 0, 4)}, F(2, 0, 4)}},
    {"iadd", 0, {RO_OP_IADD, 2, {0}, {I(2, 0, 4), I(1, 4)}, I(2, 0, 4)}},
    {"integer", 0, {RO_OP_INTEGER, 2, {RO_XOR}, {I(2, 0, 4), I(1, 4)}, I(2, 0, 4)}},
    {"put_rows into nothing",
     0,
     {RO_OP_PUT_ROWS, 3, {0}, {F(2, 0, 4), F(2, 2, 4), I(1, 1)}, F(2, 0, 4)}},
    {"put_rows of nothing",
     0,
     {RO_OP_PUT_ROWS, 3, {0}, {F(2, 3, 4), F(2, 0, 4), I(1, 1)}, F(2, 3, 4)}},
    {"attn_max_at", 0, {RO_OP_ATTN_MAX_AT, 2, {0}, {F(3, 2, 0, 130), I(1, 1)}, F(3, 2, 0, 2)}},
    {"attn_exp_at",
     0,
     {RO_OP_ATTN_EXP_AT, 3, {0}, {F(3, 0, 2, 3), F(3, 0, 2, 1), I(1, 1)}, F(3, 0, 2, 3)}},
    {"attn_av_at of no keys",
     0,
     {RO_OP_ATTN_AV_AT, 3, {0}, {F(3, 2, 0, 0), F(3, 2, 0, 4), I(1, 1)}, F(4, 2, 0, 0, 4)}},
    {"weight", 0, {RO_OP_WEIGHT, 2, {0}, {F(2, 3, 0), F(1, 3)}, I(2, 3, 0)}},
    {"top_k of nothing", 0, {RO_OP_TOP_K, 1, {3}, {I(2, 3, 0)}, I(2, 3, 2)}},
    {"top_p of nothing", 0, {RO_OP_TOP_P, 1, {3}, {I(2, 3, 0)}, I(2, 3, 2)}},
    {"keep_top", 0, {RO_OP_KEEP_TOP, 2, {0}, {I(2, 3, 0), I(2, 3, 2)}, I(2, 3, 0)}},
    {"random_words", 0, {RO_OP_RANDOM_WORDS, 2, {0}, {I(2, 0, 2), I(1, 1)}, I(2, 0, 2)}},
    {"draw", 0, {RO_OP_DRAW, 2, {0}, {I(2, 0, 5), I(2, 0, 2)}, I(2, 0, 1)}},
    {"gelu", 0, {RO_OP_GELU, 1, {0}, {F(1, 0)}, F(1, 0)}},
    {"dropout", 0, {RO_OP_DROPOUT, 2, {0, 0, 5, FLOAT_1}, {F(1, 0), I(1, 1)}, F(1, 0)}},
    {"matmul, K = 0",
     0x80000000,
     {RO_OP_MATMUL, 2, {0, 0, 0xc0000000, 256, 0}, {F(2, 3, 0), F(2, 0, 5)}, F(2, 3, 5)}},
    {"matmul, K = 0, transposed and masked",
     0,
     {RO_OP_MATMUL, 2, {1, 3, FLOAT_1, 128, 2}, {F(3, 2, 0, 3), F(3, 2, 5, 0)}, F(3, 2, 3, 5)}},
    {"matmul, M = 0",
     0,
     {RO_OP_MATMUL, 2, {0, 0, FLOAT_1, 256, 0}, {F(2, 0, 4), F(2, 4, 5)}, F(2, 0, 5)}},
    {"matmul, no batch",
     0,
     {RO_OP_MATMUL, 2, {1, 0, FLOAT_1, 256, 0}, {F(3, 0, 3, 4), F(3, 0, 4, 5)}, F(3, 0, 3, 5)}},
    {"matmul_fixed, K = 0",
     0x80000000,
     {RO_OP_MATMUL_FIXED,
      2,
      {0, 0, 0xc0000000, RO_FIXED_24},
      {F(2, 3, 0), F(2, 0, 5)},
      F(2, 3, 5)}},
    {"matmul_fixed, K = 0, transposed",
     0,
     {RO_OP_MATMUL_FIXED,
      2,
      {1, 3, FLOAT_1, RO_FIXED_16},
      {F(3, 2, 0, 3), F(3, 2, 5, 0)},
      F(3, 2, 3, 5)}},
    {"matmul_fixed, M = 0",
     0,
     {RO_OP_MATMUL_FIXED, 2, {0, 0, FLOAT_1, RO_FIXED_16}, {F(2, 0, 4), F(2, 4, 5)}, F(2, 0, 5)}},
    {"matmul_fixed, no batch",
     0,
     {RO_OP_MATMUL_FIXED,
      2,
      {1, 0, FLOAT_1, RO_FIXED_24},
      {F(3, 0, 3, 4), F(3, 0, 4, 5)},
      F(3, 0, 3, 5)}},
    {"reduce_sum of empty rows", 0, {RO_OP_REDUCE_SUM, 1, {0, 1024}, {F(2, 3, 0)}, F(2, 3, 1)}},
    {"reduce_sum of no rows", 0, {RO_OP_REDUCE_SUM, 1, {7, 1024}, {F(2, 0, 7)}, F(2, 0, 1)}},
    {"reduce_max of empty rows", MINUS_INF, {RO_OP_REDUCE_MAX, 1, {0, 1}, {F(2, 3, 0)}, F(1, 3)}},
    {"reduce_dot of empty rows",
     0,
     {RO_OP_REDUCE_DOT, 2, {0, 128}, {F(2, 3, 0), F(1, 0)}, F(1, 3)}},
    {"reduce_sqdev of empty rows",
     0,
     {RO_OP_REDUCE_SQDEV, 2, {0, 128}, {F(2, 3, 0), F(1, 3)}, F(1, 3)}},
    {"reduce_expsum of empty rows",
     0,
     {RO_OP_REDUCE_EXPSUM, 2, {0, 128}, {F(2, 3, 0), F(1, 3)}, F(1, 3)}},
    {"reduce_ln_gx of empty rows",
     0,
     {RO_OP_REDUCE_LN_GX,
      5,
      {0, 128},
      {F(2, 3, 0), F(1, 0), F(2, 3, 0), F(1, 3), F(1, 3)},
      F(1, 3)}},
    {"sum_rows of no rows", 0, {RO_OP_SUM_ROWS, 1, {5}, {F(2, 0, 5)}, F(2, 1, 5)}},
    {"sum_rows of no columns", 0, {RO_OP_SUM_ROWS, 1, {0}, {F(2, 5, 0)}, F(1, 0)}},
    {"ln_dgamma of no rows",
     0,
     {RO_OP_LN_DGAMMA, 4, {5}, {F(2, 0, 5), F(2, 0, 5), F(1, 0), F(1, 0)}, F(1, 5)}},
    {"ln_rstd", 0, {RO_OP_LN_RSTD, 1, {4, 0}, {F(2, 0, 1)}, F(2, 0, 1)}},
    {"layernorm of no columns",
     0,
     {RO_OP_LAYERNORM, 5, {0}, {F(2, 3, 0), F(1, 3), F(1, 3), F(1, 0), F(1, 0)}, F(2, 3, 0)}},
    {"ln_dx of no rows",
     0,
     {RO_OP_LN_DX,
      7,
      {0},
      {F(2, 0, 4), F(1, 4), F(2, 0, 4), F(1, 0), F(1, 0), F(1, 0), F(1, 0)},
      F(2, 0, 4)}},
    {"xent without classes",
     NAN_BITS,
     {RO_OP_XENT, 4, {0}, {F(2, 3, 0), F(1, 3), F(1, 3), I(1, 3)}, F(1, 3)}},
    {"xent_grad",
     0,
     {RO_OP_XENT_GRAD, 5, {0}, {F(2, 0, 4), F(1, 0), F(1, 0), I(1, 0), F(1, 0)}, F(2, 0, 4)}},
    {"attn_max of no keys", 0, {RO_OP_ATTN_MAX, 1, {0}, {F(3, 2, 3, 0)}, F(3, 2, 3, 0)}},
    {"attn_exp of no keys",
     0,
     {RO_OP_ATTN_EXP, 2, {0}, {F(3, 2, 3, 0), F(3, 2, 3, 0)}, F(3, 2, 3, 0)}},
    {"attn_av of no keys",
     0,
     {RO_OP_ATTN_AV, 2, {0}, {F(3, 2, 3, 0), F(3, 2, 0, 4)}, F(4, 2, 3, 0, 4)}},
    {"attn_l of no blocks",
     0,
     {RO_OP_ATTN_L, 2, {0}, {F(3, 2, 3, 0), F(3, 2, 3, 0)}, F(3, 2, 3, 1)}},
    {"attn_out of no blocks",
     0,
     {RO_OP_ATTN_OUT, 3, {0}, {F(3, 2, 3, 0), F(4, 2, 3, 0, 4), F(3, 2, 3, 1)}, F(3, 2, 3, 4)}},
    {"attn_prob of no queries",
     0,
     {RO_OP_ATTN_PROB, 3, {1}, {F(3, 2, 0, 0), F(3, 2, 0, 1), F(3, 2, 0, 1)}, F(3, 2, 0, 0)}},
    {"attn_dscore",
     0,
     {RO_OP_ATTN_DSCORE, 3, {1}, {F(3, 2, 0, 0), F(3, 2, 0, 0), F(3, 2, 0, 1)}, F(3, 2, 0, 0)}},
    {"adamw_w",
     0,
     {RO_OP_ADAMW_W, 6, {0, 0}, {F(1, 0), F(1, 0), F(1, 0), F(1, 1), F(1, 1), F(1, 1)}, F(1, 0)}},
    {"sgd_w", 0, {RO_OP_SGD_W, 3, {0}, {F(1, 0), F(1, 0), F(1, 1)}, F(1, 0)}},
    {"read_batch of no rows",
     0,
     {RO_OP_READ_BATCH, 2, {0, 0, 4, 4, 0}, {U(1, 9), I(1, 1)}, I(2, 0, 4)}},
    {"repeat_heads", 0, {RO_OP_REPEAT_HEADS, 1, {3}, {F(4, 2, 2, 0, 4)}, F(4, 2, 6, 0, 4)}},
    {"repeat_heads_grad of no heads",
     0,
     {RO_OP_REPEAT_HEADS_GRAD, 1, {3}, {F(4, 2, 0, 3, 4)}, F(4, 2, 0, 3, 4)}},
    {"softmax of no classes",
     0,
     {RO_OP_SOFTMAX, 3, {0}, {F(2, 3, 0), F(1, 3), F(1, 3)}, F(2, 3, 0)}},
    {"softmax_grad",
     0,
     {RO_OP_SOFTMAX_GRAD, 3, {0}, {F(2, 0, 4), F(2, 0, 4), F(1, 0)}, F(2, 0, 4)}},
    {"log_softmax", 0, {RO_OP_LOG_SOFTMAX, 3, {0}, {F(2, 0, 4), F(1, 0), F(1, 0)}, F(2, 0, 4)}},
    {"log_softmax_grad of no classes",
     0,
     {RO_OP_LOG_SOFTMAX_GRAD, 3, {0}, {F(2, 3, 0), F(2, 3, 0), F(1, 3)}, F(2, 3, 0)}},
    {"xent_ignore without classes",
     NAN_BITS,
     {RO_OP_XENT_IGNORE, 4, {7}, {F(2, 3, 0), F(1, 3), F(1, 3), I(1, 3)}, F(1, 3)}},
    {"xent_ignore without classes, ignored",
     0,
     {RO_OP_XENT_IGNORE, 4, {0}, {F(2, 3, 0), F(1, 3), F(1, 3), I(1, 3)}, F(1, 3)}},
    {"xent_ignore_grad",
     0,
     {RO_OP_XENT_IGNORE_GRAD,
      5,
      {7},
      {F(2, 0, 4), F(1, 0), F(1, 0), I(1, 0), F(1, 0)},
      F(2, 0, 4)}},
    {"kept", 0, {RO_OP_KEPT, 1, {7}, {I(1, 0)}, F(1, 0)}},
    {"sum_axis of nothing", 0, {RO_OP_SUM_AXIS, 1, {1}, {F(3, 2, 0, 3)}, F(3, 2, 1, 3)}},
    {"sum_axis elsewhere", 0, {RO_OP_SUM_AXIS, 1, {1}, {F(3, 0, 70, 3)}, F(3, 0, 2, 3)}},
    {"max_axis of nothing", MINUS_INF, {RO_OP_MAX_AXIS, 1, {0}, {F(2, 0, 3)}, F(2, 1, 3)}},
    {"max_axis of nothing, last", MINUS_INF, {RO_OP_MAX_AXIS, 1, {1}, {F(2, 3, 0)}, F(2, 3, 1)}},
    {"argmax elsewhere", 0, {RO_OP_ARGMAX, 1, {1}, {F(3, 0, 5, 3)}, I(3, 0, 1, 3)}},
    {"max_grad to nothing", 0, {RO_OP_MAX_GRAD, 2, {1, 0}, {I(2, 3, 1), F(2, 3, 1)}, F(2, 3, 0)}},
    {"expand to nothing", 0, {RO_OP_EXPAND, 1, {0, 0}, {F(2, 1, 3)}, F(2, 0, 3)}},
    {"expand nothing", 0, {RO_OP_EXPAND, 1, {0, 4}, {F(2, 1, 0)}, F(2, 4, 0)}},
    {"rmsnorm of no columns",
     0,
     {RO_OP_RMSNORM, 3, {0}, {F(2, 3, 0), F(1, 3), F(1, 0)}, F(2, 3, 0)}},
    {"rms_dx of no rows",
     0,
     {RO_OP_RMS_DX, 5, {0}, {F(2, 0, 4), F(1, 4), F(2, 0, 4), F(1, 0), F(1, 0)}, F(2, 0, 4)}},
    {"reduce_rms_gx of empty rows",
     0,
     {RO_OP_REDUCE_RMS_GX, 4, {0, 128}, {F(2, 3, 0), F(1, 0), F(2, 3, 0), F(1, 3)}, F(1, 3)}},
    {"rms_dgamma of no rows",
     0,
     {RO_OP_RMS_DGAMMA, 3, {5}, {F(2, 0, 5), F(2, 0, 5), F(1, 0)}, F(1, 5)}},
    {"conv2d of no images",
     0,
     {RO_OP_CONV2D,
      2,
      {1, 1, 0, 0, 1, 1, 1},
      {F(4, 0, 5, 5, 3), F(4, 3, 3, 3, 2)},
      F(4, 0, 3, 3, 2)}},
    {"conv2d of no channels",
     0,
     {RO_OP_CONV2D,
      2,
      {1, 1, 0, 0, 1, 1, 1},
      {F(4, 2, 5, 5, 0), F(4, 3, 3, 0, 2)},
      F(4, 2, 3, 3, 2)}},
    {"conv2d of padding alone",
     0,
     {RO_OP_CONV2D,
      2,
      {1, 1, 1, 1, 1, 1, 1},
      {F(4, 2, 0, 5, 3), F(4, 2, 2, 3, 2)},
      F(4, 2, 1, 6, 2)}},
    {"conv2d of single pixels without channels",
     0,
     {RO_OP_CONV2D,
      2,
      {1, 1, 0, 0, 1, 1, 1},
      {F(4, 2, 5, 5, 0), F(4, 1, 1, 0, 2)},
      F(4, 2, 5, 5, 2)}},
    {"conv2d_dx of no filters",
     0,
     {RO_OP_CONV2D_DX,
      2,
      {1, 1, 0, 0, 1, 1, 1},
      {F(4, 2, 3, 3, 0), F(4, 3, 3, 3, 0)},
      F(4, 2, 5, 5, 3)}},
    {"conv2d_dw of no images",
     0,
     {RO_OP_CONV2D_DW,
      2,
      {1, 1, 0, 0, 1, 1, 1},
      {F(4, 0, 5, 5, 3), F(4, 0, 3, 3, 2)},
      F(4, 3, 3, 3, 2)}},
    {"conv2d_dw of padding alone",
     0,
     {RO_OP_CONV2D_DW,
      2,
      {1, 1, 1, 1, 1, 1, 1},
      {F(4, 2, 0, 5, 3), F(4, 2, 1, 6, 2)},
      F(4, 2, 2, 3, 2)}},
    {"conv2d_fixed of no images",
     0,
     {RO_OP_CONV2D_FIXED,
      2,
      {1, 1, 0, 0, 1, 1, 1, RO_FIXED_24},
      {F(4, 0, 5, 5, 3), F(4, 3, 3, 3, 2)},
      F(4, 0, 3, 3, 2)}},
    {"conv2d_fixed of no channels",
     0,
     {RO_OP_CONV2D_FIXED,
      2,
      {1, 1, 0, 0, 1, 1, 1, RO_FIXED_24},
      {F(4, 2, 5, 5, 0), F(4, 3, 3, 0, 2)},
      F(4, 2, 3, 3, 2)}},
    {"conv2d_fixed of padding alone",
     0,
     {RO_OP_CONV2D_FIXED,
      2,
      {1, 1, 1, 1, 1, 1, 1, RO_FIXED_24},
      {F(4, 2, 0, 5, 3), F(4, 2, 2, 3, 2)},
      F(4, 2, 1, 6, 2)}},
    {"conv2d_fixed of single pixels without channels",
     0,
     {RO_OP_CONV2D_FIXED,
      2,
      {1, 1, 0, 0, 1, 1, 1, RO_FIXED_24},
      {F(4, 2, 5, 5, 0), F(4, 1, 1, 0, 2)},
      F(4, 2, 5, 5, 2)}},
    {"conv2d_fixed_dx of no filters",
     0,
     {RO_OP_CONV2D_FIXED_DX,
      2,
      {1, 1, 0, 0, 1, 1, 1, RO_FIXED_24},
      {F(4, 2, 3, 3, 0), F(4, 3, 3, 3, 0)},
      F(4, 2, 5, 5, 3)}},
    {"conv2d_fixed_dw of no images",
     0,
     {RO_OP_CONV2D_FIXED_DW,
      2,
      {1, 1, 0, 0, 1, 1, 1, RO_FIXED_24},
      {F(4, 0, 5, 5, 3), F(4, 0, 3, 3, 2)},
      F(4, 3, 3, 3, 2)}},
    {"conv2d_fixed_dw of padding alone",
     0,
     {RO_OP_CONV2D_FIXED_DW,
      2,
      {1, 1, 1, 1, 1, 1, 1, RO_FIXED_24},
      {F(4, 2, 0, 5, 3), F(4, 2, 1, 6, 2)},
      F(4, 2, 2, 3, 2)}},
    {"max_pool2d of no channels",
     0,
     {RO_OP_MAX_POOL2D, 1, {2, 2, 2, 2, 0, 0}, {F(4, 2, 4, 4, 0)}, F(4, 2, 2, 2, 0)}},
    {"max_pool2d_index of no images",
     0,
     {RO_OP_MAX_POOL2D_INDEX, 1, {2, 2, 2, 2, 0, 0}, {F(4, 0, 4, 4, 3)}, I(4, 0, 2, 2, 3)}},
    {"max_pool2d_grad",
     0,
     {RO_OP_MAX_POOL2D_GRAD,
      2,
      {2, 2, 2, 2, 0, 0},
      {F(4, 0, 2, 2, 3), I(4, 0, 2, 2, 3)},
      F(4, 0, 4, 4, 3)}},
    {"avg_pool2d",
     0,
     {RO_OP_AVG_POOL2D, 1, {2, 2, 2, 2, 0, 0}, {F(4, 0, 4, 4, 3)}, F(4, 0, 2, 2, 3)}},
    {"avg_pool2d_grad",
     0,
     {RO_OP_AVG_POOL2D_GRAD, 1, {2, 2, 2, 2, 0, 0}, {F(4, 2, 2, 2, 0)}, F(4, 2, 4, 4, 0)}},
    {"bn_mean of no rows", NAN_BITS, {RO_OP_BN_MEAN, 1, {3}, {F(2, 0, 3)}, F(1, 3)}},
    {"bn_mean of no columns", 0, {RO_OP_BN_MEAN, 1, {0}, {F(2, 5, 0)}, F(2, 1, 0)}},
    {"bn_sqdev of no rows", 0, {RO_OP_BN_SQDEV, 2, {3}, {F(2, 0, 3), F(1, 3)}, F(1, 3)}},
    {"bn_merge_mean of no columns",
     0,
     {RO_OP_BN_MERGE_MEAN, 1, {0, 90, 64}, {F(2, 2, 0)}, F(1, 0)}},
    {"bn_merge_sqdev of no columns",
     0,
     {RO_OP_BN_MERGE_SQDEV, 2, {0, 90, 64}, {F(2, 2, 0), F(2, 2, 0)}, F(1, 0)}},
    {"batchnorm of no channels",
     0,
     {RO_OP_BATCHNORM, 5, {0}, {F(2, 3, 0), F(1, 0), F(1, 0), F(1, 0), F(1, 0)}, F(2, 3, 0)}},
    {"bn_dgamma of no rows",
     0,
     {RO_OP_BN_DGAMMA, 4, {3}, {F(2, 0, 3), F(2, 0, 3), F(1, 3), F(1, 3)}, F(1, 3)}},
    {"bn_dx of no rows",
     0,
     {RO_OP_BN_DX,
      7,
      {0},
      {F(2, 0, 3), F(2, 0, 3), F(1, 3), F(1, 3), F(1, 3), F(1, 3), F(1, 3)},
      F(2, 0, 3)}},
    {"bn_running", 0, {RO_OP_BN_RUNNING, 2, {0, FLOAT_1}, {F(1, 0), F(1, 0)}, F(1, 0)}},
    {"read_images of no rows",
     0,
     {RO_OP_READ_IMAGES, 2, {0, 0, 4, 4, 12, 0, 0, 0}, {U(1, 24), I(1, 1)}, F(4, 0, 2, 2, 3)}},
    {"read_images of no pixels",
     0,
     {RO_OP_READ_IMAGES, 2, {0, 0, 4, 0, 12, 12, 0, 0}, {U(1, 24), I(1, 1)}, F(4, 4, 0, 2, 3)}},
    {"take_along of no places",
     0,
     {RO_OP_TAKE_ALONG, 2, {1}, {F(3, 2, 5, 3), I(3, 2, 0, 3)}, F(3, 2, 0, 3)}},
    {"take_along of nothing",
     NAN_BITS,
     {RO_OP_TAKE_ALONG, 2, {1}, {F(3, 2, 0, 3), I(3, 2, 1, 3)}, F(3, 2, 1, 3)}},
    {"put_along of no rows",
     0,
     {RO_OP_PUT_ALONG, 3, {1, 1}, {F(3, 2, 5, 3), I(3, 2, 0, 3), F(3, 2, 0, 3)}, F(3, 2, 5, 3)}},
    {"put_along onto nothing",
     0,
     {RO_OP_PUT_ALONG, 3, {1, 1}, {F(3, 2, 0, 3), I(3, 2, 4, 3), F(3, 2, 4, 3)}, F(3, 2, 0, 3)}},
    {"argsort", 0, {RO_OP_ARGSORT, 1, {1, 0}, {F(3, 2, 0, 3)}, I(3, 2, 0, 3)}},
    {"isum of nothing", 0, {RO_OP_ISUM, 1, {1}, {I(3, 2, 0, 3)}, I(3, 2, 1, 3)}},
    {"read_labels", 0, {RO_OP_READ_LABELS, 2, {0, 0, 4, 4, 12, 0}, {U(1, 24), I(1, 1)}, I(1, 0)}},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* For an operator without a case of its own: a valid call in which the output, and inputs of its
 * shape, are empty. */
static empty_case emptied(const valid_call *v) {
    empty_case x = {ro_op_describe(v->op)->name, 0, *v};
    x.call.output.dim[0] = 0;
    for (int i = 0; i < v->input_count; i++)
        if (ro_shape_equal(&v->input[i], &v->output))
            x.call.input[i] = x.call.output;
    return x;
}

static int has_case(int op) {
    int found = 0;
    for (int i = 0; i < CASES; i++)
        found |= cases[i].call.op == op;
    return found;
}

/* Checks every operator except those on scalars, which accept no other number of elements. */
static void for_each_case(void (*check)(void *user, const empty_case *x), void *user) {
    for (int i = 0; i < CASES; i++)
        check(user, &cases[i]);
    for (int op = next_operator(0); op; op = next_operator(op)) {
        const valid_call v = valid_call_of(op);
        const empty_case x = emptied(&v);
        if (!has_case(op) && ro_shape_numel(&v.output) > 1)
            check(user, &x);
    }
}

static ro_call call_of(const empty_case *x) {
    const valid_call *v = &x->call;
    char why[200] = "";
    ro_call call = {v->op, v->input_count, {0}, v->input, {0}};
    memcpy(call.attr, v->attr, sizeof call.attr);
    if (ro_op_describe(v->op)->declared_shape)
        call.output = v->output;
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s: %s", x->shows, why);
    cr_assert(ro_shape_equal(&call.output, &v->output), "%s: another shape", x->shows);
    return call;
}

static uint32_t nothing_to_load(void *user, int input, int64_t index) {
    const empty_case *x = user;
    cr_assert(index >= 0 && index < ro_shape_numel(&x->call.input[input]),
              "%s: input %d, element %lld", x->shows, input, (long long)index);
    return 0;
}

static void check_reference(void *user, const empty_case *x) {
    const ro_call call = call_of(x);
    const ro_access in = {nothing_to_load, (void *)(uintptr_t)x};
    (void)user;
    cr_expect((ro_ref_state_size(&call) > 0) == (ro_ref_steps(&call) > 0), "%s", x->shows);
    for (int64_t e = 0; e < ro_shape_numel(&call.output); e++)
        cr_expect(ro_ref_element(&call, e, &in) == x->want, "%s: %08x", x->shows,
                  ro_ref_element(&call, e, &in));
}

Test(empty, the_reference_has_a_result_and_reads_no_element_that_is_not_there) {
    for_each_case(check_reference, NULL);
}

/* Inputs have one element more than their shape says, so that an empty one has an address. A
 * sanitizer sees reads beyond. */
static void run(void *ctx, const empty_case *x) {
    const ro_call call = call_of(x);
    const int64_t count = ro_shape_numel(&call.output);
    void *data[7] = {NULL};
    for (int i = 0; i < call.input_count; i++)
        data[i] = calloc((size_t)ro_shape_numel(&call.input[i]) + 1, 4);
    uint32_t *out = malloc((size_t)(count + 1) * 4);
    memset(out, 0xa5, (size_t)(count + 1) * 4);
    cr_assert(ro_run(ctx, &call, (const void *const *)data, out) == RO_OK, "%s: %s", x->shows,
              ro_ctx_error(ctx));
    for (int64_t e = 0; e < count; e++)
        cr_expect(out[e] == x->want, "%s: %08x", x->shows, out[e]);
    cr_expect(out[count] == 0xa5a5a5a5, "%s wrote beyond its output", x->shows);
    for (int i = 0; i < call.input_count; i++)
        free(data[i]);
    free(out);
}

static void on_every_backend(void (*check)(ro_ctx *ctx)) {
    static const char *const backend[] = {"scalar", "avx2", "avx512", "neon", "cpu"};
    for (int b = 0; b < 5; b++) {
        ro_ctx *ctx;
        if (ro_ctx_create(
                &(ro_options){.size = sizeof(ro_options), .backend = backend[b], .threads = 2},
                &ctx) != RO_OK)
            continue; /* this processor lacks the backend */
        check(ctx);
        ro_ctx_destroy(ctx);
    }
}

static void run_cases(ro_ctx *ctx) {
    for_each_case(run, ctx);
}

Test(empty, kernels_give_the_same) {
    on_every_backend(run_cases);
}

/* ---- fused rows of no columns: only the statistics are written ---- */

enum { ROWS = 37 };

static void expect_filled(const float *got, uint32_t want, const char *what) {
    uint32_t bits[ROWS + 1];
    memcpy(bits, got, sizeof bits);
    for (int r = 0; r < ROWS; r++)
        cr_expect(bits[r] == want, "%s of row %d: %08x", what, r, bits[r]);
    cr_expect(bits[ROWS] == 0x5a5a5a5a, "%s beyond its rows", what);
}

static void rows_without_columns(ro_ctx *ctx) {
    float s[2][ROWS + 1], none = 7;
    memset(s, 0x5a, sizeof s);
    cr_assert(ro_softmax(ctx, ROWS, 0, NULL, &none, s[0], s[1]) == RO_OK, "%s", ro_ctx_error(ctx));
    expect_filled(s[0], MINUS_INF, "softmax's m");
    expect_filled(s[1], 0, "softmax's l");
    memset(s, 0x5a, sizeof s);
    cr_assert(ro_log_softmax(ctx, ROWS, 0, NULL, &none, s[0], s[1]) == RO_OK);
    expect_filled(s[0], MINUS_INF, "log_softmax's m");
    expect_filled(s[1], 0, "log_softmax's l");
    memset(s, 0x5a, sizeof s);
    cr_assert(ro_layer_norm(ctx, ROWS, 0, 1, NULL, NULL, NULL, &none, s[0], s[1]) == RO_OK);
    expect_filled(s[0], NAN_BITS, "mean");
    expect_filled(s[1], NAN_BITS, "rstd");
    cr_assert(ro_softmax(ctx, 0, 0, NULL, &none, NULL, NULL) == RO_OK);
    cr_assert(ro_softmax_backward(ctx, ROWS, 0, NULL, NULL, &none) == RO_OK);
    cr_assert(ro_log_softmax_backward(ctx, ROWS, 0, NULL, NULL, &none) == RO_OK);
    cr_assert(ro_layer_norm_backward(ctx, ROWS, 0, NULL, NULL, s[0], s[1], NULL, &none, &none,
                                     &none) == RO_OK);
    cr_expect(none == 7);
}

Test(empty, fused_functions_of_rows_take_no_columns) {
    on_every_backend(rows_without_columns);
}

/* The product of dimensions is limited to 2^40. A dimension of 0 must not hide that the others
 * exceed it. */
Test(empty, a_dimension_of_0_hides_no_overflow) {
    cr_expect(ro_shape_valid(&(ro_shape)F(2, 0, RO_MAX_NUMEL)));
    cr_expect(!ro_shape_valid(&(ro_shape)F(3, 0, RO_MAX_NUMEL, 2)));
    cr_expect(!ro_shape_valid(&(ro_shape)F(3, RO_MAX_NUMEL, 0, RO_MAX_NUMEL)));
}
