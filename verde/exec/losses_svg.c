/* This file plots the losses of a run as SVG, readable on light and dark pages. */
#include "verde/exec/losses_svg.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WIDTH = 720,
    HEIGHT = 360,
    LEFT = 88,
    RIGHT = 20,
    TOP = 32,
    BOTTOM = 52,
    POINTS = 600, /* longer runs are drawn as means of steps */
    TICKS = 6,    /* most parts of an axis */
    LINE_BYTES_MAX = 400,
};

typedef struct {
    int64_t *step;
    double *loss;
    size_t count, capacity;
    int64_t lost; /* first step whose loss is not finite; 0: none */
    bool tail;    /* earlier steps were not read */
} loss_series;

static void free_series(loss_series *s) {
    free(s->step);
    free(s->loss);
}

static bool put_loss(loss_series *s, int64_t step, double loss) {
    if (s->count == s->capacity) {
        const size_t capacity = s->capacity ? 2 * s->capacity : 1024;
        int64_t *steps = realloc(s->step, capacity * sizeof *steps);
        s->step = steps ? steps : s->step;
        double *losses = steps ? realloc(s->loss, capacity * sizeof *losses) : NULL;
        s->loss = losses ? losses : s->loss;
        if (!losses)
            return false;
        s->capacity = capacity;
    }
    s->step[s->count] = step;
    s->loss[s->count++] = loss;
    return true;
}

/* Adds a line's loss to `s`, or, of an evaluation, to `evaluated`. */
static vd_status read_line(const char *path, const char *text, loss_series *s,
                           loss_series *evaluated, vd_err *err) {
    json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const json_t *step = json_object_get(line, "step"), *loss = json_object_get(line, "loss");
    if (!loss && (loss = json_object_get(line, "evaluation")))
        s = evaluated;
    vd_status status = VD_OK;
    if (!json_is_integer(step) || json_integer_value(step) < 1)
        status =
            vd_fail(err, VD_ERR_PEER, "%s: expected {\"step\":N,...}, got \"%.40s\"", path, text);
    else if (json_is_number(loss) &&
             !put_loss(s, json_integer_value(step), json_number_value(loss)))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    else if (json_is_string(loss) && !s->lost)
        s->lost = json_integer_value(step);
    json_decref(line);
    return status;
}

/* Reads complete lines only, because a run may be writing the last one. */
static vd_status read_lines(FILE *file, const char *path, loss_series *s, loss_series *evaluated,
                            vd_err *err) {
    char text[LINE_BYTES_MAX];
    vd_status status = VD_OK;
    while (status == VD_OK && fgets(text, sizeof text, file)) {
        const size_t length = strcspn(text, "\n");
        if (!text[length] && feof(file))
            break;
        text[length] = 0;
        status = read_line(path, text, s, evaluated, err);
    }
    return status;
}

/* Goes to the first line that begins in the last `size` bytes. */
static void skip_to_tail(FILE *file, uint64_t size, loss_series *s) {
    int c = 0;
    if (!size || fseek(file, -(long)size - 1, SEEK_END) != 0) {
        rewind(file); /* all of the file is read */
        return;
    }
    s->tail = true;
    while (c != EOF && c != '\n')
        c = getc(file);
}

static vd_status read_series(const char *dir, uint64_t tail, loss_series *s, loss_series *evaluated,
                             vd_err *err) {
    char path[1200];
    int fd;
    uint64_t size;
    snprintf(path, sizeof path, "%.1100s/losses.jsonl", dir);
    vd_status status = vd_open_file(path, &fd, &size, err);
    FILE *file = status == VD_OK ? fdopen(fd, "r") : NULL;
    if (status == VD_OK && !file) {
        status = vd_fail(err, VD_ERR_LOCAL, "cannot open %s", path);
        close(fd);
    }
    if (file)
        skip_to_tail(file, tail, s);
    if (status == VD_OK)
        status = read_lines(file, path, s, evaluated, err);
    if (file)
        fclose(file);
    if (status == VD_OK && s->count == 0)
        status = vd_fail(err, VD_ERR_PEER, "%s: there is no loss to draw", path);
    return status;
}

/* Replaces neighbouring steps by their means, if there are more than a plot can show. */
static void shorten(loss_series *s) {
    const size_t each = (s->count + POINTS - 1) / POINTS;
    size_t kept = 0;
    for (size_t at = 0; at < s->count; at += each) {
        const size_t end = at + each < s->count ? at + each : s->count;
        double sum = 0;
        for (size_t i = at; i < end; i++)
            sum += s->loss[i];
        s->step[kept] = s->step[end - 1];
        s->loss[kept++] = sum / (double)(end - at);
    }
    s->count = kept;
}

typedef struct {
    double low, high;   /* losses */
    double first, last; /* first and last step on the axis */
} plot_range;

static double x_of(const plot_range *r, double step) {
    return LEFT + (step - r->first) / (r->last - r->first) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const plot_range *r, double loss) {
    return TOP + (r->high - loss) / (r->high - r->low) * (HEIGHT - TOP - BOTTOM);
}

