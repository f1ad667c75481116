/* This file opens the daemon's database, and keeps nonces and the usage of clients. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "verde/provide/ledger_internal.h"

enum {
    VERSION = 4,
    BUSY_MS = 5000,
    ROOM = 4 << 20, /* bytes kept free in the files: a write-ahead log of 1,000 pages */
};

/* Defines the tables. A row of `owned` that is not complete is an upload; `needs` has the blobs
 * that jobs need. */
static const char schema[] =
    "CREATE TABLE nonce(client TEXT, nonce TEXT, time INTEGER, PRIMARY KEY(client, nonce))"
    " WITHOUT ROWID;"
    "CREATE INDEX nonce_time ON nonce(time);"
    "CREATE TABLE owned(client TEXT, hash TEXT, size INTEGER, complete INTEGER, touched INTEGER,"
    " PRIMARY KEY(client, hash)) WITHOUT ROWID;"
    "CREATE INDEX owned_hash ON owned(hash);"
    "CREATE TABLE job(number INTEGER PRIMARY KEY, id TEXT UNIQUE, client TEXT, program TEXT,"
    " program_hash TEXT, name TEXT, state INTEGER, steps INTEGER, keep INTEGER, memory INTEGER,"
    " disk INTEGER, created INTEGER, seconds INTEGER, run_root TEXT, final_state TEXT, error TEXT,"
    " cancel INTEGER);"
    "CREATE INDEX job_program ON job(program_hash);"
    "CREATE TABLE needs(id TEXT, hash TEXT, PRIMARY KEY(id, hash)) WITHOUT ROWID;"
    "CREATE INDEX needs_hash ON needs(hash);"
    "CREATE TABLE referee(id TEXT, key TEXT, PRIMARY KEY(id, key)) WITHOUT ROWID;"
    "CREATE TABLE spent(client TEXT PRIMARY KEY, seconds INTEGER) WITHOUT ROWID;";
/* Version 3; the columns of version 2 were others, and nothing of them is kept. `count`: of the
 * last question; `us`: microseconds on `day`, which counts from 1970. */
static const char schema_3[] =
    "DROP TABLE IF EXISTS asked;"
    "CREATE TABLE asked(id TEXT, key TEXT, count INTEGER, day INTEGER, us INTEGER, us_max INTEGER,"
    " PRIMARY KEY(id, key)) WITHOUT ROWID;";

/* Version 4. `us`: processor time for judging programs; `time` in `forgotten`: the latest time of a
 * request whose nonce was forgotten. Older versions stored the provider's time with a nonce; a
 * request's own may be up to 300 s ahead of it. */
static const char schema_4[] =
    "CREATE TABLE judged(client TEXT PRIMARY KEY, us INTEGER) WITHOUT ROWID;"
    "CREATE TABLE forgotten(client TEXT PRIMARY KEY, time INTEGER) WITHOUT ROWID;"
    "ALTER TABLE job ADD COLUMN written INTEGER DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN again INTEGER DEFAULT 0;"
    "UPDATE nonce SET time=time+300;";

static vd_status say(vd_ledger *ledger, vd_err *err) {
    atomic_store(&ledger->failing, true);
    return vd_fail(err, VD_ERR_LOCAL, "%s: %s", ledger->path, sqlite3_errmsg(ledger->db));
}

static bool bind(sqlite3_stmt *statement, const char *types, va_list values) {
    for (int i = 1; types[i - 1]; i++) {
        const int bound =
            types[i - 1] == 's'
                ? sqlite3_bind_text(statement, i, va_arg(values, const char *), -1, SQLITE_STATIC)
                : sqlite3_bind_int64(statement, i, va_arg(values, int64_t));
        if (bound != SQLITE_OK)
            return false;
    }
    return true;
}

