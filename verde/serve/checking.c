/* This file hashes a run's files in a thread before anything is signed. */
#include "verde/serve/checking.h"
#include "verde/base/thread.h"

#include <string.h>

void vd_checking_bytes(void *user, uint64_t done, uint64_t total) {
    vd_checking *c = user;
    atomic_store(&c->bytes, done);
    atomic_store(&c->of, total);
    vd_tell_hashing(&c->hashing, done, total);
}

vd_status vd_checking_run(vd_checking *c, vd_err *err) {
    c->hashing = (vd_ticker){.start = vd_seconds()};
    vd_status status = vd_served_check(c->served, c, err);
    if (status == VD_OK && c->fits)
        status = c->fits(c->user, err);
    atomic_store(&c->done, status == VD_OK);
    return status;
}

static void *check_main(void *user) {
    vd_checking *c = user;
    c->status = vd_checking_run(c, &c->err);
    c->ended(c->user, c->status == VD_OK);
    return NULL;
}

vd_status vd_checking_start(vd_checking *c, vd_err *err) {
    const int error = vd_thread_start(&c->thread, check_main, c);
    return error ? vd_fail(err, VD_ERR_LOCAL, "could not start a thread: %s", strerror(error))
                 : VD_OK;
}

vd_status vd_checking_end(vd_checking *c, vd_err *err) {
    atomic_store(&c->stop, true);
    pthread_join(c->thread, NULL);
    return c->status == VD_OK || c->status == VD_ERR_TIMEOUT
               ? VD_OK
               : vd_fail(err, c->status, "%s", c->err.text);
}

void vd_checking_items(vd_checking *c, uint32_t done, uint32_t of) {
    atomic_store(&c->items, done);
    atomic_store(&c->of_items, of);
    vd_tell_hashed_items(&c->hashing, done, of);
}

void vd_checking_print(vd_checking *c, char *text, size_t size) {
    char bytes[32], of[32];
    const uint32_t items = atomic_load(&c->of_items);
    if (items > 0) {
        snprintf(text, size, "hashing the prompts' runs first: %u of %u", atomic_load(&c->items),
                 items);
        return;
    }
    vd_print_size(atomic_load(&c->bytes), bytes);
    vd_print_size(atomic_load(&c->of), of);
    if (atomic_load(&c->of) > 0)
        snprintf(text, size, "hashing the files of the run first: %s of %s", bytes, of);
    else
        snprintf(text, size, "hashing the files of the run first");
}
