/* Tensors of 16 bits among layers: what layers keep for their backward pass, and parameters in 16
 * bits. Layers compute in f32, so the step's graph casts. */
#include <stdlib.h>

#include "repops/op_movement.h"
#include "verde/graph/tape.h"

/* `exact`: the f32 value that `narrow` was rounded from, or VD_NONE; `wide`: `narrow` as f32. */
struct vd_stored {
    vd_value exact, narrow, wide;
};

static bool put(vd_builder *b, struct vd_stored entry) {
    if (b->stored_count == b->stored_capacity) {
        const uint32_t capacity = b->stored_capacity ? 2 * b->stored_capacity : 64;
        struct vd_stored *grown = realloc(b->stored, capacity * sizeof *grown);
        if (!grown)
            return false;
        b->stored = grown;
        b->stored_capacity = capacity;
    }
    b->stored[b->stored_count++] = entry;
    return true;
}

static const struct vd_stored *find(const vd_builder *b, vd_value x) {
    for (uint32_t i = b->stored_count; i-- > 0;)
        if (b->stored[i].wide == x || b->stored[i].exact == x)
            return &b->stored[i];
    return NULL;
}

vd_value vd_cast(vd_builder *b, const char *name, vd_value x, int dtype) {
    return VD_EMIT(b, name, ((vd_op){RO_OP_CAST, {[RO_CAST_DTYPE] = dtype}, NULL}), x);
}

/* Casts `narrow` to f32. Gradients of the result go to `from`. */
static vd_value read_as_f32(vd_builder *b, const char *name, vd_value from, struct vd_stored s) {
    s.wide = vd_cast(b, name, s.narrow, RO_F32);
    vd_tape_put(b,
                (vd_record){.layer = VD_LAYER_CAST, .in = {from, VD_NONE, VD_NONE}, .out = s.wide});
    if (b->status == VD_OK && !put(b, s))
        vd_builder_fail(b, VD_ERR_LOCAL, "out of memory");
    return s.wide;
}

vd_value vd_widened(vd_builder *b, const char *name, vd_value x) {
    const bool wide = b->status != VD_OK || vd_shape_of(b, x)->dtype == RO_F32;
    return wide ? x : read_as_f32(b, name, x, (struct vd_stored){VD_NONE, x, VD_NONE});
}

vd_value vd_stored_of(vd_builder *b, const char *name, vd_value x) {
    char narrow[VD_NAME_SIZE];
    if (!b->stores_bf16 || b->status != VD_OK)
        return x;
    const struct vd_stored *known = find(b, x);
    if (known)
        return known->wide;
    snprintf(narrow, sizeof narrow, "%s_bf16", name);
    return read_as_f32(b, name, x, (struct vd_stored){x, vd_cast(b, narrow, x, RO_BF16), VD_NONE});
}

vd_value vd_read_again(vd_builder *b, const char *name, vd_value x) {
    const struct vd_stored *known = b->status == VD_OK ? find(b, x) : NULL;
    return known ? vd_cast(b, name, known->narrow, RO_F32) : x;
}

void vd_back_cast(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_accumulate(b, r->in[0], dy);
}
