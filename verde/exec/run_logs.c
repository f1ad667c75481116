#include "verde/exec/run_logs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/exec/log_note.h"
#include "verde/exec/other_job.h"

enum { MEMORY = 256 << 20 }; /* of sections that wait to be written */

bool vd_logged_state(const vd_hash *state, const vd_hash *logs, vd_hash *out) {
    const vd_hash both[2] = {*state, *logs};
    return vd_hash_tagged("verde/logged/1", both, sizeof both, out);
}

/* ---- what fits together ---- */

vd_status vd_run_logs_check(const vd_run_options *options, vd_err *err) {
    const vd_program_rounding *program = &options->exec->program->rounding;
    const vd_run_rounding *r = options->rounding;
    if (program->bits && !r)
        return vd_fail(err, VD_ERR_USAGE, "a job with `rounding` is run with --backend log");
    if (!r && vd_fault_is_of_logs(&options->exec->fault))
        return vd_fail(err, VD_ERR_USAGE, "a fault of rounding logs needs --backend log");
    if (program->bits && r->role == VD_TRAINER &&
        (r->bits != program->bits || (int)r->encoding != program->encoding))
        return vd_fail(err, VD_ERR_USAGE, "rounding is not what the job's `rounding` says");
    return VD_OK;
}

static vd_status trainers_log(const char *dir, const vd_program *program, const vd_hash *hash,
                              vd_log_run *out, vd_err *err) {
    vd_run_log trainer = {0};
    vd_status status = vd_store_load_log(dir, &trainer, err);
    *out = trainer.rounding;
    if (status == VD_OK && !trainer.rounded)
        status = vd_fail(err, VD_ERR_USAGE, "%s: a run without a rounding log", dir);
    else if (status == VD_OK && !vd_hash_equal(&trainer.program, hash))
        status = vd_fail_other_job(dir, program, "follow a run of this one", err);
    else if (status == VD_OK && program->rounding.bits &&
             (out->bits != program->rounding.bits ||
              (int)out->encoding != program->rounding.encoding))
        status =
            vd_fail(err, VD_ERR_PEER, "%s: its log is not what the job's `rounding` says", dir);
    vd_run_log_free(&trainer);
    return status;
}

static vd_status choose_run(const vd_run_rounding *rounding, const vd_program *program,
                            const vd_hash *hash, vd_log_run *out, vd_err *err) {
    if (rounding->role == VD_AUDITOR)
        return trainers_log(rounding->trainer, program, hash, out, err);
    *out = (vd_log_run){.program = *hash, .encoding = rounding->encoding, .bits = rounding->bits};
    if (getentropy(out->run.b, sizeof out->run.b) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "no random numbers for the name of a log");
    return rounding->encoding == VD_LOG_SYMBOLS
               ? vd_thresholds_hash(rounding->thresholds, &out->thresholds, err)
               : VD_OK;
}

vd_status vd_run_logs_choose(const vd_run_options *options, const vd_hash *program, vd_run_log *out,
                             vd_err *err) {
    const vd_run_rounding *rounding = options->rounding;
    out->party = (vd_run_party){
        .role = rounding->role, .profile = *rounding->profile, .contest = rounding->contest};
    snprintf(out->party.backend, sizeof out->party.backend, "%s",
             ro_ctx_backend(options->exec->ro));
    return choose_run(rounding, options->exec->program, program, &out->rounding, err);
}

vd_status vd_run_logs_same(const vd_run_options *options, const vd_run_log *log, vd_err *err) {
    const vd_run_rounding *r = options->rounding;
    const vd_log_run *begun = &log->rounding;
    vd_hash thresholds = {0};
    vd_status status = VD_OK;
    if (r->role == VD_AUDITOR)
        return VD_OK;
    if (r->encoding == VD_LOG_SYMBOLS)
        status = vd_thresholds_hash(r->thresholds, &thresholds, err);
    if (status != VD_OK)
        return status;
    if (r->bits != begun->bits || r->encoding != begun->encoding ||
        !vd_hash_equal(&thresholds, &begun->thresholds))
        return vd_fail(
            err, VD_ERR_USAGE,
            "%s: holds a run with other --bits, --encoding or --thresholds; give another "
            "directory",
            options->dir);
    return VD_OK;
}

/* ---- steps ---- */

