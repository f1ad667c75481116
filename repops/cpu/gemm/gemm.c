/* Blocked matrix product after Goto and van de Geijn: a block of a stays in the L2 cache, a panel
 * of b in or near L1, a tile of c in registers. Operands are packed only where that pays. A panel
 * of b is packed just before its tiles run, and the tiles of the panel before prefetch it.
 *
 * Blocks are multiples of the chunk, and each chunk's sum is added to the total by itself, so the
 * block sizes never change the bits (SPEC.md section 3.1).
 *
 * A masked product runs the steps that all rows of a tile admit as usual, and the few steps of the
 * triangle row by row. What the mask excludes is never multiplied. */
#include "repops/cpu/gemm/gemm.h"
#include "repops/cpu/gemm/gemm_chunks.h"
#include "repops/cpu/gemm/gemm_dots.h"
#include "repops/cpu/gemm/gemm_pack_words.h"
#include "repops/cpu/gemm/gemm_place.h"
#include "repops/cpu/gemm/gemm_small.h"
#include "repops/cpu/gemm/gemm_sweep.h"
#include "repops/cpu/gemm/gemm_tile.h"

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
    int64_t depth, most_m; /* the largest k and m below */
    int64_t k0, k;         /* k steps [k0, k0 + k) */
    int64_t i0, m;         /* rows [i0, i0 + m) */
    int64_t j0, n;         /* columns [j0, j0 + n) */
    float *a, *b;          /* packed: m rows of a; one panel of b, or all of them if keeps_b */
    int keeps_b;           /* more blocks of rows follow, which need the panels again */
    float *tot;            /* totals so far, rows tot_row apart; NULL: one pass over k is enough */
    int64_t tot_row;
} gemm_part;

/* ---- operands: packed or in place ---- */

/* Number of k steps packed at a time. Where b is stored along k, each column lies in pages of its
 * own: with few rows of a, a deeper block uses more of each page. */
static int64_t depth_of(const gemm *g) {
    const int along = g->b_col != 1 && g->mask == RO_MASK_NONE && g->m <= MC;
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
    s.keeps_b = !s.b_place && g->m > s.most_m && g->mask == RO_MASK_NONE;
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
    return s->keeps_b ? s->b + j * s->depth : s->b;
}

/* ---- one tile, chunk by chunk ---- */

/* One tile's rows, which the mask numbers [row, row + rows). t has the operands at step k0. */
typedef struct {
    const gemm *g;
    tile t;
    int place; /* 1: ro_tile_place; 0: ro_tile_packed */
    int rows;
    int64_t row, k0;
    int64_t done;        /* where c_chunk is not 0: from c to the result of the chunk at k0 */
    int64_t ahead_chunk; /* how far t.ahead moves from one chunk to the next */
} strip;

static void run_steps(const strip *s, int rows, int i, int64_t from, int64_t to, tile t) {
    t.k = max_i64(0, to - from);
    t.a += (from - s->k0) * t.a_step + i;
    t.b += (from - s->k0) * t.b_step;
    if (s->place)
        RO_NAME(ro_tile_place)(rows, &t);
    else
        RO_NAME(ro_tile_packed)(rows, &t);
}

/* The mask admits k <= row: all rows share the steps up to `row`, then row i has i more. */
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

/* The mask admits k >= row: row i starts at its own number, and all rows share the steps from the
 * last row's number on. */
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

/* First and last chunk in which any row of the strip admits a step. */
static void chunk_range(const strip *s, int64_t *first, int64_t *last) {
    const gemm *g = s->g;
    *first = g->mask == RO_MASK_FROM_ROW ? s->row / g->chunk : 0;
    *last = ceil_div(g->k, g->chunk) - 1;
    if (g->mask == RO_MASK_UPTO_ROW)
        *last = min_i64(*last, (s->row + s->rows - 1) / g->chunk);
}

static void run_chunk(const strip *s, int64_t from, int64_t to, const tile *t) {
    const int64_t end = s->row + s->rows; /* one past the last row */
    if (s->g->mask == RO_MASK_UPTO_ROW && s->row + 1 < to)
        run_upto_row(s, from, to, t);
    else if (s->g->mask == RO_MASK_FROM_ROW && end - 1 > from)
        run_from_row(s, from, to, t);
    else
        run_steps(s, s->rows, 0, from, to, *t);
}

/* Runs a strip without a mask. It advances the one tile, since copying it for each chunk would take
 * a good part of a small tile's time. */
