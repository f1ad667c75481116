/* Writes and reads questions. PROTOCOL.md section 4. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/source.h"
#include "verde/log/program.h"
#include "verde/protocol/message.h"

static const char *const ask_names[] = {
    [VD_ASK_COMMIT] = "commit",       [VD_ASK_REVEAL] = "reveal", [VD_ASK_SUBRUN] = "subrun",
    [VD_ASK_TRACE] = "trace",         [VD_ASK_OPEN] = "open",     [VD_ASK_PROVE] = "prove",
    [VD_ASK_CHALLENGE] = "challenge", [VD_ASK_NOTE] = "note",     [VD_ASK_SECTION] = "section",
};

static const char *const tree_names[] = {
    [VD_TREE_RUN] = "run",     [VD_TREE_SUBRUN] = "subrun", [VD_TREE_TRACE] = "trace",
    [VD_TREE_STATE] = "state", [VD_TREE_TENSOR] = "tensor", [VD_TREE_LOG] = "log",
    [VD_TREE_FOLD] = "fold",   [VD_TREE_ITEMS] = "items",
};

const vd_graph *vd_step_graph(const vd_program *program, int64_t step) {
    return step < 0 ? &program->init : &program->step;
}

static uint64_t tensor_leaves(const vd_program *program, const vd_tree_name *tree) {
    const vd_graph *graph = vd_step_graph(program, tree->step);
    if (tree->value >= vd_source_count(program, graph) + graph->node_count)
        return 0;
    return vd_tensor_leaves(vd_value_shape(program, graph, tree->value));
}

static uint64_t fold_parts(const vd_program *program, const vd_tree_name *tree) {
    const vd_graph *graph = vd_step_graph(program, tree->step);
    const uint32_t sources = vd_source_count(program, graph);
    vd_fold fold;
    if (tree->value < sources || tree->value - sources >= graph->node_count)
        return 0;
    const vd_node *n = vd_node_stored(graph, tree->value - sources);
    return tree->element >= 0 && tree->element < ro_shape_numel(&n->shape) &&
                   vd_fold_open(&fold, program, graph, tree->value - sources, tree->element)
               ? fold.parts
               : 0;
}

static uint64_t log_sections(const vd_graph *graph) {
    return vd_graph_sections(graph, graph->node_count);
}

uint64_t vd_tree_leaves(const vd_program *program, const vd_tree_name *tree) {
    bool step = tree->step >= -1 && tree->step < program->steps;
    switch (tree->kind) {
    case VD_TREE_RUN: return vd_run_leaves(program);
    case VD_TREE_SUBRUN:
        return tree->step >= 0 && tree->to > tree->step && tree->to <= program->steps &&
                       tree->to - tree->step <= program->checkpoint_interval
                   ? (uint64_t)(tree->to - tree->step) + 1
                   : 0;
    case VD_TREE_TRACE: return step ? vd_step_graph(program, tree->step)->node_count : 0;
    case VD_TREE_STATE:
        return tree->step >= 0 && tree->step <= program->steps ? program->leaf_count : 0;
    case VD_TREE_TENSOR: return step ? tensor_leaves(program, tree) : 0;
    case VD_TREE_LOG:
        return step && program->rounding.bits ? log_sections(vd_step_graph(program, tree->step))
                                              : 0;
    case VD_TREE_FOLD: return step ? fold_parts(program, tree) : 0;
    case VD_TREE_ITEMS: break;
    }
    return 0;
}

void vd_question_free(vd_question *question) {
    free(question->leaf);
    question->leaf = NULL;
}

/* ---- writing ---- */

static json_t *write_tree(const vd_tree_name *tree) {
    json_t *out = json_pack("{ss}", "of", tree_names[tree->kind]);
    if (tree->kind == VD_TREE_SUBRUN) {
        json_object_set_new(out, "from", json_integer(tree->step));
        json_object_set_new(out, "to", json_integer(tree->to));
    } else if (tree->kind != VD_TREE_RUN && tree->kind != VD_TREE_ITEMS) {
        json_object_set_new(out, "step", json_integer(tree->step));
    }
    if (tree->kind == VD_TREE_TENSOR || tree->kind == VD_TREE_FOLD)
        json_object_set_new(out, "value", json_integer(tree->value));
    if (tree->kind == VD_TREE_FOLD)
        json_object_set_new(out, "element", json_integer(tree->element));
    return out;
}

