/* The one-element reference definition of every operator: the executable form of SPEC.md.
 *
 * An element is a fold: begin, then ro_ref_steps() times step, then finish. Short operators have no
 * steps. Inputs are read through an accessor, so that a referee can fetch single elements with
 * proofs. The definition is total: any input bits have a result, and all loop bounds come from the
 * call. Like all of repops it computes in the default floating-point modes, whatever the thread's
 * are, and calls the accessor in them. No pointer may be NULL; nothing here checks that. */
#ifndef REPOPS_REF_H
#define REPOPS_REF_H

#include "repops/repops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the bits of element `index` of input `input`: zero-extended to 32 bits for types of 8 and
 * 16 bits, else as they are (RO_F32, RO_I32). An accessor that lacks the element records the miss
 * and returns 0. */
typedef struct {
    uint32_t (*load)(void *user, int input, int64_t index);
    void *user;
} ro_access;

/* The accumulator of a fold. Its first ro_ref_state_size() bytes, as little-endian 32-bit words,
 * are what a provider commits to. */
typedef struct {
    uint32_t word[256];
} ro_acc;

/* All functions here need a call that passed ro_infer, and 0 <= element < numel(output). */
RO_API int64_t ro_ref_steps(const ro_call *call);
RO_API size_t ro_ref_state_size(const ro_call *call); /* bytes, at most 1024; 0 without steps */
RO_API void ro_ref_begin(const ro_call *call, int64_t element, ro_acc *acc);
RO_API void ro_ref_step(const ro_call *call, int64_t element, int64_t step, ro_acc *acc,
                        const ro_access *in);
RO_API uint32_t ro_ref_finish(const ro_call *call, int64_t element, const ro_acc *acc,
                              const ro_access *in);

/* Computes one element: begin, all steps, finish. */
RO_API uint32_t ro_ref_element(const ro_call *call, int64_t element, const ro_access *in);

/* The most input elements that one step, or finish, of this call can read (an element that is read
 * twice counts twice). */
RO_API int64_t ro_ref_step_loads(const ro_call *call);
RO_API int64_t ro_ref_finish_loads(const ro_call *call);

/* ---- free operators (free.h), SPEC 14.5 ---- */

/* An element computed in binary64 in a fixed order: |value - exact| <= bound, and the value of
 * every profile is within the bound too. The bits of both members are the same everywhere. A NaN as
 * bound means that there is no bound: any value could be right. */
typedef struct {
    double value, bound;
} ro_bounded;

/* Bounds an element of an operator for which ro_op_is_free is true; for others the bound is NaN. It
 * reads only input elements that ro_ref_element reads for the same element. */
RO_API ro_bounded ro_ref_bounded(const ro_call *call, int64_t element, const ro_access *in);

/* These compute ro_ref_bounded as a fold, if there are steps: ro_ref_begin, then ro_ref_steps()
 * times step, then finish. A step reads only elements that ro_ref_step reads. The first
 * ro_ref_bounded_state_size() bytes of the accumulator have the same bits everywhere, and any bits
 * have a result. */
RO_API size_t ro_ref_bounded_state_size(const ro_call *call); /* 0 without steps */
RO_API void ro_ref_bounded_step(const ro_call *call, int64_t element, int64_t step, ro_acc *acc,
                                const ro_access *in);
RO_API ro_bounded ro_ref_bounded_finish(const ro_call *call, const ro_acc *acc);

/* The numbers of the grid of `bits` bits that some profile may round the element to: those with
 * places (SPEC 14.2) low to high. If low < high, a device must have reported its choice. */
typedef struct {
    int64_t low, high;
} ro_places;
RO_API ro_places ro_bounded_places(ro_bounded element, int bits);
/* Returns nonzero if the f32 number with bits `value` is one of them. Where the element is not
 * finite, `value` must be a canonical number that is not finite either. */
RO_API int ro_bounded_admits(ro_bounded element, int bits, uint32_t value);

/* An accessor over whole tensors in memory, for tests and small tools. */
typedef struct {
    const ro_call *call;
    const void *const *data;
} ro_ref_memory;
RO_API uint32_t ro_ref_load_memory(void *ro_ref_memory_ptr, int input, int64_t index);

/* Computes element (i, j) of the result of ro_sgemm, from c's contents before the call. */
RO_API float ro_ref_sgemm(int trans_a, int trans_b, int64_t i, int64_t j, int64_t k, float alpha,
                          const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                          const float *c, int64_t ldc);

/* Computes a few golden elements, and checks this thread's rounding mode and handling of
 * subnormals. Returns RO_OK, or RO_ERR_DEVICE with a sentence in `why`, which may be NULL. */
RO_API RO_MUST_USE ro_status ro_ref_self_test(char *why, size_t why_size);

#ifdef __cplusplus
}
#endif
#endif
