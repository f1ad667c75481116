/* This file resumes a run of tokens from its journal, and saves its states as they are reached. */
#include "verde/exec/item_run.h"

#include <string.h>

#include "verde/exec/other_job.h"

bool vd_item_run_finished(const vd_item_run *run, const vd_program *program) {
    return run->log.count == vd_run_leaves(program);
}

void vd_item_run_close(vd_item_run *run) {
    vd_journal_close(&run->journal);
    vd_run_log_free(&run->log);
    *run = (vd_item_run){.journal = {.fd = -1}};
}

/* ---- what is on disk ---- */

static vd_status load_log(vd_item_run *r, const vd_program *program, vd_err *err) {
    vd_status status = vd_store_load_log(r->dir, &r->log, err);
    if (status != VD_OK)
        return status;
    if (!vd_hash_equal(&r->log.program, &r->program))
        return vd_fail_other_job(r->dir, program, "give another directory", err);
    if (r->log.fault[0] || r->log.backend)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: holds a run with a fault or with rounding logs; give another directory",
                       r->dir);
    r->saved = r->log.count;
    return vd_run_log_fits(&r->log, program, r->dir, err);
}

/* Starts a log that keeps the images; the last state is made from the journal. */
static void begin_log(vd_item_run *r, const vd_program *program) {
    const uint32_t images = vd_kept_count((uint32_t)program->steps, VD_IMAGE_STEPS);
    r->log = (vd_run_log){.program = r->program, .kept_every = VD_IMAGE_STEPS};
    r->log.keep = images > VD_KEEP_MIN ? (int32_t)images : VD_KEEP_MIN;
}

/* Adds states that run.json lacks, because it is written only with images; compares the others. */
static vd_status take_states(vd_item_run *r, vd_err *err) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < r->log.count; i++)
        if (!vd_hash_equal(&r->log.state[i], &r->journal.step[i].state))
            return vd_fail(err, VD_ERR_PEER,
                           "%s: step %u has another state in run.json than in the journal; give "
                           "another directory",
                           r->dir, i);
    for (uint32_t i = r->log.count; status == VD_OK && i < r->journal.count; i++)
        status = vd_run_log_put(&r->log, i, &r->journal.step[i].state, NULL, err);
    return status;
}

static vd_status save_log(vd_item_run *r, vd_err *err) {
    vd_status status = vd_journal_sync(&r->journal, err);
    if (status == VD_OK)
        status = vd_store_save_log(r->dir, &r->log, err);
    r->saved = status == VD_OK ? r->log.count : r->saved;
    return status;
}

static vd_status begin(vd_item_run *r, const vd_program *program, vd_err *err) {
    vd_run_log_free(&r->log);
    begin_log(r, program);
    r->saved = 0;
    vd_status status =
        vd_lies_in(r->dir, "run.json") ? VD_OK : vd_store_create(r->dir, program, err);
    return status == VD_OK ? vd_journal_create(r->dir, program, &r->program, &r->journal, err)
                           : status;
}

static vd_status go_on(vd_item_run *r, ro_ctx *ro, const vd_program *program, vd_state *from,
                       vd_err *err) {
    if (r->log.count == 0)
        begin_log(r, program);
    vd_status status = take_states(r, err);
    if (status == VD_OK && r->journal.count > 0)
        status =
            vd_journal_state(ro, r->dir, &r->journal, &r->program, r->journal.count - 1, from, err);
    if (status == VD_OK &&
        vd_item_run_finished(r, program)) /* it stopped before run.json said so */
        status = save_log(r, err);
    return status;
}

vd_status vd_item_run_open(ro_ctx *ro, const char *dir, const vd_program *program, vd_item_run *out,
                           vd_state *from, vd_err *err) {
    vd_err none = {0};
    *out = (vd_item_run){.journal = {.fd = -1}};
    *from = (vd_state){0};
    snprintf(out->dir, sizeof out->dir, "%s", dir);
    vd_status status = vd_program_hash(program, &out->program, err);
    if (status == VD_OK && vd_lies_in(dir, "run.json"))
        status = load_log(out, program, err);
    const bool finished = status == VD_OK && vd_item_run_finished(out, program);
    if (finished) {
        status = vd_store_load_state(ro, dir, program, &out->program, program->steps,
                                     &out->log.state[program->steps], from, err);
        if (status == VD_ERR_IO) /* a finished run has this state, or is damaged */
            status = vd_fail(err, VD_ERR_PEER, "%s", err->text);
    } else if (status == VD_OK) {
        status = vd_journal_open(dir, program, &out->program, out->log.count, &out->journal, &none);
        if (status == VD_ERR_IO) /* there is no journal yet, or another executor started the run */
            status = begin(out, program, err);
        else if (status == VD_OK)
            status = go_on(out, ro, program, from, err);
        else
            vd_fail(err, status, "%s", none.text);
    }
    if (status != VD_OK)
        vd_item_run_close(out);
    return status;
}

/* ---- new states ---- */

/* Drops records since the last image: they may follow from memory that changed by itself. */
static vd_status forget_since_image(vd_item_run *r, vd_err *err) {
    vd_err more = {0};
    if (vd_journal_cut(&r->journal, r->saved, &more) != VD_OK)
        vd_fail(err, VD_ERR_LOCAL, "%.300s; %.150s", err ? err->text : "", more.text);
    return VD_ERR_LOCAL;
}

static vd_status save(vd_item_run *r, ro_ctx *ro, const vd_batch_state *s, vd_err *err) {
    vd_status status = vd_live_check(s->live, ro, s->state, err);
    if (status != VD_OK)
        return forget_since_image(r, err);
    if (!s->last)
        status = vd_store_save_state(r->dir, s->program, s->state, s->commitment, err);
    return status == VD_OK ? save_log(r, err) : status;
}

vd_status vd_item_run_reached(vd_item_run *r, ro_ctx *ro, const vd_batch_state *s, vd_err *err) {
    const int64_t step = s->state->step;
    vd_status status =
        vd_journal_put(&r->journal, s->state, s->commitment, s->written, s->written_count, err);
    if (status == VD_OK)
        status = vd_run_log_put(&r->log, step, s->commitment, NULL, err);
    const bool image = step > 0 && step % VD_IMAGE_STEPS == 0;
    return status == VD_OK && (image || s->last) ? save(r, ro, s, err) : status;
}
