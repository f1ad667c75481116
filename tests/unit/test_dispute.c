/* Faults of every kind, at every kind of place: exactly the dishonest provider is convicted, for
 * the right reason, as first and as second provider. */
#include "each_operator.h"
#include "repops/op_movement.h"
#include "repops/op_optimizer.h"
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* The node that the conviction must name. */
typedef enum { AT_NODE, AT_FIRST_SEED, AT_NO_NODE } place;

static uint32_t first_seed(const test_job *job, int64_t step) {
    const vd_graph *graph = vd_step_graph(&job->program, step);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const ro_op_info *info = ro_op_describe(vd_node_stored(graph, i)->op);
        if (info->attr_count && strcmp(info->attr[RO_RANDOM_SEED].name, "seed") == 0)
            return i;
    }
    cr_assert_fail("no node has a seed");
    return 0;
}

static int64_t node_of(const test_job *job, const vd_fault *fault, place where) {
    if (where == AT_NO_NODE)
        return -1;
    return where == AT_NODE ? fault->node : first_seed(job, fault->step);
}

/* Settles both orders against the same honest provider. */
static void expect_caught(const test_job *job, const test_provider *honest, const vd_fault *fault,
                          vd_grade grade, int64_t step, int64_t node, const char *what) {
    test_provider liar;
    test_dispute d;
    test_provider_open(&liar, job, 2, fault);
    for (uint32_t place_of_liar = 0; place_of_liar < 2; place_of_liar++) {
        test_duel(&d, job, &honest->side, &liar.side, place_of_liar);
        test_expect_convicted(&d, place_of_liar, grade, what);
        test_expect_place(&d, step, node, what);
        test_dispute_close(&d);
    }
    test_provider_close(&liar);
}

/* Six steps, a checkpoint after every second. Faults in the first, middle and last step, and on
 * both sides of a checkpoint. */
static const struct {
    const char *fault;
    vd_grade grade;
    int64_t step;
    place where;
} kinds[] = {
    {"element@0", VD_GRADE_WRONG_OUTPUT, 0, AT_NODE},
    {"element@3", VD_GRADE_WRONG_OUTPUT, 3, AT_NODE},
    {"element@5", VD_GRADE_WRONG_OUTPUT, 5, AT_NODE},
    {"element@-1:0", VD_GRADE_WRONG_OUTPUT, -1, AT_NODE},
    {"poison@0", VD_GRADE_WRONG_OUTPUT, 0, AT_NODE},
    {"poison@2", VD_GRADE_WRONG_OUTPUT, 2, AT_NODE},
    {"poison@5", VD_GRADE_WRONG_OUTPUT, 5, AT_NODE},
    {"input@0", VD_GRADE_WRONG_OUTPUT, 0, AT_NODE},
    {"input@3", VD_GRADE_WRONG_OUTPUT, 3, AT_NODE},
    {"lr@0", VD_GRADE_WRONG_GRAPH, 0, AT_NODE},
    {"lr@3", VD_GRADE_WRONG_GRAPH, 3, AT_NODE},
    {"lr@5", VD_GRADE_WRONG_GRAPH, 5, AT_NODE},
    {"seed@-1", VD_GRADE_WRONG_GRAPH, -1, AT_FIRST_SEED},
    {"seed@0", VD_GRADE_WRONG_GRAPH, 0, AT_FIRST_SEED},
    {"seed@3", VD_GRADE_WRONG_GRAPH, 3, AT_FIRST_SEED},
    {"seed@5", VD_GRADE_WRONG_GRAPH, 5, AT_FIRST_SEED},
    {"attr@-1:0", VD_GRADE_WRONG_GRAPH, -1, AT_NODE},
    {"attr@0", VD_GRADE_WRONG_GRAPH, 0, AT_NODE},
    {"attr@3", VD_GRADE_WRONG_GRAPH, 3, AT_NODE},
    {"attr@5", VD_GRADE_WRONG_GRAPH, 5, AT_NODE},
    {"skip@0", VD_GRADE_CONTRADICTION, 0, AT_NO_NODE},
    {"skip@2", VD_GRADE_CONTRADICTION, 2, AT_NO_NODE},
    {"skip@5", VD_GRADE_CONTRADICTION, 5, AT_NO_NODE},
    {"weights", VD_GRADE_WRONG_OUTPUT, -1, AT_NODE},
    {"history@1", VD_GRADE_BAD_PROOF, 1, AT_NO_NODE},
    {"history@3", VD_GRADE_BAD_PROOF, 3, AT_NO_NODE},
};

