/* Convolutions in groups of few channels: nothing is shared between groups, so lanes are channels
 * of neighbouring groups, and each follows the order of SPEC.md section 12.1 by itself.
 *
 * Lines of the image are spread: for each of its pixels and each channel of a group there is a
 * vector of what the lanes read, zeros where the pixel is outside. A term is then one
 * multiplication of vectors, whichever group a lane belongs to. */
#ifndef REPOPS_CPU_CONV_GROUPS_H
#define REPOPS_CPU_CONV_GROUPS_H

#include "repops/cpu/image/conv_gather.h"
#include "repops/cpu/image/conv_weight.h"

/* Lanes that go together. */
#if defined(RO_ISA_scalar)
enum { GROUP_VECTORS = 4 };
#else
enum { GROUP_VECTORS = 2 };
#endif
enum { GROUP_LANES = GROUP_VECTORS * VW };

/* At most: channels of a group (for gradients of weights more, since the general way packs both
 * operands), taps of a line of the kernel, its lines and those it reaches over, strides, floats of
 * spread lines; and floats of these that the second cache holds. */
enum {
    GROUP_MOST = 8,
    GROUP_MOST_WEIGHT = 16,
    MOST_TAPS = 32,
    MOST_LINES = 32,
    MOST_RESIDUES = 8,
    SPREAD_MOST = 1 << 20,
    SPREAD_CACHED = 1 << 16
};

/* What a vector of lanes reads of a pixel, for channel 0 of their groups: channels from base on. */
typedef struct {
    int64_t base;
    int32_t lane[VW];
    int near; /* all are less than VW */
} sources;

/* A group has `from` channels in the image and `to` of `lanes`. A spread line is
 * [blocks][cols][from][GROUP_LANES], so that terms of neighbouring columns follow each other, or
 * [cols][blocks][GROUP_LANES] if there is one channel and pieces of lines will do. Column j is
 * pixel first + j, or first - j if it is mirrored. */
typedef struct {
    const float *image;
    int64_t channels, size; /* of a pixel; of a line */
    int64_t from, to, lanes, blocks;
    int64_t cols, step, block, term; /* floats from a column, block or term to the next */
    int mirrored;
    sources *sources; /* of each vector */
} spread;

/* Floats of what a column has, of a block's weights of a tap. */
static inline int64_t spread_col(const spread *s) {
    return s->blocks * s->from * GROUP_LANES;
}
static inline int64_t tap_floats(const spread *s) {
    return s->from * GROUP_LANES;
}

/* Pixels of a line of the output that leave the same remainder by the stride meet the same taps:
 * from the first one's column, from term 0 of a line of the kernel. */
typedef struct {
    tile_run run[MOST_TAPS];
    int64_t count;
} taps;

typedef struct {
    const gather *g;
    spread s;
    taps residue[MOST_RESIDUES];
    int64_t residues;
    int64_t kept, positions; /* lines; positions of a residue that go together, at most */
    int64_t least, most;     /* pixels of a line of the image that position 0 meets */
    int64_t k;               /* terms */
} grouped;

/* Lines of the image that are kept, and those that a line of the output meets. */
typedef struct {
    const grouped *f;
    float *lines;
    int64_t first;                 /* pixel that is spread first */
    int64_t number[MOST_LINES];    /* that is kept, counted through all images; -1: none */
    const float *line[MOST_LINES]; /* for each line of the kernel; NULL: outside */
} kept_lines;

/* Whether g, of which all up to `groups` is set, is of small groups, and spread lines have room:
 * pieces of lines, or, if they are to be whole, those. Fills in all but the sources. */
int RO_NAME(ro_conv_plan_groups)(grouped *f, const gather *g, int whole);
void RO_NAME(ro_conv_find_sources)(const grouped *f);

/* Floats of all lines that are kept. */
static inline int64_t kept_floats(const grouped *f) {
    return f->kept * f->s.cols * spread_col(&f->s);
}

/* Positions from p on come now. */
void RO_NAME(ro_conv_keep_none)(kept_lines *z, int64_t p);
/* Spreads what line `line` of the output meets, counted through all images. */
void RO_NAME(ro_conv_keep_lines)(kept_lines *z, int64_t line);

/* conv2d and conv2d_dx; clip: weights may be infinite, and taps outside are left out. */
ro_status RO_NAME(ro_conv_grouped)(ro_ctx *ctx, grouped *f, int clip);

/* conv2d_dw; f has whole lines of conv2d's. */
ro_status RO_NAME(ro_conv_grouped_weight)(ro_ctx *ctx, grouped *f, weights *w);

#endif
