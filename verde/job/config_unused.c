/* Fields of config.json without influence on results: no model of the family in transformers reads
 * them, or it reads them for something that no job does. Where only some values are harmless, the
 * row has a rule, and other values are refused. tests/full/config_unused.py sets each field in a
 * model of transformers, and checks that its results stay the same. */
#include "verde/job/config_fields.h"

#define ANY(name_, of)                                                                             \
    { .name = name_, .families = of, .rule = VD_CONFIG_IGNORED }
#define ONLY(name_, of, what)                                                                      \
    { .name = name_, .families = of, .rule = what }
#define TEXT(name_, of, value)                                                                     \
    { .name = name_, .families = of, .rule = VD_CONFIG_TEXT, .text = value }
#define SAME(name_, of, other)                                                                     \
    { .name = name_, .families = of, .rule = VD_CONFIG_SAME, .text = other }

/* clang-format off */
const vd_config_field vd_config_unused[] = {
    /* names, versions and who wrote the file */
    ANY("_name_or_path", VD_ALL), ANY("name_or_path", VD_ALL), ANY("_commit_hash", VD_ALL),
    ANY("transformers_version", VD_ALL), ANY("transformers.js_config", VD_ALL),
    ANY("tokenizer_class", VD_ALL), ANY("model_max_length", VD_ALL), ANY("do_lower_case", VD_ALL),
    ANY("finetuning_task", VD_ALL), ANY("prefix", VD_ALL), ANY("language", VD_BERT), ANY("name", VD_BERT),
    ANY("unsloth_fixed", VD_ALL), ANY("unsloth_version", VD_ALL),
    ANY("is_llama_config", VD_LLAMA), ANY("max_sequence_length", VD_LLAMAS),
    /* file types, memory and speed, which do not change what is computed */
    ANY("torch_dtype", VD_ALL), ANY("dtype", VD_ALL), ANY("use_cache", VD_ALL),
    ANY("gradient_checkpointing", VD_ALL), ANY("chunk_size_feed_forward", VD_ALL),
    ANY("attn_implementation", VD_ALL), ANY("_attn_implementation", VD_ALL),
    ANY("_attn_implementation_autoset", VD_ALL), ANY("_attn_implementation_internal", VD_ALL),
    ANY("_flash_attn_2_enabled", VD_ALL), ANY("use_bfloat16", VD_ALL), ANY("tf_legacy_loss", VD_ALL),
    ANY("pretraining_tp", VD_LLAMAS), ANY("reorder_and_upcast_attn", VD_GPT2),
    ANY("initializer_range", VD_ALL),
    /* what a call returns */
    ANY("output_hidden_states", VD_ALL), ANY("output_attentions", VD_ALL), ANY("output_past", VD_ALL),
    ANY("return_dict", VD_ALL),
    /* special tokens: generation reads eos_token_id (pretrained.c), BERT pad_token_id */
    ANY("bos_token_id", VD_ALL), ANY("eos_token_id", VD_ALL), ANY("sep_token_id", VD_ALL),
    ANY("cls_token_id", VD_ALL), ANY("mask_token_id", VD_ALL), ANY("unk_token_id", VD_ALL),
    ANY("decoder_start_token_id", VD_ALL),
    /* settings for generation, which a job states itself */
    ANY("task_specific_params", VD_ALL), ANY("do_sample", VD_ALL), ANY("early_stopping", VD_ALL),
    ANY("max_length", VD_ALL), ANY("min_length", VD_ALL), ANY("temperature", VD_ALL),
    ANY("top_k", VD_ALL), ANY("top_p", VD_ALL), ANY("typical_p", VD_ALL),
    ANY("epsilon_cutoff", VD_ALL), ANY("eta_cutoff", VD_ALL), ANY("repetition_penalty", VD_ALL),
    ANY("encoder_repetition_penalty", VD_ALL), ANY("length_penalty", VD_ALL),
    ANY("diversity_penalty", VD_ALL), ANY("num_beams", VD_ALL), ANY("num_beam_groups", VD_ALL),
    ANY("num_return_sequences", VD_ALL), ANY("no_repeat_ngram_size", VD_ALL),
    ANY("encoder_no_repeat_ngram_size", VD_ALL), ANY("bad_words_ids", VD_ALL),
    ANY("suppress_tokens", VD_ALL), ANY("begin_suppress_tokens", VD_ALL),
    ANY("forced_bos_token_id", VD_ALL), ANY("forced_eos_token_id", VD_ALL),
    ANY("exponential_decay_length_penalty", VD_ALL), ANY("remove_invalid_values", VD_ALL),
    ANY("output_scores", VD_ALL), ANY("return_dict_in_generate", VD_ALL),
    /* heads that no job has */
    ANY("label2id", VD_ALL), ANY("_num_labels", VD_ALL),
    ANY("problem_type", VD_ALL & ~(VD_BERT | VD_RESNET)),
    TEXT("problem_type", VD_BERT | VD_RESNET, "single_label_classification"),
    ANY("summary_type", VD_GPT2), ANY("summary_use_proj", VD_GPT2),
    ANY("summary_activation", VD_GPT2), ANY("summary_proj_to_labels", VD_GPT2),
    ANY("summary_first_dropout", VD_GPT2), ANY("summary_last_dropout", VD_GPT2),
    ANY("classifier_dropout", VD_GPT2), ANY("hidden_dropout", VD_GPT2),
    ANY("out_features", VD_RESNET), ANY("out_indices", VD_RESNET), ANY("stage_names", VD_RESNET),
    /* left from the first GPT and BERT of Google; these are the values of its files */
    ANY("n_ctx", VD_GPT2), ONLY("n_special", VD_GPT2, VD_CONFIG_ZERO),
    ANY("predict_special_tokens", VD_GPT2),
    TEXT("directionality", VD_BERT, "bidi"), ANY("pooler_fc_size", VD_BERT),
    ANY("pooler_num_attention_heads", VD_BERT), ANY("pooler_num_fc_layers", VD_BERT),
    ANY("pooler_size_per_head", VD_BERT), TEXT("pooler_type", VD_BERT, "first_token_transform"),
    SAME("emb_size", VD_BERT, "hidden_size"), ONLY("cell", VD_BERT, VD_CONFIG_EMPTY),
    ONLY("structure", VD_BERT, VD_CONFIG_EMPTY), ANY("pre_trained", VD_BERT), ANY("training", VD_BERT),
    /* a model's longest trained context; rotary positions need no table */
    ANY("max_position_embeddings", VD_LLAMAS),
    /* switches of other families, which must be off, and sizes that are stated twice */
    ONLY("use_mrope", VD_LLAMAS, VD_CONFIG_FALSE),
    ONLY("use_sliding_window", VD_LLAMA, VD_CONFIG_FALSE),
    ONLY("attention_bias", VD_MISTRAL, VD_CONFIG_FALSE),
    ONLY("mlp_bias", VD_MISTRAL | VD_QWEN, VD_CONFIG_FALSE),
    ONLY("partial_rotary_factor", VD_LLAMAS, VD_CONFIG_ONE),
    ONLY("torchscript", VD_ALL, VD_CONFIG_FALSE), ONLY("pruned_heads", VD_ALL, VD_CONFIG_EMPTY),
    ONLY("tie_encoder_decoder", VD_ALL, VD_CONFIG_FALSE),
    SAME("hidden_size", VD_GPT2, "n_embd"), SAME("num_hidden_layers", VD_GPT2, "n_layer"),
    SAME("num_attention_heads", VD_GPT2, "n_head"),
    SAME("max_position_embeddings", VD_GPT2, "n_positions"),
    {.name = NULL},
};
/* clang-format on */
