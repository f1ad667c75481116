/* The parameters and buffers that a model declares, in layout order. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "models/model.h"

void vd_parameters_free(vd_parameters *all) {
    free(all->parameter);
    free(all->buffer);
    free(all->trained);
    *all = (vd_parameters){0};
}

/* Refuses targets of LoRA that name no layer. */
static vd_status check_targets(const vd_parameters *all, vd_err *err) {
    for (int64_t i = 0; i < all->lora->target_count; i++)
        if (!(all->matched >> i & 1))
            return vd_fail(err, VD_ERR_USAGE, "lora: the model has no product named %s; it has %s",
                           all->lora->target[i], all->products);
    return VD_OK;
}

/* Lists the trained parameters; with adapters only theirs. */
static vd_status choose_trained(vd_parameters *all, vd_err *err) {
    all->trained = calloc((size_t)all->count + 1, sizeof *all->trained);
    if (!all->trained)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < all->count; i++) {
        vd_parameter *p = &all->parameter[i];
        p->frozen = all->lora->rank > 0 && p->role != VD_ROLE_LORA_A && p->role != VD_ROLE_LORA_B;
        if (!p->frozen)
            all->trained[all->trained_count++] = i;
    }
    return VD_OK;
}

vd_status vd_freeze_all(vd_parameters *all, vd_err *err) {
    const uint32_t count = all->count + all->buffer_count;
    vd_parameter *grown = realloc(all->parameter, ((size_t)count + 1) * sizeof *grown);
    if (!grown)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    all->parameter = grown;
    if (all->buffer_count)
        memcpy(grown + all->count, all->buffer, all->buffer_count * sizeof *grown);
    all->count = all->capacity = count;
    all->buffer_count = 0;
    for (uint32_t i = 0; i < all->count; i++)
        all->parameter[i].frozen = true;
    all->trained_count = 0;
    return VD_OK;
}

vd_status vd_parameters_of(const vd_model *model, vd_parameters *out, vd_err *err) {
    *out = (vd_parameters){.lora = &model->lora};
    vd_type_of(model)->declare(model, out);
    out->taken = out->count;
    vd_status status = out->failed ? vd_fail(err, VD_ERR_LOCAL, "out of memory") : VD_OK;
    if (status == VD_OK && model->lora.rank > 0)
        status = check_targets(out, err);
    if (status == VD_OK)
        status = choose_trained(out, err);
    if (status != VD_OK)
        vd_parameters_free(out);
    return status;
}

void vd_declare_scope(vd_parameters *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(out->scope, sizeof out->scope, format, args);
    va_end(args);
}

void vd_file_scope(vd_parameters *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(out->file_scope, sizeof out->file_scope, format, args);
    va_end(args);
}

/* Returns a zeroed entry at the end of a list, or NULL. */
static vd_parameter *append(vd_parameters *out, vd_parameter **list, uint32_t *count,
                            uint32_t *capacity) {
    if (*count == *capacity) {
        const uint32_t wanted = *capacity ? 2 * *capacity : 64;
        vd_parameter *grown = realloc(*list, wanted * sizeof *grown);
        if (!grown) {
            out->failed = true;
            return NULL;
        }
        *list = grown;
        *capacity = wanted;
    }
    memset(&(*list)[*count], 0, sizeof **list);
    return &(*list)[(*count)++];
}

/* Sets a parameter's names, which come from the models' own code and all fit these limits. */
static void set_names(const vd_parameters *out, vd_parameter *p, const char *name,
                      const char *tensor) {
    snprintf(p->name, sizeof p->name, "%.40s%.20s", out->scope, name);
    if (tensor)
        snprintf(p->tensor, sizeof p->tensor, "%s%.60s", out->file_scope, tensor);
}

void vd_declare(vd_parameters *out, const char *name, const char *tensor, vd_parameter like) {
    vd_parameter *p = append(out, &out->parameter, &out->count, &out->capacity);
    if (!p)
        return;
    *p = like;
    set_names(out, p, name, tensor);
}

void vd_declare_buffer(vd_parameters *out, const char *name, const char *tensor,
                       vd_parameter like) {
    vd_parameter *p = append(out, &out->buffer, &out->buffer_count, &out->buffer_capacity);
    if (!p)
        return;
    *p = like;
    set_names(out, p, name, tensor);
}

