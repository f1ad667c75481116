/* The products of conv_bytes.h. x is converted to integers, with a border where windows reach
 * outside. An item gathers the windows of some output pixels, and multiplies them tile by tile. */
#include "repops/cpu/image/conv_bytes.h"

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)

enum {
    ITEM_BYTES = 1 << 18, /* gathered windows of an item, which stay in the L2 cache */
    LOOK = 1 << 14,       /* numbers of x whose range a thread finds at a time */
    SLACK = 64,           /* bytes that may be read past windows and panels */
};

/* ---- weights ---- */

static int64_t steps_of(const ro_conv *v) {
    return v->kernel[0] * v->kernel[1] * v->depth;
}

static int64_t panel_size(int64_t steps) {
    return round_up(steps, TERMS) * TILE_COLS;
}

static int32_t *sums_of(const void *packed) {
    return (int32_t *)(void *)((char *)(uintptr_t)packed + 64);
}

static bytes_w *panels_of(const void *packed, int64_t cols) {
    return (bytes_w *)(void *)(sums_of(packed) + round_up(cols, TILE_COLS));
}

int64_t RO_NAME(ro_conv_bytes_size)(const ro_conv *v) {
    const int64_t cols = round_up(v->filters, TILE_COLS), steps = steps_of(v);
#if defined(RO_ISA_avx512)
    if (!__builtin_cpu_supports("avx512vnni"))
        return 0;
#endif
    if (v->groups != 1 || steps > BYTES_EXACT)
        return 0;
    return 64 + cols * (int64_t)sizeof(int32_t) +
           cols / TILE_COLS * panel_size(steps) * (int64_t)sizeof(bytes_w) + SLACK;
}

/* Converts a weight. Returns 0 if it is no integer of 8 bits. */
static int whole_weight(float w, bytes_w *to) {
    if (!(w >= -128.0f && w <= 127.0f))
        return 0;
    *to = (bytes_w)w;
    return (float)*to == w;
}

int RO_NAME(ro_conv_bytes_pack)(const ro_conv *v, const float *w, void *to) {
    const int64_t steps = steps_of(v), cols = v->filters;
    bytes_head head = {0, steps, cols};
    int32_t *sum = sums_of(to);
    for (int64_t j = 0; j < cols; j++) { /* most weights that are not integers fail here already */
        bytes_w number;
        if (!whole_weight(w[j], &number))
            return 0;
    }
    memset(sum, 0, (size_t)round_up(cols, TILE_COLS) * sizeof *sum);
    memset(panels_of(to, cols), 0,
           (size_t)(round_up(cols, TILE_COLS) / TILE_COLS * panel_size(steps)) * sizeof(bytes_w));
    for (int64_t j = 0; j < cols; j++) {
        bytes_w *lane = panels_of(to, cols) + j / TILE_COLS * panel_size(steps);
        int64_t size = 0;
        for (int64_t k = 0; k < steps; k++) {
            bytes_w *at = lane + (k / TERMS * TILE_COLS + j % TILE_COLS) * TERMS + k % TERMS;
            if (!whole_weight(w[k * cols + j], at))
                return 0;
            sum[j] += *at, size += *at < 0 ? -*at : *at;
        }
        head.most = max_i64(head.most, size);
    }
    memcpy(to, &head, sizeof head);
    return 1;
}

/* ---- x ---- */

typedef struct {
    const ro_conv *v;
    const float *x;
    float *y;
    const void *packed;
    int64_t count;      /* numbers of x */
    bytes_range *range; /* ranges of LOOK numbers each */
    int32_t low;
    int64_t line, lines; /* numbers in a line, and lines in an image, both with the border */
    int64_t steps, row;  /* numbers in a window; stride of windows */
    int64_t rows, cols;  /* windows and filters of an item */
    int64_t m, across;   /* all windows; items that share the same windows */
    bytes_x *image, *windows;
    int64_t windows_size; /* numbers for each thread */
    int in_place;         /* windows are contiguous pixels of the image, which need no copy */
} bytes_plan;

static void look(void *user, int64_t first, int64_t last, int worker) {
    const bytes_plan *p = user;
    (void)worker;
    for (int64_t i = first; i < last; i++)
        p->range[i] =
            RO_NAME(ro_conv_bytes_range)(p->x + i * LOOK, min_i64(LOOK, p->count - i * LOOK));
}

