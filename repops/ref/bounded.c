/* The table of bounded elements, and what they admit. SPEC.md section 14.5. */
#include "repops/ref/bounded.h"
#include "repops/free.h"
#include "repops/src/fpenv.h"
#include "repops/src/rounding.h"

static ro_bounded_fn *const table[RO_OP_END] = {
    [RO_OP_ATTN_AV] = ro_bounded_attn_av,
    [RO_OP_ATTN_AV_AT] = ro_bounded_attn_av,
    [RO_OP_ADD] = ro_bounded_arithmetic,
    [RO_OP_SUB] = ro_bounded_arithmetic,
    [RO_OP_MUL] = ro_bounded_arithmetic,
    [RO_OP_DIV] = ro_bounded_arithmetic,
    [RO_OP_DIV_CONST] = ro_bounded_single,
    [RO_OP_SCALE] = ro_bounded_single,
    [RO_OP_SQRT] = ro_bounded_single,
    [RO_OP_RSQRT] = ro_bounded_function,
    [RO_OP_EXP] = ro_bounded_function,
    [RO_OP_LOG] = ro_bounded_function,
    [RO_OP_TANH] = ro_bounded_function,
    [RO_OP_ERF] = ro_bounded_function,
    [RO_OP_SIGMOID] = ro_bounded_function,
    [RO_OP_SILU] = ro_bounded_function,
    [RO_OP_GELU] = ro_bounded_function,
    [RO_OP_GELU_ERF] = ro_bounded_function,
    [RO_OP_TANH_GRAD] = ro_bounded_function,
    [RO_OP_SIGMOID_GRAD] = ro_bounded_function,
    [RO_OP_ERF_GRAD] = ro_bounded_function,
    [RO_OP_SILU_GRAD] = ro_bounded_function,
    [RO_OP_GELU_GRAD] = ro_bounded_function,
    [RO_OP_GELU_ERF_GRAD] = ro_bounded_function,
    [RO_OP_ADAMW_M] = ro_bounded_adamw,
    [RO_OP_ADAMW_V] = ro_bounded_adamw,
    [RO_OP_ADAMW_W] = ro_bounded_adamw_w,
    [RO_OP_SGD_M] = ro_bounded_sgd,
    [RO_OP_SGD_W] = ro_bounded_sgd,
    [RO_OP_SGD_NESTEROV] = ro_bounded_sgd,
    [RO_OP_ROPE] = ro_bounded_rope,
    [RO_OP_REDUCE_SUM] = ro_bounded_reduce,
    [RO_OP_REDUCE_DOT] = ro_bounded_reduce,
    [RO_OP_REDUCE_SQDEV] = ro_bounded_reduce,
    [RO_OP_REDUCE_EXPSUM] = ro_bounded_reduce,
    [RO_OP_REDUCE_LN_GX] = ro_bounded_reduce,
    [RO_OP_REDUCE_RMS_GX] = ro_bounded_reduce,
    [RO_OP_SUM_ROWS] = ro_bounded_columns,
    [RO_OP_LN_DGAMMA] = ro_bounded_columns,
    [RO_OP_RMS_DGAMMA] = ro_bounded_columns,
    [RO_OP_SUM_AXIS] = ro_bounded_sum_axis,
    [RO_OP_REPEAT_HEADS_GRAD] = ro_bounded_repeat_heads_grad,
    [RO_OP_LN_RSTD] = ro_bounded_ln_rstd,
    [RO_OP_LAYERNORM] = ro_bounded_layernorm,
    [RO_OP_LN_DX] = ro_bounded_norm_dx,
    [RO_OP_RMS_DX] = ro_bounded_norm_dx,
    [RO_OP_RMSNORM] = ro_bounded_rmsnorm,
    [RO_OP_SOFTMAX] = ro_bounded_softmax,
    [RO_OP_LOG_SOFTMAX] = ro_bounded_log_softmax,
    [RO_OP_SOFTMAX_GRAD] = ro_bounded_softmax_grad,
    [RO_OP_LOG_SOFTMAX_GRAD] = ro_bounded_softmax_grad,
    [RO_OP_XENT] = ro_bounded_xent,
    [RO_OP_XENT_IGNORE] = ro_bounded_xent,
    [RO_OP_XENT_GRAD] = ro_bounded_xent_grad,
    [RO_OP_XENT_IGNORE_GRAD] = ro_bounded_xent_grad,
    [RO_OP_ATTN_EXP] = ro_bounded_attn_exp,
    [RO_OP_ATTN_EXP_AT] = ro_bounded_attn_exp,
    [RO_OP_ATTN_PROB] = ro_bounded_attn_prob,
    [RO_OP_ATTN_DSCORE] = ro_bounded_attn_dscore,
    [RO_OP_ATTN_L] = ro_bounded_attn_l,
    [RO_OP_ATTN_OUT] = ro_bounded_attn_out,
    [RO_OP_AVG_POOL2D] = ro_bounded_avg_pool2d,
    [RO_OP_MAX_POOL2D_GRAD] = ro_bounded_pool2d_grad,
    [RO_OP_AVG_POOL2D_GRAD] = ro_bounded_pool2d_grad,
    [RO_OP_BN_MEAN] = ro_bounded_bn_mean,
    [RO_OP_BN_SQDEV] = ro_bounded_bn_sqdev,
    [RO_OP_BN_DGAMMA] = ro_bounded_bn_dgamma,
    [RO_OP_BN_MERGE_MEAN] = ro_bounded_bn_merge_mean,
    [RO_OP_BN_MERGE_SQDEV] = ro_bounded_bn_merge_sqdev,
    [RO_OP_BATCHNORM] = ro_bounded_batchnorm,
    [RO_OP_BN_DX] = ro_bounded_bn_dx,
    [RO_OP_BN_RUNNING] = ro_bounded_bn_running,
};

