/* Axes and lines of all plots over steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/determinism/plots.h"

const char *dash_of(int nth) {
    static const char *const dashes[] = {"", "7 3", "2 3", "8 3 2 3", "12 4", "1 2", "5 5", "3 6"};
    return dashes[nth % 8];
}

static double x_of(const frame *f, long step) {
    return LEFT + (double)(f->right - LEFT) * (double)step / (double)f->b->steps;
}

double y_of(const frame *f, double value) {
    return f->bottom - (f->bottom - f->top) * (value - f->low) / (f->high - f->low);
}

double tick_step(double range, int count) {
    const double rough = range / count, power = pow(10, floor(log10(rough)));
    const double times = rough / power;
    return power * (times > 5 ? 10 : times > 2 ? 5 : times > 1 ? 2 : 1);
}

void draw_steps(FILE *to, const frame *f, int y) {
    const long every = (long)fmax(1, tick_step((double)f->b->steps, 5));
    for (long s = 0; s <= f->b->steps; s += every)
        fprintf(to, "<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%ld</text>",
                x_of(f, s), y, s);
    fprintf(to, "\n<text class=\"tick\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n",
            (LEFT + f->right) / 2, y + LABEL);
}

void draw_line(FILE *to, const frame *f, const variant *v, const char *dash, value_at value) {
    long points = 0, last = 0;
    fprintf(to, "<polyline class=\"line %s\" stroke-dasharray=\"%s\" points=\"", colour[v->kind],
            *dash ? dash : "none");
    for (long s = 0; s <= f->b->steps; s = next_shown(f->b, s))
        if (isfinite(value(v, s))) {
            fprintf(to, "%.1f,%.1f ", x_of(f, s), y_of(f, value(v, s)));
            points++;
            last = s;
        }
    fprintf(to, "\"><title>%s</title></polyline>\n", v->name);
    if (points == 1) /* a line of one point would be invisible */
        fprintf(to, "<circle class=\"line %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"1.5\"/>\n",
                colour[v->kind], x_of(f, last), y_of(f, value(v, last)));
}

static int by_height(const void *a, const void *b) {
    const end_label *x = a, *y = b;
    return (x->y > y->y) - (x->y < y->y);
}

void draw_labels(FILE *to, end_label *label, int count, int right) {
    double y = -INFINITY;
    qsort(label, (size_t)count, sizeof *label, by_height);
    for (int i = 0; i < count; i++) {
        y = fmax(label[i].y, y + LABEL);
        fprintf(to,
                "<path class=\"line %s\" stroke-dasharray=\"%s\" d=\"M%d %.1fh16\"/>"
                "<text x=\"%d\" y=\"%.1f\">%s</text>\n",
                colour[label[i].v->kind], *label[i].dash ? label[i].dash : "none", right + 4, y,
                right + 24, y + 4, label[i].name);
    }
}

void range_of_decades(frame *f, value_at value, bool (*shown)(const benchmark *b, int way)) {
    f->low = INFINITY;
    f->high = -INFINITY;
    for (int i = 0; i < f->b->variants; i++)
        for (long s = 0; s <= f->b->steps && shown(f->b, i); s = next_shown(f->b, s)) {
            const double at = value(&f->b->variant[i], s);
            f->low = isfinite(at) ? fmin(f->low, at) : f->low;
            f->high = isfinite(at) ? fmax(f->high, at) : f->high;
        }
    f->low = floor(f->low);
    f->high = fmax(ceil(f->high), f->low + 1);
}

void draw_decades(FILE *to, const frame *f) {
    const int every = 1 + (int)(f->high - f->low) / 6;
    for (int y = (int)f->low; y <= (int)f->high; y += every)
        fprintf(to,
                "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"tick\" x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">10<tspan dy=\"-5\" font-size=\"9\">%d</tspan></text>\n",
                LEFT, y_of(f, y), f->right, LEFT - 6, y_of(f, y) + 4, y);
}

