/* Writes a page for people: what was compared, a table of five rows, and plots; everything else is
 * folded. It needs no other file, and is well-formed XML except for its first line. */
#include <math.h>
#include <stdlib.h>

#include "bench/determinism/plots.h"
#include "verde/base/html.h"

/* Follows the style sheet of all pages: colours of the five rows, plots, and one column of text. */
static const char style[] =
    ":root{--paper:var(--card);--rule:var(--line);--f32:#c2410c;--f64:#1d6fb8;--trainer:#0a7f5a;"
    "--auditor:#9a4fa8;--fixed:#1d2126}\n"
    "@media (prefers-color-scheme:dark){:root{--f32:#fb923c;--f64:#60a5fa;--trainer:#34d399;"
    "--auditor:#d8a0e4;--fixed:#f3f4f6}}\n"
    "body{max-width:1120px;margin:0 auto;padding:28px 24px 48px}h1{text-wrap:balance}\n"
    "p.note,figcaption,caption{color:var(--soft);font-size:.85rem}\n"
    "table{margin:1.2rem 0 .3rem}th,td{text-align:right;font-variant-numeric:tabular-nums;"
    "vertical-align:top}thead th{vertical-align:bottom;white-space:normal}"
    "th:first-child,td.words,th.words{text-align:left}caption{caption-side:bottom;text-align:left;"
    "padding-top:.4rem}tbody th{color:var(--ink)}tbody th small{display:block;font-weight:400;"
    "color:var(--soft)}\n"
    ".key{width:.7em;height:.7em;border:0;border-radius:2px;margin-right:.5em}"
    ".legend{font-size:.8rem;margin:.3rem 0}.legend span{margin-right:.9em}"
    ".key.f32{background:var(--f32)}.key.f64{background:var(--f64)}"
    ".key.trainer{background:var(--trainer)}.key.auditor{background:var(--auditor)}"
    ".key.fixed{background:var(--fixed)}.yes{color:var(--good);font-weight:600}"
    ".no{color:var(--bad);font-weight:600}\n"
    ".plots{display:grid;grid-template-columns:1fr 1fr;gap:1.5rem 2rem;align-items:start;"
    "margin-top:1.8rem}figure{margin:0;break-inside:avoid}figcaption b{color:var(--ink)}"
    "svg{margin-top:.4rem}svg .tick{fill:var(--soft)}svg .grid{stroke:var(--rule);fill:none}"
    "svg .line{fill:none;stroke-width:1.8}svg .range{stroke:var(--ink);fill:none;opacity:.7}"
    "svg .paper{fill:var(--back)}\n"
    "svg .line.f32{stroke:var(--f32)}svg .line.f64{stroke:var(--f64)}"
    "svg .line.trainer{stroke:var(--trainer)}svg .line.auditor{stroke:var(--auditor)}"
    "svg .line.fixed{stroke:var(--fixed)}\n"
    "svg .fill.f32{fill:var(--f32)}svg .fill.f64{fill:var(--f64)}"
    "svg .fill.trainer{fill:var(--trainer)}svg .fill.auditor{fill:var(--auditor)}"
    "svg .fill.fixed{fill:var(--fixed)}\n"
    "pre{font-size:.72rem;line-height:1.35;overflow-x:auto;white-space:pre}"
    "pre.text{white-space:pre-wrap;font:inherit;font-size:.9rem}\n"
    "tbody tr:last-child th{border-bottom:0}@media(max-width:1120px){td{text-align:left}tbody "
    "th{grid-column:1/-1;text-align:left;border:0;padding:0}"
    "caption{display:block}td.empty{display:none}}\n"
    "@media(max-width:700px){.plots{grid-template-columns:1fr}}\n"
    "@media print{:root{--fixed:#000}html{font-size:10.5px}body{max-width:none;padding:0;"
    "font-size:1rem}details,h2{display:none}.plots{grid-template-columns:1fr 1fr;"
    "gap:.8rem 1.5rem;margin-top:1rem}.key{print-color-adjust:exact;"
    "-webkit-print-color-adjust:exact}}\n";

/* ---- text ---- */

static void escape(FILE *to, const char *text) {
    for (; *text; text++)
        switch (*text) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        case '"': fputs("&quot;", to); break;
        default: fputc(*text, to);
        }
}

typedef void (*printer)(const benchmark *b, FILE *to);

/* Writes the output of a printer as a folded section. */
static void fold(const benchmark *b, const char *title, const char *class, printer print,
                 FILE *to) {
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        die("out of memory");
    print(b, memory);
    if (fclose(memory) != 0)
        die("out of memory");
    fprintf(to, "<details><summary>%s</summary><pre class=\"%s\">", title, class);
    escape(to, text);
    fputs("</pre></details>\n", to);
    free(text);
}

