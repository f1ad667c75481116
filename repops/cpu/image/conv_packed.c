/* Weights of conv2d that stay packed: as floats for the gathering kernel and, if all are integers
 * of 8 bits, also for conv_bytes.h. The gathering kernel can run any convolution. If another one is
 * faster for floats (conv.c), weights are kept only if they are integers. */
#include "repops/cpu/image/conv_bytes.h"
#include "repops/cpu/image/conv_gather.h"
#include "repops/src/packed.h"

enum { DEPTH_LEAST = 16, FILTERS_LEAST = 32, HEAD = 64 };

/* The head, which stands before the panels; integers follow these. */
typedef struct {
    const ro_packing *packing;
    int64_t k, n;
    int bytes; /* the weights are integers, too */
} packed_head;

static gather plan_of(const ro_conv *v, const float *x) {
    gather g = forward_gather(v, x);
    g.b_row = v->filters, g.b_col = 1, g.b_group = v->width;
    g.k = v->kernel[0] * v->kernel[1] * g.depth;
    return g;
}

/* Returns whether the gathering kernel is the fastest one for floats. */
static int keeps_floats(const ro_conv *v) {
    return v->groups == 1 && v->kernel[0] * v->kernel[1] > 1 && v->depth >= DEPTH_LEAST &&
           v->filters >= FILTERS_LEAST;
}

static int64_t floats_size(const gather *g) {
    return round_up(RO_NAME(ro_conv_packed_count)(g) * (int64_t)sizeof(float), HEAD);
}

static size_t conv_size(const ro_call *call) {
    const ro_conv v = ro_conv_of(call);
    const gather g = plan_of(&v, NULL);
    const int64_t bytes = RO_NAME(ro_conv_bytes_size)(&v);
    return keeps_floats(&v) || bytes ? (size_t)(HEAD + floats_size(&g) + bytes) : 0;
}

static float *panels_of(const void *packed) {
    return (float *)((uintptr_t)packed + HEAD);
}

static void *bytes_of(const gather *g, const void *packed) {
    return (char *)panels_of(packed) + floats_size(g);
}

static int conv_pack(ro_ctx *ctx, const ro_call *call, const float *w, void *to) {
    const ro_conv v = ro_conv_of(call);
    gather g = plan_of(&v, NULL);
    packed_head head = {&RO_NAME(ro_packing), g.k, g.n, 0};
    if (RO_NAME(ro_conv_bytes_size)(&v))
        head.bytes = RO_NAME(ro_conv_bytes_pack)(&v, w, bytes_of(&g, to));
    if (!head.bytes && !keeps_floats(&v))
        return 0;
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
    packed_head head;
    memcpy(&head, packed, sizeof head);
    int ran = 0;
    const ro_status status =
        head.bytes ? RO_NAME(ro_conv_bytes_run)(ctx, &v, x, bytes_of(&g, packed), y, &ran) : RO_OK;
    if (ran || status != RO_OK)
        return status;
    g.kept = panels_of(packed), g.out = y;
    return RO_NAME(ro_conv_gather_run)(ctx, &g);
}

const ro_conv_packing RO_NAME(ro_conv_packing) = {conv_size, conv_pack, conv_fits, conv_run};
