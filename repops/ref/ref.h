/* Private to repops/ref: how element definitions read their inputs. */
#ifndef RO_REF_PRIVATE_H
#define RO_REF_PRIVATE_H

#include "repops/ref.h"
#include "repops/src/call.h"
#include "repops/src/conv.h"
#include "repops/src/math.h"
#include "repops/src/philox.h"

/* One operator's definition of one element; fold parts are NULL for short operators. */
typedef struct {
    uint32_t (*finish)(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in);
    int64_t (*steps)(const ro_call *call);
    size_t (*state_size)(const ro_call *call);
    void (*step)(const ro_call *call, int64_t e, int64_t step, ro_acc *acc, const ro_access *in);
    int64_t (*loads)(const ro_call *call); /* of finish; NULL: one per input */
} ro_ref_op;

/* Rows of the tables, for the test that every operator has those that it needs; NULL, 0: none. */
const ro_ref_op *ro_ref_row(int op);
int ro_ref_bounded_row(int op);

RO_INLINE uint32_t load(const ro_access *in, int input, int64_t index) {
    return in->load(in->user, input, index);
}

RO_INLINE float loadf(const ro_access *in, int input, int64_t index) {
    return ro_from_bits(load(in, input, index));
}

RO_INLINE uint32_t result(float value) {
    return ro_to_bits(ro_canon(value));
}

/* A number of 64 bits in the state of a fold, the low word first. */
RO_INLINE void put64(ro_acc *acc, int at, uint64_t x) {
    acc->word[at] = (uint32_t)x;
    acc->word[at + 1] = (uint32_t)(x >> 32);
}

RO_INLINE uint64_t get64(const ro_acc *acc, int at) {
    return (uint64_t)acc->word[at + 1] << 32 | acc->word[at];
}

/* The value of an operator that a definition does not know: it must not pass for a result. */
RO_INLINE float no_such_operator(void) {
    return ro_from_bits(RO_QNAN_BITS);
}

RO_INLINE float attrf(const ro_call *call, int index) {
    return ro_attr_to_f32(call->attr[index]);
}

RO_INLINE int64_t last_dim(const ro_shape *shape) {
    return shape->dim[shape->ndim - 1];
}

RO_INLINE int64_t numel(const ro_call *call, int input) {
    return ro_shape_numel(&call->input[input]);
}

typedef uint32_t ro_ref_finish_fn(const ro_call *, int64_t, const ro_acc *, const ro_access *);

ro_ref_finish_fn ro_ref_fill, ro_ref_normal, ro_ref_read_batch, ro_ref_embedding,
    ro_ref_embedding_grad, ro_ref_split_heads, ro_ref_join_heads, ro_ref_concat, ro_ref_iota;
ro_ref_finish_fn ro_ref_div_const, ro_ref_gelu, ro_ref_gelu_grad, ro_ref_relu, ro_ref_relu_grad,
    ro_ref_compare, ro_ref_where, ro_ref_iadd, ro_ref_leaky_relu, ro_ref_leaky_relu_grad,
    ro_ref_dropout, ro_ref_cast_stochastic;
ro_ref_finish_fn ro_ref_arithmetic, ro_ref_scale, ro_ref_function, ro_ref_slope;
ro_ref_finish_fn ro_ref_transpose, ro_ref_slice, ro_ref_pad, ro_ref_gather, ro_ref_concat_axis,
    ro_ref_cast, ro_ref_reshape, ro_ref_put_rows;
ro_ref_finish_fn ro_ref_uniform, ro_ref_permutation, ro_ref_rope_turns, ro_ref_rope, ro_ref_sgd_m,
    ro_ref_sgd_w, ro_ref_sgd_nesterov;
ro_ref_finish_fn ro_ref_softmax, ro_ref_softmax_grad, ro_ref_log_softmax, ro_ref_log_softmax_grad,
    ro_ref_kept, ro_ref_rmsnorm, ro_ref_rms_dx;
ro_ref_finish_fn ro_ref_sum_axis, ro_ref_max_axis, ro_ref_argmax, ro_ref_max_grad, ro_ref_expand;
ro_ref_finish_fn ro_ref_matmul, ro_ref_reduce, ro_ref_reduce_max, ro_ref_columns;
ro_ref_finish_fn ro_ref_ln_rstd, ro_ref_layernorm, ro_ref_ln_dx, ro_ref_xent, ro_ref_xent_grad;
ro_ref_finish_fn ro_ref_attn_max, ro_ref_attn_exp, ro_ref_attn_av, ro_ref_attn_l, ro_ref_attn_out,
    ro_ref_attn_prob, ro_ref_attn_dscore, ro_ref_repeat_heads, ro_ref_repeat_heads_grad;
ro_ref_finish_fn ro_ref_lr_schedule, ro_ref_bias_correction, ro_ref_clip_scale, ro_ref_adamw_m,
    ro_ref_adamw_v, ro_ref_adamw_w;

ro_ref_finish_fn ro_ref_weight, ro_ref_top, ro_ref_keep_top, ro_ref_random_words, ro_ref_draw;

