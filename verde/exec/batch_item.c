/* This file manages one program of a batch: its state, and values that are computed once. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/batch_internal.h"

/* Returns whether a value's memory is the item's: data in host memory is borrowed. */
static bool is_owned(const vd_batch *b, uint32_t value) {
    return b->memory || value >= b->plan.sources;
}

void vd_batch_item_free(const vd_batch *b, vd_batch_item *item) {
    if (!item)
        return;
    for (uint32_t i = 0; item->value && i < b->plan.count; i++)
        if (is_owned(b, i))
            vd_memory_free(b->memory, item->value[i]);
    for (uint32_t i = 0; item->mirror && i < item->program->leaf_count; i++)
        vd_memory_free(b->memory, item->mirror[i]);
    free(item->mirror);
    free(item->value);
    vd_state_free(&item->state);
    vd_plan_free(&item->plan);
    vd_live_free(&item->live);
    free(item->written);
    free(item);
}

vd_status vd_batch_wrote(vd_batch_item *item, uint32_t leaf, uint64_t from, uint64_t size,
                         vd_err *err) {
    for (uint32_t i = 0; i < item->written_count; i++) {
        vd_written *w = &item->written[i];
        if (w->leaf == leaf &&
            w->from + w->size == from) { /* extends the last write by the next row */
            w->size += size;
            return VD_OK;
        }
    }
    if (item->written_count == item->written_capacity) {
        const uint32_t capacity = item->written_capacity ? 2 * item->written_capacity : 64;
        vd_written *grown = realloc(item->written, capacity * sizeof *grown);
        if (!grown)
            return vd_fail(err, VD_ERR_LOCAL, "out of memory");
        item->written = grown;
        item->written_capacity = capacity;
    }
    item->written[item->written_count++] = (vd_written){leaf, from, size};
    return VD_OK;
}

/* ---- values that are computed once ---- */

const void *vd_batch_held(const vd_batch *b, const vd_batch_item *item, uint32_t value) {
    const vd_batch_value *v = &b->plan.value[value];
    switch (v->held) {
    case VD_HELD_SHARED: return b->shared[value];
    case VD_HELD_PROGRAM: return item->value[value];
    case VD_HELD_STATE: return (item->mirror ? item->mirror : item->state.tensor)[v->leaf];
    case VD_HELD_ROWS: break;
    }
    return NULL;
}

vd_status vd_batch_copy(const vd_batch *b, const void *host, size_t size, void **out, vd_err *err) {
    *out = vd_memory_alloc(b->memory, size);
    if (!*out)
        return vd_fail(
            err, VD_ERR_LOCAL,
            "out of memory: %zu bytes of a program that joins; fewer at a time take less", size);
    return vd_memory_write(b->memory, *out, host, size, err);
}

vd_status vd_batch_mirror(const vd_batch *b, vd_batch_item *item, vd_err *err) {
    const vd_program *program = item->program;
    vd_status status = VD_OK;
    if (!b->memory)
        return VD_OK;
    if (!item->mirror)
        item->mirror = calloc((size_t)program->leaf_count + 1, sizeof *item->mirror);
    if (!item->mirror)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; status == VD_OK && i < program->leaf_count; i++)
        if (!item->mirror[i])
            status = vd_batch_copy(b, item->state.tensor[i],
                                   vd_shape_bytes(&program->leaf[i].shape), &item->mirror[i], err);
    return status;
}

static vd_status compute(vd_batch *b, const vd_batch_item *item, const vd_program *program,
                         uint32_t node, void **out, vd_err *err) {
    const vd_node *n = vd_node_stored(&program->step, node);
    const void *input[RO_MAX_INPUTS];
    ro_shape shapes[RO_MAX_INPUTS];
    ro_call call;
    vd_node_call(program, &program->step, node, &call, shapes);
    for (int32_t i = 0; i < n->input_count; i++)
        input[i] = vd_batch_held(b, item, vd_node_input(&program->step, node, i));
    *out = vd_memory_alloc(b->memory, vd_shape_bytes(&n->shape));
    if (!*out)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory for %s",
                       vd_node_name(&program->step, node).text);
    if (ro_run(b->exec.ro, &call, input, *out) != RO_OK)
        return vd_fail(err, VD_ERR_LOCAL, "%s: %s", vd_node_name(&program->step, node).text,
                       ro_ctx_error(b->exec.ro));
    return VD_OK;
}