static json_t *write_commits(const vd_question *q) {
    json_t *out = json_array();
    for (uint32_t i = 0; i < q->commit_count; i++)
        json_array_append_new(out, vd_hash_text(&q->commit[i]));
    return out;
}

static json_t *write_leaves(const vd_question *q) {
    json_t *out = json_array();
    for (uint32_t i = 0; i < q->leaf_count; i++)
        json_array_append_new(out, json_integer((json_int_t)q->leaf[i]));
    return out;
}

static json_t *write_question(const vd_question *q, const vd_hash *assignment) {
    json_t *root = json_pack("{si so ss}", "verde", q->draws ? 2 : 1, "assignment",
                             vd_hash_text(assignment), "ask", ask_names[q->kind]);
    if (q->draws)
        json_object_set_new(root, "draw", vd_hash_text(&q->draw));
    if (q->challenged)
        json_object_set_new(root, "challenger", vd_json_key(&q->challenger));
    if (q->game)
        json_object_set_new(root, "game", json_integer(q->game));
    if (q->of_item)
        json_object_set_new(root, "item", json_integer((json_int_t)q->item));
    if (q->kind == VD_ASK_REVEAL)
        json_object_set_new(root, "commits", write_commits(q));
    if (q->kind >= VD_ASK_SUBRUN)
        json_object_set_new(root, "tree", write_tree(&q->tree));
    if (q->kind == VD_ASK_OPEN) {
        json_object_set_new(root, "lo", json_integer((json_int_t)q->lo));
        json_object_set_new(root, "hi", json_integer((json_int_t)q->hi));
        json_object_set_new(root, "depth", json_integer(q->depth));
    }
    if (q->kind >= VD_ASK_PROVE)
        json_object_set_new(root, "leaves", write_leaves(q));
    return root;
}

vd_status vd_question_write(const vd_question *question, const vd_hash *assignment, vd_buf *payload,
                            vd_err *err) {
    vd_json_start();
    json_t *root = write_question(question, assignment);
    bool ok = vd_json_dump(root, payload) && !vd_json_failed();
    json_decref(root);
    return ok ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "question: out of memory");
}

/* ---- reading ---- */

static int find_name(const json_t *value, const char *const *names, int count) {
    const char *text = json_string_value(value);
    for (int i = 1; text && i < count; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
    return 0;
}

uint64_t vd_job_leaves(const vd_program *program, const vd_collection *collection,
                       const vd_tree_name *tree) {
    if (tree->kind == VD_TREE_ITEMS)
        return collection ? collection->count : 0;
    return program ? vd_tree_leaves(program, tree) : 0;
}

static bool read_tree(const json_t *root, vd_tree_name *out) {
    out->kind = (vd_tree_kind)find_name(json_object_get(root, "of"), tree_names,
                                        sizeof tree_names / sizeof tree_names[0]);
    const char *first = out->kind == VD_TREE_SUBRUN ? "from" : "step";
    json_int_t value = json_integer_value(json_object_get(root, "value"));
    if (!out->kind || value < 0 || value > UINT32_MAX)
        return false;
    out->step = json_integer_value(json_object_get(root, first));
    out->to = json_integer_value(json_object_get(root, "to"));
    out->value = (uint32_t)value;
    out->element = json_integer_value(json_object_get(root, "element"));
    return true;
}

static bool read_commits(const json_t *list, vd_question *out) {
    if (!json_is_array(list) || json_array_size(list) > VD_PARTIES_MAX)
        return false;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!vd_json_to_hash(json_array_get(list, i), &out->commit[out->commit_count++]))
            return false;
    return true;
}

static bool read_open(const json_t *root, uint64_t count, vd_question *out) {
    json_int_t lo = json_integer_value(json_object_get(root, "lo"));
    json_int_t hi = json_integer_value(json_object_get(root, "hi"));
    out->depth = (int)json_integer_value(json_object_get(root, "depth"));
    out->lo = (uint64_t)lo;
    out->hi = (uint64_t)hi;
    return lo >= 0 && hi > lo + 1 && (uint64_t)hi <= count && out->depth >= 1 &&
           out->depth <= VD_OPEN_DEPTH_MAX && vd_tree_is_node(count, out->lo, out->hi);
}

