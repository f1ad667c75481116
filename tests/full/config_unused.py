"""Sets each field of verde/job/config_unused.c, for each family of its row, to values that the row allows, in a model of
transformers, and compares: logits and gradients must stay what they were.

python3 tests/full/config_unused.py
"""

import json
import os
import re
import sys
import tempfile

import torch
import transformers

TABLE = "verde/job/config_unused.c"
VECTORS = "tests/vectors/pretrained"
MODELS = {"GPT2": "gpt2", "LLAMA": "llama", "MISTRAL": "mistral", "QWEN2": "qwen2", "QWEN3": "qwen3", "BERT": "bert",
          "RESNET": "resnet"}
GROUPS = {"ALL": set(MODELS), "LLAMAS": {"LLAMA", "MISTRAL", "QWEN2", "QWEN3"}, "QWEN": {"QWEN2", "QWEN3"}}
RULES = {"FALSE": [False], "ZERO": [0], "ONE": [1, 1.0], "EMPTY": [{}, []]}
# transformers refuses some of these for some fields; one it must take.
ANY = [True, 2, 0.5, "x", "bfloat16", [1, 2], {"0": "LABEL_0", "1": "LABEL_1"}]
TOLERANCE = 1e-5  # another way of attention rounds otherwise

transformers.logging.set_verbosity(transformers.logging.CRITICAL)


def families_of(text):
    """The C expression of a row: VD_X, VD_X | VD_Y, VD_ALL & ~(VD_X | VD_Y)."""
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


def values_of(kind, last, config):
    return {"ANY": ANY, "TEXT": [last], "ONLY": RULES.get(last.removeprefix("VD_CONFIG_"), []),
            "SAME": [config.get(last)]}[kind]


def build(config, state):
    """A model of the fields, with the weights of `state`, all of which it must have. ValueError and the like: transformers does
    not take the fields."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(config, file)
        read = transformers.AutoConfig.from_pretrained(folder)
    auto = {"bert": transformers.AutoModelForMaskedLM, "resnet": transformers.AutoModelForImageClassification}.get(
        config["model_type"], transformers.AutoModelForCausalLM)
    model = auto.from_config(read, dtype=torch.float32).eval()
    if state is not None:
        model.load_state_dict(state)
    return model


def numbers_of(model, images):
    given = {"pixel_values": torch.linspace(-1, 1, 3 * 32 * 32).reshape(1, 3, 32, 32)} if images else {
        "input_ids": torch.arange(24).reshape(2, 12) * 5 % 61 + 1}
    logits = model(**given, return_dict=True).logits
    logits.square().mean().backward()
    return [logits.detach()] + [p.grad for p in model.parameters() if p.grad is not None]


def compare(family, name, value, config, base, state):
    """False: transformers does not take the value."""
    try:
        model = build({**config, name: value}, state)
        found = numbers_of(model, family == "RESNET")
    except Exception as error:  # of whatever class: a check of types, a switch that needs another package
        if "state_dict" in str(error):
            sys.exit(f"{family}: {name} = {value!r} makes other tensors: {error}")
        return False
    if len(found) != len(base) or not all(
            a.shape == b.shape and (a - b).norm() <= TOLERANCE * b.norm() + 1e-12 for a, b in zip(found, base)):
        sys.exit(f"{family}: {name} = {value!r} changes what is computed; {TABLE} says that it does not")
    return True


def main():
    table = list(rows())
    tried = refused = 0
    for family, folder in MODELS.items():
        with open(os.path.join(VECTORS, folder, "config.json")) as file:
            config = json.load(file)
        if family == "RESNET":
            config["hidden_sizes"] = [64, 128]
        torch.manual_seed(1)
        model = build(config, None)
        state = model.state_dict()
        base = numbers_of(model, family == "RESNET")
        for kind, name, families, last in table:
            if family not in families:
                continue
            values = values_of(kind, last, config)
            taken = sum(compare(family, name, value, config, base, state) for value in values)
            if not values or not taken:
                sys.exit(f"{family}: {name}: transformers takes none of {values}")
            tried, refused = tried + taken, refused + len(values) - taken
        # The comparison sees a field that has influence.
        seen = {"activation_function" if family == "GPT2" else "hidden_act": "tanh"}
        other = numbers_of(build({**config, **seen}, state), family == "RESNET")
        assert not torch.allclose(other[0], base[0]), f"{family}: {seen} seems to have no influence"
    if len(table) < 100 or tried < 500:
        sys.exit(f"{len(table)} rows of {TABLE} were read, and {tried} values tried: too few")
    print(f"{len(table)} fields in {len(MODELS)} families, {tried} values, have no influence in transformers "
          f"{transformers.__version__}, which does not take {refused} others")


main()
