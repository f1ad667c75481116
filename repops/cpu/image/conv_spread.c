/* Spreads lines of the image for convolutions in small groups (conv_groups.h). */
#include "repops/cpu/image/conv_groups.h"

enum { LEAST_POSITIONS = 16 };

/* ---- permutation of the lanes of a vector ---- */

#if defined(RO_ISA_avx512)

typedef __m512i order;

RO_INLINE order order_of(const int32_t lane[VW]) {
    return _mm512_loadu_si512(lane);
}
RO_INLINE vf ordered(vf x, order lane) {
    return _mm512_permutexvar_ps(lane, x);
}

#elif defined(RO_ISA_avx2)

typedef __m256i order;

RO_INLINE order order_of(const int32_t lane[VW]) {
    return _mm256_loadu_si256((const __m256i *)(const void *)lane);
}
RO_INLINE vf ordered(vf x, order lane) {
    return _mm256_permutevar8x32_ps(x, lane);
}

#elif defined(RO_ISA_neon)

typedef uint8x16_t order;

RO_INLINE order order_of(const int32_t lane[VW]) {
    const uint32x4_t bytes = vmulq_n_u32(vreinterpretq_u32_s32(vld1q_s32(lane)), 0x04040404);
    return vreinterpretq_u8_u32(vaddq_u32(bytes, vdupq_n_u32(0x03020100)));
}
RO_INLINE vf ordered(vf x, order lane) {
    return vreinterpretq_f32_u8(vqtbl1q_u8(vreinterpretq_u8_f32(x), lane));
}

#else

typedef int order;

RO_INLINE order order_of(const int32_t lane[VW]) {
    return lane[0];
}
RO_INLINE vf ordered(vf x, order lane) {
    (void)lane;
    return x;
}

#endif

/* ---- lines ---- */

void RO_NAME(ro_conv_find_sources)(const grouped *f) {
    const spread *s = &f->s;
    int64_t channel = 0, within = 0; /* a lane's group's first channel; its number in the group */
    for (int64_t i = 0; i < s->blocks * GROUP_LANES; i++) {
        sources *z = &s->sources[i / VW];
        if (i % VW == 0)
            z->base = channel, z->near = 1;
        z->lane[i % VW] = (int32_t)(channel - z->base);
        z->near &= channel - z->base < VW;
        if (i + 1 < s->lanes && ++within == s->to)
            within = 0, channel += s->from;
    }
}

/* Spreads a pixel to one vector of lanes. */
RO_INLINE void spread_vector(const spread *s, const sources *z, const float *x, float *to) {
    const order lanes = order_of(z->lane);
    for (int64_t c = 0; c < s->from; c++, to += GROUP_LANES) {
        const int64_t at = z->base + c;
        if (z->near)
            vf_store(to, ordered(vf_load_n(x + at, s->channels - at), lanes));
        else
            for (int64_t i = 0; i < VW; i++)
                to[i] = x[at + z->lane[i]];
    }
}

static void spread_pixel(const spread *s, const float *x, float *to) {
    for (int64_t b = 0; b < s->blocks; b++) {
        RO_UNROLL
        for (int v = 0; v < GROUP_VECTORS; v++)
            spread_vector(s, &s->sources[b * GROUP_VECTORS + v], x, to + b * s->block + v * VW);
    }
}

/* Spreads a pixel if every lane reads its own channel. */
static void copy_pixel(const spread *s, const float *x, float *to) {
    for (int64_t b = 0; b < s->blocks; b++, to += s->block) {
        RO_UNROLL
        for (int v = 0; v < GROUP_VECTORS; v++) {
            const int64_t i = b * GROUP_LANES + v * VW;
            vf_store(to + v * VW, vf_load_n(x + i, s->channels - i));
        }
    }
}

/* Spreads `count` pixels, and prefetches the next line meanwhile. */
static void spread_pixels(const spread *s, const float *x, int64_t count, int64_t step, float *to) {
    for (; count > 0; count--, x += s->channels, to += step) {
        const float *next = x + s->size * s->channels;
        for (int64_t i = 0; i < s->channels; i += 16)
            __builtin_prefetch(next + i, 0, 2);
        if (s->from == 1 && s->to == 1)
            copy_pixel(s, x, to);
        else
            spread_pixel(s, x, to);
    }
}

static void put_zeros(const spread *s, int64_t col, int64_t count, float *to) {
    const int64_t parts = s->step == spread_col(s) ? 1 : s->blocks;
    for (int64_t i = 0; i < parts && count > 0; i++)
        memset(to + i * s->block + col * s->step, 0, (size_t)(count * s->step) * sizeof(float));
}

/* Spreads line `number`, counted through all images. */
static void spread_line(const spread *s, int64_t number, int64_t first, float *to) {
    const int64_t low = s->mirrored ? first - s->cols + 1 : first, step = s->step;
    const int64_t from = max_i64(0, low), end = min_i64(low + s->cols, s->size);
    const int64_t count = max_i64(0, end - from), below = count ? from - low : s->cols;
    const int64_t before = s->mirrored ? s->cols - below - count : below;
    put_zeros(s, 0, before, to);
    put_zeros(s, before + count, s->cols - before - count, to);
    if (s->mirrored)
        to += (before + count - 1) * step;
    else
        to += before * step;
    spread_pixels(s, s->image + (number * s->size + from) * s->channels, count,
                  s->mirrored ? -step : step, to);
}

