/* Which leaves of a state are a model's weights, and what they are called in files. */
#ifndef VD_EXPORT_H
#define VD_EXPORT_H

#include "verde/exec/state_proof.h"
#include "verde/weights/weights.h"

/* One tensor of an exported model. */
typedef struct {
    uint32_t leaf; /* of the program's layout */
    vd_weight_form form;
    vd_layout layout;
} vd_export_row;

/* The tensors that a program's model has in files, from the program alone, so that whoever checks a
 * model trusts nobody for its names. What an optimizer keeps (moments, corrections) is left out.
 * *rows is the caller's to free. */
VD_MUST_USE vd_status vd_export_rows(const vd_program *program, vd_export_row **rows,
                                     uint32_t *count, vd_err *err);

#endif
