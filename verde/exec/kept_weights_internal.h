/* What files of kept_weights.h share. */
#ifndef VD_KEPT_WEIGHTS_INTERNAL_H
#define VD_KEPT_WEIGHTS_INTERNAL_H

#include "verde/exec/kept_weights.h"

/* Weights that are kept, packed or transposed. */
typedef struct {
    const void *w;         /* where the data are */
    ro_linear_layer layer; /* zeros: of a convolution, or transposed ones */
    ro_shape shape;        /* of their weights */
    void *packed;          /* NULL: they are not kept */
    size_t size;           /* of packed, in bytes */
} vd_kept_entry;

struct vd_kept_weights {
    vd_kept_entry *entry;
    uint32_t count, capacity;
    ro_ctx *memory; /* NULL: the host's */
    size_t bytes, most;
    uint64_t packings;
    const vd_graph *graph; /* of which the plan is; NULL: none is kept */
    vd_fuses fuses;
    uint32_t values;
    vd_plan plan;   /* as it was before anything ran */
    uint32_t *root; /* of each value, as alias.c found it */
};

void vd_kept_plan_drop(vd_kept_weights *kept);

/* Whether so many bytes may be kept; there is room for one more entry then. */
bool vd_kept_has_room(vd_kept_weights *kept, size_t size);

/* Weights [out, in] as [in, out]. NULL, with VD_OK: they are not kept, as on a device, whose
 * products read both alike. */
const float *vd_turned_weights(ro_ctx *ro, int64_t out, int64_t in, const void *w,
                               vd_kept_weights *kept, vd_status *status, vd_err *err);

/* Weights of the group's linear layer, packed. NULL, with VD_OK: they are not kept. */
const void *vd_packed_weights(const vd_fused *g, ro_ctx *ro, const void *w, vd_kept_weights *kept,
                              vd_status *status, vd_err *err);

#endif
