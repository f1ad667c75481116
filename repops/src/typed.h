/* Functions that the generated typed calls use (typed.c). */
#ifndef RO_TYPED_H
#define RO_TYPED_H

#include "repops/src/operands.h"
#include "repops/typed.h"

/* Returns the last dimension; 0 if the shape is invalid, which ro_infer then refuses. */
int64_t ro_last_of(const ro_tensor *t);

/* Runs ro_infer and ro_run as repops/typed.h describes. attr: RO_MAX_ATTRS words, or NULL. */
ro_status ro_typed_call(ro_ctx *ctx, int op, int32_t count, const ro_tensor *const *in,
                        const int64_t *attr, ro_tensor *out);
/* Like ro_typed_call, for `count` inputs that follow each other in memory, and then *last; `last`
 * is NULL for an operator without such an input. */
ro_status ro_typed_row(ro_ctx *ctx, int op, int32_t count, const ro_tensor *in,
                       const ro_tensor *const *last, const int64_t *attr, ro_tensor *out);

#endif
