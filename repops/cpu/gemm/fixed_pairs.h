/* How both operands of fixed_pairs.c are packed: as words of 16 bits. */
#ifndef REPOPS_CPU_FIXED_PAIRS_H
#define REPOPS_CPU_FIXED_PAIRS_H

#include "repops/cpu/gemm/fixed_lines.h"
#include "repops/src/fixed.h"

#if defined(RO_ISA_avx2)

enum {
    ROWS = 6,
    COLS = FIXED_COLS,
    VECTORS = COLS / VW,
    SUMS_MOST = 3,
    A_PLANE = ROWS * RO_DOT_CHUNK, /* words in one plane of a group */
    B_PLANE = COLS * RO_DOT_CHUNK,
    HIGH = 12, /* bits of the low word of a 24-bit integer */
    TAIL = 64, /* bytes after the planes of a group with 8 bits */
};

/* With 8 bits: the rows of a group that have two digits. Their high words are the first rows of its
 * second plane. Of columns only the number is kept. */
typedef struct {
    int32_t count, row[ROWS];
} two_digits;

/* Reads a group's two_digits, with numbers kept within the group even if faulty memory has changed
 * them (fixed_check.h finds that). */
RO_INLINE two_digits two_digits_of(const int16_t *a) {
    two_digits two;
    memcpy(&two, a + 2 * A_PLANE, sizeof two);
    two.count = two.count < 0 || two.count > ROWS ? ROWS : two.count;
    for (int i = 0; i < ROWS; i++)
        two.row[i] = two.row[i] < 0 || two.row[i] >= ROWS ? 0 : two.row[i];
    return two;
}

/* Returns the number of columns with two digits in a group of b. */
RO_INLINE int32_t uneven_columns_of(const int16_t *b) {
    int32_t two;
    memcpy(&two, b + B_PLANE, sizeof two);
    return two;
}

/* ---- exponents and integers ---- */

/* The scale of each lane, a power of two: the product of two, since one may be outside the range of
 * f32. Scaling is exact, or the integer is 0. A lane that is not finite has NaN as its power, so
 * its integers do not matter. */
typedef struct {
    vf first, second;
    __m256i finite, exponent, bits;
} scales;

RO_INLINE vf power_of_two(__m256i exponent) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(127)), 23));
}

RO_INLINE scales with_bits(scales s, __m256i bits) {
    const __m256i shift =
        _mm256_sub_epi32(_mm256_sub_epi32(bits, _mm256_set1_epi32(1)), s.exponent);
    const __m256i half = _mm256_srai_epi32(shift, 1);
    s.first = power_of_two(half);
    s.second = power_of_two(_mm256_sub_epi32(shift, half));
    s.bits = bits;
    return s;
}

/* Returns the scales of 8 lanes whose largest magnitudes are `most`, as in src/fixed.h. */
RO_INLINE scales scales_of(__m256i most, int bits) {
    const __m256i field = _mm256_srli_epi32(_mm256_add_epi32(most, _mm256_set1_epi32(0x1ffff)), 23);
    const __m256i exponent =
        _mm256_sub_epi32(_mm256_max_epi32(field, _mm256_set1_epi32(1)), _mm256_set1_epi32(126));
    const scales s = {.finite = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x7f800000), most),
                      .exponent = exponent};
    return with_bits(s, _mm256_set1_epi32(bits));
}

/* Stores what 1 in each lane's integers stands for: NaN if the lane is not finite. */
RO_INLINE void store_powers(scales s, double *power) {
    const __m256i e =
        _mm256_sub_epi32(_mm256_add_epi32(s.exponent, _mm256_set1_epi32(1024)), s.bits);
    const __m256d nan = _mm256_set1_pd(__builtin_nan(""));
    for (int h = 0; h < 2; h++) {
        const __m128i half = h ? _mm256_extracti128_si256(e, 1) : _mm256_castsi256_si128(e);
        const __m128i known =
            h ? _mm256_extracti128_si256(s.finite, 1) : _mm256_castsi256_si128(s.finite);
        const __m256d p = _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_cvtepi32_epi64(half), 52));
        const __m256d finite = _mm256_castsi256_pd(_mm256_cvtepi32_epi64(known));
        _mm256_storeu_pd(power + 4 * h, _mm256_blendv_pd(nan, p, finite));
    }
}

RO_INLINE __m256i magnitude(vf x) {
    return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
}

RO_INLINE __m256i integers(vf x, scales s) {
    return _mm256_cvtps_epi32(vf_mul(vf_mul(x, s.first), s.second));
}

/* Counts of each lane's numbers, except zeros, and of small ones among them (src/fixed.h). */
typedef struct {
    __m256i limit, numbers, small; /* counted down from 0 */
} counts;

RO_INLINE counts no_counts(scales s) {
    const __m256i one = _mm256_set1_epi32(1), zero = _mm256_setzero_si256();
    const __m256i normal =
        _mm256_slli_epi32(_mm256_add_epi32(s.exponent, _mm256_set1_epi32(121)), 23);
    const __m256i below =
        _mm256_sllv_epi32(one, _mm256_add_epi32(s.exponent, _mm256_set1_epi32(143)));
    const __m256i is_normal = _mm256_cmpgt_epi32(s.exponent, _mm256_set1_epi32(-121));
    return (counts){_mm256_blendv_epi8(below, normal, is_normal), zero, zero};
}

