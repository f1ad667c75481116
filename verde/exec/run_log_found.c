/* This file writes a guard's findings to run.json, and reads them. */
#include "verde/exec/run_log_found.h"

#include <stdlib.h>
#include <string.h>

#include "verde/commit/json.h"

vd_status vd_found_take(vd_run_log *log, vd_guard *guard, vd_err *err) {
    const uint32_t room = VD_GUARD_FOUND_MAX - log->found_count;
    const uint32_t count = !guard ? 0 : guard->found_count < room ? guard->found_count : room;
    if (count > 0) {
        vd_guard_finding *more = realloc(log->found, (log->found_count + count) * sizeof *more);
        if (!more)
            return vd_fail(err, VD_ERR_LOCAL, "out of memory");
        log->found = more;
        memcpy(more + log->found_count, guard->found, count * sizeof *more);
        for (uint32_t i = 0; i < count; i++)
            more[log->found_count++].machine = log->stated[log->count - 1].machine;
    }
    if (guard)
        vd_guard_forget(guard, guard->found_count);
    return VD_OK;
}

/* ---- JSON ---- */

json_t *vd_finding_json(const vd_guard_finding *f) {
    json_t *out = json_pack(
        "{sI ss ss sb sI sI sI sI sI sI}", "step", (json_int_t)f->step, "node", f->node, "kind",
        vd_guard_kind_name((vd_guard_kind)f->kind), "again", f->again, "product",
        (json_int_t)f->product, "chunk", (json_int_t)f->chunk, "row", (json_int_t)f->row, "rows",
        (json_int_t)f->rows, "column", (json_int_t)f->col, "columns", (json_int_t)f->cols);
    if (out && f->machine >= 0)
        json_object_set_new(out, "machine", json_integer(f->machine));
    return out;
}

json_t *vd_found_json(const vd_guard_finding *found, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, vd_finding_json(&found[i]));
    return list;
}

/* Reads an integer from -1 on. */
static bool get(const json_t *item, const char *key, int64_t *out) {
    const json_t *value = json_object_get(item, key);
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= -1;
}

static int32_t kind_of(const char *name) {
    for (int32_t kind = VD_GUARD_SUMS; name && kind <= VD_GUARD_ROWS; kind++)
        if (strcmp(name, vd_guard_kind_name((vd_guard_kind)kind)) == 0)
            return kind;
    return 0;
}

/* Reads a node's name, and replaces what is not printable: a run may come from anywhere. */
static bool take_name(const json_t *value, vd_guard_finding *out) {
    const char *text = json_string_value(value);
    if (!text || strlen(text) >= sizeof out->node)
        return false;
    memcpy(out->node, text, strlen(text) + 1);
    for (char *c = out->node; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return true;
}

static vd_status read_finding(const json_t *item, size_t i, uint32_t machines,
                              vd_guard_finding *out, vd_err *err) {
    static const char *const names[] = {"step", "node", "kind",   "again",   "product", "chunk",
                                        "row",  "rows", "column", "columns", "machine", NULL};
    const json_t *machine = json_object_get(item, "machine"), *again;
    char place[32];
    snprintf(place, sizeof place, "guard[%zu]", i);
    const vd_status status = vd_json_known(item, place, names, err);
    if (status != VD_OK)
        return status;
    const int64_t number = machine ? json_integer_value(machine) : -1;
    again = json_object_get(item, "again");
    out->again = json_is_true(again), out->machine = (int32_t)number;
    out->kind = kind_of(json_string_value(json_object_get(item, "kind")));
    const bool good = get(item, "step", &out->step) && get(item, "product", &out->product) &&
                      get(item, "chunk", &out->chunk) && get(item, "row", &out->row) &&
                      get(item, "rows", &out->rows) && get(item, "column", &out->col) &&
                      get(item, "columns", &out->cols) && json_is_boolean(again) && out->kind &&
                      take_name(json_object_get(item, "node"), out) && number >= -1 &&
                      number < (int64_t)machines && (!machine || json_is_integer(machine));
    return good ? VD_OK : vd_fail(err, VD_ERR_PEER, "%s is not what --guard finds", place);
}

vd_status vd_found_read(const json_t *list, vd_run_log *log, vd_err *err) {
    const size_t count = json_array_size(list);
    vd_status status = VD_OK;
    if (!list)
        return VD_OK;
    if (count < 1 || count > VD_GUARD_FOUND_MAX)
        return vd_fail(err, VD_ERR_PEER, "guard: expected a list of 1..%d", VD_GUARD_FOUND_MAX);
    log->found = calloc(count, sizeof *log->found);
    if (!log->found)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (size_t i = 0; i < count && status == VD_OK; i++)
        status = read_finding(json_array_get(list, i), i, log->machine_count,
                              &log->found[log->found_count++], err);
    return status;
}
