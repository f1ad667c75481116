/* Packs operands into lines of one k step each, converted to `real`. */
#include "repops/free/gemm.h"

#include "repops/cpu/gemm/gemm_pack.h"

static void put_line(const float *from, int64_t lanes, int64_t width, real *to) {
    for (int64_t i = 0; i < width; i += VW)
        free_put(to + i, vf_load_n(from + i, lanes - i));
}

void RO_FREE_NAME(ro_free_pack_lines)(const float *from, int64_t k_step, const free_part *part,
                                      int64_t width, real *to) {
    if (part->reverse)
        from += (part->steps - 1) * k_step, k_step = -k_step;
    for (int64_t p = 0; p < part->steps; p++, from += k_step, to += width)
        put_line(from, part->lanes, width, to);
}

/* Packs VW lanes and up to VW steps. */
RO_INLINE void put_square(const float *const *from, int64_t lanes, int64_t p, int64_t steps,
                          int reverse, int64_t width, real *to) {
    vf r[VW];
    if (steps == VW) {
        for (int64_t j = 0; j < VW; j++)
            r[j] = j < lanes && from[j] ? vf_load(from[j] + p) : vf_set1(0.0f);
    } else {
        for (int64_t j = 0; j < VW; j++)
            r[j] = j < lanes && from[j] ? vf_load_n(from[j] + p, steps) : vf_set1(0.0f);
    }
    transpose(r);
    for (int64_t j = 0; j < steps; j++)
        free_put(to + (reverse ? steps - 1 - j : j) * width, r[j]);
}

void RO_FREE_NAME(ro_free_pack_lanes)(const float *const *from, int64_t lanes, int64_t steps,
                                      int reverse, int64_t width, real *to) {
    for (int64_t p = 0; p < steps; p += VW) {
        const int64_t count = min_i64(VW, steps - p), at = reverse ? steps - p - count : p;
        for (int64_t i = 0; i < width; i += VW)
            put_square(from + min_i64(i, lanes), lanes - i, p, count, reverse, width,
                       to + at * width + i);
    }
}
