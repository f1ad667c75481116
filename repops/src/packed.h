/* A backend does this for repops/packed.h. */
#ifndef RO_PACKED_H
#define RO_PACKED_H

#include "repops/packed.h"
#include "repops/src/jobs.h"

typedef enum { RO_PACKED_X, RO_PACKED_W } ro_packed_operand;

typedef struct {
    size_t (*size)(const ro_linear_layer *layer, ro_packed_operand side);
    void (*pack)(ro_ctx *ctx, const ro_linear_layer *layer, ro_packed_operand side,
                 const ro_linear_operands *in, void *to);
    int (*fits)(const ro_linear_layer *layer, ro_packed_operand side, const void *packed);
    /* The job's x and w are those of `in`. */
    ro_status (*run)(ro_ctx *ctx, const ro_linear_job *job, const ro_linear_operands *in);
} ro_packing;

extern const ro_packing ro_packing_scalar;
#if defined(__x86_64__)
extern const ro_packing ro_packing_avx2, ro_packing_avx512;
#elif defined(__aarch64__)
extern const ro_packing ro_packing_neon;
#endif

/* NULL: a device, which keeps none. */
const ro_packing *ro_ctx_packing(const ro_ctx *ctx);

#endif
