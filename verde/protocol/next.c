/* The case of equal traces but different states after the step: finds the first leaf in which these
 * states differ, and the record of the node that makes it. PROTOCOL.md section 5.3. */
#include <string.h>

#include "verde/protocol/dispute.h"

static vd_tree_name trace_tree(const vd_referee *r) {
    return (vd_tree_name){.kind = VD_TREE_TRACE, .step = r->step};
}

/* Descends the states. Their roots must differ, since a state's hash follows from its root. */
void vd_dispute_next(vd_referee *r) {
    vd_descend(r, (vd_tree_name){.kind = VD_TREE_STATE, .step = r->step + 1}, VD_PHASE_NEXT_OPEN,
               VD_PHASE_NEXT_LEAF);
}

/* ---- the leaf ---- */

static bool take_leaf(vd_referee *r, uint32_t p, uint64_t index, const vd_buf *data) {
    (void)index;
    if (data->size != VD_HASH_SIZE) {
        vd_convict(r, p, VD_GRADE_BAD_PROOF, "a leaf of a state is not a hash");
        return false;
    }
    memcpy(r->party[p].next.b, data->data, VD_HASH_SIZE);
    return true;
}

static const char *leaf_name(const vd_referee *r) {
    return r->program->leaf[r->descent.lo].name;
}

/* Goes to the record that makes the leaf. vd_program_validate ensures that a node does. */
void vd_next_leaf_take(vd_referee *r) {
    bool ok = true;
    for (uint32_t p = 0; p < r->parties; p++)
        ok &= vd_take_leaves(r, p, &r->descent.tree, &r->party[p].after, r->wanted, 1, take_leaf);
    if (!ok)
        return;
    r->record = r->graph->output[r->descent.lo] - vd_source_count(r->program, r->graph);
    vd_story(r, "First leaf of the states that differs: %s, which node %u makes, %s.", leaf_name(r),
             r->record, vd_node_name(r->graph, r->record).text);
    r->phase = VD_PHASE_NEXT_RECORD;
}

/* ---- the record ---- */

bool vd_next_record_ask(vd_referee *r, uint32_t p, vd_question *question) {
    const uint64_t at = r->record;
    const vd_tree_name tree = trace_tree(r);
    (void)p;
    return vd_want(r, &at, 1) && vd_ask_wanted(r, &tree, question);
}

void vd_next_record_take(vd_referee *r) {
    const vd_tree_name tree = trace_tree(r);
    for (uint32_t p = 0; p < r->parties; p++) {
        const vd_party *party = &r->party[p];
        if (vd_take_leaves(r, p, &tree, NULL, r->wanted, 1, vd_take_record) &&
            !vd_hash_equal(&party->record->output, &party->next))
            vd_convict(r, p, VD_GRADE_CONTRADICTION,
                       "leaf %.100s of its state S_%lld is not what its own trace makes of it",
                       leaf_name(r), (long long)r->step + 1);
    }
    if (vd_all_stand(r))
        vd_inconclusive(r, "Equal traces lead to different states, yet each follows from its own.");
}