vd_status vd_ledger_sql(vd_ledger *ledger, vd_row row, void *user, vd_err *err, const char *sql,
                        const char *types, ...) {
    sqlite3_stmt *statement = NULL;
    va_list values;
    int result = SQLITE_ERROR;
    va_start(values, types);
    if (sqlite3_prepare_v2(ledger->db, sql, -1, &statement, NULL) == SQLITE_OK &&
        bind(statement, types, values))
        do
            result = sqlite3_step(statement);
        while (result == SQLITE_ROW && (!row || row(user, statement)));
    va_end(values);
    vd_status status = result == SQLITE_DONE || result == SQLITE_ROW ? VD_OK : say(ledger, err);
    sqlite3_finalize(statement);
    return status;
}

vd_status vd_ledger_begin(vd_ledger *ledger, vd_err *err) {
    pthread_mutex_lock(&ledger->lock);
    ledger->changes = sqlite3_total_changes(ledger->db);
    return vd_ledger_sql(ledger, NULL, NULL, err, "BEGIN IMMEDIATE", "");
}

vd_status vd_ledger_end(vd_ledger *ledger, vd_status status, vd_err *err) {
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, NULL, NULL, err, "COMMIT", "");
    if (status == VD_OK && sqlite3_total_changes(ledger->db) != ledger->changes)
        atomic_store(&ledger->failing, false);
    if (status != VD_OK && !sqlite3_get_autocommit(ledger->db)) {
        vd_status undone = vd_ledger_sql(ledger, NULL, NULL, NULL, "ROLLBACK", "");
        (void)undone; /* the first error is the one to report */
    }
    pthread_mutex_unlock(&ledger->lock);
    return status;
}

vd_status vd_ledger_sync(vd_ledger *ledger, vd_err *err) {
    pthread_mutex_lock(&ledger->lock);
    int result = sqlite3_wal_checkpoint_v2(ledger->db, NULL, SQLITE_CHECKPOINT_FULL, NULL, NULL);
    vd_status status = result == SQLITE_OK ? VD_OK : say(ledger, err);
    pthread_mutex_unlock(&ledger->lock);
    return status;
}

bool vd_row_number(void *number, sqlite3_stmt *row) {
    *(int64_t *)number = sqlite3_column_int64(row, 0);
    return false;
}

bool vd_row_seen(void *seen, sqlite3_stmt *row) {
    (void)row;
    *(bool *)seen = true;
    return false;
}

/* ---- open, close ---- */

/* The first statement locks the file for as long as it is open: two daemons on one folder would run
 * each job twice. */
static vd_status open_tables(vd_ledger *ledger, vd_err *err) {
    int64_t version = 0;
    sqlite3_busy_timeout(ledger->db, BUSY_MS);
    if (sqlite3_exec(ledger->db,
                     "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; "
                     "PRAGMA synchronous=NORMAL; BEGIN EXCLUSIVE; COMMIT;",
                     NULL, NULL, NULL) != SQLITE_OK)
        return sqlite3_errcode(ledger->db) == SQLITE_BUSY
                   ? vd_fail(err, VD_ERR_LOCAL, "%s: another daemon has it open", ledger->path)
                   : say(ledger, err);
    vd_status status =
        vd_ledger_sql(ledger, vd_row_number, &version, err, "PRAGMA user_version", "");
    if (status == VD_OK && (version < 0 || version > VERSION)) /* 0: a new ledger */
        return vd_fail_version(err, ledger->path, version, "a ledger", 1, VERSION);
    if (status != VD_OK || version == VERSION)
        return status;
    char script[sizeof schema + sizeof schema_3 + sizeof schema_4 + 64];
    snprintf(script, sizeof script, "BEGIN;%s%s%sPRAGMA user_version=%d;COMMIT;",
             version < 1 ? schema : "", version < 3 ? schema_3 : "", schema_4, VERSION);
    return sqlite3_exec(ledger->db, script, NULL, NULL, NULL) == SQLITE_OK ? VD_OK
                                                                           : say(ledger, err);
}

