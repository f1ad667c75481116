/* Execution with fused groups of nodes gives the same states as node by node. */
#include "repops/operators.h"
#include "tests/support/dispute.h"
#include "tests/support/fusing.h"
#include "verde/graph/build.h"
#include "verde/graph/tape.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- one attention layer and a loss; the state after a step holds the gradients ---- */

typedef struct {
    int64_t rows, keys, heads, kv_heads, size;
    bool causal, together; /* together: q, k and v are columns of one value */
    float rate;
    bool ignores; /* some rows have the label IGNORED */
    int64_t window;
} attention_case;

static const attention_case cases[] = {
    {140, 140, 2, 2, 8, true, true, 0},
    {140, 140, 2, 2, 8, true, true, 0.1f},
    {140, 140, 4, 2, 8, true, false, 0.1f},
    {140, 140, 6, 2, 5, false, false, 0},
    {9, 300, 2, 2, 32, false, false, 0.2f},
    {257, 257, 3, 1, 64, true, false, 0},
    {33, 33, 1, 1, 7, false, false, 0},
    {200, 200, 4, 2, 8, true, false, 0.1f, false, 70},
    {257, 257, 2, 2, 8, true, false, 0, false, 128},
    {33, 33, 1, 1, 7, false, false, 0, true},
};
enum { CASES = sizeof cases / sizeof cases[0], VOCAB = 7, IGNORED = 5, ROWS_MAX = 300 };

static int32_t targets[2 * ROWS_MAX];

static void build(const attention_case *c, vd_program *p) {
    vd_builder b = vd_builder_of(p, &p->step);
    const vd_dropout_attr dropout = {c->rate, 3, 5};
    const int64_t width = c->heads * c->size, kv_width = c->kv_heads * c->size;
    const ro_shape q = VD_SHAPE(RO_F32, 2, c->rows, c->together ? 3 * width : width);
    const ro_shape kv = VD_SHAPE(RO_F32, 2, c->keys, kv_width);
    const ro_shape table = VD_SHAPE(RO_F32, VOCAB, width);
    vd_value in[3] = {0}, out;
    cr_assert(vd_program_take_data(p, 1, NULL) == VD_OK);
    p->data[0].tensor.shape = VD_SHAPE(RO_I32, 2, c->rows);
    in[0] = vd_add_leaf(&b, "q", &q);
    for (int i = 1; i < 3 && !c->together; i++)
        in[i] = vd_add_leaf(&b, i == 1 ? "k" : "v", &kv);
    const vd_value head = vd_add_leaf(&b, "table", &table);
    out = c->together ? vd_attention(&b, in[0], c->heads, dropout)
                      : vd_grouped_attention(&b, in,
                                             &(vd_heads){c->heads, c->kv_heads, c->causal, NULL,
                                                         dropout, NULL, c->window});
    const vd_value logits = vd_project_rows(&b, out, head), labels = vd_data_value(&b, 0);
    const vd_value loss =
        c->ignores ? vd_xent_ignore(&b, logits, labels, IGNORED) : vd_xent(&b, logits, labels);
    p->step.loss = vd_reduce(&b, "loss", RO_OP_REDUCE_SUM, 2 * c->rows, 1, &loss);
    vd_backward(&b, loss, 1);
    p->step.output = calloc(p->leaf_count, sizeof *p->step.output);
    for (uint32_t i = 0; i < p->leaf_count; i++)
        p->step.output[i] = vd_grad(&b, i);
    cr_assert(b.status == VD_OK, "%s", b.err.text);
    vd_builder_free(&b);
}

static float step(const vd_program *p, ro_ctx *ro, bool unfused, vd_state *state) {
    vd_exec exec = {.program = p, .ro = ro, .data = (const void *[]){targets}, .unfused = unfused};
    vd_err err = {0};
    float loss = 0;
    *state = test_random_state(p, 1);
    cr_assert(vd_exec_step(&exec, NULL, state, &loss, &err) == VD_OK, "%s", err.text);
    return loss;
}

