/* This file answers questions about a finished run, by executing it again from its checkpoints. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/journal.h"
#include "verde/exec/kept_weights.h"
#include "verde/exec/memory.h"
#include "verde/exec/replay_internal.h"

void vd_fault_state(const vd_exec *exec, int64_t step, vd_hash *state) {
    int64_t c = exec->program->checkpoint_interval, at = (exec->fault.step + c - 1) / c * c;
    at = at < c ? c : at;
    if (exec->fault.kind == VD_FAULT_HISTORY && step == at && at < exec->program->steps)
        state->b[0] ^= 1;
}

/* Writes all that a run commits to: its name, its states, and the roots of what it emitted. */
static vd_status put_log(const vd_run_log *log, vd_buf *out, vd_err *err) {
    vd_put(out, &log->name, sizeof log->name);
    vd_put(out, log->state, log->count * sizeof *log->state);
    if (log->backend)
        vd_put(out, log->emitted, log->count * sizeof *log->emitted);
    return vd_buf_ok(out) ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

static vd_status seal_log(vd_replay *r, vd_err *err) {
    vd_buf text = {0};
    vd_hash final;
    vd_status status = put_log(&r->log, &text, err);
    if (status == VD_OK && !vd_seal(text.data, text.size, &r->log_seal))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_buf_free(&text);
    return status == VD_OK ? vd_run_root(&r->own, &r->log, &r->run_root, &final, err) : status;
}

/* Reads what the run commits to from memory, or, if memory has changed, from run.json. */
static vd_status read_log(const vd_replay *r, vd_buf *text, vd_err *err) {
    vd_run_log log = {0};
    vd_status status = put_log(&r->log, text, err);
    if (status != VD_OK || vd_is_sealed(text->data, text->size, &r->log_seal))
        return status;
    text->size = 0;
    status = vd_store_load_log(r->dir, &log, err);
    if (status == VD_OK)
        status = put_log(&log, text, err);
    if (status == VD_OK && !vd_is_sealed(text->data, text->size, &r->log_seal))
        status = vd_fail(err, VD_ERR_LOCAL, "%s: run.json is not what it was", r->dir);
    vd_run_log_free(&log);
    return status == VD_OK ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s", err->text);
}

/* Implements vd_emitted_run.committed. */
static vd_status committed(void *user, vd_hash *name, vd_hash *emitted, vd_err *err) {
    const vd_replay *r = user;
    const size_t size = r->log.count * sizeof *emitted;
    vd_buf text = {0};
    vd_status status = read_log(r, &text, err);
    if (status == VD_OK) {
        memcpy(name, text.data, sizeof *name);
        memcpy(emitted, text.data + sizeof *name + size, size);
    }
    vd_buf_free(&text);
    return status;
}

static vd_status create(const char *dir, const vd_exec *exec, bool finished, vd_replay **out,
                        vd_err *err) {
    vd_hash program;
    vd_replay *r = calloc(1, sizeof *r);
    if (!r)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    snprintf(r->dir, sizeof r->dir, "%s", dir);
    r->captured = -1;
    r->trees.bytes_max = VD_KEPT_TREES_BYTES;
    r->journaled = exec->program->checkpoint_interval == 1 && vd_journal_is_in(dir);
    r->own = *exec;
    r->exec = &r->own;
    vd_status status = vd_trace_fits(exec->program, err);
    if (status == VD_OK)
        status = vd_store_load_log(dir, &r->log, err);
    if (status == VD_OK)
        status = vd_program_hash(exec->program, &program, err);
    if (status == VD_OK && !vd_hash_equal(&program, &r->log.program))
        status = vd_fail(err, VD_ERR_USAGE, "%s: the run is of another program", dir);
    if (status == VD_OK && finished && r->log.count != vd_run_leaves(exec->program))
        status = vd_fail(err, VD_ERR_USAGE, "%s: the run is not finished: %u of %llu checkpoints",
                         dir, r->log.count, (unsigned long long)vd_run_leaves(exec->program));
    if (status == VD_OK)
        status = seal_log(r, err);
    const vd_emitted_run run = {r->dir, exec->program, &r->log, committed, r};
    if (status == VD_OK)
        status = vd_emit_open_again(&r->emits, &r->own, &run, err);
    if (status != VD_OK) {
        vd_replay_destroy(r);
        return status;
    }
    *out = r;
    return VD_OK;
}

vd_status vd_replay_create(const char *dir, const vd_exec *exec, vd_replay **out, vd_err *err) {
    return create(dir, exec, true, out, err);
}

vd_status vd_replay_create_so_far(const char *dir, const vd_exec *exec, vd_replay **out,
                                  vd_err *err) {
    return create(dir, exec, false, out, err);
}

void vd_replay_only_stored(vd_replay *r) {
    r->stored_only = true;
}

uint32_t vd_replay_checkpoints(const vd_replay *replay) {
    return replay->log.count;
}

static void free_cached(vd_replay *r) {
    vd_replay_clear(r);
    vd_kept_trees_clear(&r->trees);
    vd_kept_clear(&r->kept);
    vd_state_free(&r->at);
}

/* Implements vd_source.forget. It drops packed weights too, which may also be damaged. */
static void forget(void *user) {
    vd_replay *r = user;
    free_cached(r);
    vd_kept_weights_forget(r->own.kept);
}

void vd_replay_destroy(vd_replay *r) {
    if (!r)
        return;
    free_cached(r);
    vd_emit_drop(&r->emits);
    vd_run_log_free(&r->log);
    free(r);
}

static vd_status load_checkpoint(vd_replay *r, uint64_t index, vd_err *err) {
    vd_state_free(&r->at);
    vd_status status = vd_store_load_state(r->exec->ro, r->dir, r->exec->program, &r->log.program,
                                           r->log.step[index], &r->log.state[index], &r->at, err);
    return status == VD_OK ? vd_replay_take(r, err) : status;
}

/* The last stored checkpoint up to a step. */
static uint64_t checkpoint_of(const vd_replay *r, int64_t step) {
    const int64_t index = step == r->exec->program->steps
                              ? (int64_t)r->log.count - 1
                              : step / r->exec->program->checkpoint_interval;
    return vd_run_log_kept(&r->log, (uint32_t)index);
}

/* The checkpoint whose state is read to reach a step: the step's own, if there is a journal. */
static uint64_t start_of(const vd_replay *r, int64_t step) {
    return r->journaled ? (uint64_t)step : checkpoint_of(r, step);
}

static bool is_usable(const vd_replay *r, int64_t step) {
    return r->at.tensor && r->at.step <= step && r->at.step >= r->log.step[checkpoint_of(r, step)];
}

/* Loads a stored state without executing anything. */
static vd_status load_stored(vd_replay *r, int64_t step, vd_err *err) {
    const uint64_t index = start_of(r, step);
    if (r->at.tensor && r->at.step == step)
        return VD_OK;
    if (r->log.step[index] != step)
        return vd_fail(err, VD_ERR_USAGE, "%s: the state of step %lld is not stored", r->dir,
                       (long long)step);
    return load_checkpoint(r, index, err);
}

/* Advances r->at to a step. If a stored state is damaged, it starts from the one before. */
static vd_status reach(vd_replay *r, int64_t step, vd_err *err) {
    uint64_t index = start_of(r, step);
    if (r->stored_only)
        return load_stored(r, step, err);
    vd_status status = is_usable(r, step) ? VD_OK : load_checkpoint(r, index, err);
    if (status == VD_ERR_IO && r->journaled)
        status = load_checkpoint(r, index = checkpoint_of(r, step), err);
    while (status == VD_ERR_IO && index > 0)
        status = load_checkpoint(r, --index, err);
    if (status == VD_ERR_IO) {
        status = vd_emit_begin(&r->emits, -1, err);
        if (status == VD_OK)
            status = vd_replay_init(r, err);
    }
    if (status == VD_OK && err) /* clears the errors of damaged states */
        *err = (vd_err){0};
    while (status == VD_OK && r->at.step < step) {
        status = atomic_load(&r->stop) ? vd_fail(err, VD_ERR_LOCAL, "stopped")
                                       : vd_emit_begin(&r->emits, r->at.step, err);
        if (status == VD_OK)
            status = vd_replay_step(r, err);
        atomic_fetch_add(&r->done, 1);
        atomic_fetch_add(&r->executed, 1);
    }
    return status;
}

/* Sets the progress of executing the steps up to `to`, from the state before `from`. */
static void begin(vd_replay *r, int64_t from, int64_t to) {
    const int64_t start = is_usable(r, from) ? r->at.step : r->log.step[checkpoint_of(r, from)];
    atomic_store(&r->done, 0);
    atomic_store(&r->of, to - start);
}

vd_status vd_replay_reach(vd_replay *r, int64_t step, vd_err *err) {
    begin(r, step, step);
    return reach(r, step, err);
}

static void progress(void *user, int64_t *done, int64_t *of) {
    vd_replay *r = user;
    *done = atomic_load(&r->done);
    *of = atomic_load(&r->of);
}

uint64_t vd_replay_executed(const vd_replay *r) {
    return atomic_load(&r->executed);
}

static void stop(void *user) {
    atomic_store(&((vd_replay *)user)->stop, true);
}

static vd_status replay_run(void *user, vd_hash *state, vd_err *err) {
    const vd_replay *r = user;
    vd_buf text = {0};
    vd_status status = read_log(r, &text, err);
    if (status == VD_OK)
        memcpy(state, text.data + VD_HASH_SIZE, r->log.count * sizeof *state);
    for (uint32_t i = 0; status == VD_OK && i < r->log.count; i++)
        vd_fault_state(r->exec, r->log.step[i], &state[i]);
    vd_buf_free(&text);
    return status;
}

static vd_status execute_states(vd_replay *r, int64_t from, int64_t to, vd_hash *state,
                                vd_err *err) {
    begin(r, from, to);
    for (int64_t s = from; s <= to; s++) {
        vd_status status = reach(r, s, err);
        if (status == VD_OK)
            status = vd_replay_hash(r, NULL, &state[s - from], err);
        if (status != VD_OK)
            return status;
        vd_fault_state(r->exec, s, &state[s - from]);
    }
    return VD_OK;
}

static vd_status keep_states(vd_replay *r, int64_t from, int64_t to, const vd_hash **out,
                             vd_err *err) {
    vd_hash *fresh = calloc((size_t)(to - from) + 1, sizeof *fresh);
    vd_status status = fresh ? execute_states(r, from, to, fresh, err)
                             : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status != VD_OK) {
        free(fresh);
        return status;
    }
    *out = vd_kept_put_states(&r->kept, from, to, fresh);
    return *out ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

/* Implements vd_source.states. Results are kept, because referees ask about a range repeatedly. */
static vd_status states(void *user, int64_t from, int64_t to, vd_hash *state, vd_err *err) {
    vd_replay *r = user;
    const vd_hash *known = vd_kept_states(&r->kept, from, to);
    vd_status status = known ? VD_OK : keep_states(r, from, to, &known, err);
    if (status == VD_OK)
        memcpy(state, known, ((size_t)(to - from) + 1) * sizeof *state);
    return status;
}

static vd_status execute_trace(vd_replay *r, int64_t step, vd_records *out, vd_err *err) {
    vd_status status = step < 0 ? VD_OK : vd_replay_reach(r, step, err);
    if (status == VD_OK)
        status = vd_emit_begin(&r->emits, step, err);
    if (status == VD_OK)
        status = vd_replay_trace(r, step, out, err);
    atomic_fetch_add(&r->executed, 1);
    return status;
}

static vd_status trace(void *user, int64_t step, const vd_records **out, vd_err *err) {
    vd_replay *r = user;
    vd_records fresh = {0};
    *out = vd_kept_find_trace(&r->kept, step);
    vd_status status = *out ? VD_OK : execute_trace(r, step, &fresh, err);
    if (status == VD_OK && !*out && !(*out = vd_kept_put_trace(&r->kept, step, &fresh)))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_records_free(&fresh);
    return status;
}

/* Implements vd_source.leaves. Results are kept, because every question about a trace needs them.
 * The asking side compares them with the state. */
static vd_status leaves(void *user, int64_t step, vd_hash *tensor, vd_err *err) {
    vd_replay *r = user;
    const size_t count = r->exec->program->leaf_count;
    const vd_hash *kept = vd_kept_find_leaves(&r->kept, step);
    vd_hash state;
    if (kept) {
        memcpy(tensor, kept, count * sizeof *tensor);
        return VD_OK;
    }
    vd_status status = vd_replay_reach(r, step, err);
    if (status == VD_OK)
        status = vd_replay_hash(r, tensor, &state, err);
    if (status == VD_OK)
        vd_kept_put_leaves(&r->kept, step, tensor, count);
    return status;
}

vd_source vd_replay_source(vd_replay *replay) {
    vd_source source = {.user = replay,
                        .run = replay_run,
                        .states = states,
                        .trace = trace,
                        .leaves = leaves,
                        .tensor = vd_replay_tensor,
                        .tree = vd_replay_tree,
                        .fold = vd_replay_fold,
                        .run_root = replay->run_root,
                        .forget = forget,
                        .progress = progress,
                        .stop = stop,
                        .dishonest = replay->own.fault.kind != VD_FAULT_NONE};
    if (replay->emits.emitter)
        source.served = replay->emits.table->served(replay->emits.emitter);
    return source;
}
