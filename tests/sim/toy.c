#include "tests/sim/toy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repops/op_movement.h"
#include "verde/graph/functions.h"

void sim_need(bool holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "the simulator itself failed: %s\n", what);
    abort();
}

/* ---- the program ---- */

enum { WEIGHTS, MOMENTUM };

static ro_shape toy_shape(int dtype) {
    return VD_SHAPE(dtype, TOY_ELEMENTS);
}

static uint32_t *toy_outputs(void) {
    uint32_t *output = calloc(TOY_LEAVES, sizeof *output);
    sim_need(output != NULL, "out of memory");
    return output;
}

static void toy_init_graph(vd_builder *b) {
    const ro_shape shape = toy_shape(RO_F32);
    const vd_op normal = {RO_OP_NORMAL, {7, 1, 0, ro_attr_f32(1)}, &shape};
    const vd_op fill = {RO_OP_FILL, {ro_attr_f32(0.25f)}, &shape};
    vd_add_leaf(b, "weights", &shape);
    vd_add_leaf(b, "momentum", &shape);
    b->graph->output = toy_outputs();
    b->graph->output[WEIGHTS] = vd_emit(b, "weights", normal, 0, NULL);
    b->graph->output[MOMENTUM] = vd_emit(b, "momentum", fill, 0, NULL);
}

/* Builds a step that reads the state, data and the step's number, and moves elements. */
static void toy_step_graph(vd_builder *b) {
    const ro_shape order = toy_shape(RO_I32);
    const vd_op permute = {RO_OP_PERMUTATION, {7, 2}, &order};
    const vd_value mixed = vd_mul(b, "mixed", WEIGHTS, vd_data_value(b, 0));
    const vd_value places = VD_EMIT(b, "places", permute, vd_step_value(b));
    const vd_value moved = vd_gather(b, "moved", mixed, places, 0);
    const vd_value sum = vd_add(b, "sum", moved, MOMENTUM);
    const vd_value bent = vd_tanh(b, sum), change = vd_scale(b, "change", bent, 0.5f);
    b->graph->output = toy_outputs();
    b->graph->output[WEIGHTS] = vd_sub(b, "weights", WEIGHTS, change);
    b->graph->output[MOMENTUM] = vd_mul(b, "momentum", bent, sum);
}

static void toy_data(toy_job *job) {
    const ro_shape shape = toy_shape(RO_F32);
    vd_hash byte_root, root;
    for (int i = 0; i < TOY_ELEMENTS; i++)
        job->data[i] = 0.75f + (float)i / 16;
    job->datum[0] = job->data;
    sim_need(vd_tensor_hash(NULL, &shape, job->data, &byte_root, &root, NULL) == VD_OK, "the data");
    sim_need(vd_program_take_data(&job->program, 1, NULL) == VD_OK, "the data");
    strcpy(job->program.data[0].tensor.name, "data");
    job->program.data[0].tensor.shape = shape;
    memcpy(job->program.data[0].root, root.b, sizeof root.b);
}

void toy_job_open(toy_job *job) {
    const ro_options options = {.size = sizeof options, .threads = 1, .backend = "scalar"};
    vd_err err = {0};
    vd_program *p = &job->program;
    *job = (toy_job){.program = {.seed = 7, .steps = TOY_STEPS, .checkpoint_interval = TOY_EVERY}};
    toy_data(job);
    vd_builder init = vd_builder_of(p, &p->init), step = vd_builder_of(p, &p->step);
    toy_init_graph(&init);
    toy_step_graph(&step);
    p->init.loss = p->step.loss = UINT32_MAX;
    sim_need(init.status == VD_OK && step.status == VD_OK, "the program");
    sim_need(vd_program_validate(p, &err) == VD_OK, err.text);
    sim_need(p->step.node_count == TOY_NODES && p->init.node_count == TOY_INIT_NODES, "nodes");
    sim_need(vd_program_hash(p, &job->hash, NULL) == VD_OK, "the program's hash");
    sim_need(ro_ctx_create(&options, &job->ro) == RO_OK, "a context");
    vd_builder_free(&init);
    vd_builder_free(&step);
}

void toy_job_close(toy_job *job) {
    ro_ctx_destroy(job->ro);
    vd_program_free(&job->program);
}

/* ---- a run ---- */

typedef struct {
    toy_run *run;
    int64_t step;
} watcher;

static bool keep_output(void *user, uint32_t node, const void *const *input, const void *output) {
    const watcher *w = user;
    (void)input;
    memcpy(w->run->value[w->step + 1][node], output, sizeof w->run->value[0][0]);
    return true;
}

