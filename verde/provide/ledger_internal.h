/* Declarations shared by the ledger's files: statements with their values. */
#ifndef VD_LEDGER_INTERNAL_H
#define VD_LEDGER_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "verde/provide/ledger.h"

struct vd_ledger {
    sqlite3 *db;
    pthread_mutex_t lock; /* held by one function at a time: each is a transaction */
    int changes;          /* sqlite3_total_changes() when the transaction began */
    atomic_bool failing;  /* a transaction failed, and none has written since */
    char path[1100];
};

/* Called for each row; false: stop. */
typedef bool (*vd_row)(void *user, sqlite3_stmt *row);

/* Runs one statement; the lock is held. `types` has a letter for each value: s for text, i for
 * int64_t. `row` may be NULL. VD_ERR_LOCAL: the text is SQLite's. */
VD_MUST_USE vd_status vd_ledger_sql(vd_ledger *ledger, vd_row row, void *user, vd_err *err,
                                    const char *sql, const char *types, ...);
/* Begins and ends a transaction, which holds the lock. `end` must follow `begin`, even if that
 * failed; it rolls back unless `status` is VD_OK. */
VD_MUST_USE vd_status vd_ledger_begin(vd_ledger *ledger, vd_err *err);
VD_MUST_USE vd_status vd_ledger_end(vd_ledger *ledger, vd_status status, vd_err *err);
/* Makes what was committed survive a power failure. */
VD_MUST_USE vd_status vd_ledger_sync(vd_ledger *ledger, vd_err *err);

/* Row functions: the first stores a single number, the second that there was a row. */
bool vd_row_number(void *number, sqlite3_stmt *row);
bool vd_row_seen(void *seen, sqlite3_stmt *row); /* sets a bool */

#endif