static void fill(bytes_x *to, int64_t count, int32_t low) {
    for (int64_t i = 0; i < count; i++)
        to[i] = (bytes_x)-low;
}

/* Converts lines of the image and their border; lines are counted through all images. */
static void take_lines(void *user, int64_t first, int64_t last, int worker) {
    const bytes_plan *p = user;
    const ro_conv *v = p->v;
    const int64_t border = v->pad[1] * v->channels, here = v->in[1] * v->channels;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t h = i % p->lines - v->pad[0];
        bytes_x *to = p->image + i * p->line;
        if (h < 0 || h >= v->in[0]) {
            fill(to, p->line, p->low);
            continue;
        }
        fill(to, border, p->low);
        RO_NAME(ro_conv_bytes_take)
        (p->x + (i / p->lines * v->in[0] + h) * here, here, p->low, to + border);
        fill(to + border + here, p->line - border - here, p->low);
    }
}

/* ---- windows ---- */

static const bytes_x *window_at(const bytes_plan *p, int64_t row) {
    const ro_conv *v = p->v;
    const int64_t w = row % v->out[1], h = row / v->out[1] % v->out[0];
    const int64_t n = row / v->out[1] / v->out[0];
    return p->image + (n * p->lines + h * v->stride[0]) * p->line + w * v->stride[1] * v->channels;
}

static void gather_window(const bytes_plan *p, int64_t row, bytes_x *to) {
    const ro_conv *v = p->v;
    const int whole = v->dilation[1] == 1;
    const int64_t parts = whole ? 1 : v->kernel[1], size = v->kernel[1] / parts * v->channels;
    const bytes_x *from = window_at(p, row);
    for (int64_t i = 0; i < v->kernel[0]; i++)
        for (int64_t j = 0; j < parts; j++, to += size)
            memcpy(to, from + i * v->dilation[0] * p->line + j * v->dilation[1] * v->channels,
                   (size_t)size * sizeof *to);
    memset(to, 0, (size_t)(round_up(p->steps, TERMS) - p->steps) * sizeof *to);
}

/* ---- items ---- */

static void run_item(const bytes_plan *p, int64_t first, int64_t m, int64_t col, bytes_x *to) {
    const int64_t n = min_i64(p->cols, p->v->filters - col), steps = p->steps;
    const int64_t height = panel_rows(m, TILE_ROWS);
    bytes_tile t = {.row = p->row, .turns = ceil_div(steps, TERMS), .low = p->low};
    const bytes_x *windows = p->in_place ? window_at(p, first) : to;
    for (int64_t i = 0; i < m && !p->in_place; i++)
        gather_window(p, first + i, to + i * p->row);
    t.y_row = p->v->filters;
    for (int64_t j = col; j < col + n; j += TILE_COLS) {
        t.w = panels_of(p->packed, p->v->filters) + j / TILE_COLS * panel_size(steps);
        t.sum = sums_of(p->packed) + j;
        t.cols = min_i64(TILE_COLS, col + n - j);
        for (int64_t i = 0; i < m; i += height) {
            t.x = windows + i * p->row;
            t.y = p->y + (first + i) * t.y_row + j;
            RO_NAME(ro_conv_bytes_tile)(min_i64(height, m - i), &t);
        }
    }
}

static void run_items(void *user, int64_t first, int64_t last, int worker) {
    const bytes_plan *p = user;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = i / p->across * p->rows;
        run_item(p, row, min_i64(p->rows, p->m - row), i % p->across * p->cols,
                 p->windows + worker * p->windows_size);
    }
}

/* ---- the whole operator ---- */

/* Cuts the work into several items per thread, none of which gathers more than ITEM_BYTES. */
static void share(bytes_plan *p, int threads) {
    const int64_t most = max_i64(1, ITEM_BYTES / (p->row * (int64_t)sizeof(bytes_x)));
    const int64_t panels = ceil_div(p->v->filters, TILE_COLS);
    if (p->m * p->v->filters * p->steps < 4 * CONV_PIECE_WORK)
        threads = 1;
    p->rows = threads == 1 ? p->m : ceil_div(p->m, 4 * threads);
    p->rows = round_up(min_i64(p->rows, most), TILE_ROWS);
    const int64_t down = ceil_div(p->m, p->rows);
    p->across = threads == 1 || down >= 2 * threads ? 1 : ceil_div(2 * threads, down);
    p->cols = ceil_div(panels, min_i64(panels, p->across)) * TILE_COLS;
    p->across = ceil_div(p->v->filters, p->cols);
}

