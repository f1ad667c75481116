/* The rows that a reduction reduces. Private to repops. */
#ifndef RO_REDUCTION_H
#define RO_REDUCTION_H

#include "repops/op_reduce.h"
#include "repops/src/call.h"

/* Returns the number of rows that a reduction views its input as. If rows are empty, the output's
 * size says how many there are. */
RO_INLINE int64_t ro_view_rows(const ro_call *call) {
    return call->attr[RO_ROWS_COLS] > 0 ? ro_shape_numel(&call->input[0]) / call->attr[RO_ROWS_COLS]
                                        : ro_shape_numel(&call->output);
}

#endif
