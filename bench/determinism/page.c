/* A page with the table and plots, which needs nothing else. */
#include <math.h>
#include <stdlib.h>

#include "bench/determinism/determinism.h"

enum { WIDTH = 760, HEIGHT = 260, LEFT = 60, BAR = 18 };

static const char *const colour[] = {"#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad",
                                     "#d68910", "#16a085", "#7f8c8d", "#2c3e50"};

/* ---- bars: one value for each way ---- */

typedef double (*value_of)(const summary *s);

static double milliseconds(const summary *s) {
    return 1e3 * s->seconds;
}
static double megabytes_logged(const summary *s) {
    return s->log_bytes / 1e6;
}
static double megabytes(const summary *s) {
    return (double)s->peak_bytes / 1e6;
}

static void bars(const benchmark *b, const char *title, value_of value, FILE *to) {
    double most = 0;
    int rows = 0;
    for (int i = 0; i < b->variants; i++) {
        const summary s = summary_of(b, i);
        most = fmax(most, value(&s));
        rows += value(&s) > 0;
    }
    fprintf(to, "<h2>%s</h2>\n<svg viewBox=\"0 0 %d %d\">\n", title, WIDTH, rows * (BAR + 4) + 4);
    int y = 2;
    for (int i = 0; i < b->variants; i++) {
        const summary s = summary_of(b, i);
        if (value(&s) <= 0)
            continue;
        fprintf(to,
                "<text x=\"0\" y=\"%d\">%s</text><rect x=\"300\" y=\"%d\" width=\"%.1f\" "
                "height=\"%d\" fill=\"%s\"/>"
                "<text x=\"%.1f\" y=\"%d\">%.4g</text>\n",
                y + BAR - 5, b->variant[i].name, y, 360 * value(&s) / most, BAR,
                colour[b->variant[i].kind], 306 + 360 * value(&s) / most, y + BAR - 5, value(&s));
        y += BAR + 4;
    }
    fputs("</svg>\n", to);
}

/* ---- lines: one value for each step ---- */

typedef double (*value_at)(const variant *v, long step);

static double loss_at(const variant *v, long step) {
    return (double)v->result[step].loss;
}
/* On a logarithmic scale; where there is no distance, nothing is drawn. */
static double distance_at(const variant *v, long step) {
    return v->distance[step] > 0 ? log10(v->distance[step]) : NAN;
}

static bool has_lines(const variant *v, value_at value) {
    return !v->error && (value == loss_at || v->kind == FREE_F32);
}

static void range_of(const benchmark *b, value_at value, double *low, double *high) {
    *low = INFINITY;
    *high = -INFINITY;
    for (int i = 0; i < b->variants; i++)
        for (long s = 1; s <= b->steps && has_lines(&b->variant[i], value); s++) {
            const double y = value(&b->variant[i], s);
            if (isfinite(y)) {
                *low = fmin(*low, y);
                *high = fmax(*high, y);
            }
        }
    if (!(*high > *low))
        *high = *low + 1;
}

static void lines(const benchmark *b, const char *title, value_at value, FILE *to) {
    double low, high;
    range_of(b, value, &low, &high);
    fprintf(to, "<h2>%s</h2>\n<svg viewBox=\"0 0 %d %d\">\n", title, WIDTH, HEIGHT + 40);
    if (!isfinite(low)) {
        fputs("<text x=\"0\" y=\"20\">nothing to draw: every way gave the same</text></svg>\n", to);
        return;
    }
    fprintf(to,
            "<path class=\"axis\" d=\"M%d 10V%dH%d\"/><text x=\"0\" y=\"16\">%.4g</text>"
            "<text x=\"0\" y=\"%d\">%.4g</text><text x=\"%d\" y=\"%d\">step %ld</text>\n",
            LEFT, HEIGHT, WIDTH, high, HEIGHT, low, WIDTH - 60, HEIGHT + 16, b->steps);
    int named = 0;
    for (int i = 0; i < b->variants; i++) {
        const variant *v = &b->variant[i];
        if (!has_lines(v, value))
            continue;
        fprintf(to, "<polyline stroke=\"%s\" points=\"", colour[i % 8]);
        for (long s = 1; s <= b->steps; s++)
            if (isfinite(value(v, s)))
                fprintf(to, "%.1f,%.1f ",
                        LEFT + (double)(WIDTH - LEFT - 10) * (double)s / (double)b->steps,
                        HEIGHT - (HEIGHT - 10) * (value(v, s) - low) / (high - low));
        fprintf(to, "\"><title>%s</title></polyline>\n", v->name);
        if (value == distance_at && i != b->base[0])
            fprintf(to, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n", WIDTH - 220,
                    HEIGHT - 12 - 16 * named++, colour[i % 8], v->name);
    }
    fputs("</svg>\n", to);
}

bool write_page(const benchmark *b, const char *path) {
    FILE *to = fopen(path, "w");
    if (!to)
        return false;
    fprintf(to,
            "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Determinism: %s, "
            "%s</title>\n"
            "<style>body{font:15px sans-serif;max-width:%dpx;margin:2em "
            "auto}pre{font-size:11px;overflow-x:auto}"
            "svg{width:100%%;font-size:12px}polyline{fill:none;stroke-width:1.5}.axis{fill:none;"
            "stroke:#888}</style>\n"
            "<h1>Rounding logs and a fixed order: %s, %s</h1>\n<pre>",
            b->model, b->size, WIDTH + 200, b->model, b->size);
    print_table(b, to);
    print_operators(b, to);
    print_words(b, to);
    fputs("</pre>\n", to);
    bars(b, b->cpu ? "Milliseconds of the processor a step" : "Milliseconds a step", milliseconds,
         to);
    bars(b, "Log, megabytes a step", megabytes_logged, to);
    bars(b, "Peak memory, megabytes", megabytes, to);
    lines(
        b,
        "Distance of the weights from those of the first profile, free f32 (log10 of the L2 norm)",
        distance_at, to);
    lines(b, "Loss", loss_at, to);
    fputs("</html>\n", to);
    return fclose(to) == 0;
}
