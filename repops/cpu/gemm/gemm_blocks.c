/* Blocked matrix product after Goto and van de Geijn: a block of a stays in the L2 cache, a panel
 * of b in or near L1, a tile of c in registers. Operands are packed only where that pays. A panel
 * of b is packed just before its tiles run, and the tiles of the panel before prefetch it.
 *
 * Blocks are multiples of the chunk, and each chunk's sum is added to the total by itself, so the
 * block sizes never change the bits (SPEC.md section 3.1).
 *
 * A masked product runs the steps that all rows of a tile admit as usual, and the few steps of the
 * triangle row by row. What the mask excludes is never multiplied. */
#include "repops/cpu/gemm/gemm_kernel.h"
#include "repops/cpu/gemm/gemm_pack_words.h"
#include "repops/cpu/gemm/gemm_place.h"
#include "repops/cpu/gemm/gemm_strip.h"

/* Block sizes. MC and MC_MANY are multiples of every MR. */
enum {
    KC = 256,      /* k steps packed at a time; a KC x NR panel of b fits in L1 */
    MC = 756,      /* rows of a block of a; MC x KC floats fill 3/4 of a 1 MiB L2 cache */
    KC_MANY = 512, /* KC for more than MC rows: c is not in L2, so it is read less often */
    MC_MANY = 252, /* MC for more than MC rows: lower blocks touch fewer pages of c */
};
enum {
    KC_MOST = 2048,  /* most k steps packed at a time */
    NC = 4096,       /* columns whose packed panels of b are kept for the next blocks of a */
    NC_APART = 1024, /* columns whose totals are kept in the workspace */
};

/* A part of the product. */
typedef struct {
    const gemm *g;
    int a_place, b_place;
    int64_t depth, most_m; /* the largest values of k and m below */
    int64_t k0, k;         /* k steps [k0, k0 + k) */
    int64_t i0, m;         /* rows [i0, i0 + m) */
    int64_t j0, n;         /* columns [j0, j0 + n) */
    float *a, *b;          /* packed: m rows of a; one panel of b, or all of them if keeps_b */
    int keeps_b;           /* more blocks of rows follow, which need the panels again */
    int panels;            /* b consists of packed panels already (gemm_packed.h) */
    float *tot;            /* totals so far, rows tot_row apart; NULL: one pass over k is enough */
    int64_t tot_row;
} gemm_part;

/* ---- operands: packed or in place ---- */

/* Number of k steps packed at a time. Where b is stored along k, each column lies in pages of its
 * own: with few rows of a, a deeper block uses more of each page. */
static int64_t depth_of(const gemm *g) {
    const int along = g->b_col > 1 && g->mask == RO_MASK_NONE && g->m <= MC;
    const int64_t steps = along       ? min_i64(KC_MOST, KC * MC / max_i64(1, g->m))
                          : g->m > MC ? KC_MANY
                                      : KC;
    return min_i64(g->chunk * max_i64(1, steps / g->chunk), g->k);
}

static gemm_part plan(const gemm *g) {
    gemm_part s = {.g = g, .b_place = !g->narrow.data && b_in_place(g)};
    s.a_place = a_in_place(g, s.b_place);
    s.depth = depth_of(g);
    const int64_t most = g->m > MC ? MC_MANY : MC;
    s.most_m = ceil_div(ceil_div(g->m, max_i64(1, ceil_div(g->m, most))), MR) * MR;
    s.panels = g->b_col == 0;
    s.keeps_b = !s.b_place && !s.panels && g->m > s.most_m && g->mask == RO_MASK_NONE;
    return s;
}

static void pack_a(const gemm_part *s) {
    const gemm *g = s->g;
    const int64_t width = strip_rows(g, s->m, 0, s->b_place);
    for (int64_t i = 0, rows; i < s->m; i += rows) {
        const int64_t panels = g->a_row == 1 ? min_i64(PACK_TOGETHER, (s->m - i) / width) : 0;
        const float *from = g->a + (s->i0 + i) * g->a_row + s->k0 * g->a_col;
        float *to = s->a + i * s->k;
        rows = panels > 1 ? panels * width : min_i64(width, s->m - i);
        if (panels > 1)
            pack_together(&(panel){from, 1, g->a_col, width, width, s->k}, panels, to);
        else
            pack(&(panel){from, g->a_row, g->a_col, rows, rows, s->k}, to);
    }
}