/* Returns the most leaves that a question may ask for, since the answer grows with them. */
static size_t leaves_max(vd_tree_kind kind) {
    switch (kind) {
    case VD_TREE_TENSOR:
    case VD_TREE_STATE: return VD_PROVE_LEAVES_MAX;
    case VD_TREE_TRACE: return VD_PROVE_RECORDS_MAX;
    default: return VD_PROVE_PLACES_MAX;
    }
}

static bool read_leaves(const json_t *list, uint64_t count, vd_question *out) {
    size_t size = json_array_size(list);
    if (!json_is_array(list) || size < 1 || size > leaves_max(out->tree.kind))
        return false;
    out->leaf = calloc(size, sizeof *out->leaf);
    for (size_t i = 0; out->leaf && i < size; i++) {
        json_int_t leaf = json_integer_value(json_array_get(list, i));
        if (leaf < 0 || (uint64_t)leaf >= count || (i && (uint64_t)leaf <= out->leaf[i - 1]))
            return false;
        out->leaf[out->leaf_count++] = (uint64_t)leaf;
    }
    return out->leaf != NULL;
}

/* Reads the member `game`. NULL: the question belongs to no game. */
static bool read_game(const json_t *value, uint32_t *out) {
    const json_int_t game = json_integer_value(value);
    *out = (uint32_t)game;
    return !value || (game >= 1 && game <= VD_GAMES_MAX);
}

static bool of_item_fits(const vd_question *q, const vd_collection *collection) {
    const bool wanted = collection && q->kind >= VD_ASK_SUBRUN && q->tree.kind != VD_TREE_ITEMS;
    return q->of_item == wanted && (!wanted || q->item < collection->count);
}

/* Reads what version 2 adds: the hash of a secret, if the checker draws from the statement. */
static bool read_draw(const json_t *root, vd_question *out) {
    out->draws = json_integer_value(json_object_get(root, "verde")) == 2;
    return out->draws ? vd_json_get_hash(root, "draw", &out->draw) : !json_object_get(root, "draw");
}

/* Returns true if the question may have a draw: its answer must state a root to draw from. */
static bool draw_fits(const vd_question *q) {
    return !q->draws || q->kind == VD_ASK_SUBRUN || q->kind == VD_ASK_TRACE ||
           (q->kind == VD_ASK_PROVE && q->tree.kind == VD_TREE_FOLD);
}

/* Reads the kind of question and its scope, without checking that the job has such a thing. */
static bool read_head(const json_t *root, vd_question *out) {
    const json_t *challenger = json_object_get(root, "challenger"),
                 *item = json_object_get(root, "item");
    out->kind = (vd_ask_kind)find_name(json_object_get(root, "ask"), ask_names,
                                       sizeof ask_names / sizeof ask_names[0]);
    out->challenged = challenger != NULL;
    out->of_item = item != NULL;
    out->item = (uint64_t)json_integer_value(item);
    return out->kind && read_game(json_object_get(root, "game"), &out->game) &&
           json_integer_value(item) >= 0 && read_draw(root, out) &&
           (!challenger || vd_json_to_key(challenger, &out->challenger)) &&
           (out->kind < VD_ASK_SUBRUN || read_tree(json_object_get(root, "tree"), &out->tree)) &&
           draw_fits(out);
}

/* Reads the members that depend on the kind. `count`: number of leaves of the tree. */
static bool read_rest(const json_t *root, const vd_program *program, uint64_t count,
                      vd_question *out) {
    switch (out->kind) {
    case VD_ASK_COMMIT: return !out->challenged && !out->game;
    case VD_ASK_REVEAL:
        return !out->challenged && !out->game &&
               read_commits(json_object_get(root, "commits"), out);
    case VD_ASK_CHALLENGE: return out->challenged && !out->game;
    case VD_ASK_SUBRUN: return out->tree.kind == VD_TREE_SUBRUN;
    case VD_ASK_TRACE: return out->tree.kind == VD_TREE_TRACE;
    default: break;
    }
    if (out->kind >= VD_ASK_PROVE && !read_leaves(json_object_get(root, "leaves"), count, out))
        return false;
    switch (out->kind) {
    case VD_ASK_OPEN: return out->tree.kind != VD_TREE_LOG && read_open(root, count, out);
    case VD_ASK_PROVE: return out->tree.kind != VD_TREE_LOG;
    case VD_ASK_NOTE:
        return out->tree.kind == VD_TREE_RUN && out->leaf_count == 1 && program->rounding.bits;
    case VD_ASK_SECTION: return out->tree.kind == VD_TREE_LOG && out->leaf_count == 1;
    default: break;
    }
    return false;
}

