/* Private to diff_tell.c and diff_fits.c. */
#ifndef VD_DIFF_TELL_H
#define VD_DIFF_TELL_H

#include "verde/audit/diff.h"

typedef struct {
    const vd_diff_run *run;
    const vd_divergence *d;
    const vd_program_diff *programs; /* NULL: both runs have the same program */
} vd_telling;

const vd_graph *vd_telling_graph(const vd_telling *telling, int side); /* graph of the step */
/* Writes a line about possible causes. False: there is nothing to say. */
bool vd_fits_text(const vd_telling *telling, char *text, size_t size);
/* Writes what is known about the partial sums of an element. Returns `text`. */
enum { VD_GUESS_TEXT = 96 };
const char *vd_guess_text(const vd_diverged_tensor *tensor, char text[VD_GUESS_TEXT]);

#endif
