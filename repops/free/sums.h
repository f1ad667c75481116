/* Sums in the order of a profile: pieces of `split` terms. In a piece, term k goes to lane k mod
 * `lanes`; lanes, and then pieces, are added one after the other or as a tree. */
#ifndef REPOPS_FREE_SUMS_H
#define REPOPS_FREE_SUMS_H

#include "repops/free/vector.h"
#include "repops/free/writer.h"

enum {
    SUM_LEVELS = 36,  /* levels of a tree of pieces: enough for 64 * 2^35 terms */
    SUM_TERMS = 2048, /* most terms along a row: RO_REDUCE_BLOCK, or a block of attn_l */
};

/* Returns how many of n terms a piece has. */
RO_INLINE int64_t piece_of(const ro_profile *p, int64_t n) {
    return p->split > 0 ? p->split : n;
}

/* ---- sums along a row ---- */

/* Returns the sum of products a[i] * b[i], or of a[i] if b is NULL; `lanes` is a constant. */
RO_INLINE real sum_lanes(const real *a, const real *b, int64_t n, int lanes, int pairwise,
                         int contract) {
    real sum[RO_PROFILE_LANES_MAX];
    const int64_t whole = n - n % lanes;
    for (int j = 0; j < lanes; j++)
        sum[j] = 0;
    for (int64_t i = 0; i < whole; i += lanes)
        for (int j = 0; j < lanes; j++)
            sum[j] = b ? free_mul_add(a[i + j], b[i + j], sum[j], contract) : sum[j] + a[i + j];
    for (int64_t i = whole; i < n; i++)
        sum[i - whole] =
            b ? free_mul_add(a[i], b[i], sum[i - whole], contract) : sum[i - whole] + a[i];
    if (pairwise)
        for (int w = lanes / 2; w > 0; w /= 2)
            for (int j = 0; j < w; j++)
                sum[j] = sum[j] + sum[j + w];
    else
        for (int j = 1; j < lanes; j++)
            sum[0] = sum[0] + sum[j];
    return sum[0];
}

RO_INLINE real sum_piece(const ro_profile *p, const real *a, const real *b, int64_t n,
                         int contract) {
    switch (p->lanes) {
    case 1: return sum_lanes(a, b, n, 1, p->pairwise, contract);
    case 2: return sum_lanes(a, b, n, 2, p->pairwise, contract);
    case 4: return sum_lanes(a, b, n, 4, p->pairwise, contract);
    case 8: return sum_lanes(a, b, n, 8, p->pairwise, contract);
    case 16: return sum_lanes(a, b, n, 16, p->pairwise, contract);
    case 32: return sum_lanes(a, b, n, 32, p->pairwise, contract);
    default: return sum_lanes(a, b, n, 64, p->pairwise, contract);
    }
}

/* Adds neighbours first, then the sums of neighbours, and so on. */
static inline __attribute__((unused)) real sum_tree(real *x, int64_t n) {
    for (; n > 1; n = (n + 1) / 2)
        for (int64_t i = 0; i < n; i += 2)
            x[i / 2] = i + 1 < n ? x[i] + x[i + 1] : x[i];
    return x[0];
}

RO_INLINE void reverse(real *x, int64_t n) {
    for (int64_t i = 0; i < n / 2; i++) {
        const real other = x[n - 1 - i];
        x[n - 1 - i] = x[i];
        x[i] = other;
    }
}

/* Sums n <= SUM_TERMS terms, and overwrites them. */
RO_INLINE real sum_row(const ro_profile *p, real *a, real *b, int64_t n, int contract) {
    real piece[SUM_TERMS / 64];
    const int64_t size = piece_of(p, n);
    int64_t pieces = 0;
    if (p->descending) {
        reverse(a, n);
        if (b && b != a)
            reverse(b, n);
    }
    for (int64_t i = 0; i < n; i += size)
        piece[pieces++] = sum_piece(p, a + i, b ? b + i : NULL, min_i64(size, n - i), contract);
    if (p->pairwise)
        return pieces > 0 ? sum_tree(piece, pieces) : 0;
    real sum = 0;
    for (int64_t i = 0; i < pieces; i++)
        sum = sum + piece[i];
    return sum;
}

/* Adds its excess to the size of a term. A size of 0 gets none, as the excess may be infinite. */
RO_INLINE vr grown(vr size, vr excess) {
    return size + (vr)((vr_mask)(size * excess) & (size > 0));
}

/* Returns the sum of the magnitudes of terms a[i] * b[i], or a[i] if b is NULL, each times 1 +
 * excess[i] (NULL: 0): a term's error bound grows by this factor. */
RO_INLINE double sum_size(const real *a, const real *b, const real *excess, int64_t n) {
    vr sum[4] = {{0}};
    real lane[4 * FREE_LANES], size;
    const int64_t whole = n - n % FREE_LANES;
    for (int64_t i = 0; i < whole; i += FREE_LANES) {
        vr *to = &sum[i / FREE_LANES % 4];
        vr x = vector_abs(b ? load(a + i) * load(b + i) : load(a + i));
        *to += excess ? grown(x, load(excess + i)) : x;
    }
    for (int i = 0; i < 4; i++)
        store(lane + i * FREE_LANES, sum[i]);
    size = sum_lanes(lane, NULL, 4 * FREE_LANES, FREE_LANES, 1, 0);
    for (int64_t i = whole; i < n; i++) {
        const real x = ap_abs(b ? a[i] * b[i] : a[i]);
        size += excess && x > 0 ? x + x * excess[i] : x;
    }
    return (double)size;
}

/* ---- sums of rows, column by column ---- */

enum { SUM_COLUMNS = 128, SUM_ROWS = 8 };

