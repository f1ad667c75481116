/* This file finds the first section in which the rounding logs of two runs differ. */
#include <string.h>

#include "verde/log/emitter.h"
#include "verde/log/program.h"

/* The node that a section of a step's log belongs to. */
static uint32_t node_of(const vd_graph *g, uint64_t section) {
    uint32_t node = 0;
    while (node + 1 < g->node_count && vd_graph_sections(g, node + 1) <= section)
        node++;
    return node;
}

typedef struct {
    const vd_diverge_side *side;
    vd_divergence *out;
    vd_err *err;
} comparison;

static const vd_graph *graph_of(const comparison *c) {
    const vd_program *program = c->side[0].program;
    return c->out->step < 0 ? &program->init : &program->step;
}

/* Reads the section of both sides. *named: the logs of a side are not those it commits to. */
static vd_status read_sections(const comparison *c, uint32_t checkpoint, uint64_t section,
                               vd_section_proof proof[2], bool *named) {
    vd_status status = VD_OK;
    for (int side = 0; side < 2 && status == VD_OK && !*named; side++) {
        const vd_diverge_side *s = &c->side[side];
        const vd_emitted_source *served = s->source.served;
        bool fits = true;
        status = served->section(served->user, c->out->step, section, &proof[side], c->err);
        if (status == VD_OK)
            continue;
        vd_err why = {0};
        const vd_status judged = s->emitted_fits(s->user, checkpoint, &fits, &why);
        *named = c->out->broken[side] = judged == VD_OK && !fits;
        status = *named ? VD_OK : status;
    }
    return status;
}

/* Compares a section; with `all`, the root over the step's, which does not contain runs' names. */
static vd_status compare(const comparison *c, uint32_t checkpoint, uint64_t section, bool all,
                         bool *differs, bool *named) {
    vd_section_proof proof[2] = {0};
    const vd_status status = read_sections(c, checkpoint, section, proof, named);
    if (status == VD_OK && !*named)
        *differs =
            all ? !vd_hash_equal(&proof[0].tree_root, &proof[1].tree_root)
                : proof[0].bytes.size != proof[1].bytes.size ||
                      memcmp(proof[0].bytes.data, proof[1].bytes.data, proof[0].bytes.size) != 0;
    vd_buf_free(&proof[0].bytes);
    vd_buf_free(&proof[1].bytes);
    return status;
}

static vd_status look_at_step(const comparison *c, uint32_t checkpoint, bool *differs,
                              bool *named) {
    const vd_graph *g = graph_of(c);
    const uint64_t count = vd_graph_sections(g, g->node_count);
    vd_status status = count ? compare(c, checkpoint, 0, true, differs, named) : VD_OK;
    bool here = false;
    for (uint64_t i = 0; *differs && i < count && status == VD_OK && !here; i++) {
        status = compare(c, checkpoint, i, false, &here, named);
        c->out->section = i;
    }
    return status;
}

vd_status vd_log_compare_emitted(const vd_diverge_side side[2], uint32_t checkpoint,
                                 vd_divergence *out, bool *found, vd_err *err) {
    const comparison c = {side, out, err};
    const vd_program *program = side[0].program;
    const int64_t first = checkpoint ? vd_run_leaf_step(program, checkpoint - 1) : -1;
    const int64_t last = checkpoint ? vd_run_leaf_step(program, checkpoint) - 1 : -1;
    bool differs = false, named = false;
    vd_status status = VD_OK;
    for (int64_t step = first; step <= last && status == VD_OK && !differs && !named; step++) {
        out->step = step;
        status = look_at_step(&c, checkpoint, &differs, &named);
    }
    *found = status == VD_OK && (differs || named);
    out->has_step = *found && differs;
    if (!*found)
        return status;
    out->kind = differs ? VD_DIVERGE_EMITTED : VD_DIVERGE_EMITTED_NAMED;
    if (differs)
        out->node[0] = out->node[1] = node_of(graph_of(&c), out->section);
    return VD_OK;
}
