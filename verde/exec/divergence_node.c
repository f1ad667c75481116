/* This file finds the first node of a step that differs, by the records of both traces. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/divergence_internal.h"

typedef struct {
    const vd_records *records[2];
    vd_node_record *record[2]; /* the current record of each side */
    vd_hash *leaf[2];          /* commitments of the state before the step */
} traces;

/* Gets both traces. A source keeps its trace from one question to the next. */
static vd_status open_traces(const vd_parting *p, traces *t) {
    vd_status status = VD_OK;
    *t = (traces){0};
    for (int side = 0; side < 2 && status == VD_OK; side++) {
        const vd_source *s = &p->side[side].source;
        t->record[side] = malloc(sizeof *t->record[side]);
        status = t->record[side] ? s->trace(s->user, p->out->step, &t->records[side], p->err)
                                 : vd_parting_memory(p);
    }
    return status;
}

static void close_traces(traces *t) {
    for (int side = 0; side < 2; side++)
        free(t->record[side]);
}

static vd_status take(const vd_parting *p, const traces *t, int side, uint32_t node) {
    size_t size;
    if (node < t->records[side]->count) {
        const uint8_t *bytes = vd_records_at(t->records[side], node, &size);
        if (vd_record_decode(bytes, size, t->record[side]))
            return VD_OK;
    }
    return vd_fail(p->err, VD_ERR_PEER, "record %u of step %lld is malformed", node,
                   (long long)p->out->step);
}

/* Lists the commitments of each side's next state from its records. All leaves are nodes' outputs,
 * never data or the step's number (PROTOCOL.md section 1.3). */
static vd_status list_next(const vd_parting *p, const traces *t, vd_hash *next[2]) {
    vd_status status = VD_OK;
    for (int side = 0; side < 2; side++) {
        const vd_graph *g = vd_parting_graph(p, side);
        const uint32_t sources = vd_source_count(p->side[side].program, g);
        for (uint32_t i = 0; i < p->side[side].program->leaf_count && status == VD_OK; i++) {
            status = take(p, t, side, g->output[i] - sources);
            if (status == VD_OK)
                next[side][i] = t->record[side]->output;
        }
    }
    return status;
}

/* Whether a record is of another node than the side's program has at this place. */
static vd_status look_at_descriptor(const vd_parting *p, const traces *t, int side, uint32_t node,
                                    bool *other) {
    vd_buf bytes = {0};
    vd_hash own;
    vd_node_encode(p->side[side].program, vd_parting_graph(p, side), node, &bytes);
    const bool made = vd_buf_ok(&bytes) && vd_descriptor_hash(bytes.data, bytes.size, &own);
    vd_buf_free(&bytes);
    *other = made && !vd_hash_equal(&own, &t->record[side]->descriptor);
    return made ? VD_OK : vd_parting_memory(p);
}

static vd_status describe(vd_parting *p, const traces *t, uint32_t a, uint32_t b) {
    const vd_node_record *x = t->record[0], *y = t->record[1];
    vd_divergence *out = p->out;
    out->node[0] = a;
    out->node[1] = b;
    out->compares_inputs = x->input_count == y->input_count;
    out->inputs = x->input_count;
    for (uint32_t i = 0; out->compares_inputs && i < x->input_count; i++) {
        if (vd_hash_equal(&x->input[i], &y->input[i]))
            continue;
        if (out->inputs_differ++ == 0)
            out->first_input = i;
    }
    vd_status status = look_at_descriptor(p, t, 0, a, &out->other_node[0]);
    return status == VD_OK ? look_at_descriptor(p, t, 1, b, &out->other_node[1]) : status;
}

/* Finds the first pair whose outputs differ, or, with `any`, whose nodes differ though outputs do
 * not. */
static vd_status find(vd_parting *p, const traces *t, bool any, bool *found) {
    const uint32_t count = vd_parting_graph(p, 0)->node_count;
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < count && status == VD_OK && !*found; i++) {
        const uint32_t k = vd_parting_node(p, i);
        if (k == VD_UNPAIRED)
            continue;
        status = take(p, t, 0, i);
        if (status == VD_OK)
            status = take(p, t, 1, k);
        if (status != VD_OK)
            break;
        *found =
            any ? !p->pairs && !vd_hash_equal(&t->record[0]->descriptor, &t->record[1]->descriptor)
                : !vd_hash_equal(&t->record[0]->output, &t->record[1]->output);
        if (*found)
            status = describe(p, t, i, k);
    }
    return status;
}

vd_status vd_parting_find_node(vd_parting *p, vd_hash *next[2], bool *found) {
    traces t = {0};
    *found = false;
    vd_status status = open_traces(p, &t);
    if (status == VD_OK && next)
        status = list_next(p, &t, next);
    if (status == VD_OK)
        status = find(p, &t, false, found);
    if (status == VD_OK && !*found)
        status = find(p, &t, true, found);
    close_traces(&t);
    return status;
}
