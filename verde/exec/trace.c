/* This file makes the records of a step. PROTOCOL.md section 2.4. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/memory.h"
#include "verde/exec/tracing.h"

typedef struct {
    vd_tracing *tracing;
    vd_err *err;
    vd_status status;
} watcher;

static bool hash_output(void *user, uint32_t node, const void *const *input, const void *output) {
    watcher *w = user;
    vd_tracing *t = w->tracing;
    ro_ctx *ro = t->exec->ro;
    const ro_shape *shape = &vd_node_stored(t->graph, node)->shape;
    void *copy = NULL;
    vd_hash root;
    (void)input;
    const void *bytes = vd_memory_in_host(ro, output, vd_shape_bytes(shape), &copy, w->err);
    w->status = bytes
                    ? vd_tensor_hash(ro, shape, bytes, &root, &t->value[t->sources + node], w->err)
                    : VD_ERR_LOCAL;
    free(copy);
    return w->status == VD_OK;
}

static vd_status hash_step(vd_tracing *t, uint32_t value, vd_err *err) {
    const int32_t step = t->before ? (int32_t)t->before->step : 0;
    vd_hash root;
    return vd_tensor_hash(NULL, vd_value_shape(t->program, t->graph, value), &step, &root,
                          &t->value[value], err);
}

vd_status vd_tracing_open(vd_tracing *t, const vd_exec *exec, const vd_state *before, vd_err *err) {
    *t = (vd_tracing){.exec = exec, .before = before};
    vd_status status =
        vd_fault_program(exec, before ? before->step : -1, &t->changed, &t->program, err);
    if (status != VD_OK)
        return status;
    t->graph = before ? &t->program->step : &t->program->init;
    t->sources = vd_source_count(t->program, t->graph);
    t->value = calloc((size_t)t->sources + t->graph->node_count, sizeof *t->value);
    if (!t->value)
        return vd_fail(err, VD_ERR_LOCAL, "trace: out of memory");
    for (uint32_t i = vd_state_sources(t->program, t->graph); i < t->sources; i++) {
        uint32_t index;
        if (vd_source_of(t->program, t->graph, i, &index) == VD_SOURCE_DATA)
            memcpy(t->value[i].b, exec->program->data[index].root, VD_HASH_SIZE);
        else if (status == VD_OK)
            status = hash_step(t, i, err);
    }
    return status;
}

void vd_tracing_close(vd_tracing *t) {
    free(t->value);
    vd_program_free(&t->changed);
    *t = (vd_tracing){0};
}

vd_status vd_tracing_run(vd_tracing *t, vd_err *err) {
    watcher w = {t, err, VD_OK};
    const vd_status status =
        vd_exec_observe(t->exec, &(vd_observer){hash_output, &w}, t->before, err);
    return status == VD_OK ? w.status : status;
}

static bool put_record(const vd_tracing *t, uint32_t node, vd_records *out) {
    const int32_t inputs = vd_node_stored(t->graph, node)->input_count;
    vd_hash descriptor, in[RO_MAX_INPUTS];
    vd_buf bytes = {0};
    for (int32_t i = 0; i < inputs; i++)
        in[i] = t->value[vd_node_input(t->graph, node, i)];
    vd_node_encode(t->program, t->graph, node, &bytes);
    const bool ok =
        vd_buf_ok(&bytes) && vd_descriptor_hash(bytes.data, bytes.size, &descriptor) &&
        vd_records_put(out, &descriptor, in, (uint32_t)inputs, &t->value[t->sources + node]);
    vd_buf_free(&bytes);
    return ok;
}

static uint64_t bytes_of(const vd_graph *g) {
    return vd_records_bytes(g->node_count, vd_inputs_meant(g));
}

vd_status vd_trace_fits(const vd_program *program, vd_err *err) {
    const vd_graph *g =
        bytes_of(&program->init) > bytes_of(&program->step) ? &program->init : &program->step;
    return bytes_of(g) <= VD_TRACE_BYTES_MAX
               ? VD_OK
               : vd_fail(err, VD_ERR_USAGE,
                         "the records of %s's %u nodes take %.1f GiB, expected %.1f or less: fewer "
                         "micro-batches have fewer nodes",
                         g == &program->init ? "initialisation" : "a step", g->node_count,
                         (double)bytes_of(g) / (1 << 30), (double)VD_TRACE_BYTES_MAX / (1 << 30));
}

vd_status vd_tracing_records(const vd_tracing *t, vd_records *out, vd_err *err) {
    bool ok = vd_records_reserve(out, t->graph->node_count, vd_inputs_meant(t->graph));
    for (uint32_t i = 0; ok && i < t->graph->node_count; i++)
        ok = put_record(t, i, out);
    if (ok)
        return VD_OK;
    vd_records_free(out);
    return vd_fail(err, VD_ERR_LOCAL, "trace: out of memory");
}

vd_status vd_trace(const vd_exec *exec, const vd_state *before, vd_records *out, vd_err *err) {
    vd_tracing t = {0};
    *out = (vd_records){0};
    vd_status status = vd_tracing_open(&t, exec, before, err);
    if (status == VD_OK && before)
        status = vd_leaves_hash(exec->ro, exec->program, before, NULL, t.value, err);
    if (status == VD_OK)
        status = vd_tracing_run(&t, err);
    if (status == VD_OK)
        status = vd_tracing_records(&t, out, err);
    vd_tracing_close(&t);
    return status;
}