RO_INLINE void count(counts *c, vf x) {
    const __m256i size = magnitude(x), some = _mm256_cmpgt_epi32(size, _mm256_setzero_si256());
    c->numbers = _mm256_add_epi32(c->numbers, some);
    c->small =
        _mm256_add_epi32(c->small, _mm256_and_si256(some, _mm256_cmpgt_epi32(c->limit, size)));
}

/* Returns the scales of lanes in a product of 8 bits: those of mostly small numbers get 16 bits.
 * Lanes that are not finite keep 8. */
RO_INLINE scales scales_by(scales s, __m256i numbers, __m256i small) {
    const __m256i twice = _mm256_add_epi32(small, small);
    const __m256i uneven = _mm256_and_si256(_mm256_cmpgt_epi32(numbers, twice), s.finite);
    const __m256i more = _mm256_and_si256(uneven, _mm256_set1_epi32(RO_FIXED_16 - RO_FIXED_8));
    return with_bits(s, _mm256_add_epi32(_mm256_set1_epi32(RO_FIXED_8), more));
}

RO_INLINE int has_two_digits(scales s) {
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(s.bits, _mm256_set1_epi32(RO_FIXED_8))) != 0;
}

/* Adds half of the low word's range. The bits from `shift` on are then the high word; those below,
 * minus that half, are the low word. */
RO_INLINE __m256i rounded(__m256i x, int shift) {
    return _mm256_add_epi32(x, _mm256_set1_epi32(1 << (shift - 1)));
}

/* ---- a: each plane has [rows, k] words ---- */

/* Packs 16 lanes into words, in order. */
RO_INLINE __m256i in_words(__m256i first, __m256i second) {
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xd8);
}

RO_INLINE void store(int16_t *out, __m256i x) {
    _mm256_storeu_si256((__m256i *)(void *)out, x);
}

RO_INLINE __m256i largest(__m256i x) {
    x = _mm256_max_epi32(x, _mm256_permute2x128_si256(x, x, 1));
    x = _mm256_max_epi32(x, _mm256_shuffle_epi32(x, 0x4e));
    return _mm256_max_epi32(x, _mm256_shuffle_epi32(x, 0xb1));
}

RO_INLINE __m256i all_added(__m256i x) {
    x = _mm256_add_epi32(x, _mm256_permute2x128_si256(x, x, 1));
    x = _mm256_add_epi32(x, _mm256_shuffle_epi32(x, 0x4e));
    return _mm256_add_epi32(x, _mm256_shuffle_epi32(x, 0xb1));
}

RO_INLINE scales line_scales(const float *x, int64_t steps, int bits, double *power) {
    __m256i most = _mm256_setzero_si256();
    double powers[VW];
    for (int64_t k = 0; k < steps; k += VW)
        most = _mm256_max_epi32(most, magnitude(vf_load_n(x + k, steps - k)));
    scales s = scales_of(largest(most), bits);
    if (bits == RO_FIXED_8) {
        counts c = no_counts(s);
        for (int64_t k = 0; k < steps; k += VW)
            count(&c, vf_load_n(x + k, steps - k));
        s = scales_by(s, all_added(c.numbers), all_added(c.small));
    }
    store_powers(s, powers);
    *power = powers[0];
    return s;
}

static void pack_line(const float *x, int64_t steps, int bits, int16_t *out, double *power) {
    const int shift = bits == RO_FIXED_16 ? 8 : HIGH;
    const __m256i low_bits = _mm256_set1_epi32((1 << shift) - 1);
    const scales s = line_scales(x, steps, bits, power);
    for (int64_t k = 0; k < steps; k += 2 * VW) {
        const __m256i a = rounded(integers(vf_load_n(x + k, steps - k), s), shift);
        const __m256i b = rounded(integers(vf_load_n(x + k + VW, steps - k - VW), s), shift);
        const __m256i high = in_words(_mm256_srai_epi32(a, shift), _mm256_srai_epi32(b, shift));
        const __m256i low =
            _mm256_sub_epi16(in_words(_mm256_and_si256(a, low_bits), _mm256_and_si256(b, low_bits)),
                             _mm256_set1_epi16(1 << (shift - 1)));
        store(out + k, high);
        store(out + A_PLANE + k, low);
        if (bits != RO_FIXED_16)
            store(out + 2 * A_PLANE + k, _mm256_add_epi16(high, low));
    }
}

/* Packs a line with 8 bits: its integers as words, and their high words if it has two digits.
 * Returns whether it has two. */
