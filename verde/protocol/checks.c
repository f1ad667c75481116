/* Before a provider signs anything, compares what its run gives when executed or read again with
 * what it committed to. PROTOCOL.md section 4.3. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/run.h"
#include "verde/protocol/inquiry.h"

const vd_program *vd_inquiry_program(const vd_inquiry *r) {
    return r->question.of_item ? &r->item_program : r->provider->program;
}

static bool checks(const vd_inquiry *q) {
    return q->provider->lie == VD_LIE_NONE && !q->source.dishonest;
}

static vd_status no_memory(const vd_inquiry *q) {
    return vd_fail(q->err, VD_ERR_LOCAL, "out of memory");
}

static vd_status mismatch(vd_inquiry *q, const char *what) {
    q->mismatch = true;
    return vd_fail(q->err, VD_ERR_LOCAL, "%s is not what the run committed to", what);
}

vd_status vd_expect(vd_inquiry *q, const vd_hash *given, const vd_hash *committed,
                    const char *what) {
    return !checks(q) || vd_hash_equal(given, committed) ? VD_OK : mismatch(q, what);
}

/* ---- states ---- */

/* `state`: the states of steps lo..hi, read twice, which must be equal and fit the checkpoints. */
static vd_status check_states(vd_inquiry *q, int64_t lo, int64_t hi, const vd_hash *state) {
    const vd_program *p = vd_inquiry_program(q);
    const uint64_t leaves = vd_run_leaves(p), count = (uint64_t)(hi - lo) + 1;
    vd_hash *run = calloc(leaves, sizeof *run);
    vd_status status = run ? q->source.run(q->source.user, run, q->err) : no_memory(q);
    if (status == VD_OK && memcmp(state, state + count, count * sizeof *state) != 0)
        status = mismatch(q, "a state");
    for (uint64_t i = (uint64_t)(lo / p->checkpoint_interval);
         status == VD_OK && i < leaves && vd_run_leaf_step(p, i) <= hi; i++)
        status = vd_expect(q, &state[vd_run_leaf_step(p, i) - lo], &run[i], "a state");
    free(run);
    return status;
}

vd_status vd_checked_states(vd_inquiry *q, int64_t from, int64_t to, vd_hash *out) {
    const vd_source *s = &q->source;
    const int64_t c = vd_inquiry_program(q)->checkpoint_interval, n = vd_inquiry_program(q)->steps;
    if (!checks(q))
        return s->states(s->user, from, to, out, q->err);
    const int64_t lo = from / c * c, above = (to + c - 1) / c * c, hi = above < n ? above : n;
    const size_t count = (size_t)(hi - lo) + 1;
    vd_hash *state = calloc(2 * count, sizeof *state);
    vd_status status = state ? s->states(s->user, lo, hi, state, q->err) : no_memory(q);
    if (status == VD_OK)
        status = s->states(s->user, lo, hi, state + count, q->err);
    if (status == VD_OK)
        status = check_states(q, lo, hi, state);
    if (status == VD_OK)
        memcpy(out, &state[from - lo], ((size_t)(to - from) + 1) * sizeof *out);
    free(state);
    return status;
}

/* Checks that the tensors with these commitments make up this state. */
static vd_status check_state(vd_inquiry *q, int64_t step, const vd_hash *tensor,
                             const vd_hash *state) {
    vd_hash given;
    vd_status status = vd_state_commit(&q->program_hash, step, tensor,
                                       vd_inquiry_program(q)->leaf_count, &given, q->err);
    return status == VD_OK ? vd_expect(q, &given, state, "a state") : status;
}

vd_status vd_checked_leaves(vd_inquiry *q, int64_t step, vd_hash *tensor) {
    const vd_source *s = &q->source;
    vd_hash state;
    vd_status status = checks(q) ? vd_checked_states(q, step, step, &state) : VD_OK;
    if (status == VD_OK)
        status = s->leaves(s->user, step, tensor, q->err);
    return status == VD_OK && checks(q) ? check_state(q, step, tensor, &state) : status;
}

/* ---- traces ---- */

typedef struct {
    vd_inquiry *q;
    const vd_program *program;
    const vd_graph *graph;
    int64_t step;
    uint32_t sources;
    vd_hash *value; /* the commitment of each value of the graph */
    vd_node_record *record;
} trace_check;

