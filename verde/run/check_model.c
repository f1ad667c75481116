/* This file checks a folder that `verde export` wrote against the proof in it. */
#include "verde/run/checks.h"

#include <stdlib.h>
#include <string.h>

#include "verde/job/config.h"
#include "verde/load/export.h"
#include "verde/tell/stop.h"

typedef struct {
    const vd_check_options *o;
    vd_state_proof proof;
    vd_weights weights;
    vd_export_row *row;
    uint32_t row_count;
    vd_verdict verdict;
    ro_ctx *ro;
    bool rounded;     /* the weights are rounded, so they cannot be checked */
    bool config_fits; /* config.json has the meaning that the program commits to */
    vd_err *err;
} model;

bool vd_is_model(const char *dir) {
    return vd_lies_in(dir, "proof.json");
}

/* ---- quick checks ---- */

static vd_status load_model(model *m) {
    char path[1100];
    snprintf(path, sizeof path, "%s/proof.json", m->o->path);
    vd_status status = vd_state_proof_read(path, &m->proof, m->err);
    if (status == VD_OK)
        status = vd_weights_open(m->o->path, &m->weights, m->err);
    if (status == VD_OK)
        status =
            vd_export_rows(&m->proof.program, m->weights.has_config ? &m->weights.config : NULL,
                           &m->row, &m->row_count, m->err);
    /* a bad file is not a mistake in the options */
    return status == VD_ERR_USAGE ? vd_fail(m->err, VD_ERR_PEER, "%s", m->err->text) : status;
}

/* Checks a tensor's type: only the state's own element type can give its commitments. */
static vd_status check_type(model *m, const vd_weight *t, const vd_weight_form *expected) {
    if (t->form.type == expected->type)
        return VD_OK;
    m->rounded = true;
    return vd_fail(m->err, VD_ERR_PEER,
                   "%s: tensor %.100s is %s, and the run's is %s: rounded weights cannot be "
                   "checked; ask for an export in F32",
                   m->weights.file[t->file].path, t->form.name, vd_weight_type_name(t->form.type),
                   vd_weight_type_name(expected->type));
}

static vd_status check_row(model *m, const vd_export_row *row) {
    const vd_weight *t = vd_weights_find(&m->weights, row->form.name);
    char expected[VD_WEIGHT_FORM_TEXT], found[VD_WEIGHT_FORM_TEXT];
    vd_weight_form_text(&row->form, expected);
    if (!t)
        return vd_fail(m->err, VD_ERR_PEER, "%s: lacks tensor %.100s, expected %s",
                       m->weights.file[0].path, row->form.name, expected);
    vd_weight_form_text(&t->form, found);
    vd_weight_form same = t->form;
    same.type = row->form.type;
    if (!vd_weight_form_equal(&same, &row->form))
        return vd_fail(m->err, VD_ERR_PEER, "%s: tensor %.100s is %s, expected %s",
                       m->weights.file[t->file].path, t->form.name, found, expected);
    return check_type(m, t, &row->form);
}

static vd_status check_rows(model *m) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < m->row_count && status == VD_OK; i++)
        status = check_row(m, &m->row[i]);
    for (uint32_t i = 0; i < m->weights.count && status == VD_OK; i++) {
        const vd_weight *t = &m->weights.tensor[i];
        uint32_t r = 0;
        while (r < m->row_count && strcmp(m->row[r].form.name, t->form.name) != 0)
            r++;
        if (r == m->row_count)
            status = vd_fail(m->err, VD_ERR_PEER, "%s: tensor %.100s is none of the run's model",
                             m->weights.file[t->file].path, t->form.name);
    }
    return status;
}

static const vd_data *committed_config(const model *m) {
    const vd_program *p = &m->proof.program;
    for (uint32_t i = 0; i < p->data_count; i++)
        if (strcmp(p->data[i].tensor.name, VD_CONFIG_TENSOR) == 0 &&
            p->data[i].tensor.shape.dtype == RO_U8)
            return &p->data[i];
    return NULL;
}

