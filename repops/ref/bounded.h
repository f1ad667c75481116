/* Private to repops/ref: elements of free operators with bounds of their errors, SPEC.md section
 * 14.5. The formulas are those of the kernels (repops/free), evaluated in one way. */
#ifndef RO_REF_BOUNDED_H
#define RO_REF_BOUNDED_H

#include "repops/free/approx.h"
#include "repops/ref/ref.h"

/* The order of the reference: no contraction, Horner's scheme. */
static const order ro_plain = {0, 0};

/* Returns element `index` of input `input`, as a number. */
RO_INLINE approx input_at(const ro_access *in, int input, int64_t index) {
    return ap_exact((real)loadf(in, input, index));
}

RO_INLINE approx attr_at(const ro_call *call, int index) {
    return ap_exact((real)attrf(call, index));
}

/* ---- sums: terms are added in the order of SPEC, from +0 ---- */

typedef struct {
    real sum, size;
    uint64_t terms;
} bounded_sum;

/* Adds a term whose error bound is 1 + excess times that which sum_of counts for each term. */
RO_INLINE void add_excess(bounded_sum *s, real term, real excess) {
    const real size = ap_abs(term);
    s->sum = s->sum + term;
    s->size = s->size + (size > 0 ? size * (1 + excess) : size);
    s->terms++;
}

RO_INLINE void add_term(bounded_sum *s, real term) {
    add_excess(s, term, 0);
}

/* Returns the sum of terms that have `roundings` each. */
RO_INLINE approx sum_of(const bounded_sum *s, double roundings) {
    return (approx){s->sum, sum_error((int64_t)s->terms, roundings) * s->size};
}

/* ---- rows ---- */

/* Either an element, or a fold whose steps have the same terms as ro_ref_step's. The bounds hold
 * for all orders, up to rounding in the bounds themselves. */
typedef struct {
    approx (*element)(const ro_call *call, int64_t e, const ro_access *in);
    void (*step)(const ro_call *call, int64_t e, int64_t step, bounded_sum *sum,
                 const ro_access *in);
    approx (*finish)(const ro_call *call, const bounded_sum *sum);
} ro_bounded_op;

/* Stands below a definition: the entry of operator `name`, which is its name in operators.def.
 * bounded.c needs an entry of every free operator, or linking fails. */
#define RO_BOUNDED(name, ...) const ro_bounded_op ro_bounded_op_##name = {__VA_ARGS__};

approx ro_bounded_plain_sum(const ro_call *call, const bounded_sum *sum);

#endif