/* Declares a part of a layer: NAME.PART, in files TENSOR.PART. */
static void declare_part(vd_parameters *out, const char *name, const char *part, const char *tensor,
                         const char *tensor_part, vd_parameter like) {
    char leaf[VD_NAME_SIZE], file[VD_NAME_SIZE];
    snprintf(leaf, sizeof leaf, "%s.%s", name, part);
    if (tensor)
        snprintf(file, sizeof file, "%s.%s", tensor, tensor_part);
    vd_declare(out, leaf, tensor ? file : NULL, like);
}

void vd_declare_table(vd_parameters *out, const char *name, const char *tensor, int64_t rows,
                      int64_t width) {
    vd_declare(out, name, tensor,
               (vd_parameter){.shape = VD_SHAPE(RO_F32, rows, width), .deviation = 0.02f});
}

/* ---- products ---- */

/* Adds a product's name to the list once, although each layer has one of this name. */
static void list_product(vd_parameters *out, const char *name) {
    const size_t size = strlen(out->products), length = strlen(name);
    for (const char *at = out->products; (at = strstr(at, name)); at += length)
        if ((at == out->products || at[-1] == ' ') && (at[length] == ',' || at[length] == 0))
            return;
    snprintf(out->products + size, sizeof out->products - size, "%s%s", size ? ", " : "", name);
}

static bool is_target(vd_parameters *out, const char *name) {
    bool found = false;
    list_product(out, name);
    for (int64_t i = 0; i < out->lora->target_count; i++)
        if (strcmp(out->lora->target[i], name) == 0) {
            out->matched |= UINT32_C(1) << i;
            found = true;
        }
    return found;
}

static double root(double n) {
    double r = n > 1 ? n : 1;
    for (int i = 0; i < 64; i++)
        r = 0.5 * (r + n / r);
    return r;
}

float vd_he_deviation(int64_t fan_in) {
    return (float)root(2.0 / (double)fan_in);
}

/* Declares an adapter. A has the variance of PEFT's initial values, which are uniform between -1
 * and 1 times 1 / sqrt(in). PEFT names adapters after the product's tensor; its files put
 * "base_model.model." before. */
static void declare_adapter(vd_parameters *out, const char *name, const char *tensor,
                            vd_linear_shape s) {
    const int64_t rank = out->lora->rank;
    declare_part(out, name, "lora_a", tensor, "lora_A.weight",
                 (vd_parameter){.shape = VD_SHAPE(RO_F32, rank, s.in),
                                .deviation = (float)root(1.0 / (3.0 * (double)s.in)),
                                .role = VD_ROLE_LORA_A});
    declare_part(out, name, "lora_b", tensor, "lora_B.weight",
                 (vd_parameter){.shape = VD_SHAPE(RO_F32, s.out, rank), .role = VD_ROLE_LORA_B});
}

void vd_declare_linear(vd_parameters *out, const char *name, const char *tensor,
                       vd_linear_shape s) {
    declare_part(out, name, "weight", tensor, "weight",
                 (vd_parameter){.shape = s.by_input ? VD_SHAPE(RO_F32, s.in, s.out)
                                                    : VD_SHAPE(RO_F32, s.out, s.in),
                                .deviation = s.deviation,
                                .may_lack = s.may_lack,
                                .role = s.by_input ? VD_ROLE_WEIGHT_BY_INPUT : VD_ROLE_WEIGHT});
    if (s.bias)
        declare_part(out, name, "bias", tensor, "bias",
                     (vd_parameter){.shape = VD_SHAPE(RO_F32, s.out),
                                    .may_lack = s.may_lack,
                                    .role = VD_ROLE_BIAS});
    if (out->lora->rank > 0 && is_target(out, name))
        declare_adapter(out, name, tensor, s);
}

/* ---- norms ---- */

void vd_declare_gain(vd_parameters *out, const char *name, const char *tensor, int64_t width) {
    declare_part(out, name, "gamma", tensor, "weight",
                 (vd_parameter){.shape = VD_SHAPE(RO_F32, width), .value = 1});
}

void vd_declare_norm(vd_parameters *out, const char *name, const char *tensor, int64_t width) {
    vd_declare_gain(out, name, tensor, width);
    declare_part(out, name, "beta", tensor, "bias",
                 (vd_parameter){.shape = VD_SHAPE(RO_F32, width)});
}
