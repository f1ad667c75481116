/* This file reads another provider's run, and asks it only for what differs from our own. */
#include "verde/protocol/remote_run.h"

#include <stdlib.h>
#include <string.h>

#include "verde/exec/run.h"
#include "verde/protocol/dispute.h"
#include "verde/protocol/remote_tree.h"

struct vd_remote_run {
    const vd_audit_line *line;
    const vd_source *own;
    vd_hash *committed; /* states that our run has committed to, zeros where it has none yet */
    uint32_t checkpoints;
    vd_records trace; /* records of `trace_step` */
    int64_t trace_step;
    vd_buf tensor; /* the tensor that was asked for last */
};

static vd_status no_memory(vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "out of memory for the comparison of two runs");
}

static vd_status wrong(vd_err *err, const char *what) {
    return vd_fail(err, VD_ERR_PEER, "the provider: %s", what);
}

/* Finds the first state that differs. *leaf = count: none differs. */
static vd_status first_state(const vd_remote_run *r, const vd_tree_name *tree, const vd_hash *own,
                             size_t count, vd_hash *root, size_t *leaf, vd_hash *state,
                             vd_err *err) {
    vd_tree mine = {0};
    vd_hash top;
    vd_buf data = {0};
    uint64_t at = count;
    vd_status status = vd_tree_of_hashes(&mine, own, count, err);
    if (status == VD_OK)
        status = vd_tree_root(&mine, &top, err);
    if (status == VD_OK && !vd_hash_equal(&top, root)) {
        status = vd_line_descend(r->line, tree, &mine, root, &at, err);
        if (status == VD_OK)
            status = vd_line_prove(r->line, tree, at, 1, root, &data, err);
        if (status == VD_OK && data.size != VD_HASH_SIZE)
            status = wrong(err, "a state is not a hash");
        if (status == VD_OK)
            memcpy(state->b, data.data, VD_HASH_SIZE);
    }
    *leaf = (size_t)at;
    vd_buf_free(&data);
    vd_tree_free(&mine);
    return status;
}

/* ---- states ---- */

static vd_status remote_states_of_run(void *user, vd_hash *state, vd_err *err) {
    const vd_remote_run *r = user;
    const vd_tree_name tree = {.kind = VD_TREE_RUN};
    const size_t count = vd_run_leaves(r->line->program);
    vd_hash root = r->line->run_root, other;
    size_t leaf;
    vd_status status = first_state(r, &tree, r->committed, count, &root, &leaf, &other, err);
    if (status != VD_OK)
        return status;
    memset(state, 0, r->checkpoints * sizeof *state);
    memcpy(state, r->committed, (leaf < r->checkpoints ? leaf : r->checkpoints) * sizeof *state);
    if (leaf < r->checkpoints)
        state[leaf] = other;
    return VD_OK;
}

/* Returns our own states of an interval. The last one is a checkpoint, so it is not executed
 * again. */
static vd_status own_states(const vd_remote_run *r, int64_t from, int64_t to, vd_hash *state,
                            vd_err *err) {
    vd_status status = r->own->states(r->own->user, from, to - 1, state, err);
    for (uint32_t i = 0; i < r->checkpoints; i++)
        if (vd_run_leaf_step(r->line->program, i) == to)
            state[to - from] = r->committed[i];
    return status;
}

static vd_status compare_interval(const vd_remote_run *r, const vd_tree_name *tree, int64_t to,
                                  vd_hash *state, vd_err *err) {
    const int64_t from = tree->step;
    const size_t count = (size_t)(tree->to - from) + 1, wanted = (size_t)(to - from) + 1;
    const vd_question q = {.kind = VD_ASK_SUBRUN, .tree = *tree};
    vd_hash root, other, *own = calloc(count, sizeof *own);
    size_t leaf = count;
    vd_status status = own ? own_states(r, from, tree->to, own, err) : no_memory(err);
    if (status == VD_OK)
        status = vd_line_state(r->line, &q, &root, err);
    if (status == VD_OK)
        status = first_state(r, tree, own, count, &root, &leaf, &other, err);
    for (size_t i = 0; status == VD_OK && i < wanted; i++)
        state[i] = i < leaf ? own[i] : i == leaf ? other : (vd_hash){{0}};
    free(own);
    return status;
}

/* `from` must be a checkpoint at which both runs are equal. */
static vd_status remote_states(void *user, int64_t from, int64_t to, vd_hash *state, vd_err *err) {
    const vd_remote_run *r = user;
    const vd_program *program = r->line->program;
    const int64_t end = from + program->checkpoint_interval;
    const vd_tree_name tree = {
        .kind = VD_TREE_SUBRUN, .step = from, .to = end < program->steps ? end : program->steps};
    return tree.to - from == 1 ? r->own->states(r->own->user, from, to, state, err)
                               : compare_interval(r, &tree, to, state, err);
}