static vd_status malformed(vd_err *err) {
    return vd_fail(err, VD_ERR_PEER, "question: malformed, or not about this program");
}

static vd_status read_question(const json_t *root, const vd_job_programs *job, vd_question *out,
                               vd_program *item, vd_err *err) {
    const vd_program *program = job->program;
    if (!read_head(root, out) || !of_item_fits(out, job->collection))
        return malformed(err);
    if (out->of_item) {
        vd_status status = vd_collection_open(job->collection, out->item, item, NULL, err);
        if (status != VD_OK)
            return status;
        program = item;
    }
    const uint64_t count = vd_job_leaves(program, job->collection, &out->tree);
    return (out->kind < VD_ASK_SUBRUN || count > 0) && read_rest(root, program, count, out)
               ? VD_OK
               : malformed(err);
}

/* Returns true if the question, written again, has the same bytes: so nothing in it was ignored. */
static bool canonical(const vd_question *q, const vd_hash *assignment, const void *payload,
                      size_t size) {
    vd_buf again = {0};
    bool same = vd_question_write(q, assignment, &again, NULL) == VD_OK && again.size == size &&
                memcmp(again.data, payload, size) == 0;
    vd_buf_free(&again);
    return same;
}

vd_status vd_question_read(const void *payload, size_t size, const vd_job_programs *job,
                           const vd_hash *assignment, vd_question *out, vd_program *item,
                           vd_err *err) {
    static const char *const names[] = {"verde", "assignment", "ask",   "tree", "commits",
                                        "lo",    "hi",         "depth", "game", "leaves",
                                        "item",  "challenger", "draw",  NULL};
    *out = (vd_question){0};
    if (item)
        *item = (vd_program){0};
    json_t *root;
    vd_status status = vd_json_read(payload, size, VD_QUESTION_ELEMENTS_MAX, &root, err);
    if (status == VD_OK)
        status = vd_json_begin_to(root, "verde", "a question", 2, names, err);
    if (status == VD_OK)
        status = read_question(root, job, out, item, err);
    if (status == VD_OK && !canonical(out, assignment, payload, size))
        status = malformed(err);
    json_decref(root);
    if (status == VD_OK)
        return VD_OK;
    vd_question_free(out);
    if (item)
        vd_program_free(item);
    return status;
}

void vd_question_print(const vd_question *q, const vd_program *program, char *text, size_t size) {
    const vd_tree_name *t = &q->tree;
    int at = snprintf(text, size, "%s", ask_names[q->kind]);
    if (q->kind < VD_ASK_SUBRUN || at < 0 || (size_t)at >= size)
        return;
    if (t->kind == VD_TREE_SUBRUN)
        snprintf(text + at, size - (size_t)at, " states %lld..%lld", (long long)t->step,
                 (long long)t->to);
    else if (t->kind == VD_TREE_TENSOR)
        snprintf(text + at, size - (size_t)at, " tensor %u of step %lld", t->value,
                 (long long)t->step);
    else if (t->kind == VD_TREE_FOLD)
        snprintf(text + at, size - (size_t)at, " fold of element %lld, tensor %u of step %lld",
                 (long long)t->element, t->value, (long long)t->step);
    else if (t->kind == VD_TREE_RUN || t->kind == VD_TREE_ITEMS)
        snprintf(text + at, size - (size_t)at, " %s", tree_names[t->kind]);
    else
        snprintf(text + at, size - (size_t)at, " %s of step %lld", tree_names[t->kind],
                 (long long)t->step);
    (void)program;
}
