/* This file decides which units of a step take all rows of an answer at once, and which single
 * rows. */
#include <stdlib.h>
#include <string.h>

#include "repops/op_product.h"
#include "verde/exec/batch_answers.h"

enum {
    SLICE_ROWS = 256,        /* at most so many rows choose together */
    SLICE_BYTES = 192 << 20, /* the largest value of several such rows has at most so many */
    LARGE_BYTES = 64 << 10,  /* larger rows go alone, to stay in a cache */
};

typedef struct {
    const vd_batch *b;
    vd_answer_plan *out;
    vd_err *err;
} planner;

/* ---- units that run row by row: they depend on the step before, or take large rows ---- */

static bool is_held(const planner *p, uint32_t value, uint32_t leaf) {
    const vd_batch_value *v = &p->b->plan.value[value];
    return v->held == VD_HELD_STATE && v->leaf == leaf;
}

/* Returns whether a unit reads a leaf. Steps only write most leaves, each step a row of its own. */
static bool is_read(const planner *p, uint32_t leaf) {
    const vd_batch_plan *plan = &p->b->plan;
    for (uint32_t i = 0; i < plan->unit_count; i++) {
        const vd_unit *u = &plan->unit[i];
        const vd_value_list in = vd_batch_inputs(plan, &p->b->exec.program->step, u);
        for (uint32_t k = u->kind == VD_UNIT_PUT; k < in.count; k++)
            if (is_held(p, in.value[k], leaf))
                return true;
    }
    return false;
}

static bool is_put(const planner *p, uint32_t leaf) {
    const uint32_t value = p->b->exec.program->step.output[leaf];
    return is_held(p, value, leaf) && value != leaf;
}

static void mark_outputs(const planner *p, const vd_unit *u, bool *follows) {
    const vd_batch_plan *plan = &p->b->plan;
    if (u->kind != VD_UNIT_GROUP && u->kind != VD_UNIT_ATTENTION) {
        follows[plan->sources + u->index] = true;
        return;
    }
    const vd_fused *g = &plan->plan.group[u->index];
    for (uint32_t i = 0; i < g->output_count; i++)
        follows[g->output[i]] = true;
}

static bool is_large(const planner *p, uint32_t value) {
    const vd_batch_value *v = &p->b->plan.value[value];
    return v->held == VD_HELD_ROWS && v->size >= LARGE_BYTES;
}

/* Returns whether an elementwise unit reads or makes large rows, such as logits. Products do not
 * run alone, since they read weights once for many rows. */
static bool runs_alone(const planner *p, const vd_unit *u) {
    const vd_graph *graph = &p->b->exec.program->step;
    if (u->every || u->kind == VD_UNIT_GROUP || u->kind == VD_UNIT_ATTENTION)
        return false;
    const int op = vd_node_stored(graph, u->index)->op;
    if (op == RO_OP_MATMUL || op == RO_OP_MATMUL_FIXED)
        return false;
    const vd_value_list in = vd_batch_inputs(&p->b->plan, graph, u);
    for (uint32_t k = 0; k < in.count; k++)
        if (is_large(p, in.value[k]))
            return true;
    return is_large(p, p->b->plan.sources + u->index);
}

static vd_status find_serial(const planner *p, bool *follows) {
    const vd_batch_plan *plan = &p->b->plan;
    for (uint32_t i = 0; i < p->b->exec.program->leaf_count; i++)
        follows[i] = !plan->cache[i] && is_put(p, i) && is_read(p, i);
    for (uint32_t i = 0; i < plan->unit_count; i++) {
        const vd_unit *u = &plan->unit[i];
        const vd_value_list in = vd_batch_inputs(plan, &p->b->exec.program->step, u);
        p->out->serial[i] = runs_alone(p, u);
        for (uint32_t k = 0; k < in.count; k++)
            p->out->serial[i] |= follows[in.value[k]];
        for (uint32_t k = 0; k < in.count; k++) {
            p->out->waited[in.value[k]] |= p->out->serial[i];
            p->out->chosen[in.value[k]] |= !u->every;
        }
        if (p->out->serial[i])
            mark_outputs(p, u, follows);
        if (p->out->serial[i] && u->every)
            return vd_fail(p->err, VD_ERR_USAGE,
                           "answers cannot be checked by one pass: what goes into a cache follows "
                           "from the step before");
    }
    return VD_OK;
}

/* Checks that no other leaf depends on the step before: `token` is given, no step is taken after a
 * stop, and nothing else reads `count`. */
static vd_status check_leaves(const planner *p) {
    const vd_program *program = p->b->exec.program;
    for (uint32_t i = 0; i < program->leaf_count; i++) {
        const vd_batch_value *v = &p->b->plan.value[program->step.output[i]];
        if (v->held != VD_HELD_STATE && i != p->b->plan.token && i != p->b->plan.stopped &&
            strcmp(program->leaf[i].name, "count") != 0)
            return vd_fail(p->err, VD_ERR_USAGE,
                           "answers cannot be checked by one pass: leaf %s follows from the step "
                           "before",
                           program->leaf[i].name);
    }
    return VD_OK;
}

static int64_t slice_rows(const planner *p) {
    size_t most = 1;
    for (uint32_t i = 0; i < p->b->plan.count; i++) {
        const vd_batch_value *v = &p->b->plan.value[i];
        if (v->held == VD_HELD_ROWS && !v->every && v->size > most)
            most = v->size;
    }
    const int64_t rows = (int64_t)(SLICE_BYTES / most);
    return rows < 1 ? 1 : rows < SLICE_ROWS ? rows : SLICE_ROWS;
}

/* ---- all of it ---- */

void vd_answer_plan_free(vd_answer_plan *plan) {
    free(plan->serial);
    free(plan->waited);
    free(plan->chosen);
    *plan = (vd_answer_plan){0};
}

vd_status vd_answer_plan_create(const vd_batch *b, vd_answer_plan *out, vd_err *err) {
    const planner p = {b, out, err};
    bool *follows = calloc(b->plan.count, sizeof *follows);
    *out = (vd_answer_plan){.serial = calloc((size_t)b->plan.unit_count + 1, sizeof *out->serial),
                            .waited = calloc(b->plan.count, sizeof *out->waited),
                            .chosen = calloc(b->plan.count, sizeof *out->chosen),
                            .slice = slice_rows(&p)};
    vd_status status = follows && out->serial && out->waited && out->chosen
                           ? check_leaves(&p)
                           : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = find_serial(&p, follows);
    free(follows);
    if (status != VD_OK)
        vd_answer_plan_free(out);
    return status;
}
