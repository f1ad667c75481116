/* This file reads a model's config.json field by field, and refuses unknown fields. */
#include "verde/job/config.h"

#include <stdlib.h>
#include <string.h>

#include "verde/job/config_fields.h"

vd_status vd_config_refuse(const vd_config *c, const char *field, const char *expected,
                           vd_err *err) {
    const json_t *value = json_object_get(c->root, field);
    char *text =
        value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    const vd_status status = vd_fail(err, VD_ERR_USAGE, "%s: %s must be %s, got %.80s", c->name,
                                     field, expected, text ? text : "none");
    free(text);
    return status;
}

const json_t *vd_config_value(const vd_config *c, const char *field) {
    const json_t *value = json_object_get(c->root, field);
    return json_is_null(value) ? NULL : value;
}

/* ---- one field ---- */

static vd_status put_size(const vd_config *c, const vd_config_field *f, const json_t *value,
                          vd_err *err) {
    int64_t size = f->otherwise;
    char expected[64];
    if (value) {
        size = json_integer_value(value);
        snprintf(expected, sizeof expected, "a whole number %lld..%lld", (long long)f->least,
                 (long long)f->most);
        if (!json_is_integer(value) || size < f->least || size > f->most)
            return vd_config_refuse(c, f->name, expected, err);
    }
    memcpy((char *)c->out + f->offset, &size, sizeof size);
    return VD_OK;
}

static vd_status put_real(const vd_config *c, const vd_config_field *f, const json_t *value,
                          vd_err *err) {
    const float number = value ? (float)json_number_value(value) : f->real;
    if (value && (!json_is_number(value) || !(number > 0 && number <= 1)))
        return vd_config_refuse(c, f->name, "a number above 0, up to 1", err);
    memcpy((char *)c->out + f->offset, &number, sizeof number);
    return VD_OK;
}

static vd_status put_flag(const vd_config *c, const vd_config_field *f, const json_t *value,
                          vd_err *err) {
    const bool flag = json_is_true(value);
    if (value && !json_is_boolean(value))
        return vd_config_refuse(c, f->name, "true or false", err);
    memcpy((char *)c->out + f->offset, &flag, sizeof flag);
    return VD_OK;
}

static vd_status put_activation(const vd_config *c, const vd_config_field *f, const json_t *value,
                                vd_err *err) {
    static const struct {
        const char *name;
        vd_activation activation;
    } known[] = {
        {"gelu_new", VD_ACTIVATION_GELU_TANH}, {"gelu_pytorch_tanh", VD_ACTIVATION_GELU_TANH},
        {"gelu", VD_ACTIVATION_GELU_ERF},      {"relu", VD_ACTIVATION_RELU},
        {"silu", VD_ACTIVATION_SILU},          {"swish", VD_ACTIVATION_SILU}};
    const char *name = value ? json_string_value(value) : f->text;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (name && !strcmp(name, known[i].name)) {
            memcpy((char *)c->out + f->offset, &known[i].activation, sizeof known[i].activation);
            return VD_OK;
        }
    return vd_config_refuse(c, f->name, "gelu_new, gelu_pytorch_tanh, gelu, relu, silu or swish",
                            err);
}

