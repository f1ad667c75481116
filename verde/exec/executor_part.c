/* This file runs one process's part of a step: values of other processes are fetched when first
 * read, and values for others are sent at once. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/executor.h"

bool vd_part_runs(const vd_execution *x, uint32_t node) {
    return x->needed ? x->needed[node] : !x->part || x->part->runs(x->part->user, node);
}

bool vd_part_waits(const vd_execution *x, uint32_t node) {
    return x->part && x->part->waits(x->part->user, node);
}

static uint32_t member_node(const vd_execution *x, uint32_t group, uint32_t member,
                            uint32_t iteration) {
    const uint32_t node = x->plan.group[group].member[member];
    return vd_plan_value(&x->plan, x->graph, x->sources + node, iteration) - x->sources;
}

bool vd_part_runs_group(const vd_execution *x, uint32_t group, uint32_t iteration) {
    return vd_part_runs(x, member_node(x, group, 0, iteration));
}

/* Returns whether this process runs all members of a group, or none, and all of them wait, or
 * none. */
static bool is_whole(const vd_execution *x, uint32_t group, uint32_t iteration) {
    const uint32_t first = member_node(x, group, 0, iteration);
    for (uint32_t i = 1; i < x->plan.group[group].member_count; i++) {
        const uint32_t node = member_node(x, group, i, iteration);
        if (vd_part_runs(x, node) != vd_part_runs(x, first) ||
            vd_part_waits(x, node) != vd_part_waits(x, first))
            return false;
    }
    return true;
}

/* Counts what groups read. *whole: no group is split between processes. */
static void count_groups(vd_execution *x, bool *whole) {
    for (uint32_t g = 0; g < x->plan.group_count; g++)
        for (uint32_t m = vd_plan_iterations(&x->plan, x->graph, g); m-- > 0;) {
            *whole &= is_whole(x, g, m);
            if (!vd_part_runs_group(x, g, m))
                continue;
            for (uint32_t i = 0; i < x->plan.group[g].input_count; i++)
                x->plan.uses[vd_plan_value(&x->plan, x->graph, x->plan.group[g].input[i], m)]++;
        }
}

/* Finds the nodes that this process's leaves depend on: initialisation exchanges nothing. */
static vd_status find_needed(vd_execution *x, vd_err *err) {
    const vd_graph *g = x->graph;
    x->needed = calloc((size_t)g->node_count + 1, sizeof *x->needed);
    if (!x->needed)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < x->program->leaf_count; i++)
        if (vd_part_keeps(x, i) && g->output[i] >= x->sources)
            x->needed[g->output[i] - x->sources] = true;
    for (uint32_t i = g->node_count; i-- > 0;) {
        const int32_t inputs = x->needed[i] ? vd_node_stored(g, i)->input_count : 0;
        for (int32_t k = 0; k < inputs; k++) {
            const uint32_t value = vd_node_input(g, i, k);
            if (value >= x->sources)
                x->needed[value - x->sources] = true;
        }
    }
    return VD_OK;
}

static void count_nodes(vd_execution *x) {
    uint32_t *uses = x->plan.uses;
    for (uint32_t i = 0; i < x->graph->node_count; i++) {
        const vd_planned p = vd_plan_of(&x->plan, x->graph, i);
        if (p.group != VD_NO_GROUP || p.idle || !vd_part_runs(x, i))
            continue;
        const int32_t inputs = vd_node_stored(x->graph, i)->input_count;
        for (int32_t k = 0; k < inputs; k++)
            uses[vd_node_input(x->graph, i, k)]++;
    }
}

vd_status vd_part_plan(vd_execution *x, vd_err *err) {
    bool whole = true;
    if (!x->kept)
        return VD_OK;
    vd_status status = x->part ? VD_OK : find_needed(x, err);
    if (status != VD_OK)
        return status;
    memset(x->plan.uses, 0, x->count * sizeof *x->plan.uses);
    count_nodes(x);
    count_groups(x, &whole);
    for (uint32_t i = 0; i < x->program->leaf_count; i++)
        x->plan.uses[x->graph->output[i]] += vd_part_keeps(x, i);
    if (x->graph->loss != UINT32_MAX)
        x->plan.uses[x->graph->loss]++;
    return whole ? VD_OK
                 : vd_fail(err, VD_ERR_LOCAL,
                           "nodes that run as one function are planned for several processes");
}

bool vd_part_keeps(const vd_execution *x, uint32_t leaf) {
    return !x->kept || x->kept->keeps(x->kept->user, leaf);
}

/* Fetches a value, by way of host memory if tensors are on a device. */
static vd_status fetch(vd_execution *x, uint32_t value, void *tensor, size_t size, vd_err *err) {
    if (!x->memory)
        return x->part->fetch(x->part->user, value, tensor, size, err);
    void *host = malloc(size);
    vd_status status = host ? x->part->fetch(x->part->user, value, host, size, err)
                            : vd_fail(err, VD_ERR_LOCAL, "out of memory for what comes");
    if (status == VD_OK)
        status = vd_memory_write(x->memory, tensor, host, size, err);
    free(host);
    return status;
}

vd_status vd_part_fetch(vd_execution *x, uint32_t value, vd_err *err) {
    if (!x->part || x->value[value])
        return VD_OK;
    const size_t size = vd_shape_bytes(vd_value_shape(x->program, x->graph, value));
    x->value[value] = vd_memory_alloc(x->memory, size);
    if (!x->value[value])
        return vd_fail(err, VD_ERR_LOCAL,
                       "out of memory: %zu bytes for value %u of another process", size, value);
    return fetch(x, value, x->value[value], size, err);
}

vd_status vd_part_made(vd_execution *x, uint32_t value, vd_err *err) {
    if (!x->part || !x->part->sends(x->part->user, value))
        return VD_OK;
    const size_t size = vd_shape_bytes(vd_value_shape(x->program, x->graph, value));
    void *copy = NULL;
    const void *host = vd_memory_in_host(x->memory, x->value[value], size, &copy, err);
    vd_status status = host ? x->part->send(x->part->user, value, host, size, err) : VD_ERR_LOCAL;
    free(copy);
    return status;
}
