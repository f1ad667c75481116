/* This file plans an execution. Each pattern is searched from its most distinctive node. */
#include "verde/exec/fuse.h"

#include <stdlib.h>
#include <string.h>

#include "repops/operators.h"
#include "verde/exec/fuse_match.h"

/* ---- groups ---- */

uint32_t vd_reads_of(const vd_matcher *m, const vd_fused *g, uint32_t value) {
    uint32_t reads = 0;
    for (uint32_t i = 0; i < g->member_count; i++) {
        const vd_node *n = &m->graph->stored[g->member[i]];
        for (int32_t k = 0; k < n->input_count; k++)
            reads += m->graph->stored_edge[n->first_input + (uint32_t)k] == value;
    }
    return reads;
}

static bool is_output(const vd_fused *g, uint32_t value) {
    for (uint32_t i = 0; i < g->output_count; i++)
        if (g->output[i] == value)
            return true;
    return false;
}

/* Returns whether the members are in no other group, inputs exist before the first member, and
 * values that are not outputs are read by members only. */
static bool self_contained(const vd_matcher *m, const vd_plan *plan, const vd_fused *g) {
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < g->member_count; i++) {
        const uint32_t node = g->member[i], value = m->sources + node;
        first = node < first ? node : first;
        if (plan->group_of[node] != VD_NO_GROUP)
            return false;
        if (!is_output(g, value) && vd_reads_of(m, g, value) != m->uses[value])
            return false;
    }
    for (uint32_t i = 0; i < g->input_count; i++)
        if (g->input[i] >= m->sources + first)
            return false;
    return true;
}

static bool add_group(vd_plan *plan, const vd_fused *g) {
    if (plan->group_count == plan->group_capacity) {
        const uint32_t capacity = plan->group_capacity ? 2 * plan->group_capacity : 16;
        vd_fused *grown = realloc(plan->group, capacity * sizeof *grown);
        if (!grown)
            return false;
        plan->group = grown;
        plan->group_capacity = capacity;
    }
    for (uint32_t i = 0; i < g->member_count; i++)
        plan->group_of[g->member[i]] = plan->group_count;
    plan->group[plan->group_count++] = *g;
    return true;
}

typedef bool match(const vd_matcher *m, uint32_t node, vd_fused *out);

static const struct {
    int op;
    match *match;
} patterns[] = {
    {RO_OP_ATTN_OUT, vd_match_attention},
    {RO_OP_ATTN_DSCORE, vd_match_attention_grad},
    {RO_OP_ADD, vd_match_linear},
    {RO_OP_RELU, vd_match_linear},
    {RO_OP_GELU, vd_match_linear},
    {RO_OP_GELU_ERF, vd_match_linear},
    {RO_OP_SILU, vd_match_linear},
    {RO_OP_XENT_GRAD, vd_match_cross_entropy},
    {RO_OP_XENT_IGNORE_GRAD, vd_match_cross_entropy},
    {RO_OP_LAYERNORM, vd_match_layer_norm},
    {RO_OP_LN_DX, vd_match_layer_norm_grad},
    {RO_OP_RMSNORM, vd_match_rms_norm},
    {RO_OP_RMS_DX, vd_match_rms_norm_grad},
    {RO_OP_ADAMW_W, vd_match_adamw_bf16},
    {RO_OP_ADAMW_W, vd_match_adamw},
    {RO_OP_SGD_W, vd_match_sgd},
    {RO_OP_SGD_NESTEROV, vd_match_sgd},
    {RO_OP_EMBEDDING_GRAD, vd_match_embedding_grad},
    {RO_OP_ROPE, vd_match_rotary},
};

/* Returns whether members change with iterations only in dropout's stream, by one slope. */
static bool moves_as_one(const vd_matcher *m, vd_fused *g) {
    bool same = true, first = true;
    for (uint32_t i = 0; i < g->member_count; i++) {
        const vd_node *n = &m->graph->stored[g->member[i]];
        const bool drops = n->op == RO_OP_DROPOUT;
        if (drops && first)
            g->slope = n->slope, first = false;
        same &= n->slope == (drops ? g->slope : 0);
        same &= n->slope == 0 || n->moving == RO_DROPOUT_STREAM;
    }
    return same;
}

