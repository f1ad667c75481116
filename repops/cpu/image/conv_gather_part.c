/* Gathers the rows of a part (conv_gather_part.h), some whole chunks at a time, and multiplies them
 * by all of b before the next chunks. */
#include "repops/cpu/image/conv_gather_part.h"

enum {
    LINE = 16,          /* floats of a cache line */
    WIDE_LINE = 4 * MR, /* pixels of a line from which most of its tiles meet no edge */
    FEW_COLS = 4 * NR,  /* with so many columns or fewer, copied rows are used too seldom */
    B_CACHED = 1 << 17, /* floats of b that stay in the cache beside a tile of a */
    LINE_ROWS = MR < 6 ? MR : 6, /* pixels of a line that are worth a tile of their own */
};

/* ---- products ---- */

/* Returns how many steps from piece q on are contiguous in b, within a chunk. *end is the piece
 * after them. */
static int64_t run_of(const gather_part *s, int64_t q, int64_t *end) {
    const int64_t k = s->pieces[q].k;
    int64_t steps = 0;
    do
        steps += s->pieces[q].steps;
    while (!s->pieces[q++].last && s->pieces[q].k == k + steps);
    *end = q;
    return steps;
}

/* Runs one tile of transposed rows, run by run. Its operands start at step 0 of b and at the first
 * kept step of a. If a chunk has a gap, the next run continues its accumulators. */
static void run_transposed(const gather_part *s, int rows, const tile *whole) {
    float acc[MR * NR];
    const float *a = whole->a, *start = NULL;
    int flags = s->first == 0 ? TILE_FIRST : 0;
    for (int64_t q = s->first, end; q < s->last; q = end) {
        tile t = *whole;
        t.k = run_of(s, q, &end);
        t.a = a, t.b += s->pieces[q].k * NR, t.start = start;
        t.flags = flags | (end == s->count ? TILE_LAST : 0);
        a += t.k * t.a_step;
        if (s->pieces[end - 1].last)
            start = NULL, flags = 0;
        else
            t.flags = TILE_RAW, t.c = acc, t.c_row = t.cols = NR, start = acc;
        RO_NAME(ro_tile_packed)(rows, &t);
    }
}

/* Runs one tile of rows with one stride, chunk by chunk. */
static void run_line(const gather_part *s, int rows, tile *t) {
    t->flags = s->first == 0 ? TILE_FIRST : 0;
    for (int64_t q = 0; q < s->run_count; q += t->run_count, t->flags = 0) {
        t->runs = s->runs + q, t->run_count = 0, t->k = 0;
        do
            t->k += t->runs[t->run_count].k;
        while (!t->runs[t->run_count++].last);
        t->flags |= q + t->run_count == s->run_count && s->last == s->count ? TILE_LAST : 0;
        RO_NAME(ro_tile_runs)(rows, t);
        t->ahead += t->k * t->ahead_step;
        t->far = t->far ? t->far + t->k / 2 * LINE : NULL;
    }
}

/* Sets the tile's operand a to the rows from `row` on. row0 is the first row that is kept. */
static void set_a(const gather_part *s, const gather_place *at, int64_t row0, int64_t row,
                  int64_t rows, tile *t) {
    const gather *g = s->g;
    t->a_row = s->a_row, t->a_step = s->layout == TRANSPOSED ? rows : 1;
    if (s->layout != IN_PLACE) {
        t->a = kept_rows(s, row0, row);
        return;
    }
    const int64_t line = (at->n * g->size[0] + at->i * g->step[0]) * g->size[1];
    t->a = g->image + (line + at->j * g->step[1]) * g->pixel + s->group * g->depth;
    t->a_row = g->step[1] * g->pixel;
}

/* While the first columns run, prefetches what the next rows of the line read for the first time:
 * that is read by the piece furthest in the image, which is the last one, or the first one of a
 * gradient, whose pieces go backwards through the image. */
static void look_ahead(const gather_part *s, int64_t rows, int64_t j, tile *t) {
    t->ahead = t->b, t->ahead_step = 0;
    if (s->layout != IN_PLACE || j > 0 || s->quiet)
        return;
    t->ahead = t->a + rows * t->a_row + s->runs[s->g->backward ? 0 : s->run_count - 1].a;
    t->ahead_step = ceil_div(rows * t->a_row, s->k);
}

