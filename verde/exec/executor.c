/* Runs one graph: nodes in order, or groups of them as fuse.h plans, tensors freed after their last
 * use. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verde/exec/fuse.h"
#include "verde/exec/memory.h"
#include "verde/exec/source.h"

#define NO_VALUE UINT32_MAX

/* One execution of one graph. Values below `sources` are borrowed, unless the state is consumed. */
typedef struct {
    const vd_exec *exec;
    const vd_program *program; /* as executed: a fault may have changed it */
    const vd_graph *graph;
    int64_t step;
    void **value; /* of each value number; NULL once freed */
    vd_plan plan;
    uint32_t *uses; /* of the plan: how many reads are left, plus one for a value that the next
                       state takes */
    uint32_t sources, count;
    bool consume;  /* state tensors are freed after their last use */
    bool in_place; /* and may be overwritten by what is computed from them: nobody watches */
    int32_t step_word;
    void *placed_step; /* the same where the context computes; NULL: step_word itself */
    ro_ctx *memory;    /* of tensors; NULL: host memory */
    uint8_t *symbol;   /* free kernels: of the node that runs */
    size_t symbols;
    ro_shape shapes[RO_MAX_INPUTS];
    const void *input[RO_MAX_INPUTS];
} execution;

static bool owned(const execution *x, uint32_t value) {
    return value >= x->sources || (x->consume && value < x->program->leaf_count);
}

static void release(execution *x, uint32_t value) {
    if (--x->uses[value] == 0 && owned(x, value)) {
        vd_memory_free(x->memory, x->value[value]);
        x->value[value] = NULL;
    }
}

