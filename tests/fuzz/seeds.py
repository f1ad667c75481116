"""Writes tests/fuzz/corpus: valid inputs of each target, from a run, a dispute and a log of seed.yaml.

Usage: python3 tests/fuzz/seeds.py [BUILD_DIR], from the root of the project. Python's own library is enough.
Where a target already has files in the project, such as jobs and models, run.sh takes those.
"""

import base64
import hashlib
import json
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

BUILD = sys.argv[1] if len(sys.argv) > 1 else "build"
CORPUS = Path("tests/fuzz/corpus")
JOB = "tests/fuzz/seed.yaml"
# The seed of fuzz_key(), and its public key.
SEED = bytes([7] + [0] * 31)
KEY = "a2fa2f4a355ba2e907a53009e9e37caddf7ac7e66a08ba07631f553072b3f24c"


def verde(*arguments, **options):
    return subprocess.run([f"{BUILD}/bin/verde", *arguments], check=True, capture_output=True, **options)


def keep(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def payload_of(note):
    return base64.b64decode(note["payload"])


def referee_key(folder):
    der = bytes.fromhex("302e020100300506032b657004220420") + SEED
    folder.mkdir()
    pem = f"-----BEGIN PRIVATE KEY-----\n{base64.b64encode(der).decode()}\n-----END PRIVATE KEY-----\n"
    (folder / "key.pem").write_text(pem)
    (folder / "key.pem").chmod(0o600)


def serve(folder, name, *options):
    process = subprocess.Popen(
        [f"{BUILD}/bin/verde", "serve", str(folder / name), "--key", str(folder / f"keys-{name}"), *options],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return process, process.stdout.readline().strip()


def dispute(folder):
    """The verdict on an honest provider against one with a wrong element, as JSON."""
    verde("run", JOB, "--out", str(folder / "honest"))
    verde("run", JOB, "--out", str(folder / "liar"), "--fault", "element@1")
    sides = [serve(folder, name) for name in ("honest", "liar")]
    referee_key(folder / "referee")
    verdict, fraud = folder / "verdict.json", folder / "fraud.json"
    subprocess.run([f"{BUILD}/bin/verde", "arbitrate", JOB, "--key", str(folder / "referee"), "--verdict", str(verdict),
                    "--no-challenge", "--provider", sides[0][1], "--provider", sides[1][1]], capture_output=True)
    subprocess.run([f"{BUILD}/bin/verde", "audit", JOB, "--key", str(folder / "referee"), "--proof", str(fraud), "--steps", "0",
                    "--all", "--work", str(folder / "audit"), "--provider", sides[1][1]], capture_output=True)
    for process, _ in sides:
        process.terminate()
        process.wait()
    keep_fraud(json.loads(fraud.read_text()))
    return json.loads(verdict.read_text())


def keep_fraud(proof):
    payload = payload_of(proof)
    keep("verdict", "fraud", payload)
    keep("assignment", "audit", payload_of(json.loads(payload)["predicate"]["assignment"]))


def keep_statements(verdict):
    statement = json.loads(payload_of(verdict))["predicate"]
    keep("assignment", "two", payload_of(statement["assignment"]))
    keep("note", "assignment", json.dumps(statement["assignment"], separators=(",", ":")).encode())
    asked = set()
    for item in statement["evidence"]:
        answer = json.loads(payload_of(item["statement"]))
        for leaf in answer["answer"].get("leaves", []):
            keep_leaf(base64.b64decode(leaf["data"]), leaf["path"])
        kind = ",".join(sorted(answer["answer"]))
        if kind in asked:
            continue
        asked.add(kind)
        answer.update(assignment="0" * 64, question="0" * 64, key=KEY)
        keep("answer", str(len(asked)), json.dumps(answer, separators=(",", ":"), sort_keys=True).encode())


def keep_leaf(data, path):
    if len(data) > 68 and (len(data) - 68) % 32 == 0:
        keep("record", "node", data)
    keep("proof", str(len(path)), struct.pack("<QQ", 0, 1 << len(path)) + data[:32].ljust(32, b"\0") + bytes.fromhex("".join(path)))


def keep_questions():
    trees = {"run": {"of": "run"}, "subrun": {"from": 0, "of": "subrun", "to": 4}, "trace": {"of": "trace", "step": 4},
             "state": {"of": "state", "step": 4}, "tensor": {"of": "tensor", "step": 4, "value": 76}}
    asks = [{"ask": "commit"}, {"ask": "challenge"}, {"ask": "reveal", "commits": ["1" * 64, "2" * 64]}]
    asks += [{"ask": ask, "tree": trees[ask]} for ask in ("subrun", "trace")]
    asks += [{"ask": "open", "depth": 4, "hi": 2, "lo": 0, "tree": tree} for tree in trees.values()]
    asks += [{"ask": "prove", "leaves": [0, 1], "tree": tree} for tree in trees.values()]
    asks += [{"ask": ask, "draw": "3" * 64, "tree": trees[ask], "verde": 2} for ask in ("subrun", "trace")]
    for i, ask in enumerate(asks):
        ask.update(assignment="0" * 64, verde=ask.get("verde", 1))
        keep("question", str(i), json.dumps(ask, separators=(",", ":"), sort_keys=True).encode())


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def keep_sections(folder, encoding, number):
    """Keeps sections of a step's log (PROTOCOL.md section 11.1), whose index tells where each ends."""
    log = (folder / "log" / "step-00000002.vlog").read_bytes()
    end, = struct.unpack("<Q", log[-8 - 32 - 4 - 16:][:8])
    step = log[:end]
    index, = struct.unpack("<Q", step[-80:-72])
    count, = struct.unpack("<I", step[12:16])
    start, kept = 8 + 4 + 4 + 8 + 96, 0
    for _ in range(count):
        fields = []
        for _ in range(5):
            value, index = varint(step, index)
            fields.append(value)
        index += 32
        section = step[start:start + fields[1]]
        start += fields[1]
        node, at = varint(section, 0)
        elements, _ = varint(section, at)
        if node < 128 and kept < 3:
            kept += 1
            keep("section", f"{encoding}-{kept}", bytes([number | node << 1]) + struct.pack("<H", elements & 0xffff) + section)


def job_text():
    return Path(JOB).read_text().replace("../../models", str(Path("models").resolve()))


def keep_repeat(folder):
    """Keeps a program that stores the nodes of its micro-batches once (PROTOCOL.md section 1.5)."""
    job = folder / "repeat.yaml"
    job.write_text(job_text().replace("batch: 1", "batch: 2\nmicro_batches: 2"))
    verde("run", str(job), "--out", str(folder / "repeat"))
    program = (folder / "repeat" / "program").read_bytes()
    keep("program", "repeat", program)
    keep("program", "ranges", program + struct.pack("<BIIqq", 1, 1, 0, 10, 126))


def rounded_run(folder, encoding):
    rounding = f"rounding: {{bits: 28, encoding: {encoding}"
    if encoding == "symbols":
        table = folder / "thresholds"
        verde("calibrate", JOB, "--bits", "28", "--out", str(table), "--steps", "2")
        keep("thresholds", "seed", table.read_bytes())
        sha = subprocess.run(["sha256sum", table], capture_output=True, text=True).stdout[:64]
        rounding += f", thresholds: {table}, sha256: {sha}"
    job = folder / f"{encoding}.yaml"
    job.write_text(job_text() + rounding + "}\n")
    verde("run", str(job), "--out", str(folder / encoding), "--backend", "log")
    keep("run", encoding, (folder / encoding / "run.json").read_bytes())
    return folder / encoding


def safetensors_headers():
    for name in ("gpt2", "types"):
        data = Path(f"tests/vectors/weights/{name}/model.safetensors").read_bytes()
        size, = struct.unpack("<Q", data[:8])
        keep("safetensors", name, data[:8 + size] + bytes(min(64, len(data) - 8 - size)))
    index = {"metadata": {"total_size": 8}, "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    keep("shards", "two", json.dumps(index).encode())


def data_files():
    header = struct.pack("<3i", 20240520, 1, 8) + bytes(1012)
    keep("data", "text", b"\0" + b"some text to learn from")
    keep("data", "tokens", b"\1" + header + struct.pack("<8H", *range(8)))
    keep("data", "tokens32", b"\1" + struct.pack("<3i", 20240801, 7, 8) + bytes(1012) + struct.pack("<8I", *range(8)))
    keep("data", "images", b"\2" + bytes(3073))


def folders():
    places = {"verde_places": 1, "step": ["train.py:12", "", "backward of net.py:3"]}
    lists = {"inside": ("data.json", 0), "misplaced": ("data.json", 3), "outside": ("/etc/hostname", 0), "none": ("x.npy", 128)}
    for name, (file, offset) in lists.items():
        keep("folder", name, b"\0" + json.dumps({"verde": 1, "data": [{"name": "x", "file": file, "offset": offset}]}).encode())
    keep("folder", "places", b"\1" + json.dumps(places).encode())


def arguments():
    for i, text in enumerate(["https://127.0.0.1:8443#" + KEY, "https://[::1]:1/", "element@3", "attr@11", "element@3:1:2", "silent@commit"]):
        keep("argument", str(i), text.encode())


def requests():
    close = b"Connection: close\r\n"
    keep("request", "get", b"GET /v1/provider HTTP/1.1\r\nHost: a\r\n" + close + b"\r\n")
    keep("request", "post", b"POST /v1/ask HTTP/1.1\r\nContent-Length: 4\r\n" + close + b"\r\n{}{}")
    keep("request", "put", b"PUT /v1/blobs/0?size=4&from=0 HTTP/1.1\r\nVerde-Request: aaaa\r\nContent-Length: 4\r\n" + close + b"\r\n0123")
    keep("request", "refused", b"POST / HTTP/1.1\r\nX-Refuse: 1\r\nContent-Length: 4\r\n" + close + b"\r\n0123")
    keep("request", "expect", b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n" + close + b"\r\n0")
    keep("request", "chunked", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n0\r\n0\r\n\r\n")
    keep("request", "two", b"GET / HTTP/1.1\r\n\r\nDELETE /v1/jobs/0 HTTP/1.1\r\n" + close + b"\r\n")


def frame(seal, *entries):
    """A frame of a dispute's journal (PROTOCOL.md section 8.8), and its hash."""
    body = b"".join(struct.pack("<BI32sQI", kind, provider, question, used, len(data)) + data
                    for kind, provider, question, used, data in entries)
    size = struct.pack("<Q", len(body))
    seal = hashlib.sha256(b"verde/dispute/1\0" + seal + size + body).digest()
    return size + struct.pack("<Q", len(body) ^ (1 << 64) - 1) + body + seal, seal


def journals():
    one, seal = frame(bytes(32), (1, 0, bytes(32), 0, b"{}"))
    two, seal = frame(seal, (2, 0, b"q" * 32, 0, b"{}"), (2, 1, b"q" * 32, 0, b"{}"))
    three, seal = frame(seal, (3, 1, b"q" * 32, 5, b""))
    four, seal = frame(seal, (4, 0, b"q" * 32, 7, b"{}"))
    five, _ = frame(seal, (5, 1, b"q" * 32, 9, b"did not answer in time"))
    whole = b"verde dispute\0\1\0" + one + two + three + four + five
    keep("minutes", "whole", b"\0" + whole)
    keep("minutes", "torn", b"\0" + whole[:-20])
    keep("minutes", "entries", b"\1" + one[16:-32] + two[16:-32] + three[16:-32] + four[16:-32] + five[16:-32])


def prompt_files():
    files = {"empty-line": '{"key":1,"ids":[1,2]}\n\n', "nested": '{"key":1,"key":2,"ids":[[],{}]}', "past": '{"key":1,"ids":[1000,2]}',
             "twice": '{"key":1,"ids":[1,2]}\n{"key":1,"ids":[1,2]}', "two": '{"key": 7, "ids": [1, 2, 999]}\n{"ids":[0,5],"key":9223372036854775807}\n'}
    for name, text in files.items():
        keep("prompts", name, text.encode())


def run_prompts(folder, name, task, prompts):
    """Programs of a small Llama's prompts, and the download of their runs: run roots and records."""
    out, model = folder / name, Path("tests/vectors/pretrained/llama").resolve()
    verde("manifest", str(model), "--out", str(folder / "manifest"))
    text = "".join(json.dumps({"key": key, "ids": ids}) + "\n" for key, ids in prompts)
    (folder / f"{name}.jsonl").write_text(text)
    sha = hashlib.sha256((folder / "manifest").read_bytes()).hexdigest()
    job = folder / f"{name}.yaml"
    job.write_text(f"verde: 1\n{task}\nmodel: {{kind: pretrained, dir: {model}, sha256: {sha}}}\n"
                   f"prompts: {{file: {name}.jsonl, sha256: {hashlib.sha256(text.encode()).hexdigest()}}}\n")
    said = json.loads(verde("run", str(job), "--out", str(out), "--json").stdout.splitlines()[-1])
    process, url = serve(folder, name, "--fetch")
    verde("fetch", str(job), "--run-root", said["job_root"], "--provider", url, "--out", str(folder / f"fetched-{name}"))
    process.terminate()
    process.wait()
    programs = [(out / "prompts" / str(key) / "program").read_bytes() for key, _ in prompts]
    proof = (folder / f"fetched-{name}" / "results.proof").read_bytes()
    return programs, proof[16:]  # without name and version


def changes(base, code):
    """How a program differs from one of equal size (PROTOCOL.md section 8.7)."""
    at = [i for i in range(len(code)) if code[i] != base[i]]
    first, last = at[0], at[-1] + 1
    return struct.pack("<II", first, last - first) + code[first:last]


def pack(own, items):
    data = b"verde pack\0" + struct.pack("<HIH", 1, len(items), own)
    for key, base, code, own_data in items:
        data += struct.pack("<QII", key, base, len(code)) + code + struct.pack("<I", len(own_data)) + own_data
    return data


def keep_prompts(folder):
    ids = lambda list_: struct.pack(f"<{len(list_)}i", *list_)
    prompts = [(7, [5]), (3, [1, 2, 3]), (9, [4, 9, 6])]
    programs, _ = run_prompts(folder, "scores", "task: score", [prompts[1], prompts[2]])
    items = [(3, 0, programs[0], ids([1, 2, 3])), (9, 0, changes(*programs), ids([4, 9, 6]))]
    keep("pack", "score", pack(1, items))
    task = "task: generate\nmax_tokens: 2\nsampling: {temperature: 1, seed: 7}\nlog_probabilities: 2"
    for key, list_ in prompts[:2]:
        programs, proof = run_prompts(folder, f"text-{key}", task, [(key, list_)])
        keep("item_record", f"text-{len(list_)}", struct.pack("<I", len(programs[0])) + programs[0] + proof[32:])
    keep("pack", "generate", pack(2, [(key, 0, programs[0], ids(list_) + struct.pack("<Q", key))]))
    programs, proof = run_prompts(folder, "score", "task: score", [prompts[1]])
    keep("item_record", "score", struct.pack("<I", len(programs[0])) + programs[0] + proof[32:])


def main():
    shutil.rmtree(CORPUS, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp)
        verdict = dispute(folder)
        keep("verdict", "wrong-output", payload_of(verdict))
        keep_statements(verdict)
        keep("run", "fixed", (folder / "honest" / "run.json").read_bytes())
        verde("export", str(folder / "honest"), "--out", str(folder / "exported"))
        keep("delivered", "mlp", (folder / "exported" / "proof.json").read_bytes())
        keep("program", "mlp", (folder / "honest" / "program").read_bytes())
        keep_repeat(folder)
        keep_prompts(folder)
        for encoding, number in (("calls", 0), ("symbols", 1)):
            keep_sections(rounded_run(folder, encoding), encoding, number)
    keep_questions()
    safetensors_headers()
    data_files()
    folders()
    arguments()
    requests()
    journals()
    prompt_files()
    keep("profile", "wide", b"lanes: 8\nsplit: 64\npairwise: 1\ncontract: 1\ndescending: 0\nestrin: 1\n")


main()
