/* Data movement, SPEC.md section 5. Bits are kept, so everything is copied as integers. */
#include "repops/cpu/isa.h"
#include "repops/src/half.h"
#include "repops/op_attention.h"
#include "repops/op_movement.h"

static void copy_row(uint32_t *to, const uint32_t *from, int64_t count) {
    memcpy(to, from, (size_t)count * sizeof *to);
}

static void fill_row(uint32_t *to, uint32_t bits, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        to[i] = bits;
}

static void fill_halves(uint16_t *to, uint16_t bits, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        to[i] = bits;
}

static void fill(const ro_job *job, int64_t first, int64_t last) {
    fill_row((uint32_t *)job->out + first, (uint32_t)job->call->attr[RO_FILL_VALUE], last - first);
}
RO_KERNEL(fill, .range = fill)

/* ---- embedding: an item is a position ---- */

static int64_t embedding_items(const ro_call *call) {
    return ro_shape_numel(&call->input[1]);
}

static void embedding(const ro_job *job, int64_t first, int64_t last) {
    const ro_shape *table = &job->call->input[0];
    const int32_t *ids = job->in[1];
    const int64_t rows = table->dim[0], cols = table->dim[1];
    const uint32_t nan = ro_nan_of(table->dtype);
    const size_t row = (size_t)cols * ro_dtype_size(table->dtype);
    char *out = (char *)job->out + (size_t)first * row;
    for (int64_t i = first; i < last; i++, out += row) {
        if (ids[i] >= 0 && ids[i] < rows)
            memcpy(out, (const char *)job->in[0] + (size_t)ids[i] * row, row);
        else if (table->dtype == RO_F32)
            fill_row((uint32_t *)(void *)out, nan, cols);
        else
            fill_halves((uint16_t *)(void *)out, (uint16_t)nan, cols);
    }
}
RO_KERNEL(embedding, .range = embedding, .items = embedding_items)

/* ---- heads: an item is the D elements of one head at one position ---- */

static int64_t split_heads_items(const ro_call *call) {
    return ro_shape_numel(&call->output) / call->output.dim[3];
}

static size_t row_bytes(const ro_job *job, int64_t width) {
    return (size_t)width * ro_dtype_size(job->call->output.dtype);
}

static void split_heads(const ro_job *job, int64_t first, int64_t last) {
    const int64_t parts = job->call->attr[RO_SPLIT_HEADS_PARTS],
                  part = job->call->attr[RO_SPLIT_HEADS_PART];
    const int64_t *dim = job->call->output.dim;
    const int64_t heads = dim[1], tokens = dim[2];
    const size_t row = row_bytes(job, dim[3]);
    for (int64_t i = first; i < last; i++) {
        const int64_t t = i % tokens, h = i / tokens % heads, b = i / tokens / heads;
        const int64_t from = ((b * tokens + t) * parts + part) * heads + h;
        memcpy((char *)job->out + (size_t)i * row, (const char *)job->in[0] + (size_t)from * row,
               row);
    }
}
RO_KERNEL(split_heads, .range = split_heads, .items = split_heads_items)

static int64_t join_heads_items(const ro_call *call) {
    return ro_shape_numel(&call->output) / call->input[0].dim[3];
}

static void join_heads(const ro_job *job, int64_t first, int64_t last) {
    const int64_t parts = job->call->input_count;
    const int64_t *dim = job->call->input[0].dim;
    const int64_t heads = dim[1], tokens = dim[2];
    const size_t row = row_bytes(job, dim[3]);
    for (int64_t i = first; i < last; i++) {
        const int64_t h = i % heads, part = i / heads % parts, position = i / heads / parts;
        const int64_t b = position / tokens, t = position % tokens;
        const int64_t from = (b * heads + h) * tokens + t;
        memcpy((char *)job->out + (size_t)i * row, (const char *)job->in[part] + (size_t)from * row,
               row);
    }
}
RO_KERNEL(join_heads, .range = join_heads, .items = join_heads_items)

static void repeat_heads(const ro_job *job, int64_t first, int64_t last) {
    const int64_t times = job->call->attr[RO_REPEAT_HEADS_TIMES], tokens = job->call->output.dim[2];
    const size_t row = row_bytes(job, job->call->output.dim[3]);
    for (int64_t i = first; i < last; i++) {
        const int64_t from = i / tokens / times * tokens + i % tokens;
        memcpy((char *)job->out + (size_t)i * row, (const char *)job->in[0] + (size_t)from * row,
               row);
    }
}
RO_KERNEL(repeat_heads, .range = repeat_heads, .items = split_heads_items)

static void concat(const ro_job *job, int64_t first, int64_t last) {
    int64_t begin = 0; /* offset of the input in the output */
    for (int i = 0; i < job->call->input_count && begin < last; i++) {
        const int64_t end = begin + in_numel(job, i);
        const int64_t from = max_i64(first, begin), to = min_i64(last, end);
        if (from < to)
            copy_row((uint32_t *)job->out + from, (const uint32_t *)job->in[i] + (from - begin),
                     to - from);
        begin = end;
    }
}
RO_KERNEL(concat, .range = concat)

static void iota(const ro_job *job, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++)
        ((int32_t *)job->out)[i] = (int32_t)i;
}
RO_KERNEL(iota, .range = iota)
