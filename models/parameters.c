/* What a model declares: its parameters and buffers, in layout order. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "models/model.h"

void vd_parameters_free(vd_parameters *all) {
    free(all->parameter);
    free(all->buffer);
    *all = (vd_parameters){0};
}

/* Targets that no layer answered to. */
static vd_status check_targets(const vd_parameters *all, vd_err *err) {
    for (int64_t i = 0; i < all->lora->target_count; i++)
        if (!(all->matched >> i & 1))
            return vd_fail(err, VD_ERR_USAGE, "lora: the model has no product named %s",
                           all->lora->target[i]);
    return VD_OK;
}

vd_status vd_parameters_of(const vd_model *model, vd_parameters *out, vd_err *err) {
    *out = (vd_parameters){.lora = &model->lora};
    vd_type_of(model)->declare(model, out);
    vd_status status = out->failed ? vd_fail(err, VD_ERR_LOCAL, "out of memory") : VD_OK;
    if (status == VD_OK && model->lora.rank > 0)
        status = check_targets(out, err);
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

/* A zeroed place at the end of a list, or NULL. */
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

/* Names are those of the models' own code, all shorter than this. */
static void set_name(const vd_parameters *out, vd_parameter *p, const char *name) {
    snprintf(p->name, sizeof p->name, "%.40s%.20s", out->scope, name);
}

static void declare(vd_parameters *out, const char *name, const vd_parameter *like) {
    vd_parameter *p = append(out, &out->parameter, &out->count, &out->capacity);
    if (!p)
        return;
    *p = *like;
    set_name(out, p, name);
}

void vd_declare(vd_parameters *out, const char *name, ro_shape shape, float deviation,
                float value) {
    declare(out, name, &(vd_parameter){.shape = shape, .deviation = deviation, .value = value});
}

void vd_declare_buffer(vd_parameters *out, const char *name, ro_shape shape, float value) {
    vd_parameter *p = append(out, &out->buffer, &out->buffer_count, &out->buffer_capacity);
    if (!p)
        return;
    p->shape = shape;
    p->value = value;
    set_name(out, p, name);
}

/* ---- products ---- */

static bool is_target(vd_parameters *out, const char *name) {
    bool found = false;
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

/* A has the variance of PEFT's start, which is uniform between -1 and 1 times 1 / sqrt(in). */
static void declare_adapter(vd_parameters *out, const char *name, vd_linear_shape s) {
    const int64_t rank = out->lora->rank;
    char part[VD_NAME_SIZE];
    snprintf(part, sizeof part, "%s.lora_a", name);
    declare(out, part,
            &(vd_parameter){.shape = VD_SHAPE(RO_F32, rank, s.in),
                            .deviation = (float)root(1.0 / (3.0 * (double)s.in)),
                            .role = VD_ROLE_LORA_A});
    snprintf(part, sizeof part, "%s.lora_b", name);
    declare(out, part,
            &(vd_parameter){.shape = VD_SHAPE(RO_F32, s.out, rank), .role = VD_ROLE_LORA_B});
}

void vd_declare_linear(vd_parameters *out, const char *name, vd_linear_shape s) {
    char part[VD_NAME_SIZE];
    snprintf(part, sizeof part, "%s.weight", name);
    declare(out, part,
            &(vd_parameter){.shape = s.by_input ? VD_SHAPE(RO_F32, s.in, s.out)
                                                : VD_SHAPE(RO_F32, s.out, s.in),
                            .deviation = s.deviation,
                            .role = s.by_input ? VD_ROLE_WEIGHT_BY_INPUT : VD_ROLE_WEIGHT});
    snprintf(part, sizeof part, "%s.bias", name);
    if (s.bias)
        declare(out, part, &(vd_parameter){.shape = VD_SHAPE(RO_F32, s.out), .role = VD_ROLE_BIAS});
    if (out->lora->rank > 0 && is_target(out, name))
        declare_adapter(out, name, s);
}

/* ---- norms ---- */

void vd_declare_gain(vd_parameters *out, const char *name, int64_t width) {
    char part[VD_NAME_SIZE];
    snprintf(part, sizeof part, "%s.gamma", name);
    vd_declare(out, part, VD_SHAPE(RO_F32, width), 0, 1);
}

void vd_declare_norm(vd_parameters *out, const char *name, int64_t width) {
    char part[VD_NAME_SIZE];
    snprintf(part, sizeof part, "%s.beta", name);
    vd_declare_gain(out, name, width);
    vd_declare(out, part, VD_SHAPE(RO_F32, width), 0, 0);
}
