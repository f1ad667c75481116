/* This file reads what several fields of config.json decide together. */
#include <string.h>

#include "verde/job/config_fields.h"

/* ---- dropout: all rates of the file must be equal ---- */

static vd_status put_rate(const vd_config *c, const char *field, float otherwise, float *rate,
                          vd_err *err) {
    const json_t *value = vd_config_value(c, field);
    const float found = value ? (float)json_number_value(value) : otherwise;
    if (value && (!json_is_number(value) || !(found >= 0 && found < 1)))
        return vd_config_refuse(c, field, "a number, 0 or more, below 1", err);
    if (*rate >= 0 && found != *rate)
        return vd_config_refuse(
            c, field, "the rate of the other dropouts, unless the job sets model.dropout", err);
    *rate = found;
    return VD_OK;
}

static vd_status put_dropout(const vd_config *c, vd_err *err) {
    static const char *const gpt2[] = {"resid_pdrop", "embd_pdrop", "attn_pdrop"};
    static const char *const bert[] = {"hidden_dropout_prob", "attention_probs_dropout_prob",
                                       "classifier_dropout"};
    const char *const *field = c->family == VD_GPT2 ? gpt2 : bert;
    const float standard = 0.1f; /* transformers' default in both families */
    float rate = -1;
    vd_status status = VD_OK;
    c->out->dropout = c->choice->dropout;
    if (!(c->family & (VD_GPT2 | VD_BERT)) || c->choice->dropout >= 0) {
        c->out->dropout = c->choice->dropout >= 0 ? c->choice->dropout : 0;
        return VD_OK;
    }
    for (int i = 0; i < 3 && status == VD_OK; i++)
        status =
            put_rate(c, field[i], i == 2 && c->family == VD_BERT ? rate : standard, &rate, err);
    c->out->dropout = rate;
    return status;
}

/* ---- rotary positions: rope_parameters, or rope_theta and rope_scaling in older files ---- */

static bool put_number(const json_t *of, const char *name, float least, float *out) {
    const json_t *value = json_object_get(of, name);
    *out = (float)json_number_value(value);
    return json_is_number(value) && *out >= least && *out < 0x1p32f;
}

static const char *scaling_type(const json_t *scaling) {
    const json_t *type = json_object_get(scaling, "rope_type");
    if (!type)
        type = json_object_get(scaling, "type");
    return type ? json_string_value(type) : "default";
}

/* Returns whether the object has only members that its kind of scaling allows. */
static bool has_only(const json_t *object, const char *const *allowed) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        int i = 0;
        while (allowed[i] && strcmp(allowed[i], name) != 0)
            i++;
        if (!allowed[i])
            return false;
    }
    return true;
}

static bool put_llama3(const json_t *scaling, vd_rope_scaling *out) {
    static const char *const members[] = {"rope_type",
                                          "type",
                                          "rope_theta",
                                          "factor",
                                          "low_freq_factor",
                                          "high_freq_factor",
                                          "original_max_position_embeddings",
                                          NULL};
    out->kind = VD_ROPE_LLAMA3;
    out->context = json_integer_value(json_object_get(scaling, "original_max_position_embeddings"));
    return has_only(scaling, members) && put_number(scaling, "factor", 1, &out->factor) &&
           put_number(scaling, "low_freq_factor", 0x1p-20f, &out->low) &&
           put_number(scaling, "high_freq_factor", 0x1p-20f, &out->high) && out->low < out->high &&
           out->context >= 1 && out->context < INT64_C(1) << 31;
}

static bool put_linear(const json_t *scaling, vd_rope_scaling *out) {
    static const char *const members[] = {"rope_type", "type", "rope_theta", "factor", NULL};
    out->kind = VD_ROPE_LINEAR;
    return has_only(scaling, members) && put_number(scaling, "factor", 1, &out->factor);
}

