/* Printing of a graph's pieces as text. */
#ifndef VD_PRINT_H
#define VD_PRINT_H

#include "verde/graph/graph.h"

void vd_print_shape(vd_buf *out, const ro_shape *shape); /* "f32[4,32]" */
/* The value of attribute `attr` of an operator. */
void vd_print_attr(vd_buf *out, const ro_op_info *info, int attr, int64_t value);
/* Prints "%12", "state:NAME", "data:NAME" or "step". */
void vd_print_value(vd_buf *out, const vd_program *program, const vd_graph *graph, uint32_t value);

#endif
