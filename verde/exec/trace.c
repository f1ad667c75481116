/* The records of one step. PROTOCOL.md section 2.4. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/exec.h"
#include "verde/exec/memory.h"

typedef struct {
    const vd_program *program; /* as executed */
    const vd_graph *graph;
    ro_ctx *ro;
    vd_hash *value; /* commitment of every value */
    uint32_t sources;
    vd_records *out;
    vd_err *err;
    vd_status status;
} tracer;

static vd_status hash_tensor(tracer *t, const ro_shape *shape, ro_ctx *memory, const void *data,
                             vd_hash *out) {
    void *copy;
    vd_hash root;
    const void *bytes = vd_memory_in_host(memory, data, vd_shape_bytes(shape), &copy, t->err);
    vd_status status =
        bytes ? vd_tensor_hash(t->ro, shape, bytes, &root, out, t->err) : VD_ERR_LOCAL;
    free(copy);
    return status;
}

static bool record(void *user, uint32_t node, const void *const *input, const void *output) {
    tracer *t = user;
    const vd_node *n = vd_node_stored(t->graph, node);
    vd_hash descriptor, in[RO_MAX_INPUTS];
    vd_buf bytes = {0};
    (void)input;
    t->status = hash_tensor(t, &n->shape, t->ro, output, &t->value[t->sources + node]);
    if (t->status != VD_OK)
        return false;
    for (int32_t i = 0; i < n->input_count; i++)
        in[i] = t->value[vd_node_input(t->graph, node, i)];
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
        const void *bytes = i < states ? before->tensor[i] : &step;
        if (vd_source_of(t->program, t->graph, i, &index) == VD_SOURCE_DATA) {
            memcpy(t->value[i].b, exec->program->data[index].root, VD_HASH_SIZE);
            continue;
        }
        vd_status status = hash_tensor(t, vd_value_shape(t->program, t->graph, i),
                                       i < states ? before->memory : NULL, bytes, &t->value[i]);
        if (status != VD_OK)
            return status;
    }
    return VD_OK;
}

vd_status vd_trace(const vd_exec *exec, const vd_state *before, vd_records *out, vd_err *err) {
    vd_program changed = {0};
    tracer t = {.ro = exec->ro, .out = out, .err = err};
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
