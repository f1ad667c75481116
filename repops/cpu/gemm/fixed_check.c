#include "repops/cpu/gemm/fixed_check.h"

void RO_NAME(ro_fixed_check_place)(fixed_check *c, int64_t rows, int64_t cols, char *memory,
                                   int64_t *at) {
    const fixed_engine *e = c->engine;
    if (!e)
        return;
    const int64_t groups = ceil_div(cols, e->b_lines), width = groups * e->b_lines;
    const int64_t height = ceil_div(rows, e->a_lines) * e->a_lines;
    c->line = fixed_take(memory, at, FIXED_PARTS_MOST, sizeof *c->line);
    c->column = fixed_take(memory, at, width, sizeof(uint32_t));
    c->expected = fixed_take(memory, at, width, sizeof(uint32_t));
    c->row = fixed_take(memory, at, height, sizeof(uint32_t));
    c->again = fixed_take(memory, at, e->a_lines, sizeof(uint32_t));
    c->packed = fixed_take(memory, at, groups, sizeof(uint32_t));
    c->scratch = fixed_take(memory, at, e->a_lines * width, sizeof(float));
}

void RO_NAME(ro_fixed_check_start)(fixed_check *c, int64_t rows, int64_t cols) {
    const int64_t width = ceil_div(cols, c->engine->b_lines) * c->engine->b_lines;
    memset(c->line, 0, FIXED_PARTS_MOST * sizeof *c->line);
    memset(c->column, 0, (size_t)width * sizeof *c->column);
    memset(c->expected, 0, (size_t)width * sizeof *c->expected);
    memset(c->row, 0, (size_t)rows * sizeof *c->row);
    c->scales = 0, c->a_packed = c->a_powers = 0;
}

/* ---- what is packed ---- */

static uint32_t sum_of(const void *from, int64_t bytes) {
    const uint32_t *word = from;
    uint32_t sum = 0;
    for (int64_t i = 0; i < bytes / (int64_t)sizeof *word; i++)
        sum += word[i];
    return sum;
}

static uint32_t sum_of_powers(const double *power, int64_t lines) {
    return sum_of(power, lines * (int64_t)sizeof *power);
}

static uint32_t sum_of_lines(uint32_t line[][RO_DOT_CHUNK]) {
    return sum_of(line, FIXED_PARTS_MOST * (int64_t)sizeof *line);
}

/* Returns the sum of rows' powers and of their marks, such as which rows have two digits. */
static uint32_t sum_of_scales(const fixed_engine *e, const void *a, const double *power,
                              int64_t rows) {
    return sum_of_powers(power, rows) + (e->adding->marks ? e->adding->marks(a, rows) : 0);
}

static uint32_t words_of_lines(const fixed_engine *e, const fixed_lines *l, int bits,
                               const void *packed) {
    uint32_t line[FIXED_PARTS_MOST][RO_DOT_CHUNK] = {{0}};
    e->adding->lines(packed, l->lines, l->steps, bits, line);
    return sum_of_lines(line);
}

uint32_t RO_NAME(ro_fixed_packed_sum)(const fixed_engine *e, ro_packed_operand side,
                                      const fixed_lines *l, int bits, const void *packed,
                                      const double *power) {
    if (!e->adding)
        return 0;
    return side == RO_PACKED_X
               ? words_of_lines(e, l, bits, packed) + sum_of_scales(e, packed, power, l->lines)
               : e->adding->words(packed, l->steps, bits) + sum_of_powers(power, e->b_lines);
}

static void alter(const fixed_check *c, ro_guard_place place, void *data, int64_t bytes) {
    if (c->guard->alter)
        c->guard->alter(c->guard->user, place, data, (size_t)bytes);
}

void RO_NAME(ro_fixed_check_group)(fixed_check *c, int64_t group, void *packed, uint32_t sum) {
    c->packed[group] = sum;
    alter(c, RO_GUARD_AT_B, packed, c->engine->b_bytes);
}

/* Prefetches the next group of an operand that was packed as a whole, while the current one is
 * multiplied: otherwise adding it up would wait for memory. */
