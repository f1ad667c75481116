/* This file executes a run step by step, commits at checkpoints, and resumes stopped runs. */
#include "verde/exec/run.h"

#include <stdlib.h>
#include <string.h>

#include "verde/exec/backend.h"
#include "verde/exec/losses.h"
#include "verde/exec/other_job.h"
#include "verde/exec/run_keep.h"
#include "verde/exec/run_log_found.h"
#include "verde/exec/run_save.h"
#include "verde/exec/source.h"

typedef struct {
    const vd_run_options *options;
    const vd_program *program;
    vd_run_log log;
    vd_state state;
    vd_hash program_hash;
    vd_progress progress;
    double start;
    vd_exec exec; /* options->exec with the kernels of the run's backend */
    vd_emitting emits;
    vd_losses losses;
    vd_step_numbers numbers; /* of the current step */
    vd_step_times times;
    vd_saving saving;
    double interval_s, saved_s; /* seconds since the last checkpoint; those that led to it */
    bool begun;                 /* options->begun was called */
    vd_err *err;
} runner;

/* The fault that the run's states have. A flipped sum is repaired before anything is committed. */
static const char *fault_of(const runner *r) {
    const bool repaired = r->options->exec->fault.kind == VD_FAULT_SUM;
    return r->options->fault && !repaired ? r->options->fault : "";
}

static vd_status check_log(const runner *r) {
    const char *dir = r->options->dir, *fault = fault_of(r);
    if (!vd_hash_equal(&r->log.program, &r->program_hash))
        return vd_fail_other_job(dir, r->program, "give another directory", r->err);
    vd_status status = vd_run_log_fits(&r->log, r->program, dir, r->err);
    if (status != VD_OK)
        return status;
    if (strcmp(r->log.fault, fault) != 0)
        return vd_fail(r->err, VD_ERR_USAGE, "%s: holds a run with fault \"%s\", got \"%s\"", dir,
                       r->log.fault, fault);
    const vd_backend *ran = r->log.backend;
    if (ran != (r->options->backend ? r->options->backend->table : NULL))
        return vd_fail(r->err, VD_ERR_USAGE, "%s: holds a run %s%s; give another directory", dir,
                       ran ? "on " : "in ", ran ? ran->kernels : "fixed order");
    return ran ? ran->goes_on(r->options, &r->log, r->err) : VD_OK;
}

/* Loads the last undamaged checkpoint, and forgets later ones. */
static vd_status resume(runner *r) {
    vd_status status = VD_ERR_IO;
    while (r->log.count > 0 && status == VD_ERR_IO) {
        uint32_t last = r->log.count - 1;
        status = vd_store_load_state(r->exec.ro, r->options->dir, r->program, &r->program_hash,
                                     r->log.step[last], &r->log.state[last], &r->state, r->err);
        if (status == VD_ERR_IO)
            r->log.count--;
    }
    if (r->log.count > 0)
        r->progress.resumed_at = r->progress.saved = r->state.step;
    if (status == VD_OK && r->log.count > 0)
        status = vd_state_place(r->options->exec, &r->state, r->err);
    return status == VD_ERR_IO ? VD_OK : status;
}

static vd_status open_run(runner *r) {
    vd_status status = vd_emit_allows(r->options, r->err);
    if (status == VD_OK)
        status = vd_trace_fits(r->program, r->err);
    if (status == VD_OK)
        status = vd_program_hash(r->program, &r->program_hash, r->err);
    if (status != VD_OK)
        return status;
    if (vd_lies_in(r->options->dir, "run.json")) {
        status = vd_store_load_log(r->options->dir, &r->log, r->err);
        if (status == VD_OK)
            status = check_log(r);
        if (status == VD_OK)
            status = vd_keep_take(r->options, &r->log, r->err);
        if (status == VD_OK)
            status = resume(r);
        /* A kill may have come after saving the log and before deleting states: look at all. */
        if (status == VD_OK && r->log.count > 0 && r->log.count != r->log.saved)
            status = vd_store_save_log(r->options->dir, &r->log, r->err);
        return status == VD_OK ? vd_store_thin(r->options->dir, &r->log, true, r->err) : status;
    }
    r->log.program = r->program_hash;
    status = vd_keep_take(r->options, &r->log, r->err);
    if (status != VD_OK)
        return status;
    if (r->options->backend)
        status = r->options->backend->table->choose(r->options, &r->program_hash, &r->log, r->err);
    if (status != VD_OK)
        return status;
    snprintf(r->log.fault, sizeof r->log.fault, "%s", fault_of(r));
    return vd_store_create(r->options->dir, r->program, r->err);
}

/* ---- steps ---- */