static int pack_line8(const float *x, int64_t steps, int16_t *out, int16_t *high, double *power) {
    const scales s = line_scales(x, steps, RO_FIXED_8, power);
    const int two = has_two_digits(s);
    for (int64_t k = 0; k < steps; k += 2 * VW) {
        const __m256i a = integers(vf_load_n(x + k, steps - k), s);
        const __m256i b = integers(vf_load_n(x + k + VW, steps - k - VW), s);
        store(out + k, in_words(a, b));
        if (two)
            store(high + k, in_words(_mm256_srai_epi32(rounded(a, 8), 8),
                                     _mm256_srai_epi32(rounded(b, 8), 8)));
    }
    return two;
}

static void pack_a(const fixed_lines *l, int bits, void *out, double *power) {
    float copy[VW * RO_DOT_CHUNK];
    const whole_lines from = lines_of(l, copy);
    two_digits two = {0};
    for (int64_t i = 0; i < l->lines; i++) {
        const float *x = from.x + i * from.apart;
        int16_t *to = (int16_t *)out + i * RO_DOT_CHUNK;
        if (bits != RO_FIXED_8)
            pack_line(x, l->steps, bits, to, power + i);
        else if (pack_line8(x, l->steps, to, (int16_t *)out + A_PLANE + two.count * RO_DOT_CHUNK,
                            power + i))
            two.row[two.count++] = (int32_t)i;
    }
    if (bits == RO_FIXED_8)
        memcpy((int16_t *)out + 2 * A_PLANE, &two, sizeof two);
}

/* ---- b: each plane has [pairs of k, columns, 2] words ---- */

/* Returns words made of the low halves of the lanes of `first` and `second`, in turn. */
RO_INLINE __m256i low_halves(__m256i first, __m256i second) {
    return _mm256_blend_epi16(first, _mm256_slli_epi32(second, 16), 0xaa);
}

RO_INLINE void store_pairs(__m256i x, __m256i y, int bits, int16_t *out) {
    if (bits != RO_FIXED_24) {
        store(out, low_halves(x, y));
        return;
    }
    const __m256i a = rounded(x, HIGH), b = rounded(y, HIGH);
    const __m256i low = _mm256_and_si256(low_halves(a, b), _mm256_set1_epi16((1 << HIGH) - 1));
    store(out,
          _mm256_blend_epi16(_mm256_srai_epi32(a, HIGH), _mm256_slli_epi32(b, 16 - HIGH), 0xaa));
    store(out + B_PLANE, _mm256_sub_epi16(low, _mm256_set1_epi16(1 << (HIGH - 1))));
}

enum { PARTLY, WHOLE, PLACED };

/* Loads a vector of columns at step k. kind: PARTLY if some columns do not exist; WHOLE; or PLACED,
 * if all exist and steps have offsets (c.at). */
RO_INLINE vf columns_at(side_by_side c, int64_t k, int64_t col, int kind) {
    if (kind == PARTLY)
        return vf_load_n(c.x + (c.at ? c.at[k] : k * c.step) + col, c.cols - col);
    return vf_load(c.x + (kind == PLACED ? c.at[k] : k * c.step) + col);
}

RO_INLINE scales column_scales(side_by_side c, int64_t col, int kind, scales s) {
    counts n = no_counts(s);
    for (int64_t k = 0; k < c.steps; k++)
        count(&n, columns_at(c, k, col, kind));
    return scales_by(s, n.numbers, n.small);
}

RO_INLINE void pack_columns(side_by_side c, int kind, int bits, int16_t *out, double *power) {
    __m256i most[VECTORS] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    scales s[VECTORS];
    int32_t two = 0;
    for (int64_t k = 0; k < c.steps; k++)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        most[v] = _mm256_max_epi32(most[v], magnitude(columns_at(c, k, v * VW, kind)));
    RO_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        s[v] = scales_of(most[v], bits);
        if (bits == RO_FIXED_8)
            s[v] = column_scales(c, v * VW, kind, s[v]);
        two |= bits == RO_FIXED_8 && has_two_digits(s[v]);
        store_powers(s[v], power + v * VW);
    }
    if (bits == RO_FIXED_8)
        memcpy(out + B_PLANE, &two, sizeof two);
    for (int64_t k = 0; k < c.steps; k += 2, out += 2 * COLS)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        const __m256i x = integers(columns_at(c, k, v * VW, kind), s[v]);
        const __m256i y = k + 1 < c.steps ? integers(columns_at(c, k + 1, v * VW, kind), s[v])
                                          : _mm256_setzero_si256();
        store_pairs(x, y, bits, out + 2 * v * VW);
    }
}

RO_INLINE void pack_kind(side_by_side c, int bits, int16_t *out, double *power) {
    if (c.cols < COLS)
        pack_columns(c, PARTLY, bits, out, power);
    else if (c.at)
        pack_columns(c, PLACED, bits, out, power);
    else
        pack_columns(c, WHOLE, bits, out, power);
}

static void pack_b(const fixed_lines *l, int bits, void *out, double *power) {
    float copy[COLS * RO_DOT_CHUNK];
    const side_by_side c = columns_of(l, copy);
    if (bits == RO_FIXED_8)
        pack_kind(c, RO_FIXED_8, out, power);
    else if (bits == RO_FIXED_16)
        pack_kind(c, RO_FIXED_16, out, power);
    else
        pack_kind(c, RO_FIXED_24, out, power);
}

#endif

#endif