static vd_status in_transaction(vd_ledger *ledger, const char *sql) {
    vd_status status = vd_ledger_begin(ledger, NULL);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, NULL, NULL, NULL, sql, "");
    return vd_ledger_end(ledger, status, NULL);
}

/* Reserves space, so that a disk filled by jobs does not stop the ledger: without taking a nonce no
 * job could be deleted. The log grows to the length at which it starts over, and the database gets
 * free pages. If the disk is already too full, it is tried at the next start. */
static void make_room(vd_ledger *ledger) {
    char sql[80];
    snprintf(sql, sizeof sql, "INSERT INTO nonce VALUES('', zeroblob(%d), 0)", ROOM);
    if (in_transaction(ledger, sql) == VD_OK)
        (void)!in_transaction(ledger, "DELETE FROM nonce WHERE client=''");
}

vd_status vd_ledger_open(const char *dir, vd_ledger **out, vd_err *err) {
    vd_ledger *ledger = calloc(1, sizeof *ledger);
    *out = NULL;
    if (!ledger)
        return vd_fail(err, VD_ERR_LOCAL, "no memory for the ledger");
    snprintf(ledger->path, sizeof ledger->path, "%s/ledger.db", dir);
    if (pthread_mutex_init(&ledger->lock, NULL) != 0) {
        free(ledger);
        return vd_fail(err, VD_ERR_LOCAL, "could not create a mutex");
    }
    struct stat info;
    if (stat(ledger->path, &info) == 0 && !S_ISREG(info.st_mode)) {
        vd_ledger_close(ledger);
        return vd_fail(err, VD_ERR_USAGE, "cannot open %s/ledger.db: it is not a regular file",
                       dir);
    }
    const int opened =
        sqlite3_open_v2(ledger->path, &ledger->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL);
    vd_status status = opened == SQLITE_OK ? open_tables(ledger, err) : say(ledger, err);
    if (status == VD_OK && chmod(ledger->path, 0600) != 0)
        status = vd_fail(err, VD_ERR_LOCAL, "%s: %s", ledger->path, strerror(errno));
    if (status == VD_OK) {
        make_room(ledger);
        *out = ledger;
    } else {
        vd_ledger_close(ledger);
    }
    return status;
}

void vd_ledger_close(vd_ledger *ledger) {
    if (!ledger)
        return;
    sqlite3_close(ledger->db);
    pthread_mutex_destroy(&ledger->lock);
    free(ledger);
}

/* ---- nonces, usage, totals ---- */

/* Forgets old nonces but keeps their latest time: if a clock was ahead and is set back, requests up
 * to it stay refused. */
static vd_status forget_nonces(vd_ledger *ledger, int64_t since, vd_err *err) {
    vd_status status = vd_ledger_sql(
        ledger, NULL, NULL, err,
        "INSERT INTO forgotten SELECT client, max(time) FROM nonce WHERE time < ? GROUP BY client "
        "ON CONFLICT DO UPDATE SET time=max(time, excluded.time)",
        "i", since);
    return status == VD_OK ? vd_ledger_sql(ledger, NULL, NULL, err,
                                           "DELETE FROM nonce WHERE time < ?", "i", since)
                           : status;
}

static vd_status check_time(vd_ledger *ledger, const char *client, int64_t time, vd_err *err) {
    int64_t forgotten = INT64_MIN;
    vd_status status = vd_ledger_sql(ledger, vd_row_number, &forgotten, err,
                                     "SELECT time FROM forgotten WHERE client=?", "s", client);
    return status == VD_OK && time <= forgotten
               ? vd_fail(err, VD_ERR_PEER,
                         "request: it is of second %lld, and of requests of up to second %lld this "
                         "provider no longer knows which have come: its clock was ahead; sign it "
                         "anew",
                         (long long)time, (long long)forgotten)
               : status;
}

