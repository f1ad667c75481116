/* The journal of an audit: draws and answers, so that an audit that was killed goes on with the
 * same draws. PROTOCOL.md section 13.9. */
#include <openssl/rand.h>
#include <string.h>

#include "verde/audit/audit_provider.h"
#include "verde/load/verdict_file.h"

/* Answers about places that are right are cut off the file when they exceed this size. */
enum { TAIL_BYTES = 1 << 20 };

static const vd_minutes *minutes_of(const vd_auditing *x) {
    return &x->journal.minutes;
}

/* ---- writing ---- */

/* `sync`: the entries must be on disk, not only written, when this returns. */
static vd_status append(vd_auditing *x, const vd_noted *noted, size_t count, bool sync) {
    vd_buf frame = {0};
    vd_status status = vd_minutes_frame(&x->journal.minutes, noted, count, &frame, x->err);
    if (status == VD_OK)
        status = sync ? vd_court_journal_append(&x->journal, frame.data, frame.size, x->err)
                      : vd_court_journal_write(&x->journal, frame.data, frame.size, x->err);
    vd_buf_free(&frame);
    return status;
}

/* Marks the end of the entries that must stay. */
static void mark(vd_auditing *x) {
    x->mark.whole = minutes_of(x)->whole;
    x->mark.seal = minutes_of(x)->seal;
}

/* Replaces the entries about places that are right by the number of these places. */
static vd_status collapse(vd_auditing *x, uint64_t passed) {
    const vd_noted noted = {.kind = VD_NOTED_PASSED, .used_us = passed};
    if (minutes_of(x)->whole == x->mark.whole)
        return VD_OK;
    vd_status status = vd_court_journal_cut(&x->journal, x->mark.whole, x->err);
    if (status != VD_OK)
        return status;
    x->journal.minutes.whole = x->mark.whole;
    x->journal.minutes.seal = x->mark.seal;
    status = append(x, &noted, 1, true);
    mark(x);
    return status;
}

static vd_status note(vd_auditing *x, const vd_noted *noted, bool lasts, bool sync) {
    vd_status status = lasts ? collapse(x, x->passed_crumbs) : VD_OK;
    if (status == VD_OK)
        status = append(x, noted, 1, sync);
    if (lasts)
        mark(x);
    return status;
}

vd_status vd_audit_note_passed(vd_auditing *x, uint64_t count) {
    x->passed_crumbs = count;
    return minutes_of(x)->whole - x->mark.whole > TAIL_BYTES ? collapse(x, count) : VD_OK;
}

vd_status vd_audit_note_executed(vd_auditing *x, uint32_t count) {
    return note(x, &(vd_noted){.kind = VD_NOTED_EXECUTED, .used_us = count}, true, true);
}

vd_status vd_audit_note_beacon(vd_auditing *x) {
    const vd_noted noted = {
        .kind = VD_NOTED_BEACON, .bytes = x->beacon.data, .size = x->beacon.size};
    return note(x, &noted, true, true);
}

vd_status vd_audit_note_reply(vd_auditing *x, const vd_outgoing *q, const vd_reply *reply,
                              bool answered) {
    const vd_noted noted = {.kind = answered ? VD_NOTED_ANSWER : VD_NOTED_ABSENT,
                            .question = q->question,
                            .bytes = answered ? reply->bytes : (const void *)reply->why,
                            .size = answered ? reply->size : strlen(reply->why)};
    return note(x, &noted, !vd_audit_is_at_crumb(x->audit), false);
}

/* ---- what the journal has ---- */

bool vd_audit_recall(vd_auditing *x, const vd_outgoing *q) {
    for (size_t i = minutes_of(x)->count; i-- > 0;) {
        const vd_noted *n = &minutes_of(x)->noted[i];
        if ((n->kind != VD_NOTED_ANSWER && n->kind != VD_NOTED_ABSENT) ||
            !vd_hash_equal(&n->question, &q->question))
            continue;
        char why[VD_REPLY_WHY];
        snprintf(why, sizeof why, "%.*s", (int)(n->size < sizeof why ? n->size : sizeof why - 1),
                 (const char *)n->bytes);
        if (n->kind == VD_NOTED_ANSWER)
            vd_audit_answer(x->audit, n->bytes, n->size);
        else
            vd_audit_no_answer(x->audit, why);
        return true;
    }
    return false;
}

