/* Long folds: finds the first part that is stated differently. PROTOCOL.md section 5.5. */
#include <string.h>

#include "verde/protocol/dispute.h"

static vd_tree_name fold_tree(const vd_referee *r) {
    return (vd_tree_name){.kind = VD_TREE_FOLD,
                          .step = r->step,
                          .value = vd_source_count(r->program, r->graph) + r->record,
                          .element = r->element};
}

static bool take_size(vd_referee *r, uint32_t p, const vd_buf *data) {
    if (data->size == r->fold.size)
        return true;
    vd_convict(r, p, VD_GRADE_BAD_PROOF, "what a part leaves has the wrong size");
    return false;
}

/* ---- the last part ---- */

bool vd_fold_ask(vd_referee *r, uint32_t p, vd_question *question) {
    const uint64_t last = r->fold.parts - 1;
    const vd_tree_name tree = fold_tree(r);
    (void)p;
    return vd_want(r, &last, 1) && vd_ask_wanted(r, &tree, question);
}

static bool take_last(vd_referee *r, uint32_t p, uint64_t index, const vd_buf *data) {
    (void)index;
    if (!take_size(r, p, data))
        return false;
    memcpy(r->party[p].part[1], data->data, data->size);
    return true;
}

/* Convicts p if the element that it committed to does not follow from its own last part. */
static void judge_last(vd_referee *r, uint32_t p) {
    const uint8_t *last = r->party[p].part[1];
    if (r->fold.bounded) {
        const vd_possible possible = vd_possible_of(vd_fold_bounded(&r->fold, last),
                                                    vd_node_bits(r->program, r->graph, r->record));
        (void)vd_judge_possible(r, p, &possible);
        return;
    }
    const uint32_t given = vd_fold_element(&r->fold, last);
    char stated[VD_F32_TEXT], follows[VD_F32_TEXT];
    vd_place_text(r->place, r->place->value[p], stated);
    vd_place_text(r->place, given, follows);
    if (r->place->value[p] != given)
        vd_convict(r, p, VD_GRADE_WRONG_OUTPUT,
                   "element %lld of %s is %s, and the parts that it states give %s",
                   (long long)r->element, r->place->node_name, stated, follows);
}

/* Judges the element by the last part, which both stated alike, as if it had been computed. */
static void judge_agreed(vd_referee *r) {
    const uint8_t *last = r->party[0].part[1];
    if (r->fold.bounded) {
        r->bounded = vd_fold_bounded(&r->fold, last);
        vd_judge_rounding(r);
    } else {
        r->place->expected = vd_fold_element(&r->fold, last);
        vd_judge_element(r);
    }
}

void vd_fold_take(vd_referee *r) {
    const vd_tree_name tree = fold_tree(r);
    bool ok = true;
    for (uint32_t p = 0; p < r->parties; p++) {
        (void)vd_json_get_hash(r->party[p].body, "root", &r->party[p].fold_root);
        ok &= vd_take_leaves(r, p, &tree, NULL, r->wanted, 1, take_last);
    }
    if (!ok)
        return;
    if (vd_is_crumb(r)) {
        judge_last(r, 0);
        if (vd_all_stand(r))
            vd_crumb_part(r, tree);
        return;
    }
    if (vd_hash_equal(&r->party[0].fold_root, &r->party[1].fold_root)) {
        judge_agreed(r);
        return;
    }
    for (uint32_t p = 0; p < r->parties; p++)
        judge_last(r, p);
    if (vd_all_stand(r))
        vd_descend(r, tree, VD_PHASE_FOLD_OPEN, VD_PHASE_FOLD_PROVE);
}

/* ---- the first part that differs ---- */

static bool take_part(vd_referee *r, uint32_t p, uint64_t index, const vd_buf *data) {
    if (!take_size(r, p, data))
        return false;
    memcpy(r->party[p].part[index == r->descent.lo], data->data, data->size);
    return true;
}

void vd_parts_take(vd_referee *r) {
    bool ok = true;
    for (uint32_t p = 0; p < r->parties; p++)
        ok &= vd_take_leaves(r, p, &r->descent.tree, NULL, r->wanted, r->wanted_count, take_part);
    if (!ok)
        return;
    r->place->part = (int64_t)r->descent.lo;
    vd_story(r, "First part that differs: %lld of %llu. Fetching what it is computed from.",
             (long long)r->place->part, (unsigned long long)r->fold.parts);
    r->phase = VD_PHASE_INPUTS;
}
