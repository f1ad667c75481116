/* Shows the element in dispute: what each provider states, what the reference computes, and its
 * terms. */
#include <string.h>

#include "verde/page/internal.h"

static void put_value(vd_buf *out, const vd_place *at, uint32_t bits) {
    char text[VD_F32_TEXT];
    vd_place_text(at, bits, text);
    vd_printf(out, "<code>%s</code>", text);
}

/* Maps a float's bits to its position in the order of all floats. */
static int64_t order_of(uint32_t bits) {
    return bits & UINT32_C(0x80000000) ? -(int64_t)(bits & UINT32_C(0x7fffffff)) : (int64_t)bits;
}

static bool is_number(uint32_t bits) {
    return (bits & UINT32_C(0x7f800000)) != UINT32_C(0x7f800000);
}

static void put_distance(vd_buf *out, const vd_place *at, uint32_t bits) {
    if (!at->computed || at->rounded)
        return;
    if (bits == at->expected) {
        vd_printf(out, "<span class=\"good\">the same bits</span>");
    } else if (at->dtype == RO_F32 && is_number(bits) && is_number(at->expected)) {
        const int64_t apart = order_of(bits) - order_of(at->expected);
        vd_printf(out, "<span class=\"bad\">");
        vd_page_count(out, apart < 0 ? -apart : apart);
        vd_printf(out, " float%s %s</span>", apart == 1 || apart == -1 ? "" : "s",
                  apart < 0 ? "below" : "above");
    } else {
        vd_printf(out, "<span class=\"bad\">other bits</span>");
    }
}

static void put_row(vd_buf *out, const vd_place *at, const char *who, uint32_t bits,
                    bool compared) {
    vd_printf(out, "<tr>");
    vd_html_cell(out, "who", "");
    vd_printf(out, "%s</td>", who);
    vd_html_cell(out, "value", "");
    put_value(out, at, bits);
    vd_printf(out, "</td>");
    vd_html_cell(out, "against the reference", "");
    if (compared)
        put_distance(out, at, bits);
    vd_printf(out, "</td></tr>\n");
}

static void put_values(vd_page_watch *w, const vd_place *at) {
    vd_buf *out = &w->element;
    uint32_t provider[2] = {0, 0};
    const bool pair = vd_page_pair(&w->verdict->outcome, provider);
    vd_printf(out, "<div class=\"card\"><table><thead><tr><th>who<th>value<th>against the "
                   "reference</thead>\n");
    for (uint32_t i = 0; i < (pair ? 2u : 1u); i++) {
        char who[32];
        snprintf(who, sizeof who, "provider %u", provider[i] + 1);
        put_row(out, at, who, at->value[i], true);
    }
    if (at->computed)
        put_row(out, at, "the reference", at->expected, false);
    vd_printf(out, "</table>");
    if (at->rounded) {
        vd_printf(out, "<p>A free operator: a device may have from ");
        put_value(out, at, at->possible[0]);
        vd_printf(out, " to ");
        put_value(out, at, at->possible[1]);
        vd_printf(out, ".</p>");
    }
    vd_printf(out, "</div>\n");
}

static void put_term(vd_page_watch *w, const ro_shape *shape, const vd_page_term *t) {
    vd_buf *out = &w->element;
    const vd_place as = {.dtype = shape->dtype};
    vd_printf(out, "<tr>");
    vd_html_cell(out, "input", "");
    vd_printf(out, "%d</td>", t->input + 1);
    vd_html_cell(out, "its element", "number");
    vd_page_count(out, t->index);
    vd_printf(out, "</td>");
    vd_html_cell(out, "value", "");
    put_value(out, &as, t->bits);
    vd_printf(out, "</td></tr>\n");
}

static void put_terms(vd_page_watch *w, const vd_program *program, const vd_graph *graph,
                      uint32_t node) {
    vd_buf *out = &w->element;
    const uint64_t shown = w->terms < VD_PAGE_TERMS ? w->terms : VD_PAGE_TERMS;
    vd_printf(out, "<details class=\"card\"><summary>What the reference computed it from: ");
    vd_page_count(out, (int64_t)w->terms);
    vd_printf(out,
              " element%s of %s inputs%s</summary>\n<table><thead><tr><th>input"
              "<th class=\"number\">its element<th>value</thead>\n",
              w->terms == 1 ? "" : "s", w->verdict->fraud ? "stated" : "agreed",
              shown < w->terms ? ", the first of them here" : "");
    for (uint64_t i = 0; i < shown; i++)
        if (w->term[i].input < vd_node_stored(graph, node)->input_count)
            put_term(w,
                     vd_value_shape(program, graph, vd_node_input(graph, node, w->term[i].input)),
                     &w->term[i]);
    vd_printf(out, "</table></details>\n");
}

void vd_page_element(vd_page_watch *w, const vd_program *program) {
    const vd_place *at = vd_page_place(&w->verdict->outcome);
    const vd_graph *graph = at->step < 0 ? &program->init : &program->step;
    if (at->element < 0 || at->node < 0 || at->node >= graph->node_count)
        return;
    put_values(w, at);
    /* Only the last computation is recorded. After a second hearing it is of another place. */
    if (w->terms && w->verdict->outcome.challenge.end < VD_CHALLENGE_FAILED)
        put_terms(w, program, graph, (uint32_t)at->node);
}
