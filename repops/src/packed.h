/* A backend does this for repops/packed.h. */
#ifndef RO_PACKED_H
#define RO_PACKED_H

#include "repops/packed.h"
#include "repops/src/jobs.h"

typedef struct {
    size_t (*size)(const ro_linear_layer *layer);
    void (*pack)(ro_ctx *ctx, const ro_linear_layer *layer, const float *w, void *to);
    int (*fits)(const ro_linear_layer *layer, const void *packed);
    ro_status (*run)(ro_ctx *ctx, const ro_linear_job *job, const void *packed); /* without w */
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
