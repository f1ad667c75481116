/* Building graphs: nodes, layers that record themselves for the backward pass, and autodiff.
 *
 * Errors are sticky: after the first one every function returns value 0, and the builder keeps the
 * message. */
#ifndef VD_BUILD_H
#define VD_BUILD_H

#include "verde/graph/graph.h"
#include "verde/graph/products.h"

#define VD_NONE UINT32_MAX

typedef uint32_t vd_value;
typedef struct vd_record vd_record;
typedef struct vd_stored vd_stored;

typedef struct {
    vd_program *program;
    vd_graph *graph;
    char scope[VD_NAME_SIZE]; /* prefix of the names of new nodes */
    vd_status status;
    vd_err err;
    vd_record *tape; /* layers in forward order; owned */
    uint32_t tape_count, tape_capacity;
    vd_value *grad; /* gradient of each value, during and after vd_backward; owned */
    bool *trained;  /* whether a value has a gradient; as `grad`; owned */
    uint32_t grad_count;
    vd_value numbered_step; /* step number made by vd_number_steps; 0: the program's own */
    vd_products products;
    bool stores_bf16;  /* vd_stored_of rounds what layers keep for their backward pass to bf16 */
    vd_stored *stored; /* tensors of 16 bits and their f32 copies; owned */
    uint32_t stored_count, stored_capacity;
    bool repeats; /* a repeat's body is being built */
    vd_repeat repeat;
} vd_builder;

vd_builder vd_builder_of(vd_program *program, vd_graph *graph);
void vd_builder_free(vd_builder *b);
void vd_scope(vd_builder *b, const char *format, ...) VD_PRINTF(2, 3);
vd_status vd_builder_fail(vd_builder *b, vd_status status, const char *format, ...) VD_PRINTF(3, 4);

/* ---- layout ---- */

uint32_t vd_add_leaf(vd_builder *b, const char *name, const ro_shape *shape);
ro_shape vd_shape(int dtype, int ndim, const int64_t *dim);
#define VD_SHAPE(dtype, ...)                                                                       \
    vd_shape(dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                     \
             (int64_t[]){__VA_ARGS__})
/* i32 [1]: the step's number, which selects random numbers and windows of the data. */
vd_value vd_step_value(const vd_builder *b);
/* Makes the first step number `first` instead of 0. Call this before anything reads the step's
 * number. All numbers must be at most 2^24, because they are added as f32. */
void vd_number_steps(vd_builder *b, int64_t first);
vd_value vd_data_value(const vd_builder *b, uint32_t index);
const ro_shape *vd_shape_of(const vd_builder *b, vd_value value);

/* ---- nodes ---- */

typedef struct {
    int op;
    int64_t attr[RO_MAX_ATTRS];
    const ro_shape *shape; /* the output's, where operators declare it; else NULL */
} vd_op;

/* Names a stored node, or the additions of a sum, "scope.name". */
void vd_name_node(vd_builder *b, vd_node *node, const char *name);
vd_value vd_emit(vd_builder *b, const char *name, vd_op op, int32_t input_count,
                 const vd_value *input);
#define VD_EMIT(b, name, op, ...)                                                                  \
    vd_emit(b, name, op, (int32_t)(sizeof((vd_value[]){__VA_ARGS__}) / sizeof(vd_value)),          \
            (vd_value[]){__VA_ARGS__})

/* Reduces rows of `cols` elements by R until one element is left (SPEC 3.2). The result is [...,
 * 1], or [1] if `cols` is the size of input[0]. */
vd_value vd_reduce(vd_builder *b, const char *name, int op, int64_t cols, int32_t input_count,
                   const vd_value *input);
/* Reduces columns by K until one row is left (SPEC 3.3), of shape `shape`; op: sum_rows,
 * ln_dgamma. */
vd_value vd_column_sum(vd_builder *b, const char *name, int op, const ro_shape *shape,
                       int32_t input_count, const vd_value *input);
vd_value vd_div_const(vd_builder *b, const char *name, vd_value x, double divisor);

/* ---- repeats: the same nodes for each micro-batch ---- */

/* Begins a body: nodes emitted from here on are iteration 0 of `count`, which is at least 2. Their
 * names may contain VD_NAME_ITERATION. */
void vd_repeat_begin(vd_builder *b, uint32_t count);
/* Adds `slope` to attribute `attr` of the node of `value` per iteration. Does nothing outside of
 * repeats. */