static void expect_the_state_of_nodes(const vd_program *p, ro_ctx *ro, int number) {
    vd_state fused, nodes;
    const float loss = step(p, ro, false, &fused), want = step(p, ro, true, &nodes);
    cr_assert(memcmp(&loss, &want, sizeof loss) == 0, "case %d: loss", number);
    test_expect_equal_states(p, &fused, &nodes, number);
}

/* Counts the copies of heads that are executed as nodes of their own. */
static uint32_t copies_of(const vd_program *p) {
    vd_plan plan;
    vd_err err = {0};
    uint32_t count = 0;
    cr_assert(vd_plan_create(p, &p->step, VD_FUSE_LAYERS, &plan, &err) == VD_OK, "%s", err.text);
    for (uint32_t i = 0; i < p->step.node_count; i++) {
        const int op = vd_node_stored(&p->step, i)->op;
        const vd_planned at = vd_plan_of(&plan, &p->step, i);
        count += (op == RO_OP_SPLIT_HEADS || op == RO_OP_JOIN_HEADS) && !at.idle &&
                 at.group == VD_NO_GROUP;
    }
    vd_plan_free(&plan);
    return count;
}

static ro_ctx *open_threads(void) {
    for (int32_t i = 0; i < 2 * ROWS_MAX; i++)
        targets[i] = i * 5 % VOCAB;
    return test_two_threads();
}

Test(fuse, attention_gives_the_state_of_its_nodes) {
    ro_ctx *ro = open_threads();
    for (int i = 0; i < CASES; i++) {
        vd_program p = {0};
        build(&cases[i], &p);
        cr_expect(test_groups_of(&p) == 3, "case %d: %u groups", i, test_groups_of(&p));
        cr_expect(copies_of(&p) == 0, "case %d: %u copies of heads", i, copies_of(&p));
        expect_the_state_of_nodes(&p, ro, i);
        vd_program_free(&p);
    }
    ro_ctx_destroy(ro);
}

static uint32_t value_of(const vd_program *p, int op) {
    uint32_t i = 0;
    while (vd_node_stored(&p->step, i)->op != op)
        i++;
    return vd_source_count(p, &p->step) + i;
}

static void replace_reads(vd_program *p, uint32_t value, uint32_t by) {
    for (uint32_t i = 0; i < p->step.edge_count; i++)
        if (p->step.stored_edge[i] == value)
            p->step.stored_edge[i] = by;
}

/* Changes the graph at random: heads from other columns, gradients joined in another order, twice
 * or with other values, another result, a result that is its own gradient, values that are also
 * read elsewhere. */
static void disturb_heads(vd_program *p, bool together, uint64_t *random) {
    uint32_t *edge = p->step.stored_edge, heads[3], gradient[4], *joined[3];
    const uint32_t out = test_node_value(p, test_node_at(p, RO_OP_ATTN_OUT, 0));
    const uint32_t dout = test_node_value(p, test_node_at(p, RO_OP_SPLIT_HEADS, 3));
    for (int i = 0; i < 3; i++) {
        vd_node *split = test_node_at(p, RO_OP_SPLIT_HEADS, i);
        const vd_node *join = test_node_at(p, RO_OP_JOIN_HEADS, together ? 1 : 1 + i);
        heads[i] = test_node_value(p, split);
        joined[i] = &edge[join->first_input + (uint32_t)(together ? i : 0)];
        gradient[i] = *joined[i];
        if (together)
            split->attr[RO_SPLIT_HEADS_PART] =
                test_random(random) % 4 ? i : (int64_t)(test_random(random) % 3);
        else if (test_random(random) % 4 == 0)
            edge[split->first_input] = test_random(random) % 3; /* one of the leaves q, k, v */
    }
    gradient[3] = heads[test_random(random) % 3];
    for (int i = 0; i < 3; i++)
        if (test_random(random) % 4 == 0)
            *joined[i] = gradient[test_random(random) % 4];
    if (test_random(random) % 4 == 0)
        edge[test_node_at(p, RO_OP_JOIN_HEADS, 0)->first_input] = heads[test_random(random) % 3];
    if (test_random(random) % 4 == 0)
        replace_reads(p, dout, test_random(random) % 2 ? out : heads[0]);
    if (test_random(random) % 2 == 0) {
        const uint32_t read[] = {gradient[0], gradient[1], gradient[2], out, heads[0], dout};
        p->step.loss = read[test_random(random) % 6];
    }
}

