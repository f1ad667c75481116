/* Another beginning of a program that is there: what it goes on from. */
#ifndef VD_BEGIN_H
#define VD_BEGIN_H

#include "verde/graph/graph.h"

typedef struct {
    const vd_data *tensor; /* what some leaves begin with, in place of what the program says */
    const uint32_t
        *leaf;          /* of each of them: it has its shape, and perhaps another type of floats */
    uint32_t count;     /* 1 or more */
    int64_t first_step; /* step 0 is this one from now on, below program->steps */
} vd_beginning;
/* They become its last data tensors; data that only what was replaced has read goes. from[i]: which
 * tensor of the data there was, followed by how->tensor, is number i now; room for all of these.
 * first_step + steps is at most 2^24, as for vd_number_steps. On failure nobody may use it. */
VD_MUST_USE vd_status vd_program_begin(vd_program *program, const vd_beginning *how, uint32_t *from,
                                       vd_err *err);

#endif