static vd_status bind_sources(execution *x, const vd_state *state, vd_err *err) {
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

/* Not where somebody looks at single nodes. */
static bool fuses(const execution *x, bool watched) {
    const vd_fault *fault = &x->exec->fault;
    const bool altered = fault->kind != VD_FAULT_NONE && fault->step == x->step;
    return !watched && !altered && !x->exec->unfused && !x->exec->free;
}

static vd_status open_execution(execution *x, const vd_exec *exec, const vd_program *program,
                                int64_t step, const vd_state *state, bool consume, bool watched,
                                vd_err *err) {
    *x = (execution){.exec = exec, .program = program, .step = step, .consume = consume};
    x->in_place = !watched && !(exec->free && exec->free->keep_inputs);
    x->memory = vd_exec_memory(exec);
    x->graph = step < 0 ? &program->init : &program->step;
    x->sources = vd_source_count(program, x->graph);
    x->count = x->sources + x->graph->node_count;
    x->value = calloc(x->count, sizeof *x->value);
    if (!x->value)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_status status = vd_plan_create(program, x->graph, fuses(x, watched), &x->plan, err);
    if (status != VD_OK)
        return status;
    x->uses = x->plan.uses;
    return bind_sources(x, state, err);
}

static void close_execution(execution *x) {
    for (uint32_t i = 0; x->value && i < x->count; i++)
        if (i >= x->sources)
            vd_memory_free(x->memory, x->value[i]);
    vd_memory_free(x->memory, x->placed_step);
    free(x->value);
    free(x->symbol);
    vd_plan_free(&x->plan);
}

/* An input that is read here for the last time and may become the output. NO_VALUE: none. */
static uint32_t overwritten(const execution *x, const vd_node *n, size_t size) {
    const uint32_t *edge = &x->graph->edge[n->first_input];
    uint32_t inputs = x->in_place ? ro_op_in_place(n->op) : 0;
    for (int32_t i = 0; i < n->input_count && inputs >> i; i++)
        if ((inputs >> i & 1) && x->uses[edge[i]] == 1 && owned(x, edge[i]) &&
            vd_shape_bytes(vd_value_shape(x->program, x->graph, edge[i])) == size)
            return edge[i];
    return NO_VALUE;
}

static void *output_for(execution *x, const vd_node *n, size_t size) {
    uint32_t value = overwritten(x, n, size);
    if (value == NO_VALUE)
        return vd_memory_alloc(x->memory, size);
    void *taken = x->value[value];
    x->value[value] = NULL;
    return taken;
}

static bool is_state(const vd_program *program, const vd_graph *graph, uint32_t value) {
    for (uint32_t i = 0; i < program->leaf_count; i++)
        if (graph->output[i] == value)
            return true;
    return false;
}

bool vd_node_is_state(const vd_program *program, const vd_graph *graph, uint32_t node) {
    return is_state(program, graph, vd_source_count(program, graph) + node);
}

int32_t vd_node_bits(const vd_program *program, const vd_graph *graph, uint32_t node) {
    return vd_node_is_state(program, graph, node) ? RO_ROUND_BITS_MAX : program->rounding.bits;
}

double vd_threshold_at(double threshold, int32_t bits, int32_t at) {
    const double less = ldexp(1, 8 - bits) - ldexp(1, 8 - at);
    return threshold > less ? threshold - less : 0;
}

static vd_status room_for_symbols(execution *x, size_t count, vd_err *err) {
    if (count <= x->symbols)
        return VD_OK;
    free(x->symbol);
    x->symbol = malloc(count);
    x->symbols = x->symbol ? count : 0;
    return x->symbol ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory for %zu symbols", count);
}

static vd_status alter(execution *x, uint32_t index, void *output, vd_err *err) {
    return vd_fault_output(&x->exec->fault, x->step, index, &x->graph->node[index].shape, x->memory,
                           output, err);
}

static vd_status run_free(execution *x, uint32_t index, const ro_call *call, void *output,
                          vd_err *err) {
    const vd_free *f = x->exec->free;
    const vd_node *n = &x->graph->node[index];
    const size_t count = (size_t)ro_shape_numel(&n->shape);
    ro_rounding r = {.mode = f->mode, .bits = f->bits};
    ro_free_report report;
    vd_status status = VD_OK;
    if (is_state(x->program, x->graph, x->sources + index))
        r.bits = RO_ROUND_BITS_MAX;
    if (f->mode == RO_FREE_SYMBOLS) {
        status = room_for_symbols(x, count ? count : 1, err);
        r.symbol = x->symbol;
        r.threshold = vd_threshold_at(f->threshold[n->op], f->bits, r.bits);
    }
    if (f->mode == RO_FREE_REPLAY || f->mode == RO_FREE_FOLLOW)
        status = f->follow(f->user, x->step, index, &r, err);
    if (status != VD_OK)
        return status;
    if (ro_free_run(x->exec->ro, f->profile, &r, call, x->input, output, &report) != RO_OK)
        return vd_fail(err, VD_ERR_LOCAL, "%s: %s", n->name, ro_ctx_error(x->exec->ro));
    /* The run goes on with the same value that is logged and compared. */
    status = alter(x, index, output, err);
    const vd_free_node node = {x->step, index, &n->shape, output,     &r,
                               &report, call,  x->input,  x->exec->ro};
    return status == VD_OK && f->ran ? f->ran(f->user, &node, err) : status;
}

static vd_status run_kernel(execution *x, uint32_t index, const ro_call *call, void *output,
                            vd_err *err) {
    if (x->exec->free && ro_op_is_free(call->op))
        return run_free(x, index, call, output, err);
    if (ro_run(x->exec->ro, call, x->input, output) != RO_OK)
        return vd_fail(err, VD_ERR_LOCAL, "%s: %s", x->graph->node[index].name,
                       ro_ctx_error(x->exec->ro));
    return alter(x, index, output, err);
}

static vd_status run_node(execution *x, uint32_t index, vd_err *err) {
    const vd_node *n = &x->graph->node[index];
    const uint32_t *edge = &x->graph->edge[n->first_input];
    ro_call call;
    vd_node_call(x->program, x->graph, index, &call, x->shapes);
    size_t size = vd_shape_bytes(&n->shape);
    for (int32_t i = 0; i < n->input_count; i++)
        x->input[i] = x->value[edge[i]];
    void *output = output_for(x, n, size);
    if (!output)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory: %zu bytes for %s", size, n->name);
    x->value[x->sources + index] = output;
    return run_kernel(x, index, &call, output, err);
}

static void drop_unread(execution *x, uint32_t value) {
    if (x->uses[value] == 0) {
        vd_memory_free(x->memory, x->value[value]);
        x->value[value] = NULL;
    }
}

static void release_inputs(execution *x, uint32_t index) {
    const vd_node *n = &x->graph->node[index];
    for (int32_t i = 0; i < n->input_count; i++)
        release(x, x->graph->edge[n->first_input + (uint32_t)i]);
    drop_unread(x, x->sources + index);
}

/* ---- groups ---- */

/* Memory for output i of a group: an input's own, if nobody needs that more. */
static void *group_output(execution *x, const vd_fused *g, uint32_t i) {
    const uint32_t input = vd_fused_in_place(g, i);
    size_t size = vd_shape_bytes(vd_value_shape(x->program, x->graph, g->output[i]));
    if (input != VD_NO_GROUP && owned(x, g->input[input]) && x->uses[g->input[input]] == 1) {
        void *taken = x->value[g->input[input]];
        x->value[g->input[input]] = NULL;
        return taken;
    }
    return vd_memory_alloc(x->memory, size);
}

static vd_status bind_group(execution *x, const vd_fused *g, vd_fused_memory *at, vd_err *err) {
    for (uint32_t i = 0; i < g->input_count; i++)
        at->in[i] = x->value[g->input[i]];
    for (uint32_t i = 0; i < g->output_count; i++) {
        at->out[i] = x->value[g->output[i]] = group_output(x, g, i);
        if (!at->out[i])
            return vd_fail(err, VD_ERR_LOCAL, "out of memory for %s",
                           x->graph->node[g->output[i] - x->sources].name);
    }
    return VD_OK;
}

static void release_group(execution *x, const vd_fused *g) {
    for (uint32_t i = 0; i < g->input_count; i++)
        release(x, g->input[i]);
    for (uint32_t i = 0; i < g->output_count; i++)
        drop_unread(x, g->output[i]);
}

/* Whether a parameter's step has all it reads when the turn of `node` comes. */
static bool joins_batch(const execution *x, uint32_t group, uint32_t node) {
    const vd_fused *g = &x->plan.group[group];
    for (uint32_t i = 0; i < g->input_count; i++)
        if (g->input[i] >= x->sources + node)
            return false;
    return g->kind == VD_FUSED_ADAMW && !x->plan.ran[group];
}

/* A group runs when its first member's turn comes; the steps of parameters that follow it, at once
 * with it. */
static vd_status run_group(execution *x, uint32_t first, uint32_t node, vd_err *err) {
    const vd_fused *g = &x->plan.group[first];
    const uint32_t left = x->plan.group_count - first;
    vd_fused_memory at[VD_FUSED_BATCH];
    vd_status status = bind_group(x, g, &at[0], err);
    uint32_t count = 1;
    for (; status == VD_OK && g->kind == VD_FUSED_ADAMW && count < left && count < VD_FUSED_BATCH &&
           joins_batch(x, first + count, node);
         count++)
        status = bind_group(x, &g[count], &at[count], err);
    if (status == VD_OK)
        status = vd_fused_run(g, at, count, x->exec->ro, x->step_word, err);
    for (uint32_t i = 0; status == VD_OK && i < count; i++) {
        release_group(x, &g[i]);
        x->plan.ran[first + i] = true;
    }
    return status;
}

static vd_status read_number(execution *x, const void *from, float *to, bool *has, vd_err *err) {
    *has = true;
    return vd_memory_read(x->memory, to, from, sizeof *to, err);
}

/* Takes the learning rate and the norm where they are computed. */
static vd_status take_numbers(execution *x, uint32_t node, vd_err *err) {
    vd_step_numbers *n = x->exec->numbers;
    const int op = x->graph->node[node].op;
    if (!n || (op != RO_OP_LR_SCHEDULE && op != RO_OP_CLIP_SCALE))
        return VD_OK;
    if (op == RO_OP_LR_SCHEDULE)
        return read_number(x, x->value[x->sources + node], &n->lr, &n->has_lr, err);
    vd_status status = read_number(x, x->input[0], &n->grad_norm, &n->has_grad_norm, err);
    n->grad_norm = sqrtf(n->grad_norm); /* of the sum of the squares */
    return status;
}

static vd_status run_planned(execution *x, uint32_t node, const vd_observer *observer, bool *stop,
                             vd_err *err) {
    const uint32_t group = x->plan.group_of[node];
    if (x->plan.idle[node])
        return VD_OK;
    if (group != VD_NO_GROUP)
        return x->plan.ran[group] ? VD_OK : run_group(x, group, node, err);
    vd_status status = run_node(x, node, err);
    if (status == VD_OK)
        status = take_numbers(x, node, err);
    if (status != VD_OK)
        return status;
    *stop =
        observer && !observer->node(observer->user, node, x->input, x->value[x->sources + node]);
    if (!*stop)
        release_inputs(x, node);
    return VD_OK;
}

/* *ended: every node ran. */
static vd_status run_nodes(execution *x, const vd_observer *observer, bool *ended, vd_err *err) {
    bool stop = false;
    *ended = false;
    for (uint32_t i = 0; i < x->graph->node_count && !stop; i++) {
        vd_status status = run_planned(x, i, observer, &stop, err);
        if (status != VD_OK)
            return status;
    }
    *ended = !stop;
    return VD_OK;
}

/* A value that several leaves take, or that is a source, is copied; the last taker gets the tensor
 * itself. */
static vd_status take_outputs(execution *x, vd_state *next, vd_err *err) {
    next->count = x->program->leaf_count;
    next->step = x->step + 1;
    next->memory = x->memory;
    next->tensor = calloc(next->count, sizeof *next->tensor);
    uint32_t i = 0;
    for (; next->tensor && i < next->count; i++) {
        uint32_t value = x->graph->output[i];
        if (owned(x, value) && x->uses[value] == 1) {
            next->tensor[i] = x->value[value];
            x->value[value] = NULL;
            continue;
        }
        size_t size = vd_shape_bytes(&x->program->leaf[i].shape);
        next->tensor[i] = vd_memory_alloc(x->memory, size);
        if (!next->tensor[i] ||
            vd_memory_copy(x->memory, next->tensor[i], x->value[value], size, err) != VD_OK)
            break;
        x->uses[value]--;
    }
    if (next->tensor && i == next->count)
        return VD_OK;
    vd_state_free(next);
    return vd_fail(err, VD_ERR_LOCAL, "out of memory for the next state");
}

static vd_status read_loss(execution *x, float *loss, vd_err *err) {
    uint32_t value = x->graph->loss;
    if (value == UINT32_MAX)
        return VD_OK;
    vd_step_numbers *n = x->exec->numbers;
    vd_status status =
        loss ? vd_memory_read(x->memory, loss, x->value[value], sizeof *loss, err) : VD_OK;
    if (status == VD_OK && n)
        status = read_number(x, x->value[value], &n->loss, &n->has_loss, err);
    release(x, value);
    return status;
}

/* Frees what is left of a consumed state: the tensors that no node read. */
static void drop_old_state(execution *x, vd_state *state) {
    for (uint32_t i = 0; i < state->count; i++)
        vd_memory_free(x->memory, x->value[i]);
    free(state->tensor);
}

static vd_status run_graph(const vd_exec *exec, const vd_program *program, int64_t step,
                           const vd_observer *observer, const vd_state *before, vd_state *consumed,
                           vd_state *next, float *loss, vd_err *err) {
    execution *x = malloc(sizeof *x);
    if (!x)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    bool ended = false;
    vd_status status =
        open_execution(x, exec, program, step, before, consumed != NULL, observer, err);
    if (status == VD_OK)
        status = run_nodes(x, observer, &ended, err);
    if (status == VD_OK && ended && next)
        status = read_loss(x, loss, err);
    if (status == VD_OK && ended && next)
        status = take_outputs(x, next, err);
    if (consumed && x->value && x->uses) { /* opened: the state's tensors are bound in x->value */
        drop_old_state(x, consumed);
        *consumed = (vd_state){0};
    }
    close_execution(x);
    free(x);
    return status;
}

/* Before initialisation there is no state. */
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
        vd_status logged = exec->free ? vd_exec_observe(exec, NULL, state, err) : VD_OK;
        state->step++;
        return logged;
    }
    vd_status status = run_step(exec, observer, before.step, &before, state, &next, loss, err);
    if (!state->tensor) /* consumed */
        *state = next;
    return status;
}

vd_status vd_exec_observe(const vd_exec *exec, const vd_observer *observer, const vd_state *before,
                          vd_err *err) {
    return run_step(exec, observer, before ? before->step : -1, before, NULL, NULL, NULL, err);
}