static const struct {
    ro_bounded_step_fn *step;
    ro_bounded_finish_fn *finish;
} folds[RO_OP_END] = {
    [RO_OP_MATMUL] = {ro_bounded_matmul_step, ro_bounded_matmul},
    [RO_OP_CONV2D] = {ro_bounded_conv_step, ro_bounded_plain_sum},
    [RO_OP_CONV2D_DX] = {ro_bounded_conv_step, ro_bounded_plain_sum},
    [RO_OP_CONV2D_DW] = {ro_bounded_conv_step, ro_bounded_plain_sum},
    [RO_OP_EMBEDDING_GRAD] = {ro_bounded_scatter_step, ro_bounded_plain_sum},
    [RO_OP_GATHER_GRAD] = {ro_bounded_scatter_step, ro_bounded_plain_sum},
};

int ro_ref_bounded_row(int op) {
    return table[op] != NULL || (folds[op].step && folds[op].finish);
}

/* Machines make different NaNs. */
static double canonical(double x) {
    return x != x ? ro_from_bits64(UINT64_C(0x7ff8000000000000)) : x;
}

/* The bound is computed with rounding errors of its own: 2^-9 covers them; the kernels' (free_bound
 * in repops/free/kernel.h) is enlarged by more. Not inlined: compilers know of no modes, and could
 * take a product out of them. */
static __attribute__((noinline)) ro_bounded enlarged(approx y) {
    return (ro_bounded){canonical(y.v), canonical((1 + 0x1p-9) * ap_error(y))};
}

/* ---- folds: sum, sum of magnitudes, number of terms ---- */

static bounded_sum sum_in(const ro_acc *acc) {
    return (bounded_sum){ro_from_bits64(get64(acc, 0)), ro_from_bits64(get64(acc, 2)),
                         get64(acc, 4)};
}

size_t ro_ref_bounded_state_size(const ro_call *call) {
    return ro_ref_steps(call) > 0 ? 24 : 0;
}

void ro_ref_bounded_step(const ro_call *call, int64_t element, int64_t step, ro_acc *acc,
                         const ro_access *in) {
    const ro_fpenv env = ro_fpenv_enter();
    bounded_sum s = sum_in(acc);
    folds[call->op].step(call, element, step, &s, in);
    ro_fpenv_leave(env);
    put64(acc, 0, ro_bits64(canonical(s.sum)));
    put64(acc, 2, ro_bits64(canonical(s.size)));
    put64(acc, 4, s.terms);
}

ro_bounded ro_ref_bounded_finish(const ro_call *call, const ro_acc *acc) {
    const ro_fpenv env = ro_fpenv_enter();
    const bounded_sum s = sum_in(acc);
    const ro_bounded y = enlarged(folds[call->op].finish(call, &s));
    ro_fpenv_leave(env);
    return y;
}

static ro_bounded fold(const ro_call *call, int64_t element, const ro_access *in) {
    const int64_t steps = ro_ref_steps(call);
    ro_acc acc;
    ro_ref_begin(call, element, &acc);
    for (int64_t j = 0; j < steps; j++)
        ro_ref_bounded_step(call, element, j, &acc, in);
    return ro_ref_bounded_finish(call, &acc);
}

ro_bounded ro_ref_bounded(const ro_call *call, int64_t element, const ro_access *in) {
    const int op = call->op > 0 && call->op < RO_OP_END ? call->op : 0;
    if (folds[op].step)
        return fold(call, element, in);
    if (!table[op])
        return (ro_bounded){0, canonical(__builtin_nan(""))};
    const ro_fpenv env = ro_fpenv_enter();
    const ro_bounded y = enlarged(table[op](call, element, in));
    ro_fpenv_leave(env);
    return y;
}

static int64_t place_of(double x, int bits) {
    return ro_place(ro_canon(ro_round_any(x, ro_magic(bits))), bits);
}

/* No order changes a NaN or an infinity; the sum of an exact -0 and 0 would be +0. */
static __attribute__((noinline)) ro_places places(ro_bounded r, int bits) {
    const int64_t place = place_of(r.value, bits);
    if (r.value - r.value != 0 || r.bound == 0)
        return (ro_places){place, place};
    const double reach = r.bound < 0x1p200 ? 2 * r.bound : 0x1p201; /* a NaN counts as infinite */
    return (ro_places){place_of(r.value - reach, bits), place_of(r.value + reach, bits)};
}

ro_places ro_bounded_places(ro_bounded r, int bits) {
    const ro_fpenv env = ro_fpenv_enter();
    const ro_places v = places(r, bits);
    ro_fpenv_leave(env);
    return v;
}

/* An infinity times a number whose sign a rounding decides: not finite in any profile. */
int ro_bounded_admits(ro_bounded r, int bits, uint32_t value) {
    const ro_places v = ro_bounded_places(r, bits);
    const int64_t place = ro_place(ro_from_bits(value), bits);
    const uint32_t beyond = bits < 32 ? value & ((UINT32_C(1) << (32 - bits)) - 1) : 0;
    if (r.value - r.value != 0)
        return value == RO_QNAN_BITS || (value & UINT32_C(0x7fffffff)) == UINT32_C(0x7f800000);
    return beyond == 0 && place >= v.low && place <= v.high;
}
