/* This file executes parts of a finished run again and compares the states. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "verde/audit/recheck.h"
#include "verde/audit/stated_backend.h"
#include "verde/tell/stop.h"

/* ---- loading ---- */

/* Rejects a job: a run that somebody else has is audited with other options. */
static vd_status check_kind(const vd_rechecking *a) {
    const bool folder = vd_is_folder(a->o->dir);
    if (access(a->o->dir, F_OK) != 0 || (folder && vd_lies_in(a->o->dir, "run.json")))
        return VD_OK;
    return vd_fail(
        a->err, VD_ERR_USAGE,
        "%s: %s; expected the folder of a run, or with a job --provider URL or --results "
        "DIR",
        a->o->dir, folder ? "holds no run.json" : "is no folder");
}

static vd_status load(vd_rechecking *a) {
    vd_loaded *loaded = &a->run.loaded;
    vd_run_log *log = &a->run.log;
    vd_hash final;
    a->run.dir = a->o->dir;
    vd_status status = check_kind(a);
    if (status == VD_OK)
        status = vd_load_run(a->o->dir, loaded, log, a->err);
    if (status == VD_OK && log->backend)
        status = vd_fail(a->err, VD_ERR_USAGE,
                         "%s: a run with %s is audited by `verde run --role auditor --follow %s`",
                         a->o->dir, log->backend->emits, a->o->dir);
    a->finished = status == VD_OK && log->count == vd_run_leaves(&loaded->program);
    if (status == VD_OK)
        status = vd_run_root(&loaded->exec, log, &a->run_root, &final, a->err);
    return status == VD_OK ? vd_load_data(a->o->dir, a->o->data, loaded, a->err) : status;
}

static vd_status draw(vd_rechecking *a) {
    a->stretches = vd_recheck_stretches(&a->run.log);
    const bool all = a->o->count == 0 || a->o->count >= (long)a->stretches;
    a->drawn_count = all ? a->stretches : (uint32_t)a->o->count;
    a->drawn = calloc(a->drawn_count, sizeof *a->drawn);
    a->damage = calloc(a->drawn_count, sizeof *a->damage);
    a->result = calloc(a->stretches, sizeof *a->result);
    a->differs = calloc(a->stretches, sizeof *a->differs);
    if (!a->drawn || !a->damage || !a->result || !a->differs)
        return vd_fail(a->err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < a->drawn_count && all; i++)
        a->drawn[i] = i;
    if (!all)
        vd_recheck_draw(a->o->seed, a->stretches, a->drawn_count, a->drawn);
    return VD_OK;
}

/* ---- executing ---- */

static vd_recheck audit_of(vd_rechecking *a, const vd_exec *own, const vd_exec *fresh) {
    return (vd_recheck){.dir = a->o->dir,
                        .log = &a->run.log,
                        .own = own,
                        .fresh = fresh,
                        .progress = vd_recheck_tell_progress,
                        .user = a};
}

/* Records a stretch whose first state is missing or damaged. The others go on. */
static void note_damage(vd_rechecking *a, uint32_t stretch) {
    vd_recheck_damage *d = &a->damage[a->damage_count++];
    d->stretch = stretch;
    snprintf(d->why, sizeof d->why, "%.399s", a->err->text);
    a->result[stretch] = VD_DAMAGED;
    *a->err = (vd_err){0};
}

static vd_status execute_one(vd_rechecking *a, const vd_recheck *audit, uint32_t stretch) {
    const vd_status status = vd_recheck_execute(audit, stretch, &a->differs[stretch], a->err);
    if (status == VD_ERR_IO)
        note_damage(a, stretch);
    else if (status != VD_OK)
        return status;
    else
        a->result[stretch] = a->differs[stretch] < a->run.log.count ? VD_DIFFERS : VD_EQUAL;
    return vd_recheck_state_save(a, false);
}

static vd_status execute(vd_rechecking *a) {
    const vd_exec own = a->run.loaded.exec; /* with its deliberate fault, as committed */
    vd_exec fresh = own;
    fresh.fault = (vd_fault){0};
    const vd_recheck audit = audit_of(a, &own, &fresh);
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < a->drawn_count && status == VD_OK; i++) {
        if (a->result[a->drawn[i]] == VD_UNSEEN)
            status = execute_one(a, &audit, a->drawn[i]);
    }
    return status == VD_OK ? vd_recheck_state_save(a, true) : status;
}

