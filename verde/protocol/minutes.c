/* This file writes and reads the journal of a dispute. PROTOCOL.md section 8.8. */
#include "verde/protocol/minutes.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC "verde dispute"
#define TAG   "verde/dispute/1"

enum {
    VERSION = 1,
    HEADER_BYTES = sizeof MAGIC + 2,
    HEAD_BYTES = 8 + 8,                         /* of a frame: size and complement */
    ENTRY_BYTES = 1 + 4 + VD_HASH_SIZE + 8 + 4, /* of an entry, without its bytes */
    NOTED_MAX = 1 << 24,                        /* entries in a file */
};

static bool seal_of(const vd_hash *before, const uint8_t *size, const void *entries, size_t bytes,
                    vd_hash *out) {
    vd_sha *sha = vd_sha_create();
    if (!sha)
        return false;
    vd_sha_put(sha, TAG, sizeof TAG);
    vd_sha_put(sha, before->b, VD_HASH_SIZE);
    vd_sha_put(sha, size, 8);
    vd_sha_put(sha, entries, bytes);
    const bool done = vd_sha_finish(sha, out);
    vd_sha_destroy(sha);
    return done;
}

static void put_header(vd_buf *out) {
    vd_put(out, MAGIC, sizeof MAGIC);
    vd_put_u16(out, VERSION);
}

/* ---- writing ---- */

static void put_entry(vd_buf *out, const vd_noted *n) {
    vd_put_u8(out, (uint8_t)n->kind);
    vd_put_u32(out, n->provider);
    vd_put(out, n->question.b, VD_HASH_SIZE);
    vd_put_u64(out, n->used_us);
    vd_put_u32(out, (uint32_t)n->size);
    vd_put(out, n->bytes, n->size);
}

static uint64_t entries_size(const vd_noted *noted, size_t count) {
    uint64_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += ENTRY_BYTES + noted[i].size;
    return size;
}

vd_status vd_minutes_frame(vd_minutes *m, const vd_noted *noted, size_t count, vd_buf *out,
                           vd_err *err) {
    const size_t begin = out->size;
    const uint64_t size = entries_size(noted, count);
    vd_hash seal;
    if (m->whole == 0)
        put_header(out);
    const size_t frame = out->size;
    vd_put_u64(out, size);
    vd_put_u64(out, ~size);
    for (size_t i = 0; i < count; i++)
        put_entry(out, &noted[i]);
    if (!vd_buf_ok(out) ||
        !seal_of(&m->seal, out->data + frame, out->data + frame + HEAD_BYTES, size, &seal))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_put(out, seal.b, VD_HASH_SIZE);
    if (!vd_buf_ok(out))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (m->whole + (out->size - begin) > VD_MINUTES_BYTES_MAX)
        return vd_fail(err, VD_ERR_LOCAL, "a journal of more than %llu bytes",
                       (unsigned long long)VD_MINUTES_BYTES_MAX);
    m->whole += out->size - begin;
    m->seal = seal;
    return VD_OK;
}

/* ---- reading ---- */

static vd_status damaged(uint64_t at, const char *what, vd_err *err) {
    return vd_fail(err, VD_ERR_USAGE, "damaged at byte %llu: %s", (unsigned long long)at, what);
}

static bool minutes_grow(vd_minutes *m) {
    const size_t capacity = m->capacity ? 2 * m->capacity : 64;
    vd_noted *grown = realloc(m->noted, capacity * sizeof *grown);
    if (!grown)
        return false;
    m->noted = grown;
    m->capacity = capacity;
    return true;
}

static vd_status check_entry(const vd_minutes *m, const vd_noted *n, uint64_t at, vd_err *err) {
    if (n->kind < VD_NOTED_ASSIGNMENT || n->kind >= VD_NOTED_KINDS)
        return damaged(at, "an entry of no known kind", err);
    if ((m->count == 0) != (n->kind == VD_NOTED_ASSIGNMENT))
        return damaged(at, "an assignment stands first, and nowhere else", err);
    if (n->provider >= VD_PARTIES_MAX)
        return damaged(at, "an entry of a provider that no assignment has", err);
    return m->count < NOTED_MAX ? VD_OK
                                : damaged(at, "more entries than a dispute or an audit has", err);
}

