/* Verifies verdicts by deciding again. PROTOCOL.md section 7. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/exec.h"
#include "verde/protocol/dispute.h"
#include "verde/protocol/verdict.h"
#include "verde/protocol/verdict_internal.h"

vd_status vd_verdict_assignment(const vd_buf *note, const vd_public_key *referee, vd_buf *payload,
                                vd_assignment *out, vd_err *err) {
    vd_public_key signer;
    if (note->size > VD_QUESTION_BYTES_MAX)
        return vd_fail_limit(err, "assignment", note->size, "bytes", VD_QUESTION_BYTES_MAX);
    vd_status status = vd_note_signer(note->data, note->size, VD_QUESTION_BYTES_MAX, &signer, err);
    if (status == VD_OK && referee && memcmp(&signer, referee, sizeof signer) != 0)
        status = vd_fail(err, VD_ERR_PEER, "assignment and verdict are signed by different keys");
    if (status == VD_OK)
        status = vd_note_open(note->data, note->size, VD_QUESTION_BYTES_MAX, VD_TYPE_ASSIGNMENT,
                              &signer, payload, err);
    if (status == VD_OK)
        status = vd_assignment_read(payload->data, payload->size, out, err);
    if (status == VD_OK && memcmp(&signer, &out->referee, sizeof signer) != 0)
        status = vd_fail(err, VD_ERR_PEER, "assignment is not signed by its referee");
    return status;
}

uint64_t vd_verdict_bytes_max(uint32_t games) {
    return VD_VERDICT_BYTES_MAX + (uint64_t)games * VD_VERDICT_GAME_BYTES;
}

/* Returns the largest size in bytes of a verdict with this outcome. The second hearing of two
 * providers counts as a second game. */
uint64_t vd_verdict_bytes_of(const vd_outcome *o) {
    return vd_verdict_bytes_max(o->party_count > 2 ? o->game_count
                                                   : 1 + (o->challenge.end >= VD_CHALLENGE_FAILED));
}

typedef struct {
    json_t *root;      /* the in-toto statement */
    vd_buf assignment; /* payload */
    vd_program program;
    bool fraud;         /* the verdict is a proof of fraud, about one provider */
    bool many_programs; /* the job is a collection, of which `items` are in the verdict */
    vd_verdict_items items;
    const json_t *evidence;
    size_t used;
    const vd_watch *watch;
    vd_err *err;
} replay;

static void replay_free(replay *v) {
    json_decref(v->root);
    vd_buf_free(&v->assignment);
    vd_program_free(&v->program);
    vd_verdict_items_free(&v->items);
}

static vd_status open_verdict(replay *v, const void *note, size_t size,
                              const vd_public_key *referee, vd_verdict *out) {
    vd_buf payload = {0};
    const uint64_t most = vd_verdict_bytes_max(VD_GAMES_MAX);
    if (size > most)
        return vd_fail_limit(v->err, "verdict", size, "bytes", most);
    vd_status status = vd_note_signer(note, size, size, &out->referee, v->err);
    if (referee && (status == VD_ERR_VERSION ||
                    (status == VD_OK && memcmp(referee, &out->referee, sizeof *referee) != 0)))
        status = vd_fail(v->err, VD_ERR_PEER, "verdict is signed by another referee");
    if (status == VD_OK)
        status = vd_note_open(note, size, size, VD_TYPE_VERDICT, &out->referee, &payload, v->err);
    if (status == VD_OK && !vd_json_is_small(payload.data, payload.size, VD_VERDICT_ELEMENTS_MAX))
        status = vd_fail(v->err, VD_ERR_VERSION,
                         "verdict: more lists and commas than the %d that this verde reads",
                         VD_VERDICT_ELEMENTS_MAX);
    if (status == VD_OK)
        status =
            vd_json_read(payload.data, payload.size, VD_VERDICT_ELEMENTS_MAX, &v->root, v->err);
    vd_buf_free(&payload);
    return status;
}

static vd_status read_program(replay *v, const json_t *predicate) {
    if (v->many_programs)
        return vd_verdict_items_read(json_object_get(predicate, "collection"), &v->items, v->err);
    const char *text = json_string_value(json_object_get(predicate, "program"));
    vd_buf bytes = {0};
    vd_status status = text ? vd_unbase64(text, strlen(text), &bytes, v->err)
                            : vd_fail(v->err, VD_ERR_PEER, "verdict: no program");
    if (status == VD_OK)
        status = vd_program_decode(bytes.data, bytes.size, &v->program, v->err);
    vd_buf_free(&bytes);
    return status;
}

