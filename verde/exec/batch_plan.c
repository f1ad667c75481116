/* This file plans how a pass over many programs runs the nodes of their step. */
#include <stdlib.h>
#include <string.h>

#include "repops/op_movement.h"
#include "repops/op_product.h"
#include "verde/exec/batch_internal.h"
#include "verde/exec/choice.h"

#define NONE UINT32_MAX

typedef struct {
    const vd_program *program;
    const vd_graph *graph;
    vd_batch_plan *out;
    vd_err *err;
} planner;

static vd_status refuse(const planner *p, uint32_t node, const char *why) {
    return vd_fail(p->err, VD_ERR_USAGE, "steps cannot be taken together: %s %s",
                   vd_node_name(p->graph, node).text, why);
}

static uint32_t input_of(const planner *p, uint32_t node, int32_t i) {
    return vd_node_input(p->graph, node, i);
}

static vd_batch_value *value_of(const planner *p, uint32_t value) {
    return &p->out->value[value];
}

static const ro_shape *shape_of(const planner *p, uint32_t value) {
    return vd_value_shape(p->program, p->graph, value);
}

/* ---- sources ---- */

static uint32_t leaf_named(const vd_program *program, const char *name) {
    for (uint32_t i = 0; i < program->leaf_count; i++)
        if (strcmp(program->leaf[i].name, name) == 0)
            return i;
    return NONE;
}

static vd_status take_sources(const planner *p) {
    vd_batch_plan *out = p->out;
    const ro_shape one = {RO_I32, 1, {1}};
    out->token = leaf_named(p->program, "token");
    out->stopped = vd_stopped_leaf(p->program);
    out->choice = vd_choosing_node(p->program);
    if (out->token == NONE || !ro_shape_equal(&p->program->leaf[out->token].shape, &one))
        return vd_fail(p->err, VD_ERR_USAGE,
                       "steps cannot be taken together: there is no leaf `token`, i32 [1]");
    for (uint32_t i = 0; i < out->count; i++)
        out->value[i] =
            (vd_batch_value){.held = VD_HELD_ROWS, .size = vd_shape_bytes(shape_of(p, i))};
    for (uint32_t i = 0; i + 1 < out->sources; i++) {
        uint32_t index;
        const bool state = vd_source_of(p->program, p->graph, i, &index) == VD_SOURCE_STATE;
        if (state && index != out->token)
            out->value[i].held = VD_HELD_STATE, out->value[i].leaf = index;
        if (!state)
            out->value[i].held = index < out->own_data ? VD_HELD_PROGRAM : VD_HELD_SHARED;
    }
    return VD_OK;
}

/* ---- what holds a node's value ---- */

static vd_held held_after(const planner *p, uint32_t node) {
    const vd_node *n = vd_node_stored(p->graph, node);
    vd_held held = VD_HELD_SHARED;
    if (n->input_count == 0) /* programs may differ in a single number */
        return ro_shape_numel(&n->shape) == 1 ? VD_HELD_PROGRAM : VD_HELD_SHARED;
    for (int32_t i = 0; i < n->input_count; i++) {
        const vd_held in = value_of(p, input_of(p, node, i))->held;
        if (in == VD_HELD_STATE || in == VD_HELD_ROWS)
            return VD_HELD_ROWS;
        held = in == VD_HELD_PROGRAM ? in : held;
    }
    return held;
}

static bool has_rows(const planner *p, uint32_t value) {
    const ro_shape *shape = shape_of(p, value);
    return shape->ndim > 0 && shape->dim[0] == 1;
}

static bool fits_input(const planner *p, uint32_t node, int32_t i) {
    const uint32_t value = input_of(p, node, i);
    const vd_batch_input wanted = vd_batch_input_of(vd_node_stored(p->graph, node)->op, i);
    const bool shared = value_of(p, value)->held == VD_HELD_SHARED;
    if (wanted == VD_INPUT_NONE || wanted == VD_INPUT_SHARED)
        return wanted == VD_INPUT_SHARED && shared;
    if (wanted == VD_INPUT_REPEATED && shared)
        return true;
    if (wanted == VD_INPUT_REPEATED &&
        ro_shape_numel(shape_of(p, value)) != ro_shape_numel(shape_of(p, input_of(p, node, 0))))
        return false;
    return has_rows(p, value);
}

