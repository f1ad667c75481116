/* Random calls of operators that create, read and move elements. */
#ifndef TESTS_OP_CASES_MOVEMENT_H
#define TESTS_OP_CASES_MOVEMENT_H

#include "op_dice.h"
#include "repops/op_along.h"
#include "repops/op_attention.h"
#include "repops/op_image.h"
#include "repops/op_movement.h"
#include "repops/op_reduce.h"

/* ---- sources and batches ---- */

static inline void roll_source(op_case *c, dice *d) {
    c->call.output = c->call.output.dtype == RO_F32 ? shape2(roll_dim(d, 300), roll_dim(d, 300))
                                                    : ints(roll_dim(d, 20000));
    roll_attributes(c, d);
}

static inline void roll_reader(op_case *c, dice *d, int64_t rows) {
    roll_attributes(c, d);
    c->call.attr[RO_READER_FIRST] = roll(d, 10);
    c->call.attr[RO_READER_BATCH] = c->call.attr[RO_READER_FIRST] + rows + roll(d, 5);
}

static inline void roll_read_batch(op_case *c, dice *d) {
    static const int tokens[] = {RO_U8, RO_U16, RO_I32};
    const int type = tokens[roll(d, 3)], files = roll(d, 2) ? 1 : 1 + (int)roll(d, CASE_INPUTS - 1);
    c->call.output = shape_of(RO_I32, 2, roll_dim(d, 20), roll_dim(d, 300), 0, 0);
    c->call.input_count = files + 1;
    for (int i = 0; i < files; i++)
        c->in[i] =
            shape_of(type, 1, 1 + c->call.output.dim[1] * (1 + roll(d, 40)) + roll(d, 3), 0, 0, 0);
    c->in[files] = ints(1);
    roll_reader(c, d, c->call.output.dim[0]);
    c->call.attr[RO_READ_BATCH_SHIFT] = roll(d, 2);
}

static inline void roll_records(op_case *c, dice *d, ro_shape output, int64_t bytes) {
    c->call.output = output;
    roll_reader(c, d, output.dim[0]);
    const int64_t offset = roll(d, 4), record = offset + bytes + roll(d, 3);
    c->call.attr[RO_RECORDS_OFFSET] = offset;
    c->call.attr[RO_RECORDS_RECORD] = record;
    c->in[0].dim[0] = record * (1 + roll(d, 40)) + roll(d, record);
}

static inline void roll_read_images(op_case *c, dice *d) {
    const int64_t h = roll_dim(d, 12), w = roll_dim(d, 12), channels = 1 + roll(d, 4);
    roll_records(c, d, shape_of(RO_F32, 4, roll_dim(d, 20), h, w, channels), h * w * channels);
}

static inline void roll_read_labels(op_case *c, dice *d) {
    roll_records(c, d, ints(roll_dim(d, 20)), 1);
}

/* ---- embeddings, heads, pieces ---- */

static inline void roll_embedding(op_case *c, dice *d) {
    c->ids = roll_dim(d, 300);
    c->in[0] = shape2(c->ids, roll_dim(d, 300));
    c->in[0].dtype = roll_float(d);
    c->in[1] = shape_of(RO_I32, 2, roll_dim(d, 20), roll_dim(d, 40), 0, 0);
}

static inline void roll_embedding_grad(op_case *c, dice *d) {
    c->ids = roll(d, 3) ? roll_dim(d, 300) : 1 + roll(d, 3); /* few: several levels */
    c->in[0] = shape2(roll(d, 4) ? roll_dim(d, 1100) : 4096 + roll(d, 9000), roll_dim(d, 300));
    if (c->in[0].dim[0] > 1100)
        c->in[0].dim[1] = 1 + roll(d, 20);
    if (c->in[0].dim[0] > 1100 && roll(d, 3) == 0) { /* one id, at more than 64^2 positions */
        c->ids = 1;
        c->in[0].dim[0] += 17000;
    }
    c->in[1] = ints(c->in[0].dim[0]);
    c->call.output = shape2(c->ids, c->in[0].dim[1]);
}

static inline void roll_split_heads(op_case *c, dice *d) {
    const int64_t heads = 1 + roll(d, 4), parts = 1 + roll(d, 3), width = roll_dim(d, 40);
    c->in[0] =
        shape_of(roll_type(d), 3, 1 + roll(d, 4), roll_dim(d, 130), parts * heads * width, 0);
    c->call.attr[RO_SPLIT_HEADS_PARTS] = parts;
    c->call.attr[RO_SPLIT_HEADS_PART] = roll(d, parts);
    c->call.attr[RO_SPLIT_HEADS_HEADS] = heads;
}

