/* Programs that evaluate: their data includes a model's weights, which the job names. In the
 * program's folder such a tensor has a commitment of zeros, and no file. */
#include <string.h>

#include "verde/load/load.h"
#include "verde/load/names.h"

bool vd_is_wanted(const vd_data *d) {
    static const uint8_t none[VD_HASH_SIZE];
    return memcmp(d->root, none, sizeof none) == 0;
}

static vd_status check_job(const vd_loaded *loaded, uint32_t wanted, vd_err *err) {
    const vd_job *job = &loaded->job;
    char place[VD_JOB_PLACE_SIZE];
    if (!job->training.evaluates && wanted > 0)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: the program in %s evaluates the weights of a model; a job file with "
                       "`task: evaluate` and `weights` says which",
                       job->path, job->model_dir);
    if (job->training.evaluates && wanted == 0)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: `task` is evaluate, but the program in %s takes no "
                       "weights; a captured evaluation is in the folder `evaluate` of its job",
                       vd_job_place(job, "task", place), job->model_dir);
    if (wanted > 0 && !job->start.run[0] && !job->start.dir[0])
        return vd_fail(err, VD_ERR_USAGE, "%s: `weights` is missing: whose model is evaluated?",
                       job->path);
    return VD_OK;
}

static vd_status give(vd_loaded *loaded, uint32_t i, const vd_names *names, vd_err *err) {
    vd_data *d = &loaded->program.data[i];
    const vd_start *start = &loaded->start;
    const vd_named *found = vd_names_find(names, d->tensor.name);
    if (!found)
        return vd_fail(err, VD_ERR_USAGE, "the state to evaluate has no tensor %s", d->tensor.name);
    const vd_file_tensor *from = &start->tensor[found->number];
    if (!ro_shape_equal(&from->shape, &d->tensor.shape))
        return vd_fail(err, VD_ERR_USAGE,
                       "the state to evaluate: %s has another type or shape than the program reads",
                       d->tensor.name);
    memcpy(d->root, from->root, sizeof d->root);
    if (loaded->bare || !start->present)
        return VD_OK;
    const vd_weight *w = &start->file.tensor[start->at[found->number]];
    loaded->placed.place[i] = (vd_data_place){start->file.file[w->file].path, w->at};
    loaded->placed.tensor[i] = w->data;
    return VD_OK;
}

vd_status vd_give_weights(vd_loaded *loaded, vd_err *err) {
    const vd_program *p = &loaded->program;
    const vd_start *start = &loaded->start;
    uint32_t wanted = 0;
    vd_names names = {0};
    for (uint32_t i = 0; i < p->data_count; i++)
        wanted += vd_is_wanted(&p->data[i]);
    vd_status status = check_job(loaded, wanted, err);
    if (status != VD_OK || wanted == 0)
        return status;
    if (!vd_names_reserve(&names, start->count))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < start->count; i++)
        vd_names_put(&names, start->tensor[i].name, i);
    vd_names_sort(&names);
    for (uint32_t i = 0; i < p->data_count && status == VD_OK; i++)
        if (vd_is_wanted(&p->data[i]))
            status = give(loaded, i, &names, err);
    vd_names_free(&names);
    return status;
}
