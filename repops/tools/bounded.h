/* Bounded elements (SPEC.md section 14.5) of golden cases, for tests/golden/bounded.txt. */
#ifndef REPOPS_TOOLS_BOUNDED_H
#define REPOPS_TOOLS_BOUNDED_H

#include "repops/tools/op_data.h"

enum { BOUNDED_ELEMENTS = 64 };

/* Gives the bits of value and bound, alternating, of up to BOUNDED_ELEMENTS elements, evenly
 * spaced. Returns how many elements there are. */
int64_t bounded_of_case(const op_case *c, uint64_t out[2 * BOUNDED_ELEMENTS]);

#endif
