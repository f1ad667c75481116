/* This file finds chains of elementwise nodes (repops/chain.h): from the last one back, through
 * reshapes, to values that others read. A tensor filled with one number counts as a number. */
#include <stdlib.h>
#include <string.h>

#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "verde/exec/fuse_match.h"

enum {
    REACH = 64, /* limit on nodes from first to last, as inputs of a chain are kept until its end */
    OPEN_MOST = 64,  /* limit on values that members read */
    WORTH_STEPS = 2, /* shorter chains save nothing */
};

/* A chain during the search. */
typedef struct {
    const vd_matcher *m;
    const vd_plan *plan;
    vd_fused *g;
    int64_t count;
    uint32_t open[OPEN_MOST], open_count; /* values that members read, without duplicates */
    uint32_t steps;
} finder;

/* The fill node that `value` is, perhaps reshaped; NULL: the value is no number. */
static const vd_node *number_of(const vd_matcher *m, uint32_t value) {
    for (int i = 0; i < REACH; i++) {
        const vd_node *n = value < m->sources ? NULL : &m->graph->stored[value - m->sources];
        if (!n || n->op != RO_OP_RESHAPE)
            return n && n->op == RO_OP_FILL && n->shape.dtype == RO_F32 ? n : NULL;
        value = vd_input_of(m, n, 0);
    }
    return NULL;
}

static bool is_small_type(const ro_shape *s) {
    return s->dtype == RO_F32 || s->dtype == RO_I32;
}

static bool nested(int64_t a, int64_t b) {
    return a < b ? b % a == 0 : a % b == 0;
}

/* Returns whether a chain can read the value as operand k of an operator. */
static bool may_read(const finder *f, uint32_t value, int op, int k) {
    const ro_shape *s = vd_shape_in(f->m, value);
    const int64_t count = ro_shape_numel(s);
    if (!is_small_type(s) || (count != f->count && op != RO_OP_RESHAPE && !ro_chain_repeats(op, k)))
        return false;
    for (uint32_t i = 0; i < f->open_count; i++)
        if (!nested(count, ro_shape_numel(vd_shape_in(f->m, f->open[i]))))
            return false;
    return count > 0;
}

/* Returns whether a node by itself may be a member. */
static bool may_join(const finder *f, uint32_t node) {
    const vd_node *n = &f->m->graph->stored[node];
    if (f->plan->group_of[node] != VD_NO_GROUP || n->slope != 0 || n->op == RO_OP_FILL ||
        !(ro_chain_takes(n->op) || n->op == RO_OP_RESHAPE) || !is_small_type(&n->shape) ||
        ro_shape_numel(&n->shape) != f->count || f->g->member_count == VD_FUSED_MEMBERS ||
        f->open_count + RO_CHAIN_OPERANDS > OPEN_MOST)
        return false;
    for (int k = 0; k < n->input_count; k++)
        if (!number_of(f->m, vd_input_of(f->m, n, k)) &&
            !may_read(f, vd_input_of(f->m, n, k), n->op, k))
            return false;
    return true;
}

static void open_value(finder *f, uint32_t value) {
    for (uint32_t i = 0; i < f->open_count; i++)
        if (f->open[i] == value)
            return;
    f->open[f->open_count++] = value;
}

static void join(finder *f, uint32_t node) {
    const vd_node *n = &f->m->graph->stored[node];
    f->g->member[f->g->member_count++] = node;
    f->steps += n->op != RO_OP_RESHAPE;
    for (int k = 0; k < n->input_count; k++)
        if (!number_of(f->m, vd_input_of(f->m, n, k)))
            open_value(f, vd_input_of(f->m, n, k));
}

/* The largest open value below `below`; VD_NO_GROUP: there is none. */
static uint32_t next_open(const finder *f, uint32_t below) {
    uint32_t found = VD_NO_GROUP;
    for (uint32_t i = 0; i < f->open_count; i++)
        if (f->open[i] < below && (found == VD_NO_GROUP || f->open[i] > found))
            found = f->open[i];
    return found;
}

/* Adds members from the last value back, so that all readers of a value are known by its turn. */
static void grow(finder *f, uint32_t root) {
    const uint32_t least = root > REACH ? root - REACH : 0;
    for (uint32_t value = next_open(f, VD_NO_GROUP); value != VD_NO_GROUP;
         value = next_open(f, value)) {
        if (value < f->m->sources + least)
            break;
        const uint32_t node = value - f->m->sources;
        if (vd_reads_of(f->m, f->g, value) == f->m->uses[value] && may_join(f, node))
            join(f, node);
    }
}

static bool is_member(const vd_fused *g, uint32_t node) {
    for (uint32_t i = 0; i < g->member_count; i++)
        if (g->member[i] == node)
            return true;
    return false;
}

/* ---- the chain that was found ---- */

/* Returns the input of a series of reshapes in the chain. */
static uint32_t behind_reshapes(const finder *f, uint32_t value) {
    const vd_node *n;
    while ((n = vd_node_of(f->m, value, RO_OP_RESHAPE)) && is_member(f->g, value - f->m->sources))
        value = vd_input_of(f->m, n, 0);
    return value;
}

