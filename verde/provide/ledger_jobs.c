/* Jobs in the ledger. */
#include <string.h>

#include "verde/provide/ledger_internal.h"

#define COLUMNS                                                                                    \
    "id, client, program, program_hash, name, state, steps, keep, memory, disk, created, seconds," \
    " run_root, final_state, error, cancel, written, again"

const char *vd_job_state_name(vd_job_state state) {
    static const char *const names[] = {"queued", "running", "done", "failed", "cancelled"};
    return names[state];
}

static void take_text(sqlite3_stmt *row, int column, char *to, size_t size) {
    const unsigned char *text = sqlite3_column_text(row, column);
    snprintf(to, size, "%s", text ? (const char *)text : "");
}

static void take_job(sqlite3_stmt *row, vd_job_record *out) {
    take_text(row, 0, out->id, sizeof out->id);
    take_text(row, 1, out->client, sizeof out->client);
    take_text(row, 2, out->program, sizeof out->program);
    take_text(row, 3, out->program_hash, sizeof out->program_hash);
    take_text(row, 4, out->name, sizeof out->name);
    const int state = sqlite3_column_int(row, 5);
    out->state = state >= 0 && state <= VD_JOB_CANCELLED ? (vd_job_state)state : VD_JOB_FAILED;
    out->steps = sqlite3_column_int64(row, 6);
    out->keep = sqlite3_column_int64(row, 7);
    out->memory = sqlite3_column_int64(row, 8);
    out->disk = sqlite3_column_int64(row, 9);
    out->created = sqlite3_column_int64(row, 10);
    out->seconds = sqlite3_column_int64(row, 11);
    take_text(row, 12, out->run_root, sizeof out->run_root);
    take_text(row, 13, out->final_state, sizeof out->final_state);
    take_text(row, 14, out->error, sizeof out->error);
    out->cancel = sqlite3_column_int(row, 15) != 0;
    out->written = sqlite3_column_int64(row, 16);
    out->again = sqlite3_column_int(row, 17) != 0;
}

/* ---- writing ---- */

static vd_status put_list(vd_ledger *ledger, const char *sql, const char *id,
                          const char *const *item, vd_err *err) {
    vd_status status = VD_OK;
    for (int i = 0; status == VD_OK && item[i]; i++)
        status = vd_ledger_sql(ledger, NULL, NULL, err, sql, "ss", id, item[i]);
    return status;
}

static vd_status put_row(vd_ledger *ledger, const vd_job_record *j, vd_err *err) {
    return vd_ledger_sql(
        ledger, NULL, NULL, err,
        "INSERT INTO job(" COLUMNS ") VALUES(?,?,?,?,?,?,?,?,?,?,?,0,'','','',0,0,0) "
        "ON CONFLICT(id) DO UPDATE SET state=excluded.state, error='', cancel=0 WHERE state>?",
        "sssssiiiiiii", j->id, j->client, j->program, j->program_hash, j->name,
        (int64_t)VD_JOB_QUEUED, j->steps, j->keep, j->memory, j->disk, j->created,
        (int64_t)VD_JOB_DONE);
}

vd_status vd_ledger_put_job(vd_ledger *ledger, const vd_job_record *job, const char *const *blob,
                            const char *const *referee, vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = put_row(ledger, job, err);
    if (status == VD_OK)
        status = put_list(ledger, "INSERT OR IGNORE INTO needs VALUES(?,?)", job->id, blob, err);
    if (status == VD_OK)
        status =
            put_list(ledger, "INSERT OR IGNORE INTO referee VALUES(?,?)", job->id, referee, err);
    status = vd_ledger_end(ledger, status, err);
    return status == VD_OK ? vd_ledger_sync(ledger, err) : status;
}

vd_status vd_ledger_set_job(vd_ledger *ledger, const vd_job_record *j, vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, NULL, NULL, err,
                               "UPDATE job SET state=?, seconds=?, run_root=?, final_state=?, "
                               "error=?, written=? WHERE id=?",
                               "iisssis", (int64_t)j->state, j->seconds, j->run_root,
                               j->final_state, j->error, j->written, j->id);
    return vd_ledger_end(ledger, status, err);
}