static const char *const cost_keys[] = {"bytes_in",    "bytes_out",  "seconds",
                                        "cpu_seconds", "peak_bytes", NULL};
static const char *const cost_level_keys[] = {
    "bytes_in", "bytes_out", "seconds", "cpu_seconds", "peak_bytes", VD_COST_LEVELS, NULL};

static bool is_amount(const json_t *value) {
    return json_is_number(value) && json_number_value(value) >= 0;
}

/* Reads the seconds of each level. A referee may leave them out. */
static bool read_level_seconds(const json_t *levels, vd_cost *out) {
    size_t known = 0;
    for (int i = 0; i < VD_LEVELS; i++) {
        const json_t *seconds = json_object_get(levels, vd_level_name(i));
        if (seconds && !is_amount(seconds))
            return false;
        out->level_seconds[i] = json_number_value(seconds);
        known += seconds != NULL;
    }
    return !levels || (json_is_object(levels) && json_object_size(levels) == known);
}

static bool read_cost(const json_t *cost, vd_cost *out) {
    for (int i = 0; cost_keys[i]; i++)
        if (!is_amount(json_object_get(cost, cost_keys[i])))
            return false;
    out->bytes_in = (uint64_t)json_integer_value(json_object_get(cost, "bytes_in"));
    out->bytes_out = (uint64_t)json_integer_value(json_object_get(cost, "bytes_out"));
    out->peak_bytes = (uint64_t)json_integer_value(json_object_get(cost, "peak_bytes"));
    out->seconds = json_number_value(json_object_get(cost, "seconds"));
    out->cpu_seconds = json_number_value(json_object_get(cost, "cpu_seconds"));
    return read_level_seconds(json_object_get(cost, VD_COST_LEVELS), out);
}

static bool is_text(const json_t *object, const char *key, const char *expected) {
    const char *text = json_string_value(json_object_get(object, key));
    return text && strcmp(text, expected) == 0;
}

/* Checks that the version is the one for this number of providers. */
static vd_status check_version(replay *v, const vd_verdict *out) {
    const bool many = is_text(v->root, "predicateType", VD_PREDICATE_MANY);
    if (v->fraud != out->assignment.audit)
        return vd_fail(v->err, VD_ERR_PEER, "verdict: its assignment is of %s",
                       v->fraud ? "a dispute" : "an audit");
    if (many == (out->assignment.provider_count > 2))
        return VD_OK;
    return vd_fail(v->err, VD_ERR_PEER, "verdict: of version %d, about %u providers", many ? 2 : 1,
                   out->assignment.provider_count);
}

/* Checks the type before anything else: another type may have entirely different members. */
static vd_status check_type(replay *v, const char *name, const char *const *known,
                            const char *all) {
    const char *type = json_string_value(json_object_get(v->root, name));
    if (!type)
        return vd_fail(v->err, VD_ERR_PEER, "verdict: `%s` must be a string", name);
    for (; *known; known++)
        if (strcmp(type, *known) == 0)
            return VD_OK;
    return vd_fail(v->err, VD_ERR_VERSION, "`%s` is %.200s; this verde reads %s", name, type, all);
}

static vd_status check_types(replay *v) {
    static const char *const statement[] = {VD_STATEMENT_TYPE, NULL};
    static const char *const predicate[] = {VD_PREDICATE, VD_PREDICATE_MANY, VD_PREDICATE_FRAUD,
                                            NULL};
    vd_status status = check_type(v, "_type", statement, VD_STATEMENT_TYPE);
    if (status == VD_OK)
        status = check_type(v, "predicateType", predicate,
                            VD_PREDICATE ", " VD_PREDICATE_MANY " and " VD_PREDICATE_FRAUD);
    v->fraud = is_text(v->root, "predicateType", VD_PREDICATE_FRAUD);
    return status;
}

static vd_status check_members(replay *v, const json_t *object, const char *place,
                               const char *const *names) {
    vd_err why = {0};
    vd_status status = vd_json_known(object, place, names, &why);
    if (status == VD_OK && !vd_json_has_only(object, names))
        status = vd_fail(&why, VD_ERR_PEER, "%s lacks a member", place);
    return status == VD_OK ? VD_OK : vd_fail(v->err, status, "verdict: %s", why.text);
}

