/* Checksums of output tensors, and how they locate the difference of two tensors. */
#include "verde/log/internal.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef uint32_t __attribute__((may_alias)) word; /* an f32's bits */

enum { LANES = 16 };

uint64_t vd_log_blocks(uint64_t elements) {
    return elements / VD_LOG_BLOCK + (elements % VD_LOG_BLOCK != 0);
}

uint64_t vd_log_sections(uint64_t elements) {
    return elements ? vd_log_blocks(elements) : 1;
}

/* Sums by lane. After row r, s[l] is the sum of the words of lane l, and t[l] the sum of the
 * earlier values of s[l]. So t[l] counts the word of row i r - i times, without a multiplication
 * per word. */
typedef struct {
    uint64_t s[LANES], t[LANES];
} lane_sums;

static void sum_rows(const word *w, uint64_t rows, lane_sums *sums) {
    uint64_t s[LANES] = {0}, t[LANES] = {0};
    for (uint64_t row = 0; row < rows; row++)
        for (int l = 0; l < LANES; l++) {
            t[l] += s[l];
            s[l] += w[row * LANES + (uint64_t)l];
        }
    memcpy(sums->s, s, sizeof s);
    memcpy(sums->t, t, sizeof t);
}

#if defined(__x86_64__)
/* A 64-bit lane takes two words as one number x = even + 2^32 odd, and sums both x and x >> 32. The
 * first sum minus 2^32 times the second is the sum of the even words, mod 2^64. Speed matters: the
 * executor waits while this reads every rounded word. */
typedef struct {
    uint64_t both[LANES / 2], odd[LANES / 2];
} pair_sums;

static void split_pairs(const pair_sums *pair, uint64_t lane[LANES]) {
    for (int l = 0; l < LANES / 2; l++) {
        lane[2 * l] = pair->both[l] - (pair->odd[l] << 32);
        lane[2 * l + 1] = pair->odd[l];
    }
}

__attribute__((target("avx2"))) static void sum_rows_avx2(const word *w, uint64_t rows,
                                                          lane_sums *sums) {
    pair_sums s, t;
    for (int half = 0; half < 2; half++) {
        const word *at = w + 8 * half;
        __m256i s0 = _mm256_setzero_si256(), s1 = s0, t0 = s0, t1 = s0;
        for (uint64_t row = 0; row < rows; row++, at += LANES) {
            const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)at);
            t0 = _mm256_add_epi64(t0, s0);
            t1 = _mm256_add_epi64(t1, s1);
            s0 = _mm256_add_epi64(s0, x);
            s1 = _mm256_add_epi64(s1, _mm256_srli_epi64(x, 32));
        }
        _mm256_storeu_si256((__m256i *)(void *)&s.both[4 * half], s0);
        _mm256_storeu_si256((__m256i *)(void *)&s.odd[4 * half], s1);
        _mm256_storeu_si256((__m256i *)(void *)&t.both[4 * half], t0);
        _mm256_storeu_si256((__m256i *)(void *)&t.odd[4 * half], t1);
    }
    split_pairs(&s, sums->s);
    split_pairs(&t, sums->t);
}

__attribute__((target("avx512f"))) static void sum_rows_avx512(const word *w, uint64_t rows,
                                                               lane_sums *sums) {
    pair_sums s, t;
    __m512i s0 = _mm512_setzero_si512(), s1 = s0, t0 = s0, t1 = s0;
    for (uint64_t row = 0; row < rows; row++, w += LANES) {
        const __m512i x = _mm512_loadu_si512(w);
        t0 = _mm512_add_epi64(t0, s0);
        t1 = _mm512_add_epi64(t1, s1);
        s0 = _mm512_add_epi64(s0, x);
        s1 = _mm512_add_epi64(s1, _mm512_srli_epi64(x, 32));
    }
    _mm512_storeu_si512(s.both, s0);
    _mm512_storeu_si512(s.odd, s1);
    _mm512_storeu_si512(t.both, t0);
    _mm512_storeu_si512(t.odd, t1);
    split_pairs(&s, sums->s);
    split_pairs(&t, sums->t);
}
#endif

static vd_log_sum sum_words(const word *w, uint64_t count) {
    const uint64_t rows = count / LANES;
    lane_sums lane;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        sum_rows_avx512(w, rows, &lane);
    else if (__builtin_cpu_supports("avx2"))
        sum_rows_avx2(w, rows, &lane);
    else
#endif
        sum_rows(w, rows, &lane);
    vd_log_sum sum = {0};
    for (int l = 0; l < LANES && rows > 0; l++) {
        sum.s0 += lane.s[l];
        sum.s1 += LANES * ((rows - 1) * lane.s[l] - lane.t[l]) + (uint64_t)l * lane.s[l];
    }
    for (uint64_t i = rows * LANES; i < count; i++) {
        sum.s0 += w[i];
        sum.s1 += i * w[i];
    }
    return sum;
}

