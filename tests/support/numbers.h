/* Nodes for operators that no model uses: on integers, in binary64, along an axis, random draws. */
#ifndef TESTS_NUMBERS_H
#define TESTS_NUMBERS_H

#include "verde/graph/build.h"

/* Returns numbers that depend on all these operators and on x, in f32 of this shape. */
vd_value test_numbers(vd_builder *b, vd_value x, const ro_shape *shape);

#endif
