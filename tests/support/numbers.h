/* Nodes of operators that no model uses: of integers, by way of binary64, along an axis, draws. */
#ifndef TESTS_NUMBERS_H
#define TESTS_NUMBERS_H

#include "verde/graph/build.h"

/* Numbers that depend on each of them, from those of the step before; f32 of this shape. */
vd_value test_numbers(vd_builder *b, vd_value x, const ro_shape *shape);

#endif
