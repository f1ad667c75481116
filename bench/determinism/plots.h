/* Shared by the plots of the page. They are SVG, in the page's colours and without scripts. */
#ifndef BENCH_DETERMINISM_PLOTS_H
#define BENCH_DETERMINISM_PLOTS_H

#include "bench/determinism/determinism.h"

/* Sizes in the units of a drawing's viewBox. */
enum { WIDTH = 440, TOP = 12, LABEL = 13 };

/* The CSS class of each kind of way, which sets its colour. */
extern const char *const colour[WAY_KINDS];

/* A drawing of lines over steps leaves LEFT free on its left side and RIGHT on its right side. */
enum { LEFT = 58, RIGHT = 12 };

/* Maps values to coordinates of a drawing. */
typedef struct {
    const benchmark *b;
    double low, high; /* the range of values */
    int top, bottom, right;
} frame;

typedef double (*value_at)(const variant *v, long step);

/* A name at the end of a line. */
typedef struct {
    double y;
    const variant *v;
    const char *dash, *name;
} end_label;

/* Returns the dash pattern of the nth way of a kind: ways of one kind share a colour. */
const char *dash_of(int nth);
double y_of(const frame *f, double value);
/* Returns 1, 2 or 5 times a power of ten, so that about `count` ticks fit in the range. */
double tick_step(double range, int count);
void draw_steps(FILE *to, const frame *f, int y);
void draw_line(FILE *to, const frame *f, const variant *v, const char *dash, value_at value);
/* Draws names at the ends of lines from the top down, so that none covers another one. */
void draw_labels(FILE *to, end_label *label, int count, int right);
/* Sets `low` and `high` to decades around log10 of `value` of all shown ways; they stay infinite if
 * no way has a value. */
void range_of_decades(frame *f, value_at value, bool (*shown)(const benchmark *b, int way));
/* Draws lines at powers of ten, only at every second or third one if there are many. */
void draw_decades(FILE *to, const frame *f);
/* Size of a lane: a band below a logarithmic scale for values that are 0 all the time. */
enum { LANE = 17, GAP = 14 };
void draw_lane(FILE *to, const frame *f, int y, variant_kind kind, const char *text);
/* Writes the 0 beside all lanes. */
void draw_zero(FILE *to, int top, int end);

/* Opens a figure with a title, a caption below the drawing, and the drawing itself. */
void open_figure(FILE *to, const char *title, const char *told, int height);

#endif
