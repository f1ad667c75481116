/* Operators in binary64 and in an order of the machine's own choosing, rounded to binary32, with
 * the roundings reported that another order could change: the rounding-log scheme of Srivastava,
 * Arora and Boneh (NeurIPS 2024), SPEC.md section 14.
 *
 * The order is a device profile's. Built-in profiles stand for different GPUs and are simulated:
 * their names begin with "sim-"; "cuda" is a CUDA device itself. Results of two profiles differ in
 * their last bits; a run that follows the reports of another has its bits. */
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
    int32_t lanes;      /* partial sums side by side in a sum: 1, 2, 4, ..., RO_PROFILE_LANES_MAX */
    int32_t split;      /* terms of one piece of a long sum, a multiple of 64; 0: all in one */
    int32_t pairwise;   /* partial sums are added 0: one after the other, 1: as a balanced tree */
    int32_t contract;   /* 1: a * b + c is rounded once, where the instruction set can do it */
    int32_t descending; /* 1: a sum's terms from the last to the first */
    int32_t estrin;     /* polynomials 0: by Horner's scheme, 1: by Estrin's */
    int32_t device;     /* 1: the first CUDA device, in its own order; the others say nothing */
} ro_profile;

/* Built-in simulated profile i, NULL after the last one. Its size is that of the first version of
 * ro_profile that has all that it needs: one whose size is larger than sizeof(ro_profile) is given
 * to functions as it is, and not copied. */
RO_API const ro_profile *ro_profile_at(int i);
/* Finds these profiles and "cuda". NULL if no built-in profile has the name; NULL is no name. */
RO_API const ro_profile *ro_profile_by_name(const char *name);
/* RO_ERR_ARG and a sentence in `why`, which may be NULL, if a member is out of range. */
RO_API RO_MUST_USE ro_status ro_profile_check(const ro_profile *profile, char *why,
                                              size_t why_size);

/* Whether an operator's bits depend on the order, on contraction or on the evaluation of a
 * function (SPEC 14.1). ro_free_run takes these operators only; all others are ro_run's. */
RO_API int ro_op_is_free(int op);

/* ---- rounding, SPEC 14.2; bits is 16..32 ---- */

/* The nearest binary32 number whose last 32 - bits bits are 0, ties to even. */
RO_API float ro_round(double x, int bits);
/* Such a number's neighbour, above (direction 1) or below (-1). */
RO_API float ro_round_next(float x, int bits, int direction);

/* ---- execution ---- */

typedef enum {
    RO_FREE_F32 = 0,     /* computed in binary32 */
    RO_FREE_F64 = 1,     /* computed in binary64, rounded, nothing reported */
    RO_FREE_REPORT = 2,  /* and every element reported that another order could round differently */
    RO_FREE_REPLAY = 3,  /* rounded as those reports say */
    RO_FREE_SYMBOLS = 4, /* one symbol for every element, after Srivastava et al. */
    RO_FREE_FOLLOW = 5,  /* rounded as those symbols say */
    RO_FREE_VALUES = 6   /* not rounded: `value` and `bound`; nothing is written to the output */
} ro_free_mode;

/* A rounding that another order could change (SPEC 14.3): the last `bits` bits of the result's
 * place on the grid. 1 bit tells two neighbours apart; more is an escape: two computations
 * may lie further apart than neighbours do. */
typedef struct {
    int64_t element;
    uint32_t place;
    uint32_t bits; /* 1..32 */
} ro_close_call;

/* Rounds one's own y by a reported call, SPEC 14.3. A NaN or an infinity stays itself. */
RO_API float ro_round_called(double y, int bits, const ro_close_call *call);

typedef struct {
    uint32_t size; /* sizeof(ro_rounding) */
    uint32_t reserved;
    ro_free_mode mode;
    int32_t bits;     /* to round to; RO_FREE_F32 ignores it */
    double threshold; /* SYMBOLS: of the distance, as a part of the result's power of two */
    uint8_t *symbol;  /* SYMBOLS writes one per element of the output, FOLLOW reads them */
    const ro_close_call *call; /* REPLAY: ascending by element, call_count of them */
    int64_t call_count;
    double *value, *bound; /* VALUES: one per element; bound may be NULL */
} ro_rounding;

typedef struct {
    uint32_t size; /* sizeof(ro_free_report): the caller sets it, and ro_free_run all the others */
    uint32_t reserved;
    /* Ascending; the context's until its next ro_free_run begins, which writes where they are: what
     * is to be replayed there is copied. REPORT: close calls. REPLAY, FOLLOW: the elements that
     * were not rounded to the nearest, and the place of that nearest, of 32 bits. */
    const ro_close_call *call;
    int64_t call_count;
    int64_t escapes;   /* REPORT, REPLAY: calls of more than one bit */
    int64_t decided;   /* SYMBOLS, FOLLOW: symbols other than 1 */
    int64_t corrected; /* REPLAY, FOLLOW: elements that were not rounded to the nearest */
} ro_free_report;

/* Opens what the profile computes on, so that what is missing is known before the first operator:
 * RO_ERR_DEVICE if it is a CUDA device and there is none. */
RO_API RO_MUST_USE ro_status ro_free_open(ro_ctx *ctx, const ro_profile *profile);

/* Runs one operator of ro_op_is_free in the profile's order, on f32 tensors in host memory like
 * ro_run's, and with its rules; what `rounding` points to overlaps none of them. `report` may be
 * NULL, and so may `output` for RO_FREE_VALUES. RO_ERR_UNSUPPORTED where the context itself
 * is on a device: a profile's device takes copies of tensors in host memory. */
RO_API RO_MUST_USE ro_status ro_free_run(ro_ctx *ctx, const ro_profile *profile,
                                         const ro_rounding *rounding, const ro_call *call,
                                         const void *const *input, void *output,
                                         ro_free_report *report);

#ifdef __cplusplus
}
#endif
#endif
