/* Parts of a program's bytes. Private to verde/graph. */
#ifndef VD_ENCODE_H
#define VD_ENCODE_H

#include "verde/graph/graph.h"

/* Kinds of segments, and what stands in place of a number of nodes: segments follow. */
enum { VD_SEGMENT_PLAIN = 0, VD_SEGMENT_REPEAT = 1 };
#define VD_SEGMENTS UINT32_MAX

int vd_attr_count(int op); /* 0: there is no such operator */
void vd_put_shape(vd_buf *out, const ro_shape *shape);
ro_shape vd_get_shape(vd_cursor *in);

void vd_put_graph(vd_buf *out, const vd_program *program, const vd_graph *graph);
/* False: malformed, or no memory. Nothing is checked but what keeps reading safe. */
bool vd_get_graph(vd_cursor *in, uint32_t sources, uint32_t leaf_count, vd_graph *graph);

#endif
