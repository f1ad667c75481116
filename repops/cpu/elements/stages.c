/* Stages of elements (repops/src/stages.h): a group of vectors passes all stages in registers. */
#include "repops/cpu/elements/wide.h"
#include "repops/src/stages.h"

#if defined(RO_ISA_scalar)
#define vf_div       ro_div
#define vf_cut_above ro_cut_above
#endif

/* Vectors in a group: enough to hide the latency of divisions. Each takes three registers, for v,
 * kept and o. */
#if defined(RO_ISA_avx2)
enum { GROUP = 4 };
#else
enum { GROUP = 8 };
#endif

/* Elements [i, i + n) of the arrays; n is used by groups of one vector only, where it is at most
 * VW. */
typedef struct {
    const float *x;
    float *out;
    int64_t i, n;
} group;

#define EACH(what)                                                                                 \
    do {                                                                                           \
        RO_UNROLL                                                                                  \
        for (int g = 0; g < vectors; g++) {                                                        \
            what;                                                                                  \
        }                                                                                          \
    } while (0)

RO_INLINE void pass(const int vectors, const ro_stage *stage, int count, const group *p) {
    const int64_t n = vectors > 1 ? VW : p->n;
    vf v[GROUP], kept[GROUP], o[GROUP];
    EACH(v[g] = kept[g] = o[g] = vf_load_n(p->x + p->i + g * VW, n));
    for (const ro_stage *s = stage; s < stage + count; s++) {
        if (s->source == RO_STAGE_MEMORY)
            EACH(o[g] = vf_load_n(s->at + p->i + g * VW, n));
        else if (s->source == RO_STAGE_KEPT)
            EACH(o[g] = kept[g]);
        else
            EACH(o[g] = vf_set1(s->number));
        switch (s->kind) {
        case RO_STAGE_ADD: EACH(v[g] = vf_add(v[g], o[g])); break;
        case RO_STAGE_SUB: EACH(v[g] = vf_sub(v[g], o[g])); break;
        case RO_STAGE_SUB_FROM: EACH(v[g] = vf_sub(o[g], v[g])); break;
        case RO_STAGE_MUL: EACH(v[g] = vf_mul(v[g], o[g])); break;
        case RO_STAGE_DIV: EACH(v[g] = vf_div(v[g], o[g])); break;
        case RO_STAGE_DIV_INTO: EACH(v[g] = vf_div(o[g], v[g])); break;
        case RO_STAGE_CUT_BELOW: EACH(v[g] = vf_cut_below(o[g], v[g])); break;
        case RO_STAGE_CUT_ABOVE: EACH(v[g] = vf_cut_above(o[g], v[g])); break;
        case RO_STAGE_RELU: EACH(v[g] = vf_relu(v[g])); break;
        case RO_STAGE_KEEP: EACH(kept[g] = v[g]); break;
        }
        if (s->canon)
            EACH(v[g] = vf_canon(v[g]));
    }
    EACH(vf_store_n(p->out + p->i + g * VW, v[g], n));
}

static void run_stages(const ro_stage *stage, int count, const float *x, int64_t n, float *out) {
    group p = {.x = x, .out = out};
    for (; n - p.i >= GROUP * VW; p.i += GROUP * VW)
        pass(GROUP, stage, count, &p);
    for (; p.i < n; p.i += VW) {
        p.n = min_i64(VW, n - p.i);
        pass(1, stage, count, &p);
    }
}
RO_FUSED(stages, run_stages)
