/* Reductions along any axis, and their expansion back, SPEC.md sections 3.3 and 3.4. Compilers
 * vectorise across contiguous elements. */
#include "repops/cpu/rows/columns.h"
#include "repops/cpu/rows/max.h"
#include "repops/cpu/rows/stream.h"
#include "repops/op_movement.h"
#include "repops/op_reduce.h"

enum { TILE = COLUMN_TILE };

/* ---- sums and maxima: an item is a tile of columns of one group of rows ---- */

typedef struct {
    const float *x;     /* first element */
    float *out;         /* results of its group of rows */
    int64_t rows, cols; /* size of the tile */
    int64_t stride;     /* stride of rows */
} axis_tile;

static ro_axis axis_of(const ro_call *call) {
    return ro_axis_of(&call->input[0], call->attr[RO_ALONG_AXIS]);
}

static int64_t groups_of(const ro_axis *a) {
    return ro_blocks_of(a->n, RO_COLUMN_GROUP);
}

static int64_t tiles(const ro_call *call) {
    const ro_axis a = axis_of(call);
    return a.outer * groups_of(&a) * ceil_div(a.inner, TILE);
}

static axis_tile tile_of(const ro_job *job, int64_t item) {
    const ro_axis a = axis_of(job->call);
    const int64_t across = ceil_div(a.inner, TILE), groups = groups_of(&a);
    const int64_t col = item % across * TILE, group = item / across; /* group: counted over all
                                                                        outer dimensions */
    const int64_t outer = group / groups, row = group % groups * RO_COLUMN_GROUP;
    return (axis_tile){(const float *)job->in[0] + (outer * a.n + row) * a.inner + col,
                       (float *)job->out + group * a.inner + col,
                       min_i64(RO_COLUMN_GROUP, a.n - row), min_i64(TILE, a.inner - col), a.inner};
}

/* acc = max(acc, `rows` rows that are `stride` apart), for `count` columns. */
RO_INLINE void max_run(const float *restrict x, int64_t stride, int rows, int64_t count,
                       float *restrict acc) {
    const int64_t whole = count / VW * VW;
    for (int64_t c = 0; c < whole; c += VW) {
        vf m = vf_load(acc + c);
        RO_UNROLL
        for (int r = 0; r < rows; r++)
            m = vf_max(m, vf_load(x + r * stride + c));
        vf_store(acc + c, m);
    }
    for (int r = 0; r < rows; r++)
        for (int64_t c = whole; c < count; c++)
            acc[c] = ro_max(acc[c], x[r * stride + c]);
}

/* Does what add_rows does, for maxima. Without vectors it takes one row at a time: compilers
 * vectorise only that loop. */
static void max_rows(const float *x, int64_t stride, int64_t rows, int64_t count, float *acc) {
    int64_t r = 0;
    for (; VW > 1 && r + COLUMN_ROWS <= rows; r += COLUMN_ROWS)
        for (int64_t from = 0; from < count; from += COLUMN_RUN) {
            const int64_t run = min_i64(COLUMN_RUN, count - from);
            const int64_t ahead = min_i64(COLUMN_ROWS, rows - r - COLUMN_ROWS);
            const float *y = x + r * stride + from;
            fetch_rows(y + COLUMN_ROWS * stride, stride, ahead, run);
            max_run(y, stride, COLUMN_ROWS, run, acc + from);
        }
    for (; r < rows; r++)
        max_run(x + r * stride, stride, 1, count, acc);
}

static void store(const float *restrict acc, int64_t count, float *restrict out) {
    for (int64_t c = 0; c < count; c++)
        out[c] = ro_canon(acc[c]);
}

static void sum_axis(const ro_job *job, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
        const axis_tile t = tile_of(job, i);
        float acc[TILE] = {0};
        add_rows(t.x, t.stride, t.rows, t.cols, acc);
        store(acc, t.cols, t.out);
    }
}
RO_KERNEL(sum_axis, .range = sum_axis, .items = tiles)

static void max_axis(const ro_job *job, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
        const axis_tile t = tile_of(job, i);
        float acc[TILE];
        for (int64_t c = 0; c < t.cols; c++)
            acc[c] = ro_from_bits(RO_MINUS_INFINITY_BITS);
        max_rows(t.x, t.stride, t.rows, t.cols, acc);
        store(acc, t.cols, t.out);
    }
}
RO_KERNEL(max_axis, .range = max_axis, .items = tiles)

/* ---- argmax: an item is a tile of columns, or a row if the axis is the last one ---- */

static int64_t argmax_items(const ro_call *call) {
    const ro_axis a = axis_of(call);
    return a.outer * ceil_div(a.inner, TILE);
}

/* Returns whether one of n elements equals m or, if m is a NaN, whether one is a NaN. */
static int has(const float *x, float m, int64_t n) {
    int found = 0;
    for (int64_t i = 0; i < n; i++)
        found |= (x[i] == m) | ((x[i] != x[i]) & (m != m));
    return found;
}

