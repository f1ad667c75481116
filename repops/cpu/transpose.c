/* Permutations of dimensions, SPEC.md section 5: bits are kept. Dimensions that stay together are
 * first merged. If the last dimension then stays the last, whole rows are copied; otherwise tiles
 * of TILE x TILE elements go through the first-level cache, so that every cache line of the input
 * and of the output is touched once, whatever the strides. */
#include "repops/cpu/isa.h"

enum { TILE = 16 };

/* Dimensions of the output, with the strides of the input, in elements. */
typedef struct {
    int ndim;
    int64_t dim[RO_MAX_DIMS], from[RO_MAX_DIMS], to[RO_MAX_DIMS];
} plan;

/* Output dimension `dim` with stride `from` joins the one before it if they lie together. */
static void append(plan *p, int64_t dim, int64_t from) {
    const int last = p->ndim - 1;
    if (dim == 1)
        return;
    if (p->ndim > 0 && p->from[last] == dim * from) {
        p->dim[last] *= dim;
        p->from[last] = from;
        return;
    }
    p->dim[p->ndim] = dim;
    p->from[p->ndim++] = from;
}

static plan plan_of(const ro_call *call) {
    const ro_shape *x = &call->input[0];
    int64_t stride[RO_MAX_DIMS];
    plan p = {0};
    stride[x->ndim - 1] = 1;
    for (int i = x->ndim - 1; i > 0; i--)
        stride[i - 1] = stride[i] * x->dim[i];
    for (int i = 0; i < x->ndim; i++)
        append(&p, x->dim[call->attr[i]], stride[call->attr[i]]);
    if (p.ndim == 0) { /* one element */
        p.ndim = 1;
        p.dim[0] = p.from[0] = 1;
    }
    p.to[p.ndim - 1] = 1;
    for (int i = p.ndim - 1; i > 0; i--)
        p.to[i - 1] = p.to[i] * p.dim[i];
    return p;
}

/* Offsets in the input and the output of item `i` over the dimensions that are not in `skip`; the
 * last of them is the fastest. */
static void place(const plan *p, int64_t i, unsigned skip, int64_t *from, int64_t *to) {
    *from = *to = 0;
    for (int d = p->ndim - 1; d >= 0; d--) {
        if (skip >> d & 1)
            continue;
        *from += i % p->dim[d] * p->from[d];
        *to += i % p->dim[d] * p->to[d];
        i /= p->dim[d];
    }
}

/* ---- rows stay rows: an item is a part of a row ---- */

enum { PART = 4096 };

static int64_t parts_of(const plan *p) {
    return ceil_div(p->dim[p->ndim - 1], PART);
}

static void copy_rows(const ro_job *job, const plan *p, int64_t first, int64_t last) {
    const size_t size = ro_dtype_size(job->call->output.dtype);
    const int64_t cols = p->dim[p->ndim - 1], parts = parts_of(p);
    for (int64_t i = first; i < last; i++) {
        const int64_t at = i % parts * PART;
        int64_t from, to;
        place(p, i / parts, 1u << (p->ndim - 1), &from, &to);
        memcpy((char *)job->out + (size_t)(to + at) * size,
               (const char *)job->in[0] + (size_t)(from + at) * size,
               (size_t)min_i64(PART, cols - at) * size);
    }
}

/* ---- tiles: an item is a strip of TILE rows of the output ---- */

/* The input's last dimension, among those of the output. */
static int turned(const plan *p) {
    int d = 0;
    while (p->from[d] != 1)
        d++;
    return d;
}

/* out[r * to + c] = x[c * from + r]; constant sizes make it unrolled code. */
RO_INLINE void move_tile(const char *restrict x, int64_t from, char *restrict out, int64_t to,
                         int64_t rows, int64_t cols, size_t size) {
    char tile[TILE * TILE * 4] __attribute__((aligned(64)));
    for (int64_t c = 0; c < cols; c++)
        memcpy(tile + (size_t)c * TILE * size, x + (size_t)(c * from) * size, (size_t)rows * size);
    for (int64_t r = 0; r < rows; r++) {
        char row[TILE * 4] __attribute__((aligned(64)));
        for (int64_t c = 0; c < TILE; c++)
            memcpy(row + (size_t)c * size, tile + (size_t)(c * TILE + r) * size, size);
        memcpy(out + (size_t)(r * to) * size, row, (size_t)cols * size);
    }
}

RO_INLINE void move_strip(const char *x, int64_t from, char *out, int64_t to, int64_t rows,
                          int64_t cols, size_t size) {
    for (int64_t c = 0; c < cols; c += TILE) {
        const char *tile = x + (size_t)(c * from) * size;
        char *place_of = out + (size_t)c * size;
        if (rows == TILE && cols - c >= TILE)
            move_tile(tile, from, place_of, to, TILE, TILE, size);
        else
            move_tile(tile, from, place_of, to, rows, min_i64(TILE, cols - c), size);
    }
}

static void move_strips(const ro_job *job, const plan *p, int64_t first, int64_t last) {
    const size_t size = ro_dtype_size(job->call->output.dtype);
    const int end = p->ndim - 1, row = turned(p);
    const int64_t strips = ceil_div(p->dim[row], TILE);
    for (int64_t i = first; i < last; i++) {
        const int64_t r = i % strips * TILE, rows = min_i64(TILE, p->dim[row] - r);
        int64_t from, to;
        place(p, i / strips, 1u << end | 1u << row, &from, &to);
        const char *x = (const char *)job->in[0] + (size_t)(from + r) * size;
        char *out = (char *)job->out + (size_t)(to + r * p->to[row]) * size;
        switch (size) {
        case 4: move_strip(x, p->from[end], out, p->to[row], rows, p->dim[end], 4); break;
        case 2: move_strip(x, p->from[end], out, p->to[row], rows, p->dim[end], 2); break;
        default: move_strip(x, p->from[end], out, p->to[row], rows, p->dim[end], 1); break;
        }
    }
}

static int64_t transpose_items(const ro_call *call) {
    const plan p = plan_of(call);
    const int end = p.ndim - 1;
    const int64_t rows = ro_shape_numel(&call->output) / p.dim[end];
    if (p.from[end] == 1)
        return rows * parts_of(&p);
    return rows / p.dim[turned(&p)] * ceil_div(p.dim[turned(&p)], TILE);
}

static void transpose(const ro_job *job, int64_t first, int64_t last) {
    const plan p = plan_of(job->call);
    if (p.from[p.ndim - 1] == 1)
        copy_rows(job, &p, first, last);
    else
        move_strips(job, &p, first, last);
}

void RO_NAME(ro_add_transpose)(ro_table *table) {
    table->kernel[RO_OP_TRANSPOSE] = (ro_kernel){.range = transpose, .items = transpose_items};
}
