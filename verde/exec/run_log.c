/* run.json. */
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verde/commit/json.h"
#include "verde/exec/run.h"

enum { LOG_BYTES_MAX = 256 << 20 };

void vd_run_log_free(vd_run_log *log) {
    free(log->step);
    free(log->state);
    free(log->logs);
    *log = (vd_run_log){0};
}

vd_status vd_run_log_put(vd_run_log *log, int64_t step, const vd_hash *state, const vd_hash *logs,
                         vd_err *err) {
    int64_t *steps = realloc(log->step, (log->count + 1) * sizeof *steps);
    if (steps)
        log->step = steps;
    vd_hash *states = realloc(log->state, (log->count + 1) * sizeof *states);
    if (states)
        log->state = states;
    vd_hash *roots = realloc(log->logs, (log->count + 1) * sizeof *roots);
    if (roots)
        log->logs = roots;
    if (!steps || !states || !roots)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    log->step[log->count] = step;
    log->logs[log->count] = logs ? *logs : (vd_hash){0};
    log->state[log->count++] = *state;
    return VD_OK;
}

uint32_t vd_run_log_kept(const vd_run_log *log, uint32_t index) {
    const uint32_t every = log->keep ? (uint32_t)log->kept_every : 1;
    return index + 1 == log->count ? index : index - index % every;
}

uint32_t vd_kept_count(uint32_t last, uint32_t every) {
    return last / every + 1 + (last % every != 0);
}

uint32_t vd_run_log_kept_count(const vd_run_log *log) {
    return log->count ? vd_kept_count(log->count - 1, log->keep ? (uint32_t)log->kept_every : 1)
                      : 0;
}

vd_status vd_run_log_root(const vd_run_log *log, vd_hash *out, vd_err *err) {
    vd_tree tree = {0};
    vd_hash *leaf = calloc(log->count + 1, sizeof *leaf);
    vd_status status = leaf ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; status == VD_OK && i < log->count; i++) {
        leaf[i] = log->state[i];
        if (log->rounded && !vd_logged_state(&log->state[i], &log->logs[i], &leaf[i]))
            status = vd_fail(err, VD_ERR_LOCAL, "hashing failed");
    }
    if (status == VD_OK)
        status = vd_tree_of_hashes(&tree, leaf, log->count, err);
    if (status == VD_OK)
        status = vd_tree_root(&tree, out, err);
    vd_tree_free(&tree);
    free(leaf);
    return status;
}

/* ---- what fits ---- */

static vd_status check_steps(const vd_run_log *log, const vd_program *program, const char *dir,
                             vd_err *err) {
    for (uint32_t i = 0; i < log->count; i++)
        if (log->step[i] != vd_run_leaf_step(program, i))
            return vd_fail(err, VD_ERR_PEER,
                           "%s/run.json: states[%u] is of step %lld, expected step %lld", dir, i,
                           (long long)log->step[i], (long long)vd_run_leaf_step(program, i));
    return VD_OK;
}

vd_status vd_run_log_fits(const vd_run_log *log, const vd_program *program, const char *dir,
                          vd_err *err) {
    vd_hash hash;
    char found[2 * VD_HASH_SIZE + 1], expected[2 * VD_HASH_SIZE + 1];
    vd_status status = vd_program_hash(program, &hash, err);
    if (status != VD_OK)
        return status;
    vd_hex(hash.b, VD_HASH_SIZE, expected);
    vd_hex(log->program.b, VD_HASH_SIZE, found);
    if (!vd_hash_equal(&hash, &log->program))
        return vd_fail(err, VD_ERR_PEER,
                       "%s/run.json: is of program %s, expected %s, the hash of %s/program", dir,
                       found, expected, dir);
    if (log->count < 1 || log->count > vd_run_leaves(program))
        return vd_fail(err, VD_ERR_PEER, "%s/run.json: expected 1..%llu states, found %u", dir,
                       (unsigned long long)vd_run_leaves(program), log->count);
    return check_steps(log, program, dir, err);
}

