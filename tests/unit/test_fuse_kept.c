/* Fused attention over keys that are kept in the state gives the same states as node by node,
 * whatever the graph. */
#include "repops/operators.h"
#include "tests/support/dispute.h"
#include "tests/support/fusing.h"
#include "verde/graph/build.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3 };

typedef struct {
    int64_t batch, queries, keys, heads, kv_heads, size, window;
    int64_t before; /* keys before the first step's first query; -1: the step number counts */
    bool whole;     /* queries, keys and values are columns of one value; kv_heads == heads */
} kept_case;

static const kept_case cases[] = {
    {1, 1, 8, 2, 2, 8, 0, 0, false},      {1, 1, 300, 4, 2, 16, 0, 130, false},
    {1, 1, 131, 2, 1, 32, 0, 127, false}, {1, 3, 300, 4, 4, 8, 0, 255, false},
    {2, 1, 140, 2, 2, 8, 0, 20, false},   {2, 5, 140, 4, 2, 8, 0, 126, false},
    {1, 1, 300, 4, 2, 8, 7, 140, false},  {1, 2, 400, 2, 2, 8, 129, 300, false},
    {1, 1, 140, 2, 2, 8, 0, -1, false},   {1, 1, 140, 2, 2, 8, 0, 137, false},
    {1, 1, 140, 3, 3, 8, 0, 60, true},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static vd_value split(vd_builder *b, vd_value x, int64_t parts, int64_t part, int64_t heads) {
    const vd_op op = {RO_OP_SPLIT_HEADS, {parts, part, heads}, NULL};
    return VD_EMIT(b, "heads", op, x);
}

static vd_value kept(vd_builder *b, const kept_case *c, vd_value x, vd_value rows, vd_value at) {
    x = VD_EMIT(b, "put", ((vd_op){RO_OP_PUT_ROWS, {[RO_PUT_ROWS_AXIS] = 1}, NULL}), x, rows, at);
    b->graph->output[b->graph->output[0]++] = x;
    const vd_value heads = split(b, x, 1, 0, c->kv_heads);
    const int64_t times = c->heads / c->kv_heads;
    const vd_op repeat = {RO_OP_REPEAT_HEADS, {times}, NULL};
    return times == 1 ? heads : VD_EMIT(b, "repeated", repeat, heads);
}

static vd_value place_of(vd_builder *b, const kept_case *c) {
    const ro_shape one = VD_SHAPE(RO_F32, 1);
    const vd_op fill = {RO_OP_FILL, {ro_attr_f32((float)c->before)}, &one};
    if (c->before < 0)
        return vd_step_value(b);
    const vd_value whole = VD_EMIT(b, "before", ((vd_op){RO_OP_CAST, {RO_I32}, NULL}),
                                   vd_emit(b, "before", fill, 0, NULL));
    return VD_EMIT(b, "first", ((vd_op){.op = RO_OP_IADD}), vd_step_value(b), whole);
}

/* Leaves: q, new keys, new values, kept keys, kept values, the result. */
static void build(const kept_case *c, vd_program *p) {
    vd_builder b = vd_builder_of(p, &p->step);
    const int64_t width = c->heads * c->size, kv = c->kv_heads * c->size;
    const ro_shape q = VD_SHAPE(RO_F32, c->batch, c->queries, c->whole ? 3 * width : width);
    const ro_shape rows = VD_SHAPE(RO_F32, c->batch, c->queries, kv);
    const ro_shape kept_rows = VD_SHAPE(RO_F32, c->batch, c->keys, kv);
    const ro_shape out = VD_SHAPE(RO_F32, c->batch, c->queries, width);
    *p = (vd_program){.steps = STEPS, .checkpoint_interval = 1};
    vd_add_leaf(&b, "q", &q), vd_add_leaf(&b, "k", &rows), vd_add_leaf(&b, "v", &rows);
    vd_add_leaf(&b, "k_kept", &kept_rows), vd_add_leaf(&b, "v_kept", &kept_rows);
    vd_add_leaf(&b, "out", &out);
    p->step.output = calloc(p->leaf_count, sizeof *p->step.output);
    p->step.output[0] = 3; /* the next index of output[], until all kept tensors have one */
    const vd_value at = place_of(&b, c);
    const vd_value qkv[] = {split(&b, 0, c->whole ? 3 : 1, 0, c->heads), kept(&b, c, 3, 1, at),
                            kept(&b, c, 4, 2, at)};
    const vd_value heads = vd_attention_at(&b, qkv, at, c->window);
    p->step.output[5] = VD_EMIT(&b, "join", ((vd_op){.op = RO_OP_JOIN_HEADS}), heads);
    for (uint32_t i = 0; i < 3; i++)
        p->step.output[i] = i;
    p->step.loss = UINT32_MAX;
    cr_assert(b.status == VD_OK, "%s", b.err.text);
    vd_builder_free(&b);
}

/* Kept rows that were never written also hold numbers, so that reading them shows. */
static vd_state steps(const vd_program *p, ro_ctx *ro, bool unfused) {
    const vd_exec exec = {.program = p, .ro = ro, .unfused = unfused};
    vd_state state = test_random_state(p, 2);
    vd_err err = {0};
    cr_assert(vd_state_place(&exec, &state, &err) == VD_OK, "%s", err.text);
    for (int i = 0; i < STEPS; i++)
        cr_assert(vd_exec_step(&exec, NULL, &state, NULL, &err) == VD_OK, "%s", err.text);
    test_state_in_host(p, &state);
    return state;
}

static void expect_the_states_of_nodes(const vd_program *p, ro_ctx *ro, int number) {
    vd_state fused = steps(p, ro, false), nodes = steps(p, ro, true);
    test_expect_equal_states(p, &fused, &nodes, number);
}

Test(fuse_kept, attention_gives_the_states_of_its_nodes) {
    ro_ctx *ro = test_two_threads();
    for (int i = 0; i < CASES; i++) {
        vd_program p;
        build(&cases[i], &p);
        cr_expect(test_groups_of(&p) == 1, "case %d: %u groups", i, test_groups_of(&p));
        expect_the_states_of_nodes(&p, ro, i);
        vd_program_free(&p);
    }
    ro_ctx_destroy(ro);
}

/* Nothing as wide as the cache is copied: the nodes that copy heads are idle or fused. */
Test(fuse_kept, heads_are_read_where_they_lie) {
    for (int i = 0; i < CASES; i++) {
        vd_program p;
        vd_plan plan;
        build(&cases[i], &p);
        cr_assert(vd_plan_create(&p, &p.step, VD_FUSE_LAYERS, &plan, NULL) == VD_OK);
        for (uint32_t k = 0; k < p.step.node_count; k++) {
            const int op = vd_node_stored(&p.step, k)->op;
            if (op == RO_OP_SPLIT_HEADS || op == RO_OP_REPEAT_HEADS)
                cr_expect(plan.idle[k] || plan.group_of[k] != VD_NO_GROUP, "case %d: %s", i,
                          vd_node_name(&p.step, k).text);
        }
        vd_plan_free(&plan);
        vd_program_free(&p);
    }
}

/* Queries before or behind all keys, at least in the last step, or at a place that is no exact
 * integer. */
Test(fuse_kept, places_outside_the_keys_run_as_nodes) {
    static const float before[] = {-1, -5, 138, 139, 140, 1000, 0.5f, 16777217.0f * 2, NAN, -0.0f};
    ro_ctx *ro = test_two_threads();
    for (int i = 0; i < 10; i++) {
        const kept_case c = {1, 1, 140, 2, 2, 8, i % 2 ? 9 : 0, 3, false};
        vd_program p;
        build(&c, &p);
        test_node_at(&p, RO_OP_FILL, 0)->attr[RO_FILL_VALUE] = ro_attr_f32(before[i]);
        cr_expect(test_groups_of(&p) == (i == 9), "before %g", (double)before[i]);
        expect_the_states_of_nodes(&p, ro, i);
        vd_program_free(&p);
    }
    ro_ctx_destroy(ro);
}

/* Changes the place or window of one node, or how the place is computed, so that the nodes are not
 * the fused function. */
static void disturb(vd_program *p, uint64_t *random) {
    static const int ops[] = {RO_OP_ATTN_MAX_AT, RO_OP_ATTN_EXP_AT, RO_OP_ATTN_AV_AT};
    const vd_node *sum = test_node_at(p, RO_OP_IADD, 0);
    const uint32_t place[] = {test_node_value(p, sum),
                              test_node_value(p, test_node_at(p, RO_OP_CAST, 0)),
                              vd_source_count(p, &p->step) - 1};
    for (int i = 0; i < 3; i++) {
        vd_node *n = test_node_at(p, ops[i], 0);
        if (test_random(random) % 4 == 0)
            p->step.stored_edge[n->first_input + (uint32_t)n->input_count - 1] =
                place[test_random(random) % 3];
        if (test_random(random) % 4 == 0)
            n->attr[RO_PLACED_WINDOW] = (int64_t)(test_random(random) % 3) * 40;
    }
    if (test_random(random) % 8 == 0)
        p->step.stored_edge[sum->first_input] = place[1];
    if (test_random(random) % 4 == 0)
        test_node_at(p, RO_OP_PUT_ROWS, 0)->attr[RO_PUT_ROWS_AXIS] = 1;
    if (test_random(random) % 4 == 0) /* values are read before the new ones are put */
        p->step.stored_edge[test_node_at(p, RO_OP_SPLIT_HEADS, 2)->first_input] = 4;
    if (test_random(random) % 8 == 0)
        p->step.output[4] = 4;
}

Test(fuse_kept, a_disturbed_graph_gives_the_states_of_its_nodes) {
    ro_ctx *ro = test_two_threads();
    uint64_t random = 3;
    uint32_t fused = 0, number;
    for (number = 0; number < 600; number++) {
        const kept_case c = {1, 1, 140, 2, 1 + number % 2, 8, number % 3 ? 0 : 40, 100, false};
        vd_program p;
        build(&c, &p);
        disturb(&p, &random);
        fused += test_groups_of(&p);
        expect_the_states_of_nodes(&p, ro, (int)number);
        vd_program_free(&p);
    }
    cr_expect(fused > number / 10 && fused < number / 2, "%u of %u", fused, number);
    ro_ctx_destroy(ro);
}

Test(fuse_kept, a_value_that_is_read_elsewhere_stays) {
    static const int inside[] = {RO_OP_MATMUL, RO_OP_ATTN_MAX_AT, RO_OP_ATTN_EXP_AT,
                                 RO_OP_ATTN_AV_AT, RO_OP_REDUCE_SUM};
    for (int i = 0; i < 5; i++) {
        vd_program p;
        build(&cases[0], &p);
        p.step.loss = test_node_value(&p, test_node_at(&p, inside[i], 0));
        cr_expect(test_groups_of(&p) == 0, "%s", ro_op_describe(inside[i])->name);
        vd_program_free(&p);
    }
}