static inline void roll_join_heads(op_case *c, dice *d) {
    c->call.input_count = 1 + (int)roll(d, 3);
    for (int i = 0; i < c->call.input_count; i++)
        c->in[i] = i ? c->in[0]
                     : shape_of(roll_type(d), 4, 1 + roll(d, 4), 1 + roll(d, 4), roll_dim(d, 130),
                                roll_dim(d, 40));
}

static inline void roll_repeat_heads(op_case *c, dice *d) {
    const int64_t times = roll(d, 4) ? 1 + roll(d, 5) : 1 + roll(d, 70), heads = 1 + roll(d, 3);
    c->call.attr[RO_REPEAT_TIMES] = times;
    c->in[0] = shape_of(RO_F32, 4, 1 + roll(d, 2), heads, roll_dim(d, 60), roll_dim(d, 40));
    if (c->call.op == RO_OP_REPEAT_HEADS_GRAD)
        c->in[0].dim[1] *= times;
    else
        c->in[0].dtype = roll_type(d);
}

static inline void roll_concat(op_case *c, dice *d) {
    c->call.input_count = 1 + (int)roll(d, CASE_INPUTS);
    for (int i = 0; i < c->call.input_count; i++)
        c->in[i] = shape2(roll_dim(d, 80), roll_dim(d, 400));
}

/* ---- along axes ---- */

static inline void roll_transpose(op_case *c, dice *d) {
    c->in[0] = roll_shape(d, RO_MAX_DIMS);
    for (int i = 0; i < c->in[0].ndim; i++) {
        const int64_t j = roll(d, i + 1);
        c->call.attr[i] = c->call.attr[j];
        c->call.attr[j] = i;
    }
}

static inline void roll_slice(op_case *c, dice *d) {
    c->in[0] = roll_shape(d, RO_MAX_DIMS);
    const int64_t axis = roll(d, c->in[0].ndim), n = c->in[0].dim[axis], start = roll(d, n);
    const int64_t step = roll(d, 2) ? 1 : 1 + roll(d, n);
    const int64_t attr[] = {axis, start, 1 + roll(d, (n - 1 - start) / step + 1), step};
    memcpy(c->call.attr, attr, sizeof attr);
}

static inline void roll_pad(op_case *c, dice *d) {
    c->in[0] = roll_shape(d, RO_MAX_DIMS);
    const int bits = 8 * (int)ro_dtype_size(c->in[0].dtype);
    const int64_t word = roll(d, 2) ? (int64_t)case_special(case_word(d->seed, 2, 0)) : 0;
    const int64_t attr[] = {roll(d, c->in[0].ndim), roll(d, 4), roll(d, 70),
                            roll(d, 2) ? 1 : 1 + roll(d, 4), word & ((INT64_C(1) << bits) - 1)};
    memcpy(c->call.attr, attr, sizeof attr);
}

static inline void roll_gather(op_case *c, dice *d) {
    c->in[0] = roll_shape(d, RO_MAX_DIMS - 1); /* the ids have up to two dimensions */
    const int64_t axis = roll(d, c->in[0].ndim);
    c->ids = c->in[0].dim[axis];
    c->in[1] = shape_of(RO_I32, 1 + (int)roll(d, 2), roll_dim(d, 40), 1 + roll(d, 3), 0, 0);
    if (c->in[1].ndim == 1)
        c->in[1].dim[1] = 0;
    c->call.attr[RO_GATHER_AXIS] = axis;
}

/* Rolls dy in the shape of a gather from the output. */
static inline void roll_gather_grad(op_case *c, dice *d) {
    roll_gather(c, d);
    c->in[0].dtype = RO_F32;
    if (roll(d, 3) == 0)
        c->in[1] = ints(roll_dim(d, 1100));
    if (roll(d, 6) == 0) { /* one id, at more than 64^2 positions */
        c->in[0] = shape_of(RO_F32, 3, 1 + roll(d, 2), 1, 1 + roll(d, 9), 0);
        c->in[1] = ints(21000 + roll(d, 9000));
        c->call.attr[RO_GATHER_GRAD_AXIS] = c->ids = 1;
    }
    ro_call gather = {RO_OP_GATHER, 2, {c->call.attr[RO_GATHER_GRAD_AXIS]}, c->in, {0}};
    const ro_shape out = c->in[0];
    if (ro_infer(&gather, NULL, 0) == RO_OK)
        c->in[0] = gather.output;
    c->call.output = out;
}

static inline void roll_concat_axis(op_case *c, dice *d) {
    const ro_shape first = roll_shape(d, RO_MAX_DIMS);
    const int64_t axis = roll(d, first.ndim);
    c->call.attr[RO_CONCAT_AXIS_AXIS] = axis;
    c->call.input_count = 1 + (int)roll(d, 5);
    for (int i = 0; i < c->call.input_count; i++) {
        c->in[i] = first;
        if (i > 0)
            c->in[i].dim[axis] = 1 + roll(d, 2 * first.dim[axis]);
    }
}