int64_t ro_ref_top_steps(const ro_call *call);
void ro_ref_top_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                     const ro_access *in);
int64_t ro_ref_draw_steps(const ro_call *call);
void ro_ref_draw_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                      const ro_access *in);
int64_t ro_ref_matmul_steps(const ro_call *call);
void ro_ref_matmul_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                        const ro_access *in);
void ro_ref_matmul_fixed_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                              const ro_access *in);
int64_t ro_ref_argmax_steps(const ro_call *call);
void ro_ref_argmax_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                        const ro_access *in);
int64_t ro_ref_embedding_grad_steps(const ro_call *call);
void ro_ref_gather_grad_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                             const ro_access *in);
void ro_ref_embedding_grad_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                                const ro_access *in);

ro_ref_finish_fn ro_ref_conv2d, ro_ref_max_pool2d, ro_ref_max_pool2d_index, ro_ref_avg_pool2d,
    ro_ref_pool2d_grad, ro_ref_bn_mean, ro_ref_bn_sqdev, ro_ref_bn_merge, ro_ref_batchnorm,
    ro_ref_bn_dgamma, ro_ref_bn_dx, ro_ref_bn_running, ro_ref_read_images, ro_ref_read_labels;
int64_t ro_ref_conv2d_steps(const ro_call *call);
void ro_ref_conv2d_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                        const ro_access *in);
void ro_ref_conv2d_fixed_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                              const ro_access *in);

/* ---- what ro_ref_element and ro_ref_bounded share: which elements meet ---- */

/* A term of a dot product: where its factors lie in both inputs. Absent terms have none. */
typedef struct {
    int64_t a, b;
    int present;
} ro_ref_factors;

ro_ref_factors ro_ref_matmul_factors(const ro_matmul *v, int64_t batch, int64_t m, int64_t n,
                                     int64_t k);
/* The k of row m that a step of the fold covers: [from, to), none if from >= to. */
void ro_ref_matmul_range(const ro_matmul *v, int64_t m, int64_t step, int64_t *from, int64_t *to);
/* Terms of a convolution, or positions that gradients of lookups sum over, of a step of the fold;
 * and which of `count` step `step` covers: [*from, *to). */
enum { RO_REF_TERMS = RO_DOT_CHUNK };
void ro_ref_step_range(int64_t step, int64_t count, int64_t *from, int64_t *to);
/* Number of terms of an element's dot product, absent ones counted. */
int64_t ro_ref_conv_terms(const ro_call *call, const ro_conv *v);
ro_ref_factors ro_ref_conv_factors(const ro_call *call, const ro_conv *v, int64_t e, int64_t k);

/* SPEC 3.2: the block that output element e reduces: its row, and [from, to) in the row. */
void ro_ref_block(const ro_call *call, int64_t e, int64_t *row, int64_t *from, int64_t *to);
/* SPEC 3.3: the rows [from, to) of the group that element e of the output stands for. */
void ro_ref_group(int64_t e, int64_t cols, int64_t rows, int64_t *from, int64_t *to);
/* SPEC 12.3: how many of the rows entry i stands for. */
int64_t ro_ref_entry_rows(const ro_call *call, int64_t i);

/* SPEC 3.4: element e of a tensor like input 0 but of length n along the axis: where its line
 * starts in input 0, and its place on the line. */
typedef struct {
    ro_axis x;
    int64_t start, at;
} ro_ref_line;
ro_ref_line ro_ref_line_of(const ro_call *call, int64_t e, int64_t n);

/* SPEC 7.2: of the operators with an attribute: the label that it names does not count. */
int ro_ref_ignored(const ro_call *call, int32_t id);

/* SPEC 8: element e of a [..., T, S] tensor: its query (flattened with the batch) and key. */
typedef struct {
    int64_t row, key, blocks;
    int admitted;
} ro_ref_score;
ro_ref_score ro_ref_score_of(const ro_call *call, int64_t e, const ro_access *in);
/* Admitted keys [from, to) of block c for query `row`. */
void ro_ref_attn_keys(const ro_call *call, int64_t row, int64_t c, const ro_access *in,
                      int64_t *from, int64_t *to);

/* SPEC 12.2: the element of x under tap t of window e, and by what the window's sum is divided; the
 * window that has its tap t at element e of x, and by what it was divided. -1: none. */
int64_t ro_ref_pool_tap(const ro_pooling *v, int64_t e, int64_t t);
int64_t ro_ref_pool_divisor(const ro_pooling *v, int64_t e);
int64_t ro_ref_pool_window(const ro_pooling *v, int64_t e, int64_t t, int64_t *divisor);

/* SPEC 13: where the other element of the pair is, whether this one is the second, and the turn. */
typedef struct {
    int64_t other;
    int second;
    float cosine, sine;
} ro_ref_turn;
ro_ref_turn ro_ref_turn_of(const ro_call *call, int64_t e, const ro_access *in);

RO_INLINE int is_minus_infinity(float x) {
    return ro_to_bits(x) == RO_MINUS_INFINITY_BITS;
}

#endif
