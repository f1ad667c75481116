/* This file packs weights once, and gives them to all products that read them. */
#include "verde/exec/kept_weights_internal.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "repops/device.h"
#include "repops/packed.h"
#include "repops/op_movement.h"
#include "verde/exec/estimate.h"
#include "verde/exec/memory.h"

enum { SHARE = 4 }; /* packed weights take at most 1 / SHARE of the memory */

static uint64_t memory_of_machine(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

static uint64_t room_under(const vd_program *program, uint64_t limit) {
    uint64_t needed;
    if (vd_estimate_memory(program, &needed, NULL) != VD_OK || needed >= limit)
        return 0;
    return limit - needed < limit / SHARE ? limit - needed : limit / SHARE;
}

uint64_t vd_kept_weights_room(const vd_program *program, uint64_t limit) {
    const uint64_t machine = memory_of_machine();
    return limit >= machine ? machine / SHARE : room_under(program, limit);
}

static uint64_t room_in_host(const vd_program *program) {
    struct rlimit limit;
    const bool limited = getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return vd_kept_weights_room(program, limited ? limit.rlim_cur : UINT64_MAX);
}

vd_kept_weights *vd_kept_weights_create(const vd_program *program, ro_ctx *memory) {
    vd_kept_weights *kept = calloc(1, sizeof *kept);
    if (!kept)
        return NULL;
    kept->memory = memory;
    kept->most =
        (size_t)(memory ? room_under(program, ro_ctx_available(memory)) : room_in_host(program));
    return kept;
}

void vd_kept_weights_destroy(vd_kept_weights *kept) {
    if (!kept)
        return;
    vd_kept_weights_forget(kept);
    vd_kept_plan_drop(kept);
    free(kept->entry);
    free(kept);
}

void vd_kept_weights_forget(vd_kept_weights *kept) {
    for (uint32_t i = 0; kept && i < kept->count; i++) {
        vd_memory_free(kept->memory, kept->entry[i].packed);
        kept->bytes -= kept->entry[i].size;
    }
    if (kept)
        kept->count = 0;
}

size_t vd_kept_weights_bytes(const vd_kept_weights *kept) {
    return kept->bytes;
}

uint64_t vd_kept_weights_packings(const vd_kept_weights *kept) {
    return kept->packings;
}

/* ---- weights as f32 ---- */

/* Returns the weights as f32; perhaps in *copy, which the caller frees. NULL on failure. */
static const float *widened(const vd_fused *g, ro_ctx *ro, const void *w, void **copy,
                            vd_err *err) {
    const int64_t count = g->linear.in * g->linear.out;
    const ro_shape from = {g->weight_dtype, 1, {count}};
    const ro_call cast = {RO_OP_CAST, 1, {[RO_CAST_DTYPE] = RO_F32}, &from, {RO_F32, 1, {count}}};
    *copy = NULL;
    if (g->weight_dtype == RO_F32)
        return w;
    *copy = vd_memory_alloc(ro, (size_t)count * sizeof(float));
    if (!*copy)
        return (void)vd_fail(err, VD_ERR_LOCAL, "out of memory for weights as f32"), NULL;
    if (ro_run(ro, &cast, &w, *copy) != RO_OK)
        return (void)vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(ro)), NULL;
    return *copy;
}

/* ---- packed weights ---- */

static bool is_of(const vd_kept_entry *e, const ro_linear_layer *layer, const void *w) {
    return e->w == w && e->layer.in == layer->in && e->layer.out == layer->out &&
           e->layer.transposed == layer->transposed && e->layer.fixed_bits == layer->fixed_bits;
}

bool vd_kept_has_room(vd_kept_weights *kept, size_t size) {
    if (size == 0 || size > kept->most - kept->bytes)
        return false;
    if (kept->count < kept->capacity)
        return true;
    const uint32_t capacity = kept->capacity ? 2 * kept->capacity : 64;
    vd_kept_entry *grown = realloc(kept->entry, capacity * sizeof *grown);
    if (!grown)
        return false;
    kept->entry = grown;
    kept->capacity = capacity;
    return true;
}

/* Returns NULL if there is no room. */
static void *pack(const vd_fused *g, ro_ctx *ro, const void *w, size_t size,
                  const vd_kept_weights *kept, vd_status *status, vd_err *err) {
    void *copy = NULL, *packed = vd_memory_alloc(kept->memory, size);
    if (!packed)
        return NULL;
    const float *from = widened(g, ro, w, &copy, err);
    *status = from ? VD_OK : VD_ERR_LOCAL;
    if (from && ro_linear_pack(ro, &g->linear, from, packed) != RO_OK)
        *status = vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(ro));
    vd_memory_free(ro, copy);
    if (*status == VD_OK)
        return packed;
    vd_memory_free(kept->memory, packed);
    return NULL;
}

