/* The table of element definitions, and folds over them. */
#include "repops/ref/ref.h"
#include "repops/src/conv.h"
#include "repops/src/fpenv.h"

#include <stdio.h>

static size_t one_word(const ro_call *call) {
    (void)call;
    return 4;
}

static size_t two_words(const ro_call *call) {
    (void)call;
    return 8;
}

static size_t eight_words(const ro_call *call) {
    (void)call;
    return 32;
}

/* ---- the most elements that finish reads ---- */

static int64_t no_loads(const ro_call *call) {
    (void)call;
    return 0;
}

static size_t top_words(const ro_call *call) {
    (void)call;
    return 134 * 4;
}

static size_t draw_words(const ro_call *call) {
    (void)call;
    return 6 * 4;
}

/* A pair has two elements, a position and the two words of its turn. */
static int64_t pair_loads(const ro_call *call) {
    (void)call;
    return 5;
}

static int64_t block_loads(const ro_call *call) {
    int64_t terms = call->attr[RO_ROWS_BLOCK] < call->attr[RO_ROWS_COLS] ? call->attr[RO_ROWS_BLOCK]
                                                                         : call->attr[RO_ROWS_COLS];
    switch (call->op) {
    case RO_OP_REDUCE_SUM:
    case RO_OP_REDUCE_MAX: return terms;
    case RO_OP_REDUCE_DOT: return 2 * terms;
    case RO_OP_REDUCE_SQDEV:
    case RO_OP_REDUCE_EXPSUM: return terms + 1;
    case RO_OP_REDUCE_LN_GX: return 3 * terms + 2;
    case RO_OP_REDUCE_RMS_GX: return 3 * terms + 1;
    default: return 0;
    }
}

static int64_t column_loads(const ro_call *call) {
    return RO_COLUMN_GROUP * call->input_count;
}

/* A weight and its cut, or a key and a position. */
static int64_t three_loads(const ro_call *call) {
    (void)call;
    return 3;
}

static int64_t attention_loads(const ro_call *call) {
    return call->op == RO_OP_ATTN_AV ? 2 * RO_ATTN_BLOCK : RO_ATTN_BLOCK;
}

/* With the place of the first query. */
static int64_t placed_loads(const ro_call *call) {
    return 1 + (call->op == RO_OP_ATTN_AV_AT ? 2 * RO_ATTN_BLOCK : RO_ATTN_BLOCK);
}

static int64_t walk_loads(const ro_call *call) {
    return 2 * last_dim(&call->input[0]) + 1;
}

static int64_t group_loads(const ro_call *call) {
    return call->attr[RO_REPEAT_HEADS_GRAD_TIMES];
}

static int64_t pool_loads(const ro_call *call) {
    return call->attr[RO_POOL_KERNEL_H] * call->attr[RO_POOL_KERNEL_W];
}

static int64_t covering_loads(const ro_call *call) {
    const ro_pooling v = ro_pooling_of(call);
    return ro_pool_covering(&v) * call->input_count;
}

/* The loads for a group of rows: one or two from each, and what they share. */
static int64_t rows_loads(const ro_call *call) {
    switch (call->op) {
    case RO_OP_BN_MEAN:
    case RO_OP_BN_MERGE_MEAN: return RO_COLUMN_GROUP;
    case RO_OP_BN_SQDEV: return RO_COLUMN_GROUP + 1;
    case RO_OP_BN_MERGE_SQDEV: return 2 * RO_COLUMN_GROUP;
    case RO_OP_BN_DGAMMA: return 2 * RO_COLUMN_GROUP + 2;
    default: return 0;
    }
}

#define SHORT(f)                                                                                   \
    { .finish = f }
#define LOADS(f, n)                                                                                \
    { .finish = f, .loads = n }

