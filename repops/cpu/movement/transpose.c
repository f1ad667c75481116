/* Permutations of dimensions, SPEC.md section 5. Bits are kept. Dimensions that stay together are
 * first merged. If the last dimension then stays last, whole rows are copied; otherwise tiles of
 * TILE x TILE elements go through the L1 cache, so that every cache line of the input and of the
 * output is touched once, whatever the strides. */
#include "repops/cpu/gemm/gemm_pack.h"
#include "repops/cpu/movement/weave.h"
#include "repops/cpu/rows/stream.h"
#include "repops/op_movement.h"

enum { TILE = 16 };

/* The output's dimensions, with strides of the input (`from`) and of the output (`to`), in
 * elements. */
typedef struct {
    int ndim;
    int64_t dim[RO_MAX_DIMS], from[RO_MAX_DIMS], to[RO_MAX_DIMS];
} transpose_plan;

/* Appends output dimension `dim` with stride `from`, or merges it with the one before if both are
 * contiguous. */
static void append(transpose_plan *p, int64_t dim, int64_t from) {
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

static transpose_plan plan_of(const ro_call *call) {
    const ro_shape *x = &call->input[0];
    int64_t stride[RO_MAX_DIMS];
    transpose_plan p = {0};
    stride[x->ndim - 1] = 1;
    for (int i = x->ndim - 1; i > 0; i--)
        stride[i - 1] = stride[i] * x->dim[i];
    for (int i = 0; i < x->ndim; i++)
        append(&p, x->dim[call->attr[RO_TRANSPOSE_D0 + i]],
               stride[call->attr[RO_TRANSPOSE_D0 + i]]);
    if (p.ndim == 0) { /* the tensor has one element */
        p.ndim = 1;
        p.dim[0] = p.from[0] = 1;
    }
    p.to[p.ndim - 1] = 1;
    for (int i = p.ndim - 1; i > 0; i--)
        p.to[i - 1] = p.to[i] * p.dim[i];
    return p;
}

/* An index over those dimensions of a plan that are not in `skip`, the last one fastest, and the
 * offset of its element. */
typedef struct {
    const transpose_plan *p;
    unsigned skip;
    int64_t index[RO_MAX_DIMS], from, to;
} walker;

static walker walker_at(const transpose_plan *p, unsigned skip, int64_t i) {
    walker w = {.p = p, .skip = skip};
    for (int d = p->ndim - 1; d >= 0; d--) {
        if (skip >> d & 1)
            continue;
        w.index[d] = i % p->dim[d];
        w.from += w.index[d] * p->from[d];
        w.to += w.index[d] * p->to[d];
        i /= p->dim[d];
    }
    return w;
}

static void advance(walker *w) {
    const transpose_plan *p = w->p;
    for (int d = p->ndim - 1; d >= 0; d--) {
        if (w->skip >> d & 1)
            continue;
        w->from += p->from[d];
        w->to += p->to[d];
        if (++w->index[d] < p->dim[d])
            return;
        w->from -= p->dim[d] * p->from[d];
        w->to -= p->dim[d] * p->to[d];
        w->index[d] = 0;
    }
}

/* ---- rows stay rows: an item is a part of a row ---- */

enum { PART = 4096 };

static int64_t parts_of(const transpose_plan *p) {
    return ceil_div(p->dim[p->ndim - 1], PART);
}

RO_INLINE void copy_row(char *restrict to, const char *restrict from, size_t bytes) {
    switch (bytes) { /* constant sizes, as a call of memcpy would cost more than the copy */
    case 8: memcpy(to, from, 8); break;
    case 16: memcpy(to, from, 16); break;
    case 32: memcpy(to, from, 32); break;
    default: memcpy(to, from, bytes); break;
    }
}

static void copy_rows(const ro_job *job, const transpose_plan *p, int64_t first, int64_t last) {
    const size_t size = ro_dtype_size(job->call->output.dtype);
    const int64_t cols = p->dim[p->ndim - 1], parts = parts_of(p);
    walker w = walker_at(p, 1u << (p->ndim - 1), first / parts);
    int64_t at = first % parts * PART;
    for (int64_t i = first; i < last; i++) {
        copy_row((char *)job->out + (size_t)(w.to + at) * size,
                 (const char *)job->in[0] + (size_t)(w.from + at) * size,
                 (size_t)min_i64(PART, cols - at) * size);
        at += PART;
        if (at >= cols) {
            at = 0;
            advance(&w);
        }
    }
}

/* ---- columns become rows: an item is ROWS x COLS elements of a matrix in the output ---- */

enum { ROWS = 512, COLS = 64 };

/* Returns which output dimension is the last one of the input. It and the last output dimension are
 * the matrix to transpose. */
static int turned(const transpose_plan *p) {
    int d = 0;
    while (d < p->ndim - 1 && p->from[d] != 1)
        d++;
    return d;
}

/* Computes out[r * to + c] = x[c * from + r]. */
typedef struct {
    const char *restrict x;
    char *restrict out;
    int64_t from, to, rows, cols;
    int stream; /* store past the caches, in whole lines, as no cache will keep the output */
} transpose_block;

/* Moves a tile; constant sizes unroll its loops. Prefetches the next tile of these columns and
 * rows, which is too far away for the processor's prefetchers. */
RO_INLINE void move_tile(const char *restrict x, int64_t from, char *restrict out, int64_t to,
                         size_t size) {
    char tile[TILE * TILE * 4] __attribute__((aligned(64)));
    for (int64_t c = 0; c < TILE; c++)
        memcpy(tile + (size_t)c * TILE * size, x + (size_t)(c * from) * size, TILE * size);
    for (int64_t c = 0; c < TILE; c++)
        __builtin_prefetch(x + (size_t)((c + TILE) * from) * size);
    for (int64_t r = 0; r < TILE; r++) {
        char row[TILE * 4] __attribute__((aligned(64)));
        for (int64_t c = 0; c < TILE; c++)
            memcpy(row + (size_t)c * size, tile + (size_t)(c * TILE + r) * size, size);
        memcpy(out + (size_t)(r * to) * size, row, TILE * size);
        __builtin_prefetch(out + (size_t)(r * to + TILE) * size, 1);
    }
}

/* Moves rows [r, r + rows) and columns [c, c + cols) element by element, along the longer side. */
RO_INLINE void move_rest(const transpose_block *b, int64_t r, int64_t rows, int64_t c, int64_t cols,
                         size_t size) {
    const char *x = b->x + (size_t)(c * b->from + r) * size;
    char *out = b->out + (size_t)(r * b->to + c) * size;
    for (int64_t i = 0; i < (rows > cols ? rows : 0); i++)
        for (int64_t j = 0; j < cols; j++)
            memcpy(out + (size_t)(i * b->to + j) * size, x + (size_t)(j * b->from + i) * size,
                   size);
    for (int64_t j = 0; j < (rows > cols ? 0 : cols); j++)
        for (int64_t i = 0; i < rows; i++)
            memcpy(out + (size_t)(i * b->to + j) * size, x + (size_t)(j * b->from + i) * size,
                   size);
}

/* Transposes a tile of f32 in registers. No arithmetic touches the elements, so bits are kept. */
RO_INLINE void turn_tile(const transpose_block *b, int64_t r, int64_t c) {
    const float *x = (const float *)(const void *)b->x + c * b->from + r;
    float *out = (float *)(void *)b->out + r * b->to + c;
    for (int64_t i = 0; i < TILE; i += VW)
        for (int64_t j = 0; j < TILE; j += VW) {
            vf v[VW];
            RO_UNROLL
            for (int l = 0; l < VW; l++)
                v[l] = vf_load(x + (j + l) * b->from + i);
            transpose(v);
            RO_UNROLL
            for (int l = 0; l < VW; l++) {
                float *to = out + (i + l) * b->to + j;
                if (b->stream)
                    stream(to, v[l]);
                else
                    vf_store(to, v[l]);
            }
        }
}

/* Transposes up to VW rows and columns of f32, as turn_tile does. */
static void turn_part(const transpose_block *b, int64_t r, int64_t rows, int64_t c, int64_t cols) {
    const float *x = (const float *)(const void *)b->x + c * b->from + r;
    float *out = (float *)(void *)b->out + r * b->to + c;
    vf v[VW];
    for (int64_t l = 0; l < VW; l++)
        v[l] = l < cols ? vf_load_n(x + l * b->from, rows) : vf_set1(0.0f);
    transpose(v);
    for (int64_t l = 0; l < rows; l++)
        vf_store_n(out + l * b->to, v[l], cols);
}

/* Transposes rows [r, r + rows) and columns [c, c + cols), of which one is less than a tile. */
static void turn_rest(const transpose_block *b, int64_t r, int64_t rows, int64_t c, int64_t cols) {
    for (int64_t i = 0; i < rows; i += VW)
        for (int64_t j = 0; j < cols; j += VW)
            turn_part(b, r + i, min_i64(VW, rows - i), c + j, min_i64(VW, cols - j));
}

RO_INLINE void move_block(const transpose_block *b, size_t size) {
    const int64_t rows = b->rows / TILE * TILE, cols = b->cols / TILE * TILE;
    if (size == 4 && VW > 1 && b->cols == PLANES && b->to == PLANES) {
        const int64_t done =
            weave((const float *)(const void *)b->x, b->from, b->rows, (float *)(void *)b->out);
        turn_rest(b, done, b->rows - done, 0, b->cols);
        return;
    }
    for (int64_t c = 0; c < cols; c += TILE)
        for (int64_t r = 0; r < rows; r += TILE) {
            if (size == 4 && VW > 1)
                turn_tile(b, r, c);
            else
                move_tile(b->x + (size_t)(c * b->from + r) * size, b->from,
                          b->out + (size_t)(r * b->to + c) * size, b->to, size);
        }
    if (size == 4 && VW > 1) {
        turn_rest(b, 0, rows, cols, b->cols - cols);
        turn_rest(b, rows, b->rows - rows, 0, b->cols);
        return;
    }
    move_rest(b, 0, rows, cols, b->cols - cols, size);
    move_rest(b, rows, b->rows - rows, 0, b->cols, size);
}

/* Returns whether the output is larger than caches are, and each of its rows begins at a cache
 * line. */
static int streams(const ro_job *job, const transpose_plan *p, int64_t to) {
    int aligned = (uintptr_t)job->out % 64 == 0 && to % 16 == 0;
    for (int d = 0; d < p->ndim - 1; d++)
        aligned &= p->to[d] % 16 == 0;
    return aligned && ro_shape_numel(&job->call->output) >= STREAMED;
}

static void move_blocks(const ro_job *job, const transpose_plan *p, int64_t first, int64_t last) {
    const size_t size = ro_dtype_size(job->call->output.dtype);
    const int end = p->ndim - 1, row = turned(p);
    const int64_t across = ceil_div(p->dim[end], COLS), down = ceil_div(p->dim[row], ROWS);
    const int whole = streams(job, p, p->to[row]);
    for (int64_t i = first; i < last; i++) {
        const int64_t c = i % across * COLS, r = i / across % down * ROWS;
        const walker w = walker_at(p, 1u << end | 1u << row, i / across / down);
        const transpose_block b = {
            (const char *)job->in[0] + (size_t)(w.from + c * p->from[end] + r) * size,
            (char *)job->out + (size_t)(w.to + r * p->to[row] + c) * size,
            p->from[end],
            p->to[row],
            min_i64(ROWS, p->dim[row] - r),
            min_i64(COLS, p->dim[end] - c),
            whole,
        };
        switch (size) {
        case 4: move_block(&b, 4); break;
        case 2: move_block(&b, 2); break;
        default: move_block(&b, 1); break;
        }
    }
    end_stream();
}

static int64_t transpose_items(const ro_call *call) {
    const transpose_plan p = plan_of(call);
    const int end = p.ndim - 1;
    const int64_t rows = ro_shape_numel(&call->output) / p.dim[end];
    if (p.from[end] == 1)
        return rows * parts_of(&p);
    const int row = turned(&p);
    return rows / p.dim[row] * ceil_div(p.dim[row], ROWS) * ceil_div(p.dim[end], COLS);
}

static void permute(const ro_job *job, int64_t first, int64_t last) {
    const transpose_plan p = plan_of(job->call);
    if (p.from[p.ndim - 1] == 1)
        copy_rows(job, &p, first, last);
    else
        move_blocks(job, &p, first, last);
}
RO_KERNEL(transpose, .range = permute, .items = transpose_items)