static vd_status read_entry(vd_minutes *m, vd_cursor *c, uint64_t at, vd_err *err) {
    vd_noted n = {.kind = (vd_noted_kind)vd_get_u8(c), .provider = vd_get_u32(c)};
    const uint8_t *question = vd_get(c, VD_HASH_SIZE);
    if (question)
        memcpy(n.question.b, question, VD_HASH_SIZE);
    n.used_us = vd_get_u64(c);
    n.size = vd_get_u32(c);
    n.bytes = vd_get(c, n.size);
    if (c->failed)
        return damaged(at, "an entry that its frame cuts short", err);
    vd_status status = check_entry(m, &n, at, err);
    if (status != VD_OK)
        return status;
    if (m->count == m->capacity && !minutes_grow(m))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    m->noted[m->count++] = n;
    return VD_OK;
}

static vd_status read_entries(vd_minutes *m, const uint8_t *bytes, size_t size, vd_err *err) {
    vd_cursor c = vd_cursor_of(bytes, size);
    vd_status status = VD_OK;
    while (status == VD_OK && c.at < size)
        status = read_entry(m, &c, m->whole + HEAD_BYTES + c.at, err);
    return status;
}

static bool is_zero(const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

/* Reads one frame. *torn: the file ends within it, or it was not written completely before a loss
 * of power, which may leave zeros or a file that is longer than its data. */
static vd_status read_frame(vd_minutes *m, const uint8_t *bytes, size_t left, bool *torn,
                            vd_err *err) {
    vd_cursor c = vd_cursor_of(bytes, left);
    vd_hash seal;
    *torn = left < HEAD_BYTES || is_zero(bytes, left);
    if (*torn)
        return VD_OK;
    const uint64_t size = vd_get_u64(&c), complement = vd_get_u64(&c);
    if (size != ~complement)
        return damaged(m->whole, "no frame begins there", err);
    *torn = left - HEAD_BYTES < VD_HASH_SIZE || size > left - HEAD_BYTES - VD_HASH_SIZE;
    if (*torn)
        return VD_OK;
    const uint8_t *entries = bytes + HEAD_BYTES;
    if (!seal_of(&m->seal, bytes, entries, (size_t)size, &seal))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (memcmp(seal.b, entries + size, VD_HASH_SIZE) != 0) {
        *torn = size == left - HEAD_BYTES - VD_HASH_SIZE;
        return *torn ? VD_OK : damaged(m->whole, "a frame that does not fit its hash", err);
    }
    vd_status status = read_entries(m, entries, (size_t)size, err);
    m->seal = seal;
    m->whole += HEAD_BYTES + size + VD_HASH_SIZE;
    return status;
}

static vd_status read_all(const uint8_t *bytes, size_t size, vd_minutes *m, vd_err *err) {
    bool torn = false;
    vd_status status = VD_OK;
    m->whole = HEADER_BYTES;
    while (status == VD_OK && !torn && m->whole < size)
        status = read_frame(m, bytes + m->whole, size - (size_t)m->whole, &torn, err);
    if (m->whole == HEADER_BYTES)
        m->whole = 0; /* no whole frame was read, and the header is written with the first one */
    return status;
}

static vd_status refuse_header(const void *bytes, size_t size, vd_err *err) {
    vd_cursor c = vd_cursor_of(bytes, size);
    const uint8_t *magic = vd_get(&c, sizeof MAGIC);
    const uint16_t version = vd_get_u16(&c);
    return magic && memcmp(magic, MAGIC, sizeof MAGIC) == 0 && !c.failed
               ? vd_fail_version(err, NULL, version, "the journal of a dispute", VERSION, VERSION)
               : vd_fail(err, VD_ERR_USAGE, "not the journal of a dispute or an audit");
}

vd_status vd_minutes_read(const void *bytes, size_t size, vd_minutes *out, vd_err *err) {
    vd_buf header = {0};
    *out = (vd_minutes){0};
    put_header(&header);
    const size_t common = size < HEADER_BYTES ? size : HEADER_BYTES;
    vd_status status = VD_OK;
    if (!vd_buf_ok(&header))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    else if (common > 0 && memcmp(bytes, header.data, common) != 0)
        status = refuse_header(bytes, size, err);
    vd_buf_free(&header);
    if (status == VD_OK && size > HEADER_BYTES)
        status = read_all(bytes, size, out, err);
    if (status != VD_OK)
        vd_minutes_free(out);
    return status;
}

void vd_minutes_free(vd_minutes *m) {
    free(m->noted);
    *m = (vd_minutes){0};
}
