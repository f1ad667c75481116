/* Gathers operands of fixed convolutions, a chunk at a time. */
#include "repops/cpu/image/conv_fixed.h"

#include "repops/cpu/gemm/gemm_pack.h"
#include "repops/op_image.h"

/* ---- runs ---- */

/* Returns whether pixels of the phase meet tap `tap` in axis d. Sets *shift to the offset of that
 * window from the pixel's place in its phase. */
static int meets(const fixed_conv *c, const fixed_part *p, int d, int64_t tap, int64_t *shift) {
    const int64_t from = p->phase[d] + c->v.pad[d] - tap * c->v.dilation[d];
    *shift = from / c->v.stride[d];
    return from % c->v.stride[d] == 0;
}

static void add_run(const fixed_conv *c, const fixed_part *p, int64_t k, int64_t count, int met,
                    fixed_runs *out) {
    const int64_t tap = k / c->length, i = tap / c->across, j = tap % c->across;
    int64_t down = i * c->v.dilation[0], right = j * c->v.dilation[1];
    int is_met = 1;
    if (c->kind == RO_OP_CONV2D_DX)
        is_met = meets(c, p, 0, i, &down) & meets(c, p, 1, j, &right);
    if (is_met != met)
        return;
    const int64_t group = p->group * (c->kind == RO_OP_CONV2D_DX ? c->v.width : c->v.depth);
    out->run[out->count++] = (fixed_run){down, right, group + k % c->length, k, count};
    out->met_steps += met ? count : 0;
}

void RO_NAME(ro_fixed_find_runs)(const fixed_conv *c, const fixed_part *p, int64_t k,
                                 fixed_runs *out) {
    const int64_t end = min_i64(k + RO_DOT_CHUNK, c->k);
    out->count = out->met = 0, out->steps = end - k, out->met_steps = 0;
    for (int met = 1; met >= 0; met--) {
        for (int64_t at = k, count; at < end; at += count) {
            count = min_i64(c->length - at % c->length, end - at);
            add_run(c, p, at, count, met, out);
        }
        if (met)
            out->met = out->count;
    }
}

/* ---- windows ---- */

/* Stores +0. Stores run past the end by a vector. */
RO_INLINE void clear(float *to, int64_t count) {
    for (int64_t i = 0; i < count; i += VW)
        vf_store(to + i, vf_set1(0.0f));
}

RO_INLINE void copy(const float *from, int64_t count, float *to) {
    int64_t i = 0;
    for (; i + VW <= count; i += VW)
        vf_store(to + i, vf_load(from + i));
    if (i < count)
        vf_store(to + i, vf_load_n(from + i, count - i));
}

/* Copies numbers [first, first + count) of a row of `size`, and +0 beyond its ends. */
RO_INLINE void copy_clipped(const float *row, int64_t size, int64_t first, int64_t count,
                            float *to) {
    const int64_t before = first < 0 ? min_i64(-first, count) : 0;
    const int64_t inside = min_i64(size - first, count) - before;
    clear(to, before);
    if (inside > 0)
        copy(row + first + before, inside, to + before);
    if (inside < count - before)
        clear(to + before + (inside > 0 ? inside : 0), count - before - (inside > 0 ? inside : 0));
}

typedef struct {
    int64_t image, row, column;
} window;

static window window_of(const fixed_conv *c, const fixed_part *p, int64_t m) {
    const int64_t across = fixed_positions(c, p, 1), line = m / across;
    const int64_t down = fixed_positions(c, p, 0), image = line / down;
    const int64_t i = line - image * down, j = m - line * across;
    if (c->kind == RO_OP_CONV2D_DX)
        return (window){image, i, j};
    return (window){image, i * c->v.stride[0] - c->v.pad[0], j * c->v.stride[1] - c->v.pad[1]};
}

static void gather_window(const fixed_conv *c, const fixed_runs *runs, window w, float *to) {
    const int64_t size = c->width * c->pixel;
    for (int r = 0; r < runs->met; to += runs->run[r++].count) {
        const fixed_run *run = &runs->run[r];
        const int64_t row = w.row + run->down;
        if (row < 0 || row >= c->height)
            clear(to, run->count);
        else
            copy_clipped(c->a + (w.image * c->height + row) * size, size,
                         (w.column + run->right) * c->pixel + run->channel, run->count, to);
    }
}

