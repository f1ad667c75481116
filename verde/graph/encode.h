/* Parts of a program's bytes. Private to verde/graph. */
#ifndef VD_ENCODE_H
#define VD_ENCODE_H

#include "verde/graph/graph.h"

void vd_put_shape(vd_buf *out, const ro_shape *shape);
ro_shape vd_get_shape(vd_cursor *in);

void vd_put_graph(vd_buf *out, const vd_program *program, const vd_graph *graph);
/* False: malformed, or no memory. Nothing is checked but what keeps reading safe. */
bool vd_get_graph(vd_cursor *in, uint32_t sources, uint32_t leaf_count, vd_graph *graph);

#endif
