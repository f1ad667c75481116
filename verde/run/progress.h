/* Printing the progress of a run. */
#ifndef VD_PROGRESS_H
#define VD_PROGRESS_H

#include "verde/load/load.h"

typedef struct {
    double samples_per_step;
    vd_ticker ticker;
    const char *samples; /* "tokens", "images" */
    bool lost;           /* it was reported that the loss is no number */
    bool json;           /* prints a line for each step on standard output */
    bool no_loss;        /* the steps report no loss, because they train nothing */
} vd_run_printer;

/* For vd_run_options.progress: updates one line on a terminal, else prints a line every two
 * seconds. */
bool vd_tell_progress(void *printer, const vd_progress *progress);
/* "tokens" or "images"; or "steps", where only the program's author knows what a sample is. */
const char *vd_samples_name(const vd_job *job);
json_t *vd_loss_json(float loss); /* a text for a loss that JSON has no number for */

#endif