bool vd_audit_recall_beacon(vd_auditing *x) {
    for (size_t i = 0; i < minutes_of(x)->count; i++) {
        const vd_noted *n = &minutes_of(x)->noted[i];
        if (n->kind == VD_NOTED_BEACON && n->size >= 1 && n->size <= VD_BEACON_VALUE_MAX) {
            vd_put(&x->beacon, n->bytes, n->size);
            return true;
        }
    }
    return false;
}

/* Returns the greatest number in the entries of this kind. */
static uint64_t greatest(const vd_auditing *x, vd_noted_kind kind) {
    uint64_t most = 0;
    for (size_t i = 0; i < minutes_of(x)->count; i++)
        if (minutes_of(x)->noted[i].kind == kind && minutes_of(x)->noted[i].used_us > most)
            most = minutes_of(x)->noted[i].used_us;
    return most;
}

uint64_t vd_audit_known(const vd_auditing *x) {
    return greatest(x, VD_NOTED_PASSED);
}

uint64_t vd_audit_known_intervals(const vd_auditing *x) {
    return greatest(x, VD_NOTED_EXECUTED);
}

/* Returns the journal's next secret. Those for steps and elements are in order; those for long
 * folds are found by their crumb. */
static const vd_noted *next_secret(vd_auditing *x, uint64_t crumb) {
    for (size_t i = crumb ? 0 : x->secrets_read; i < minutes_of(x)->count; i++) {
        const vd_noted *n = &minutes_of(x)->noted[i];
        if (n->kind != VD_NOTED_SECRET || n->used_us != crumb || n->size != VD_HASH_SIZE)
            continue;
        x->secrets_read = crumb ? x->secrets_read : i + 1;
        return n;
    }
    return NULL;
}

vd_status vd_audit_secret(void *user, uint64_t crumb, uint8_t bytes[VD_HASH_SIZE], vd_err *err) {
    vd_auditing *x = user;
    const vd_noted *known = next_secret(x, crumb);
    if (known) {
        memcpy(bytes, known->bytes, VD_HASH_SIZE);
        return VD_OK;
    }
    if (RAND_bytes(bytes, VD_HASH_SIZE) != 1)
        return vd_fail(err, VD_ERR_LOCAL, "no random numbers");
    const vd_noted noted = {
        .kind = VD_NOTED_SECRET, .used_us = crumb, .bytes = bytes, .size = VD_HASH_SIZE};
    return note(x, &noted, crumb == 0, true);
}

/* ---- opening ---- */

static void write_plan(const vd_audit_arguments *a, char out[96]) {
    int at = snprintf(out, 96, "crumbs=%ld,steps=%ld", a->crumbs, a->steps);
    if (a->all)
        snprintf(out + at, 96 - (size_t)at, ",all");
    else if (a->intervals)
        snprintf(out + at, 96 - (size_t)at, ",intervals=%ld", a->intervals);
}

static vd_status is_of_another(const vd_auditing *x, const char *what) {
    return vd_fail(x->err, VD_ERR_USAGE,
                   "%s: holds an audit that was stopped, of %s; end that one first, or give this "
                   "one another --proof FILE, or --force, which forgets it",
                   x->journal.path, what);
}

static vd_status check_plan(const vd_auditing *x) {
    char plan[96];
    const vd_noted *n = minutes_of(x)->count > 1 ? &minutes_of(x)->noted[1] : NULL;
    write_plan(x->a, plan);
    if (n && n->kind == VD_NOTED_PLAN && n->size == strlen(plan) &&
        memcmp(n->bytes, plan, n->size) == 0)
        return VD_OK;
    char other[120];
    snprintf(other, sizeof other, "%.*s",
             n && n->kind == VD_NOTED_PLAN && n->size < 96 ? (int)n->size : 0,
             n ? (const char *)n->bytes : "");
    return is_of_another(x, other[0] ? other : "something else");
}

