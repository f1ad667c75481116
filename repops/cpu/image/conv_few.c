/* Convolutions to few channels, SPEC.md section 12.1. Lines of the image are transposed, so that
 * the pixels of a channel are contiguous, with zeros as padding. Each such line is kept for all
 * output lines that meet it. */
#include "repops/cpu/image/conv_kernel.h"

/* Vectors of pixels that run together. */
#if defined(RO_ISA_avx512)
enum { VECTORS = 2 };
#else
enum { VECTORS = 4 };
#endif
enum {
    FEW = 3,               /* most channels of the output */
    LEAST_DEPTH = 8,       /* least channels of the image */
    FEW_LINES = 16,        /* most lines that are kept */
    MOST_FLOATS = 1 << 17, /* most floats of these lines */
};

typedef struct {
    const gather *g;
    int64_t lines;       /* lines that are kept */
    int64_t width, left; /* floats from a channel to the next; zeros before pixel 0 */
    float *workspace;
    int64_t workspace_size; /* floats for each thread */
} few;

/* A line of the output. */
typedef struct {
    const few *f;
    const float *line[FEW_LINES]; /* pixel 0 for each line of the kernel; NULL: outside */
    const float *ahead;           /* the next line of the image, to prefetch */
    int64_t ahead_step;
    float *out;
} few_target;

/* Returns the offset from a position of the output to its tap in the image. */
static int64_t offset(const gather *g, int d, int64_t t) {
    const int64_t shift = t * g->v->dilation[d] - g->v->pad[d];
    return g->backward ? -shift : shift;
}

RO_INLINE void end_chunk(const int n, vf sum[FEW][VECTORS], vf total[FEW][VECTORS]) {
    RO_UNROLL
    for (int j = 0; j < n; j++) {
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            total[j][v] = vf_add(total[j][v], sum[j][v]);
            sum[j][v] = vf_set1(0.0f);
        }
    }
}

/* Makes the compiler keep a value in a register, instead of loading it again for each use: most of
 * these loads cross a cache line. */
RO_INLINE vf kept_value(vf x) {
#if defined(RO_ISA_avx512)
    __asm__("" : "+v"(x));
#endif
    return x;
}

/* Adds x[c * width + pixel] * b[c * b_row + j * b_col] for some channels c of one tap. */
RO_INLINE void add_steps(const int n, few_target *t, const float *x, const float *b, int64_t steps,
                         vf sum[FEW][VECTORS]) {
    const few *f = t->f;
    const float *ahead = t->ahead;
    t->ahead += steps * t->ahead_step;
    const int64_t width = f->width, b_row = f->g->b_row, b_col = f->g->b_col;
    for (; steps > 0; steps--, x += width, b += b_row) {
        vf bv[FEW];
        __builtin_prefetch(ahead);
        ahead += t->ahead_step;
        RO_UNROLL
        for (int j = 0; j < n; j++)
            bv[j] = vf_set1(b[j * b_col]);
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            const vf xv = kept_value(vf_load(x + v * VW));
            RO_UNROLL
            for (int j = 0; j < n; j++)
                sum[j][v] = vf_fma(xv, bv[j], sum[j][v]);
        }
    }
}

/* Computes pixels [w, w + VECTORS * VW) of a line, or as many as exist. */
RO_INLINE void filter_pixels(const int n, few_target *t, int64_t w) {
    const few *f = t->f;
    const gather *g = f->g;
    const int64_t *kernel = g->v->kernel, count = min_i64(VECTORS * VW, g->out_size[1] - w);
    vf sum[FEW][VECTORS], total[FEW][VECTORS];
    float result[FEW][VECTORS * VW];
    int64_t chunk = 0;
    RO_UNROLL
    for (int j = 0; j < n; j++) {
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++)
            sum[j][v] = total[j][v] = vf_set1(0.0f);
    }
    for (int64_t tap = 0; tap < kernel[0] * kernel[1]; tap++) {
        const float *line = t->line[tap / kernel[1]];
        for (int64_t c = 0, steps; line && c < g->depth; c += steps) {
            const int64_t k = tap * g->depth + c;
            steps = min_i64(g->depth - c, RO_DOT_CHUNK - k % RO_DOT_CHUNK);
            if (k / RO_DOT_CHUNK != chunk)
                end_chunk(n, sum, total);
            chunk = k / RO_DOT_CHUNK;
            add_steps(n, t, line + c * f->width + w + offset(g, 1, tap % kernel[1]),
                      conv_weight(g, 0, k, 0), steps, sum);
        }
    }
    end_chunk(n, sum, total);
    RO_UNROLL
    for (int j = 0; j < n; j++) {
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++)
            vf_store(result[j] + v * VW, vf_canon(total[j][v]));
        for (int64_t i = 0; i < count; i++)
            t->out[(w + i) * g->out_pixel + j] = result[j][i];
    }
}

static void filter_line(few_target *t) {
    const gather *g = t->f->g;
    for (int64_t w = 0; w < g->out_size[1]; w += VECTORS * VW)
        switch (g->n) {
        case 1: filter_pixels(1, t, w); break;
        case 2: filter_pixels(2, t, w); break;
        default: filter_pixels(3, t, w); break;
        }
}