/* Computes the commitment of a public source: a data tensor of the job, or the step number. */
static vd_status hash_public(const vd_inquiry *q, int64_t step, uint32_t value, vd_hash *out) {
    const vd_program *p = vd_inquiry_program(q);
    const vd_graph *graph = vd_step_graph(p, step);
    const int32_t word = step < 0 ? 0 : (int32_t)step;
    uint32_t index;
    vd_hash root;
    if (vd_source_of(p, graph, value, &index) != VD_SOURCE_DATA)
        return vd_tensor_hash(NULL, vd_value_shape(p, graph, value), &word, &root, out, q->err);
    memcpy(out->b, p->data[index].root, VD_HASH_SIZE);
    return VD_OK;
}

/* Checks a record's node, and that its inputs are outputs of earlier records or sources. */
static vd_status check_record(const trace_check *c, uint32_t node, const vd_records *records) {
    const vd_node *n = vd_node_stored(c->graph, node);
    vd_node_record *record = c->record;
    vd_buf bytes = {0};
    vd_hash descriptor;
    size_t size;
    const uint8_t *at = vd_records_at(records, node, &size);
    vd_node_encode(c->program, c->graph, node, &bytes);
    const bool made = vd_buf_ok(&bytes) && vd_descriptor_hash(bytes.data, bytes.size, &descriptor);
    vd_buf_free(&bytes);
    if (!made)
        return no_memory(c->q);
    if (!vd_record_decode(at, size, record) || record->input_count != (uint32_t)n->input_count)
        return mismatch(c->q, "a record");
    vd_status status = vd_expect(c->q, &record->descriptor, &descriptor, "a record");
    for (int32_t i = 0; status == VD_OK && i < n->input_count; i++)
        status = vd_expect(c->q, &record->input[i], &c->value[vd_node_input(c->graph, node, i)],
                           "a record");
    c->value[c->sources + node] = record->output;
    return status;
}

/* Checks that the outputs of the graph's nodes make up the next state. */
static vd_status check_next(const trace_check *c, const vd_hash *after) {
    const uint32_t count = c->program->leaf_count;
    vd_hash *tensor = calloc(count, sizeof *tensor);
    for (uint32_t i = 0; tensor && i < count; i++)
        tensor[i] = c->value[c->graph->output[i]];
    vd_status status = tensor ? check_state(c->q, c->step + 1, tensor, after) : no_memory(c->q);
    free(tensor);
    return status;
}

static vd_status check_trace(trace_check *c, const vd_hash *leaf, const vd_records *records,
                             const vd_hash *after) {
    const uint32_t states = vd_state_sources(c->program, c->graph);
    vd_status status = VD_OK;
    memcpy(c->value, leaf, states * sizeof *leaf);
    for (uint32_t i = states; status == VD_OK && i < c->sources; i++)
        status = hash_public(c->q, c->step, i, &c->value[i]);
    if (status == VD_OK && records->count != c->graph->node_count)
        status = mismatch(c->q, "a trace");
    for (uint32_t i = 0; status == VD_OK && i < c->graph->node_count; i++)
        status = check_record(c, i, records);
    return status == VD_OK ? check_next(c, after) : status;
}

static vd_status run_trace_check(trace_check *c, vd_hash *leaf, const vd_records **out) {
    const vd_source *s = &c->q->source;
    vd_hash state[2];
    const int64_t step = c->step;
    vd_status status = step < 0 ? vd_checked_states(c->q, 0, 0, &state[1])
                                : vd_checked_states(c->q, step, step + 1, state);
    if (status == VD_OK && step >= 0)
        status = s->leaves(s->user, step, leaf, c->q->err);
    if (status == VD_OK && step >= 0)
        status = check_state(c->q, step, leaf, &state[0]);
    if (status == VD_OK)
        status = s->trace(s->user, step, out, c->q->err);
    return status == VD_OK ? check_trace(c, leaf, *out, &state[1]) : status;
}

vd_status vd_checked_trace(vd_inquiry *q, int64_t step, const vd_records **out) {
    const vd_program *p = vd_inquiry_program(q);
    const vd_graph *graph = vd_step_graph(p, step);
    if (!checks(q))
        return q->source.trace(q->source.user, step, out, q->err);
    trace_check c = {.q = q, .program = p, .graph = graph, .step = step};
    c.sources = vd_source_count(p, graph);
    c.value = calloc(c.sources + graph->node_count, sizeof *c.value);
    c.record = calloc(1, sizeof *c.record);
    vd_hash *leaf = calloc(p->leaf_count, sizeof *leaf);
    vd_status status = c.value && c.record && leaf ? run_trace_check(&c, leaf, out) : no_memory(q);
    free(c.value);
    free(c.record);
    free(leaf);
    return status;
}

