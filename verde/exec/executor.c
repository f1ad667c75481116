/* This file runs a graph: nodes in order, or groups of them as fuse.h plans; frees unused
 * tensors. */
#include <stdlib.h>
#include <string.h>

#include "repops/free.h"
#include "repops/op_product.h"
#include "verde/exec/executor.h"
#include "verde/exec/fault_field.h"
#include "verde/exec/guard.h"
#include "verde/exec/kept_weights.h"
#include "verde/exec/memory.h"
#include "verde/exec/source.h"

#define NO_VALUE UINT32_MAX

bool vd_owned(const vd_execution *x, uint32_t value) {
    value = vd_root(x, value);
    return value >= x->sources || (x->consume && value < x->program->leaf_count);
}

/* Releases pages of data that initialisation has read: mostly weights that no step reads. */
static void pass_data(const vd_execution *x, uint32_t value) {
    uint32_t index;
    if (x->step < 0 && value < x->sources && x->exec->data &&
        vd_source_of(x->program, x->graph, value, &index) == VD_SOURCE_DATA)
        vd_map_pass(x->exec->data[index], vd_shape_bytes(&x->program->data[index].tensor.shape));
}

void vd_release(vd_execution *x, uint32_t value) {
    value = vd_root(x, value);
    if (--x->uses[value] > 0)
        return;
    pass_data(x, value);
    if (vd_owned(x, value)) {
        vd_memory_free(x->memory, x->value[value]);
        x->value[value] = NULL;
    }
}

static vd_status bind_sources(vd_execution *x, const vd_state *state, vd_err *err) {
    const vd_exec *exec = x->exec;
    uint32_t states = vd_state_sources(x->program, x->graph);
    for (uint32_t i = 0; i < states; i++)
        x->value[i] = state->tensor[i];
    for (uint32_t i = 0; i < x->program->data_count; i++)
        x->value[states + i] = exec->placed ? exec->placed[i] : (void *)(uintptr_t)exec->data[i];
    x->step_word = x->step < 0 ? 0 : (int32_t)x->step;
    x->value[x->sources - 1] = &x->step_word;
    if (!x->memory)
        return VD_OK;
    x->value[x->sources - 1] = x->placed_step = vd_memory_alloc(x->memory, sizeof x->step_word);
    if (!x->placed_step)
        return vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(x->memory));
    return vd_memory_write(x->memory, x->placed_step, &x->step_word, sizeof x->step_word, err);
}

/* Decides what may be fused: nothing if someone needs single nodes. */
static vd_fuses fuses(const vd_execution *x, bool watched) {
    const vd_fault *fault = &x->exec->fault;
    const bool altered = fault->kind != VD_FAULT_NONE && fault->step == x->step;
    if (watched || altered || x->exec->unfused || x->exec->kernels)
        return VD_FUSE_NOTHING;
    return x->memory || x->exec->part ? VD_FUSE_LAYERS : VD_FUSE_ALL;
}

static vd_status make_plan(vd_execution *x, vd_fuses fuse, vd_err *err) {
    vd_status status = vd_plan_create(x->program, x->graph, fuse, &x->plan, err);
    x->uses = x->plan.uses;
    if (status == VD_OK)
        status = vd_part_plan(x, err);
    if (status == VD_OK && fuse && !x->kept)
        status = vd_alias_plan(x, err);
    return status;
}

/* Takes the plan kept from an earlier step, or makes one. Plans are kept for whole steps of the
 * program itself. */
static vd_status take_plan(vd_execution *x, vd_fuses fuse, vd_err *err) {
    vd_kept_weights *kept = x->step >= 0 && x->program == x->exec->program && !x->exec->part && fuse
                                ? x->exec->kept
                                : NULL;
    vd_status status = VD_OK;
    const bool lent = kept && vd_kept_plan(kept, x->graph, fuse, &x->plan, &x->root, &status, err);
    if (!lent)
        status = make_plan(x, fuse, err);
    if (!lent && kept && status == VD_OK)
        vd_kept_plan_put(kept, x->graph, fuse, x->count, &x->plan, x->root);
    x->uses = x->plan.uses;
    return status;
}

static vd_status open_execution(vd_execution *x, const vd_exec *exec, const vd_program *program,
                                int64_t step, const vd_state *state, bool consume, bool watched,
                                vd_err *err) {
    *x = (vd_execution){.exec = exec, .program = program, .step = step, .consume = consume};
    x->in_place = !watched && !(exec->kernels && exec->kernels->keep_inputs);
    x->memory = vd_exec_memory(exec);
    x->part = step < 0 ? NULL : exec->part;
    x->kept = step < 0 && watched ? NULL : exec->part;
    x->graph = step < 0 ? &program->init : &program->step;
    x->sources = vd_source_count(program, x->graph);
    x->count = x->sources + x->graph->node_count;
    x->value = calloc(x->count, sizeof *x->value);
    if (!x->value)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    const vd_fuses fuse = fuses(x, watched);
    vd_status status = take_plan(x, fuse, err);
    if (status == VD_OK && fuse)
        status = vd_kept_operands_plan(x, err);
    return status == VD_OK ? bind_sources(x, state, err) : status;
}