/* Transposes a square of VW pixels x VW channels of a line, with +0 beyond the end of the line. */
RO_INLINE void keep_square(const panel *s, int64_t i, int64_t p, float *to) {
    vf r[VW];
    if (i + VW > s->lanes || p + VW > s->k) {
        pack_square(s, i, p, to);
        return;
    }
    load_transposed(s->from + i * s->lane_step + p, s->lane_step, r);
    RO_UNROLL
    for (int j = 0; j < VW; j++)
        vf_store(to + (p + j) * s->width + i, r[j]);
}

/* Transposes a line. The zeros after a channel's pixels are also those before the next
 * channel's. */
static void keep_line(const few *f, int64_t number, float *to) {
    const gather *g = f->g;
    const panel s = {
        g->image + number * g->size[1] * g->pixel, g->pixel, 1, g->size[1], f->width, g->depth};
    const int64_t beyond = round_up(s.lanes, VW);
    memset(to, 0, (size_t)f->left * sizeof(float));
    to += f->left;
    for (int64_t p = 0; p < s.k; p += VW) {
        for (int64_t i = 0; i < s.lanes; i += VW)
            keep_square(&s, i, p, to);
        for (int64_t j = p; j < min_i64(s.k, p + VW); j++)
            for (int64_t i = beyond; i < s.width; i += VW)
                vf_store(to + j * s.width + i, vf_set1(0.0f));
    }
}

static int64_t line_floats(const few *f) {
    return round_up(f->left + f->g->depth * f->width, 16);
}

/* Computes lines of the output, counted through all images. */
static void run_lines(void *user, int64_t first, int64_t last, int worker) {
    const few *f = user;
    const gather *g = f->g;
    float *lines = f->workspace + worker * f->workspace_size;
    int64_t kept[FEW_LINES];
    few_target t = {.f = f};
    t.ahead_step = ceil_div(g->size[1] * g->pixel, g->v->kernel[0] * g->v->kernel[1] * g->depth *
                                                       ceil_div(g->out_size[1], VECTORS * VW));
    for (int64_t i = 0; i < f->lines; i++)
        kept[i] = -1;
    for (int64_t line = first; line < last; line++) {
        const int64_t n = line / g->out_size[0];
        int64_t latest = 0;
        for (int64_t i = 0; i < g->v->kernel[0]; i++) {
            const int64_t h = line % g->out_size[0] + offset(g, 0, i), number = n * g->size[0] + h;
            t.line[i] = NULL;
            if (h < 0 || h >= g->size[0])
                continue;
            float *to = lines + number % f->lines * line_floats(f);
            if (kept[number % f->lines] != number)
                keep_line(f, number, to);
            kept[number % f->lines] = number;
            t.line[i] = to + f->left;
            latest = max_i64(latest, number + 1);
        }
        t.ahead = g->image + latest * g->size[1] * g->pixel;
        t.out = g->out + line * g->out_size[1] * g->out_pixel;
        filter_line(&t);
    }
}

static few plan(const gather *g) {
    const int64_t reach = (g->v->kernel[1] - 1) * g->v->dilation[1];
    const int64_t ends[2] = {offset(g, 1, 0), offset(g, 1, g->v->kernel[1] - 1)};
    few f = {.g = g, .lines = (g->v->kernel[0] - 1) * g->v->dilation[0] + 1};
    f.left = max_i64(0, -min_i64(ends[0], ends[1]));
    const int64_t right = round_up(g->out_size[1], VECTORS * VW) + reach;
    f.width = round_up(f.left + max_i64(g->size[1], right), VW);
    return f;
}

static int is_few(const gather *g) {
    if (g->v->groups != 1 || g->n > FEW || g->depth < LEAST_DEPTH || pointwise(g->v))
        return 0;
    for (int d = 0; d < 2; d++)
        if (g->v->stride[d] != 1 || g->v->pad[d] >= FEW_LINES ||
            (g->v->kernel[d] - 1) * g->v->dilation[d] >= FEW_LINES)
            return 0;
    const few f = plan(g);
    return f.lines * line_floats(&f) <= MOST_FLOATS;
}

static int takes(conv_call *c) {
    return is_few(c->g) && may_read_zeros(c);
}

static ro_status run(conv_call *c) {
    ro_ctx *ctx = c->job->ctx;
    const gather *g = c->g;
    const int threads = ro_ctx_threads(ctx);
    const int64_t lines = g->v->batch * g->out_size[0];
    const int64_t work = lines * g->out_size[1] * g->v->kernel[0] * g->v->kernel[1] * g->depth;
    const int64_t items = work < CONV_PIECE_WORK ? 1 : 8 * threads;
    few f = plan(g);
    f.workspace_size = round_up(f.lines * line_floats(&f) + f.left + VW, 16);
    f.workspace = ro_workspace(ctx, (size_t)(threads * f.workspace_size) * sizeof(float));
    if (!f.workspace)
        return RO_ERR_MEMORY;
    ro_pool_for(ro_ctx_pool(ctx), lines, ceil_div(lines, items), run_lines, &f);
    return RO_OK;
}

const conv_kernel RO_NAME(ro_conv_few) = {"few channels", takes, run};
