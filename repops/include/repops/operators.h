/* All operators and their attributes: `make operators` writes this file from
 * repops/src/operators.def. */
#ifndef REPOPS_OPERATORS_H
#define REPOPS_OPERATORS_H

#include "repops/op_movement.h"
#include "repops/op_elementwise.h"
#include "repops/op_function.h"
#include "repops/op_product.h"
#include "repops/op_reduce.h"
#include "repops/op_norm.h"
#include "repops/op_softmax.h"
#include "repops/op_attention.h"
#include "repops/op_optimizer.h"
#include "repops/op_image.h"
#include "repops/op_sampling.h"
#include "repops/op_number.h"
#include "repops/op_along.h"

#endif
