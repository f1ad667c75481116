/* Weights of conv2d that stay packed, as the gathering kernel packs them. Any convolution may run
 * by that kernel; where others are faster (conv.c), nothing is kept. */
#include "repops/cpu/image/conv_gather.h"
#include "repops/src/packed.h"

enum { DEPTH_LEAST = 16, FILTERS_LEAST = 32, HEAD = 64 };

/* What stands before the panels. */
typedef struct {
    const ro_packing *packing;
    int64_t k, n;
} packed_head;

static gather plan_of(const ro_conv *v, const float *x) {
    gather g = forward_gather(v, x);
    g.b_row = v->filters, g.b_col = 1, g.b_group = v->width;
    g.k = v->kernel[0] * v->kernel[1] * g.depth;
    return g;
}

static size_t conv_size(const ro_call *call) {
    const ro_conv v = ro_conv_of(call);
    const gather g = plan_of(&v, NULL);
    if (v.groups != 1 || v.kernel[0] * v.kernel[1] == 1 || v.depth < DEPTH_LEAST ||
        v.filters < FILTERS_LEAST)
        return 0;
    return HEAD + (size_t)RO_NAME(ro_conv_packed_count)(&g) * sizeof(float);
}

static float *panels_of(const void *packed) {
    return (float *)((uintptr_t)packed + HEAD);
}

static int conv_pack(ro_ctx *ctx, const ro_call *call, const float *w, void *to) {
    const ro_conv v = ro_conv_of(call);
    gather g = plan_of(&v, NULL);
    const packed_head head = {&RO_NAME(ro_packing), g.k, g.n};
    memcpy(to, &head, sizeof head);
    g.weights = w, g.packed = panels_of(to);
    RO_NAME(ro_conv_pack)(ro_ctx_pool(ctx), &g, 1);
    return !atomic_load(&g.not_finite);
}

static int conv_fits(const ro_call *call, const void *packed) {
    const ro_conv v = ro_conv_of(call);
    const gather g = plan_of(&v, NULL);
    packed_head head;
    memcpy(&head, packed, sizeof head);
    return head.packing == &RO_NAME(ro_packing) && head.k == g.k && head.n == g.n;
}

static ro_status conv_run(ro_ctx *ctx, const ro_call *call, const float *x, const void *packed,
                          float *y) {
    const ro_conv v = ro_conv_of(call);
    gather g = plan_of(&v, x);
    g.kept = panels_of(packed), g.out = y;
    return RO_NAME(ro_conv_gather_run)(ctx, &g);
}

const ro_conv_packing RO_NAME(ro_conv_packing) = {conv_size, conv_pack, conv_fits, conv_run};