Test(dispute, convicts_every_kind_of_fault_at_first_middle_and_last_step) {
    test_job job;
    test_provider honest;
    test_job_open(&job, VD_MODEL_GPT2, 6, 2);
    test_provider_open(&honest, &job, 1, NULL);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        vd_fault fault = test_fault(&job, kinds[i].fault);
        expect_caught(&job, &honest, &fault, kinds[i].grade, kinds[i].step,
                      node_of(&job, &fault, kinds[i].where), kinds[i].fault);
    }
    test_provider_close(&honest);
    test_job_close(&job);
}

/* A checkpoint after every step; one interval over the whole run; a shorter last interval;
 * intervals longer than a frontier of the tree. */
static const struct {
    int64_t steps, checkpoint_interval;
} layouts[] = {{1, 1}, {3, 1}, {4, 4}, {5, 2}, {7, 3}, {20, 20}, {19, 1}};

static void try_step(const test_job *job, const test_provider *honest, int64_t step) {
    char what[96];
    vd_fault fault = {VD_FAULT_ELEMENT, step, test_node(job, step, RO_OP_ADAMW_M), 3, 20};
    snprintf(what, sizeof what, "%lld steps, checkpoint every %lld, element@%lld",
             (long long)job->program.steps, (long long)job->program.checkpoint_interval,
             (long long)step);
    expect_caught(job, honest, &fault, VD_GRADE_WRONG_OUTPUT, step, fault.node, what);
    fault = (vd_fault){.kind = VD_FAULT_SKIP, .step = step};
    expect_caught(job, honest, &fault, VD_GRADE_CONTRADICTION, step, -1, what);
}

static bool worth_trying(int64_t step, int64_t steps) {
    return steps < 8 || step < 2 || step == steps / 2 || step == steps - 1;
}

Test(dispute, finds_the_step_wherever_it_lies_between_checkpoints) {
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        test_job job;
        test_provider honest;
        test_job_open(&job, VD_MODEL_MLP, layouts[i].steps, layouts[i].checkpoint_interval);
        test_provider_open(&honest, &job, 1, NULL);
        for (int64_t step = 0; step < layouts[i].steps; step++)
            if (worth_trying(step, layouts[i].steps))
                try_step(&job, &honest, step);
        test_provider_close(&honest);
        test_job_close(&job);
    }
}

Test(dispute, ends_without_blame_when_both_are_honest) {
    test_job job;
    test_provider a, b;
    test_dispute d;
    test_job_open(&job, VD_MODEL_GPT2, 2, 1);
    test_provider_open(&a, &job, 1, NULL);
    test_provider_open(&b, &job, 2, NULL);
    test_duel(&d, &job, &a.side, &b.side, 1);
    cr_assert(d.status == VD_OK, "%s", d.err.text);
    cr_expect(d.outcome.result == VD_RESULT_AGREED && d.outcome.accepted);
    cr_expect(vd_hash_equal(&d.outcome.run_root, &a.run.run_root));
    cr_expect(d.rounds == 2 && d.outcome.rounds == 2, "commit and reveal, got %u", d.rounds);
    cr_expect(d.outcome.place.step == VD_NO_STEP);
    for (int p = 0; p < 2; p++)
        cr_expect(d.outcome.party[p].standing == VD_STANDS);
    test_dispute_close(&d);
    test_provider_close(&a);
    test_provider_close(&b);
    test_job_close(&job);
}

