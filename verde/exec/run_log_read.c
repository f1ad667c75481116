/* This file reads run.json. */
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verde/commit/json.h"
#include "verde/exec/backend.h"
#include "verde/exec/run_log_found.h"

enum { LOG_BYTES_MAX = 256 << 20 };

static bool get_loss(const json_t *value, float *out) {
    static const char *const diverged[] = {"nan", "-nan", "inf", "-inf"};
    const char *text = json_string_value(value);
    for (size_t i = 0; text && i < sizeof diverged / sizeof *diverged; i++)
        if (strcmp(text, diverged[i]) == 0) {
            *out = strtof(text, NULL);
            return true;
        }
    const double number = json_number_value(value);
    if (!json_is_number(value) || !(fabs(number) <= (double)FLT_MAX))
        return false;
    *out = (float)number;
    return true;
}

static bool get_stated(const json_t *item, uint32_t machines, vd_ran *out) {
    return vd_json_get_number(item, "machine", &out->machine) &&
           (uint32_t)out->machine < machines &&
           vd_json_get_integer(item, "microseconds", INT64_MAX, &out->microseconds);
}

static vd_status read_state(const json_t *item, size_t i, vd_run_log *log, vd_err *err) {
    static const char *const names[] = {"step", "state", "logs", "machine", "microseconds", NULL};
    char place[32];
    vd_hash hash, emitted = {0};
    vd_ran stated = {-1, 0};
    int64_t step;
    snprintf(place, sizeof place, "states[%zu]", i);
    vd_status status = vd_json_known(item, place, names, err);
    if (status != VD_OK)
        return status;
    if (!vd_json_get_integer(item, "step", INT64_MAX, &step) ||
        !vd_json_get_hash(item, "state", &hash) ||
        (log->backend ? !vd_json_get_hash(item, "logs", &emitted)
                      : json_object_get(item, "logs") != NULL))
        return vd_fail(err, VD_ERR_PEER, "%s is not a checkpoint", place);
    if (json_object_get(item, "machine") && !get_stated(item, log->machine_count, &stated))
        return vd_fail(err, VD_ERR_PEER,
                       "%s: expected machine, one of the %u of machines, and microseconds", place,
                       log->machine_count);
    status = vd_run_log_put(log, step, &hash, &emitted, err);
    if (status == VD_OK)
        log->stated[log->count - 1] = stated;
    return status;
}

static vd_status read_states(const json_t *states, vd_run_log *log, vd_err *err) {
    vd_status status = VD_OK;
    for (size_t i = 0; i < json_array_size(states) && status == VD_OK; i++)
        status = read_state(json_array_get(states, i), i, log, err);
    return status;
}

static void copy_text(char *to, size_t size, const json_t *value) {
    const char *text = json_string_value(value);
    snprintf(to, size, "%s", text ? text : "");
}

static vd_status read_machine(const json_t *item, size_t i, vd_machine *out, vd_err *err) {
    static const char *const names[] = {"host",    "device",  "uuid", "backend",
                                        "threads", "version", NULL};
    char place[32];
    snprintf(place, sizeof place, "machines[%zu]", i);
    vd_status status = vd_json_known(item, place, names, err);
    if (status == VD_OK && !vd_json_get_number(item, "threads", &out->threads))
        status = vd_fail(err, VD_ERR_PEER, "%s is not a machine", place);
    copy_text(out->host, sizeof out->host, json_object_get(item, "host"));
    copy_text(out->device, sizeof out->device, json_object_get(item, "device"));
    copy_text(out->uuid, sizeof out->uuid, json_object_get(item, "uuid"));
    copy_text(out->backend, sizeof out->backend, json_object_get(item, "backend"));
    copy_text(out->version, sizeof out->version, json_object_get(item, "version"));
    vd_machine_clean(out);
    return status;
}

static vd_status read_machines(const json_t *list, vd_run_log *log, vd_err *err) {
    const size_t count = json_array_size(list);
    vd_status status = VD_OK;
    if (list && (!json_is_array(list) || count < 1 || count > VD_MACHINES_MAX))
        return vd_fail(err, VD_ERR_PEER, "machines: expected a list of 1..%d", VD_MACHINES_MAX);
    log->machine = calloc(count + 1, sizeof *log->machine);
    if (!log->machine)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (size_t i = 0; i < count && status == VD_OK; i++)
        status = read_machine(json_array_get(list, i), i, &log->machine[log->machine_count++], err);
    return status;
}

static bool get_keep(const json_t *root, vd_run_log *log) {
    if (!json_object_get(root, "keep"))
        return true;
    return vd_json_get_number(root, "keep", &log->keep) && log->keep >= VD_KEEP_MIN &&
           vd_json_get_number(root, "kept_every", &log->kept_every) && log->kept_every >= 1;
}

