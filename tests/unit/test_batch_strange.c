/* Strangers' programs run together: what their graphs say counts, not what a model would do. */
#include "repops/operators.h"
#include "tests/support/graph_edit.h"
#include "tests/support/random_model.h"
#include "verde/exec/batch.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 4, PROMPT = 6 };

static int32_t prompt[PROMPT] = {5, 1, 900, 7, 33, 8};

typedef struct {
    test_model model;
    vd_program program;
    const void *data[TEST_MODEL_DATA_MAX];
    ro_ctx *ro;
} stranger;

static stranger *open_with(int64_t tokens) {
    const vd_generation how = {.max_tokens = tokens,
                               .greedy = true,
                               .repetition_penalty = 1.2f,
                               .best = 1,
                               .stop = {3, 4},
                               .stop_count = 2};
    stranger *s = calloc(1, sizeof *s);
    vd_err err = {0};
    test_model_open(&s->model, &test_models[0]);
    cr_assert(vd_generation_program(&s->model.training, &how, &(vd_prompt_form){.count = PROMPT},
                                    &s->program, &err) == VD_OK,
              "%s", err.text);
    s->data[0] = prompt;
    for (uint32_t i = 0; i < s->model.count; i++)
        s->data[1 + i] = s->model.weight[i];
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &s->ro) ==
              RO_OK);
    return s;
}

static stranger *open_stranger(void) {
    return open_with(TOKENS);
}

static void close_stranger(stranger *s) {
    ro_ctx_destroy(s->ro);
    vd_program_free(&s->program);
    test_model_close(&s->model);
    free(s);
}

static uint32_t leaf_of(const vd_program *p, const char *name) {
    uint32_t i = 0;
    while (strcmp(p->leaf[i].name, name) != 0)
        i++;
    return i;
}

/* Returns the node with this operator whose name has this ending. */
static vd_node *node_of(vd_graph *g, int op, const char *end) {
    for (uint32_t i = 0; i < g->stored_count; i++) {
        const char *name = vd_stored_name(g, &g->stored[i]);
        const size_t length = strlen(name);
        if (g->stored[i].op == op && length >= strlen(end) &&
            strcmp(name + length - strlen(end), end) == 0)
            return &g->stored[i];
    }
    cr_assert_fail("no node %s", end);
    return NULL;
}

/* ---- initial states ---- */

typedef struct {
    vd_hash state[TOKENS + 1];
    uint8_t *shadow; /* a copy of leaf 0, updated by what the batch reports as written */
    int64_t next;
} expected;

static void run_alone(const stranger *s, expected *e) {
    const vd_exec exec = {.program = &s->program, .ro = s->ro, .data = s->data, .unfused = true};
    vd_state state;
    vd_hash program;
    cr_assert(vd_program_hash(&s->program, &program, NULL) == VD_OK);
    cr_assert(vd_exec_init(&exec, NULL, &state, NULL) == VD_OK);
    for (int64_t i = 0; i <= TOKENS; i++) {
        if (i > 0)
            cr_assert(vd_exec_step(&exec, NULL, &state, NULL, NULL) == VD_OK);
        cr_assert(vd_state_hash(NULL, &s->program, &program, &state, NULL, &e->state[i], NULL) ==
                  VD_OK);
    }
    vd_state_free(&state);
}

static vd_status reached(void *user, const vd_batch_state *s, vd_err *err) {
    expected *e = user;
    (void)err;
    cr_assert(s->state->step == e->next++);
    cr_expect(vd_hash_equal(s->commitment, &e->state[s->state->step]), "step %d",
              (int)s->state->step);
    for (uint32_t i = 0; i < s->written_count; i++)
        cr_expect(s->written[i].size %
                      ro_dtype_size(s->program->leaf[s->written[i].leaf].shape.dtype) ==
                  0);
    for (uint32_t i = 0; i < s->written_count; i++)
        if (s->written[i].leaf == 0)
            memcpy(e->shadow + s->written[i].from,
                   (uint8_t *)s->state->tensor[0] + s->written[i].from, s->written[i].size);
    cr_expect(memcmp(e->shadow, s->state->tensor[0], vd_shape_bytes(&s->program->leaf[0].shape)) ==
              0);
    return VD_OK;
}

