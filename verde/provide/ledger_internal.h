/* Shared by the ledger's files: statements with their values. */
#ifndef VD_LEDGER_INTERNAL_H
#define VD_LEDGER_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "verde/provide/ledger.h"

struct vd_ledger {
    sqlite3 *db;
    pthread_mutex_t lock; /* one function at a time: each is a transaction */
    int changes;          /* of the connection, as this transaction began */
    atomic_bool failing;  /* the last transaction that failed has none after it that has written */
    char path[1100];
};

/* Sees a row; false: no more. */
typedef bool (*vd_row)(void *user, sqlite3_stmt *row);

/* Runs one statement, under the lock. `types` has a letter for each value: s for text, i for
 * int64_t. `row` may be NULL. VD_ERR_LOCAL: what SQLite says. */
VD_MUST_USE vd_status vd_ledger_sql(vd_ledger *ledger, vd_row row, void *user, vd_err *err,
                                    const char *sql, const char *types, ...);
/* A transaction, with the lock. After `begin`, whatever it returned, `end` must follow; it rolls
 * back unless `status` is VD_OK. */
VD_MUST_USE vd_status vd_ledger_begin(vd_ledger *ledger, vd_err *err);
VD_MUST_USE vd_status vd_ledger_end(vd_ledger *ledger, vd_status status, vd_err *err);
/* What was committed is on the disk, also if the power fails. */
VD_MUST_USE vd_status vd_ledger_sync(vd_ledger *ledger, vd_err *err);

/* For rows of one number, and of none. */
bool vd_row_number(void *number, sqlite3_stmt *row);
bool vd_row_seen(void *seen, sqlite3_stmt *row); /* sets a bool */

#endif
