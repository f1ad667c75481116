/* Weights of layers with fixed products that stay packed: all chunks of all columns, as the engine
 * packs them. */
#include "repops/cpu/gemm/fixed_packed.h"
#include "repops/src/packed.h"

static size_t packed_size(const ro_linear_layer *l) {
    const fixed_engine *e = RO_NAME(ro_fixed_engine)(l->fixed_bits, 0);
    const int64_t groups = ceil_div(l->out, e->b_lines) * ceil_div(l->in, RO_DOT_CHUNK);
    return (size_t)(PACKED_HEAD + groups * e->b_bytes +
                    groups * e->b_lines * (int64_t)sizeof(double));
}

typedef struct {
    fixed_packed *to;
    fixed_lines w;
} packing;

static void pack_groups(void *user, int64_t first, int64_t last, int worker) {
    const packing *p = user;
    const fixed_engine *e = p->to->engine;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t chunk = i / p->to->groups, group = i % p->to->groups;
        fixed_lines l = p->w;
        l.x += group * e->b_lines * l.line + chunk * RO_DOT_CHUNK * l.step;
        l.lines = min_i64(e->b_lines, p->w.lines - group * e->b_lines);
        l.steps = min_i64(RO_DOT_CHUNK, p->w.steps - chunk * RO_DOT_CHUNK);
        e->pack_b(&l, (int)p->to->bits, packed_group(p->to, chunk, group),
                  packed_powers(p->to, chunk, group));
    }
}

static void pack_layer(ro_ctx *ctx, const ro_linear_layer *l, const float *w, void *to) {
    enum { GRAIN = 8 }; /* groups that are worth a wake-up */
    const fixed_engine *e = RO_NAME(ro_fixed_engine)(l->fixed_bits, 0);
    packing p = {to, {w, l->transposed ? l->in : 1, l->transposed ? 1 : l->out, l->out, l->in}};
    const int64_t groups = ceil_div(l->out, e->b_lines), chunks = ceil_div(l->in, RO_DOT_CHUNK);
    *p.to = (fixed_packed){.engine = e,
                           .in = l->in,
                           .out = l->out,
                           .bits = l->fixed_bits,
                           .groups = groups,
                           .power_at = PACKED_HEAD + chunks * groups * e->b_bytes};
    ro_pool_for(ro_ctx_pool(ctx), chunks * groups, GRAIN, pack_groups, &p);
}

static int packed_fits(const ro_linear_layer *l, const void *packed) {
    const fixed_packed *p = packed;
    return p->engine == RO_NAME(ro_fixed_engine)(l->fixed_bits, 0) && p->bits == l->fixed_bits &&
           p->in == l->in && p->out == l->out;
}

const ro_packing RO_NAME(ro_packing) = {packed_size, pack_layer, packed_fits,
                                        RO_NAME(ro_linear_fixed)};
