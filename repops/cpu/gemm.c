/* Blocked matrix product after Goto and van de Geijn: panels of b stay in the last-level cache,
 * panels of a in the second, a tile of c in registers. Blocks are multiples of the chunk and every
 * chunk ends with an addition to c, so none of the sizes here shows in the bits (SPEC.md
 * section 3.1).
 *
 * Masked products run the part of a chunk that all rows of a tile admit like any other, and the few
 * steps of the triangle row by row: what the mask excludes is never multiplied. */
#include "repops/cpu/gemm.h"
#include "repops/cpu/gemm_pack.h"
#include "repops/cpu/gemm_tile.h"

/* Steps of k that are packed at a time; fewer with a mask, since whole blocks are skipped. */
enum { KC = 1024, KC_MASKED = 256, MC = 12 * MR, NC = 16 * 32 };

/* A part of the product whose operands are packed. */
typedef struct {
    const gemm *g;
    int64_t k0, k; /* steps */
    int64_t i0, m; /* rows */
    int64_t j0, n; /* columns */
    float *a, *b;
    float *tot; /* totals of the part's columns: rows tot_row apart */
    int64_t tot_row;
} part;

static int64_t depth(const gemm *g) {
    const int64_t most = g->mask == RO_MASK_NONE ? KC : KC_MASKED;
    return g->chunk * max_i64(1, most / g->chunk);
}

/* Panels of a share the rows evenly; panels of b are NR wide, so that loads are whole vectors. */
static int64_t panel_rows(int64_t rows) {
    return ceil_div(rows, ceil_div(rows, MR));
}

/* ---- operands: packed, or used where they are if that is as good ---- */

/* The panel of a is used few times, and its steps are rows of MR neighbours already. */
static int a_in_place(const gemm *g) {
    return g->a_row == 1 && g->n <= 2 * NR;
}

static int b_in_place(const gemm *g, int64_t cols) {
    return g->b_col == 1 && g->m <= 2 * MR && cols == NR;
}

static void pack_a(const part *s) {
    const gemm *g = s->g;
    const int64_t width = panel_rows(s->m);
    for (int64_t i = 0; i < s->m; i += width) {
        const int64_t rows = min_i64(width, s->m - i);
        const float *from = g->a + (s->i0 + i) * g->a_row + s->k0 * g->a_col;
        pack(&(panel){from, g->a_row, g->a_col, rows, rows, s->k}, s->a + i * s->k);
    }
}

static void pack_b(const part *s) {
    const gemm *g = s->g;
    for (int64_t j = 0; j < s->n; j += NR) {
        const int64_t cols = min_i64(NR, s->n - j);
        const float *from = g->b + s->k0 * g->b_row + (s->j0 + j) * g->b_col;
        if (!b_in_place(g, cols))
            pack(&(panel){from, g->b_col, g->b_row, cols, NR, s->k}, s->b + j * s->k);
    }
}

/* ---- one tile, chunk by chunk ---- */

/* Rows [row, row + rows) for the mask; t has the operands at step k0 of the product. */
typedef struct {
    const gemm *g;
    tile t;
    int rows;
    int64_t row, k0;
} strip;

static void run_steps(const strip *s, int rows, int i, int64_t from, int64_t to, tile t) {
    t.k = max_i64(0, to - from);
    t.a += (from - s->k0) * t.a_step + i;
    t.b += (from - s->k0) * t.b_step;
    run_tile(rows, &t);
}

/* k <= row: all rows admit the steps up to `row`; then row i admits i more. */
static void run_upto_row(const strip *s, int64_t from, int64_t to, const tile *whole) {
    const int64_t common = max_i64(from, min_i64(to, s->row + 1));
    float acc[MR * NR];
    tile t = *whole;
    t.c = acc, t.c_row = NR, t.cols = NR, t.flags = TILE_RAW;
    run_steps(s, s->rows, 0, from, common, t);
    t = *whole;
    for (int i = 0; i < s->rows; i++) {
        t.start = acc + i * NR;
        t.c = whole->c + i * t.c_row;
        t.out = whole->out + i * t.out_row;
        run_steps(s, 1, i, common, min_i64(to, s->row + i + 1), t);
    }
}

/* k >= row: row i starts at its own number; from the last row's number on, all admit. */
static void run_from_row(const strip *s, int64_t from, int64_t to, const tile *whole) {
    const int64_t common = max_i64(from, min_i64(to, s->row + s->rows - 1));
    float acc[MR * NR];
    tile t = *whole;
    t.c_row = NR, t.cols = NR, t.flags = TILE_RAW;
    for (int i = 0; i < s->rows; i++) {
        t.c = acc + i * NR;
        run_steps(s, 1, i, max_i64(from, s->row + i), common, t);
    }
    t = *whole;
    t.start = acc;
    run_steps(s, s->rows, 0, common, to, t);
}

/* Chunks of the strip's rows that admit anything: [first, last]. */
static void chunk_range(const strip *s, int64_t *first, int64_t *last) {
    const gemm *g = s->g;
    *first = g->mask == RO_MASK_FROM_ROW ? s->row / g->chunk : 0;
    *last = ceil_div(g->k, g->chunk) - 1;
    if (g->mask == RO_MASK_UPTO_ROW)
        *last = min_i64(*last, (s->row + s->rows - 1) / g->chunk);
}

static void run_chunk(const strip *s, int64_t from, int64_t to, const tile *t) {
    const int64_t end = s->row + s->rows; /* of the rows */
    if (s->g->mask == RO_MASK_UPTO_ROW && s->row + 1 < to)
        run_upto_row(s, from, to, t);
    else if (s->g->mask == RO_MASK_FROM_ROW && end - 1 > from)
        run_from_row(s, from, to, t);
    else
        run_steps(s, s->rows, 0, from, to, *t);
}