static vd_status run_evaluation(runner *r, int64_t step, const vd_hash *state) {
    const vd_run_options *o = r->options;
    vd_score score = {0};
    bool told = false;
    if (!o->evaluate || step == 0)
        return VD_OK;
    vd_status status = o->evaluate(o->evaluation, step, state, &score, &told, r->err);
    return status == VD_OK && told ? vd_losses_evaluated(&r->losses, step, &score, r->err) : status;
}

/* Records in the log who computed the last checkpoint, and what the guard has found. */
static vd_status state_machine(runner *r) {
    vd_machine here;
    vd_machine_here(r->options->exec->ro, &here);
    const vd_status status = vd_run_log_state(&r->log, &here, (int64_t)(r->saved_s * 1e6), r->err);
    return status == VD_OK ? vd_found_take(&r->log, r->exec.guard, r->err) : status;
}

/* Records findings that ended the run, if the run has a checkpoint. */
static void state_end(runner *r) {
    vd_err unheard = {0};
    const uint32_t before = r->log.found_count;
    if (r->log.count > 0 && vd_found_take(&r->log, r->exec.guard, &unheard) == VD_OK &&
        r->log.found_count > before &&
        vd_store_save_log(r->options->dir, &r->log, &unheard) != VD_OK)
        return; /* the caller reports what ended the run */
}

/* Calls options->begun, once run.json exists: before, foreign files must not be overwritten. */
static vd_status tell_begun(runner *r) {
    const vd_run_options *o = r->options;
    if (r->begun || !o->begun)
        return VD_OK;
    r->begun = true;
    return o->begun(o->begun_user, r->err);
}

/* Ends a checkpoint whose state has been written. */
static vd_status end_checkpoint(runner *r, int64_t step, const vd_hash *commitment) {
    vd_hash emitted;
    vd_status status = run_evaluation(r, step, commitment);
    if (status == VD_OK)
        status = vd_emit_checkpoint(&r->emits, step, &r->log, &emitted, r->err);
    if (status == VD_OK)
        status = vd_run_log_put(&r->log, step, commitment, &emitted, r->err);
    if (status == VD_OK)
        status = state_machine(r);
    if (status == VD_OK)
        status = vd_losses_sync(&r->losses, r->err);
    if (status == VD_OK)
        status =
            vd_store_add_checkpoint(r->options->dir, &r->log, step == r->program->steps, r->err);
    if (status == VD_OK)
        status = tell_begun(r);
    if (status == VD_OK)
        status = vd_store_thin(r->options->dir, &r->log, false, r->err);
    if (status == VD_OK)
        r->progress.saved = step;
    return status;
}

/* Waits for a state that is being written, if any, and ends its checkpoint. */
static vd_status finish_saving(runner *r) {
    if (!r->saving.busy)
        return VD_OK;
    vd_status status = vd_saving_end(&r->saving, r->err);
    if (status == VD_OK)
        status = end_checkpoint(r, r->saving.state.step, &r->saving.commitment);
    vd_saving_free(&r->saving);
    return status;
}

/* Does the same after a step that ran meanwhile. If the step failed, the checkpoint is still good
 * to resume from, so it is ended too; but the step's error is reported. */
static vd_status finish_saving_after(runner *r, vd_status status) {
    vd_err *const told = r->err;
    vd_err unheard = {0};
    if (status == VD_OK)
        return finish_saving(r);
    r->err = &unheard;
    vd_status saved = finish_saving(r);
    (void)saved;
    r->err = told;
    return status;
}

/* Returns whether a state is written during the next step, as only teams do. */
static bool saves_beside(const runner *r) {
    return r->options->team && r->exec.fault.kind == VD_FAULT_NONE && !r->state.memory &&
           r->state.step < r->program->steps;
}

static vd_status checkpoint(runner *r) {
    vd_hash commitment;
    r->saved_s = r->interval_s;
    r->interval_s = 0;
    if (saves_beside(r))
        return vd_saving_start(&r->saving, r->options, &r->program_hash, &r->state, r->err);
    const vd_status status =
        vd_save_state(r->options, r->exec.ro, &r->program_hash, &r->state, &commitment, r->err);
    return status == VD_OK ? end_checkpoint(r, r->state.step, &commitment) : status;
}

static vd_status run_step(runner *r, float *loss) {
    return r->saving.busy ? vd_exec_next(&r->exec, &r->saving.state, &r->state, loss, r->err)
                          : vd_exec_step(&r->exec, NULL, &r->state, loss, r->err);
}

