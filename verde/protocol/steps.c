/* Narrows a dispute down to the step where the states part. PROTOCOL.md sections 5.1 to 5.3. */
#include <string.h>

#include "verde/exec/items.h"
#include "verde/protocol/dispute.h"
#include "verde/protocol/provider.h"

bool vd_commit_ask(vd_referee *r, uint32_t p, vd_question *question) {
    (void)r, (void)p;
    question->kind = VD_ASK_COMMIT;
    return true;
}

void vd_commit_take(vd_referee *r) {
    for (uint32_t p = 0; p < r->parties; p++)
        if (r->party[p].body &&
            !vd_json_get_hash(r->party[p].body, "commit", &r->party[p].commit)) {
            vd_convict(r, p, VD_GRADE_BAD_PROOF, "its commitment is malformed");
            r->party[p].commit =
                (vd_hash){0}; /* the reveal question lists zeros, not half a hash */
        }
    r->phase = VD_PHASE_REVEAL;
}

bool vd_reveal_ask(vd_referee *r, uint32_t p, vd_question *question) {
    if (r->outcome.party[p].standing != VD_STANDS)
        return false;
    question->kind = VD_ASK_REVEAL;
    for (uint32_t i = 0; i < r->parties; i++)
        question->commit[question->commit_count++] = r->party[i].commit;
    return true;
}

static void take_reveal(vd_referee *r, uint32_t p) {
    vd_party *party = &r->party[p];
    vd_hash salt, commit;
    if (!vd_json_get_hash(party->body, "salt", &salt) ||
        !vd_json_get_hash(party->body, "root", &party->root) ||
        (r->rounded && !vd_json_get_hash(party->body, "run", &party->run_name))) {
        vd_convict(r, p, VD_GRADE_BAD_PROOF, "what it revealed is malformed");
        return;
    }
    if (!vd_commitment(&salt, &party->key, &party->root, &commit)) {
        vd_trouble(r, "out of memory");
        return;
    }
    if (!vd_hash_equal(&commit, &party->commit)) {
        vd_convict(r, p, VD_GRADE_CONTRADICTION, "revealed another root than it had committed to");
        return;
    }
    r->outcome.party[p].claimed = true;
    r->outcome.party[p].run_root = party->root;
}

static void dispute_run(vd_referee *r) {
    vd_descend(r, (vd_tree_name){.kind = VD_TREE_RUN}, VD_PHASE_RUN_OPEN, VD_PHASE_RUN_PROVE);
}

void vd_dispute_runs(vd_referee *r) {
    if (r->program) {
        dispute_run(r);
        return;
    }
    vd_story(r, "Looking for the first of %llu items whose runs differ.",
             (unsigned long long)r->options.collection->count);
    vd_descend(r, (vd_tree_name){.kind = VD_TREE_ITEMS}, VD_PHASE_ITEMS_OPEN, VD_PHASE_ITEMS_PROVE);
}

/* ---- the item of a collection ---- */

bool vd_items_ask(vd_referee *r, uint32_t p, vd_question *question) {
    (void)p;
    return vd_want(r, &r->descent.lo, 1) && vd_ask_wanted(r, &r->descent.tree, question);
}

static bool take_item(vd_referee *r, uint32_t p, uint64_t index, const vd_buf *data) {
    (void)index;
    if (data->size != VD_HASH_SIZE) {
        vd_convict(r, p, VD_GRADE_BAD_PROOF, "the root of an item's run is not a hash");
        return false;
    }
    memcpy(r->party[p].item_root.b, data->data, VD_HASH_SIZE);
    return true;
}

/* Goes on with this item: from here on a party's claim is the root of the item's run. */
static bool open_item(vd_referee *r, uint64_t item) {
    if (vd_collection_open(r->options.collection, item, &r->item_program, &r->program_hash,
                           &r->err) != VD_OK) {
        r->failed = r->err.status;
        return false;
    }
    r->program = &r->item_program;
    r->place->item = (int64_t)item;
    r->place->answers = vd_program_answers(&r->item_program);
    for (uint32_t p = 0; p < r->parties; p++)
        r->party[p].root = r->party[p].item_root;
    return true;
}