/* Sums of columns, which start from +0. Terms are rows, added to the one that sums_next returns. */
typedef struct {
    const ro_profile *profile;
    int64_t columns;       /* at most SUM_COLUMNS */
    int64_t piece;         /* terms of a piece */
    int64_t count, pieces; /* terms in this piece, and pieces before it */
    int bounds;
    real lane[RO_PROFILE_LANES_MAX][SUM_COLUMNS];
    real total[SUM_LEVELS][SUM_COLUMNS];
    double size[SUM_COLUMNS];       /* sum of the terms' magnitudes, if bounds are wanted, */
    const float *unsized[SUM_ROWS]; /* except those of these rows, which are added later */
    int rows;
} sums;

RO_INLINE void sums_open(sums *s, const ro_profile *p, int64_t terms, int64_t columns, int bounds) {
    s->profile = p;
    s->columns = columns;
    s->piece = piece_of(p, terms);
    s->count = s->pieces = 0;
    s->bounds = bounds;
    s->rows = 0;
    memset(s->total[0], 0, sizeof s->total[0]);
    if (bounds)
        memset(s->size, 0, sizeof s->size);
}

/* Returns which term is added as number i of n. */
RO_INLINE int64_t sums_term(const ro_profile *p, int64_t i, int64_t n) {
    return p->descending ? n - 1 - i : i;
}

RO_INLINE void add_reals(real *restrict sum, const real *restrict x, int64_t n) {
    for (int64_t c = 0; c < n; c++)
        sum[c] = sum[c] + x[c];
}

static inline __attribute__((unused)) void sums_fold_lanes(sums *s) {
    const int lanes = (int)min_i64(s->profile->lanes, s->count);
    if (s->profile->pairwise)
        for (int w = s->profile->lanes / 2; w > 0; w /= 2)
            for (int j = 0; j < w && j + w < lanes; j++)
                add_reals(s->lane[j], s->lane[j + w], s->columns);
    else
        for (int j = 1; j < lanes; j++)
            add_reals(s->lane[0], s->lane[j], s->columns);
}

/* Ends a piece. In a tree, the sum of a piece waits on its level for the next one. */
static inline __attribute__((unused)) void sums_end_piece(sums *s) {
    int level = 0;
    if (s->count == 0)
        return;
    sums_fold_lanes(s);
    if (!s->profile->pairwise) {
        add_reals(s->total[0], s->lane[0], s->columns);
    } else {
        for (int64_t n = s->pieces; n & 1; n >>= 1) {
            add_reals(s->total[level], s->lane[0], s->columns);
            memcpy(s->lane[0], s->total[level++], (size_t)s->columns * sizeof(real));
        }
        memcpy(s->total[level], s->lane[0], (size_t)s->columns * sizeof(real));
    }
    s->pieces++;
    s->count = 0;
}

RO_INLINE real *sums_next(sums *s) {
    if (s->count == s->piece)
        sums_end_piece(s);
    real *lane = s->lane[s->count & (s->profile->lanes - 1)];
    if (s->count < s->profile->lanes)
        memset(lane, 0, (size_t)s->columns * sizeof *lane);
    s->count++;
    return lane;
}

/* Adds magnitudes, in any order: eight rows at a time, so that a sum is loaded and stored once. */
static inline __attribute__((unused)) void size_rows(sums *s) {
    const int rows = s->rows;
    const float *const *x = s->unsized;
    double *restrict size = s->size;
    s->rows = 0;
    if (rows == SUM_ROWS)
        for (int64_t c = 0; c < s->columns; c++) {
            double sum[4];
            for (int i = 0; i < 4; i++)
                sum[i] = __builtin_fabs((double)x[i][c]) + __builtin_fabs((double)x[i + 4][c]);
            size[c] += (sum[0] + sum[1]) + (sum[2] + sum[3]);
        }
    else
        for (int i = 0; i < rows; i++)
            for (int64_t c = 0; c < s->columns; c++)
                size[c] += __builtin_fabs((double)x[i][c]);
}

/* Returns the sums, which are valid until sums_open. */
static inline __attribute__((unused)) real *sums_close(sums *s) {
    int64_t n = s->pieces + (s->count > 0);
    real *sum = NULL;
    sums_end_piece(s);
    size_rows(s);
    if (!s->profile->pairwise || n == 0)
        return s->total[0];
    for (int level = 0; n > 0; level++, n >>= 1) {
        if (!(n & 1))
            continue;
        if (sum)
            add_reals(s->total[level], sum, s->columns);
        sum = s->total[level];
    }
    return sum;
}

/* Adds the terms x, which must stay in memory until sums_close. */
RO_INLINE void sums_add(sums *s, const float *restrict x) {
    real *restrict sum = sums_next(s);
    for (int64_t c = 0; c < s->columns; c++)
        sum[c] = sum[c] + (real)x[c];
    if (!s->bounds)
        return;
    s->unsized[s->rows++] = x;
    if (s->rows == SUM_ROWS)
        size_rows(s);
}

/* Adds the terms a * b. */
RO_INLINE void sums_add_products(sums *s, const real *restrict a, const real *restrict b,
                                 int contract) {
    real *restrict sum = sums_next(s);
    for (int64_t c = 0; c < s->columns; c++)
        sum[c] = free_mul_add(a[c], b[c], sum[c], contract);
    if (s->bounds)
        for (int64_t c = 0; c < s->columns; c++)
            s->size[c] += ap_size(a[c] * b[c]);
}

/* Writes the sums of n terms that have `term` roundings each. */
static inline __attribute__((unused)) void sums_write(sums *s, writer *w, int64_t n, double term) {
    const real *y = sums_close(s);
    const double error = sum_error(n, term);
    for (int64_t c = 0; c < s->columns; c++)
        write_one(w, (approx){y[c], s->bounds ? error * s->size[c] : 0});
}

#endif