/* Returns whether each row of the first matrix gives one row of the product. */
static bool product_by_rows(const vd_node *n) {
    if (n->op == RO_OP_MATMUL_FIXED)
        return n->attr[RO_MATMUL_FIXED_BATCH_DIMS] == 0 && !(n->attr[RO_MATMUL_FIXED_TRANS] & 1);
    return n->attr[RO_MATMUL_BATCH_DIMS] == 0 && !(n->attr[RO_MATMUL_TRANS] & 1) &&
           n->attr[RO_MATMUL_MASK] == RO_MASK_NONE;
}

/* Returns whether one call for many rows gives the same as a call per row. */
static bool runs_together(const planner *p, uint32_t node) {
    const vd_node *n = vd_node_stored(p->graph, node);
    const int axis = vd_batch_axis_of(n->op);
    const bool product = n->op == RO_OP_MATMUL || n->op == RO_OP_MATMUL_FIXED;
    if (!has_rows(p, p->out->sources + node) || (axis >= 0 && n->attr[axis] == 0) ||
        (product && !product_by_rows(n)))
        return false;
    for (int32_t i = 0; i < n->input_count; i++)
        if (!fits_input(p, node, i))
            return false;
    return true;
}

/* ---- units ---- */

static void add_unit(const planner *p, vd_unit_kind kind, uint32_t index) {
    p->out->unit[p->out->unit_count++] = (vd_unit){kind, index, false};
}

static vd_status take_node(const planner *p, uint32_t node) {
    const vd_node *n = vd_node_stored(p->graph, node);
    vd_batch_value *v = value_of(p, p->out->sources + node);
    const vd_batch_value *x = n->input_count ? value_of(p, input_of(p, node, 0)) : NULL;
    if (n->op == RO_OP_PUT_ROWS && x && x->held == VD_HELD_STATE) {
        v->held = VD_HELD_STATE, v->leaf = x->leaf;
        add_unit(p, VD_UNIT_PUT, node);
        return VD_OK;
    }
    v->held = held_after(p, node);
    if (v->held != VD_HELD_ROWS)
        p->out->once[p->out->once_count++] = node;
    else
        add_unit(p, runs_together(p, node) ? VD_UNIT_TOGETHER : VD_UNIT_EACH, node);
    return VD_OK;
}

static vd_status take_attention(const planner *p, const vd_fused *g, uint32_t group) {
    const vd_batch_value *q = value_of(p, g->input[0]);
    const vd_batch_value *k = value_of(p, g->input[1]), *v = value_of(p, g->input[2]);
    if (!g->placed || g->attention.batch != 1 || g->attention.queries != 1 ||
        q->held != VD_HELD_ROWS || k->held != VD_HELD_STATE || v->held != VD_HELD_STATE)
        return refuse(p, g->member[0], "is attention without a cache in the state");
    for (uint32_t i = 1; i < g->output_count; i++)
        if (p->out->plan.uses[g->output[i]] != 0)
            return refuse(p, g->member[0], "is attention whose sums are read");
    p->out->cache[k->leaf] = p->out->cache[v->leaf] = true;
    add_unit(p, VD_UNIT_ATTENTION, group);
    return VD_OK;
}

/* Takes a rotary group: positions may belong to rows or be shared, the rotation is shared. */
static vd_status take_rotary(const planner *p, const vd_fused *g, uint32_t group) {
    if (g->rotary.batch != 1 || value_of(p, g->input[0])->held != VD_HELD_ROWS ||
        value_of(p, g->input[2])->held != VD_HELD_SHARED)
        return refuse(p, g->member[0], "turns something else than rows");
    add_unit(p, VD_UNIT_GROUP, group);
    return VD_OK;
}

