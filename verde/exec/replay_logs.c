#include "verde/exec/replay_logs.h"

#include <stdlib.h>
#include <string.h>

#include "verde/exec/log_note.h"

/* ---- executing again ---- */

static vd_status replay_logs_check(const vd_replay_logs *l, const vd_exec *exec, vd_err *err) {
    const vd_run_party *party = &l->log->party;
    if (l->program->rounding.bits && !l->log->rounded)
        return vd_fail(err, VD_ERR_USAGE, "%s: a run in fixed order of a job with `rounding`",
                       l->dir);
    if (!l->log->rounded)
        return VD_OK;
    if (!l->program->rounding.bits)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: its job has no `rounding`, so that the run cannot be arbitrated: verde "
                       "run --role auditor follows it",
                       l->dir);
    if (!party->role)
        return vd_fail(err, VD_ERR_USAGE, "%s: a run of an older version", l->dir);
    if (strcmp(party->backend, ro_ctx_backend(exec->ro)) != 0)
        return vd_fail(err, VD_ERR_USAGE, "%s: ran on backend %s, and is repeated on it alone",
                       l->dir, party->backend);
    return VD_OK;
}

vd_status vd_replay_logs_open(vd_replay_logs *l, vd_exec *exec, vd_err *err) {
    vd_status status = replay_logs_check(l, exec, err);
    if (status != VD_OK || !l->log->rounded)
        return status;
    const vd_run_party *party = &l->log->party;
    l->thresholds.bits = l->program->rounding.bits;
    memcpy(l->thresholds.of, l->program->rounding.threshold, sizeof l->thresholds.of);
    const vd_rounded_options options = {.role = party->role,
                                        .program = l->program,
                                        .profile = &party->profile,
                                        .thresholds = &l->thresholds,
                                        .log = vd_rounded_schedule(&l->log->rounding, l->program),
                                        .dir = l->dir,
                                        .fault = &exec->fault,
                                        .contest = party->contest,
                                        .again = true};
    status = vd_rounded_create(&options, &l->rounded, err);
    if (status != VD_OK)
        return status;
    *vd_rounded_difference(l->rounded) = party->difference;
    exec->free = vd_rounded_free(l->rounded);
    return VD_OK;
}

vd_status vd_replay_logs_begin(vd_replay_logs *l, int64_t step, vd_err *err) {
    return l->rounded ? vd_rounded_begin(l->rounded, step, NULL, err) : VD_OK;
}

void vd_replay_logs_close(vd_replay_logs *l) {
    vd_rounded_drop(l->rounded);
    l->rounded = NULL;
}

/* ---- sections ---- */

vd_log_range vd_logs_at(const vd_program *program, int64_t step) {
    if (step < 0)
        return (vd_log_range){0, 1, -1};
    const uint64_t leaf = (uint64_t)(step / program->checkpoint_interval) + 1;
    const int64_t first = vd_run_leaf_step(program, leaf - 1);
    return (vd_log_range){leaf, (uint64_t)(vd_run_leaf_step(program, leaf) - first), first};
}

static vd_status open_log(const vd_replay_logs *l, int64_t step, vd_log_file **out, vd_err *err) {
    uint32_t count;
    const vd_log_node *node = vd_rounded_nodes(l->rounded, step, &count);
    vd_status status =
        vd_log_open(l->dir, vd_rounded_log(l->rounded), step, node, count, NULL, out, err);
    return status == VD_OK ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s", err->text);
}

/* Roots of the logs of the steps first .. first + count - 1. */
static vd_status roots_of(const vd_replay_logs *l, int64_t first, uint64_t count, vd_hash *root,
                          vd_err *err) {
    for (uint64_t i = 0; i < count; i++) {
        vd_log_file *file = NULL;
        vd_log_done done;
        vd_status status = open_log(l, first + (int64_t)i, &file, err);
        if (status != VD_OK)
            return status;
        vd_log_file_done(file, &done);
        vd_log_close(file);
        root[i] = done.root;
    }
    return VD_OK;
}

/* Nothing is said that does not lead to what the run has committed to. */
static vd_status prove_step(const vd_replay_logs *l, int64_t step, vd_proof *out, vd_err *err) {
    const vd_log_range range = vd_logs_at(l->program, step);
    vd_hash root, *list = calloc((size_t)range.count, sizeof *list);
    vd_tree tree = {0};
    vd_status status = list ? roots_of(l, range.first, range.count, list, err)
                            : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = vd_tree_of_hashes(&tree, list, range.count, err);
    if (status == VD_OK)
        status = vd_tree_root(&tree, &root, err);
    if (status == VD_OK && !vd_hash_equal(&root, &l->log->logs[range.leaf]))
        status = vd_fail(err, VD_ERR_LOCAL, "%s: the logs are not those of the run", l->dir);
    if (status == VD_OK)
        status = vd_tree_prove(&tree, (uint64_t)(step - range.first), out, err);
    vd_tree_free(&tree);
    free(list);
    return status;
}

vd_status vd_replay_section(const vd_replay_logs *l, int64_t step, uint64_t index,
                            vd_section_proof *out, vd_err *err) {
    vd_log_file *file = NULL;
    *out = (vd_section_proof){.run = l->log->rounding.run};
    vd_status status = prove_step(l, step, &out->step, err);
    if (status == VD_OK)
        status = open_log(l, step, &file, err);
    if (status != VD_OK)
        return status;
    status = vd_log_prove(file, index, &out->leaf, &out->tree_root, &out->section, err);
    if (status == VD_OK && out->leaf.size <= VD_LOG_SECTION_BYTES)
        status = vd_log_read_bytes(file, index, &out->bytes, err);
    vd_log_close(file);
    return status == VD_OK ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s", err->text);
}

vd_status vd_replay_note(const vd_replay_logs *l, uint64_t leaf, const vd_public_key *trainer,
                         vd_buf *out, vd_err *err) {
    const int64_t step = l->log->step[leaf];
    vd_log_claim claim;
    vd_status status = vd_log_note_load(l->dir, step, out, err);
    if (status == VD_ERR_IO)
        return vd_fail(err, VD_ERR_PEER, "the log had no signed note at step %lld",
                       (long long)step);
    if (status == VD_OK)
        status = vd_log_note_open(out->data, out->size, trainer, &claim, err);
    if (status == VD_OK &&
        (!vd_hash_equal(&claim.logs, &l->log->logs[leaf]) ||
         !vd_hash_equal(&claim.program, &l->log->program) ||
         !vd_hash_equal(&claim.run, &l->log->rounding.run) || claim.step != step))
        status = vd_fail(err, VD_ERR_PEER, "the note beside the log is of another log");
    return status;
}
