/* Operands of linear layers that stay packed from call to call: weights that several batches use;
 * for layers with fixed products (SPEC 3.5) also inputs that several layers read; and weights of
 * convolutions. With few rows, most of the time of a fixed product goes into packing the weights,
 * as does a good part of an FP32 product of 30 to a few hundred rows; with few columns, packing x
 * takes it. */
#ifndef REPOPS_PACKED_H
#define REPOPS_PACKED_H

#include "repops/fused.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the bytes of a layer's packed weights; 0 if packing gains nothing (an FP32 layer of few
 * rows, of more than 1024 rows, or of few weights), or if the context keeps none (a GPU keeps no
 * FP32 weights, and none at all while repops/guard.h checks products). For FP32 that is 64 bytes
 * plus 4 per number of w, with `out` rounded up to a multiple of at most 32. For fixed products on
 * CPUs it is 8 bytes per number of w, with `in` rounded up to chunks of 256 and `out` to a multiple
 * of at most 32; with AVX2, AVX-512 VNNI, AMX or NEON's dot products 2 to 4 bytes for 8 or 16 bits,
 * 3 to 6 for 24; plus at most 9 bytes for each chunk of each output, 24 for 8 bits. On a GPU it is,
 * with `in` rounded up to 64 and `out` to a multiple of at most 128, 2 bytes per number for 8 or 16
 * bits, 3 for 24, plus an eighth of a byte, and 1 KiB in all. */
RO_API RO_MUST_USE size_t ro_linear_packed_size(ro_ctx *ctx, const ro_linear_layer *layer);

/* Packs w, as the layer has it, into `packed`: memory of that size where the context computes,
 * aligned to 64 bytes, overlapping nothing. The result replaces w for layers of the same in, out
 * and fixed_bits whose size is not 0, in contexts of the same backend in this process. Later
 * changes of w do not affect it. */
RO_API RO_MUST_USE ro_status ro_linear_pack(ro_ctx *ctx, const ro_linear_layer *layer,
                                            const float *w, void *packed);

/* Gives the bytes of ro_linear. Returns RO_ERR_ARG if `packed` belongs to another layer or backend;
 * a device cannot check that, and would compute wrong results. */
RO_API RO_MUST_USE ro_status ro_linear_packed(ro_ctx *ctx, const ro_linear_layer *layer,
                                              const float *x, const void *packed, const float *bias,
                                              float *z, float *y);

/* The operands of a layer. With transposed_x, x is [in, rows]: the gradient of weights is such a
 * layer, with x transposed and dy as weights. */
typedef struct {
    uint32_t size; /* sizeof(ro_linear_operands) */
    int transposed_x;
    const float *x, *w;
    const void *packed_x, *packed_w; /* where one is not NULL, x or w is not read */
} ro_linear_operands;

/* Like ro_linear_packed_size and ro_linear_pack, but for the x of a fixed product: `rows`, rounded
 * up to a multiple of at most 32, replaces `out`. The packed form replaces x for layers of the same
 * rows, in and fixed_bits. */
RO_API RO_MUST_USE size_t ro_linear_packed_x_size(ro_ctx *ctx, const ro_linear_layer *layer);
RO_API RO_MUST_USE ro_status ro_linear_pack_x(ro_ctx *ctx, const ro_linear_layer *layer,
                                              const ro_linear_operands *in, void *packed);

/* Like ro_linear_packed, but each operand may be packed or not. */
RO_API RO_MUST_USE ro_status ro_linear_of_packed(ro_ctx *ctx, const ro_linear_layer *layer,
                                                 const ro_linear_operands *in, const float *bias,
                                                 float *z, float *y);

/* Returns the bytes of the packed weights of a call of operator conv2d, whose shapes must be final;
 * 0 if packing gains nothing or the context keeps none. That is about the bytes of the weights,
 * filled up to whole panels, plus a quarter or half of them for a copy as integers. Integer weights
 * of -128 to 127 multiply an integer x directly as integers if the values of x, with 0, span at
 * most 255 and no sum can exceed 2^24 in magnitude. */
RO_API RO_MUST_USE size_t ro_conv2d_packed_size(ro_ctx *ctx, const ro_call *call);

/* Packs w. Returns RO_ERR_UNSUPPORTED if a weight is not finite, or if packing gains nothing: for 1
 * x 1 kernels or few channels only integer weights are kept. */
RO_API RO_MUST_USE ro_status ro_conv2d_pack(ro_ctx *ctx, const ro_call *call, const float *w,
                                            void *packed);

/* Gives the bytes of ro_run. Returns RO_ERR_ARG if `packed` belongs to weights of another shape or
 * to another backend. */
RO_API RO_MUST_USE ro_status ro_conv2d_packed(ro_ctx *ctx, const ro_call *call, const float *x,
                                              const void *packed, float *y);

#ifdef __cplusplus
}
#endif
#endif
