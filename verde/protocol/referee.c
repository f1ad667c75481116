/* The engine: phases in turn, answers in, statements kept, the outcome at the end. PROTOCOL.md
 * section 5. */
#include "verde/protocol/referee.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "verde/exec/exec.h"
#include "verde/protocol/dispute.h"

const char *vd_grade_name(vd_grade grade) {
    static const char *const names[] = {
        "none",          "wrong-output",   "wrong-input", "wrong-graph", "bad-proof",
        "contradiction", "log-incomplete", "conceded",    "timeout",     "dismissed"};
    return names[grade];
}

const char *vd_result_name(vd_result result) {
    static const char *const names[] = {"none",    "agreed",       "convicted",
                                        "forfeit", "inconclusive", "dismissed"};
    return names[result];
}

const char *vd_challenge_name(vd_challenge_end end) {
    static const char *const names[] = {"none",   "declined", "confirmed",
                                        "failed", "upheld",   "inconclusive"};
    return names[end];
}

/* ---- judgements ---- */

void vd_story(vd_referee *r, const char *format, ...) {
    char line[512];
    va_list args;
    if (!r->options.story)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    r->options.story(r->options.user, line);
}

/* In the second hearing the challenger is judged for its second run; it is convicted already. A
 * judgement that is proven takes the place of one that is not; else the first one stays. */
static void judge(vd_referee *r, uint32_t p, vd_grade grade, const char *why) {
    struct vd_party_outcome *party = &r->outcome.party[p];
    struct vd_challenge_outcome *challenge = &r->outcome.challenge;
    bool second = challenge->end != VD_CHALLENGE_NONE && r->challenger == &r->party[p];
    vd_grade *stated = second ? &challenge->grade : &party->grade;
    char *reason = second ? challenge->reason : party->reason;
    r->party[p].out = true;
    if (*stated != VD_GRADE_NONE && (*stated != VD_GRADE_TIMEOUT || grade == VD_GRADE_TIMEOUT))
        return;
    if (!second)
        party->standing = grade == VD_GRADE_TIMEOUT     ? VD_FORFEITED
                          : grade == VD_GRADE_DISMISSED ? VD_DISMISSED
                                                        : VD_CONVICTED;
    *stated = grade;
    snprintf(reason, sizeof party->reason, "%s", why);
}

void vd_convict(vd_referee *r, uint32_t p, vd_grade grade, const char *format, ...) {
    char why[sizeof r->outcome.party[p].reason];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    judge(r, p, grade, why);
}

void vd_forfeit(vd_referee *r, uint32_t p, const char *why) {
    judge(r, p, VD_GRADE_TIMEOUT, why);
}

void vd_dismiss(vd_referee *r, uint32_t p, const char *why) {
    judge(r, p, VD_GRADE_DISMISSED, why);
}

void vd_trouble(vd_referee *r, const char *what) {
    if (r->failed == VD_OK)
        r->failed = vd_fail(&r->err, VD_ERR_LOCAL, "referee: %s", what);
}

void vd_inconclusive(vd_referee *r, const char *why) {
    if (!r->challenger) /* else somebody is convicted already */
        r->outcome.result = VD_RESULT_INCONCLUSIVE;
    vd_story(r, "%s", why);
    r->phase = VD_PHASE_DONE;
}

bool vd_all_stand(const vd_referee *r) {
    for (uint32_t p = 0; p < r->parties; p++)
        if (r->party[p].out)
            return false;
    return true;
}

/* ---- life ---- */

static vd_status start(vd_referee *r, vd_err *err) {
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
    vd_status status = start(r, err);
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

/* Answers that are missing cost the claim, except where a phase asks one provider after the other.
 * Whoever stands after the commitments reveals, alone or not: a rival's silence must not cost it
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

/* ---- answers ---- */

/* Within a round in the order of the questions, whichever answer came first: what verify expects.
 */
static vd_statement *place_statement(vd_referee *r, uint32_t p) {
    size_t at = r->statements++;
    for (; at > r->round_start && r->statement[at - 1].party > p; at--)
        r->statement[at] = r->statement[at - 1];
    r->statement[at] = (vd_statement){.party = p, .question = r->party[p].question};
    return &r->statement[at];
}

static vd_statement *keep_statement(vd_referee *r, uint32_t p) {
    if (r->statements == r->statements_capacity) {
        size_t capacity = r->statements_capacity ? 2 * r->statements_capacity : 32;
        vd_statement *grown = realloc(r->statement, capacity * sizeof *grown);
        if (!grown) {
            vd_trouble(r, "out of memory");
            return NULL;
        }
        r->statement = grown;
        r->statements_capacity = capacity;
    }
    return place_statement(r, p);
}

/* Goes into the verdict, and may quote a peer: printable ASCII, so that no cut makes it invalid
 * UTF-8. */
static void set_why(vd_party *party, const char *prefix, const char *why) {
    snprintf(party->why, sizeof party->why, "%s%.100s", prefix, why);
    for (char *c = party->why; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

void vd_referee_no_answer(vd_referee *r, uint32_t p, const char *why) {
    vd_party *party = &r->party[p];
    vd_statement *s = keep_statement(r, p);
    party->answered = true;
    set_why(party, "", why);
    if (s)
        memcpy(s->why, party->why, sizeof s->why);
}

/* Concessions and refusals are the same in every phase. */
static void take_common(vd_referee *r, uint32_t p) {
    vd_party *party = &r->party[p];
    const char *refusal = json_string_value(json_object_get(party->body, "refusal"));
    if (json_is_true(json_object_get(party->body, "concede")))
        vd_convict(r, p, VD_GRADE_CONCEDED, "withdrew its own claim");
    if (refusal)
        set_why(party, "refused to answer: ", refusal);
    if (refusal || !json_is_object(party->body)) {
        json_decref(party->body);
        party->body = NULL;
    }
}

void vd_referee_answer(vd_referee *r, uint32_t p, const void *note, size_t size) {
    vd_party *party = &r->party[p];
    vd_err err = {0};
    vd_status status = vd_answer_read(note, size, &party->key, &r->assignment, &party->question,
                                      party->elements, &party->body, &err);
    if (status == VD_ERR_LOCAL)
        vd_trouble(r, err.text);
    if (status != VD_OK) {
        char why[128];
        snprintf(why, sizeof why, "no signed answer: %.80s", err.text);
        vd_referee_no_answer(r, p, why);
        return;
    }
    vd_statement *s = keep_statement(r, p);
    if (s)
        vd_put(&s->note, note, size);
    if (s && !vd_buf_ok(&s->note))
        vd_trouble(r, "out of memory");
    party->answered = true;
    snprintf(party->why, sizeof party->why, "no answer");
    take_common(r, p);
}
