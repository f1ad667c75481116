/* Checks the sums of a fixed product, and computes it again if they are wrong. */
#include "repops/cuda/gemm/fixed_guard.cuh"

#include <stdlib.h>

#include "repops/src/guard.h"

/* Sums of a product in device memory. After those of rows, [batch, chunk, line], come those of the
 * scales of a and of b, [batch, chunk] each. */
struct sums {
    int64_t chunks, rows; /* in all products: chunks, and sums of rows */
    int64_t count;        /* all sums that are compared: not columns */
    uint32_t *columns, *expected, *got, *found;
    size_t size;
};

static sums sums_of(const fixed_way *w, void *memory) {
    sums s = {};
    s.chunks = w->p.batch * ceil_div(w->p.k, RO_DOT_CHUNK);
    s.rows = s.chunks * w->lines_a, s.count = s.rows + 2 * s.chunks;
    s.columns = static_cast<uint32_t *>(memory);
    s.expected = s.columns + s.chunks * RO_DOT_CHUNK;
    s.got = s.expected + s.count, s.found = s.got + s.count;
    s.size = (size_t)(s.found + 1 - s.columns) * sizeof *s.found;
    return s;
}

static ro_status clear(ro_cuda *d, const fixed_way *w, const sums &s) {
    return ro_cuda_check(d, cudaMemsetAsync(s.columns, 0, s.size, d->stream), w->p.what);
}

static ro_status move(ro_cuda *d, void *to, const void *from, size_t size, cudaMemcpyKind kind) {
    const ro_status status =
        ro_cuda_check(d, cudaMemcpyAsync(to, from, size, kind, d->stream), "guard");
    return status == RO_OK ? ro_cuda_check(d, cudaStreamSynchronize(d->stream), "guard") : status;
}

static ro_status read(ro_cuda *d, void *to, const void *from, size_t size) {
    return move(d, to, from, size, cudaMemcpyDeviceToHost);
}

enum { COMPARE_THREADS = 256 };

static __global__ void __launch_bounds__(COMPARE_THREADS)
    compare_kernel(const uint32_t *x, const uint32_t *y, int64_t count, uint32_t *found) {
    const int64_t i = (int64_t)blockIdx.x * COMPARE_THREADS + threadIdx.x;
    if (i < count && x[i] != y[i])
        atomicMax(found, 1u);
}

/* ---- changes by a test ---- */

static ro_status alter_part(ro_cuda *d, const fixed_part &part) {
    void *copy = malloc(part.size);
    if (!copy)
        return ro_cuda_fail(d, RO_ERR_MEMORY, "cuda: no memory for packed numbers of a test");
    ro_status status = read(d, copy, part.data, part.size);
    if (status == RO_OK) {
        d->guard.alter(d->guard.user, part.place, copy, part.size);
        status = move(d, part.data, copy, part.size, cudaMemcpyHostToDevice);
    }
    free(copy);
    return status;
}

/* Sums are in registers, so a test cannot alter them directly. It gets words of 0, and flips the
 * bits that it sets there in the first sums of row 0. */
static fixed_flip flip_of(ro_cuda *d, const fixed_way *w) {
    fixed_flip flip = {};
    for (int64_t chunk = 0; chunk < ceil_div(w->p.k, RO_DOT_CHUNK); chunk++)
        for (int place = 0; place < w->places; place++) {
            uint32_t bits[FIXED_FLIPS] = {};
            d->guard.alter(d->guard.user, RO_GUARD_AT_SUMS, bits, sizeof bits);
            for (int n = 0; n < FIXED_FLIPS; n++)
                if (bits[n] && !flip.bits)
                    flip = {chunk, place, n, bits[n]};
        }
    return flip;
}

static ro_status alter(ro_cuda *d, const fixed_way *w, fixed_flip *flip) {
    fixed_part part[FIXED_PARTS];
    ro_status status = RO_OK;
    *flip = {};
    if (!d->guard.alter)
        return RO_OK;
    w->parts(part);
    for (int i = 0; i < FIXED_PARTS && status == RO_OK; i++)
        status = alter_part(d, part[i]);
    *flip = flip_of(d, w);
    return status;
}

/* ---- one computation ---- */

static ro_status compute(ro_cuda *d, fixed_way *w, const sums &s, uint32_t *found) {
    const int64_t chunks = ceil_div(w->p.k, RO_DOT_CHUNK);
    fixed_check check = {s.got, w->lines_a, chunks, {}};
    ro_status status = clear(d, w, s);
    if (status == RO_OK)
        status = w->pack(d);
    if (status == RO_OK)
        status = w->add_up(d, s.columns, s.expected);
    if (status == RO_OK)
        status = w->add_scales(d, s.expected + s.rows, s.expected + s.rows + s.chunks);
    if (status == RO_OK)
        status = alter(d, w, &check.flip);
    if (status == RO_OK)
        status = w->multiply(d, check);
    if (status == RO_OK)
        status = w->add_scales(d, s.got + s.rows, s.got + s.rows + s.chunks);
    if (status != RO_OK)
        return status;
    RO_LAUNCH(compare_kernel, ro_grid(ceil_div(s.count, COMPARE_THREADS)), dim3(COMPARE_THREADS), 0,
              d->stream, s.expected, s.got, s.count, s.found);
    status = ro_cuda_launched(d, w->p.what);
    return status == RO_OK ? read(d, found, s.found, sizeof *found) : status;
}

/* ---- what is wrong ---- */

/* The sums of the computation, and the sums expected of what is packed now. */
struct evidence {
    uint32_t *before, *after;
};

static int64_t first_other(const uint32_t *x, const uint32_t *y, int64_t count) {
    int64_t i = 0;
    while (i < count && x[i] == y[i])
        i++;
    return i;
}