/* The protocol asks for all answers "in any order", so the verdict must not depend on it. */
Test(dispute, does_not_depend_on_the_order_in_which_answers_arrive) {
    test_job job;
    test_provider honest, liar;
    test_job_open(&job, VD_MODEL_MLP, 3, 3);
    vd_fault fault = test_fault(&job, "poison@1");
    test_provider_open(&honest, &job, 1, NULL);
    test_provider_open(&liar, &job, 2, &fault);
    for (uint32_t place_of_liar = 0; place_of_liar < 2; place_of_liar++) {
        test_dispute d = {.job = &job, .backwards = true};
        d.side[place_of_liar] = &liar.side;
        d.side[1 - place_of_liar] = &honest.side;
        test_settle(&d);
        test_expect_convicted(&d, place_of_liar, VD_GRADE_WRONG_OUTPUT, "backwards");
        test_dispute_close(&d);
    }
    test_provider_close(&honest);
    test_provider_close(&liar);
    test_job_close(&job);
}

/* ---- one element of every operator ---- */

/* Marks the nodes whose output a state depends on. Others cannot be disputed, and need not be. */
static bool *influential(const test_job *job, const vd_graph *graph) {
    uint32_t sources = vd_source_count(&job->program, graph);
    bool *matters = calloc(graph->node_count, sizeof *matters);
    for (uint32_t i = 0; i < job->program.leaf_count; i++)
        if (graph->output[i] >= sources)
            matters[graph->output[i] - sources] = true;
    for (uint32_t i = graph->node_count; i-- > 0;) {
        const vd_node *n = vd_node_stored(graph, i);
        for (int32_t k = 0; matters[i] && k < n->input_count; k++) {
            uint32_t value = vd_node_input(graph, i, k);
            if (value >= sources)
                matters[value - sources] = true;
        }
    }
    return matters;
}

/* Returns the middle one of an operator's influential nodes, or UINT32_MAX if there is none. */
static uint32_t middle_node(const vd_graph *graph, const bool *matters, int op) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++)
        count += matters[i] && vd_node_stored(graph, i)->op == op;
    uint32_t want = count / 2;
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (matters[i] && vd_node_stored(graph, i)->op == op && want-- == 0)
            return i;
    return UINT32_MAX;
}

/* Checks what the conviction says: the element, and that the honest provider stated the value that
 * the reference computes. */
static void expect_element(const test_dispute *d, uint32_t liar, const vd_fault *fault,
                           const ro_shape *shape, const char *what) {
    const vd_place *at = &d->outcome.place;
    const uint32_t bit = fault->bit % (8 * (uint32_t)ro_dtype_size(shape->dtype));
    cr_expect(at->element == fault->element % ro_shape_numel(shape), "%s: element %lld", what,
              (long long)at->element);
    cr_expect(at->computed && at->expected == at->value[1 - liar], "%s: 0x%08x 0x%08x", what,
              at->expected, at->value[1 - liar]);
    cr_expect((at->value[liar] ^ at->expected) == UINT32_C(1) << bit,
              "%s: not the bit that was flipped", what);
}

/* Returns false if the fault changed no state. */
static bool try_element(const test_job *job, const test_provider *honest, const vd_fault *fault,
                        uint32_t place_of_liar, const char *what) {
    test_provider liar;
    test_dispute d;
    const vd_node *n = vd_node_stored(vd_step_graph(&job->program, fault->step), fault->node);
    test_provider_open(&liar, job, 2, fault);
    test_duel(&d, job, &honest->side, &liar.side, place_of_liar);
    bool differs = !vd_hash_equal(&honest->run.run_root, &liar.run.run_root);
    if (differs) {
        test_expect_convicted(&d, place_of_liar, VD_GRADE_WRONG_OUTPUT, what);
        test_expect_place(&d, fault->step, fault->node, what);
        expect_element(&d, place_of_liar, fault, &n->shape, what);
    } else {
        cr_expect(d.outcome.result == VD_RESULT_AGREED, "%s", what);
    }
    test_dispute_close(&d);
    test_provider_close(&liar);
    return differs;
}

