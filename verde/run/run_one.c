/* This file runs one program, and records its data's places beside its first state. */
#include "verde/run/run_one.h"

#include "verde/run/faults.h"

static vd_status save(void *user, vd_err *err) {
    vd_one_run *r = user;
    r->saved = true;
    return r->save ? r->save(r->user, err) : vd_save_data(r->options.dir, r->loaded, err);
}

vd_status vd_run_one(vd_one_run *r, vd_err *err) {
    r->options.begun = save;
    r->options.begun_user = r;
    vd_status status = vd_run(&r->options, &r->result, err);
    if (status == VD_OK && !r->saved)
        status = save(r, err);
    if (status == VD_OK && r->result.resumed_at < r->result.steps)
        status = vd_tell_fault(r->options.dir, r->loaded, &r->idle, err);
    return status;
}