vd_status vd_batch_compute_once(vd_batch *b, vd_batch_item *item, vd_err *err) {
    const vd_held held = item ? VD_HELD_PROGRAM : VD_HELD_SHARED;
    const vd_program *program = item ? item->program : b->exec.program;
    void **value = item ? item->value : b->shared;
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < b->plan.once_count; i++) {
        const uint32_t node = b->plan.once[i], to = b->plan.sources + node;
        if (b->plan.value[to].held == held)
            status = compute(b, item, program, node, &value[to], err);
    }
    return status;
}

/* ---- S_0 ---- */

typedef struct {
    const vd_batch *b;
    const vd_batch_item *item;
    const vd_graph *graph;
    uint32_t sources;
    bool *wanted;
    void **value; /* of each node; owned */
    void *step;   /* the step number, 0, where the batch computes; owned */
} beginning;

static const void *source_of(const beginning *x, uint32_t value) {
    if (value >= x->sources)
        return x->value[value - x->sources];
    if (value + 1 == x->sources)
        return x->step;
    const uint32_t at = x->item->program->leaf_count + value;
    return value < x->b->plan.own_data ? x->item->value[at] : x->b->shared[at];
}

static void want_inputs(const beginning *x) {
    for (uint32_t i = x->graph->node_count; i-- > 0;) {
        const vd_node *n = vd_node_stored(x->graph, i);
        for (int32_t k = 0; x->wanted[x->sources + i] && k < n->input_count; k++)
            x->wanted[vd_node_input(x->graph, i, k)] = true;
    }
}

static vd_status run_wanted(const beginning *x, vd_err *err) {
    const vd_program *program = x->item->program;
    const void *input[RO_MAX_INPUTS];
    ro_shape shapes[RO_MAX_INPUTS];
    ro_call call;
    for (uint32_t i = 0; i < x->graph->node_count; i++) {
        const vd_node *n = vd_node_stored(x->graph, i);
        if (!x->wanted[x->sources + i])
            continue;
        vd_node_call(program, x->graph, i, &call, shapes);
        for (int32_t k = 0; k < n->input_count; k++)
            input[k] = source_of(x, vd_node_input(x->graph, i, k));
        x->value[i] = vd_memory_alloc(x->b->memory, vd_shape_bytes(&n->shape));
        if (!x->value[i])
            return vd_fail(err, VD_ERR_LOCAL, "out of memory for %s",
                           vd_node_name(x->graph, i).text);
        if (ro_run(x->b->exec.ro, &call, input, x->value[i]) != RO_OK)
            return vd_fail(err, VD_ERR_LOCAL, "%s: %s", vd_node_name(x->graph, i).text,
                           ro_ctx_error(x->b->exec.ro));
    }
    return VD_OK;
}

static vd_status take_leaves(const beginning *x, vd_batch_item *item, vd_err *err) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < item->program->leaf_count; i++) {
        const size_t size = vd_shape_bytes(&item->program->leaf[i].shape);
        if (x->b->plan.cache[i])
            continue;
        status = vd_memory_read(x->b->memory, item->state.tensor[i],
                                source_of(x, x->graph->output[i]), size, err);
        if (status == VD_OK)
            status = vd_batch_wrote(item, i, 0, size, err);
    }
    return status;
}