static vd_status put_scaling(const vd_config *c, const char *field, vd_err *err) {
    static const char *const members[] = {"rope_type", "type", "rope_theta", NULL};
    const json_t *scaling = vd_config_value(c, field);
    const char *type = scaling_type(scaling);
    vd_rope_scaling *out = &c->out->rope_scaling;
    *out = (vd_rope_scaling){.kind = VD_ROPE_PLAIN};
    if (!scaling)
        return VD_OK;
    if (json_is_object(scaling) && type) {
        if (!strcmp(type, "default") && has_only(scaling, members))
            return VD_OK;
        if (!strcmp(type, "linear") && put_linear(scaling, out))
            return VD_OK;
        if (!strcmp(type, "llama3") && put_llama3(scaling, out))
            return VD_OK;
    }
    return vd_config_refuse(c, field, "of type default, linear or llama3, with its numbers", err);
}

static vd_status put_rope(const vd_config *c, vd_err *err) {
    const json_t *parameters = vd_config_value(c, "rope_parameters");
    const json_t *base =
        parameters ? json_object_get(parameters, "rope_theta") : vd_config_value(c, "rope_theta");
    const json_t *outside = vd_config_value(c, "rope_theta");
    if (!(c->family & VD_LLAMAS))
        return VD_OK;
    if (parameters && (vd_config_value(c, "rope_scaling") ||
                       (outside && json_number_value(outside) != json_number_value(base))))
        return vd_config_refuse(c, "rope_parameters", "alone, without rope_theta and rope_scaling",
                                err);
    c->out->rope_base = base ? (float)json_number_value(base) : 10000;
    if (base && (!json_is_number(base) || !(c->out->rope_base >= 1 && c->out->rope_base < 0x1p32f)))
        return vd_config_refuse(c, parameters ? "rope_parameters" : "rope_theta",
                                "with a rope_theta of 1 or more, below 2^32", err);
    return put_scaling(c, parameters ? "rope_parameters" : "rope_scaling", err);
}

/* ---- windows ---- */

/* Checks that layer_types, if it exists, agrees with the other fields. */
static vd_status check_types(const vd_config *c, vd_err *err) {
    const json_t *types = vd_config_value(c, "layer_types");
    const vd_model *m = c->out;
    if (!types)
        return VD_OK;
    bool good = json_is_array(types) && (int64_t)json_array_size(types) == m->layers;
    for (size_t i = 0; good && i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        const bool window = m->window > 0 && (int64_t)i >= m->window_from;
        good = type && !strcmp(type, window ? "sliding_attention" : "full_attention");
    }
    return good ? VD_OK
                : vd_config_refuse(c, "layer_types",
                                   "full_attention for each layer before max_window_layers, and "
                                   "sliding_attention from there on",
                                   err);
}

static vd_status put_window(const vd_config *c, vd_err *err) {
    const json_t *window = vd_config_value(c, "sliding_window");
    const json_t *used = vd_config_value(c, "use_sliding_window");
    const json_t *from = vd_config_value(c, "max_window_layers");
    vd_model *m = c->out;
    m->window = m->window_from = 0;
    if (!(c->family & VD_LLAMAS))
        return VD_OK;
    if (used && !json_is_boolean(used))
        return vd_config_refuse(c, "use_sliding_window", "true or false", err);
    if (c->family == VD_LLAMA || !window || (c->family & VD_QWEN && !json_is_true(used)))
        return check_types(c, err);
    m->window = json_integer_value(window);
    if (!json_is_integer(window) || m->window < 1 || m->window > INT32_MAX)
        return vd_config_refuse(c, "sliding_window", "a whole number 1..2147483647", err);
    if (c->family & VD_QWEN) {
        m->window_from = from ? json_integer_value(from) : 28; /* transformers' default */
        if ((from && !json_is_integer(from)) || m->window_from < 0)
            return vd_config_refuse(c, "max_window_layers", "a whole number, 0 or more", err);
    }
    return check_types(c, err);
}

/* ---- classes ---- */

static int64_t file_classes(const vd_config *c) {
    const json_t *count = vd_config_value(c, "num_labels");
    const json_t *names = vd_config_value(c, "id2label");
    if (json_is_integer(count))
        return json_integer_value(count);
    return json_is_object(names) ? (int64_t)json_object_size(names) : 2;
}

static bool is_classifier(const vd_config *c) {
    const json_t *names = vd_config_value(c, "architectures");
    const char *name = json_string_value(json_array_get(names, 0));
    return name && strcmp(name, "BertForSequenceClassification") == 0;
}

