/* DIR/checkpoints: checkpoints that run.json does not list yet. Each checkpoint appends a line
 * here, so it costs the same however many there are. run.json is written anew when its number of
 * checkpoints would double, and at the end of the run; then this file is deleted. A line has fields
 * with one space between them:
 *
 *     index, step, S, root of what was emitted, bits of the first loss and of the last one as f32,
 *     the number of the machine that led to it and its microseconds, if it is one of run.json's,
 *     H("verde/checkpoint/1", the program's hash || all before)
 *
 * A bad last line was being written when the machine stopped, and is ignored. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/exec/store.h"

enum { LINES_BYTES_MAX = 256 << 20 };

static vd_status path_in(const char *dir, char path[1024], vd_err *err) {
    return snprintf(path, 1024, "%s/checkpoints", dir) < 1024
               ? VD_OK
               : vd_fail(err, VD_ERR_USAGE, "%.60s...: the path is too long", dir);
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static bool seal(const vd_hash *program, const char *text, size_t size, vd_hash *out) {
    vd_buf bytes = {0};
    vd_put(&bytes, program->b, VD_HASH_SIZE);
    vd_put(&bytes, text, size);
    const bool done =
        vd_buf_ok(&bytes) && vd_hash_tagged("verde/checkpoint/1", bytes.data, bytes.size, out);
    vd_buf_free(&bytes);
    return done;
}

/* ---- writing ---- */

static bool put_line(const vd_run_log *log, char line[VD_CHECKPOINT_BYTES + 1]) {
    const uint32_t i = log->count - 1;
    char state[2 * VD_HASH_SIZE + 1], emitted[2 * VD_HASH_SIZE + 1], hex[2 * VD_HASH_SIZE + 1];
    vd_hash hash;
    vd_hex(log->state[i].b, VD_HASH_SIZE, state);
    vd_hex(log->emitted[i].b, VD_HASH_SIZE, emitted);
    int size = snprintf(line, VD_CHECKPOINT_BYTES, "%u %lld %s %s %08" PRIx32 " %08" PRIx32, i,
                        (long long)log->step[i], state, emitted, bits_of(log->loss_first),
                        bits_of(log->loss_last));
    if (log->stated[i].machine >= 0)
        size += snprintf(line + size, VD_CHECKPOINT_BYTES - (size_t)size, " %d %lld",
                         (int)log->stated[i].machine, (long long)log->stated[i].microseconds);
    if (!seal(&log->program, line, (size_t)size, &hash))
        return false;
    vd_hex(hash.b, VD_HASH_SIZE, hex);
    return snprintf(line + size, VD_CHECKPOINT_BYTES + 1 - (size_t)size, " %s\n", hex) > 0;
}

static vd_status fail(const char *verb, const char *path, vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "cannot %s %s: %s", verb, path, strerror(errno));
}

static vd_status append(const char *path, const char *line, vd_err *err) {
    int fd;
    uint64_t size;
    const size_t length = strlen(line);
    vd_status status = vd_open_update(path, true, 0644, &fd, &size, err);
    if (status != VD_OK)
        return status;
    for (size_t at = 0; status == VD_OK && at < length;) {
        const ssize_t put = write(fd, line + at, length - at);
        if (put < 0 && errno != EINTR)
            status = fail("write", path, err);
        at += put > 0 ? (size_t)put : 0;
    }
    if (status == VD_OK && vd_fsync(fd) != 0 && errno != EINVAL)
        status = fail("sync", path, err);
    close(fd);
    return status == VD_OK && size == 0 ? vd_sync_parent(path, err) : status;
}

/* Returns whether one line can describe the change of the log since run.json was written. */
static bool is_one_more(const vd_run_log *log) {
    return log->saved > 0 && log->count > log->saved && log->count / 2 < log->saved &&
           !log->backend_changed && log->machine_count == log->saved_machines &&
           log->found_count == log->saved_found;
}

