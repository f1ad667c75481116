#!/bin/sh
# `verde delegate` with prompts: results come back as `verde run` writes them, with each byte checked; a dishonest provider is
# convicted; a client and a provider that were killed continue; an invalid pack of programs is refused.
. tests/support/system

model="model: {kind: pretrained, dir: llama, sha256: $(take_model llama)}"

# prompts NAME COUNT: writes a file of prompts, some of a single token.
prompts() {
    python3 - "$work/$1" "$2" << 'PYTHON'
import json
import sys
with open(sys.argv[1], "w") as f:
    for i in range(int(sys.argv[2])):
        ids = [(7 * i + 3 * j * j + j) % 64 for j in range(1 + 5 * i % 23)]
        f.write(json.dumps({"key": 5000 - i, "ids": ids if len(ids) > 1 or sys.argv[1].endswith("/one.jsonl") else ids + [5]}) + "\n")
PYTHON
}

# job NAME TASK PROMPTS MORE: writes $work/NAME.yaml.
job() {
    cat > "$work/$1.yaml" << YAML
verde: 1
task: $2
$model
prompts: {file: $3, sha256: $(sum_of "$work/$3")}
${4:-}
YAML
}

# honest NAME: makes the expected result in $work/run-NAME.
honest() {
    "$verde" run "$work/$1.yaml" --out "$work/run-$1" --threads 1 > "$work/out" 2> "$work/err" || fail "$1 does not run"
    root=$(sed -n 's/^job root  *//p' "$work/out")
    [ -n "$root" ] || fail "$1 has no job root"
}

# same RESULT NAME: the result is complete, and is that of the honest run NAME.
same() {
    cmp "$work/$1/results.jsonl" "$work/run-$2/results.jsonl" || fail "$1 has other results than an honest run"
    [ -s "$work/$1/results.proof" ] && [ ! -e "$work/$1/results.part" ] || fail "$1 is not finished"
}

"$verde" keygen "$work/client" > /dev/null
prompts one.jsonl 11
prompts some.jsonl 40
job generate generate one.jsonl 'sampling: {temperature: 1.5, top_k: 40, top_p: 0.9, seed: 7}
max_tokens: 10
min_tokens: 3
stop: [3, 11]
repetition_penalty: 1.2
log_probabilities: 2'
job score score some.jsonl
honest generate
generate_root=$root
honest score
score_root=$root
provide a 127.0.0.1:0
a_pid=$pid
provide b 127.0.0.1:0 --page 0
b_pid=$pid
provide wrong 127.0.0.1:0 --fault 4995/element@2:choice.token
provide late 127.0.0.1:0 --fault 4987/element@0:score.log_probability

# ---- agreement and disagreement ----

two="--key $work/client --provider $a --provider $b"
expect 0 "results  *$work/agreed/results.jsonl, 11 prompts, every byte checked" "$verde" delegate "$work/generate.yaml" $two --out "$work/agreed"
same agreed generate
grep -q "^job root  *$generate_root" "$work/out" || fail "another job root than that of an honest run"
grep -q '^provider 2  done; it says run root' "$work/err" || fail "no line of provider 2"
if command -v curl > /dev/null; then # the daemon's page leads to one with each prompt
    here=$(sed -n 's|^page for people: \(.*\)/$|\1|p' "$work/b.log")
    page=$(curl -s "$here/" | sed -n 's|.*href="\(/jobs/[0-9a-f]*\)".*|\1|p' | head -n 1)
    curl -s "$here$page" | grep -q "href=\"$page/run.html\">prompts, answers, roots" || fail "no link to the page of its run"
    curl -s "$here$page/run.html" > "$work/run.html"
    for words in 'A finished run' "$generate_root" '(1 token)' 'ended by'; do
        grep -qF "$words" "$work/run.html" || fail "the page of a run of prompts has not \"$words\""
    done
