/* This file makes a rounding log's part of a checkpoint: the root over logs, and signed notes. */
#include <string.h>

#include "verde/log/emitter.h"
#include "verde/log/note.h"

/* Takes the root of an ended step, whose log is on disk. */
vd_status vd_log_take_root(vd_emitter *e, int64_t step, vd_err *err) {
    vd_log_done done = {0};
    vd_status status = vd_rounded_done(e->rounded, step, &done, err);
    e->root[e->roots++] = done.root;
    e->bytes += done.bytes;
    return status;
}

/* Waits until the logs of a checkpoint are on disk; only here does a trainer wait for them. */
static vd_status take_roots(vd_emitter *e, vd_err *err) {
    vd_status status = VD_OK;
    while (e->roots < e->ended && status == VD_OK)
        status = vd_log_take_root(e, e->step + 1 - (int64_t)(e->ended - e->roots), err);
    return status;
}

static vd_status root_of(vd_emitter *e, vd_hash *out, vd_err *err) {
    vd_tree tree = {0};
    vd_status status = vd_tree_of_hashes(&tree, e->root, e->roots, err);
    if (status == VD_OK)
        status = vd_tree_root(&tree, out, err);
    vd_tree_free(&tree);
    e->roots = e->ended = 0;
    return status;
}

/* Refuses to contradict a note signed before the run was resumed: builds may round differently. */
static vd_status signed_before(const vd_emitter *e, const vd_log_claim *claim, vd_err *err) {
    vd_public_key key;
    vd_log_claim before;
    vd_buf note = {0};
    vd_err unread = {0};
    vd_key_public(e->rounding->key, &key);
    const bool contradicts =
        vd_log_note_load(e->options->dir, claim->step, &note, &unread) == VD_OK &&
        vd_log_note_open(note.data, note.size, &key, &before, &unread) == VD_OK &&
        vd_hash_equal(&before.run, &claim->run) && !vd_hash_equal(&before.logs, &claim->logs);
    vd_buf_free(&note);
    return contradicts ? vd_fail(err, VD_ERR_LOCAL,
                                 "%s: another log of step %lld was signed before this run went on: "
                                 "start a new run",
                                 e->options->dir, (long long)claim->step)
                       : VD_OK;
}

static vd_status sign(const vd_emitter *e, int64_t step, const vd_hash *root, vd_err *err) {
    const vd_log_claim claim = {e->run.program, e->run.run, *root, step};
    vd_buf note = {0};
    vd_status status = signed_before(e, &claim, err);
    if (status == VD_OK)
        status = vd_log_note_sign(e->rounding->key, &claim, &note, err);
    if (status == VD_OK)
        status = vd_log_note_save(e->options->dir, step, &note, err);
    vd_buf_free(&note);
    return status;
}

static vd_status differ(vd_emitter *e, int64_t step, vd_err *err) {
    vd_difference *difference = vd_rounded_difference(e->rounded);
    if (!e->rounding->contest)
        return VD_ERR_PEER;
    if (!difference->found) {
        *difference = (vd_difference){.found = true, .step = step};
        snprintf(difference->text, sizeof difference->text, "%.319s", err->text);
    }
    return VD_OK;
}

static vd_status check_note(const vd_emitter *e, int64_t step, const vd_hash *root,
                            const vd_buf *note, vd_err *err) {
    const vd_run_rounding *r = e->rounding;
    vd_log_claim claim;
    vd_status status = vd_log_note_open(note->data, note->size, r->trainer_key, &claim, err);
    if (status != VD_OK)
        return vd_fail(err, status, "%s: the note of its log at step %lld: %.200s", r->trainer,
                       (long long)step, err->text);
    if (!vd_hash_equal(&claim.program, &e->run.program) ||
        !vd_hash_equal(&claim.run, &e->run.run) || claim.step != step ||
        !vd_hash_equal(&claim.logs, root))
        return vd_fail(err, VD_ERR_PEER,
                       "%s: the note of its log at step %lld is signed for another log", r->trainer,
                       (long long)step);
    return VD_OK;
}

/* Keeps the trainer's signed note. Without its key the note is not checked and may be missing. */
static vd_status keep_note(vd_emitter *e, int64_t step, const vd_hash *root, vd_err *err) {
    const vd_run_rounding *r = e->rounding;
    vd_buf note = {0};
    vd_status status = vd_log_note_load(r->trainer, step, &note, err);
    if (status != VD_OK && !r->trainer_key) {
        vd_buf_free(&note);
        return VD_OK;
    }
    if (status == VD_ERR_IO)
        status = vd_fail(err, VD_ERR_USAGE, "%s: its log has no signed note at step %lld",
                         r->trainer, (long long)step);
    if (status == VD_OK)
        status = vd_log_note_save(e->options->dir, step, &note, err);
    if (status == VD_OK && r->trainer_key)
        status = check_note(e, step, root, &note, err);
    vd_buf_free(&note);
    return status == VD_ERR_PEER ? differ(e, step, err) : status;
}

/* Keeps, for run.json, the first difference from the trainer's run. */
static void keep_difference(const vd_emitter *e, vd_run_log *log) {
    vd_log_kept *kept = log->of_backend;
    const vd_difference *difference = vd_rounded_difference(e->rounded);
    log->backend_changed |= difference->found != kept->party.difference.found;
    kept->party.difference = *difference;
}

vd_status vd_log_checkpoint(vd_emitter *e, int64_t step, vd_run_log *log, vd_hash *out,
                            vd_err *err) {
    const vd_run_rounding *r = e->rounding;
    const vd_fault *fault = &e->options->exec->fault;
    vd_status status = take_roots(e, err);
    if (status == VD_OK && r->role == VD_AUDITOR)
        status = vd_log_copy(r->trainer, e->options->dir, vd_rounded_log(e->rounded), e->step, err);
    if (status == VD_OK)
        status = root_of(e, out, err);
    if (status == VD_OK && r->role == VD_AUDITOR)
        status = keep_note(e, step, out, err);
    if (status == VD_OK && r->key)
        status = sign(e, step, out, err);
    if (fault->kind == VD_FAULT_TWO_LOGS && step > fault->step)
        out->b[0] ^= 1;
    keep_difference(e, log);
    return status;
}

vd_status vd_log_agree(vd_emitter *e, vd_run_log *log, vd_err *err) {
    vd_run_log trainer = {0};
    const vd_difference *difference = vd_rounded_difference(e->rounded);
    if (e->rounding->role == VD_TRAINER)
        return VD_OK;
    const char *dir = e->rounding->trainer;
    vd_status status = vd_store_load_log(dir, &trainer, err);
    for (uint32_t i = 0; i < log->count && status == VD_OK && !difference->found; i++)
        if (i >= trainer.count || !vd_hash_equal(&trainer.state[i], &log->state[i]) ||
            !vd_hash_equal(&trainer.emitted[i], &log->emitted[i])) {
            (void)vd_fail(err, VD_ERR_PEER,
                          "%s: its checkpoint after step %lld is not what its log leads to", dir,
                          (long long)log->step[i]);
            status = differ(e, log->step[i], err);
            keep_difference(e, log);
        }
    vd_run_log_free(&trainer);
    if (status == VD_OK && difference->found)
        status = vd_store_save_log(e->options->dir, log, err);
    return status;
}