void RO_NAME(ro_fixed_gather_windows)(const fixed_conv *c, const fixed_part *p,
                                      const fixed_runs *runs, int64_t m, int64_t lines,
                                      int64_t steps, float *to) {
    for (int64_t i = 0; i < lines; i++, to += FIXED_LINE) {
        gather_window(c, runs, window_of(c, p, m + i), to);
        clear(to + runs->met_steps, steps - runs->met_steps);
    }
}

/* ---- channels of taps ---- */

void RO_NAME(ro_fixed_turn)(const float *x, int64_t step, int64_t pixels, int64_t lines,
                            int64_t apart, float *to) {
    const panel s = {x, step, 1, pixels, apart, lines};
    for (int64_t i = 0; i < pixels; i += VW)
        for (int64_t p = 0; p < lines; p += VW) {
            if (p + VW <= lines && i + VW <= pixels)
                pack_whole_square(&s, i, p, to);
            else
                pack_square(&s, i, p, to);
        }
}

/* Lines of one tap: the first channel, their number, and the tap's offset in a window. */
typedef struct {
    int64_t channel, lines, down, right;
} tap_lines;

static void clear_lines(int64_t lines, int64_t count, float *to) {
    for (int64_t i = 0; count > 0 && i < lines; i++)
        clear(to + i * FIXED_LINE, count);
}

/* Gathers windows [from, to) of output row `line`; rows are counted through all images. */
static void gather_row(const fixed_conv *c, const tap_lines *t, int64_t line, int64_t from,
                       int64_t to, float *out) {
    const ro_conv *v = &c->v;
    const int64_t row = line % v->out[0] * v->stride[0] - v->pad[0] + t->down;
    const int64_t shift = t->right - v->pad[1], stride = v->stride[1];
    int64_t first = from, last = to;
    if (shift < 0)
        first = min_i64(ceil_div(-shift, stride) > from ? ceil_div(-shift, stride) : from, to);
    if (shift + (to - 1) * stride >= c->width)
        last = shift < c->width ? (c->width - 1 - shift) / stride + 1 : first;
    if (row < 0 || row >= c->height || last < first)
        last = first;
    clear_lines(t->lines, first - from, out);
    const int64_t at = (line / v->out[0] * c->height + row) * c->width + first * stride + shift;
    if (last > first)
        RO_NAME(ro_fixed_turn)
    (c->a + at * c->pixel + t->channel, stride * c->pixel, last - first, t->lines, FIXED_LINE,
     out + first - from);
    clear_lines(t->lines, to - last, out + last - from);
}

static void gather_tap(const fixed_conv *c, const tap_lines *t, int64_t k, int64_t steps,
                       float *to) {
    const int64_t across = c->v.out[1], end = k + steps;
    while (k < end) {
        const int64_t line = k / across, from = k - line * across;
        const int64_t count = min_i64(across - from, end - k);
        gather_row(c, t, line, from, from + count, to);
        k += count, to += count;
    }
}

void RO_NAME(ro_fixed_gather_taps)(const fixed_conv *c, const fixed_part *p, int64_t k,
                                   int64_t steps, int64_t m, int64_t lines, float *to) {
    const ro_conv *v = &c->v;
    for (int64_t end = m + lines, count; m < end; m += count, to += count * FIXED_LINE) {
        const int64_t tap = m / v->depth, channel = m - tap * v->depth;
        count = min_i64(v->depth - channel, end - m);
        const tap_lines t = {p->group * v->depth + channel, count,
                             tap / v->kernel[1] * v->dilation[0],
                             tap % v->kernel[1] * v->dilation[1]};
        gather_tap(c, &t, k, steps, to);
    }
}

/* ---- weights ---- */

void RO_NAME(ro_fixed_gather_weights)(const fixed_conv *c, const fixed_part *p,
                                      const fixed_runs *runs, int64_t n, int64_t lines,
                                      int64_t width, float *to) {
    const ro_conv *v = &c->v;
    for (int r = 0; r < runs->count; r++) {
        const fixed_run *run = &runs->run[r];
        const int64_t tap = run->k / v->width, filter = p->group * v->width + run->k % v->width;
        const float *from = c->b + (tap * v->depth + n) * v->filters + filter;
        pack(&(panel){from, v->filters, 1, lines, width, run->count}, to);
        to += run->count * width;
    }
}
