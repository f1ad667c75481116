/* Draws the graph around the node in dispute: what it reads, and what reads it. */
#include <string.h>

#include "verde/graph/print.h"
#include "verde/page/internal.h"

enum { BOX_W = 290, BOX_H = 58, GAP_X = 65, GAP_Y = 14, BEND = 16, NAME_MAX = 40 };

typedef struct {
    vd_buf *out;
    const vd_program *program;
    const vd_graph *graph;
    uint32_t sources;
} drawing;

/* Shortens a long name from its beginning: the end says more. */
static void put_name(vd_buf *out, const char *name) {
    const size_t length = strlen(name);
    if (length > NAME_MAX)
        vd_printf(out, "&#8230;");
    vd_html_text(out, length > NAME_MAX ? name + length - NAME_MAX : name);
}

static void put_label(const drawing *d, uint32_t value) {
    uint32_t index;
    if (value >= d->sources) {
        put_name(d->out, vd_node_name(d->graph, value - d->sources).text);
        return;
    }
    switch (vd_source_of(d->program, d->graph, value, &index)) {
    case VD_SOURCE_STATE: put_name(d->out, d->program->leaf[index].name); break;
    case VD_SOURCE_DATA: put_name(d->out, d->program->data[index].tensor.name); break;
    case VD_SOURCE_STEP: vd_printf(d->out, "step"); break;
    }
}

static const char *kind_of(const drawing *d, uint32_t value) {
    uint32_t index;
    if (value >= d->sources)
        return ro_op_describe(vd_node_stored(d->graph, value - d->sources)->op)->name;
    switch (vd_source_of(d->program, d->graph, value, &index)) {
    case VD_SOURCE_STATE: return "state";
    case VD_SOURCE_DATA: return "data";
    default: return "the step's number";
    }
}

static void put_box(const drawing *d, uint32_t value, int x, int y, const char *class) {
    vd_printf(d->out,
              "<g><rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"8\"/>"
              "<text x=\"%d\" y=\"%d\">",
              class, x, y, BOX_W, BOX_H, x + 12, y + 24);
    put_label(d, value);
    vd_printf(d->out, "</text><text class=\"soft\" x=\"%d\" y=\"%d\">%s ", x + 12, y + 44,
              kind_of(d, value));
    vd_print_shape(d->out, vd_value_shape(d->program, d->graph, value));
    if (value >= d->sources)
        vd_printf(d->out, ", node %u", value - d->sources);
    vd_printf(d->out, "</text></g>\n");
}

static void put_edge(const drawing *d, int x, int y, int to_x, int to_y) {
    const int middle = (x + to_x) / 2;
    vd_printf(d->out, "<path class=\"edge\" d=\"M%d %dC%d %d %d %d %d %d\"/>\n", x, y, middle, y,
              middle, to_y, to_x, to_y);
}

/* Lists the values that a node reads, each once. */
static uint32_t read_by(const drawing *d, uint32_t node, uint32_t *value) {
    uint32_t count = 0;
    for (int32_t k = 0; k < vd_node_stored(d->graph, node)->input_count; k++) {
        const uint32_t input = vd_node_input(d->graph, node, k);
        bool there = false;
        for (uint32_t i = 0; i < count; i++)
            there |= value[i] == input;
        if (!there && count < VD_PAGE_INPUTS)
            value[count++] = input;
    }
    return count;
}

static uint32_t readers_of(const drawing *d, uint32_t node, uint32_t *value) {
    uint32_t count = 0;
    for (uint32_t i = node + 1; i < d->graph->node_count && i - node < VD_PAGE_SCAN; i++)
        for (int32_t k = 0; k < vd_node_stored(d->graph, i)->input_count; k++) {
            if (vd_node_input(d->graph, i, k) != d->sources + node)
                continue;
            if (count == VD_PAGE_USERS)
                return count;
            value[count++] = d->sources + i;
            break;
        }
    return count;
}

static int column_height(uint32_t count) {
    return (int)count * (BOX_H + GAP_Y) - GAP_Y;
}

/* What is drawn: a node, the values that it reads, and the nodes that read it. */
typedef struct {
    uint32_t node, inputs, readers; /* values; numbers of values */
    uint32_t input[VD_PAGE_INPUTS], reader[VD_PAGE_USERS];
    const char *class; /* CSS class of the inputs */
} around;

/* ---- from left to right ---- */

