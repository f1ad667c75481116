/* A program job that goes on from a state: `weights` beside `model: {kind: program}`. The state's
 * tensors are found by name, and become data tensors of a new program. */
#include <stdlib.h>
#include <string.h>

#include "verde/graph/begin.h"
#include "verde/load/load.h"
#include "verde/load/names.h"

enum { NUMBERED_STEPS_MAX = 1 << 24 }; /* limit of vd_number_steps */

/* ---- names ---- */

static bool list_names(const vd_program *p, vd_names *out) {
    if (!vd_names_reserve(out, p->leaf_count))
        return false;
    for (uint32_t i = 0; i < p->leaf_count; i++)
        vd_names_put(out, p->leaf[i].name, i);
    vd_names_sort(out);
    return true;
}

/* Returns whether a name is one of an optimizer's: PARAMETER.KEY beside PARAMETER, or
 * correction.BETA, as a capture names them (python/repops/jobs/_kept.py and _mode.py), or NAME.m,
 * as this project's jobs do. */
static bool is_kept(const vd_names *all, const char *text) {
    static const char correction[] = "correction.";
    const size_t head = sizeof correction - 1;
    char owner[VD_NAME_SIZE];
    if (strncmp(text, correction, head) == 0 && text[head] &&
        text[head + strspn(text + head, "0123456789.e-+")] == 0)
        return true;
    if (strcmp(text, "adamw.c1") == 0 || strcmp(text, "adamw.c2") == 0)
        return true;
    snprintf(owner, sizeof owner, "%s", text);
    for (char *dot = strrchr(owner, '.'); dot; dot = strrchr(owner, '.')) {
        *dot = 0;
        if (vd_names_find(all, owner))
            return true;
    }
    return false;
}

/* ---- which leaf starts with which tensor ---- */

typedef struct {
    vd_loaded *loaded;
    vd_names own, theirs; /* names of the program's leaves, and of the other run's */
    vd_data *tensor;      /* contents that leaves start with */
    uint32_t *leaf, *at;  /* of each tensor: its leaf, and its index in the files */
    uint32_t count;
    bool *begins; /* of each leaf: whether it starts with a tensor */
} beginning;

static void shape_of(const vd_start *start, uint32_t i, char text[VD_WEIGHT_FORM_TEXT]) {
    vd_weight_form form = {.type = VD_WEIGHT_F32};
    if (start->manifest.count > 0)
        form = start->manifest.tensor[i].form;
    else if (!vd_weight_form_of(start->tensor[i].name, &start->tensor[i].shape, &form))
        form.ndim = 0;
    vd_weight_form_text(&form, text);
}

static bool is_float(int dtype) {
    return dtype == RO_F32 || dtype == RO_BF16 || dtype == RO_F16;
}

static vd_status check_shape(const beginning *b, uint32_t i, const vd_leaf *leaf, vd_err *err) {
    const vd_start *start = &b->loaded->start;
    const ro_shape *have = &start->tensor[i].shape;
    ro_shape alike = leaf->shape;
    vd_weight_form wanted;
    char is[VD_WEIGHT_FORM_TEXT], must[VD_WEIGHT_FORM_TEXT] = "another";
    if (is_float(have->dtype) && is_float(leaf->shape.dtype))
        alike.dtype = have->dtype;
    if (ro_shape_equal(have, &alike))
        return VD_OK;
    shape_of(start, i, is);
    if (vd_weight_form_of(leaf->name, &leaf->shape, &wanted))
        vd_weight_form_text(&wanted, must);
    return vd_fail(err, VD_ERR_USAGE, "the state to go on from: %s is %s, expected %s", leaf->name,
                   is, must);
}

/* Takes a tensor for its leaf. Files of weights may have more tensors than the state: frozen
 * weights, and buffers that no step changes. */
static vd_status take_tensor(beginning *b, uint32_t i, vd_err *err) {
    const vd_start *start = &b->loaded->start;
    const vd_program *p = &b->loaded->program;
    const vd_file_tensor *from = &start->tensor[i];
    const bool bare = b->loaded->job.start.what == VD_START_WEIGHTS;
    const bool files = b->loaded->job.start.dir[0] != 0;
    const vd_named *own = vd_names_find(&b->own, from->name);
    if (bare && (is_kept(&b->own, from->name) || is_kept(&b->theirs, from->name)))
        return VD_OK;
    if (!own && files) {
        b->loaded->start.left_out++;
        return VD_OK;
    }
    if (!own)
        return vd_fail(err, VD_ERR_USAGE,
                       "the state to go on from has a tensor %s, which the program has not",
                       from->name);
    const vd_status status = check_shape(b, i, &p->leaf[own->number], err);
    vd_data *to = &b->tensor[b->count];
    snprintf(to->tensor.name, sizeof to->tensor.name, "%s", from->name);
    to->tensor.shape = from->shape;
    memcpy(to->root, from->root, sizeof to->root);
    b->begins[own->number] = true;
    b->at[b->count] = start->at[i];
    b->leaf[b->count++] = own->number;
    return status;
}