static vd_status hash_config(const model *m, vd_hash *out) {
    /* values that a job may replace are not compared */
    const vd_config_choice choice = {.dropout = 0, .pad = 0};
    const vd_buf *text = &m->weights.config;
    vd_model means = {0};
    vd_buf bytes = {0};
    vd_hash byte_root;
    vd_status status =
        vd_config_read(text->data, text->size, VD_WEIGHTS_CONFIG, &choice, &means, m->err);
    if (status != VD_OK)
        return status;
    vd_config_meaning(&means, &bytes);
    const ro_shape shape = {RO_U8, 1, {(int64_t)bytes.size}};
    status = vd_buf_ok(&bytes) ? vd_tensor_hash(NULL, &shape, bytes.data, &byte_root, out, m->err)
                               : vd_fail(m->err, VD_ERR_LOCAL, "out of memory");
    vd_buf_free(&bytes);
    return status;
}

/* Checks config.json's meaning against the program, which commits to none if it starts anew. */
static vd_status check_config(model *m) {
    const vd_data *committed = committed_config(m);
    vd_hash found;
    if (!committed || !m->weights.has_config)
        return VD_OK;
    vd_status status = hash_config(m, &found);
    m->config_fits = status == VD_OK && memcmp(found.b, committed->root, VD_HASH_SIZE) == 0;
    if (status == VD_OK && !m->config_fits)
        return vd_fail(m->err, VD_ERR_PEER,
                       "%s/" VD_WEIGHTS_CONFIG ": means another model than the program commits to",
                       m->o->path);
    return status == VD_ERR_USAGE ? vd_fail(m->err, VD_ERR_PEER, "%s", m->err->text) : status;
}

static vd_status check_step(const model *m) {
    const long long step = m->proof.step, steps = m->proof.program.steps;
    const long long expected = m->o->step < 0 ? steps : m->o->step;
    if (step == expected)
        return VD_OK;
    return vd_fail(m->err, VD_ERR_PEER,
                   "%s: is the model after step %lld of %lld, expected step %lld%s", m->o->path,
                   step, steps, expected, m->o->step < 0 ? "; --step names another one" : "");
}

static vd_status check_accepted(model *m) {
    const vd_check_claim claim = {"program", "the model in ", "run", &m->proof.program_hash,
                                  &m->proof.run_root};
    return vd_check_accepted(m->o, &claim, &m->verdict, m->err);
}

/* ---- every byte ---- */

static uint64_t model_bytes(const model *m) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < m->weights.count; i++)
        total += m->weights.tensor[i].size;
    return total;
}

static vd_status hash_row(const model *m, const vd_export_row *row, const vd_weight *t) {
    const ro_shape *leaf = &m->proof.program.leaf[row->leaf].shape;
    char expected[2 * VD_HASH_SIZE + 1], found[2 * VD_HASH_SIZE + 1];
    vd_hash root, commitment;
    void *laid = NULL;
    if (row->layout != VD_LAYOUT_SAME) {
        laid = malloc(t->size);
        if (!laid)
            return vd_fail(m->err, VD_ERR_LOCAL, "out of memory");
        vd_layout_copy_back(row->layout, leaf, t->data, laid);
    }
    vd_status status =
        vd_tensor_hash(m->ro, leaf, laid ? laid : t->data, &root, &commitment, m->err);
    free(laid);
    if (status != VD_OK || vd_hash_equal(&commitment, &m->proof.tensor[row->leaf]))
        return status;
    vd_hex(m->proof.tensor[row->leaf].b, VD_HASH_SIZE, expected);
    vd_hex(commitment.b, VD_HASH_SIZE, found);
    return vd_fail(m->err, VD_ERR_PEER,
                   "%s: tensor %.100s: its bytes give %s, expected %s of the run's state",
                   m->weights.file[t->file].path, t->form.name, found, expected);
}

static vd_status hash_model(model *m) {
    const ro_options options = {
        .size = sizeof options, .threads = m->o->common->threads, .backend = m->o->common->backend};
    vd_ticker hashing = {.start = vd_seconds()};
    uint64_t done = 0, total = model_bytes(m);
    if (ro_ctx_create(&options, &m->ro) != RO_OK)
        return vd_fail(m->err, VD_ERR_USAGE, "%s", ro_ctx_error(NULL));
    vd_stop_line("stopped before all was hashed, which says nothing; `%s` begins again",
                 vd_command_line());
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < m->row_count && status == VD_OK; i++) {
        const vd_weight *t = vd_weights_find(&m->weights, m->row[i].form.name);
        status = hash_row(m, &m->row[i], t);
        done += t->size;
        vd_tell_hashing(&hashing, done, total);
    }
    return status;
}