vd_status vd_run_logs_open(vd_run_logs *logs, vd_exec *exec, const vd_run_options *options,
                           const vd_run_log *log, vd_err *err) {
    const vd_run_rounding *rounding = options->rounding;
    if (!rounding)
        return VD_OK;
    const bool trains = rounding->role == VD_TRAINER;
    const vd_rounded_options rounded = {.role = rounding->role,
                                        .program = exec->program,
                                        .profile = rounding->profile,
                                        .thresholds = rounding->thresholds,
                                        .log = vd_rounded_schedule(&log->rounding, exec->program),
                                        .dir = trains ? options->dir : rounding->trainer,
                                        .memory_bytes = MEMORY,
                                        .fault = &exec->fault,
                                        .contest = rounding->contest};
    logs->options = options;
    logs->run = log->rounding;
    logs->root = calloc((size_t)exec->program->checkpoint_interval + 1, sizeof *logs->root);
    if (!logs->root)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_status status = vd_rounded_create(&rounded, &logs->rounded, err);
    if (status != VD_OK)
        return status;
    exec->free = vd_rounded_free(logs->rounded);
    *vd_rounded_difference(logs->rounded) = log->party.difference;
    return VD_OK;
}

vd_status vd_run_logs_begin(vd_run_logs *logs, int64_t step, vd_err *err) {
    logs->step = step;
    return logs->rounded ? vd_rounded_begin(logs->rounded, step, NULL, err) : VD_OK;
}

/* Takes the root of an ended step, whose log is on disk. */
static vd_status take_root(vd_run_logs *logs, int64_t step, vd_err *err) {
    vd_log_done done = {0};
    vd_status status = vd_rounded_done(logs->rounded, step, &done, err);
    logs->root[logs->roots++] = done.root;
    logs->bytes += done.bytes;
    return status;
}

vd_status vd_run_logs_end(vd_run_logs *logs, vd_err *err) {
    if (!logs->rounded)
        return VD_OK;
    const vd_run_rounding *rounding = logs->options->rounding;
    vd_status status = vd_rounded_end(logs->rounded, err);
    logs->ended++;
    if (status != VD_OK || rounding->role == VD_TRAINER)
        return status;
    return take_root(logs, logs->step, err);
}

/* ---- checkpoints ---- */

/* Waits for the logs that a checkpoint stands on to be on disk; a trainer waits for them here
 * alone. */
static vd_status take_roots(vd_run_logs *logs, vd_err *err) {
    vd_status status = VD_OK;
    while (logs->roots < logs->ended && status == VD_OK)
        status = take_root(logs, logs->step + 1 - (int64_t)(logs->ended - logs->roots), err);
    return status;
}

static vd_status root_of(vd_run_logs *logs, vd_hash *out, vd_err *err) {
    vd_tree tree = {0};
    vd_status status = vd_tree_of_hashes(&tree, logs->root, logs->roots, err);
    if (status == VD_OK)
        status = vd_tree_root(&tree, out, err);
    vd_tree_free(&tree);
    logs->roots = logs->ended = 0;
    return status;
}

/* A run that goes on must not contradict what it has signed already: another build may round
 * otherwise. */
static vd_status signed_before(const vd_run_logs *logs, const vd_log_claim *claim, vd_err *err) {
    vd_public_key key;
    vd_log_claim before;
    vd_buf note = {0};
    vd_err unread = {0};
    vd_key_public(logs->options->rounding->key, &key);
    const bool contradicts =
        vd_log_note_load(logs->options->dir, claim->step, &note, &unread) == VD_OK &&
        vd_log_note_open(note.data, note.size, &key, &before, &unread) == VD_OK &&
        vd_hash_equal(&before.run, &claim->run) && !vd_hash_equal(&before.logs, &claim->logs);
    vd_buf_free(&note);
    return contradicts ? vd_fail(err, VD_ERR_LOCAL,
                                 "%s: another log of step %lld was signed before this run went on: "
                                 "start a new run",
                                 logs->options->dir, (long long)claim->step)
                       : VD_OK;
}

static vd_status sign(const vd_run_logs *logs, int64_t step, const vd_hash *root, vd_err *err) {
    const vd_log_claim claim = {logs->run.program, logs->run.run, *root, step};
    vd_buf note = {0};
    vd_status status = signed_before(logs, &claim, err);
    if (status == VD_OK)
        status = vd_log_note_sign(logs->options->rounding->key, &claim, &note, err);
    if (status == VD_OK)
        status = vd_log_note_save(logs->options->dir, step, &note, err);
    vd_buf_free(&note);
    return status;
}