void vd_items_take(vd_referee *r) {
    bool ok = true;
    for (uint32_t p = 0; p < r->parties; p++)
        ok &= vd_take_leaves(r, p, &r->descent.tree, NULL, r->wanted, r->wanted_count, take_item);
    if (!ok)
        return;
    if (vd_hash_equal(&r->party[0].item_root, &r->party[1].item_root)) {
        vd_trouble(r, "two different leaves have equal roots");
        return;
    }
    if (!open_item(r, r->descent.lo))
        return;
    vd_story(r, "%s %llu of the %s (item %llu) is the first whose runs differ.",
             r->place->answers ? "Batch" : "Prompt", (unsigned long long)r->descent.lo + 1,
             r->place->answers ? "job" : "file", (unsigned long long)r->descent.lo);
    dispute_run(r);
}

void vd_reveal_take(vd_referee *r) {
    for (uint32_t p = 0; p < r->parties; p++)
        if (r->party[p].body)
            take_reveal(r, p);
    if (r->scope == VD_SCOPE_OPENING)
        r->phase = VD_PHASE_DONE;
    if (!vd_all_stand(r) || r->scope == VD_SCOPE_OPENING)
        return;
    if (vd_is_crumb(r)) {
        vd_crumb_run(r);
        return;
    }
    if (vd_hash_equal(&r->party[0].root, &r->party[1].root)) {
        vd_story(r, "Both revealed the same run root: nothing to dispute.");
        r->phase = VD_PHASE_DONE;
        return;
    }
    vd_story(r, "The revealed run roots differ. Looking for the first checkpoint that differs.");
    vd_dispute_runs(r);
}

/* ---- the states before and after a difference ---- */

/* Asks for leaves at - 1 and at (or only 0) of the tree that was descended. */
bool vd_ends_ask(vd_referee *r, uint32_t p, vd_question *question) {
    uint64_t at = r->descent.lo, pair[2] = {at ? at - 1 : 0, at};
    (void)p;
    return vd_want(r, pair, 2) && vd_ask_wanted(r, &r->descent.tree, question);
}

static bool take_end(vd_referee *r, uint32_t p, uint64_t index, const vd_buf *data) {
    const bool logged = vd_is_logged(r, &r->descent.tree);
    if (data->size != (logged ? 2 : 1) * VD_HASH_SIZE) {
        vd_convict(r, p, VD_GRADE_BAD_PROOF, "a committed state is not a hash");
        return false;
    }
    if (logged && index == r->descent.lo)
        memcpy(r->party[p].logs.b, data->data + VD_HASH_SIZE, VD_HASH_SIZE);
    vd_hash *end = index == r->descent.lo ? &r->party[p].after : &r->party[p].before;
    memcpy(end->b, data->data, VD_HASH_SIZE);
    return true;
}

static int64_t leaf_step(const vd_referee *r, uint64_t leaf) {
    if (r->descent.tree.kind == VD_TREE_RUN)
        return vd_run_leaf_step(r->program, leaf);
    return r->descent.tree.step + (int64_t)leaf;
}

static void dispute_step(vd_referee *r, int64_t step) {
    r->step = r->place->step = step;
    r->graph = vd_step_graph(r->program, step);
    r->phase = VD_PHASE_TRACE;
    if (step < 0)
        vd_story(r, "The very first states differ: initialisation is in dispute.");
    else
        vd_story(r, "Equal before step %lld, different after it: this step is in dispute.",
                 (long long)step);
}

void vd_ends_take(vd_referee *r) {
    uint64_t at = r->descent.lo;
    bool ok = true;
    for (uint32_t p = 0; p < r->parties; p++)
        ok &= vd_take_leaves(r, p, &r->descent.tree, NULL, r->wanted, r->wanted_count, take_end);
    if (!ok || (vd_is_logged(r, &r->descent.tree) && vd_dispute_logs(r)))
        return;
    if (at == 0) {
        dispute_step(r, -1);
        return;
    }
    r->from = leaf_step(r, at - 1);
    r->to = leaf_step(r, at);
    if (r->to - r->from == 1) {
        dispute_step(r, r->from);
        return;
    }
    vd_story(r, "Equal at step %lld, different at step %lld. Both re-execute in between.",
             (long long)r->from, (long long)r->to);
    r->phase = VD_PHASE_SUBRUN;
}

