/* Reading run.json. */
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verde/commit/json.h"
#include "verde/exec/run.h"
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

static bool get_hash(const json_t *value, vd_hash *out) {
    const char *hex = json_string_value(value);
    return hex && vd_unhex(hex, out->b, VD_HASH_SIZE);
}

/* Jansson's 0 for what is no integer would pass for a number that was written. */
static bool get_integer(const json_t *object, const char *key, int64_t most, int64_t *out) {
    const json_t *value = json_object_get(object, key);
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= 0 && *out <= most;
}

static bool get_number(const json_t *object, const char *key, int32_t *out) {
    int64_t value;
    const bool good = get_integer(object, key, INT32_MAX, &value);
    *out = good ? (int32_t)value : 0;
    return good;
}

static bool get_stated(const json_t *item, uint32_t machines, vd_ran *out) {
    return get_number(item, "machine", &out->machine) && (uint32_t)out->machine < machines &&
           get_integer(item, "microseconds", INT64_MAX, &out->microseconds);
}

static vd_status read_state(const json_t *item, size_t i, vd_run_log *log, vd_err *err) {
    static const char *const names[] = {"step", "state", "logs", "machine", "microseconds", NULL};
    char place[32];
    vd_hash hash, logs = {0};
    vd_ran stated = {-1, 0};
    int64_t step;
    snprintf(place, sizeof place, "states[%zu]", i);
    vd_status status = vd_json_known(item, place, names, err);
    if (status != VD_OK)
        return status;
    if (!get_integer(item, "step", INT64_MAX, &step) ||
        !get_hash(json_object_get(item, "state"), &hash) ||
        (log->rounded ? !get_hash(json_object_get(item, "logs"), &logs)
                      : json_object_get(item, "logs") != NULL))
        return vd_fail(err, VD_ERR_PEER, "%s is not a checkpoint", place);
    if (json_object_get(item, "machine") && !get_stated(item, log->machine_count, &stated))
        return vd_fail(err, VD_ERR_PEER,
                       "%s: expected machine, one of the %u of machines, and microseconds", place,
                       log->machine_count);
    status = vd_run_log_put(log, step, &hash, &logs, err);
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

static bool get_rounding(const json_t *value, vd_run_log *log) {
    const char *encoding = json_string_value(json_object_get(value, "encoding"));
    vd_log_run *r = &log->rounding;
    log->rounded = value != NULL;
    if (!value)
        return true;
    r->program = log->program;
    r->encoding = encoding && !strcmp(encoding, "calls")     ? VD_LOG_CALLS
                  : encoding && !strcmp(encoding, "symbols") ? VD_LOG_SYMBOLS
                                                             : 0;
    return r->encoding && get_number(value, "bits", &r->bits) && r->bits >= RO_ROUND_BITS_MIN &&
           r->bits <= RO_ROUND_BITS_MAX && get_hash(json_object_get(value, "run"), &r->run) &&
           get_hash(json_object_get(value, "thresholds"), &r->thresholds);
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
    if (status == VD_OK && !get_number(item, "threads", &out->threads))
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

static bool get_party(const json_t *value, vd_run_party *out) {
    const char *role = json_string_value(json_object_get(value, "role"));
    const json_t *profile = json_object_get(value, "profile");
    const json_t *difference = json_object_get(value, "difference");
    ro_profile *p = &out->profile;
    char why[128];
    p->size = sizeof *p;
    for (int i = VD_TRAINER; role && i <= VD_AUDITOR; i++)
        if (strcmp(role, vd_role_name((vd_role)i)) == 0)
            out->role = (vd_role)i;
    const bool numbers =
        get_number(profile, "lanes", &p->lanes) && get_number(profile, "split", &p->split) &&
        get_number(profile, "pairwise", &p->pairwise) &&
        get_number(profile, "contract", &p->contract) &&
        get_number(profile, "descending", &p->descending) &&
        get_number(profile, "estrin", &p->estrin) && get_number(profile, "device", &p->device);
    copy_text(p->name, sizeof p->name, json_object_get(profile, "name"));
    copy_text(out->backend, sizeof out->backend, json_object_get(value, "backend"));
    const json_t *contest = json_object_get(value, "contest");
    out->contest = json_is_true(contest);
    out->difference.found = difference != NULL;
    out->difference.step = json_integer_value(json_object_get(difference, "step"));
    copy_text(out->difference.text, sizeof out->difference.text,
              json_object_get(difference, "text"));
    return !value || (out->role && numbers && (!contest || json_is_boolean(contest)) &&
                      ro_profile_check(p, why, sizeof why) == RO_OK);
}

static bool get_keep(const json_t *root, vd_run_log *log) {
    if (!json_object_get(root, "keep"))
        return true;
    return get_number(root, "keep", &log->keep) && log->keep >= VD_KEEP_MIN &&
           get_number(root, "kept_every", &log->kept_every) && log->kept_every >= 1;
}

/* The names of the members in members. */
static vd_status check_inner_names(const json_t *root, vd_err *err) {
    static const char *const of_rounding[] = {"encoding", "bits", "run", "thresholds", NULL};
    static const char *const of_party[] = {"role",    "backend",    "profile",
                                           "contest", "difference", NULL};
    static const char *const of_profile[] = {
        "name", "lanes", "split", "pairwise", "contract", "descending", "estrin", "device", NULL};
    static const char *const of_difference[] = {"step", "text", NULL};
    const json_t *party = json_object_get(root, "party");
    const struct {
        const json_t *value;
        const char *place;
        const char *const *names;
    } inner[] = {{json_object_get(root, "rounding"), "rounding", of_rounding},
                 {party, "party", of_party},
                 {json_object_get(party, "profile"), "party.profile", of_profile},
                 {json_object_get(party, "difference"), "party.difference", of_difference}};
    vd_status status = VD_OK;
    for (size_t i = 0; i < sizeof inner / sizeof *inner && status == VD_OK; i++)
        if (inner[i].value)
            status = vd_json_known(inner[i].value, inner[i].place, inner[i].names, err);
    return status;
}

static vd_status check_names(const json_t *root, vd_err *err) {
    static const char *const names[] = {
        "verde_run", "program",    "losses",   "loss_first", "loss_last", "fault", "states", "root",
        "keep",      "kept_every", "rounding", "party",      "machines",  "guard", NULL};
    vd_status status = vd_json_begin(root, "verde_run", "the log of a run", names, err);
    return status == VD_OK ? check_inner_names(root, err) : status;
}

static vd_status read_members(const json_t *root, vd_run_log *log, vd_err *err) {
    const char *fault = json_string_value(json_object_get(root, "fault"));
    if (!fault || !get_hash(json_object_get(root, "program"), &log->program) ||
        !get_rounding(json_object_get(root, "rounding"), log) ||
        !get_party(json_object_get(root, "party"), &log->party))
        return vd_fail(err, VD_ERR_PEER, "not the log of a run");
    snprintf(log->fault, sizeof log->fault, "%s", fault);
    if (!get_keep(root, log))
        return vd_fail(err, VD_ERR_PEER, "expected keep, %d or more, and kept_every, 1 or more",
                       VD_KEEP_MIN);
    if (!get_integer(root, "losses", INT64_MAX, &log->losses) ||
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
    vd_status status = check_names(root, &why);
    if (status == VD_OK)
        status = read_members(root, log, &why);
    if (status == VD_OK && log->count == 0)
        status = vd_fail(&why, VD_ERR_PEER, "expected a list `states` of one or more");
    if (status != VD_OK)
        return vd_fail(err, status, "%s: %s", path, why.text);
    return check_root(log, json_object_get(root, "root"), path, err);
}

/* An element of an honest log takes more bytes than this, so that whatever is parsed takes memory
 * in proportion to the file, not hundreds of times as much. */
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
    log->saved_difference = log->party.difference.found;
    log->saved_machines = log->machine_count;
    log->saved_found = log->found_count;
    if (status == VD_OK)
        status = vd_store_load_checkpoints(dir, log, err);
    if (status != VD_OK)
        vd_run_log_free(log);
    return status;
}
