/* Shared by the plots of the page. They are SVG, drawn with the page's own colours and without a
 * script. */
#ifndef BENCH_DETERMINISM_PLOTS_H
#define BENCH_DETERMINISM_PLOTS_H

#include "bench/determinism/determinism.h"

/* Sizes in units of a drawing, which a page shows */
enum { WIDTH = 440, TOP = 12, LABEL = 13 };

/* The CSS class of each kind of way. */
extern const char *const colour[WAY_KINDS];

/* A drawing of lines over steps begins at LEFT and ends RIGHT before its right side. */
enum { LEFT = 58, RIGHT = 12 };

/* Where values lie in a drawing. */
typedef struct {
    const benchmark *b;
    double low, high; /* of values */
    int top, bottom, right;
} frame;

typedef double (*value_at)(const variant *v, long step);

/* The name at the end of a line. */
typedef struct {
    double y;
    const variant *v;
    const char *dash, *name;
} end_label;

/* Ways of one kind share its colour and differ in their dashes: that of the nth. */
const char *dash_of(int nth);
double y_of(const frame *f, double value);
/* 1, 2 or 5 times a power of ten, so that about `count` of them are in a range. */
double tick_step(double range, int count);
void draw_steps(FILE *to, const frame *f, int y);
void draw_line(FILE *to, const frame *f, const variant *v, const char *dash, value_at value);
/* Names at the ends of lines, from the top down, none over another one. */
void draw_labels(FILE *to, end_label *label, int count, int right);
/* Sets `low` and `high` to decades around log10 of `value` of all ways; they stay infinite if no
 * way has any. */
void range_of_decades(frame *f, value_at value, bool (*shown)(const benchmark *b, int way));
/* Powers of ten, every second or third one if there are many. */
void draw_decades(FILE *to, const frame *f);
/* A band below a logarithmic scale for values that are 0 all the time. */
enum { LANE = 17, GAP = 14 };
void draw_lane(FILE *to, const frame *f, int y, variant_kind kind, const char *text);
/* The 0 beside all lanes. */
void draw_zero(FILE *to, int top, int end);

/* A figure with its title, what is told below it, and an open drawing. */
void open_figure(FILE *to, const char *title, const char *told, int height);

#endif
