/* Judges a record: its node, and where its inputs came from. PROTOCOL.md section 5.4. */
#include <stdlib.h>
#include <string.h>

#include "verde/protocol/dispute.h"

static vd_tree_name trace_tree(const vd_referee *r) {
    return (vd_tree_name){.kind = VD_TREE_TRACE, .step = r->step};
}

static vd_tree_name state_tree(const vd_referee *r) {
    return (vd_tree_name){.kind = VD_TREE_STATE, .step = r->step};
}

static uint32_t sources(const vd_referee *r) {
    return vd_source_count(r->program, r->graph);
}

/* Computes the commitment of a data tensor or of the step number. False: it is neither. */
static bool public_source(vd_referee *r, uint32_t value, vd_hash *out) {
    uint32_t index;
    int32_t step = r->step < 0 ? 0 : (int32_t)r->step;
    vd_hash root;
    switch (vd_source_of(r->program, r->graph, value, &index)) {
    case VD_SOURCE_DATA: memcpy(out->b, r->program->data[index].root, VD_HASH_SIZE); return true;
    case VD_SOURCE_STEP:
        if (vd_tensor_hash(NULL, vd_value_shape(r->program, r->graph, value), &step, &root, out,
                           NULL) != VD_OK)
            vd_trouble(r, "out of memory");
        return true;
    default: return false;
    }
}

static bool malformed(vd_referee *r, uint32_t p) {
    vd_convict(r, p, VD_GRADE_BAD_PROOF, "a record of its trace is malformed");
    return false;
}

bool vd_take_record(vd_referee *r, uint32_t p, uint64_t index, const vd_buf *data) {
    vd_node_record *record = r->party[p].record;
    (void)index;
    return vd_record_decode(data->data, data->size, record) || malformed(r, p);
}

static const vd_hash *wanted_output(const vd_referee *r, const vd_hash *output, uint64_t node) {
    for (uint32_t i = 0; i < r->wanted_count; i++)
        if (r->wanted[i] == node)
            return &output[i];
    return NULL;
}

/* Reads the outputs of all records of p's trace that were asked for. */
static bool take_outputs(vd_referee *r, uint32_t p, vd_hash *output) {
    vd_tree_name tree = trace_tree(r);
    const json_t *list = json_object_get(r->party[p].body, "leaves");
    vd_hash root;
    if (!vd_take_root(r, p, &tree, NULL, &root))
        return false;
    if (json_array_size(list) != r->wanted_count)
        return malformed(r, p);
    for (uint32_t i = 0; i < r->wanted_count; i++) {
        vd_buf data = {0};
        bool ok = vd_take_leaf(r, p, json_array_get(list, i), &root, r->wanted[i],
                               r->graph->node_count, false, &data) &&
                  vd_take_record(r, p, r->wanted[i], &data);
        vd_buf_free(&data);
        if (!ok)
            return false;
        output[i] = r->party[p].record->output;
    }
    return true;
}

/* ---- the first record that differs ---- */

bool vd_record_ask(vd_referee *r, uint32_t p, vd_question *question) {
    uint64_t at = r->descent.lo;
    vd_tree_name tree = trace_tree(r);
    (void)p;
    return vd_want(r, &at, 1) && vd_ask_wanted(r, &tree, question);
}

static bool own_descriptor(vd_referee *r, vd_hash *out) {
    vd_buf bytes = {0};
    vd_node_encode(r->program, r->graph, r->record, &bytes);
    bool ok = vd_buf_ok(&bytes) && vd_descriptor_hash(bytes.data, bytes.size, out);
    vd_buf_free(&bytes);
    if (!ok)
        vd_trouble(r, "out of memory");
    return ok;
}

void vd_place_text(const vd_place *at, uint32_t bits, char text[VD_F32_TEXT]) {
    if (at->dtype == RO_F32)
        vd_f32_text(bits, text);
    else if (at->dtype == RO_BF16 || at->dtype == RO_F16)
        snprintf(text, VD_F32_TEXT, "0x%04x (%s)", bits, ro_dtype_name(at->dtype));
    else
        snprintf(text, VD_F32_TEXT, "%d (0x%08x)",
                 at->dtype == RO_I8 ? (int8_t)bits : (int32_t)bits, bits);
}

static void name_node(vd_referee *r) {
    const vd_node *n = vd_node_stored(r->graph, r->record);
    r->place->node = r->record;
    r->place->dtype = n->shape.dtype;
    snprintf(r->place->node_name, sizeof r->place->node_name, "%s",
             vd_node_name(r->graph, r->record).text);
    snprintf(r->place->operator_name, sizeof r->place->operator_name, "%s",
             ro_op_describe(n->op)->name);
    vd_story(r, "%s: node %u, %s (%s).", vd_is_crumb(r) ? "Looked at" : "First difference",
             r->record, vd_node_name(r->graph, r->record).text, r->place->operator_name);
}

/* Lists the leaves of the state (`states`), or else the nodes, that the disputed node reads. */
static bool want_feeding(vd_referee *r, bool states) {
    const vd_node *n = vd_node_stored(r->graph, r->record);
    uint64_t list[RO_MAX_INPUTS];
    uint32_t count = 0, first = sources(r), leaves = vd_state_sources(r->program, r->graph);
    for (int32_t i = 0; i < n->input_count; i++) {
        uint32_t value = vd_node_input(r->graph, r->record, i);
        if (states && value < leaves)
            list[count++] = value;
        if (!states && value >= first)
            list[count++] = value - first;
    }
    return vd_want(r, list, count);
}

/* Lists the next of the nodes that are inputs of the disputed node, as many as one question may ask
 * for: records may be large. */
