/* Convolutions in groups of few channels. Groups share nothing, so lanes are channels of
 * neighbouring groups, and each lane follows the order of SPEC.md section 12.1 by itself.
 *
 * Lines of the image are spread: each pixel and each channel of a group get a vector of what the
 * lanes read, with zeros where the pixel is outside. A term is then one multiplication of vectors,
 * whichever group a lane belongs to. */
#ifndef REPOPS_CPU_CONV_GROUPS_H
#define REPOPS_CPU_CONV_GROUPS_H

#include "repops/cpu/image/conv_gather.h"
#include "repops/cpu/image/conv_weight.h"

/* Vectors of lanes that run together. */
#if defined(RO_ISA_scalar)
enum { GROUP_VECTORS = 4 };
#else
enum { GROUP_VECTORS = 2 };
#endif
enum { GROUP_LANES = GROUP_VECTORS * VW };

enum {
    GROUP_MOST = 8,         /* most channels of a group */
    GROUP_MOST_WEIGHT = 16, /* the same for conv2d_dw, as its general kernel packs both operands */
    MOST_TAPS = 32,         /* most taps of a kernel line */
    MOST_LINES = 32,        /* most lines of a kernel, and most lines that it spans */
    MOST_RESIDUES = 8,      /* largest stride */
    SPREAD_MOST = 1 << 20,  /* most floats of spread lines */
    SPREAD_CACHED = 1 << 16 /* floats of spread lines that the L2 cache holds */
};

/* The channels that a vector of lanes reads for channel 0 of its groups: lane i reads channel base
 * + lane[i]. */
typedef struct {
    int64_t base;
    int32_t lane[VW];
    int near; /* whether every lane[i] is below VW */
} sources;

/* Spread lines. A group reads `from` channels of the image and computes `to` of the lanes. The
 * layout is [blocks][cols][from][GROUP_LANES], so that terms of neighbouring columns are
 * contiguous; with one channel and lines in pieces it is [cols][blocks][GROUP_LANES]. Column j is
 * pixel first + j, or first - j if mirrored. */
typedef struct {
    const float *image;
    int64_t channels, size; /* channels of a pixel; pixels of a line */
    int64_t from, to, lanes, blocks;
    int64_t cols, step, block, term; /* floats from a column, block or term to the next */
    int mirrored;
    sources *sources; /* one per vector of lanes */
} spread;

/* Returns the floats of a column. */
static inline int64_t spread_col(const spread *s) {
    return s->blocks * s->from * GROUP_LANES;
}
/* Returns the floats of a block's weights for one tap. */
static inline int64_t tap_floats(const spread *s) {
    return s->from * GROUP_LANES;
}

/* The taps of a residue. Pixels of an output line with the same remainder modulo the stride meet
 * the same taps. Runs count from the column of its first pixel and from term 0 of a kernel line. */
typedef struct {
    tile_run run[MOST_TAPS];
    int64_t count;
} taps;

typedef struct {
    const gather *g;
    spread s;
    taps residue[MOST_RESIDUES];
    int64_t residues;
    int64_t kept, positions; /* kept lines; most positions of a residue that run together */
    int64_t least, most;     /* first and last pixel of a line that position 0 meets */
    int64_t k;               /* terms of an element */
} grouped;

/* The lines of the image that are kept, and those among them that an output line meets. */
typedef struct {
    const grouped *f;
    float *lines;
    int64_t first;                 /* the pixel of column 0 */
    int64_t number[MOST_LINES];    /* the line that each place has, over all images; -1: none */
    const float *line[MOST_LINES]; /* for each line of the kernel; NULL: outside */
} kept_lines;

/* Returns whether g, set up to `b_group`, has small groups, and there is room for spread lines:
 * whole ones if `whole`, else pieces. Sets all of *f but the sources, which the second function
 * finds. */
int RO_NAME(ro_conv_plan_groups)(grouped *f, const gather *g, int whole);
void RO_NAME(ro_conv_find_sources)(const grouped *f);

/* Returns the floats of all lines that are kept. */
static inline int64_t kept_floats(const grouped *f) {
    return f->kept * f->s.cols * spread_col(&f->s);
}

/* Starts at position p, with no line kept. */
void RO_NAME(ro_conv_keep_none)(kept_lines *z, int64_t p);
/* Spreads the image's lines that output line `line`, counted through all images, meets. */
void RO_NAME(ro_conv_keep_lines)(kept_lines *z, int64_t line);

#endif
