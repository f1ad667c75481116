/* This file runs nodes by free kernels. */
#include "verde/log/free.h"

#include <stdlib.h>

#include "repops/ref.h"
#include "verde/log/program.h"

static vd_status room_for_symbols(vd_free_kernels *k, size_t count, vd_err *err) {
    if (count <= k->symbols)
        return VD_OK;
    free(k->symbol);
    k->symbol = malloc(count);
    k->symbols = k->symbol ? count : 0;
    return k->symbol ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory for %zu symbols", count);
}

/* Sets how the node is rounded. */
static vd_status set_rounding(vd_free_kernels *k, const vd_kernel_node *n, ro_rounding *r,
                              vd_err *err) {
    const vd_free *f = &k->free;
    const size_t count = (size_t)ro_shape_numel(&n->call->output);
    vd_status status = VD_OK;
    if (vd_node_is_state(n->program, n->graph, n->node))
        r->bits = RO_ROUND_BITS_MAX;
    if (f->mode == RO_FREE_SYMBOLS) {
        status = room_for_symbols(k, count ? count : 1, err);
        r->symbol = k->symbol;
        r->threshold = vd_threshold_at(f->threshold[n->call->op], f->bits, r->bits);
    }
    if (f->mode == RO_FREE_REPLAY || f->mode == RO_FREE_FOLLOW)
        status = f->follow(f->user, n->step, n->node, r, err);
    return status;
}

static vd_status run(void *user, const vd_kernel_node *n, vd_err *err) {
    vd_free_kernels *k = user;
    const vd_free *f = &k->free;
    const ro_shape *shape = &vd_node_stored(n->graph, n->node)->shape;
    ro_rounding r = {.size = sizeof r, .mode = f->mode, .bits = f->bits};
    ro_free_report report = {.size = sizeof report};
    vd_status status = set_rounding(k, n, &r, err);
    if (status != VD_OK)
        return status;
    if (ro_free_run(n->ro, f->profile, &r, n->call, n->input, n->output, &report) != RO_OK)
        return vd_fail(err, VD_ERR_LOCAL, "%s: %s", vd_node_name(n->graph, n->node).text,
                       ro_ctx_error(n->ro));
    /* A fault changes the value before it is logged and compared, as the run goes on with it. */
    status = vd_fault_output(n->fault, n->step, n->node, shape, n->memory, n->output, err);
    const vd_free_node node = {n->step, n->node, shape,    n->output, &r,
                               &report, n->call, n->input, n->ro};
    return status == VD_OK && f->ran ? f->ran(f->user, &node, err) : status;
}

const vd_kernels *vd_free_kernels_open(vd_free_kernels *k, const vd_free *free) {
    k->free = *free;
    k->kernels = (vd_kernels){run, k, free->keep_inputs};
    return &k->kernels;
}

void vd_free_kernels_close(vd_free_kernels *k) {
    free(k->symbol);
    *k = (vd_free_kernels){0};
}
