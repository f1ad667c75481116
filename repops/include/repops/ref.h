/* The one-element reference definition of every operator: the executable form of SPEC.md.
 *
 * An element is a fold: begin, then ro_ref_steps() times step, then finish. Short operators have no
 * steps. Inputs are read through an accessor, so that a referee can fetch single elements with
 * proofs. The definition is total: any input bits have a result, all loop bounds come from the
 * call. Like all of repops it computes in the default modes of floating point, whatever the
 * thread's are; the accessor is called in them. No pointer may be NULL, and nothing here checks
 * that.
 */
#ifndef REPOPS_REF_H
#define REPOPS_REF_H

#include "repops/repops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the bits of element `index` of input `input`, zero-extended to 32 bits (types of
 * 8 and 16 bits) or as they are (RO_F32, RO_I32). An accessor that lacks the element records the
 * miss and returns 0. */
typedef struct {
    uint32_t (*load)(void *user, int input, int64_t index);
    void *user;
} ro_access;

/* The accumulator of a fold. Its first ro_ref_state_size() bytes, as little-endian 32-bit words,
 * are what a provider commits to. */
typedef struct {
    uint32_t word[256];
} ro_acc;

/* The call must have passed ro_infer, and 0 <= element < numel(output). */
RO_API int64_t ro_ref_steps(const ro_call *call);
RO_API size_t ro_ref_state_size(const ro_call *call); /* bytes, at most 1024; 0 without steps */
RO_API void ro_ref_begin(const ro_call *call, int64_t element, ro_acc *acc);
RO_API void ro_ref_step(const ro_call *call, int64_t element, int64_t step, ro_acc *acc,
                        const ro_access *in);
RO_API uint32_t ro_ref_finish(const ro_call *call, int64_t element, const ro_acc *acc,
                              const ro_access *in);

/* begin, all steps, finish. */
RO_API uint32_t ro_ref_element(const ro_call *call, int64_t element, const ro_access *in);

/* The most elements of the inputs that one step, and finish, of this call can read (some twice). */
RO_API int64_t ro_ref_step_loads(const ro_call *call);
RO_API int64_t ro_ref_finish_loads(const ro_call *call);

/* ---- free operators (free.h), SPEC 14.5 ---- */

/* An element in binary64 and a fixed order: |value - exact| <= bound, and so is every profile's.
 * The bits of both are the same everywhere. A bound that is NaN says that there is none: any value
 * could be right. */
typedef struct {
    double value, bound;
} ro_bounded;

/* Bounds an element of an ro_op_is_free operator; of others the bound is NaN. It reads no element
 * of the inputs that ro_ref_element of the same element does not read. */
RO_API ro_bounded ro_ref_bounded(const ro_call *call, int64_t element, const ro_access *in);

/* ro_ref_bounded as a fold, if there are steps: ro_ref_begin, then ro_ref_steps() times step, then
 * finish. A step reads no other elements than ro_ref_step. The first ro_ref_bounded_state_size()
 * bytes of the accumulator have the same bits everywhere, and any bits have a result. */
RO_API size_t ro_ref_bounded_state_size(const ro_call *call); /* 0 without steps */
RO_API void ro_ref_bounded_step(const ro_call *call, int64_t element, int64_t step, ro_acc *acc,
                                const ro_access *in);
RO_API ro_bounded ro_ref_bounded_finish(const ro_call *call, const ro_acc *acc);

/* The members of the grid of `bits` bits that some profile may round the element to: their places
 * (SPEC 14.2) are low, ..., high. If low < high, a device must have reported its choice. */
typedef struct {
    int64_t low, high;
} ro_places;
RO_API ro_places ro_bounded_places(ro_bounded element, int bits);
/* Whether the f32 number with these bits is one of them; of an element that is not finite, whether
 * it is not finite either, and canonical. */
RO_API int ro_bounded_admits(ro_bounded element, int bits, uint32_t value);

/* An accessor over whole tensors in memory, for tests and small tools. */
typedef struct {
    const ro_call *call;
    const void *const *data;
} ro_ref_memory;
RO_API uint32_t ro_ref_load_memory(void *ro_ref_memory_ptr, int input, int64_t index);

/* Element (i, j) of what ro_sgemm leaves in c, from the c before it. */
RO_API float ro_ref_sgemm(int trans_a, int trans_b, int64_t i, int64_t j, int64_t k, float alpha,
                          const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                          const float *c, int64_t ldc);

/* Computes a few golden elements, and checks rounding mode and subnormals of this thread.
 * Returns RO_OK, or RO_ERR_DEVICE with a sentence in `why`, which may be NULL. */
RO_API RO_MUST_USE ro_status ro_ref_self_test(char *why, size_t why_size);

#ifdef __cplusplus
}
#endif
#endif
