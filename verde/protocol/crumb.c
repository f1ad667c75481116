/* Places of one provider's run, and the questions about them: the phases of a dispute with a single
 * party. PROTOCOL.md section 13.3. */
#include "verde/protocol/crumb.h"

#include <string.h>

#include "verde/exec/run.h"
#include "verde/protocol/dispute.h"

/* ---- places ---- */

static bool seam_fits(const vd_crumb *c, const vd_program *program) {
    return c->leaf_count >= 1 && c->leaf_count <= VD_SEAM_LEAVES_MAX &&
           c->leaf < program->leaf_count && c->leaf_count <= program->leaf_count - c->leaf;
}

static bool elements_fit(const vd_crumb *c, const ro_shape *shape) {
    const int64_t size = (int64_t)ro_dtype_size(shape->dtype), numel = ro_shape_numel(shape);
    return c->element >= 0 && c->count >= 1 && c->element < numel &&
           c->count <= numel - c->element &&
           c->element * size / VD_LEAF_SIZE == (c->element + c->count - 1) * size / VD_LEAF_SIZE;
}

bool vd_crumb_fits(const vd_crumb *c, const vd_program *program) {
    vd_fold fold;
    if (c->step < -1 || c->step >= program->steps || program->rounding.bits)
        return false;
    const vd_graph *graph = vd_step_graph(program, c->step);
    if (c->node < 0)
        return c->node == -1 && seam_fits(c, program);
    if (c->node >= graph->node_count ||
        !elements_fit(c, &vd_node_stored(graph, (uint32_t)c->node)->shape))
        return false;
    if (!vd_fold_open(&fold, program, graph, (uint32_t)c->node, c->element))
        return c->part == -1;
    return c->count == 1 && c->part >= 0 && (uint64_t)c->part < fold.parts;
}

uint64_t vd_crumb_run_leaf(const vd_program *program, int64_t step) {
    return step < 0 ? 0 : (uint64_t)(step / program->checkpoint_interval) + 1;
}

/* ---- as JSON ---- */

static json_t *draws_json(const vd_crumb *c) {
    json_t *list = json_array();
    for (int i = 0; i < VD_DRAWS; i++)
        json_array_append_new(list, vd_hash_text(&c->draw[i]));
    return list;
}

json_t *vd_crumb_json(const vd_crumb *c) {
    json_t *out = json_pack("{so sI}", "draws", draws_json(c), "step", (json_int_t)c->step);
    if (c->node < 0) {
        json_object_set_new(out, "leaf", json_integer((json_int_t)c->leaf));
        json_object_set_new(out, "leaves", json_integer((json_int_t)c->leaf_count));
        return out;
    }
    json_object_set_new(out, "node", json_integer(c->node));
    json_object_set_new(out, "element", json_integer(c->element));
    json_object_set_new(out, "elements", json_integer(c->count));
    if (c->part >= 0)
        json_object_set_new(out, "part", json_integer(c->part));
    return out;
}

static vd_status bad_place(vd_err *err, const char *why) {
    return vd_fail(err, VD_ERR_PEER, "place: %s", why);
}

/* Reads an integer of at least `least`. `absent`: its value if missing, or MUST. */
static bool take_number(const json_t *place, const char *name, int64_t least, int64_t absent,
                        int64_t *out) {
    const json_t *value = json_object_get(place, name);
    *out = value ? json_integer_value(value) : absent;
    return value ? json_is_integer(value) && *out >= least : absent >= -1;
}

static bool take_draws(const json_t *list, vd_crumb *out) {
    if (json_array_size(list) != VD_DRAWS)
        return false;
    for (int i = 0; i < VD_DRAWS; i++)
        if (!vd_json_to_hash(json_array_get(list, (size_t)i), &out->draw[i]))
            return false;
    return true;
}

enum { MUST = -2 }; /* passed as `absent`: the member must be there */

static bool take_seam(const json_t *place, vd_crumb *out) {
    int64_t leaf, count;
    if (!take_number(place, "leaf", 0, MUST, &leaf) ||
        !take_number(place, "leaves", 1, MUST, &count))
        return false;
    out->leaf = (uint64_t)leaf;
    out->leaf_count = (uint64_t)count;
    return true;
}

