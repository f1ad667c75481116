/* Operators of attention other than products, with bounds. SPEC.md section 8. */
#include "repops/free/probabilities.h"
#include "repops/ref/bounded.h"

static approx attn_exp(const ro_call *call, int64_t e, const ro_access *in) {
    const ro_ref_score p = ro_ref_score_of(call, e, in);
    const float m = loadf(in, 1, p.row * p.blocks + p.key / RO_ATTN_BLOCK);
    if (!p.admitted || is_minus_infinity(m))
        return ap_exact(0);
    const float s = loadf(in, 0, e);
    return attn_exp_of((operands){.a = &s, .p = ap_exact((real)m)}, 0, ro_plain);
}
RO_BOUNDED(attn_exp, .element = attn_exp)
RO_BOUNDED(attn_exp_at, .element = attn_exp)

static approx attn_prob(const ro_call *call, int64_t e, const ro_access *in) {
    const ro_ref_score p = ro_ref_score_of(call, e, in);
    const float m = loadf(in, 1, p.row);
    if (!p.admitted || is_minus_infinity(m))
        return ap_exact(0);
    const float s = loadf(in, 0, e);
    const operands o = {.a = &s, .p = ap_exact((real)m), .q = inverse(input_at(in, 2, p.row))};
    return softmax_of(o, 0, ro_plain);
}
RO_BOUNDED(attn_prob, .element = attn_prob)

static approx attn_dscore(const ro_call *call, int64_t e, const ro_access *in) {
    const ro_ref_score p = ro_ref_score_of(call, e, in);
    if (!p.admitted)
        return ap_exact(0);
    const float prob = loadf(in, 0, e), dp = loadf(in, 1, e);
    const operands o = {.a = &prob, .b = &dp, .p = input_at(in, 2, p.row)};
    return softmax_grad_of(o, 0, ro_plain);
}
RO_BOUNDED(attn_dscore, .element = attn_dscore)

/* ---- over blocks: a sum with weights exp(mc - max), as in repops/free/attention.c ---- */

enum { BLOCKS = RO_CRUMB_LOADS / 2 };

/* The blocks that are not skipped, and the largest maximum of any block. */
typedef struct {
    int64_t count;
    float greatest, mc[BLOCKS];
} walk;

static void load_walk(const ro_access *in, int64_t row, int64_t blocks, walk *w) {
    w->count = 0;
    w->greatest = 0;
    for (int64_t c = 0; c < blocks; c++) {
        w->mc[c] = loadf(in, 0, row * blocks + c);
        if (is_minus_infinity(w->mc[c]))
            continue;
        w->greatest = w->count == 0 ? w->mc[c] : ro_max(w->greatest, w->mc[c]);
        w->count++;
    }
}

/* Returns the logarithm of block c's weight. */
static real distance(const walk *w, int64_t c) {
    return w->count == 1 ? 0 : (real)w->mc[c] - (real)w->greatest;
}

static approx attn_l(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t blocks = last_dim(&call->input[0]);
    bounded_sum s = {0, 0, 0};
    walk w;
    load_walk(in, e, blocks, &w);
    for (int64_t c = 0; c < blocks; c++) {
        if (is_minus_infinity(w.mc[c]))
            continue;
        const real d = distance(&w, c), lc = (real)loadf(in, 1, e * blocks + c);
        add_excess(&s, free_exp(d, ro_plain) * lc, ap_abs(d) / (real)w.count);
    }
    return sum_of(&s, RO_EXP_ROUNDINGS + 1);
}
RO_BOUNDED(attn_l, .element = attn_l)

static approx attn_out(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t blocks = last_dim(&call->input[0]), size = last_dim(&call->output);
    const int64_t row = e / size;
    bounded_sum s = {0, 0, 0};
    double worst = 0;
    walk w;
    load_walk(in, row, blocks, &w);
    if (w.count == 0)
        return ap_exact(0);
    for (int64_t c = 0; c < blocks; c++) {
        if (is_minus_infinity(w.mc[c]))
            continue;
        const real d = distance(&w, c), weight = free_exp(d, ro_plain);
        worst = weight > 0 && ap_size(d) > worst ? ap_size(d) : worst;
        add_term(&s, weight * (real)loadf(in, 1, (row * blocks + c) * size + e % size));
    }
    const approx sum = sum_of(&s, RO_EXP_ROUNDINGS + 1 + worst);
    const approx over = inverse(input_at(in, 2, row));
    return ap_either_sign(ap_mul(sum, over), sum, over);
}
RO_BOUNDED(attn_out, .element = attn_out)
