/* Helpers of the checks of calls (infer*.c). Private to repops/src. */
#ifndef RO_INFER_H
#define RO_INFER_H

#include "repops/repops.h"
#include "repops/src/call.h"

/* The check of one call: the output shape that it must have, and where to write what is wrong. */
typedef struct {
    const ro_call *call;
    const ro_shape *in;
    ro_shape want; /* ndim 0: the caller declares it */
    char *why;
    size_t why_size;
} ro_check;

#define NUMEL(i) ro_shape_numel(&c->in[i])

#define TRY(expression)                                                                            \
    do {                                                                                           \
        ro_status try_status = (expression);                                                       \
        if (try_status != RO_OK)                                                                   \
            return try_status;                                                                     \
    } while (0)

/* Writes the sentence; returns RO_ERR_ARG. */
ro_status ro_refuse(ro_check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
ro_status ro_want_type(ro_check *c, int input, int dtype);
ro_status ro_want_float(ro_check *c, int input); /* f32, bf16 or f16 */
/* Wants a window of at least 0, which must be 0 unless `masked` is nonzero. */
ro_status ro_want_window(ro_check *c, int attr, int masked);
ro_status ro_want_same(ro_check *c, int input, int as);
/* Wants an input of one element, in any number of dimensions. */
ro_status ro_want_one(ro_check *c, int input);
/* SPEC 4: wants an input with these dimensions, ignoring those of 1, or with all as one. */
ro_status ro_want_dims(ro_check *c, int input, const ro_shape *want);
ro_status ro_want_vector(ro_check *c, int input, int64_t cols);
/* SPEC 4: wants `count` elements, one for each row of `cols` elements of input `of`. */
ro_status ro_want_per_row(ro_check *c, int input, int of, int64_t cols, int64_t count);
/* As ro_want_per_row, for rows along the last dimension. */
ro_status ro_want_per_last(ro_check *c, int input, int of);
/* Wants an input of `rows` rows of `cols` elements. */
ro_status ro_want_matrix(ro_check *c, int input, int64_t rows, int64_t cols);
ro_status ro_want_range(ro_check *c, int attr, int64_t lo, int64_t hi);
/* Wants an attribute that is a number of bits that fixed products can have. */
ro_status ro_want_fixed_bits(ro_check *c, int attr);
ro_status ro_want_scalar_step(ro_check *c, int input);
/* SPEC 4: wants an input 1 that repeats into input 0. */
ro_status ro_want_repeats(ro_check *c);
ro_status ro_want_output(ro_check *c, int64_t numel);
ro_status ro_declared(ro_check *c, int dtype);
/* Wants f32 inputs; the output gets the shape of the first one. */
ro_status ro_all_f32(ro_check *c);
/* Wants f32 inputs and a declared output, and in attribute 0 the columns of input 0 as a matrix. */
ro_status ro_check_view(ro_check *c);

/* The checks of operators; some operators share one. */
ro_status ro_check_fill(ro_check *c);
ro_status ro_check_normal(ro_check *c);
ro_status ro_check_read_batch(ro_check *c);
ro_status ro_check_embedding(ro_check *c);
ro_status ro_check_embedding_grad(ro_check *c);
ro_status ro_check_split_heads(ro_check *c);
ro_status ro_check_join_heads(ro_check *c);
ro_status ro_check_concat(ro_check *c);
ro_status ro_check_iota(ro_check *c);
ro_status ro_check_transpose(ro_check *c);
ro_status ro_check_slice(ro_check *c);
ro_status ro_check_pad(ro_check *c);
ro_status ro_check_gather(ro_check *c);
ro_status ro_check_gather_grad(ro_check *c);
ro_status ro_check_concat_axis(ro_check *c);
ro_status ro_check_cast(ro_check *c);
ro_status ro_check_put_rows(ro_check *c);
ro_status ro_check_reshape(ro_check *c);
ro_status ro_check_repeat(ro_check *c);
ro_status ro_check_same_pair(ro_check *c);
ro_status ro_check_compare(ro_check *c);
ro_status ro_check_where(ro_check *c);
ro_status ro_check_iadd(ro_check *c);
ro_status ro_check_integer(ro_check *c);
ro_status ro_check_round(ro_check *c);
ro_status ro_check_normal_at(ro_check *c);
ro_status ro_check_take_along(ro_check *c);
ro_status ro_check_put_along(ro_check *c);
ro_status ro_check_argsort(ro_check *c);
ro_status ro_check_running(ro_check *c);
ro_status ro_check_isum(ro_check *c);
ro_status ro_check_dropout(ro_check *c);
ro_status ro_check_cast_stochastic(ro_check *c);
ro_status ro_check_matmul(ro_check *c);
ro_status ro_check_matmul_fixed(ro_check *c);
ro_status ro_check_reduce(ro_check *c);
ro_status ro_check_columns(ro_check *c);
ro_status ro_check_ln_rstd(ro_check *c);
ro_status ro_check_layernorm(ro_check *c);
ro_status ro_check_norm_dx(ro_check *c);
ro_status ro_check_xent(ro_check *c);
ro_status ro_check_attn_max(ro_check *c);
ro_status ro_check_attn_exp(ro_check *c);
ro_status ro_check_attn_av(ro_check *c);
ro_status ro_check_attn_max_at(ro_check *c);
ro_status ro_check_attn_exp_at(ro_check *c);
ro_status ro_check_attn_av_at(ro_check *c);
ro_status ro_check_attn_l(ro_check *c);
ro_status ro_check_attn_out(ro_check *c);
ro_status ro_check_attn_prob(ro_check *c);
ro_status ro_check_attn_dscore(ro_check *c);
ro_status ro_check_repeat_heads(ro_check *c);
ro_status ro_check_softmax(ro_check *c);
ro_status ro_check_softmax_grad(ro_check *c);
ro_status ro_check_xent_ignore(ro_check *c);
ro_status ro_check_kept(ro_check *c);
ro_status ro_check_axis_groups(ro_check *c);
ro_status ro_check_argmax(ro_check *c);
ro_status ro_check_max_grad(ro_check *c);
ro_status ro_check_expand(ro_check *c);
ro_status ro_check_rmsnorm(ro_check *c);
ro_status ro_check_lr(ro_check *c);
ro_status ro_check_scalar(ro_check *c);
ro_status ro_check_adamw_moment(ro_check *c);
ro_status ro_check_adamw_w(ro_check *c);
ro_status ro_check_conv2d(ro_check *c);
ro_status ro_check_pool(ro_check *c);
ro_status ro_check_bn_columns(ro_check *c);
ro_status ro_check_bn_merge(ro_check *c);
ro_status ro_check_batchnorm(ro_check *c);
ro_status ro_check_read_images(ro_check *c);
ro_status ro_check_sgd(ro_check *c);
ro_status ro_check_permutation(ro_check *c);
ro_status ro_check_rope_turns(ro_check *c);
ro_status ro_check_rope(ro_check *c);
ro_status ro_check_weight(ro_check *c);
ro_status ro_check_top_k(ro_check *c);
ro_status ro_check_top_p(ro_check *c);
ro_status ro_check_keep_top(ro_check *c);
ro_status ro_check_random_words(ro_check *c);
ro_status ro_check_draw(ro_check *c);

#endif