vd_status vd_crumb_read(const json_t *place, const vd_program *program, vd_crumb *out,
                        vd_err *err) {
    static const char *const seam[] = {"draws", "step", "leaf", "leaves", NULL};
    static const char *const node[] = {"draws",    "step", "node", "element",
                                       "elements", "part", NULL};
    const bool is_seam = json_object_get(place, "leaf") != NULL;
    vd_err why = {0};
    *out = (vd_crumb){.node = -1, .part = -1};
    vd_status status = vd_json_known(place, "place", is_seam ? seam : node, &why);
    if (status != VD_OK)
        return vd_fail(err, VD_ERR_PEER, "%s", why.text);
    if (!take_draws(json_object_get(place, "draws"), out))
        return bad_place(err, "`draws` must be three hashes");
    if (!take_number(place, "step", -1, MUST, &out->step))
        return bad_place(err, "`step` must be an integer of -1 or more");
    const bool whole = is_seam ? take_seam(place, out)
                               : take_number(place, "node", 0, MUST, &out->node) &&
                                     take_number(place, "element", 0, MUST, &out->element) &&
                                     take_number(place, "elements", 1, MUST, &out->count) &&
                                     take_number(place, "part", 0, -1, &out->part);
    if (!whole)
        return bad_place(err, "its numbers must be integers: `node`, `element` and `elements`, and "
                              "`part` of a long fold, or `leaf` and `leaves`");
    return vd_crumb_fits(out, program) ? VD_OK : bad_place(err, "the program has no such place");
}

/* ---- the course of it ---- */

vd_status vd_crumb_open(const vd_referee_options *options, const vd_crumb *crumb, vd_referee **out,
                        vd_err *err) {
    const vd_part part = {.scope = VD_SCOPE_CRUMB, .crumb = crumb};
    if (!options->program || !vd_crumb_fits(crumb, options->program))
        return vd_fail(err, VD_ERR_USAGE, "the job has no such place to check");
    return vd_referee_open(options, &part, out, err);
}

bool vd_is_crumb(const vd_referee *r) {
    return r->scope == VD_SCOPE_CRUMB;
}

void vd_crumb_draw(const vd_referee *r, vd_question *question) {
    const vd_hash *draw = NULL;
    if (question->kind == VD_ASK_SUBRUN)
        draw = &r->crumb.draw[VD_DRAW_SUBRUN];
    else if (question->kind == VD_ASK_TRACE)
        draw = &r->crumb.draw[VD_DRAW_TRACE];
    else if (r->phase == VD_PHASE_FOLD)
        draw = &r->crumb.draw[VD_DRAW_FOLD];
    question->draws = draw != NULL;
    if (draw)
        question->draw = *draw;
}

/* Goes directly to a known leaf, without a descent. */
static void go_to(vd_referee *r, vd_tree_name tree, uint64_t leaf, vd_phase next) {
    const uint64_t count = vd_tree_leaves(r->program, &tree);
    r->descent = (vd_descent){.tree = tree, .count = count, .lo = leaf, .hi = leaf + 1};
    r->phase = next;
}

void vd_crumb_run(vd_referee *r) {
    go_to(r, (vd_tree_name){.kind = VD_TREE_RUN}, vd_crumb_run_leaf(r->program, r->crumb.step),
          VD_PHASE_RUN_PROVE);
}

void vd_crumb_subrun(vd_referee *r, vd_tree_name tree) {
    go_to(r, tree, (uint64_t)(r->crumb.step - r->from) + 1, VD_PHASE_SUBRUN_PROVE);
}

void vd_crumb_trace(vd_referee *r) {
    if (r->crumb.node < 0) {
        go_to(r, (vd_tree_name){.kind = VD_TREE_STATE, .step = r->step + 1}, r->crumb.leaf,
              VD_PHASE_SEAM_LEAVES);
        return;
    }
    go_to(r, (vd_tree_name){.kind = VD_TREE_TRACE, .step = r->step}, (uint64_t)r->crumb.node,
          VD_PHASE_RECORD);
}

void vd_crumb_output(vd_referee *r, vd_tree_name tree) {
    const size_t size = ro_dtype_size(vd_node_stored(r->graph, r->record)->shape.dtype);
    go_to(r, tree, (uint64_t)r->crumb.element * size / VD_LEAF_SIZE, VD_PHASE_LEAF);
}