void vd_move(vd_builder *b, vd_value value, int attr, int64_t slope);
/* Carries a value: where the body reads `before`, which was made before the repeat, iterations
 * after the first read `after` of the iteration before them. */
void vd_repeat_carry(vd_builder *b, vd_value before, vd_value after);
/* Sums a value over all iterations, by a binary tree that splits at the largest power of two below
 * the number of iterations. The name may contain VD_NAME_ITERATION and VD_NAME_LAST. */
void vd_repeat_sum(vd_builder *b, const char *name, vd_value x);
/* Ends the body. Afterwards the values of the body stand for those of iteration 0. */
void vd_repeat_end(vd_builder *b);
/* After vd_repeat_end: a body's value in the last iteration, given its value in iteration 0; the
 * total of sum `sum` of the last repeat. */
vd_value vd_repeat_last(const vd_builder *b, vd_value first);
vd_value vd_repeat_total(const vd_builder *b, uint32_t sum);

/* Drops all nodes that neither an output of the graph nor its loss depends on. Call it last, when
 * the outputs are set: it renumbers values, so those that the caller holds become invalid. */
void vd_prune(vd_builder *b);

/* ---- tensors of 16 bits: layers compute in f32 ---- */

vd_value vd_cast(vd_builder *b, const char *name, vd_value x, int dtype);
/* Returns x as f32: x itself if it is f32. Gradients of the result go to x. */
vd_value vd_widened(vd_builder *b, const char *name, vd_value x);
/* Returns x [f32] as a layer must read it if its backward pass reads x too: rounded to bf16 and
 * widened again if the builder stores bf16, else x. The gradient passes through the rounding
 * unchanged. */
vd_value vd_stored_of(vd_builder *b, const char *name, vd_value x);

/* ---- layers: forward nodes plus a record on the tape ---- */

typedef struct {
    float rate; /* 0: no dropout node is emitted */
    uint64_t seed;
    int64_t stream;
    int64_t slope; /* growth of `stream` with each iteration of a repeat */
} vd_dropout_attr;

/* Emits any operator as a layer: as vd_emit, with the gradient that the operator's table names. If
 * the table names none, vd_backward fails when it comes to this layer. verde/graph/functions.h
 * wraps this for single operators. */
vd_value vd_apply(vd_builder *b, const char *name, vd_op op, int32_t input_count,
                  const vd_value *input);
#define VD_APPLY(b, name, op, ...)                                                                 \
    vd_apply(b, name, op, (int32_t)(sizeof((vd_value[]){__VA_ARGS__}) / sizeof(vd_value)),         \
             (vd_value[]){__VA_ARGS__})
vd_value vd_add(vd_builder *b, const char *name, vd_value x, vd_value y); /* y may repeat */
vd_value vd_sub(vd_builder *b, const char *name, vd_value x, vd_value y);
vd_value vd_mul(vd_builder *b, const char *name, vd_value x, vd_value y);
vd_value vd_div(vd_builder *b, const char *name, vd_value x, vd_value y);
vd_value vd_scale(vd_builder *b, const char *name, vd_value x, float factor);
vd_value vd_linear(vd_builder *b, vd_value x, vd_value weight,
                   vd_value bias);                                    /* weight [in, out] */
vd_value vd_project(vd_builder *b, vd_value x, vd_value weight);      /* the same without bias */
vd_value vd_project_rows(vd_builder *b, vd_value x, vd_value weight); /* weight [out, in] */
vd_value vd_embedding(vd_builder *b, const char *name, vd_value table, vd_value ids);
vd_value vd_layernorm(vd_builder *b, vd_value x, vd_value gamma, vd_value beta, float eps);
vd_value vd_abs(vd_builder *b, vd_value x);
vd_value vd_max(vd_builder *b, const char *name, vd_value x, vd_value y);
vd_value vd_min(vd_builder *b, const char *name, vd_value x, vd_value y);
/* i32: 1 where x `kind` y holds, else 0. It has no gradient. */
vd_value vd_compare(vd_builder *b, const char *name, vd_value x, vd_value y, ro_relation kind);
/* x where `choice` (i32) is not 0, else y. */
vd_value vd_where(vd_builder *b, const char *name, vd_value choice, vd_value x, vd_value y);
vd_value vd_exp(vd_builder *b, vd_value x);
vd_value vd_log(vd_builder *b, vd_value x);
vd_value vd_sqrt(vd_builder *b, vd_value x);
vd_value vd_rsqrt(vd_builder *b, vd_value x);
vd_value vd_dropout(vd_builder *b, const char *name, vd_value x, vd_dropout_attr dropout);
/* Causal self-attention over qkv [B, T, 3C], T rows of each sequence; SPEC 8. */
vd_value vd_attention(vd_builder *b, vd_value qkv, int64_t heads, vd_dropout_attr dropout);