static vd_status check_cost(replay *v, const json_t *cost, vd_verdict *out) {
    const bool levels = json_object_get(cost, VD_COST_LEVELS) != NULL;
    const vd_status status = check_members(v, cost, "cost", levels ? cost_level_keys : cost_keys);
    if (status != VD_OK || read_cost(cost, &out->cost))
        return status;
    return vd_fail(v->err, VD_ERR_PEER, "verdict: `cost` must be five numbers%s",
                   levels ? ", and its `" VD_COST_LEVELS "` numbers by levels" : "");
}

/* Checks the members of the statement and of its predicate, except what they contain. */
static vd_status check_form(replay *v, vd_verdict *out) {
    static const char *const root_keys[] = {"_type", "subject", "predicateType", "predicate", NULL};
    static const char *const keys[] = {"assignment", "program", "outcome",
                                       "evidence",   "cost",    NULL};
    static const char *const collection_keys[] = {"assignment", "collection", "outcome",
                                                  "evidence",   "cost",       NULL};
    static const char *const fraud_keys[] = {"assignment", "program", "outcome", "evidence",
                                             "cost",       "place",   NULL};
    const json_t *predicate = json_object_get(v->root, "predicate");
    vd_status status = check_types(v);
    v->many_programs = !v->fraud && json_object_get(predicate, "collection") != NULL;
    if (status == VD_OK)
        status = check_members(v, v->root, "the statement", root_keys);
    if (status == VD_OK)
        status = check_members(v, predicate, "predicate",
                               v->fraud           ? fraud_keys
                               : v->many_programs ? collection_keys
                                                  : keys);
    return status == VD_OK ? check_cost(v, json_object_get(predicate, "cost"), out) : status;
}

static vd_status read_predicate(replay *v, vd_verdict *out) {
    const json_t *predicate = json_object_get(v->root, "predicate");
    vd_buf note = {0};
    vd_status status = check_form(v, out);
    if (status == VD_OK)
        status = vd_json_dump(json_object_get(predicate, "assignment"), &note)
                     ? vd_verdict_assignment(&note, &out->referee, &v->assignment, &out->assignment,
                                             v->err)
                     : vd_fail(v->err, VD_ERR_PEER, "verdict: no assignment");
    vd_buf_free(&note);
    if (status == VD_OK)
        status = check_version(v, out);
    if (status == VD_OK)
        status = read_program(v, predicate);
    out->fraud = v->fraud;
    if (status == VD_OK && v->fraud)
        status =
            vd_crumb_read(json_object_get(predicate, "place"), &v->program, &out->place, v->err);
    v->evidence = json_object_get(predicate, "evidence");
    out->statements = json_array_size(v->evidence);
    return status;
}

/* Checks that item `at` of the evidence exists, and which members it has. */
static vd_status check_item(replay *v, const json_t *item, size_t at) {
    static const char *const names[] = {"provider", "question", "statement", "absent", NULL};
    char place[40];
    vd_err why = {0};
    snprintf(place, sizeof place, "evidence[%zu]", at);
    vd_status status = item ? vd_json_known(item, place, names, &why) : VD_OK;
    return status == VD_OK ? VD_OK : vd_fail(v->err, status, "verdict: %s", why.text);
}

static bool answers(const json_t *item, const vd_outgoing *q, uint32_t number) {
    const json_t *provider = json_object_get(item, "provider");
    vd_hash question;
    return json_object_size(item) == 3 && json_is_integer(provider) &&
           json_integer_value(provider) == (json_int_t)number &&
           (json_object_get(item, "statement") || json_object_get(item, "absent")) &&
           vd_json_get_hash(item, "question", &question) && vd_hash_equal(&question, &q->question);
}

/* Rejects evidence with a note that is no valid statement of this provider on this question:
 * anybody could have put it there, and a referee leaves such notes out. */
static vd_status check_counted(replay *v, const vd_sitting *sitting, const vd_outgoing *q) {
    const vd_statement *s = vd_referee_last(sitting->referee, q->party);
    if (!s || s->stated.payload.size || sitting->referee->failed != VD_OK)
        return VD_OK; /* vd_referee_next reports this failure itself */
    return vd_fail(v->err, VD_ERR_PEER, "verdict: item %zu of the evidence, of provider %u: %s",
                   v->used, sitting->provider[q->party] + 1, s->why);
}