static const float *b_at(const gemm_part *s, int64_t j) {
    return s->g->b + s->k0 * s->g->b_row + (s->j0 + j) * s->g->b_col;
}

static void pack_b(const gemm_part *s, int64_t j, int64_t cols, float *to) {
    const gemm *g = s->g;
    const int64_t at = s->k0 * g->b_row + (s->j0 + j) * g->b_col;
    if (g->narrow.data)
        pack_words(&(word_panel){g->narrow.data + at, g->b_col, g->b_row, cols, s->k},
                   g->narrow.dtype, to);
    else
        pack(&(panel){g->b + at, g->b_col, g->b_row, cols, NR, s->k}, to);
}

static float *packed_b(const gemm_part *s, int64_t j) {
    if (s->panels)
        return (float *)(uintptr_t)s->g->b + (s->j0 + j) * s->g->k + s->k0 * NR;
    return s->keeps_b ? s->b + j * s->depth : s->b;
}

/* Returns whether this part's panels of b are packed already. */
static int is_packed(const gemm_part *s) {
    return s->panels || (s->keeps_b && s->i0 > 0);
}

/* ---- the loops around tiles ---- */

static void start_panel(const gemm_part *s, int64_t j, int64_t cols, strip *r) {
    const gemm *g = s->g;
    tile *t = &r->t;
    clear_tile(g, t);
    place_bias(g, s->j0 + j, t);
    r->g = g, r->k0 = s->k0, r->done = g->c_chunk ? s->k0 / g->chunk * g->c_chunk : 0;
    r->place = s->b_place || (s->a_place && g->a_row != 1);
    t->cols = cols, t->c_row = s->tot ? s->tot_row : ceil_div(cols, VW) * VW;
    t->a_row = s->a_place ? g->a_row : 1;
    t->b_step = s->b_place ? g->b_row : NR;
}

/* Points r at rows [i, i + rows) of the part and at its columns from j on. */
static void place_strip(const gemm_part *s, int64_t i, int rows, int64_t j, float *scratch,
                        strip *r) {
    const gemm *g = s->g;
    r->rows = rows, r->row = g->row0 + s->i0 + i;
    r->t.out = g->c + (s->i0 + i) * g->c_row + s->j0 + j;
    r->t.c = s->tot ? s->tot + (s->i0 + i) * s->tot_row + j : scratch;
    r->t.a = s->a_place ? g->a + (s->i0 + i) * g->a_row + s->k0 * g->a_col : s->a + i * s->k;
    r->t.a_step = s->a_place ? g->a_col : rows;
    r->t.b = s->b_place ? b_at(s, j) : packed_b(s, j);
    r->t.ahead = NULL, r->t.ahead_step = r->t.ahead_turn = 0;
}

/* Returns where the operand starts that follows a panel of b ending at column j: the next columns
 * or, after the last block of rows, the first columns of the next k steps. */
static const float *next_panel(const gemm_part *s, int64_t j) {
    const int last = j >= s->n && s->i0 + s->m >= s->g->m && s->k0 + s->k < s->g->k;
    return last ? b_at(s, 0) + s->k * s->g->b_row : b_at(s, j);
}

/* Does what look_ahead_b does, for elements of 16 bits: counts steps in floats, of two elements
 * each. */
static void look_ahead_narrow(const gemm_part *s, int64_t j, int64_t tiles_before, strip *r) {
    enum { LINE = 32 };
    const gemm *g = s->g;
    const int64_t chunks = ceil_div(s->k, g->chunk);
    const int64_t col = g->b_col == 1 ? LINE * tiles_before : tiles_before * chunks;
    const uint16_t *next = g->narrow.data + s->k0 * g->b_row + (s->j0 + j + NR + col) * g->b_col;
    if (col >= NR)
        return;
    r->t.ahead = (const float *)(const void *)next;
    r->t.ahead_step = g->b_col == 1 ? g->b_row / 2 : max_i64(1, chunks / 2);
    r->ahead_chunk = (g->b_col == 1 ? g->chunk * g->b_row : g->b_col) / 2;
}

/* Prefetches the next panel of b, one cache line per k step, while the current tile computes. Each
 * tile covers 16 columns, or one column per chunk where b is stored along k. Rows of b that do not
 * start on a cache line need one tile more. */