static inline void roll_reshape(op_case *c, dice *d) {
    c->in[0] = roll_shape(d, RO_MAX_DIMS);
    const int64_t n = ro_shape_numel(&c->in[0]);
    c->call.output = shape_of(c->in[0].dtype, 2, n, 1, 0, 0);
    for (int64_t by = 2; by < 20; by++)
        if (n % by == 0 && roll(d, 2))
            c->call.output = shape_of(c->in[0].dtype, 3, by, 1, n / by, 0);
}

/* Chooses both types by the seed, so that as many successive cases as there are pairs take each
 * pair once. */
static inline void roll_cast(op_case *c, dice *d) {
    c->in[0] = roll_shape(d, 2);
    c->in[0].dtype = 1 + (int)(d->seed % RO_I8);
    c->call.attr[RO_CAST_DTYPE] = 1 + (int64_t)(d->seed / RO_I8 % RO_I8);
}

/* Rolls indices from -2 to 2 beyond the end. */
static inline void roll_put_rows(op_case *c, dice *d) {
    c->in[0] = c->in[1] = roll_shape(d, 4);
    const int64_t axis = roll(d, c->in[0].ndim);
    c->call.attr[RO_PUT_ROWS_AXIS] = axis;
    c->ids = c->in[0].dim[axis];
    c->in[1].dim[axis] = roll(d, 2) ? 1 : 1 + roll(d, c->ids + 3);
}

static inline void roll_along(op_case *c, dice *d) {
    const int64_t inner = roll(d, 3) ? roll_dim(d, 600) : 1, axis = roll(d, 2);
    c->in[0] = shape_of(RO_F32, 3, 1 + roll(d, 5), roll_dim(d, 300), inner, 0);
    if (axis == 0)
        c->in[0] = shape_of(RO_F32, 2, roll_dim(d, 1100), roll_dim(d, 300), 0, 0);
    c->call.attr[RO_ALONG_AXIS] = roll(d, 4) ? axis : c->in[0].ndim - 1;
}

/* Rolls an input of length 1 along the axis; for max_grad, indices in [-2, count + 2). */
static inline void roll_expand(op_case *c, dice *d) {
    roll_along(c, d);
    int64_t *n = &c->in[0].dim[c->call.attr[RO_EXPAND_AXIS]];
    c->call.attr[RO_EXPAND_COUNT] = c->ids = *n;
    *n = 1;
    c->in[1] = c->in[0];
    c->in[0].dtype = c->call.op == RO_OP_MAX_GRAD ? RO_I32 : roll_type(d);
}

/* ---- indices along lines, sorting and running totals ---- */

static inline int roll_number_type(dice *d) {
    return roll(d, 2) ? RO_F32 : RO_I32;
}

/* Rolls indices mostly within the line, some beyond it. */
static inline void roll_take_along(op_case *c, dice *d) {
    roll_along(c, d);
    const int64_t axis = c->call.attr[RO_ALONG_AXIS];
    c->in[0].dtype = roll(d, 3) ? roll_type(d) : RO_U8;
    c->in[1] = c->in[0];
    c->in[1].dtype = RO_I32;
    c->in[1].dim[axis] = 1 + roll(d, roll(d, 3) ? 40 : 300);
    c->ids = c->in[0].dim[axis];
}

static inline void roll_put_along(op_case *c, dice *d) {
    roll_take_along(c, d);
    c->in[0].dtype = roll_number_type(d);
    c->in[2] = c->in[1];
    c->in[2].dtype = c->in[0].dtype;
    c->ids = roll(d, 3) ? c->ids : 1 + roll(d, 3); /* then many elements go to one index */
    c->call.attr[RO_PUT_ALONG_KIND] = roll(d, RO_PUT_MIN + 1);
}

/* Rolls integers with few distinct values, so that some are equal. */
static inline void roll_argsort(op_case *c, dice *d) {
    roll_along(c, d);
    c->in[0].dtype = roll_number_type(d);
    c->ids = roll(d, 2) ? 5 : 0;
    c->call.attr[RO_ARGSORT_DESCENDING] = roll(d, 2);
}

static inline void roll_running(op_case *c, dice *d) {
    roll_along(c, d);
    c->in[0].dtype = roll_number_type(d);
    c->call.attr[RO_RUNNING_KIND] =
        roll(d, c->in[0].dtype == RO_F32 ? RO_RUNNING_LOG_SUM + 1 : RO_RUNNING_PRODUCT + 1);
}

static inline void roll_isum(op_case *c, dice *d) {
    roll_along(c, d);
    c->in[0].dtype = RO_I32;
}

#endif