/* First, last and middle elements; bits of mantissa, exponent and sign. */
static int try_node(const test_job *job, const test_provider *honest, int64_t step, uint32_t node) {
    const vd_node *n = vd_node_stored(vd_step_graph(&job->program, step), node);
    const vd_name name = vd_node_name(vd_step_graph(&job->program, step), node);
    uint32_t last = (uint32_t)ro_shape_numel(&n->shape) - 1;
    const uint32_t element[] = {0, last, last / 3, last / 2}, bit[] = {22, 3, 31, 30};
    int noticed = 0;
    for (uint32_t i = 0; i < 4; i++) {
        char what[400];
        vd_fault fault = {VD_FAULT_ELEMENT, step, node, element[i], bit[i]};
        snprintf(what, sizeof what, "step %lld, node %u, %s (%s), element %u, bit %u",
                 (long long)step, node, name.text, ro_op_describe(n->op)->name, element[i], bit[i]);
        noticed += try_element(job, honest, &fault, (node + i) % 2, what);
    }
    cr_expect(noticed, "no element of %s matters to any state", name.text);
    return noticed;
}

static int try_job(test_job *job, int64_t step, bool *tried) {
    test_provider honest;
    int noticed = 0;
    test_provider_open(&honest, job, 1, NULL);
    const vd_graph *graph = vd_step_graph(&job->program, step);
    bool *matters = influential(job, graph);
    for (int op = next_operator(0); op; op = next_operator(op)) {
        uint32_t node = middle_node(graph, matters, op);
        if (node == UINT32_MAX || (tried[op] && step >= 0))
            continue;
        tried[op] = true;
        noticed += try_node(job, &honest, step, node);
    }
    free(matters);
    test_provider_close(&honest);
    test_job_close(job);
    return noticed;
}

static int try_operators(vd_model_kind kind, int64_t step, bool *tried) {
    test_job job;
    test_job_open(&job, kind, 2, 2);
    return try_job(&job, step, tried);
}

static int try_sgd(bool nesterov, bool *tried) {
    test_job job;
    test_job_open_sgd(&job, 2, nesterov);
    return try_job(&job, 1, tried);
}

static void try_rest(int64_t step, bool *tried) {
    test_job job;
    test_job_open_operators(&job, 2);
    try_job(&job, step, tried);
}

Test(dispute, convicts_one_wrong_element_of_every_operator, .timeout = 300) {
    bool tried[RO_OP_END] = {false};
    try_operators(VD_MODEL_GPT2, -1, tried);
    try_operators(VD_MODEL_GPT2, 1, tried);
    try_operators(VD_MODEL_MLP, 1, tried);
    try_sgd(false, tried);
    try_sgd(true, tried);
    try_operators(VD_MODEL_LLAMA, 1, tried);
    try_operators(VD_MODEL_BERT, 1, tried);
    try_operators(VD_MODEL_RESNET, 1, tried);
    try_rest(-1, tried);
    try_rest(1, tried);
    for (int op = next_operator(0); op; op = next_operator(op))
        cr_expect(tried[op], "%s was not tried: tests/support/operators.c is where it belongs",
                  ro_op_describe(op)->name);
}

Test(dispute, tells_the_sign_of_a_zero) {
    test_job job;
    test_provider honest;
    test_job_open(&job, VD_MODEL_MLP, 1, 1);
    test_provider_open(&honest, &job, 1, NULL);
    const vd_graph *init = &job.program.init;
    uint32_t node = 0;
    while (vd_node_stored(init, node)->op != RO_OP_FILL ||
           init->stored[node].attr[RO_FILL_VALUE] != 0)
        node++;
    vd_fault fault = {VD_FAULT_ELEMENT, -1, node, 2, 31};
    expect_caught(&job, &honest, &fault, VD_GRADE_WRONG_OUTPUT, -1, node, "minus zero");
    test_provider_close(&honest);
    test_job_close(&job);
}

Test(dispute, tells_the_sign_of_an_integer) {
    const struct {
        int32_t dtype;
        uint32_t bits;
        const char *text;
    } rows[] = {{RO_I8, 0x80, "-128 (0x00000080)"},
                {RO_I8, 0x7f, "127 (0x0000007f)"},
                {RO_U8, 0x80, "128 (0x00000080)"},
                {RO_U16, 0xffff, "65535 (0x0000ffff)"},
                {RO_I32, 0xffffffff, "-1 (0xffffffff)"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const vd_place at = {.dtype = rows[i].dtype};
        char text[VD_F32_TEXT];
        vd_place_text(&at, rows[i].bits, text);
        cr_expect(strcmp(text, rows[i].text) == 0, "%s, expected %s", text, rows[i].text);
    }
}