static vd_status check_same(const vd_auditing *x, const vd_assignment *a) {
    const vd_assignment *b = &x->assignment;
    if (!a->audit || !vd_hash_equal(&a->program, &b->program))
        return is_of_another(x, "another job");
    if (memcmp(&a->provider[0], &b->provider[0], sizeof a->provider[0]) != 0)
        return is_of_another(x, "another provider");
    if (strcmp(a->beacon_source, b->beacon_source) != 0 || a->beacon_round != b->beacon_round)
        return is_of_another(x, "another beacon or round");
    return check_plan(x);
}

/* Takes the assignment from the journal: the one that the provider has. */
static vd_status take_assignment(vd_auditing *x) {
    const vd_noted *first = minutes_of(x)->noted;
    vd_public_key mine;
    vd_assignment a = {.provider_count = 0};
    vd_key_public(x->key, &mine);
    vd_put(&x->note, first->bytes, first->size);
    vd_status status = vd_note_open(x->note.data, x->note.size, VD_QUESTION_BYTES_MAX,
                                    VD_TYPE_ASSIGNMENT, &mine, &x->payload, x->err);
    if (status == VD_OK)
        status = vd_assignment_read(x->payload.data, x->payload.size, &a, x->err);
    if (status == VD_ERR_LOCAL)
        return status;
    status = status == VD_OK && memcmp(&a.referee, &mine, sizeof mine) == 0
                 ? check_same(x, &a)
                 : is_of_another(x, "another checker's key");
    if (status == VD_OK)
        x->assignment = a;
    return status;
}

static void tell_known(const vd_auditing *x) {
    char line[1300];
    snprintf(line, sizeof line, "Going on with the audit in %s.", x->journal.path);
    vd_tell(NULL, line);
}

/* Reports what the journal has lost. It is drawn anew, which must not happen silently. */
static void tell_lost(const vd_auditing *x, uint64_t bytes, bool anew) {
    const uint64_t lost = bytes - minutes_of(x)->whole;
    char line[1300];
    if (x->a->anew || (lost == 0 && !anew))
        return;
    if (anew)
        snprintf(line, sizeof line,
                 "%s: nothing in it is signed by the provider: the audit begins anew, with another "
                 "draw.",
                 x->journal.path);
    else
        snprintf(line, sizeof line,
                 "%s: its last %llu bytes are cut short, and left out: what they held is asked, or "
                 "drawn, again.",
                 x->journal.path, (unsigned long long)lost);
    vd_tell(NULL, line);
}

vd_status vd_audit_journal_open(vd_auditing *x, bool *found) {
    char path[1100];
    snprintf(path, sizeof path, "%.1000s.journal", x->a->proof);
    vd_status status = vd_court_journal_open(path, true, &x->journal, x->err);
    const bool heard = status == VD_OK && vd_court_journal_has_answers(&x->journal);
    if (status == VD_OK)
        tell_lost(x, x->journal.map.size, x->journal.map.size > 0 && !heard);
    if (status == VD_OK && (x->a->anew || !heard))
        status = vd_court_journal_clear(&x->journal, x->err);
    *found = status == VD_OK && minutes_of(x)->count > 0;
    if (*found)
        status = take_assignment(x);
    x->begun = status == VD_OK && *found;
    if (x->begun)
        tell_known(x);
    mark(x);
    x->passed_crumbs = vd_audit_known(x);
    return status;
}

vd_status vd_audit_journal_begin(vd_auditing *x) {
    char plan[96];
    write_plan(x->a, plan);
    const vd_noted noted[] = {
        {.kind = VD_NOTED_ASSIGNMENT, .bytes = x->note.data, .size = x->note.size},
        {.kind = VD_NOTED_PLAN, .bytes = (const uint8_t *)plan, .size = strlen(plan)}};
    vd_status status = append(x, noted, 2, true);
    mark(x);
    x->begun = status == VD_OK;
    return status;
}

/* Closes the journal. Without a result it is kept if the provider has signed anything. */
void vd_audit_journal_close(vd_auditing *x, bool ended) {
    if (ended || (!x->heard && !vd_court_journal_has_answers(&x->journal)))
        vd_court_journal_remove(&x->journal);
    else if (x->begun)
        vd_say("verde: what was drawn and said is kept in %s; the same command goes on",
               x->journal.path);
    vd_court_journal_close(&x->journal);
}