/* Rotary position embedding, SPEC 13. */
typedef struct {
    float base;
    int32_t kind; /* ro_rope_kind */
    /* All members but the factor are for RO_ROPE_LLAMA3, and 0 for other kinds. */
    float factor, low, high;
    int64_t original;
} vd_frequencies;

typedef struct {
    vd_value position; /* i32 [T], or [B, T] */
    vd_value turns;    /* i32 [D / 2, 2], of vd_rope_turns */
    bool neighbours;   /* rotates pairs (2i, 2i + 1); else (i, i + D / 2) */
} vd_rotation;

/* The rotation per position of each pair of a head's `size` elements: i32 [size / 2, 2]. */
vd_value vd_rope_turns(vd_builder *b, const char *name, int64_t size, const vd_frequencies *f);
/* i32: 0, 1, ..., count - 1. */
vd_value vd_iota(vd_builder *b, const char *name, int64_t count);

typedef struct {
    int64_t heads, kv_heads;     /* kv_heads divides heads */
    bool causal;                 /* needs T = S */
    const vd_rotation *rotation; /* of q and k, so T = S; NULL: none */
    vd_dropout_attr dropout;
    /* Key padding [B, S], added to all scores of a key: -inf excludes the key, +0 keeps it. It is a
     * constant; NULL: none. A query without any key gives +0. */
    const vd_value *padding;
    int64_t window; /* number of keys that a query sees, counting its own; needs causal; 0: all */
} vd_heads;

/* Attention of q [B, T, heads D] over k and v [B, S, kv_heads D]: [B, T, heads D]. */
vd_value vd_grouped_attention(vd_builder *b, const vd_value qkv[3], const vd_heads *heads);
/* Causal attention of q [B, H, T, D] over k and v [B, H, S, D]: [B, H, T, D]. Query t stands at row
 * first[0] + t of the keys; first is i32 [1], T is at most S, window is as in vd_heads. Later keys
 * are left out of all sums, so a query's result has the same bits as in a layer over all rows (SPEC
 * 8). It has no gradient. */
vd_value vd_attention_at(vd_builder *b, const vd_value qkv[3], vd_value first, int64_t window);
/* Cross-entropy loss of each row. */
vd_value vd_xent(vd_builder *b, vd_value logits, vd_value ids);
/* Like vd_xent, but +0 for rows labelled `ignore`; the mean is over the others, NaN if there are
 * none. */
vd_value vd_xent_ignore(vd_builder *b, vd_value logits, vd_value ids, int32_t ignore);
vd_value vd_xent_mean(vd_builder *b, vd_value logits, vd_value ids, int32_t ignore);
/* These layers work along the last dimension. */
vd_value vd_softmax(vd_builder *b, vd_value x);
vd_value vd_log_softmax(vd_builder *b, vd_value x);
vd_value vd_rmsnorm(vd_builder *b, vd_value x, vd_value gamma, float eps);
/* These layers reduce an axis to length 1. argmax (i32) has no gradient. */
vd_value vd_sum_axis(vd_builder *b, vd_value x, int axis);
vd_value vd_mean_axis(vd_builder *b, vd_value x, int axis);
vd_value vd_max_axis(vd_builder *b, vd_value x, int axis);
vd_value vd_argmax(vd_builder *b, vd_value x, int axis);

/* ---- layers that move elements, SPEC 5, and rotary position embedding, SPEC 13 ---- */

typedef struct {
    int axis;
    int64_t start, length, step;
} vd_stretch;

/* Dimension i of the output is dimension order[i] of x. */
vd_value vd_transpose(vd_builder *b, const char *name, vd_value x, const int *order);
vd_value vd_slice(vd_builder *b, const char *name, vd_value x, vd_stretch s);
vd_value vd_pad(vd_builder *b, const char *name, vd_value x, int axis, int64_t before,
                int64_t after); /* with zeros */