static void expect_as_alone(const stranger *s) {
    expected e = {.shadow = calloc(1, vd_shape_bytes(&s->program.leaf[0].shape))};
    const vd_exec exec = {.program = &s->program, .ro = s->ro, .data = s->data};
    const vd_batch_options options = {
        .own_data = 1, .chunk = 4, .reached = reached, .user = &e, .strange = true};
    vd_batch *b = NULL;
    vd_err err = {0};
    run_alone(s, &e);
    cr_assert(vd_batch_create(&exec, &options, &b, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_batch_add(b, 0, &s->program, s->data, NULL, &err) == VD_OK, "%s", err.text);
    while (vd_batch_count(b))
        cr_assert(vd_batch_pass(b, &err) == VD_OK, "%s", err.text);
    cr_expect(e.next == TOKENS + 1);
    vd_batch_destroy(b);
    free(e.shadow);
}

/* The caches hold something other than the prompt's keys and values. */
Test(batch_strange, the_first_state_is_that_of_its_own_graph) {
    stranger *s = open_stranger();
    expect_as_alone(s);
    node_of(&s->program.init, RO_OP_MATMUL, "h.0.attn.qkv.matmul")->attr[RO_MATMUL_ALPHA] =
        ro_attr_f32(2);
    expect_as_alone(s);
    close_stranger(s);
}

/* ---- stops ---- */

static void expect_refused(const stranger *s, const char *leaf) {
    const vd_exec exec = {.program = &s->program, .ro = s->ro, .data = s->data};
    const vd_batch_options options = {.own_data = 1, .chunk = 4, .strange = true};
    vd_batch *b = NULL;
    vd_err err = {0};
    cr_assert(vd_batch_create(&exec, &options, &b, &err) == VD_OK, "%s", err.text);
    const vd_status status = vd_batch_takes(b, &s->program, &err);
    cr_expect(leaf ? status == VD_ERR_USAGE : status == VD_OK, "%s", leaf);
    cr_expect(!leaf || (strstr(err.text, leaf) && strstr(err.text, "may change after a stop")),
              "%s: %s", leaf, err.text);
    vd_batch_destroy(b);
}

/* A batch does not change a program's state after it has stopped. */
Test(batch_strange, a_step_that_changes_a_stopped_state_is_not_taken) {
    stranger *s = open_stranger();
    vd_program *p = &s->program;
    uint32_t *count = &p->step.output[leaf_of(p, "count")], was = *count;
    uint32_t *edge = p->step.stored_edge;
    expect_refused(s, NULL);
    *count = p->step.output[leaf_of(p, "token")];
    expect_refused(s, "count");
    *count = was;
    uint32_t *kept = &edge[node_of(&p->step, RO_OP_WHERE, "next.token")->first_input];
    const uint32_t inputs[] = {kept[0], kept[1]};
    kept[0] = leaf_of(p, "count");
    expect_refused(s, "token");
    kept[0] = inputs[0], kept[1] = kept[2];
    expect_refused(s, "token");
    kept[1] = inputs[1];
    vd_node *nowhere = node_of(&p->step, RO_OP_FILL, "nowhere");
    nowhere->attr[RO_FILL_VALUE] = ro_attr_f32(0);
    expect_refused(s, "h.0.k");
    nowhere->attr[RO_FILL_VALUE] = ro_attr_f32(-1);
    expect_refused(s, NULL);
    close_stranger(s);
}

/* Nothing reads the leaf after the choice of the token, so its memory is free by then. */
Test(batch_strange, a_leaf_that_is_gone_tells_of_no_stop) {
    stranger *s = open_stranger();
    vd_program *p = &s->program;
    const uint32_t stopped = leaf_of(p, "stopped"), count = leaf_of(p, "count");
    vd_step_numbers numbers = {0};
    const vd_exec exec = {.program = p, .ro = s->ro, .data = s->data, .numbers = &numbers};
    vd_state state;
    vd_err err = {0};
    const uint32_t choice =
        (uint32_t)(node_of(&p->step, RO_OP_ARGMAX, "choice.argmax") - p->step.stored);
    for (uint32_t i = choice + 1; i < p->step.stored_count; i++)
        for (int32_t k = 0; k < p->step.stored[i].input_count; k++) {
            uint32_t *edge = &p->step.stored_edge[p->step.stored[i].first_input + (uint32_t)k];
            *edge = *edge == stopped ? count : *edge;
        }
    cr_assert(vd_program_validate(p, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_exec_init(&exec, NULL, &state, &err) == VD_OK, "%s", err.text);
    cr_expect(vd_exec_step(&exec, NULL, &state, NULL, &err) == VD_OK, "%s", err.text);
    cr_expect(!numbers.void_choice);
    vd_state_free(&state);
    close_stranger(s);
}

/* ---- sizes ---- */

static uint32_t insert(vd_program *p, uint32_t at, const vd_node *node, uint32_t input) {
    edit_insert(p, &p->step, at, node, &input);
    return vd_source_count(p, &p->step) + at;
}

/* Makes the count of tokens an index in the cache: that of the largest first key. */
static void count_in_the_cache(vd_program *p) {
    const uint32_t cache = leaf_of(p, "h.0.k");
    const int64_t width = p->leaf[cache].shape.dim[2];
    const vd_node place = {.op = RO_OP_ARGMAX,
                           .input_count = 1,
                           .attr = {[RO_ARGMAX_AXIS] = 1},
                           .shape = {RO_I32, 3, {1, 1, width}}};
    const vd_node first = {
        .op = RO_OP_SLICE,
        .input_count = 1,
        .attr =
            {[RO_SLICE_AXIS] = 2, [RO_SLICE_START] = 0, [RO_SLICE_LENGTH] = 1, [RO_SLICE_STEP] = 1},
        .shape = {RO_I32, 3, {1, 1, 1}}};
    const vd_node word = {.op = RO_OP_RESHAPE, .input_count = 1, .shape = {RO_I32, 1, {1}}};
    uint32_t value = insert(p, 0, &place, cache);
    value = insert(p, 1, &first, value);
    value = insert(p, 2, &word, value);
    p->step.stored_edge[node_of(&p->step, RO_OP_WHERE, "next.count")->first_input + 2] = value;
    vd_err err = {0};
    cr_assert(vd_program_validate(p, &err) == VD_OK, "%s", err.text);
}

/* Caches are as long as their prompt's text: only attention may read different lengths in one
 * call. */
Test(batch_strange, one_call_reads_no_inputs_of_other_sizes) {
    stranger *s = open_with(TOKENS), *longer = open_with(TOKENS + 3);
    const vd_exec exec = {.program = &s->program, .ro = s->ro, .data = s->data};
    const vd_batch_options options = {.own_data = 1, .chunk = 4, .strange = true};
    vd_batch *b = NULL;
    vd_err err = {0};
    cr_assert(vd_batch_create(&exec, &options, &b, &err) == VD_OK, "%s", err.text);
    cr_expect(vd_batch_takes(b, &longer->program, &err) == VD_OK, "%s", err.text);
    vd_batch_destroy(b);
    count_in_the_cache(&s->program);
    count_in_the_cache(&longer->program);
    cr_assert(vd_batch_create(&exec, &options, &b, &err) == VD_OK, "%s", err.text);
    cr_expect(vd_batch_takes(b, &s->program, &err) == VD_OK, "%s", err.text);
    cr_expect(vd_batch_takes(b, &longer->program, &err) == VD_ERR_USAGE, "%s", err.text);
    vd_batch_destroy(b);
    close_stranger(s);
    close_stranger(longer);
}
