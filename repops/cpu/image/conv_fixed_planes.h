/* Pixels of a block of windows as planes, one a channel, for products whose columns are windows: at
 * each term the numbers of neighbouring windows are neighbours, and no window is gathered by
 * itself. */
#ifndef REPOPS_CPU_CONV_FIXED_PLANES_H
#define REPOPS_CPU_CONV_FIXED_PLANES_H

#include "repops/cpu/image/conv_fixed.h"

enum {
    FIXED_LINES_MOST = 64,          /* of any engine's group of columns */
    FIXED_PLANES_MOST = 256 * 1024, /* bytes, half of a second-level cache */
};

/* In each axis, pixel `place` of plane `phase` is step * place + phase + origin of the image, which
 * may be outside: +0. A window sees pixel (its own place + span) at most. */
typedef struct {
    int64_t step[2], origin[2], phases[2], span[2];
    int64_t least[2];    /* the run nearest to the windows' own place */
    int64_t rows, pitch; /* of an image in a plane: its rows, and numbers of a row */
} fixed_view;

/* Planes that a block of windows sees, of some channels. */
typedef struct {
    fixed_view view;
    int64_t first, count;      /* rows of the planes, which count those of all images */
    int64_t channel, channels; /* of the image */
    int64_t size;              /* numbers from a plane to the next */
    int64_t absent;            /* the plane behind the others, of zeros */
    float *x;
} fixed_planes;

fixed_view RO_NAME(ro_fixed_view_of)(const fixed_conv *c, const fixed_part *p);

/* Rows of planes that any `windows` windows that follow one another see, and what they take. */
int64_t RO_NAME(ro_fixed_plane_rows)(const fixed_conv *c, const fixed_part *p, const fixed_view *v,
                                     int64_t windows);
int64_t RO_NAME(ro_fixed_plane_size)(const fixed_view *v, int64_t rows);

/* Fills the planes that windows [m, m + windows) see; view, channels and x are set. */
void RO_NAME(ro_fixed_fill_planes)(const fixed_conv *c, const fixed_part *p, int64_t m,
                                   int64_t windows, fixed_planes *planes);

/* For each step of a chunk, where its number lies, from that of the first window on. Steps beyond
 * the runs that are met are +0. */
void RO_NAME(ro_fixed_place_steps)(const fixed_planes *planes, const fixed_runs *runs,
                                   int64_t steps, int32_t *at);

/* From a step of copied columns to the next: a multiple of VW, which rows fit in too. */
RO_INLINE int64_t fixed_columns_width(const fixed_engine *e) {
    const int64_t most = e->a_lines > e->b_lines ? e->a_lines : e->b_lines;
    return ceil_div(most, VW) * VW;
}

/* Windows [m, m + lines) of a chunk, of lines of the planes if they have one row of the image and
 * the engine reads such lines; or copied to `columns`, whose last step has room for a vector behind
 * it. */
fixed_lines RO_NAME(ro_fixed_columns_of)(const fixed_conv *c, const fixed_part *p,
                                         const fixed_planes *planes, const int32_t *at, int64_t m,
                                         int64_t lines, int64_t steps, float *columns);

/* Lines [m, m + lines) of a in conv2d_dw, FIXED_LINE apart, of windows [k, k + steps). */
void RO_NAME(ro_fixed_lines_of)(const fixed_conv *c, const fixed_part *p,
                                const fixed_planes *planes, int64_t k, int64_t steps, int64_t m,
                                int64_t lines, float *to);

#endif