static void set_c(const gather_part *s, const gather_place *at, int64_t row, int64_t j, tile *t) {
    t->c = s->c ? s->c + row * s->c_row : out_pixel(s->g, s->b, at) + s->group * s->g->n + s->col;
    t->c += j;
    t->out = t->c;
    t->c_row = t->out_row = s->c ? s->c_row : s->g->spread[1] * s->g->out_pixel;
}

/* Turns pieces into runs of tiles, relative to a row's own pixel or to its first copied step.
 * Copied pieces are contiguous, up to the end of a chunk or a gap in b. */
static void set_runs(gather_part *s) {
    const gather *g = s->g;
    int64_t copied = 0;
    s->run_count = 0;
    for (int d = 0; d < 2; d++)
        s->reach[d][0] = s->reach[d][1] = s->pieces[s->first].at[d];
    for (int64_t q = s->first, end; q < s->last; q = end) {
        const piece *p = &s->pieces[q];
        const int64_t pixel = (p->at[0] * g->size[1] + p->at[1]) * g->pixel + p->c;
        const int64_t together = run_of(s, q, &end),
                      steps = s->layout == COPIED ? together : p->steps;
        end = s->layout == COPIED ? end : q + 1;
        s->runs[s->run_count++] = (tile_run){s->layout == COPIED ? copied : pixel, p->k * NR, steps,
                                             s->pieces[end - 1].last};
        copied += steps;
    }
    for (int64_t q = s->first; q < s->last; q++) {
        for (int d = 0; d < 2; d++) {
            s->reach[d][0] = min_i64(s->reach[d][0], s->pieces[q].at[d]);
            s->reach[d][1] = max_i64(s->reach[d][1], s->pieces[q].at[d]);
        }
    }
}

/* Computes columns [j, j + NR) of the tile at `row`, whose first pixel is `at`. far: what to
 * prefetch meanwhile, or NULL. */
static void multiply(const gather_part *s, const gather_place *at, int64_t row0, int64_t row,
                     int64_t rows, int64_t j, const float *far) {
    tile t = {.b = packed_b(s->g, s->group, s->col + j), .b_step = NR, .alpha = 1.0f, .far = far};
    t.cols = min_i64(NR, s->n - j);
    set_a(s, at, row0, row, rows, &t);
    set_c(s, at, row, j, &t);
    look_ahead(s, rows, j, &t);
    if (s->layout == TRANSPOSED)
        run_transposed(s, (int)rows, &t);
    else
        run_line(s, (int)rows, &t);
}

/* Returns whether all windows of a tile are inside the image. */
static int is_inside(const gather_part *s, const gather_place *at, int64_t rows) {
    const gather *g = s->g;
    const int64_t first[2] = {at->i * g->step[0], at->j * g->step[1]};
    const int64_t last[2] = {first[0], first[1] + (rows - 1) * g->step[1]};
    for (int d = 0; d < 2; d++)
        if (first[d] + s->reach[d][0] < 0 || last[d] + s->reach[d][1] >= g->size[d])
            return 0;
    return 1;
}

/* Returns s for rows whose windows are all inside. Its runs are stored after those of s. */
static gather_part part_inside(const gather_part *s) {
    gather_part p = *s;
    p.layout = IN_PLACE, p.quiet = 1, p.runs = s->runs + s->g->piece_count;
    set_runs(&p);
    return p;
}

/* Multiplies each tile as soon as it is gathered, if b stays in the cache. */
static void run_tiles(const gather_part *s) {
    const gather_part inside = s->lines ? part_inside(s) : *s;
    for (int64_t row = 0, rows; row < s->b->m; row += rows) {
        const gather_place at = place_of(s->b, s->b->row + row);
        rows = tile_rows_at(s, row);
        const gather_part *own = s->lines && is_inside(s, &at, rows) ? &inside : s;
        if (own->layout != IN_PLACE)
            RO_NAME(ro_conv_gather_rows)(s, row, rows);
        for (int64_t j = 0; j < s->n; j += NR)
            multiply(own, &at, row, row, rows, j, NULL);
    }
}

