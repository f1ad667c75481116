/* Fixed products that check their integer sums while they compute (SPEC.md section 3.5), to find
 * errors of a processor or its memory.
 *
 * For each chunk of a block of the output, the integer sums of each column are added up modulo
 * 2^32. Where a sum consists of parts weighted by powers of two, odd factors replace those powers,
 * so that every bit of each part counts. The totals must equal those computed from the sums of the
 * rows of a. Row totals are kept too, and show which row is wrong after a column did not match.
 * Packed numbers and scales get a checksum when they are made, which is compared after their last
 * use.
 *
 * Operands that stay packed (packed.h) are covered if the context was checking when they were
 * packed.
 *
 * A block that does not match is computed again, once, from the present contents of a and b; of
 * operands that stay packed only the packed form exists. The bits of correct results do not depend
 * on any of this. */
#ifndef REPOPS_GUARD_H
#define REPOPS_GUARD_H

#include "repops/repops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of mismatch. */
typedef enum {
    RO_GUARD_SUMS = 1,   /* the sums of a chunk */
    RO_GUARD_PACKED = 2, /* packed numbers, or their scales, changed after they were made */
} ro_guard_kind;

/* The first mismatch of a block, and how many rows and columns of the block do not match. */
typedef struct {
    int32_t kind;     /* ro_guard_kind */
    int32_t again;    /* 0: of the first computation; 1: of the second, which failed as well */
    int64_t product;  /* index in the batch */
    int64_t chunk;    /* index of the chunk of 256 steps of k */
    int64_t row, col; /* in the product; -1: unknown, or it matched when looked at again */
    int64_t rows, cols;
} ro_guard_finding;

/* Places where a test may alter a product's data. */
typedef enum {
    RO_GUARD_AT_A = 1,     /* packed rows of a; bytes */
    RO_GUARD_AT_B = 2,     /* packed columns of b; bytes */
    RO_GUARD_AT_SCALE = 3, /* scales of these rows; binary64 on CPUs, 32 bits on a GPU */
    RO_GUARD_AT_SUMS = 4,  /* a part of a chunk's sums, before they are checked; 32 bits each */
    RO_GUARD_AT_TOTAL = 5, /* a row of the running totals after a chunk; f32 */
    RO_GUARD_AT_OUTPUT = 6 /* a row of the output; f32 */
} ro_guard_place;

typedef struct {
    uint32_t size; /* sizeof(ro_guard) */
    uint32_t reserved;
    /* Called by the thread that called the product, before the product returns, with at most 16
     * findings per product. */
    void (*found)(void *user, const ro_guard_finding *finding);
    /* For tests; NULL for none. Called by the computing threads whenever they pass such a place. */
    void (*alter)(void *user, ro_guard_place place, void *data, size_t size);
    void *user;
} ro_guard;

/* Makes the context check fixed products from now on, where its kernels can (ro_ctx_guards); NULL
 * turns that off. On CPUs the only convolutions that are checked are gradients of weights, and
 * those whose windows already are the rows of a matrix; on a device all but gradients of weights
 * that take more than 64 MiB packed. A product that does not match twice fails with RO_ERR_DEVICE.
 * On a device each checked product waits for its result. */
RO_API RO_MUST_USE ro_status ro_ctx_guard(ro_ctx *ctx, const ro_guard *guard);

/* Returns nonzero if this context can check fixed products of so many bits. */
RO_API int ro_ctx_guards(const ro_ctx *ctx, int bits);

/* On a device, a nonzero `on` makes FP32 products without a mask, linear layers of such products
 * and convolutions use slow kernels that compute each element by itself and share no code with the
 * usual ones, so that both can be compared. The bits are the same. On a CPU this returns 0 and does
 * nothing: there, contexts of other backends have other kernels. */
RO_API int ro_ctx_plain(ro_ctx *ctx, int on);

#ifdef __cplusplus
}
#endif
#endif
