/* An audit's draws are fixed to the bit and uniform, and find faults as often as the report says.
 * PROTOCOL.md sections 13.4 and 13.7. */
#include "repops/operators.h"
#include "tests/support/dispute.h"
#include "verde/protocol/audit_draw.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static vd_hash seed_of(uint64_t number) {
    vd_hash root = {{0}}, seed;
    cr_assert(vd_draw_seed(&number, sizeof number, &root, &seed));
    return seed;
}

static uint64_t draw(const vd_hash *seed, uint64_t index, uint64_t below) {
    uint64_t out;
    cr_assert(vd_draw_below(seed, index, below, &out));
    return out;
}

/* Expected values were computed from section 13.4 with Python's hashlib. */
Test(audit_draw, numbers_are_those_of_the_document) {
    vd_hash root, seed, secret;
    char hex[2 * VD_HASH_SIZE + 1];
    memset(root.b, 2, sizeof root.b);
    cr_assert(vd_draw_seed("value", 5, &root, &seed));
    vd_hex(seed.b, sizeof seed.b, hex);
    cr_assert_str_eq(hex, "81e63f209b7ec58efecf65ea018feab5ab6c998fa5a626b49f42cd8a0611e358");
    cr_assert_eq(draw(&seed, 0, 1000), 558);
    cr_assert_eq(draw(&seed, 1, UINT64_C(1) << 40), UINT64_C(6498231030));
    cr_assert(vd_secret_hash(&root, &secret));
    vd_hex(secret.b, sizeof secret.b, hex);
    cr_assert_str_eq(hex, "c4126aad2c680629a178d87df9901f0fd2c404fae7a2a33b981e770aed4ab9c9");
}

Test(audit_draw, numbers_are_even) {
    enum { COUNT = 14000, BELOW = 7 };
    const vd_hash seed = seed_of(1);
    uint32_t seen[BELOW] = {0};
    for (uint64_t i = 0; i < COUNT; i++)
        seen[draw(&seed, i, BELOW)]++;
    for (int i = 0; i < BELOW; i++)
        cr_assert(seen[i] > 1800 && seen[i] < 2200, "%d: %u", i, seen[i]);
}

/* Steps are distinct, as many as wanted, and no interval gets more than it has. */
Test(audit_draw, steps_are_different) {
    vd_program program = {.steps = 23, .checkpoint_interval = 5};
    for (uint32_t wanted = 1; wanted <= 24; wanted++) {
        const vd_hash seed = seed_of(wanted);
        vd_drawn_interval *list;
        uint32_t count, steps = 0;
        int64_t step[24];
        cr_assert(vd_draw_intervals(&program, &seed, wanted, &list, &count, NULL) == VD_OK);
        for (uint32_t i = 0; i < count; i++) {
            cr_assert(list[i].steps >= 1 && list[i].steps <= list[i].to - list[i].from);
            cr_assert(i == 0 || list[i].from > list[i - 1].from);
            cr_assert(vd_draw_steps(&list[i], &seed, &step[steps], NULL) == VD_OK);
            steps += list[i].steps;
        }
        cr_assert_eq(steps, wanted);
        for (uint32_t i = 1; i < steps; i++)
            cr_assert(step[i] > step[i - 1]);
        cr_assert(step[0] >= -1 && step[steps - 1] < 23);
        free(list);
    }
}

