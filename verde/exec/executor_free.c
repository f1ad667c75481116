/* Nodes on free kernels: how many bits they are rounded to, and their reports. */
#include <math.h>
#include <stdlib.h>

#include "verde/exec/executor.h"

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

static vd_status room_for_symbols(vd_execution *x, size_t count, vd_err *err) {
    if (count <= x->symbols)
        return VD_OK;
    free(x->symbol);
    x->symbol = malloc(count);
    x->symbols = x->symbol ? count : 0;
    return x->symbol ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory for %zu symbols", count);
}

vd_status vd_run_free(vd_execution *x, uint32_t index, const ro_call *call, void *output,
                      vd_err *err) {
    const vd_free *f = x->exec->free;
    const vd_node *n = vd_node_stored(x->graph, index);
    const size_t count = (size_t)ro_shape_numel(&n->shape);
    ro_rounding r = {.size = sizeof r, .mode = f->mode, .bits = f->bits};
    ro_free_report report = {.size = sizeof report};
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
        return vd_fail(err, VD_ERR_LOCAL, "%s: %s", vd_node_name(x->graph, index).text,
                       ro_ctx_error(x->exec->ro));
    /* The run goes on with the same value that is logged and compared. */
    status = vd_alter_output(x, index, output, err);
    const vd_free_node node = {x->step, index, &n->shape, output,     &r,
                               &report, call,  x->input,  x->exec->ro};
    return status == VD_OK && f->ran ? f->ran(f->user, &node, err) : status;
}
