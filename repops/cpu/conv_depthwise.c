/* Convolutions in which every channel is a group of its own: nothing is shared between channels, so
 * vectors run across them, and each lane follows the order of SPEC.md section 12.1 by itself. */
#include "repops/cpu/conv_depthwise.h"

/* ---- conv2d_dw: some taps of some lines of the kernel, some vectors of channels ---- */

enum { TAPS = 4, LINES = 4, WIDE = 2 };

/* Sums so far of a line's taps, of the chunk and of those before. */
typedef struct {
    const ro_conv *v;
    const float *x, *dy; /* the first channel */
    int64_t at[2];       /* pixel of the first tap: position * stride + at */
    int64_t taps, left;  /* channels */
    float sum[TAPS][WIDE * VW], total[TAPS][WIDE * VW];
} sums;

/* Pixels that are in the image for all taps from `first` on. */
RO_INLINE void add_pixels(const int taps, sums *s, int64_t first, const float *x, const float *dy,
                          int64_t count) {
    const ro_conv *v = s->v;
    const int64_t tap_step = v->dilation[1] * v->channels, step = v->stride[1] * v->channels;
    vf sum[TAPS][WIDE];
    vf_mask mask[WIDE];
    RO_UNROLL
    for (int w = 0; w < WIDE; w++)
        mask[w] = vf_first(s->left - w * VW);
    RO_UNROLL
    for (int t = 0; t < taps; t++) {
        RO_UNROLL
        for (int w = 0; w < WIDE; w++)
            sum[t][w] = vf_load(s->sum[first + t] + w * VW);
    }
    for (int64_t p = 0; p < count; p++, x += step, dy += v->channels) {
        vf d[WIDE];
        RO_UNROLL
        for (int w = 0; w < WIDE; w++)
            d[w] = vf_load_mask(dy + w * VW, mask[w]);
        RO_UNROLL
        for (int t = 0; t < taps; t++) {
            RO_UNROLL
            for (int w = 0; w < WIDE; w++)
                sum[t][w] =
                    vf_fma(vf_load_mask(x + t * tap_step + w * VW, mask[w]), d[w], sum[t][w]);
        }
    }
    RO_UNROLL
    for (int t = 0; t < taps; t++) {
        RO_UNROLL
        for (int w = 0; w < WIDE; w++)
            vf_store(s->sum[first + t] + w * VW, sum[t][w]);
    }
}

/* Positions i of the output with i * stride + at in the image: from *first up to the result. */
static int64_t inside(const ro_conv *v, int64_t at, int64_t *first) {
    const int64_t step = v->stride[1];
    *first = at < 0 ? ceil_div(-at, step) : 0;
    return at < v->in[1] ? min_i64(v->out[1], ceil_div(v->in[1] - at, step)) : 0;
}

/* Pixels [w, end) of a line of the output, for taps [t, t + taps). */
static void add_taps(sums *s, int64_t t, int64_t taps, int64_t h, int64_t n, int64_t line,
                     int64_t w, int64_t end) {
    const ro_conv *v = s->v;
    const int64_t column = w * v->stride[1] + s->at[1] + t * v->dilation[1];
    const float *x = s->x + ((n * v->in[0] + h) * v->in[1] + column) * v->channels;
    const float *dy = s->dy + (line + w) * v->channels;
    if (end <= w)
        return;
    if (taps == TAPS)
        add_pixels(TAPS, s, t, x, dy, end - w);
    else if (taps == 3)
        add_pixels(3, s, t, x, dy, end - w);
    else
        add_pixels(1, s, t, x, dy, end - w);
}

