/* Gives an existing program another first state, for a run that goes on from it. */
#ifndef VD_BEGIN_H
#define VD_BEGIN_H

#include "verde/graph/graph.h"

typedef struct {
    const vd_data *tensor; /* initial contents of some state leaves, in place of init's */
    const uint32_t *leaf;  /* tensor[i] fills leaf[i], of equal shape; float types may differ */
    uint32_t count;        /* 1 or more */
    int64_t first_step;    /* becomes step 0; below program->steps */
} vd_beginning;
/* Appends how->tensor to the program's data, and drops the data tensors that only the replaced part
 * of init read. from[i] is where data tensor i now comes from: an index into the old data followed
 * by how->tensor; the caller gives it room for all of them. first_step + steps is at most 2^24, as
 * for vd_number_steps. After a failure the program must not be used. */
VD_MUST_USE vd_status vd_program_begin(vd_program *program, const vd_beginning *how, uint32_t *from,
                                       vd_err *err);

#endif
