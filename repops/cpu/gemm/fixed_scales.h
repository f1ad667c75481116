/* Exponents and integers of a group of lines, for engines that pack by plain loops. */
#ifndef REPOPS_CPU_FIXED_SCALES_H
#define REPOPS_CPU_FIXED_SCALES_H

#include "repops/cpu/gemm/fixed.h"
#include "repops/src/fixed.h"

enum { FIXED_GROUP_MOST = 24 }; /* most lines in a group */

/* Computes the largest magnitude of each line, as bits. Contiguous lines are read step by step. */
static void magnitudes(const fixed_lines *l, uint32_t *most) {
    for (int64_t i = 0; l->line != 1 && i < l->lines; i++)
        for (int64_t k = 0; k < l->steps; k++) {
            const uint32_t size = ro_to_bits(ro_abs(l->x[i * l->line + k * l->step]));
            most[i] = size > most[i] ? size : most[i];
        }
    for (int64_t k = 0; l->line == 1 && k < l->steps; k++)
        for (int64_t i = 0; i < l->lines; i++) {
            const uint32_t size = ro_to_bits(ro_abs(l->x[i + k * l->step]));
            most[i] = size > most[i] ? size : most[i];
        }
}

/* Returns how many bits a line's integers have in a product of 8 bits. */
static int line_bits(const fixed_lines *l, int64_t i, int exponent) {
    int small = 0, count = 0;
    for (int64_t k = 0; k < l->steps; k++) {
        const uint32_t size = ro_to_bits(ro_abs(l->x[i * l->line + k * l->step]));
        count += size != 0;
        small += size != 0 && size < ro_fixed_small(exponent);
    }
    return ro_fixed_line_bits(RO_FIXED_8, small, count);
}

/* Computes for each line of a group the `scale` that turns its numbers into integers, and the
 * `power` of 1 in them: NaN if the line is not finite. Returns the most bits of any line. */
static int group_scales(const fixed_lines *l, int group, int bits, double *scale, double *power) {
    uint32_t most[FIXED_GROUP_MOST] = {0};
    int most_bits = bits;
    magnitudes(l, most);
    for (int i = 0; i < group; i++) {
        const int exponent = ro_fixed_exponent(most[i]), finite = exponent != RO_FIXED_NONE;
        const int own =
            bits == RO_FIXED_8 && finite && i < l->lines ? line_bits(l, i, exponent) : bits;
        scale[i] = ro_fixed_power(finite ? own - 1 - exponent : 0);
        power[i] = finite ? ro_fixed_power(exponent - (own - 1)) : (double)RO_F32_NAN;
        most_bits = own > most_bits ? own : most_bits;
    }
    return most_bits;
}

/* Returns the integer nearest to x * scale, ties to even: from 2^52 on binary64 has no fraction. */
RO_INLINE double integer_of(float x, double scale) {
    return ((double)x * scale + 0x1.8p52) - 0x1.8p52;
}

#endif