/* The initialisation is an interval; the last one may be shorter. */
Test(audit_draw, intervals_are_different) {
    vd_program program = {.steps = 23, .checkpoint_interval = 5};
    uint32_t seen[6] = {0};
    cr_assert_eq(vd_interval_count(&program), 6);
    for (uint32_t wanted = 1; wanted <= 6; wanted++) {
        for (uint64_t i = 0; i < 100; i++) {
            const vd_hash seed = seed_of(100 * wanted + i);
            vd_drawn_interval *list;
            uint32_t count;
            cr_assert(vd_draw_again(&program, &seed, wanted, &list, &count, NULL) == VD_OK);
            cr_assert_eq(count, wanted);
            for (uint32_t k = 0; k < count; k++) {
                const int64_t from = list[k].from, to = from < 0        ? 0
                                                        : from + 5 < 23 ? from + 5
                                                                        : 23;
                cr_assert(list[k].to == to && (k == 0 || from > list[k - 1].from));
                seen[wanted == 1 ? (from + 5) / 5 : 0]++;
            }
            free(list);
        }
    }
    for (int k = 1; k < 6; k++) /* out of 100 draws of a single interval */
        cr_assert(seen[k] > 5 && seen[k] < 30, "%d: %u", k, seen[k]);
}

/* In every step all leaves of the state, all nodes with a single element, and the batch are
 * checked. */
Test(audit_draw, whole_nodes_are_in_every_step) {
    test_job job;
    vd_crumb *list;
    size_t count;
    test_job_open(&job, VD_MODEL_MLP, 3, 3);
    const vd_graph *graph = &job.program.step;
    const vd_hash seed = seed_of(3);
    bool *seen = calloc(graph->node_count, sizeof *seen);
    uint64_t leaves = 0, drawn = 0;
    cr_assert(vd_draw_crumbs(&job.program, 1, &seed, 50, &list, &count, NULL) == VD_OK);
    for (size_t i = 0; i < count; i++) {
        cr_assert(i == 0 || list[i].node >= list[i - 1].node);
        leaves += list[i].node < 0 ? list[i].leaf_count : 0;
        drawn += list[i].drawn;
        if (list[i].node >= 0)
            seen[list[i].node] = true;
    }
    cr_assert_eq(leaves, job.program.leaf_count);
    cr_assert_eq(drawn, 50);
    cr_assert(vd_is_whole(&job.program, graph, test_node(&job, 1, RO_OP_READ_BATCH)));
    for (uint32_t node = 0; node < graph->node_count; node++)
        cr_assert(seen[node] || !vd_is_whole(&job.program, graph, node));
    free(seen);
    free(list);
    test_job_close(&job);
}

/* ---- how often faults are found ---- */

/* Is an element wrong on hardware that errs in `each` of a million elements? */
static bool errs(uint64_t machine, const vd_crumb *c, uint32_t each) {
    uint64_t state = machine * 1000003 + (uint64_t)c->step;
    state = test_random(&state) ^ (uint64_t)c->node << 40 ^ (uint64_t)c->element;
    return test_random(&state) % 1000000 < each;
}

/* Draws like an audit of 8 steps; returns true if a drawn element is wrong. */
static bool finds(const test_job *job, uint64_t audit, uint32_t crumbs, uint32_t each) {
    bool found = false;
    for (int64_t step = 0; step < 8 && !found; step++) {
        const vd_hash seed = seed_of(audit * 8 + (uint64_t)step);
        vd_crumb *list;
        size_t count;
        cr_assert(vd_draw_crumbs(&job->program, step, &seed, crumbs / 8, &list, &count, NULL) ==
                  VD_OK);
        for (size_t i = 0; i < count && !found; i++)
            found = list[i].drawn && errs(audit, &list[i], each);
        free(list);
    }
    return found;
}

/* 1 - 0.999^3000 = 0.9503: 570 of 600 audits, with a standard deviation of 5.3. */
Test(audit_draw, three_thousand_find_one_wrong_of_a_thousand_in_95_of_100, .timeout = 120) {
    enum { AUDITS = 600 };
    test_job job;
    uint32_t found = 0;
    test_job_open(&job, VD_MODEL_GPT2, 8, 8);
    for (uint64_t i = 0; i < AUDITS; i++)
        found += finds(&job, i, 3000, 1000);
    cr_assert(found > 550 && found < 590, "%u of %d", found, AUDITS);
    for (uint64_t i = found = 0; i < 50; i++)
        found += finds(&job, i, 3000, 0);
    cr_assert_eq(found, 0);
    test_job_close(&job);
}