/* Returns the panel of b after columns j: the next columns, or the next steps. NULL: none. */
static const float *panel_after(const gather_part *s, int64_t j) {
    if (j + NR < s->n)
        return packed_b(s->g, s->group, s->col + j + NR) + s->pieces[s->first].k * NR;
    return s->last < s->count ? packed_b(s->g, s->group, s->col) + s->pieces[s->last].k * NR : NULL;
}

/* For a b that does not stay in the cache: gathers all rows first, then runs panel by panel of b.
 * The first tiles of a panel prefetch the next one, one line per two steps. */
static void run_columns(const gather_part *s) {
    if (s->layout != IN_PLACE)
        RO_NAME(ro_conv_gather_rows)(s, 0, s->b->m);
    for (int64_t j = 0; j < s->n; j += NR) {
        const float *far = panel_after(s, j), *end = far ? far + s->k * NR : NULL;
        for (int64_t row = 0, rows; row < s->b->m; row += rows) {
            const gather_place at = place_of(s->b, s->b->row + row);
            rows = tile_rows_at(s, row);
            multiply(s, &at, 0, row, rows, j, far < end ? far : NULL);
            far = far ? far + s->k / 2 * LINE : NULL;
        }
    }
}

/* Finds the pieces from `first` on that are gathered together: whole chunks. */
static void next_pieces(gather_part *s) {
    int64_t k = 0;
    s->last = s->first, s->k = 0;
    for (int64_t q = s->first; q < s->count; q++) {
        k += s->pieces[q].steps;
        if (k > CONV_KC)
            break;
        if (s->pieces[q].last)
            s->last = q + 1, s->k = k;
    }
}

/* Returns whether rows of the output have one stride, even across lines. */
static int whole_images(const gather_part *s) {
    const gather *g = s->g;
    for (int d = 0; d < 2; d++)
        if (g->spread[d] != 1 || s->b->at[d].count != g->out_size[d])
            return 0;
    return 1;
}

_Static_assert(FEW_COLS *CONV_KC <= B_CACHED, "columns of whole lines stay in the cache");

static void choose_layout(gather_part *s) {
    const int64_t width = s->b->at[1].count;
    const int conflict = s->g->step[1] * s->g->pixel % 1024 == 0;
    const int together = whole_images(s);
    s->lines = !conflict && width >= WIDE_LINE && s->n <= FEW_COLS;
    s->layout = width >= LINE_ROWS && s->g->split && !conflict ? IN_PLACE
                : width >= LINE_ROWS || together               ? COPIED
                                                               : TRANSPOSED;
    s->lines &= s->layout == COPIED;
    const int all = s->layout == TRANSPOSED || (s->layout == COPIED && together && !s->lines);
    s->line = all ? s->b->m : width, s->before = all ? 0 : s->b->row;
    s->height = panel_rows(s->line, MR);
}

static void copy_totals(const gather_part *s) {
    gather_place at = place_of(s->b, s->b->row);
    for (int64_t i = 0; i < s->b->m; i++, next_place(s->b, &at))
        memcpy(out_pixel(s->g, s->b, &at) + s->group * s->g->n + s->col, s->c + i * s->c_row,
               (size_t)s->n * sizeof(float));
}

static void clear_rows(const gather_part *s) {
    gather_place at = place_of(s->b, s->b->row);
    for (int64_t i = 0; i < s->b->m; i++, next_place(s->b, &at))
        memset(out_pixel(s->g, s->b, &at) + s->group * s->g->n + s->col, 0,
               (size_t)s->n * sizeof(float));
}

void RO_NAME(ro_conv_run_part)(gather_part *s, float *scratch) {
    const gather *g = s->g;
    if (s->count == 0) {
        clear_rows(s);
        return;
    }
    choose_layout(s);
    s->c = s->layout == TRANSPOSED ? scratch : NULL;
    s->c_row = g->cols;
    for (s->first = 0; s->first < s->count; s->first = s->last) {
        next_pieces(s);
        s->a_row = row_size(s->k);
        set_runs(s);
        if (s->n * s->k <= B_CACHED)
            run_tiles(s);
        else
            run_columns(s);
    }
    if (s->c)
        copy_totals(s);
}