enum { MEMBERS_MAX = 24 };

/* Lists the names of run.json's members, with those of backends. */
static void list_names(const char *out[MEMBERS_MAX]) {
    static const char *const own[] = {"verde_run", "program",  "losses",     "loss_first",
                                      "loss_last", "fault",    "states",     "root",
                                      "keep",      "machines", "kept_every", "guard"};
    int count = 0;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        out[count++] = own[i];
    for (const vd_backend *const *b = vd_backends; *b; b++)
        for (const char *const *name = (*b)->members; *name && count + 1 < MEMBERS_MAX; name++)
            out[count++] = *name;
    out[count] = NULL;
}

/* Reads the members of each backend. */
static vd_status read_backends(const json_t *root, vd_run_log *log, vd_err *err) {
    vd_status status = VD_OK;
    for (const vd_backend *const *b = vd_backends; *b && status == VD_OK; b++)
        status = (*b)->read(root, log, err);
    return status;
}

static vd_status check_names(const json_t *root, vd_run_log *log, vd_err *err) {
    const char *names[MEMBERS_MAX];
    list_names(names);
    const vd_status status = vd_json_begin(root, "verde_run", "the log of a run", names, err);
    return status == VD_OK ? read_backends(root, log, err) : status;
}

static vd_status read_members(const json_t *root, vd_run_log *log, vd_err *err) {
    const char *fault = json_string_value(json_object_get(root, "fault"));
    if (!fault || !vd_json_get_hash(root, "program", &log->program))
        return vd_fail(err, VD_ERR_PEER, "not the log of a run");
    snprintf(log->fault, sizeof log->fault, "%s", fault);
    if (!get_keep(root, log))
        return vd_fail(err, VD_ERR_PEER, "expected keep, %d or more, and kept_every, 1 or more",
                       VD_KEEP_MIN);
    if (!vd_json_get_integer(root, "losses", INT64_MAX, &log->losses) ||
        !get_loss(json_object_get(root, "loss_first"), &log->loss_first) ||
        !get_loss(json_object_get(root, "loss_last"), &log->loss_last))
        return vd_fail(err, VD_ERR_PEER,
                       "expected losses, a count, and loss_first and loss_last, numbers that fit "
                       "float32");
    vd_status status = read_machines(json_object_get(root, "machines"), log, err);
    if (status == VD_OK)
        status = vd_found_read(json_object_get(root, "guard"), log, err);
    return status == VD_OK ? read_states(json_object_get(root, "states"), log, err) : status;
}

static vd_status check_root(const vd_run_log *log, const json_t *named, const char *path,
                            vd_err *err) {
    char found[2 * VD_HASH_SIZE + 1];
    vd_hash root;
    vd_status status = vd_run_log_root(log, &root, err);
    if (status != VD_OK)
        return status;
    vd_hex(root.b, VD_HASH_SIZE, found);
    const char *expected = json_string_value(named);
    if (!expected || strcmp(expected, found) != 0)
        return vd_fail(err, VD_ERR_PEER,
                       "%s: damaged: its %u states give the root %s, and it names the root %.80s",
                       path, log->count, found, expected ? expected : "of no string");
    return VD_OK;
}

static vd_status read_log(const json_t *root, const char *path, vd_run_log *log, vd_err *err) {
    vd_err why = {0};
    vd_status status = check_names(root, log, &why);
    if (status == VD_OK)
        status = read_members(root, log, &why);
    if (status == VD_OK && log->count == 0)
        status = vd_fail(&why, VD_ERR_PEER, "expected a list `states` of one or more");
    if (status != VD_OK)
        return vd_fail(err, status, "%s: %s", path, why.text);
    return check_root(log, json_object_get(root, "root"), path, err);
}

/* An honest log has more bytes per element than this, so that parsing takes memory in proportion to
 * the file, not hundreds of times as much. */
enum { ELEMENT_BYTES = 24 };

vd_status vd_store_load_log(const char *dir, vd_run_log *log, vd_err *err) {
    char path[1024];
    json_t *root = NULL;
    *log = (vd_run_log){0};
    snprintf(path, sizeof path, "%s/run.json", dir);
    vd_status status = vd_json_load(path, LOG_BYTES_MAX, ELEMENT_BYTES, &root, err);
    if (status != VD_OK)
        return status;
    status = read_log(root, path, log, err);
    json_decref(root);
    log->saved = log->count;
    log->saved_machines = log->machine_count;
    log->saved_found = log->found_count;
    if (status == VD_OK)
        status = vd_store_load_checkpoints(dir, log, err);
    if (status != VD_OK)
        vd_run_log_free(log);
    return status;
}
