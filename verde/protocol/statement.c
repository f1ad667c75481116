/* Takes answers as they arrive, and keeps them as statements for the verdict. PROTOCOL.md section
 * 5. */
#include <stdlib.h>
#include <string.h>

#include "verde/protocol/dispute.h"
#include "verde/protocol/referee.h"

/* Adds a statement. Within a round statements are ordered by provider, as vd_verdict_verify
 * expects, not by arrival. */
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

/* Records why there is no answer, for the verdict. The text may come from a peer, so it is reduced
 * to printable ASCII, which a cut cannot make invalid. */
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

/* Handles a concession or a refusal, which are the same in every phase. */
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

static vd_status read_answer(const vd_referee *r, vd_party *party, const void *note, size_t size,
                             vd_stated *out, vd_err *err) {
    const vd_answer_to asked = {&party->key, &r->assignment, &party->question, party->most};
    vd_status status = vd_answer_read(note, size, &asked, out, &party->body, err);
    if (status != VD_OK || r->scope != VD_SCOPE_GAME ||
        out->payload.size <= VD_GAME_ANSWER_BYTES - party->bytes)
        return status;
    vd_buf_free(&out->payload);
    json_decref(party->body);
    party->body = NULL;
    return vd_fail(err, VD_ERR_PEER, "its answers in one game have more than %d bytes",
                   VD_GAME_ANSWER_BYTES);
}

/* Stores an answer, so that no later game asks for it again. */
static void remember(vd_referee *r, vd_party *party, const vd_statement *s) {
    const vd_said_answer answer = {party->plain, s->stated.payload};
    party->bytes += s->stated.payload.size;
    if (r->scope == VD_SCOPE_GAME && !vd_said_put(party->said, &answer))
        vd_trouble(r, "out of memory");
}

static void begin_to_judge(vd_referee *r, uint32_t p) {
    r->party[p].answered = true;
    set_why(&r->party[p], "", "no answer");
    take_common(r, p);
}

bool vd_recall(vd_referee *r, uint32_t p) {
    vd_party *party = &r->party[p];
    vd_err err = {0};
    const vd_said_answer *said = vd_said_find(party->said, &party->plain);
    if (!said)
        return false;
    if (vd_answer_body(&said->payload, party->most.elements, &party->body, &err) != VD_OK)
        vd_trouble(r, err.text);
    begin_to_judge(r, p);
    return true;
}

void vd_referee_answer(vd_referee *r, uint32_t p, const void *note, size_t size) {
    vd_party *party = &r->party[p];
    vd_stated stated = {.payload = {0}};
    vd_err err = {0};
    vd_status status = read_answer(r, party, note, size, &stated, &err);
    if (status == VD_ERR_LOCAL)
        vd_trouble(r, err.text);
    if (status != VD_OK) {
        char why[128];
        snprintf(why, sizeof why, "no signed answer: %.80s", err.text);
        vd_referee_no_answer(r, p, why);
        return;
    }
    vd_statement *s = keep_statement(r, p);
    if (s) {
        s->stated = stated;
        remember(r, party, s);
    } else {
        vd_buf_free(&stated.payload);
    }
    begin_to_judge(r, p);
}

const vd_statement *vd_referee_last(const vd_referee *r, uint32_t p) {
    for (size_t i = r->statements; i > 0; i--)
        if (r->statement[i - 1].party == p)
            return &r->statement[i - 1];
    return NULL;
}
