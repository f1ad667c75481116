/* Checks that every entry point makes of the memory that it gets: no required pointer is NULL, and
 * outputs overlap only what they may overwrite. Only addresses are compared, so they may be a
 * device's. */
#ifndef RO_OPERANDS_H
#define RO_OPERANDS_H

#include "repops/repops.h"

/* `rows` pieces of `width` bytes, `step` bytes apart: rows of a matrix that may be part of a wider
 * one. A dense tensor is one piece. */
typedef struct {
    const void *at;
    int64_t rows, step, width;
} ro_pieces;

typedef enum {
    RO_READ = 0,
    RO_WRITTEN = 1,
    RO_OPTIONAL = 2, /* NULL: not wanted */
} ro_use;

typedef struct {
    const char *name;
    ro_pieces memory;
    int use;       /* flags of ro_use */
    uint32_t onto; /* bit i: this output may be the same memory as operand i */
} ro_operand;

/* `count` elements of 4 bytes. */
static inline ro_pieces ro_words(const void *at, int64_t count) {
    return (ro_pieces){at, 1, count * 4, count * 4};
}

/* Returns nonzero if any byte belongs to both. */
int ro_pieces_meet(const ro_pieces *a, const ro_pieces *b);

/* Fails with "`function`: `what` must not be NULL"; returns RO_ERR_ARG. */
ro_status ro_missing(ro_ctx *ctx, const char *function, const char *what);

ro_status ro_check_operands(ro_ctx *ctx, const char *function, const ro_operand *operand,
                            int count);

/* Checks the tensors of ro_run or ro_free_run. */
ro_status ro_check_tensors(ro_ctx *ctx, const ro_call *call, const void *const *input,
                           const void *output);

#endif
