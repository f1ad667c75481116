/* Scores the accepted model: `evaluate` is computed here; the score of a job that evaluates is in
 * the delivered state, to which the providers have committed. */
#include <stdlib.h>
#include <string.h>

#include "verde/delegate/delegation.h"
#include "verde/load/export.h"

/* Opens the evaluation before the job is handed over: a missing file is then reported at once. */
vd_status vd_delegation_score_open(vd_delegation *d) {
    if (!d->loaded.job.evaluate.every)
        return VD_OK;
    vd_status status = vd_load_backend(&d->loaded, &d->o->common, d->err);
    return status == VD_OK ? vd_evaluation_open(&d->loaded, NULL, &d->evaluation, d->err) : status;
}

/* Reads the score, which is all that such a job delivers. */
static vd_status read_delivered(const char *dir, vd_score *out, vd_err *err) {
    vd_weights model = {0};
    vd_status status = vd_weights_open(dir, &model, err);
    if (status != VD_OK)
        return status;
    const vd_weight *loss = vd_weights_find(&model, "loss");
    const vd_weight *accuracy = vd_weights_find(&model, "accuracy");
    if (loss && loss->size == sizeof out->loss)
        memcpy(&out->loss, loss->data, sizeof out->loss);
    else
        status = vd_fail(err, VD_ERR_PEER, "%s: no tensor `loss` of one number", dir);
    out->has_accuracy = accuracy && accuracy->size == sizeof out->accuracy;
    if (out->has_accuracy)
        memcpy(&out->accuracy, accuracy->data, sizeof out->accuracy);
    vd_weights_close(&model);
    return status;
}

static json_t *score_number(float value) {
    return value - value == 0 ? json_real((double)value)
                              : json_string(value != value ? "nan" : "inf");
}

json_t *vd_delegation_score_json(const vd_delegation *d) {
    json_t *out =
        d->has_score ? json_pack("{so}", "evaluation", score_number(d->score.loss)) : NULL;
    if (out && d->score.has_accuracy)
        json_object_set_new(out, "accuracy", score_number(d->score.accuracy));
    return out ? out : json_null();
}

static vd_status write_score(const vd_delegation *d, vd_err *err) {
    char path[1100];
    json_t *score = vd_delegation_score_json(d);
    char *text = json_dumps(score, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(9));
    vd_buf line = {0};
    vd_printf(&line, "%s\n", text ? text : "");
    snprintf(path, sizeof path, "%.1000s/evaluation.json", d->o->out);
    vd_status status = text && vd_buf_ok(&line)
                           ? vd_write_file(path, line.data, line.size, 0644, err)
                           : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_buf_free(&line);
    free(text);
    json_decref(score);
    return status;
}

void vd_delegation_score(vd_delegation *d) {
    const bool evaluates = d->loaded.job.training.evaluates;
    vd_err why = {0};
    vd_status status;
    if (!evaluates && !d->evaluation.trained)
        return;
    if (!evaluates)
        fprintf(stderr, "evaluating the model on %s\n", d->loaded.job.evaluate.path);
    status = evaluates ? read_delivered(d->o->out, &d->score, &why)
                       : vd_evaluate_model(&d->evaluation, d->o->out, &d->score, &why);
    d->has_score = status == VD_OK;
    if (status == VD_OK)
        status = write_score(d, &why);
    if (status != VD_OK) /* the model is delivered in any case */
        fprintf(stderr, "verde: no evaluation: %s\n", why.text);
}