static void tell_heard(const replay *v, const vd_sitting *sitting, const vd_outgoing *q,
                       const json_t *item) {
    const vd_heard heard = {.provider = sitting->provider[q->party],
                            .game = sitting->game,
                            .level = vd_referee_level(sitting->referee),
                            .question = q->text,
                            .item = item};
    if (v->watch->heard)
        v->watch->heard(v->watch->user, &heard);
}

/* Feeds the recorded statement of this question. None may be left out or added. */
static vd_status feed(replay *v, const vd_sitting *sitting, const vd_outgoing *q) {
    vd_referee *dispute = sitting->referee;
    const json_t *item = json_array_get(v->evidence, v->used++);
    const char *absent = json_string_value(json_object_get(item, "absent"));
    vd_status known = check_item(v, item, v->used - 1);
    if (known != VD_OK)
        return known;
    if (!answers(item, q, sitting->provider[q->party]))
        return vd_fail(v->err, VD_ERR_PEER, "verdict: evidence lacks an answer to \"%s\"", q->text);
    tell_heard(v, sitting, q, item);
    if (absent) {
        vd_referee_no_answer(dispute, q->party, absent);
        return VD_OK;
    }
    vd_buf note = {0};
    bool ok = vd_json_dump(json_object_get(item, "statement"), &note);
    if (ok)
        vd_referee_answer(dispute, q->party, note.data, note.size);
    vd_status status = ok ? check_counted(v, sitting, q)
                          : vd_fail(v->err, note.failed ? VD_ERR_LOCAL : VD_ERR_PEER,
                                    "verdict: a statement is missing");
    vd_buf_free(&note);
    return status;
}

static vd_status replay_sitting(replay *v, const vd_sitting *sitting) {
    vd_outgoing out[VD_PARTIES_MAX];
    size_t count;
    vd_status status;
    while ((status = vd_referee_next(sitting->referee, out, &count, v->err)) == VD_OK && count > 0)
        for (size_t i = 0; i < count && status == VD_OK; i++) {
            status = feed(v, sitting, &out[i]);
            if (status != VD_OK)
                return status;
        }
    return status;
}

static vd_status replay_two(replay *v, const vd_referee_options *options, vd_verdict *out) {
    static const uint32_t provider[2] = {0, 1};
    vd_referee *dispute = NULL;
    vd_status status = v->fraud ? vd_crumb_open(options, &out->place, &dispute, v->err)
                                : vd_referee_create(options, &dispute, v->err);
    const vd_sitting sitting = {.referee = dispute, .provider = provider};
    if (status == VD_OK)
        status = replay_sitting(v, &sitting);
    if (status == VD_OK)
        out->outcome = *vd_referee_outcome(dispute);
    vd_referee_destroy(dispute);
    return status;
}

static void tell_sitting(const vd_referee_options *options, const vd_sitting *sitting) {
    char text[VD_SITTING_TEXT];
    vd_sitting_text(sitting, text);
    if (options->story && sitting->game)
        options->story(options->user, text);
}

static vd_status replay_sittings(replay *v, const vd_referee_options *options,
                                 vd_tournament *tournament) {
    vd_sitting sitting[VD_PARTIES_MAX];
    size_t count;
    vd_status status;
    while ((status = vd_tournament_next(tournament, sitting, &count, v->err)) == VD_OK && count > 0)
        for (size_t i = 0; i < count; i++) {
            tell_sitting(options, &sitting[i]);
            status = replay_sitting(v, &sitting[i]);
            if (status != VD_OK)
                return status;
        }
    return status;
}

static vd_status replay_many(replay *v, const vd_referee_options *options, vd_verdict *out) {
    vd_tournament *tournament = NULL;
    vd_status status = vd_tournament_create(options, &tournament, v->err);
    if (status == VD_OK)
        status = replay_sittings(v, options, tournament);
    if (status == VD_OK)
        status = vd_outcome_copy(vd_tournament_outcome(tournament), &out->outcome, v->err);
    vd_tournament_destroy(tournament);
    return status;
}

static vd_status replay_dispute(replay *v, const vd_referee_options *options, vd_verdict *out) {
    vd_status status = out->assignment.provider_count > 2 ? replay_many(v, options, out)
                                                          : replay_two(v, options, out);
    if (status == VD_OK && v->fraud && out->outcome.result != VD_RESULT_CONVICTED)
        status = vd_fail(v->err, VD_ERR_PEER, "verdict: a proof of fraud that convicts nobody");
    if (status == VD_OK && v->used != json_array_size(v->evidence))
        status = vd_fail(v->err, VD_ERR_PEER, "verdict: evidence that no question asked for");
    return status;
}

