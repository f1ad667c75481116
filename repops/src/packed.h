/* What a backend implements for repops/packed.h. */
#ifndef RO_PACKED_H
#define RO_PACKED_H

#include "repops/packed.h"
#include "repops/src/jobs.h"

typedef struct {
    size_t (*size)(ro_ctx *ctx, const ro_linear_layer *layer, ro_packed_operand side);
    ro_status (*pack)(ro_ctx *ctx, const ro_linear_layer *layer, ro_packed_operand side,
                      const ro_linear_operands *in, void *to);
    int (*fits)(const ro_linear_layer *layer, ro_packed_operand side, const void *packed);
    /* x and w come from `in`, not from the job. */
    ro_status (*run)(ro_ctx *ctx, const ro_linear_job *job, const ro_linear_operands *in);
    const struct ro_conv_packing *conv; /* for conv2d; NULL: weights are not kept */
    int (*checks)(int bits);            /* can it check products (repops/guard.h)? */
} ro_packing;

/* The same for conv2d. `pack` returns 0 if a weight is not finite, or if packing gains nothing. */
typedef struct ro_conv_packing {
    size_t (*size)(const ro_call *call);
    int (*pack)(ro_ctx *ctx, const ro_call *call, const float *w, void *to);
    int (*fits)(const ro_call *call, const void *packed);
    ro_status (*run)(ro_ctx *ctx, const ro_call *call, const float *x, const void *packed,
                     float *y);
} ro_conv_packing;

extern const ro_conv_packing ro_conv_packing_scalar;
#if defined(__x86_64__)
extern const ro_conv_packing ro_conv_packing_avx2, ro_conv_packing_avx512;
#elif defined(__aarch64__)
extern const ro_conv_packing ro_conv_packing_neon;
#endif

extern const ro_packing ro_packing_scalar, ro_packing_device;
#if defined(__x86_64__)
extern const ro_packing ro_packing_avx2, ro_packing_avx512;
#elif defined(__aarch64__)
extern const ro_packing ro_packing_neon;
#endif

const ro_packing *ro_ctx_packing(const ro_ctx *ctx);

#endif
