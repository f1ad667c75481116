/* Fills planes of pixels, and takes the columns of windows from them. */
#include "repops/cpu/image/conv_fixed_planes.h"
#include "repops/op_image.h"

/* ---- views ---- */

/* Finds the nearest and the furthest window that pixels of the phase meet in axis d. */
static void see_gradient(const fixed_conv *c, const fixed_part *p, int d, fixed_view *v) {
    const ro_conv *conv = &c->v;
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int64_t tap = 0; tap < conv->kernel[d]; tap++) {
        const int64_t from = p->phase[d] + conv->pad[d] - tap * conv->dilation[d];
        if (from % conv->stride[d] != 0)
            continue;
        least = min_i64(least, from / conv->stride[d]);
        most = most > from / conv->stride[d] ? most : from / conv->stride[d];
    }
    v->step[d] = v->phases[d] = 1;
    v->least[d] = v->origin[d] = least <= most ? least : 0;
    v->span[d] = least <= most ? most - least : 0;
}

static void see_windows(const ro_conv *conv, int d, fixed_view *v) {
    const int64_t extent = (conv->kernel[d] - 1) * conv->dilation[d];
    v->step[d] = conv->stride[d], v->phases[d] = min_i64(conv->stride[d], extent + 1);
    v->least[d] = 0, v->origin[d] = -conv->pad[d];
    v->span[d] = extent / conv->stride[d];
}

fixed_view RO_NAME(ro_fixed_view_of)(const fixed_conv *c, const fixed_part *p) {
    fixed_view v;
    for (int d = 0; d < 2; d++) {
        if (c->kind == RO_OP_CONV2D_DX)
            see_gradient(c, p, d, &v);
        else
            see_windows(&c->v, d, &v);
    }
    v.rows = fixed_positions(c, p, 0) + v.span[0];
    v.pitch = fixed_positions(c, p, 1) + v.span[1];
    return v;
}

int64_t RO_NAME(ro_fixed_plane_rows)(const fixed_conv *c, const fixed_part *p, const fixed_view *v,
                                     int64_t windows) {
    const int64_t lines = (windows - 1) / fixed_positions(c, p, 1) + 2;
    const int64_t ends = (lines - 1) / fixed_positions(c, p, 0) + 1;
    return min_i64(lines + (ends + 1) * v->span[0], c->v.batch * v->rows);
}

/* Stores run past the end by a vector. The size is never a multiple of a page, so that planes do
 * not share sets of a cache. */
int64_t RO_NAME(ro_fixed_plane_size)(const fixed_view *v, int64_t rows) {
    enum { LINE = 16 };
    return (ceil_div(rows * v->pitch + 2 * VW, LINE) | 1) * LINE;
}

/* ---- planes ---- */

static void clear_planes(const fixed_planes *s, int64_t apart, int64_t count, float *to) {
    for (int64_t i = 0; count > 0 && i < s->channels; i++, to += apart)
        for (int64_t j = 0; j < count; j += VW)
            vf_store(to + j, vf_set1(0.0f));
}

/* Fills row `line` of the planes of one phase, for all channels. */
static void fill_row(const fixed_conv *c, const fixed_planes *s, int64_t line,
                     const int64_t phase[2], float *to) {
    const fixed_view *v = &s->view;
    const int64_t image = line / v->rows, apart = v->phases[0] * v->phases[1] * s->size;
    const int64_t row = line % v->rows * v->step[0] + phase[0] + v->origin[0];
    const int64_t shift = phase[1] + v->origin[1], step = v->step[1];
    int64_t first = shift < 0 ? min_i64(ceil_div(-shift, step), v->pitch) : 0, last = first;
    if (row >= 0 && row < c->height && shift < c->width)
        last = min_i64((c->width - 1 - shift) / step + 1, v->pitch);
    last = last > first ? last : first;
    clear_planes(s, apart, first, to);
    if (last > first) {
        const float *from =
            c->a + ((image * c->height + row) * c->width + first * step + shift) * c->pixel;
        RO_NAME(ro_fixed_turn)
        (from + s->channel, step * c->pixel, last - first, s->channels, apart, to + first);
    }
    clear_planes(s, apart, v->pitch - last, to + last);
}

/* Returns the row of the planes where a window's own position is. */
static int64_t row_of(const fixed_conv *c, const fixed_part *p, const fixed_view *v,
                      int64_t window) {
    const int64_t line = window / fixed_positions(c, p, 1), down = fixed_positions(c, p, 0);
    return line / down * v->rows + line % down;
}

