/* The engine: phases in turn, a round of questions each, the outcome at the end. PROTOCOL.md
 * section 5. */
#include "verde/protocol/referee.h"

#include <stdlib.h>
#include <string.h>

#include "verde/exec/exec.h"
#include "verde/protocol/dispute.h"

/* ---- life ---- */

static vd_status referee_start(vd_referee *r, vd_err *err) {
    vd_assignment a;
    const vd_buf *payload = r->options.assignment;
    vd_status status = vd_assignment_read(payload->data, payload->size, &a, err);
    if (status == VD_OK)
        status = vd_program_hash(r->program, &r->program_hash, err);
    if (status != VD_OK)
        return status;
    if (!vd_hash_equal(&a.program, &r->program_hash))
        return vd_fail(err, VD_ERR_USAGE, "the assignment is of another program");
    if (!vd_assignment_hash(payload->data, payload->size, &r->assignment))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (a.rounded != (r->program->rounding.bits != 0))
        return vd_fail(err, VD_ERR_USAGE,
                       "the assignment must name a trainer if the job has "
                       "`rounding`, and only then");
    r->may_challenge = a.challenge;
    r->rounded = a.rounded;
    r->parties = r->outcome.party_count = a.provider_count;
    for (uint32_t p = 0; p < r->parties; p++) {
        r->party[p].key = a.provider[p];
        r->party[p].record = calloc(1, sizeof *r->party[p].record);
        if (!r->party[p].record)
            return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    }
    return VD_OK;
}

vd_status vd_referee_create(const vd_referee_options *options, vd_referee **out, vd_err *err) {
    vd_referee *r = calloc(1, sizeof *r);
    if (!r)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    r->options = *options;
    r->program = options->program;
    r->phase = VD_PHASE_COMMIT;
    r->outcome.place = VD_NO_PLACE;
    r->place = &r->outcome.place;
    vd_status status = referee_start(r, err);
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
        vd_buf_free(&r->statement[i].note);
    free(r->statement);
    free(r->wanted);
    vd_inputs_forget(r);
    free(r->input);
    free(r);
}

const vd_outcome *vd_referee_outcome(const vd_referee *r) {
    return &r->outcome;
}

const vd_statement *vd_referee_statements(const vd_referee *r, size_t *count) {
    *count = r->statements;
    return r->statement;
}

/* ---- asking ---- */

static bool put_question(vd_referee *r, uint32_t p, const vd_question *question) {
    vd_party *party = &r->party[p];
    drop_answer(party);
    party->asked = true;
    party->elements = vd_answer_elements(question);
    if (++party->questions > VD_ROUNDS_MAX)
        return false;
    if (party->questions > r->outcome.rounds)
        r->outcome.rounds = party->questions;
    if (vd_question_write(question, &r->assignment, &party->payload, &r->err) != VD_OK ||
        !vd_hash_tagged("verde/question/1", party->payload.data, party->payload.size,
                        &party->question))
        return false;
    return !r->options.key || vd_note_sign(r->options.key, VD_TYPE_QUESTION, party->payload.data,
                                           party->payload.size, &party->note, &r->err) == VD_OK;
}

static size_t ask_phase(vd_referee *r, vd_outgoing *out) {
    size_t count = 0;
    r->round_start = r->statements;
    for (uint32_t p = 0; p < r->parties; p++) {
        vd_question question = {0};
        drop_answer(&r->party[p]);
        if (!vd_phase_rules[r->phase].ask(r, p, &question))
            continue;
        if (r->challenger) {
            question.challenged = true;
            question.challenger = r->challenger->key;
        }
        if (!put_question(r, p, &question))
            vd_trouble(r, "out of memory, or too many rounds");
        out[count] = (vd_outgoing){p,
                                   r->party[p].question,
                                   &r->party[p].note,
                                   vd_answer_bytes(&question),
                                   question.kind == VD_ASK_CHALLENGE,
                                   ""};
        vd_question_print(&question, r->program, out[count].text, sizeof out[count].text);
        vd_question_free(&question);
        count++;
    }
    return count;
}

static bool pending(const vd_referee *r) {
    for (uint32_t p = 0; p < r->parties; p++)
        if (r->party[p].asked && !r->party[p].answered)
            return true;
    return false;
}

/* The end: which claims are left, and what they amount to. */
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
    if (o->result != VD_RESULT_INCONCLUSIVE)
        o->result = convicted   ? VD_RESULT_CONVICTED
                    : forfeited ? VD_RESULT_FORFEIT
                    : dismissed ? VD_RESULT_DISMISSED
                                : VD_RESULT_AGREED;
    r->phase = VD_PHASE_DONE;
}

/* A missing answer costs the claim, except where a phase asks one provider after the other. Who
 * stands after the commitments reveals even if it stands alone: a rival's silence must not cost it
 * its claim. */
static void take_phase(vd_referee *r) {
    vd_phase phase = r->phase;
    bool may_be_silent =
        phase == VD_PHASE_INPUTS || phase == VD_PHASE_SECTION || phase == VD_PHASE_CHALLENGE;
    for (uint32_t p = 0; p < r->parties && !may_be_silent; p++)
        if (r->party[p].asked && !r->party[p].body)
            vd_forfeit(r, p, r->party[p].why);
    if (vd_all_stand(r) || phase <= VD_PHASE_REVEAL || phase == VD_PHASE_CHALLENGE)
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
        if (r->failed == VD_OK) /* trouble while asking: nothing that was computed may judge */
            take_phase(r);
    }
    *count = 0;
    if (r->failed != VD_OK)
        return vd_fail(err, r->failed, "%s", r->err.text);
    conclude(r);
    return VD_OK;
}
