/* Writing verdicts. PROTOCOL.md section 7. */
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

static void add_evidence(json_t *list, const vd_referee *dispute, const uint32_t *provider) {
    size_t count;
    const vd_statement *s = vd_referee_statements(dispute, &count);
    for (size_t i = 0; i < count; i++) {
        const uint32_t p = provider ? provider[s[i].party] : s[i].party;
        json_t *item =
            json_pack("{si so}", "provider", (int)p, "question", vd_json_hash(&s[i].question));
        if (s[i].note.size)
            json_object_set_new(item, "statement", note_object(&s[i].note));
        else
            json_object_set_new(item, "absent", json_string(s[i].why));
        json_array_append_new(list, item);
    }
}

static json_t *evidence_of_two(const vd_referee *dispute) {
    json_t *list = json_array();
    add_evidence(list, dispute, NULL);
    return list;
}

static json_t *evidence_of_many(const vd_tournament *tournament) {
    size_t count;
    const vd_sitting *sitting = vd_tournament_sittings(tournament, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        add_evidence(list, sitting[i].referee, sitting[i].provider);
    return list;
}

static json_t *cost_json(const vd_cost *cost) {
    return json_pack("{sI sI sf sf sI}", "bytes_in", (json_int_t)cost->bytes_in, "bytes_out",
                     (json_int_t)cost->bytes_out, "seconds", cost->seconds, "cpu_seconds",
                     cost->cpu_seconds, "peak_bytes", (json_int_t)cost->peak_bytes);
}

/* What is decided, and from what. Takes both objects. */
typedef struct {
    const char *predicate;
    json_t *outcome, *evidence;
    size_t bytes_max; /* of the verdict */
    const char *job;  /* "program", or "collection" */
    json_t *programs;
} vd_decision;

static json_t *statement_json(const vd_assignment *a, const vd_buf *assignment_note,
                              const vd_decision *decision, const vd_cost *cost) {
    json_t *subject =
        json_pack("[{ss s{so}}]", "name", "program", "digest", "sha256", vd_json_hash(&a->program));
    json_t *predicate = json_pack("{so so so so so}", "assignment", note_object(assignment_note),
                                  decision->job, decision->programs, "outcome", decision->outcome,
                                  "evidence", decision->evidence, "cost", cost_json(cost));
    return json_pack("{ss so ss so}", "_type", VD_STATEMENT_TYPE, "subject", subject,
                     "predicateType", decision->predicate, "predicate", predicate);
}

static void put_programs(vd_decision *out, const vd_program *program, const vd_collection *c,
                         const vd_referee *const *dispute, size_t count) {
    out->job = c ? "collection" : "program";
    out->programs = c ? vd_verdict_items_json(c, dispute, count) : vd_verdict_program(program);
}

static void put_programs_of_many(vd_decision *out, const vd_program *program,
                                 const vd_tournament *tournament) {
    size_t count;
    const vd_sitting *sitting = vd_tournament_sittings(tournament, &count);
    const vd_referee *dispute[VD_GAMES_MAX + 2];
    for (size_t i = 0; i < count; i++)
        dispute[i] = sitting[i].referee;
    put_programs(out, program, vd_referee_collection(dispute[0]), dispute, count);
}

static vd_status sign(const vd_key *referee, json_t *root, size_t bytes_max, vd_buf *out,
                      vd_err *err) {
    vd_buf text = {0};
    vd_status status = vd_json_dump(root, &text) && !vd_json_failed()
                           ? vd_note_sign(referee, VD_TYPE_VERDICT, text.data, text.size, out, err)
                           : vd_fail(err, VD_ERR_LOCAL, "verdict: out of memory");
    if (status == VD_OK && out->size > bytes_max)
        status =
            vd_fail(err, VD_ERR_LOCAL, "verdict: %zu bytes, more than a verifier reads", out->size);
    vd_buf_free(&text);
    return status;
}

vd_status vd_verdict_write(const vd_key *referee, const vd_program *program,
                           const vd_buf *assignment_note, const vd_referee *dispute,
                           const vd_cost *cost, vd_buf *out, vd_err *err) {
    vd_assignment a;
    vd_buf payload = {0};
    vd_status status = vd_verdict_assignment(assignment_note, &payload, &a, err);
    vd_buf_free(&payload);
    if (status != VD_OK)
        return status;
    vd_json_start();
    vd_decision decision = {VD_PREDICATE,
                            vd_outcome_json(vd_referee_outcome(dispute), &a),
                            evidence_of_two(dispute),
                            VD_VERDICT_BYTES_MAX,
                            NULL,
                            NULL};
    put_programs(&decision, program, vd_referee_collection(dispute), &dispute, 1);
    json_t *root = statement_json(&a, assignment_note, &decision, cost);
    status = sign(referee, root, decision.bytes_max, out, err);
    json_decref(root);
    return status;
}

vd_status vd_verdict_write_many(const vd_key *referee, const vd_program *program,
                                const vd_buf *assignment_note, const vd_tournament *tournament,
                                const vd_cost *cost, vd_buf *out, vd_err *err) {
    const vd_outcome *outcome = vd_tournament_outcome(tournament);
    vd_assignment a;
    vd_buf payload = {0};
    vd_status status = vd_verdict_assignment(assignment_note, &payload, &a, err);
    vd_buf_free(&payload);
    if (status != VD_OK)
        return status;
    vd_json_start();
    vd_decision decision = {VD_PREDICATE_MANY,
                            vd_outcome_json(outcome, &a),
                            evidence_of_many(tournament),
                            vd_verdict_bytes_max(outcome->game_count),
                            NULL,
                            NULL};
    put_programs_of_many(&decision, program, tournament);
    json_t *root = statement_json(&a, assignment_note, &decision, cost);
    status = sign(referee, root, decision.bytes_max, out, err);
    json_decref(root);
    return status;
}