static void run_whole_strip(strip *s, int64_t k) {
    const gemm *g = s->g;
    const int64_t end = s->k0 + k;
    tile *t = &s->t;
    t->c += s->done, t->out += s->done;
    for (int64_t from = s->k0; from < end; from += g->chunk) {
        const int first = g->c_chunk || from == 0, last = g->c_chunk || from + g->chunk >= g->k;
        t->k = min_i64(g->chunk, end - from);
        t->flags = (first ? TILE_FIRST : 0) | (last ? TILE_LAST : 0);
        if (s->place)
            RO_NAME(ro_tile_place)(s->rows, t);
        else
            RO_NAME(ro_tile_packed)(s->rows, t);
        t->a += g->chunk * t->a_step;
        t->b += g->chunk * t->b_step;
        t->c += g->c_chunk, t->out += g->c_chunk;
        if (t->ahead)
            t->ahead += s->ahead_chunk;
    }
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
        if (t.ahead)
            t.ahead += (from - s->k0) / g->chunk * s->ahead_chunk;
        t.c += j * g->c_chunk;
        t.out += j * g->c_chunk;
        t.flags = g->c_chunk || j == first ? TILE_FIRST : 0;
        t.flags |= g->c_chunk || j == last ? TILE_LAST : 0;
        run_chunk(s, from, min_i64(from + g->chunk, g->k), &t);
    }
}

/* ---- the loops around tiles ---- */

static void start_panel(const gemm_part *s, int64_t cols, strip *r) {
    const gemm *g = s->g;
    tile *t = &r->t;
    clear_tile(g, t);
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

/* The operand that follows a panel of b ending at column j: the next columns or, at the end of the
 * last block of rows, the first columns of the next k steps. */
static const float *next_panel(const gemm_part *s, int64_t j) {
    const int last = j >= s->n && s->i0 + s->m >= s->g->m && s->k0 + s->k < s->g->k;
    return last ? b_at(s, 0) + s->k * s->g->b_row : b_at(s, j);
}

/* As look_ahead_b, of elements of 16 bits: steps are counted in floats, of two of them. */
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
    if (s->keeps_b && s->i0 > 0) {
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
    start_panel(s, cols, &r);
    for (int64_t i = 0; i < s->m; i += height) {
        place_strip(s, i, (int)min_i64(height, s->m - i), j, scratch, &r);
        look_ahead(s, i, j, height, &r);
        if (s->g->mask == RO_MASK_NONE)
            run_whole_strip(&r, s->k);
        else
            run_strip(&r, s->k);
    }
    if (s->g->y && s->k0 + s->k == s->g->k)
        RO_NAME(ro_gemm_end)(s->g, s->i0, s->m, s->j0 + j, cols);
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
        if (!s->b_place && !(s->keeps_b && s->i0 > 0))
            pack_b(s, j, cols, packed_b(s, j));
        run_panel(s, j, cols, height);
    }
}

/* Whether the mask excludes all steps of all rows of the part. */
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

/* Fills rows that admit no step: their dot product is +0. */
static void fill_rows(const gemm *g, int64_t from) {
    const float t = 0.0f * g->alpha;
    for (int64_t i = from; i < g->m; i++) {
        float *c = g->c + i * g->c_row;
        for (int64_t j = 0; j < g->n; j++)
            c[j] = ro_canon(g->beta == 0 ? t : ro_fma(g->beta, c[j], t));
    }
}

/* Fills the results of chunks (c_chunk) of which the mask admits no step: they are +0. */
static void fill_chunks(const gemm *g) {
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = (g->row0 + i) / g->chunk + 1; j * g->chunk < g->k; j++)
            memset(g->c + i * g->c_row + j * g->c_chunk, 0, (size_t)g->n * sizeof(float));
}

/* ---- the whole product ---- */

/* Whether totals need memory of their own: k takes several passes, and beta * c needs the old c in
 * the last one. */
static int totals_apart(const gemm_part *s) {
    return s->g->beta != 0 && s->g->k > s->depth;
}

static int64_t a_size(const gemm_part *s) {
    return s->a_place ? 0 : ceil_div(s->most_m * s->depth + VW, 16) * 16;
}

/* Columns for which all of k is done before the next columns begin. */
static int64_t block_cols(const gemm_part *s) {
    return min_i64(s->g->n, totals_apart(s) ? NC_APART : s->keeps_b ? NC : s->g->n);
}

static int64_t b_size(const gemm_part *s) {
    return s->b_place ? 0 : s->depth * (s->keeps_b ? ceil_div(block_cols(s), NR) * NR : NR);
}

