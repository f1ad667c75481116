"""The package verde: states and verdicts that the command writes, token files that it reads."""

import base64
import hashlib
import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from conftest import called, settle

import repops
import verde


@pytest.fixture(scope="module")
def run(command, top, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    called(command, "run", top / "models/jobs/toy.yaml", "--out", folder)
    return folder


# ---- states ----


def test_a_run_is_loaded(run, command, tmp_path):
    log = json.loads((run / "run.json").read_text())
    it = verde.Run(run)
    assert it.root == log["root"] and it.program.hash == log["program"]
    assert list(it.states) == [0, 4, 8, 12] and it.program.steps == 12 and it.program.interval == 4
    state = verde.load(run)
    assert state.step == 12 and state["wte"].shape == (256, 32) and len(state) == 3 * 28 + 2
    assert not state["wte"].flags.writeable
    losses = it.losses()
    assert [x["step"] for x in losses] == list(range(1, 13))
    assert np.float32(losses[-1]["loss"]) == np.float32(log["loss_last"])


def test_checkpoints_that_came_since_are_read(run, tmp_path):
    """As in a running job: run.json, and a line for each checkpoint since it was written."""
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    log = json.loads((run / "run.json").read_text())
    lines, zeros = [], "0" * 64
    for index in (1, 2, 3):  # run.json has the first already
        it = log["states"][index]
        line = f"{index} {it['step']} {it['state']} {zeros} 3f800000 3f800000"
        sealed = b"verde/checkpoint/1\0" + bytes.fromhex(log["program"]) + line.encode()
        lines.append(f"{line} {hashlib.sha256(sealed).hexdigest()}\n")
    log["states"] = log["states"][:2]
    (folder / "run.json").write_text(json.dumps(log))
    for text, steps in (("".join(lines), [0, 4, 8, 12]), ("".join(lines)[:-9], [0, 4, 8])):
        (folder / "checkpoints").write_text(text)
        it = verde.Run(folder)
        assert list(it.states) == steps and it.root is None
        assert it.state().step == steps[-1]


def test_a_state_has_the_exported_weights(run, command, tmp_path):
    torch = pytest.importorskip("torch")
    load_file = pytest.importorskip("safetensors.numpy").load_file
    called(command, "export", run, "--out", tmp_path / "model", "--step", 8)
    weights = load_file(tmp_path / "model/model.safetensors")
    early = verde.load(run, 8)
    assert (weights["transformer.wte.weight"] == early["wte"]).all()
    proof = json.loads((tmp_path / "model/proof.json").read_text())
    assert list(early.commitments().values()) == proof["tensors"]
    tensors = early.torch()
    assert torch.equal(tensors["wte"], torch.from_numpy(weights["transformer.wte.weight"]))
    assert repops.torch.commitments(tensors) == early.commitments()


def test_a_state_of_bf16_is_loaded(command, top, tmp_path):
    toy = (top / "models/jobs/toy.yaml").read_text()
    toy = toy.replace("../data", str(top / "models/data")) + "storage: bf16\n"
    (tmp_path / "job.yaml").write_text(toy)
    called(command, "run", tmp_path / "job.yaml", "--out", tmp_path / "run")
    state = verde.load(tmp_path / "run")
    weights, moment = state["wte"], state["wte.v"]
    assert weights.dtype == moment.dtype == repops.bfloat16
    numbers = repops.cast(weights, dtype=1)
    assert (numbers.view("u4") == weights.view("u2").astype("u4") << 16).all()
    assert 0 < np.abs(numbers).max() < 1 and (repops.cast(moment, dtype=1) >= 0).all()


def test_a_state_that_is_not_the_runs_is_an_error(run, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    it = verde.Run(copy)
    path = copy / f"state-{it.states[12]}"
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    with pytest.raises(verde.Error, match="is not the state that the run commits to at step 12"):
        verde.load(copy)
    assert verde.load(copy, check=False).step == 12 and verde.load(copy, 4).step == 4
    path.write_bytes(data[:-1])
    with pytest.raises(verde.Error, match="is shorter than the program's state"):
        verde.load(copy)
    path.write_bytes(data + b"x")
    with pytest.raises(verde.Error, match="the program's state has"):
        verde.load(copy)
    path.unlink()
    assert verde.load(copy).step == 8
    with pytest.raises(verde.Error, match="no state of step 12; it has 0, 4, 8"):
        verde.load(copy, 12)


def test_what_is_no_run_is_an_error(run, tmp_path):
    with pytest.raises(verde.Error, match="cannot read .*program"):
        verde.load(tmp_path)
    program, log = (run / "program").read_bytes(), (run / "run.json").read_bytes()
    changed = bytearray(program)
    changed[30] ^= 1
    for name, data, why in [
        ("program", program[:40], "ends in its head"),
        ("program", b"text" + program, "is no program"),
        ("program", program[:15] + b"\2" + program[16:], "version 2 of a program; this verde"),
        ("program", program[:17] + b"\2" + program[18:], "version 2 of the specification"),
        ("program", bytes(changed), "of another program"),
        ("run.json", b"[]", "no JSON object"),
        ("run.json", b"{", "is not JSON"),
        ("run.json", b'{"a": 1, "a": 2}', "a member is there twice"),
        ("run.json", b'{"states": [{}]}', "its version is None"),
        ("run.json", b'{"verde_run": 1, "states": [{}]}', "is no run.json"),
        ("run.json", b'{"verde_run": 2, "more": 1}', "run.json: version 2 of the log of a run;"),
        ("run.json", b'{"verde_run": 1.0}', "its version is 1.0"),
        ("run.json", b'{"verde_run": true}', "its version is True"),
        ("run.json", b'{"verde_run": 1, "more": 1}', "unknown member `more`"),
        ("run.json", b'{"verde_run": 1, "states": [{"x": 1}]}', "unknown member `x` in states.0."),
    ]:
        (tmp_path / "program").write_bytes(program)
        (tmp_path / "run.json").write_bytes(log)
        (tmp_path / name).write_bytes(data)
        with pytest.raises(verde.Error, match=why):
            verde.load(tmp_path)


def test_a_state_of_all_types(tmp_path):
    """A program written by hand after PROTOCOL.md section 1.2, without its graphs."""

    def leaf(name, dtype, *shape):
        head = struct.pack("<H", len(name)) + name.encode() + bytes([dtype, len(shape)])
        return head + struct.pack(f"<{len(shape)}Q", *shape)

    types = ["<f4", "<i4", "u1", "<u2", "<u2", "<f2", "i1"]
    arrays = [np.arange(6).astype(t).reshape(2, 3) + 1 for t in types]
    arrays[4] = (arrays[4] << 8).view(repops.bfloat16)
    head = struct.pack("<H", 13) + b"verde program" + struct.pack("<HHQQQ", 1, 1, 5, 9, 3)
    program = head + struct.pack("<I", 1) + leaf("data", 3, 7) + bytes(32) + struct.pack("<I", 7)
    program += b"".join(leaf(f"t{i + 1}", i + 1, 2, 3) for i in range(7)) + b"graphs"
    digest = hashlib.sha256(b"verde/program/1\0" + program).hexdigest()
    parts = [repops.commitment(a) for a in arrays]
    own = repops._commit.state(digest, 9, repops.root(parts))
    (tmp_path / "program").write_bytes(program)
    log = {"verde_run": 1, "program": digest, "states": [{"step": 9, "state": own}]}
    (tmp_path / "run.json").write_text(json.dumps(log))
    (tmp_path / f"state-{own}").write_bytes(b"".join(a.tobytes() for a in arrays))
    state = verde.load(tmp_path)
    assert state.program.seed == 5 and state.program.data == [("data", "00" * 32)]
    assert verde.Run(tmp_path).root is None
    for array, name in zip(arrays, state):
        assert (state[name] == array).all() and state[name].dtype == array.dtype
    torch = pytest.importorskip("torch")
    bits = torch.from_numpy(arrays[4].view("i2")).view(torch.bfloat16)
    assert repops.torch.commitments({"x": bits})["x"] == parts[4]
    assert state.torch()["t5"].dtype is torch.bfloat16 and torch.equal(state.torch()["t5"], bits)


# ---- verdicts ----


@pytest.fixture(scope="module")
def wrong(command, top, tmp_path_factory):
    """A function that runs the job with a fault and returns the folder."""

    def make(fault):
        folder = tmp_path_factory.mktemp("wrong") / "run"
        called(command, "run", top / "models/jobs/toy.yaml", "--out", folder, "--fault", fault)
        return folder

    return make


@pytest.fixture(scope="module")
def verdict(command, top, run, wrong, tmp_path_factory):
    place = tmp_path_factory.mktemp("dispute")
    return settle(command, top / "models/jobs/toy.yaml", place, [run, wrong("element@7")])


def test_a_verdict_is_shown(verdict, command, run):
    it = verde.Verdict(verdict)
    assert it.result == "convicted" and it.outcome["step"] == 7 and it.verified is None
    assert it.program == verde.Run(run).program.hash
    rows = dict(it.rows())
    assert rows["accepted"] == verde.Run(run).root and "step 7, node" in rows["where"]
    assert rows["provider 1"].startswith("stands") and "convicted" in rows["provider 2"]
    value = np.array(int(it.outcome["expected"], 16), "u4").view("f4")
    assert np.float32(rows["reference"].split()[0]) == value
    assert "not verified here" in it._repr_html_() and "color: gray" in it._repr_html_()
    assert it.verify(command) and "verified: the evidence" in repr(it)
    with pytest.raises(verde.Error, match="--referee"):
        it.verify(command, referee="12")


def test_a_verdict_between_three_shows_its_games(command, top, run, wrong, tmp_path):
    runs = [wrong("element@7"), run, wrong("element@9")]
    it = verde.Verdict(settle(command, top / "models/jobs/toy.yaml", tmp_path, runs))
    rows = dict(it.rows())
    assert rows["accepted"] == verde.Run(run).root and len(it.games) == 2
    said = [rows[f"game {i + 1}"] for i in range(2)]
    assert said[0].startswith("level 1: provider ") and said[1].startswith("level 2: provider ")
    for text, game in zip(said, it.games):
        assert f"step {game['step']}, node {game['node']} {game['node_name']}" in text
        assert sorted(game["standing"]) == ["convicted", "stands"]
        for number, standing in zip(game["providers"], game["standing"]):
            assert f"provider {number + 1} {standing}" in text
    assert "game 3" not in rows and said[1] in it._repr_html_()
    assert it.verify(command)


def test_a_verdict_has_the_bytes_of_its_games(verdict, tmp_path, monkeypatch):
    size = verdict.stat().st_size
    monkeypatch.setattr("verde._verdict.VERDICT_MAX", size - 3)
    monkeypatch.setattr("verde._verdict.GAME_MAX", 1)
    with pytest.raises(verde.Error, match=f"expected at most {size - 1} bytes of 2 games"):
        verde.Verdict(verdict)
    monkeypatch.setattr("verde._verdict.GAME_MAX", 4 * size)

    def change(statement):
        game = {"level": 1, "providers": [0, 1], "standing": ["stands", "<b>"], "rounds": 1}
        statement["predicate"]["outcome"]["games"] = [game, {}]

    it = changed(verdict, tmp_path / "v.json", change)
    assert dict(it.rows())["game 1"] == "level 1: provider 1 stands; provider 2 <b>"
    assert dict(it.rows())["game 2"] == "{}" and "<b>" not in it._repr_html_()
    monkeypatch.setattr("verde._verdict.GAMES_MAX", 0)
    with pytest.raises(verde.Error, match=f"v.json: expected at most {size - 3} bytes$"):
        verde.Verdict(verdict.parent / "v.json")


def changed(verdict, file, change):
    note = json.loads(verdict.read_text())
    statement = json.loads(base64.b64decode(note["payload"]))
    change(statement)
    note["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
    file.write_text(json.dumps(note))
    return verde.Verdict(file)


def test_a_verdict_that_was_changed_does_not_hold(verdict, command, tmp_path):
    def change(statement):
        statement["predicate"]["outcome"]["providers"][0]["standing"] = "<script>alert(1)</script>"

    it = changed(verdict, tmp_path / "v.json", change)
    assert not it.verify(command) and it.verified is False
    page = it._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page and "DOES NOT HOLD" in page


def test_a_later_verdict_is_not_read(verdict, command, tmp_path):
    file = tmp_path / "v.json"
    later = "https://verde.invalid/verdict/v3"
    with pytest.raises(verde.Error, match=f"`predicateType` is {later}; this verde reads"):
        changed(verdict, file, lambda s: s.update(predicateType=later))
    it = changed(verdict, file, lambda s: None)
    note = json.loads(file.read_text())
    note["signatures"][0]["keyid"] = "ml-dsa-65:00"
    file.write_text(json.dumps(note))
    with pytest.raises(verde.Error, match="this verde cannot decide: .* type ml-dsa-65"):
        it.verify(command)
    assert it.verified is None


def test_what_is_no_verdict_is_an_error(verdict, tmp_path):
    file = tmp_path / "v.json"
    for text in ("", "[]", "{}", '{"payloadType": "x", "payload": ""}'):
        file.write_text(text)
        with pytest.raises(verde.Error, match=str(file)):
            verde.Verdict(file)
    for gone in ("outcome", "cost"):
        with pytest.raises(verde.Error, match="a member is missing"):
            changed(verdict, file, lambda s, gone=gone: s["predicate"].pop(gone))
    with pytest.raises(verde.Error, match="is not base64"):
        note = json.loads(verdict.read_text())
        file.write_text(json.dumps({**note, "payload": "?" + note["payload"]}))
        verde.Verdict(file)


# ---- text ----


@pytest.fixture(scope="module")
def tokenizer(top, tmp_path_factory):
    tokenizers = pytest.importorskip("tokenizers")
    own = tokenizers.Tokenizer(tokenizers.models.BPE())
    own.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    own.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=alphabet, special_tokens=["<|end|>"], show_progress=False
    )
    own.train([str(top / "verde/PROTOCOL.md")], trainer)
    file = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    own.save(str(file))
    return file


def test_a_token_file_that_a_job_reads(tokenizer, command, top, tmp_path):
    it = verde.text.Tokenizer(tokenizer)
    files = [top / "verde/THREATS.md", top / "README.md"]
    written = it.write(tmp_path / "t.bin", files, separator="<|end|>")
    data = (tmp_path / "t.bin").read_bytes()
    assert written.sha256 == hashlib.sha256(data).hexdigest()
    tokens = verde.text.read(tmp_path / "t.bin")
    assert len(tokens) == written.tokens and tokens.dtype == np.uint16
    end = np.flatnonzero(tokens == it.token("<|end|>"))
    assert len(end) == 2 and end[0] == 0
    assert it.decode(tokens[1 : end[1]]) == files[0].read_text()
    assert it.decode(tokens[end[1] + 1 :]) == files[1].read_text()
    assert not list(tmp_path.glob("*.new"))
    job = f"""verde: 1
model: {{kind: mlp, vocab: {it.vocab}, layers: 1, channels: 8, hidden: 8}}
data: {{kind: tokens, file: t.bin, sha256: {written.sha256}}}
seed: 1
batch: 2
sequence: 16
steps: 1
checkpoint_interval: 1
optimizer: {{kind: sgd, lr: 0.1, momentum: 0, nesterov: false, weight_decay: 0, clip_norm: 0}}
schedule: {{kind: constant, warmup: 0}}
"""
    (tmp_path / "job.yaml").write_text(job)
    called(command, "run", tmp_path / "job.yaml", "--out", tmp_path / "run")
    read = verde.Run(tmp_path / "run").program.data
    assert [commitment for _, commitment in read] == [repops.commitment(np.array(tokens))]


def test_prompts_and_their_text(tokenizer):
    it = verde.text.Tokenizer(tokenizer)
    prompt = "A conviction rests on what the provider has signed: grün, 日本."
    assert it.decode(it.encode(prompt)) == prompt
    assert it.decode([it.token("<|end|>"), *it.encode("a")]) == "a"
    assert it.decode([it.token("<|end|>")], special=True) == "<|end|>"
    with pytest.raises(verde.Error, match="token 400 is none of the vocabulary, 0 to 399"):
        it.decode([1, 400])
    with pytest.raises(verde.Error, match="no token '<s>'"):
        it.token("<s>")


TEMPLATE = """{%- for m in messages %}
{{- '<|end|>' if loop.first else '' }}
{%- if m.role not in ['user', 'assistant'] %}{{ raise_exception('no role ' + m.role) }}{% endif %}
{{- m.role + ': ' + m.content | trim + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}
{%- if strftime_now is defined %}{{ strftime_now('%Y') }}{% endif %}"""
CHAT = [
    {"role": "user", "content": " Who signs? "},
    {"role": "assistant", "content": "The provider."},
    {"role": "user", "content": "And who pays?"},
]


@pytest.fixture
def folder(tokenizer, tmp_path):
    """A model's folder with a tokenizer and a template."""
    out = tmp_path / "model"
    out.mkdir()
    (out / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    config = {"chat_template": TEMPLATE, "eos_token": {"content": "<|end|>"}}
    (out / "tokenizer_config.json").write_text(json.dumps(config))
    return out


def test_a_chat_becomes_the_tokens_of_its_template(folder):
    pytest.importorskip("jinja2")
    it = verde.text.Tokenizer(folder)
    text = "user: Who signs?\nassistant: The provider.\nuser: And who pays?\nassistant: "
    assert it.chat(CHAT) == [it.token("<|end|>"), *it.encode(text)]
    with pytest.raises(verde.Error, match="refuses this one: no role judge"):
        it.chat([{"role": "judge", "content": ""}])
    (folder / "chat_template.jinja").write_text("{{ eos_token }}{{ messages | tojson }}{{ more }}")
    it = verde.text.Tokenizer(folder)
    assert it.decode(it.chat([{"a": "ü"}], more=1), special=True) == '<|end|>[{"a": "ü"}]1'
    (folder / "chat_template.jinja").write_text("{{ ''.__class__.__mro__ }}")
    with pytest.raises(verde.Error, match="refuses"):
        verde.text.Tokenizer(folder).chat(CHAT)
    with pytest.raises(verde.Error, match="no template"):
        verde.text.Tokenizer(folder / "tokenizer.json").chat(CHAT)


def test_a_chat_has_the_tokens_that_transformers_gives_it(folder):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("jinja2")
    template = TEMPLATE.replace("strftime_now is defined", "false")
    own = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    theirs = own.apply_chat_template(CHAT, chat_template=template, add_generation_prompt=True)
    theirs = theirs["input_ids"] if hasattr(theirs, "keys") else theirs
    assert verde.text.Tokenizer(folder).chat(CHAT) == theirs


def test_prompts_are_written_and_answers_are_read_as_text(folder, tmp_path):
    pytest.importorskip("jinja2")
    it = verde.text.Tokenizer(folder)
    written = it.prompts(tmp_path / "p.jsonl", ["A verdict", CHAT], max_tokens=3)
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert lines == [
        {"key": 0, "ids": it.encode("A verdict"), "max_tokens": 3},
        {"key": 1, "ids": it.chat(CHAT), "max_tokens": 3},
    ]
    assert written == (2, hashlib.sha256((tmp_path / "p.jsonl").read_bytes()).hexdigest())
    ids = it.encode("yes. END no")
    results = tmp_path / "results.jsonl"
    results.write_text(
        "".join(
            json.dumps({"key": k, "ids": ids, "stopped": "length"}) + "\n"
            for k in range(written[0])
        )
    )
    assert it.answers(results)[1] == (1, "yes. END no", "length")
    assert it.answers(results, stop=["no", "END", "never"])[0] == (0, "yes. ", "stop")
    assert it.answers(results, stop=["never", ""])[0] == (0, "yes. END no", "length")
    results.write_text('{"key": 1}\n')
    with pytest.raises(verde.Error, match="results.jsonl:1 is no result"):
        it.answers(results)
    for nothing in ([], [""]):
        with pytest.raises(verde.Error, match="no tokens|no prompts"):
            it.prompts(tmp_path / "none.jsonl", nothing)
    assert not (tmp_path / "none.jsonl").exists()


def test_wrong_texts_and_token_files_are_errors(tokenizer, tmp_path):
    it = verde.text.Tokenizer(tokenizer)
    (tmp_path / "latin").write_bytes(b"gr\xfcn")
    (tmp_path / "empty").write_bytes(b"")
    out = tmp_path / "t.bin"
    for file, why in [("latin", "not UTF-8"), ("none", "cannot read"), ("empty", "have 0 tokens")]:
        with pytest.raises(verde.Error, match=why):
            it.write(out, [tmp_path / file])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "latin"]
    with pytest.raises(verde.Error, match="is no tokenizer.json"):
        verde.text.Tokenizer(tmp_path / "latin")
    with pytest.raises(verde.Error, match="cannot write"):
        it.write(tmp_path / "no/t.bin", [Path(__file__)])
    it.write(out, [Path(__file__)])
    data = out.read_bytes()
    for wrong in (data[:-2], data[:100], bytes(4) + data[4:], data[:40] + b"\1" + data[41:]):
        out.write_bytes(wrong)
        with pytest.raises(verde.Error, match=str(out)):
            verde.text.read(out)