static void fetch(const char *a, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(a + i);
}

void RO_NAME(ro_fixed_check_lines)(fixed_check *c, const fixed_tiles *t, const uint32_t *sum) {
    c->known = sum != NULL;
    c->a_packed += sum ? *sum : 0;
    c->engine->adding->lines(t->a, t->rows, t->steps, c->bits, c->line);
    if (c->known)
        fetch((const char *)t->a + c->engine->a_bytes, c->engine->adding->fetched);
    c->scale = sum_of_scales(c->engine, t->a, t->a_power, t->rows);
    alter(c, RO_GUARD_AT_A, (void *)(uintptr_t)t->a, c->engine->a_bytes);
    alter(c, RO_GUARD_AT_SCALE, (void *)(uintptr_t)t->a_power,
          t->rows * (int64_t)sizeof *t->a_power);
}

void RO_NAME(ro_fixed_check_tiles)(fixed_check *c, const fixed_tiles *t, int64_t row) {
    const uint32_t scale = sum_of_scales(c->engine, t->a, t->a_power, t->rows);
    c->a_powers += scale;
    if (scale != c->scale && c->scales++ == 0)
        c->scale_row = row;
    alter(c, RO_GUARD_AT_TOTAL, t->c, t->cols * (int64_t)sizeof *t->c);
}

void RO_NAME(ro_fixed_check_run)(fixed_check *c, fixed_tiles *t, const uint32_t *sum, int64_t row) {
    const fixed_sums sums = {c->column, c->row + row, c->guard->alter ? c->guard : NULL};
    t->sums = &sums;
    RO_NAME(ro_fixed_check_lines)(c, t, sum);
    c->engine->tiles(t);
    RO_NAME(ro_fixed_check_tiles)(c, t, row);
    t->sums = NULL;
}

/* ---- what must be equal ---- */

static void note_columns(const fixed_check *c, int64_t cols, ro_guard_finding *out) {
    for (int64_t n = 0; n < cols; n++)
        if (c->column[n] != c->expected[n] && out->cols++ == 0)
            out->col = n;
}

/* Computes what columns must add up to. Returns how many groups of b have changed since they were
 * packed; *first is the first column of the first of them. */
static int64_t expect_columns(fixed_check *c, const fixed_tiles *t, int64_t *first) {
    const fixed_engine *e = c->engine;
    const uint32_t(*line)[RO_DOT_CHUNK] = (const uint32_t(*)[RO_DOT_CHUNK])c->line;
    int64_t changed = 0;
    for (int64_t g = 0, n = 0; n < t->cols; g++, n += e->b_lines) {
        const char *b = (const char *)t->b + g * e->b_bytes;
        const uint32_t words = e->adding->columns(b, t->steps, c->bits, line, c->expected + n);
        if (words + sum_of_powers(t->b_power + n, e->b_lines) != c->packed[g] && changed++ == 0)
            *first = n;
    }
    return changed;
}

int RO_NAME(ro_fixed_check_end)(fixed_check *c, const fixed_tiles *t, ro_guard_finding *out) {
    int64_t first = 0;
    *out = (ro_guard_finding){.kind = RO_GUARD_SUMS, .row = -1, .col = -1};
    const int64_t groups = expect_columns(c, t, &first);
    note_columns(c, t->cols, out);
    if (out->cols > 0)
        return 0;
    out->kind = RO_GUARD_PACKED;
    if (groups > 0)
        out->col = first, out->cols = min_i64(groups * c->engine->b_lines, t->cols - first);
    else if (c->scales > 0)
        out->row = c->scale_row, out->rows = c->scales * c->engine->a_lines;
    const bool rows = c->known && c->a_packed != sum_of_lines(c->line) + c->a_powers;
    return groups == 0 && c->scales == 0 && !rows;
}

void RO_NAME(ro_fixed_check_rows)(const fixed_check *c, int64_t rows, int64_t row,
                                  ro_guard_finding *out) {
    for (int64_t i = 0; i < rows; i++)
        if (c->again[i] != c->row[row + i] && out->rows++ == 0)
            out->row = row + i;
}