static vd_status step(runner *r) {
    float loss = r->log.loss_last;
    const double start = vd_seconds();
    r->numbers = (vd_step_numbers){0};
    vd_status status = vd_emit_begin(&r->emits, r->state.step, r->err);
    if (status == VD_OK)
        status = run_step(r, &loss);
    if (status == VD_OK)
        status = vd_emit_end(&r->emits, r->err);
    const double seconds = vd_seconds() - start; /* excludes writing of the previous state */
    status = finish_saving_after(r, status);
    r->interval_s += seconds;
    if (status == VD_OK)
        status = vd_losses_put(&r->losses, r->state.step, &r->numbers, &r->options->samples,
                               seconds, r->err);
    if (status != VD_OK)
        return status;
    if (r->state.step == 1)
        r->log.loss_first = loss;
    r->log.loss_last = loss;
    r->log.losses = r->state.step;
    r->progress.step = r->state.step;
    r->progress.loss = loss;
    r->progress.void_choices += r->numbers.void_choice;
    r->progress.seconds = vd_seconds() - r->start;
    const bool state_comes = vd_is_committed(r->program, r->state.step);
    status = vd_keep_judge(r->options, &r->log, &r->times, seconds, state_comes, r->err);
    if (status == VD_OK && state_comes)
        status = checkpoint(r);
    if (status != VD_OK)
        return status;
    bool stop = r->options->progress && !r->options->progress(r->options->user, &r->progress);
    if (stop && r->state.step < r->program->steps)
        status = finish_saving(r);
    if (stop && status == VD_OK && r->state.step < r->program->steps)
        status = vd_fail(r->err, VD_ERR_TIMEOUT, "stopped after step %lld of %lld",
                         (long long)r->state.step, (long long)r->program->steps);
    return status;
}

static vd_status begin_team(runner *r) {
    const vd_run_team *team = r->options->team;
    return team ? team->begin(team->user, &r->state, r->log.count > 0, r->err) : VD_OK;
}

static vd_status run_steps(runner *r) {
    r->start = vd_seconds();
    r->progress.steps = r->program->steps;
    r->exec.numbers = &r->numbers;
    vd_status status = vd_losses_open(&r->losses, r->options->dir, r->progress.resumed_at, r->err);
    if (status == VD_OK && r->log.count == 0) {
        status = vd_emit_begin(&r->emits, -1, r->err);
        if (status == VD_OK)
            status = vd_exec_init(&r->exec, NULL, &r->state, r->err);
        r->interval_s = vd_seconds() - r->start;
        if (status == VD_OK)
            status = vd_emit_end(&r->emits, r->err);
        if (status == VD_OK)
            status = begin_team(r);
        if (status == VD_OK)
            status = checkpoint(r);
    } else if (status == VD_OK) {
        status = begin_team(r);
    }
    while (status == VD_OK && r->state.step < r->program->steps)
        status = step(r);
    return status;
}

vd_status vd_run_root(const vd_exec *exec, const vd_run_log *log, vd_hash *run_root,
                      vd_hash *final_state, vd_err *err) {
    vd_run_log claimed = *log;
    claimed.state = calloc(log->count + 1, sizeof *claimed.state);
    if (!claimed.state)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < log->count; i++) {
        claimed.state[i] = log->state[i];
        vd_fault_state(exec, log->step[i], &claimed.state[i]);
    }
    vd_status status = vd_run_log_root(&claimed, run_root, err);
    if (status == VD_OK)
        *final_state = log->state[log->count - 1];
    free(claimed.state);
    return status;
}

vd_status vd_run(const vd_run_options *options, vd_run_result *result, vd_err *err) {
    runner r = {
        .options = options, .program = options->exec->program, .exec = *options->exec, .err = err};
    r.losses.fd = -1;
    *result = (vd_run_result){0};
    vd_status status = open_run(&r);
    if (status == VD_OK)
        status = vd_emit_open(&r.emits, &r.exec, options, &r.log, err);
    if (status == VD_OK && r.log.count > 0 && r.log.count < vd_run_leaves(r.program))
        status = tell_begun(&r);
    if (status == VD_OK)
        status = run_steps(&r);
    if (status != VD_OK)
        state_end(&r);
    if (status == VD_OK)
        status = vd_emit_agree(&r.emits, &r.log, err);
    status = vd_emit_close(&r.emits, status, err);
    if (status == VD_OK)
        status = vd_run_root(options->exec, &r.log, &result->run_root, &result->final_state, err);
    result->steps = r.program->steps;
    result->resumed_at = r.progress.resumed_at;
    result->loss_first = r.log.loss_first;
    result->loss_last = r.log.loss_last;
    result->seconds = vd_seconds() - r.start;
    vd_losses_close(&r.losses);
    vd_saving_free(&r.saving);
    vd_state_free(&r.state);
    vd_run_log_free(&r.log);
    return status;
}