static void run_strip(const strip *s, int64_t k) {
    const gemm *g = s->g;
    int64_t first, last;
    chunk_range(s, &first, &last);
    for (int64_t from = s->k0; from < s->k0 + k; from += g->chunk) {
        const int64_t j = from / g->chunk;
        if (j < first || j > last)
            continue;
        tile t = s->t;
        t.c += j * g->c_chunk;
        t.out += j * g->c_chunk;
        t.flags = g->c_chunk || j == first ? TILE_FIRST : 0;
        t.flags |= g->c_chunk || j == last ? TILE_LAST : 0;
        run_chunk(s, from, min_i64(from + g->chunk, g->k), &t);
    }
}

/* ---- the loops around tiles ---- */

static strip strip_of(const part *s, int64_t i, int rows, int64_t j) {
    const gemm *g = s->g;
    const int64_t cols = min_i64(NR, s->n - j);
    strip r = {.g = g, .rows = rows, .row = g->row0 + s->i0 + i, .k0 = s->k0};
    r.t = (tile){.cols = cols, .alpha = g->alpha, .beta = g->beta};
    r.t.out = g->c + (s->i0 + i) * g->c_row + s->j0 + j, r.t.out_row = g->c_row;
    r.t.c = s->tot + (s->i0 + i) * s->tot_row + j, r.t.c_row = s->tot_row;
    r.t.a = a_in_place(g) ? g->a + s->i0 + i + s->k0 * g->a_col : s->a + i * s->k;
    r.t.a_step = a_in_place(g) ? g->a_col : rows;
    r.t.b = b_in_place(g, cols) ? g->b + s->k0 * g->b_row + s->j0 + j : s->b + j * s->k;
    r.t.b_step = b_in_place(g, cols) ? g->b_row : NR;
    return r;
}

static void run_part(const part *s) {
    const int64_t height = panel_rows(s->m);
    for (int64_t j = 0; j < s->n; j += NR) {
        for (int64_t i = 0; i < s->m; i += height) {
            const strip r = strip_of(s, i, (int)min_i64(height, s->m - i), j);
            run_strip(&r, s->k);
        }
    }
}

/* No row of the part admits any of its steps. */
static int masked_out(const part *s) {
    const int64_t row = s->g->row0 + s->i0;
    return (s->g->mask == RO_MASK_UPTO_ROW && s->k0 > row + s->m - 1) ||
           (s->g->mask == RO_MASK_FROM_ROW && s->k0 + s->k <= row);
}

static void run_rows(part *s) {
    const gemm *g = s->g;
    for (s->i0 = 0; s->i0 < g->m; s->i0 += MC) {
        s->m = min_i64(MC, g->m - s->i0);
        if (masked_out(s))
            continue;
        if (!a_in_place(g))
            pack_a(s);
        run_part(s);
    }
}

/* Rows that admit nothing at all: dot is +0. */
static void fill_rows(const gemm *g, int64_t from) {
    const float t = 0.0f * g->alpha;
    for (int64_t i = from; i < g->m; i++) {
        float *c = g->c + i * g->c_row;
        for (int64_t j = 0; j < g->n; j++)
            c[j] = ro_canon(g->beta == 0 ? t : ro_fma(g->beta, c[j], t));
    }
}

/* Chunks with their own results are +0 where the mask leaves nothing. */
static void fill_chunks(const gemm *g) {
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = (g->row0 + i) / g->chunk + 1; j * g->chunk < g->k; j++)
            memset(g->c + i * g->c_row + j * g->c_chunk, 0, (size_t)g->n * sizeof(float));
}

static int64_t b_size(const gemm *g) {
    return ceil_div(min_i64(NC, g->n), NR) * NR * min_i64(depth(g), g->k);
}

static int64_t a_size(const gemm *g) {
    return a_in_place(g) ? 0 : ceil_div(min_i64(MC, g->m) * min_i64(depth(g), g->k) + VW, 16) * 16;
}

/* Totals have a place of their own as long as c is needed. */
static int64_t tot_size(const gemm *g) {
    return g->beta == 0 ? 0 : g->m * ceil_div(min_i64(NC, g->n), 16) * 16;
}

int64_t RO_NAME(ro_gemm_workspace)(const gemm *g) {
    return a_size(g) + b_size(g) + tot_size(g);
}

void RO_NAME(ro_gemm)(const gemm *whole, float *workspace) {
    gemm g = *whole;
    if (g.k == 0)
        g.m = 0;
    if (g.mask == RO_MASK_FROM_ROW)
        g.m = max_i64(0, min_i64(g.m, g.k - g.row0));
    fill_rows(whole, g.m);
    if (g.mask == RO_MASK_UPTO_ROW && g.c_chunk)
        fill_chunks(&g);
    const int64_t k = depth(&g);
    part s = {.g = &g, .b = workspace};
    s.a = s.b + b_size(whole);
    for (s.j0 = 0; s.j0 < g.n; s.j0 += NC) {
        s.n = min_i64(NC, g.n - s.j0);
        s.tot = g.beta == 0 ? g.c + s.j0 : s.a + a_size(whole);
        s.tot_row = g.beta == 0 ? g.c_row : ceil_div(s.n, 16) * 16;
        for (s.k0 = 0; s.k0 < g.k; s.k0 += k) {
            s.k = min_i64(k, g.k - s.k0);
            pack_b(&s);
            run_rows(&s);
        }
    }
}
