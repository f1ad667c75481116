/* Loads the state of another run that a job goes on from: from the run's directory, from an export
 * of the run, or, for readers who have neither, from a proof of the state. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "verde/load/export.h"
#include "verde/load/load.h"

void vd_start_free(vd_start *start) {
    vd_weights_close(&start->file);
    vd_program_free(&start->program);
    vd_manifest_free(&start->manifest);
    free(start->commitment);
    free(start->tensor);
    free(start->at);
    *start = (vd_start){0};
}

/* ---- a state's file ---- */

vd_status vd_map_state(const char *dir, const vd_program *program, const vd_hash *state,
                       vd_weights *out, vd_err *err) {
    char path[1024];
    vd_weight_form *form = calloc(program->leaf_count, sizeof *form);
    vd_status status = form ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < program->leaf_count && status == VD_OK; i++)
        if (!vd_weight_form_of(program->leaf[i].name, &program->leaf[i].shape, &form[i]))
            status = vd_fail(err, VD_ERR_USAGE, "leaf %s: no name of a tensor in files",
                             program->leaf[i].name);
    vd_store_state_path(path, dir, state);
    if (status == VD_OK)
        status = vd_weights_open_raw(path, form, program->leaf_count, out, err);
    free(form);
    return status;
}

vd_status vd_open_state(const char *dir, const vd_program *program, const vd_run_log *log,
                        uint32_t index, const vd_weights_hashing *how, vd_weights *out,
                        vd_hash *commitment, vd_err *err) {
    const uint32_t kept = vd_run_log_kept(log, index);
    vd_hash found;
    if (kept != index)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: the state of step %lld was not kept (--keep %d); the one of step %lld "
                       "was",
                       dir, (long long)log->step[index], (int)log->keep,
                       (long long)log->step[kept]);
    vd_status status = vd_map_state(dir, program, &log->state[index], out, err);
    if (status == VD_OK)
        status = vd_weights_hash(out, how, commitment, err);
    if (status == VD_OK)
        status = vd_state_commit(&log->program, log->step[index], commitment, program->leaf_count,
                                 &found, err);
    if (status == VD_OK && !vd_hash_equal(&found, &log->state[index]))
        status = vd_fail(err, VD_ERR_PEER,
                         "%s: its bytes are not the state of step %lld; `verde check %s` says more",
                         out->file[0].path, (long long)log->step[index], dir);
    return status;
}

/* ---- from a run, or from a proof ---- */

static vd_status find_state(const vd_job *job, const vd_run_log *log, uint32_t *index,
                            vd_err *err) {
    char root[2 * VD_HASH_SIZE + 1], place[VD_JOB_PLACE_SIZE];
    vd_hex(job->start.root, VD_HASH_SIZE, root);
    for (*index = 0; *index < log->count; (*index)++)
        if (memcmp(log->state[*index].b, job->start.root, VD_HASH_SIZE) == 0)
            return VD_OK;
    return vd_fail(err, VD_ERR_USAGE,
                   "%s: `weights.root` is %s, which is no state of the run in %s; `verde inspect "
                   "%s` lists them",
                   vd_job_place(job, "weights.root", place), root, job->start.run, job->start.run);
}

static vd_status from_run(const vd_job *job, const vd_data_reader *reader, vd_start *out,
                          vd_err *err) {
    const vd_weights_hashing how = {reader->ro, reader->progress, reader->user};
    const char *dir = job->start.run;
    vd_run_log log = {0};
    uint32_t index;
    vd_status status = vd_store_program(dir, &out->program, err);
    if (status == VD_OK)
        status = vd_store_load_log(dir, &log, err);
    if (status == VD_OK)
        status = vd_run_log_fits(&log, &out->program, dir, err);
    if (status == VD_OK)
        status = find_state(job, &log, &index, err);
    if (status == VD_OK && !(out->commitment = calloc(out->program.leaf_count, sizeof(vd_hash))))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status =
            vd_open_state(dir, &out->program, &log, index, &how, &out->file, out->commitment, err);
    if (status == VD_OK) {
        out->step = log.step[index];
        out->present = true;
    }
    vd_run_log_free(&log);
    return status;
}

static vd_status from_proof(const vd_job *job, const char *path, vd_start *out, vd_err *err) {
    char place[VD_JOB_PLACE_SIZE], is[2 * VD_HASH_SIZE + 1];
    vd_state_proof proof = {0};
    vd_hash state;
    vd_status status = vd_state_proof_read(path, &proof, err);
    if (status != VD_OK)
        return status;
    status = vd_state_commit(&proof.program_hash, proof.step, proof.tensor,
                             proof.program.leaf_count, &state, err);
    if (status == VD_OK && memcmp(state.b, job->start.root, VD_HASH_SIZE) != 0) {
        vd_hex(state.b, VD_HASH_SIZE, is);
        status =
            vd_fail(err, VD_ERR_USAGE, "%s: `weights.root` is not the state that %s proves, %s",
                    vd_job_place(job, "weights.root", place), path, is);
    }
    if (status == VD_OK) {
        out->step = proof.step;
        out->program = proof.program;
        out->commitment = proof.tensor;
        proof.program = (vd_program){0};
        proof.tensor = NULL;
    }
    vd_state_proof_free(&proof);
    return status;
}