/* ---- tensors ---- */

static vd_status expected_output(vd_inquiry *q, int64_t step, uint32_t node, vd_hash *commitment) {
    const vd_records *records;
    size_t size;
    vd_status status = vd_checked_trace(q, step, &records);
    if (status != VD_OK)
        return status;
    const uint8_t *record = vd_records_at(records, node, &size);
    memcpy(commitment->b, record + size - VD_HASH_SIZE, VD_HASH_SIZE);
    return VD_OK;
}

static vd_status expected_leaf(vd_inquiry *q, int64_t step, uint32_t index, vd_hash *commitment) {
    vd_hash *leaf = calloc(vd_inquiry_program(q)->leaf_count, sizeof *leaf);
    vd_status status = leaf ? vd_checked_leaves(q, step, leaf) : no_memory(q);
    if (status == VD_OK)
        *commitment = leaf[index];
    free(leaf);
    return status;
}

vd_status vd_expected_tensor(vd_inquiry *q, int64_t step, uint32_t value, vd_hash *commitment) {
    const vd_program *p = vd_inquiry_program(q);
    const vd_graph *graph = vd_step_graph(p, step);
    const uint32_t sources = vd_source_count(p, graph);
    uint32_t index;
    *commitment = (vd_hash){{0}};
    if (!checks(q))
        return VD_OK;
    if (value >= sources)
        return expected_output(q, step, value - sources, commitment);
    if (vd_source_of(p, graph, value, &index) == VD_SOURCE_STATE)
        return expected_leaf(q, step, index, commitment);
    return hash_public(q, step, value, commitment);
}

/* ---- folds ---- */

/* Reads a value and checks it against its commitment. Borrowed until the next call. */
static vd_status checked_tensor(vd_inquiry *q, int64_t step, uint32_t value, const void **data) {
    const vd_program *p = vd_inquiry_program(q);
    vd_hash expected, root, given;
    vd_status status = vd_expected_tensor(q, step, value, &expected);
    if (status == VD_OK)
        status = q->source.tensor(q->source.user, step, value, data, q->err);
    if (status == VD_OK)
        status = vd_tensor_hash(NULL, vd_value_shape(p, vd_step_graph(p, step), value), *data,
                                &root, &given, q->err);
    return status == VD_OK ? vd_expect(q, &given, &expected, "a tensor") : status;
}

/* Checks that the run's element follows from the last part of its fold. */
static vd_status check_end(vd_inquiry *q, const vd_tree_name *name, const vd_fold *fold,
                           uint32_t node, const vd_records *parts) {
    const vd_program *p = vd_inquiry_program(q);
    const vd_graph *graph = vd_step_graph(p, name->step);
    const uint8_t *last;
    const void *data;
    size_t size;
    uint32_t element; /* the output of every fold has elements of four bytes */
    vd_status status = checked_tensor(q, name->step, name->value, &data);
    if (status != VD_OK)
        return status;
    memcpy(&element, (const uint8_t *)data + 4 * name->element, sizeof element);
    last = vd_records_at(parts, fold->parts - 1, &size);
    if (!fold->bounded)
        return vd_fold_element(fold, last) == element ? VD_OK : mismatch(q, "an element");
    const vd_possible possible =
        vd_possible_of(vd_fold_bounded(fold, last), vd_node_bits(p, graph, node));
    return vd_possible_has(&possible, element) ? VD_OK : mismatch(q, "an element");
}

static bool same(const vd_records *a, const vd_records *b) {
    return a->count == b->count && a->bytes.size == b->bytes.size &&
           memcmp(a->bytes.data, b->bytes.data, a->bytes.size) == 0;
}

