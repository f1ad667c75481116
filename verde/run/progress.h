/* How far a run is, told meanwhile. */
#ifndef VD_PROGRESS_H
#define VD_PROGRESS_H

#include "verde/load/load.h"

typedef struct {
    double samples_per_step;
    vd_ticker ticker;
    const char *samples; /* "tokens", "images" */
    bool lost;           /* the loss is no number any more, and that was said */
    bool json;           /* a line of each step on standard output */
    bool no_loss;        /* the steps report none, as those that train nothing */
} vd_run_printer;

/* vd_run_options.progress: on a terminal one line that changes; otherwise a plain line every two
 * seconds. */
bool vd_tell_progress(void *printer, const vd_progress *progress);
/* "tokens", "images", or "steps" where only the program's author knows what a sample is. */
const char *vd_samples_name(const vd_job *job);
json_t *vd_loss_json(float loss); /* one that is no number has no JSON number */

#endif
