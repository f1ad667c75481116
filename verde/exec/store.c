/* This file writes and reads a run's program and states. */
#include "verde/exec/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verde/exec/journal.h"
#include "verde/exec/memory.h"

static void file_path(char path[1024], const char *dir, const char *name) {
    snprintf(path, 1024, "%s/%s", dir, name);
}

void vd_store_state_path(char path[1024], const char *dir, const vd_hash *commitment) {
    char hex[2 * VD_HASH_SIZE + 1];
    vd_hex(commitment->b, VD_HASH_SIZE, hex);
    snprintf(path, 1024, "%s/state-%s", dir, hex);
}

/* Returns whether a file belongs to something else. A run that stopped before its first checkpoint
 * leaves a program and an empty file of losses, but no data. */
static bool is_in_the_way(const char *dir, const char *name) {
    char path[1024];
    vd_program left = {0};
    vd_err unread = {0};
    struct stat is;
    file_path(path, dir, name);
    if (lstat(path, &is) != 0 || (S_ISREG(is.st_mode) && is.st_size == 0))
        return false;
    bool foreign = strcmp(name, "program") != 0 || vd_store_program(dir, &left, &unread) != VD_OK;
    vd_program_free(&left);
    return foreign;
}

static vd_status check_empty(const char *dir, vd_err *err) {
    static const char *const names[] = {"program", "data", "data.json", "losses.jsonl",
                                        "checkpoints"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_in_the_way(dir, names[i]))
            return vd_fail(err, VD_ERR_USAGE,
                           "%s: holds no run.json, and a %s that a run would overwrite; give "
                           "another directory",
                           dir, names[i]);
    return VD_OK;
}

vd_status vd_store_create(const char *dir, const vd_program *program, vd_err *err) {
    char path[1024];
    vd_buf bytes = {0};
    if (strlen(dir) > 900)
        return vd_fail(err, VD_ERR_USAGE, "%.60s...: path longer than 900 bytes", dir);
    vd_status status = vd_make_dir(dir, err);
    if (status == VD_OK)
        status = check_empty(dir, err);
    vd_program_encode(program, &bytes);
    if (status == VD_OK && !vd_buf_ok(&bytes))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    file_path(path, dir, "program");
    if (status == VD_OK)
        status = vd_write_file(path, bytes.data, bytes.size, 0644, err);
    vd_buf_free(&bytes);
    return status;
}

vd_status vd_store_program(const char *dir, vd_program *out, vd_err *err) {
    char path[1024];
    vd_buf bytes = {0};
    vd_err why = {0};
    *out = (vd_program){0};
    file_path(path, dir, "program");
    vd_status status = vd_read_file(path, VD_PROGRAM_BYTES_MAX, &bytes, err);
    if (status == VD_OK) {
        status = vd_program_decode(bytes.data, bytes.size, out, &why);
        if (status != VD_OK)
            status = vd_fail(err, status, "%s: %s", path, why.text);
    }
    vd_buf_free(&bytes);
    return status;
}

static vd_status put_tensor(vd_writer *writer, const ro_shape *shape, const void *host,
                            vd_err *err) {
    void *copy = NULL;
    const size_t size = vd_shape_bytes(shape);
    const void *bytes = vd_to_little(host, size, ro_dtype_size(shape->dtype), &copy);
    const vd_status status = bytes ? vd_writer_put(writer, bytes, size, err)
                                   : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    free(copy);
    return status;
}

vd_status vd_store_save_leaves(const char *dir, const vd_program *program,
                               const vd_leaf_stream *leaves, const vd_hash *commitment,
                               vd_err *err) {
    char path[1024];
    vd_writer writer = {0};
    vd_store_state_path(path, dir, commitment);
    vd_status status = vd_writer_open(&writer, path, 0644, err);
    if (status != VD_OK)
        return status;
    for (uint32_t i = 0; status == VD_OK && i < program->leaf_count; i++) {
        const void *host = leaves->leaf(leaves->user, i, err);
        status = host ? put_tensor(&writer, &program->leaf[i].shape, host, err) : VD_ERR_LOCAL;
        leaves->drop(leaves->user);
    }
    if (status == VD_OK)
        return vd_writer_commit(&writer, err);
    vd_writer_abort(&writer);
    return status;
}

typedef struct {
    const vd_program *program;
    const vd_state *state;
    void *copy; /* of a leaf on a device; owned */
} held_state;