const void *vd_packed_weights(const vd_fused *g, ro_ctx *ro, const void *w, vd_kept_weights *kept,
                              vd_status *status, vd_err *err) {
    const size_t size = ro_linear_packed_size(ro, &g->linear);
    for (uint32_t i = 0; size > 0 && i < kept->count; i++)
        if (is_of(&kept->entry[i], &g->linear, w))
            return kept->entry[i].packed;
    void *packed = vd_kept_has_room(kept, size) ? pack(g, ro, w, size, kept, status, err) : NULL;
    if (packed) {
        kept->entry[kept->count++] =
            (vd_kept_entry){.w = w, .layer = g->linear, .packed = packed, .size = size};
        kept->bytes += size;
        kept->packings++;
    }
    return packed;
}

/* ---- operands within a step ---- */

void vd_kept_operand_drop(vd_kept_operand *p, vd_kept_weights *kept) {
    if (p->packed)
        kept->bytes -= p->size;
    vd_memory_free(kept->memory, p->packed);
    p->packed = NULL;
}

/* Counts a read. Packs the operand if more reads follow and there is room. */
static vd_status read_kept(const vd_fused *g, ro_ctx *ro, bool is_x, const ro_linear_operands *in,
                           vd_kept_operand *p, vd_kept_weights *kept, vd_err *err) {
    p->left -= p->left > 0;
    if (p->packed || p->left == 0)
        return VD_OK;
    const size_t size =
        is_x ? ro_linear_packed_x_size(ro, &g->linear) : ro_linear_packed_size(ro, &g->linear);
    if (size == 0 || size > kept->most - kept->bytes)
        return VD_OK;
    p->packed = vd_memory_alloc(kept->memory, size);
    if (!p->packed)
        return VD_OK;
    p->size = size, kept->bytes += size, kept->packings++;
    const ro_status status = is_x ? ro_linear_pack_x(ro, &g->linear, in, p->packed)
                                  : ro_linear_pack(ro, &g->linear, in->w, p->packed);
    return status == RO_OK ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(ro));
}

/* ---- the layer ---- */

/* Sets the operands, packed where they are kept. */
static vd_status bind_operands(const vd_fused *g, const vd_fused_memory *at, ro_ctx *ro,
                               vd_kept_weights *kept, ro_linear_operands *in, vd_err *err) {
    vd_kept_operand *const *p = at->operand;
    vd_status status = VD_OK;
    *in = (ro_linear_operands){
        .size = sizeof *in, .transposed_x = g->transposed_x, .x = at->in[0], .w = at->in[1]};
    if (g->frozen && kept)
        in->packed_w = vd_packed_weights(g, ro, at->in[1], kept, &status, err);
    else if (p[1])
        status = read_kept(g, ro, false, in, p[1], kept, err);
    if (status == VD_OK && p[0])
        status = read_kept(g, ro, true, in, p[0], kept, err);
    if (p[0])
        in->packed_x = p[0]->packed;
    if (p[1] && !in->packed_w)
        in->packed_w = p[1]->packed;
    return status;
}

/* Sets in->w to unpacked weights as f32: the kept transposed ones, if any, or else the original. */
static vd_status bind_weights(const vd_fused *g, ro_ctx *ro, vd_kept_weights *kept, const void *w,
                              ro_linear_operands *in, ro_linear_layer *layer, void **copy,
                              vd_err *err) {
    vd_status status = VD_OK;
    const float *turned = g->turned && kept ? vd_turned_weights(ro, g->linear.out, g->linear.in, w,
                                                                kept, &status, err)
                                            : NULL;
    layer->transposed = turned ? 0 : layer->transposed;
    if (status == VD_OK)
        in->w = turned ? turned : widened(g, ro, w, copy, err);
    return in->w && status == VD_OK ? VD_OK : VD_ERR_LOCAL;
}

static ro_status run_layer(const vd_fused *g, const ro_linear_layer *layer,
                           const vd_fused_memory *at, ro_ctx *ro, const ro_linear_operands *in) {
    const float *bias = g->input_count > 2 ? at->in[2] : NULL;
    float *y = at->out[0], *z = g->output_count > 1 ? at->out[1] : NULL;
    return in->packed_x || in->packed_w || in->transposed_x
               ? ro_linear_of_packed(ro, layer, in, bias, z, y)
               : ro_linear(ro, layer, in->x, in->w, bias, z, y);
}

vd_status vd_linear_run(const vd_fused *g, const vd_fused_memory *at, ro_ctx *ro,
                        vd_kept_weights *kept, vd_err *err) {
    ro_linear_operands in;
    void *copy = NULL;
    vd_status status = bind_operands(g, at, ro, kept, &in, err);
    ro_linear_layer layer = g->linear;
    if (status == VD_OK && !in.packed_w)
        status = bind_weights(g, ro, kept, at->in[1], &in, &layer, &copy, err);
    const ro_status ran = status == VD_OK ? run_layer(g, &layer, at, ro, &in) : RO_OK;
    vd_memory_free(ro, copy);
    for (int i = 0; i < 2; i++)
        if (at->operand[i] && at->operand[i]->left == 0)
            vd_kept_operand_drop(at->operand[i], kept);
    return ran == RO_OK ? status : vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(ro));
}