static void close_execution(vd_execution *x) {
    for (uint32_t i = 0; x->value && i < x->count; i++)
        if (i >= x->sources && vd_root(x, i) == i)
            vd_memory_free(x->memory, x->value[i]);
    vd_memory_free(x->memory, x->placed_step);
    free(x->value);
    if (!x->plan.lent) /* the keeper of a lent plan frees it */
        free(x->root);
    free(x->needed);
    vd_kept_operands_free(x);
    vd_plan_free(&x->plan);
}

/* An input that is read here for the last time, which the output may overwrite. NO_VALUE: none. */
static uint32_t overwritten(const vd_execution *x, uint32_t index, size_t size) {
    const vd_node *n = vd_node_stored(x->graph, index);
    uint32_t inputs = x->in_place ? ro_op_in_place(n->op) : 0;
    for (int32_t i = 0; i < n->input_count && inputs >> i; i++) {
        const uint32_t value = vd_node_input(x->graph, index, i);
        if ((inputs >> i & 1) && vd_may_take(x, value, size))
            return value;
    }
    return NO_VALUE;
}

static void *output_for(vd_execution *x, uint32_t index, size_t size) {
    uint32_t value = overwritten(x, index, size);
    return value == NO_VALUE ? vd_memory_alloc(x->memory, size) : vd_take_memory(x, value);
}

/* Alters a node's output if the fault is about it. */
static vd_status alter_output(vd_execution *x, uint32_t index, void *output, vd_err *err) {
    return vd_fault_output(&x->exec->fault, x->step, index, &vd_node_stored(x->graph, index)->shape,
                           x->memory, output, err);
}

static void begin_guard(const vd_execution *x, uint32_t index) {
    const vd_fault *fault = &x->exec->fault;
    if (x->exec->guard)
        vd_guard_begin(x->exec->guard, x->step, vd_node_name(x->graph, index).text,
                       fault->kind == VD_FAULT_SUM && fault->step == x->step &&
                           fault->node == index);
}

static vd_status run_call(vd_execution *x, uint32_t index, const ro_call *call, void *output,
                          vd_err *err) {
    vd_kept_operand *operand[2];
    if (call->op == RO_OP_MATMUL_FIXED && vd_kept_operands_bind(x, index, operand))
        return vd_run_kept(x, call, operand, output, err);
    return ro_run(x->exec->ro, call, x->input, output) == RO_OK
               ? VD_OK
               : vd_fail(err, VD_ERR_LOCAL, "%s: %s", vd_node_name(x->graph, index).text,
                         ro_ctx_error(x->exec->ro));
}

static vd_status run_kernel(vd_execution *x, uint32_t index, const ro_call *call, void *output,
                            vd_err *err) {
    const vd_kernels *k = x->exec->kernels;
    if (k && ro_op_is_free(call->op))
        return k->run(k->user,
                      &(vd_kernel_node){x->program, x->graph, x->step, index, call, x->input,
                                        output, &x->exec->fault, x->exec->ro, x->memory},
                      err);
    begin_guard(x, index);
    vd_status status = run_call(x, index, call, output, err);
    if (status == VD_OK)
        status = alter_output(x, index, output, err);
    return status == VD_OK ? vd_guard_node(x->exec->guard, call, x->input, output, err) : status;
}

/* Runs a node; the fault may let an element keep its value of the state before. */
static vd_status run_stale(vd_execution *x, uint32_t index, const ro_call *call, void *output,
                           vd_err *err) {
    const vd_fault *fault = &x->exec->fault;
    const bool stale = vd_field_is_stale(fault, x->step, index);
    uint8_t old[VD_FIELD_BYTES];
    vd_status status =
        stale ? vd_field_keep(fault, &call->output, x->memory, x->input, old, err) : VD_OK;
    if (status == VD_OK)
        status = run_kernel(x, index, call, output, err);
    return status == VD_OK && stale
               ? vd_field_put_back(fault, &call->output, x->memory, output, old, err)
               : status;
}

/* Runs a node, perhaps on an altered input. Observers see the true inputs afterwards. */
static vd_status run_altered(vd_execution *x, uint32_t index, const ro_call *call, void *output,
                             vd_err *err) {
    const void **last = &x->input[call->input_count > 0 ? call->input_count - 1 : 0], *own = *last;
    void *copy = NULL;
    vd_status status =
        vd_fault_input(&x->exec->fault, x->step, index, call, x->memory, last, &copy, err);
    if (status == VD_OK)
        status = run_stale(x, index, call, output, err);
    *last = own;
    vd_memory_free(x->memory, copy);
    return status;
}

