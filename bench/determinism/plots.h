/* Shared by the plots of the page. They are SVG, drawn with the page's own colours and without a
 * script. */
#ifndef BENCH_DETERMINISM_PLOTS_H
#define BENCH_DETERMINISM_PLOTS_H

#include "bench/determinism/determinism.h"

/* In units of a drawing, which a page shows at 0.9 to 1.2 pixels each. */
enum { WIDTH = 440, TOP = 12, LABEL = 13 };

/* The page's class of each kind of way. */
extern const char *const colour[WAY_KINDS];

/* A figure with its title, what is told below it, and an open drawing. */
void open_figure(FILE *to, const char *title, const char *told, int height);

#endif
