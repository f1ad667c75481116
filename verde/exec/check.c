/* This file hashes the states of a run, and finds files that differ from run.json. */
#include "verde/exec/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/exec/backend.h"
#include "verde/exec/journal.h"
#include "verde/exec/state_file.h"

/* ---- states ---- */

/* Returns whether a state is in the run's journal only. */
static bool is_journaled(const vd_check *c, uint32_t i) {
    char path[1024];
    vd_store_state_path(path, c->dir, &c->log->state[i]);
    return access(path, F_OK) != 0 && vd_journal_is_in(c->dir);
}

vd_status vd_check_sizes(const vd_check *c, vd_err *err) {
    char path[1024];
    for (uint32_t i = 0; i < c->log->count; i++) {
        if (vd_run_log_kept(c->log, i) != i || is_journaled(c, i))
            continue;
        vd_store_state_path(path, c->dir, &c->log->state[i]);
        vd_status status = vd_state_file_fits(path, c->exec->program, err);
        if (status != VD_OK)
            return status;
    }
    return VD_OK;
}

/* The index of the checkpoint whose tensors have this root; log->count: none. */
static vd_status check_find(const vd_check *c, const vd_hash *root, uint32_t *index, vd_err *err) {
    vd_hash state;
    for (*index = 0; *index < c->log->count; (*index)++) {
        if (!vd_state_of_root(&c->log->program, c->log->step[*index], root, &state))
            return vd_fail(err, VD_ERR_LOCAL, "out of memory in committing to a state");
        if (vd_hash_equal(&state, &c->log->state[*index]))
            return VD_OK;
    }
    return VD_OK;
}

/* Reports which state of the run the file has, if it is not the expected one. */
static vd_status is_another(const vd_check *c, const char *path, uint32_t expected,
                            const vd_hash *found, const vd_hash *root, vd_err *err) {
    char hex[2 * VD_HASH_SIZE + 1], also[64] = "";
    uint32_t other;
    vd_status status = check_find(c, root, &other, err);
    if (status != VD_OK)
        return status;
    if (other < c->log->count)
        snprintf(also, sizeof also, ", and are those of step %lld", (long long)c->log->step[other]);
    vd_hex(found->b, VD_HASH_SIZE, hex);
    return vd_fail(err, VD_ERR_PEER,
                   "%s: expected the state of step %lld, states[%u] of run.json, as the name says; "
                   "the bytes give %s%s",
                   path, (long long)c->log->step[expected], expected, hex, also);
}

static vd_status check_journaled(const vd_check *c, uint32_t i, vd_err *err) {
    vd_state state = {0};
    const vd_status status = vd_store_load_state(NULL, c->dir, c->exec->program, &c->log->program,
                                                 c->log->step[i], &c->log->state[i], &state, err);
    vd_state_free(&state);
    return status == VD_ERR_IO ? vd_fail(err, VD_ERR_PEER, "%s", err->text) : status;
}

static vd_status check_state(const vd_check *c, uint32_t i, vd_hashed *hashed, vd_err *err) {
    char path[1024];
    vd_hash root, found;
    if (is_journaled(c, i))
        return check_journaled(c, i, err);
    vd_store_state_path(path, c->dir, &c->log->state[i]);
    vd_status status = vd_state_file_root(path, hashed, &root, err);
    if (status != VD_OK)
        return status;
    if (!vd_state_of_root(&c->log->program, c->log->step[i], &root, &found))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory in committing to a state");
    return vd_hash_equal(&found, &c->log->state[i]) ? VD_OK
                                                    : is_another(c, path, i, &found, &root, err);
}

vd_status vd_check_states(const vd_check *c, uint32_t first, uint32_t count, vd_err *err) {
    vd_hashed hashed = {.check = c};
    vd_status status = VD_OK;
    for (uint32_t i = first; i < first + count; i++)
        if (vd_run_log_kept(c->log, i) == i)
            hashed.total += vd_state_bytes(c->exec->program);
    for (uint32_t i = first; i < first + count && status == VD_OK; i++)
        if (vd_run_log_kept(c->log, i) == i)
            status = check_state(c, i, &hashed, err);
    return status;
}

/* The checkpoint that a file's name stands for, in any directory; the last one if there is none. */
static uint32_t named(const vd_check *c, const char *path) {
    char own[1024];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (uint32_t i = 0; i < c->log->count; i++) {
        vd_store_state_path(own, "", &c->log->state[i]);
        if (strcmp(own + 1, name) == 0)
            return i;
    }
    return c->log->count - 1;
}

vd_status vd_check_file(const vd_check *c, const char *path, uint32_t *index, vd_err *err) {
    vd_hashed hashed = {.check = c, .total = vd_state_bytes(c->exec->program)};
    const uint32_t expected = named(c, path);
    char hex[2 * VD_HASH_SIZE + 1];
    vd_hash root, found;
    vd_status status = vd_state_file_root(path, &hashed, &root, err);
    if (status == VD_OK)
        status = check_find(c, &root, index, err);
    if (status != VD_OK || *index < c->log->count)
        return status;
    if (!vd_state_of_root(&c->log->program, c->log->step[expected], &root, &found))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory in committing to a state");
    vd_hex(found.b, VD_HASH_SIZE, hex);
    return vd_fail(err, VD_ERR_PEER,
                   "%s: expected one of the %u states in %s/run.json, the bytes are none of them: "
                   "as the state of step %lld they give %s",
                   path, c->log->count, c->dir, (long long)c->log->step[expected], hex);
}

/* ---- emitted records ---- */

/* Checks what the run's backend, if any, emitted against the checkpoints' commitments. */
static vd_status check_emitted(const vd_check *c, vd_err *err) {
    return c->log->backend ? c->log->backend->check(c, 0, c->log->count, err) : VD_OK;
}

vd_status vd_check_run(const vd_check *c, vd_err *err) {
    vd_status status = vd_check_sizes(c, err);
    if (status == VD_OK)
        status = check_emitted(c, err);
    return status == VD_OK ? vd_check_states(c, 0, c->log->count, err) : status;
}
