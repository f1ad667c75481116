/* This file executes a run with a rounding log again, and serves sections of the log. */
#include <stdlib.h>
#include <string.h>

#include "verde/log/emitter.h"
#include "verde/log/note.h"

/* ---- sections ---- */

static vd_status open_log(const vd_emitter *e, int64_t step, vd_log_file **out, vd_err *err) {
    uint32_t count;
    const vd_log_node *node = vd_rounded_nodes(e->rounded, step, &count);
    vd_status status =
        vd_log_open(e->again.dir, vd_rounded_log(e->rounded), step, node, count, NULL, out, err);
    return status == VD_OK ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s", err->text);
}

/* Gets the roots of the logs of steps first .. first + count - 1. */
static vd_status roots_of(const vd_emitter *e, int64_t first, uint64_t count, vd_hash *root,
                          vd_err *err) {
    for (uint64_t i = 0; i < count; i++) {
        vd_log_file *file = NULL;
        vd_log_done done;
        vd_status status = open_log(e, first + (int64_t)i, &file, err);
        if (status != VD_OK)
            return status;
        vd_log_file_done(file, &done);
        vd_log_close(file);
        root[i] = done.root;
    }
    return VD_OK;
}

/* Proves a step's log. It refuses logs that do not lead to what the run has committed to. */
static vd_status prove_step(const vd_emitter *e, int64_t step, vd_proof *out, vd_err *err) {
    const vd_log_range range = vd_logs_at(e->again.program, step);
    vd_hash root, *list = calloc((size_t)range.count, sizeof *list);
    vd_tree tree = {0};
    vd_status status = list ? roots_of(e, range.first, range.count, list, err)
                            : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = vd_tree_of_hashes(&tree, list, range.count, err);
    if (status == VD_OK)
        status = vd_tree_root(&tree, &root, err);
    if (status == VD_OK && !vd_hash_equal(&root, &e->again.log->emitted[range.leaf]))
        status = vd_fail(err, VD_ERR_LOCAL, "%s: the logs are not those of the run", e->again.dir);
    if (status == VD_OK)
        status = vd_tree_prove(&tree, (uint64_t)(step - range.first), out, err);
    vd_tree_free(&tree);
    free(list);
    return status;
}

static vd_status section(void *user, int64_t step, uint64_t index, vd_section_proof *out,
                         vd_err *err) {
    const vd_emitter *e = user;
    vd_log_file *file = NULL;
    *out = (vd_section_proof){.run = e->again.log->name};
    vd_status status = prove_step(e, step, &out->step, err);
    if (status == VD_OK)
        status = open_log(e, step, &file, err);
    if (status != VD_OK)
        return status;
    status = vd_log_prove(file, index, &out->leaf, &out->tree_root, &out->section, err);
    if (status == VD_OK && out->leaf.size <= VD_LOG_SECTION_BYTES)
        status = vd_log_read_bytes(file, index, &out->bytes, err);
    vd_log_close(file);
    return status == VD_OK ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s", err->text);
}

static vd_status note(void *user, uint64_t leaf, const vd_public_key *trainer, vd_buf *out,
                      vd_err *err) {
    const vd_emitter *e = user;
    const int64_t step = e->again.log->step[leaf];
    vd_log_claim claim;
    vd_status status = vd_log_note_load(e->again.dir, step, out, err);
    if (status == VD_ERR_IO)
        return vd_fail(err, VD_ERR_PEER, "the log had no signed note at step %lld",
                       (long long)step);
    if (status == VD_OK)
        status = vd_log_note_open(out->data, out->size, trainer, &claim, err);
    if (status == VD_OK && (!vd_hash_equal(&claim.logs, &e->again.log->emitted[leaf]) ||
                            !vd_hash_equal(&claim.program, &e->again.log->program) ||
                            !vd_hash_equal(&claim.run, &e->again.log->name) || claim.step != step))
        status = vd_fail(err, VD_ERR_PEER, "the note beside the log is of another log");
    return status;
}

/* Serves what the run has committed to. */
static vd_status logs(void *user, vd_hash *run, vd_hash *out, vd_err *err) {
    const vd_emitter *e = user;
    return e->again.committed(e->again.user, run, out, err);
}

const vd_emitted_source *vd_log_served(const vd_emitter *e) {
    return &e->served;
}

/* ---- executing again ---- */

static vd_status may_repeat(const vd_emitted_run *run, const vd_exec *exec, vd_err *err) {
    const vd_log_kept *kept = vd_log_kept_of(run->log);
    if (run->program->rounding.bits && !kept)
        return vd_fail(err, VD_ERR_USAGE, "%s: a run in fixed order of a job with `rounding`",
                       run->dir);
    if (!kept)
        return VD_OK;
    if (!run->program->rounding.bits)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: its job has no `rounding`, so that the run cannot be arbitrated: verde "
                       "run --role auditor follows it",
                       run->dir);
    if (!kept->party.role)
        return vd_fail(err, VD_ERR_USAGE, "%s: a run of an older version", run->dir);
    if (strcmp(kept->party.backend, ro_ctx_backend(exec->ro)) != 0)
        return vd_fail(err, VD_ERR_USAGE, "%s: ran on backend %s, and is repeated on it alone",
                       run->dir, kept->party.backend);
    return VD_OK;
}

static vd_status open_again(vd_emitter *e, const vd_log_kept *kept, vd_exec *exec, vd_err *err) {
    const vd_program *program = e->again.program;
    const vd_run_party *party = &kept->party;
    e->thresholds.bits = program->rounding.bits;
    memcpy(e->thresholds.of, program->rounding.threshold, sizeof e->thresholds.of);
    const vd_rounded_options options = {.role = party->role,
                                        .program = program,
                                        .profile = &party->profile,
                                        .thresholds = &e->thresholds,
                                        .log = vd_rounded_schedule(&kept->rounding, program),
                                        .dir = e->again.dir,
                                        .fault = &exec->fault,
                                        .contest = party->contest,
                                        .again = true};
    const vd_status status = vd_rounded_create(&options, &e->rounded, err);
    if (status != VD_OK)
        return status;
    *vd_rounded_difference(e->rounded) = party->difference;
    exec->kernels = vd_rounded_kernels(e->rounded);
    e->served = (vd_emitted_source){e, party->role, logs, section, note};
    return VD_OK;
}

vd_status vd_log_open_again(const vd_emitted_run *run, vd_exec *exec, vd_emitter **out,
                            vd_err *err) {
    const vd_log_kept *kept = vd_log_kept_of(run->log);
    *out = NULL;
    vd_status status = may_repeat(run, exec, err);
    if (status != VD_OK || !kept)
        return status;
    *out = calloc(1, sizeof **out);
    if (!*out)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    (*out)->again = *run;
    return open_again(*out, kept, exec, err);
}
