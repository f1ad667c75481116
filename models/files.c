/* Finds the tensors of files that parameters come from, by the names that transformers and
 * torchvision give them. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "repops/op_movement.h"
#include "models/model.h"

/* ---- finding ---- */

typedef struct {
    const vd_training *t;
    const vd_model_type *type;
    bool bare; /* the files hold the bare model: their names lack the model type's `base` */
    bool *used;
    uint32_t data_count;
} tensor_search;

static bool begins_with(const char *name, const char *beginning) {
    return strncmp(name, beginning, strlen(beginning)) == 0;
}

static bool is_bare(const vd_training *t, const char *base) {
    for (uint32_t i = 0; base && i < t->file_count; i++)
        if (begins_with(t->file[i].name, base))
            return false;
    return base != NULL;
}

static int64_t tensor_named(const vd_training *t, const char *name) {
    for (uint32_t i = 0; i < t->file_count; i++)
        if (strcmp(t->file[i].name, name) == 0)
            return i;
    return -1;
}

/* Finds a tensor by an older name: BERT's files once had gamma and beta for weight and bias. */
static int64_t tensor_once_named(const vd_training *t, const char *name) {
    static const char *const parts[][2] = {{"LayerNorm.weight", "LayerNorm.gamma"},
                                           {"LayerNorm.bias", "LayerNorm.beta"}};
    const size_t length = strlen(name);
    for (int i = 0; i < 2; i++) {
        const size_t part = strlen(parts[i][0]);
        char older[VD_TENSOR_NAME_SIZE];
        if (length < part || strcmp(name + length - part, parts[i][0]) != 0)
            continue;
        snprintf(older, sizeof older, "%.*s%s", (int)(length - part), name, parts[i][1]);
        return tensor_named(t, older);
    }
    return -1;
}

static int64_t tensor_of(const tensor_search *s, const vd_parameter *p) {
    const char *name = p->tensor;
    if (s->bare && begins_with(name, s->type->base))
        name += strlen(s->type->base);
    const int64_t found = tensor_named(s->t, name);
    return found >= 0 ? found : tensor_once_named(s->t, name);
}

/* ---- the tensor that is found must fit ---- */

void vd_shape_text(const ro_shape *shape, char text[VD_SHAPE_TEXT]) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < shape->ndim && used < VD_SHAPE_TEXT - 6; i++)
        used += (size_t)snprintf(text + used, VD_SHAPE_TEXT - used, "%s%lld", i ? "," : "",
                                 (long long)shape->dim[i]);
}

/* Returns the shape of the tensor in the file. */
static ro_shape file_shape(const vd_parameter *p) {
    ro_shape shape = p->shape;
    if (p->layout == VD_FILE_CONVOLUTION)
        shape = VD_SHAPE(RO_F32, shape.dim[3], shape.dim[2], shape.dim[0], shape.dim[1]);
    return shape;
}

static vd_status check_tensor(const vd_parameter *p, const vd_file_tensor *have, vd_err *err) {
    ro_shape wanted = file_shape(p);
    char is[VD_SHAPE_TEXT], must[VD_SHAPE_TEXT];
    if (have->shape.dtype != RO_F32 && have->shape.dtype != RO_BF16 && have->shape.dtype != RO_F16)
        return vd_fail(err, VD_ERR_USAGE, "%s: its numbers must be F32, BF16 or F16", have->name);
    wanted.dtype = have->shape.dtype;
    if (ro_shape_equal(&wanted, &have->shape))
        return VD_OK;
    vd_shape_text(&have->shape, is);
    vd_shape_text(&wanted, must);
    return vd_fail(err, VD_ERR_USAGE, "%s: its shape is [%s], expected [%s]", have->name, is, must);
}

/* Refuses files that lack a frozen parameter: it would stay random, as it is not trained. */
static vd_status check_lacking(const tensor_search *s, const vd_parameter *p, vd_err *err) {
    if (!p->frozen || s->t->evaluates || vd_in_start(s->t, p))
        return VD_OK;
    return vd_fail(err, VD_ERR_USAGE,
                   "lora: the files have no %s, and adapters alone are trained: without `lora`, it "
                   "is trained from random numbers",
                   p->name);
}

