/* The plan of a team, against a walk over every node that the step's graph stands for. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/unit/small_models.h"
#include "verde/team/spread.h"
#include "verde/team/team.h"

enum { RANKS = 8, MICRO = 12 };

static vd_team_plan plan_of(const vd_program *p, uint32_t ranks) {
    vd_team_plan plan;
    vd_err err = {0};
    cr_assert(vd_team_plan_create(p, ranks, &plan, &err) == VD_OK, "%s", err.text);
    return plan;
}

/* ---- every value that a rank reads is its own, or arrives in one message ---- */

typedef struct {
    const vd_program *program;
    const vd_team_plan *plan;
    bool *wanted; /* for each message: whether it is read */
} walk;

static void read_at(walk *w, uint32_t value, uint32_t rank) {
    const uint32_t owner = vd_team_value_owner(w->plan, value);
    const uint32_t leaves = w->program->leaf_count;
    if (value < leaves)
        cr_assert(vd_team_keeps(w->plan, rank, value), "rank %u lacks %s", rank,
                  w->program->leaf[value].name);
    if (owner == VD_TEAM_ALL || owner == rank)
        return;
    const uint32_t message = vd_team_message_to(w->plan, value, rank);
    cr_assert(message != UINT32_MAX, "rank %u of %u reads value %u of rank %u", rank,
              w->plan->ranks, value, owner);
    cr_assert(w->plan->message[message].from == owner);
    w->wanted[message] = true;
}

static void read_by(walk *w, uint32_t value, uint32_t owner) {
    for (uint32_t r = 0; r < w->plan->ranks; r++)
        if (owner == VD_TEAM_ALL || owner == r)
            read_at(w, value, r);
}

static void walk_nodes(walk *w) {
    const vd_graph *g = &w->program->step;
    for (uint32_t i = 0; i < g->node_count; i++) {
        const uint32_t owner = vd_team_owner(w->plan, i);
        cr_assert(owner == VD_TEAM_ALL || owner < w->plan->ranks);
        for (int32_t k = 0; k < vd_node_stored(g, i)->input_count; k++)
            read_by(w, vd_node_input(g, i, k), owner);
    }
}

static void walk_state(walk *w) {
    for (uint32_t leaf = 0; leaf < w->program->leaf_count; leaf++) {
        const uint32_t maker = vd_team_value_owner(w->plan, w->program->step.output[leaf]);
        const uint32_t owner = w->plan->leaf_owner[leaf];
        cr_assert(owner < w->plan->ranks && (maker == owner || maker == VD_TEAM_ALL));
        for (uint32_t r = 0; r < w->plan->ranks; r++)
            if (vd_team_keeps(w->plan, r, leaf))
                read_at(w, w->program->step.output[leaf], r);
    }
}

static void expect_right_plan(const vd_program *p, uint32_t ranks) {
    vd_team_plan plan = plan_of(p, ranks);
    walk w = {p, &plan, calloc((size_t)plan.message_count + 1, sizeof(bool))};
    walk_nodes(&w);
    walk_state(&w);
    read_by(&w, p->step.loss, VD_TEAM_ALL);
    for (uint32_t i = 0; i < plan.message_count; i++) {
        const vd_team_message *m = &plan.message[i];
        cr_expect(w.wanted[i], "message %u: nobody reads it", i);
        cr_expect(i == 0 || m[-1].value < m->value ||
                  (m[-1].value == m->value && m[-1].to < m->to));
        uint32_t first;
        const uint32_t count = vd_team_messages_of(&plan, m->value, &first);
        cr_expect(first <= i && i - first < count);
    }
    free(w.wanted);
    vd_team_plan_free(&plan);
}

Test(team_plan, what_a_rank_reads_is_its_own_or_comes_by_one_message) {
    for (int k = 0; k < KINDS; k++)
        for (int64_t micro = 1; micro <= MICRO; micro++) {
            vd_program p = program_of(kinds[k], micro);
            for (uint32_t ranks = 1; ranks <= RANKS && ranks <= micro; ranks++)
                expect_right_plan(&p, ranks);
            vd_program_free(&p);
        }
}

/* ---- postponed nodes ---- */

/* Returns whether the value is computed in this repeat by another rank, or by a postponed node. */
static bool is_waited_for(const vd_team_plan *plan, const vd_repeat *r, uint32_t value,
                          uint32_t rank) {
    const vd_graph *g = &plan->program->step;
    if (value < g->sources || vd_node_spot(g, value - g->sources).repeat != r)
        return false;
    return vd_team_value_owner(plan, value) != rank ||
           vd_team_waits(plan, rank, value - g->sources);
}

