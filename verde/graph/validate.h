/* Checks on the parts of a program. Private to verde/graph. */
#ifndef VD_VALIDATE_H
#define VD_VALIDATE_H

#include "verde/graph/graph.h"

/* Returns whether a name is NUL-terminated printable ASCII: names, which anyone may choose, are
 * shown to people. It may contain placeholders, numbered up to `markers`, each of which becomes a
 * number of up to `digits` digits. */
bool vd_valid_name(const char *name, int markers, int digits);
/* Returns whether a shape has elements. Programs must not have empty tensors: nothing could be
 * committed to. */
bool vd_has_elements(const ro_shape *shape);
/* Returns whether a data tensor's stated range, if any, fits its type. */
bool vd_valid_range(const vd_data *data);
/* A message about an operator or element type with an unknown number. status: VD_ERR_VERSION if a
 * later version may know it, else VD_ERR_PEER. */
typedef struct {
    char text[96];
    vd_status status;
} vd_text;
vd_text vd_say_operator(int op);
vd_text vd_say_type(int dtype);
/* Checks a graph. `shapes` has room for RO_MAX_INPUTS. VD_ERR_PEER names node, leaf or loss. */
VD_MUST_USE vd_status vd_check_graph(const vd_program *program, const vd_graph *graph,
                                     ro_shape *shapes, vd_err *err);

#endif
