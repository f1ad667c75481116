/* Encoding and decoding of parts of a program's bytes. Private to verde/graph. */
#ifndef VD_ENCODE_H
#define VD_ENCODE_H

#include "verde/graph/graph.h"

/* Kinds of segments. VD_SEGMENTS in place of a number of nodes says that segments follow. */
enum { VD_SEGMENT_PLAIN = 0, VD_SEGMENT_REPEAT = 1 };
#define VD_SEGMENTS UINT32_MAX

/* Canonical bytes are gathered in `out`, and passed on to `take` in pieces, unless it is NULL. */
typedef struct {
    vd_buf *out;
    bool nameless; /* all names are written as empty */
    vd_take_bytes take;
    void *user;
} vd_encoding;
void vd_put_name(const vd_encoding *e, const char *name);
/* Passes the bytes in `out` on to `take`, once they are many, or if `last` is set. */
void vd_encoding_pass(const vd_encoding *e, bool last);

int vd_attr_count(int op); /* 0: there is no such operator */
void vd_put_shape(vd_buf *out, const ro_shape *shape);
/* Returns false; *err says that there was no memory, which is nobody's fault. */
bool vd_no_memory(vd_err *err);
/* Returns whether a count exceeds `most`, which a later version may allow: then *err says so. */
bool vd_exceeds(uint64_t count, uint64_t most, const char *what, vd_err *err);
ro_shape vd_get_shape(vd_cursor *in, vd_err *err);

/* Write and read the parts that follow the graphs: PROTOCOL.md section 1.6. vd_get_parts returns
 * false for malformed bytes; *err may say why. */
void vd_put_parts(vd_buf *out, const vd_program *program);
bool vd_get_parts(vd_cursor *in, vd_program *program, vd_err *err);

void vd_put_graph(const vd_encoding *e, const vd_program *program, const vd_graph *graph);
/* Reads a graph of the program, whose data and layout are read already. Returns false for malformed
 * bytes, or without memory; *err names what is unknown. It checks no more than what makes reading
 * safe. */
bool vd_get_graph(vd_cursor *in, const vd_program *program, vd_graph *graph, vd_err *err);

#endif
