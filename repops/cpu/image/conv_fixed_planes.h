/* The pixels that a block of windows sees, as planes, one per channel, for products whose columns
 * are windows: for each term, the numbers of neighbouring windows are neighbours, so that windows
 * need not be gathered one by one. */
#ifndef REPOPS_CPU_CONV_FIXED_PLANES_H
#define REPOPS_CPU_CONV_FIXED_PLANES_H

#include "repops/cpu/image/conv_fixed.h"

enum {
    FIXED_LINES_MOST = 64,          /* most columns in any engine's group */
    FIXED_PLANES_MOST = 256 * 1024, /* bytes: half of an L2 cache */
};

/* In each axis, pixel i of plane `phase` is pixel step * i + phase + origin of the image, or +0 if
 * that is outside. A window at i sees pixels i to i + span of each plane. */
typedef struct {
    int64_t step[2], origin[2], phases[2], span[2];
    int64_t least[2];    /* the smallest offset of a run from a window's position */
    int64_t rows, pitch; /* an image in a plane: its rows, and floats in a row */
} fixed_view;

/* The planes that a block of windows sees, for some channels. */
typedef struct {
    fixed_view view;
    int64_t first, count;      /* rows of the planes, counted through all images */
    int64_t channel, channels; /* first channel in the image, and how many */
    int64_t size;              /* stride of planes, in floats */
    int64_t absent;            /* offset of a plane of zeros, after all others */
    float *x;
} fixed_planes;

fixed_view RO_NAME(ro_fixed_view_of)(const fixed_conv *c, const fixed_part *p);

/* Return the rows of planes that any `windows` consecutive windows see, and a plane's floats. */
int64_t RO_NAME(ro_fixed_plane_rows)(const fixed_conv *c, const fixed_part *p, const fixed_view *v,
                                     int64_t windows);
int64_t RO_NAME(ro_fixed_plane_size)(const fixed_view *v, int64_t rows);

/* Fills the planes that windows [m, m + windows) see. The caller sets view, channels and x. */
void RO_NAME(ro_fixed_fill_planes)(const fixed_conv *c, const fixed_part *p, int64_t m,
                                   int64_t windows, fixed_planes *planes);

/* Finds the offset of each step of a chunk from the first window's position. Steps after the runs
 * that are met get the plane of zeros. */
void RO_NAME(ro_fixed_place_steps)(const fixed_planes *planes, const fixed_runs *runs,
                                   int64_t steps, int32_t *at);

/* Returns the stride of steps of copied columns: a multiple of VW, in which rows of a fit, too. */
RO_INLINE int64_t fixed_columns_width(const fixed_engine *e) {
    const int64_t most = e->a_lines > e->b_lines ? e->a_lines : e->b_lines;
    return ceil_div(most, VW) * VW;
}

/* Returns windows [m, m + lines) of a chunk: in place if they are in one row of the image, and the
 * engine can gather columns; otherwise copied to `columns`, which needs room for a vector more. */
fixed_lines RO_NAME(ro_fixed_columns_of)(const fixed_conv *c, const fixed_part *p,
                                         const fixed_planes *planes, const int32_t *at, int64_t m,
                                         int64_t lines, int64_t steps, float *columns);

/* Gathers lines [m, m + lines) of a in conv2d_dw, FIXED_LINE apart, with windows [k, k + steps). */
void RO_NAME(ro_fixed_lines_of)(const fixed_conv *c, const fixed_part *p,
                                const fixed_planes *planes, int64_t k, int64_t steps, int64_t m,
                                int64_t lines, float *to);

#endif