enum { SEARCH = 256 };

static int32_t argmax_row(const float *x, int64_t n) {
    const float m = max_of(x, n);
    int64_t i = 0;
    while (i + SEARCH < n && !has(x + i, m, SEARCH))
        i += SEARCH;
    while (!has(x + i, m, 1))
        i++;
    return (int32_t)i;
}

static void argmax_tile(const float *restrict x, int64_t rows, int64_t cols, int64_t stride,
                        int32_t *restrict out) {
    float best[TILE];
    int32_t at[TILE] = {0};
    memcpy(best, x, (size_t)cols * sizeof *best);
    for (int64_t r = 1; r < rows; r++) {
        const float *restrict row = x + r * stride;
        for (int64_t c = 0; c < cols; c++) {
            const int more = (row[c] > best[c]) | ((row[c] != row[c]) & (best[c] == best[c]));
            at[c] = more ? (int32_t)r : at[c];
            best[c] = more ? row[c] : best[c];
        }
    }
    memcpy(out, at, (size_t)cols * sizeof *at);
}

static void argmax(const ro_job *job, int64_t first, int64_t last) {
    const ro_axis a = axis_of(job->call);
    const float *x = job->in[0];
    int32_t *out = job->out;
    const int64_t across = ceil_div(a.inner, TILE);
    for (int64_t i = first; i < last; i++) {
        const int64_t outer = i / across, col = i % across * TILE;
        if (a.inner == 1)
            out[i] = argmax_row(x + i * a.n, a.n);
        else
            argmax_tile(x + outer * a.n * a.inner + col, a.n, min_i64(TILE, a.inner - col), a.inner,
                        out + outer * a.inner + col);
    }
}
RO_KERNEL(argmax, .range = argmax, .items = argmax_items)

/* ---- expansion: an item is a run of contiguous elements, one place of the axis ---- */

static int64_t runs(const ro_call *call) {
    const ro_axis a = ro_axis_of(&call->output, call->attr[RO_EXPAND_AXIS]);
    return a.outer * a.n;
}

/* Expands runs of an element type whose size is not 4 bytes. */
static void expand_bytes(const ro_job *job, int64_t first, int64_t last) {
    const ro_axis a = ro_axis_of(&job->call->output, job->call->attr[RO_EXPAND_AXIS]);
    const size_t run = (size_t)a.inner * ro_dtype_size(job->call->output.dtype);
    for (int64_t i = first; i < last; i++)
        memcpy((char *)job->out + (size_t)i * run,
               (const char *)job->in[0] + (size_t)(i / a.n) * run, run);
}

static void expand(const ro_job *job, int64_t first, int64_t last) {
    if (ro_dtype_size(job->call->output.dtype) != 4) {
        expand_bytes(job, first, last);
        return;
    }
    const ro_axis a = ro_axis_of(&job->call->output, job->call->attr[RO_EXPAND_AXIS]);
    const uint32_t *x = job->in[0];
    uint32_t *out = job->out;
    const int streams = rows_stream(job->out, a.outer * a.n, a.inner);
    for (int64_t i = first; i < last;) {
        const int64_t outer = i / a.n, end = min_i64(last, (outer + 1) * a.n);
        for (; i < end && streams; i++)
            stream_run((float *)job->out + i * a.inner, (const float *)job->in[0] + outer * a.inner,
                       a.inner);
        for (; i < end && a.inner > 1; i++)
            memcpy(out + i * a.inner, x + outer * a.inner, (size_t)a.inner * sizeof *x);
        for (const uint32_t value = x[outer * a.inner]; i < end; i++)
            out[i] = value;
    }
    if (streams)
        end_stream();
}
RO_KERNEL(expand, .range = expand, .items = runs)

static void pick(const int32_t *restrict at, const uint32_t *restrict dy, int32_t place,
                 int64_t count, uint32_t *restrict out) {
    for (int64_t c = 0; c < count; c++)
        out[c] = at[c] == place ? dy[c] : 0;
}

static void max_grad(const ro_job *job, int64_t first, int64_t last) {
    const ro_axis a = ro_axis_of(&job->call->output, job->call->attr[RO_MAX_GRAD_AXIS]);
    const int32_t *at = job->in[0];
    const uint32_t *dy = job->in[1];
    uint32_t *out = job->out;
    for (int64_t i = first; i < last;) {
        const int64_t outer = i / a.n, end = min_i64(last, (outer + 1) * a.n);
        for (; i < end && a.inner > 1; i++)
            pick(at + outer * a.inner, dy + outer * a.inner, (int32_t)(i % a.n), a.inner,
                 out + i * a.inner);
        for (; i < end; i++)
            out[i] = at[outer] == i % a.n ? dy[outer] : 0;
    }
}
RO_KERNEL(max_grad, .range = max_grad, .items = runs)
