/* Private to the files of kept_weights.h. */
#ifndef VD_KEPT_WEIGHTS_INTERNAL_H
#define VD_KEPT_WEIGHTS_INTERNAL_H

#include "verde/exec/kept_weights.h"

/* Weights that are kept, packed or transposed. */
typedef struct {
    const void *w;         /* address of the data */
    ro_linear_layer layer; /* zeros for a convolution, or transposed weights */
    ro_shape shape;        /* of a convolution's or transposed weights */
    void *packed;          /* NULL: packing them failed; not tried again */
    size_t size;           /* of packed, in bytes */
} vd_kept_entry;

struct vd_kept_weights {
    vd_kept_entry *entry;
    uint32_t count, capacity;
    ro_ctx *memory; /* device context; NULL: host memory */
    size_t bytes, most;
    uint64_t packings;
    const vd_graph *graph; /* graph of the plan; NULL: no plan is kept */
    vd_fuses fuses;
    uint32_t values;
    vd_plan plan;   /* before anything ran */
    uint32_t *root; /* of each value, as in alias.c */
};

void vd_kept_plan_drop(vd_kept_weights *kept);

/* Returns whether `size` more bytes may be kept; makes room for one more entry. */
bool vd_kept_has_room(vd_kept_weights *kept, size_t size);

/* Returns weights [out, in] as [in, out]. NULL, with VD_OK: they are not kept so, as on a device,
 * whose products read both forms equally fast. */
const float *vd_turned_weights(ro_ctx *ro, int64_t out, int64_t in, const void *w,
                               vd_kept_weights *kept, vd_status *status, vd_err *err);

/* Returns the packed weights of the group's linear layer. NULL, with VD_OK: they are not kept. */
const void *vd_packed_weights(const vd_fused *g, ro_ctx *ro, const void *w, vd_kept_weights *kept,
                              vd_status *status, vd_err *err);

#endif
