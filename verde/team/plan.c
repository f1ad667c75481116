/* This file plans which rank runs which nodes, and which values it sends to whom. */
#include "verde/team/plan.h"

#include <stdlib.h>

vd_spread vd_team_spread(const vd_team_plan *plan, const vd_repeat *repeat) {
    return (vd_spread){repeat->count, plan->ranks};
}

/* The first iteration of the total that an addition makes. PROTOCOL.md section 1.5. */
static uint32_t first_added(const vd_spot *s) {
    uint32_t lo = s->iteration;
    for (uint32_t i = 0; i < s->merge; i++)
        lo &= lo - 1;
    return lo;
}

static uint32_t addition_owner(const vd_team_plan *plan, const vd_spot *s) {
    const vd_spread spread = vd_team_spread(plan, s->repeat);
    return vd_spread_place(&spread, first_added(s), s->iteration + 1,
                           plan->sum_owner[s->repeat->sum + s->sum]);
}

static bool is_away(const vd_team_plan *plan, const vd_spot *s, uint32_t iteration, uint32_t rank) {
    const vd_spread spread = vd_team_spread(plan, s->repeat);
    return vd_spread_rank(&spread, iteration) != rank;
}

bool vd_team_waits(const vd_team_plan *plan, uint32_t rank, uint32_t node) {
    const vd_graph *g = &plan->program->step;
    const vd_spot s = vd_node_spot(g, node);
    if (!s.repeat)
        return false;
    const bool addition = s.stored == VD_SPOT_SUM;
    if (plan->chained[addition ? g->sum[s.repeat->sum + s.sum].node : s.stored] &&
        is_away(plan, &s, 0, rank))
        return true;
    return addition &&
           (is_away(plan, &s, first_added(&s), rank) || is_away(plan, &s, s.iteration, rank));
}

/* Finds nodes that depend on a carried value. One pass suffices in topological order. */
static void find_chained(vd_team_plan *plan, const vd_repeat *r) {
    const vd_graph *g = &plan->program->step;
    for (uint32_t i = r->first; i < r->first + r->size; i++)
        for (int32_t k = 0; k < g->stored[i].input_count; k++) {
            const uint32_t edge = g->stored[i].first_input + (uint32_t)k;
            const uint32_t from = g->stored_edge[edge];
            plan->chained[i] |=
                g->stored_from[edge] == VD_FROM_CARRIED ||
                (g->stored_from[edge] == VD_FROM_NODE && from >= r->first && plan->chained[from]);
        }
}

uint32_t vd_team_owner(const vd_team_plan *plan, uint32_t node) {
    const vd_spot s = vd_node_spot(&plan->program->step, node);
    if (!s.repeat)
        return plan->owner[s.stored];
    const vd_spread spread = vd_team_spread(plan, s.repeat);
    return s.stored == VD_SPOT_SUM ? addition_owner(plan, &s)
                                   : vd_spread_rank(&spread, s.iteration);
}

uint32_t vd_team_value_owner(const vd_team_plan *plan, uint32_t value) {
    const uint32_t sources = vd_source_count(plan->program, &plan->program->step);
    return value < sources ? VD_TEAM_ALL : vd_team_owner(plan, value - sources);
}

bool vd_team_keeps(const vd_team_plan *plan, uint32_t rank, uint32_t leaf) {
    return plan->leaf_owner[leaf] == rank || plan->reads[(size_t)leaf * plan->ranks + rank];
}

/* Returns the index of the first message at or after (value, to). */
static uint32_t message_from(const vd_team_plan *plan, uint32_t value, uint32_t to) {
    uint32_t lo = 0, hi = plan->message_count;
    while (lo < hi) {
        const uint32_t middle = lo + (hi - lo) / 2;
        const vd_team_message *m = &plan->message[middle];
        if (m->value < value || (m->value == value && m->to < to))
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

uint32_t vd_team_messages_of(const vd_team_plan *plan, uint32_t value, uint32_t *first) {
    *first = message_from(plan, value, 0);
    return message_from(plan, value + 1, 0) - *first;
}

uint32_t vd_team_message_to(const vd_team_plan *plan, uint32_t value, uint32_t to) {
    const uint32_t at = message_from(plan, value, to);
    const vd_team_message *m = &plan->message[at];
    return at < plan->message_count && m->value == value && m->to == to ? at : UINT32_MAX;
}

static vd_status check_ranks(const vd_program *program, uint32_t ranks, vd_err *err) {
    const vd_graph *g = &program->step;
    if (ranks > 1 && g->shifted_count > 0)
        return vd_fail(err, VD_ERR_USAGE,
                       "a team of %u processes: expected 1, as iterations of a repeat read what "
                       "others of an earlier one made",
                       ranks);
    const uint32_t micro = g->repeat_count ? g->repeat[g->repeat_count - 1].count : 1;
    const uint32_t most = micro < VD_TEAM_RANKS_MAX ? micro : VD_TEAM_RANKS_MAX;
    if (ranks >= 1 && ranks <= most)
        return VD_OK;
    return vd_fail(err, VD_ERR_USAGE,
                   "a team of %u processes: expected 1 to %u, as a step has %u micro-batches and "
                   "each process takes one at least",
                   ranks, most, micro);
}

vd_status vd_team_plan_create(const vd_program *program, uint32_t ranks, vd_team_plan *out,
                              vd_err *err) {
    const vd_graph *g = &program->step;
    *out = (vd_team_plan){.program = program, .ranks = ranks};
    vd_status status = check_ranks(program, ranks, err);
    if (status != VD_OK)
        return status;
    out->chained = calloc((size_t)g->stored_count + 1, sizeof *out->chained);
    out->owner = calloc((size_t)g->stored_count + 1, sizeof *out->owner);
    out->sum_owner = calloc((size_t)g->sum_count + 1, sizeof *out->sum_owner);
    out->leaf_owner = calloc((size_t)program->leaf_count + 1, sizeof *out->leaf_owner);
    out->reads = calloc((size_t)program->leaf_count * ranks + 1, sizeof *out->reads);
    const bool room = out->chained && out->owner && out->sum_owner && out->leaf_owner && out->reads;
    for (uint32_t i = 0; room && i < g->repeat_count; i++)
        find_chained(out, &g->repeat[i]);
    if (room)
        status = vd_team_find_owners(out, err);
    else
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory for the plan of a team");
    if (status == VD_OK)
        status = vd_team_find_messages(out, err);
    if (status != VD_OK)
        vd_team_plan_free(out);
    return status;
}

void vd_team_plan_free(vd_team_plan *plan) {
    free(plan->chained);
    free(plan->owner);
    free(plan->sum_owner);
    free(plan->leaf_owner);
    free(plan->reads);
    free(plan->message);
    *plan = (vd_team_plan){0};
}
