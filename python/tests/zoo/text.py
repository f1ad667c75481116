"""Models of transformers."""

from .base import ids, model

TEXT = {
    "vocab_size": 100,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def _language(name, config, kind, **more):
    def build():
        import transformers

        own = getattr(transformers, kind)(getattr(transformers, config)(**{**TEXT, **more}))
        return own, lambda i: own(input_ids=(x := ids(2, 12, seed=i)), labels=x).loss

    model("transformers", name)(build)


for _name, _config, _kind, _more in (
    ("mistral", "MistralConfig", "MistralForCausalLM", {"sliding_window": 5}),
    ("qwen2", "Qwen2Config", "Qwen2ForCausalLM", {}),
    ("qwen3", "Qwen3Config", "Qwen3ForCausalLM", {}),
    ("gemma", "GemmaConfig", "GemmaForCausalLM", {}),
    ("gemma2", "Gemma2Config", "Gemma2ForCausalLM", {"sliding_window": 5}),
    ("gemma3", "Gemma3TextConfig", "Gemma3ForCausalLM", {"sliding_window": 5}),
    ("phi", "PhiConfig", "PhiForCausalLM", {}),
    ("phi3", "Phi3Config", "Phi3ForCausalLM", {}),
    ("olmo2", "Olmo2Config", "Olmo2ForCausalLM", {}),
    ("smollm3", "SmolLM3Config", "SmolLM3ForCausalLM", {}),
    ("gpt_neox", "GPTNeoXConfig", "GPTNeoXForCausalLM", {}),
    (
        "opt",
        "OPTConfig",
        "OPTForCausalLM",
        {"ffn_dim": 64, "word_embed_proj_dim": 32, "max_position_embeddings": 64},
    ),
    ("bloom", "BloomConfig", "BloomForCausalLM", {"n_layer": 2, "n_head": 4}),
    (
        "mixtral",
        "MixtralConfig",
        "MixtralForCausalLM",
        {"num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    (
        "qwen3_moe",
        "Qwen3MoeConfig",
        "Qwen3MoeForCausalLM",
        {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16},
    ),
    ("mamba", "MambaConfig", "MambaForCausalLM", {"state_size": 4}),
    (
        "mamba2",
        "Mamba2Config",
        "Mamba2ForCausalLM",
        {"state_size": 4, "num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 8},
    ),
    ("roberta", "RobertaConfig", "RobertaForMaskedLM", {}),
    (
        "distilbert",
        "DistilBertConfig",
        "DistilBertForMaskedLM",
        {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4},
    ),
    ("albert", "AlbertConfig", "AlbertForMaskedLM", {"embedding_size": 16}),
    ("electra", "ElectraConfig", "ElectraForMaskedLM", {"embedding_size": 16}),
    (
        "deberta_v2",
        "DebertaV2Config",
        "DebertaV2ForMaskedLM",
        {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    ),
    (
        "modernbert",
        "ModernBertConfig",
        "ModernBertForMaskedLM",
        {"local_attention": 4, "cls_token_id": 1, "sep_token_id": 2},
    ),
    (
        "t5",
        "T5Config",
        "T5ForConditionalGeneration",
        {
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 64,
            "num_layers": 2,
            "num_heads": 4,
            "decoder_start_token_id": 0,
        },
    ),
    (
        "bart",
        "BartConfig",
        "BartForConditionalGeneration",
        {
            "d_model": 32,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
        },
    ),
):
    _language(_name, _config, _kind, **_more)


@model("transformers")
def classifier_of_roberta():
    from transformers import RobertaConfig, RobertaForSequenceClassification

    own = RobertaForSequenceClassification(RobertaConfig(**TEXT, num_labels=3))
    return own, lambda i: own(ids(2, 12, seed=i), labels=ids(2, seed=i, low=0, high=3)).loss


@model("transformers")
def generate():
    """Trains on the model's own samples."""
    from transformers import GPT2Config, GPT2LMHeadModel

    own = GPT2LMHeadModel(
        GPT2Config(
            n_layer=1,
            n_embd=32,
            n_head=4,
            vocab_size=100,
            n_positions=64,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )
    )

    def loss(i):
        own.eval()
        say = {"pad_token_id": 0, "max_new_tokens": 6}
        texts = [
            own.generate(
                ids(2, 4, seed=i), do_sample=True, temperature=0.8, top_k=20, top_p=0.9, **say
            ),
            own.generate(ids(2, 4, seed=i), num_beams=3, **say),
            own.generate(
                ids(2, 4, seed=i),
                do_sample=True,
                min_p=0.01,
                typical_p=0.9,
                repetition_penalty=1.1,
                **say,
            ),
        ]
        own.train()
        return sum(own(t, labels=t).loss for t in texts)

    return own, loss
