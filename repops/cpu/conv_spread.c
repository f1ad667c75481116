/* Spreading of lines (conv_groups.h). */
#include "repops/cpu/conv_groups.h"

/* ---- lanes of a vector in another order ---- */

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

void RO_NAME(ro_conv_find_sources)(const spread *s) {
    int64_t channel = 0, within = 0; /* of a lane: of its group's first; in its group */
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

/* One vector of lanes. */
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

/* Asks for the next line meanwhile. */
static void spread_pixels(const spread *s, const float *x, int64_t count, int64_t step, float *to) {
    for (; count > 0; count--, x += s->channels, to += step) {
        const float *next = x + s->size * s->channels;
        for (int64_t i = 0; i < s->channels; i += 16)
            __builtin_prefetch(next + i, 0, 2);
        for (int64_t b = 0; b < s->blocks; b++) {
            RO_UNROLL
            for (int v = 0; v < GROUP_VECTORS; v++)
                spread_vector(s, &s->sources[b * GROUP_VECTORS + v], x,
                              to + b * spread_block(s) + v * VW);
        }
    }
}

static void put_zeros(const spread *s, int64_t col, int64_t count, float *to) {
    for (int64_t b = 0; b < s->blocks && count > 0; b++)
        memset(to + b * spread_block(s) + col * spread_step(s), 0,
               (size_t)(count * spread_step(s)) * sizeof(float));
}

void RO_NAME(ro_conv_spread)(const spread *s, int64_t number, int64_t first, float *to) {
    const int64_t low = s->mirrored ? first - s->cols + 1 : first, step = spread_step(s);
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
