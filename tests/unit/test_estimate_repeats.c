/* The estimate of a program with repeats is at least that of the same program unrolled, and less
 * than twice as much. It looks only at stored nodes, however many nodes they stand for. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/support/shifted.h"
#include "tests/unit/small_models.h"
#include "verde/exec/estimate.h"

static uint64_t memory_of(const vd_program *p) {
    uint64_t bytes;
    vd_err err = {0};
    cr_assert(vd_estimate_memory(p, &bytes, &err) == VD_OK, "%s", err.text);
    return bytes;
}

/* Memory and terms of the step. */
typedef struct {
    uint64_t memory, terms;
} taken;

static taken taken_by(const vd_program *p) {
    return (taken){memory_of(p), vd_estimate_terms(p, &p->step)};
}

static taken unrolled(vd_program *p) {
    vd_err err = {0};
    cr_assert(vd_graph_unroll(&p->step, &err) == VD_OK, "%s", err.text);
    cr_assert(p->step.repeat_count == 0);
    return taken_by(p);
}

Test(estimate_repeats, micro_batches_take_what_their_unrolled_nodes_take) {
    for (int k = 0; k < KINDS; k++)
        for (int64_t micro = 2; micro <= 17; micro++) {
            vd_program p = program_of(kinds[k], micro);
            cr_assert(p.step.repeat_count > 0);
            const taken stored = taken_by(&p), each = unrolled(&p);
            cr_expect(stored.memory == each.memory, "kind %d, %lld micro-batches: %llu, not %llu",
                      (int)kinds[k], (long long)micro, (unsigned long long)stored.memory,
                      (unsigned long long)each.memory);
            cr_expect(stored.terms == each.terms);
            vd_program_free(&p);
        }
}

/* ---- random graphs ---- */

static uint32_t number = 1;

static uint32_t draw(uint32_t below) {
    number = number * 1664525 + 1013904223;
    return (number >> 8) % below;
}

enum { LEAVES = 3, ROOM = 200 };

static ro_shape drawn_shape(void) {
    return (ro_shape){.dtype = RO_F32, .ndim = 1, .dim = {1 + draw(200)}};
}

static void *room(size_t size) {
    void *list = calloc(ROOM, size);
    cr_assert(list);
    return list;
}

/* A program without a meaning, whose leaves have random shapes. */
static vd_program empty_program(void) {
    vd_program p = {.leaf_count = LEAVES, .steps = 1, .checkpoint_interval = 1};
    p.leaf = room(sizeof *p.leaf);
    for (int i = 0; i < LEAVES; i++)
        p.leaf[i].shape = drawn_shape();
    p.init = (vd_graph){.stored = room(sizeof(vd_node)),
                        .node_count = 1,
                        .stored_count = 1,
                        .output = room(sizeof(uint32_t))};
    p.init.stored->shape = drawn_shape();
    for (int i = 0; i < LEAVES; i++)
        p.init.output[i] = 1;
    p.step = (vd_graph){.stored = room(sizeof(vd_node)),
                        .stored_edge = room(sizeof(uint32_t)),
                        .stored_from = room(1),
                        .repeat = room(sizeof(vd_repeat)),
                        .carried = room(sizeof(vd_carried)),
                        .sum = room(sizeof(vd_sum)),
                        .shifted = room(sizeof(vd_shifted)),
                        .output = room(sizeof(uint32_t)),
                        .sources = LEAVES + 1};
    return p;
}

/* Draws a shifted input whose values all come before the repeat. Returns false if the drawn ones do
 * not. Shapes and kinds of values do not matter to the estimate. */
static bool draw_shifted(vd_graph *g, const vd_repeat *r, uint32_t edge) {
    const int64_t first = draw(g->sources + r->start), slope = (int64_t)draw(13) - 6;
    const int64_t last = first + slope * ((int64_t)r->count - 1);
    if (slope == 0 || last < 0 || last >= g->sources + r->start)
        return false;
    g->stored_from[edge] = VD_FROM_SHIFTED;
    g->stored_edge[edge] = g->shifted_count;
    g->shifted[g->shifted_count++] = (vd_shifted){(uint32_t)first, r->count, slope};
    return true;
}

/* Draws an input of a node in a body, of any of the four kinds (PROTOCOL.md 1.5). */
static void draw_input(vd_graph *g, const vd_repeat *r) {
    const uint32_t edge = g->edge_count++, node = g->stored_count, earlier = draw(node + 1);
    const vd_repeat *other = vd_repeat_of(g, earlier);
    g->stored_edge[edge] = draw(g->sources + g->node_count);
    g->stored_from[edge] = VD_FROM_VALUE;
    if (r && draw(4) == 0 && draw_shifted(g, r, edge))
        return;
    if (r && r->carried_count && draw(3) == 0) {
        g->stored_from[edge] = VD_FROM_CARRIED;
        g->stored_edge[edge] = draw(r->carried_count);
    } else if (r && earlier < node &&
               (earlier >= r->first || (other && other->count == r->count))) {
        g->stored_from[edge] = VD_FROM_NODE;
        g->stored_edge[edge] = earlier;
    }
}

