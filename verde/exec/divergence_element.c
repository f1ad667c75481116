/* This file compares elements of tensors, and computes the first differing one by its
 * definition. */
#include <stdlib.h>
#include <string.h>

#include "repops/free.h"
#include "verde/exec/backend.h"
#include "verde/exec/distance.h"
#include "verde/exec/divergence_internal.h"

/* Compares tensors of both sides; leaves *out unchanged if they are equal. */
static void compare(const ro_shape *shape, const void *a, const void *b, vd_diverged_tensor *out) {
    const size_t size = ro_dtype_size(shape->dtype);
    const int64_t count = ro_shape_numel(shape);
    const uint8_t *x = a, *y = b;
    for (int64_t i = 0; i < count; i++) {
        if (memcmp(x + (size_t)i * size, y + (size_t)i * size, size) == 0)
            continue;
        if (out->count++ > 0)
            continue;
        out->known = true;
        out->element = i;
        out->bits[0] = vd_bits_of_element(shape->dtype, a, i);
        out->bits[1] = vd_bits_of_element(shape->dtype, b, i);
    }
    out->shape = *shape;
}

/* Compares value[0] and value[1] of a step of each side. */
static vd_status compare_values(vd_parting *p, int64_t step, const uint32_t value[2]) {
    const void *data[2];
    const ro_shape *shape[2];
    vd_status status = VD_OK;
    p->out->tensor.part = -1;
    for (int side = 0; side < 2 && status == VD_OK; side++) {
        const vd_diverge_side *s = &p->side[side];
        const vd_graph *g = step < 0 ? &s->program->init : &s->program->step;
        shape[side] = vd_value_shape(s->program, g, value[side]);
        status = s->source.tensor(s->source.user, step, value[side], &data[side], p->err);
    }
    if (status == VD_OK && ro_shape_equal(shape[0], shape[1]))
        compare(shape[0], data[0], data[1], &p->out->tensor);
    return status;
}

/* ---- leaves ---- */

uint32_t vd_parting_first_leaf(const vd_parting *p, vd_hash *const leaf[2]) {
    for (uint32_t i = 0; i < p->side[0].program->leaf_count; i++) {
        const uint32_t k = vd_parting_leaf(p, i);
        if (k != VD_UNPAIRED && !vd_hash_equal(&leaf[0][i], &leaf[1][k]))
            return i;
    }
    return VD_UNPAIRED;
}

vd_status vd_parting_leaves(vd_parting *p, int64_t at) {
    vd_hash *leaf[2] = {NULL, NULL};
    vd_status status = VD_OK;
    for (int side = 0; side < 2 && status == VD_OK; side++) {
        const vd_source *s = &p->side[side].source;
        leaf[side] = calloc((size_t)p->side[side].program->leaf_count + 1, sizeof(vd_hash));
        status = leaf[side] ? s->leaves(s->user, at, leaf[side], p->err) : vd_parting_memory(p);
    }
    const uint32_t i = status == VD_OK ? vd_parting_first_leaf(p, leaf) : VD_UNPAIRED;
    if (i != VD_UNPAIRED) {
        p->out->of_leaf = true;
        p->out->leaf[0] = i;
        p->out->leaf[1] = vd_parting_leaf(p, i);
        status = compare_values(p, at, p->out->leaf);
    }
    free(leaf[0]);
    free(leaf[1]);
    return status;
}

/* ---- the reference ---- */

/* Inputs of a node of one side. They are copied when first read, because the next question may free
 * what the last one gave. */
typedef struct {
    const vd_parting *p;
    int side;
    const vd_graph *graph;
    uint32_t node;
    ro_call call;
    ro_shape shape[RO_MAX_INPUTS];
    void *input[RO_MAX_INPUTS];
    vd_status status;
} reading;

static uint32_t load(void *user, int input, int64_t index) {
    reading *r = user;
    const vd_source *s = &r->p->side[r->side].source;
    const ro_shape *shape = &r->shape[input];
    const size_t size = vd_shape_bytes(shape);
    const void *data;
    if (r->status == VD_OK && !r->input[input]) {
        r->status = s->tensor(s->user, r->p->out->step, vd_node_input(r->graph, r->node, input),
                              &data, r->p->err);
        r->input[input] = r->status == VD_OK ? malloc(size) : NULL;
        if (r->input[input])
            memcpy(r->input[input], data, size);
        else if (r->status == VD_OK)
            r->status = vd_parting_memory(r->p);
    }
    return r->status == VD_OK ? vd_bits_of_element(shape->dtype, r->input[input], index) : 0;
}

static vd_status compute(reading *r, vd_diverged_tensor *t) {
    const vd_program *program = r->p->side[r->side].program;
    const vd_node *n = vd_node_stored(r->graph, r->node);
    ro_bounded bounded;
    vd_status status;
    const vd_backend *backend = vd_backend_of(program);
    if (!backend || !ro_op_is_free(n->op)) {
        status = vd_leaf_element(&r->call, t->element, load, r, &t->reference, r->p->err);
        t->has_reference = status == VD_OK && r->status == VD_OK;
        return status;
    }
    status = vd_leaf_bounded(&r->call, t->element, load, r, &bounded, r->p->err);
    t->has_bound = status == VD_OK && r->status == VD_OK;
    for (int side = 0; side < 2 && t->has_bound; side++)
        t->possible[side] = backend->possible(program, r->graph, r->node, bounded, t->bits[side]);
    return status;
}

/* ---- parts ---- */