static uint64_t block_size(uint64_t elements, uint64_t block) {
    const uint64_t left = elements - block * VD_LOG_BLOCK;
    return left < VD_LOG_BLOCK ? left : VD_LOG_BLOCK;
}

/* ---- several threads ---- */

enum {
    PIECE = 1 << 13,       /* fewest words worth another thread */
    WORDS_OF_US = 1 << 13, /* words per microsecond */
};

typedef struct {
    const word *w;
    vd_log_sum *sum;
} sums_task;

/* Adds the sums of a part of a block to the block's, with the words' places in the block. */
static void add_part(const sums_task *t, uint64_t first, uint64_t last) {
    vd_log_sum *sum = &t->sum[first / VD_LOG_BLOCK];
    const vd_log_sum part = sum_words(t->w + first, last - first);
    __atomic_fetch_add(&sum->s0, part.s0, __ATOMIC_RELAXED);
    __atomic_fetch_add(&sum->s1, part.s1 + first % VD_LOG_BLOCK * part.s0, __ATOMIC_RELAXED);
}

static void add_parts(void *user, int64_t first, int64_t last, int worker) {
    (void)worker;
    for (uint64_t at = (uint64_t)first, end; at < (uint64_t)last; at = end) {
        end = (at / VD_LOG_BLOCK + 1) * VD_LOG_BLOCK;
        end = end < (uint64_t)last ? end : (uint64_t)last;
        add_part(user, at, end);
    }
}

void vd_log_sums(ro_ctx *ctx, const float *output, uint64_t elements, vd_log_sum *sum) {
    sums_task task = {(const word *)output, sum};
    memset(sum, 0, vd_log_blocks(elements) * sizeof *sum);
    if (ctx && elements > PIECE)
        ro_parallel_for(ctx, (int64_t)elements, PIECE, (double)elements / WORDS_OF_US, add_parts,
                        &task);
    else
        add_parts(&task, 0, (int64_t)elements, 0);
}

/* Finds the single element i that explains the sums: if it differs by d, they differ by d and i d.
 * |d| < 2^32 and i < 2^20, so both fit in 53 bits with their sign. */
static bool single(const word *w, uint64_t count, int64_t d, int64_t moment,
                   vd_log_difference *out) {
    if (d == 0 || moment % d != 0 || moment / d < 0 || (uint64_t)(moment / d) >= count)
        return false;
    const int64_t i = moment / d, logged = (int64_t)w[i] - d;
    if (d >= INT64_C(1) << 32 || d <= -(INT64_C(1) << 32) || logged < 0 || logged > UINT32_MAX)
        return false;
    out->element += i;
    out->word = (uint32_t)logged;
    out->single = true;
    return true;
}

static void candidates(const vd_log_section *section, vd_log_difference *out) {
    for (int64_t i = 0; section->call && i < section->count; i++)
        if (section->call[i].element >= out->element && section->call[i].element < out->end &&
            out->candidate_count < VD_LOG_CANDIDATES)
            out->candidate[out->candidate_count++] = section->call[i].element;
    for (int64_t i = out->element; section->symbol && i < out->end; i++)
        if (section->symbol[i] != 1 && out->candidate_count < VD_LOG_CANDIDATES)
            out->candidate[out->candidate_count++] = i;
}

bool vd_log_compare(ro_ctx *ctx, const vd_log_section *section, const float *output,
                    vd_log_difference *difference) {
    const word *w = (const word *)output;
    for (uint64_t b = 0; b < vd_log_blocks(section->elements); b++) {
        const uint64_t size = block_size(section->elements, b), first = b * VD_LOG_BLOCK;
        vd_log_sum own;
        vd_log_sums(ctx, output + first, size, &own);
        const vd_log_sum *logged = &section->sum[b];
        if (own.s0 == logged->s0 && own.s1 == logged->s1)
            continue;
        *difference =
            (vd_log_difference){.element = (int64_t)first, .end = (int64_t)(first + size)};
        if (!single(w + first, size, (int64_t)(own.s0 - logged->s0), (int64_t)(own.s1 - logged->s1),
                    difference))
            candidates(section, difference);
        return false;
    }
    return true;
}