static vd_status run_node(vd_execution *x, uint32_t index, vd_err *err) {
    const vd_node *n = vd_node_stored(x->graph, index);
    ro_call call;
    vd_node_call(x->program, x->graph, index, &call, x->shapes);
    size_t size = vd_shape_bytes(&n->shape);
    for (int32_t i = 0; i < n->input_count; i++) {
        const uint32_t value = vd_node_input(x->graph, index, i);
        const vd_status status = vd_part_fetch(x, value, err);
        if (status != VD_OK)
            return status;
        x->input[i] = x->value[value];
    }
    void *output = output_for(x, index, size);
    if (!output)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory: %zu bytes for %s", size,
                       vd_node_name(x->graph, index).text);
    x->value[x->sources + index] = output;
    return run_altered(x, index, &call, output, err);
}

void vd_drop_unread(vd_execution *x, uint32_t value) {
    if (x->uses[value] == 0) {
        vd_memory_free(x->memory, x->value[value]);
        x->value[value] = NULL;
    }
}

static void release_inputs(vd_execution *x, uint32_t index) {
    const vd_node *n = vd_node_stored(x->graph, index);
    for (int32_t i = 0; i < n->input_count; i++)
        vd_release(x, vd_node_input(x->graph, index, i));
    vd_drop_unread(x, x->sources + index);
}

static vd_status run_planned(vd_execution *x, uint32_t node, const vd_observer *observer,
                             bool *stop, vd_err *err) {
    const vd_planned p = vd_plan_of(&x->plan, x->graph, node);
    if (p.idle || !vd_part_runs(x, node))
        return VD_OK;
    if (p.group != VD_NO_GROUP)
        return p.waits || x->plan.ran[p.group] > p.iteration
                   ? VD_OK
                   : vd_run_group(x, p.group, node, p.iteration, err);
    if (vd_alias_bind(x, node))
        return VD_OK;
    vd_status status = run_node(x, node, err);
    if (status == VD_OK)
        status = vd_take_numbers(x, node, err);
    if (status == VD_OK)
        status = vd_part_made(x, x->sources + node, err);
    if (status != VD_OK)
        return status;
    *stop =
        observer && !observer->node(observer->user, node, x->input, x->value[x->sources + node]);
    if (!*stop)
        release_inputs(x, node);
    return VD_OK;
}

/* Runs nodes [from, to): with `waiting` those that wait for other processes, else all others. */
static vd_status run_some(vd_execution *x, uint32_t from, uint32_t to, bool waiting,
                          const vd_observer *observer, bool *stop, vd_err *err) {
    vd_status status = VD_OK;
    for (uint32_t i = from; status == VD_OK && i < to && !*stop; i++)
        if (vd_part_waits(x, i) == waiting)
            status = run_planned(x, i, observer, stop, err);
    return status;
}

/* Runs all nodes; *ended: none was left out. A fault may have unrolled the graph, but nodes keep
 * their numbers, so the program's repeats still apply. */
static vd_status run_nodes(vd_execution *x, const vd_observer *observer, bool *ended, vd_err *err) {
    const vd_graph *g = x->step < 0 ? &x->exec->program->init : &x->exec->program->step;
    bool stop = false;
    uint32_t next = 0;
    vd_status status = VD_OK;
    for (uint32_t i = 0; x->part && status == VD_OK && i < g->repeat_count; i++) {
        const uint32_t end = g->repeat[i].start + (uint32_t)vd_repeat_nodes(&g->repeat[i]);
        status = run_some(x, next, end, false, observer, &stop, err);
        if (status == VD_OK)
            status = run_some(x, g->repeat[i].start, end, true, observer, &stop, err);
        next = end;
    }
    if (status == VD_OK)
        status = run_some(x, next, g->node_count, false, observer, &stop, err);
    *ended = status == VD_OK && !stop;
    return status;
}

/* Moves a value into the next state; copies it if it is a source, or is still read. */
static vd_status take_output(vd_execution *x, uint32_t leaf, void **tensor, vd_err *err) {
    const uint32_t value = x->graph->output[leaf];
    const size_t size = vd_shape_bytes(&x->program->leaf[leaf].shape);
    vd_status status = vd_part_fetch(x, value, err);
    if (status != VD_OK)
        return status;
    if (vd_may_take(x, value, size)) {
        *tensor = vd_take_memory(x, value);
        return VD_OK;
    }
    *tensor = vd_memory_alloc(x->memory, size);
    if (!*tensor)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory for the next state");
    status = vd_memory_copy(x->memory, *tensor, x->value[value], size, err);
    vd_release(x, value);
    return status;
}