static void put_column(const drawing *d, const uint32_t *value, uint32_t count, int x, int height,
                       const char *class, bool left) {
    const int top = (height - column_height(count)) / 2;
    const int edge = BOX_W + GAP_X;
    for (uint32_t i = 0; i < count; i++) {
        const int y = top + (int)i * (BOX_H + GAP_Y) + 2;
        if (left)
            put_edge(d, x + BOX_W, y + BOX_H / 2, edge, height / 2 + 2);
        else
            put_edge(d, edge + BOX_W, height / 2 + 2, x, y + BOX_H / 2);
        put_box(d, value[i], x, y, class);
    }
}

static void put_across(const drawing *d, const around *a) {
    const uint32_t most = a->inputs > a->readers ? a->inputs : a->readers;
    const int height = column_height(most > 0 ? most : 1);
    vd_printf(d->out,
              "<svg class=\"across\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"the graph "
              "around the node\">\n",
              3 * BOX_W + 2 * GAP_X + 4, height + 4);
    put_column(d, a->input, a->inputs, 2, height, a->class, true);
    put_column(d, a->reader, a->readers, 2 * (BOX_W + GAP_X), height, "after", false);
    put_box(d, a->node, BOX_W + GAP_X, (height - BOX_H) / 2 + 2, "differs");
    vd_printf(d->out, "</svg>");
}

/* ---- from top to bottom, for narrow windows ---- */

static int row_at(uint32_t row) {
    return 2 + (int)row * (BOX_H + GAP_Y);
}

/* Draws an edge around the boxes between two rows: left to the node, right from it. */
static void put_bend(const drawing *d, uint32_t from, uint32_t to, bool left) {
    const int y = row_at(from) + BOX_H / 2, to_y = row_at(to) + BOX_H / 2;
    const int x = left ? BEND : BEND + BOX_W, out = left ? BEND - 14 : BEND + BOX_W + 14;
    vd_printf(d->out, "<path class=\"edge\" d=\"M%d %dH%dV%dH%d\"/>\n", x, y, out, to_y, x);
}

static void put_down(const drawing *d, const around *a) {
    const uint32_t rows = a->inputs + 1 + a->readers;
    vd_printf(d->out,
              "<svg class=\"down\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"the graph "
              "around the node\">\n",
              BOX_W + 2 * BEND, row_at(rows));
    for (uint32_t i = 0; i < a->inputs; i++) {
        put_bend(d, i, a->inputs, true);
        put_box(d, a->input[i], BEND, row_at(i), a->class);
    }
    for (uint32_t i = 0; i < a->readers; i++) {
        put_bend(d, a->inputs, a->inputs + 1 + i, false);
        put_box(d, a->reader[i], BEND, row_at(a->inputs + 1 + i), "after");
    }
    put_box(d, a->node, BEND, row_at(a->inputs), "differs");
    vd_printf(d->out, "</svg>");
}

/* ---- both layouts ---- */

/* Returns true if the inputs are agreed: otherwise no element was examined. */
static bool inputs_agreed(const vd_place *at) {
    return at->element >= 0;
}

void vd_page_graph(vd_page_watch *w, const vd_program *program) {
    const vd_place *at = vd_page_place(&w->verdict->outcome);
    const vd_graph *graph = at->step < 0 ? &program->init : &program->step;
    const bool agreed = inputs_agreed(at);
    if (at->step == VD_NO_STEP || at->node < 0 || at->node >= graph->node_count)
        return;
    const uint32_t node = (uint32_t)at->node;
    const drawing d = {&w->graph, program, graph, vd_source_count(program, graph)};
    around a = {.node = d.sources + node, .class = agreed ? "agreed" : "after"};
    a.inputs = read_by(&d, node, a.input);
    a.readers = readers_of(&d, node, a.reader);
    vd_printf(d.out, "<div class=\"card\">");
    put_across(&d, &a);
    put_down(&d, &a);
    vd_printf(d.out,
              "<p class=\"soft legend\">%s<span><i class=\"key differs\"></i>%s</span><span><i "
              "class=\"key\"></i>not looked at</span></p></div>\n",
              !agreed ? ""
              : w->verdict->fraud
                  ? "<span><i class=\"key agreed\"></i>as the provider states</span>"
                  : "<span><i class=\"key agreed\"></i>agreed</span>",
              w->verdict->fraud ? "judged" : "differs");
}
