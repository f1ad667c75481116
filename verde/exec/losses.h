/* DIR/losses.jsonl: a line for each step of a run, and for each evaluation. */
#ifndef VD_LOSSES_H
#define VD_LOSSES_H

#include "verde/exec/run.h"

/* Most bytes of a step's line, without samples: numbers have seven or nine digits. */
enum { VD_LOSSES_STEP_BYTES = 128 };

typedef struct {
    int fd; /* -1: not open */
    char path[1100];
} vd_losses;

/* Opens the file for appending after the line of step `done`. Lines of later steps, which no
 * checkpoint followed, are cut off. */
VD_MUST_USE vd_status vd_losses_open(vd_losses *losses, const char *dir, int64_t done, vd_err *err);
/* Appends {"step":12,"loss":2.5,"lr":0.001,"grad_norm":0.7,"tokens":768,"seconds":0.01}. lr and
 * grad_norm are there if the program has them; other than finite numbers are "nan", "inf",
 * "-inf". */
VD_MUST_USE vd_status vd_losses_put(vd_losses *losses, int64_t step, const vd_step_numbers *numbers,
                                    const vd_run_samples *samples, double seconds, vd_err *err);
/* Appends {"step":12,"evaluation":2.4,"accuracy":0.3}, after the step's own line. */
VD_MUST_USE vd_status vd_losses_evaluated(vd_losses *losses, int64_t step, const vd_score *score,
                                          vd_err *err);
/* Makes all lines durable, before run.json names the checkpoint that a run would resume from. */
VD_MUST_USE vd_status vd_losses_sync(vd_losses *losses, vd_err *err);
void vd_losses_close(vd_losses *losses);

#endif
