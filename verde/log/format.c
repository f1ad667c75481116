/* The frame around the sections of a step: header, index, trailer. PROTOCOL.md section 11.1. */
#include "verde/log/internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "verdelog", end_magic[] = "verdeend";
enum { MAGIC_SIZE = 8, VERSION = 1 };

vd_status vd_log_fail(const vd_log_place *place, vd_status status, vd_err *err, const char *format,
                      ...) {
    char text[sizeof err->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return vd_fail(err, status, "%s, step %lld: %s", place->path, (long long)place->step, text);
}

vd_status vd_log_check_nodes(const vd_log_node *node, uint32_t count, vd_err *err) {
    uint64_t sections = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && node[i].node <= node[i - 1].node)
            return vd_fail(err, VD_ERR_LOCAL, "node %u is listed after node %u", node[i].node,
                           node[i - 1].node);
        if (node[i].elements > (uint64_t)RO_MAX_NUMEL)
            return vd_fail(err, VD_ERR_LOCAL, "node %u has %llu elements", node[i].node,
                           (unsigned long long)node[i].elements);
        sections += vd_log_sections(node[i].elements);
    }
    if (sections > VD_LOG_SECTIONS_MAX)
        return vd_fail(err, VD_ERR_LOCAL, "%llu sections to log, at most %d are allowed",
                       (unsigned long long)sections, (int)VD_LOG_SECTIONS_MAX);
    return VD_OK;
}

vd_log_node vd_log_block_of(uint32_t node, uint64_t elements, uint64_t block) {
    const uint64_t left = elements - block * VD_LOG_BLOCK;
    return (vd_log_node){node, left < VD_LOG_BLOCK ? left : VD_LOG_BLOCK};
}

vd_log_node *vd_log_blocks_of(const vd_log_node *node, uint32_t count, uint32_t *sections) {
    uint64_t all = 0, at = 0;
    for (uint32_t i = 0; i < count; i++)
        all += vd_log_sections(node[i].elements);
    vd_log_node *block = calloc(all ? (size_t)all : 1, sizeof *block);
    *sections = (uint32_t)all;
    for (uint32_t i = 0; block && i < count; i++)
        for (uint64_t b = 0; b < vd_log_sections(node[i].elements); b++)
            block[at++] = vd_log_block_of(node[i].node, node[i].elements, b);
    return block;
}

vd_log_node *vd_log_copy_nodes(const vd_log_node *node, uint32_t count) {
    vd_log_node *copy = calloc(count ? count : 1, sizeof *copy);
    if (copy && count > 0)
        memcpy(copy, node, count * sizeof *copy);
    return copy;
}

void vd_log_put_header(vd_buf *out, const vd_log_run *run, int64_t step, uint32_t sections) {
    vd_put(out, magic, MAGIC_SIZE);
    vd_put_u16(out, VERSION);
    vd_put_u8(out, (uint8_t)run->encoding);
    vd_put_u8(out, (uint8_t)run->bits);
    vd_put_u32(out, sections);
    vd_put_u64(out, (uint64_t)step);
    vd_put(out, run->program.b, VD_HASH_SIZE);
    vd_put(out, run->run.b, VD_HASH_SIZE);
    vd_put(out, run->thresholds.b, VD_HASH_SIZE);
}

static vd_status check_hash(const vd_log_place *place, vd_cursor *in, const vd_hash *expected,
                            const char *what, vd_err *err) {
    char got_hex[2 * VD_HASH_SIZE + 1], hex[2 * VD_HASH_SIZE + 1];
    const uint8_t *got = vd_get(in, VD_HASH_SIZE);
    if (got && memcmp(got, expected->b, VD_HASH_SIZE) == 0)
        return VD_OK;
    vd_hex(got ? got : expected->b, VD_HASH_SIZE, got_hex);
    vd_hex(expected->b, VD_HASH_SIZE, hex);
    return vd_log_fail(place, VD_ERR_USAGE, err, "a log of another %s: %.16s..., expected %.16s...",
                       what, got_hex, hex);
}

static vd_status check_number(const vd_log_place *place, int64_t got, int64_t expected,
                              const char *what, vd_err *err) {
    if (got == expected)
        return VD_OK;
    return vd_log_fail(place, VD_ERR_USAGE, err, "a log of %s %lld, expected %lld", what,
                       (long long)got, (long long)expected);
}

static vd_status check_version(const vd_log_place *place, int64_t got, vd_err *err) {
    vd_err why = {0};
    if (got == VERSION)
        return VD_OK;
    vd_fail_version(&why, NULL, got, "a rounding log", VERSION, VERSION);
    return vd_log_fail(place, VD_ERR_VERSION, err, "%s", why.text);
}