/* Whatever has to be copied then, the bytes are those of the nodes. */
Test(fuse, heads_may_lie_anywhere) {
    const attention_case small[] = {{5, 5, 2, 2, 4, true, true, 0},
                                    {6, 6, 2, 2, 3, false, false, 0.3f}};
    ro_ctx *ro = open_threads();
    uint64_t random = 5;
    uint32_t least = UINT32_MAX, most = 0;
    for (int number = 0; number < 4000; number++) {
        const attention_case *c = &small[number % 2];
        vd_program p = {0};
        build(c, &p);
        disturb_heads(&p, c->together, &random);
        expect_the_state_of_nodes(&p, ro, number);
        const uint32_t copies = copies_of(&p);
        least = copies < least ? copies : least, most = copies > most ? copies : most;
        vd_program_free(&p);
    }
    cr_expect(least == 0 && most > 5, "%u to %u copies of heads", least, most);
    ro_ctx_destroy(ro);
}

/* Values inside a group are never stored, so a reader outside keeps the nodes from being fused. */
Test(fuse, a_value_that_is_read_elsewhere_stays) {
    static const int inside[] = {RO_OP_ATTN_MAX,    RO_OP_ATTN_EXP,      RO_OP_ATTN_PROB,
                                 RO_OP_ATTN_DSCORE, RO_OP_REDUCE_EXPSUM, RO_OP_FILL};
    for (int i = 0; i < 6; i++) {
        vd_program p = {0};
        build(&cases[0], &p);
        p.step.loss = value_of(&p, inside[i]);
        cr_expect(test_groups_of(&p) == 2, "%s", ro_op_describe(inside[i])->name);
        vd_program_free(&p);
    }
}

/* A changed attribute, as a faulty provider may have it, gives the nodes another meaning, so they
 * must not be fused. */
Test(fuse, a_changed_node_stays) {
    static const struct {
        int op, attr;
        int64_t value;
    } change[] = {{RO_OP_ATTN_EXP, 0, 0}, {RO_OP_ATTN_DSCORE, 0, 0}, {RO_OP_REDUCE_SUM, 1, 64}};
    for (int i = 0; i < 3; i++) {
        vd_program p = {0};
        build(&cases[0], &p);
        const uint32_t sources = vd_source_count(&p, &p.step);
        p.step.stored[value_of(&p, change[i].op) - sources].attr[change[i].attr] = change[i].value;
        cr_expect(test_groups_of(&p) == 2, "change %d", i);
        vd_program_free(&p);
    }
}

/* A loss and a gradient that ignore different labels are not one function. */
Test(fuse, losses_that_ignore_other_labels_stay) {
    vd_program p = {0};
    build(&cases[CASES - 1], &p);
    const uint32_t loss = value_of(&p, RO_OP_XENT_IGNORE) - vd_source_count(&p, &p.step);
    cr_expect(test_groups_of(&p) == 3);
    p.step.stored[loss].attr[RO_LABELS_IGNORE]++;
    cr_expect(test_groups_of(&p) == 2);
    vd_program_free(&p);
}

/* Ends a graph that was built by hand, counts its groups and frees it. `first` becomes the first
 * leaf's next value. */
static uint32_t groups_by_hand(vd_builder *b, vd_program *p, vd_value loss, vd_value first) {
    p->step.loss = loss;
    p->step.output = calloc(p->leaf_count, sizeof *p->step.output);
    for (uint32_t i = 0; i < p->leaf_count; i++)
        p->step.output[i] = i ? i : first;
    cr_assert(b->status == VD_OK, "%s", b->err.text);
    const uint32_t count = test_groups_of(p);
    vd_builder_free(b);
    vd_program_free(p);
    return count;
}