static void keep_state(toy_run *run, const vd_state *state) {
    const int64_t s = state->step;
    for (int i = 0; i < TOY_LEAVES; i++)
        memcpy(run->leaf[s][i], state->tensor[i], sizeof run->leaf[s][i]);
    sim_need(vd_state_hash(NULL, &run->job->program, &run->job->hash, state, run->tensor[s],
                           &run->state[s], NULL) == VD_OK,
             "a state's hash");
    vd_fault_state(&run->exec, s, &run->state[s]);
}

static void run_step(toy_run *run, int64_t step, vd_state *state) {
    watcher w = {run, step};
    const vd_observer observer = {keep_output, &w};
    vd_err err = {0};
    sim_need(vd_trace(&run->exec, step < 0 ? NULL : state, &run->trace[step + 1], &err) == VD_OK,
             err.text);
    vd_status status = step < 0 ? vd_exec_init(&run->exec, &observer, state, &err)
                                : vd_exec_step(&run->exec, &observer, state, NULL, &err);
    sim_need(status == VD_OK, err.text);
    keep_state(run, state);
}

static void root_of_run(toy_run *run) {
    vd_hash leaf[TOY_RUN_LEAVES];
    vd_tree tree;
    for (int i = 0; i < TOY_RUN_LEAVES; i++)
        leaf[i] = run->state[i * TOY_EVERY];
    sim_need(vd_tree_of_hashes(&tree, leaf, TOY_RUN_LEAVES, NULL) == VD_OK &&
                 vd_tree_root(&tree, &run->root, NULL) == VD_OK,
             "the run's root");
    vd_tree_free(&tree);
}

void toy_run_open(toy_run *run, const toy_job *job, const vd_fault *fault) {
    static uint64_t runs;
    vd_state state = {0};
    memset(run, 0, sizeof *run);
    run->serial = ++runs;
    run->job = job;
    run->exec =
        (vd_exec){.program = &job->program, .ro = job->ro, .data = job->datum, .unfused = true};
    if (fault)
        run->exec.fault = *fault;
    for (int64_t step = -1; step < TOY_STEPS; step++)
        run_step(run, step, &state);
    vd_state_free(&state);
    root_of_run(run);
}

void toy_run_close(toy_run *run) {
    for (int i = 0; i <= TOY_STEPS; i++)
        vd_records_free(&run->trace[i]);
}

/* ---- the source of a provider's answers ---- */

static vd_status toy_states(void *user, int64_t from, int64_t to, vd_hash *state, vd_err *err) {
    const toy_run *run = user;
    (void)err;
    memcpy(state, &run->state[from], (size_t)(to - from + 1) * sizeof *state);
    return VD_OK;
}

static vd_status toy_committed(void *user, vd_hash *state, vd_err *err) {
    const toy_run *run = user;
    (void)err;
    for (int i = 0; i < TOY_RUN_LEAVES; i++)
        state[i] = run->state[i * TOY_EVERY];
    return VD_OK;
}

static vd_status toy_trace(void *user, int64_t step, const vd_records **out, vd_err *err) {
    toy_run *run = user;
    (void)err;
    *out = &run->trace[step + 1];
    return VD_OK;
}

static vd_status toy_leaves(void *user, int64_t step, vd_hash *tensor, vd_err *err) {
    const toy_run *run = user;
    (void)err;
    memcpy(tensor, run->tensor[step], sizeof run->tensor[step]);
    return VD_OK;
}

static vd_status toy_tensor(void *user, int64_t step, uint32_t value, const void **data,
                            vd_err *err) {
    toy_run *run = user;
    const vd_program *p = &run->job->program;
    const vd_graph *graph = step < 0 ? &p->init : &p->step;
    const uint32_t sources = vd_source_count(p, graph);
    uint32_t index;
    (void)err;
    run->word = step < 0 ? 0 : (int32_t)step;
    if (value >= sources)
        *data = run->value[step + 1][value - sources];
    else if (vd_source_of(p, graph, value, &index) == VD_SOURCE_STATE)
        *data = run->leaf[step][index];
    else
        *data = vd_source_of(p, graph, value, &index) == VD_SOURCE_DATA
                    ? (const void *)run->job->data
                    : (const void *)&run->word;
    return VD_OK;
}

vd_source toy_source(toy_run *run) {
    return (vd_source){.user = run,
                       .run = toy_committed,
                       .states = toy_states,
                       .trace = toy_trace,
                       .leaves = toy_leaves,
                       .tensor = toy_tensor,
                       .run_root = run->root,
                       .dishonest = run->exec.fault.kind != VD_FAULT_NONE};
}
