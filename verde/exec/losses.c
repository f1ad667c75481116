/* This file appends to losses.jsonl, and cuts off lines that no checkpoint followed. */
#include "verde/exec/losses.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 400 };

static vd_status fail(const vd_losses *l, const char *verb, vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "cannot %s %s: %s", verb, l->path, strerror(errno));
}

/* Bytes of the lines up to step `done`. Steps ascend, and all lines are complete. */
static long whole_lines(FILE *file, int64_t done) {
    char line[LINE_BYTES_MAX];
    long long step, before = 0;
    long at = 0;
    while (fgets(line, sizeof line, file)) {
        if (!strchr(line, '\n') || sscanf(line, "{\"step\":%lld,", &step) != 1 || step < 1 ||
            step < before || step > done)
            break;
        before = step;
        at = ftell(file);
    }
    return at;
}

vd_status vd_losses_open(vd_losses *l, const char *dir, int64_t done, vd_err *err) {
    uint64_t bytes;
    snprintf(l->path, sizeof l->path, "%s/losses.jsonl", dir);
    vd_status status = vd_open_update(l->path, true, 0644, &l->fd, &bytes, err);
    if (status != VD_OK)
        return status;
    const int copy = dup(l->fd);
    FILE *file = copy < 0 ? NULL : fdopen(copy, "r");
    const long size = file ? whole_lines(file, done) : -1;
    if (size < 0 || ftruncate(l->fd, size) != 0)
        status = fail(l, "cut off", err);
    if (file)
        fclose(file);
    else if (copy >= 0)
        close(copy);
    return status;
}

static void put_number(vd_buf *line, const char *name, float value) {
    if (isfinite(value))
        vd_printf(line, ",\"%s\":%.9g", name, (double)value);
    else
        vd_printf(line, ",\"%s\":\"%s\"", name, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static vd_status write_line(const vd_losses *l, const vd_buf *line, vd_err *err) {
    size_t at = 0;
    if (!vd_buf_ok(line))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    while (at < line->size) {
        const ssize_t put = write(l->fd, line->data + at, line->size - at);
        if (put < 0 && errno != EINTR)
            return fail(l, "write", err);
        at += put > 0 ? (size_t)put : 0;
    }
    return VD_OK;
}

vd_status vd_losses_put(vd_losses *l, int64_t step, const vd_step_numbers *n,
                        const vd_run_samples *samples, double seconds, vd_err *err) {
    vd_buf line = {0};
    vd_printf(&line, "{\"step\":%lld", (long long)step);
    if (n->has_loss)
        put_number(&line, "loss", n->loss);
    if (n->has_lr)
        put_number(&line, "lr", n->lr);
    if (n->has_grad_norm)
        put_number(&line, "grad_norm", n->grad_norm);
    if (samples->name)
        vd_printf(&line, ",\"%s\":%lld", samples->name, (long long)(step * samples->of_step));
    vd_printf(&line, ",\"seconds\":%.6g}\n", seconds);
    vd_status status = write_line(l, &line, err);
    vd_buf_free(&line);
    return status;
}

vd_status vd_losses_evaluated(vd_losses *l, int64_t step, const vd_score *score, vd_err *err) {
    vd_buf line = {0};
    vd_printf(&line, "{\"step\":%lld", (long long)step);
    put_number(&line, "evaluation", score->loss);
    if (score->has_accuracy)
        put_number(&line, "accuracy", score->accuracy);
    vd_printf(&line, "}\n");
    vd_status status = write_line(l, &line, err);
    vd_buf_free(&line);
    return status;
}

vd_status vd_losses_sync(vd_losses *l, vd_err *err) {
    return l->fd < 0 || vd_fsync(l->fd) == 0 || errno == EINVAL ? VD_OK : fail(l, "sync", err);
}

void vd_losses_close(vd_losses *l) {
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}