/* Sets *operand to the group's input for this value, adding it if necessary. False: no room. */
static bool put_input(finder *f, uint32_t value, int32_t *operand) {
    vd_fused *g = f->g;
    uint32_t i = 0;
    while (i < g->input_count && g->input[i] != value)
        i++;
    *operand = (int32_t)i;
    if (i < g->input_count)
        return true;
    if (i == VD_FUSED_INPUTS)
        return false;
    const ro_shape *s = vd_shape_in(f->m, value);
    g->input[g->input_count++] = value;
    g->elements->input[i] = (ro_chain_input){ro_shape_numel(s), s->dtype, 0, NULL};
    return true;
}

static bool put_inputs(finder *f) {
    int32_t at;
    for (uint32_t i = 0; i < f->g->member_count; i++) {
        const vd_node *n = &f->m->graph->stored[f->g->member[i]];
        for (int k = 0; k < n->input_count && n->op != RO_OP_RESHAPE; k++) {
            const uint32_t value = behind_reshapes(f, vd_input_of(f->m, n, k));
            const bool inside = value >= f->m->sources && is_member(f->g, value - f->m->sources);
            if (!inside && !number_of(f->m, value) && !put_input(f, value, &at))
                return false;
        }
    }
    f->g->elements->input_count = f->g->input_count;
    return true;
}

/* Adds a number as an input that repeats, or as a step if it must not repeat. False: no room. */
static bool put_number(finder *f, const vd_node *fill, bool repeats, int32_t *operand) {
    vd_elements *e = f->g->elements;
    const float number = ro_attr_to_f32(fill->attr[RO_FILL_VALUE]);
    if (repeats && e->input_count < RO_CHAIN_INPUTS) {
        *operand = (int32_t)e->input_count;
        e->number[e->input_count] = number;
        e->input[e->input_count++] = (ro_chain_input){1, RO_F32, 0, NULL};
        return true;
    }
    if (e->step_count == RO_CHAIN_STEPS)
        return false;
    *operand = RO_CHAIN_RESULT + (int32_t)e->step_count;
    ro_chain_step *s = &e->step[e->step_count++];
    s->size = sizeof *s, s->op = RO_OP_FILL;
    s->attr[RO_FILL_VALUE] = fill->attr[RO_FILL_VALUE];
    return true;
}

/* Sets an operand of a step. result[i] is the step that computes member i. */
static bool put_operand(finder *f, uint32_t value, bool repeats, const int32_t *result,
                        int32_t *operand) {
    value = behind_reshapes(f, value);
    for (uint32_t i = 0; i < f->g->member_count; i++)
        if (value == f->m->sources + f->g->member[i]) {
            *operand = RO_CHAIN_RESULT + result[i];
            return true;
        }
    const vd_node *fill = number_of(f->m, value);
    return fill ? put_number(f, fill, repeats, operand) : put_input(f, value, operand);
}

static bool put_step(finder *f, uint32_t member, int32_t *result) {
    const vd_node *n = &f->m->graph->stored[f->g->member[member]];
    vd_elements *e = f->g->elements;
    ro_chain_step s = {.size = sizeof s, .op = n->op};
    memcpy(s.attr, n->attr, sizeof s.attr);
    for (int k = 0; k < n->input_count; k++)
        if (!put_operand(f, vd_input_of(f->m, n, k), ro_chain_repeats(n->op, k), result,
                         &s.operand[k]))
            return false;
    if (e->step_count == RO_CHAIN_STEPS)
        return false;
    result[member] = (int32_t)e->step_count;
    e->step[e->step_count++] = s;
    return true;
}

/* Adds steps in the order of their nodes, from the last member to the first: members were found in
 * descending order. */
static bool put_steps(finder *f) {
    int32_t result[VD_FUSED_MEMBERS] = {0};
    for (uint32_t i = f->g->member_count; i-- > 0;)
        if (f->m->graph->stored[f->g->member[i]].op != RO_OP_RESHAPE && !put_step(f, i, result))
            return false;
    return true;
}

/* Returns an input that nothing else reads, and that the last step may overwrite. */
static uint32_t overwritten(const finder *f) {
    const vd_elements *e = f->g->elements;
    const ro_chain_step *last = &e->step[e->step_count - 1];
    for (uint32_t i = 0; i < f->g->input_count; i++) {
        bool may = e->input[i].count == e->count && f->g->input[i] >= f->m->sources &&
                   vd_reads_of(f->m, f->g, f->g->input[i]) == f->m->uses[f->g->input[i]];
        for (int k = 0; k < ro_op_describe(last->op)->max_inputs; k++)
            may &= last->operand[k] != (int32_t)i || (ro_op_in_place(last->op) >> k & 1);
        if (may)
            return i;
    }
    return VD_NO_GROUP;
}

bool vd_match_elements(const vd_matcher *m, const vd_plan *plan, uint32_t node, vd_fused *g,
                       bool *failed) {
    finder f = {
        .m = m, .plan = plan, .g = g, .count = ro_shape_numel(&m->graph->stored[node].shape)};
    const uint32_t value = m->sources + node;
    *g = (vd_fused){.kind = VD_FUSED_ELEMENTS};
    if (f.count == 0 || !may_join(&f, node))
        return false;
    join(&f, node);
    grow(&f, node);
    if (f.steps < WORTH_STEPS)
        return false;
    g->elements = calloc(1, sizeof *g->elements);
    *failed = !g->elements;
    if (*failed)
        return false;
    g->elements->count = f.count;
    vd_put_outputs(g, 1, &value);
    if (!put_inputs(&f) || !put_steps(&f)) {
        free(g->elements);
        g->elements = NULL;
        return false;
    }
    g->elements->onto = overwritten(&f);
    return true;
}
