/* The tape that layers record for vd_backward. Private to verde/graph. */
#ifndef VD_TAPE_H
#define VD_TAPE_H

#include "verde/graph/build.h"

typedef enum {
    VD_LAYER_ADD,
    VD_LAYER_MATMUL,
    VD_LAYER_EMBEDDING,
    VD_LAYER_NORM,
    VD_LAYER_DROPOUT,
    VD_LAYER_ATTENTION,
    VD_LAYER_XENT,
    VD_LAYER_MUL,
    VD_LAYER_SUB,
    VD_LAYER_DIV,
    VD_LAYER_SCALE,
    VD_LAYER_OPERATOR,
    VD_LAYER_GROUPED_ATTENTION,
    VD_LAYER_TRANSPOSE,
    VD_LAYER_SLICE,
    VD_LAYER_PAD,
    VD_LAYER_GATHER,
    VD_LAYER_CONCAT,
    VD_LAYER_RESHAPE,
    VD_LAYER_ROPE,
    VD_LAYER_SOFTMAX,
    VD_LAYER_LOG_SOFTMAX,
    VD_LAYER_XENT_IGNORE,
    VD_LAYER_XENT_MEAN,
    VD_LAYER_RMSNORM,
    VD_LAYER_SUM_AXIS,
    VD_LAYER_MEAN_AXIS,
    VD_LAYER_MAX_AXIS,
    VD_LAYER_CONV2D,
    VD_LAYER_MAX_POOL2D,
    VD_LAYER_AVG_POOL2D,
    VD_LAYER_BATCHNORM,
    VD_LAYER_MAX,
    VD_LAYER_MIN,
    VD_LAYER_WHERE,
    VD_LAYER_CAST,
} vd_layer;

struct vd_record {
    vd_layer layer;
    char scope[VD_NAME_SIZE];
    vd_value in[3], out;
    vd_value saved[5];    /* values of the forward pass that the backward pass reads */
    int64_t number;       /* heads' output, transposition, factor, operator, axis, ignored label */
    vd_products products; /* of a matmul or a convolution */
    bool causal, rotates; /* of attention */
    int64_t window;       /* of attention; 0: no window */
    vd_value padding;     /* of attention, in the scores' shape; VD_NONE: none */
    vd_rotation rotation; /* of a rope, and of attention that rotates */
    int64_t attr[RO_MAX_ATTRS]; /* of operators and image layers: the operator's attributes */
    vd_dropout_attr dropout;
};

/* Appends a record with the builder's scope. */
void vd_tape_put(vd_builder *b, vd_record record);

/* Returns whether a value has a gradient. Rules ask before they emit nodes for an input. */
bool vd_wants_gradient(const vd_builder *b, vd_value value);
/* Adds to the gradient of a value. Does nothing if the value has none. */
void vd_accumulate(vd_builder *b, vd_value value, vd_value gradient);

/* Computes the gradients of a layer's inputs from the gradient of its output. */
typedef void vd_backward_fn(vd_builder *b, const vd_record *r, vd_value dy);
vd_backward_fn vd_back_add, vd_back_mul, vd_back_sub, vd_back_div, vd_back_scale, vd_back_operator;
vd_backward_fn vd_back_softmax, vd_back_log_softmax, vd_back_xent_ignore, vd_back_xent_mean,
    vd_back_rmsnorm, vd_back_sum_axis, vd_back_mean_axis, vd_back_max_axis;

vd_backward_fn vd_back_attention, vd_back_grouped_attention;
vd_backward_fn vd_back_transpose, vd_back_slice, vd_back_pad, vd_back_gather, vd_back_concat,
    vd_back_reshape, vd_back_rope;
vd_backward_fn vd_back_conv2d, vd_back_max_pool2d, vd_back_avg_pool2d, vd_back_batchnorm;
vd_backward_fn vd_back_max, vd_back_min, vd_back_where, vd_back_cast;

/* For a backward rule: if x was made by vd_stored_of or vd_widened, or was rounded by vd_stored_of,
 * returns a new f32 copy of the stored tensor, so that the f32 tensor of the forward pass need not
 * be kept; else x. */
vd_value vd_read_again(vd_builder *b, const char *name, vd_value x);

vd_op vd_scale_op(float factor);
vd_value vd_zero_like(vd_builder *b, const char *name, vd_value x);
vd_op vd_matmul_op(int batch_dims, int trans, float alpha, int chunk, int mask);
/* A matrix product: matmul_fixed with `bits` bits, or matmul if bits is 0. */
vd_op vd_product_op(int bits, int trans);
vd_value vd_emit_dropout(vd_builder *b, const char *name, vd_value x, vd_dropout_attr dropout);

#endif