static vd_status take_group(const planner *p, uint32_t group) {
    const vd_fused *g = &p->out->plan.group[group];
    if (g->kind == VD_FUSED_ATTENTION)
        return take_attention(p, g, group);
    if (g->kind == VD_FUSED_ROTARY)
        return take_rotary(p, g, group);
    if (g->kind != VD_FUSED_LINEAR && g->kind != VD_FUSED_LAYER_NORM &&
        g->kind != VD_FUSED_RMS_NORM)
        return refuse(p, g->member[0], "is of no step that makes a token");
    for (uint32_t i = 0; i < g->input_count; i++)
        if (value_of(p, g->input[i])->held != (i ? VD_HELD_SHARED : VD_HELD_ROWS))
            return refuse(p, g->member[0], "reads what it would share");
    add_unit(p, VD_UNIT_GROUP, group);
    return VD_OK;
}

static vd_status take_nodes(const planner *p) {
    vd_plan *plan = &p->out->plan;
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < p->graph->node_count; i++) {
        const uint32_t group = plan->group_of[i];
        if (plan->idle[i] || (group != VD_NO_GROUP && plan->ran[group]))
            continue;
        if (group == VD_NO_GROUP)
            status = take_node(p, i);
        else
            plan->ran[group] = true, status = take_group(p, group);
    }
    return status;
}

/* ---- inputs and outputs of units ---- */

vd_value_list vd_batch_inputs(const vd_batch_plan *plan, const vd_graph *graph, const vd_unit *u) {
    if (u->kind == VD_UNIT_GROUP || u->kind == VD_UNIT_ATTENTION) {
        const vd_fused *g = &plan->plan.group[u->index];
        return (vd_value_list){g->input, g->input_count};
    }
    const vd_node *n = vd_node_stored(graph, u->index);
    return (vd_value_list){&graph->stored_edge[n->first_input], (uint32_t)n->input_count};
}

static vd_value_list inputs_of(const planner *p, const vd_unit *u) {
    return vd_batch_inputs(p->out, p->graph, u);
}

static bool writes(const planner *p, const vd_unit *u, const bool *wanted) {
    if (u->kind != VD_UNIT_GROUP && u->kind != VD_UNIT_ATTENTION)
        return wanted[p->out->sources + u->index];
    const vd_fused *g = &p->out->plan.group[u->index];
    for (uint32_t i = 0; i < g->output_count; i++)
        if (wanted[g->output[i]])
            return true;
    return false;
}

static void mark_every(const planner *p, const vd_unit *u) {
    if (u->kind != VD_UNIT_GROUP && u->kind != VD_UNIT_ATTENTION) {
        value_of(p, p->out->sources + u->index)->every = u->every;
        return;
    }
    const vd_fused *g = &p->out->plan.group[u->index];
    for (uint32_t i = 0; i < g->output_count; i++)
        value_of(p, g->output[i])->every = u->every;
}

/* Finds units that caches depend on, which run for all rows; others run for rows that make a
 * token. */
static vd_status find_every(const planner *p) {
    vd_status status = VD_OK;
    bool *wanted = calloc((size_t)p->out->count + 1, sizeof *wanted);
    if (!wanted)
        return vd_fail(p->err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = p->out->unit_count; i-- > 0;) {
        vd_unit *u = &p->out->unit[i];
        const bool put = u->kind == VD_UNIT_PUT;
        const bool cache = put && p->out->cache[value_of(p, p->out->sources + u->index)->leaf];
        u->every = cache || writes(p, u, wanted);
        if (u->every && put && !cache)
            status = refuse(p, u->index, "is read by what goes into a cache");
        const vd_value_list in = inputs_of(p, u);
        for (uint32_t k = 0; u->every && k < in.count; k++)
            wanted[in.value[k]] = true;
        mark_every(p, u);
    }
    value_of(p, p->out->token)->every = true;
    value_of(p, p->out->sources - 1)->every = true;
    free(wanted);
    return status;
}

/* Finds the last reader of each value, after which its rows are freed. */
static void find_last(const planner *p) {
    for (uint32_t i = 0; i < p->out->unit_count; i++) {
        const vd_value_list in = inputs_of(p, &p->out->unit[i]);
        for (uint32_t k = 0; k < in.count; k++)
            value_of(p, in.value[k])->last = i;
    }
    for (uint32_t i = 0; i < p->program->leaf_count; i++)
        value_of(p, p->graph->output[i])->last = NONE;
}