static vd_status zero_state(vd_batch_item *item, vd_err *err) {
    const vd_program *program = item->program;
    item->state = (vd_state){.step = -1, .count = program->leaf_count};
    item->state.tensor = calloc(program->leaf_count, sizeof *item->state.tensor);
    for (uint32_t i = 0; i < program->leaf_count; i++) {
        const size_t size = vd_shape_bytes(&program->leaf[i].shape);
        if (!item->state.tensor || !(item->state.tensor[i] = vd_memory_alloc(NULL, size)))
            return vd_fail(err, VD_ERR_LOCAL, "out of memory for the state of a program");
        memset(item->state.tensor[i], 0, size);
    }
    return VD_OK;
}

vd_status vd_batch_begin(const vd_batch *b, vd_batch_item *item, vd_err *err) {
    const vd_program *program = item->program;
    beginning x = {.b = b, .item = item, .graph = &program->init};
    x.sources = vd_source_count(program, x.graph);
    x.wanted = calloc(x.sources + x.graph->node_count, sizeof *x.wanted);
    x.value = calloc((size_t)x.graph->node_count + 1, sizeof *x.value);
    vd_status status =
        x.wanted && x.value ? zero_state(item, err) : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; x.wanted && i < program->leaf_count; i++)
        x.wanted[x.graph->output[i]] |= !b->plan.cache[i];
    if (status == VD_OK)
        status = vd_batch_copy(b, &(int32_t){0}, sizeof(int32_t), &x.step, err);
    if (status == VD_OK) {
        want_inputs(&x);
        status = run_wanted(&x, err);
    }
    if (status == VD_OK)
        status = take_leaves(&x, item, err);
    for (uint32_t i = 0; x.value && i < x.graph->node_count; i++)
        vd_memory_free(b->memory, x.value[i]);
    vd_memory_free(b->memory, x.step);
    free(x.value);
    free(x.wanted);
    return status;
}

/* ---- S_0 of a foreign program ---- */

/* Bytes up to the last element that is not 0, since caches have room for later tokens. */
static size_t used_bytes(const ro_shape *shape, const void *tensor) {
    const size_t element = ro_dtype_size(shape->dtype);
    const uint8_t *bytes = tensor;
    size_t size = vd_shape_bytes(shape);
    while (size > 0 && bytes[size - 1] == 0)
        size--;
    return (size + element - 1) / element * element;
}

/* Copies a state that a device computed to host memory. */
static vd_status read_state(vd_batch_item *item, vd_state *from, vd_err *err) {
    vd_status status = zero_state(item, err);
    item->state.step = from->step;
    for (uint32_t i = 0; status == VD_OK && i < from->count; i++)
        status = vd_memory_read(from->memory, item->state.tensor[i], from->tensor[i],
                                vd_shape_bytes(&item->program->leaf[i].shape), err);
    vd_state_free(from);
    return status;
}

vd_status vd_batch_begin_strange(const vd_batch *b, vd_batch_item *item, vd_err *err) {
    const vd_program *program = item->program;
    const void **data = calloc((size_t)program->data_count + 1, sizeof *data);
    void **placed = calloc((size_t)program->data_count + 1, sizeof *placed);
    vd_exec exec = {.program = program, .ro = b->exec.ro, .data = data};
    vd_state state = {0};
    vd_status status = data && placed ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; status == VD_OK && i < program->data_count; i++) {
        const bool own = i < b->plan.own_data;
        data[i] = own ? item->data[i] : b->exec.data[i];
        placed[i] = (own ? item->value : b->shared)[program->leaf_count + i];
    }
    exec.placed = b->memory ? placed : NULL;
    if (status == VD_OK)
        status = vd_exec_init(&exec, NULL, b->memory ? &state : &item->state, err);
    if (status == VD_OK && b->memory)
        status = read_state(item, &state, err);
    for (uint32_t i = 0; status == VD_OK && i < program->leaf_count; i++) {
        const size_t used = used_bytes(&program->leaf[i].shape, item->state.tensor[i]);
        if (used > 0)
            status = vd_batch_wrote(item, i, 0, used, err);
    }
    free(placed);
    free(data);
    return status;
}
