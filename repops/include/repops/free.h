/* Free operators: computed in binary64, in an order of the machine's own choosing, and rounded to
 * binary32. They report the roundings that another order could change. This is the rounding-log
 * scheme of Srivastava, Arora and Boneh (NeurIPS 2024), SPEC.md section 14.
 *
 * A device profile sets the order. Built-in profiles whose names begin with "sim-" simulate
 * different GPUs; "cuda" is a real CUDA device. Results of two profiles differ in their last bits;
 * a run that follows the reports of another run gets that run's bits. */
#ifndef REPOPS_FREE_H
#define REPOPS_FREE_H

#include "repops/repops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RO_PROFILE_LANES_MAX = 64,
    RO_ROUND_BITS_MIN = 16,
    RO_ROUND_BITS_MAX = 32,
};

/* How free kernels evaluate. */
typedef struct {
    uint32_t size; /* sizeof(ro_profile) */
    char name[32];
    int32_t lanes;      /* partial sums side by side: 1, 2, 4, ..., RO_PROFILE_LANES_MAX */
    int32_t split;      /* terms of one piece of a long sum, a multiple of 64; 0: one piece */
    int32_t pairwise;   /* partial sums are added 0: one after the other, 1: as a balanced tree */
    int32_t contract;   /* 1: a * b + c is rounded once, where the instruction set has FMA */
    int32_t descending; /* 1: sums run from the last term to the first */
    int32_t estrin;     /* polynomials: 0 by Horner's scheme, 1 by Estrin's */
    int32_t device;     /* 1: the first CUDA device, in its own order; the rest is ignored */
} ro_profile;

/* Returns built-in simulated profile i; NULL after the last one. A profile may need members that
 * the caller's ro_profile lacks: its `size` is then larger than sizeof(ro_profile), and the caller
 * must pass the pointer on instead of copying the structure. */
RO_API const ro_profile *ro_profile_at(int i);
/* Returns the built-in profile of this name, "cuda" included; NULL if none has it, or if `name` is
 * NULL. */
RO_API const ro_profile *ro_profile_by_name(const char *name);
/* Returns RO_ERR_ARG, with a sentence in `why` (may be NULL), if a member is out of range. */
RO_API RO_MUST_USE ro_status ro_profile_check(const ro_profile *profile, char *why,
                                              size_t why_size);

/* Returns nonzero if the operator's bits depend on the order, on contraction or on how a function
 * is evaluated (SPEC 14.1). ro_free_run takes only these operators; ro_run takes all others. */
RO_API int ro_op_is_free(int op);

/* ---- rounding, SPEC 14.2; bits is 16..32 ---- */

/* The nearest binary32 number whose last 32 - bits bits are 0, ties to even. */
RO_API float ro_round(double x, int bits);
/* Returns the neighbour of such a number: the next above (direction 1) or below (-1). */
RO_API float ro_round_next(float x, int bits, int direction);

/* ---- execution ---- */

typedef enum {
    RO_FREE_F32 = 0,     /* computed in binary32 */
    RO_FREE_F64 = 1,     /* computed in binary64, rounded, nothing reported */
    RO_FREE_REPORT = 2,  /* like F64, and reports every rounding that another order could change */
    RO_FREE_REPLAY = 3,  /* rounded as the reports of another run say */
    RO_FREE_SYMBOLS = 4, /* writes one symbol per element, after Srivastava et al. */
    RO_FREE_FOLLOW = 5,  /* rounded as the symbols of another run say */
    RO_FREE_VALUES = 6   /* not rounded: `value` and `bound`; nothing is written to the output */
} ro_free_mode;

/* A close call: a rounding that another order could change (SPEC 14.3). It gives the last `bits`
 * bits of the result's place on the grid. One bit suffices to tell neighbours apart; more bits are
 * an escape, where two computations may differ by more than one place. */
typedef struct {
    int64_t element;
    uint32_t place;
    uint32_t bits; /* 1..32 */
} ro_close_call;

/* Rounds the caller's own y as the reported call says, SPEC 14.3. NaNs and infinities stay. */
RO_API float ro_round_called(double y, int bits, const ro_close_call *call);

typedef struct {
    uint32_t size; /* sizeof(ro_rounding) */
    uint32_t reserved;
    ro_free_mode mode;
    int32_t bits;     /* bits to round to; ignored by RO_FREE_F32 */
    double threshold; /* SYMBOLS: distances up to it, over the power of two, get symbol 1 */
    uint8_t *symbol;  /* SYMBOLS writes one per element of the output, FOLLOW reads them */
    const ro_close_call *call; /* REPLAY: call_count of them, in ascending order of elements */
    int64_t call_count;
    double *value, *bound; /* VALUES: one per element; bound may be NULL */
} ro_rounding;

typedef struct {
    uint32_t size; /* sizeof(ro_free_report), set by the caller; ro_free_run sets the rest */
    uint32_t reserved;
    /* REPORT: the close calls. REPLAY, FOLLOW: the elements that were not rounded to the nearest,
     * each with the 32-bit place of the nearest number. Ascending by element. The context owns the
     * array, and its next ro_free_run overwrites it: copy it before replaying it there. */
    const ro_close_call *call;
    int64_t call_count;
    int64_t escapes;   /* REPORT, REPLAY: calls of more than one bit */
    int64_t decided;   /* SYMBOLS, FOLLOW: symbols other than 1 */
    int64_t corrected; /* REPLAY, FOLLOW: elements that were not rounded to the nearest */
} ro_free_report;

/* Opens the device that the profile computes on, so that a missing one is known before the first
 * operator: RO_ERR_DEVICE if the profile needs a CUDA device and there is none. */
RO_API RO_MUST_USE ro_status ro_free_open(ro_ctx *ctx, const ro_profile *profile);

/* Runs one operator for which ro_op_is_free is true, in the profile's order. Tensors are f32 in
 * host memory, under the rules of ro_run; arrays that `rounding` points to must not overlap them.
 * `report` may be NULL, and so may `output` with RO_FREE_VALUES. Returns RO_ERR_UNSUPPORTED if the
 * context itself is on a device: a profile's device gets copies of tensors in host memory. */
RO_API RO_MUST_USE ro_status ro_free_run(ro_ctx *ctx, const ro_profile *profile,
                                         const ro_rounding *rounding, const ro_call *call,
                                         const void *const *input, void *output,
                                         ro_free_report *report);

#ifdef __cplusplus
}
#endif
#endif
