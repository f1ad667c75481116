/* Private to verde/exec/batch_answers*.c. */
#ifndef VD_BATCH_ANSWERS_H
#define VD_BATCH_ANSWERS_H

#include "verde/exec/batch_internal.h"

typedef struct {
    bool *serial;  /* of each unit: it runs row by row, after the others; owned */
    bool *waited;  /* of each value: a serial unit reads it; owned */
    bool *chosen;  /* of each value: a unit for rows that choose reads it; owned */
    int64_t slice; /* number of rows that choose together */
} vd_answer_plan;

/* Plans the units. VD_ERR_USAGE: steps depend on each other by more than tokens. */
VD_MUST_USE vd_status vd_answer_plan_create(const vd_batch *batch, vd_answer_plan *out,
                                            vd_err *err);
void vd_answer_plan_free(vd_answer_plan *plan);

#endif
