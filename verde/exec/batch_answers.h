/* Private to verde/exec/batch_answers*.c. */
#ifndef VD_BATCH_ANSWERS_H
#define VD_BATCH_ANSWERS_H

#include "verde/exec/batch_internal.h"

typedef struct {
    bool *serial;  /* of each unit: runs row after row, at the end; owned */
    bool *waited;  /* of each value: such a unit reads it; owned */
    bool *chosen;  /* of each value: a unit reads it that runs for rows that choose; owned */
    int64_t slice; /* rows that choose together */
} vd_answer_plan;

/* VD_ERR_USAGE: steps follow from each other by more than tokens. */
VD_MUST_USE vd_status vd_answer_plan_create(const vd_batch *batch, vd_answer_plan *out,
                                            vd_err *err);
void vd_answer_plan_free(vd_answer_plan *plan);

#endif
