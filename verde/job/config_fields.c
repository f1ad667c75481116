/* This file lists the fields of config.json: what each is for, and which values are accepted. */
#include "verde/job/config_fields.h"

#define AT(place) offsetof(vd_model, place)
#define IGNORED(name_, of)                                                                         \
    { .name = name_, .families = of, .rule = VD_CONFIG_IGNORED }
#define MUST(name_, of, what)                                                                      \
    { .name = name_, .families = of, .rule = what }
#define TEXT(name_, of, value)                                                                     \
    { .name = name_, .families = of, .rule = VD_CONFIG_TEXT, .text = value }
#define SIZE(name_, of, place, hi)                                                                 \
    {                                                                                              \
        .name = name_, .families = of, .rule = VD_CONFIG_SIZE, .offset = AT(place), .least = 1,    \
        .most = hi, .needed = of                                                                   \
    }
#define SIZE_OR(name_, of, place, hi, without)                                                     \
    {                                                                                              \
        .name = name_, .families = of, .rule = VD_CONFIG_SIZE, .offset = AT(place), .least = 1,    \
        .most = hi, .otherwise = without                                                           \
    }
#define REAL_OR(name_, of, place, without)                                                         \
    { .name = name_, .families = of, .rule = VD_CONFIG_REAL, .offset = AT(place), .real = without }
#define FLAG(name_, of, place)                                                                     \
    { .name = name_, .families = of, .rule = VD_CONFIG_FLAG, .offset = AT(place) }
#define FUNCTION_OR(name_, of, without)                                                            \
    {                                                                                              \
        .name = name_, .families = of, .rule = VD_CONFIG_ACTIVATION, .offset = AT(activation),     \
        .text = without                                                                            \
    }

enum {
    WIDTH = 1 << 16,
    LAYERS = 1 << 12,
    HEADS = 1 << 10,
    VOCAB = 1 << 24, /* BERT's masking computes with tokens as whole numbers in f32 */
};

/* A missing field has transformers' default. */
/* clang-format off */
const vd_config_field vd_config_fields[] = {
    /* sizes */
    SIZE("vocab_size", VD_ALL & ~VD_RESNET, vocab, VOCAB),
    SIZE("n_positions", VD_GPT2, context, 1 << 20),
    SIZE("n_embd", VD_GPT2, channels, WIDTH),
    SIZE("n_layer", VD_GPT2, layers, LAYERS),
    SIZE("n_head", VD_GPT2, heads, HEADS),
    SIZE_OR("n_inner", VD_GPT2, hidden, 1 << 20, 0),
    SIZE("max_position_embeddings", VD_BERT, context, 1 << 20),
    SIZE("hidden_size", VD_LLAMAS | VD_BERT, channels, WIDTH),
    SIZE("intermediate_size", VD_LLAMAS | VD_BERT, hidden, 1 << 20),
    SIZE("num_hidden_layers", VD_LLAMAS | VD_BERT, layers, LAYERS),
    SIZE("num_attention_heads", VD_LLAMAS | VD_BERT, heads, HEADS),
    SIZE_OR("num_key_value_heads", VD_LLAMA, kv_heads, HEADS, 0),
    SIZE("num_key_value_heads", VD_MISTRAL | VD_QWEN, kv_heads, HEADS),
    SIZE_OR("head_dim", VD_LLAMA | VD_MISTRAL | VD_QWEN2, head_dim, 1 << 12, 0),
    SIZE_OR("head_dim", VD_QWEN3, head_dim, 1 << 12, 128),
    SIZE_OR("type_vocab_size", VD_BERT, segments, WIDTH, 2),
    SIZE("embedding_size", VD_RESNET, channels, WIDTH),
    /* numbers and switches */
    REAL_OR("layer_norm_epsilon", VD_GPT2, norm_eps, 1e-5f),
    REAL_OR("layer_norm_eps", VD_BERT, norm_eps, 1e-12f),
    REAL_OR("rms_norm_eps", VD_LLAMAS, norm_eps, 1e-6f),
    FLAG("tie_word_embeddings", VD_LLAMAS, tied),
    MUST("tie_word_embeddings", VD_GPT2 | VD_BERT, VD_CONFIG_TRUE),
    FLAG("attention_bias", VD_LLAMA | VD_QWEN3, qkv_bias),
    FLAG("mlp_bias", VD_LLAMA, mlp_bias),
    FUNCTION_OR("activation_function", VD_GPT2, "gelu_new"),
    FUNCTION_OR("hidden_act", VD_LLAMAS, "silu"), FUNCTION_OR("hidden_act", VD_BERT, "gelu"),
    TEXT("hidden_act", VD_RESNET, "relu"),
    /* read by config_more.c: dropout, rotary positions, windows, classes, stages */
    IGNORED("resid_pdrop", VD_GPT2), IGNORED("embd_pdrop", VD_GPT2), IGNORED("attn_pdrop", VD_GPT2),
    IGNORED("hidden_dropout_prob", VD_BERT), IGNORED("attention_probs_dropout_prob", VD_BERT),
    IGNORED("classifier_dropout", VD_BERT),
    IGNORED("rope_theta", VD_LLAMAS), IGNORED("rope_scaling", VD_LLAMAS),
    IGNORED("rope_parameters", VD_LLAMAS),
    IGNORED("sliding_window", VD_MISTRAL | VD_QWEN), IGNORED("use_sliding_window", VD_QWEN),
    IGNORED("max_window_layers", VD_QWEN), IGNORED("layer_types", VD_LLAMAS),
    IGNORED("id2label", VD_ALL), IGNORED("num_labels", VD_ALL), IGNORED("architectures", VD_ALL),
    IGNORED("hidden_sizes", VD_RESNET), IGNORED("depths", VD_RESNET),
    IGNORED("pad_token_id", VD_ALL), IGNORED("model_type", VD_ALL),
    /* only one value of these is computed */
    MUST("attention_dropout", VD_LLAMAS, VD_CONFIG_ZERO),
    MUST("scale_attn_weights", VD_GPT2, VD_CONFIG_TRUE),
    MUST("scale_attn_by_inverse_layer_idx", VD_GPT2, VD_CONFIG_FALSE),
    MUST("add_cross_attention", VD_ALL, VD_CONFIG_FALSE),
    MUST("is_decoder", VD_ALL, VD_CONFIG_FALSE),
    MUST("is_encoder_decoder", VD_ALL, VD_CONFIG_FALSE),
    MUST("rope_interleaved", VD_LLAMA, VD_CONFIG_FALSE),
    TEXT("position_embedding_type", VD_BERT, "absolute"),
    TEXT("layer_type", VD_RESNET, "bottleneck"),
    MUST("downsample_in_first_stage", VD_RESNET, VD_CONFIG_FALSE),
    MUST("downsample_in_bottleneck", VD_RESNET, VD_CONFIG_FALSE),
    MUST("num_channels", VD_RESNET, VD_CONFIG_THREE),
    {.name = NULL},
};
/* clang-format on */