static bool want_producers(vd_referee *r) {
    if (!want_feeding(r, false))
        return false;
    r->wanted_count -= r->producers;
    memmove(r->wanted, r->wanted + r->producers, r->wanted_count * sizeof *r->wanted);
    if (r->wanted_count > VD_PROVE_RECORDS_MAX)
        r->wanted_count = VD_PROVE_RECORDS_MAX;
    return true;
}

void vd_record_take(vd_referee *r) {
    vd_tree_name tree = trace_tree(r);
    vd_hash descriptor;
    bool ok = true;
    r->record = (uint32_t)r->descent.lo;
    name_node(r);
    if (!own_descriptor(r, &descriptor))
        return;
    for (uint32_t p = 0; p < r->parties; p++) {
        const vd_node_record *record = r->party[p].record;
        if (!vd_take_leaves(r, p, &tree, NULL, r->wanted, 1, vd_take_record)) {
            ok = false;
        } else if (!vd_hash_equal(&record->descriptor, &descriptor)) {
            vd_convict(r, p, VD_GRADE_WRONG_GRAPH,
                       "ran another node (operator, attributes or inputs) than the job's %s",
                       r->place->node_name);
            ok = false;
        } else if (record->input_count !=
                   (uint32_t)vd_node_stored(r->graph, r->record)->input_count) {
            ok = malformed(r, p);
        }
    }
    r->producers = 0;
    if (ok && want_producers(r))
        r->phase = VD_PHASE_PRODUCERS;
}

/* ---- its inputs ---- */

bool vd_producers_ask(vd_referee *r, uint32_t p, vd_question *question) {
    vd_tree_name tree = trace_tree(r);
    (void)p;
    return vd_ask_wanted(r, &tree, question);
}

static void wrong_input(vd_referee *r, uint32_t p, int32_t input, const char *whose) {
    vd_convict(r, p, VD_GRADE_WRONG_INPUT, "input %d of %s is not %s", input, r->place->node_name,
               whose);
}

/* Checks the inputs that come from these producers; in the first round also those that are public
 * values. */
static void check_producers(vd_referee *r, uint32_t p, const vd_hash *output) {
    const vd_node *n = vd_node_stored(r->graph, r->record);
    for (int32_t i = 0; i < n->input_count; i++) {
        const uint32_t value = vd_node_input(r->graph, r->record, i);
        const vd_hash *stated = &r->party[p].record->input[i], *made;
        vd_hash public;
        if (value >= sources(r)) {
            made = wanted_output(r, output, value - sources(r));
            if (made && !vd_hash_equal(made, stated))
                wrong_input(r, p, i, "the output of its producer in its own trace");
        } else if (r->producers == 0 && public_source(r, value, &public) &&
                   !vd_hash_equal(&public, stated)) {
            wrong_input(r, p, i, "the job's");
        }
    }
}

/* Reads the producers' records, into a copy: `record` keeps the disputed one. */
static bool take_producers(vd_referee *r, uint32_t p) {
    vd_node_record *disputed = r->party[p].record, *scratch = malloc(sizeof *scratch);
    vd_hash *output = calloc(r->wanted_count + 1, sizeof *output);
    bool ok = scratch && output;
    if (!ok)
        vd_trouble(r, "out of memory");
    r->party[p].record = scratch;
    ok = ok && (r->wanted_count == 0 || take_outputs(r, p, output));
    r->party[p].record = disputed;
    if (ok)
        check_producers(r, p, output);
    free(scratch);
    free(output);
    return ok;
}

void vd_producers_take(vd_referee *r) {
    bool ok = true;
    for (uint32_t p = 0; p < r->parties; p++)
        ok &= take_producers(r, p);
    if (!ok || !vd_all_stand(r))
        return;
    r->producers += r->wanted_count;
    if (want_producers(r) && r->wanted_count == 0 && want_feeding(r, true))
        r->phase = VD_PHASE_STATE;
}

bool vd_state_ask(vd_referee *r, uint32_t p, vd_question *question) {
    vd_tree_name tree = state_tree(r);
    (void)p;
    return vd_ask_wanted(r, &tree, question);
}

/* Checks a leaf of S_s against every input that reads it. */
static bool take_state_leaf(vd_referee *r, uint32_t p, uint64_t index, const vd_buf *data) {
    const vd_node *n = vd_node_stored(r->graph, r->record);
    if (data->size != VD_HASH_SIZE)
        return malformed(r, p);
    for (int32_t i = 0; i < n->input_count; i++)
        if (vd_node_input(r->graph, r->record, i) == index &&
            memcmp(r->party[p].record->input[i].b, data->data, VD_HASH_SIZE) != 0)
            wrong_input(r, p, i, "the leaf of the state before the step");
    return !r->party[p].out;
}

void vd_state_take(vd_referee *r) {
    vd_tree_name tree = state_tree(r);
    bool ok = true;
    for (uint32_t p = 0; p < r->parties && r->wanted_count; p++)
        ok &= vd_take_leaves(r, p, &tree, &r->party[p].before, r->wanted, r->wanted_count,
                             take_state_leaf);
    const vd_tree_name output = {
        .kind = VD_TREE_TENSOR, .step = r->step, .value = sources(r) + r->record};
    if (!ok)
        return;
    if (vd_is_crumb(r)) {
        vd_crumb_output(r, output);
        return;
    }
    for (int32_t i = 0; i < vd_node_stored(r->graph, r->record)->input_count; i++)
        if (!vd_hash_equal(&r->party[0].record->input[i], &r->party[1].record->input[i])) {
            vd_trouble(r, "earlier records are equal, yet their outputs are not");
            return;
        }
    vd_story(r, "Its inputs are agreed; only the outputs differ.");
    vd_descend(r, output, VD_PHASE_TENSOR_OPEN, VD_PHASE_LEAF);
}
