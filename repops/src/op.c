/* Names, attributes and shapes of tensors and operators. */
#include <string.h>

#include "repops/src/device.h"
#include "repops/src/math.h"

#define OP0(name_, lo, hi, declared)                                                               \
    { name_, lo, hi, 0, {{0, 0}}, declared }
#define I(n)                                                                                       \
    { n, 'i' }
#define F(n)                                                                                       \
    { n, 'f' }
#define CONV_ATTRS                                                                                 \
    {                                                                                              \
        I("stride_h"), I("stride_w"), I("pad_h"), I("pad_w"), I("dilation_h"), I("dilation_w"),    \
            I("groups")                                                                            \
    }
#define POOL_ATTRS                                                                                 \
    I("kernel_h"), I("kernel_w"), I("stride_h"), I("stride_w"), I("pad_h"), I("pad_w")
#define READ_ATTRS I("seed"), I("stream"), I("batch"), I("first"), I("record"), I("offset")

static const ro_op_info table[RO_OP_END] = {
    [RO_OP_FILL] = {"fill", 0, 0, 1, {F("value")}, 1},
    [RO_OP_NORMAL] = {"normal", 0, 0, 4, {I("seed"), I("stream"), F("mean"), F("std")}, 1},
    [RO_OP_READ_BATCH] =
        {"read_batch", 2, 2, 5, {I("seed"), I("stream"), I("batch"), I("first"), I("shift")}, 1},
    [RO_OP_EMBEDDING] = OP0("embedding", 2, 2, 0),
    [RO_OP_EMBEDDING_GRAD] = OP0("embedding_grad", 2, 2, 1),
    [RO_OP_SPLIT_HEADS] = {"split_heads", 1, 1, 3, {I("parts"), I("part"), I("heads")}, 0},
    [RO_OP_JOIN_HEADS] = OP0("join_heads", 1, 8, 0),
    [RO_OP_CONCAT] = OP0("concat", 1, RO_MAX_INPUTS, 0),
    [RO_OP_IOTA] = OP0("iota", 0, 0, 1),
    [RO_OP_TRANSPOSE] = {"transpose", 1, 1, 5, {I("d0"), I("d1"), I("d2"), I("d3"), I("d4")}, 0},
    [RO_OP_SLICE] = {"slice", 1, 1, 4, {I("axis"), I("start"), I("length"), I("step")}, 0},
    [RO_OP_PAD] = {"pad", 1, 1, 5, {I("axis"), I("before"), I("after"), I("step"), F("value")}, 0},
    [RO_OP_GATHER] = {"gather", 2, 2, 1, {I("axis")}, 0},
    [RO_OP_CONCAT_AXIS] = {"concat_axis", 1, RO_MAX_INPUTS, 1, {I("axis")}, 0},
    [RO_OP_CAST] = {"cast", 1, 1, 1, {I("dtype")}, 0},
    [RO_OP_ADD] = OP0("add", 2, 2, 0),
    [RO_OP_DIV_CONST] = {"div_const", 1, 1, 1, {F("divisor")}, 0},
    [RO_OP_GELU] = OP0("gelu", 1, 1, 0),
    [RO_OP_GELU_GRAD] = OP0("gelu_grad", 2, 2, 0),
    [RO_OP_RELU] = OP0("relu", 1, 1, 0),
    [RO_OP_RELU_GRAD] = OP0("relu_grad", 2, 2, 0),
    [RO_OP_DROPOUT] = {"dropout", 2, 2, 4, {I("seed"), I("stream"), I("threshold"), F("scale")}, 0},
    [RO_OP_MUL] = OP0("mul", 2, 2, 0),
    [RO_OP_SUB] = OP0("sub", 2, 2, 0),
    [RO_OP_DIV] = OP0("div", 2, 2, 0),
    [RO_OP_SCALE] = {"scale", 1, 1, 1, {F("factor")}, 0},
    [RO_OP_EXP] = OP0("exp", 1, 1, 0),
    [RO_OP_LOG] = OP0("log", 1, 1, 0),
    [RO_OP_SQRT] = OP0("sqrt", 1, 1, 0),
    [RO_OP_RSQRT] = OP0("rsqrt", 1, 1, 0),
    [RO_OP_MATMUL] =
        {"matmul", 2, 2, 5, {I("batch_dims"), I("trans"), F("alpha"), I("chunk"), I("mask")}, 0},
    [RO_OP_REDUCE_SUM] = {"reduce_sum", 1, 1, 2, {I("cols"), I("block")}, 1},
    [RO_OP_REDUCE_MAX] = {"reduce_max", 1, 1, 2, {I("cols"), I("block")}, 1},
    [RO_OP_REDUCE_DOT] = {"reduce_dot", 2, 2, 2, {I("cols"), I("block")}, 1},
    [RO_OP_REDUCE_SQDEV] = {"reduce_sqdev", 2, 2, 2, {I("cols"), I("block")}, 1},
    [RO_OP_REDUCE_EXPSUM] = {"reduce_expsum", 2, 2, 2, {I("cols"), I("block")}, 1},
    [RO_OP_REDUCE_LN_GX] = {"reduce_ln_gx", 5, 5, 2, {I("cols"), I("block")}, 1},
    [RO_OP_SUM_ROWS] = {"sum_rows", 1, 1, 1, {I("cols")}, 1},
    [RO_OP_LN_DGAMMA] = {"ln_dgamma", 4, 4, 1, {I("cols")}, 1},
    [RO_OP_LN_RSTD] = {"ln_rstd", 1, 1, 2, {I("n"), F("eps")}, 0},
    [RO_OP_LAYERNORM] = OP0("layernorm", 5, 5, 0),
    [RO_OP_LN_DX] = OP0("ln_dx", 7, 7, 0),
    [RO_OP_XENT] = OP0("xent", 4, 4, 0),
    [RO_OP_XENT_GRAD] = OP0("xent_grad", 5, 5, 0),
    [RO_OP_ATTN_MAX] = {"attn_max", 1, 1, 1, {I("causal")}, 0},
    [RO_OP_ATTN_EXP] = {"attn_exp", 2, 2, 1, {I("causal")}, 0},
    [RO_OP_ATTN_AV] = {"attn_av", 2, 2, 1, {I("causal")}, 0},
    [RO_OP_ATTN_L] = OP0("attn_l", 2, 2, 0),
    [RO_OP_ATTN_OUT] = OP0("attn_out", 3, 3, 0),
    [RO_OP_ATTN_PROB] = {"attn_prob", 3, 3, 1, {I("causal")}, 0},
    [RO_OP_ATTN_DSCORE] = {"attn_dscore", 3, 3, 1, {I("causal")}, 0},
    [RO_OP_REPEAT_HEADS] = {"repeat_heads", 1, 1, 1, {I("times")}, 0},
    [RO_OP_REPEAT_HEADS_GRAD] = {"repeat_heads_grad", 1, 1, 1, {I("times")}, 0},
    [RO_OP_LR_SCHEDULE] =
        {"lr_schedule", 1, 1, 5, {I("kind"), F("base"), F("min"), I("warmup"), I("total")}, 0},
    [RO_OP_BIAS_CORRECTION] = {"bias_correction", 1, 1, 1, {F("beta")}, 0},
    [RO_OP_CLIP_SCALE] = {"clip_scale", 1, 1, 1, {F("max_norm")}, 0},
    [RO_OP_ADAMW_M] = {"adamw_m", 3, 3, 1, {F("beta")}, 0},
    [RO_OP_ADAMW_V] = {"adamw_v", 3, 3, 1, {F("beta")}, 0},
    [RO_OP_ADAMW_W] = {"adamw_w", 6, 6, 2, {F("eps"), F("decay")}, 0},
    [RO_OP_SGD_M] = {"sgd_m", 4, 4, 2, {F("momentum"), F("decay")}, 0},
    [RO_OP_SGD_W] = OP0("sgd_w", 3, 3, 0),
    [RO_OP_SGD_NESTEROV] = {"sgd_nesterov", 5, 5, 2, {F("momentum"), F("decay")}, 0},
    [RO_OP_TANH] = OP0("tanh", 1, 1, 0),
    [RO_OP_ERF] = OP0("erf", 1, 1, 0),
    [RO_OP_SIGMOID] = OP0("sigmoid", 1, 1, 0),
    [RO_OP_SILU] = OP0("silu", 1, 1, 0),
    [RO_OP_GELU_ERF] = OP0("gelu_erf", 1, 1, 0),
    [RO_OP_TANH_GRAD] = OP0("tanh_grad", 2, 2, 0),
    [RO_OP_ERF_GRAD] = OP0("erf_grad", 2, 2, 0),
    [RO_OP_SIGMOID_GRAD] = OP0("sigmoid_grad", 2, 2, 0),
    [RO_OP_SILU_GRAD] = OP0("silu_grad", 2, 2, 0),
    [RO_OP_GELU_ERF_GRAD] = OP0("gelu_erf_grad", 2, 2, 0),
    [RO_OP_SOFTMAX] = OP0("softmax", 3, 3, 0),
    [RO_OP_SOFTMAX_GRAD] = OP0("softmax_grad", 3, 3, 0),
    [RO_OP_LOG_SOFTMAX] = OP0("log_softmax", 3, 3, 0),
    [RO_OP_LOG_SOFTMAX_GRAD] = OP0("log_softmax_grad", 3, 3, 0),
    [RO_OP_XENT_IGNORE] = {"xent_ignore", 4, 4, 1, {I("ignore")}, 0},
    [RO_OP_XENT_IGNORE_GRAD] = {"xent_ignore_grad", 5, 5, 1, {I("ignore")}, 0},
    [RO_OP_KEPT] = {"kept", 1, 1, 1, {I("ignore")}, 0},
    [RO_OP_SUM_AXIS] = {"sum_axis", 1, 1, 1, {I("axis")}, 0},
    [RO_OP_MAX_AXIS] = {"max_axis", 1, 1, 1, {I("axis")}, 0},
    [RO_OP_ARGMAX] = {"argmax", 1, 1, 1, {I("axis")}, 0},
    [RO_OP_MAX_GRAD] = {"max_grad", 2, 2, 2, {I("axis"), I("count")}, 0},
    [RO_OP_EXPAND] = {"expand", 1, 1, 2, {I("axis"), I("count")}, 0},
    [RO_OP_RMSNORM] = OP0("rmsnorm", 3, 3, 0),
    [RO_OP_RMS_DX] = OP0("rms_dx", 5, 5, 0),
    [RO_OP_REDUCE_RMS_GX] = {"reduce_rms_gx", 4, 4, 2, {I("cols"), I("block")}, 1},
    [RO_OP_RMS_DGAMMA] = {"rms_dgamma", 3, 3, 1, {I("cols")}, 1},
    [RO_OP_CONV2D] = {"conv2d", 2, 2, 7, CONV_ATTRS, 0},
    [RO_OP_CONV2D_DX] = {"conv2d_dx", 2, 2, 7, CONV_ATTRS, 1},
    [RO_OP_CONV2D_DW] = {"conv2d_dw", 2, 2, 7, CONV_ATTRS, 1},
    [RO_OP_MAX_POOL2D] = {"max_pool2d", 1, 1, 6, {POOL_ATTRS}, 0},
    [RO_OP_MAX_POOL2D_INDEX] = {"max_pool2d_index", 1, 1, 6, {POOL_ATTRS}, 0},
    [RO_OP_MAX_POOL2D_GRAD] = {"max_pool2d_grad", 2, 2, 6, {POOL_ATTRS}, 1},
    [RO_OP_AVG_POOL2D] = {"avg_pool2d", 1, 1, 7, {POOL_ATTRS, I("count_pad")}, 0},
    [RO_OP_AVG_POOL2D_GRAD] = {"avg_pool2d_grad", 1, 1, 7, {POOL_ATTRS, I("count_pad")}, 1},
    [RO_OP_BN_MEAN] = {"bn_mean", 1, 1, 1, {I("cols")}, 1},
    [RO_OP_BN_SQDEV] = {"bn_sqdev", 2, 2, 1, {I("cols")}, 1},
    [RO_OP_BN_MERGE_MEAN] = {"bn_merge_mean", 1, 1, 3, {I("cols"), I("rows"), I("per")}, 1},
    [RO_OP_BN_MERGE_SQDEV] = {"bn_merge_sqdev", 2, 2, 3, {I("cols"), I("rows"), I("per")}, 1},
    [RO_OP_BATCHNORM] = OP0("batchnorm", 5, 5, 0),
    [RO_OP_BN_DGAMMA] = {"bn_dgamma", 4, 4, 1, {I("cols")}, 1},
    [RO_OP_BN_DX] = OP0("bn_dx", 7, 7, 0),
    [RO_OP_BN_RUNNING] = {"bn_running", 2, 2, 2, {F("momentum"), F("divisor")}, 0},
    [RO_OP_READ_IMAGES] = {"read_images", 2, 2, 8, {READ_ATTRS, F("scale"), F("shift")}, 1},
    [RO_OP_READ_LABELS] = {"read_labels", 2, 2, 6, {READ_ATTRS}, 1},
    [RO_OP_RESHAPE] = OP0("reshape", 1, 1, 1),
    [RO_OP_GATHER_GRAD] = {"gather_grad", 2, 2, 1, {I("axis")}, 1},
    [RO_OP_UNIFORM] = {"uniform", 0, 0, 4, {I("seed"), I("stream"), F("low"), F("high")}, 1},
    [RO_OP_PERMUTATION] = {"permutation", 1, 1, 2, {I("seed"), I("stream")}, 1},
    [RO_OP_ROPE] = {"rope", 1, 1, 4, {F("base"), I("first"), I("pairs"), I("inverse")}, 0},
};