static void look_ahead_b(const gemm_part *s, int64_t j, int64_t tiles_before, strip *r) {
    const gemm *g = s->g;
    const int64_t chunks = ceil_div(s->k, g->chunk);
    const int64_t cols = r->t.cols;
    if (is_packed(s)) {
        if (tiles_before * 16 >= NR)
            return;
        r->t.ahead = packed_b(s, j + NR) + tiles_before * s->k * 16;
        r->t.ahead_step = 16;
        r->ahead_chunk = g->chunk * 16;
    } else if (g->narrow.data) {
        look_ahead_narrow(s, j, tiles_before, r);
    } else if (g->b_col == 1 && tiles_before * 16 <= cols) {
        r->t.ahead = next_panel(s, j + cols) + min_i64(16 * tiles_before, cols - 1);
        r->t.ahead_step = g->b_row;
        r->ahead_chunk = g->chunk * g->b_row;
    } else if (g->b_col != 1 && tiles_before * chunks < NR) {
        r->t.ahead = b_at(s, j + NR + tiles_before * chunks);
        r->t.ahead_step = chunks;
        r->ahead_chunk = g->b_col;
    }
}

static void look_ahead(const gemm_part *s, int64_t i, int64_t j, int64_t height, strip *r) {
    if (s->b_place && s->m <= PLACE_ROWS && s->k >= FAR_K && asks_next(s->g, r->rows)) {
        r->t.next = next_panel(s, j + r->t.cols) - r->t.b;
    } else if (s->a_place && (s->m > PLACE_ROWS || !s->b_place)) {
        if (!a_is_far(s->g))
            return;
        look_ahead_a(s->g, r->t.a + height * s->g->a_row, &r->t);
        r->ahead_chunk = s->g->chunk * s->g->a_col;
    } else if (!s->b_place || s->m > height) {
        look_ahead_b(s, j, i / height, r);
    }
}

/* Runs all rows of a panel of columns. */
static void run_panel(const gemm_part *s, int64_t j, int64_t cols, int64_t height) {
    float scratch[MR * NR];
    strip r;
    start_panel(s, j, cols, &r);
    for (int64_t i = 0; i < s->m; i += height) {
        place_strip(s, i, (int)min_i64(height, s->m - i), j, scratch, &r);
        look_ahead(s, i, j, height, &r);
        if (s->g->mask == RO_MASK_NONE)
            run_whole_strip(&r, s->k);
        else
            run_strip(&r, s->k);
    }
    if (s->g->y && s->k0 + s->k == s->g->k)
        RO_NAME(ro_gemm_activate)(s->g, s->i0, s->m, s->j0 + j, cols);
}

/* Number of leading columns to peel off so that every other tile starts on a cache line, or at a
 * multiple of its width where that divides a page. 0 where alignment cannot help. */
static int64_t columns_before(const gemm_part *s, int64_t height) {
    const gemm *g = s->g;
    const int64_t cols = place_cols(height, s->n), unit = PAGE % cols == 0 ? cols : 16;
    if (!s->b_place || s->m > PLACE_ROWS || cols == s->n || cols < 16 || g->b_row % unit != 0)
        return 0;
    const int64_t over = (int64_t)((uintptr_t)b_at(s, 0) / sizeof(float)) % unit;
    return over ? unit - over : 0;
}

static void run_part(const gemm_part *s) {
    const gemm *g = s->g;
    const int64_t height = strip_rows(g, s->m, s->a_place, s->b_place);
    const int64_t before = columns_before(s, height);
    for (int64_t j = 0, cols; j < s->n; j += cols) {
        cols = s->b_place ? place_cols(height, j < before ? before - j : s->n - j)
                          : min_i64(NR, s->n - j);
        if (!s->b_place && !is_packed(s))
            pack_b(s, j, cols, packed_b(s, j));
        run_panel(s, j, cols, height);
    }
}

/* Returns whether the mask excludes all steps of all rows of the part. */
static int masked_out(const gemm_part *s) {
    const int64_t row = s->g->row0 + s->i0;
    return (s->g->mask == RO_MASK_UPTO_ROW && s->k0 > row + s->m - 1) ||
           (s->g->mask == RO_MASK_FROM_ROW && s->k0 + s->k <= row);
}

