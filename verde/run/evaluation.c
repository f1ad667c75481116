/* This file computes the loss on other data during a run: at checkpoints, by a job that evaluates
 * the state. */
#include <stdlib.h>
#include <string.h>

#include "verde/run/evaluation.h"
#include "verde/exec/memory.h"
#include "verde/load/export.h"

/* ---- the job ---- */

/* Makes a job with the same model and batch, whose weights are those of later states. No program
 * that is committed to contains their commitments, so these stay zero. */
static vd_status make_job(const vd_loaded *trained, vd_loaded *held, vd_err *err) {
    vd_job *job = &held->job;
    *job = trained->job;
    vd_job_take_evaluate(job);
    job->training.evaluates = 1;
    held->weights = trained->weights;
    held->start.program = trained->program;
    held->start.commitment = calloc(trained->program.leaf_count, sizeof(vd_hash));
    return held->start.commitment ? vd_list_start(job, &held->start, err)
                                  : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

vd_status vd_evaluation_open(const vd_loaded *trained, const char *dir, vd_evaluation *out,
                             vd_err *err) {
    vd_loaded *held = &out->held;
    vd_err why = {0};
    if (!trained->job.evaluate.every)
        return VD_OK;
    out->trained = trained;
    out->dir = dir;
    held->exec = (vd_exec){.program = &held->program, .ro = trained->ro};
    vd_status status = make_job(trained, held, &why);
    if (status == VD_OK)
        status = vd_job_load_data(&held->job, NULL, &held->data, &why);
    if (status == VD_OK)
        status = vd_job_program(&held->job, &held->program, &why);
    return status == VD_OK ? VD_OK : vd_fail(err, status, "evaluate: %s", why.text);
}

static void forget_state(vd_loaded *held) {
    vd_exec_drop(&held->exec);
    vd_placed_data_free(&held->placed);
    vd_weights_close(&held->start.file);
    held->start.present = false;
}

void vd_evaluation_close(vd_evaluation *e) {
    forget_state(&e->held);
    e->held.weights = (vd_job_weights){0}; /* borrowed from the training job */
    e->held.start.program = (vd_program){0};
    e->held.ro = NULL;
    vd_loaded_free(&e->held);
}

/* ---- a state ---- */

static vd_status take_state(vd_evaluation *e, const vd_hash *state, vd_err *err) {
    vd_loaded *held = &e->held;
    forget_state(held);
    return vd_map_state(e->dir, &e->trained->program, state, &held->start.file, err);
}

/* Reads the last state's leaves, which are one number each (models/training.c). */
static vd_status read_score(const vd_state *sum, vd_score *out, vd_err *err) {
    out->has_accuracy = sum->count > 1;
    vd_status status =
        vd_memory_read(sum->memory, &out->loss, sum->tensor[0], sizeof out->loss, err);
    if (status == VD_OK && out->has_accuracy)
        status =
            vd_memory_read(sum->memory, &out->accuracy, sum->tensor[1], sizeof out->accuracy, err);
    return status;
}

/* Evaluates the weights in held->start.file. */
static vd_status evaluate_held(vd_evaluation *e, vd_score *score, vd_err *err) {
    const vd_exec *exec = &e->held.exec;
    vd_state sum = {0};
    e->held.start.present = true;
    vd_status status = vd_place_data(&e->held, err);
    if (status == VD_OK)
        status = vd_exec_place(&e->held.exec, err);
    if (status == VD_OK)
        status = vd_exec_init(exec, NULL, &sum, err);
    while (status == VD_OK && sum.step < e->held.program.steps)
        status = vd_exec_step(exec, NULL, &sum, NULL, err);
    if (status == VD_OK)
        status = read_score(&sum, score, err);
    vd_state_free(&sum);
    return status;
}

vd_status vd_evaluate(void *evaluation, int64_t step, const vd_hash *state, vd_score *score,
                      bool *told, vd_err *err) {
    vd_evaluation *e = evaluation;
    *told = step % e->held.job.evaluate.every == 0 || step == e->trained->program.steps;
    if (!*told)
        return VD_OK;
    vd_status status = take_state(e, state, err);
    if (status == VD_OK)
        status = evaluate_held(e, score, err);
    if (status == VD_OK)
        fprintf(stderr, "%sstep %lld: evaluation %.4f", vd_is_terminal() ? "\r\033[K" : "",
                (long long)step, (double)score->loss);
    if (status == VD_OK && score->has_accuracy)
        fprintf(stderr, ", accuracy %.4f", (double)score->accuracy);
    if (status == VD_OK)
        fputs("\n", stderr);
    return status;
}

/* ---- an exported model ---- */

/* Converts a file's tensor to its leaf's layout; the caller frees *copy. */
static vd_status take_row(const vd_export_row *row, const vd_program *program, const vd_weight *t,
                          vd_weight *out, void **copy, vd_err *err) {
    *out = *t;
    if (row->layout == VD_LAYOUT_SAME)
        return VD_OK;
    *copy = malloc(t->size);
    if (!*copy)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_layout_copy_back(row->layout, &program->leaf[row->leaf].shape, t->data, *copy);
    out->data = *copy;
    return VD_OK;
}

/* Puts the model's tensors at their leaves' indices. */
static vd_status take_rows(vd_evaluation *e, const vd_weights *model, void **copy, vd_err *err) {
    const vd_program *program = &e->trained->program;
    vd_export_row *row = NULL;
    uint32_t count = 0;
    vd_weight *tensor = calloc((size_t)program->leaf_count + 1, sizeof *tensor);
    e->held.start.file.tensor = tensor;
    vd_status status = tensor ? vd_export_rows(program, model->has_config ? &model->config : NULL,
                                               &row, &count, err)
                              : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < count && status == VD_OK; i++) {
        const vd_weight *t = vd_weights_find(model, row[i].form.name);
        status = t && vd_weight_form_equal(&t->form, &row[i].form)
                     ? take_row(&row[i], program, t, &tensor[row[i].leaf], &copy[i], err)
                     : vd_fail(err, VD_ERR_PEER, "tensor %.100s is not there, or another one",
                               row[i].form.name);
    }
    free(row);
    return status;
}

vd_status vd_evaluate_model(vd_evaluation *e, const char *dir, vd_score *score, vd_err *err) {
    const uint32_t leaves = e->trained->program.leaf_count;
    vd_weights model = {0};
    void **copy = calloc((size_t)leaves + 1, sizeof *copy);
    forget_state(&e->held);
    vd_status status =
        copy ? vd_weights_open(dir, &model, err) : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    e->held.start.file.file = model.file;
    if (status == VD_OK)
        status = take_rows(e, &model, copy, err);
    if (status == VD_OK)
        status = evaluate_held(e, score, err);
    vd_exec_drop(&e->held.exec);
    vd_placed_data_free(&e->held.placed);
    free(e->held.start.file.tensor);
    e->held.start.file = (vd_weights){0};
    e->held.start.present = false;
    vd_weights_close(&model);
    for (uint32_t i = 0; copy && i < leaves; i++)
        free(copy[i]);
    free(copy);
    return status;
}