static bytes_plan plan(const ro_conv *v, const float *x, const void *packed, float *y) {
    bytes_plan p = {.v = v, .x = x, .y = y, .packed = packed, .steps = steps_of(v)};
    p.count = v->batch * v->in[0] * v->in[1] * v->channels;
    p.line = (v->in[1] + 2 * v->pad[1]) * v->channels;
    p.lines = v->in[0] + 2 * v->pad[0];
    p.m = v->batch * v->out[0] * v->out[1];
    p.in_place = pointwise(v) && p.steps % TERMS == 0;
    p.row = p.in_place ? p.steps : round_up(p.steps, 16) + 16;
    return p;
}

static int allocate(ro_ctx *ctx, bytes_plan *p) {
    const int64_t ranges = round_up(ceil_div(p->count, LOOK) * (int64_t)sizeof(bytes_range), 64);
    const int64_t image = round_up(p->v->batch * p->lines * p->line + SLACK, 64);
    p->windows_size = p->in_place ? 0 : round_up(p->rows * p->row + SLACK, 64);
    const int64_t numbers = image + ro_ctx_threads(ctx) * p->windows_size;
    char *room = ro_workspace(ctx, (size_t)(ranges + numbers * (int64_t)sizeof(bytes_x)));
    if (!room)
        return 0;
    p->range = (bytes_range *)(void *)room;
    p->image = (bytes_x *)(void *)(room + ranges);
    p->windows = p->image + image;
    return 1;
}

/* Returns whether the border is so wide that copying the image does not pay. Floats are used
 * then. */
static int has_wide_border(const bytes_plan *p) {
    enum { WIDE = 16 };
    return p->line > (WIDE * (p->count / p->v->batch) + LOOK) / p->lines;
}

/* Returns whether x has only integers, and no sum can be too large. */
static int fits(bytes_plan *p) {
    bytes_head head;
    int64_t low = 0, high = 0;
    memcpy(&head, p->packed, sizeof head);
    for (int64_t i = 0; i < ceil_div(p->count, LOOK); i++) {
        if (!p->range[i].whole)
            return 0;
        low = min_i64(low, p->range[i].low), high = max_i64(high, p->range[i].high);
    }
    p->low = TERMS == 4 ? (int32_t)low : 0;
    return high - low <= BYTES_RANGE && head.most * max_i64(-low, high) <= BYTES_EXACT;
}

ro_status RO_NAME(ro_conv_bytes_run)(ro_ctx *ctx, const ro_conv *v, const float *x,
                                     const void *packed, float *y, int *ran) {
    enum { LINES_LEAST = 1 << 14 /* numbers in lines that are worth waking a thread for */ };
    ro_pool *pool = ro_ctx_pool(ctx);
    bytes_plan p = plan(v, x, packed, y);
    *ran = 0;
    if (has_wide_border(&p))
        return RO_OK;
    share(&p, ro_ctx_threads(ctx));
    if (!allocate(ctx, &p))
        return RO_OK;
    ro_pool_for(pool, ceil_div(p.count, LOOK), 1, look, &p);
    *ran = fits(&p);
    if (!*ran)
        return RO_OK;
    ro_pool_for(pool, v->batch * p.lines, ceil_div(LINES_LEAST, p.line), take_lines, &p);
    ro_pool_for(pool, ceil_div(p.m, p.rows) * p.across, 1, run_items, &p);
    return RO_OK;
}

#else

int64_t RO_NAME(ro_conv_bytes_size)(const ro_conv *v) {
    (void)v;
    return 0;
}

int RO_NAME(ro_conv_bytes_pack)(const ro_conv *v, const float *w, void *to) {
    (void)v, (void)w, (void)to;
    return 0;
}

ro_status RO_NAME(ro_conv_bytes_run)(ro_ctx *ctx, const ro_conv *v, const float *x,
                                     const void *packed, float *y, int *ran) {
    (void)ctx, (void)v, (void)x, (void)packed, (void)y;
    *ran = 0;
    return RO_OK;
}

#endif
