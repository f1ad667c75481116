/* put_rows, SPEC.md section 5: rows that replace others. If the output is x, only these are
 * copied. */
#include "repops/cpu/isa.h"
#include "repops/op_movement.h"

/* Rows from `from` on replace places [first, last) along the axis. */
typedef struct {
    ro_axis x;
    int64_t rows, from, first, last;
    size_t run; /* bytes of one place */
} placement;

static placement placement_of(const ro_job *job) {
    const int64_t axis = job->call->attr[RO_PUT_ROWS_AXIS];
    const int64_t at = *(const int32_t *)job->in[2];
    placement p = {.x = ro_axis_of(&job->call->input[0], axis),
                   .rows = job->call->input[1].dim[axis]};
    p.run = (size_t)p.x.inner * ro_dtype_size(job->call->output.dtype);
    p.first = min_i64(max_i64(at, 0), p.x.n);
    p.last = max_i64(min_i64(at + p.rows, p.x.n), p.first);
    p.from = p.first - at;
    return p;
}

static void copy_places(const ro_job *job, const placement *p, int64_t first, int64_t last) {
    memcpy((char *)job->out + (size_t)first * p->run,
           (const char *)job->in[0] + (size_t)first * p->run, (size_t)(last - first) * p->run);
}

/* Copies the places that no row replaces. Items are the places of x. */
static void copy_others(const ro_job *job, int64_t first, int64_t last) {
    const placement p = placement_of(job);
    for (int64_t i = first; i < last;) {
        const int64_t begin = i / p.x.n * p.x.n, end = min_i64(last, begin + p.x.n);
        copy_places(job, &p, i, max_i64(i, min_i64(end, begin + p.first)));
        copy_places(job, &p, min_i64(end, max_i64(i, begin + p.last)), end);
        i = end;
    }
}

/* Writes the rows. Items are all rows; a row whose place is outside x is dropped. */
static void put(const ro_job *job, int64_t first, int64_t last) {
    const placement p = placement_of(job);
    for (int64_t i = first; i < last; i++) {
        const int64_t row = i % p.rows - p.from, place = p.first + row;
        if (row < 0 || place >= p.last)
            continue;
        memcpy((char *)job->out + (size_t)(i / p.rows * p.x.n + place) * p.run,
               (const char *)job->in[1] + (size_t)i * p.run, p.run);
    }
}

static ro_status put_rows(const ro_job *job) {
    const placement p = placement_of(job);
    if (job->out != job->in[0])
        ro_for_items(job, p.x.outer * p.x.n, copy_others);
    ro_for_items(job, p.x.outer * p.rows, put);
    return RO_OK;
}
RO_KERNEL(put_rows, .run = put_rows)