/* ---- all states between two checkpoints ---- */

static vd_tree_name subrun(const vd_referee *r) {
    return (vd_tree_name){.kind = VD_TREE_SUBRUN, .step = r->from, .to = r->to};
}

bool vd_subrun_ask(vd_referee *r, uint32_t p, vd_question *question) {
    (void)p;
    *question = (vd_question){.kind = VD_ASK_SUBRUN, .tree = subrun(r)};
    return true;
}

/* Checks that one end of a stated sub-run is the signer's own state there. */
static bool check_end(vd_referee *r, uint32_t p, const char *name, uint64_t index,
                      const vd_hash *own) {
    vd_tree_name tree = subrun(r);
    vd_buf data = {0};
    bool ok = vd_take_leaf(r, p, json_object_get(r->party[p].body, name), &r->party[p].subrun_root,
                           index, vd_tree_leaves(r->program, &tree), false, &data);
    if (ok && (data.size != VD_HASH_SIZE || memcmp(data.data, own->b, VD_HASH_SIZE) != 0)) {
        vd_convict(r, p, VD_GRADE_CONTRADICTION,
                   "its states inside the run do not end in the state it had committed to");
        ok = false;
    }
    vd_buf_free(&data);
    return ok;
}

void vd_subrun_take(vd_referee *r) {
    bool ok = true;
    for (uint32_t p = 0; p < r->parties; p++) {
        vd_party *party = &r->party[p];
        if (!vd_json_get_hash(party->body, "root", &party->subrun_root)) {
            vd_convict(r, p, VD_GRADE_BAD_PROOF, "its statement about a sub-run is malformed");
            ok = false;
            continue;
        }
        ok &= check_end(r, p, "first", 0, &party->before) &&
              check_end(r, p, "last", (uint64_t)(r->to - r->from), &party->after);
    }
    if (ok && vd_is_crumb(r))
        vd_crumb_subrun(r, subrun(r));
    else if (ok)
        vd_descend(r, subrun(r), VD_PHASE_SUBRUN_OPEN, VD_PHASE_SUBRUN_PROVE);
}

/* ---- the trace of the step ---- */

bool vd_trace_ask(vd_referee *r, uint32_t p, vd_question *question) {
    (void)p;
    *question =
        (vd_question){.kind = VD_ASK_TRACE, .tree = {.kind = VD_TREE_TRACE, .step = r->step}};
    return true;
}

static bool take_trace(vd_referee *r, uint32_t p) {
    vd_party *party = &r->party[p];
    vd_hash before, after;
    if (!vd_json_get_hash(party->body, "root", &party->trace_root) ||
        !vd_json_get_hash(party->body, "after", &after) ||
        (r->step >= 0 && !vd_json_get_hash(party->body, "before", &before))) {
        vd_convict(r, p, VD_GRADE_BAD_PROOF, "its statement about a trace is malformed");
        return false;
    }
    if (!vd_hash_equal(&after, &party->after) ||
        (r->step >= 0 && !vd_hash_equal(&before, &party->before))) {
        vd_convict(r, p, VD_GRADE_CONTRADICTION,
                   "its trace is not between the states it had committed to");
        return false;
    }
    return true;
}

void vd_trace_take(vd_referee *r) {
    bool ok = true;
    for (uint32_t p = 0; p < r->parties; p++)
        ok &= take_trace(r, p);
    if (!ok)
        return;
    if (vd_is_crumb(r)) {
        vd_crumb_trace(r);
        return;
    }
    if (vd_hash_equal(&r->party[0].trace_root, &r->party[1].trace_root)) {
        vd_story(r, "Both traces of the step are equal: looking for the first leaf of the states "
                    "after it that differs.");
        vd_dispute_next(r);
        return;
    }
    vd_story(r, "The traces of the step differ: looking for the first of %u nodes that does.",
             r->graph->node_count);
    vd_descend(r, (vd_tree_name){.kind = VD_TREE_TRACE, .step = r->step}, VD_PHASE_TRACE_OPEN,
               VD_PHASE_RECORD);
}