fi
expect 2 'exists already' "$verde" delegate "$work/generate.yaml" $two --out "$work/agreed"
expect 2 'no run lies there, but results' "$verde" inspect "$work/agreed"
expect 0 '"prompts":40' "$verde" delegate "$work/score.yaml" $two --out "$work/score" --json
same score score
[ "$(wc -l < "$work/out")" -eq 1 ] || fail "--json: not one line"
grep -q '"perplexity":' "$work/out" && grep -q "\"job_root\":\"$score_root\"" "$work/out" || fail "--json: no score, or another root"
expect 3 'CONVICTED' "$verde" delegate "$work/generate.yaml" --key "$work/client" --provider "$wrong" --provider "$a" --out "$work/convicted"
same convicted generate
expect 0 'VERIFIED\|verified' "$verde" verify "$work/convicted/verdict.json"
if python3 -c 'import sys, cryptography; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
    expect 0 'holds' env PYTHONDONTWRITEBYTECODE=1 python3 tests/independent/verify.py "$work/convicted/verdict.json"
fi
expect 3 'CONVICTED' "$verde" delegate "$work/score.yaml" --key "$work/client" --provider "$late" --provider "$a" --out "$work/scored"
same scored score
# The daemon reports a fault that changes nothing.
provide idle 127.0.0.1:0 --fault 5000/element@0
expect 0 '11 prompts, every byte checked' "$verde" delegate "$work/generate.yaml" --key "$work/client" --provider "$idle" --provider "$a" --out "$work/idled"
grep -q 'done after .*; its fault changed nothing, so that this run is honest' "$work/idle.log" || fail "the daemon does not say that its fault is idle"
if grep -q 'changed nothing' "$work/wrong.log"; then fail "a fault that changed something is said to have changed nothing"; fi

# ---- classes; results served without a daemon ----

printf '{"key": 7, "ids": [15, 2, 9]}\n{"key": 3, "ids": [5]}\n' > "$work/class.jsonl"
model="model: {kind: pretrained, dir: bert-classes, sha256: $(take_model bert-classes)}"
job class score class.jsonl
honest class
class_root=$root
serve run-class --fetch
expect 0 '2 prompts, every byte checked' "$verde" fetch "$work/class.yaml" --run-root "$class_root" --provider "$(cat "$work/run-class.url")" --out "$work/class"
same class class
serve run-score --fetch
expect 6 'fetch takes its job file' "$verde" fetch --run-root "$class_root" --provider "$(cat "$work/run-class.url")" --out "$work/no"
expect 6 'no run with this root' "$verde" fetch "$work/class.yaml" --run-root "$score_root" --provider "$(cat "$work/run-class.url")" --out "$work/no"
expect 6 'the answer is larger than 65 bytes' "$verde" fetch "$work/class.yaml" --run-root "$score_root" --provider "$(cat "$work/run-score.url")" --out "$work/no"
expect 0 '40 prompts' "$verde" fetch "$work/score.yaml" --verdict "$work/scored/verdict.json" --provider "$(cat "$work/run-score.url")" --out "$work/served"
same served score
expect 6 'is about other programs' "$verde" fetch "$work/class.yaml" --verdict "$work/scored/verdict.json" --provider "$(cat "$work/run-score.url")" --out "$work/no"

# ---- wrong bytes: the provider is dropped and the next one used; a download that was cut continues ----

