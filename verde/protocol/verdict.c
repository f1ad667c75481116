/* Writes verdicts. PROTOCOL.md section 7. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/exec.h"
#include "verde/protocol/verdict.h"
#include "verde/protocol/verdict_internal.h"

static json_t *note_object(const vd_buf *note) {
    json_t *out;
    return vd_json_read(note->data, note->size, VD_SMALL_ELEMENTS, &out, NULL) == VD_OK ? out
                                                                                        : NULL;
}

typedef struct {
    const vd_referee *referee;
    const uint32_t *provider; /* for each party of the referee, its number in the assignment */
} hearing;

/* A decision with all that it is based on. */
typedef struct {
    const char *predicate;     /* the predicate's type */
    const vd_program *program; /* NULL: the job is a collection */
    const vd_buf *assignment_note;
    const vd_outcome *outcome;
    const vd_crumb *place; /* only of a proof of fraud; else NULL */
    const vd_cost *cost;
    hearing hearing[VD_GAMES_MAX + 2]; /* in the order of the evidence */
    size_t hearings;
    vd_assignment assignment;
} decision;

static void put_json(vd_buf *out, json_t *value) {
    out->failed |= !vd_json_dump(value, out);
    json_decref(value);
}

/* Writes evidence as text at once: it is by far the largest part of a verdict. */
static void put_item(vd_buf *out, const vd_statement *s, const vd_public_key *key, uint32_t p) {
    char question[2 * VD_HASH_SIZE + 1];
    if (s->stated.payload.size == 0) {
        put_json(out, json_pack("{si so ss}", "provider", (int)p, "question",
                                vd_hash_text(&s->question), "absent", s->why));
        return;
    }
    vd_hex(s->question.b, VD_HASH_SIZE, question);
    vd_printf(out, "{\"provider\":%u,\"question\":\"%s\",\"statement\":", p, question);
    vd_note_join(VD_TYPE_ANSWER, key, s->stated.payload.data, s->stated.payload.size,
                 s->stated.signature, out);
    vd_printf(out, "}");
}

/* Writes the evidence of one hearing. *comma: items precede it, and a comma is needed. */
static void put_evidence_of(vd_buf *out, const decision *d, const hearing *h, bool *comma) {
    size_t count;
    const vd_statement *s = vd_referee_statements(h->referee, &count);
    for (size_t i = 0; i < count; i++, *comma = true) {
        const uint32_t p = h->provider[s[i].party];
        vd_printf(out, *comma ? "," : "");
        put_item(out, &s[i], &d->assignment.provider[p], p);
    }
}

static void put_evidence(vd_buf *out, const decision *d) {
    bool comma = false;
    for (size_t i = 0; i < d->hearings; i++)
        put_evidence_of(out, d, &d->hearing[i], &comma);
}

json_t *vd_level_seconds_json(const vd_cost *cost) {
    json_t *out = NULL;
    for (int i = 0; i < VD_LEVELS; i++) {
        if (cost->level_seconds[i] <= 0)
            continue;
        out = out ? out : json_object();
        json_object_set_new(out, vd_level_name(i), json_real(cost->level_seconds[i]));
    }
    return out;
}

static json_t *cost_json(const vd_cost *cost) {
    json_t *levels = vd_level_seconds_json(cost);
    json_t *out = json_pack("{sI sI sf sf sI}", "bytes_in", (json_int_t)cost->bytes_in, "bytes_out",
                            (json_int_t)cost->bytes_out, "seconds", cost->seconds, "cpu_seconds",
                            cost->cpu_seconds, "peak_bytes", (json_int_t)cost->peak_bytes);
    if (levels)
        json_object_set_new(out, VD_COST_LEVELS, levels);
    return out;
}

static json_t *collection_json(const decision *d) {
    const vd_referee *dispute[VD_GAMES_MAX + 2];
    for (size_t i = 0; i < d->hearings; i++)
        dispute[i] = d->hearing[i].referee;
    return vd_verdict_items_json(vd_referee_collection(dispute[0]), dispute, d->hearings);
}

static void put_program(vd_buf *out, const vd_program *program) {
    vd_buf bytes = {0};
    vd_program_encode(program, &bytes);
    vd_printf(out, ",\"program\":\"");
    vd_put_base64(out, bytes.data, bytes.size);
    vd_printf(out, "\"");
    out->failed |= !vd_buf_ok(&bytes);
    vd_buf_free(&bytes);
}