static void draw_nodes(vd_graph *g, const vd_repeat *r, uint32_t count) {
    for (; count > 0; count--) {
        vd_node *n = &g->stored[g->stored_count];
        *n = (vd_node){.first_input = g->edge_count, .shape = drawn_shape(), .moving = -1};
        for (n->input_count = 0; n->input_count < 3 && draw(3); n->input_count++)
            draw_input(g, r);
        g->stored_count++;
        g->node_count += r == NULL;
    }
}

static void draw_repeat(vd_program *p, uint32_t count) {
    vd_graph *g = &p->step;
    vd_repeat r = {.count = count,
                   .first = g->stored_count,
                   .size = 1 + draw(5),
                   .start = g->node_count,
                   .carried = g->carried_count,
                   .carried_count = draw(3),
                   .sum = g->sum_count,
                   .sum_count = draw(4)};
    for (uint32_t i = 0; i < r.carried_count; i++)
        g->carried[g->carried_count++] =
            (vd_carried){draw(g->sources + r.start), r.first + draw(r.size)};
    draw_nodes(g, &r, r.size);
    for (uint32_t i = r.carried; i < g->carried_count; i++)
        g->stored[g->carried[i].node].shape = *vd_value_shape(p, g, g->carried[i].before);
    for (uint32_t i = 0; i < r.sum_count; i++) {
        const uint32_t node = r.first + draw(r.size);
        g->sum[g->sum_count++] = (vd_sum){
            .node = node, .add = {.input_count = 2, .moving = -1, .shape = g->stored[node].shape}};
    }
    g->repeat[g->repeat_count++] = r;
    g->node_count += (uint32_t)vd_repeat_nodes(&r);
}

/* Two carried values may be drawn with the same node but first values of different shapes. Such a
 * program is not valid. */
static bool is_valid(const vd_program *p) {
    const vd_graph *g = &p->step;
    for (uint32_t i = 0; i < g->carried_count; i++)
        if (!ro_shape_equal(&g->stored[g->carried[i].node].shape,
                            vd_value_shape(p, g, g->carried[i].before)))
            return false;
    return true;
}

Test(estimate_repeats, no_graph_takes_more_than_is_reckoned_nor_half_of_it) {
    int valid = 0;
    for (int i = 0; i < 20000; i++) {
        vd_program p = empty_program();
        const uint32_t count = 2 + draw(9);
        draw_nodes(&p.step, NULL, draw(4));
        draw_repeat(&p, count);
        draw_nodes(&p.step, NULL, draw(3));
        draw_repeat(&p, draw(2) ? count : 2 + draw(9));
        draw_nodes(&p.step, NULL, 1 + draw(4));
        for (int k = 0; k < LEAVES; k++)
            p.step.output[k] = p.step.sources + draw(p.step.node_count);
        if (is_valid(&p)) {
            const uint64_t stored = memory_of(&p);
            vd_err err = {0};
            cr_assert(vd_graph_unroll(&p.step, &err) == VD_OK, "%s", err.text);
            const uint64_t each = memory_of(&p);
            cr_expect(stored >= each && stored < 2 * each, "graph %d: %llu, its nodes %llu", i,
                      (unsigned long long)stored, (unsigned long long)each);
            valid++;
        }
        vd_program_free(&p);
    }
    cr_expect(valid > 5000, "%d of the graphs are valid", valid);
}

Test(estimate_repeats, shifted_inputs_take_what_their_unrolled_nodes_take) {
    for (uint32_t times = 2; times <= 40; times++) {
        vd_program p;
        test_shifted_program(&p, 1, times, times % 2);
        const taken stored = taken_by(&p), each = unrolled(&p);
        cr_expect(stored.memory >= each.memory && stored.memory < each.memory + each.memory / 2,
                  "%u times: %llu, its nodes %llu", times, (unsigned long long)stored.memory,
                  (unsigned long long)each.memory);
        cr_expect(stored.terms == each.terms);
        vd_program_free(&p);
    }
}

/* A sanitizer maps more memory for itself. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define LIMIT_MEMORY false
#else
#define LIMIT_MEMORY true
#endif

/* The program stands for millions of nodes. An array over them would not fit. */
Test(estimate_repeats, a_short_program_of_many_nodes_is_reckoned_in_little_memory) {
    const struct rlimit little = {64 << 20, 64 << 20};
    vd_program p = empty_program();
    draw_nodes(&p.step, NULL, 1);
    draw_repeat(&p, 1 << 20);
    while (vd_repeat_nodes(p.step.repeat) < 1 << 22) {
        vd_program_free(&p);
        p = empty_program();
        draw_nodes(&p.step, NULL, 1);
        draw_repeat(&p, 1 << 20);
    }
    cr_assert(!LIMIT_MEMORY || setrlimit(RLIMIT_DATA, &little) == 0);
    cr_expect(memory_of(&p) > UINT64_C(200) << 22);
    vd_program_free(&p);
}