/* ---- narrowing ---- */

/* Opens the run's own way of computing: its backend if this machine has it, and its deliberate
 * fault, unless that occurs only once. */
static vd_status open_own(const vd_rechecking *a, uint32_t checkpoint, vd_loaded *out) {
    vd_run_log log = {0};
    vd_status status = vd_load_run(a->o->dir, out, &log, a->err);
    vd_run_log_free(&log);
    if (status == VD_OK)
        status = vd_load_data(a->o->dir, a->o->data, out, a->err);
    if (out->exec.fault.kind == VD_FAULT_FIELD && !vd_field_repeats(out->exec.fault.field))
        out->exec.fault = (vd_fault){0};
    return status == VD_OK
               ? vd_load_stated(out, &a->o->common, vd_recheck_machine(a, checkpoint), a->err)
               : status;
}

static vd_status narrow(vd_rechecking *a, uint32_t stretch) {
    const uint32_t checkpoint = a->differs[stretch];
    const vd_machine *m = vd_recheck_machine(a, checkpoint);
    vd_recheck_difference *d = &a->difference[a->difference_count];
    vd_loaded own = {0};
    vd_exec fresh = a->run.loaded.exec;
    fresh.fault = (vd_fault){0};
    vd_status status = open_own(a, checkpoint, &own);
    if (status == VD_OK) {
        const vd_recheck audit = audit_of(a, &own.exec, &fresh);
        *d = (vd_recheck_difference){.checkpoint = checkpoint,
                                     .last = vd_recheck_stretch(&a->run.log, stretch).last,
                                     .same_machine = m && vd_is_stated(m, own.ro)};
        snprintf(d->own_backend, sizeof d->own_backend, "%s", ro_ctx_backend(own.ro));
        status = vd_recheck_narrow(&audit, checkpoint, &d->place, a->err);
        a->difference_count += status == VD_OK;
    }
    vd_loaded_free(&own);
    return status;
}

static vd_status narrow_all(vd_rechecking *a) {
    vd_status status = VD_OK;
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->stretches; i++)
        count += a->result[i] == VD_DIFFERS;
    a->difference = calloc((size_t)count + 1, sizeof *a->difference);
    if (!a->difference)
        return vd_fail(a->err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < a->stretches && status == VD_OK; i++)
        if (a->result[i] == VD_DIFFERS)
            status = narrow(a, i);
    return status;
}

/* ---- all of it ---- */

static vd_status recheck_run(vd_rechecking *a) {
    vd_status status = load(a);
    if (status == VD_OK)
        status = vd_recheck_backend(a);
    if (status == VD_OK)
        status = draw(a);
    if (status == VD_OK)
        status = vd_recheck_state_open(a);
    if (status != VD_OK)
        return status;
    vd_machine_here(a->run.loaded.ro, &a->here);
    a->ticker.start = vd_seconds();
    status = execute(a);
    if (status == VD_OK)
        status = narrow_all(a);
    if (vd_is_terminal() && a->ticker.told > 0)
        fputs("\r\033[K", stderr);
    if (status != VD_OK)
        return status;
    if (a->o->common.json)
        vd_recheck_print_json(a);
    else
        vd_recheck_print(a);
    return VD_OK;
}

vd_exit vd_recheck_all(const vd_recheck_options *o) {
    vd_err err = {0};
    vd_rechecking a = {.o = o, .err = &err};
    const vd_status status = recheck_run(&a);
    const bool differs = a.difference_count > 0, damaged = a.damage_count > 0;
    free(a.drawn);
    free(a.damage);
    free(a.result);
    free(a.differs);
    free(a.difference);
    vd_run_log_free(&a.run.log);
    vd_loaded_free(&a.run.loaded);
    if (status != VD_OK)
        return vd_report(&err);
    return differs ? VD_EXIT_DIFFERS : damaged ? VD_EXIT_REFUSED : VD_EXIT_OK;
}