static void introduction(const benchmark *b, FILE *to) {
    static const char *const number[] = {"no", "one", "two", "three", "four", "five"};
    int kinds = 0;
    for (int kind = 0; kind < WAY_KINDS; kind++)
        kinds += first_of(b, (variant_kind)kind, 0) >= 0;
    fprintf(to,
            "<h1>Rounding logs and a fixed order: %s</h1>\n"
            "<p>One training job (%s, batch %ld%s, %ld step%s) ran in %s ways on one machine: ",
            title_of(b), title_of(b), b->batch, b->sequence > 1 ? " sequences" : " images",
            b->steps, b->steps == 1 ? "" : "s", number[kinds]);
    escape(to, b->machine);
    fprintf(
        to,
        ". Each way had %ld thread%s, but for those of the fixed order that say another number. "
        "The free ways add in the order of a device, here of a simulated profile; with a log, "
        "a trainer records "
        "how it rounded, and an auditor on another device rounds the same way; the fixed order "
        "is that of RepOps. ",
        b->threads, b->threads == 1 ? "" : "s");
    if (b->interval == 1)
        fputs("After every step the whole states were compared, bit by bit.</p>\n", to);
    else
        fprintf(to, "After every %ld steps the whole states were compared, bit by bit.</p>\n",
                b->interval);
}

/* ---- the table ---- */

static void cell(FILE *to, const char *name, const char *format, double value) {
    fprintf(to, "<td data-name=\"%s\">", name);
    fprintf(to, format, value);
    fputs("</td>", to);
}

static void empty_cell(FILE *to, const char *name, const char *text) {
    fprintf(to, "<td class=\"empty\" data-name=\"%s\">%s</td>", name, text);
}

static void figures(const way_row *row, const summary *s, FILE *to) {
    const bool logs = row->kind == LOG_TRAINER || row->kind == LOG_AUDITOR;
    cell(to, "Time over free binary64", "%.2f", s->ratio[1]);
    cell(to, "Step, ms", s->seconds < 0.1 ? "%.2f" : "%.0f", 1e3 * s->seconds);
    cell(to, "Memory, MB", "%.0f", (double)s->peak_bytes / 1e6);
    if (logs)
        cell(to, "Log of a step, kB", s->log_bytes < 1e5 ? "%.1f" : "%.0f", s->log_bytes / 1e3);
    else
        empty_cell(to, "Log of a step, kB", "none");
    if (isfinite(row->corrected))
        cell(to, "Corrections a step", "%.3g", row->corrected);
    else
        empty_cell(to, "Corrections a step", "&#8211;");
}

static void table_row(const benchmark *b, const way_row *row, FILE *to) {
    static const char *const classes[] = {"words", "words no", "words yes"};
    fprintf(to, "<tr><th scope=\"row\"><span class=\"key %s\"></span>%s", colour[row->kind],
            row->name);
    if (row->shown < 0) {
        fputs("</th>", to);
        for (int i = 0; i < 5; i++)
            empty_cell(to, "", "&#8211;");
    } else {
        const variant *v = &b->variant[row->shown];
        fprintf(to, "<small>%s</small></th>", detail_of(v));
        figures(row, &v->sum, to);
    }
    fprintf(to, "<td class=\"%s\" data-name=\"Same state\">%s</td></tr>\n", classes[row->same],
            row->words);
}

static void table(const benchmark *b, FILE *to) {
    fputs("<table id=\"ways\"><thead><tr><th scope=\"col\">Way</th>"
          "<th scope=\"col\">Time over free binary64</th><th scope=\"col\">Step, ms</th>"
          "<th scope=\"col\">Memory, MB</th><th scope=\"col\">Log of a step, kB</th>"
          "<th scope=\"col\">Corrections a step</th>"
          "<th scope=\"col\" class=\"words\">Same state everywhere</th></tr></thead>\n<tbody>\n",
          to);
    for (int kind = 0; kind < WAY_KINDS; kind++) {
        const way_row row = row_of(b, (variant_kind)kind);
        table_row(b, &row, to);
    }
    fprintf(to,
            "</tbody>\n<caption>Each row shows one run, named below the way; of the auditors the "
            "one of median time. Times are medians of %s time over all steps. Corrections are the "
            "mean of all auditors. Memory is the peak of one process.</caption></table>\n",
            b->cpu ? "processor" : "wall");
}

/* ---- all ---- */

static void details(const benchmark *b, FILE *to) {
    fputs("<h2>Details</h2>\n", to);
    fold(b, "What the numbers say, in sentences", "text", print_words, to);
    fold(b, "Every way that ran, the scalar ones too", "table", print_ways, to);
    fold(b, "Roundings by operator", "table", print_operators, to);
    fputs("<p class=\"note\">All figures are in result.json, beside this page, which was made from "
          "it.</p>\n",
          to);
}

bool write_page(const benchmark *b, const char *path) {
    FILE *to = fopen(path, "w");
    if (!to)
        return false;
    fprintf(to,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
            "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n"
            "<title>Rounding logs and a fixed order: %s</title>\n<style>\n%s%s</style></head>\n"
            "<body>\n",
            title_of(b), vd_html_style, style);
    introduction(b, to);
    table(b, to);
    fputs("<div class=\"plots\">\n", to);
    plot_distance(b, to);
    plot_time(b, to);
    plot_loss(b, to);
    plot_logs(b, to);
    fputs("</div>\n", to);
    details(b, to);
    fputs("</body></html>\n", to);
    return fclose(to) == 0;
}
