/* Convolutions whose weights are not all finite, where some tap may lie outside the image: term by
 * term, those that SPEC.md section 12.1 has. */
#include "repops/cpu/conv_gather.h"

enum { TILE = 256 };

typedef struct {
    float total[TILE], sum[TILE];
} sums;

static void end_chunk(sums *x, int64_t count) {
    for (int64_t j = 0; j < count; j++) {
        x->total[j] = x->total[j] + x->sum[j];
        x->sum[j] = 0.0f;
    }
}

static void add_terms(const gather *g, const float *a, const float *b, int64_t steps, int64_t count,
                      sums *x) {
    for (int64_t c = 0; c < steps; c++)
        for (int64_t j = 0; j < count; j++)
            x->sum[j] = ro_fma(a[c], b[c * g->b_row + j * g->b_col], x->sum[j]);
}

void RO_NAME(ro_conv_exact)(const gather *g, const block *b, const piece *pieces, int64_t count,
                            int64_t group, int64_t col, int64_t cols) {
    place at = place_of(b, b->row);
    for (int64_t i = 0; i < b->m; i++, next_place(b, &at))
        for (int64_t j = col; j < col + cols; j += TILE) {
            const int64_t width = min_i64(TILE, col + cols - j);
            float *restrict out = out_pixel(g, b, &at) + group * g->n + j;
            sums x = {{0}, {0}};
            for (int64_t q = 0; q < count; q++) {
                const piece *p = &pieces[q];
                const float *a = pixel_of(g, &at, p);
                if (a)
                    add_terms(g, a + group * g->depth, conv_weight(g, group, p->k, j), p->steps,
                              width, &x);
                if (p->last)
                    end_chunk(&x, width);
            }
            for (int64_t c = 0; c < width; c++)
                out[c] = ro_canon(x.total[c]);
        }
}
