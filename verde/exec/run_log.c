/* This file manages logs of runs, and writes run.json. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verde/commit/json.h"
#include "verde/exec/backend.h"
#include "verde/exec/run_log_found.h"

void vd_run_log_free(vd_run_log *log) {
    free(log->step);
    free(log->state);
    free(log->emitted);
    free(log->of_backend);
    free(log->machine);
    free(log->stated);
    free(log->found);
    *log = (vd_run_log){0};
}

vd_status vd_run_log_put(vd_run_log *log, int64_t step, const vd_hash *state,
                         const vd_hash *emitted, vd_err *err) {
    int64_t *steps = realloc(log->step, (log->count + 1) * sizeof *steps);
    if (steps)
        log->step = steps;
    vd_hash *states = realloc(log->state, (log->count + 1) * sizeof *states);
    if (states)
        log->state = states;
    vd_hash *roots = realloc(log->emitted, (log->count + 1) * sizeof *roots);
    if (roots)
        log->emitted = roots;
    vd_ran *stated = realloc(log->stated, (log->count + 1) * sizeof *stated);
    if (stated)
        log->stated = stated;
    if (!steps || !states || !roots || !stated)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    log->stated[log->count] = (vd_ran){-1, 0};
    log->step[log->count] = step;
    log->emitted[log->count] = emitted ? *emitted : (vd_hash){0};
    log->state[log->count++] = *state;
    return VD_OK;
}

static int32_t find_machine(const vd_run_log *log, const vd_machine *machine) {
    for (uint32_t i = 0; i < log->machine_count; i++)
        if (vd_machine_equal(&log->machine[i], machine))
            return (int32_t)i;
    return -1;
}

vd_status vd_run_log_state(vd_run_log *log, const vd_machine *machine, int64_t microseconds,
                           vd_err *err) {
    int32_t index = find_machine(log, machine);
    if (index < 0 && log->machine_count < VD_MACHINES_MAX) {
        vd_machine *more = realloc(log->machine, (log->machine_count + 1) * sizeof *more);
        if (!more)
            return vd_fail(err, VD_ERR_LOCAL, "out of memory");
        log->machine = more;
        log->machine[log->machine_count] = *machine;
        index = (int32_t)log->machine_count++;
    }
    if (log->count > 0)
        log->stated[log->count - 1] = (vd_ran){index, microseconds};
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
        if (log->backend && !vd_emitted_state(&log->state[i], &log->emitted[i], &leaf[i]))
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

/* ---- checks ---- */

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

/* ---- JSON ---- */

/* A loss as JSON, which has no numbers for a run that diverged: then "nan" or "inf". */
static json_t *json_loss(float loss) {
    char text[32];
    if (isfinite(loss))
        return json_real((double)loss);
    snprintf(text, sizeof text, "%g", (double)loss);
    return json_string(text);
}

static json_t *state_json(const vd_run_log *log, uint32_t i) {
    json_t *state = json_pack("{sIso}", "step", (json_int_t)log->step[i], "state",
                              vd_hash_text(&log->state[i]));
    if (log->backend)
        json_object_set_new(state, "logs", vd_hash_text(&log->emitted[i]));
    if (log->stated[i].machine >= 0) {
        json_object_set_new(state, "machine", json_integer(log->stated[i].machine));
        json_object_set_new(state, "microseconds", json_integer(log->stated[i].microseconds));
    }
    return state;
}

static json_t *machines_json(const vd_run_log *log) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < log->machine_count; i++) {
        const vd_machine *m = &log->machine[i];
        json_array_append_new(list, json_pack("{ss ss ss ss si ss}", "host", m->host, "device",
                                              m->device, "uuid", m->uuid, "backend", m->backend,
                                              "threads", (int)m->threads, "version", m->version));
    }
    return list;
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
    json_t *root =
        json_pack("{siso sI so so ss so}", "verde_run", 1, "program", vd_hash_text(&log->program),
                  "losses", (json_int_t)log->losses, "loss_first", json_loss(log->loss_first),
                  "loss_last", json_loss(log->loss_last), "fault", log->fault, "states", states);
    if (log->machine_count)
        json_object_set_new(root, "machines", machines_json(log));
    if (log->found_count)
        json_object_set_new(root, "guard", vd_found_json(log->found, log->found_count));
    json_object_set_new(root, "root", vd_hash_text(&states_root));
    if (log->keep) {
        json_object_set_new(root, "keep", json_integer(log->keep));
        json_object_set_new(root, "kept_every", json_integer(log->kept_every));
    }
    if (log->backend)
        log->backend->write(log, root);
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
    log->backend_changed = false;
    log->saved_machines = log->machine_count;
    log->saved_found = log->found_count;
    return vd_store_drop_checkpoints(dir, err);
}
