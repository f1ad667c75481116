#!/usr/bin/env python3
"""How transformers continues prompts, for the models of tests/vectors/pretrained. tests/unit/test_generate.c compares.

    python3 tests/vectors/generated/generated.py      # writes cases.json; needs torch and transformers

Logits are computed in double precision. Greedy cases are what `generate` returns. Where tokens are drawn, transformers'
own processors choose the tokens that may be drawn, and this file draws one by repops/SPEC.md section 10.3. The script
refuses a case whose tokens a rounding of binary32 could change.
"""
import json
import os

import torch
import transformers
from transformers.generation.logits_process import (LogitsProcessorList, MinNewTokensLengthLogitsProcessor,
                                                    RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper,
                                                    TopKLogitsWarper, TopPLogitsWarper)

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "../pretrained")
PROMPTS = {5: [3], 7: [9, 60, 9, 2], (1 << 40) + 3: [1, 50, 33, 7, 7, 12, 40, 61, 0, 5, 20]}
TOKENS = 6  # with the longest prompt, these are all positions of the GPT-2 of the vectors
BEST = 3
SAMPLE = 0x30000000
GREEDY = [{}, {"repetition_penalty": 1.75, "min_tokens": 4, "stop": [33, 5, 61, 12, 9]}]
DRAWN = [{"temperature": 0.75},
         {"top_k": 5, "seed": 3},
         {"top_p": 0.5, "seed": (1 << 40) + 9},
         {"temperature": 1.5, "top_k": 12, "top_p": 0.75, "repetition_penalty": 0.75, "seed": 11, "min_tokens": 3,
          "stop": list(range(0, 64, 5))}]


def philox(counter, seed):
    """Philox4x32-10 of repops/SPEC.md section 10: returns four words."""
    c, k = list(counter), [seed % 2**32, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b % 2**32, a >> 32 ^ c[3] ^ k[1], a % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


def processors(how, prompt):
    out = LogitsProcessorList()
    if "repetition_penalty" in how:
        out.append(RepetitionPenaltyLogitsProcessor(how["repetition_penalty"]))
    if "min_tokens" in how:
        out.append(MinNewTokensLengthLogitsProcessor(len(prompt), how["min_tokens"], how["stop"], "cpu"))
    if how.get("temperature", 1.0) != 1.0:
        out.append(TemperatureLogitsWarper(how["temperature"]))
    if "top_k" in how:
        out.append(TopKLogitsWarper(how["top_k"]))
    if "top_p" in how:
        out.append(TopPLogitsWarper(how["top_p"]))
    return out


def draw(scores, how, key, position):
    """Draws an index with a probability in proportion to its weight. Returns it, and the indices that may be drawn."""
    q = [int(w * 2**31) for w in torch.exp(scores - scores.max()).tolist()]
    w = philox([key % 2**32, key >> 32, position, SAMPLE], how["seed"])
    total = sum(q)
    r = (w[0] + 2**32 * w[1]) * total >> 64
    so_far = 0
    for index, weight in enumerate(q):
        so_far += weight
        assert abs(so_far - r) > total >> 20, "choose another seed"
        if so_far > r:
            break
    return index, [i for i, x in enumerate(scores.tolist()) if x != float("-inf")]


def check_margin(logits):
    """Greedy choices, and the list of the best tokens, must not depend on a rounding."""
    top = logits.topk(BEST + 1).values
    assert (top[:-1] - top[1:]).min() > 1e-5, "choose another prompt"


def follow(model, how, prompt, key):
    ids, kept = list(prompt), []
    while len(ids) < len(prompt) + TOKENS:
        now = torch.tensor([ids])
        logits = model(now).logits[0, -1]
        scores = processors(how, prompt)(now, logits[None].clone())[0]
        if "seed" in how:
            token, may = draw(scores, how, key, len(ids) - 1)
            kept.append(may)
        else:
            check_margin(logits)
            token = scores.argmax().item()
        ids.append(token)
        if token in how.get("stop", []):
            break
    return ids[len(prompt):], kept


def check_greedy(model, how, prompt, new):
    want = model.generate(torch.tensor([prompt]), max_new_tokens=TOKENS, do_sample=False, pad_token_id=0,
                          repetition_penalty=how.get("repetition_penalty"), min_new_tokens=how.get("min_tokens"),
                          eos_token_id=how.get("stop"), attention_mask=torch.ones(1, len(prompt), dtype=torch.long))
    assert want[0, len(prompt):].tolist() == new, (want, new)


def rounded(row):
    return [round(x, 7) for x in row.tolist()]


def case(name, model, how, key, prompt):
    how = {"seed": 0, **how} if how in DRAWN else how
    new, kept = follow(model, how, prompt, key)
    if not kept:
        check_greedy(model, how, prompt, new)
    says = torch.log_softmax(model(torch.tensor([prompt + new[:-1]])).logits[0, len(prompt) - 1:], -1)
    best = says.topk(BEST, -1)
    out = {"model": name, "key": key, "prompt": prompt, "how": how, "ids": new,
           "log_probabilities": rounded(says.gather(1, torch.tensor(new)[:, None])[:, 0]),
           "best": best.indices.tolist(), "of_best": [rounded(row) for row in best.values],
           "stopped": new[-1] in how.get("stop", [])}
    return {**out, "kept": kept} if "top_k" in how or "top_p" in how else out


def main():
    cases = []
    transformers.logging.set_verbosity_error()
    for name in ["gpt2", "llama", "llama-bf16", "llama-tied", "llama3", "mistral", "qwen2", "qwen2-window", "qwen3"]:
        model = transformers.AutoModelForCausalLM.from_pretrained(os.path.join(MODELS, name), dtype=torch.float64,
                                                                  attn_implementation="eager").eval()
        model.generation_config.eos_token_id = None
        for how in GREEDY + (DRAWN if name in ("gpt2", "qwen2") else []):
            for key, prompt in PROMPTS.items():
                with torch.no_grad():
                    cases.append(case(name, model, how, key, prompt))
    with open(os.path.join(HERE, "cases.json"), "w", encoding="utf-8") as out:
        out.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