const char *ro_version(void) {
    return RO_VERSION;
}

#define TEXT(x)       #x
#define TEXT_OF(name) TEXT(name)
const char *ro_build(void) {
    return RO_VERSION ", headers " TEXT_OF(RO_INTERFACE);
}

const ro_op_info *ro_op_describe(int op) {
    return op > 0 && op < RO_OP_END && table[op].name ? &table[op] : NULL;
}

uint32_t ro_op_in_place(int op) {
    switch (op) {
    case RO_OP_SCALE:
    case RO_OP_EXP:
    case RO_OP_LOG:
    case RO_OP_SQRT:
    case RO_OP_RSQRT:
    case RO_OP_TANH:
    case RO_OP_ERF:
    case RO_OP_SIGMOID:
    case RO_OP_SILU:
    case RO_OP_GELU_ERF:
    case RO_OP_DIV_CONST:
    case RO_OP_GELU:
    case RO_OP_RELU:
    case RO_OP_DROPOUT:
    case RO_OP_LAYERNORM:
    case RO_OP_SOFTMAX:
    case RO_OP_LOG_SOFTMAX:
    case RO_OP_RMSNORM:
    case RO_OP_XENT_IGNORE_GRAD:
    case RO_OP_XENT_GRAD: return 1;
    case RO_OP_ADD:
    case RO_OP_SUB:
    case RO_OP_MUL:
    case RO_OP_DIV:
    case RO_OP_TANH_GRAD:
    case RO_OP_ERF_GRAD:
    case RO_OP_SIGMOID_GRAD:
    case RO_OP_SILU_GRAD:
    case RO_OP_GELU_ERF_GRAD:
    case RO_OP_GELU_GRAD:
    case RO_OP_RELU_GRAD:
    case RO_OP_SOFTMAX_GRAD:
    case RO_OP_LOG_SOFTMAX_GRAD:
    case RO_OP_ADAMW_M:
    case RO_OP_ADAMW_V:
    case RO_OP_SGD_W: return 3;
    case RO_OP_RMS_DX:
    case RO_OP_LN_DX: return 5;
    case RO_OP_ADAMW_W:
    case RO_OP_SGD_M:
    case RO_OP_SGD_NESTEROV: return 7;
    default: return 0;
    }
}