static void put_predicate(vd_buf *out, const decision *d) {
    vd_printf(out, "{\"assignment\":");
    put_json(out, note_object(d->assignment_note));
    if (d->program) {
        put_program(out, d->program);
    } else {
        vd_printf(out, ",\"collection\":");
        put_json(out, collection_json(d));
    }
    vd_printf(out, ",\"cost\":");
    put_json(out, cost_json(d->cost));
    vd_printf(out, ",\"outcome\":");
    put_json(out, vd_outcome_json(d->outcome, &d->assignment));
    vd_printf(out, ",\"evidence\":[");
    put_evidence(out, d);
    vd_printf(out, "]");
    if (d->place) {
        vd_printf(out, ",\"place\":");
        put_json(out, vd_crumb_json(d->place));
    }
    vd_printf(out, "}");
}

static void put_statement(vd_buf *out, const decision *d) {
    vd_printf(out, "{\"_type\":\"%s\",\"predicateType\":\"%s\",\"subject\":", VD_STATEMENT_TYPE,
              d->predicate);
    put_json(out, json_pack("[{ss s{so}}]", "name", "program", "digest", "sha256",
                            vd_hash_text(&d->assignment.program)));
    vd_printf(out, ",\"predicate\":");
    put_predicate(out, d);
    vd_printf(out, "}");
}

static vd_status write_decision(const vd_key *referee, decision *d, vd_buf *out, vd_err *err) {
    vd_buf payload = {0}, text = {0};
    vd_status status =
        vd_verdict_assignment(d->assignment_note, NULL, &payload, &d->assignment, err);
    vd_buf_free(&payload);
    if (status != VD_OK)
        return status;
    vd_json_start();
    put_statement(&text, d);
    status = vd_buf_ok(&text) && !vd_json_failed()
                 ? vd_note_sign(referee, VD_TYPE_VERDICT, text.data, text.size, out, err)
                 : vd_fail(err, VD_ERR_LOCAL, "verdict: out of memory");
    vd_buf_free(&text);
    if (status == VD_OK && out->size > vd_verdict_bytes_of(d->outcome))
        status =
            vd_fail(err, VD_ERR_LOCAL, "verdict: %zu bytes, more than a verifier reads", out->size);
    return status;
}

vd_status vd_verdict_write(const vd_key *referee, const vd_program *program,
                           const vd_buf *assignment_note, const vd_referee *dispute,
                           const vd_cost *cost, vd_buf *out, vd_err *err) {
    static const uint32_t provider[2] = {0, 1};
    decision d = {.predicate = VD_PREDICATE,
                  .program = vd_referee_collection(dispute) ? NULL : program,
                  .assignment_note = assignment_note,
                  .outcome = vd_referee_outcome(dispute),
                  .cost = cost,
                  .hearing = {{.referee = dispute, .provider = provider}},
                  .hearings = 1};
    return write_decision(referee, &d, out, err);
}

vd_status vd_verdict_write_many(const vd_key *referee, const vd_program *program,
                                const vd_buf *assignment_note, const vd_tournament *tournament,
                                const vd_cost *cost, vd_buf *out, vd_err *err) {
    decision d = {.predicate = VD_PREDICATE_MANY,
                  .assignment_note = assignment_note,
                  .outcome = vd_tournament_outcome(tournament),
                  .cost = cost};
    const vd_sitting *sitting = vd_tournament_sittings(tournament, &d.hearings);
    for (size_t i = 0; i < d.hearings; i++)
        d.hearing[i] = (hearing){sitting[i].referee, sitting[i].provider};
    d.program = vd_referee_collection(sitting->referee) ? NULL : program;
    return write_decision(referee, &d, out, err);
}

vd_status vd_fraud_write(const vd_key *checker, const vd_program *program,
                         const vd_buf *assignment_note, const vd_referee *crumb,
                         const vd_crumb *place, const vd_cost *cost, vd_buf *out, vd_err *err) {
    static const uint32_t provider[1] = {0};
    decision d = {.predicate = VD_PREDICATE_FRAUD,
                  .program = program,
                  .assignment_note = assignment_note,
                  .outcome = vd_referee_outcome(crumb),
                  .place = place,
                  .cost = cost,
                  .hearing = {{.referee = crumb, .provider = provider}},
                  .hearings = 1};
    return write_decision(checker, &d, out, err);
}
