/* Runs that write a rounding log or follow one: checks of options, and steps. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/exec/other_job.h"
#include "verde/log/emitter.h"

enum { MEMORY = 256 << 20 }; /* bytes of queued sections */

/* ---- checks of options ---- */

static const vd_run_rounding *rounding_of(const vd_run_options *options) {
    const vd_run_backend *b = options->backend;
    return b && b->table == &vd_backend_log ? b->options : NULL;
}

vd_status vd_log_allows(const vd_run_options *options, vd_err *err) {
    const vd_program_rounding *program = &options->exec->program->rounding;
    const vd_run_rounding *r = rounding_of(options);
    if (program->bits && !r)
        return vd_fail(err, VD_ERR_USAGE, "a job with `rounding` is run with --backend log");
    if (!r && vd_fault_is_emitted(&options->exec->fault))
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
    const vd_log_kept *kept = status == VD_OK ? vd_log_kept_of(&trainer) : NULL;
    if (kept)
        *out = kept->rounding;
    if (status == VD_OK && !kept)
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

vd_status vd_log_choose(const vd_run_options *options, const vd_hash *program, vd_run_log *out,
                        vd_err *err) {
    const vd_run_rounding *rounding = rounding_of(options);
    vd_log_kept *kept = out->of_backend = calloc(1, sizeof *kept);
    if (!kept)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    out->backend = &vd_backend_log;
    kept->party = (vd_run_party){
        .role = rounding->role, .profile = *rounding->profile, .contest = rounding->contest};
    snprintf(kept->party.backend, sizeof kept->party.backend, "%s",
             ro_ctx_backend(options->exec->ro));
    const vd_status status =
        choose_run(rounding, options->exec->program, program, &kept->rounding, err);
    out->name = kept->rounding.run;
    return status;
}

/* Checks that the run is rounded as the options say; an auditor uses its trainer's rounding. */
static vd_status rounds_as(const vd_run_options *options, const vd_log_run *begun, vd_err *err) {
    const vd_run_rounding *r = rounding_of(options);
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

vd_status vd_log_goes_on(const vd_run_options *options, const vd_run_log *log, vd_err *err) {
    const vd_run_rounding *wanted = rounding_of(options);
    const vd_log_kept *kept = vd_log_kept_of(log);
    const vd_run_party *p = &kept->party;
    if (p->role && (p->role != wanted->role || p->contest != wanted->contest))
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: holds a run in another role, or with another --contest; give another "
                       "directory",
                       options->dir);
    if (p->role && strcmp(p->backend, ro_ctx_backend(options->exec->ro)) != 0)
        return vd_fail(err, VD_ERR_USAGE, "%s: holds a run on backend %s, and goes on there",
                       options->dir, p->backend);
    if (p->role && memcmp(&p->profile.lanes, &wanted->profile->lanes,
                          sizeof *wanted->profile - offsetof(ro_profile, lanes)) != 0)
        return vd_fail(err, VD_ERR_USAGE, "%s: holds a run of profile %s; give another directory",
                       options->dir, p->profile.name);
    return rounds_as(options, &kept->rounding, err);
}

/* ---- steps ---- */

static vd_status open_party(vd_emitter *e, const vd_log_kept *kept, vd_exec *exec, vd_err *err) {
    const vd_run_rounding *rounding = e->rounding;
    const bool trains = rounding->role == VD_TRAINER;
    const vd_rounded_options rounded = {.role = rounding->role,
                                        .program = exec->program,
                                        .profile = rounding->profile,
                                        .thresholds = rounding->thresholds,
                                        .log = vd_rounded_schedule(&kept->rounding, exec->program),
                                        .dir = trains ? e->options->dir : rounding->trainer,
                                        .memory_bytes = MEMORY,
                                        .fault = &exec->fault,
                                        .contest = rounding->contest};
    e->root = calloc((size_t)exec->program->checkpoint_interval + 1, sizeof *e->root);
    if (!e->root)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_status status = vd_rounded_create(&rounded, &e->rounded, err);
    if (status != VD_OK)
        return status;
    exec->kernels = vd_rounded_kernels(e->rounded);
    *vd_rounded_difference(e->rounded) = kept->party.difference;
    return VD_OK;
}

vd_status vd_log_open_run(const vd_run_options *options, const vd_run_log *log, vd_exec *exec,
                          vd_emitter **out, vd_err *err) {
    const vd_log_kept *kept = vd_log_kept_of(log);
    vd_emitter *e = *out = calloc(1, sizeof *e);
    if (!e)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    e->options = options;
    e->rounding = rounding_of(options);
    e->run = kept->rounding;
    return open_party(e, kept, exec, err);
}

vd_status vd_log_begin_step(vd_emitter *e, int64_t step, vd_err *err) {
    e->step = step;
    return vd_rounded_begin(e->rounded, step, NULL, err);
}

vd_status vd_log_end_step(vd_emitter *e, vd_err *err) {
    vd_status status = vd_rounded_end(e->rounded, err);
    e->ended++;
    return status == VD_OK && e->rounding->role == VD_AUDITOR ? vd_log_take_root(e, e->step, err)
                                                              : status;
}

static void put_result(const vd_emitter *e, vd_log_result *out) {
    *out = (vd_log_result){.encoding = e->run.encoding,
                           .rounded = vd_rounded_counted(e->rounded, 0),
                           .difference = *vd_rounded_difference(e->rounded),
                           .log_bytes = e->bytes};
    for (int op = 1; op < RO_OP_END; op++)
        out->rounded_of[op] = vd_rounded_counted(e->rounded, op);
}

vd_status vd_log_close_run(vd_emitter *e, vd_status status, vd_err *err) {
    if (e->rounded && e->options && e->options->backend->result)
        put_result(e, e->options->backend->result);
    if (status == VD_OK)
        status = vd_rounded_close(e->rounded, err);
    else
        vd_rounded_drop(e->rounded);
    free(e->root);
    free(e);
    return status;
}