/* ---- attention built node by node, with variants that look like the fused function ---- */

typedef struct {
    ro_shape k, v;
    int bias; /* one of the kinds below */
} odd_attention;

enum { NO_BIAS, BIAS, LATE_BIAS, BIAS_FIRST, OTHER_AXES, OTHER_QUERIES };

static vd_value bias_by_hand(vd_builder *b, vd_value numbers, int64_t keys, int kind) {
    ro_shape wide = VD_SHAPE(RO_F32, 1, 1, 1, keys), other = VD_SHAPE(RO_F32, 5, 1, 1, keys);
    if (kind == OTHER_QUERIES) { /* a bias for each query, repeated along heads */
        vd_value x = VD_EMIT(b, "x", ((vd_op){RO_OP_RESHAPE, .shape = &other}), numbers);
        ro_shape turned = VD_SHAPE(RO_F32, 1, 1, 5, keys);
        x = VD_EMIT(b, "x", ((vd_op){RO_OP_RESHAPE, .shape = &turned}), x);
        return VD_EMIT(b, "x", ((vd_op){RO_OP_EXPAND, {1, 2}, NULL}), x);
    }
    vd_value x = VD_EMIT(b, "x", ((vd_op){RO_OP_RESHAPE, .shape = &wide}), numbers);
    const int64_t first = kind == OTHER_AXES ? 2 : 1;
    x = VD_EMIT(b, "x", ((vd_op){RO_OP_EXPAND, {first, first == 1 ? 2 : 5}, NULL}), x);
    return VD_EMIT(b, "x", ((vd_op){RO_OP_EXPAND, {3 - first, first == 1 ? 5 : 2}, NULL}), x);
}

static uint32_t groups_of_odd(const odd_attention *o) {
    vd_program p = {0};
    vd_builder builder = vd_builder_of(&p, &p.step), *b = &builder;
    const ro_shape q_shape = VD_SHAPE(RO_F32, 1, 2, 5, 8);
    const int64_t keys = o->v.dim[2];
    const ro_shape numbers = VD_SHAPE(RO_F32, o->bias == OTHER_QUERIES ? 5 : 1, keys);
    const vd_value q = vd_add_leaf(b, "q", &q_shape), k = vd_add_leaf(b, "k", &o->k);
    const vd_value v = vd_add_leaf(b, "v", &o->v), n = vd_add_leaf(b, "n", &numbers);
    vd_value x = 0;
    if (o->bias != NO_BIAS && o->bias != LATE_BIAS)
        x = bias_by_hand(b, n, keys, o->bias);
    vd_value s = VD_EMIT(b, "s", vd_matmul_op(2, 2, 0.5f, RO_DOT_CHUNK, 0), q, k);
    if (o->bias == LATE_BIAS)
        x = bias_by_hand(b, VD_EMIT(b, "n", ((vd_op){.op = RO_OP_RELU}), n), keys, BIAS);
    if (o->bias == BIAS_FIRST)
        s = VD_EMIT(b, "s", ((vd_op){.op = RO_OP_ADD}), x, s);
    else if (o->bias != NO_BIAS)
        s = VD_EMIT(b, "s", ((vd_op){.op = RO_OP_ADD}), s, x);
    vd_value mc = VD_EMIT(b, "mc", ((vd_op){.op = RO_OP_ATTN_MAX}), s);
    vd_value e = VD_EMIT(b, "e", ((vd_op){.op = RO_OP_ATTN_EXP}), s, mc);
    const ro_shape blocks = *vd_shape_of(b, mc);
    const vd_op sum = {RO_OP_REDUCE_SUM, {o->k.dim[2], RO_ATTN_BLOCK}, &blocks};
    vd_value lc = VD_EMIT(b, "lc", sum, e);
    vd_value ac = VD_EMIT(b, "ac", ((vd_op){.op = RO_OP_ATTN_AV}), e, v);
    vd_value m = vd_reduce(b, "m", RO_OP_REDUCE_MAX, blocks.dim[3], 1, &mc);
    vd_value l = VD_EMIT(b, "l", ((vd_op){.op = RO_OP_ATTN_L}), mc, lc);
    vd_value out = VD_EMIT(b, "out", ((vd_op){.op = RO_OP_ATTN_OUT}), mc, ac, l);
    return groups_by_hand(b, &p, m, out);
}