vd_status vd_ledger_run_again(vd_ledger *ledger, const char *id, vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status =
            vd_ledger_sql(ledger, NULL, NULL, err, "UPDATE job SET again=1 WHERE id=?", "s", id);
    return vd_ledger_end(ledger, status, err);
}

vd_status vd_ledger_unwritten(vd_ledger *ledger, const char *except, int64_t *out, vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    *out = 0;
    if (status == VD_OK)
        status =
            vd_ledger_sql(ledger, vd_row_number, out, err,
                          "SELECT coalesce(sum(max(disk-written,0)),0) FROM job WHERE state<=? "
                          "AND id<>?",
                          "is", (int64_t)VD_JOB_RUNNING, except);
    return vd_ledger_end(ledger, status, err);
}

vd_status vd_ledger_start_job(vd_ledger *ledger, const char *id, bool *started, vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status =
            vd_ledger_sql(ledger, NULL, NULL, err, "UPDATE job SET state=? WHERE id=? AND state=?",
                          "isi", (int64_t)VD_JOB_RUNNING, id, (int64_t)VD_JOB_QUEUED);
    *started = status == VD_OK && sqlite3_changes(ledger->db) == 1;
    return vd_ledger_end(ledger, status, err);
}

vd_status vd_ledger_cancel_job(vd_ledger *ledger, const char *id, vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, NULL, NULL, err,
                               "UPDATE job SET cancel=1, state=CASE WHEN state=? THEN ? ELSE state "
                               "END WHERE id=? AND state<=?",
                               "iisi", (int64_t)VD_JOB_QUEUED, (int64_t)VD_JOB_CANCELLED, id,
                               (int64_t)VD_JOB_RUNNING);
    return vd_ledger_end(ledger, status, err);
}

/* The job's blobs are kept for as long as any that no job needs. Counts and charges of referees
 * stay: the same job, submitted again, has the same id, and neither old requests nor used seconds
 * may count anew. */
vd_status vd_ledger_delete_job(vd_ledger *ledger, const char *id, int64_t now, vd_err *err) {
    static const char *const forget[] = {"DELETE FROM needs WHERE id=?",
                                         "DELETE FROM referee WHERE id=?",
                                         "DELETE FROM job WHERE id=?"};
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, NULL, NULL, err,
                               "INSERT INTO spent SELECT client, seconds FROM job WHERE id=? "
                               "ON CONFLICT DO UPDATE SET seconds=seconds+excluded.seconds",
                               "s", id);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, NULL, NULL, err,
                               "UPDATE owned SET touched=? WHERE hash IN (SELECT hash FROM needs "
                               "WHERE id=?) AND client=(SELECT client FROM job WHERE id=?)",
                               "iss", now, id, id);
    for (size_t i = 0; status == VD_OK && i < sizeof forget / sizeof forget[0]; i++)
        status = vd_ledger_sql(ledger, NULL, NULL, err, forget[i], "s", id);
    return vd_ledger_end(ledger, status, err);
}

vd_status vd_ledger_requeue(vd_ledger *ledger, vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, NULL, NULL, err,
                               "UPDATE job SET state=CASE WHEN cancel THEN ? ELSE ? END WHERE "
                               "state=?",
                               "iii", (int64_t)VD_JOB_CANCELLED, (int64_t)VD_JOB_QUEUED,
                               (int64_t)VD_JOB_RUNNING);
    return vd_ledger_end(ledger, status, err);
}

/* ---- charges of referees ---- */

