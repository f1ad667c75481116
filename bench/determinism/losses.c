/* The plot of losses. Losses of ways differ by less than the width of a line, so the plot shows the
 * loss of one way, and the distance of the others from it. */
#include <math.h>

#include "bench/determinism/plots.h"

enum { UPPER = 92, BETWEEN = 26, LOWER = 200 };

static const variant *base(void) {
    return &bench.variant[bench.base[1]];
}

/* Returns NAN for step 0, initialisation, which has no loss. */
static double loss_at(const variant *v, long step) {
    return step > 0 ? (double)v->result[step].loss : NAN;
}

static double apart_at(const variant *v, long step) {
    const double d = fabs(loss_at(v, step) - loss_at(base(), step));
    return d > 0 ? log10(d) : NAN;
}

/* Returns whether a way is drawn: all free ways, and one of each other kind. */
static bool is_compared(const benchmark *b, int way) {
    const variant *v = &b->variant[way];
    return !v->error && v != base() && (is_free(v) || way == shown_of(b, v->kind, 0));
}

static bool is_apart(const benchmark *b, int way) {
    for (long s = 0; s <= b->steps && is_compared(b, way); s = next_shown(b, s))
        if (isfinite(apart_at(&b->variant[way], s)))
            return true;
    return false;
}

static bool is_same(const benchmark *b, int way) {
    return is_compared(b, way) && !is_apart(b, way);
}

/* ---- above: the loss ---- */

static void draw_loss(FILE *to, const benchmark *b) {
    frame f = {b, INFINITY, -INFINITY, TOP, UPPER, WIDTH - 100};
    for (long s = 0; s <= b->steps; s = next_shown(b, s)) {
        f.low = fmin(f.low, loss_at(base(), s));
        f.high = fmax(f.high, loss_at(base(), s));
    }
    if (!(f.high > f.low))
        f.high = f.low + 1;
    const double every = tick_step(f.high - f.low, 3);
    for (double y = ceil(f.low / every) * every; y <= f.high; y += every)
        fprintf(to,
                "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"tick\" x=\"%d\" "
                "y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                LEFT, y_of(&f, y), f.right, LEFT - 6, y_of(&f, y) + 4, fabs(y) < 1e-9 ? 0 : y);
    draw_line(to, &f, base(), "", loss_at);
    end_label label = {y_of(&f, loss_at(base(), b->steps)), base(), "", "binary64"};
    draw_labels(to, &label, 1, f.right);
}

/* ---- below: the distance of the others from it ---- */

static const char *label_of(const variant *v) {
    static const char *const name[WAY_KINDS] = {NULL, NULL, "trainer", "auditor", "fixed order"};
    return name[v->kind] ? name[v->kind] : detail_of(v);
}

static void draw_apart(FILE *to, const frame *f) {
    end_label label[VARIANTS_MAX];
    int count = 0, of_kind[WAY_KINDS] = {0};
    if (!isfinite(f->low))
        return;
    draw_decades(to, f);
    for (int i = 0; i < f->b->variants; i++) {
        const variant *v = &f->b->variant[i];
        if (!is_apart(f->b, i))
            continue;
        const char *dash = dash_of(of_kind[v->kind]++);
        draw_line(to, f, v, dash, apart_at);
        const double end = apart_at(v, f->b->steps);
        label[count++] =
            (end_label){isfinite(end) ? y_of(f, end) : f->bottom, v, dash, label_of(v)};
    }
    draw_labels(to, label, count, f->right);
}

static int lane_count(const benchmark *b) {
    int lanes = 0;
    for (int i = 0; i < b->variants; i++)
        lanes += is_same(b, i);
    return lanes;
}

static void draw_same(FILE *to, const frame *f, int top) {
    int y = top;
    for (int i = 0; i < f->b->variants; i++) {
        const variant *v = &f->b->variant[i];
        char text[128];
        if (!is_same(f->b, i))
            continue;
        y += LANE;
        snprintf(text, sizeof text, "%s%s%s", row_of(f->b, v->kind).name, is_free(v) ? ", " : "",
                 is_free(v) ? detail_of(v) : "");
        draw_lane(to, f, y, v->kind, text);
    }
    draw_zero(to, top, y);
}

void plot_loss(const benchmark *b, FILE *to) {
    frame f = {.b = b, .top = UPPER + BETWEEN, .bottom = LOWER, .right = WIDTH - 100};
    range_of_decades(&f, apart_at, is_compared);
    if (!isfinite(f.low))
        f.bottom = f.top;
    const int end = f.bottom + GAP + lane_count(b) * LANE;
    open_figure(to, "Loss",
                "Above, of free binary64 on the first profile. Below, how far the other ways are "
                "from it: free ways on each profile, and one run of each other. At 0 they have the "
                "same loss in every step shown.",
                end + 36);
    draw_loss(to, b);
    draw_apart(to, &f);
    draw_same(to, &f, f.bottom + GAP - 6);
    draw_steps(to, &f, end + 18);
    fputs("</svg>\n</figure>\n", to);
}
