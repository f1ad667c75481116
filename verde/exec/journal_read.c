/* This file reads journals. It checks records before it uses them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verde/exec/journal_internal.h"

enum { PIECE_BYTES = 1 << 16 }; /* bytes hashed at a time */

/* False: the file is too short, or cannot be read. */
static bool read_at(const vd_journal *j, uint64_t at, void *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t got = pread(j->fd, (char *)bytes + done, size - done, (off_t)(at + done));
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* ---- one record ---- */

typedef struct {
    uint64_t at, size;
    int64_t step;
    vd_hash S;
    uint32_t count;
    vd_written *written; /* owned */
    uint64_t bytes;      /* offset of the written bytes */
} record;

static bool read_head(const vd_journal *j, uint64_t at, record *r) {
    uint8_t head[VD_JOURNAL_HEAD_BYTES];
    if (!read_at(j, at, head, sizeof head))
        return false;
    vd_cursor c = vd_cursor_of(head, sizeof head);
    *r = (record){.at = at, .size = vd_get_u64(&c), .step = (int64_t)vd_get_u64(&c)};
    memcpy(r->S.b, vd_get(&c, VD_HASH_SIZE), VD_HASH_SIZE);
    r->count = vd_get_u32(&c);
    return r->count <= VD_JOURNAL_WRITES_MAX && r->size >= VD_JOURNAL_RECORD_BYTES;
}

static bool fits_leaf(const vd_program *program, const vd_written *w) {
    if (w->leaf >= program->leaf_count)
        return false;
    const ro_shape *shape = &program->leaf[w->leaf].shape;
    const uint64_t size = vd_shape_bytes(shape), element = ro_dtype_size(shape->dtype);
    return w->from <= size && w->size <= size - w->from && w->from % element == 0 &&
           w->size % element == 0;
}

/* Reads the list of writes; false: it is malformed. */
static bool read_list(const vd_journal *j, record *r) {
    const size_t size = (size_t)r->count * VD_JOURNAL_WRITE_BYTES;
    uint8_t *list = malloc(size + 1);
    r->written = malloc(((size_t)r->count + 1) * sizeof *r->written);
    uint64_t left = r->size - VD_JOURNAL_RECORD_BYTES;
    bool good =
        list && r->written && left >= size && read_at(j, r->at + VD_JOURNAL_HEAD_BYTES, list, size);
    left -= good ? size : 0;
    vd_cursor c = vd_cursor_of(list, size);
    for (uint32_t i = 0; good && i < r->count; i++) {
        vd_written *w = &r->written[i];
        *w = (vd_written){.leaf = vd_get_u32(&c)};
        w->from = vd_get_u64(&c), w->size = vd_get_u64(&c);
        good = fits_leaf(j->program, w) && w->size <= left;
        left -= good ? w->size : 0;
    }
    free(list);
    r->bytes = r->at + VD_JOURNAL_HEAD_BYTES + size;
    return good && left == 0;
}

/* Returns whether the record matches its hash. */
static bool is_whole(const vd_journal *j, const record *r) {
    uint8_t piece[PIECE_BYTES];
    vd_hash seal, told;
    vd_sha *sha = vd_sha_create();
    const uint64_t end = r->at + r->size - VD_HASH_SIZE;
    bool good = sha != NULL;
    if (good)
        vd_sha_put(sha, VD_JOURNAL_TAG, sizeof VD_JOURNAL_TAG);
    for (uint64_t at = r->at; good && at < end;) {
        const size_t size = end - at < sizeof piece ? (size_t)(end - at) : sizeof piece;
        good = read_at(j, at, piece, size);
        if (good)
            vd_sha_put(sha, piece, size);
        at += size;
    }
    good = good && vd_sha_finish(sha, &seal) && read_at(j, end, told.b, VD_HASH_SIZE) &&
           vd_hash_equal(&seal, &told);
    vd_sha_destroy(sha);
    return good;
}

static bool read_record(const vd_journal *j, uint64_t at, int64_t step, uint64_t file_size,
                        record *r) {
    *r = (record){0};
    return read_head(j, at, r) && r->step == step && r->size <= file_size - at && read_list(j, r) &&
           is_whole(j, r);
}

/* ---- the file ---- */

static vd_status refuse_header(const vd_journal *j, const uint8_t *got, bool whole, vd_err *err) {
    const int version = got[sizeof VD_JOURNAL_MAGIC] | got[sizeof VD_JOURNAL_MAGIC + 1] << 8;
    if (whole && memcmp(got, VD_JOURNAL_MAGIC, sizeof VD_JOURNAL_MAGIC) == 0 &&
        version != VD_JOURNAL_VERSION)
        return vd_fail_version(err, j->path, version, "a journal", VD_JOURNAL_VERSION,
                               VD_JOURNAL_VERSION);
    return vd_fail(err, VD_ERR_PEER,
                   "%s: not a journal of this run's program; without the directory that it lies "
                   "in, this prompt is run again",
                   j->path);
}

static vd_status check_header(const vd_journal *j, const vd_hash *program_hash, vd_err *err) {
    uint8_t got[VD_JOURNAL_HEADER_BYTES] = {0};
    vd_buf want = {0};
    vd_journal_header(program_hash, &want);
    const bool whole = read_at(j, 0, got, sizeof got);
    vd_status status =
        vd_buf_ok(&want) ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", j->path);
    if (status == VD_OK && (!whole || memcmp(got, want.data, sizeof got) != 0))
        status = refuse_header(j, got, whole, err);
    vd_buf_free(&want);
    return status;
}

static vd_status read_records(vd_journal *j, uint64_t file_size, int64_t synced, vd_err *err) {
    record r;
    bool more = true;
    while (more && j->count <= j->program->steps && j->size < file_size) {
        more = read_record(j, j->size, j->count, file_size, &r);
        free(r.written);
        if (more && !vd_journal_note(j, j->size, &r.S))
            return vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", j->path);
        j->size += more ? r.size : 0;
    }
    if (j->count < synced)
        return vd_fail(err, VD_ERR_PEER,
                       "%s: the record of step %lld, at byte %llu, is damaged, and was on disk "
                       "whole; restore the file, or give another directory",
                       j->path, (long long)j->count, (unsigned long long)j->size);
    return VD_OK;
}

vd_status vd_journal_open(const char *dir, const vd_program *program, const vd_hash *program_hash,
                          int64_t synced, vd_journal *out, vd_err *err) {
    struct stat info = {0};
    *out = (vd_journal){.fd = -1, .program = program, .size = VD_JOURNAL_HEADER_BYTES};
    snprintf(out->path, sizeof out->path, "%s/journal", dir);
    out->fd = open(out->path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (out->fd < 0 && (errno == EROFS || errno == EACCES)) /* it can still be read */
        out->fd = open(out->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (out->fd < 0 && errno == ENOENT)
        return vd_fail(err, VD_ERR_IO, "%s: there is no journal", out->path);
    vd_status status = out->fd < 0 || fstat(out->fd, &info) != 0 || !S_ISREG(info.st_mode)
                           ? vd_journal_fail(out, "open", err)
                           : check_header(out, program_hash, err);
    if (status == VD_OK)
        status = read_records(out, (uint64_t)info.st_size, synced, err);
    if (status == VD_OK && out->size < (uint64_t)info.st_size)
        status = vd_journal_cut(out, out->count, err);
    if (status != VD_OK)
        vd_journal_close(out);
    return status;
}

/* ---- states ---- */

static vd_status apply_record(const vd_journal *j, int64_t step, vd_state *state, vd_err *err) {
    record r;
    bool good = read_record(j, j->step[step].at, step, j->size, &r);
    uint64_t at = r.bytes;
    for (uint32_t i = 0; good && i < r.count; i++) {
        const vd_written *w = &r.written[i];
        uint8_t *to = (uint8_t *)state->tensor[w->leaf] + w->from;
        good = read_at(j, at, to, w->size);
        vd_from_little(to, w->size, ro_dtype_size(j->program->leaf[w->leaf].shape.dtype));
        at += w->size;
    }
    free(r.written);
    if (!good)
        return vd_fail(err, VD_ERR_LOCAL, "%s: the record of step %lld is no longer whole", j->path,
                       (long long)step);
    state->step = step;
    return VD_OK;
}

vd_status vd_journal_apply(const vd_journal *j, int64_t to, vd_state *state, vd_err *err) {
    vd_status status = VD_OK;
    if (to >= j->count || to < state->step)
        return vd_fail(err, VD_ERR_LOCAL, "%s: step %lld from step %lld, with %lld records",
                       j->path, (long long)to, (long long)state->step, (long long)j->count);
    while (status == VD_OK && state->step < to)
        status = apply_record(j, state->step + 1, state, err);
    return status;
}
