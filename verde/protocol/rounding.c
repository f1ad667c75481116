/* Runs with rounding logs: decides which log the trainer signed, and which roundings are possible.
 * Party 0 is the trainer, party 1 the auditor. PROTOCOL.md section 12. */
#include <string.h>

#include "verde/log/note.h"
#include "verde/protocol/dispute.h"

enum { TRAINER = 0, AUDITOR = 1 };

/* ---- different logs ---- */

bool vd_dispute_logs(vd_referee *r) {
    r->log_leaf = r->descent.lo;
    if (vd_hash_equal(&r->party[TRAINER].logs, &r->party[AUDITOR].logs))
        return false;
    vd_story(r, "The auditor followed another log than the one that the trainer's run commits to: "
                "which one has the trainer signed?");
    r->phase = VD_PHASE_NOTE;
    return true;
}

bool vd_note_ask(vd_referee *r, uint32_t p, vd_question *question) {
    const vd_tree_name run = {.kind = VD_TREE_RUN};
    if (p != AUDITOR || !vd_want(r, &r->log_leaf, 1) || !vd_ask_wanted(r, &run, question))
        return false;
    question->kind = VD_ASK_NOTE;
    return true;
}

/* Reads the note that the auditor followed. The trainer must have signed it. */
static bool take_note(vd_referee *r, vd_log_claim *claim) {
    const vd_party *auditor = &r->party[AUDITOR];
    const char *note = json_string_value(json_object_get(auditor->body, "note"));
    vd_err err = {0};
    vd_status status =
        note ? vd_log_note_open(note, strlen(note), &r->party[TRAINER].key, claim, &err)
             : VD_ERR_PEER;
    if (status == VD_ERR_LOCAL) {
        vd_trouble(r, err.text);
        return false;
    }
    if (status == VD_OK && vd_hash_equal(&claim->program, &r->program_hash) &&
        vd_hash_equal(&claim->run, &auditor->run_name) &&
        vd_hash_equal(&claim->logs, &auditor->logs) &&
        claim->step == vd_run_leaf_step(r->program, r->log_leaf))
        return true;
    vd_convict(r, AUDITOR, VD_GRADE_BAD_PROOF,
               "gave a note that is not the trainer's, or not of the log that it followed");
    return false;
}

void vd_note_take(vd_referee *r) {
    vd_log_claim claim;
    if (!take_note(r, &claim))
        return;
    if (vd_hash_equal(&claim.run, &r->party[TRAINER].run_name))
        vd_convict(r, TRAINER, VD_GRADE_CONTRADICTION,
                   "signed another log at step %lld than the one that its run commits to",
                   (long long)claim.step);
    else
        vd_inconclusive(r, "The trainer's claim is of another run than the one whose log it "
                           "signed: nothing is accepted.");
}

/* ---- what is possible ---- */

bool vd_is_free(const vd_referee *r) {
    return r->rounded && ro_op_is_free(vd_node_stored(r->graph, r->record)->op);
}

bool vd_judge_possible(vd_referee *r, uint32_t p, const vd_possible *possible) {
    const vd_place *at = r->place;
    if (vd_possible_has(possible, at->value[p]))
        return true;
    char stated[VD_F32_TEXT], least[VD_F32_TEXT], greatest[VD_F32_TEXT];
    vd_place_text(at, at->value[p], stated);
    vd_place_text(at, vd_possible_word(possible, possible->low), least);
    vd_place_text(at, vd_possible_word(possible, possible->high), greatest);
    vd_convict(r, p, VD_GRADE_WRONG_OUTPUT,
               "element %lld of %s is %s; on any device only values from %s to %s are possible",
               (long long)r->element, at->node_name, stated, least, greatest);
    return false;
}

void vd_judge_rounding(vd_referee *r) {
    vd_place *at = r->place;
    const int32_t bits = vd_node_bits(r->program, r->graph, r->record);
    const vd_possible possible = r->possible = vd_possible_of(r->bounded, bits);
    at->computed = at->rounded = true;
    at->expected = vd_float_word(ro_round(r->bounded.value, bits));
    at->possible[0] = vd_possible_word(&possible, possible.low);
    at->possible[1] = vd_possible_word(&possible, possible.high);
    for (uint32_t p = 0; p < r->parties; p++)
        (void)vd_judge_possible(r, p, &possible);
    if (!vd_all_stand(r))
        return;
    vd_story(r, "Both values are possible for a device: what does the log say?");
    r->source = TRAINER;
    memset(r->gave_none, 0, sizeof r->gave_none);
    r->phase = VD_PHASE_SECTION;
}

/* ---- what the log says ---- */

/* Returns the index of the log's section that has the disputed element. */
static uint64_t section_index(const vd_referee *r) {
    return vd_graph_sections(r->graph, r->record) + (uint64_t)r->element / VD_LOG_BLOCK;
}

bool vd_section_ask(vd_referee *r, uint32_t p, vd_question *question) {
    const vd_tree_name log = {.kind = VD_TREE_LOG, .step = r->step};
    const uint64_t index = section_index(r);
    if (p != r->source || !vd_want(r, &index, 1) || !vd_ask_wanted(r, &log, question))
        return false;
    question->kind = VD_ASK_SECTION;
    return true;
}

