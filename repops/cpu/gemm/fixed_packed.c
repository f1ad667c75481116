/* Packs whole operands of fixed products the way the engine needs: for one product, or to stay
 * packed (repops/packed.h). */
#include "repops/cpu/gemm/fixed_packed.h"
#include "repops/cpu/gemm/fixed_check.h"
#include "repops/cpu/gemm/gemm_packed.h"

/* ---- any operand ---- */

static fixed_packed layout(const fixed_engine *e, ro_packed_operand side, int64_t lines,
                           int64_t steps) {
    fixed_packed p = {.engine = e, .lines = lines, .steps = steps, .side = side};
    p.group_lines = side == RO_PACKED_X ? e->a_lines : e->b_lines;
    p.group_bytes = side == RO_PACKED_X ? e->a_bytes : e->b_bytes;
    p.groups = ceil_div(lines, p.group_lines);
    p.power_at = PACKED_HEAD + ceil_div(steps, RO_DOT_CHUNK) * p.groups * p.group_bytes;
    return p;
}

int64_t RO_NAME(ro_fixed_packed_size)(const fixed_engine *engine, ro_packed_operand side,
                                      int64_t lines, int64_t steps) {
    const fixed_packed p = layout(engine, side, lines, steps);
    const int64_t group = p.group_lines * (int64_t)sizeof(double) + (int64_t)sizeof(uint32_t);
    return p.power_at + ceil_div(steps, RO_DOT_CHUNK) * p.groups * group;
}

typedef struct {
    fixed_packed *to;
    fixed_lines all;
} packing;

static void pack_groups(void *user, int64_t first, int64_t last, int worker) {
    const packing *p = user;
    const fixed_packed *to = p->to;
    const fixed_engine *e = to->engine;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t chunk = i / to->groups, group = i % to->groups;
        fixed_lines l = p->all;
        l.x += group * to->group_lines * l.line + chunk * RO_DOT_CHUNK * l.step;
        l.lines = min_i64(to->group_lines, l.lines - group * to->group_lines);
        l.steps = min_i64(RO_DOT_CHUNK, l.steps - chunk * RO_DOT_CHUNK);
        (to->side == RO_PACKED_X ? e->pack_a : e->pack_b)(
            &l, to->bits, packed_group(to, chunk, group), packed_powers(to, chunk, group));
        if (to->adds)
            *packed_sum(to, chunk, group) = RO_NAME(ro_fixed_packed_sum)(
                e, to->side, &l, to->bits, packed_group(to, chunk, group),
                packed_powers(to, chunk, group));
    }
}

const fixed_packed *RO_NAME(ro_fixed_pack)(ro_ctx *ctx, const fixed_engine *engine,
                                           ro_packed_operand side, const fixed_lines *all, int bits,
                                           void *to) {
    enum { PER_US = 1 << 12, PIECE = 1 << 14 }; /* numbers */
    packing p = {to, *all};
    *p.to = layout(engine, side, all->lines, all->steps);
    p.to->bits = bits;
    p.to->adds = engine->adding && ro_ctx_guarding(ctx);
    const double us = (double)all->lines * (double)all->steps / PER_US;
    const int64_t count = ceil_div(all->steps, RO_DOT_CHUNK) * p.to->groups;
    const int64_t grain = ceil_div(PIECE, RO_DOT_CHUNK * p.to->group_lines);
    ro_pool_for(ro_ctx_pool(ctx), count, ro_pool_threads(ro_ctx_pool(ctx), us) == 1 ? count : grain,
                pack_groups, &p);
    return to;
}

/* ---- operands of a layer: with FP32, only its weights ---- */

static fixed_lines lines_of_layer(const ro_linear_layer *l, ro_packed_operand side,
                                  const ro_linear_operands *in) {
    const int turned = side == RO_PACKED_X ? in->transposed_x != 0 : l->transposed == 0;
    const int64_t lines = side == RO_PACKED_X ? l->rows : l->out;
    return (fixed_lines){side == RO_PACKED_X ? in->x : in->w,
                         turned ? 1 : l->in,
                         turned ? lines : 1,
                         lines,
                         l->in,
                         NULL};
}

static size_t packed_size(ro_ctx *ctx, const ro_linear_layer *l, ro_packed_operand side) {
    (void)ctx;
    if (!l->fixed_bits)
        return side == RO_PACKED_W ? RO_NAME(ro_gemm_packed_size)(l) : 0;
    return (size_t)RO_NAME(ro_fixed_packed_size)(RO_NAME(ro_fixed_engine)(l->fixed_bits, 0), side,
                                                 side == RO_PACKED_X ? l->rows : l->out, l->in);
}

static ro_status pack_layer(ro_ctx *ctx, const ro_linear_layer *l, ro_packed_operand side,
                            const ro_linear_operands *in, void *to) {
    const fixed_lines all = lines_of_layer(l, side, in);
    if (!l->fixed_bits)
        RO_NAME(ro_gemm_pack)(ctx, l, in->w, to);
    else
        RO_NAME(ro_fixed_pack)
    (ctx, RO_NAME(ro_fixed_engine)(l->fixed_bits, 0), side, &all, l->fixed_bits, to);
    return RO_OK;
}

static int packed_fits(const ro_linear_layer *l, ro_packed_operand side, const void *packed) {
    const fixed_packed *p = packed;
    if (!l->fixed_bits)
        return side == RO_PACKED_W && RO_NAME(ro_gemm_fits)(l, packed);
    return p->engine == RO_NAME(ro_fixed_engine)(l->fixed_bits, 0) && p->bits == l->fixed_bits &&
           p->side == side && p->steps == l->in &&
           p->lines == (side == RO_PACKED_X ? l->rows : l->out);
}

static int checks(int bits) {
    return RO_NAME(ro_fixed_engine)(bits, 0)->adding != NULL;
}

static ro_status run_layer(ro_ctx *ctx, const ro_linear_job *job, const ro_linear_operands *in) {
    return job->layer.fixed_bits ? RO_NAME(ro_linear_of_packed)(ctx, job, in)
                                 : RO_NAME(ro_linear_kept)(ctx, job, in);
}

const ro_packing RO_NAME(ro_packing) = {
    packed_size, pack_layer, packed_fits, run_layer, &RO_NAME(ro_conv_packing), checks};
