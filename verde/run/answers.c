/* This file writes the answers of batches, a row for each input. */
#include "verde/run/answers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/run/answers_file.h"

/* Returns whether a name can be that of a file that is not hidden. */
static bool is_plain(const char *name) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const size_t size = strlen(name);
    return size >= 1 && size <= VD_ANSWER_NAME_MAX && *name != '.' &&
           name[strspn(name, plain)] == 0;
}

/* ---- the files ---- */

static vd_status add_file(vd_answers *a, uint32_t leaf, const vd_leaf *what, vd_err *err) {
    vd_answer_file *file = &a->file[a->count];
    const char *name = vd_answer_name(what);
    if (!is_plain(name) || !vd_answer_type(what->shape.dtype))
        return vd_fail(err, VD_ERR_PEER,
                       "leaf %s: an answer must have a name of 1 to %d letters, digits, `_`, `-` "
                       "and `.`, and a type that .npy files have",
                       what->name, VD_ANSWER_NAME_MAX);
    if (a->count == VD_ANSWERS_MAX)
        return vd_fail_limit(err, NULL, (uint64_t)a->count + 1, "answers of a program",
                             VD_ANSWERS_MAX);
    *file = (vd_answer_file){.leaf = leaf, .shape = what->shape, .fd = -1};
    snprintf(file->name, sizeof file->name, "%s", name);
    snprintf(file->path, sizeof file->path, "%s/%s.npy", a->dir, name);
    a->count++;
    return vd_answer_open(file, a->checks, err);
}

static vd_status open_files(vd_answers *a, const char *dir, const vd_program *p, vd_err *err) {
    vd_status status = VD_OK;
    snprintf(a->dir, sizeof a->dir, "%.900s/" VD_ANSWERS_FOLDER, dir);
    a->file = calloc((size_t)p->leaf_count + 1, sizeof *a->file);
    if (!a->file)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (!a->checks)
        status = vd_make_dir(a->dir, err);
    for (uint32_t i = 0; status == VD_OK && i < p->leaf_count; i++)
        if (vd_answer_name(&p->leaf[i]))
            status = add_file(a, i, &p->leaf[i], err);
    return status;
}

/* Checks that a batch has the same answers as the first batch. */
static vd_status check_alike(const vd_answers *a, const vd_program *p, vd_err *err) {
    uint32_t answers = 0;
    for (uint32_t i = 0; i < p->leaf_count; i++)
        answers += vd_answer_name(&p->leaf[i]) != NULL;
    for (uint32_t i = 0; i < a->count; i++) {
        const vd_answer_file *f = &a->file[i];
        const vd_leaf *leaf = f->leaf < p->leaf_count ? &p->leaf[f->leaf] : NULL;
        const char *name = leaf ? vd_answer_name(leaf) : NULL;
        if (answers != a->count || !name || strcmp(name, f->name) != 0 ||
            !ro_shape_equal(&leaf->shape, &f->shape))
            return vd_fail(err, VD_ERR_PEER, "a batch has other answers than the first one");
    }
    return VD_OK;
}

static vd_status rows_of(const vd_loaded *l, int64_t batch, int64_t *out, vd_err *err) {
    const vd_program *p = &l->program;
    const ro_shape one = {RO_I32, 1, {1}};
    const bool told = p->data_count > 1 && strcmp(p->data[1].tensor.name, "rows") == 0 &&
                      ro_shape_equal(&p->data[1].tensor.shape, &one) && l->exec.data[1];
    *out = told ? *(const int32_t *)l->exec.data[1] : 0;
    return *out >= 1 && *out <= batch
               ? VD_OK
               : vd_fail(err, VD_ERR_PEER,
                         "a batch of %lld must say how many of its rows count, in its second data "
                         "tensor, `rows`",
                         (long long)batch);
}

vd_status vd_answers_put(vd_answers *a, const char *dir, const vd_loaded *l, const vd_state *state,
                         vd_err *err) {
    int64_t rows = 0;
    vd_status status = a->count ? VD_OK : open_files(a, dir, &l->program, err);
    if (status == VD_OK)
        status = check_alike(a, &l->program, err);
    for (uint32_t i = 0; status == VD_OK && i < a->count; i++) {
        vd_answer_file *f = &a->file[i];
        status = rows_of(l, f->shape.dim[0], &rows, err);
        if (status == VD_OK)
            status = vd_answer_rows(f, a->checks, a->rows, rows, state->tensor[f->leaf], err);
    }
    a->rows += rows;
    return status;
}

vd_status vd_answers_finish(vd_answers *a, vd_err *err) {
    char path[1200];
    vd_status status = VD_OK;
    if (!a->count)
        return VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < a->count; i++)
        status = vd_answer_end(&a->file[i], a->checks, a->rows, err);
    snprintf(path, sizeof path, "%s/answers.safetensors", a->dir);
    if (status == VD_OK)
        status = vd_answers_together(path, a->file, a->count, a->checks, a->rows, err);
    return status == VD_OK && !a->checks ? vd_sync_parent(path, err) : status;
}

void vd_answers_free(vd_answers *a) {
    for (uint32_t i = 0; i < a->count; i++)
        vd_answer_close(&a->file[i]);
    free(a->file);
    *a = (vd_answers){0};
}
