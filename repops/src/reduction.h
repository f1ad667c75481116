/* Rows that a reduction sees. Private to repops. */
#ifndef RO_REDUCTION_H
#define RO_REDUCTION_H

#include "repops/op_reduce.h"
#include "repops/src/call.h"

/* Returns the rows of a reduction's view. Empty rows are as many as the output says. */
RO_INLINE int64_t ro_view_rows(const ro_call *call) {
    return call->attr[RO_ROWS_COLS] > 0 ? ro_shape_numel(&call->input[0]) / call->attr[RO_ROWS_COLS]
                                        : ro_shape_numel(&call->output);
}

#endif