/* Expects that a repeat's node is postponed if it reads such a value. Returns the number of
 * postponed nodes. */
static uint32_t expect_put_off(const vd_team_plan *plan) {
    const vd_graph *g = &plan->program->step;
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->node_count; i++) {
        const vd_repeat *r = vd_node_spot(g, i).repeat;
        const uint32_t rank = vd_team_owner(plan, i);
        bool waits = false;
        for (int32_t k = 0; r && k < vd_node_stored(g, i)->input_count; k++)
            waits |= is_waited_for(plan, r, vd_node_input(g, i, k), rank);
        cr_assert(!waits || vd_team_waits(plan, rank, i), "node %u of rank %u", i, rank);
        count += r && vd_team_waits(plan, rank, i);
    }
    return count;
}

Test(team_plan, no_rank_waits_in_a_repeat_before_it_has_run_its_own) {
    for (int k = 0; k < KINDS; k++)
        for (int64_t micro = 2; micro <= MICRO; micro++) {
            vd_program p = program_of(kinds[k], micro);
            for (uint32_t ranks = 1; ranks <= RANKS && ranks <= micro; ranks++) {
                vd_team_plan plan = plan_of(&p, ranks);
                const uint32_t count = expect_put_off(&plan);
                cr_expect((count > 0) == (ranks > 1));
                cr_expect(count < p.step.node_count / 2, "%u of %u", count, p.step.node_count);
                vd_team_plan_free(&plan);
            }
            vd_program_free(&p);
        }
}

/* ---- owners ---- */

static uint32_t iterations_of(const vd_team_plan *plan, uint32_t rank) {
    const vd_graph *g = &plan->program->step;
    const vd_repeat *r = &g->repeat[g->repeat_count - 1];
    uint32_t count = 0, last = UINT32_MAX;
    for (uint32_t i = 0; i < r->count; i++) {
        if (vd_team_owner(plan, vd_node_number(g, r->first, i)) != rank)
            continue;
        cr_expect(last == UINT32_MAX || i == last + 1, "consecutive micro-batches");
        last = i;
        count++;
    }
    return count;
}

Test(team_plan, micro_batches_are_consecutive_and_differ_by_one_at_most) {
    for (int64_t micro = 2; micro <= MICRO; micro++) {
        vd_program p = program_of(VD_MODEL_MLP, micro);
        for (uint32_t ranks = 1; ranks <= RANKS && ranks <= micro; ranks++) {
            vd_team_plan plan = plan_of(&p, ranks);
            uint32_t all = 0;
            for (uint32_t r = 0; r < ranks; r++) {
                const uint32_t has = iterations_of(&plan, r);
                cr_expect(has == micro / ranks || has == micro / ranks + 1);
                all += has;
            }
            cr_expect(all == micro);
            vd_team_plan_free(&plan);
        }
        vd_program_free(&p);
    }
}

/* A parameter's moments are kept only where its gradient is summed. */
Test(team_plan, each_moment_is_kept_by_the_owner_of_its_parameter_alone) {
    vd_program p = program_of(VD_MODEL_GPT2, 8);
    const uint32_t trained = (p.leaf_count - 2) / 3; /* w, m and v of each parameter, and c1, c2 */
    vd_team_plan plan = plan_of(&p, 4);
    for (uint32_t i = 0; i < trained; i++)
        for (uint32_t r = 0; r < 4; r++) {
            const bool owner = plan.leaf_owner[i] == r;
            cr_expect(vd_team_keeps(&plan, r, i), "%s is read everywhere", p.leaf[i].name);
            cr_expect(vd_team_keeps(&plan, r, trained + i) == owner);
            cr_expect(vd_team_keeps(&plan, r, 2 * trained + i) == owner);
        }
    vd_team_plan_free(&plan);
    vd_program_free(&p);
}

/* ---- bytes ---- */

typedef struct {
    uint64_t all, most; /* bytes sent by all ranks, and by the one that sends most */
} traffic;

