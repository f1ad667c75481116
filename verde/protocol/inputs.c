/* Fetches the inputs of an element or part: the referee runs the reference, and asks for the leaves
 * that it reads and does not have yet. PROTOCOL.md section 5.5. */
#include <stdlib.h>
#include <string.h>

#include "verde/protocol/dispute.h"

static const ro_shape *input_shape(const vd_referee *r, int input) {
    return vd_value_shape(r->program, r->graph, vd_node_input(r->graph, r->record, input));
}

/* Returns the leaf's index, or where to insert it. The list is sorted by (input, leaf). */
static size_t element_place_of(const vd_referee *r, int input, uint64_t leaf) {
    size_t lo = 0, hi = r->inputs;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const vd_input_leaf *l = r->input[mid];
        if (l->input < input || (l->input == input && l->leaf < leaf))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static vd_input_leaf *input_leaf(vd_referee *r, int input, uint64_t leaf) {
    size_t at = element_place_of(r, input, leaf);
    if (at < r->inputs && r->input[at]->input == input && r->input[at]->leaf == leaf)
        return r->input[at];
    if (r->inputs == r->inputs_capacity) {
        size_t capacity = r->inputs_capacity ? 2 * r->inputs_capacity : 64;
        vd_input_leaf **grown = realloc(r->input, capacity * sizeof *grown);
        if (!grown) {
            vd_trouble(r, "out of memory");
            return NULL;
        }
        r->input = grown;
        r->inputs_capacity = capacity;
    }
    vd_input_leaf *fresh = calloc(1, sizeof *fresh);
    if (!fresh) {
        vd_trouble(r, "out of memory");
        return NULL;
    }
    memmove(&r->input[at + 1], &r->input[at], (r->inputs - at) * sizeof *r->input);
    r->inputs++;
    fresh->input = input;
    fresh->leaf = leaf;
    return r->input[at] = fresh;
}

/* Gives the reference an element. A missing leaf reads as 0 and is added to the list. */
static uint32_t load(void *user, int input, int64_t index) {
    vd_referee *r = user;
    size_t size = ro_dtype_size(input_shape(r, input)->dtype);
    uint64_t at = (uint64_t)index * size;
    vd_input_leaf *leaf = input_leaf(r, input, at / VD_LEAF_SIZE);
    const uint32_t bits =
        leaf && leaf->have ? vd_element_bits(leaf->data + at % VD_LEAF_SIZE, size) : 0;
    if (r->options.reading)
        r->options.reading(r->options.reader, input, index, bits);
    return bits;
}

static vd_tree_name input_tree(const vd_referee *r, int input) {
    return (vd_tree_name){.kind = VD_TREE_TENSOR,
                          .step = r->step,
                          .value = vd_node_input(r->graph, r->record, input)};
}

static vd_status compute_whole(vd_referee *r, vd_err *err) {
    ro_call call;
    ro_shape *shapes = calloc(RO_MAX_INPUTS, sizeof *shapes);
    if (!shapes)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_node_call(r->program, r->graph, r->record, &call, shapes);
    vd_status status = vd_is_free(r)
                           ? vd_leaf_bounded(&call, r->element, load, r, &r->bounded, err)
                           : r->options.leaf(&call, r->element, load, r, &r->place->expected, err);
    free(shapes);
    return status;
}

/* Computes the disputed part from the state before it, which both providers stated alike. */
static void compute_part(vd_referee *r) {
    const uint64_t part = (uint64_t)r->place->part;
    vd_fold_part(&r->fold, part, part ? r->party[0].part[0] : NULL, load, r, r->part);
}

/* Runs the reference. Returns true if no input was missing. */
static bool compute(vd_referee *r) {
    vd_err err = {0};
    vd_status status = VD_OK;
    if (r->options.computing)
        r->options.computing(r->options.reader);
    if (r->place->part >= 0)
        compute_part(r);
    else
        status = compute_whole(r, &err);
    if (status != VD_OK)
        vd_trouble(r, err.text);
    for (size_t i = 0; i < r->inputs; i++)
        if (!r->input[i]->have)
            return false;
    return status == VD_OK;
}

/* Lists missing leaves of the first input that lacks any, as many as fit in one question. */
static bool want_missing(vd_referee *r) {
    uint64_t list[VD_PROVE_LEAVES_MAX];
    uint32_t count = 0;
    int input = -1;
    for (size_t i = 0; i < r->inputs && count < VD_PROVE_LEAVES_MAX; i++) {
        const vd_input_leaf *l = r->input[i];
        if (l->have || (input >= 0 && l->input != input))
            continue;
        input = l->input;
        list[count++] = l->leaf;
    }
    r->asked_input = input;
    return vd_want(r, list, count);
}

bool vd_inputs_ask(vd_referee *r, uint32_t p, vd_question *question) {
    if (p == 0) {
        if (compute(r))
            r->wanted_count = 0;
        else if (!want_missing(r))
            return false;
    }
    if (r->wanted_count == 0 || p != r->source || r->failed != VD_OK)
        return false;
    vd_tree_name tree = input_tree(r, r->asked_input);
    return vd_ask_wanted(r, &tree, question);
}

static bool take_input(vd_referee *r, uint32_t p, uint64_t index, const vd_buf *data) {
    vd_input_leaf *leaf = input_leaf(r, r->asked_input, index);
    if (!leaf)
        return false;
    if (data->size != vd_piece_size(input_shape(r, r->asked_input), index)) {
        vd_convict(r, p, VD_GRADE_BAD_PROOF, "a leaf of a tensor has the wrong size");
        return false;
    }
    memcpy(leaf->data, data->data, data->size);
    leaf->have = true;
    return true;
}

void vd_ask_the_other(vd_referee *r, const char *what) {
    r->gave_none[r->source] = true;
    for (uint32_t p = 0; p < r->parties; p++)
        if (!r->gave_none[p]) {
            r->source = p;
            return;
        }
    for (uint32_t p = 0; p < r->parties; p++)
        vd_forfeit(r, p, what);
}

/* Judges, and goes on to the crumb's next element. Neighbours often share inputs: they are kept. */
static void judge_crumb(vd_referee *r) {
    if (r->place->part >= 0)
        vd_judge_part(r);
    else
        vd_judge_element(r);
    if (!vd_crumb_next_element(r))
        r->phase = VD_PHASE_DONE;
}

void vd_inputs_take(vd_referee *r) {
    if (r->wanted_count == 0) {
        if (vd_is_crumb(r))
            judge_crumb(r);
        else if (r->place->part >= 0)
            vd_judge_part(r);
        else if (vd_is_free(r))
            vd_judge_rounding(r);
        else
            vd_judge_element(r);
        return;
    }
    if (!r->party[r->source].body) { /* the inputs are agreed, so either provider can give them */
        vd_ask_the_other(r, vd_is_crumb(r) ? r->party[0].why : "did not give an agreed input");
        return;
    }
    vd_tree_name tree = input_tree(r, r->asked_input);
    const vd_hash *commitment = &r->party[r->source].record->input[r->asked_input];
    (void)vd_take_leaves(r, r->source, &tree, commitment, r->wanted, r->wanted_count, take_input);
}

void vd_inputs_forget(vd_referee *r) {
    for (size_t i = 0; i < r->inputs; i++)
        free(r->input[i]);
    r->inputs = 0;
    r->source = 0;
    memset(r->gave_none, 0, sizeof r->gave_none);
}