/* Adds a group if the pattern matches. False: out of memory. A group is cleared here, not for
 * each node, because most nodes begin no pattern. */
static bool try_pattern(const vd_matcher *m, vd_plan *plan, match *matches, uint32_t node) {
    vd_fused g = {0};
    return !matches(m, node, &g) || !self_contained(m, plan, &g) || !moves_as_one(m, &g) ||
           add_group(plan, &g);
}

/* Finds fixed products outside of other groups. */
static bool find_products(const vd_matcher *m, vd_plan *plan) {
    for (uint32_t i = 0; i < m->graph->node_count; i++)
        if (m->graph->stored[i].op == RO_OP_MATMUL_FIXED && plan->group_of[i] == VD_NO_GROUP &&
            !try_pattern(m, plan, vd_match_product, i))
            return false;
    return true;
}

/* Finds chains of elementwise nodes from the last node back, so that they become as long as
 * possible. */
static bool find_elements(const vd_matcher *m, vd_plan *plan) {
    bool failed = false;
    for (uint32_t i = m->graph->node_count; i-- > 0 && !failed;) {
        vd_fused g;
        if (plan->group_of[i] != VD_NO_GROUP || !ro_chain_takes(m->graph->stored[i].op) ||
            !vd_match_elements(m, plan, i, &g, &failed))
            continue;
        failed = !add_group(plan, &g);
        if (failed)
            free(g.elements);
    }
    return !failed;
}

/* Finds convolutions and products with weights that are data, which may stay packed. */
static bool find_convolutions(const vd_matcher *m, vd_plan *plan) {
    bool failed = false;
    for (uint32_t i = 0; i < m->graph->node_count && !failed; i++) {
        vd_fused g;
        const vd_node *n = &m->graph->stored[i];
        if ((n->op != RO_OP_CONV2D && n->op != RO_OP_MATMUL) || plan->group_of[i] != VD_NO_GROUP ||
            n->slope != 0 || !vd_match_conv(m, i, &g, &failed))
            continue;
        failed = !add_group(plan, &g);
        if (failed)
            free(g.conv);
    }
    return !failed;
}

static bool find_groups(const vd_matcher *m, vd_plan *plan) {
    for (uint32_t i = 0; i < m->graph->node_count; i++)
        for (size_t k = 0; k < sizeof patterns / sizeof patterns[0]; k++)
            if (m->graph->stored[i].op == patterns[k].op &&
                !try_pattern(m, plan, patterns[k].match, i))
                return false;
    return find_products(m, plan);
}

/* ---- uses ---- */

static void count_all(const vd_matcher *m, uint32_t *uses) {
    for (uint32_t i = 0; i < m->graph->edge_count; i++)
        uses[m->graph->stored_edge[i]]++;
    for (uint32_t i = 0; i < m->program->leaf_count; i++)
        uses[m->graph->output[i]]++;
    if (m->graph->loss != UINT32_MAX)
        uses[m->graph->loss]++;
}

static void add_reads(const vd_matcher *m, uint32_t node, uint32_t *uses, uint32_t times) {
    const vd_node *n = &m->graph->stored[node];
    for (int32_t k = 0; k < n->input_count; k++)
        uses[m->graph->stored_edge[n->first_input + (uint32_t)k]] += times;
}

/* Counts reads of what runs. A node that only members read need not run. */
static void count_planned(const vd_matcher *m, vd_plan *plan) {
    memcpy(plan->uses, m->uses, (m->sources + m->graph->node_count) * sizeof *plan->uses);
    for (uint32_t i = 0; i < m->graph->node_count; i++)
        if (plan->group_of[i] != VD_NO_GROUP)
            add_reads(m, i, plan->uses, UINT32_MAX); /* adds -1 */
    for (uint32_t g = 0; g < plan->group_count; g++)
        for (uint32_t i = 0; i < plan->group[g].input_count; i++)
            plan->uses[plan->group[g].input[i]]++;
    for (uint32_t i = m->graph->node_count; i-- > 0;) {
        const uint32_t value = m->sources + i;
        if (plan->group_of[i] == VD_NO_GROUP && plan->uses[value] == 0 && m->uses[value] > 0) {
            plan->idle[i] = true;
            add_reads(m, i, plan->uses, UINT32_MAX);
        }
    }
}

