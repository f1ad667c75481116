/* The epilogue of ro_linear, bias and activation (SPEC.md section 3.1), for rows that were written
 * just before and are still in a cache. */
#include "repops/cpu/elements/functions.h"
#include "repops/cpu/gemm/gemm.h"

/* Defines an activation on vectors. */
#define ACTIVATION(name)                                                                           \
    RO_INLINE wide name(wide x, constants s) {                                                     \
        (void)s;                                                                                   \
        return wide_canon(wide_##name(x));                                                         \
    }
ACTIVATION(relu)
ACTIVATION(gelu)
ACTIVATION(gelu_erf)
ACTIVATION(silu)
#undef ACTIVATION

/* Rows [i, i + rows) and columns [j, j + cols) of g. */
typedef struct {
    const gemm *g;
    int64_t i, rows, j, cols;
    const float *bias; /* NULL: there is none, or it was added before */
} place;

RO_INLINE void add(float *c, const float *bias, int64_t cols) {
    int64_t e = 0;
    for (; e + VW <= cols; e += VW)
        vf_store(c + e, vf_canon(vf_add(vf_load(c + e), vf_load(bias + e))));
    if (e < cols)
        vf_store_n(c + e,
                   vf_canon(vf_add(vf_load_n(c + e, cols - e), vf_load_n(bias + e, cols - e))),
                   cols - e);
}

/* Ends rows; f is the activation, or NULL if there is none. */
RO_INLINE void end(function1 *f, const place *p) {
    const gemm *g = p->g;
    for (int64_t r = p->i; r < p->i + p->rows; r++) {
        float *c = g->c + r * g->c_row + p->j, *y = g->y + r * g->c_row + p->j;
        if (p->bias)
            add(c, p->bias + p->j, p->cols);
        if (f)
            map(f, (constants){0}, c, p->cols, y);
    }
}

static void end_place(const place *p) {
    switch (p->g->activation) {
    case RO_ACTIVATION_NONE: end(NULL, p); break;
    case RO_ACTIVATION_RELU: end(relu, p); break;
    case RO_ACTIVATION_GELU: end(gelu, p); break;
    case RO_ACTIVATION_GELU_ERF: end(gelu_erf, p); break;
    case RO_ACTIVATION_SILU: end(silu, p); break;
    }
}

void RO_NAME(ro_gemm_end)(const gemm *g, int64_t i, int64_t rows, int64_t j, int64_t cols) {
    end_place(&(place){g, i, rows, j, cols, g->bias});
}

void RO_NAME(ro_gemm_activate)(const gemm *g, int64_t i, int64_t rows, int64_t j, int64_t cols) {
    if (g->activation != RO_ACTIVATION_NONE && !ends_in_tiles(g))
        end_place(&(place){g, i, rows, j, cols, NULL});
}
