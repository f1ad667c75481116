/* This file lists the messages of a step: each value once for each other rank that reads it. */
#include <stdlib.h>

#include "verde/team/plan.h"

typedef struct {
    vd_team_plan *plan;
    const vd_graph *graph;
    uint32_t sources, capacity;
    bool full; /* no memory, or too many messages */
} messages;

static void put(messages *m, uint32_t value, uint32_t from, uint32_t to) {
    vd_team_plan *plan = m->plan;
    if (from == to || m->full)
        return;
    if (plan->message_count == m->capacity) {
        const uint32_t capacity = m->capacity ? 2 * m->capacity : 256;
        vd_team_message *grown = capacity > VD_TEAM_MESSAGES_MAX
                                     ? NULL
                                     : realloc(plan->message, capacity * sizeof *grown);
        m->full = !grown;
        if (!grown)
            return;
        plan->message = grown;
        m->capacity = capacity;
    }
    plan->message[plan->message_count++] = (vd_team_message){value, from, to};
}

/* Notes that a rank, or every rank (VD_TEAM_ALL), reads a value. */
static void read_value(messages *m, uint32_t value, uint32_t reader) {
    vd_team_plan *plan = m->plan;
    const uint32_t first = reader == VD_TEAM_ALL ? 0 : reader;
    const uint32_t end = reader == VD_TEAM_ALL ? plan->ranks : reader + 1;
    const uint32_t owner = vd_team_value_owner(plan, value);
    for (uint32_t to = first; to < end; to++) {
        if (value < plan->program->leaf_count)
            plan->reads[(size_t)value * plan->ranks + to] = true;
        if (owner != VD_TEAM_ALL)
            put(m, value, owner, to);
    }
}

static void read_by_node(messages *m, uint32_t node, uint32_t reader) {
    const int32_t inputs = vd_node_stored(m->graph, node)->input_count;
    for (int32_t k = 0; k < inputs; k++)
        read_value(m, vd_node_input(m->graph, node, k), reader);
}

/* Lists what the body reads, by a rank's first iteration only: all its iterations read the same
 * values from before the repeat, and only the first reads carried values of another rank. */
static void read_by_body(messages *m, const vd_repeat *r) {
    const vd_spread spread = vd_team_spread(m->plan, r);
    for (uint32_t rank = 0; rank < m->plan->ranks; rank++) {
        const uint32_t first = vd_spread_first(&spread, rank);
        if (first == vd_spread_first(&spread, rank + 1))
            continue;
        for (uint32_t i = 0; i < r->size && !m->full; i++)
            read_by_node(m, vd_node_number(m->graph, r->first + i, first), rank);
    }
}

static void read_by_additions(messages *m, const vd_repeat *r) {
    const uint64_t end = r->start + vd_repeat_nodes(r);
    for (uint32_t i = 1; i <= r->count && !m->full; i++) {
        const uint32_t after = vd_node_number(m->graph, r->first, i - 1) + r->size;
        const uint64_t next = i < r->count ? vd_node_number(m->graph, r->first, i) : end;
        for (uint32_t node = after; node < next; node++)
            read_by_node(m, node, vd_team_owner(m->plan, node));
    }
}

static void read_by_plain(messages *m) {
    for (uint32_t i = 0; i < m->graph->stored_count && !m->full; i++)
        if (!vd_repeat_of(m->graph, i))
            read_by_node(m, vd_node_number(m->graph, i, 0), m->plan->owner[i]);
}

/* Lists messages after the step: next states for ranks that read them, and the loss for all. */
static void read_after_step(messages *m) {
    const vd_team_plan *plan = m->plan;
    for (uint32_t i = 0; i < plan->program->leaf_count && !m->full; i++)
        for (uint32_t to = 0; to < plan->ranks; to++)
            if (plan->reads[(size_t)i * plan->ranks + to])
                read_value(m, m->graph->output[i], to);
    if (m->graph->loss != UINT32_MAX)
        read_value(m, m->graph->loss, VD_TEAM_ALL);
}

static int by_value(const void *a, const void *b) {
    const vd_team_message *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static void sort_and_drop_doubles(vd_team_plan *plan) {
    uint32_t count = 0;
    if (plan->message_count > 0)
        qsort(plan->message, plan->message_count, sizeof *plan->message, by_value);
    for (uint32_t i = 0; i < plan->message_count; i++)
        if (count == 0 || by_value(&plan->message[count - 1], &plan->message[i]) != 0)
            plan->message[count++] = plan->message[i];
    plan->message_count = count;
}

vd_status vd_team_find_messages(vd_team_plan *plan, vd_err *err) {
    const vd_graph *g = &plan->program->step;
    messages m = {.plan = plan, .graph = g, .sources = vd_source_count(plan->program, g)};
    for (uint32_t i = 0; i < g->repeat_count; i++) {
        read_by_body(&m, &g->repeat[i]);
        read_by_additions(&m, &g->repeat[i]);
    }
    read_by_plain(&m);
    read_after_step(&m);
    if (m.full)
        return vd_fail(err, VD_ERR_LOCAL,
                       "a team of %u processes: out of memory, or more than %d messages in a step",
                       plan->ranks, VD_TEAM_MESSAGES_MAX);
    sort_and_drop_doubles(plan);
    return VD_OK;
}
