/* Finds the terms of an output pixel: spans of positions that meet the same taps, and the k steps
 * that they meet. */
#include "repops/cpu/image/conv_gather.h"

static int inside(const gather *g, int d, int64_t h, int64_t t) {
    int64_t at;
    return pixel_at(g, d, h, t, &at) && at >= 0 && at < g->size[d];
}

static int same_taps(const gather *g, int d, int64_t h, int64_t other) {
    if (g->v->pad[d] == 0 && g->v->kernel[d] == 1)
        return 1;
    for (int64_t t = 0; t < g->v->kernel[d]; t++)
        if (inside(g, d, h, t) != inside(g, d, other, t))
            return 0;
    return 1;
}

int64_t RO_NAME(ro_conv_spans)(const gather *g, int d, span *to) {
    const int64_t spread = g->spread[d], size = g->out_size[d];
    int64_t count = 0;
    for (int64_t first = 0; first < min_i64(spread, size); first++)
        for (int64_t h = first, end; h < size; h = end) {
            end = h + spread;
            while (end < size && (!g->split || same_taps(g, d, h, end)))
                end += spread;
            if (to)
                to[count] = (span){h, (end - h) / spread};
            count++;
        }
    return count;
}

/* Returns the rows of a block: whole lines if they fit. The blocks of a pair of spans share its
 * rows evenly. */
static int64_t block_rows(const gather *g, int64_t all, int64_t line) {
    const int64_t unit = line <= g->rows ? line : 1, units = all / unit;
    return unit * ceil_div(units, ceil_div(units, g->rows / unit));
}

int64_t RO_NAME(ro_conv_blocks)(const gather *g, gather_block *to) {
    int64_t count = 0;
    for (int64_t i = 0; i < g->span_count[0] * g->span_count[1]; i++) {
        gather_block b = {
            {g->spans[0][i / g->span_count[1]], g->spans[1][i % g->span_count[1]]}, 0, 0};
        const int64_t all = g->v->batch * b.at[0].count * b.at[1].count;
        const int64_t rows = block_rows(g, all, b.at[1].count);
        for (; b.row < all; b.row += rows, count++) {
            b.m = min_i64(rows, all - b.row);
            to[count] = b;
        }
    }
    return count;
}

/* Returns whether the new piece begins where the old one ends, both in k and in the image. */
static int continues(const gather *g, const piece *old, const piece *new) {
    return old->k + old->steps == new->k && old->at[0] == new->at[0] && g->split &&
           g->depth == g->pixel &&
           old->c + old->steps == (new->at[1] - old->at[1]) * g->pixel + new->c;
}

static int64_t add_tap(const gather *g, piece tap, piece *to, int64_t count) {
    for (int64_t c = 0; c < g->depth;) {
        piece p = tap, *before = count ? &to[count - 1] : NULL;
        p.c = c, p.k += c;
        p.steps = min_i64(g->depth - c, RO_DOT_CHUNK - p.k % RO_DOT_CHUNK);
        c += p.steps;
        if (before && before->k / RO_DOT_CHUNK != p.k / RO_DOT_CHUNK)
            before->last = 1;
        else if (before && continues(g, before, &p)) {
            before->steps += p.steps;
            continue;
        }
        to[count++] = p;
    }
    return count;
}

/* Returns whether piece b follows a in a line of the image. */
static int lies_beside(const gather *g, const piece *a, const piece *b) {
    return a->at[0] == b->at[0] && g->depth == g->pixel &&
           a->c + a->steps == (b->at[1] - a->at[1]) * g->pixel + b->c;
}

int64_t RO_NAME(ro_conv_pieces)(const gather *g, const gather_block *b, piece *to) {
    const int64_t *kernel = g->v->kernel, h = b->at[0].first, w = b->at[1].first;
    int64_t count = 0;
    for (int64_t i = 0; i < kernel[0]; i++)
        for (int64_t j = 0; j < kernel[1]; j++) {
            piece tap = {.k = (i * kernel[1] + j) * g->depth};
            if (pixel_at(g, 0, h, i, &tap.at[0]) && pixel_at(g, 1, w, j, &tap.at[1]) &&
                (!g->split || (inside(g, 0, h, i) && inside(g, 1, w, j))))
                count = add_tap(g, tap, to, count);
        }
    if (count)
        to[count - 1].last = 1;
    for (int64_t q = count; q-- > 0;)
        to[q].beside =
            q + 1 < count && lies_beside(g, &to[q], &to[q + 1]) ? to[q + 1].beside : q + 1;
    return count;
}
