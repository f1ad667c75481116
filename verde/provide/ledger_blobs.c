/* Blobs and uploads in the ledger, and the collection of those that are not needed. */
#include <string.h>

#include "verde/provide/ledger_internal.h"

static bool see_blob(void *user, sqlite3_stmt *row) {
    vd_blob *out = user;
    out->size = sqlite3_column_int64(row, 0);
    out->complete = sqlite3_column_int(row, 1) != 0;
    return false;
}

vd_status vd_ledger_find_blob(vd_ledger *ledger, const char *client, const char *hash, vd_blob *out,
                              vd_err *err) {
    *out = (vd_blob){.size = -1};
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, see_blob, out, err,
                               "SELECT size, complete FROM owned WHERE client=? AND hash=?", "ss",
                               client, hash);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, vd_row_seen, &out->on_disk, err,
                               "SELECT 1 FROM owned WHERE hash=? AND complete=1", "s", hash);
    return vd_ledger_end(ledger, status, err);
}

vd_status vd_ledger_begin_blob(vd_ledger *ledger, const char *client, const char *hash,
                               int64_t size, int64_t now, vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, NULL, NULL, err,
                               "INSERT INTO owned VALUES(?,?,?,0,?) ON CONFLICT DO UPDATE SET "
                               "size=excluded.size, touched=excluded.touched WHERE complete=0",
                               "ssii", client, hash, size, now);
    return vd_ledger_end(ledger, status, err);
}

vd_status vd_ledger_end_blob(vd_ledger *ledger, const char *client, const char *hash, int64_t now,
                             vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, NULL, NULL, err,
                               "UPDATE owned SET complete=1, touched=? WHERE client=? AND hash=?",
                               "iss", now, client, hash);
    return vd_ledger_end(ledger, status, err);
}

vd_status vd_ledger_drop_upload(vd_ledger *ledger, const char *client, const char *hash,
                                vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(ledger, NULL, NULL, err,
                               "DELETE FROM owned WHERE client=? AND hash=? AND complete=0", "ss",
                               client, hash);
    return vd_ledger_end(ledger, status, err);
}

/* ---- collection ---- */

enum { AT_ONCE = 64 };

typedef struct {
    char client[AT_ONCE][VD_ID_SIZE], hash[AT_ONCE][VD_ID_SIZE];
    bool complete[AT_ONCE];
    bool shared[AT_ONCE]; /* another client has this file, too */
    int count;
} old_rows;

static bool see_old(void *user, sqlite3_stmt *row) {
    old_rows *old = user;
    snprintf(old->client[old->count], VD_ID_SIZE, "%s", (const char *)sqlite3_column_text(row, 0));
    snprintf(old->hash[old->count], VD_ID_SIZE, "%s", (const char *)sqlite3_column_text(row, 1));
    old->complete[old->count++] = sqlite3_column_int(row, 2) != 0;
    return old->count < AT_ONCE;
}

/* Forgets a row, and notes whether another client has the same blob. */
static vd_status forget_row(vd_ledger *ledger, old_rows *old, int i, vd_err *err) {
    vd_status status =
        vd_ledger_sql(ledger, NULL, NULL, err, "DELETE FROM owned WHERE client=? AND hash=?", "ss",
                      old->client[i], old->hash[i]);
    if (status == VD_OK && old->complete[i])
        status =
            vd_ledger_sql(ledger, vd_row_seen, &old->shared[i], err,
                          "SELECT 1 FROM owned WHERE hash=? AND complete=1", "s", old->hash[i]);
    return status;
}

static vd_status forget_some(vd_ledger *ledger, int64_t before, old_rows *old, vd_err *err) {
    vd_status status = vd_ledger_begin(ledger, err);
    if (status == VD_OK)
        status = vd_ledger_sql(
            ledger, see_old, old, err,
            "SELECT client, hash, complete FROM owned WHERE touched < ? AND NOT (complete=1 AND "
            "EXISTS (SELECT 1 FROM needs JOIN job USING(id) WHERE needs.hash=owned.hash AND "
            "job.client=owned.client))",
            "i", before);
    for (int i = 0; status == VD_OK && i < old->count; i++)
        status = forget_row(ledger, old, i, err);
    return vd_ledger_end(ledger, status, err);
}

/* Files are deleted last: a row without its file would be a blob that cannot be uploaded again. */
vd_status vd_ledger_collect(vd_ledger *ledger, int64_t before, vd_dropper drop, void *user,
                            vd_err *err) {
    vd_status status = VD_OK;
    int count = AT_ONCE;
    while (status == VD_OK && count == AT_ONCE) {
        old_rows old = {.count = 0};
        status = forget_some(ledger, before, &old, err);
        if (status == VD_OK && old.count)
            status = vd_ledger_sync(ledger, err);
        for (int i = 0; status == VD_OK && i < old.count; i++)
            if (!old.shared[i])
                drop(user, old.complete[i] ? NULL : old.client[i], old.hash[i]);
        count = old.count;
    }
    return status;
}