/* ---- geometry ---- */

/* Adds a tap. Terms that are contiguous in the spread line and in the weights are one run. */
static void add_tap(grouped *f, taps *t, int64_t tap, int64_t col) {
    const int64_t from = f->s.from, a = col * f->s.step, b = tap * tap_floats(&f->s);
    tile_run *last = t->count ? &t->run[t->count - 1] : NULL;
    if (last && last->a + last->k * f->s.term == a && last->b + last->k * GROUP_LANES == b)
        last->k += from;
    else
        t->run[t->count++] = (tile_run){a, b, from};
}

/* Finds the first and last pixel that a line's taps meet, from position 0 of each residue. */
static void find_reach(grouped *f) {
    const gather *g = f->g;
    int64_t at, found = 0;
    for (int64_t r = 0; r < f->residues; r++)
        for (int64_t t = 0; t < g->v->kernel[1]; t++)
            if (pixel_at(g, 1, r, t, &at)) {
                f->least = found ? min_i64(f->least, at) : at;
                f->most = found++ ? max_i64(f->most, at) : at;
            }
}

static void list_taps(grouped *f) {
    const gather *g = f->g;
    int64_t at;
    for (int64_t r = 0; r < f->residues; r++)
        for (int64_t t = 0; t < g->v->kernel[1]; t++)
            if (pixel_at(g, 1, r, t, &at))
                add_tap(f, &f->residue[r], t,
                        g->backward ? f->positions - 1 + f->most - at : at - f->least);
}

/* Cuts lines into pieces, unless `whole`, so that all spread pieces that are kept stay in a
 * cache. */
static void cut_lines(grouped *f, int whole) {
    const gather *g = f->g;
    const int64_t all = ceil_div(g->out_size[1], g->spread[1]);
    const int64_t cols = SPREAD_CACHED / (f->kept * spread_col(&f->s));
    const int64_t most = max_i64(LEAST_POSITIONS, (cols - (f->most - f->least)) / g->step[1]);
    f->positions = whole ? all : ceil_div(all, ceil_div(all, min_i64(all, most)));
    f->s.cols = (f->positions - 1) * g->step[1] + f->most - f->least + 1;
    const int by_cols = f->s.from == 1 && !whole;
    f->s.step = by_cols ? spread_col(&f->s) : tap_floats(&f->s);
    f->s.block = by_cols ? GROUP_LANES : f->s.cols * f->s.step;
    f->s.term = by_cols ? f->s.step : GROUP_LANES;
}

int RO_NAME(ro_conv_plan_groups)(grouped *f, const gather *g, int whole) {
    const ro_conv *v = g->v;
    const int64_t reach = (v->kernel[0] - 1) * v->dilation[0] / g->spread[0] + 1;
    const int64_t channels = whole ? GROUP_MOST_WEIGHT : GROUP_MOST;
    if (v->groups == 1 || v->depth > channels || v->width > channels || reach > MOST_LINES ||
        v->kernel[0] > MOST_LINES || v->kernel[1] > MOST_TAPS || g->spread[1] > MOST_RESIDUES)
        return 0;
    *f = (grouped){.g = g, .residues = min_i64(g->spread[1], g->out_size[1]), .kept = reach};
    f->s = (spread){.image = g->image, .channels = g->pixel, .size = g->size[1]};
    f->s.from = g->depth, f->s.to = g->n, f->s.lanes = g->out_pixel, f->s.mirrored = g->backward;
    f->s.blocks = ceil_div(f->s.lanes, GROUP_LANES);
    f->k = v->kernel[0] * v->kernel[1] * g->depth;
    find_reach(f);
    cut_lines(f, whole);
    list_taps(f);
    return kept_floats(f) <= SPREAD_MOST;
}

/* ---- lines that are kept ---- */

void RO_NAME(ro_conv_keep_none)(kept_lines *z, int64_t p) {
    const grouped *f = z->f;
    const int64_t step = f->g->step[1];
    z->first = f->s.mirrored ? (p + f->positions - 1) * step + f->most : p * step + f->least;
    for (int64_t i = 0; i < f->kept; i++)
        z->number[i] = -1;
}

void RO_NAME(ro_conv_keep_lines)(kept_lines *z, int64_t line) {
    const grouped *f = z->f;
    const gather *g = f->g;
    const int64_t n = line / g->out_size[0], h = line % g->out_size[0];
    int64_t at;
    for (int64_t i = 0; i < g->v->kernel[0]; i++) {
        z->line[i] = NULL;
        if (!pixel_at(g, 0, h, i, &at) || at < 0 || at >= g->size[0])
            continue;
        const int64_t number = n * g->size[0] + at, slot = number % f->kept;
        float *to = z->lines + slot * f->s.cols * spread_col(&f->s);
        if (z->number[slot] != number)
            spread_line(&f->s, number, z->first, to);
        z->number[slot] = number;
        z->line[i] = to;
    }
}
