/* This file writes config.json of a model, and adapter_config.json of adapters. */
#include "verde/job/config_write.h"

#include <stdlib.h>
#include <string.h>

#include "verde/job/config_fields.h"

bool vd_config_can_write(const vd_model *m) {
    if (m->lora.rank > 0)
        return false;
    if (m->kind == VD_MODEL_GPT2)
        return true;
    return m->kind == VD_MODEL_LLAMA && !m->window && !m->qk_norm && m->qkv_bias == m->out_bias &&
           m->rope_scaling.kind == VD_ROPE_PLAIN;
}

/* Makes the double with the shortest decimal that reads back as this float: 1e-05 for 1e-5f. */
static json_t *shortest(float value) {
    enum { DIGITS_MAX = 9 };
    char text[32];
    for (int digits = 1; digits <= DIGITS_MAX; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    return json_real(strtod(text, NULL));
}

static const char *function_of(const vd_model *m) {
    switch (m->activation) {
    case VD_ACTIVATION_GELU_TANH: return "gelu_new";
    case VD_ACTIVATION_GELU_ERF: return "gelu";
    case VD_ACTIVATION_RELU: return "relu";
    case VD_ACTIVATION_SILU: return "silu";
    default: return m->kind == VD_MODEL_LLAMA ? "silu" : "gelu_new";
    }
}

static json_t *norm_eps(const vd_model *m) {
    return shortest(m->norm_eps > 0 ? m->norm_eps : 1e-5f);
}

static json_t *size(int64_t value) {
    return value > 0 ? json_integer(value) : json_null();
}

static json_t *gpt2_config(const vd_model *m) {
    return json_pack("{s[s] ss sI sI sI sI sI so ss so so so so sb sn sn}", "architectures",
                     "GPT2LMHeadModel", "model_type", "gpt2", "vocab_size", (json_int_t)m->vocab,
                     "n_positions", (json_int_t)m->context, "n_embd", (json_int_t)m->channels,
                     "n_layer", (json_int_t)m->layers, "n_head", (json_int_t)m->heads, "n_inner",
                     size(m->hidden), "activation_function", function_of(m), "layer_norm_epsilon",
                     norm_eps(m), "attn_pdrop", shortest(m->dropout), "embd_pdrop",
                     shortest(m->dropout), "resid_pdrop", shortest(m->dropout),
                     "tie_word_embeddings", 1, "bos_token_id", "eos_token_id");
}

static json_t *llama_config(const vd_model *m, int64_t sequence) {
    const int64_t head = m->head_dim ? m->head_dim : m->channels / m->heads;
    return json_pack(
        "{s[s] ss sI sI sI sI sI sI sI sI so so ss sb sb sb sn sn}", "architectures",
        "LlamaForCausalLM", "model_type", "llama", "vocab_size", (json_int_t)m->vocab,
        "hidden_size", (json_int_t)m->channels, "intermediate_size", (json_int_t)m->hidden,
        "num_hidden_layers", (json_int_t)m->layers, "num_attention_heads", (json_int_t)m->heads,
        "num_key_value_heads", (json_int_t)m->kv_heads, "head_dim", (json_int_t)head,
        "max_position_embeddings", (json_int_t)sequence, "rms_norm_eps", norm_eps(m), "rope_theta",
        shortest(m->rope_base), "hidden_act", function_of(m), "attention_bias", m->qkv_bias,
        "mlp_bias", m->mlp_bias, "tie_word_embeddings", m->tied, "bos_token_id", "eos_token_id");
}

/* Prints the object, indented as transformers does, and frees it. */
static vd_status put_config(json_t *root, vd_buf *out, vd_err *err) {
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
    json_decref(root);
    if (text) {
        vd_put(out, text, strlen(text));
        vd_put_u8(out, '\n');
    }
    free(text);
    return text && vd_buf_ok(out) ? VD_OK
                                  : vd_fail(err, VD_ERR_LOCAL, "config.json: out of memory");
}

vd_status vd_config_write(const vd_model *m, int64_t sequence, vd_buf *out, vd_err *err) {
    if (!vd_config_can_write(m))
        return vd_fail(err, VD_ERR_USAGE, "transformers has no model of this form");
    json_t *root = m->kind == VD_MODEL_GPT2 ? gpt2_config(m) : llama_config(m, sequence);
    if (root)
        json_object_set_new(root, "torch_dtype", json_string("float32"));
    return put_config(root, out, err);
}

/* ---- adapters ---- */

/* Finds the module of an adapter's tensor. PEFT compares names with the ends of modules' names, so
 * "base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight" gives "self_attn.q_proj", and
 * "base_model.model.lm_head.lora_A.weight" "lm_head". With `whole`, it gives the module's whole
 * name. */
static bool module_of(const char *tensor, bool whole, char module[VD_TENSOR_NAME_SIZE]) {
    static const char end[] = ".lora_A.weight", before[] = "base_model.model.";
    const size_t length = strlen(tensor), tail = sizeof end - 1, head = sizeof before - 1;
    if (length <= head + tail || strcmp(tensor + length - tail, end) != 0 ||
        strncmp(tensor, before, head) != 0)
        return false;
    const char *start = tensor + head;
    for (const char *at = start; !whole && (at = strchr(at, '.')); at++)
        if (at[1] >= '0' && at[1] <= '9' && strchr(at + 1, '.'))
            start = strchr(at + 1, '.') + 1;
    snprintf(module, VD_TENSOR_NAME_SIZE, "%.*s", (int)(tensor + length - tail - start), start);
    return true;
}

/* Lists the adapted modules; BERT's have whole names, since `output.dense` ends two of them. */
static json_t *modules_of(const vd_model *m, const vd_file_name *names, uint32_t count) {
    json_t *list = json_array(), *seen = json_object();
    for (uint32_t i = 0; i < count; i++) {
        char module[VD_TENSOR_NAME_SIZE];
        if (!module_of(names[i].tensor, m->kind == VD_MODEL_BERT, module) ||
            json_object_get(seen, module))
            continue;
        json_object_set_new(seen, module, json_true());
        json_array_append_new(list, json_string(module));
    }
    json_decref(seen);
    return list;
}

/* Chooses PEFT's task. For SEQ_CLS, PEFT would look for the classifier's own weights among the
 * adapters; without a task it keeps the base model's. */
static json_t *task_of(const vd_model *m) {
    return m->kind == VD_MODEL_BERT ? json_null() : json_string("CAUSAL_LM");
}

vd_status vd_adapter_config_write(const vd_model *m, const char *base, const vd_file_name *names,
                                  uint32_t count, vd_buf *out, vd_err *err) {
    return put_config(json_pack("{ss so sI so sf ss sb so ss sb}", "peft_type", "LORA", "task_type",
                                task_of(m), "r", (json_int_t)m->lora.rank, "lora_alpha",
                                shortest(m->lora.alpha), "lora_dropout", 0.0, "bias", "none",
                                "fan_in_fan_out", m->kind == VD_MODEL_GPT2, "target_modules",
                                modules_of(m, names, count), "base_model_name_or_path", base,
                                "inference_mode", 1),
                      out, err);
}

static json_t *adapter_json(const vd_buf *text) {
    json_t *root = NULL;
    if (vd_config_parse(text->data, text->size, "adapter_config.json", &root, NULL) == VD_OK)
        json_object_del(root, "base_model_name_or_path");
    return root;
}

bool vd_adapter_config_equal(const vd_buf *a, const vd_buf *b) {
    json_t *x = adapter_json(a), *y = adapter_json(b);
    const bool equal = x && y && json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return equal;
}

/* ---- changes to a config.json ---- */

/* Sets `dtype`, or `torch_dtype` as transformers named it before version 5. */
static void set_dtype(json_t *root, const char *dtype) {
    static const char *const names[] = {"dtype", "torch_dtype"};
    bool found = false;
    for (int i = 0; i < 2; i++)
        if (json_object_get(root, names[i])) {
            json_object_set_new(root, names[i], json_string(dtype));
            found = true;
        }
    if (!found)
        json_object_set_new(root, names[1], json_string(dtype));
}

/* Sets `architectures` to the model that is written. The original may have other heads, whose
 * tensors a job leaves out; transformers would fill them with random numbers. */
static void set_architecture(json_t *root, vd_task task) {
    static const struct {
        const char *type, *tokens, *classes;
    } known[] = {{"gpt2", "GPT2LMHeadModel", NULL},
                 {"llama", "LlamaForCausalLM", NULL},
                 {"mistral", "MistralForCausalLM", NULL},
                 {"qwen2", "Qwen2ForCausalLM", NULL},
                 {"qwen3", "Qwen3ForCausalLM", NULL},
                 {"bert", "BertForMaskedLM", "BertForSequenceClassification"}};
    const char *type = json_string_value(json_object_get(root, "model_type"));
    for (size_t i = 0; type && i < sizeof known / sizeof known[0]; i++) {
        const char *name = task == VD_TASK_CLASSES ? known[i].classes : known[i].tokens;
        if (name && strcmp(type, known[i].type) == 0)
            json_object_set_new(root, "architectures", json_pack("[s]", name));
    }
}

/* Names the classes LABEL_0, LABEL_1, ..., as transformers does by default. */
static void set_classes(json_t *root, int64_t classes) {
    json_t *names = json_object(), *numbers = json_object();
    for (int64_t i = 0; i < classes; i++) {
        char number[24], name[32];
        snprintf(number, sizeof number, "%lld", (long long)i);
        snprintf(name, sizeof name, "LABEL_%s", number);
        json_object_set_new(names, number, json_string(name));
        json_object_set_new(numbers, name, json_integer(i));
    }
    json_object_del(root, "num_labels");
    json_object_set_new(root, "id2label", names);
    json_object_set_new(root, "label2id", numbers);
}

vd_status vd_config_changed(const void *text, size_t bytes, const vd_config_change *change,
                            vd_buf *out, vd_err *err) {
    json_t *root = NULL;
    vd_status status = vd_config_parse(text, bytes, "config.json", &root, err);
    if (status != VD_OK)
        return status;
    if (change->dtype)
        set_dtype(root, change->dtype);
    if (change->classes)
        set_classes(root, change->classes);
    if (change->model)
        set_architecture(root, change->model->task);
    return put_config(root, out, err);
}