enum { GUESSED_PARTS_MAX = 256 }; /* more would take long: the time is quadratic */

typedef struct {
    vd_fold fold;
    reading *reading;
    uint8_t before[VD_PART_BYTES]; /* the fold's state after all parts before the current one */
} guessing;

/* The element if part `part` runs `times` times, and then all later parts if `rest` is set. */
static uint32_t altered(const guessing *g, uint64_t part, int times, bool rest) {
    uint8_t state[VD_PART_BYTES];
    memcpy(state, g->before, sizeof state);
    for (int i = 0; i < times; i++)
        vd_fold_part(&g->fold, part, state, load, g->reading, state);
    for (uint64_t next = part + 1; rest && next < g->fold.parts; next++)
        vd_fold_part(&g->fold, next, state, load, g->reading, state);
    return vd_fold_element(&g->fold, state);
}

static bool guess_part(guessing *g, uint64_t part, uint32_t bits, vd_fold_guess *out) {
    if (altered(g, part, 0, true) == bits)
        *out = VD_FOLD_WITHOUT;
    else if (altered(g, part, 2, true) == bits)
        *out = VD_FOLD_TWICE;
    else if (part > 0 && altered(g, part, 0, false) == bits)
        *out = VD_FOLD_ENDED;
    return *out != VD_FOLD_NO_GUESS;
}

/* Guesses whether the wrong value of `side` is that of a kernel that lost or repeated a part. */
static void guess(reading *r, vd_diverged_tensor *t, int side) {
    guessing g = {.reading = r};
    if (!vd_fold_open(&g.fold, r->p->side[r->side].program, r->graph, r->node, t->element) ||
        g.fold.bounded || g.fold.parts > GUESSED_PARTS_MAX)
        return;
    for (uint64_t i = 0; i < g.fold.parts && t->guess == VD_FOLD_NO_GUESS; i++) {
        if (guess_part(&g, i, t->bits[side], &t->guess)) {
            t->part = (int64_t)i;
            t->guessed = side;
        }
        vd_fold_part(&g.fold, i, g.before, load, r, g.before);
    }
}

/* Finds the first part after which the folds differ, for a node whose inputs differ. */
static vd_status compare_folds(vd_parting *p) {
    vd_records fold[2] = {{{0}, NULL, 0, 0}, {{0}, NULL, 0, 0}};
    vd_diverged_tensor *t = &p->out->tensor;
    vd_status status = VD_OK;
    for (int side = 0; side < 2 && status == VD_OK; side++) {
        const vd_source *s = &p->side[side].source;
        status =
            s->fold(s->user, p->out->step, p->out->node[side], t->element, &fold[side], p->err);
    }
    for (uint64_t i = 0; status == VD_OK && i < t->parts && t->part < 0; i++) {
        size_t size[2];
        const uint8_t *a = vd_records_at(&fold[0], i, &size[0]);
        const uint8_t *b = vd_records_at(&fold[1], i, &size[1]);
        if (size[0] != size[1] || memcmp(a, b, size[0]) != 0)
            t->part = (int64_t)i;
    }
    vd_records_free(&fold[0]);
    vd_records_free(&fold[1]);
    return status;
}

static uint64_t parts_of(const vd_parting *p, int side) {
    vd_fold fold;
    return vd_fold_open(&fold, p->side[side].program, vd_parting_graph(p, side), p->out->node[side],
                        p->out->tensor.element)
               ? fold.parts
               : 0;
}

/* ---- a node's output ---- */

/* Computes the element from inputs that both sides have; from side 1's if side 0 is known to be
 * wrong. */
static vd_status refer(vd_parting *p) {
    vd_diverged_tensor *t = &p->out->tensor;
    reading *r = calloc(1, sizeof *r);
    if (!r)
        return vd_parting_memory(p);
    r->p = p;
    r->side = p->out->other_node[0] || p->out->broken[0] ? 1 : 0;
    r->graph = vd_parting_graph(p, r->side);
    r->node = p->out->node[r->side];
    vd_node_call(p->side[r->side].program, r->graph, r->node, &r->call, r->shape);
    vd_status status = compute(r, t);
    for (int side = 0; side < 2 && t->has_reference; side++)
        if (t->bits[side] != t->reference && t->bits[!side] == t->reference)
            guess(r, t, side);
    for (int i = 0; i < RO_MAX_INPUTS; i++)
        free(r->input[i]);
    status = status == VD_OK ? r->status : status;
    free(r);
    return status;
}

vd_status vd_parting_outputs(vd_parting *p) {
    vd_diverged_tensor *t = &p->out->tensor;
    uint32_t value[2];
    for (int side = 0; side < 2; side++)
        value[side] =
            vd_source_count(p->side[side].program, vd_parting_graph(p, side)) + p->out->node[side];
    vd_status status = compare_values(p, p->out->step, value);
    if (status != VD_OK || !t->known || !p->out->compares_inputs)
        return status;
    t->parts = parts_of(p, 0);
    if (p->out->inputs_differ > 0)
        return t->parts > 1 && parts_of(p, 1) == t->parts ? compare_folds(p) : VD_OK;
    return p->pairs ? VD_OK : refer(p);
}

vd_status vd_parting_refer_leaf(vd_parting *p) {
    for (int side = 0; side < 2; side++) {
        const vd_graph *g = vd_parting_graph(p, side);
        p->out->node[side] =
            g->output[p->out->leaf[side]] - vd_source_count(p->side[side].program, g);
    }
    p->out->tensor.parts = parts_of(p, 0);
    return refer(p);
}