static void run_rows(gemm_part *s) {
    for (s->i0 = 0; s->i0 < s->g->m; s->i0 += s->most_m) {
        s->m = min_i64(s->most_m, s->g->m - s->i0);
        if (masked_out(s))
            continue;
        if (!s->a_place)
            pack_a(s);
        run_part(s);
    }
}

/* Fills rows for which the mask admits no step: their dot products are +0. */
static void fill_rows(const gemm *g, int64_t from) {
    const float t = 0.0f * g->alpha;
    for (int64_t i = from; i < g->m; i++) {
        float *c = g->c + i * g->c_row;
        for (int64_t j = 0; j < g->n; j++)
            c[j] = ro_canon(g->beta == 0 ? t : ro_fma(g->beta, c[j], t));
    }
}

/* Fills results of chunks (c_chunk) for which the mask admits no step: they are +0. */
static void fill_chunks(const gemm *g) {
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = (g->row0 + i) / g->chunk + 1; j * g->chunk < g->k; j++)
            memset(g->c + i * g->c_row + j * g->c_chunk, 0, (size_t)g->n * sizeof(float));
}

/* ---- the whole product ---- */

/* Returns whether totals need separate memory: k takes several passes, and the last one needs the
 * old c for beta * c. */
static int totals_apart(const gemm_part *s) {
    return s->g->beta != 0 && s->g->k > s->depth;
}

static int64_t a_size(const gemm_part *s) {
    return s->a_place ? 0 : ceil_div(s->most_m * s->depth + VW, 16) * 16;
}

/* Returns how many columns run through all of k before the next columns begin. */
static int64_t block_cols(const gemm_part *s) {
    return min_i64(s->g->n, totals_apart(s) ? NC_APART : s->keeps_b ? NC : s->g->n);
}

static int64_t b_size(const gemm_part *s) {
    return s->b_place || s->panels
               ? 0
               : s->depth * (s->keeps_b ? ceil_div(block_cols(s), NR) * NR : NR);
}

static void run_columns(gemm_part *s) {
    const gemm *g = s->g;
    for (s->k0 = 0; s->k0 < g->k; s->k0 += s->depth) {
        s->k = min_i64(s->depth, g->k - s->k0);
        run_rows(s);
    }
}

static void run_blocks(const gemm *given, float *workspace) {
    const gemm as_given = as_row(given), *whole = &as_given;
    gemm g = *whole;
    gemm_part s = plan(&g);
    s.b = workspace;
    s.a = s.b + b_size(&s);
    float *apart = s.a + a_size(&s);
    if (g.k == 0)
        g.m = 0;
    if (g.mask == RO_MASK_FROM_ROW)
        g.m = max_i64(0, min_i64(g.m, g.k - g.row0));
    fill_rows(whole, g.m);
    if (g.mask == RO_MASK_UPTO_ROW && g.c_chunk)
        fill_chunks(&g);
    const int64_t block = max_i64(1, block_cols(&s));
    for (s.j0 = 0; s.j0 < g.n; s.j0 += block) {
        s.n = min_i64(block, g.n - s.j0);
        s.tot = totals_apart(&s) ? apart : g.k > s.depth ? g.c + s.j0 : NULL;
        s.tot_row = totals_apart(&s) ? s.n : g.c_row;
        run_columns(&s);
    }
}

/* Returns whether ro_gemm_end has not run yet: run_panel calls it unless k is 0 or as_row cleared
 * y. */
static int ends_later(const gemm *g) {
    return g->y && (g->k == 0 || as_row(g).y == NULL);
}

/* Takes everything, except a b of 16 bits with a mask, or for too few rows to repay packing it. */
static int takes(const gemm *g) {
    return !g->narrow.data || (g->m > PLACE_ROWS && g->mask == RO_MASK_NONE);
}

static int64_t workspace_of(const gemm *g) {
    const gemm row = as_row(g);
    const gemm_part s = plan(&row);
    return a_size(&s) + b_size(&s) + (totals_apart(&s) ? row.m * block_cols(&s) : 0);
}

static void run(const gemm *g, float *workspace) {
    run_blocks(g, workspace);
    if (ends_later(g))
        RO_NAME(ro_gemm_end)(g, 0, g->m, 0, g->n);
}

const gemm_kernel RO_NAME(ro_gemm_blocks) = {
    .name = "blocks", .takes = takes, .workspace = workspace_of, .run = run, .ends = 1};
