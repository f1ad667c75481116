/* Shows how a dispute was narrowed: a bar for each level, with the place marked on it. */
#include "verde/exec/source.h"
#include "verde/page/internal.h"

enum { WIDTH = 1000, HEIGHT = 22 };

typedef struct {
    vd_level level;
    const char *name;            /* such as "step" */
    int64_t at, from, to, count; /* from..to is marked; both providers agree on what is before it */
    bool agreed_before;
} level;

static double place_of(const level *l, int64_t at) {
    return l->count > 0 ? WIDTH * (double)at / (double)l->count : 0;
}

static void put_bar(vd_buf *out, const level *l) {
    const double from = place_of(l, l->from), to = place_of(l, l->to);
    const double width = to - from < 4 ? 4 : to - from;
    vd_printf(out,
              "<svg viewBox=\"0 0 %d %d\" role=\"img\" preserveAspectRatio=\"none\" class=\"bar\">"
              "<rect class=\"track\" width=\"%d\" height=\"%d\" rx=\"4\"/>",
              WIDTH, HEIGHT, WIDTH, HEIGHT);
    if (l->agreed_before && from > 0)
        vd_printf(out, "<rect class=\"kept\" width=\"%.2f\" height=\"%d\" rx=\"4\"/>", from,
                  HEIGHT);
    vd_printf(out, "<rect class=\"mark\" x=\"%.2f\" width=\"%.2f\" height=\"%d\" rx=\"2\"/></svg>",
              from + width > WIDTH ? WIDTH - width : from, width, HEIGHT);
}

static void put_taken(vd_page_watch *w, vd_level at) {
    vd_buf *out = &w->where;
    if (!w->questions[at])
        return;
    vd_printf(out, " <span class=\"soft\">%s ", w->verdict->fraud ? "by" : "found by");
    vd_page_count(out, (int64_t)w->questions[at]);
    vd_printf(out, " statement%s, ", w->questions[at] == 1 ? "" : "s");
    vd_page_bytes(out, w->bytes[at]);
    if (w->verdict->cost.level_seconds[at] > 0)
        vd_printf(out, ", %.3f s", w->verdict->cost.level_seconds[at]);
    vd_printf(out, "</span>");
}

/* Writes a level without a bar. */
static void put_line(vd_page_watch *w, vd_level at, const char *what, const char *more) {
    if (!w->questions[at])
        return;
    vd_printf(&w->where, "<div><b>%s</b> %s", what, more);
    put_taken(w, at);
    vd_printf(&w->where, "</div>\n");
}

static void put_level(vd_page_watch *w, const level *l) {
    vd_buf *out = &w->where;
    vd_printf(out, "<div class=\"level\"><b>%s ", l->name);
    vd_page_count(out, l->at);
    vd_printf(out, "</b> of ");
    vd_page_count(out, l->count);
    put_taken(w, l->level);
    put_bar(out, l);
    vd_printf(out, "</div>\n");
}

static void put_one(vd_page_watch *w, vd_level name, const char *what, int64_t at, int64_t count,
                    bool agreed) {
    put_level(w, &(level){name, what, at, at, at + 1, count, agreed});
}

static void put_part(vd_page_watch *w, const vd_program *program, const vd_graph *graph,
                     const vd_place *at) {
    vd_fold fold;
    if (at->part >= 0 && vd_fold_open(&fold, program, graph, (uint32_t)at->node, at->element))
        put_one(w, VD_LEVEL_PART, "Part", at->part, (int64_t)fold.parts, true);
}

/* Writes which item of a job with many programs it is. */
static void put_item(vd_page_watch *w, const vd_place *at) {
    if (at->item < 0)
        return;
    vd_printf(&w->where, "<div><b>%s ", at->answers ? "Batch" : "Prompt");
    vd_page_count(&w->where, at->item + 1);
    vd_printf(&w->where, "</b>");
    put_taken(w, VD_LEVEL_ITEM);
    vd_printf(&w->where, "</div>\n");
}

/* Writes which game it is, if there are more than two providers. */
static void put_which_game(vd_page_watch *w, const vd_place *at) {
    const vd_outcome *o = &w->verdict->outcome;
    for (uint32_t i = 0; i < o->game_count; i++)
        if (o->party_count > 2 && at == &o->game[i].place)
            vd_printf(&w->where,
                      "<div class=\"soft\">The place of game %u, the last that came to one. What "
                      "it took is of all games.</div>\n",
                      i + 1);
}

void vd_page_where(vd_page_watch *w, const vd_program *program) {
    const vd_place *at = vd_page_place(&w->verdict->outcome);
    if (at->step == VD_NO_STEP)
        return;
    const vd_graph *graph = at->step < 0 ? &program->init : &program->step;
    const bool alone = w->verdict->fraud; /* what is before the place was not compared */
    vd_printf(&w->where, "<div class=\"card levels\">\n");
    put_which_game(w, at);
    put_line(w, VD_LEVEL_CLAIM, alone ? "The run&#39;s root" : "The roots of the runs",
             alone ? "was stated" : "differ");
    put_item(w, at);
    if (at->step < 0)
        vd_printf(&w->where, "<div><b>Initialisation</b> <span class=\"soft\">before the first "
                             "step</span></div>\n");
    else
        put_one(w, VD_LEVEL_STEP, "Step", at->step, program->steps, !alone);
    if (at->node >= 0 && at->node < graph->node_count) {
        put_one(w, VD_LEVEL_NODE, "Node", at->node, graph->node_count, !alone);
        if (at->element >= 0)
            put_one(w, VD_LEVEL_ELEMENT, "Element", at->element,
                    ro_shape_numel(&vd_node_stored(graph, (uint32_t)at->node)->shape), !alone);
        if (at->element >= 0)
            put_part(w, program, graph, at);
    }
    put_line(w, VD_LEVEL_LOG, "The rounding log", "was read");
    put_line(w, VD_LEVEL_CHALLENGE, "A second run", "was asked for");
    vd_printf(
        &w->where,
        "<p class=\"soft legend\">%s<span><i class=\"key differs\"></i>%s</span></p>\n</div>\n",
        alone ? "" : "<span><i class=\"key agreed\"></i>agreed before</span>",
        alone ? "the place" : "the first difference");
}
