/* The records of one step. PROTOCOL.md section 2.4. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/exec.h"

typedef struct {
    const vd_program *program; /* as executed */
    const vd_graph *graph;
    vd_hash *value; /* commitment of every value */
    uint32_t sources;
    vd_records *out;
    vd_err *err;
    vd_status status;
} tracer;

static bool record(void *user, uint32_t node, const void *const *input, const void *output) {
    tracer *t = user;
    const vd_node *n = &t->graph->node[node];
    vd_hash root, descriptor, in[RO_MAX_INPUTS];
    vd_buf bytes = {0};
    (void)input;
    t->status =
        vd_tensor_hash(&n->shape, output, &root, &t->value[t->sources + node], NULL, t->err);
    if (t->status != VD_OK)
        return false;
    for (int32_t i = 0; i < n->input_count; i++)
        in[i] = t->value[t->graph->edge[n->first_input + (uint32_t)i]];
    vd_node_encode(t->program, t->graph, node, &bytes);
    if (!vd_buf_ok(&bytes) || !vd_descriptor_hash(bytes.data, bytes.size, &descriptor) ||
        !vd_records_put(t->out, &descriptor, in, (uint32_t)n->input_count,
                        &t->value[t->sources + node]))
        t->status = vd_fail(t->err, VD_ERR_LOCAL, "trace: out of memory");
    vd_buf_free(&bytes);
    return t->status == VD_OK;
}

static vd_status hash_sources(tracer *t, const vd_exec *exec, const vd_state *before) {
    uint32_t states = vd_state_sources(t->program, t->graph);
    int32_t step = before ? (int32_t)before->step : 0;
    for (uint32_t i = 0; i < t->sources; i++) {
        uint32_t index;
        vd_hash root;
        const void *bytes = i < states ? before->tensor[i] : &step;
        if (vd_source_of(t->program, t->graph, i, &index) == VD_SOURCE_DATA) {
            memcpy(t->value[i].b, exec->program->data[index].root, VD_HASH_SIZE);
            continue;
        }
        vd_status status = vd_tensor_hash(vd_value_shape(t->program, t->graph, i), bytes, &root,
                                          &t->value[i], NULL, t->err);
        if (status != VD_OK)
            return status;
    }
    return VD_OK;
}

vd_status vd_trace(const vd_exec *exec, const vd_state *before, vd_records *out, vd_err *err) {
    vd_program changed = {0};
    tracer t = {.out = out, .err = err};
    *out = (vd_records){0};
    vd_status status =
        vd_fault_program(exec, before ? before->step : -1, &changed, &t.program, err);
    if (status != VD_OK)
        return status;
    t.graph = before ? &t.program->step : &t.program->init;
    t.sources = vd_source_count(t.program, t.graph);
    t.value = calloc(t.sources + t.graph->node_count, sizeof *t.value);
    status = t.value ? hash_sources(&t, exec, before) : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = vd_exec_observe(exec, &(vd_observer){record, &t}, before, err);
    if (status == VD_OK)
        status = t.status;
    free(t.value);
    vd_program_free(&changed);
    if (status != VD_OK)
        vd_records_free(out);
    return status;
}