static const void *held_leaf(void *user, uint32_t leaf, vd_err *err) {
    held_state *h = user;
    return vd_memory_in_host(h->state->memory, h->state->tensor[leaf],
                             vd_shape_bytes(&h->program->leaf[leaf].shape), &h->copy, err);
}

static void drop_leaf(void *user) {
    held_state *h = user;
    free(h->copy);
    h->copy = NULL;
}

vd_status vd_store_save_state(const char *dir, const vd_program *program, const vd_state *state,
                              const vd_hash *commitment, vd_err *err) {
    held_state held = {program, state, NULL};
    const vd_leaf_stream leaves = {held_leaf, drop_leaf, &held};
    return vd_store_save_leaves(dir, program, &leaves, commitment, err);
}

static vd_status read_all(int fd, const char *path, void *bytes, size_t size, vd_err *err) {
    for (size_t at = 0; at < size;) {
        ssize_t got = read(fd, (char *)bytes + at, size - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return vd_fail(err, VD_ERR_IO, "%s: %s", path, got ? strerror(errno) : "cut short");
        at += (size_t)got;
    }
    return VD_OK;
}

static vd_status read_tensors(int fd, const char *path, const vd_program *program, vd_state *out,
                              vd_err *err) {
    out->count = program->leaf_count;
    out->tensor = calloc(out->count, sizeof *out->tensor);
    for (uint32_t i = 0; i < out->count; i++) {
        size_t size = vd_shape_bytes(&program->leaf[i].shape);
        if (!out->tensor || !(out->tensor[i] = aligned_alloc(64, (size + 63) / 64 * 64)))
            return vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", path);
        vd_status status = read_all(fd, path, out->tensor[i], size, err);
        if (status != VD_OK)
            return status;
        vd_from_little(out->tensor[i], size, ro_dtype_size(program->leaf[i].shape.dtype));
    }
    return VD_OK;
}

vd_status vd_store_load_file(ro_ctx *ro, const char *dir, const vd_program *program,
                             const vd_hash *program_hash, int64_t step, const vd_hash *commitment,
                             vd_state *out, vd_err *err) {
    char path[1024];
    vd_hash got;
    vd_err why = {0};
    int fd;
    uint64_t file_size;
    *out = (vd_state){.step = step};
    vd_store_state_path(path, dir, commitment);
    if (vd_open_file(path, &fd, &file_size, &why) != VD_OK)
        return vd_fail(err, VD_ERR_IO, "%s", why.text);
    vd_status status = read_tensors(fd, path, program, out, err);
    close(fd);
    if (status == VD_OK)
        status = vd_state_hash(ro, program, program_hash, out, NULL, &got, err);
    if (status == VD_OK && !vd_hash_equal(&got, commitment))
        status = vd_fail(err, VD_ERR_IO,
                         "%s: damaged: it is not the state of step %lld, whose hash is its name",
                         path, (long long)step);
    if (status != VD_OK)
        vd_state_free(out);
    return status;
}

static vd_status load_journaled(ro_ctx *ro, const char *dir, const vd_program *program,
                                const vd_hash *program_hash, int64_t step,
                                const vd_hash *commitment, vd_state *out, vd_err *err) {
    vd_journal journal = {0};
    vd_status status = vd_journal_open(dir, program, program_hash, 0, &journal, err);
    if (status != VD_OK)
        return vd_fail(err, status == VD_ERR_PEER ? VD_ERR_IO : status, "%s", err->text);
    status = vd_journal_state(ro, dir, &journal, program_hash, step, out, err);
    if (status == VD_OK && !vd_hash_equal(&journal.step[step].state, commitment)) {
        vd_state_free(out);
        status = vd_fail(err, VD_ERR_IO, "%s: has another state at step %lld", journal.path,
                         (long long)step);
    }
    vd_journal_close(&journal);
    return status;
}

vd_status vd_store_load_state(ro_ctx *ro, const char *dir, const vd_program *program,
                              const vd_hash *program_hash, int64_t step, const vd_hash *commitment,
                              vd_state *out, vd_err *err) {
    char path[1024];
    vd_err own = {0};
    *out = (vd_state){.step = step};
    vd_store_state_path(path, dir, commitment);
    if (access(path, F_OK) == 0 || !vd_journal_is_in(dir))
        return vd_store_load_file(ro, dir, program, program_hash, step, commitment, out, err);
    const vd_status status =
        load_journaled(ro, dir, program, program_hash, step, commitment, out, &own);
    return status == VD_OK ? status : vd_fail(err, status, "%s", own.text);
}