static vd_status remote_leaves(void *user, int64_t step, vd_hash *tensor, vd_err *err) {
    const vd_remote_run *r = user;
    const vd_tree_name tree = {.kind = VD_TREE_STATE, .step = step};
    const uint64_t count = r->line->program->leaf_count;
    vd_hash root = {{0}};
    vd_buf data[VD_PROVE_LEAVES_MAX] = {{0}};
    vd_status status = VD_OK;
    for (uint64_t at = 0; status == VD_OK && at < count; at += VD_PROVE_LEAVES_MAX) {
        const uint64_t left = count - at;
        const uint32_t some = left < VD_PROVE_LEAVES_MAX ? (uint32_t)left : VD_PROVE_LEAVES_MAX;
        status = vd_line_prove(r->line, &tree, at, some, &root, data, err);
        for (uint32_t i = 0; status == VD_OK && i < some; i++) {
            if (data[i].size != VD_HASH_SIZE)
                status = wrong(err, "a leaf of a state is not a hash");
            else
                memcpy(tensor[at + i].b, data[i].data, VD_HASH_SIZE);
        }
        for (uint32_t i = 0; i < some; i++)
            vd_buf_free(&data[i]);
    }
    return status;
}

/* ---- the trace ---- */

typedef struct {
    const vd_records *own;
    vd_records *out;
    uint64_t next;
} records_taken;

static bool copy_own(records_taken *t, uint64_t upto) {
    bool ok = true;
    for (; ok && t->next < upto; t->next++) {
        size_t size;
        const uint8_t *bytes = vd_records_at(t->own, t->next, &size);
        ok = vd_records_add(t->out, bytes, size);
    }
    return ok;
}

static vd_status take_record(void *user, uint64_t index, const vd_buf *data, vd_err *err) {
    records_taken *t = user;
    if (!copy_own(t, index) || !vd_records_add(t->out, data->data, data->size))
        return no_memory(err);
    t->next = index + 1;
    return VD_OK;
}

static vd_status take_records(vd_remote_run *r, const vd_tree_name *tree, const vd_hash *root,
                              const vd_records *own, const vd_tree *mine, vd_err *err) {
    records_taken taken = {.own = own, .out = &r->trace};
    vd_hash top;
    vd_status status = vd_tree_root(mine, &top, err);
    if (status == VD_OK && !vd_hash_equal(&top, root))
        status = vd_remote_differing(r->line, tree, mine, root, VD_PROVE_RECORDS_MAX, take_record,
                                     &taken, err);
    return status == VD_OK && !copy_own(&taken, own->count) ? no_memory(err) : status;
}

static vd_status remote_trace(void *user, int64_t step, const vd_records **out, vd_err *err) {
    vd_remote_run *r = user;
    const vd_tree_name tree = {.kind = VD_TREE_TRACE, .step = step};
    const vd_question q = {.kind = VD_ASK_TRACE, .tree = tree};
    const vd_records *own;
    vd_tree mine = {0};
    vd_hash root;
    *out = &r->trace;
    if (r->trace_step == step && r->trace.count > 0)
        return VD_OK;
    vd_records_free(&r->trace);
    vd_status status = vd_line_state(r->line, &q, &root, err);
    if (status == VD_OK)
        status = r->own->trace(r->own->user, step, &own, err);
    if (status == VD_OK)
        status = vd_records_tree(own, &mine, err);
    if (status == VD_OK)
        status = take_records(r, &tree, &root, own, &mine, err);
    r->trace_step = step;
    vd_tree_free(&mine);
    return status;
}

/* ---- tensors ---- */

typedef struct {
    const vd_buf *tensor;
    size_t element_bytes;
} pieces_taken;

/* Copies a leaf into the tensor; leaves are little-endian, and swapped if the machine is not. */
static vd_status take_piece(void *user, uint64_t index, const vd_buf *data, vd_err *err) {
    const pieces_taken *t = user;
    const uint64_t at = index * VD_LEAF_SIZE;
    const uint64_t left = at < t->tensor->size ? t->tensor->size - at : 0;
    void *copy = NULL;
    if (data->size != (left < VD_LEAF_SIZE ? left : VD_LEAF_SIZE))
        return wrong(err, "a leaf of a tensor has the wrong size");
    const uint8_t *bytes = vd_to_little(data->data, data->size, t->element_bytes, &copy);
    if (bytes)
        memcpy(t->tensor->data + at, bytes, data->size);
    free(copy);
    return bytes ? VD_OK : no_memory(err);
}