static vd_status find_one(tensor_search *s, vd_parameter *p, vd_err *err) {
    if (p->role == VD_ROLE_LORA_A || p->role == VD_ROLE_LORA_B)
        return VD_OK;
    const int64_t at = p->tensor[0] ? tensor_of(s, p) : -1;
    if (at < 0 && (!p->tensor[0] || p->may_lack))
        return check_lacking(s, p, err);
    if (at < 0)
        return vd_fail(err, VD_ERR_USAGE, "the files have no tensor %s", p->tensor);
    if (s->used[at])
        return vd_fail(err, VD_ERR_USAGE, "%s: two parameters have this name", p->tensor);
    if (strlen(s->t->file[at].name) >= VD_NAME_SIZE)
        return vd_fail(err, VD_ERR_USAGE, "%s: name longer than %d", s->t->file[at].name,
                       VD_NAME_SIZE - 1);
    s->used[at] = true;
    if (!s->t->start || (p->frozen && !vd_in_start(s->t, p)))
        p->data = ++s->data_count;
    return check_tensor(p, &s->t->file[at], err);
}

/* ---- the remaining tensors must be known ---- */

static bool matches(const char *name, const char *const *pattern) {
    for (; pattern && *pattern; pattern++)
        if (fnmatch(*pattern, name, 0) == 0)
            return true;
    return false;
}

static bool is_left_out(const tensor_search *s, const char *name) {
    return matches(name, s->type->left_out[s->t->model.task]);
}

/* Returns the index of a parameter's tensor by that name; -1 if the model or the files lack it. */
static int64_t tensor_of_parameter(const tensor_search *s, const vd_parameters *all,
                                   const char *tensor) {
    for (uint32_t i = 0; i < all->count; i++)
        if (strcmp(all->parameter[i].tensor, tensor) == 0)
            return tensor_of(s, &all->parameter[i]);
    return -1;
}

static bool is_same(const vd_file_tensor *a, const vd_file_tensor *b) {
    return ro_shape_equal(&a->shape, &b->shape) && memcmp(a->root, b->root, sizeof a->root) == 0;
}

/* Refuses a copy that differs from its parameter, since transformers would use both. */
static vd_status check_copy(const tensor_search *s, const vd_parameters *all,
                            const vd_file_copy *copy, const vd_file_tensor *have, vd_err *err) {
    const int64_t of = tensor_of_parameter(s, all, copy->of);
    if (of < 0 || is_same(have, &s->t->file[of]))
        return VD_OK;
    return vd_fail(err, VD_ERR_USAGE,
                   "%s: its numbers are not those of %s, but by config.json (tie_word_embeddings) "
                   "the two are one tensor",
                   have->name, s->t->file[of].name);
}

static const vd_file_copy *copy_named(const tensor_search *s, const char *name) {
    for (const vd_file_copy *copy = s->type->copies; copy && copy->tensor; copy++)
        if (strcmp(copy->tensor, name) == 0)
            return copy;
    return NULL;
}

static vd_status check_unused(const tensor_search *s, const vd_parameters *all,
                              const vd_file_tensor *have, vd_err *err) {
    const vd_file_copy *copy = copy_named(s, have->name);
    if (matches(have->name, s->type->buffers) || is_left_out(s, have->name))
        return VD_OK;
    return copy ? check_copy(s, all, copy, have, err)
                : vd_fail(err, VD_ERR_USAGE, "%s: the model has no such tensor", have->name);
}

static vd_status check_rest(const tensor_search *s, const vd_parameters *all, vd_err *err) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < s->t->file_count && status == VD_OK; i++) {
        const char *name = s->t->file[i].name;
        if (tensor_named(s->t, name) != i)
            return vd_fail(err, VD_ERR_USAGE, "%s: the files have this tensor twice", name);
        if (!s->used[i])
            status = check_unused(s, all, &s->t->file[i], err);
    }
    return status;
}

static vd_status find_all(tensor_search *s, vd_parameters *all, vd_err *err) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < all->count && status == VD_OK; i++)
        status = find_one(s, &all->parameter[i], err);
    for (uint32_t i = 0; i < all->buffer_count && status == VD_OK; i++)
        status = find_one(s, &all->buffer[i], err);
    return status == VD_OK ? check_rest(s, all, err) : status;
}

static tensor_search search_of(const vd_training *t) {
    tensor_search s = {.t = t, .type = vd_type_of(&t->model)};
    s.bare = is_bare(t, s.type->base);
    return s;
}

vd_status vd_find_tensors(const vd_training *t, vd_parameters *all, vd_err *err) {
    tensor_search s = search_of(t);
    s.used = calloc((size_t)t->file_count + 1, sizeof *s.used);
    if (!s.used)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    const vd_status status = find_all(&s, all, err);
    free(s.used);
    return status;
}

/* ---- tensors of files as data tensors of the program ---- */

static void count_data(const vd_parameter *p, uint32_t count, uint32_t *most) {
    for (uint32_t i = 0; i < count; i++)
        if (p[i].data > *most)
            *most = p[i].data;
}

