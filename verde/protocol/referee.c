/* The referee's engine: phase by phase, a round of questions in each, and the outcome at the end.
 * PROTOCOL.md section 5. */
#include "verde/protocol/referee.h"

#include <stdlib.h>
#include <string.h>

#include "verde/exec/exec.h"
#include "verde/protocol/dispute.h"

/* ---- life ---- */

static vd_status enrol_party(vd_referee *r, uint32_t p, const vd_public_key *key, vd_err *err) {
    r->party[p].key = *key;
    r->party[p].record = calloc(1, sizeof *r->party[p].record);
    return r->party[p].record ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

static vd_status enrol_parties(vd_referee *r, const vd_assignment *a, const vd_part *part,
                               vd_err *err) {
    const bool game = part->scope == VD_SCOPE_GAME;
    vd_status status = VD_OK;
    r->parties = r->outcome.party_count = game ? 2 : a->provider_count;
    for (uint32_t p = 0; p < r->parties && status == VD_OK; p++)
        status = enrol_party(r, p, &a->provider[game ? part->provider[p] : p], err);
    return status;
}

/* Starts a game from two claims that differ. */
static void start_game(vd_referee *r, const vd_part *part) {
    for (uint32_t p = 0; p < r->parties; p++) {
        r->party[p].root = r->outcome.party[p].run_root = part->root[p];
        r->outcome.party[p].claimed = true;
        r->party[p].run_name = part->run_name[p];
        r->party[p].again = part->again[p];
        r->party[p].said = part->said[p];
    }
    vd_dispute_runs(r);
}

static void start_scope(vd_referee *r, const vd_assignment *a, const vd_part *part) {
    r->scope = part->scope;
    r->game = part->game;
    if (r->scope == VD_SCOPE_CRUMB)
        r->crumb = *part->crumb;
    r->may_challenge = a->challenge && r->scope == VD_SCOPE_TWO;
    r->phase = r->scope == VD_SCOPE_CONTEST ? VD_PHASE_CONTEST : VD_PHASE_COMMIT;
    if (r->scope == VD_SCOPE_GAME)
        start_game(r, part);
    for (uint32_t p = 0; p < r->parties && r->scope == VD_SCOPE_CONTEST; p++)
        r->party[p].again = part->challenger[p];
}

/* Returns the hash of the job, which the assignment must name. */
static vd_status hash_job(vd_referee *r, vd_hash *out, vd_err *err) {
    const vd_collection *c = r->options.collection;
    if (!c) {
        const vd_status status = vd_refuse_experimental(r->program, err);
        return status == VD_OK ? vd_program_hash(r->program, out, err) : status;
    }
    return vd_collection_commit(c->count, &c->programs, out)
               ? VD_OK
               : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

/* Rejects an assignment that does not fit the job. A collection can have neither rounding logs nor
 * a challenge. */
static vd_status check_kind(const vd_referee *r, const vd_assignment *a, vd_err *err) {
    const bool rounded = r->program && r->program->rounding.bits != 0;
    if (a->rounded != rounded)
        return vd_fail(err, VD_ERR_USAGE,
                       "the assignment must name a trainer if the job has "
                       "`rounding`, and only then");
    if (a->challenge && !r->program)
        return vd_fail(err, VD_ERR_USAGE,
                       "the assignment provides for challenges, which a job of many programs "
                       "has not");
    return VD_OK;
}

static vd_status referee_start(vd_referee *r, const vd_part *part, vd_err *err) {
    vd_assignment a;
    const vd_buf *payload = r->options.assignment;
    vd_status status = vd_assignment_read(payload->data, payload->size, &a, err);
    if (status == VD_OK)
        status = hash_job(r, &r->program_hash, err);
    if (status != VD_OK)
        return status;
    if (!vd_hash_equal(&a.program, &r->program_hash))
        return vd_fail(err, VD_ERR_USAGE, "the assignment is of another program");
    if (!vd_assignment_hash(payload->data, payload->size, &r->assignment))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    status = check_kind(r, &a, err);
    if (status != VD_OK)
        return status;
    if (a.audit != (part->scope == VD_SCOPE_CRUMB))
        return vd_fail(err, VD_ERR_USAGE, "the assignment is %s",
                       a.audit ? "of an audit" : "of a dispute");
    if (part->scope == VD_SCOPE_TWO && a.provider_count != 2)
        return vd_fail(err, VD_ERR_USAGE, "the assignment names %u providers, and not two",
                       a.provider_count);
    r->rounded = a.rounded;
    status = enrol_parties(r, &a, part, err);
    if (status == VD_OK)
        start_scope(r, &a, part);
    return status;
}

vd_status vd_referee_create(const vd_referee_options *options, vd_referee **out, vd_err *err) {
    const vd_part whole = {.scope = VD_SCOPE_TWO};
    return vd_referee_open(options, &whole, out, err);
}

vd_status vd_referee_open(const vd_referee_options *options, const vd_part *part, vd_referee **out,
                          vd_err *err) {
    vd_referee *r = calloc(1, sizeof *r);
    if (!r)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    r->options = *options;
    r->program = options->program;
    r->outcome.place = VD_NO_PLACE;
    r->place = &r->outcome.place;
    vd_status status = referee_start(r, part, err);
    if (status == VD_OK)
        *out = r;
    else
        vd_referee_destroy(r);
    return status;
}

static void drop_answer(vd_party *party) {
    json_decref(party->body);
    party->body = NULL;
    vd_buf_free(&party->payload);
    vd_buf_free(&party->note);
    party->payload = party->note = (vd_buf){0};
    party->asked = party->answered = false;
    party->why[0] = 0;
}

void vd_referee_destroy(vd_referee *r) {
    if (!r)
        return;
    for (uint32_t p = 0; p < VD_PARTIES_MAX; p++) {
        drop_answer(&r->party[p]);
        free(r->party[p].record);
    }
    for (size_t i = 0; i < r->statements; i++)
        vd_buf_free(&r->statement[i].stated.payload);
    free(r->statement);
    free(r->wanted);
    vd_program_free(&r->item_program);
    vd_inputs_forget(r);
    free(r->input);
    free(r);
}

const vd_outcome *vd_referee_outcome(const vd_referee *r) {
    return &r->outcome;
}

const vd_program *vd_referee_program(const vd_referee *r) {
    return r->program;
}

const vd_collection *vd_referee_collection(const vd_referee *r) {
    return r->options.collection;
}

const vd_statement *vd_referee_statements(const vd_referee *r, size_t *count) {
    *count = r->statements;
    return r->statement;
}

/* ---- asking ---- */

static bool hash_question(vd_referee *r, const vd_question *question, vd_buf *payload,
                          vd_hash *out) {
    return vd_question_write(question, &r->assignment, payload, &r->err) == VD_OK &&
           vd_hash_tagged("verde/question/1", payload->data, payload->size, out);
}

/* Hashes the question without the game's number, by which answers of earlier games are found. */
static bool hash_plain(vd_referee *r, vd_party *party, const vd_question *question) {
    vd_question plain = *question;
    vd_buf payload = {0};
    plain.game = 0;
    const bool ok = hash_question(r, &plain, &payload, &party->plain);
    vd_buf_free(&payload);
    return ok;
}

static vd_answer_most answer_most(const vd_referee *r, const vd_question *question) {
    const vd_job_programs job = {r->program, r->options.collection};
    return vd_answer_most_of(question, &job);
}

/* Puts a question to p. *recalled: an earlier game has its answer, so it is not asked again. */
static bool put_question(vd_referee *r, uint32_t p, const vd_question *question, bool *recalled) {
    vd_party *party = &r->party[p];
    drop_answer(party);
    party->asked = true;
    party->most = answer_most(r, question);
    if (r->scope == VD_SCOPE_GAME && !hash_plain(r, party, question))
        return false;
    *recalled = r->scope == VD_SCOPE_GAME && vd_recall(r, p);
    if (*recalled)
        return true;
    if (++party->questions > VD_ROUNDS_MAX)
        return false;
    if (party->questions > r->outcome.rounds)
        r->outcome.rounds = party->questions;
    if (!hash_question(r, question, &party->payload, &party->question))
        return false;
    return !r->options.key || vd_note_sign(r->options.key, VD_TYPE_QUESTION, party->payload.data,
                                           party->payload.size, &party->note, &r->err) == VD_OK;
}

static void name_hearing(const vd_referee *r, uint32_t p, vd_question *question) {
    const vd_party *challenger = r->party[p].again ? &r->party[p] : r->challenger;
    question->game = r->game;
    question->of_item = r->options.collection && r->program && question->kind >= VD_ASK_SUBRUN;
    question->item = question->of_item ? (uint64_t)r->place->item : 0;
    question->challenged = challenger != NULL;
    if (challenger)
        question->challenger = challenger->key;
    if (vd_is_crumb(r))
        vd_crumb_draw(r, question);
}

static vd_outgoing outgoing(const vd_referee *r, uint32_t p, const vd_question *question) {
    vd_outgoing out = {.party = p,
                       .question = r->party[p].question,
                       .note = &r->party[p].note,
                       .answer_max = r->party[p].most.note,
                       .work = vd_work_of(question),
                       .whole_run = question->kind == VD_ASK_CHALLENGE};
    vd_question_print(question, r->program, out.text, sizeof out.text);
    return out;
}

static size_t ask_phase(vd_referee *r, vd_outgoing *out) {
    size_t count = 0;
    r->round_start = r->statements;
    for (uint32_t p = 0; p < r->parties; p++) {
        vd_question question = {0};
        bool recalled = false;
        drop_answer(&r->party[p]);
        if (!vd_phase_rules[r->phase].ask(r, p, &question))
            continue;
        name_hearing(r, p, &question);
        if (!put_question(r, p, &question, &recalled))
            vd_trouble(r, "out of memory, or too many rounds");
        if (!recalled)
            out[count++] = outgoing(r, p, &question);
        vd_question_free(&question);
    }
    return count;
}

static bool pending(const vd_referee *r) {
    for (uint32_t p = 0; p < r->parties; p++)
        if (r->party[p].asked && !r->party[p].answered)
            return true;
    return false;
}

/* Returns true if all providers forfeited: then nothing is known about any claim. */
static bool are_all_silent(const vd_outcome *o) {
    for (uint32_t p = 0; p < o->party_count; p++)
        if (o->party[p].standing != VD_FORFEITED)
            return false;
    return true;
}

/* Ends the dispute: decides which claims are left and what the result is. */
static void conclude(vd_referee *r) {
    vd_outcome *o = &r->outcome;
    bool convicted = false, forfeited = false, dismissed = false;
    vd_challenge_conclude(r);
    for (uint32_t p = 0; p < r->parties; p++) {
        convicted |= o->party[p].standing == VD_CONVICTED;
        forfeited |= o->party[p].standing == VD_FORFEITED;
        dismissed |= o->party[p].standing == VD_DISMISSED;
        if (o->party[p].standing == VD_STANDS && o->party[p].claimed) {
            o->accepted = true;
            o->run_root = o->party[p].run_root;
        }
    }
    if (o->result == VD_RESULT_INCONCLUSIVE || o->challenge.end == VD_CHALLENGE_INCONCLUSIVE)
        o->accepted = false;
    if (are_all_silent(o))
        o->result = VD_RESULT_INCONCLUSIVE;
    if (o->result != VD_RESULT_INCONCLUSIVE)
        o->result = convicted   ? VD_RESULT_CONVICTED
                    : forfeited ? VD_RESULT_FORFEIT
                    : dismissed ? VD_RESULT_DISMISSED
                                : VD_RESULT_AGREED;
    r->phase = VD_PHASE_DONE;
}

/* Lets the phase judge its answers. A missing answer forfeits, except in phases that may ask the
 * other provider instead. After the commitments a provider reveals even if it stands alone: a
 * rival's silence must not cost it its claim. */
static void take_phase(vd_referee *r) {
    vd_phase phase = r->phase;
    bool may_be_silent =
        phase == VD_PHASE_INPUTS || phase == VD_PHASE_SECTION || phase >= VD_PHASE_CHALLENGE;
    for (uint32_t p = 0; p < r->parties && !may_be_silent; p++)
        if (r->party[p].asked && !r->party[p].body)
            vd_forfeit(r, p, r->party[p].why);
    if (vd_all_stand(r) || phase <= VD_PHASE_REVEAL || phase >= VD_PHASE_CHALLENGE)
        vd_phase_rules[phase].take(r);
    if (!vd_all_stand(r) && phase != VD_PHASE_COMMIT)
        r->phase = vd_challenge_due(r) ? VD_PHASE_CHALLENGE : VD_PHASE_DONE;
}

vd_status vd_referee_next(vd_referee *r, vd_outgoing out[VD_PARTIES_MAX], size_t *count,
                          vd_err *err) {
    *count = 0;
    while (r->phase != VD_PHASE_DONE && r->failed == VD_OK) {
        if (!r->waiting) {
            *count = ask_phase(r, out);
            r->waiting = true;
            if (*count && r->failed == VD_OK)
                return VD_OK;
        }
        if (pending(r))
            vd_trouble(r, "asked for the next questions before all answers were given");
        r->waiting = false;
        if (r->failed == VD_OK) /* after trouble while asking, nothing is judged */
            take_phase(r);
    }
    *count = 0;
    if (r->failed != VD_OK)
        return vd_fail(err, r->failed, "%s", r->err.text);
    conclude(r);
    return VD_OK;
}
