/* Calls the backend of a run, if it has one. */
#include "verde/exec/backend.h"

const vd_backend *vd_backend_of(const vd_program *program) {
    for (const vd_backend *const *b = vd_backends; *b; b++)
        if ((*b)->wants(program))
            return *b;
    return NULL;
}

vd_status vd_emit_allows(const vd_run_options *options, vd_err *err) {
    vd_status status = VD_OK;
    for (const vd_backend *const *b = vd_backends; *b && status == VD_OK; b++)
        status = (*b)->allows(options, err);
    return status;
}

vd_status vd_emit_open(vd_emitting *e, vd_exec *exec, const vd_run_options *options,
                       const vd_run_log *log, vd_err *err) {
    if (!options->backend)
        return VD_OK;
    e->table = options->backend->table;
    return e->table->open(options, log, exec, &e->emitter, err);
}

vd_status vd_emit_open_again(vd_emitting *e, vd_exec *exec, const vd_emitted_run *run,
                             vd_err *err) {
    vd_status status = VD_OK;
    for (const vd_backend *const *b = vd_backends; *b && !e->emitter && status == VD_OK; b++) {
        status = (*b)->open_again(run, exec, &e->emitter, err);
        e->table = e->emitter ? *b : NULL;
    }
    return status;
}

vd_status vd_emit_begin(const vd_emitting *e, int64_t step, vd_err *err) {
    return e->emitter ? e->table->begin(e->emitter, step, err) : VD_OK;
}

vd_status vd_emit_end(const vd_emitting *e, vd_err *err) {
    return e->emitter ? e->table->end(e->emitter, err) : VD_OK;
}

vd_status vd_emit_checkpoint(const vd_emitting *e, int64_t step, vd_run_log *log, vd_hash *out,
                             vd_err *err) {
    *out = (vd_hash){0};
    return e->emitter ? e->table->checkpoint(e->emitter, step, log, out, err) : VD_OK;
}

vd_status vd_emit_agree(const vd_emitting *e, vd_run_log *log, vd_err *err) {
    return e->emitter ? e->table->agree(e->emitter, log, err) : VD_OK;
}

vd_status vd_emit_close(vd_emitting *e, vd_status status, vd_err *err) {
    if (e->emitter)
        status = e->table->close(e->emitter, status, err);
    *e = (vd_emitting){0};
    return status;
}

void vd_emit_drop(vd_emitting *e) {
    vd_err unread = {0};
    if (vd_emit_close(e, VD_OK, &unread) != VD_OK)
        return;
}