Test(fuse, attention_of_another_meaning_stays) {
    const ro_shape k = VD_SHAPE(RO_F32, 1, 2, 7, 8), wide = VD_SHAPE(RO_F32, 1, 2, 7, 16);
    const ro_shape k_five = VD_SHAPE(RO_F32, 1, 2, 128, 2, 8),
                   v_five = VD_SHAPE(RO_F32, 1, 2, 256, 8);
    const struct {
        odd_attention of;
        uint32_t groups;
    } cases_of[] = {{{k, k, NO_BIAS}, 1},    {{k, k, BIAS}, 1},
                    {{k, wide, NO_BIAS}, 0}, {{k_five, v_five, NO_BIAS}, 0},
                    {{k, k, LATE_BIAS}, 0},  {{k, k, BIAS_FIRST}, 0},
                    {{k, k, OTHER_AXES}, 0}, {{k, k, OTHER_QUERIES}, 0}};
    for (size_t i = 0; i < sizeof cases_of / sizeof cases_of[0]; i++)
        cr_expect(groups_of_odd(&cases_of[i].of) == cases_of[i].groups, "case %zu", i);
}

Test(fuse, values_of_another_width_are_refused) {
    vd_program p = {0};
    vd_builder b = vd_builder_of(&p, &p.step);
    const ro_shape q = VD_SHAPE(RO_F32, 1, 5, 16), v = VD_SHAPE(RO_F32, 1, 5, 8);
    const vd_value in[] = {vd_add_leaf(&b, "q", &q), vd_add_leaf(&b, "k", &q),
                           vd_add_leaf(&b, "v", &v)};
    vd_grouped_attention(&b, in, &(vd_heads){.heads = 2, .kv_heads = 2});
    cr_expect(b.status == VD_ERR_USAGE && strstr(b.err.text, "the shape of keys"), "%s",
              b.err.text);
    vd_builder_free(&b);
    vd_program_free(&p);
}

/* Layer norm of [3, 4] whose sums have one level. `more` (an operator, or 0) adds a node over the
 * one column of squares: REDUCE_SQDEV computes something else, and REDUCE_SUM turns -0 into +0. */
static uint32_t groups_of_norm(int more) {
    vd_program p = {0};
    vd_builder builder = vd_builder_of(&p, &p.step), *b = &builder;
    const ro_shape rows = VD_SHAPE(RO_F32, 3, 4), cols = VD_SHAPE(RO_F32, 4),
                   one = VD_SHAPE(RO_F32, 3, 1);
    const vd_value x = vd_add_leaf(b, "x", &rows), other = vd_add_leaf(b, "other", &one);
    const vd_value gamma = vd_add_leaf(b, "gamma", &cols), beta = vd_add_leaf(b, "beta", &cols);
    const vd_op sum = {RO_OP_REDUCE_SUM, {4, 4}, &one},
                squares = {RO_OP_REDUCE_SQDEV, {4, 4}, &one};
    const vd_value total = VD_EMIT(b, "total", sum, x);
    const vd_value mean =
        VD_EMIT(b, "mean", ((vd_op){RO_OP_DIV_CONST, {ro_attr_f32(4)}, NULL}), total);
    vd_value s = VD_EMIT(b, "squares", squares, x, mean);
    if (more == RO_OP_REDUCE_SQDEV)
        s = VD_EMIT(b, "more", ((vd_op){more, {1, 1}, &one}), s, other);
    else if (more)
        s = VD_EMIT(b, "more", ((vd_op){more, {1, 1}, &one}), s);
    const vd_value rstd =
        VD_EMIT(b, "rstd", ((vd_op){RO_OP_LN_RSTD, {4, ro_attr_f32(1e-5f)}, NULL}), s);
    const vd_value y =
        VD_EMIT(b, "y", ((vd_op){.op = RO_OP_LAYERNORM}), x, mean, rstd, gamma, beta);
    return groups_by_hand(b, &p, rstd, y);
}

