/* Functions of the library as their operators, one after the other: what runs where a backend has
 * nothing better. */
#ifndef REPOPS_BY_OPERATORS_H
#define REPOPS_BY_OPERATORS_H

#include "repops/src/backend.h"
#include "repops/src/call.h"

enum { RO_REDUCTION_INPUTS = 5 };

/* A reduction whose lowest level is `op` with these inputs, and all others `next`. */
typedef struct {
    int op, next;
    int64_t rows, cols;
    int inputs;
    ro_shape in[RO_REDUCTION_INPUTS];
    const void *data[RO_REDUCTION_INPUTS];
} ro_reduction;

/* All levels of R: one number for each row. What is not the last level stands in `room`: 2 * rows *
 * ceil(cols / 1024) numbers, none if that is one level. */
ro_status ro_reduce_rows(ro_ctx *ctx, const ro_reduction *r, float *room, float *out);

/* All levels of K: one number for each column; 2 * cols * ceil(rows / 64) numbers of room. */
ro_status ro_reduce_columns(ro_ctx *ctx, const ro_reduction *r, float *room, float *out);

#endif
