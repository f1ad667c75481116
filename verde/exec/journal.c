/* This file writes a run's journal: a record after each step. */
#include "verde/exec/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/exec/journal_internal.h"

vd_status vd_journal_fail(const vd_journal *j, const char *verb, vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "cannot %s %s: %s", verb, j->path, strerror(errno));
}

void vd_journal_header(const vd_hash *program_hash, vd_buf *out) {
    vd_put(out, VD_JOURNAL_MAGIC, sizeof VD_JOURNAL_MAGIC);
    vd_put_u16(out, VD_JOURNAL_VERSION);
    vd_put(out, program_hash->b, VD_HASH_SIZE);
}

void vd_journal_close(vd_journal *j) {
    if (j->path[0] && j->fd >= 0)
        close(j->fd);
    free(j->step);
    *j = (vd_journal){.fd = -1};
}

vd_status vd_journal_create(const char *dir, const vd_program *program, const vd_hash *program_hash,
                            vd_journal *out, vd_err *err) {
    vd_buf header = {0};
    *out = (vd_journal){.fd = -1, .program = program, .size = VD_JOURNAL_HEADER_BYTES};
    snprintf(out->path, sizeof out->path, "%s/journal", dir);
    vd_journal_header(program_hash, &header);
    vd_status status = vd_buf_ok(&header)
                           ? vd_write_file(out->path, header.data, header.size, 0644, err)
                           : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_buf_free(&header);
    if (status != VD_OK)
        return status;
    out->fd = open(out->path, O_RDWR | O_CLOEXEC);
    return out->fd >= 0 ? VD_OK : vd_journal_fail(out, "open", err);
}

bool vd_journal_note(vd_journal *j, uint64_t at, const vd_hash *S) {
    if (j->count == j->capacity) {
        const int64_t capacity = j->capacity ? 2 * j->capacity : 64;
        vd_journal_step *grown = realloc(j->step, (size_t)capacity * sizeof *grown);
        if (!grown)
            return false;
        j->step = grown;
        j->capacity = capacity;
    }
    j->step[j->count++] = (vd_journal_step){at, *S};
    return true;
}

/* ---- writing ---- */

static vd_status write_at(const vd_journal *j, uint64_t at, const void *bytes, size_t size,
                          vd_err *err) {
    for (size_t done = 0; done < size;) {
        const ssize_t put =
            pwrite(j->fd, (const char *)bytes + done, size - done, (off_t)(at + done));
        if (put < 0 && errno != EINTR)
            return vd_journal_fail(j, "write", err);
        done += put > 0 ? (size_t)put : 0;
    }
    return VD_OK;
}

static uint64_t record_size(const vd_written *written, uint32_t count) {
    uint64_t size = VD_JOURNAL_RECORD_BYTES + (uint64_t)count * VD_JOURNAL_WRITE_BYTES;
    for (uint32_t i = 0; i < count; i++)
        size += written[i].size;
    return size;
}

/* Appends bytes [from, from + size) of a leaf, little-endian. */
static bool put_bytes(const vd_journal *j, const vd_state *state, const vd_written *w,
                      vd_buf *record) {
    const vd_leaf *leaf = &j->program->leaf[w->leaf];
    void *copy = NULL;
    const void *bytes = vd_to_little((const uint8_t *)state->tensor[w->leaf] + w->from, w->size,
                                     ro_dtype_size(leaf->shape.dtype), &copy);
    if (bytes)
        vd_put(record, bytes, w->size);
    free(copy);
    return bytes != NULL;
}

static bool put_record(const vd_journal *j, const vd_state *state, const vd_hash *S,
                       const vd_written *written, uint32_t count, vd_buf *record) {
    vd_hash seal;
    bool done = true;
    vd_put_u64(record, record_size(written, count));
    vd_put_u64(record, (uint64_t)state->step);
    vd_put(record, S->b, VD_HASH_SIZE);
    vd_put_u32(record, count);
    for (uint32_t i = 0; i < count; i++) {
        vd_put_u32(record, written[i].leaf);
        vd_put_u64(record, written[i].from);
        vd_put_u64(record, written[i].size);
    }
    for (uint32_t i = 0; done && i < count; i++)
        done = put_bytes(j, state, &written[i], record);
    if (!done || !vd_buf_ok(record) ||
        !vd_hash_tagged(VD_JOURNAL_TAG, record->data, record->size, &seal))
        return false;
    vd_put(record, seal.b, VD_HASH_SIZE);
    return vd_buf_ok(record);
}

vd_status vd_journal_put(vd_journal *j, const vd_state *state, const vd_hash *S,
                         const vd_written *written, uint32_t count, vd_err *err) {
    vd_buf record = {0};
    if (state->step != j->count || count > VD_JOURNAL_WRITES_MAX)
        return vd_fail(err, VD_ERR_LOCAL, "%s: record of step %lld after %lld records, %u writes",
                       j->path, (long long)state->step, (long long)j->count, count);
    vd_status status = put_record(j, state, S, written, count, &record)
                           ? write_at(j, j->size, record.data, record.size, err)
                           : vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", j->path);
    if (status == VD_OK && !vd_journal_note(j, j->size, S))
        status = vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", j->path);
    if (status == VD_OK)
        j->size += record.size;
    vd_buf_free(&record);
    return status;
}

vd_status vd_journal_sync(vd_journal *j, vd_err *err) {
    return fsync(j->fd) == 0 || errno == EINVAL ? VD_OK : vd_journal_fail(j, "sync", err);
}

vd_status vd_journal_cut(vd_journal *j, int64_t count, vd_err *err) {
    if (count < j->count) {
        j->size = j->step[count].at;
        j->count = count;
    }
    return ftruncate(j->fd, (off_t)j->size) == 0 ? VD_OK : vd_journal_fail(j, "cut off", err);
}
