/* Answers as they arrive, and the statements that are kept of them for the verdict. PROTOCOL.md
 * section 5. */
#include <stdlib.h>
#include <string.h>

#include "verde/protocol/dispute.h"
#include "verde/protocol/referee.h"

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
