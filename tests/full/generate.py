"""Jobs that generate and score, compared with transformers on models of random shapes: the same greedy tokens, and
log-probabilities within 1e-4. Arguments: verde, a working directory, and numbers of models (default: 0 to 8)."""
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys

import torch
import transformers

verde, work = os.path.abspath(sys.argv[1]), sys.argv[2]
TOKENS, BEST = 48, 4


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def make_model(number, rng):
    """GPT-2, Llama and Qwen2 in turn."""
    heads, vocab = rng.choice([2, 4, 6]), rng.randrange(80, 3000)
    wide = {"vocab_size": vocab, "hidden_size": heads * rng.choice([8, 16, 20]),
            "intermediate_size": rng.randrange(20, 200), "num_hidden_layers": rng.randrange(1, 5),
            "num_attention_heads": heads, "num_key_value_heads": rng.choice([1, 2, heads]),
            "max_position_embeddings": 512, "tie_word_embeddings": rng.random() < 0.5}
    if number % 3 == 0:
        config = transformers.GPT2Config(vocab_size=vocab, n_positions=512, n_embd=wide["hidden_size"], n_head=heads,
                                         n_layer=wide["num_hidden_layers"])
        return transformers.GPT2LMHeadModel(config)
    if number % 3 == 1:
        scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                   "original_max_position_embeddings": 64}
        return transformers.LlamaForCausalLM(
            transformers.LlamaConfig(**wide, rope_scaling=scaling if rng.random() < 0.5 else None))
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**wide))


def randomize(model, number):
    """Weights larger than a training starts from, so that tokens differ."""
    torch.manual_seed(number)
    for p in model.parameters():
        p.data.normal_(0 if p.dim() > 1 else 0.5, 0.2)
    return model.eval()


def write_job(folder, lines, more):
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    with open(f"{folder}/prompts.jsonl", "wb") as out:
        out.write(text)
    manifest = subprocess.run([verde, "manifest", f"{folder}/model"], check=True, capture_output=True).stdout
    with open(f"{folder}/job.yaml", "w", encoding="utf-8") as out:
        out.write(f"verde: 1\nmodel: {{kind: pretrained, dir: model, sha256: {sha256(manifest)}}}\n"
                  f"prompts: {{file: prompts.jsonl, sha256: {sha256(text)}}}\n{more}")


def run_job(folder, name):
    subprocess.run([verde, "run", f"{folder}/job.yaml", "--out", f"{folder}/{name}"], check=True, capture_output=True)
    with open(f"{folder}/{name}/results.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def near(ours, theirs):
    difference = (torch.tensor(ours).double() - theirs.double()).abs().max().item()
    assert difference < 1e-4, difference
    return difference


def compare_generated(model, prompt, result):
    ids = torch.tensor([prompt])
    out = model.generate(ids, max_new_tokens=TOKENS, do_sample=False, eos_token_id=None, pad_token_id=0,
                         attention_mask=torch.ones_like(ids))
    new = out[0, len(prompt):]
    assert new.tolist() == result["ids"], (new.tolist(), result["ids"])
    says = torch.log_softmax(model(out).logits[0, len(prompt) - 1:-1], -1)
    top = says.topk(BEST, -1).values
    return max(near(result["log_probabilities"], says.gather(1, new[:, None])[:, 0]),
               near([[of for _, of in row] for row in result["best"]], top))


def check_ends(folder, model, lines, whole):
    """If the files name eos tokens and the job no stop, texts end where transformers ends them."""
    eos = sorted({result["ids"][TOKENS // 3] for result in whole})[:2]
    for name in ("config.json", "generation_config.json"):
        with open(f"{folder}/model/{name}", encoding="utf-8") as file:
            said = json.load(file)
        with open(f"{folder}/model/{name}", "w", encoding="utf-8") as file:
            json.dump({**said, "eos_token_id": eos}, file)
    write_job(folder, lines, f"task: generate\nsampling: {{greedy: true}}\nmax_tokens: {TOKENS}\n")
    for line, result in zip(lines, run_job(folder, "ended")):
        ids = torch.tensor([line["ids"]])
        out = model.generate(ids, max_new_tokens=TOKENS, do_sample=False, eos_token_id=eos, pad_token_id=0,
                             attention_mask=torch.ones_like(ids))
        assert out[0, len(line["ids"]):].tolist() == result["ids"], (eos, result)
        assert (result["stopped"] == "stop") == (result["ids"][-1] in eos), (eos, result)


def compare_scored(model, text, result):
    ids = torch.tensor([text])
    says = torch.log_softmax(model(ids).logits[0, :-1], -1)
    return near(result["log_probabilities"], says.gather(1, ids[0, 1:, None])[:, 0])


def check(number):
    rng, folder = random.Random(number), f"{work}/{number}"
    model = randomize(make_model(number, rng), number)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(f"{folder}/model")
    model.generation_config.eos_token_id = None
    vocab, worst = model.config.vocab_size, 0
    prompts = [[rng.randrange(vocab) for _ in range(n)] for n in [1, 2, rng.randrange(3, 60), 300]]
    lines = [{"key": rng.randrange(2**63), "ids": ids} for ids in prompts]
    write_job(folder, lines, f"task: generate\nsampling: {{greedy: true}}\nmax_tokens: {TOKENS}\n"
              f"stop: []\nlog_probabilities: {BEST}\n")
    whole = run_job(folder, "generated")
    for line, result in zip(lines, whole):
        assert line["key"] == result["key"] and result["stopped"] == "length"
        worst = max(worst, compare_generated(model, line["ids"], result))
    check_ends(folder, model, lines, whole)
    write_job(folder, lines[1:], "task: score\n")
    for line, result in zip(lines[1:], run_job(folder, "scored")):
        worst = max(worst, compare_scored(model, line["ids"], result))
    print(f"{type(model).__name__} {number}: {len(prompts)} prompts, {TOKENS} tokens each, the same; "
          f"log-probabilities within {worst:.1e}", flush=True)
    shutil.rmtree(folder)


def main():
    transformers.logging.set_verbosity_error()
    with torch.no_grad():
        for number in [int(n) for n in sys.argv[3:]] or range(9):
            check(number)


if __name__ == "__main__":
    main()
