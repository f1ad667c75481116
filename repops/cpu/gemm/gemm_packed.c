/* Weights of FP32 layers that stay packed, as panels of the blocked product. */
#include "repops/cpu/gemm/gemm_packed.h"
#include "repops/cpu/gemm/gemm_pack.h"
#include "repops/cpu/gemm/gemm_place.h"

enum {
    HEAD = 64,        /* bytes before the panels */
    MANY_ROWS = 1024, /* with more rows, packing takes too small a part of the time */
};

typedef struct {
    const ro_packing *packing;
    int64_t in, out;
} packed_head;

/* Returns 0 if a product reads w in place, or if packing w takes little time beside the product. */
size_t RO_NAME(ro_gemm_packed_size)(const ro_linear_layer *l) {
    if (l->rows <= PLACE_ROWS || l->rows > MANY_ROWS || l->out < NR || l->in * l->out <= PLACE_B)
        return 0;
    return HEAD + (size_t)(ceil_div(l->out, NR) * NR * l->in) * sizeof(float);
}

const float *RO_NAME(ro_gemm_panels)(const void *packed) {
    return (const float *)(const void *)((const char *)packed + HEAD);
}

/* The weights and their layout before packing. */
typedef struct {
    const float *w;
    int64_t in, out, row, col;
    float *to;
} packing;

static void pack_panels(void *user, int64_t first, int64_t last, int worker) {
    const packing *p = user;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t cols = min_i64(NR, p->out - i * NR);
        pack(&(panel){p->w + i * NR * p->col, p->col, p->row, cols, NR, p->in},
             p->to + i * NR * p->in);
    }
}

void RO_NAME(ro_gemm_pack)(ro_ctx *ctx, const ro_linear_layer *l, const float *w, void *to) {
    const packed_head head = {&RO_NAME(ro_packing), l->in, l->out};
    const packing p = {w,
                       l->in,
                       l->out,
                       l->transposed ? 1 : l->out,
                       l->transposed ? l->in : 1,
                       (float *)(uintptr_t)RO_NAME(ro_gemm_panels)(to)};
    memset(to, 0, HEAD);
    memcpy(to, &head, sizeof head);
    ro_pool_for(ro_ctx_pool(ctx), ceil_div(l->out, NR), 1, pack_panels, (void *)(uintptr_t)&p);
}

int RO_NAME(ro_gemm_fits)(const ro_linear_layer *l, const void *packed) {
    packed_head head;
    memcpy(&head, packed, sizeof head);
    return head.packing == &RO_NAME(ro_packing) && head.in == l->in && head.out == l->out;
}