/* The same count for all nodes that a graph with repeats means. */
static bool count_iterations(const vd_program *program, const vd_graph *graph, vd_plan *plan) {
    uint32_t *uses = calloc((size_t)graph->sources + graph->node_count, sizeof *uses);
    free(plan->uses);
    plan->uses = uses;
    for (uint32_t i = 0; uses && i < graph->node_count; i++) {
        const vd_planned p = vd_plan_of(plan, graph, i);
        const int32_t inputs =
            p.group == VD_NO_GROUP && !p.idle ? vd_node_stored(graph, i)->input_count : 0;
        for (int32_t k = 0; k < inputs; k++)
            uses[vd_node_input(graph, i, k)]++;
    }
    for (uint32_t g = 0; uses && g < plan->group_count; g++)
        for (uint32_t m = vd_plan_iterations(plan, graph, g); m-- > 0;)
            for (uint32_t i = 0; i < plan->group[g].input_count; i++)
                uses[vd_plan_value(plan, graph, plan->group[g].input[i], m)]++;
    for (uint32_t i = 0; uses && i < program->leaf_count; i++)
        uses[graph->output[i]]++;
    if (uses && graph->loss != UINT32_MAX)
        uses[graph->loss]++;
    return uses != NULL;
}

/* Plans a graph without repeats, for which m->uses is counted. */
static bool plan_plain(const vd_matcher *m, vd_fuses fuse, vd_plan *out) {
    const uint32_t nodes = m->graph->node_count;
    out->uses = calloc(m->sources + nodes, sizeof *out->uses);
    out->group_of = malloc(((size_t)nodes + 1) * sizeof *out->group_of);
    out->idle = calloc((size_t)nodes + 1, sizeof *out->idle);
    if (!out->uses || !out->group_of || !out->idle)
        return false;
    memset(out->group_of, 0xff, nodes * sizeof *out->group_of); /* VD_NO_GROUP */
    if (fuse != VD_FUSE_NOTHING && !find_groups(m, out))
        return false;
    vd_lay_heads(m, out);
    if (fuse == VD_FUSE_ALL && (!find_elements(m, out) || !find_convolutions(m, out)))
        return false;
    out->ran = calloc((size_t)out->group_count + 1, sizeof *out->ran);
    if (out->ran)
        count_planned(m, out);
    return out->ran != NULL;
}

static bool plan_repeats(const vd_program *program, const vd_graph *graph, vd_fuses fuse,
                         vd_plan *out) {
    vd_program folded = *program;
    vd_graph *plain = graph == &program->init ? &folded.init : &folded.step;
    uint32_t *uses = NULL;
    bool ok = vd_fold_graph(program, graph, out, plain, &uses);
    const vd_matcher m = {&folded, plain, graph->sources, uses};
    ok = ok && plan_plain(&m, fuse, out) && count_iterations(program, graph, out);
    free(plain->stored);
    free(plain->stored_edge);
    free(uses);
    return ok;
}

vd_status vd_plan_create(const vd_program *program, const vd_graph *graph, vd_fuses fuse,
                         vd_plan *out, vd_err *err) {
    const uint32_t sources = vd_source_count(program, graph);
    *out = (vd_plan){0};
    bool ok;
    if (graph->repeat_count > 0) {
        ok = plan_repeats(program, graph, fuse, out);
    } else {
        uint32_t *uses = calloc((size_t)sources + graph->node_count, sizeof *uses);
        const vd_matcher m = {program, graph, sources, uses};
        if (uses)
            count_all(&m, uses);
        ok = uses && plan_plain(&m, fuse, out);
        free(uses);
    }
    if (ok)
        return VD_OK;
    vd_plan_free(out);
    return vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

static void free_groups(vd_plan *plan) {
    for (uint32_t i = 0; i < plan->group_count; i++) {
        free(plan->group[i].elements);
        free(plan->group[i].conv);
    }
    free(plan->group);
    free(plan->group_of);
    free(plan->idle);
    free(plan->folded_of);
    free(plan->entry);
}

void vd_plan_free(vd_plan *plan) {
    if (!plan->lent)
        free_groups(plan);
    free(plan->ran);
    free(plan->uses);
    *plan = (vd_plan){0};
}