static plot_range range_of(const loss_series *s, const loss_series *evaluated) {
    plot_range r = {s->loss[0], s->loss[0], s->tail ? (double)s->step[0] - 1 : 0,
                    (double)s->step[s->count - 1]};
    for (size_t i = 0; i < s->count; i++) {
        r.low = fmin(r.low, s->loss[i]);
        r.high = fmax(r.high, s->loss[i]);
    }
    for (size_t i = 0; i < evaluated->count; i++) {
        r.low = fmin(r.low, evaluated->loss[i]);
        r.high = fmax(r.high, evaluated->loss[i]);
    }
    const double room = r.high > r.low ? (r.high - r.low) / 20 : fmax(fabs(r.low), 1) / 20;
    r.low -= room;
    r.high += room;
    r.last = s->lost ? fmax(r.last, (double)s->lost) : r.last;
    return r;
}

/* The least of 1, 2, 5, 10, 20, ... (or a tenth, ...) that cuts `range` into at most TICKS
 * parts. */
static double tick_step(double range) {
    const double least = range / TICKS, unit = pow(10, floor(log10(least)));
    return least <= unit       ? unit
           : least <= 2 * unit ? 2 * unit
           : least <= 5 * unit ? 5 * unit
                               : 10 * unit;
}

static void draw_loss_axis(vd_buf *out, const plot_range *r) {
    const double each = tick_step(r->high - r->low);
    const double from = ceil(r->low / each);
    for (int i = 0; i <= TICKS && (from + i) * each <= r->high; i++) {
        const double loss = (from + i) * each, y = y_of(r, loss);
        vd_printf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, WIDTH - RIGHT);
        vd_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>\n", LEFT - 8,
                  y + 4, loss);
    }
}

static void draw_step_axis(vd_buf *out, const plot_range *r) {
    const double each = fmax(tick_step(r->last - r->first), 1);
    const double from = ceil(r->first / each);
    for (int i = 0; i <= TICKS && (from + i) * each <= r->last; i++)
        vd_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n",
                  x_of(r, (from + i) * each), HEIGHT - BOTTOM + 20, (from + i) * each);
    vd_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n",
              (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4);
}

static void draw_path(vd_buf *out, const char *style, const loss_series *s, const plot_range *r) {
    vd_printf(out, "<path class=\"%s\" d=\"", style);
    for (size_t i = 0; i < s->count; i++)
        vd_printf(out, "%s%.1f %.1f", i ? "L" : "M", x_of(r, (double)s->step[i]),
                  y_of(r, s->loss[i]));
    vd_printf(out, "\"/>\n");
}

static void draw_series(vd_buf *out, const loss_series *s, const plot_range *r) {
    draw_path(out, "loss", s, r);
    if (s->count == 1)
        vd_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", x_of(r, (double)s->step[0]),
                  y_of(r, s->loss[0]));
    if (!s->lost)
        return;
    const double x = x_of(r, (double)s->lost);
    vd_printf(out, "<path class=\"lost\" d=\"M%.1f %dV%d\"/>\n", x, TOP, HEIGHT - BOTTOM);
    vd_printf(out,
              "<text x=\"%.1f\" y=\"%d\" text-anchor=\"end\">no number from step %lld on</text>\n",
              fmax(x - 6, 200), TOP + 12, (long long)s->lost);
}

static void draw(vd_buf *out, const loss_series *s, const loss_series *evaluated, size_t steps) {
    const plot_range r = range_of(s, evaluated);
    vd_printf(out,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
              "height=\"%d\" role=\"img\" aria-label=\"loss of each step\">\n"
              "<style>:root{color-scheme:light "
              "dark;max-width:100%%;height:auto}rect{fill:#fff}text{fill:#333;font:12px "
              "sans-serif}path{fill:none}.grid{stroke:#ddd}.loss{stroke:#0a66c2;stroke-width:1.5}"
              "circle{fill:#0a66c2}.lost{stroke:#c22}.evaluation{stroke:#c60;stroke-width:2}\n"
              "@media(prefers-color-scheme:dark){rect{fill:#16181c}text{fill:#ccc}.grid{stroke:"
              "#3a3d42}.loss{stroke:#6cb4ff}circle{fill:#6cb4ff}.lost{stroke:#ff7b72}}\n"
              "@media(max-width:560px){text{font-size:22px}}</style>\n"
              "<rect width=\"%d\" height=\"%d\"/>\n",
              WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
    vd_printf(out, "<text x=\"%d\" y=\"20\">loss", LEFT);
    if (steps > s->count)
        vd_printf(out, ", means of %zu steps", (steps + POINTS - 1) / POINTS);
    vd_printf(out, "%s</text>\n", evaluated->count ? "; thick: on other data" : "");
    draw_loss_axis(out, &r);
    draw_step_axis(out, &r);
    draw_series(out, s, &r);
    if (evaluated->count)
        draw_path(out, "evaluation", evaluated, &r);
    vd_printf(out, "</svg>\n");
}

vd_status vd_losses_svg(const char *dir, uint64_t tail, vd_buf *out, vd_err *err) {
    loss_series s = {0}, evaluated = {0};
    vd_status status = read_series(dir, tail, &s, &evaluated, err);
    if (status == VD_OK) {
        const size_t steps = s.count;
        shorten(&s);
        draw(out, &s, &evaluated, steps);
        if (!vd_buf_ok(out))
            status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    }
    free_series(&s);
    free_series(&evaluated);
    return status;
}

vd_status vd_plot_losses(const char *dir, const char *out, vd_err *err) {
    vd_buf text = {0};
    vd_status status = vd_losses_svg(dir, 0, &text, err);
    if (status == VD_OK)
        status = vd_write_file(out, text.data, text.size, 0644, err);
    vd_buf_free(&text);
    return status;
}