static vd_status take_pieces(vd_remote_run *r, const vd_tree_name *tree, const vd_tree *mine,
                             size_t element_bytes, vd_err *err) {
    static const vd_hash none;
    pieces_taken taken = {&r->tensor, element_bytes};
    return vd_remote_differing(r->line, tree, mine, &none, VD_PROVE_LEAVES_MAX, take_piece, &taken,
                               err);
}

/* Names a tensor's tree. The last state's tensors are outputs of the last step's nodes. */
static vd_tree_name name_tensor(const vd_program *program, int64_t step, uint32_t value) {
    const bool last = step == program->steps;
    return (vd_tree_name){.kind = VD_TREE_TENSOR,
                          .step = last ? step - 1 : step,
                          .value = last ? program->step.output[value] : value};
}

static vd_status remote_tensor(void *user, int64_t step, uint32_t value, const void **data,
                               vd_err *err) {
    vd_remote_run *r = user;
    const vd_program *program = r->line->program;
    const vd_graph *graph = step < 0 ? &program->init : &program->step;
    const vd_tree_name tree = name_tensor(program, step, value);
    const ro_shape *shape = vd_value_shape(program, graph, value);
    const uint64_t size = vd_shape_bytes(shape);
    const void *own;
    vd_tree mine = {0};
    r->tensor.size = 0;
    vd_status status = r->own->tensor(r->own->user, step, value, &own, err);
    if (status == VD_OK)
        vd_put(&r->tensor, own, size);
    if (status == VD_OK && !vd_buf_ok(&r->tensor))
        status = no_memory(err);
    if (status == VD_OK)
        status = vd_tensor_tree(NULL, shape, own, &mine, err);
    if (status == VD_OK)
        status = take_pieces(r, &tree, &mine, ro_dtype_size(shape->dtype), err);
    *data = r->tensor.data;
    vd_tree_free(&mine);
    return status;
}

static vd_status remote_fold(void *user, int64_t step, uint32_t node, int64_t element,
                             vd_records *out, vd_err *err) {
    vd_remote_run *r = user;
    const vd_program *program = r->line->program;
    const vd_tree_name tree = {.kind = VD_TREE_FOLD,
                               .step = step,
                               .value =
                                   vd_source_count(program, vd_step_graph(program, step)) + node,
                               .element = element};
    vd_records own = {0};
    vd_tree mine = {0};
    vd_hash root, top;
    vd_status status = r->own->fold(r->own->user, step, node, element, &own, err);
    uint64_t last = own.count ? own.count - 1 : 0;
    const vd_question q = {.kind = VD_ASK_PROVE, .tree = tree, .leaf = &last, .leaf_count = 1};
    records_taken taken = {.own = &own, .out = out};
    if (status == VD_OK)
        status = vd_records_tree(&own, &mine, err);
    if (status == VD_OK)
        status = vd_tree_root(&mine, &top, err);
    if (status == VD_OK)
        status = vd_line_state(r->line, &q, &root, err);
    if (status == VD_OK && !vd_hash_equal(&top, &root))
        status = vd_remote_differing(r->line, &tree, &mine, &root, VD_PROVE_PLACES_MAX, take_record,
                                     &taken, err);
    if (status == VD_OK && !copy_own(&taken, own.count))
        status = no_memory(err);
    vd_tree_free(&mine);
    vd_records_free(&own);
    return status;
}

/* ---- all of it ---- */

vd_status vd_remote_run_open(const vd_audit_line *line, const vd_source *own, uint32_t checkpoints,
                             vd_remote_run **out, vd_err *err) {
    vd_remote_run *r = calloc(1, sizeof *r);
    if (!r)
        return no_memory(err);
    *r = (vd_remote_run){
        .line = line, .own = own, .checkpoints = checkpoints, .trace_step = INT64_MIN};
    r->committed = calloc(vd_run_leaves(line->program) + 1, sizeof *r->committed);
    vd_status status = r->committed ? own->run(own->user, r->committed, err) : no_memory(err);
    if (status == VD_OK)
        *out = r;
    else
        vd_remote_run_close(r);
    return status;
}

void vd_remote_run_close(vd_remote_run *r) {
    if (!r)
        return;
    free(r->committed);
    vd_records_free(&r->trace);
    vd_buf_free(&r->tensor);
    free(r);
}

vd_source vd_remote_run_source(vd_remote_run *r) {
    return (vd_source){.user = r,
                       .run = remote_states_of_run,
                       .states = remote_states,
                       .trace = remote_trace,
                       .leaves = remote_leaves,
                       .tensor = remote_tensor,
                       .fold = remote_fold,
                       .run_root = r->line->run_root};
}
