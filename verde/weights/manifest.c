/* Manifests: what a folder's tensors are, in one text whose SHA-256 a job pins.
 *
 *     verde manifest 1
 *     config BASE64                         the bytes of config.json; - for none
 *     tensors COUNT
 *     NAME DTYPE [DIM,DIM] COMMITMENT       one line each, by name, ascending
 */
#include "verde/weights/internal.h"

#include <stdlib.h>
#include <string.h>

void vd_manifest_free(vd_manifest *manifest) {
    free(manifest->tensor);
    vd_buf_free(&manifest->config);
    *manifest = (vd_manifest){0};
}

vd_status vd_weights_hash(const vd_weights *w, const vd_weights_hashing *how, vd_hash *commitment,
                          vd_err *err) {
    uint64_t done = 0, total = 0;
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < w->count; i++)
        total += w->tensor[i].size;
    for (uint32_t i = 0; i < w->count && status == VD_OK; i++) {
        const vd_weight *tensor = &w->tensor[i];
        vd_hash root;
        status = vd_tensor_hash(how->ro, &tensor->shape, tensor->data, &root, &commitment[i], err);
        done += tensor->size;
        if (how->progress)
            how->progress(how->user, done, total);
    }
    return status;
}

vd_status vd_manifest_make(const vd_weights *w, const vd_weights_hashing *how, vd_manifest *out,
                           vd_err *err) {
    *out = (vd_manifest){.count = w->count, .has_config = w->has_config};
    out->tensor = calloc(w->count + 1, sizeof *out->tensor);
    vd_hash *commitment = calloc(w->count + 1, sizeof *commitment);
    vd_put(&out->config, w->config.data, w->config.size);
    vd_status status = out->tensor && commitment && vd_buf_ok(&out->config)
                           ? vd_weights_hash(w, how, commitment, err)
                           : vd_fail(err, VD_ERR_LOCAL, "manifest: out of memory");
    for (uint32_t i = 0; i < w->count && status == VD_OK; i++)
        out->tensor[i] = (vd_manifest_tensor){w->tensor[i].form, commitment[i]};
    free(commitment);
    if (status != VD_OK)
        vd_manifest_free(out);
    return status;
}

/* ---- the text ---- */

static void put_config(const vd_manifest *m, vd_buf *out) {
    char *text = m->has_config ? vd_base64(m->config.data, m->config.size) : NULL;
    if (m->has_config && !text)
        out->failed = true;
    vd_printf(out, "config ");
    vd_put(out, text ? text : "-", text ? strlen(text) : 1);
    vd_printf(out, "\n");
    free(text);
}

void vd_manifest_put(const vd_manifest *m, vd_buf *out) {
    char form[VD_WEIGHT_FORM_TEXT], hex[2 * VD_HASH_SIZE + 1];
    vd_printf(out, "verde manifest 1\n");
    put_config(m, out);
    vd_printf(out, "tensors %u\n", m->count);
    for (uint32_t i = 0; i < m->count; i++) {
        vd_weight_form_text(&m->tensor[i].form, form);
        vd_hex(m->tensor[i].commitment.b, VD_HASH_SIZE, hex);
        vd_printf(out, "%s %s %s\n", m->tensor[i].form.name, form, hex);
    }
}

vd_status vd_manifest_hash(const vd_manifest *m, vd_hash *out, vd_err *err) {
    vd_buf text = {0};
    vd_manifest_put(m, &text);
    const bool done = vd_buf_ok(&text) && vd_hash_tagged(NULL, text.data, text.size, out);
    vd_buf_free(&text);
    return done ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "manifest: out of memory");
}

static const vd_manifest_tensor *find_tensor(const vd_manifest *m, const char *name) {
    uint32_t low = 0, high = m->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = strcmp(m->tensor[middle].form.name, name);
        if (order == 0)
            return &m->tensor[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- against the files ---- */

static vd_status compare_forms(const vd_manifest *m, const vd_weights *w, vd_err *err) {
    char expected[VD_WEIGHT_FORM_TEXT], found[VD_WEIGHT_FORM_TEXT];
    for (uint32_t i = 0; i < m->count; i++) {
        const vd_weight_form *form = &m->tensor[i].form;
        const vd_weight *tensor = vd_weights_find(w, form->name);
        vd_weight_form_text(form, expected);
        if (!tensor)
            return vd_fail(err, VD_ERR_PEER, "%s: lacks tensor %.100s, expected %s",
                           w->file[0].path, form->name, expected);
        vd_weight_form_text(&tensor->form, found);
        if (!vd_weight_form_equal(form, &tensor->form))
            return vd_fail(err, VD_ERR_PEER, "%s: tensor %.100s is %s, expected %s",
                           w->file[tensor->file].path, form->name, found, expected);
    }
    for (uint32_t i = 0; i < w->count; i++)
        if (!find_tensor(m, w->tensor[i].form.name))
            return vd_fail(err, VD_ERR_PEER,
                           "%s: tensor %.100s is not in the manifest, which has %u",
                           w->file[w->tensor[i].file].path, w->tensor[i].form.name, m->count);
    return VD_OK;
}

static vd_status compare_config(const vd_manifest *m, const vd_weights *w, vd_err *err) {
    const bool equal =
        m->has_config == w->has_config && m->config.size == w->config.size &&
        (m->config.size == 0 || memcmp(m->config.data, w->config.data, m->config.size) == 0);
    if (equal)
        return VD_OK;
    const char *path = w->file[0].path, *slash = strrchr(path, '/');
    return vd_fail(err, VD_ERR_PEER, "%.*s/config.json: %s, expected %s%zu bytes of the manifest",
                   slash ? (int)(slash - path) : 1, slash ? path : ".",
                   w->has_config ? "holds other bytes" : "is missing",
                   w->has_config ? "the " : "the ", m->config.size);
}

static vd_status compare_bytes(const vd_manifest *m, const vd_weights *w,
                               const vd_weights_hashing *how, vd_err *err) {
    char expected[2 * VD_HASH_SIZE + 1], found[2 * VD_HASH_SIZE + 1];
    vd_hash *commitment = calloc(w->count + 1, sizeof *commitment);
    vd_status status = commitment ? vd_weights_hash(w, how, commitment, err)
                                  : vd_fail(err, VD_ERR_LOCAL, "manifest: out of memory");
    for (uint32_t i = 0; i < w->count && status == VD_OK; i++) {
        if (vd_hash_equal(&m->tensor[i].commitment, &commitment[i]))
            continue;
        vd_hex(m->tensor[i].commitment.b, VD_HASH_SIZE, expected);
        vd_hex(commitment[i].b, VD_HASH_SIZE, found);
        status = vd_fail(err, VD_ERR_PEER,
                         "%s: tensor %.100s: its bytes give %s, expected %s of the manifest",
                         w->file[w->tensor[i].file].path, m->tensor[i].form.name, found, expected);
    }
    free(commitment);
    return status;
}

vd_status vd_manifest_compare(const vd_manifest *m, const vd_weights *w,
                              const vd_weights_hashing *how, vd_err *err) {
    vd_status status = compare_forms(m, w, err);
    if (status == VD_OK)
        status = compare_config(m, w, err);
    return status == VD_OK && how ? compare_bytes(m, w, how, err) : status;
}