static bool is_text(const json_t *value, const char *text) {
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

static bool is_number(const json_t *value, double number) {
    return json_is_number(value) && json_number_value(value) == number;
}

static bool is_empty(const json_t *value) {
    return (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

static vd_status put_same(const vd_config *c, const vd_config_field *f, const json_t *value,
                          vd_err *err) {
    char expected[64];
    snprintf(expected, sizeof expected, "equal to %s", f->text);
    return !value || json_equal(value, vd_config_value(c, f->text))
               ? VD_OK
               : vd_config_refuse(c, f->name, expected, err);
}

static vd_status put_field(const vd_config *c, const vd_config_field *f, const json_t *value,
                           vd_err *err) {
    bool good = true;
    const char *expected = "";
    switch (f->rule) {
    case VD_CONFIG_IGNORED: break;
    case VD_CONFIG_SIZE: return put_size(c, f, value, err);
    case VD_CONFIG_REAL: return put_real(c, f, value, err);
    case VD_CONFIG_FLAG: return put_flag(c, f, value, err);
    case VD_CONFIG_ACTIVATION: return put_activation(c, f, value, err);
    case VD_CONFIG_TRUE: good = !value || json_is_true(value), expected = "true"; break;
    case VD_CONFIG_FALSE: good = !value || json_is_false(value), expected = "false"; break;
    case VD_CONFIG_SAME: return put_same(c, f, value, err);
    case VD_CONFIG_ZERO: good = !value || is_number(value, 0), expected = "0"; break;
    case VD_CONFIG_ONE: good = !value || is_number(value, 1), expected = "1"; break;
    case VD_CONFIG_THREE: good = !value || is_number(value, 3), expected = "3"; break;
    case VD_CONFIG_EMPTY: good = !value || is_empty(value), expected = "empty"; break;
    case VD_CONFIG_TEXT: good = !value || is_text(value, f->text), expected = f->text; break;
    }
    return good ? VD_OK : vd_config_refuse(c, f->name, expected, err);
}

/* ---- all fields ---- */

static const vd_config_field *const tables[] = {vd_config_fields, vd_config_unused, NULL};

static bool is_known(const vd_config *c, const char *name) {
    for (const vd_config_field *const *table = tables; *table; table++)
        for (const vd_config_field *f = *table; f->name; f++)
            if (f->families & c->family && strcmp(f->name, name) == 0)
                return true;
    return false;
}

/* Refuses unknown fields, except those that are null. */
static vd_status check_known(const vd_config *c, vd_err *err) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)c->root, name, value) {
        if (!json_is_null(value) && !is_known(c, name))
            return vd_fail(err, VD_ERR_USAGE,
                           "%s: %.80s is no field whose meaning for this family is known", c->name,
                           name);
    }
    return VD_OK;
}

static vd_status put_table(const vd_config *c, const vd_config_field *table, vd_err *err) {
    vd_status status = VD_OK;
    for (const vd_config_field *f = table; f->name && status == VD_OK; f++) {
        const json_t *value = vd_config_value(c, f->name);
        if (!(f->families & c->family))
            continue;
        if (!value && f->needed & c->family)
            status = vd_fail(err, VD_ERR_USAGE, "%s: %s is missing", c->name, f->name);
        else
            status = put_field(c, f, value, err);
    }
    return status;
}

static vd_status put_fields(const vd_config *c, vd_err *err) {
    vd_status status = check_known(c, err);
    for (const vd_config_field *const *table = tables; *table && status == VD_OK; table++)
        status = put_table(c, *table, err);
    return status == VD_OK ? vd_config_more(c, err) : status;
}

static vd_status choose_family(vd_config *c, vd_err *err) {
    static const struct {
        const char *name;
        int family;
        vd_model_kind kind;
    } known[] = {{"gpt2", VD_GPT2, VD_MODEL_GPT2},        {"llama", VD_LLAMA, VD_MODEL_LLAMA},
                 {"mistral", VD_MISTRAL, VD_MODEL_LLAMA}, {"qwen2", VD_QWEN2, VD_MODEL_LLAMA},
                 {"qwen3", VD_QWEN3, VD_MODEL_LLAMA},     {"bert", VD_BERT, VD_MODEL_BERT},
                 {"resnet", VD_RESNET, VD_MODEL_RESNET}};
    const json_t *type = json_object_get(c->root, "model_type");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (is_text(type, known[i].name)) {
            c->family = known[i].family;
            c->out->kind = known[i].kind;
            return VD_OK;
        }
    return vd_config_refuse(c, "model_type", "gpt2, llama, mistral, qwen2, qwen3, bert or resnet",
                            err);
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

vd_status vd_config_parse(const void *text, size_t size, const char *name, json_t **root,
                          vd_err *err) {
    const char *bytes = text;
    vd_err inner = {0};
    while (size > 0 && is_space(bytes[size - 1]))
        size--;
    for (; size > 0 && is_space(*bytes); bytes++)
        size--;
    const vd_status status = vd_json_read(bytes, size, VD_CONFIG_ELEMENTS_MAX, root, &inner);
    return status == VD_OK ? VD_OK
                           : vd_fail(err, status == VD_ERR_PEER ? VD_ERR_USAGE : status, "%s: %s",
                                     name, inner.text);
}

vd_status vd_config_read(const void *text, size_t size, const char *name,
                         const vd_config_choice *choice, vd_model *out, vd_err *err) {
    json_t *root = NULL;
    vd_status status = vd_config_parse(text, size, name, &root, err);
    if (status != VD_OK)
        return status;
    vd_config c = {.root = root, .name = name, .choice = choice, .out = out};
    status = choose_family(&c, err);
    if (status == VD_OK)
        status = put_fields(&c, err);
    json_decref(root);
    return status;
}
