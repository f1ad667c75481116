/* Finds where the results of an item are stored, and emits its rows. */
#include "repops/free/gemm_item.h"

/* Neighbouring elements of the output that are emitted together. */
typedef struct {
    int64_t first, count;
    real y[RO_EMIT_MAX];
    double bound[RO_EMIT_MAX];
} batch;

static void flush(ro_emitter *e, batch *out) {
    if (out->count > 0)
        ro_emit(e, out->first, out->y, out->bound, out->count);
    out->count = 0;
}

static int64_t place_of(const free_gemm *g, int64_t index, int64_t row) {
    return g->place ? g->place(g, index, row) : (index * g->m + row) * g->n;
}

void RO_FREE_NAME(ro_free_find_ends)(const item *t, int64_t row, int64_t rows, ends *to) {
    const free_gemm *g = t->p->g;
    to->row = row;
    to->direct = ro_emit_is_direct(t->emitter) && g->alpha != 0 && g->k > 0;
    for (int64_t i = 0; i < rows; i++)
        to->first[i] = place_of(g, t->product, t->row + row + i) + t->col;
    for (int64_t i = 0; t->row_square && i < rows; i++)
        to->of_sum[i] =
            free_bound(((double)g->k + 2) * 0x1p-53 * __builtin_sqrt(t->row_square[row + i]));
}

free_results RO_FREE_NAME(ro_free_results_of)(const item *t, const ends *e, int64_t row,
                                              int64_t rows, int64_t col) {
    return (free_results){.sum = sums_of(t, row, col) + row % t->height * FREE_NR,
                          .rows = (int)rows,
                          .cols = (int)min_i64(FREE_NR, t->n - col),
                          .col = col,
                          .first = e->first + (row - e->row),
                          .of_sum = e->of_sum + (row - e->row),
                          .norm = t->col_square ? t->col_square + col : NULL,
                          .alpha = (real)t->p->g->alpha};
}

static void emit_row(const item *t, const ends *e, int64_t row, batch *out) {
    const int64_t first = e->first[row - e->row];
    for (int64_t j = 0; j < t->n; j += FREE_NR) {
        const free_results r = RO_FREE_NAME(ro_free_results_of)(t, e, row, 1, j);
        if (out->count + r.cols > RO_EMIT_MAX || out->first + out->count != first + j)
            flush(t->emitter, out);
        if (out->count == 0)
            out->first = first + j;
        RO_FREE_NAME(ro_free_finish)(&r, 0, out->y + out->count, out->bound + out->count);
        out->count += r.cols;
    }
}

void RO_FREE_NAME(ro_free_emit_rows)(const item *t, const ends *e, int64_t rows) {
    const ro_rounding *r = t->emitter->rounding;
    batch out;
    if (e->direct && (r->mode != RO_FREE_REPLAY || r->call_count == 0))
        return;
    out.first = out.count = 0;
    for (int64_t i = 0; i < rows; i++)
        if (!e->direct || ro_emit_is_called(t->emitter, e->first[i], t->n))
            emit_row(t, e, e->row + i, &out);
    flush(t->emitter, &out);
}
