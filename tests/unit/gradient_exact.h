/* Layers in double precision, implemented independently of the operators. */
#ifndef TESTS_GRADIENT_EXACT_H
#define TESTS_GRADIENT_EXACT_H

#include "gradient_case.h"

typedef void exact_fn(const example *x, const layer *l, double *out);
exact_fn exact_norm, exact_xent, exact_xent_ignore, exact_softmax, exact_rmsnorm, exact_along;
exact_fn exact_attention, exact_grouped;

/* The factor of element e in dropout: SPEC.md section 6. */
double exact_mask(const example *x, float rate, int64_t e);

#endif
