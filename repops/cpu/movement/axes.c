/* Rearrangement along one axis, SPEC.md section 5. Bits are kept, so everything is copied as bytes.
 * An item is an element of the output; pieces of it that are contiguous in an input are copied at
 * once. */
#include "repops/cpu/isa.h"
#include "repops/src/half.h"
#include "repops/op_movement.h"

/* The output as rows of n runs. The elements of a run are copied from one place, or all are
 * `fill`. */
typedef struct {
    const char *x;
    const int32_t *ids;
    int64_t n, run;      /* runs in a row of the output; elements in a run */
    int64_t rows;        /* runs of the input from which one row of the output is made */
    int64_t start, step; /* first run, and stride, along the axis */
    size_t size;         /* bytes of an element */
    uint32_t fill;
} layout;

static layout layout_of(const ro_job *job) {
    const ro_axis x = ro_axis_of(&job->call->input[0], job->call->attr[RO_ALONG_AXIS]);
    return (layout){.x = job->in[0],
                    .n = job->call->output.dim[job->call->attr[RO_ALONG_AXIS]],
                    .run = x.inner,
                    .rows = x.n,
                    .size = ro_dtype_size(job->call->input[0].dtype)};
}

/* Copies a run. Runs of one element are frequent, and a call of memcpy would cost more than the
 * copy. */
RO_INLINE void copy_run(char *restrict to, const char *restrict from, size_t bytes) {
    if (bytes == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, bytes);
}

static void fill_run(char *to, uint32_t word, int64_t count, size_t size) {
    for (int64_t i = 0; i < count; i++) {
        switch (size) {
        case 4: ((uint32_t *)(void *)to)[i] = word; break;
        case 2: ((uint16_t *)(void *)to)[i] = (uint16_t)word; break;
        default: ((uint8_t *)to)[i] = (uint8_t)word; break;
        }
    }
}

/* Returns where run j of row o is copied from; NULL: it is filled. */
typedef const char *source(const layout *l, int64_t o, int64_t j);

RO_INLINE void walk(const ro_job *job, const layout *l, int64_t first, int64_t last,
                    source *source_of) {
    char *out = (char *)job->out + (size_t)first * l->size;
    int64_t j = first / l->run % l->n, o = first / l->run / l->n, at = first % l->run;
    for (int64_t left = last - first; left > 0; at = 0) {
        const int64_t count = min_i64(l->run - at, left);
        const char *from = source_of(l, o, j);
        if (from)
            copy_run(out, from + (size_t)at * l->size, (size_t)count * l->size);
        else
            fill_run(out, l->fill, count, l->size);
        out += (size_t)count * l->size;
        left -= count;
        if (++j == l->n)
            j = 0, o++;
    }
}

RO_INLINE const char *run_at(const layout *l, int64_t o, int64_t row) {
    return l->x + (size_t)((o * l->rows + row) * l->run) * l->size;
}

/* ---- slice ---- */

RO_INLINE const char *slice_source(const layout *l, int64_t o, int64_t j) {
    return run_at(l, o, l->start + j * l->step);
}

/* With step 1, a row is one run. */
RO_INLINE const char *stretch_source(const layout *l, int64_t o, int64_t j) {
    (void)j;
    return l->x + (size_t)(o * l->rows + l->start) * l->size;
}

static void slice(const ro_job *job, int64_t first, int64_t last) {
    layout l = layout_of(job);
    l.start = job->call->attr[RO_SLICE_START];
    l.step = job->call->attr[RO_SLICE_STEP];
    if (l.step != 1) {
        walk(job, &l, first, last, slice_source);
        return;
    }
    l.start *= l.run;
    l.rows *= l.run;
    l.run *= l.n;
    l.n = 1;
    walk(job, &l, first, last, stretch_source);
}
RO_KERNEL(slice, .range = slice)

/* ---- gather ---- */

RO_INLINE const char *gather_source(const layout *l, int64_t o, int64_t j) {
    const int32_t id = l->ids[j];
    return id >= 0 && id < l->rows ? run_at(l, o, id) : NULL;
}

static void gather(const ro_job *job, int64_t first, int64_t last) {
    layout l = layout_of(job);
    l.ids = job->in[1];
    l.n = in_numel(job, 1);
    l.fill = ro_nan_of(job->call->output.dtype);
    walk(job, &l, first, last, gather_source);
}
RO_KERNEL(gather, .range = gather)

/* ---- parts that follow one another in each row of the output ---- */

typedef struct {
    const char *x; /* NULL: filled */
    int64_t count; /* elements in a row */
} part;

/* Returns part `index`. */
typedef part part_of(const ro_job *job, int index);

static void join_parts(const ro_job *job, int64_t first, int64_t last, int64_t row, uint32_t fill,
                       part_of *part_at) {
    const size_t size = ro_dtype_size(job->call->output.dtype);
    char *out = (char *)job->out;
    for (int64_t o = first / row; o * row < last; o++) {
        int64_t begin = o * row;
        for (int i = 0; begin < min_i64((o + 1) * row, last); i++) {
            const part p = part_at(job, i);
            const int64_t from = max_i64(first, begin), to = min_i64(last, begin + p.count);
            if (from < to && p.x)
                copy_run(out + (size_t)from * size,
                         p.x + (size_t)(o * p.count + from - begin) * size,
                         (size_t)(to - from) * size);
            else if (from < to)
                fill_run(out + (size_t)from * size, fill, to - from, size);
            begin += p.count;
        }
    }
}

static part concat_part(const ro_job *job, int index) {
    const ro_axis x = ro_axis_of(&job->call->input[index], job->call->attr[RO_CONCAT_AXIS_AXIS]);
    return (part){job->in[index], x.n * x.inner};
}

static void concat_axis(const ro_job *job, int64_t first, int64_t last) {
    const ro_axis out = ro_axis_of(&job->call->output, job->call->attr[RO_CONCAT_AXIS_AXIS]);
    join_parts(job, first, last, out.n * out.inner, 0, concat_part);
}
RO_KERNEL(concat_axis, .range = concat_axis)

/* ---- pad ---- */

static part pad_part(const ro_job *job, int index) {
    const int64_t *attr = job->call->attr;
    const ro_axis x = ro_axis_of(&job->call->input[0], attr[RO_PAD_AXIS]);
    return index == 1 ? (part){job->in[0], x.n * x.inner}
                      : (part){NULL, attr[index ? RO_PAD_AFTER : RO_PAD_BEFORE] * x.inner};
}

RO_INLINE const char *pad_source(const layout *l, int64_t o, int64_t j) {
    const int64_t at = j - l->start;
    return at >= 0 && at % l->step == 0 && at / l->step < l->rows ? run_at(l, o, at / l->step)
                                                                  : NULL;
}

static void pad(const ro_job *job, int64_t first, int64_t last) {
    const int64_t *attr = job->call->attr;
    layout l = layout_of(job);
    l.start = attr[RO_PAD_BEFORE];
    l.step = attr[RO_PAD_STEP];
    l.fill = (uint32_t)attr[RO_PAD_VALUE];
    if (l.step == 1)
        join_parts(job, first, last, l.n * l.run, l.fill, pad_part);
    else
        walk(job, &l, first, last, pad_source);
}
RO_KERNEL(pad, .range = pad)

/* ---- reshape ---- */

static void reshape(const ro_job *job, int64_t first, int64_t last) {
    const size_t size = ro_dtype_size(job->call->output.dtype);
    memcpy((char *)job->out + (size_t)first * size, (const char *)job->in[0] + (size_t)first * size,
           (size_t)(last - first) * size);
}
RO_KERNEL(reshape, .range = reshape)