void vd_crumb_element(vd_referee *r) {
    const size_t size = ro_dtype_size(vd_node_stored(r->graph, r->record)->shape.dtype);
    r->element = r->place->element = r->crumb.element;
    r->place->value[0] =
        vd_element_bits(r->party[0].leaf + (size_t)r->element * size % VD_LEAF_SIZE, size);
    r->phase = vd_fold_open(&r->fold, r->program, r->graph, r->record, r->element)
                   ? VD_PHASE_FOLD
                   : VD_PHASE_INPUTS;
}

void vd_crumb_part(vd_referee *r, vd_tree_name tree) {
    go_to(r, tree, (uint64_t)r->crumb.part, VD_PHASE_FOLD_PROVE);
}

bool vd_crumb_next_element(vd_referee *r) {
    const size_t size = ro_dtype_size(vd_node_stored(r->graph, r->record)->shape.dtype);
    if (!vd_all_stand(r) || r->element + 1 >= r->crumb.element + r->crumb.count)
        return false;
    r->element = r->place->element = r->element + 1;
    r->place->computed = false;
    r->place->value[0] =
        vd_element_bits(r->party[0].leaf + (size_t)r->element * size % VD_LEAF_SIZE, size);
    return true;
}

/* ---- the seam: leaves of the state after the step, and the records that make them ---- */

static uint32_t record_of(const vd_referee *r, uint64_t leaf) {
    return r->graph->output[leaf] - vd_source_count(r->program, r->graph);
}

bool vd_seam_leaves_ask(vd_referee *r, uint32_t p, vd_question *question) {
    uint64_t list[VD_SEAM_LEAVES_MAX];
    (void)p;
    for (uint64_t i = 0; i < r->crumb.leaf_count; i++)
        list[i] = r->crumb.leaf + i;
    return vd_want(r, list, (uint32_t)r->crumb.leaf_count) &&
           vd_ask_wanted(r, &r->descent.tree, question);
}

static bool take_seam_leaf(vd_referee *r, uint32_t p, uint64_t index, const vd_buf *data) {
    if (data->size != VD_HASH_SIZE) {
        vd_convict(r, p, VD_GRADE_BAD_PROOF, "a leaf of a state is not a hash");
        return false;
    }
    memcpy(r->seam[index - r->crumb.leaf].b, data->data, VD_HASH_SIZE);
    return true;
}

void vd_seam_leaves_take(vd_referee *r) {
    if (vd_take_leaves(r, 0, &r->descent.tree, &r->party[0].after, r->wanted, r->wanted_count,
                       take_seam_leaf))
        r->phase = VD_PHASE_SEAM_RECORDS;
}

bool vd_seam_records_ask(vd_referee *r, uint32_t p, vd_question *question) {
    const vd_tree_name tree = {.kind = VD_TREE_TRACE, .step = r->step};
    uint64_t list[VD_SEAM_LEAVES_MAX];
    (void)p;
    for (uint64_t i = 0; i < r->crumb.leaf_count; i++)
        list[i] = record_of(r, r->crumb.leaf + i);
    return vd_want(r, list, (uint32_t)r->crumb.leaf_count) && vd_ask_wanted(r, &tree, question);
}

/* Compares a record with each of the seam's leaves that its node makes; there may be several. */
static bool take_seam_record(vd_referee *r, uint32_t p, uint64_t index, const vd_buf *data) {
    if (!vd_take_record(r, p, index, data))
        return false;
    for (uint64_t i = 0; i < r->crumb.leaf_count; i++)
        if (record_of(r, r->crumb.leaf + i) == index &&
            !vd_hash_equal(&r->party[p].record->output, &r->seam[i])) {
            vd_convict(r, p, VD_GRADE_CONTRADICTION,
                       "leaf %.100s of its state S_%lld is not what its own trace makes of it",
                       r->program->leaf[r->crumb.leaf + i].name, (long long)r->step + 1);
            return false;
        }
    return true;
}

void vd_seam_records_take(vd_referee *r) {
    const vd_tree_name tree = {.kind = VD_TREE_TRACE, .step = r->step};
    if (vd_take_leaves(r, 0, &tree, NULL, r->wanted, r->wanted_count, take_seam_record))
        r->phase = VD_PHASE_DONE;
}
