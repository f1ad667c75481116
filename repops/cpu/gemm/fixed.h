/* Products by exact sums of integers (SPEC.md section 3.5): what plans a product and what computes
 * a tile of it agree on this. */
#ifndef REPOPS_CPU_FIXED_H
#define REPOPS_CPU_FIXED_H

#include "repops/cpu/isa.h"
#include "repops/guard.h"

/* Lines of an operand in one chunk: rows of a or columns of b. */
typedef struct {
    const float *x;
    int64_t line, step; /* from a line to the next, from one k to the next; one of them is 1 */
    int64_t lines, steps;
    const int32_t *at; /* NULL, or, with line = 1, where each step begins, in place of k * step */
} fixed_lines;

/* The totals of a check (fixed_check.h): each sum of a chunk, times an odd factor, is added to the
 * totals of its column and of its row. */
enum { FIXED_PARTS_MOST = 3 }; /* parts of integers, of which an engine makes one number */
typedef struct {
    uint32_t *column, *row;
    const ro_guard *alter; /* set by a test that alters sums; or NULL */
} fixed_sums;

/* How an engine's packed numbers are added up. */
typedef struct {
    /* Adds each part of packed rows of a, at each step, to sum[part][step]. */
    void (*lines)(const void *a, int64_t rows, int64_t steps, int bits,
                  uint32_t sum[][RO_DOT_CHUNK]);
    /* Adds to `out` what columns of a packed group of b must add up to if rows of a add up to
     * `sum`. Returns what `words` does. */
    uint32_t (*columns)(const void *b, int64_t steps, int bits, const uint32_t sum[][RO_DOT_CHUNK],
                        uint32_t *out);
    /* The sum of all words of a packed group of b. */
    uint32_t (*words)(const void *b, int64_t steps, int bits);
    /* Returns the sum of what packed rows of a hold beside their numbers; NULL: they hold nothing.
     */
    uint32_t (*marks)(const void *a, int64_t rows);
    int64_t fetched; /* bytes of the next group of a that are fetched while the current one is
                        multiplied */
} fixed_adding;

/* Tiles of one chunk: `rows` packed lines of a by all packed lines of b, added to the totals at c,
 * whose rows are c_row apart. `steps` are those of a; b may have been packed with more. */
typedef struct {
    const void *a, *b;
    const double *a_power,
        *b_power; /* of two: what an integer counts; NaN: the line is not finite */
    int64_t rows, cols, steps;
    int bits;
    float *c;
    int64_t c_row;
    const fixed_sums *sums; /* NULL: nobody checks them */
} fixed_tiles;

/* Lets a test alter a part of the sums of a tile. */
RO_INLINE void fixed_alter_sums(const fixed_tiles *t, int64_t rows, int64_t cols, void *sums) {
    const ro_guard *g = t->sums->alter;
    if (g && rows > 0)
        g->alter(g->user, RO_GUARD_AT_SUMS, sums, (size_t)(rows * cols) * sizeof(uint32_t));
}

/* One way to multiply exactly. Packed lines go in groups, of a_lines or b_lines, the last one
 * filled up with zeros; a group of a chunk takes so many bytes. */
typedef struct fixed_engine {
    const char *name;
    int64_t a_lines, b_lines;
    int64_t a_bytes, b_bytes;
    void (*pack_a)(const fixed_lines *l, int bits, void *out, double *power);
    void (*pack_b)(const fixed_lines *l, int bits, void *out, double *power);
    void (*tiles)(const fixed_tiles *t);
    int reads_at;               /* pack_b accepts columns that are gathered (fixed_lines.at) */
    const fixed_adding *adding; /* NULL: the engine's sums cannot be checked */
} fixed_engine;

/* Takes the next part of a thread's memory, from *at on, in whole cache lines. Returns NULL where
 * `memory` is NULL, so that one function measures and places. */
RO_INLINE void *fixed_take(char *memory, int64_t *at, int64_t count, size_t size) {
    void *taken = memory ? memory + *at : NULL;
    *at += ceil_div(count * (int64_t)size, 64) * 64;
    return taken;
}

/* The engines that this machine has for integers of so many bits, the fastest first, which the
 * kernels use: all give the same bits. NULL after the last one. */
const fixed_engine *RO_NAME(ro_fixed_engine)(int bits, int number);
const char *RO_NAME(ro_fixed_engine_name)(int bits, int number);

/* Runs a call of matmul_fixed by one of them, for tests. */
ro_status RO_NAME(ro_matmul_fixed_by)(const ro_job *job, const fixed_engine *engine);

/* ro_linear of a layer with fixed products. */
ro_status RO_NAME(ro_linear_fixed)(ro_ctx *ctx, const ro_linear_job *job);

/* Each returns NULL where the machine has no such instructions. */
const fixed_engine *RO_NAME(ro_fixed_tiles)(int bits);
const fixed_engine *RO_NAME(ro_fixed_words)(int bits);
const fixed_engine *RO_NAME(ro_fixed_bytes)(void); /* by ro_fixed_words, of 8 bits */
const fixed_engine *RO_NAME(ro_fixed_pairs)(int bits);
const fixed_engine *RO_NAME(ro_fixed_dots)(int bits);
const fixed_engine *RO_NAME(ro_fixed_double)(void);

#endif
