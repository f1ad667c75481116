"""The peer of bench/generate.c: GPT-2 of transformers, eager, with random weights.

Answers "hello" with a line about itself, "prefill" with the seconds that a prompt takes up to the
logits of its last token, "decode B" with the seconds of a greedy token of B sequences, which it
keeps from one question to the next.
"""

import os
import sys
import time

threads, prompt = (int(x) for x in sys.argv[1:3])
os.environ.update(OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="0",
                  KMP_BLOCKTIME="0")

try:
    import torch
    import transformers
except ImportError:
    sys.exit("bench: this Python has no PyTorch or no transformers")

torch.set_num_threads(threads)
torch.manual_seed(1)
torch.set_grad_enabled(False)
config = transformers.GPT2Config(attn_implementation="eager")
model = transformers.GPT2LMHeadModel(config).eval()
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
    start = time.perf_counter()
    out = model(token, past_key_values=cache, use_cache=True)
    token = out.logits[:, -1:].argmax(-1)
    seconds = time.perf_counter() - start
    kept[batch] = [out.past_key_values, token]
    return seconds


for line in sys.stdin:
    words = line.split()
    if words[0] == "hello":
        print(f"torch {torch.__version__}, transformers {transformers.__version__}, "
              f"{torch.get_num_threads()} threads", flush=True)
    elif words[0] == "prefill":
        begin = time.perf_counter()
        prefill(1)
        print(time.perf_counter() - begin, flush=True)
    else:
        print(decode(int(words[1])), flush=True)