/* Turns a product with a single, contiguous column of c into the transposed product, one row of
 * c. */
static gemm as_row(const gemm *g) {
    gemm t = *g;
    if (g->n != 1 || g->c_row != 1 || g->mask != RO_MASK_NONE || g->c_chunk || g->narrow.data)
        return t;
    t.m = 1, t.n = g->m, t.c_row = g->m, t.y = NULL, t.a_all = 0;
    t.a = g->b, t.a_row = g->b_col, t.a_col = g->b_row;
    t.b = g->a, t.b_row = g->a_col, t.b_col = g->a_row;
    return t;
}

/* Row i of a product whose mask has a window, as a product of its own: the mask takes what is left
 * of the first chunk, and k ends with the window. Attention's fused functions do not come here. */
static gemm windowed_row(const gemm *g, int64_t i) {
    const ro_range r = ro_masked_range(g->mask, g->window, g->row0 + i, g->k);
    const int64_t first = min_i64(r.first, g->k), k0 = first / g->chunk * g->chunk;
    gemm row = *g;
    row.m = 1, row.k = max_i64(0, r.last - k0);
    row.a += i * g->a_row + k0 * g->a_col;
    row.b += k0 * g->b_row;
    row.c += i * g->c_row + k0 / g->chunk * g->c_chunk;
    row.mask = RO_MASK_FROM_ROW, row.row0 = first - k0, row.window = 0;
    return row;
}

/* What a masked product needs grows with k, so that the longest row is asked about: pieces of the
 * product have rows of different lengths. */
static int64_t windowed_workspace(const gemm *g) {
    gemm row = *g;
    row.m = 1, row.k = min_i64(g->k, g->window + g->chunk);
    row.mask = RO_MASK_FROM_ROW, row.row0 = 0, row.window = 0;
    return RO_NAME(ro_gemm_workspace)(&row);
}

static void run_windowed(const gemm *g, float *workspace) {
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = 0; g->c_chunk && j * g->chunk < g->k; j++)
            memset(g->c + i * g->c_row + j * g->c_chunk, 0, (size_t)g->n * sizeof(float));
        const gemm row = windowed_row(g, i);
        if (row.k > 0 || !g->c_chunk)
            RO_NAME(ro_gemm)(&row, workspace);
    }
}

int64_t RO_NAME(ro_gemm_workspace)(const gemm *g) {
    if (g->window)
        return windowed_workspace(g);
    if (RO_NAME(ro_gemm_is_small)(g))
        return 0;
    const int64_t chunks = RO_NAME(ro_gemm_chunks_workspace)(g);
    if (chunks >= 0)
        return chunks;
    const int64_t dots = RO_NAME(ro_gemm_dots_workspace)(g);
    if (dots >= 0)
        return dots;
    const int64_t turned = RO_NAME(ro_gemm_turned_workspace)(g);
    if (turned >= 0)
        return turned;
    const gemm row = as_row(g);
    const int64_t sweep = RO_NAME(ro_gemm_sweep_workspace)(&row);
    return sweep >= 0 ? sweep : RO_NAME(ro_gemm_packing_workspace)(&row);
}

int64_t RO_NAME(ro_gemm_packing_workspace)(const gemm *g) {
    const gemm_part s = plan(g);
    return a_size(&s) + b_size(&s) + (totals_apart(&s) ? g->m * block_cols(&s) : 0);
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

void RO_NAME(ro_gemm_packing)(const gemm *g, float *workspace) {
    run_blocks(g, workspace);
}

static int run_sweep(const gemm *g, float *workspace) {
    const gemm row = as_row(g);
    return RO_NAME(ro_gemm_sweep)(&row, workspace);
}

/* Whether ro_gemm_end still has to run. run_panel has called it, unless k is 0 or as_row cleared
 * y. */
static int ends_later(const gemm *g) {
    return g->y && (g->k == 0 || as_row(g).y == NULL);
}

void RO_NAME(ro_gemm)(const gemm *g, float *workspace) {
    if (g->window) {
        run_windowed(g, workspace);
        return;
    }
    if (RO_NAME(ro_gemm_small)(g))
        return;
    const int few = RO_NAME(ro_gemm_chunks)(g, workspace) || RO_NAME(ro_gemm_dots)(g, workspace) ||
                    RO_NAME(ro_gemm_turned)(g, workspace) || run_sweep(g, workspace);
    if (!few)
        run_blocks(g, workspace);
    if (few ? g->y != NULL : ends_later(g))
        RO_NAME(ro_gemm_end)(g, 0, g->m, 0, g->n);
}