vd_status vd_log_check_header(const vd_log_place *place, const uint8_t *header,
                              const vd_log_run *run, uint32_t sections, vd_err *err) {
    vd_cursor in = vd_cursor_of(header, VD_LOG_HEADER_SIZE);
    if (memcmp(vd_get(&in, MAGIC_SIZE), magic, MAGIC_SIZE) != 0)
        return vd_log_fail(place, VD_ERR_USAGE, err, "not a rounding log");
    vd_status status = check_version(place, vd_get_u16(&in), err);
    if (status == VD_OK)
        status = check_number(place, vd_get_u8(&in), run->encoding, "encoding", err);
    if (status == VD_OK)
        status = check_number(place, vd_get_u8(&in), run->bits, "rounding bits", err);
    /* Checks the step first: a wrong step may be why the number of sections differs. */
    const uint32_t count = vd_get_u32(&in);
    if (status == VD_OK)
        status = check_number(place, (int64_t)vd_get_u64(&in), place->step, "step", err);
    if (status == VD_OK)
        status = check_hash(place, &in, &run->program, "program", err);
    if (status == VD_OK)
        status = check_hash(place, &in, &run->run, "run", err);
    if (status == VD_OK)
        status = check_hash(place, &in, &run->thresholds, "file of thresholds", err);
    if (status == VD_OK && count != sections)
        status = vd_log_fail(place, VD_ERR_USAGE, err, "%u sections, the program has %u", count,
                             sections);
    return status;
}

void vd_log_put_index(vd_buf *out, const vd_log_node *node, const vd_log_entry *entry,
                      uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        vd_log_put_varint(out, node[i].node);
        vd_log_put_varint(out, entry[i].size);
        vd_log_put_varint(out, entry[i].coded_size);
        vd_log_put_varint(out, entry[i].count);
        vd_log_put_varint(out, entry[i].escapes);
        vd_put(out, entry[i].hash.b, VD_HASH_SIZE);
    }
}

vd_status vd_log_get_index(const vd_log_place *place, const uint8_t *index, size_t size,
                           uint64_t end, const vd_log_node *node, vd_log_entry *entry,
                           uint32_t count, vd_err *err) {
    vd_cursor in = vd_cursor_of(index, size);
    uint64_t at = VD_LOG_HEADER_SIZE;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t number = vd_log_get_varint(&in);
        vd_log_entry *e = &entry[i];
        e->at = at;
        e->size = vd_log_get_varint(&in);
        e->coded_size = vd_log_get_varint(&in);
        e->count = vd_log_get_varint(&in);
        e->escapes = vd_log_get_varint(&in);
        const uint8_t *hash = vd_get(&in, VD_HASH_SIZE);
        if (!hash || e->size > end - at || e->coded_size > e->size)
            return vd_log_fail(
                place, VD_ERR_USAGE, err,
                "node %u: the index is damaged, or the section does not fit the file",
                node[i].node);
        if (number != node[i].node)
            return vd_log_fail(place, VD_ERR_USAGE, err, "node %u: section %u is node %llu's",
                               node[i].node, i, (unsigned long long)number);
        memcpy(e->hash.b, hash, VD_HASH_SIZE);
        at += e->size;
    }
    if (!vd_cursor_done(&in) || at != end)
        return vd_log_fail(place, VD_ERR_USAGE, err, "%s after the last section",
                           in.at < size ? "the index goes on" : "there are bytes");
    return VD_OK;
}

bool vd_log_digest(const uint8_t header[VD_LOG_HEADER_SIZE], const void *index, size_t size,
                   vd_hash *out) {
    static const char tag[] = "verde/index/1";
    vd_sha *sha = vd_sha_create();
    if (!sha)
        return false;
    vd_sha_put(sha, tag, sizeof tag); /* with its NUL */
    vd_sha_put(sha, header, VD_LOG_HEADER_SIZE);
    vd_sha_put(sha, index, size);
    const bool done = vd_sha_finish(sha, out);
    vd_sha_destroy(sha);
    return done;
}

void vd_log_put_trailer(vd_buf *out, const vd_log_trailer *trailer) {
    vd_put_u64(out, trailer->index_at);
    vd_put(out, trailer->digest.b, VD_HASH_SIZE);
    vd_put(out, trailer->root.b, VD_HASH_SIZE);
    vd_put(out, end_magic, MAGIC_SIZE);
}

bool vd_log_get_trailer(const uint8_t bytes[VD_LOG_TRAILER_SIZE], vd_log_trailer *out) {
    vd_cursor in = vd_cursor_of(bytes, VD_LOG_TRAILER_SIZE);
    out->index_at = vd_get_u64(&in);
    memcpy(out->digest.b, vd_get(&in, VD_HASH_SIZE), VD_HASH_SIZE);
    memcpy(out->root.b, vd_get(&in, VD_HASH_SIZE), VD_HASH_SIZE);
    return memcmp(vd_get(&in, MAGIC_SIZE), end_magic, MAGIC_SIZE) == 0;
}

void vd_log_sum_up(const vd_log_node *node, const vd_log_entry *entry, uint32_t count,
                   vd_log_done *out) {
    for (uint32_t i = 0; i < count; i++) {
        out->coded_bytes += entry[i].coded_size;
        out->elements += node[i].elements;
        out->count += entry[i].count;
        out->escapes += entry[i].escapes;
    }
}
