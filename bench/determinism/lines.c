/* Plots with lines over steps: loss, distance of weights. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/determinism/plots.h"

enum { LEFT = 58, RIGHT = 12 };

/* Ways of one kind share its colour and differ in their dashes. */
static const char *const dashes[] = {"", "7 3", "2 3", "8 3 2 3", "12 4", "1 2", "5 5", "3 6"};

typedef double (*value_at)(const variant *v, long step);

/* Where values lie in a drawing. */
typedef struct {
    const benchmark *b;
    double low, high; /* of values */
    int bottom, right;
} frame;

static double x_of(const frame *f, long step) {
    return LEFT + (double)(f->right - LEFT) * (double)step / (double)f->b->steps;
}

static double y_of(const frame *f, double value) {
    return f->bottom - (f->bottom - TOP) * (value - f->low) / (f->high - f->low);
}

/* 1, 2 or 5 times a power of ten, so that about `count` of them are in a range. */
static double tick_step(double range, int count) {
    const double rough = range / count, power = pow(10, floor(log10(rough)));
    const double times = rough / power;
    return power * (times > 5 ? 10 : times > 2 ? 5 : times > 1 ? 2 : 1);
}

static void draw_steps(FILE *to, const frame *f, int y) {
    const long every = (long)fmax(1, tick_step((double)f->b->steps, 5));
    for (long s = 0; s <= f->b->steps; s += every)
        fprintf(to, "<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%ld</text>",
                x_of(f, s), y, s);
    fprintf(to, "\n<text class=\"tick\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n",
            (LEFT + f->right) / 2, y + LABEL);
}

static void draw_line(FILE *to, const frame *f, const variant *v, const char *dash, int offset,
                      value_at value) {
    fprintf(to, "<polyline class=\"line %s\" stroke-dasharray=\"%s\"", colour[v->kind],
            *dash ? dash : "none");
    if (offset)
        fprintf(to, " stroke-dashoffset=\"%d\"", offset);
    fputs(" points=\"", to);
    for (long s = 0; s <= f->b->steps; s++)
        if (isfinite(value(v, s)))
            fprintf(to, "%.1f,%.1f ", x_of(f, s), y_of(f, value(v, s)));
    fprintf(to, "\"><title>%s</title></polyline>\n", v->name);
}

/* ---- loss ---- */

/* Initialisation has none. */
static double loss_at(const variant *v, long step) {
    return step > 0 ? (double)v->result[step].loss : NAN;
}

/* All free ways in binary32, which differ, and one of each other kind. */
static bool has_loss(const benchmark *b, int way) {
    const variant *v = &b->variant[way];
    return !v->error && (v->kind == FREE_F32 || way == shown_of(b, v->kind, 0));
}

static void range_of_loss(frame *f) {
    f->low = INFINITY;
    f->high = -INFINITY;
    for (int i = 0; i < f->b->variants; i++)
        for (long s = 1; s <= f->b->steps && has_loss(f->b, i); s++) {
            f->low = fmin(f->low, loss_at(&f->b->variant[i], s));
            f->high = fmax(f->high, loss_at(&f->b->variant[i], s));
        }
    if (!(f->high > f->low))
        f->high = f->low + 1;
}

/* The fixed order is a whole line, on which the others lie as dashes of their own places, so that
 * all colours are seen where all lines are one. */
static void draw_losses(FILE *to, const frame *f) {
    static const variant_kind below[] = {FREE_F32, ORDER_FIXED};
    static const variant_kind above[] = {FREE_F64, LOG_TRAINER, LOG_AUDITOR};
    for (int k = 0; k < 2; k++)
        for (int i = 0, of_kind = 0; i < f->b->variants; i++)
            if (f->b->variant[i].kind == below[k] && has_loss(f->b, i))
                draw_line(to, f, &f->b->variant[i], dashes[of_kind++ % 8], 0, loss_at);
    for (int k = 0; k < 3; k++) {
        const int way = shown_of(f->b, above[k], 0);
        if (way >= 0)
            draw_line(to, f, &f->b->variant[way], "5 15", 15 - 5 * k, loss_at);
    }
}

