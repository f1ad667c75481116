/* This file runs put_rows on leaves in place: steps add to their caches this way. */
#include <string.h>

#include "repops/op_movement.h"
#include "verde/exec/batch_internal.h"

/* A tensor as seen along an axis: [outer, n, inner], where inner is in bytes. */
typedef struct {
    int64_t outer, n;
    size_t inner;
} around;

static around around_of(const ro_shape *shape, int64_t axis) {
    around a = {1, shape->dim[axis], ro_dtype_size(shape->dtype)};
    for (int i = 0; i < shape->ndim; i++) {
        a.outer *= i < axis ? shape->dim[i] : 1;
        a.inner *= i > axis ? (size_t)shape->dim[i] : 1;
    }
    return a;
}

/* Puts a row (put_rows, SPEC.md section 5) into the leaf, in host memory. */
static vd_status put_row(vd_batch_rows *p, const vd_unit *u, int64_t r) {
    const vd_program *program = p->row[r].item->program;
    const vd_node *n = vd_node_stored(&program->step, u->index);
    const uint32_t edge[] = {vd_node_input(&program->step, u->index, 0),
                             vd_node_input(&program->step, u->index, 1),
                             vd_node_input(&program->step, u->index, 2)};
    const uint32_t leaf = p->b->plan.value[edge[0]].leaf;
    const around x = around_of(&n->shape, n->attr[RO_PUT_ROWS_AXIS]);
    const around rows =
        around_of(vd_value_shape(program, &program->step, edge[1]), n->attr[RO_PUT_ROWS_AXIS]);
    const int32_t *place = vd_batch_row_in_host(p, edge[2], r);
    const uint8_t *from = vd_batch_row_in_host(p, edge[1], r);
    if (!place || !from)
        return VD_ERR_LOCAL;
    const int64_t at = *place;
    const int64_t first = at < 0 ? 0 : at, last = at + rows.n < x.n ? at + rows.n : x.n;
    uint8_t *to = p->row[r].item->state.tensor[leaf];
    vd_status status = VD_OK;
    for (int64_t o = 0; status == VD_OK && first < last && o < x.outer; o++) {
        const size_t put = (size_t)(o * x.n + first) * x.inner;
        const size_t size = (size_t)(last - first) * x.inner;
        memcpy(to + put, from + (size_t)(o * rows.n + first - at) * x.inner, size);
        status = vd_batch_wrote(p->row[r].item, leaf, put, size, p->err);
    }
    return status;
}

/* Returns how many rows from r on one call puts: of one program, at consecutive places. */
static int64_t puts_at_once(vd_batch_rows *p, const vd_unit *u, int64_t r, vd_status *status) {
    const vd_node *n = vd_node_stored(p->graph, u->index);
    const uint32_t place = vd_node_input(p->graph, u->index, 2);
    const around rows = around_of(
        vd_value_shape(p->b->exec.program, p->graph, vd_node_input(p->graph, u->index, 1)),
        n->attr[RO_PUT_ROWS_AXIS]);
    const int32_t *first = vd_batch_row_in_host(p, place, r);
    /* a shared value has the rows of only one place */
    const bool many = p->b->plan.value[vd_node_input(p->graph, u->index, 1)].held == VD_HELD_ROWS;
    int64_t count = 1;
    for (; first && many && rows.outer == 1 && r + count < vd_batch_rows_count(p, u->every) &&
           p->row[r + count].item == p->row[r].item;
         count++) {
        const int32_t *next = vd_batch_row_in_host(p, place, r + count);
        if (!next || *next != *first + rows.n * count)
            break;
    }
    *status = first ? VD_OK : VD_ERR_LOCAL;
    return count;
}

/* Puts rows into a device's copies; host memory follows when all units have run. */
static vd_status put_mirror(vd_batch_rows *p, const vd_unit *u, int64_t r, int64_t count) {
    const vd_batch_item *item = p->row[r].item;
    const vd_graph *g = &item->program->step;
    const uint32_t rows = vd_node_input(g, u->index, 1), place = vd_node_input(g, u->index, 2);
    void *leaf = item->mirror[p->b->plan.value[vd_node_input(g, u->index, 0)].leaf];
    const void *input[] = {leaf, vd_batch_of_row(p, rows, r), vd_batch_of_row(p, place, r)};
    ro_shape shapes[RO_MAX_INPUTS];
    ro_call call;
    vd_node_call(item->program, g, u->index, &call, shapes);
    shapes[1].dim[call.attr[RO_PUT_ROWS_AXIS]] *= count;
    p->stays[rows] = p->stays[place] = true;
    return ro_run(p->b->exec.ro, &call, input, leaf) == RO_OK
               ? VD_OK
               : vd_fail(p->err, VD_ERR_LOCAL, "%s: %s", vd_node_name(g, u->index).text,
                         ro_ctx_error(p->b->exec.ro));
}

vd_status vd_batch_put(vd_batch_rows *p, const vd_unit *u) {
    vd_status status = VD_OK;
    int64_t count = 1;
    for (int64_t r = 0; status == VD_OK && r < vd_batch_rows_count(p, u->every); r += count) {
        if (!p->b->memory) {
            status = put_row(p, u, r);
            continue;
        }
        count = puts_at_once(p, u, r, &status);
        if (status == VD_OK)
            status = put_mirror(p, u, r, count);
    }
    return status;
}

vd_status vd_batch_put_in_host(vd_batch_rows *p) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; p->b->memory && i < p->b->plan.unit_count; i++) {
        const vd_unit *u = &p->b->plan.unit[i];
        const int64_t rows = u->kind == VD_UNIT_PUT ? vd_batch_rows_count(p, u->every) : 0;
        for (int64_t r = 0; status == VD_OK && r < rows; r++)
            status = put_row(p, u, r);
    }
    return status;
}