Test(fuse, sums_of_other_levels_stay) {
    cr_expect(groups_of_norm(0) == 1);
    cr_expect(groups_of_norm(RO_OP_REDUCE_SQDEV) == 0);
    cr_expect(groups_of_norm(RO_OP_REDUCE_SUM) == 0);
}

/* Moments of different gradients, or with different clipping, are not one step of AdamW. */
Test(fuse, moments_of_different_gradients_stay) {
    test_job job;
    test_job_open(&job, VD_MODEL_GPT2, 3, 1);
    vd_program *p = &job.program;
    const uint32_t before = test_groups_of(p);
    uint32_t *edge = &p->step.stored_edge[test_node_at(p, RO_OP_ADAMW_V, 0)->first_input];
    cr_assert(before > 0);
    edge[1] = edge[0];
    cr_expect(test_groups_of(p) == before - 1);
    test_job_close(&job);
}

/* ---- whole runs ---- */

static vd_hash root_of(const test_job *job, bool unfused) {
    char dir[] = "/tmp/fuse.XXXXXX";
    ro_ctx *ro;
    vd_run_result result;
    vd_err err = {0};
    cr_assert(mkdtemp(dir));
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2}, &ro) == RO_OK);
    const vd_exec exec = {
        .program = &job->program, .ro = ro, .data = job->data, .unfused = unfused};
    const vd_run_options options = {.exec = &exec, .dir = dir};
    cr_assert(vd_run(&options, &result, &err) == VD_OK, "%s", err.text);
    ro_ctx_destroy(ro);
    test_remove_dir(dir);
    return result.run_root;
}

static uint32_t count_of(const vd_program *p, int op) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->step.node_count; i++)
        count += vd_node_stored(&p->step, i)->op == op;
    return count;
}

static uint32_t groups_of_kind(const vd_program *p, vd_fused_kind kind) {
    vd_plan plan;
    vd_err err = {0};
    uint32_t count = 0;
    cr_assert(vd_plan_create(p, &p->step, VD_FUSE_LAYERS, &plan, &err) == VD_OK, "%s", err.text);
    for (uint32_t i = 0; i < plan.group_count; i++)
        if (plan.group[i].kind == kind)
            count += vd_plan_iterations(&plan, &p->step, i);
    vd_plan_free(&plan);
    return count;
}

/* Counts the groups of linear layers with this activation. *kept counts those that also output the
 * product before the activation. */
static uint32_t linear_groups(const vd_program *p, ro_activation activation, uint32_t *kept) {
    vd_plan plan;
    vd_err err = {0};
    uint32_t count = 0;
    cr_assert(vd_plan_create(p, &p->step, VD_FUSE_LAYERS, &plan, &err) == VD_OK, "%s", err.text);
    *kept = 0;
    for (uint32_t i = 0; i < plan.group_count; i++) {
        const vd_fused *g = &plan.group[i];
        const bool counts = g->kind == VD_FUSED_LINEAR && g->linear.activation == activation;
        const uint32_t times = counts ? vd_plan_iterations(&plan, &p->step, i) : 0;
        count += times;
        *kept += g->output_count == 2 ? times : 0;
    }
    vd_plan_free(&plan);
    return count;
}

static void expect_the_same_root(const test_job *job) {
    const vd_hash fused = root_of(job, false), nodes = root_of(job, true);
    cr_expect(vd_hash_equal(&fused, &nodes));
}