int ro_op_by_name(const char *name) {
    for (int op = 1; name && op < RO_OP_END; op++)
        if (table[op].name && strcmp(table[op].name, name) == 0)
            return op;
    return RO_OP_NONE;
}

int64_t ro_attr_f32(float value) {
    return (int64_t)ro_to_bits(value);
}

float ro_attr_to_f32(int64_t attr) {
    return ro_from_bits((uint32_t)attr);
}

size_t ro_dtype_size(int dtype) {
    switch (dtype) {
    case RO_F32:
    case RO_I32: return 4;
    case RO_U16: return 2;
    case RO_U8: return 1;
    default: return 0;
    }
}

const char *ro_dtype_name(int dtype) {
    switch (dtype) {
    case RO_F32: return "f32";
    case RO_I32: return "i32";
    case RO_U16: return "u16";
    case RO_U8: return "u8";
    default: return "?";
    }
}

int64_t ro_shape_numel(const ro_shape *shape) {
    int64_t numel = 1;
    for (int i = 0; i < shape->ndim; i++)
        numel *= shape->dim[i];
    return numel;
}

int ro_shape_equal(const ro_shape *a, const ro_shape *b) {
    if (a->dtype != b->dtype || a->ndim != b->ndim)
        return 0;
    for (int i = 0; i < a->ndim; i++)
        if (a->dim[i] != b->dim[i])
            return 0;
    return 1;
}