void draw_lane(FILE *to, const frame *f, int y, variant_kind kind, const char *text) {
    fprintf(to,
            "<path class=\"line %s\" d=\"M%d %dH%d\"/><rect class=\"paper\" x=\"%d\" "
            "y=\"%d\" width=\"%.0f\" height=\"%d\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
            colour[kind], LEFT, y - 3, f->right, LEFT + 8, y - LANE / 2 - 3,
            6.2 * (double)strlen(text) + 8, LANE, LEFT + 12, y + 1, text);
}

void draw_zero(FILE *to, int top, int end) {
    if (end > top)
        fprintf(to, "<text class=\"tick\" x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>\n",
                LEFT - 6, (top + LANE + end) / 2 + 1);
}

/* ---- distance of weights ---- */

/* Returns the distance on a logarithmic scale; NAN for zero, which is drawn in a band below. */
static double distance_at(const variant *v, long step) {
    return v->distance[step] > 0 ? log10(v->distance[step]) : NAN;
}

static bool has_distance(const benchmark *b, int way) {
    const variant *v = &b->variant[way];
    for (long s = 0; s <= b->steps && !v->error; s = next_shown(b, s))
        if (isfinite(distance_at(v, s)))
            return true;
    return false;
}

static void draw_distances(FILE *to, const frame *f) {
    end_label label[VARIANTS_MAX];
    int count = 0, of_kind[WAY_KINDS] = {0};
    draw_decades(to, f);
    for (int i = 0; i < f->b->variants; i++) {
        const variant *v = &f->b->variant[i];
        if (!has_distance(f->b, i))
            continue;
        const char *dash = dash_of(of_kind[v->kind]++);
        draw_line(to, f, v, dash, distance_at);
        const double end = y_of(f, distance_at(v, f->b->steps));
        label[count++] = (end_label){end, v, dash, detail_of(v)};
        if (!isfinite(label[count - 1].y)) /* the weights are again those of its base */
            label[count - 1].y = f->bottom;
    }
    draw_labels(to, label, count, f->right);
}

/* Draws a line at zero for each kind whose states were all the same. */
static void draw_zeros(FILE *to, const frame *f, int top) {
    static const variant_kind kinds[] = {FREE_F32, FREE_F64, LOG_AUDITOR, ORDER_FIXED};
    int y = top;
    for (int k = 0; k < 4; k++) {
        const way_row row = row_of(f->b, kinds[k]);
        if (row.same != SAME_YES)
            continue;
        y += LANE;
        char text[128];
        snprintf(text, sizeof text, "%s%s", row.name, strchr(row.words, ','));
        draw_lane(to, f, y, row.kind, text);
    }
    draw_zero(to, top, y);
}

static void say_unmeasured(const benchmark *b, FILE *to) {
    for (int kind = FREE_F32; kind <= FREE_F64; kind++) {
        bool measured = false;
        const way_row row = row_of(b, (variant_kind)kind);
        for (int i = 0; i < b->variants; i++)
            measured |= (int)b->variant[i].kind == kind && has_distance(b, i);
        if (row.same == SAME_NO && !measured)
            fprintf(to,
                    "<p class=\"legend\">%s differs too; its distance was not measured in this "
                    "run.</p>\n",
                    row.name);
    }
}

void plot_distance(const benchmark *b, FILE *to) {
    frame f = {.b = b, .top = TOP, .bottom = 170, .right = WIDTH - 100};
    range_of_decades(&f, distance_at, has_distance);
    const bool measured = isfinite(f.low);
    if (!measured)
        f.bottom = TOP;
    int lanes = 0;
    for (int kind = 0; kind < WAY_KINDS; kind++)
        lanes += kind != LOG_TRAINER && row_of(b, (variant_kind)kind).same == SAME_YES;
    if (!measured && lanes == 0)
        return;
    const int end = f.bottom + GAP + lanes * LANE;
    open_figure(to, "Distance between the weights of two runs",
                "From the first profile's to each other profile's, as the L2 norm; from a "
                "trainer's to its auditors'. At 0 all bits are the same, at every checkpoint.",
                end + 36);
    if (measured)
        draw_distances(to, &f);
    draw_zeros(to, &f, f.bottom + GAP - 6);
    draw_steps(to, &f, end + 18);
    fputs("</svg>\n", to);
    say_unmeasured(b, to);
    fputs("</figure>\n", to);
}
