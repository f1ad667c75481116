/* Attention without a gradient, as in inference: nobody reads its largest scores, so they need not
 * be computed. */
#include "repops/operators.h"
#include "tests/support/dispute.h"
#include "tests/support/fusing.h"
#include "verde/graph/build.h"

#include <criterion/criterion.h>
#include <stdlib.h>

typedef struct {
    int64_t rows, keys, heads, kv_heads, size;
    bool causal;
    float rate;
} attention_case;

static const attention_case cases[] = {
    {140, 140, 2, 2, 8, true, 0},   {140, 140, 4, 2, 8, true, 0.1f}, {9, 300, 2, 2, 32, false, 0},
    {257, 257, 3, 1, 64, false, 0}, {1, 33, 1, 1, 7, false, 0},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* The state's last tensor becomes the result. The builder always emits the node for the largest
 * scores; here it reads a tensor of the state instead of the scores. */
static void build(const attention_case *c, vd_program *p) {
    vd_builder b = vd_builder_of(p, &p->step);
    const ro_shape q = VD_SHAPE(RO_F32, 2, c->rows, c->heads * c->size);
    const ro_shape kv = VD_SHAPE(RO_F32, 2, c->keys, c->kv_heads * c->size);
    const ro_shape most =
        VD_SHAPE(RO_F32, 2, c->heads, c->rows, (c->keys + RO_ATTN_BLOCK - 1) / RO_ATTN_BLOCK);
    vd_value in[3];
    in[0] = vd_add_leaf(&b, "q", &q), in[1] = vd_add_leaf(&b, "k", &kv);
    in[2] = vd_add_leaf(&b, "v", &kv);
    const vd_value largest = vd_add_leaf(&b, "most", &most);
    vd_add_leaf(&b, "out", &q);
    const vd_value out = vd_grouped_attention(
        &b, in, &(vd_heads){c->heads, c->kv_heads, c->causal, NULL, {c->rate, 3, 5}, NULL, 0});
    p->step.loss = UINT32_MAX;
    p->step.output = calloc(p->leaf_count, sizeof *p->step.output);
    for (uint32_t i = 0; i < p->leaf_count; i++)
        p->step.output[i] = i;
    p->step.output[p->leaf_count - 1] = out;
    p->step.stored_edge[test_node_at(p, RO_OP_REDUCE_MAX, 0)->first_input] = largest;
    cr_assert(b.status == VD_OK, "%s", b.err.text);
    vd_builder_free(&b);
}

static vd_state stepped(const vd_program *p, ro_ctx *ro, bool unfused) {
    const vd_exec exec = {.program = p, .ro = ro, .unfused = unfused};
    vd_state state = test_random_state(p, 1);
    vd_err err = {0};
    float loss;
    cr_assert(vd_exec_step(&exec, NULL, &state, &loss, &err) == VD_OK, "%s", err.text);
    return state;
}

static void expect_the_state_of_nodes(const vd_program *p, ro_ctx *ro, int number) {
    vd_state fused = stepped(p, ro, false), nodes = stepped(p, ro, true);
    test_expect_equal_states(p, &fused, &nodes, number);
}

Test(fuse_forward, attention_gives_the_state_of_its_nodes) {
    ro_ctx *ro = test_two_threads();
    for (int i = 0; i < CASES; i++) {
        vd_program p = {0};
        build(&cases[i], &p);
        cr_expect(test_groups_of(&p) == 1, "case %d: %u groups", i, test_groups_of(&p));
        expect_the_state_of_nodes(&p, ro, i);
        vd_program_free(&p);
    }
    ro_ctx_destroy(ro);
}

/* A block's largest scores and a row's sum lie inside the group, which has only one output. */
Test(fuse_forward, attention_whose_sums_are_read_stays) {
    static const int read[] = {RO_OP_ATTN_L, RO_OP_REDUCE_SUM};
    for (int i = 0; i < 2; i++) {
        vd_program p = {0};
        build(&cases[CASES - 1], &p);
        vd_node *most = test_node_at(&p, RO_OP_REDUCE_MAX, 0);
        most->op = RO_OP_EXP;
        p.step.stored_edge[most->first_input] = test_node_value(&p, test_node_at(&p, read[i], 0));
        cr_expect(test_groups_of(&p) == 0, "case %d", i);
        vd_program_free(&p);
    }
}
