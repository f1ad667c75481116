/* Fixed products that check their integer sums while they compute (SPEC.md section 3.5), to find
 * what a processor or its memory got wrong.
 *
 * Of each chunk of a block of the output, the sums of all rows are added up in each column, modulo
 * 2^32, with odd factors in place of the powers of two that parts of the sums count for, so that
 * every bit of them counts. They must be what the sums of the rows of a give. Rows tell the place:
 * they are added up too, and compared after a column did not fit. Packed numbers and scales are
 * added up when they are made and after their last use.
 *
 * Of operands that stay packed (packed.h) that holds if the context checked when they were packed.
 *
 * A block that does not fit is computed again, once, from a and b as they are then; operands that
 * stay packed are all that is there of them. The bits of what fits do not depend on any of
 * this. */
#ifndef REPOPS_GUARD_H
#define REPOPS_GUARD_H

#include "repops/repops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What did not fit. */
typedef enum {
    RO_GUARD_SUMS = 1,   /* the sums of a chunk */
    RO_GUARD_PACKED = 2, /* packed numbers, or their scales, changed after they were made */
} ro_guard_kind;

/* Where: the first place that did not fit, and how many did not in its block. */
typedef struct {
    int32_t kind;     /* ro_guard_kind */
    int32_t again;    /* 0: it was computed again, and fits; 1: it did not fit the second time */
    int64_t product;  /* of a batch */
    int64_t chunk;    /* of 256 steps of k */
    int64_t row, col; /* of the product; -1: no single one, or it fitted when that was looked at */
    int64_t rows, cols;
} ro_guard_finding;

/* Where a test may change what a product holds. */
typedef enum {
    RO_GUARD_AT_A = 1,     /* packed rows of a; bytes */
    RO_GUARD_AT_B = 2,     /* packed columns of b; bytes */
    RO_GUARD_AT_SCALE = 3, /* what integers of these rows count; binary64 */
    RO_GUARD_AT_SUMS = 4,  /* a part of the sums of a chunk, before they are checked; 32 bits */
    RO_GUARD_AT_TOTAL = 5, /* a row of `tot` after a chunk; f32 */
    RO_GUARD_AT_OUTPUT = 6 /* a row of the output; f32 */
} ro_guard_place;

typedef struct {
    uint32_t size; /* sizeof(ro_guard) */
    uint32_t reserved;
    /* Called by the thread that called the product, before that returns; at most 16 of a product
     * are told. */
    void (*found)(void *user, const ro_guard_finding *finding);
    /* For tests; NULL: none. Called by the threads that compute, as often as there is such a place.
     */
    void (*alter)(void *user, ro_guard_place place, void *data, size_t size);
    void *user;
} ro_guard;

/* From now on, fixed products are checked, where the context's kernels can (ro_ctx_guards); NULL:
 * no longer. Of convolutions these are, on CPUs, gradients of weights and those whose windows lie
 * as rows of a matrix. What does not fit twice is RO_ERR_DEVICE. On a device each such product
 * waits for its result. */
RO_API RO_MUST_USE ro_status ro_ctx_guard(ro_ctx *ctx, const ro_guard *guard);

/* Whether fixed products of so many bits are checked on this context once it is told to. */
RO_API int ro_ctx_guards(const ro_ctx *ctx, int bits);

/* On a device: if `on` is not 0, FP32 products without a mask, linear layers of these and
 * convolutions are computed, from now on, by kernels that compute each element by itself, slowly,
 * and share no code with the usual ones, so that both can be compared. The bits are the same.
 * Returns 0, and does nothing, on a CPU: there contexts of other backends have other kernels. */
RO_API int ro_ctx_plain(ro_ctx *ctx, int on);

#ifdef __cplusplus
}
#endif
#endif