static vd_status differ(vd_run_logs *logs, int64_t step, vd_err *err) {
    vd_difference *difference = vd_rounded_difference(logs->rounded);
    if (!logs->options->rounding->contest)
        return VD_ERR_PEER;
    if (!difference->found) {
        *difference = (vd_difference){.found = true, .step = step};
        snprintf(difference->text, sizeof difference->text, "%.319s", err->text);
    }
    return VD_OK;
}

static vd_status check_note(const vd_run_logs *logs, int64_t step, const vd_hash *root,
                            const vd_buf *note, vd_err *err) {
    const vd_run_rounding *r = logs->options->rounding;
    vd_log_claim claim;
    vd_status status = vd_log_note_open(note->data, note->size, r->trainer_key, &claim, err);
    if (status != VD_OK)
        return vd_fail(err, status, "%s: the note of its log at step %lld: %.200s", r->trainer,
                       (long long)step, err->text);
    if (!vd_hash_equal(&claim.program, &logs->run.program) ||
        !vd_hash_equal(&claim.run, &logs->run.run) || claim.step != step ||
        !vd_hash_equal(&claim.logs, root))
        return vd_fail(err, VD_ERR_PEER,
                       "%s: the note of its log at step %lld is signed for another log", r->trainer,
                       (long long)step);
    return VD_OK;
}

/* Keeps the trainer's signed note. Without its key the note is not checked and may be missing. */
static vd_status keep_note(vd_run_logs *logs, int64_t step, const vd_hash *root, vd_err *err) {
    const vd_run_rounding *r = logs->options->rounding;
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
        status = vd_log_note_save(logs->options->dir, step, &note, err);
    if (status == VD_OK && r->trainer_key)
        status = check_note(logs, step, root, &note, err);
    vd_buf_free(&note);
    return status == VD_ERR_PEER ? differ(logs, step, err) : status;
}

vd_status vd_run_logs_checkpoint(vd_run_logs *logs, int64_t step, vd_run_log *log, vd_hash *out,
                                 vd_err *err) {
    *out = (vd_hash){0};
    if (!logs->rounded)
        return VD_OK;
    const vd_run_rounding *r = logs->options->rounding;
    const vd_fault *fault = &logs->options->exec->fault;
    vd_status status = take_roots(logs, err);
    if (status == VD_OK && r->role == VD_AUDITOR)
        status = vd_log_copy(r->trainer, logs->options->dir, vd_rounded_log(logs->rounded),
                             logs->step, err);
    if (status == VD_OK)
        status = root_of(logs, out, err);
    if (status == VD_OK && r->role == VD_AUDITOR)
        status = keep_note(logs, step, out, err);
    if (status == VD_OK && r->key)
        status = sign(logs, step, out, err);
    if (fault->kind == VD_FAULT_TWO_LOGS && step > fault->step)
        out->b[0] ^= 1;
    log->party.difference = *vd_rounded_difference(logs->rounded);
    return status;
}

vd_status vd_run_logs_agree(vd_run_logs *logs, vd_run_log *log, vd_err *err) {
    vd_run_log trainer = {0};
    if (!logs->rounded || logs->options->rounding->role == VD_TRAINER)
        return VD_OK;
    const char *dir = logs->options->rounding->trainer;
    vd_status status = vd_store_load_log(dir, &trainer, err);
    for (uint32_t i = 0; i < log->count && status == VD_OK && !log->party.difference.found; i++)
        if (i >= trainer.count || !vd_hash_equal(&trainer.state[i], &log->state[i]) ||
            !vd_hash_equal(&trainer.logs[i], &log->logs[i])) {
            (void)vd_fail(err, VD_ERR_PEER,
                          "%s: its checkpoint after step %lld is not what its log leads to", dir,
                          (long long)log->step[i]);
            status = differ(logs, log->step[i], err);
            log->party.difference = *vd_rounded_difference(logs->rounded);
        }
    vd_run_log_free(&trainer);
    if (status == VD_OK && log->party.difference.found)
        status = vd_store_save_log(logs->options->dir, log, err);
    return status;
}

vd_status vd_run_logs_close(vd_run_logs *logs, vd_status status, vd_run_result *result,
                            vd_err *err) {
    if (logs->rounded) {
        result->rounded = vd_rounded_counted(logs->rounded, 0);
        result->difference = *vd_rounded_difference(logs->rounded);
    }
    result->log_bytes = logs->bytes;
    for (int op = 1; op < RO_OP_END && logs->rounded; op++)
        result->rounded_of[op] = vd_rounded_counted(logs->rounded, op);
    if (status == VD_OK)
        status = vd_rounded_close(logs->rounded, err);
    else
        vd_rounded_drop(logs->rounded);
    free(logs->root);
    return status;
}