/* Notes the rows of the chunk with sum `at` whose sums differ. */
static void note_rows(const fixed_way *w, const uint32_t *x, const uint32_t *y, int64_t at,
                      ro_guard_finding *f) {
    const int64_t first = at / w->lines_a * w->lines_a;
    for (int64_t i = 0; i < w->p.m; i++)
        if (x[first + i] != y[first + i] && f->rows++ == 0)
            f->row = i;
}

/* Decides what is wrong: packed numbers have changed if they now add up to something else. Both
 * memories of `e` have the layout of `s`. */
static void judge(const fixed_way *w, const sums &s, const evidence &e, ro_guard_finding *f) {
    const sums x = sums_of(w, e.before), y = sums_of(w, e.after);
    const int64_t at = first_other(x.expected, x.got, s.count);
    const int64_t chunks = ceil_div(w->p.k, RO_DOT_CHUNK);
    const bool of_scales = at >= s.rows;
    const int64_t number = of_scales ? (at - s.rows) % s.chunks : at / w->lines_a;
    const bool columns =
        first_other(x.columns, y.columns, s.chunks * RO_DOT_CHUNK) < s.chunks * RO_DOT_CHUNK;
    const bool rows = first_other(x.expected, y.expected, s.rows) < s.rows;
    *f = {};
    f->kind = of_scales || columns || rows ? RO_GUARD_PACKED : RO_GUARD_SUMS;
    f->product = number / chunks, f->chunk = number % chunks;
    f->row = f->col = -1;
    if (!of_scales && !columns)
        note_rows(w, x.expected, x.got, at, f);
}

static ro_status look(ro_cuda *d, fixed_way *w, const sums &s, const evidence &e,
                      ro_guard_finding *f) {
    ro_status status = read(d, e.before, s.columns, s.size);
    if (status == RO_OK)
        status = clear(d, w, s);
    if (status == RO_OK)
        status = w->add_up(d, s.columns, s.expected);
    if (status == RO_OK)
        status = read(d, e.after, s.columns, s.size);
    if (status == RO_OK)
        judge(w, s, e, f);
    return status;
}

static ro_status find(ro_cuda *d, fixed_way *w, const sums &s, ro_guard_finding *f) {
    const evidence e = {static_cast<uint32_t *>(malloc(s.size)),
                        static_cast<uint32_t *>(malloc(s.size))};
    const ro_status status = e.before && e.after
                                 ? look(d, w, s, e, f)
                                 : ro_cuda_fail(d, RO_ERR_MEMORY,
                                                "cuda: no memory for sums that do not "
                                                "fit");
    free(e.before);
    free(e.after);
    return status;
}

/* A row of the result, copied to the host before it is computed again; before = NULL: no row. */
struct row {
    float *before, *after;
    const float *from;
};

static ro_status keep_row(ro_cuda *d, const fixed_way *w, const ro_guard_finding &f, row *r) {
    const size_t size = (size_t)w->p.n * sizeof(float);
    if (f.kind != RO_GUARD_SUMS || f.row < 0 || !w->seen)
        return RO_OK;
    r->before = static_cast<float *>(malloc(2 * size));
    if (!r->before)
        return ro_cuda_fail(d, RO_ERR_MEMORY, "cuda: no memory for a row that does not fit");
    r->after = r->before + w->p.n;
    r->from = w->seen + f.product * w->seen_next + f.row * w->seen_row;
    return read(d, r->before, r->from, size);
}

/* Notes the columns in which the row has changed. There are none if rounding hid the difference. */
static ro_status find_columns(ro_cuda *d, const fixed_way *w, const row &r, ro_guard_finding *f) {
    if (!r.before)
        return RO_OK;
    const ro_status status = read(d, r.after, r.from, (size_t)w->p.n * sizeof(float));
    for (int64_t n = 0; status == RO_OK && n < w->p.n; n++)
        if (ro_to_bits(r.before[n]) != ro_to_bits(r.after[n]) && f->cols++ == 0)
            f->col = n;
    return status;
}

/* Tells where the whole product does not fit. */
static void tell(ro_cuda *d, const fixed_way *w, ro_guard_finding *f) {
    f->row += f->row < 0 ? 0 : w->first_row;
    d->guard.found(d->guard.user, f);
}

static ro_status end_twice(ro_cuda *d, fixed_way *w, const sums &s) {
    ro_guard_finding f;
    const ro_status status = find(d, w, s, &f);
    if (status != RO_OK)
        return status;
    f.again = 1;
    tell(d, w, &f);
    return ro_cuda_fail(d, RO_ERR_DEVICE, RO_GUARD_TWICE, (long long)f.product, (long long)f.chunk,
                        (long long)f.row, (long long)f.col);
}

static ro_status compute_again(ro_cuda *d, fixed_way *w, const sums &s) {
    ro_guard_finding f;
    uint32_t found = 0;
    row r = {};
    ro_status status = find(d, w, s, &f);
    if (status == RO_OK)
        status = keep_row(d, w, f, &r);
    if (status == RO_OK)
        status = compute(d, w, s, &found);
    if (status == RO_OK && !found)
        status = find_columns(d, w, r, &f);
    free(r.before);
    if (status != RO_OK)
        return status;
    tell(d, w, &f);
    return found ? end_twice(d, w, s) : RO_OK;
}

ro_status ro_fixed_guarded(ro_cuda *d, fixed_way *w) {
    uint32_t found = 0;
    void *memory;
    ro_status status = ro_cuda_alloc(d, sums_of(w, nullptr).size, &memory);
    if (status != RO_OK)
        return status;
    const sums s = sums_of(w, memory);
    status = compute(d, w, s, &found);
    if (status == RO_OK && found)
        status = compute_again(d, w, s);
    ro_cuda_free(d, memory);
    return status;
}