static vd_status check_job(const model *m) {
    vd_status status = vd_compare_job(m->o->job, &m->proof.program_hash, m->o->path, m->err);
    return status == VD_OK && m->weights.has_config
               ? vd_config_compare(m->o->path, &m->weights.config, m->o->job,
                                   &m->proof.program_hash, m->err)
               : status;
}

static vd_status model_all(model *m) {
    vd_status status = load_model(m);
    if (status == VD_OK)
        status = check_rows(m);
    if (status == VD_OK)
        status = check_step(m);
    if (status == VD_OK && m->o->job)
        status = check_job(m);
    if (status == VD_OK)
        status = check_config(m);
    if (status == VD_OK)
        status = check_accepted(m);
    return status == VD_OK ? hash_model(m) : status;
}

/* ---- output ---- */

/* The state's hash, which a job that goes on from this model states as `weights.root`. */
static vd_hash state_of(const model *m) {
    vd_hash state = {{0}};
    if (vd_state_commit(&m->proof.program_hash, m->proof.step, m->proof.tensor,
                        m->proof.program.leaf_count, &state, NULL) != VD_OK)
        state = (vd_hash){{0}};
    return state;
}

static void tell_json(const model *m) {
    const vd_hash state = state_of(m);
    json_t *out =
        json_pack("{sb ss so sI sI sb sI sI so so sb}", "fits", 1, "path", m->o->path, "program",
                  vd_hash_text(&m->proof.program_hash), "step", (json_int_t)m->proof.step, "steps",
                  (json_int_t)m->proof.program.steps, "final",
                  m->proof.step == m->proof.program.steps, "tensors", (json_int_t)m->weights.count,
                  "bytes", (json_int_t)model_bytes(m), "state", vd_hash_text(&state), "run_root",
                  vd_hash_text(&m->proof.run_root), "accepted", m->o->verdict != NULL);
    json_object_set_new(out, "config",
                        json_string(!m->weights.has_config ? "none"
                                    : m->o->job            ? "compared"
                                    : m->config_fits       ? "committed"
                                                           : "names"));
    if (m->o->verdict)
        json_object_set_new(out, "verdict", vd_accepted_json(m->o, &m->verdict));
    vd_result_json(out);
}

static void tell_text(const model *m) {
    vd_buf told = {0}, *out = &told;
    const long long step = m->proof.step, steps = m->proof.program.steps;
    char size[32];
    vd_print_size(model_bytes(m), size);
    vd_put_hex(out, "program", m->proof.program_hash.b);
    vd_printf(out,
              "it is        the model after step %lld of %lld%s: %u tensor%s, every byte, %s\n",
              step, steps, step == steps ? ", the final one" : "", m->weights.count,
              vd_plural(m->weights.count), size);
    const vd_hash state = state_of(m);
    vd_put_hex(out, "state", state.b);
    vd_put_hex(out, "run root", m->proof.run_root.b);
    if (m->o->verdict)
        vd_accepted_text(out, &m->verdict);
    if (m->weights.has_config)
        vd_printf(out, "config.json  %s\n",
                  m->o->job        ? "means the job's model"
                  : m->config_fits ? "means the model that the program commits to"
                                   : "gives the names alone; --job compares the rest");
    vd_printf(out, "fits         yes%s\n",
              m->o->verdict ? "" : "; whether anybody accepted it, --verdict says");
    vd_result_text(out);
}

vd_status vd_check_model(const vd_check_options *o, bool *rounded, vd_err *err) {
    model m = {.o = o, .err = err};
    const vd_status status = model_all(&m);
    if (status == VD_OK && o->common->json)
        tell_json(&m);
    else if (status == VD_OK)
        tell_text(&m);
    *rounded = m.rounded;
    ro_ctx_destroy(m.ro);
    free(m.row);
    vd_weights_close(&m.weights);
    vd_state_proof_free(&m.proof);
    return status;
}
