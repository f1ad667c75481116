/* Products by exact sums of integers (SPEC.md section 3.5): the interface between plans of products
 * (fixed.c) and engines, which compute tiles (fixed_*.c). */
#ifndef REPOPS_CPU_FIXED_H
#define REPOPS_CPU_FIXED_H

#include "repops/cpu/isa.h"
#include "repops/guard.h"

/* Lines of an operand in one chunk: rows of a or columns of b. */
typedef struct {
    const float *x;
    int64_t line, step; /* strides of lines and of steps of k; one of them is 1 */
    int64_t lines, steps;
    const int32_t *at; /* NULL, or, if `line` is 1, the offset of each step, in place of k * step */
} fixed_lines;

/* The totals of a check (fixed_check.h): each sum of a chunk, times the odd factor of its part, is
 * added to the total of its column and to that of its row. */
enum { FIXED_PARTS_MOST = 3 }; /* parts of integers, with sums of their own */
typedef struct {
    uint32_t *column, *row;
    const ro_guard *alter; /* lets a test alter sums; NULL: no test does */
} fixed_sums;

/* How to add up an engine's packed numbers, for checks. All sums are modulo 2^32. */
typedef struct {
    /* For each part and step, adds the numbers of all packed rows of a to sum[part][step]. */
    void (*lines)(const void *a, int64_t rows, int64_t steps, int bits,
                  uint32_t sum[][RO_DOT_CHUNK]);
    /* Adds to `out`, for each column of a packed group of b, what its sums must add up to over rows
     * of a that add up to `sum`. Returns what `words` returns. */
    uint32_t (*columns)(const void *b, int64_t steps, int bits, const uint32_t sum[][RO_DOT_CHUNK],
                        uint32_t *out);
    /* Returns the sum of all words of a packed group of b. */
    uint32_t (*words)(const void *b, int64_t steps, int bits);
    /* Returns the sum of what packed rows of a store besides their numbers; NULL: nothing. */
    uint32_t (*marks)(const void *a, int64_t rows);
    int64_t fetched; /* bytes of a's next group to prefetch during the current one */
} fixed_adding;

/* Tiles of one chunk: products of `rows` packed lines of a with all packed lines of b, added to the
 * totals at c, whose rows are c_row apart. `steps` are those of a; b may have been packed with
 * more. */
typedef struct {
    const void *a, *b;
    const double *a_power,
        *b_power; /* the value of 1 in a line's integers; NaN: the line is not finite */
    int64_t rows, cols, steps;
    int bits;
    float *c;
    int64_t c_row;
    const fixed_sums *sums; /* NULL: sums are not checked */
    bool first;             /* nothing has been added yet: totals are +0, whatever c holds */
} fixed_tiles;

/* Returns what a vector of totals at c is before its terms are added. */
RO_INLINE vf fixed_totals(const fixed_tiles *t, const float *c, int64_t count) {
    return t->first ? vf_set1(0.0f) : vf_load_n(c, count);
}

RO_INLINE float fixed_total(const fixed_tiles *t, const float *c) {
    return t->first ? 0.0f : *c;
}

/* Lets a test alter a part of the sums of a tile. */
RO_INLINE void fixed_alter_sums(const fixed_tiles *t, int64_t rows, int64_t cols, void *sums) {
    const ro_guard *g = t->sums->alter;
    if (g && rows > 0)
        g->alter(g->user, RO_GUARD_AT_SUMS, sums, (size_t)(rows * cols) * sizeof(uint32_t));
}

/* One way to multiply exactly. Lines are packed in groups of a_lines rows or b_lines columns, the
 * last group padded with zeros; a_bytes and b_bytes are the sizes of a group of one chunk. */
typedef struct fixed_engine {
    const char *name;
    int64_t a_lines, b_lines;
    int64_t a_bytes, b_bytes;
    void (*pack_a)(const fixed_lines *l, int bits, void *out, double *power);
    void (*pack_b)(const fixed_lines *l, int bits, void *out, double *power);
    void (*tiles)(const fixed_tiles *t);
    int reads_at;               /* whether pack_b accepts gathered columns (fixed_lines.at) */
    const fixed_adding *adding; /* NULL: the engine's sums cannot be checked */
} fixed_engine;

/* Takes the next array of a thread's memory at *at, in whole cache lines, and advances *at. Returns
 * NULL if `memory` is NULL, so that one function both measures and places. */
RO_INLINE void *fixed_take(char *memory, int64_t *at, int64_t count, size_t size) {
    void *taken = memory ? memory + *at : NULL;
    *at += ceil_div(count * (int64_t)size, 64) * 64;
    return taken;
}

/* Returns engine `number` of this machine for integers of `bits` bits, or NULL past the last one.
 * Kernels use number 0, the fastest; all give the same bits. */
const fixed_engine *RO_NAME(ro_fixed_engine)(int bits, int number);
const char *RO_NAME(ro_fixed_engine_name)(int bits, int number);

/* Runs a call of matmul_fixed by the given engine, for tests. */
ro_status RO_NAME(ro_matmul_fixed_by)(const ro_job *job, const fixed_engine *engine);

/* ro_linear of a layer with fixed products. */
ro_status RO_NAME(ro_linear_fixed)(ro_ctx *ctx, const ro_linear_job *job);

/* Each returns its engine, or NULL if the machine lacks the instructions. */
const fixed_engine *RO_NAME(ro_fixed_tiles)(int bits);
const fixed_engine *RO_NAME(ro_fixed_words)(int bits);
const fixed_engine *RO_NAME(ro_fixed_bytes)(void); /* what ro_fixed_words returns for 8 bits */
const fixed_engine *RO_NAME(ro_fixed_pairs)(int bits);
const fixed_engine *RO_NAME(ro_fixed_dots)(int bits);
const fixed_engine *RO_NAME(ro_fixed_double)(void);

#endif