/* ---- from an exported model ---- */

/* Compares every byte of the tensors that exist with the proof. */
static vd_status check_exported(const char *dir, const vd_data_reader *reader, vd_start *out,
                                vd_err *err) {
    const vd_weights_hashing how = {reader->ro, reader->progress, reader->user};
    vd_hash *found = calloc((size_t)out->file.count + 1, sizeof *found);
    vd_status status = found ? vd_weights_hash(&out->file, &how, found, err)
                             : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < out->program.leaf_count && status == VD_OK; i++) {
        const vd_leaf *leaf = &out->program.leaf[i];
        const vd_weight *w = vd_weights_find(&out->file, leaf->name);
        char is[VD_WEIGHT_FORM_TEXT];
        if (!w)
            continue;
        vd_weight_form_text(&w->form, is);
        if (!ro_shape_equal(&w->shape, &leaf->shape))
            status = vd_fail(err, VD_ERR_PEER,
                             "%s: %s is %s, and not as the run has it; export it anew, as F32", dir,
                             leaf->name, is);
        else if (!vd_hash_equal(&found[w - out->file.tensor], &out->commitment[i]))
            status = vd_fail(err, VD_ERR_PEER, "%s: %s is not what proof.json commits to", dir,
                             leaf->name);
    }
    free(found);
    return status;
}

static vd_status from_exported(const vd_job *job, const char *proof, const vd_data_reader *reader,
                               vd_start *out, vd_err *err) {
    vd_status status = from_proof(job, proof, out, err);
    if (status == VD_OK)
        status = vd_weights_open(job->start.run, &out->file, err);
    if (status == VD_OK)
        status = check_exported(job->start.run, reader, out, err);
    out->present = out->exported = status == VD_OK;
    return status;
}

static vd_status find_start(const vd_job *job, const vd_data_reader *reader, vd_start *out,
                            vd_err *err) {
    char path[VD_JOB_PATH_SIZE + 16], place[VD_JOB_PLACE_SIZE];
    struct stat info;
    snprintf(path, sizeof path, "%s/program", job->start.run);
    const bool is_run = stat(path, &info) == 0;
    snprintf(path, sizeof path, "%s/proof.json", job->start.run);
    if (!is_run && stat(path, &info) == 0)
        return from_exported(job, path, reader, out, err);
    if (stat(job->start.run, &info) == 0)
        return from_run(job, reader, out, err);
    snprintf(path, sizeof path, "%s.proof.json", job->start.run);
    if (stat(path, &info) == 0)
        return from_proof(job, path, out, err);
    return vd_fail(err, VD_ERR_USAGE, "%s: `weights.run` is %s, but neither it nor %s is there",
                   vd_job_place(job, "weights.run", place), job->start.run, path);
}

/* ---- its tensors ---- */

/* Finds the index of a leaf in `file`. With `bare`, only weights are wanted, and a leaf may be
 * missing: *there says so. */
static vd_status find_at(const vd_start *start, uint32_t leaf, bool bare, uint32_t *at, bool *there,
                         vd_err *err) {
    const char *name = start->program.leaf[leaf].name;
    const vd_weight *w = start->exported ? vd_weights_find(&start->file, name) : NULL;
    *at = w ? (uint32_t)(w - start->file.tensor) : leaf;
    *there = w || !start->exported;
    if (*there || bare)
        return VD_OK;
    return vd_fail(err, VD_ERR_USAGE,
                   "%s: has no %s, which is part of the state; take the run itself, or `state: "
                   "weights`",
                   start->file.file[0].path, name);
}

vd_status vd_list_start(vd_job *job, vd_start *out, vd_err *err) {
    const vd_program *program = &out->program;
    const bool bare = job->start.what == VD_START_WEIGHTS || job->training.evaluates;
    vd_status status = VD_OK;
    out->tensor = calloc((size_t)program->leaf_count + 1, sizeof *out->tensor);
    out->at = calloc((size_t)program->leaf_count + 1, sizeof *out->at);
    if (!out->tensor || !out->at)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < program->leaf_count && status == VD_OK; i++) {
        const vd_leaf *leaf = &program->leaf[i];
        vd_file_tensor *to = &out->tensor[out->count];
        bool there = false;
        if (bare && vd_is_optimizers(program, leaf->name))
            continue;
        *to = (vd_file_tensor){.name = leaf->name, .shape = leaf->shape};
        memcpy(to->root, out->commitment[i].b, sizeof to->root);
        status = find_at(out, i, bare, &out->at[out->count], &there, err);
        out->count += there;
    }
    job->training.start = out->tensor;
    job->training.start_count = out->count;
    job->training.start_bare = bare;
    job->training.first_step = job->training.evaluates      ? 0
                               : job->start.first_step >= 0 ? job->start.first_step
                               : bare                       ? 0
                                                            : out->step;
    return status;
}

vd_status vd_load_start(vd_job *job, const vd_data_reader *reader, vd_start *out, vd_err *err) {
    if (job->start.dir[0])
        return vd_load_start_files(job, reader, out, err);
    if (!job->start.run[0])
        return VD_OK;
    vd_status status = find_start(job, reader, out, err);
    return status == VD_OK ? vd_list_start(job, out, err) : status;
}