/* Reads a section: its bytes or, if they are more than allowed, their number and digest. */
static vd_status read_leaf(const json_t *body, vd_section_proof *out, vd_err *err) {
    const char *text = json_string_value(json_object_get(body, "section"));
    const json_int_t size = json_integer_value(json_object_get(body, "size"));
    vd_status status = VD_OK;
    if (text && strlen(text) / 4 * 3 <= VD_LOG_SECTION_BYTES + 3)
        status = vd_unbase64(text, strlen(text), &out->bytes, err);
    else if (text || size <= VD_LOG_SECTION_BYTES ||
             !vd_json_get_hash(body, "digest", &out->leaf.digest))
        return vd_fail(err, VD_ERR_PEER, "its section of the log is malformed");
    out->leaf.size = text ? out->bytes.size : (uint64_t)size;
    if (status == VD_OK && text &&
        !vd_log_section_hash(out->bytes.data, out->bytes.size, &out->leaf.digest))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    return status;
}

static vd_status read_answer(const json_t *body, vd_section_proof *out, vd_err *err) {
    if (!vd_json_get_hash(body, "run", &out->run) ||
        !vd_json_get_hash(body, "tree", &out->tree_root) ||
        !vd_take_path(json_object_get(body, "path"), &out->section) ||
        !vd_take_path(json_object_get(body, "logs"), &out->step))
        return vd_fail(err, VD_ERR_PEER, "its section of the log is malformed");
    return read_leaf(body, out, err);
}

/* The trainer's value is possible: judges whether its log names this value. */
static void judge_log(vd_referee *r, const vd_log_section *section) {
    vd_place *at = r->place;
    const vd_possible *v = &r->possible;
    const vd_program_rounding *rounding = &r->program->rounding;
    const double threshold = vd_threshold_at(
        rounding->threshold[vd_node_stored(r->graph, r->record)->op], rounding->bits, v->bits);
    const vd_told told = vd_possible_told(v, section, threshold, r->element % VD_LOG_BLOCK);
    const int64_t place = vd_possible_place(v, at->value[TRAINER]);
    at->logged_as = told.missing           ? VD_LOGGED_NOTHING
                    : told.low > told.high ? VD_LOGGED_OTHER
                                           : VD_LOGGED_RANGE;
    at->logged[0] = vd_possible_word(v, told.low);
    at->logged[1] = vd_possible_word(v, told.high);
    char stated[VD_F32_TEXT], least[VD_F32_TEXT], greatest[VD_F32_TEXT];
    vd_place_text(at, at->value[TRAINER], stated);
    vd_place_text(at, at->possible[0], least);
    vd_place_text(at, at->possible[1], greatest);
    if (told.missing)
        vd_convict(
            r, TRAINER, VD_GRADE_LOG_INCOMPLETE,
            "element %lld of %s could have been rounded to %s up to %s; its log does not say to "
            "which",
            (long long)r->element, at->node_name, least, greatest);
    else if (place < told.low || place > told.high)
        vd_convict(r, TRAINER, VD_GRADE_CONTRADICTION,
                   "element %lld of %s is %s, and its log says otherwise", (long long)r->element,
                   at->node_name, stated);
    else
        vd_dismiss(r, AUDITOR, "the trainer's value is possible, and what its log says");
}

static void take_section(vd_referee *r, const vd_section_proof *a, const vd_log_run *run) {
    const uint64_t elements = (uint64_t)ro_shape_numel(&vd_node_stored(r->graph, r->record)->shape);
    const vd_log_node block =
        vd_log_block_of(r->record, elements, (uint64_t)r->element / VD_LOG_BLOCK);
    vd_log_section section = {0};
    vd_err err = {0};
    vd_status status = vd_log_section_decode(a->bytes.data, (size_t)a->leaf.size, run->encoding,
                                             &block, &section, &err);
    if (status == VD_OK)
        judge_log(r, &section);
    else if (status == VD_ERR_PEER)
        vd_convict(r, TRAINER, VD_GRADE_BAD_PROOF, "its log is against the rules: %.160s",
                   err.text);
    else
        vd_trouble(r, err.text);
    vd_log_section_free(&section);
}

void vd_section_take(vd_referee *r) {
    vd_section_proof a = {.run = {{0}}};
    vd_log_run run;
    vd_err err = {0};
    const uint32_t p = r->source;
    if (!r->party[p].body) {
        vd_ask_the_other(r, "did not give a section of the agreed log");
        return;
    }
    vd_status status = read_answer(r->party[p].body, &a, &err);
    if (status == VD_OK)
        status = vd_section_verify(r->program, &r->program_hash, r->step, r->wanted[0], &a,
                                   &r->party[TRAINER].logs, &run, &err);
    if (status == VD_OK)
        take_section(r, &a, &run);
    else if (status == VD_ERR_PEER)
        vd_convict(r, p, VD_GRADE_BAD_PROOF, "its section does not lead to the agreed log: %.120s",
                   err.text);
    else
        vd_trouble(r, err.text);
    vd_buf_free(&a.bytes);
}