static traffic traffic_of(const vd_program *p, uint32_t ranks) {
    vd_team_plan plan = plan_of(p, ranks);
    uint64_t sent[RANKS] = {0};
    traffic t = {0};
    for (uint32_t i = 0; i < plan.message_count; i++)
        sent[plan.message[i].from] +=
            vd_shape_bytes(vd_value_shape(p, &p->step, plan.message[i].value));
    for (uint32_t r = 0; r < ranks; r++) {
        t.all += sent[r];
        t.most = sent[r] > t.most ? sent[r] : t.most;
    }
    vd_team_plan_free(&plan);
    return t;
}

static uint64_t parameter_bytes(const vd_program *p) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < (p->leaf_count - 2) / 3; i++)
        bytes += vd_shape_bytes(&p->leaf[i].shape);
    return bytes;
}

/* In a ring, each rank sends 2 (R-1)/R of the gradient, so 2 gradients in all. In addition,
 * the loss and one number for each parameter, for the norm, are sent to every other rank. */
Test(team_plan, where_a_rank_has_a_power_of_two_the_bytes_are_those_of_a_ring) {
    for (uint32_t ranks = 1; ranks <= RANKS; ranks++)
        for (int64_t each = 1; each <= 4; each *= 2) {
            vd_program p = program_of(VD_MODEL_GPT2, each * ranks);
            const uint64_t ring = 2 * (uint64_t)(ranks - 1) * parameter_bytes(&p);
            const uint64_t scalars = 4 * (uint64_t)(ranks - 1) * ((p.leaf_count - 2) / 3 + 2);
            const traffic t = traffic_of(&p, ranks);
            cr_expect(t.all == ring + scalars, "%u ranks of %lld: %llu, %llu + %llu", ranks,
                      (long long)each, (unsigned long long)t.all, (unsigned long long)ring,
                      (unsigned long long)scalars);
            vd_program_free(&p);
        }
}

/* Other numbers of micro-batches split subtrees: a rank sends a partial sum for each whole subtree
 * in its range, of which there are at most 2 log2 of the number. */
Test(team_plan, other_numbers_of_micro_batches_take_a_few_partial_sums_more) {
    for (int64_t micro = 2; micro <= MICRO; micro++) {
        vd_program p = program_of(VD_MODEL_GPT2, micro);
        for (uint32_t ranks = 2; ranks <= RANKS && ranks <= micro; ranks++) {
            const uint64_t ring = 2 * (uint64_t)(ranks - 1) * parameter_bytes(&p);
            const traffic t = traffic_of(&p, ranks);
            cr_expect(t.all >= ring && t.all < 3 * ring, "%u ranks, %lld: %.3f of a ring", ranks,
                      (long long)micro, (double)t.all / (double)ring);
        }
        vd_program_free(&p);
    }
}

/* ---- where additions are computed ---- */

/* An addition is computed where one of its operands is, so that at most one partial sum is sent for
 * it. */
static void expect_sides(const vd_spread *s, uint32_t lo, uint32_t hi, uint32_t home) {
    uint32_t half = 1;
    if (hi - lo == 1) {
        cr_expect(vd_spread_place(s, lo, hi, home) == vd_spread_rank(s, lo));
        return;
    }
    while (2 * half < hi - lo)
        half *= 2;
    const uint32_t here = vd_spread_place(s, lo, hi, home);
    cr_expect(here == vd_spread_place(s, lo, lo + half, home) ||
              here == vd_spread_place(s, lo + half, hi, home));
    expect_sides(s, lo, lo + half, home);
    expect_sides(s, lo + half, hi, home);
}

Test(team_plan, an_addition_is_made_where_one_of_its_sides_is_and_the_last_at_home) {
    for (uint32_t count = 1; count <= 40; count++)
        for (uint32_t ranks = 1; ranks <= count; ranks++) {
            const vd_spread s = {count, ranks};
            for (uint32_t home = 0; home < ranks; home++) {
                cr_expect(vd_spread_place(&s, 0, count, home) == home);
                expect_sides(&s, 0, count, home);
            }
        }
}

/* ---- wrong sizes ---- */

Test(team_plan, more_ranks_than_micro_batches_are_refused) {
    vd_program p = program_of(VD_MODEL_MLP, 3);
    vd_team_plan plan;
    vd_err err = {0};
    cr_expect(vd_team_plan_create(&p, 4, &plan, &err) == VD_ERR_USAGE);
    cr_expect_str_eq(err.text, "a team of 4 processes: expected 1 to 3, as a step has 3 "
                               "micro-batches and each process takes one at least");
    cr_expect(vd_team_plan_create(&p, 0, &plan, &err) == VD_ERR_USAGE);
    vd_program_free(&p);
}
