/* Operands of linear layers that stay packed from call to call: weights that several batches meet,
 * and, of layers with fixed products (SPEC 3.5), numbers that several layers read; and weights of
 * convolutions. With few rows, most of the time of a fixed product goes into packing weights, and
 * of an FP32 product of 30 to some hundred rows a good part; with few columns, into packing x. */
#ifndef REPOPS_PACKED_H
#define REPOPS_PACKED_H

#include "repops/fused.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a layer's packed weights; 0: nothing would be gained (an FP32 layer of few rows, of more
 * than 1024 or of few weights), or the context keeps none (a GPU those of FP32, and all while
 * products are checked by repops/guard.h). FP32: 64 and 4 of each number of w, `out` rounded up to
 * at most 32. Fixed products: of each number of w, `in` rounded up to chunks of 256 and `out` to at
 * most 32: 8 bytes; with AVX2, AVX-512 VNNI, AMX or NEON's dot products 2 to 4 of 8 or 16 bits, 3
 * to 6 of 24. And at most 9 bytes for each chunk of each output, 24 of 8 bits. On a GPU, `in`
 * rounded up to 64 and `out` to at most 128: 2 bytes of 8 or 16 bits, 3 of 24, an eighth of a byte,
 * and 1 KiB in all. */
RO_API RO_MUST_USE size_t ro_linear_packed_size(ro_ctx *ctx, const ro_linear_layer *layer);

/* Packs w, as the layer has it, into memory of that size, where the context computes, aligned to 64
 * bytes, that overlaps nothing. It then takes the place of w for layers of the same in, out and
 * fixed_bits whose size is not 0, in contexts of the same backend of this process, and does not
 * change when w does. */
RO_API RO_MUST_USE ro_status ro_linear_pack(ro_ctx *ctx, const ro_linear_layer *layer,
                                            const float *w, void *packed);

/* The bytes of ro_linear. RO_ERR_ARG: `packed` is of another layer or backend; a device does not
 * look, and computes something else then. */
RO_API RO_MUST_USE ro_status ro_linear_packed(ro_ctx *ctx, const ro_linear_layer *layer,
                                              const float *x, const void *packed, const float *bias,
                                              float *z, float *y);

/* The operands of a layer. With transposed_x, x is [in, rows]: the gradient of weights is such a
 * layer, of the transposed x and dy. */
typedef struct {
    uint32_t size; /* sizeof(ro_linear_operands) */
    int transposed_x;
    const float *x, *w;
    const void *packed_x, *packed_w; /* where one is not NULL, x or w is not read */
} ro_linear_operands;

/* As ro_linear_packed_size and ro_linear_pack, of x of a fixed product, with `rows`, rounded up to
 * at most 32, in place of `out`. What is packed takes the place of x for layers of the same rows,
 * in and fixed_bits. */
RO_API RO_MUST_USE size_t ro_linear_packed_x_size(ro_ctx *ctx, const ro_linear_layer *layer);
RO_API RO_MUST_USE ro_status ro_linear_pack_x(ro_ctx *ctx, const ro_linear_layer *layer,
                                              const ro_linear_operands *in, void *packed);

/* As ro_linear_packed, where each operand may be packed or not. */
RO_API RO_MUST_USE ro_status ro_linear_of_packed(ro_ctx *ctx, const ro_linear_layer *layer,
                                                 const ro_linear_operands *in, const float *bias,
                                                 float *z, float *y);

/* The same of an application of operator conv2d, whose shapes are final. 0: nothing would be
 * gained, or the context keeps none. About the bytes of the weights, and a quarter or half of them
 * for integers, filled up to whole panels: weights of -128 to 127 multiply an x of integers that
 * are, 0 with them, within 255 of each other, as such, if no sum can exceed 2^24 in magnitude. */
RO_API RO_MUST_USE size_t ro_conv2d_packed_size(ro_ctx *ctx, const ro_call *call);

/* RO_ERR_UNSUPPORTED: a weight is not finite, or nothing is gained by keeping them: by 1 x 1, or of
 * few channels, only integers are kept. */
RO_API RO_MUST_USE ro_status ro_conv2d_pack(ro_ctx *ctx, const ro_call *call, const float *w,
                                            void *packed);

/* The bytes of ro_run. RO_ERR_ARG: `packed` is of other weights' shape or another backend. */
RO_API RO_MUST_USE ro_status ro_conv2d_packed(ro_ctx *ctx, const ro_call *call, const float *x,
                                              const void *packed, float *y);

#ifdef __cplusplus
}
#endif
#endif
