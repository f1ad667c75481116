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
#define REAL(name_, of, place)                                                                     \
    { .name = name_, .families = of, .rule = VD_CONFIG_REAL, .offset = AT(place), .needed = of }
#define FLAG(name_, of, place)                                                                     \
    { .name = name_, .families = of, .rule = VD_CONFIG_FLAG, .offset = AT(place) }
#define FUNCTION(name_, of)                                                                        \
    {                                                                                              \
        .name = name_, .families = of, .rule = VD_CONFIG_ACTIVATION, .offset = AT(activation),     \
        .needed = of                                                                               \
    }

enum {
    WIDTH = 1 << 16,
    LAYERS = 1 << 12,
    HEADS = 1 << 10,
    VOCAB = 1 << 24, /* BERT's hidden tokens are whole numbers in f32 */
};

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
    SIZE("type_vocab_size", VD_BERT, segments, WIDTH),
    SIZE("embedding_size", VD_RESNET, channels, WIDTH),
    /* numbers and switches */
    REAL("layer_norm_epsilon", VD_GPT2, norm_eps),
    REAL("layer_norm_eps", VD_BERT, norm_eps),
    REAL("rms_norm_eps", VD_LLAMAS, norm_eps),
    FLAG("tie_word_embeddings", VD_LLAMAS, tied),
    MUST("tie_word_embeddings", VD_GPT2 | VD_BERT, VD_CONFIG_TRUE),
    FLAG("attention_bias", VD_LLAMA | VD_QWEN3, qkv_bias),
    FLAG("mlp_bias", VD_LLAMA, mlp_bias),
    FUNCTION("activation_function", VD_GPT2),
    FUNCTION("hidden_act", VD_LLAMAS | VD_BERT),
    TEXT("hidden_act", VD_RESNET, "relu"),
    /* what config_more.c reads: rates of dropout, rotary positions, windows, classes, stages */
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
    /* what this program computes in one way only */
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
    /* what has no influence on training: names, types of the files, generation, memory */
    IGNORED("_name_or_path", VD_ALL), IGNORED("transformers_version", VD_ALL),
    IGNORED("transformers.js_config", VD_ALL), IGNORED("torch_dtype", VD_ALL),
    IGNORED("dtype", VD_ALL), IGNORED("use_cache", VD_ALL), IGNORED("initializer_range", VD_ALL),
    IGNORED("bos_token_id", VD_ALL), IGNORED("eos_token_id", VD_ALL),
    IGNORED("sep_token_id", VD_ALL), IGNORED("cls_token_id", VD_ALL),
    IGNORED("mask_token_id", VD_ALL), IGNORED("decoder_start_token_id", VD_ALL),
    IGNORED("label2id", VD_ALL), IGNORED("task_specific_params", VD_ALL),
    IGNORED("output_hidden_states", VD_ALL), IGNORED("output_attentions", VD_ALL),
    IGNORED("return_dict", VD_ALL), IGNORED("chunk_size_feed_forward", VD_ALL),
    IGNORED("gradient_checkpointing", VD_ALL), IGNORED("problem_type", VD_ALL & ~(VD_BERT | VD_RESNET)),
    TEXT("problem_type", VD_BERT | VD_RESNET, "single_label_classification"),
    IGNORED("n_ctx", VD_GPT2), IGNORED("reorder_and_upcast_attn", VD_GPT2),
    IGNORED("summary_type", VD_GPT2), IGNORED("summary_use_proj", VD_GPT2),
    IGNORED("summary_activation", VD_GPT2), IGNORED("summary_proj_to_labels", VD_GPT2),
    IGNORED("summary_first_dropout", VD_GPT2),
    IGNORED("max_position_embeddings", VD_LLAMAS), IGNORED("pretraining_tp", VD_LLAMAS),
    IGNORED("is_llama_config", VD_LLAMA),
    IGNORED("out_features", VD_RESNET), IGNORED("out_indices", VD_RESNET),
    IGNORED("stage_names", VD_RESNET),
    {.name = NULL},
};
/* clang-format on */