static const ro_ref_op table[RO_OP_END] = {
    [RO_OP_FILL] = LOADS(ro_ref_fill, no_loads),
    [RO_OP_NORMAL] = LOADS(ro_ref_normal, no_loads),
    [RO_OP_READ_BATCH] = SHORT(ro_ref_read_batch),
    [RO_OP_EMBEDDING] = SHORT(ro_ref_embedding),
    [RO_OP_EMBEDDING_GRAD] = {ro_ref_embedding_grad, ro_ref_embedding_grad_steps, eight_words,
                              ro_ref_embedding_grad_step, no_loads},
    [RO_OP_SPLIT_HEADS] = SHORT(ro_ref_split_heads),
    [RO_OP_JOIN_HEADS] = SHORT(ro_ref_join_heads),
    [RO_OP_CONCAT] = SHORT(ro_ref_concat),
    [RO_OP_IOTA] = LOADS(ro_ref_iota, no_loads),
    [RO_OP_TRANSPOSE] = SHORT(ro_ref_transpose),
    [RO_OP_SLICE] = SHORT(ro_ref_slice),
    [RO_OP_PAD] = SHORT(ro_ref_pad),
    [RO_OP_GATHER] = SHORT(ro_ref_gather),
    [RO_OP_CONCAT_AXIS] = SHORT(ro_ref_concat_axis),
    [RO_OP_CAST] = SHORT(ro_ref_cast),
    [RO_OP_CAST_STOCHASTIC] = SHORT(ro_ref_cast_stochastic),
    [RO_OP_PUT_ROWS] = SHORT(ro_ref_put_rows),
    [RO_OP_ADD] = SHORT(ro_ref_arithmetic),
    [RO_OP_DIV_CONST] = SHORT(ro_ref_div_const),
    [RO_OP_GELU] = SHORT(ro_ref_gelu),
    [RO_OP_GELU_GRAD] = SHORT(ro_ref_gelu_grad),
    [RO_OP_RELU] = SHORT(ro_ref_relu),
    [RO_OP_RELU_GRAD] = SHORT(ro_ref_relu_grad),
    [RO_OP_MAX] = SHORT(ro_ref_arithmetic),
    [RO_OP_MIN] = SHORT(ro_ref_arithmetic),
    [RO_OP_ABS] = SHORT(ro_ref_function),
    [RO_OP_COMPARE] = SHORT(ro_ref_compare),
    [RO_OP_WHERE] = SHORT(ro_ref_where),
    [RO_OP_IADD] = SHORT(ro_ref_iadd),
    [RO_OP_LEAKY_RELU] = SHORT(ro_ref_leaky_relu),
    [RO_OP_LEAKY_RELU_GRAD] = SHORT(ro_ref_leaky_relu_grad),
    [RO_OP_DROPOUT] = SHORT(ro_ref_dropout),
    [RO_OP_MUL] = SHORT(ro_ref_arithmetic),
    [RO_OP_SUB] = SHORT(ro_ref_arithmetic),
    [RO_OP_DIV] = SHORT(ro_ref_arithmetic),
    [RO_OP_SCALE] = SHORT(ro_ref_scale),
    [RO_OP_EXP] = SHORT(ro_ref_function),
    [RO_OP_LOG] = SHORT(ro_ref_function),
    [RO_OP_SQRT] = SHORT(ro_ref_function),
    [RO_OP_RSQRT] = SHORT(ro_ref_function),
    [RO_OP_MATMUL] = {ro_ref_matmul, ro_ref_matmul_steps, one_word, ro_ref_matmul_step, no_loads},
    [RO_OP_MATMUL_FIXED] = {ro_ref_matmul, ro_ref_matmul_steps, one_word, ro_ref_matmul_fixed_step,
                            no_loads},
    [RO_OP_REDUCE_SUM] = LOADS(ro_ref_reduce, block_loads),
    [RO_OP_REDUCE_MAX] = LOADS(ro_ref_reduce_max, block_loads),
    [RO_OP_REDUCE_DOT] = LOADS(ro_ref_reduce, block_loads),
    [RO_OP_REDUCE_SQDEV] = LOADS(ro_ref_reduce, block_loads),
    [RO_OP_REDUCE_EXPSUM] = LOADS(ro_ref_reduce, block_loads),
    [RO_OP_REDUCE_LN_GX] = LOADS(ro_ref_reduce, block_loads),
    [RO_OP_SUM_ROWS] = LOADS(ro_ref_columns, column_loads),
    [RO_OP_LN_DGAMMA] = LOADS(ro_ref_columns, column_loads),
    [RO_OP_LN_RSTD] = SHORT(ro_ref_ln_rstd),
    [RO_OP_LAYERNORM] = SHORT(ro_ref_layernorm),
    [RO_OP_LN_DX] = SHORT(ro_ref_ln_dx),
    [RO_OP_XENT] = SHORT(ro_ref_xent),
    [RO_OP_XENT_GRAD] = SHORT(ro_ref_xent_grad),
    [RO_OP_ATTN_MAX] = LOADS(ro_ref_attn_max, attention_loads),
    [RO_OP_ATTN_EXP] = SHORT(ro_ref_attn_exp),
    [RO_OP_ATTN_AV] = LOADS(ro_ref_attn_av, attention_loads),
    [RO_OP_ATTN_MAX_AT] = LOADS(ro_ref_attn_max, placed_loads),
    [RO_OP_ATTN_EXP_AT] = SHORT(ro_ref_attn_exp),
    [RO_OP_ATTN_AV_AT] = LOADS(ro_ref_attn_av, placed_loads),
    [RO_OP_ATTN_L] = LOADS(ro_ref_attn_l, walk_loads),
    [RO_OP_ATTN_OUT] = LOADS(ro_ref_attn_out, walk_loads),
    [RO_OP_ATTN_PROB] = SHORT(ro_ref_attn_prob),
    [RO_OP_ATTN_DSCORE] = SHORT(ro_ref_attn_dscore),
    [RO_OP_REPEAT_HEADS] = SHORT(ro_ref_repeat_heads),
    [RO_OP_REPEAT_HEADS_GRAD] = LOADS(ro_ref_repeat_heads_grad, group_loads),
    [RO_OP_LR_SCHEDULE] = SHORT(ro_ref_lr_schedule),
    [RO_OP_BIAS_CORRECTION] = SHORT(ro_ref_bias_correction),
    [RO_OP_CLIP_SCALE] = SHORT(ro_ref_clip_scale),
    [RO_OP_ADAMW_M] = SHORT(ro_ref_adamw_m),
    [RO_OP_ADAMW_V] = SHORT(ro_ref_adamw_v),
    [RO_OP_ADAMW_W] = SHORT(ro_ref_adamw_w),
    [RO_OP_SGD_M] = SHORT(ro_ref_sgd_m),
    [RO_OP_SGD_W] = SHORT(ro_ref_sgd_w),
    [RO_OP_SGD_NESTEROV] = SHORT(ro_ref_sgd_nesterov),
    [RO_OP_TANH] = SHORT(ro_ref_function),
    [RO_OP_ERF] = SHORT(ro_ref_function),
    [RO_OP_SIGMOID] = SHORT(ro_ref_function),
    [RO_OP_SILU] = SHORT(ro_ref_function),
    [RO_OP_GELU_ERF] = SHORT(ro_ref_function),
    [RO_OP_TANH_GRAD] = SHORT(ro_ref_slope),
    [RO_OP_ERF_GRAD] = SHORT(ro_ref_slope),
    [RO_OP_SIGMOID_GRAD] = SHORT(ro_ref_slope),
    [RO_OP_SILU_GRAD] = SHORT(ro_ref_slope),
    [RO_OP_GELU_ERF_GRAD] = SHORT(ro_ref_slope),
    [RO_OP_SOFTMAX] = SHORT(ro_ref_softmax),
    [RO_OP_SOFTMAX_GRAD] = SHORT(ro_ref_softmax_grad),
    [RO_OP_LOG_SOFTMAX] = SHORT(ro_ref_log_softmax),
    [RO_OP_LOG_SOFTMAX_GRAD] = SHORT(ro_ref_log_softmax_grad),
    [RO_OP_XENT_IGNORE] = SHORT(ro_ref_xent),
    [RO_OP_XENT_IGNORE_GRAD] = SHORT(ro_ref_xent_grad),
    [RO_OP_KEPT] = SHORT(ro_ref_kept),
    [RO_OP_SUM_AXIS] = LOADS(ro_ref_sum_axis, column_loads),
    [RO_OP_MAX_AXIS] = LOADS(ro_ref_max_axis, column_loads),
    [RO_OP_ARGMAX] = {ro_ref_argmax, ro_ref_argmax_steps, two_words, ro_ref_argmax_step, no_loads},
    [RO_OP_MAX_GRAD] = SHORT(ro_ref_max_grad),
    [RO_OP_EXPAND] = SHORT(ro_ref_expand),
    [RO_OP_RMSNORM] = SHORT(ro_ref_rmsnorm),
    [RO_OP_RMS_DX] = SHORT(ro_ref_rms_dx),
    [RO_OP_REDUCE_RMS_GX] = LOADS(ro_ref_reduce, block_loads),
    [RO_OP_RMS_DGAMMA] = LOADS(ro_ref_columns, column_loads),
    [RO_OP_CONV2D] = {ro_ref_conv2d, ro_ref_conv2d_steps, one_word, ro_ref_conv2d_step, no_loads},
    [RO_OP_CONV2D_DX] = {ro_ref_conv2d, ro_ref_conv2d_steps, one_word, ro_ref_conv2d_step,
                         no_loads},
    [RO_OP_CONV2D_DW] = {ro_ref_conv2d, ro_ref_conv2d_steps, one_word, ro_ref_conv2d_step,
                         no_loads},
    [RO_OP_CONV2D_FIXED] = {ro_ref_conv2d, ro_ref_conv2d_steps, one_word, ro_ref_conv2d_fixed_step,
                            no_loads},
    [RO_OP_CONV2D_FIXED_DX] = {ro_ref_conv2d, ro_ref_conv2d_steps, one_word,
                               ro_ref_conv2d_fixed_step, no_loads},
    [RO_OP_CONV2D_FIXED_DW] = {ro_ref_conv2d, ro_ref_conv2d_steps, one_word,
                               ro_ref_conv2d_fixed_step, no_loads},
    [RO_OP_MAX_POOL2D] = LOADS(ro_ref_max_pool2d, pool_loads),
    [RO_OP_MAX_POOL2D_INDEX] = LOADS(ro_ref_max_pool2d_index, pool_loads),
    [RO_OP_MAX_POOL2D_GRAD] = LOADS(ro_ref_pool2d_grad, covering_loads),
    [RO_OP_AVG_POOL2D] = LOADS(ro_ref_avg_pool2d, pool_loads),
    [RO_OP_AVG_POOL2D_GRAD] = LOADS(ro_ref_pool2d_grad, covering_loads),
    [RO_OP_BN_MEAN] = LOADS(ro_ref_bn_mean, rows_loads),
    [RO_OP_BN_SQDEV] = LOADS(ro_ref_bn_sqdev, rows_loads),
    [RO_OP_BN_MERGE_MEAN] = LOADS(ro_ref_bn_merge, rows_loads),
    [RO_OP_BN_MERGE_SQDEV] = LOADS(ro_ref_bn_merge, rows_loads),
    [RO_OP_BATCHNORM] = SHORT(ro_ref_batchnorm),
    [RO_OP_BN_DGAMMA] = LOADS(ro_ref_bn_dgamma, rows_loads),
    [RO_OP_BN_DX] = SHORT(ro_ref_bn_dx),
    [RO_OP_BN_RUNNING] = SHORT(ro_ref_bn_running),
    [RO_OP_READ_IMAGES] = SHORT(ro_ref_read_images),
    [RO_OP_READ_LABELS] = SHORT(ro_ref_read_labels),
    [RO_OP_RESHAPE] = SHORT(ro_ref_reshape),
    [RO_OP_GATHER_GRAD] = {ro_ref_embedding_grad, ro_ref_embedding_grad_steps, eight_words,
                           ro_ref_gather_grad_step, no_loads},
    [RO_OP_UNIFORM] = LOADS(ro_ref_uniform, no_loads),
    [RO_OP_PERMUTATION] = SHORT(ro_ref_permutation),
    [RO_OP_ROPE_TURNS] = LOADS(ro_ref_rope_turns, no_loads),
    [RO_OP_ROPE] = LOADS(ro_ref_rope, pair_loads),
    [RO_OP_WEIGHT] = SHORT(ro_ref_weight),
    [RO_OP_TOP_K] = {ro_ref_top, ro_ref_top_steps, top_words, ro_ref_top_step, no_loads},
    [RO_OP_TOP_P] = {ro_ref_top, ro_ref_top_steps, top_words, ro_ref_top_step, no_loads},
    [RO_OP_KEEP_TOP] = LOADS(ro_ref_keep_top, three_loads),
    [RO_OP_RANDOM_WORDS] = LOADS(ro_ref_random_words, three_loads),
    [RO_OP_DRAW] = {ro_ref_draw, ro_ref_draw_steps, draw_words, ro_ref_draw_step, no_loads},
};

