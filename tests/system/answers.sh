#!/bin/sh
# Jobs of answers, as captured by repops.jobs.Answers: a folder with a pack of programs, one for each batch. Every command accepts
# it; answers come back as .npy and safetensors, with each byte checked; a dishonest provider is convicted; a run that was killed
# continues; a malformed folder is refused.
. tests/support/system

job=tests/captured/answers
run="$verde run --threads 1"

# copy NAME [FILE AT]: copies the job to $work/NAME, with one bit changed in byte AT of FILE.
copy() {
    rm -rf "${work:?}/$1"
    cp -r $job "$work/$1"
    [ $# -eq 1 ] || flip "$work/$1/$2" "$3"
}

# flip FILE AT: changes one bit of byte AT.
flip() {
    python3 - "$@" << 'PYTHON'
import sys
with open(sys.argv[1], "r+b") as f:
    data = bytearray(f.read())
    data[int(sys.argv[2])] ^= 1
    f.seek(0)
    f.write(data)
PYTHON
}

# independently EXIT_CODE WORDS JOB RESULT [VERDICT]: asks code that shares nothing with this project, if Python can run it.
python=
for candidate in python3 /usr/bin/python3; do
    ! $candidate -c 'import sys, cryptography; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || python=$candidate
done
[ -n "$python" ] || echo "not checked independently: no Python 3.11 with cryptography"
independently() {
    code=$1 words=$2
    shift 2
    [ -z "$python" ] || expect "$code" "$words" env PYTHONDONTWRITEBYTECODE=1 $python tests/independent/answers.py "$@"
}

# same FOLDER: it has the answers of the honest run.
same() {
    for file in class.npy likely.npy answers.safetensors; do
        cmp "$work/$1/answers/$file" "$work/run/answers/$file" || fail "$1 has other answers"
    done
    [ "$(find "$work/$1/answers" -type f | wc -l)" -eq 3 ] || fail "$1 has other files than three"
}

# ---- one machine ----

expect 0 '6 batches of [0-9]* nodes' $run $job --out "$work/run"
job_root=$(sed -n 's/^job root  *//p' "$work/out")
collection=$(sed -n 's/^collection  *//p' "$work/out")
[ "$job_root" = "$(sed -n 's/^answers //p' tests/golden/answers.txt)" ] || fail "another job root than the golden one"
for setting in "1 scalar" "2 cpu"; do
    expect 0 "$job_root" "$verde" run $job --out "$work/other" --threads "${setting% *}" --backend "${setting#* }" --json
    [ "$(grep -c '^{"batches_done":[1-6],"batches":6,' "$work/out")" -eq 6 ] || fail "not a line for each batch"
    tail -n 1 "$work/out" | grep -q "\"job_root\":\"$job_root\"" || fail "the last line is not that of the whole job"
    same other
    rm -r "$work/other"
done
expect 0 'fits  *yes' "$verde" check "$work/run" --job $job
expect 0 "$collection" "$verde" inspect "$work/run"
expect 0 'batches  *6' "$verde" run $job --dry-run
expect 0 '%' "$verde" graph $job --prompt 2
printf 'verde: 1\nmodel: {kind: program, dir: %s, sha256: %s}\n' "$PWD/$job" "$collection" > "$work/job.yaml"
expect 0 'fits  *yes' "$verde" check "$work/run" --job "$work/job.yaml"

expect 2 'each of its batches is a program of its own' "$verde" graph $job
cp -r $job "$work/both"
cp tests/captured/rnn/program "$work/both"
expect 2 'both: has a `program` and a `pack`; a job is one of them' $run "$work/both" --out "$work/none"
one_line

# Reads the files with numpy, and safetensors with the same bytes; without numpy only the headers.
python3 - "$work/run/answers" << 'PYTHON' || fail "other files of answers"
import ast
import json
import struct
import sys

front = open(f"{sys.argv[1]}/answers.safetensors", "rb").read()
size = struct.unpack("<Q", front[:8])[0]
header, data = json.loads(front[8 : 8 + size]), front[8 + size :]
assert size % 8 == 0 and set(header) == {"class", "likely"}, header
for name, descr, shape in (("class", "<i4", (21,)), ("likely", "<f4", (21, 5))):
    file = open(f"{sys.argv[1]}/{name}.npy", "rb").read()
    assert file[:8] == b"\x93NUMPY\x01\x00" and file[8:10] == b"\xf6\x00", file[:10]
    assert ast.literal_eval(file[10:256].decode().strip()) == {"descr": descr, "fortran_order": False, "shape": shape}
    begin, end = header[name]["data_offsets"]
    assert file[256:] == data[begin:end] and len(file) == 256 + 4 * 21 * (5 if name == "likely" else 1), name
    assert header[name]["shape"] == list(shape) and header[name]["dtype"] == {"<i4": "I32", "<f4": "F32"}[descr]
likely = struct.unpack("<105f", data[slice(*header["likely"]["data_offsets"])])
said = struct.unpack("<21i", data[slice(*header["class"]["data_offsets"])])
assert list(said) == [max(range(5), key=lambda k: likely[5 * i + k]) for i in range(21)], said
assert len(set(said)) > 1, said
PYTHON

# ---- killed and continued ----

kills=0
for after in 0.005 0.01 0.02 0.03 0.05 0.1 0.2; do
    in_background $run $job --out "$work/killed"
    sleep $after
    if kill -0 "$client" 2> /dev/null; then kills=$((kills + 1)); else rm -r "$work/killed"; fi
    stop_client
done
[ $kills -gt 0 ] || fail "every run was done before it was killed"
expect 0 "$job_root" $run $job --out "$work/killed"
same killed
expect 0 'fits  *yes' "$verde" check "$work/killed" --job $job

# As after a power cut: files of a batch that run.json does not list as done may have names but no contents.
python3 - "$work/killed" << 'PYTHON'
import glob
import json
import sys
with open(f"{sys.argv[1]}/run.json") as f:
    log = json.load(f)
del log["job_root"], log["prompts"][2]["run_root"]
with open(f"{sys.argv[1]}/run.json", "w") as f:
    json.dump(log, f)
for file in glob.glob(f"{sys.argv[1]}/prompts/2/*"):
    open(file, "w").close()
PYTHON
expect 0 "$job_root" $run $job --out "$work/killed"
same killed
expect 0 'fits  *yes' "$verde" check "$work/killed" --job $job

# ---- errors are told in one line ----

copy bad pack 0
expect 2 'bad/pack: no pack of programs' $run "$work/bad" --out "$work/none"
one_line
copy bad pack 11
expect 8 'version 0 of a pack of programs' $run "$work/bad" --out "$work/none"
copy bad pack -1
expect 2 'bad/pack: ' $run "$work/bad" --out "$work/none"
one_line
copy bad data0.npy -1
expect 2 'data0.npy: has changed, or is another file: not the data `input0`' $run "$work/bad" --out "$work/none"
one_line
copy bad
truncate -s 1000 "$work/bad/pack"
expect 2 'bad/pack: ' $run "$work/bad" --out "$work/none"
rm "$work/bad/pack"
ln -s ../run/run.json "$work/bad/pack"
expect 2 'must be a plain file' $run "$work/bad" --out "$work/none"
copy bad
rm "$work/bad/data3.npy"
expect 2 'data3.npy' $run "$work/bad" --out "$work/none"
copy bad
sed -i 's/data0.npy/..\/data0.npy/' "$work/bad/data.json"
expect 2 'must be the name of a file in that folder' $run "$work/bad" --out "$work/none"
# instead OLD NEW WORDS: the job is refused with these WORDS if its programs have other names, or the last one other row counts.
instead() {
    copy bad
    rm -rf "$work/named"
    python3 - "$work/bad/pack" "$1" "$2" << 'PYTHON'
import hashlib
import struct
import sys

def sha(data):
    return hashlib.sha256(data).digest()

def commitment(value):  # of an i32 of shape [1]: PROTOCOL.md 2
    return sha(b"verde/tensor/1\0" + struct.pack("<IIQ", 2, 1, 1) + sha(b"\0" + value))

with open(sys.argv[1], "rb") as f:
    data = f.read()
if sys.argv[2].isdigit():
    old, new = (struct.pack("<i", int(n)) for n in sys.argv[2:])
    before, _, behind = data[:-4].rpartition(commitment(old))
    assert data.endswith(old) and before
    data = before + commitment(new) + behind + new
else:
    assert data.count(sys.argv[2].encode()) == 1
    data = data.replace(sys.argv[2].encode(), sys.argv[3].encode())
with open(sys.argv[1], "wb") as f:
    f.write(data)
PYTHON
    expect 6 "$3" $run "$work/bad" --out "$work/named"
    grep -c '^verde: ' "$work/err" | grep -qx 1 || fail "not one line of it"
    [ "$(find "$work" -name '*.npy' -path '*named*' | wc -l)" -eq 0 ] || fail "answers of a job that is refused"
}

named='an answer must have a name of 1 to 100 letters'
for name in 'answer.cl/ss' 'answer..lass' 'answer.cl ss'; do
    instead 'answer.class' "$name" "$named"
done
instead rows rowz 'must say how many of its rows count'
instead 1 0 'must say how many of its rows count'
instead 1 5 'must say how many of its rows count'
printf 'verde: 1\nmodel: {kind: program, dir: %s, sha256: %s}\n' "$PWD/$job" "$job_root" > "$work/wrong.yaml"
expect 2 "is not the collection of .*, $collection" $run "$work/wrong.yaml" --out "$work/none"
printf 'weights: {run: x, root: %s}\n' "$job_root" >> "$work/job.yaml"
expect 2 'weights' $run "$work/job.yaml" --out "$work/none"
expect 2 'how large batches are' $run $job --out "$work/none" --batch 4
expect 2 '--keep' $run $job --out "$work/none" --keep 2
expect 2 'no batch with the key 6' "$verde" graph $job --prompt 6
expect 2 'no prompt has this key\|no batch has this key' $run $job --out "$work/none" --fault 6/element
[ ! -e "$work/none" ] || fail "a refused job left a folder"
expect 6 'holds runs of another job' "$verde" check "$work/run" --job tests/captured/enlarged
for file in class.npy likely.npy answers.safetensors; do
    for at in 9 30 256 -1; do
        rm -rf "$work/spoilt"
        cp -r "$work/run" "$work/spoilt"
        flip "$work/spoilt/answers/$file" $at
        expect 6 "spoilt/answers/$file: has other bytes from byte [0-9]* on" "$verde" check "$work/spoilt"
        one_line
    done
    cp "$work/run/answers/$file" "$work/spoilt/answers/$file"
    printf x >> "$work/spoilt/answers/$file"
    expect 6 "spoilt/answers/$file: has [0-9]* bytes, expected " "$verde" check "$work/spoilt"
    truncate -s 300 "$work/spoilt/answers/$file"
    expect 6 "spoilt/answers/$file: has other bytes" "$verde" check "$work/spoilt"
    rm "$work/spoilt/answers/$file"
    expect 2 "spoilt/answers/$file" "$verde" check "$work/spoilt"
done

# Weights are hashed once for all batches, but every batch checks them.
copy own
expect 0 "$job_root" $run "$work/own" --out "$work/owned"
expect 0 'fits  *yes' "$verde" check "$work/owned"
flip "$work/own/data4.npy" -1
expect 6 'own/data4.npy: has changed, or is another file: not the data `4.weight`' "$verde" check "$work/owned"
one_line

# ---- two runs, one of them dishonest ----

expect 0 'FAULT ON PURPOSE' $run $job --out "$work/liar" --fault 3/element@0
serve run --fetch
serve liar
expect 3 'CONVICTED' "$verde" arbitrate $job --key "$work/referee" --verdict "$work/verdict.json" $(providers run liar)
grep -q 'batch 4 of the job (item 3)' "$work/out" || fail "the batch is not named"
expect 0 'fits  *yes' "$verde" check "$work/run" --verdict "$work/verdict.json"
expect 6 'accepts job root' "$verde" check "$work/liar" --verdict "$work/verdict.json"
verify_independently "$work/verdict.json" holds
expect 0 'every byte checked' "$verde" fetch $job --run-root "$job_root" --provider "$(cat "$work/run.url")" --out "$work/fetched"
same fetched

# Batches are audited one by one.
expect 0 'equal  *yes' "$verde" audit "$work/run/prompts/2" --all
expect 9 'equal  *no: ' "$verde" audit "$work/liar/prompts/3" --all
cp -r "$work/run/prompts/2" "$work/batch"
serve batch
expect 0 'checked  *[0-9]* drawn elements' "$verde" audit $job --prompt 2 --provider "$(cat "$work/batch.url")" --key "$work/checker" \
    --crumbs 20 --proof "$work/fraud.json"
[ ! -e "$work/fraud.json" ] || fail "a proof of no fraud"

# ---- providers' daemons ----

copy bad pack -1

"$verde" keygen "$work/client" > /dev/null
provide a 127.0.0.1:0
provide b 127.0.0.1:0
provide wrong 127.0.0.1:0 --fault 5/element@0
two="--key $work/client --provider $a --provider $b"
expect 0 "results  *$work/agreed/answers, 6 batches, every byte checked" "$verde" delegate $job $two --out "$work/agreed"
grep -q "^job root  *$job_root" "$work/out" || fail "another job root than that of an honest run"
same agreed
expect 2 'exists already' "$verde" delegate $job $two --out "$work/agreed"
expect 3 'CONVICTED' "$verde" delegate $job --key "$work/client" --provider "$wrong" --provider "$b" --out "$work/convicted"
same convicted
check="$verde check $work/convicted --job $job --verdict $work/convicted/verdict.json"
expect 0 'fits  *yes' $check
independently 0 "holds: 2 answers to 21 inputs, of job root $job_root" $job "$work/convicted" "$work/convicted/verdict.json"
independently 6 'data rows of item 5 is another\|the pack' "$work/bad" "$work/convicted"
flip "$work/convicted/answers/likely.npy" -3
expect 6 'convicted/answers/likely.npy: has other bytes from byte' $check
independently 6 'likely.npy is not what was said' $job "$work/convicted"
flip "$work/convicted/answers/likely.npy" -3
flip "$work/convicted/answers/answers.safetensors" -3
expect 6 'convicted/answers/answers.safetensors: has other bytes from byte' $check
independently 6 'answers.safetensors is not what was said' $job "$work/convicted"
flip "$work/convicted/answers/answers.safetensors" -3
flip "$work/convicted/results.proof" -3
expect 6 'the result of the batch with key 5' $check
independently 6 'is not what was committed to' $job "$work/convicted"
verify_independently "$work/convicted/verdict.json" holds
# Fetched data stays, and its files are written again.
mv "$work/agreed/results.proof" "$work/agreed/results.part"
rm -r "$work/agreed/answers"
expect 0 'were there' "$verde" delegate $job $two --out "$work/agreed"
same agreed

# ---- an answer larger than a piece of a record ----

big=tests/captured/enlarged
expect 0 'job root' $run $big --out "$work/big"
[ "$(sed -n 's/^job root  *//p' "$work/out")" = "$(sed -n 's/^enlarged //p' tests/golden/answers.txt)" ] || fail "another golden job root"
[ "$(stat -c %s "$work/big/answers/answer.npy")" -eq $((256 + 4 * 2100 * 2100)) ] || fail "the picture is not as large as it is"
expect 0 '1 batch, every byte checked' "$verde" delegate $big $two --out "$work/pieces"
cmp "$work/big/answers/answer.npy" "$work/pieces/answers/answer.npy" || fail "another picture"
independently 0 'holds: 1 answers to 1 inputs' $big "$work/pieces"
flip "$(find "$work/a/jobs" -name items -size +8M)" -3
rm -r "$work/pieces"
expect 0 'is dropped: the result of the batch with key 0' "$verde" delegate $big $two --out "$work/pieces"
cmp "$work/big/answers/answer.npy" "$work/pieces/answers/answer.npy" || fail "another picture from one provider"

echo "$count commands, $kills kills: answers are committed to, delivered, checked and disputed"
