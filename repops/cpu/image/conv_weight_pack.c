/* Packs those steps of a part that lie in its window, for conv2d_dw (conv_weight.h). */
#include "repops/cpu/image/conv_weight.h"

/* ---- steps ---- */

/* Neighbouring pixels of a line. */
typedef struct {
    int64_t n, h, w, steps;
} line;

/* Returns the window's pixels in step *k's line, up to step `end`. Moves *k to the next line. */
static line next_line(const ro_conv *v, const window *u, int64_t *k, int64_t end) {
    const int64_t w = *k % v->out[1], h = *k / v->out[1] % v->out[0];
    const int64_t stop = min_i64(v->out[1], w + end - *k);
    const int64_t from = max_i64(w, u->first[1]);
    const int64_t to = min_i64(stop, u->first[1] + u->count[1]);
    line l = {*k / v->out[1] / v->out[0], h, from, max_i64(0, to - from)};
    if (h < u->first[0] || h >= u->first[0] + u->count[0])
        l.steps = 0;
    *k += stop - w;
    return l;
}

/* ---- x: rows of a tap are contiguous ---- */

/* With AVX-512 a vector holds all rows of a panel, and a masked store costs no more than a whole
 * one. */
#if defined(RO_ISA_avx512)
enum { MASKS_ARE_FREE = 1 };
#else
enum { MASKS_ARE_FREE = 0 };
#endif

/* Lanes [lane, lane + count) of a panel, all of one tap. */
typedef struct {
    const ro_conv *v;
    int64_t at[2];  /* offset of the tap's pixel: position * stride + at */
    const float *x; /* the first lane's channel */
    int64_t count, width;
    int whole; /* these are all lanes of the panel */
} run;

RO_INLINE void put_zeros(const run *r, int64_t steps, float *to) {
    for (int64_t p = 0; p < steps; p++, to += r->width)
        for (int64_t i = 0; i < r->count; i++)
            to[i] = 0.0f;
}

RO_INLINE void copy_lanes(const run *r, const float *from, int64_t from_step, int64_t steps,
                          float *to) {
    const int64_t count = r->count, width = r->width;
    if (r->whole)
        for (int64_t p = 0; p < steps; p++, from += from_step, to += width)
            for (int64_t i = 0; i < ((int)VW < (int)MR ? count : 1); i += VW)
                vf_store(to + i, vf_load_n(from + i, count - i));
    else if (MASKS_ARE_FREE)
        for (int64_t p = 0; p < steps; p++, from += from_step, to += width)
            vf_store_n(to, vf_load_n(from, count), count);
    else
        for (int64_t p = 0; p < steps; p++, from += from_step, to += width)
            for (int64_t i = 0; i < count; i++)
                to[i] = from[i];
}

/* Gathers a line, whose first and last pixels may lie outside. */
static void gather_line(const run *r, const line *l, float *to) {
    const ro_conv *v = r->v;
    const int64_t h = l->h * v->stride[0] + r->at[0], step = v->stride[1];
    int64_t first, count;
    if (h < 0 || h >= v->in[0]) {
        put_zeros(r, l->steps, to);
        return;
    }
    inside(v, 1, r->at[1], &first, &count);
    const int64_t end = max_i64(0, min_i64(l->steps, first + count - l->w));
    first = min_i64(end, max_i64(0, first - l->w));
    const int64_t w = (l->w + first) * step + r->at[1];
    put_zeros(r, first, to);
    copy_lanes(r, r->x + ((l->n * v->in[0] + h) * v->in[1] + w) * v->channels, step * v->channels,
               end - first, to + first * r->width);
    put_zeros(r, l->steps - end, to + end * r->width);
}

static void gather_panel(const weight_part *s, int64_t row, int64_t rows, float *to) {
    const ro_conv *v = &s->g->v;
    for (int64_t lane = 0, count; lane < rows; lane += count) {
        const int64_t t = (row + lane) / v->depth, c = (row + lane) % v->depth;
        run r = {.v = v, .x = s->g->x + s->group * v->depth + c, .width = panel_width(rows)};
        count = min_i64(rows - lane, v->depth - c);
        r.count = count, r.whole = count == rows;
        r.at[0] = offset_of(v, 0, t), r.at[1] = offset_of(v, 1, t);
        float *put = to + lane;
        for (int64_t k = s->k0; k < s->k0 + s->k;) {
            const line l = next_line(v, &s->u, &k, s->k0 + s->k);
            gather_line(&r, &l, put);
            put += l.steps * r.width;
        }
    }
}

/* Gathers all panels of rows [row, row + m) of one tap, line by line, if no pixel is outside. */
static void gather_tap(const weight_part *s, int64_t row, int64_t m, int64_t height) {
    const ro_conv *v = &s->g->v;
    const int64_t t = row / v->depth, from_step = v->stride[1] * v->channels;
    const float *x = s->g->x + s->group * v->depth + row % v->depth;
    int64_t done = 0;
    for (int64_t k = s->k0; k < s->k0 + s->k;) {
        const line l = next_line(v, &s->u, &k, s->k0 + s->k);
        const int64_t h = l.h * v->stride[0] + offset_of(v, 0, t);
        const int64_t w = l.w * v->stride[1] + offset_of(v, 1, t);
        const float *from = x + ((l.n * v->in[0] + h) * v->in[1] + w) * v->channels;
        for (int64_t i = 0; i < m && l.steps > 0; i += height) {
            run r = {.count = min_i64(height, m - i), .whole = 1};
            r.width = panel_width(r.count);
            copy_lanes(&r, from + i, from_step, l.steps,
                       s->a + i / height * panel_width(height) * s->steps + done * r.width);
        }
        done += l.steps;
    }
}

void RO_NAME(ro_conv_pack_x)(const weight_part *s, int64_t row, int64_t m) {
    const int64_t height = panel_rows(m, MR);
    if (s->g->by_tap) {
        gather_tap(s, row, m, height);
        return;
    }
    for (int64_t i = 0; i < m; i += height)
        gather_panel(s, row + i, min_i64(height, m - i),
                     s->a + i / height * panel_width(height) * s->steps);
}

/* ---- dy ---- */

void RO_NAME(ro_conv_pack_dy)(const weight_part *s) {
    const weights *g = s->g;
    const ro_conv *v = &g->v;
    float *to = s->b;
    for (int64_t k = s->k0; k < s->k0 + s->k;) {
        const line l = next_line(v, &s->u, &k, s->k0 + s->k);
        const int64_t at = (l.n * v->out[0] + l.h) * v->out[1] + l.w;
        const float *from = g->dy + at * v->filters + s->group * g->n + s->col;
        for (int64_t j = 0; j < s->n; j += NR)
            pack(&(panel){from + j, 1, v->filters, min_i64(NR, s->n - j), NR, l.steps},
                 to + j * s->steps);
        to += l.steps * NR;
    }
    if (!g->by_tap && g->outside && !all_finite(s->b, round_up(s->n, NR) * s->steps))
        atomic_store(&s->g->not_finite, 1);
}