void plot_loss(const benchmark *b, FILE *to) {
    frame f = {.b = b, .bottom = 190, .right = WIDTH - RIGHT};
    range_of_loss(&f);
    if (!isfinite(f.low))
        return;
    open_figure(to, "Loss", "One run of each way, and each profile in binary32.", 222);
    const double every = tick_step(f.high - f.low, 4);
    for (double y = ceil(f.low / every) * every; y <= f.high; y += every)
        fprintf(to,
                "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"tick\" x=\"%d\" "
                "y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                LEFT, y_of(&f, y), f.right, LEFT - 6, y_of(&f, y) + 4, fabs(y) < 1e-9 ? 0 : y);
    draw_steps(to, &f, f.bottom + 16);
    draw_losses(to, &f);
    fputs("</svg>\n<p class=\"legend\">", to);
    for (int kind = 0; kind < WAY_KINDS; kind++)
        if (shown_of(b, (variant_kind)kind, 0) >= 0)
            fprintf(to, "<span><i class=\"key %s\"></i>%s</span> ", colour[kind],
                    row_of(b, (variant_kind)kind).name);
    fputs("</p>\n</figure>\n", to);
}

/* ---- distance of weights ---- */

enum { LANE = 17, GAP = 14 };

/* On a logarithmic scale; zero has a band of its own below. */
static double distance_at(const variant *v, long step) {
    return v->distance[step] > 0 ? log10(v->distance[step]) : NAN;
}

static bool has_distance(const benchmark *b, const variant *v) {
    for (long s = 0; s <= b->steps && !v->error; s++)
        if (isfinite(distance_at(v, s)))
            return true;
    return false;
}

static void range_of_distance(frame *f) {
    f->low = INFINITY;
    f->high = -INFINITY;
    for (int i = 0; i < f->b->variants; i++)
        for (long s = 0; s <= f->b->steps && has_distance(f->b, &f->b->variant[i]); s++)
            if (isfinite(distance_at(&f->b->variant[i], s))) {
                f->low = fmin(f->low, distance_at(&f->b->variant[i], s));
                f->high = fmax(f->high, distance_at(&f->b->variant[i], s));
            }
    f->low = floor(f->low);
    f->high = fmax(ceil(f->high), f->low + 1);
}

/* Names at the ends of lines, from the top down, none over another one. */
typedef struct {
    double y;
    const variant *v;
    const char *dash;
} end_label;

static int by_height(const void *a, const void *b) {
    const end_label *x = a, *y = b;
    return (x->y > y->y) - (x->y < y->y);
}

static void draw_labels(FILE *to, end_label *label, int count, int right) {
    double y = -INFINITY;
    qsort(label, (size_t)count, sizeof *label, by_height);
    for (int i = 0; i < count; i++) {
        y = fmax(label[i].y, y + LABEL);
        fprintf(to,
                "<path class=\"line %s\" stroke-dasharray=\"%s\" d=\"M%d %.1fh16\"/>"
                "<text x=\"%d\" y=\"%.1f\">%s</text>\n",
                colour[label[i].v->kind], *label[i].dash ? label[i].dash : "none", right + 4, y,
                right + 24, y + 4, detail_of(label[i].v));
    }
}

/* Powers of ten, every second or third one if there are many. */
static void draw_decades(FILE *to, const frame *f) {
    const int every = 1 + (int)(f->high - f->low) / 6;
    for (int y = (int)f->low; y <= (int)f->high; y += every)
        fprintf(to,
                "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"tick\" x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">10<tspan dy=\"-5\" font-size=\"9\">%d</tspan></text>\n",
                LEFT, y_of(f, y), f->right, LEFT - 6, y_of(f, y) + 4, y);
}

static void draw_distances(FILE *to, const frame *f) {
    end_label label[VARIANTS_MAX];
    int count = 0, of_kind[WAY_KINDS] = {0};
    draw_decades(to, f);
    for (int i = 0; i < f->b->variants; i++) {
        const variant *v = &f->b->variant[i];
        if (!has_distance(f->b, v))
            continue;
        const char *dash = dashes[of_kind[v->kind]++ % 8];
        draw_line(to, f, v, dash, 0, distance_at);
        label[count++] = (end_label){y_of(f, distance_at(v, f->b->steps)), v, dash};
        if (!isfinite(label[count - 1].y)) /* it came back to its base's weights */
            label[count - 1].y = f->bottom;
    }
    draw_labels(to, label, count, f->right);
}

/* A line at zero for each kind whose states were all the same. */
static int draw_zeros(FILE *to, const frame *f, int top) {
    static const variant_kind kinds[] = {FREE_F32, FREE_F64, LOG_AUDITOR, ORDER_FIXED};
    int y = top;
    for (int k = 0; k < 4; k++) {
        const way_row row = row_of(f->b, kinds[k]);
        if (row.same != SAME_YES)
            continue;
        y += LANE;
        char text[128];
        snprintf(text, sizeof text, "%s%s", row.name, strchr(row.words, ','));
        fprintf(to,
                "<path class=\"line %s\" d=\"M%d %dH%d\"/><rect class=\"paper\" x=\"%d\" "
                "y=\"%d\" width=\"%.0f\" height=\"%d\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
                colour[row.kind], LEFT, y - 3, f->right, LEFT + 8, y - LANE / 2 - 3,
                6.2 * (double)strlen(text) + 8, LANE, LEFT + 12, y + 1, text);
    }
    if (y > top)
        fprintf(to, "<text class=\"tick\" x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>\n",
                LEFT - 6, (top + LANE + y) / 2 + 1);
    return y;
}

static void say_unmeasured(const benchmark *b, FILE *to) {
    for (int kind = FREE_F32; kind <= FREE_F64; kind++) {
        bool measured = false;
        const way_row row = row_of(b, (variant_kind)kind);
        for (int i = 0; i < b->variants; i++)
            measured |= (int)b->variant[i].kind == kind && has_distance(b, &b->variant[i]);
        if (row.same == SAME_NO && !measured)
            fprintf(to,
                    "<p class=\"legend\">%s differs too; its distance was not measured in this "
                    "run.</p>\n",
                    row.name);
    }
}

void plot_distance(const benchmark *b, FILE *to) {
    frame f = {.b = b, .bottom = 170, .right = WIDTH - 100};
    range_of_distance(&f);
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
