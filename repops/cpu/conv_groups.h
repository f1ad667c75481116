/* Convolutions in groups of few channels: nothing is shared between groups, so lanes are channels
 * of neighbouring groups, and each follows the order of SPEC.md section 12.1 by itself.
 *
 * Lines of the image are spread: for each of its pixels and each channel of a group there is a
 * vector of what the lanes read, zeros where the pixel is outside. A term is then one
 * multiplication of vectors, whichever group a lane belongs to. */
#ifndef REPOPS_CPU_CONV_GROUPS_H
#define REPOPS_CPU_CONV_GROUPS_H

#include "repops/cpu/conv_gather.h"

/* Lanes that go together; channels of a group, at most; floats of the spread lines. */
#if defined(RO_ISA_scalar)
enum { GROUP_VECTORS = 4 };
#else
enum { GROUP_VECTORS = 2 };
#endif
enum { GROUP_LANES = GROUP_VECTORS * VW, GROUP_MOST = 8, SPREAD_MOST = 1 << 18 };

static inline int small_groups(const ro_conv *v) {
    return v->groups > 1 && v->depth <= GROUP_MOST && v->width <= GROUP_MOST;
}

/* What a vector of lanes reads of a pixel, for channel 0 of their groups: channels from base on. */
typedef struct {
    int64_t base;
    int32_t lane[VW];
    int near; /* all are less than VW */
} sources;

/* A group has `from` channels in the image and `to` of `lanes`. A spread line is, for each block of
 * GROUP_LANES, an array [cols][from][GROUP_LANES]. Column j is pixel first + j, or first - j if it
 * is mirrored. */
typedef struct {
    const float *image;
    int64_t channels, size; /* of a pixel; of a line */
    int64_t from, to, lanes, blocks;
    int64_t cols;
    int mirrored;
    sources *sources; /* of each vector */
} spread;

/* Floats from a column to the next, from a block to the next. */
static inline int64_t spread_step(const spread *s) {
    return s->from * GROUP_LANES;
}
static inline int64_t spread_block(const spread *s) {
    return s->cols * spread_step(s);
}

/* Fills in the sources. */
void RO_NAME(ro_conv_find_sources)(const spread *s);
/* Line `number`, counted through all images. */
void RO_NAME(ro_conv_spread)(const spread *s, int64_t number, int64_t first, float *to);

/* conv2d and conv2d_dx: whether g is such a convolution, of lines that are not too long; weights
 * are finite, or no tap lies outside. */
int RO_NAME(ro_conv_is_grouped)(const gather *g);
ro_status RO_NAME(ro_conv_grouped)(ro_ctx *ctx, const gather *g);

#endif
