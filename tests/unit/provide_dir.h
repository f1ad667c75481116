/* A folder with a ledger, for the tests of the provider's daemon. */
#ifndef PROVIDE_DIR_H
#define PROVIDE_DIR_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verde/provide/uploads.h"

static const char alice[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char bob[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

static char provide_dir[64];
static vd_ledger *ledger;

static inline void open_ledger(void) {
    vd_err err = {0};
    cr_assert(vd_ledger_open(provide_dir, &ledger, &err) == VD_OK, "%s", err.text);
}

static inline void setup(void) {
    snprintf(provide_dir, sizeof provide_dir, "/tmp/verde-provide-XXXXXX");
    cr_assert(mkdtemp(provide_dir));
    open_ledger();
}

static inline void teardown(void) {
    char command[96];
    vd_ledger_close(ledger);
    snprintf(command, sizeof command, "rm -rf %s", provide_dir);
    cr_expect(system(command) == 0);
}

/* Reopens the ledger as after kill -9: uncommitted changes are lost. */
static inline void reopen(void) {
    vd_ledger_close(ledger);
    open_ledger();
}

#endif
