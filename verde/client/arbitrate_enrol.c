/* Finds out who the providers are, and assigns the dispute to them. PROTOCOL.md 3.3, 8.2. */
#include <openssl/rand.h>
#include <string.h>

#include "verde/client/arbitrate.h"

static vd_status no_key(vd_arbitration *x, uint32_t p) {
    return vd_fail(x->err, VD_ERR_USAGE,
                   "%s: `#KEY` is missing, and no authority vouches for the certificate; give the "
                   "URL as its `verde serve` prints it, which ends in `#` and the provider's key "
                   "(also in key.pub beside its key.pem)",
                   x->endpoint[p].url);
}

static vd_status ask_key(vd_arbitration *x, uint32_t p) {
    vd_exchange exchange = {
        .to = &x->endpoint[p], .path = "/v1/provider", .deadline_ms = 10000, .answer_max = 65536};
    vd_answer answer = {0};
    vd_client_ask(x->client, 1, &exchange, &answer);
    vd_status status = answer.err.status;
    json_t *root = NULL;
    if (status == VD_OK)
        status = vd_json_read(answer.body.data, answer.body.size, VD_SMALL_ELEMENTS, &root, NULL);
    const char *hex = json_string_value(json_object_get(root, "key"));
    if (answer.untrusted)
        status = no_key(x, p);
    else if (answer.err.status != VD_OK)
        status = vd_fail(x->err, VD_ERR_LOCAL, "%s", answer.err.text); /* names the URL */
    else if (!hex || vd_public_key_read(hex, &x->assignment.provider[p], NULL) != VD_OK)
        status = vd_fail(x->err, VD_ERR_LOCAL, "%s: tells no key", x->endpoint[p].url);
    json_decref(root);
    vd_answer_free(&answer);
    return status;
}

/* Rejects a key that occurs twice: a provider that is named twice, or by two URLs. */
static vd_status enrol_once(vd_arbitration *x, uint32_t p) {
    for (uint32_t q = 0; q < p; q++)
        if (memcmp(&x->assignment.provider[q], &x->assignment.provider[p], VD_KEY_SIZE) == 0)
            return vd_fail(x->err, VD_ERR_USAGE,
                           "providers %u and %u (%s and %s) have the same key: name each once",
                           q + 1, p + 1, x->endpoint[q].url, x->endpoint[p].url);
    return VD_OK;
}

vd_status vd_enrol(vd_arbitration *x) {
    for (uint32_t p = 0; p < x->a->urls; p++) {
        vd_status status = vd_endpoint_parse(x->a->url[p], &x->endpoint[p], x->err);
        x->assignment.provider[p] = x->endpoint[p].key;
        if (status == VD_OK && !x->endpoint[p].pinned)
            status = ask_key(x, p);
        if (status == VD_OK)
            status = vd_public_key_check(&x->assignment.provider[p], x->err);
        if (status == VD_OK)
            status = enrol_once(x, p);
        if (status != VD_OK)
            return status;
    }
    x->assignment.provider_count = x->a->urls;
    return VD_OK;
}

static vd_status name_job(vd_arbitration *x, const vd_program *program) {
    if (program)
        return vd_program_hash(program, &x->assignment.program, x->err);
    return vd_collection_hash(x->items.program, x->items.count, &x->assignment.program, x->err);
}

static vd_status new_assignment(vd_arbitration *x, const vd_program *program) {
    vd_key_public(x->key, &x->assignment.referee);
    x->assignment.rounded = program && program->rounding.bits != 0;
    x->assignment.challenge = !x->a->no_challenge && !x->assignment.rounded && program;
    if (RAND_bytes(x->assignment.nonce, sizeof x->assignment.nonce) != 1)
        return vd_fail(x->err, VD_ERR_LOCAL, "no random numbers");
    return vd_assignment_sign(x->key, &x->assignment, &x->payload, &x->note, x->err);
}

/* ---- the journal's assignment ---- */

static vd_status is_of(const vd_arbitration *x, const char *what) {
    return vd_fail(x->err, VD_ERR_USAGE, "%s: is of a dispute %s", x->journal.path, what);
}

static vd_status check_assignment(vd_arbitration *x, const vd_assignment *a) {
    const uint32_t count = x->assignment.provider_count;
    if (!vd_hash_equal(&a->program, &x->assignment.program))
        return is_of(x, "about another job");
    if (a->provider_count != count ||
        memcmp(a->provider, x->assignment.provider, count * sizeof *a->provider) != 0)
        return is_of(x, "between others, or in another order: name its providers as before");
    x->assignment = *a;
    return VD_OK;
}

static vd_status old_assignment(vd_arbitration *x) {
    const vd_noted *first = x->journal.minutes.noted;
    vd_public_key mine;
    vd_assignment a;
    vd_key_public(x->key, &mine);
    vd_put(&x->note, first->bytes, first->size);
    vd_status status = vd_note_open(x->note.data, x->note.size, VD_QUESTION_BYTES_MAX,
                                    VD_TYPE_ASSIGNMENT, &mine, &x->payload, x->err);
    if (status == VD_OK)
        status = vd_assignment_read(x->payload.data, x->payload.size, &a, x->err);
    if (status == VD_OK && memcmp(&a.referee, &mine, sizeof mine) == 0)
        return check_assignment(x, &a);
    return status == VD_ERR_LOCAL
               ? status
               : is_of(x, "that another referee conducts: give the --key of that one");
}

/* The request for second runs is in the assignment, which the providers already have. */
static vd_status check_challenge(const vd_arbitration *x) {
    if (!x->a->no_challenge || !x->assignment.challenge)
        return VD_OK;
    return vd_fail(x->err, VD_ERR_USAGE,
                   "%s: this dispute began without --no-challenge, and goes on without it",
                   x->journal.path);
}

vd_status vd_assign(vd_arbitration *x) {
    const vd_program *program = vd_arbitration_program(x);
    vd_status status = name_job(x, program);
    if (status == VD_OK && x->journal.minutes.count > 0) {
        status = old_assignment(x);
        if (status == VD_OK)
            return check_challenge(x);
        if (status != VD_ERR_USAGE || !x->a->goes_on)
            return status;
        x->payload.size = x->note.size = 0; /* it is of another dispute, and is discarded */
        status = vd_court_journal_clear(&x->journal, x->err);
    }
    return status == VD_OK ? new_assignment(x, program) : status;
}
