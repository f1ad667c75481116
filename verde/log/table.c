/* This file finds the steps that share a file, and their places in it. PROTOCOL.md section 11.1. */
#include "verde/log/internal.h"

#include <string.h>

static const char magic[] = "verdetab";
enum { MAGIC_SIZE = 8, ENTRY = 8 };

vd_status vd_log_check_run(const vd_log_run *run, int64_t step, vd_err *err) {
    if ((run->encoding != VD_LOG_CALLS && run->encoding != VD_LOG_SYMBOLS) ||
        run->bits < RO_ROUND_BITS_MIN || run->bits > RO_ROUND_BITS_MAX)
        return vd_fail(err, VD_ERR_LOCAL, "a log of encoding %d, rounded to %d bits",
                       (int)run->encoding, (int)run->bits);
    if (run->interval < 1 || run->interval > UINT32_MAX || step < -1 || step >= run->steps)
        return vd_fail(err, VD_ERR_LOCAL, "a log of step %lld of %lld, %lld to a file",
                       (long long)step, (long long)run->steps, (long long)run->interval);
    return VD_OK;
}

vd_log_span vd_log_span_of(const vd_log_run *run, int64_t step) {
    if (step < 0)
        return (vd_log_span){-1, 1};
    const int64_t first = step / run->interval * run->interval, left = run->steps - first;
    return (vd_log_span){first, (uint32_t)(left < run->interval ? left : run->interval)};
}

vd_status vd_log_path(const char *dir, const vd_log_run *run, int64_t step, char *path, size_t size,
                      vd_err *err) {
    const long long first = vd_log_span_of(run, step).first;
    const int length = first < 0 ? snprintf(path, size, "%s/log/init.vlog", dir)
                                 : snprintf(path, size, "%s/log/step-%08lld.vlog", dir, first);
    if (length < 0 || (size_t)length >= size)
        return vd_fail(err, VD_ERR_USAGE, "%.60s...: the path is too long", dir);
    return VD_OK;
}

uint64_t vd_log_table_size(uint32_t parts) {
    return (uint64_t)parts * ENTRY + VD_LOG_TABLE_TAIL;
}

vd_status vd_log_end_table(vd_buf *table, vd_err *err) {
    vd_hash digest;
    vd_put_u32(table, (uint32_t)(table->size / ENTRY));
    if (!vd_buf_ok(table) || !vd_hash_tagged("verde/steps/1", table->data, table->size, &digest))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory for the table of a log's steps");
    vd_put(table, digest.b, VD_HASH_SIZE);
    vd_put(table, magic, MAGIC_SIZE);
    return vd_buf_ok(table) ? VD_OK
                            : vd_fail(err, VD_ERR_LOCAL, "out of memory for the table of a log");
}

bool vd_log_table_parts(const uint8_t tail[VD_LOG_TABLE_TAIL], uint32_t *parts) {
    vd_cursor in = vd_cursor_of(tail, VD_LOG_TABLE_TAIL);
    *parts = vd_get_u32(&in);
    return memcmp(tail + VD_LOG_TABLE_TAIL - MAGIC_SIZE, magic, MAGIC_SIZE) == 0;
}

/* Finds part `index`. Ends must be ascending up to `at`, with room for a part between them. */
static bool table_find(vd_cursor *in, uint32_t parts, uint32_t index, uint64_t at, uint64_t *begin,
                       uint64_t *end) {
    uint64_t last = 0;
    for (uint32_t i = 0; i < parts; i++) {
        const uint64_t next = vd_get_u64(in);
        if (next < last || next - last < VD_LOG_HEADER_SIZE + VD_LOG_TRAILER_SIZE)
            return false;
        if (i == index) {
            *begin = last;
            *end = next;
        }
        last = next;
    }
    return last == at;
}

vd_status vd_log_find_part(const vd_log_place *place, const uint8_t *table, uint32_t parts,
                           uint32_t index, uint64_t at, uint64_t *begin, uint64_t *end,
                           vd_err *err) {
    const size_t digested = (size_t)parts * ENTRY + 4;
    vd_cursor in = vd_cursor_of(table, digested);
    vd_hash digest;
    if (!vd_hash_tagged("verde/steps/1", table, digested, &digest))
        return vd_log_fail(place, VD_ERR_LOCAL, err, "out of memory, or OpenSSL failed");
    if (memcmp(digest.b, table + digested, VD_HASH_SIZE) != 0 ||
        !table_find(&in, parts, index, at, begin, end))
        return vd_log_fail(place, VD_ERR_USAGE, err, "the table of its steps is damaged");
    return VD_OK;
}