/* Where all taps are inside they go together; before and after, each by itself. */
static void add_line(sums *s, int64_t h, int64_t n, int64_t line, int64_t w, int64_t end) {
    int64_t first, all_first = w, all_end = end;
    for (int64_t t = 0; t < s->taps; t++) {
        const int64_t stop = inside(s->v, s->at[1] + t * s->v->dilation[1], &first);
        all_first = max_i64(all_first, first), all_end = min_i64(all_end, stop);
    }
    const int joint = (s->taps == TAPS || s->taps == 3) && all_first < all_end;
    for (int64_t t = 0; t < s->taps; t++) {
        const int64_t stop = min_i64(end, inside(s->v, s->at[1] + t * s->v->dilation[1], &first));
        first = max_i64(w, first);
        add_taps(s, t, 1, h, n, line, first, joint ? all_first : stop);
    }
    if (!joint)
        return;
    add_taps(s, 0, s->taps, h, n, line, all_first, all_end);
    for (int64_t t = 0; t < s->taps; t++) {
        const int64_t stop = min_i64(end, inside(s->v, s->at[1] + t * s->v->dilation[1], &first));
        add_taps(s, t, 1, h, n, line, all_end, stop);
    }
}

static void end_chunk_of(sums *s) {
    for (int64_t t = 0; t < s->taps; t++)
        for (int64_t c = 0; c < WIDE * VW; c++) {
            s->total[t][c] = s->total[t][c] + s->sum[t][c];
            s->sum[t][c] = 0.0f;
        }
}

/* All lines of the output, each for all lines of the kernel while it is near. */
static void add_lines(sums *s, int64_t count) {
    const ro_conv *v = s->v;
    const int64_t lines = v->batch * v->out[0];
    for (int64_t i = 0; i < lines; i++) {
        const int64_t n = i / v->out[0], h = i % v->out[0] * v->stride[0], k = i * v->out[1];
        for (int64_t w = 0, end; w < v->out[1]; w = end) {
            end = min_i64(v->out[1], w + RO_DOT_CHUNK - (k + w) % RO_DOT_CHUNK);
            const int last = (k + end) % RO_DOT_CHUNK == 0 || k + end == lines * v->out[1];
            for (int64_t j = 0; j < count; j++) {
                if (h + s[j].at[0] >= 0 && h + s[j].at[0] < v->in[0])
                    add_line(&s[j], h + s[j].at[0], n, k, w, end);
                if (last)
                    end_chunk_of(&s[j]);
            }
        }
    }
}

static void weigh_part(const ro_job *job, const ro_conv *v, int64_t line, int64_t t, int64_t col) {
    const int64_t lines = min_i64(LINES, v->kernel[0] - line), left = v->channels - col;
    sums s[LINES] = {{0}};
    for (int64_t j = 0; j < lines; j++) {
        s[j].v = v;
        s[j].x = (const float *)job->in[0] + col, s[j].dy = (const float *)job->in[1] + col;
        s[j].at[0] = (line + j) * v->dilation[0] - v->pad[0];
        s[j].at[1] = t * v->dilation[1] - v->pad[1];
        s[j].taps = min_i64(TAPS, v->kernel[1] - t), s[j].left = left;
    }
    add_lines(s, lines);
    for (int64_t j = 0; j < lines; j++)
        for (int64_t k = 0; k < s[j].taps; k++) {
            const int64_t tap = (line + j) * v->kernel[1] + t + k;
            for (int64_t c = 0; c < min_i64(WIDE * VW, left); c++)
                ((float *)job->out)[tap * v->channels + col + c] = ro_canon(s[j].total[k][c]);
        }
}

/* An item is some taps of some lines of the kernel for some channels. */
static void weigh(void *user, int64_t first, int64_t last, int worker) {
    const ro_job *job = user;
    const ro_conv v = ro_conv_of(job->call);
    const int64_t across = ceil_div(v.kernel[1], TAPS), vectors = ceil_div(v.channels, WIDE * VW);
    (void)worker;
    for (int64_t i = first; i < last; i++)
        weigh_part(job, &v, i / vectors / across * LINES, i / vectors % across * TAPS,
                   i % vectors * WIDE * VW);
}

void RO_NAME(ro_conv_depthwise_weight)(const ro_job *job, const ro_conv *v) {
    const int64_t vectors = ceil_div(v->channels, WIDE * VW);
    const int64_t groups = ceil_div(v->kernel[0], LINES) * ceil_div(v->kernel[1], TAPS);
    ro_pool_for(ro_ctx_pool(job->ctx), groups * vectors, 1, weigh, (void *)job);
}
