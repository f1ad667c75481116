/* What layers record for vd_backward. Private to verde/graph. */
#ifndef VD_TAPE_H
#define VD_TAPE_H

#include "verde/graph/build.h"

typedef enum {
    VD_LAYER_ADD,
    VD_LAYER_MATMUL,
    VD_LAYER_EMBEDDING,
    VD_LAYER_NORM,
    VD_LAYER_GELU,
    VD_LAYER_RELU,
    VD_LAYER_DROPOUT,
    VD_LAYER_ATTENTION,
    VD_LAYER_XENT,
} vd_layer;

struct vd_record {
    vd_layer layer;
    char scope[VD_NAME_SIZE];
    vd_value in[3], out;
    vd_value saved[5]; /* what forward computed and backward reads */
    int64_t number;    /* heads; transposition of a matmul's second input */
    vd_dropout_attr dropout;
};

/* Appends a record with the builder's scope. */
void vd_tape_put(vd_builder *b, vd_record record);

vd_op vd_matmul_op(int batch_dims, int trans, float alpha, int chunk, int mask);
vd_op vd_dropout_op(vd_dropout_attr dropout);
/* 1 / sqrt(head size), correctly rounded. */
float vd_attention_scale(const vd_builder *b, vd_value q);

#endif