Test(fuse, a_run_has_the_same_root) {
    test_job job;
    test_job_open(&job, VD_MODEL_GPT2, 3, 1);
    const vd_program *p = &job.program;
    const uint32_t norms = count_of(p, RO_OP_LAYERNORM), gelu = count_of(p, RO_OP_GELU);
    uint32_t kept;
    cr_expect(gelu > 0 && linear_groups(p, RO_ACTIVATION_GELU, &kept) == gelu && kept == gelu);
    cr_expect(linear_groups(p, RO_ACTIVATION_NONE, &kept) == 3 * gelu && kept == 0);
    cr_expect(test_groups_of(p) == 8 + 4 * gelu + 2 * norms + count_of(p, RO_OP_ADAMW_W),
              "for each of two micro-batches: attention, its gradient, the loss, linear layers, "
              "norms and their gradients, the table's second gradient; each parameter");
    expect_the_same_root(&job);
    test_job_close(&job);
}

/* Linear layers with either kind of product are fused completely. */
Test(fuse, runs_with_fixed_products_have_the_same_root) {
    for (int bits = RO_FIXED_8; bits <= RO_FIXED_24; bits += 8) {
        test_job job;
        test_job_open_fixed(&job, VD_MODEL_GPT2, 2, bits);
        const vd_program *p = &job.program;
        const uint32_t gelu = count_of(p, RO_OP_GELU);
        uint32_t kept;
        cr_expect(count_of(p, RO_OP_MATMUL_FIXED) > 0, "%d bits", bits);
        cr_expect(gelu > 0 && linear_groups(p, RO_ACTIVATION_GELU, &kept) == gelu && kept == gelu);
        cr_expect(linear_groups(p, RO_ACTIVATION_NONE, &kept) == 3 * gelu && kept == 0);
        expect_the_same_root(&job);
        test_job_close(&job);
    }
}

/* SwiGLU has no bias; GELU by erf and ReLU do. BERT has padded keys and ignored labels. */
Test(fuse, runs_of_other_activations_have_the_same_root) {
    static const struct {
        vd_model_kind model;
        int op;
        ro_activation activation;
    } of[] = {{VD_MODEL_LLAMA, RO_OP_SILU, RO_ACTIVATION_SILU},
              {VD_MODEL_BERT, RO_OP_GELU_ERF, RO_ACTIVATION_GELU_ERF},
              {VD_MODEL_MLP, RO_OP_RELU, RO_ACTIVATION_RELU}};
    for (int i = 0; i < 3; i++) {
        test_job job;
        test_job_open(&job, of[i].model, 2, 1);
        const uint32_t count = count_of(&job.program, of[i].op);
        uint32_t kept;
        cr_expect(count > 0 && linear_groups(&job.program, of[i].activation, &kept) == count);
        cr_expect(kept == count, "%u of %u", kept, count);
        const vd_program *p = &job.program;
        cr_expect(groups_of_kind(p, VD_FUSED_CROSS_ENTROPY) > 0, "model %d", (int)of[i].model);
        cr_expect(groups_of_kind(p, VD_FUSED_ATTENTION) == count_of(p, RO_OP_ATTN_OUT));
        cr_expect(groups_of_kind(p, VD_FUSED_ATTENTION_GRAD) == count_of(p, RO_OP_ATTN_DSCORE));
        cr_expect(groups_of_kind(p, VD_FUSED_RMS_NORM) == count_of(p, RO_OP_RMSNORM));
        cr_expect(groups_of_kind(p, VD_FUSED_RMS_NORM_GRAD) == count_of(p, RO_OP_RMS_DX));
        cr_expect(groups_of_kind(p, VD_FUSED_ROTARY) + groups_of_kind(p, VD_FUSED_ROTARY_GRAD) ==
                  count_of(p, RO_OP_ROPE));
        expect_the_same_root(&job);
        test_job_close(&job);
    }
}

/* Input `input` of the first node of `op` becomes the same as its input `by`. Returns how many
 * gradients of norms are no longer fused. */
