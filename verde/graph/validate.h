/* What a program's parts must satisfy. Private to verde/graph. */
#ifndef VD_VALIDATE_H
#define VD_VALIDATE_H

#include "verde/graph/graph.h"

/* Printable ASCII with an end: names are shown to people, whoever chose them. A marker, which is at
 * most `markers`, becomes a number of up to `digits`. */
bool vd_valid_name(const char *name, int markers, int digits);
/* Operators take tensors without elements; programs have none: there would be nothing to commit to.
 */
bool vd_has_elements(const ro_shape *shape);
/* Is what is stated of a data tensor's elements something that its type can say? */
bool vd_valid_range(const vd_data *data);
/* A sentence about the number of an operator, or of an element type, that is not known. status:
 * VD_ERR_VERSION if a later version may know it, else VD_ERR_PEER. */
typedef struct {
    char text[96];
    vd_status status;
} vd_text;
vd_text vd_say_operator(int op);
vd_text vd_say_type(int dtype);
/* `shapes` has room for RO_MAX_INPUTS. VD_ERR_PEER names the node, the leaf or the loss. */
VD_MUST_USE vd_status vd_check_graph(const vd_program *program, const vd_graph *graph,
                                     ro_shape *shapes, vd_err *err);

#endif