/* Computes the parts a second time and compares. The inputs must be those of the trace. */
static vd_status check_fold(vd_inquiry *q, const vd_tree_name *name, uint32_t node,
                            const vd_records *parts) {
    const vd_graph *graph = vd_step_graph(vd_inquiry_program(q), name->step);
    const vd_node *n = vd_node_stored(graph, node);
    const vd_source *s = &q->source;
    vd_records again = {0};
    vd_fold fold;
    const void *data;
    vd_status status = VD_OK;
    if (!vd_fold_open(&fold, vd_inquiry_program(q), graph, node, name->element))
        return vd_fail(q->err, VD_ERR_LOCAL, "%s is no long fold", vd_node_name(graph, node).text);
    for (int32_t i = 0; status == VD_OK && i < n->input_count; i++)
        status = checked_tensor(q, name->step, vd_node_input(graph, node, i), &data);
    if (status == VD_OK)
        status = s->fold(s->user, name->step, node, name->element, &again, q->err);
    if (status == VD_OK && (parts->count != fold.parts || !same(parts, &again)))
        status = mismatch(q, "a part");
    vd_records_free(&again);
    return status == VD_OK ? check_end(q, name, &fold, node, parts) : status;
}

vd_status vd_checked_fold(vd_inquiry *q, const vd_tree_name *name, vd_records *out) {
    const vd_program *p = vd_inquiry_program(q);
    const uint32_t node = name->value - vd_source_count(p, vd_step_graph(p, name->step));
    const vd_source *s = &q->source;
    vd_status status = s->fold(s->user, name->step, node, name->element, out, q->err);
    return status == VD_OK && checks(q) ? check_fold(q, name, node, out) : status;
}

/* ---- what is about to be said ---- */

static vd_status leaf_of(const vd_inquiry *q, const vd_leaves *l, const vd_buf *data,
                         vd_hash *leaf) {
    vd_hash pair[2], both;
    if (!l->logged)
        return vd_leaf_hash(data->data, data->size, leaf) ? VD_OK : no_memory(q);
    memcpy(pair, data->data, sizeof pair);
    return vd_emitted_state(&pair[0], &pair[1], &both) && vd_leaf_hash(&both, sizeof both, leaf)
               ? VD_OK
               : no_memory(q);
}

vd_status vd_check_proof(vd_inquiry *q, const vd_leaves *l, uint64_t index, const vd_proof *proof,
                         const char *data) {
    vd_buf bytes = {0};
    vd_hash leaf;
    if (!checks(q))
        return VD_OK;
    vd_status status = vd_unbase64(data, strlen(data), &bytes, q->err);
    if (status == VD_OK)
        status = leaf_of(q, l, &bytes, &leaf);
    if (status == VD_OK)
        status = vd_proof_verify(proof, index, l->tree->count, &leaf, &l->root, q->err);
    vd_buf_free(&bytes);
    return status == VD_ERR_PEER ? mismatch(q, "a proof") : status;
}

vd_status vd_check_frontier(vd_inquiry *q, const vd_leaves *l, const vd_hash *frontier,
                            size_t count) {
    const vd_question *ask = &q->question;
    vd_hash joined, root;
    if (!checks(q))
        return VD_OK;
    if (!vd_tree_join(ask->lo, ask->hi, ask->depth, frontier, count, &joined))
        return no_memory(q);
    vd_status status = vd_tree_root_with(l->tree, ask->lo, ask->hi, &joined, &root, q->err);
    return status == VD_OK ? vd_expect(q, &root, &l->root, "a node of a tree") : status;
}

vd_status vd_check_section(vd_inquiry *q, const vd_section_proof *proof) {
    const vd_program *p = vd_inquiry_program(q);
    const int64_t step = q->question.tree.step;
    const vd_emitted_source *s = q->source.served;
    vd_log_run run;
    vd_hash name, digest, *logs = NULL;
    if (!checks(q))
        return VD_OK;
    logs = calloc(vd_run_leaves(p), sizeof *logs);
    vd_status status = logs ? s->logs(s->user, &name, logs, q->err) : no_memory(q);
    if (status == VD_OK)
        status = vd_expect(q, &proof->run, &name, "the name of the run");
    if (status == VD_OK)
        status = vd_section_verify(p, &q->program_hash, step, q->question.leaf[0], proof,
                                   &logs[vd_logs_at(p, step).leaf], &run, q->err);
    free(logs);
    if (status == VD_OK && proof->leaf.size <= VD_LOG_SECTION_BYTES) {
        if (!vd_log_section_hash(proof->bytes.data, proof->bytes.size, &digest))
            return no_memory(q);
        status = vd_expect(q, &digest, &proof->leaf.digest, "a section of the log");
    }
    return status == VD_ERR_PEER ? mismatch(q, "a section of the log") : status;
}