vd_status vd_ledger_take_nonce(vd_ledger *ledger, const char *client, const char *nonce,
                               int64_t time, int64_t since, vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = forget_nonces(ledger, since, err);
    if (status == VD_OK)
        status = check_time(ledger, client, time, err);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, NULL, NULL, err, "INSERT OR IGNORE INTO nonce VALUES(?,?,?)",
                               "ssi", client, nonce, time);
    if (status == VD_OK && sqlite3_changes(ledger->db) == 0)
        status = vd_fail(err, VD_ERR_PEER, "request: it was sent before; sign it anew");
    return vd_ledger_end(ledger, status, err);
}

vd_status vd_ledger_usage(vd_ledger *ledger, const char *client, vd_usage *out, vd_err *err) {
    *out = (vd_usage){0};
    int64_t bytes = 0, results = 0, deleted = 0, kept = 0, judged_us = 0;
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status =
            vd_ledger_sql(ledger, vd_row_number, &bytes, err,
                          "SELECT coalesce(sum((size+?1-1)/?1*?1+?1),0) FROM owned WHERE client=?2",
                          "is", (int64_t)VD_DISK_BLOCK, client); /* as vd_disk_bytes */
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, vd_row_number, &out->blobs, err,
                               "SELECT count(*) FROM owned WHERE client=?", "s", client);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, vd_row_number, &results, err,
                               "SELECT coalesce(sum(max(disk,written)*(1+again)),0) FROM job WHERE "
                               "client=?",
                               "s", client);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, vd_row_number, &out->jobs, err,
                               "SELECT count(*) FROM job WHERE client=? AND state<=?", "si", client,
                               (int64_t)VD_JOB_RUNNING);
    if (status == VD_OK)
        status =
            vd_ledger_sql(ledger, vd_row_number, &kept, err,
                          "SELECT coalesce(sum(seconds),0) FROM job WHERE client=?", "s", client);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, vd_row_number, &deleted, err,
                               "SELECT seconds FROM spent WHERE client=?", "s", client);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, vd_row_number, &judged_us, err,
                               "SELECT us FROM judged WHERE client=?", "s", client);
    out->bytes = bytes + results;
    out->seconds = kept + deleted + judged_us / 1000000;
    return vd_ledger_end(ledger, status, err);
}

vd_status vd_ledger_charge_judging(vd_ledger *ledger, const char *client, int64_t us, vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, NULL, NULL, err,
                               "INSERT INTO judged VALUES(?,?) ON CONFLICT DO UPDATE SET "
                               "us=us+excluded.us",
                               "si", client, us);
    return vd_ledger_end(ledger, status, err);
}

bool vd_ledger_is_fine(const vd_ledger *ledger) {
    return !atomic_load(&ledger->failing);
}

/* Tries to write, under an empty key, which nobody has. */
vd_status vd_ledger_probe(vd_ledger *ledger, vd_err *err) {
    return vd_ledger_charge_judging(ledger, "", 1, err);
}

static bool count_state(void *user, sqlite3_stmt *row) {
    vd_ledger_totals *out = user;
    const int state = sqlite3_column_int(row, 0);
    if (state >= 0 && state <= VD_JOB_CANCELLED)
        out->jobs[state] = sqlite3_column_int64(row, 1);
    return true;
}

static bool count_blobs(void *user, sqlite3_stmt *row) {
    vd_ledger_totals *out = user;
    out->blobs = sqlite3_column_int64(row, 0);
    out->blob_bytes = sqlite3_column_int64(row, 1);
    return false;
}

vd_status vd_ledger_count(vd_ledger *ledger, vd_ledger_totals *out, vd_err *err) {
    *out = (vd_ledger_totals){.blobs = 0};
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, count_state, out, err,
                               "SELECT state, count(*) FROM job GROUP BY state", "");
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, count_blobs, out, err,
                               "SELECT count(*), coalesce(sum(size),0) FROM (SELECT hash, size "
                               "FROM owned WHERE complete=1 GROUP BY hash)",
                               "");
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, vd_row_number, &out->uploads, err,
                               "SELECT count(*) FROM owned WHERE complete=0", "");
    return vd_ledger_end(ledger, status, err);
}