static uint32_t norms_without(int op, uint32_t input, uint32_t by) {
    test_job job;
    test_job_open(&job, VD_MODEL_LLAMA, 2, 1);
    vd_program *p = &job.program;
    cr_assert(vd_graph_unroll(&p->step, NULL) == VD_OK);
    const uint32_t before = groups_of_kind(p, VD_FUSED_RMS_NORM_GRAD);
    uint32_t *edge = &p->step.stored_edge[test_node_at(p, op, 0)->first_input];
    edge[input] = edge[by];
    expect_the_same_root(&job);
    const uint32_t lost = before - groups_of_kind(p, VD_FUSED_RMS_NORM_GRAD);
    test_job_close(&job);
    return lost;
}

/* A sum or a gradient of another value is not part of the norm. A norm whose gamma is not trained
 * has a fused gradient all the same. */
Test(fuse, norms_of_another_meaning_stay) {
    cr_expect(norms_without(RO_OP_REDUCE_RMS_GX, 0, 2) == 1);
    cr_expect(norms_without(RO_OP_REDUCE_RMS_GX, 2, 0) == 1);
    cr_expect(norms_without(RO_OP_RMS_DX, 2, 0) == 1);
    cr_expect(norms_without(RO_OP_RMS_DGAMMA, 0, 1) == 0);
}

/* Changes an attribute of the first node of `op`. Returns how many groups are no longer fused. */
static uint32_t rotaries_without(int op, int attr, int64_t value) {
    test_job job;
    test_job_open(&job, VD_MODEL_LLAMA, 2, 1);
    vd_program *p = &job.program;
    cr_assert(vd_graph_unroll(&p->step, NULL) == VD_OK);
    const uint32_t before =
        groups_of_kind(p, VD_FUSED_ROTARY) + groups_of_kind(p, VD_FUSED_ROTARY_GRAD);
    test_node_at(p, op, 0)->attr[attr] = value;
    expect_the_same_root(&job);
    const uint32_t after =
        groups_of_kind(p, VD_FUSED_ROTARY) + groups_of_kind(p, VD_FUSED_ROTARY_GRAD);
    test_job_close(&job);
    return before - after;
}

/* Either kind of pairs can be fused. A rotation whose direction is changed cannot. */
Test(fuse, rotary_positions_of_another_meaning_stay) {
    cr_expect(rotaries_without(RO_OP_ROPE, RO_ROPE_PAIRS, 1) == 0);
    cr_expect(rotaries_without(RO_OP_ROPE, RO_ROPE_INVERSE, 1) == 1);
}

/* Dropout adds the step's number to the first one. Beyond 2^24 the number would be rounded in
 * f32. */
Test(fuse, a_run_whose_steps_are_numbered_has_the_same_root) {
    static const vd_model_kind kinds[] = {VD_MODEL_GPT2, VD_MODEL_BERT};
    for (int i = 0; i < 2; i++) {
        test_job job;
        test_job_open_from(&job, kinds[i], 2, 700);
        const vd_program *p = &job.program;
        cr_expect(groups_of_kind(p, VD_FUSED_ATTENTION) == 2);
        cr_expect(groups_of_kind(p, VD_FUSED_ATTENTION_GRAD) == 2);
        expect_the_same_root(&job);
        job.program.steps = 1 << 24;
        cr_expect(groups_of_kind(p, VD_FUSED_ATTENTION) == 0);
        test_job_close(&job);
    }
}

Test(fuse, a_run_with_sgd_has_the_same_root) {
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        test_job job;
        test_job_open_sgd(&job, 3, nesterov);
        const uint32_t steps = count_of(&job.program, RO_OP_SGD_M);
        cr_expect(steps > 0 && test_groups_of(&job.program) >= steps, "%u groups",
                  test_groups_of(&job.program));
        const vd_hash fused = root_of(&job, false), nodes = root_of(&job, true);
        cr_expect(vd_hash_equal(&fused, &nodes));
        test_job_close(&job);
    }
}