static vd_status put_count(vd_ledger *ledger, const char *id, const char *referee, int64_t count,
                           int64_t *have, vd_err *err) {
    vd_status status =
        vd_ledger_sql(ledger, NULL, NULL, err,
                      "INSERT INTO asked VALUES(?,?,?,0,0,0) ON CONFLICT DO UPDATE SET "
                      "count=excluded.count WHERE count<excluded.count",
                      "ssi", id, referee, count);
    if (status != VD_OK || sqlite3_changes(ledger->db) == 1)
        return status;
    status = vd_ledger_sql(ledger, vd_row_number, have, err,
                           "SELECT count FROM asked WHERE id=? AND key=?", "ss", id, referee);
    return status == VD_OK ? vd_fail(err, VD_ERR_PEER,
                                     "request: its count is not greater than that of an earlier "
                                     "one: it was sent before, or is late; sign it anew")
                           : status;
}

vd_status vd_ledger_take_count(vd_ledger *ledger, const char *id, const char *referee,
                               int64_t count, int64_t *have, vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    *have = 0;
    if (status == VD_OK)
        status = put_count(ledger, id, referee, count, have, err);
    return vd_ledger_end(ledger, status, err);
}

vd_status vd_ledger_charge(vd_ledger *ledger, const char *id, const char *referee,
                           const vd_charge *charge, vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(
            ledger, NULL, NULL, err,
            "INSERT INTO asked SELECT id, key, 0, ?, ?, ? FROM referee WHERE id=? AND key=? "
            "ON CONFLICT DO UPDATE SET "
            "us=CASE day WHEN excluded.day THEN us ELSE 0 END+excluded.us, day=excluded.day, "
            "us_max=excluded.us_max",
            "iiiss", charge->day, charge->us, charge->us_max, id, referee);
    return vd_ledger_end(ledger, status, err);
}

static bool see_charged(void *user, sqlite3_stmt *row) {
    vd_charge *out = user;
    out->us = sqlite3_column_int64(row, 0);
    out->us_max = sqlite3_column_int64(row, 1);
    return false;
}

vd_status vd_ledger_charged(vd_ledger *ledger, const char *id, const char *referee, vd_charge *out,
                            vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    out->us = out->us_max = 0;
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, see_charged, out, err,
                               "SELECT us, us_max FROM asked WHERE id=? AND key=? AND day=?", "ssi",
                               id, referee, out->day);
    return vd_ledger_end(ledger, status, err);
}

/* ---- reading ---- */

typedef struct {
    vd_job_record job;
    bool found;
} one_job;

static bool see_one(void *user, sqlite3_stmt *row) {
    one_job *one = user;
    take_job(row, &one->job);
    one->found = true;
    return false;
}

vd_status vd_ledger_get_job(vd_ledger *ledger, const char *client, const char *id,
                            vd_job_record *out, bool *found, vd_err *err) {
    one_job one = {.found = false};
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, see_one, &one, err,
                               "SELECT " COLUMNS " FROM job WHERE id=? AND client=coalesce(?, "
                               "client)",
                               "ss", id, client);
    *out = one.job;
    *found = one.found;
    return vd_ledger_end(ledger, status, err);
}

vd_status vd_ledger_find_run(vd_ledger *ledger, const char *program_hash, const char *referee,
                             vd_job_record *out, bool *found, vd_err *err) {
    one_job one = {.found = false};
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, see_one, &one, err,
                               "SELECT " COLUMNS " FROM job JOIN referee USING(id) WHERE "
                               "program_hash=? AND referee.key=? AND state=? ORDER BY number",
                               "ssi", program_hash, referee, (int64_t)VD_JOB_DONE);
    *out = one.job;
    *found = one.found;
    return vd_ledger_end(ledger, status, err);
}

typedef struct {
    vd_job_visitor visit;
    void *user;
} listing;

static bool see_each(void *user, sqlite3_stmt *row) {
    const listing *l = user;
    vd_job_record job = {.steps = 0};
    take_job(row, &job);
    return l->visit(l->user, &job);
}

vd_status vd_ledger_list_jobs(vd_ledger *ledger, const char *client, vd_job_visitor visit,
                              void *user, vd_err *err) {
    listing l = {visit, user};
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, see_each, &l, err,
                               "SELECT " COLUMNS " FROM job WHERE client=coalesce(?, client) "
                               "ORDER BY number",
                               "s", client);
    return vd_ledger_end(ledger, status, err);
}