vd_value vd_gather(vd_builder *b, const char *name, vd_value x, vd_value ids, int axis);
vd_value vd_concat(vd_builder *b, const char *name, int axis, int32_t count, const vd_value *x);
vd_value vd_reshape(vd_builder *b, const char *name, vd_value x, ro_shape shape);
vd_value vd_rope(vd_builder *b, const char *name, vd_value x, vd_rotation r); /* [..., T, D] */
/* x with its rows at[0], at[0] + 1, ... along the axis replaced by `rows`; `at` is i32 [1]. Rows
 * that would fall outside of x are dropped. It has no gradient. */
vd_value vd_put_rows(vd_builder *b, const char *name, vd_value x, vd_value rows, vd_value at,
                     int axis);

/* ---- sampling of tokens, SPEC 10.3; these have no gradients ---- */

/* i32 addition; y may repeat. */
vd_value vd_iadd(vd_builder *b, const char *name, vd_value x, vd_value y);
/* i32 weights of x [..., V]: exp(x - m) in units of 2^-31; m has one element per row. */
vd_value vd_weight(vd_builder *b, const char *name, vd_value x, vd_value m);
/* Thresholds [..., 2] of weights q [..., V] i32: they keep the k largest weights, or the largest
 * ones that together hold p / 2^24 of the sum. */
vd_value vd_top_k(vd_builder *b, const char *name, vd_value q, int64_t k);
vd_value vd_top_p(vd_builder *b, const char *name, vd_value q, int64_t p);
/* q, with 0 for weights that the threshold `cut` [..., 2] leaves out. */
vd_value vd_keep_top(vd_builder *b, const char *name, vd_value q, vd_value cut);
/* Two random words for each key [..., 2] i32, at the given position i32 [1]. */
vd_value vd_random_words(vd_builder *b, const char *name, vd_value key, vd_value position,
                         uint64_t seed, int64_t stream);
/* Draws an index [..., 1] i32 for each row of weights q, by random words [..., 2]. */
vd_value vd_draw(vd_builder *b, const char *name, vd_value q, vd_value words);

/* ---- layers on images [N, H, W, C]; SPEC 12 ---- */

typedef struct {
    int64_t stride, pad, dilation, groups;
} vd_conv_attr;

typedef struct {
    int64_t kernel[2], stride[2], pad[2]; /* height, width */
    int64_t count_pad;                    /* average pooling: 1: padding counts as zeros */
} vd_pool_attr;

/* weight [KH, KW, C / groups, filters] */
vd_value vd_conv2d(vd_builder *b, vd_value x, vd_value weight, vd_conv_attr conv);
vd_value vd_max_pool2d(vd_builder *b, vd_value x, vd_pool_attr pool);
vd_value vd_avg_pool2d(vd_builder *b, vd_value x, vd_pool_attr pool);
vd_value vd_global_avg_pool2d(vd_builder *b, vd_value x); /* [N, 1, 1, C] */

/* Statistics of the rows of x: the mean, and the sum of squared deviations from it. */
typedef struct {
    vd_value mean, sqdev; /* [C] */
    int64_t rows;
} vd_statistics;

vd_statistics vd_batch_statistics(vd_builder *b, vd_value x);
/* Batch norm in training: `s` are the statistics of x itself, and gradients pass through them. */
vd_value vd_batchnorm(vd_builder *b, vd_value x, vd_value gamma, vd_value beta, vd_statistics s);
/* Batch norm with running statistics. It has no backward pass. */
vd_value vd_batchnorm_eval(vd_builder *b, vd_value x, vd_value gamma, vd_value beta, vd_value mean,
                           vd_value variance);
/* Updates of running statistics; the variance is the unbiased one. */
vd_value vd_running_mean(vd_builder *b, vd_value running, vd_statistics s, float momentum);
vd_value vd_running_variance(vd_builder *b, vd_value running, vd_statistics s, float momentum);

/* ---- reverse mode ---- */

/* Walks the tape backwards from `loss`, whose elements all have gradient `weight`, and clears the
 * tape. Afterwards vd_grad gives the gradient of a value, or VD_NONE if the loss does not depend on
 * it. Contributions to one gradient are added in the order in which the walk meets them.
 *
 * Only state leaves and what layers compute from them have gradients. Data tensors, such as frozen
 * weights, and nodes emitted outside of layers have none, and cost no nodes. */
void vd_backward(vd_builder *b, vd_value loss, float weight);
/* Like vd_backward, but `gradient` is a value of the shape of `loss`. */
void vd_backward_from(vd_builder *b, vd_value loss, vd_value gradient);
vd_value vd_grad(const vd_builder *b, vd_value value);

#endif