/* Removes `reason`: a sentence for people, which each implementation words differently. */
static void drop_reasons(json_t *outcome) {
    json_t *party;
    size_t p;
    json_array_foreach(json_object_get(outcome, "providers"), p, party)
        json_object_del(party, "reason");
    json_t *challenge = json_object_get(outcome, "challenge");
    json_object_del(challenge, "reason");
    json_array_foreach(json_object_get(challenge, "providers"), p, party)
        json_object_del(party, "reason");
}

/* Compares the new decision with the written one, member for member. */
static vd_status compare(replay *v, vd_verdict *out) {
    const json_t *predicate = json_object_get(v->root, "predicate");
    json_t *again = vd_outcome_json(&out->outcome, &out->assignment);
    drop_reasons(again);
    drop_reasons(json_object_get(predicate, "outcome"));
    bool same = json_equal(again, json_object_get(predicate, "outcome"));
    json_decref(again);
    if (!same)
        return vd_fail(v->err, VD_ERR_PEER,
                       "verdict: the evidence leads to another outcome than the one stated");
    json_t *subject = json_pack("[{ss s{so}}]", "name", "program", "digest", "sha256",
                                vd_hash_text(&out->assignment.program));
    same = json_equal(subject, json_object_get(v->root, "subject"));
    json_decref(subject);
    out->program = out->assignment.program;
    return same ? VD_OK : vd_fail(v->err, VD_ERR_PEER, "verdict: of another subject");
}

void vd_verdict_free(vd_verdict *verdict) {
    vd_outcome_free(&verdict->outcome);
}

static void tell_programs(const replay *v) {
    if (!v->watch->program)
        return;
    if (!v->many_programs)
        v->watch->program(v->watch->user, -1, &v->program);
    for (size_t i = 0; i < v->items.count; i++)
        v->watch->program(v->watch->user, (int64_t)v->items.item[i].item,
                          &v->items.item[i].program);
}

static vd_status decide_again(replay *v, vd_verdict *out) {
    const vd_referee_options options = {.program = v->many_programs ? NULL : &v->program,
                                        .collection =
                                            v->many_programs ? &v->items.collection : NULL,
                                        .assignment = &v->assignment,
                                        .leaf = v->watch->leaf,
                                        .story = v->watch->story,
                                        .computing = v->watch->computing,
                                        .reading = v->watch->reading,
                                        .user = v->watch->user,
                                        .reader = v->watch->user};
    return replay_dispute(v, &options, out);
}

vd_status vd_verdict_watch(const void *note, size_t size, const vd_public_key *referee,
                           const vd_watch *watch, vd_verdict *out, vd_err *err) {
    replay v = {.watch = watch, .err = err};
    *out = (vd_verdict){0};
    vd_status status = open_verdict(&v, note, size, referee, out);
    if (status == VD_OK)
        status = read_predicate(&v, out);
    if (status == VD_OK)
        status = decide_again(&v, out);
    if (status == VD_OK)
        status = vd_verdict_items_all_used(&v.items, err);
    if (status == VD_OK)
        status = compare(&v, out);
    if (status == VD_OK && size > vd_verdict_bytes_of(&out->outcome))
        status = vd_fail_limit(err, "verdict", size, "bytes for its games",
                               vd_verdict_bytes_of(&out->outcome));
    if (status == VD_OK && !v.many_programs)
        status = vd_program_structure(&v.program, &out->structure, err);
    if (status == VD_OK)
        tell_programs(&v);
    if (status != VD_OK)
        vd_outcome_free(&out->outcome);
    replay_free(&v);
    return status == VD_ERR_USAGE ? vd_fail(err, VD_ERR_PEER, "%s", err->text) : status;
}

vd_status vd_verdict_verify(const void *note, size_t size, const vd_public_key *referee,
                            vd_leaf_fn leaf, void (*story)(void *user, const char *line),
                            void *user, vd_verdict *out, vd_err *err) {
    const vd_watch watch = {.leaf = leaf, .story = story, .user = user};
    return vd_verdict_watch(note, size, referee, &watch, out, err);
}