const ro_ref_op *ro_ref_row(int op) {
    return table[op].finish ? &table[op] : NULL;
}

int64_t ro_ref_steps(const ro_call *call) {
    const ro_ref_op *op = &table[call->op];
    return op->steps ? op->steps(call) : 0;
}

size_t ro_ref_state_size(const ro_call *call) {
    const ro_ref_op *op = &table[call->op];
    return ro_ref_steps(call) > 0 ? op->state_size(call) : 0;
}

void ro_ref_step_range(int64_t step, int64_t count, int64_t *from, int64_t *to) {
    *from = step * RO_REF_TERMS;
    *to = *from + RO_REF_TERMS < count ? *from + RO_REF_TERMS : count;
}

/* Every fold starts from zeros: +0, and a count of 0. */
void ro_ref_begin(const ro_call *call, int64_t element, ro_acc *acc) {
    (void)call, (void)element;
    memset(acc, 0, sizeof *acc);
}

void ro_ref_step(const ro_call *call, int64_t element, int64_t step, ro_acc *acc,
                 const ro_access *in) {
    const ro_fpenv env = ro_fpenv_enter();
    table[call->op].step(call, element, step, acc, in);
    ro_fpenv_leave(env);
}

uint32_t ro_ref_finish(const ro_call *call, int64_t element, const ro_acc *acc,
                       const ro_access *in) {
    const ro_fpenv env = ro_fpenv_enter();
    const uint32_t bits = table[call->op].finish(call, element, acc, in);
    ro_fpenv_leave(env);
    return bits;
}