static vd_status put_classes(const vd_config *c, vd_err *err) {
    const int64_t classes = c->choice->classes ? c->choice->classes : file_classes(c);
    vd_model *m = c->out;
    if (!(c->family & (VD_BERT | VD_RESNET)))
        return VD_OK;
    if (classes < 2 || classes > 65536)
        return vd_config_refuse(c, "id2label", "2..65536 classes", err);
    m->new_head = c->choice->classes > 0;
    if (c->family == VD_RESNET) {
        m->vocab = classes;
        return VD_OK;
    }
    m->task = m->new_head || is_classifier(c) ? VD_TASK_CLASSES : VD_TASK_TOKENS;
    m->classes = m->task == VD_TASK_CLASSES ? classes : 0;
    return VD_OK;
}

/* ---- single families ---- */

static vd_status put_bert(const vd_config *c, vd_err *err) {
    const json_t *pad = vd_config_value(c, "pad_token_id");
    c->out->one_segment = true;
    c->out->pad = c->choice->pad;
    if (c->choice->pad >= 0 || !pad)
        return VD_OK;
    c->out->pad = json_integer_value(pad);
    if (!json_is_integer(pad) || c->out->pad < 0 || c->out->pad >= c->out->vocab)
        return vd_config_refuse(c, "pad_token_id", "a token of the vocabulary", err);
    return VD_OK;
}

/* Mean and deviation of ImageNet's training images, which torchvision trained its models on. */
static const float image_mean[VD_IMAGE_PLANES] = {0.485f, 0.456f, 0.406f};
static const float image_std[VD_IMAGE_PLANES] = {0.229f, 0.224f, 0.225f};

/* Checks the widths: a stage has twice the channels of the one before, and a block's output has
 * four times its inner channels. */
static vd_status put_resnet(const vd_config *c, vd_err *err) {
    const json_t *depths = vd_config_value(c, "depths");
    const json_t *widths = vd_config_value(c, "hidden_sizes");
    vd_model *m = c->out;
    m->large_stem = true;
    memcpy(m->image_mean, image_mean, sizeof image_mean);
    memcpy(m->image_std, image_std, sizeof image_std);
    m->stages = (int64_t)json_array_size(depths);
    if (m->stages < 1 || m->stages > VD_STAGES_MAX)
        return vd_config_refuse(c, "depths", "a list of 1 to 8 numbers", err);
    for (int64_t i = 0; i < m->stages; i++) {
        m->blocks[i] = json_integer_value(json_array_get(depths, (size_t)i));
        if (m->blocks[i] < 1 || m->blocks[i] > 1 << 10)
            return vd_config_refuse(c, "depths", "whole numbers 1..1024", err);
        const int64_t width = json_integer_value(json_array_get(widths, (size_t)i));
        if (width != (4 * m->channels) << i)
            return vd_config_refuse(c, "hidden_sizes",
                                    "4 times embedding_size, doubled by each stage", err);
    }
    return json_array_size(widths) == (size_t)m->stages
               ? VD_OK
               : vd_config_refuse(c, "hidden_sizes", "as many as depths", err);
}

/* Sets properties of a family that no field states. */
static void put_habits(const vd_config *c) {
    vd_model *m = c->out;
    if (c->family & VD_LLAMAS && m->kv_heads == 0)
        m->kv_heads = m->heads;
    m->out_bias = m->qkv_bias; /* attention_bias covers all four products */
    if (c->family == VD_QWEN2)
        m->qkv_bias = true;
    m->qk_norm = c->family == VD_QWEN3;
}

vd_status vd_config_more(const vd_config *c, vd_err *err) {
    put_habits(c);
    vd_status status = put_dropout(c, err);
    if (status == VD_OK)
        status = put_rope(c, err);
    if (status == VD_OK)
        status = put_window(c, err);
    if (status == VD_OK)
        status = put_classes(c, err);
    if (status == VD_OK && c->family == VD_BERT)
        status = put_bert(c, err);
    if (status == VD_OK && c->family == VD_RESNET)
        status = put_resnet(c, err);
    return status;
}