uint32_t vd_data_count(const vd_parameters *all) {
    uint32_t last = 0;
    count_data(all->parameter, all->count, &last);
    count_data(all->buffer, all->buffer_count, &last);
    return 1 + last;
}

static void put_all(const tensor_search *s, const vd_parameter *p, uint32_t count,
                    vd_program *out) {
    for (uint32_t i = 0; i < count; i++) {
        const int64_t at = p[i].data ? tensor_of(s, &p[i]) : -1;
        if (at < 0)
            continue;
        const vd_file_tensor *from = &s->t->file[at];
        vd_data *to = &out->data[p[i].data];
        snprintf(to->tensor.name, sizeof to->tensor.name, "%s", from->name);
        to->tensor.shape = from->shape;
        memcpy(to->root, from->root, sizeof to->root);
    }
}

void vd_put_tensors(const vd_training *t, const vd_parameters *all, vd_program *out) {
    const tensor_search s = search_of(t);
    put_all(&s, all->parameter, all->count, out);
    put_all(&s, all->buffer, all->buffer_count, out);
}

vd_value vd_from_tensor(vd_builder *b, const vd_parameter *p) {
    vd_value x = vd_data_value(b, p->data);
    const bool narrow = vd_shape_of(b, x)->dtype != RO_F32;
    if (narrow)
        x = VD_EMIT(b, p->name, ((vd_op){RO_OP_CAST, {[RO_CAST_DTYPE] = RO_F32}, NULL}), x);
    if (p->layout == VD_FILE_CONVOLUTION)
        return VD_EMIT(b, p->name,
                       ((vd_op){RO_OP_TRANSPOSE,
                                {[RO_TRANSPOSE_D0] = 2,
                                 [RO_TRANSPOSE_D1] = 3,
                                 [RO_TRANSPOSE_D2] = 1,
                                 [RO_TRANSPOSE_D3] = 0},
                                NULL}),
                       x);
    return narrow ? x : VD_EMIT(b, p->name, ((vd_op){.op = RO_OP_RESHAPE, .shape = &p->shape}), x);
}

static void mark_used(const tensor_search *s, const vd_parameter *p, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const int64_t at = p[i].tensor[0] ? tensor_of(s, &p[i]) : -1;
        if (at >= 0)
            s->used[at] = true;
    }
}

vd_status vd_training_left_out(const vd_training *t, const char ***out, uint32_t *count,
                               vd_err *err) {
    vd_parameters all = {0};
    tensor_search s = search_of(t);
    *count = 0;
    *out = calloc((size_t)t->file_count + 1, sizeof **out);
    s.used = calloc((size_t)t->file_count + 1, sizeof *s.used);
    vd_status status = *out && s.used ? vd_parameters_of(&t->model, &all, err)
                                      : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK) {
        mark_used(&s, all.parameter, all.count);
        mark_used(&s, all.buffer, all.buffer_count);
        for (uint32_t i = 0; i < t->file_count; i++)
            if (!s.used[i] && is_left_out(&s, t->file[i].name))
                (*out)[(*count)++] = t->file[i].name;
    }
    vd_parameters_free(&all);
    free(s.used);
    return status;
}

/* ---- names of leaves and tensors, for code that writes files ---- */

static void put_name(const vd_parameter *p, vd_file_name *out) {
    const bool adapter = p->role == VD_ROLE_LORA_A || p->role == VD_ROLE_LORA_B;
    snprintf(out->leaf, sizeof out->leaf, "%s", p->name);
    snprintf(out->tensor, sizeof out->tensor, "%s%.100s", adapter ? "base_model.model." : "",
             p->tensor);
    out->layout = p->layout;
}

static vd_status put_names(const vd_parameters *all, vd_file_name **out, uint32_t *count,
                           vd_err *err) {
    *count = all->trained_count + all->buffer_count;
    *out = calloc((size_t)*count + 1, sizeof **out);
    if (!*out)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < *count; i++)
        put_name(i < all->trained_count ? &all->parameter[all->trained[i]]
                                        : &all->buffer[i - all->trained_count],
                 &(*out)[i]);
    return VD_OK;
}

vd_status vd_training_names(const vd_training *t, vd_file_name **out, uint32_t *count,
                            vd_err *err) {
    vd_parameters all = {0};
    *out = NULL;
    if (!vd_type_of(&t->model) || t->model.kind == VD_MODEL_MLP)
        return vd_fail(err, VD_ERR_USAGE, "a model of this kind has no form for files");
    vd_status status = vd_parameters_of(&t->model, &all, err);
    if (status != VD_OK)
        return status;
    status = put_names(&all, out, count, err);
    vd_parameters_free(&all);
    return status;
}