/* ---- leaves that are changed in place ---- */

/* Checks leaves that are changed in place: a leaf and its put_rows share memory, so nobody may read
 * one version after the next is made. `now` is the version in each leaf's memory. */
static vd_status check_versions(const planner *p, uint32_t *now) {
    for (uint32_t i = 0; i < p->program->leaf_count; i++)
        now[i] = i;
    for (uint32_t i = 0; i < p->out->unit_count; i++) {
        const vd_unit *u = &p->out->unit[i];
        const vd_value_list in = inputs_of(p, u);
        const uint32_t node = u->kind == VD_UNIT_GROUP || u->kind == VD_UNIT_ATTENTION
                                  ? p->out->plan.group[u->index].member[0]
                                  : u->index;
        for (uint32_t k = 0; k < in.count; k++) {
            const vd_batch_value *v = value_of(p, in.value[k]);
            if (v->held == VD_HELD_STATE && now[v->leaf] != in.value[k])
                return refuse(p, node, "reads a leaf that was changed in place");
        }
        if (u->kind == VD_UNIT_PUT)
            now[value_of(p, p->out->sources + u->index)->leaf] = p->out->sources + u->index;
    }
    for (uint32_t i = 0; i < p->program->leaf_count; i++) {
        const vd_batch_value *v = value_of(p, p->graph->output[i]);
        const bool own = v->held == VD_HELD_STATE && v->leaf == i && now[i] == p->graph->output[i];
        if ((v->held == VD_HELD_STATE || now[i] != i) && !own)
            return vd_fail(p->err, VD_ERR_USAGE,
                           "steps cannot be taken together: leaf %s becomes another one's value",
                           p->program->leaf[i].name);
    }
    return VD_OK;
}

static vd_status check_state(const planner *p) {
    uint32_t *now = calloc(p->program->leaf_count + 1, sizeof *now);
    const vd_status status =
        now ? check_versions(p, now) : vd_fail(p->err, VD_ERR_LOCAL, "out of memory");
    free(now);
    return status;
}

/* ---- all of it ---- */

void vd_batch_plan_free(vd_batch_plan *plan) {
    vd_plan_free(&plan->plan);
    free(plan->value);
    free(plan->unit);
    free(plan->once);
    free(plan->cache);
    *plan = (vd_batch_plan){0};
}

static vd_status open_plan(const planner *p, uint32_t own_data) {
    vd_batch_plan *out = p->out;
    const size_t nodes = (size_t)p->graph->node_count + 1;
    *out = (vd_batch_plan){.own_data = own_data};
    if (p->graph->repeat_count > 0)
        return vd_fail(p->err, VD_ERR_USAGE, "steps cannot be taken together: they have repeats");
    out->sources = vd_source_count(p->program, p->graph);
    out->count = out->sources + p->graph->node_count;
    out->value = calloc(out->count, sizeof *out->value);
    out->unit = calloc(nodes, sizeof *out->unit);
    out->once = calloc(nodes, sizeof *out->once);
    out->cache = calloc((size_t)p->program->leaf_count + 1, sizeof *out->cache);
    if (!out->value || !out->unit || !out->once || !out->cache)
        return vd_fail(p->err, VD_ERR_LOCAL, "out of memory");
    return vd_plan_create(p->program, p->graph, VD_FUSE_LAYERS, &out->plan, p->err);
}

vd_status vd_batch_plan_create(const vd_program *program, uint32_t own_data, vd_batch_plan *out,
                               vd_err *err) {
    const planner p = {program, &program->step, out, err};
    vd_status status = open_plan(&p, own_data);
    if (status == VD_OK)
        status = take_sources(&p);
    if (status == VD_OK)
        status = take_nodes(&p);
    if (status == VD_OK)
        status = find_every(&p);
    if (status == VD_OK)
        status = check_state(&p);
    if (status == VD_OK)
        find_last(&p);
    else
        vd_batch_plan_free(out);
    return status;
}