/* Runs of older versions name none. */
static vd_status check_root(const vd_run_log *log, const json_t *named, const char *path,
                            vd_err *err) {
    char found[2 * VD_HASH_SIZE + 1];
    vd_hash root;
    if (!named)
        return VD_OK;
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

/* ---- JSON ---- */

static json_t *hex_of(const vd_hash *hash) {
    char hex[2 * VD_HASH_SIZE + 1];
    vd_hex(hash->b, VD_HASH_SIZE, hex);
    return json_string(hex);
}

/* JSON has no number for the loss of a run that diverged: "nan", "inf". */
static json_t *json_loss(float loss) {
    char text[32];
    if (isfinite(loss))
        return json_real((double)loss);
    snprintf(text, sizeof text, "%g", (double)loss);
    return json_string(text);
}

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

static json_t *state_json(const vd_run_log *log, uint32_t i) {
    json_t *state =
        json_pack("{sIso}", "step", (json_int_t)log->step[i], "state", hex_of(&log->state[i]));
    if (log->rounded)
        json_object_set_new(state, "logs", hex_of(&log->logs[i]));
    return state;
}

static json_t *rounding_json(const vd_log_run *r) {
    return json_pack("{ss si so so}", "encoding",
                     r->encoding == VD_LOG_SYMBOLS ? "symbols" : "calls", "bits", (int)r->bits,
                     "run", hex_of(&r->run), "thresholds", hex_of(&r->thresholds));
}

static const char *const roles[] = {"", "trainer", "auditor"};

static json_t *party_json(const vd_run_party *party) {
    const ro_profile *p = &party->profile;
    json_t *out =
        json_pack("{ss ss s{ss si si si si si si si} sb}", "role", roles[party->role], "backend",
                  party->backend, "profile", "name", p->name, "lanes", (int)p->lanes, "split",
                  (int)p->split, "pairwise", (int)p->pairwise, "contract", (int)p->contract,
                  "descending", (int)p->descending, "estrin", (int)p->estrin, "device",
                  (int)p->device, "contest", party->contest);
    if (party->difference.found)
        json_object_set_new(out, "difference",
                            json_pack("{sI ss}", "step", (json_int_t)party->difference.step, "text",
                                      party->difference.text));
    return out;
}

vd_status vd_store_save_log(const char *dir, vd_run_log *log, vd_err *err) {
    char path[1024];
    vd_hash states_root;
    vd_status status = vd_run_log_root(log, &states_root, err);
    if (status != VD_OK)
        return status;
    json_t *states = json_array();
    for (uint32_t i = 0; i < log->count; i++)
        json_array_append_new(states, state_json(log, i));
    json_t *root = json_pack("{siso sI so so ss so so}", "verde_run", 1, "program",
                             hex_of(&log->program), "losses", (json_int_t)log->losses, "loss_first",
                             json_loss(log->loss_first), "loss_last", json_loss(log->loss_last),
                             "fault", log->fault, "states", states, "root", hex_of(&states_root));
    if (log->keep) {
        json_object_set_new(root, "keep", json_integer(log->keep));
        json_object_set_new(root, "kept_every", json_integer(log->kept_every));
    }
    if (log->rounded)
        json_object_set_new(root, "rounding", rounding_json(&log->rounding));
    if (log->rounded && log->party.role)
        json_object_set_new(root, "party", party_json(&log->party));
    char *text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
    json_decref(root);
    if (!text)
        return vd_fail(err, VD_ERR_LOCAL, "%s/run.json: out of memory", dir);
    snprintf(path, sizeof path, "%s/run.json", dir);
    status = vd_write_file(path, text, strlen(text), 0644, err);
    free(text);
    if (status != VD_OK)
        return status;
    log->saved = log->count;
    log->saved_difference = log->party.difference.found;
    return vd_store_drop_checkpoints(dir, err);
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

static vd_status read_states(const json_t *states, const char *path, vd_run_log *log, vd_err *err) {
    for (size_t i = 0; i < json_array_size(states); i++) {
        const json_t *item = json_array_get(states, i);
        vd_hash hash, logs = {0};
        int64_t step;
        if (!get_integer(item, "step", INT64_MAX, &step) ||
            !get_hash(json_object_get(item, "state"), &hash) ||
            (log->rounded && !get_hash(json_object_get(item, "logs"), &logs)))
            return vd_fail(err, VD_ERR_USAGE, "%s: states[%zu] is not a checkpoint", path, i);
        vd_status status = vd_run_log_put(log, step, &hash, &logs, err);
        if (status != VD_OK)
            return status;
    }
    return VD_OK;
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

/* Runs of older versions have none. */
static bool get_party(const json_t *value, vd_run_party *out) {
    const char *role = json_string_value(json_object_get(value, "role"));
    const json_t *profile = json_object_get(value, "profile");
    const json_t *difference = json_object_get(value, "difference");
    ro_profile *p = &out->profile;
    char why[128];
    p->size = sizeof *p;
    for (int i = VD_TRAINER; role && i <= VD_AUDITOR; i++)
        if (strcmp(role, roles[i]) == 0)
            out->role = (vd_role)i;
    const bool numbers =
        get_number(profile, "lanes", &p->lanes) && get_number(profile, "split", &p->split) &&
        get_number(profile, "pairwise", &p->pairwise) &&
        get_number(profile, "contract", &p->contract) &&
        get_number(profile, "descending", &p->descending) &&
        get_number(profile, "estrin", &p->estrin) && get_number(profile, "device", &p->device);
    copy_text(p->name, sizeof p->name, json_object_get(profile, "name"));
    copy_text(out->backend, sizeof out->backend, json_object_get(value, "backend"));
    out->contest = json_is_true(json_object_get(value, "contest"));
    out->difference.found = difference != NULL;
    out->difference.step = json_integer_value(json_object_get(difference, "step"));
    copy_text(out->difference.text, sizeof out->difference.text,
              json_object_get(difference, "text"));
    return !value || (out->role && numbers && ro_profile_check(p, why, sizeof why) == RO_OK);
}

static bool get_keep(const json_t *root, vd_run_log *log) {
    if (!json_object_get(root, "keep"))
        return true;
    return get_number(root, "keep", &log->keep) && log->keep >= VD_KEEP_MIN &&
           get_number(root, "kept_every", &log->kept_every) && log->kept_every >= 1;
}

static vd_status read_log(const json_t *root, const char *path, vd_run_log *log, vd_err *err) {
    const char *fault = json_string_value(json_object_get(root, "fault"));
    if (json_integer_value(json_object_get(root, "verde_run")) != 1 || !fault ||
        !get_hash(json_object_get(root, "program"), &log->program) ||
        !get_rounding(json_object_get(root, "rounding"), log) ||
        !get_party(json_object_get(root, "party"), &log->party))
        return vd_fail(err, VD_ERR_USAGE, "%s: not the log of a run, version 1", path);
    snprintf(log->fault, sizeof log->fault, "%s", fault);
    if (!get_keep(root, log))
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: expected keep, %d or more, and kept_every, 1 or more", path,
                       VD_KEEP_MIN);
    if (!get_integer(root, "losses", INT64_MAX, &log->losses) ||
        !get_loss(json_object_get(root, "loss_first"), &log->loss_first) ||
        !get_loss(json_object_get(root, "loss_last"), &log->loss_last))
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: expected losses, a count, and loss_first and loss_last, numbers that "
                       "fit float32",
                       path);
    vd_status status = read_states(json_object_get(root, "states"), path, log, err);
    return status == VD_OK ? check_root(log, json_object_get(root, "root"), path, err) : status;
}

/* An element of an honest log takes more bytes than this, so that whatever is parsed takes memory
 * in proportion to the file, not hundreds of times as much. */
enum { ELEMENT_BYTES = 32 };

static vd_status parse(const char *path, vd_buf *text, json_t **root, vd_err *err) {
    vd_err why = {0};
    while (text->size && strchr(" \t\r\n", text->data[text->size - 1]) &&
           text->data[text->size - 1])
        text->size--; /* editors end the last line */
    vd_status status =
        vd_json_read(text->data, text->size, 64 + text->size / ELEMENT_BYTES, root, &why);
    return status == VD_OK ? VD_OK
                           : vd_fail(err, status == VD_ERR_PEER ? VD_ERR_USAGE : status,
                                     "%s: %.300s", path, why.text);
}

vd_status vd_store_load_log(const char *dir, vd_run_log *log, vd_err *err) {
    char path[1024];
    vd_buf text = {0};
    json_t *root = NULL;
    *log = (vd_run_log){0};
    snprintf(path, sizeof path, "%s/run.json", dir);
    vd_status status = vd_read_file(path, LOG_BYTES_MAX, &text, err);
    if (status != VD_OK)
        return status;
    status = parse(path, &text, &root, err);
    vd_buf_free(&text);
    if (status == VD_OK)
        status = read_log(root, path, log, err);
    json_decref(root);
    log->saved = log->count;
    log->saved_difference = log->party.difference.found;
    if (status == VD_OK)
        status = vd_store_load_checkpoints(dir, log, err);
    if (status != VD_OK)
        vd_run_log_free(log);
    return status;
}