uint32_t ro_ref_element(const ro_call *call, int64_t element, const ro_access *in) {
    ro_acc acc;
    int64_t steps = ro_ref_steps(call);
    ro_ref_begin(call, element, &acc);
    for (int64_t j = 0; j < steps; j++)
        ro_ref_step(call, element, j, &acc, in);
    return ro_ref_finish(call, element, &acc, in);
}

int64_t ro_ref_step_loads(const ro_call *call) {
    if (call->op == RO_OP_MATMUL)
        return 2 * call->attr[RO_MATMUL_CHUNK];
    return ro_ref_steps(call) ? RO_STEP_LOADS : 0;
}

int64_t ro_ref_finish_loads(const ro_call *call) {
    const ro_ref_op *op = &table[call->op];
    return op->loads ? op->loads(call) : call->input_count;
}

uint32_t ro_ref_load_memory(void *ro_ref_memory_ptr, int input, int64_t index) {
    const ro_ref_memory *memory = ro_ref_memory_ptr;
    switch (memory->call->input[input].dtype) {
    case RO_U8: return ((const uint8_t *)memory->data[input])[index];
    case RO_U16:
    case RO_BF16:
    case RO_F16: return ((const uint16_t *)memory->data[input])[index];
    default: return ((const uint32_t *)memory->data[input])[index];
    }
}
