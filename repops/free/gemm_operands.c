/* Packs the operands of a product (gemm.h): matrices, masked or with absent terms, or by the
 * product's own functions. */
#include "repops/free/gemm.h"

void RO_FREE_NAME(ro_free_admitted)(const free_gemm *g, int64_t index, int64_t row, int64_t rows,
                                    int64_t *first, int64_t *last) {
    const int64_t shifted = row + g->mask_first + g->mask_step * (index % g->inner);
    const int64_t window = g->window ? g->window : INT64_MAX / 2; /* none: more than all terms */
    const int64_t from = g->mask == RO_MASK_FROM_ROW ? shifted : shifted - window + 1;
    const int64_t to = g->mask == RO_MASK_UPTO_ROW ? shifted + rows : shifted + rows - 1 + window;
    *first = g->mask == RO_MASK_NONE ? 0 : min_i64(max_i64(0, from), g->k);
    *last = g->mask == RO_MASK_NONE ? g->k : min_i64(max_i64(0, to), g->k);
}

static const float *element(const free_gemm *g, const free_matrix *x, int64_t index, int64_t lane,
                            int64_t k) {
    return x->data + index / g->inner * x->outer + index % g->inner * x->inner +
           lane * x->lane_step + k * x->k_step;
}

static void pack_matrix(const free_gemm *g, const free_matrix *x, const free_part *part,
                        int64_t width, real *to) {
    const float *from = element(g, x, part->product, part->lane, part->k);
    const float *lanes[FREE_WIDEST];
    if (x->lane_step == 1) {
        RO_FREE_NAME(ro_free_pack_lines)(from, x->k_step, part, width, to);
        return;
    }
    for (int64_t i = 0; i < part->lanes; i++)
        lanes[i] = from + i * x->lane_step;
    RO_FREE_NAME(ro_free_pack_lanes)(lanes, part->lanes, part->steps, part->reverse, width, to);
}

/* Clears steps [from, to) of a packed lane. */
static void clear_steps(const free_part *part, int64_t from, int64_t to, real *lane) {
    for (int64_t p = max_i64(from, 0); p < min_i64(to, part->steps); p++)
        lane[(part->reverse ? part->steps - 1 - p : p) * FREE_PANEL] = 0;
}

/* Clears the steps that the mask excludes. */
static void mask_rows(const free_gemm *g, const free_part *part, real *to) {
    for (int64_t i = 0; i < part->lanes; i++) {
        int64_t first, last;
        RO_FREE_NAME(ro_free_admitted)(g, part->product, part->lane + i, 1, &first, &last);
        clear_steps(part, 0, first - part->k, to + i);
        clear_steps(part, last - part->k, part->steps, to + i);
    }
}

void RO_FREE_NAME(ro_free_pack_a)(const free_gemm *g, const free_part *part, real *to) {
    if (g->pack_a) {
        g->pack_a(g, part, to);
        return;
    }
    pack_matrix(g, &g->a, part, FREE_PANEL, to);
    if (g->mask != RO_MASK_NONE)
        mask_rows(g, part, to);
}

static const float *term(const free_gemm *g, int64_t index, int64_t row, int64_t k) {
    int64_t first, last;
    if (g->term)
        return g->term(g, index, row, k);
    RO_FREE_NAME(ro_free_admitted)(g, index, row, 1, &first, &last);
    return k >= first && k < last ? element(g, &g->a, index, row, k) : NULL;
}

/* Packs a part of a term by term, for ro_free_tile_exact. */
void RO_FREE_NAME(ro_free_pack_exact)(const free_gemm *g, const free_part *part, real *to) {
    for (int64_t p = 0; p < part->steps; p++)
        for (int64_t i = 0; i < FREE_PANEL; i++) {
            const float *x =
                i < part->lanes ? term(g, part->product, part->lane + i, part->k + p) : NULL;
            to[(part->reverse ? part->steps - 1 - p : p) * FREE_PANEL + i] =
                x ? (real)ro_canon(*x) : free_absent();
        }
}

void RO_FREE_NAME(ro_free_pack_b)(const free_gemm *g, const free_part *part, real *to) {
    if (g->pack_b)
        g->pack_b(g, part, to);
    else
        pack_matrix(g, &g->b, part, FREE_NR, to);
}
