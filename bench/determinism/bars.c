/* Bar plots: the time of a step, and the bytes of its log. */
#include <math.h>
#include <string.h>

#include "bench/determinism/plots.h"

const char *const colour[WAY_KINDS] = {"f32", "f64", "trainer", "auditor", "fixed"};

void open_figure(FILE *to, const char *title, const char *told, int height) {
    fprintf(to,
            "<figure>\n<figcaption><b>%s.</b> %s</figcaption>\n<svg viewBox=\"0 0 %d %d\" "
            "role=\"img\" aria-label=\"%s\">\n",
            title, told, WIDTH, height, title);
}

enum { BAR = 14, BAR_STEP = 19, BAR_LEFT = 168, BAR_WIDTH = WIDTH - BAR_LEFT - 52 };

/* A bar: the value of the shown way, and the least and the most of all that it stands for. */
typedef struct {
    const char *label;
    variant_kind kind;
    double value, low, high;
} bar;

static double time_of(const variant *v) {
    return v->sum.ratio[1];
}

/* Widens the bar to all ways of its kind and encoding. */
static void span(const benchmark *b, bar *of, vd_log_encoding encoding) {
    for (int i = 0; i < b->variants; i++) {
        const variant *v = &b->variant[i];
        if (v->kind != of->kind || v->error || (encoding && v->encoding != encoding))
            continue;
        of->low = fmin(of->low, time_of(v));
        of->high = fmax(of->high, time_of(v));
    }
}

static int add_kind(const benchmark *b, bar *bars, const char *label, variant_kind kind,
                    vd_log_encoding encoding) {
    const int shown = shown_of(b, kind, encoding);
    if (shown < 0)
        return 0;
    const double value = time_of(&b->variant[shown]);
    *bars = (bar){label, kind, value, value, value};
    span(b, bars, encoding);
    return 1;
}

/* Adds every fixed-order way but the scalar ones, beside which no other bar could be read. */
static int add_fixed_ways(const benchmark *b, bar *bars) {
    int count = 0;
    for (int i = 0; i < b->variants; i++) {
        const variant *v = &b->variant[i];
        if (v->kind != ORDER_FIXED || v->error || (v->isa && strcmp(v->isa, "scalar") == 0))
            continue;
        const double value = time_of(v);
        bars[count++] = (bar){detail_of(v), ORDER_FIXED, value, value, value};
    }
    return count;
}

static void draw_bar(FILE *to, const bar *of, int y, double scale, const char *format) {
    const double end = BAR_LEFT + scale * of->value, far = BAR_LEFT + scale * of->high;
    fprintf(to,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s%s</text>"
            "<rect class=\"fill %s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>",
            BAR_LEFT - 6, y + 11, of->kind == ORDER_FIXED ? "fixed, " : "", of->label,
            colour[of->kind], BAR_LEFT, y, end - BAR_LEFT, BAR);
    if (of->high > of->low)
        fprintf(to, "<path class=\"range\" d=\"M%.1f %dH%.1fm0 -4v8M%.1f %dv8\"/>",
                BAR_LEFT + scale * of->low, y + BAR / 2, far, BAR_LEFT + scale * of->low,
                y + BAR / 2 - 4);
    fprintf(to, "<text class=\"value\" x=\"%.1f\" y=\"%d\">", fmax(end, far) + 5, y + 11);
    fprintf(to, format, of->value);
    fputs("</text>\n", to);
}

/* Draws bars in groups of one kind, with some space between groups. */
static int draw_bars(FILE *to, const bar *bars, int count, double scale, const char *format) {
    int y = TOP;
    for (int i = 0; i < count; i++) {
        y += i > 0 && bars[i].kind != bars[i - 1].kind ? 6 : 0;
        draw_bar(to, &bars[i], y, scale, format);
        y += BAR_STEP;
    }
    return y;
}

static double widest(const bar *bars, int count) {
    double most = 0;
    for (int i = 0; i < count; i++)
        most = fmax(most, bars[i].high);
    return most > 0 ? most : 1;
}

void plot_time(const benchmark *b, FILE *to) {
    bar bars[VARIANTS_MAX + 8];
    int count = 0;
    count += add_kind(b, &bars[count], "free binary32", FREE_F32, 0);
    count += add_kind(b, &bars[count], "free binary64", FREE_F64, 0);
    count += add_kind(b, &bars[count], "trainer, close calls", LOG_TRAINER, VD_LOG_CALLS);
    count += add_kind(b, &bars[count], "trainer, symbols", LOG_TRAINER, VD_LOG_SYMBOLS);
    count += add_kind(b, &bars[count], "auditor, close calls", LOG_AUDITOR, VD_LOG_CALLS);
    count += add_kind(b, &bars[count], "auditor, symbols", LOG_AUDITOR, VD_LOG_SYMBOLS);
    count += add_fixed_ways(b, &bars[count]);
    const double scale = BAR_WIDTH / widest(bars, count);
    const int height = 2 * TOP + count * BAR_STEP + WAY_KINDS * 6 + LABEL;
    open_figure(to, "Time of a step",
                "Free binary64 is 1. A thin line goes from the fastest to the slowest run of its "
                "kind.",
                height);
    fprintf(to,
            "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text class=\"tick\" x=\"%.1f\" y=\"%d\" "
            "text-anchor=\"middle\">1</text>\n",
            BAR_LEFT + scale, TOP - 6, height - LABEL - 4, BAR_LEFT + scale, height - 4);
    draw_bars(to, bars, count, scale, "%.2f");
    fputs("</svg>\n</figure>\n", to);
}

void plot_logs(const benchmark *b, FILE *to) {
    static const struct {
        vd_log_encoding encoding;
        const char *label;
    } of[] = {{VD_LOG_CALLS, "close calls"}, {VD_LOG_SYMBOLS, "symbols, as published"}};
    bar bars[2];
    int count = 0;
    for (int i = 0; i < 2; i++) {
        const int t = first_of(b, LOG_TRAINER, of[i].encoding);
        const double kb = t < 0 ? 0 : b->variant[t].sum.log_bytes / 1e3;
        if (t >= 0)
            bars[count++] = (bar){of[i].label, LOG_TRAINER, kb, kb, kb};
    }
    if (count < 2)
        return; /* a single bar needs no plot: the table has the number */
    open_figure(to, "Log of a step, kB", "The free ways and the fixed order need none.",
                2 * TOP + count * BAR_STEP);
    draw_bars(to, bars, count, BAR_WIDTH / widest(bars, count), "%.3g");
    fputs("</svg>\n</figure>\n", to);
}