for items in "$work"/b/jobs/*/told/items; do
    python3 - "$items" << 'PYTHON'
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(-3, 2)
    last = f.read(1)
    f.seek(-3, 2)
    f.write(bytes([last[0] ^ 1]))
PYTHON
done
expect 0 'provider 1 (.*) is dropped: the result of the prompt with key 4961' "$verde" delegate "$work/score.yaml" --key "$work/client" \
    --provider "$b" --provider "$a" --out "$work/spoilt"
same spoilt score
grep -q '^provider 2   gave [1-9]' "$work/out" && grep -q '^provider 1   gave [1-9]' "$work/out" || fail "not both gave a part"
rm "$work/spoilt/results.jsonl"
head -c 5000 "$work/spoilt/results.proof" > "$work/spoilt/results.part"
expect 0 'were there' "$verde" delegate "$work/score.yaml" $two --out "$work/spoilt"
same spoilt score
# Killed between renaming its two files: it continues without a download.
mv "$work/spoilt/results.proof" "$work/spoilt/results.part"
expect 0 'were there' "$verde" delegate "$work/score.yaml" $two --out "$work/spoilt"
same spoilt score
mv "$work/spoilt/results.proof" "$work/spoilt/results.part"
mv "$work/spoilt/results.part" "$work/part"
tr '\000' '\001' < "$work/part" > "$work/spoilt/results.part"
expect 0 'every byte checked' "$verde" delegate "$work/score.yaml" $two --out "$work/spoilt"
same spoilt score

# ---- checked later, without any provider ----

# spoil FILE AT BYTE: copies the scored results and sets the byte at AT, counted from the end if negative.
spoil() {
    rm -rf "$work/later"
    cp -r "$work/scored" "$work/later"
    python3 - "$work/later/$1" "$2" << 'PYTHON'
import sys
with open(sys.argv[1], "rb") as f:
    bytes_ = bytearray(f.read())
bytes_[int(sys.argv[2])] ^= 1
with open(sys.argv[1], "wb") as f:
    f.write(bytes_)
PYTHON
}

check="$verde check $work/later --job $work/score.yaml --verdict $work/scored/verdict.json"
cp -r "$work/scored" "$work/later"
expect 0 "results  *every line of $work/later/results.jsonl, of 40 prompts" $check
grep -q "^job root  *$score_root" "$work/out" && grep -q '^verdict  *verified' "$work/out" || fail "no job root, or no verdict"
expect 0 "\"job_root\":\"$score_root\"" $check --json
# Of the model, checking needs only the manifest.
cp "$work/score.yaml" "$work/some.jsonl" "$work/referee"
expect 0 'fits  *yes' "$verde" check "$work/later" --job "$work/referee/score.yaml"
expect 2 'must name' "$verde" check "$work/later"
expect 6 'has no prompts' "$verde" check "$work/later" --job models/jobs/toy.yaml
expect 6 'is about another job' "$verde" check "$work/later" --job "$work/score.yaml" --verdict "$work/convicted/verdict.json"
expect 6 'the result of the prompt with key 5000.* is of another job than .*generate.yaml, or was changed' \
    "$verde" check "$work/later" --job "$work/generate.yaml"
expect 6 'run-score: holds runs of another job than .*class.yaml: 40 prompts, not 2' \
    "$verde" check "$work/run-score" --job "$work/class.yaml"
cp "$work/agreed/results.proof" "$work/later"
expect 6 'accepts job root' $check
spoil results.proof 5
expect 6 'later/results.proof: is no proof of results' $check
spoil results.proof 14
expect 8 'later/results.proof: version 0 of a proof of results; this verde reads version 1' $check
printf x >> "$work/later/results.jsonl"
cp "$work/scored/results.proof" "$work/later"
expect 6 'later/results.jsonl: has 1 bytes behind the last of 40 prompts' $check
cp -r "$work/scored/." "$work/later"
printf x >> "$work/later/results.proof"
expect 6 'later/results.proof: has 1 bytes behind the last of 40 prompts' $check
spoil results.proof 21
expect 6 "accepts job root $score_root" $check
expect 6 'later/results.proof: the result of the prompt with key 5000' "$verde" check "$work/later" --job "$work/score.yaml"
spoil results.proof -3
expect 6 'later/results.proof: the result of the prompt with key 4961' $check
spoil results.jsonl -4
expect 6 'later/results.jsonl: line 40, of the prompt with key 4961, is not what results.proof proves' $check
one_line
spoil results.jsonl 9
expect 6 'later/results.jsonl: line 1, of the prompt with key 5000' $check
for file in jsonl proof; do
    spoil results.jsonl 0
    cp "$work/scored/results.jsonl" "$work/later"
    printf '\n' >> "$work/later/results.$file"
    expect 6 "later/results.$file: has 1 bytes behind the last of 40 prompts" $check
    head -c 3000 "$work/scored/results.$file" > "$work/later/results.$file"
    expect 6 "later/results.$file: " $check
done

model="model: {kind: pretrained, dir: llama, sha256: $(take_model llama)}"

# ---- an invalid pack is refused before anything runs ----

if python3 -c 'import ssl' 2> /dev/null && command -v openssl > /dev/null; then
    PYTHONDONTWRITEBYTECODE=1 python3 - "$a" "$work/client" "$work"/a/blobs/* << 'PYTHON' || fail "wrong packs"
import hashlib
import json
import struct
import sys
sys.path.insert(0, "tests/system")
from provide_client import Client

client = Client(sys.argv[1], sys.argv[2])
HEAD = 19


def item(at, pack):
    key, base, size = struct.unpack_from("<QII", pack, at)
    own, = struct.unpack_from("<I", pack, at + 16 + size)
    return at + 16, size, at + 20 + size, own, at + 20 + size + own


packs = [open(name, "rb").read() for name in sys.argv[3:]]
pack = [pack for pack in packs if pack.startswith(b"verde pack\0")][0]


def submit(bytes_, data, **more):
    name = hashlib.sha256(bytes_).hexdigest()
    client.request("PUT", f"/v1/blobs/{name}?size={len(bytes_)}&from=0", bytes_)
    job = {"data": data, "name": "packs", "pack": name, "referees": [], "verde": 1, **more}
    return client.request("POST", "/v1/jobs", json.dumps(job, sort_keys=True, separators=(",", ":")).encode())


def refused(status, words, bytes_, data=(), **more):
    said = submit(bytes_, list(data), **more)
    assert said[0] == status and words in str(said[1]), (status, words, said)


def changed(at, bytes_):
    return pack[:at] + bytes_ + pack[at + len(bytes_):]


code, size, own, own_size, second = item(HEAD, pack)
flipped = lambda at: changed(at, bytes([pack[at] ^ 1]))
refused(422, "no pack of programs", b"x" * 1000)
refused(422, "version 0 of a pack of programs; this verde reads version 1", flipped(11))
refused(422, "1 to 65536 items", changed(13, struct.pack("<I", 65537)))
refused(422, "1 to 65536 items", changed(17, struct.pack("<H", 5)))
refused(422, "parts must follow each other", pack[:-1])
refused(422, "parts must follow each other", changed(second + 8, struct.pack("<I", 2)))
refused(422, "parts must follow each other", changed(HEAD, struct.pack("<Q", 2**63)))
refused(422, "bytes behind the items", pack + b"x")
refused(422, "two items of the pack have the key", changed(second, pack[HEAD:HEAD + 8]))
refused(422, "prompt 1 of the pack (item 0)", flipped(code))
refused(422, "prompt 1 of the pack (item 0): its data are not those of its program", flipped(own))
third = item(second, pack)[-1]
assert struct.unpack_from("<I", pack, third + 8)[0] == 1, "the third program is not told by how it differs from the second"
changes, changes_size, *_ = item(third, pack)
refused(422, "a change lies outside", changed(changes, struct.pack("<I", item(second, pack)[1])))
refused(422, "the programs share", pack)
refused(400, "expected canonical JSON", pack, keep=3)
PYTHON
    count=$((count + 14))
    # One pack with programs of different step graphs: those that cannot run together with the first run alone, and none is lost.
    sed 's/"key": /"key": 1/' "$work/one.jsonl" > "$work/more.jsonl"
    job more generate more.jsonl 'sampling: {temperature: 1.5, top_k: 41, top_p: 0.9, seed: 7}
max_tokens: 10
min_tokens: 3
stop: [3, 11]
repetition_penalty: 1.2
log_probabilities: 2'
    honest more
    expect 0 '11 prompts' "$verde" delegate "$work/more.yaml" $two --out "$work/more"
    PYTHONDONTWRITEBYTECODE=1 python3 - "$a" "$work" << 'PYTHON' || fail "a pack of two jobs"
import glob
import hashlib
import json
import os
import struct
import sys
sys.path.insert(0, "tests/system")
from provide_client import Client, wait

HEAD = 19
url, work = sys.argv[1:]
client = Client(url, work + "/client")
packs = {}
for job in glob.glob(work + "/a/jobs/*"):
    if os.path.exists(job + "/pack"):
        pack = open(job + "/pack", "rb").read()
        packs[struct.unpack_from("<Q", pack, HEAD)[0], struct.unpack_from("<H", pack, 17)[0]] = pack, job
first, job = packs[5000, 2]
second, other = packs[15000, 2]


def moved(pack, by):
    at, out = HEAD, b""
    while at < len(pack):
        base, size = struct.unpack_from("<II", pack, at + 8)
        own, = struct.unpack_from("<I", pack, at + 16 + size)
        end = at + 20 + size + own
        out += pack[at:at + 8] + struct.pack("<I", base + by) + pack[at + 12:end]
        at = end
    return out


def root_of(leaves):
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + root_of(leaves[:half]) + root_of(leaves[half:])).digest()


pack = first[:13] + struct.pack("<I", 22) + first[17:] + moved(second, 11)
data = [os.path.basename(place["file"]) for place in json.load(open(job + "/data.json"))["data"]]
assert data == [os.path.basename(place["file"]) for place in json.load(open(other + "/data.json"))["data"]]
name = hashlib.sha256(pack).hexdigest()
client.upload(pack)
body = {"data": data, "name": "two", "pack": name, "referees": [], "verde": 1}
status, said = client.request("POST", "/v1/jobs", json.dumps(body, sort_keys=True, separators=(",", ":")).encode())
assert status == 200, (status, said)
done = wait(client, json.loads(said)["job"], ["done", "failed"])
roots = [bytes.fromhex(prompt["run_root"]) for run in ("generate", "more") for prompt in json.load(open(f"{work}/run-{run}/run.json"))["prompts"]]
assert done.get("run_root") == root_of(roots).hex(), (done, root_of(roots).hex())
PYTHON
    grep -rqs '11 of 22 prompts run one after the other' "$work"/a "$work/a.log" || fail "nobody says that prompts run one after the other"
fi

# With sanitizers the following takes too long.
[ -z "${SANITIZED:-}" ] || { echo "$count results and refusals of jobs with prompts"; exit 0; }

# ---- killed and restarted: a running provider, both providers, the client in every phase ----

# until_runs NAME: waits until this provider has done a prompt of an unfinished job.
until_runs() {
    tries=0
    until for told in "$work/$1"/jobs/*/told; do [ -e "$told/result" ] || cat "$told/progress" 2> /dev/null; done | grep -q ' [1-9][0-9]* 40$'; do
        tries=$((tries + 1))
        [ $tries -lt 2000 ] || fail "$1 does no prompt"
        sleep 0.01
    done
}

job long generate some.jsonl 'sampling: {temperature: 1.5, top_k: 40, top_p: 0.9, seed: 9}
max_tokens: 300
stop: []
log_probabilities: 1'
honest long
long="$verde delegate $work/long.yaml $two --out $work/long"
in_background $long
until_runs b
provide_again b "$b_pid"
b_pid=$pid
stop_client
in_background $long
until_runs a
provide_again a "$a_pid"
a_pid=$pid
stop_client
expect 0 '40 prompts, every byte checked' $long
same long long
# Killed during the download.
rm "$work/long/results.jsonl"
mv "$work/long/results.proof" "$work/long/results.part"
head -c 20000 "$work/long/results.part" > "$work/part" && mv "$work/part" "$work/long/results.part"
in_background $long
sleep 0.1
stop_client
rm -f "$work/long/results.jsonl"
expect 0 'were there' $long
same long long

echo "$count results and refusals of jobs with prompts"
