/* This file finds the steps of optimizers, SPEC.md section 9. */
#include "repops/op_movement.h"
#include "repops/op_optimizer.h"
#include "verde/exec/fuse_match.h"

enum { STEP = 8 }; /* input of AdamW that only stochastic rounding reads */

/* ---- AdamW: from adamw_w ---- */

bool vd_match_adamw(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t w = m->sources + node;
    g->kind = VD_FUSED_ADAMW;
    const vd_node *n = vd_join(m, w, RO_OP_ADAMW_W, g);
    const uint32_t m_out = vd_input_of(m, n, 1), v_out = vd_input_of(m, n, 2);
    const vd_node *first = vd_join(m, m_out, RO_OP_ADAMW_M, g);
    const vd_node *second = vd_join(m, v_out, RO_OP_ADAMW_V, g);
    if (!first || !second)
        return false;
    const uint32_t gradient = vd_input_of(m, first, 1), clip = vd_input_of(m, first, 2);
    if (vd_input_of(m, second, 1) != gradient || vd_input_of(m, second, 2) != clip)
        return false;
    g->adamw = (ro_adamw_step){.size = sizeof(ro_adamw_step),
                               .count = ro_shape_numel(&n->shape),
                               .beta1 = ro_attr_to_f32(first->attr[RO_ADAMW_M_BETA]),
                               .beta2 = ro_attr_to_f32(second->attr[RO_ADAMW_V_BETA]),
                               .eps = ro_attr_to_f32(n->attr[RO_ADAMW_W_EPS]),
                               .decay = ro_attr_to_f32(n->attr[RO_ADAMW_W_DECAY])};
    vd_put_inputs(g, 8,
                  (uint32_t[]){vd_input_of(m, n, 0), vd_input_of(m, first, 0),
                               vd_input_of(m, second, 0), gradient, clip, vd_input_of(m, n, 3),
                               vd_input_of(m, n, 4), vd_input_of(m, n, 5)});
    vd_put_outputs(g, 3, (uint32_t[]){w, m_out, v_out});
    return true;
}

/* ---- AdamW with bf16 weights and moments: from adamw_w ---- */

/* Replaces input i of the group by the tensor of 16 bits that it was cast from. */
static bool join_widened(const vd_matcher *m, vd_fused *g, int i) {
    const vd_node *cast = vd_join(m, g->input[i], RO_OP_CAST, g);
    if (!cast || cast->attr[RO_CAST_DTYPE] != RO_F32)
        return false;
    g->input[i] = vd_input_of(m, cast, 0);
    return vd_shape_in(m, g->input[i])->dtype == RO_BF16;
}

/* Replaces output i by its value rounded to 16 bits. */
static bool join_rounded(const vd_matcher *m, vd_fused *g, int i) {
    const vd_reader rounds = {RO_OP_CAST_STOCHASTIC, g->output[i], VD_NO_GROUP, -1, 0};
    const uint32_t value = vd_find_reader(m, g->output[i] - m->sources + 1, &rounds);
    if (value == VD_NO_GROUP)
        return false;
    const vd_node *n = vd_join(m, value, RO_OP_CAST_STOCHASTIC, g);
    const uint64_t seed = (uint64_t)n->attr[RO_CAST_STOCHASTIC_SEED];
    const uint32_t step = vd_input_of(m, n, 1);
    if (i > 0 && (seed != g->rounding.seed || step != g->input[STEP]))
        return false;
    g->input[STEP] = step;
    g->rounding.seed = seed;
    g->rounding.stream[i] = (uint32_t)n->attr[RO_CAST_STOCHASTIC_STREAM];
    g->output[i] = value;
    return true;
}

bool vd_match_adamw_bf16(const vd_matcher *m, uint32_t node, vd_fused *g) {
    if (!vd_match_adamw(m, node, g))
        return false;
    g->kind = VD_FUSED_ADAMW_BF16;
    g->rounding.size = sizeof g->rounding;
    g->input_count = STEP + 1;
    for (int i = 0; i < 3; i++)
        if (!join_widened(m, g, i) || !join_rounded(m, g, i))
            return false;
    return true;
}

/* ---- SGD: from sgd_w or sgd_nesterov ---- */

bool vd_match_sgd(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t w = m->sources + node;
    const vd_node *n = &m->graph->stored[node];
    const bool nesterov = n->op == RO_OP_SGD_NESTEROV;
    g->kind = VD_FUSED_SGD;
    vd_join(m, w, n->op, g);
    const uint32_t m_out = vd_input_of(m, n, 1);
    const vd_node *first = vd_join(m, m_out, RO_OP_SGD_M, g);
    if (!first || vd_input_of(m, first, 2) != vd_input_of(m, n, 0))
        return false;
    const uint32_t gradient = vd_input_of(m, first, 1), clip = vd_input_of(m, first, 3);
    if (nesterov && (vd_input_of(m, n, 2) != gradient || vd_input_of(m, n, 3) != clip ||
                     n->attr[RO_SGD_MOMENTUM] != first->attr[RO_SGD_MOMENTUM] ||
                     n->attr[RO_SGD_DECAY] != first->attr[RO_SGD_DECAY]))
        return false;
    g->sgd = (ro_sgd_step){.size = sizeof(ro_sgd_step),
                           .count = ro_shape_numel(&n->shape),
                           .momentum = ro_attr_to_f32(first->attr[RO_SGD_MOMENTUM]),
                           .decay = ro_attr_to_f32(first->attr[RO_SGD_DECAY]),
                           .nesterov = nesterov};
    vd_put_inputs(g, 5,
                  (uint32_t[]){vd_input_of(m, n, 0), vd_input_of(m, first, 0), gradient, clip,
                               vd_input_of(m, n, nesterov ? 4 : 2)});
    vd_put_outputs(g, 2, (uint32_t[]){w, m_out});
    return true;
}
