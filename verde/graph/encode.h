/* Parts of a program's bytes. Private to verde/graph. */
#ifndef VD_ENCODE_H
#define VD_ENCODE_H

#include "verde/graph/graph.h"

/* Kinds of segments, and what stands in place of a number of nodes: segments follow. */
enum { VD_SEGMENT_PLAIN = 0, VD_SEGMENT_REPEAT = 1 };
#define VD_SEGMENTS UINT32_MAX

/* Where canonical bytes go: into `out`, and from there to `take`, if there is one. */
typedef struct {
    vd_buf *out;
    bool nameless; /* all names are empty */
    vd_take_bytes take;
    void *user;
} vd_encoding;
void vd_put_name(const vd_encoding *e, const char *name);
/* Gives what is in `out` to `take`, if it is much or `last`. */
void vd_encoding_pass(const vd_encoding *e, bool last);

int vd_attr_count(int op); /* 0: there is no such operator */
void vd_put_shape(vd_buf *out, const ro_shape *shape);
/* False, and *err says that there was no memory, which is nobody's fault. */
bool vd_no_memory(vd_err *err);
/* Whether a count is more than `most`, which a later version may take: then *err says so. */
bool vd_exceeds(uint64_t count, uint64_t most, const char *what, vd_err *err);
ro_shape vd_get_shape(vd_cursor *in, vd_err *err);

/* The parts that follow the graphs: PROTOCOL.md section 1.6. False: malformed, and *err may say
 * how. */
void vd_put_parts(vd_buf *out, const vd_program *program);
bool vd_get_parts(vd_cursor *in, vd_program *program, vd_err *err);

void vd_put_graph(const vd_encoding *e, const vd_program *program, const vd_graph *graph);
/* `graph` is one of the program's, whose data and layout are there. False: malformed, or no memory;
 * *err says what was not known. Nothing is checked but what keeps reading safe. */
bool vd_get_graph(vd_cursor *in, const vd_program *program, vd_graph *graph, vd_err *err);

#endif