vd_status vd_store_add_checkpoint(const char *dir, vd_run_log *log, bool last, vd_err *err) {
    char path[1024], line[VD_CHECKPOINT_BYTES + 1];
    if (last || !is_one_more(log))
        return vd_store_save_log(dir, log, err);
    vd_status status = path_in(dir, path, err);
    if (status == VD_OK && !put_line(log, line))
        status = vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", path);
    return status == VD_OK ? append(path, line, err) : status;
}

vd_status vd_store_drop_checkpoints(const char *dir, vd_err *err) {
    char path[1024];
    vd_status status = path_in(dir, path, err);
    if (status == VD_OK && unlink(path) != 0 && errno != ENOENT)
        status = fail("delete", path, err);
    return status;
}

/* ---- reading ---- */

/* Parses a line without its line feed; false: it is not a line of this run. */
static bool read_line(const char *line, vd_run_log *log, uint32_t *index, int64_t *step,
                      vd_hash *state, vd_hash *emitted, vd_ran *stated) {
    char hex[2][2 * VD_HASH_SIZE + 1];
    long long number, microseconds;
    int machine;
    uint32_t first, last;
    vd_hash found, named;
    const char *end = strrchr(line, ' ');
    const int fields =
        sscanf(line, "%" SCNu32 " %lld %64s %64s %" SCNx32 " %" SCNx32 " %d %lld %*64s", index,
               &number, hex[0], hex[1], &first, &last, &machine, &microseconds);
    if (fields < 6 || !end || !vd_unhex(end + 1, named.b, VD_HASH_SIZE) ||
        !vd_unhex(hex[0], state->b, VD_HASH_SIZE) || !vd_unhex(hex[1], emitted->b, VD_HASH_SIZE) ||
        !seal(&log->program, line, (size_t)(end - line), &found) || !vd_hash_equal(&found, &named))
        return false;
    *stated = fields == 8 && machine >= 0 && (uint32_t)machine < log->machine_count
                  ? (vd_ran){machine, microseconds}
                  : (vd_ran){-1, 0};
    *step = number;
    memcpy(&log->loss_first, &first, sizeof first);
    memcpy(&log->loss_last, &last, sizeof last);
    return true;
}

/* Takes a line. Lines that run.json contains already are left from before it was written. */
static vd_status take_line(const char *path, const char *line, vd_run_log *log, bool *whole,
                           vd_err *err) {
    uint32_t index;
    int64_t step;
    vd_hash state, emitted;
    vd_ran stated;
    const float first = log->loss_first, last = log->loss_last;
    *whole = read_line(line, log, &index, &step, &state, &emitted, &stated);
    if (*whole && index == log->count) {
        log->losses = step;
        const vd_status status = vd_run_log_put(log, step, &state, &emitted, err);
        if (status == VD_OK)
            log->stated[index] = stated;
        return status;
    }
    log->loss_first = first, log->loss_last = last;
    return *whole && index > log->count
               ? vd_fail(err, VD_ERR_PEER, "%s: damaged: checkpoint %u is missing before %u", path,
                         log->count, index)
               : VD_OK;
}

static vd_status take_lines(const char *path, char *text, vd_run_log *log, vd_err *err) {
    vd_status status = VD_OK;
    bool whole = true;
    int number = 1;
    for (char *line = text, *end; status == VD_OK && *line; line = end + 1, number++) {
        end = strchr(line, '\n');
        if (!whole)
            return vd_fail(err, VD_ERR_PEER,
                           "%s:%d: damaged: no checkpoint of this run, and others follow it", path,
                           number - 1);
        if (!end)
            break;
        *end = 0;
        status = take_line(path, line, log, &whole, err);
    }
    return status;
}

vd_status vd_store_load_checkpoints(const char *dir, vd_run_log *log, vd_err *err) {
    char path[1024];
    vd_buf text = {0};
    vd_status status = path_in(dir, path, err);
    if (status != VD_OK || (access(path, F_OK) != 0 && errno == ENOENT))
        return status;
    status = vd_read_file(path, LINES_BYTES_MAX, &text, err);
    vd_put_u8(&text, 0);
    if (status == VD_OK && !vd_buf_ok(&text))
        status = vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", path);
    if (status == VD_OK)
        status = take_lines(path, (char *)text.data, log, err);
    vd_buf_free(&text);
    return status;
}
