"""Sets each field in verde/job/config_unused.c, for each family of its row, to values that the row allows, in a model of
transformers: logits and gradients must not change.

python3 tests/full/config_unused.py
"""

import json
import os
import re
import sys

import torch
import transformers

TABLE = "verde/job/config_unused.c"
VECTORS = "tests/vectors/pretrained"
MODELS = {"GPT2": "gpt2", "LLAMA": "llama", "MISTRAL": "mistral", "QWEN2": "qwen2", "QWEN3": "qwen3", "BERT": "bert",
          "RESNET": "resnet"}
GROUPS = {"ALL": set(MODELS), "LLAMAS": {"LLAMA", "MISTRAL", "QWEN2", "QWEN3"}, "QWEN": {"QWEN2", "QWEN3"}}
RULES = {"FALSE": [False], "ZERO": [0], "ONE": [1, 1.0], "EMPTY": [{}, []]}
# Values to try. transformers refuses some of them for some fields; it must accept at least one.
ANY = [True, 2, 0.5, "x", "bfloat16", [1, 2], {"0": "LABEL_0", "1": "LABEL_1"}]
OWN = {"out_features": ["stage1"]}  # a value that no other field can have
TOLERANCE = 1e-5  # another implementation of attention rounds differently

transformers.logging.set_verbosity(transformers.logging.CRITICAL)


def families_of(text):
    """The families of a row's C expression: VD_X, VD_X | VD_Y, VD_ALL & ~(VD_X | VD_Y)."""
    named = [GROUPS.get(name, {name}) for name in re.findall(r"VD_(\w+)", text)]
    return GROUPS["ALL"] - set().union(*named[1:]) if "~" in text else set().union(*named)


def rows():
    with open(TABLE) as file:
        text = file.read()
    text = re.sub(r"/\*.*?\*/", "", text[text.index("vd_config_unused[] = {"):], flags=re.S)
    for kind, name, rest in re.findall(r'\b(ANY|ONLY|TEXT|SAME)\("([^"]+)",\s*((?:[^()]|\([^()]*\))*)\)', text):
        families, _, last = rest.partition(",")
        last = last.strip().strip('"')
        yield kind, name, families_of(families), last


def values_of(kind, name, last, config):
    return {"ANY": ANY + [OWN[name]] if name in OWN else ANY, "TEXT": [last], "ONLY": RULES.get(last.removeprefix("VD_CONFIG_"), []),
            "SAME": [config.get(last)]}[kind]


def read(config):
    return transformers.AutoConfig.for_model(**config)


def build(config, state):
    """A model with these fields and the weights of `state`, all of which it must have."""
    auto = {"bert": transformers.AutoModelForMaskedLM, "resnet": transformers.AutoModelForImageClassification}.get(
        config["model_type"], transformers.AutoModelForCausalLM)
    model = auto.from_config(read(config), dtype=torch.float32).eval()
    if state is not None:
        model.load_state_dict(state)
    return model


def numbers_of(model, images):
    given = {"pixel_values": torch.linspace(-1, 1, 3 * 32 * 32).reshape(1, 3, 32, 32)} if images else {
        "input_ids": torch.arange(24).reshape(2, 12) * 5 % 61 + 1}
    logits = model(**given, return_dict=True).logits
    logits.square().mean().backward()
    return [logits.detach()] + [p.grad for p in model.parameters() if p.grad is not None]


def takes(config, fields):
    """Whether transformers accepts a file with these fields."""
    try:
        read({**config, **fields})
    except Exception:  # any class: from a type check or a property
        return False
    return True


def compare(family, fields, config, base, state):
    """None: nothing changes; otherwise what changes. Some models may refuse a field, such as an unknown kind of attention."""
    try:
        found = numbers_of(build({**config, **fields}, state), family == "RESNET")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    same = len(found) == len(base) and all(
        a.shape == b.shape and (a - b).norm() <= TOLERANCE * b.norm() + 1e-12 for a, b in zip(found, base))
    return None if same else "other numbers"


def check(family, fields, config, base, state):
    """Checks all at once, and by halves if something is wrong. Returns those that a model accepts."""
    wrong = compare(family, fields, config, base, state) if fields else None
    if wrong is None:
        return set(fields)
    names = list(fields)
    if len(names) > 1:
        halves = (names[:len(names) // 2], names[len(names) // 2:])
        return set().union(*(check(family, {n: fields[n] for n in half}, config, base, state) for half in halves))
    if wrong == "other numbers" or "state_dict" in wrong:
        sys.exit(f"{family}: {names[0]} = {fields[names[0]]!r}: {wrong}; {TABLE} says that it has no influence")
    return set()


def main():
    table = list(rows())
    tried = refused = 0
    print(f"{len(table)} fields in {TABLE}", flush=True)
    for family, folder in MODELS.items():
        with open(os.path.join(VECTORS, folder, "config.json")) as file:
            config = json.load(file)
        if family == "RESNET":
            config["hidden_sizes"] = [64, 128]
        torch.manual_seed(1)
        model = build(config, None)
        state = model.state_dict()
        base = numbers_of(model, family == "RESNET")
        mine = {name: values_of(kind, name, last, config) for kind, name, families, last in table if family in families}
        taken = {name: 0 for name in mine}
        for i in range(max(map(len, mine.values()))):
            fields = {name: values[i] for name, values in mine.items() if i < len(values)}
            fields = {name: value for name, value in fields.items() if takes(config, {name: value})}
            for name in check(family, fields, config, base, state):
                taken[name] += 1
        never = [name for name, count in taken.items() if count == 0]
        if never:
            sys.exit(f"{family}: transformers takes no value of {', '.join(never)}")
        print(f"{family}: {len(mine)} fields, {sum(taken.values())} values", flush=True)
        tried, refused = tried + sum(taken.values()), refused + sum(map(len, mine.values())) - sum(taken.values())
        # The comparison must notice a field that has influence.
        seen = {"activation_function" if family == "GPT2" else "hidden_act": "tanh"}
        other = numbers_of(build({**config, **seen}, state), family == "RESNET")
        assert not torch.allclose(other[0], base[0]), f"{family}: {seen} seems to have no influence"
    if len(table) < 100 or tried < 500:
        sys.exit(f"{len(table)} rows of {TABLE} were read, and {tried} values tried: too few")
    print(f"{len(table)} fields in {len(MODELS)} families, {tried} values, have no influence in transformers "
          f"{transformers.__version__}, which does not take {refused} others")


main()