void RO_NAME(ro_fixed_fill_planes)(const fixed_conv *c, const fixed_part *p, int64_t m,
                                   int64_t windows, fixed_planes *s) {
    const fixed_view *v = &s->view;
    s->first = row_of(c, p, v, m);
    s->count = row_of(c, p, v, m + windows - 1) + v->span[0] + 1 - s->first;
    s->size = RO_NAME(ro_fixed_plane_size)(v, s->count);
    s->absent = s->channels * v->phases[0] * v->phases[1] * s->size;
    for (int64_t i = 0; i < s->count * v->pitch; i += VW)
        vf_store(s->x + s->absent + i, vf_set1(0.0f));
    for (int64_t phase = 0; phase < v->phases[0] * v->phases[1]; phase++)
        for (int64_t i = 0; i < s->count; i++)
            fill_row(c, s, s->first + i, (int64_t[]){phase / v->phases[1], phase % v->phases[1]},
                     s->x + phase * s->size + i * v->pitch);
}

/* ---- columns ---- */

/* Returns the offset of a channel's numbers `down` rows and `right` pixels from the windows. */
static int64_t place_of(const fixed_planes *s, int64_t channel, int64_t down, int64_t right) {
    const fixed_view *v = &s->view;
    const int64_t phase = down % v->step[0] * v->phases[1] + right % v->step[1];
    return ((channel - s->channel) * v->phases[0] * v->phases[1] + phase) * s->size +
           down / v->step[0] * v->pitch + right / v->step[1];
}

void RO_NAME(ro_fixed_place_steps)(const fixed_planes *s, const fixed_runs *runs, int64_t steps,
                                   int32_t *at) {
    const fixed_view *v = &s->view;
    int64_t k = 0;
    for (int r = 0; r < runs->met; r++) {
        const fixed_run *run = &runs->run[r];
        int64_t from = place_of(s, run->channel, run->down - v->least[0], run->right - v->least[1]);
        for (const int64_t end = k + run->count; k < end; k++)
            at[k] = (int32_t)from, from += v->phases[0] * v->phases[1] * s->size;
    }
    for (; k < steps; k++)
        at[k] = (int32_t)s->absent;
}

/* Returns where the numbers of a window begin; the rest of its row follow. */
static const float *numbers_of(const fixed_conv *c, const fixed_part *p, const fixed_planes *s,
                               int64_t window) {
    return s->x + (row_of(c, p, &s->view, window) - s->first) * s->view.pitch +
           window % fixed_positions(c, p, 1);
}

/* Copies the columns of windows, row by row of the image. Stores run into what is stored next. */
static void copy_columns(const fixed_conv *c, const fixed_part *p, const fixed_planes *s,
                         const int32_t *at, fixed_lines *l, int64_t m, float *to) {
    const int64_t across = fixed_positions(c, p, 1);
    const float *from[FIXED_LINES_MOST];
    int64_t count[FIXED_LINES_MOST];
    int parts = 0;
    for (int64_t i = 0; i < l->lines; i += count[parts++]) {
        from[parts] = numbers_of(c, p, s, m + i);
        count[parts] = min_i64(across - (m + i) % across, l->lines - i);
    }
    for (int64_t k = 0; k < l->steps; k++, to += l->step)
        for (int64_t i = 0, first = 0; i < parts; first += count[i++])
            for (int64_t j = 0; j < count[i]; j += VW)
                vf_store(to + first + j, vf_load(from[i] + at[k] + j));
}

fixed_lines RO_NAME(ro_fixed_columns_of)(const fixed_conv *c, const fixed_part *p,
                                         const fixed_planes *s, const int32_t *at, int64_t m,
                                         int64_t lines, int64_t steps, float *columns) {
    const int64_t across = fixed_positions(c, p, 1);
    fixed_lines l = {columns, 1, fixed_columns_width(c->engine), lines, steps, NULL};
    if (c->engine->reads_at && m % across + lines <= across)
        l.x = numbers_of(c, p, s, m), l.at = at;
    else
        copy_columns(c, p, s, at, &l, m, columns);
    return l;
}

/* ---- lines of conv2d_dw ---- */

void RO_NAME(ro_fixed_lines_of)(const fixed_conv *c, const fixed_part *p, const fixed_planes *s,
                                int64_t k, int64_t steps, int64_t m, int64_t lines, float *to) {
    const ro_conv *v = &c->v;
    const float *from[RO_DOT_CHUNK];
    int64_t count[RO_DOT_CHUNK];
    int parts = 0;
    for (int64_t i = 0; i < steps; i += count[parts++]) {
        from[parts] = numbers_of(c, p, s, k + i);
        count[parts] = min_i64(v->out[1] - (k + i) % v->out[1], steps - i);
    }
    for (int64_t i = 0; i < lines; i++) {
        const int64_t tap = (m + i) / v->depth;
        const int64_t place =
            place_of(s, p->group * v->depth + (m + i) % v->depth,
                     tap / v->kernel[1] * v->dilation[0], tap % v->kernel[1] * v->dilation[1]);
        float *line = to + i * FIXED_LINE;
        for (int j = 0; j < parts; line += count[j++])
            for (int64_t n = 0; n < count[j]; n += VW)
                vf_store(line + n, vf_load(from[j] + place + n));
    }
}