static vd_status check_others(const beginning *b, vd_err *err) {
    const vd_program *p = &b->loaded->program;
    const vd_job *job = &b->loaded->job;
    const bool may_lack = job->start.what == VD_START_WEIGHTS || job->start.dir[0];
    for (uint32_t i = 0; i < p->leaf_count; i++)
        if (!b->begins[i] && (!may_lack || !is_kept(&b->own, p->leaf[i].name)))
            return vd_fail(err, VD_ERR_USAGE, "the state to go on from has no tensor %s",
                           p->leaf[i].name);
    return VD_OK;
}

static vd_status match(beginning *b, vd_err *err) {
    const vd_start *start = &b->loaded->start;
    vd_status status = VD_OK;
    b->tensor = calloc((size_t)start->count + 1, sizeof *b->tensor);
    b->leaf = calloc((size_t)start->count + 1, sizeof *b->leaf);
    b->at = calloc((size_t)start->count + 1, sizeof *b->at);
    b->begins = calloc((size_t)b->loaded->program.leaf_count + 1, sizeof *b->begins);
    if (!b->tensor || !b->leaf || !b->at || !b->begins ||
        !list_names(&b->loaded->program, &b->own) || !list_names(&start->program, &b->theirs))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < start->count && status == VD_OK; i++)
        status = take_tensor(b, i, err);
    return status == VD_OK ? check_others(b, err) : status;
}

/* ---- the first step ---- */

static vd_status check_steps(const vd_loaded *loaded, vd_err *err) {
    const vd_job *job = &loaded->job;
    const int64_t first = job->training.first_step, steps = loaded->program.steps;
    if (first >= steps)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: the state is of step %lld, and the program has %lld step%s; "
                       "`first_step: 0` in `weights` does all of them",
                       job->path, (long long)first, (long long)steps, vd_plural((uint64_t)steps));
    if (first > 0 && steps > NUMBERED_STEPS_MAX)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: the program has %lld steps; one that begins at step %lld may have at "
                       "most %d",
                       job->path, (long long)steps, (long long)first, NUMBERED_STEPS_MAX);
    return VD_OK;
}

/* ---- the data ---- */

/* Places the new program's data. from[i] is where tensor i comes from: an index into the `before`
 * old data tensors followed by those that leaves start with. */
static vd_status place(const beginning *b, const uint32_t *from, uint32_t before, vd_err *err) {
    vd_loaded *loaded = b->loaded;
    vd_placed_data *to = &loaded->placed;
    const vd_start *start = &loaded->start;
    const uint32_t count = loaded->program.data_count;
    if (loaded->bare)
        return VD_OK;
    vd_data_place *places = calloc((size_t)count + 1, sizeof *places);
    const void **tensors = calloc((size_t)count + 1, sizeof *tensors);
    for (uint32_t i = 0; places && tensors && i < count; i++) {
        const vd_weight *w = from[i] >= before && start->present
                                 ? &start->file.tensor[b->at[from[i] - before]]
                                 : NULL;
        if (w) {
            places[i] = (vd_data_place){start->file.file[w->file].path, w->at};
            tensors[i] = w->data;
        } else if (from[i] < before) {
            places[i] = to->place[from[i]];
            tensors[i] = to->tensor[from[i]];
        }
    }
    if (!places || !tensors) {
        free(places);
        free(tensors);
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    }
    free(to->place);
    free(to->tensor);
    to->place = places;
    to->tensor = tensors;
    loaded->exec.data = to->tensor;
    return VD_OK;
}

static vd_status begin(beginning *b, vd_err *err) {
    vd_program *p = &b->loaded->program;
    const uint32_t before = p->data_count;
    const vd_beginning how = {b->tensor, b->leaf, b->count, b->loaded->job.training.first_step};
    const uint32_t nodes = p->step.node_count;
    uint32_t *from = calloc((size_t)before + b->count + 1, sizeof *from);
    vd_status status =
        from ? vd_program_begin(p, &how, from, err) : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    b->loaded->start.inserted = p->step.node_count - nodes;
    if (status == VD_OK)
        status = place(b, from, before, err);
    free(from);
    return status;
}

vd_status vd_begin_program(vd_loaded *loaded, vd_err *err) {
    vd_training *t = &loaded->job.training;
    beginning b = {.loaded = loaded};
    if (!loaded->job.start.run[0] && !loaded->job.start.dir[0])
        return VD_OK;
    vd_status status = check_steps(loaded, err);
    if (status == VD_OK)
        status = match(&b, err);
    t->start_bare = b.count < loaded->program.leaf_count;
    if (status == VD_OK)
        status = begin(&b, err);
    vd_names_free(&b.own);
    vd_names_free(&b.theirs);
    free(b.tensor);
    free(b.leaf);
    free(b.at);
    free(b.begins);
    return status;
}