static vd_status take_outputs(vd_execution *x, vd_state *next, vd_err *err) {
    next->count = x->program->leaf_count;
    next->step = x->step + 1;
    next->memory = x->memory;
    next->tensor = calloc(next->count, sizeof *next->tensor);
    vd_status status =
        next->tensor ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory for the next state");
    for (uint32_t i = 0; status == VD_OK && i < next->count; i++)
        if (vd_part_keeps(x, i))
            status = take_output(x, i, &next->tensor[i], err);
    if (status != VD_OK)
        vd_state_free(next);
    return status;
}

static vd_status read_loss(vd_execution *x, float *loss, vd_err *err) {
    uint32_t value = x->graph->loss;
    if (value == UINT32_MAX)
        return VD_OK;
    vd_step_numbers *n = x->exec->numbers;
    vd_status status = vd_part_fetch(x, value, err);
    if (status == VD_OK && loss)
        status = vd_memory_read(x->memory, loss, x->value[value], sizeof *loss, err);
    if (status == VD_OK && n)
        status = vd_read_number(x, x->value[value], &n->loss, &n->has_loss, err);
    vd_release(x, value);
    return status;
}

/* Takes the loss and the next state. Values of other processes are received even without `next`. */
static vd_status end_graph(vd_execution *x, vd_state *next, float *loss, vd_err *err) {
    vd_state unwanted = {0};
    if (!next && !x->part)
        return VD_OK;
    vd_status status = read_loss(x, loss, err);
    if (status == VD_OK)
        status = take_outputs(x, next ? next : &unwanted, err);
    vd_state_free(&unwanted);
    return status;
}

/* Frees what is left of a consumed state: tensors that no node has read. */
static void drop_old_state(vd_execution *x, vd_state *state) {
    for (uint32_t i = 0; i < state->count; i++)
        vd_memory_free(x->memory, x->value[i]);
    free(state->tensor);
}

static vd_status run_graph(const vd_exec *exec, const vd_program *program, int64_t step,
                           const vd_observer *observer, const vd_state *before, vd_state *consumed,
                           vd_state *next, float *loss, vd_err *err) {
    vd_execution *x = malloc(sizeof *x);
    if (!x)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    bool ended = false;
    vd_status status =
        open_execution(x, exec, program, step, before, consumed != NULL, observer, err);
    if (status == VD_OK)
        status = run_nodes(x, observer, &ended, err);
    if (status == VD_OK && ended)
        status = end_graph(x, next, loss, err);
    if (consumed && x->value && x->uses) { /* if it was opened, x->value has the state's tensors */
        drop_old_state(x, consumed);
        *consumed = (vd_state){0};
    }
    close_execution(x);
    free(x);
    return status;
}

/* Runs a step, or initialisation, which has no state before it. */
static vd_status run_step(const vd_exec *exec, const vd_observer *observer, int64_t step,
                          const vd_state *before, vd_state *consumed, vd_state *next, float *loss,
                          vd_err *err) {
    vd_program changed = {0};
    const vd_program *program;
    vd_status status = vd_fault_program(exec, step, &changed, &program, err);
    if (status == VD_OK)
        status = run_graph(exec, program, step, observer, before, consumed, next, loss, err);
    vd_program_free(&changed);
    return status;
}

vd_status vd_exec_init(const vd_exec *exec, const vd_observer *observer, vd_state *out,
                       vd_err *err) {
    *out = (vd_state){0};
    return run_step(exec, observer, -1, NULL, NULL, out, NULL, err);
}

vd_status vd_exec_step(const vd_exec *exec, const vd_observer *observer, vd_state *state,
                       float *loss, vd_err *err) {
    vd_state next = {0}, before = *state;
    if (exec->fault.kind == VD_FAULT_SKIP && exec->fault.step == state->step) {
        vd_status emitted = exec->kernels ? vd_exec_observe(exec, NULL, state, err) : VD_OK;
        state->step++;
        return emitted;
    }
    vd_status status = run_step(exec, observer, before.step, &before, state, &next, loss, err);
    if (!state->tensor) /* the old state was consumed */
        *state = next;
    return status;
}

vd_status vd_exec_next(const vd_exec *exec, const vd_state *before, vd_state *next, float *loss,
                       vd_err *err) {
    *next = (vd_state){0};
    return run_step(exec, NULL, before->step, before, NULL, next, loss, err);
}

vd_status vd_exec_observe(const vd_exec *exec, const vd_observer *observer, const vd_state *before,
                          vd_err *err) {
    return run_step(exec, observer, before ? before->step : -1, before, NULL, NULL, NULL, err);
}
