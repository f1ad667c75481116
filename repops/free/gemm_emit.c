/* Results of products: sums times alpha, and their bounds. */
#include "repops/free/vector.h"

/* In any order |sum - exact| <= K u |a| |b| (Higham, 2002, section 3.1), and alpha adds u. */
RO_INLINE void finish(const real *sum, const double *norm, int64_t n, double of_sum, real alpha,
                      real *restrict y, double *restrict bound) {
    for (int64_t j = 0; j < n; j++)
        y[j] = sum[j] * alpha;
    if (norm)
        for (int64_t j = 0; j < n; j++)
            bound[j] = of_sum * __builtin_fabs((double)alpha) * norm[j];
}

/* If alpha is 0, the result is a zero with the sign of the sum, which may depend on the order (SPEC
 * 14.3). */
static void bound_zeros(const real *sum, const double *norm, int64_t n, double of_sum,
                        double *bound) {
    for (int64_t j = 0; j < n; j++)
        if (__builtin_fabs((double)sum[j]) <= 2 * of_sum * norm[j])
            bound[j] = 0x1p-1000;
}

void RO_FREE_NAME(ro_free_finish)(const free_results *r, int row, real *y, double *bound) {
    const real *sum = r->sum + row * FREE_NR;
    const double of_sum = r->norm ? r->of_sum[row] : 0;
    if (r->cols == FREE_NR)
        finish(sum, r->norm, FREE_NR, of_sum, r->alpha, y, bound);
    else
        finish(sum, r->norm, r->cols, of_sum, r->alpha, y, bound);
    if (r->norm && r->alpha == 0)
        bound_zeros(sum, r->norm, r->cols, of_sum, bound);
}

/* ---- directly from a tile ---- */

typedef float vs __attribute__((vector_size(FREE_LANES * sizeof(float))));
typedef int32_t vi __attribute__((vector_size(FREE_LANES * sizeof(float))));
typedef float vs_anywhere
    __attribute__((vector_size(FREE_LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

/* Rounds a line of a tile. The returned vector is not all 0 if there is a NaN. */
RO_INLINE vi round_line(const real *sum, vr alpha, float *out) {
    vi bad = {0};
    RO_UNROLL
    for (int h = 0; h < FREE_NR; h += FREE_LANES) {
        const vs y = __builtin_convertvector(load(sum + h) * alpha, vs);
        bad |= y != y;
        *(vs_anywhere *)(void *)(out + h) = y;
    }
    return bad;
}

#if defined(RO_IS_f64)
/* Rounds a line of a tile. The returned vector is not all 0 if there is a NaN, or if a call may be
 * close: if ro_emit_ends says so of the results of ro_free_finish. */
RO_INLINE vi search_line(const real *sum, const double *norm, vr of_row, vr alpha, float *out) {
    vi bad = {0};
    RO_UNROLL
    for (int h = 0; h < FREE_NR; h += FREE_LANES) {
        const vr y = load(sum + h) * alpha;
        const vr reach = broadcast(RO_EMIT_REACH) * (of_row * load(norm + h));
        const vs low = __builtin_convertvector(y - reach, vs);
        const vs high = __builtin_convertvector(y + reach, vs);
        bad |= ((vi)low ^ (vi)high) | (low != low);
        *(vs_anywhere *)(void *)(out + h) = low;
    }
    return bad;
}
#endif

/* Writes a line. The returned vector is not all 0 if emit_line has to write the line instead.
 * Padding after the last column has sums and norms of zero. */
RO_INLINE vi settle_line(ro_emitter *t, const free_results *r, int row) {
    const real *sum = r->sum + row * FREE_NR;
    float *out = t->out + r->first[row] + r->col, line[FREE_NR];
    float *to = r->cols == FREE_NR ? out : line;
    vi bad;
#if defined(RO_IS_f64)
    if (r->norm)
        bad = search_line(sum, r->norm, broadcast(r->of_sum[row] * __builtin_fabs(r->alpha)),
                          broadcast(r->alpha), to);
    else
#endif
        bad = round_line(sum, broadcast(r->alpha), to);
    if (to == line)
        memcpy(out, line, (size_t)r->cols * sizeof *out);
    return bad;
}

/* Emits a line with every check. Close calls are replayed at the end of ro_free_multiply, when
 * whole rows are known. */
static void emit_line(ro_emitter *t, const free_results *r, int row) {
    const int64_t first = r->first[row] + r->col;
    real y[FREE_NR];
    double bound[FREE_NR];
    RO_FREE_NAME(ro_free_finish)(r, row, y, bound);
    if (t->rounding->mode == RO_FREE_REPORT)
        ro_emit(t, first, y, bound, r->cols);
    else
        for (int j = 0; j < r->cols; j++)
            t->out[first + j] = ro_canon((float)y[j]);
}

static int is_zero(vi x) {
    const vi zero = {0};
    return memcmp(&x, &zero, sizeof x) == 0;
}

void RO_FREE_NAME(ro_free_emit_tile)(ro_emitter *t, const free_results *r) {
    vi bad = {0};
    for (int i = 0; i < r->rows; i++)
        bad |= settle_line(t, r, i);
    if (is_zero(bad))
        return;
    for (int i = 0; i < r->rows; i++)
        if (!is_zero(settle_line(t, r, i)))
            emit_line(t, r, i);
}
