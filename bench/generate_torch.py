"""The peer of bench/generate.c: models of transformers, eager, with random weights.

It answers "hello" with a line about itself, "prefill" with the seconds that a prompt takes up to
the logits of its last token, and "decode B" with the seconds of a greedy token of each of B
sequences, which it keeps between questions.
"""

import sys

import harness

threads, prompt = (int(x) for x in sys.argv[1:3])
name, dtype = sys.argv[3:5]
torch = harness.torch_with(threads)
try:
    import transformers
except ImportError:
    sys.exit("bench: this Python has no transformers")

torch.manual_seed(1)
torch.set_grad_enabled(False)
if name == "gpt2-124m":
    config = transformers.GPT2Config(attn_implementation="eager")
    model = transformers.GPT2LMHeadModel(config)
else:
    config = transformers.LlamaConfig(
        vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
        num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True,
        attn_implementation="eager")
    model = transformers.LlamaForCausalLM(config)
model = model.eval().to({"f32": torch.float32, "bf16": torch.bfloat16}[dtype])
clock = harness.clock_of(threads)
kept = {}


def prefill(batch):
    ids = torch.randint(0, config.vocab_size, (batch, prompt))
    out = model(ids, use_cache=True, logits_to_keep=1)
    return [out.past_key_values, out.logits[:, -1:].argmax(-1)]


def decode(batch):
    if batch not in kept:
        kept.clear()
        kept[batch] = prefill(batch)
    cache, token = kept[batch]
    start = clock()
    out = model(token, past_key_values=cache, use_cache=True)
    token = out.logits[:, -1:].argmax(-1)
    seconds = clock() - start
    kept[batch] = [out.past_key_values, token]
    return seconds


def reply(line):
    words = line.split()
    if words[0] == "prefill":
        return harness.seconds_of(lambda: prefill(1), 1, clock)
    return decode(int(words[1]))


harness.answer(f"torch {torch.__version__}, transformers {transformers.__version__}, {torch.get_num_threads()} threads, {dtype}", reply)
