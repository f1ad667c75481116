#include "verde/exec/run_logs.h"

#include <stdlib.h>
#include <unistd.h>

enum { MEMORY = 256 << 20 }; /* of sections that wait to be written */

bool vd_logged_state(const vd_hash *state, const vd_hash *logs, vd_hash *out) {
    const vd_hash both[2] = {*state, *logs};
    return vd_hash_tagged("verde/logged/1", both, sizeof both, out);
}

static vd_status trainers_log(const char *dir, const vd_hash *program, vd_log_run *out,
                              vd_err *err) {
    vd_run_log trainer = {0};
    vd_status status = vd_store_load_log(dir, &trainer, err);
    if (status == VD_OK && !trainer.rounded)
        status = vd_fail(err, VD_ERR_USAGE, "%s: a run without a rounding log", dir);
    if (status == VD_OK && !vd_hash_equal(&trainer.program, program))
        status = vd_fail(err, VD_ERR_USAGE, "%s: a run of another job", dir);
    *out = trainer.rounding;
    vd_run_log_free(&trainer);
    return status;
}

vd_status vd_run_logs_agree(const vd_run_rounding *rounding, const vd_run_log *log, vd_err *err) {
    vd_run_log trainer = {0};
    if (!rounding || rounding->role == VD_TRAINER)
        return VD_OK;
    vd_status status = vd_store_load_log(rounding->trainer, &trainer, err);
    for (uint32_t i = 0; i < log->count && status == VD_OK; i++)
        if (i >= trainer.count || !vd_hash_equal(&trainer.state[i], &log->state[i]) ||
            !vd_hash_equal(&trainer.logs[i], &log->logs[i]))
            status = vd_fail(err, VD_ERR_PEER,
                             "%s: its checkpoint after step %lld is not what its log leads to",
                             rounding->trainer, (long long)log->step[i]);
    vd_run_log_free(&trainer);
    return status;
}

vd_status vd_run_logs_choose(const vd_run_rounding *rounding, const vd_hash *program,
                             vd_log_run *out, vd_err *err) {
    if (rounding->role == VD_AUDITOR)
        return trainers_log(rounding->trainer, program, out, err);
    *out =
        (vd_log_run){.program = *program, .encoding = rounding->encoding, .bits = rounding->bits};
    if (getentropy(out->run.b, sizeof out->run.b) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "no random numbers for the name of a log");
    return rounding->encoding == VD_LOG_SYMBOLS
               ? vd_thresholds_hash(rounding->thresholds, &out->thresholds, err)
               : VD_OK;
}

vd_status vd_run_logs_open(vd_run_logs *logs, vd_exec *exec, const vd_run_options *options,
                           const vd_log_run *run, vd_err *err) {
    const vd_run_rounding *rounding = options->rounding;
    if (!rounding)
        return VD_OK;
    const bool trains = rounding->role == VD_TRAINER;
    const vd_rounded_options rounded = {.role = rounding->role,
                                        .program = exec->program,
                                        .profile = rounding->profile,
                                        .thresholds = rounding->thresholds,
                                        .log = *run,
                                        .dir = trains ? options->dir : rounding->trainer,
                                        .memory_bytes = MEMORY};
    logs->root = calloc((size_t)exec->program->checkpoint_interval + 1, sizeof *logs->root);
    if (!logs->root)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_status status = vd_rounded_create(&rounded, &logs->rounded, err);
    if (status == VD_OK)
        exec->free = vd_rounded_free(logs->rounded);
    return status;
}

vd_status vd_run_logs_begin(vd_run_logs *logs, int64_t step, vd_err *err) {
    return logs->rounded ? vd_rounded_begin(logs->rounded, step, NULL, err) : VD_OK;
}

vd_status vd_run_logs_end(vd_run_logs *logs, vd_err *err) {
    vd_log_done done = {0};
    if (!logs->rounded)
        return VD_OK;
    vd_status status = vd_rounded_end(logs->rounded, &done, err);
    logs->root[logs->roots++] = done.root;
    logs->bytes += done.bytes;
    return status;
}

vd_status vd_run_logs_root(vd_run_logs *logs, vd_hash *out, vd_err *err) {
    vd_tree tree = {0};
    *out = (vd_hash){0};
    if (!logs->rounded)
        return VD_OK;
    vd_status status = vd_tree_of_hashes(&tree, logs->root, logs->roots, err);
    if (status == VD_OK)
        status = vd_tree_root(&tree, out, err);
    vd_tree_free(&tree);
    logs->roots = 0;
    return status;
}

vd_status vd_run_logs_close(vd_run_logs *logs, vd_status status, vd_run_result *result,
                            vd_err *err) {
    if (logs->rounded)
        result->rounded = vd_rounded_counted(logs->rounded, 0);
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
