#!/bin/sh
# Whatever floating-point modes a library sets for the process (flushed subnormals, the three other rounding directions, trapping
# exceptions), all commands, repops-conform and Python's functions on arrays give the same bytes.
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
. tests/support/system
top=$PWD
case $build in /*) ;; *) build=$top/$build ;; esac
case $verde in /*) ;; *) verde=$top/$verde ;; esac
${CC:-cc} -O2 -w -D_GNU_SOURCE -shared -fPIC -o "$work/modes.so" tests/link/modes.c -lm

# The jobs have absolute paths: each mode has its own folder, with the same names in it.
sed "s|\.\./data|$top/models/data|" models/jobs/toy.yaml > "$work/toy.yaml"
sed "s|\.\./data|$top/models/data|" models/jobs/toy-log.yaml > "$work/log.yaml"
model=$(take_model llama)
printf '{"key": 7, "ids": [15, 2, 9, 33, 60]}\n{"key": 1, "ids": [5]}\n' > "$work/prompts.jsonl"
cat > "$work/generate.yaml" << YAML
verde: 1
task: generate
model: {kind: pretrained, dir: llama, sha256: $model}
prompts: {file: prompts.jsonl, sha256: $(sum_of "$work/prompts.jsonl")}
sampling: {temperature: 1.3, top_k: 40, top_p: 0.9, seed: 7}
max_tokens: 6
repetition_penalty: 1.2
log_probabilities: 2
YAML
"$verde" keygen "$work/client" > /dev/null

# lasting: filters a command's output: removes what depends on clocks, load, keys and random names of logs.
lasting() {
    sed -E '/^(referee|cost|seconds) /d; s/"level_seconds":\{[^}]*\},?//g; s/"(job|run_root|seconds|peak_bytes|device_peak_bytes)":("[^"]*"|[-0-9.e+]+),?//g; s/\{"url":"[^}]*\}//g
        s/https:[^ ]*//g; s/(stands|CONVICTED) .*/\1/; s/^(verified +)[0-9]+/\1N/; s/[0-9]+ (statements decided)/N \1/'
}

# say COMMAND...: runs it in the modes of $mode; its output is appended to `said`.
say() {
    code=0
    MODES=$mode LD_PRELOAD=$work/modes.so timeout 600 "$verde" "$@" > out 2> err || code=$?
    [ $code -lt 8 ] || { cat out err; echo "$mode: verde $*: exit code $code"; exit 1; }
    { echo "\$ verde $*" && cat out && echo "exit code $code"; } | lasting >> said
}

# listen NAME COMMAND...: the same in the background; waits until it has printed its URL.
listen() {
    name=$1
    shift
    MODES=$mode LD_PRELOAD=$work/modes.so "$verde" "$@" > "$name.url" 2> "$name.log" &
    pids="$pids $!"
    tries=0
    until [ -s "$name.url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 12000 ] || { echo "$mode: $name does not start: $(cat "$name.log")"; exit 1; }
        sleep 0.05
    done
}

# commands MODE: runs all commands, in $work/MODE.
commands() {
    mode=$1
    mkdir "$work/$mode"
    cd "$work/$mode"
    say graph ../toy.yaml
    say run ../toy.yaml --out honest --json
    say run ../toy.yaml --out wrong --fault element@7 --json
    say check honest --job ../toy.yaml
    say inspect honest
    say export honest --out export --json
    say manifest ../llama
    say run ../generate.yaml --out answers --json
    say check answers --job ../generate.yaml
    say calibrate ../log.yaml --out thresholds.yaml
    say run ../log.yaml --out trainer --backend log --profile sim-wide --json
    say run ../log.yaml --out auditor --backend log --profile sim-deep --role auditor --follow trainer --json
    listen one serve honest
    listen two serve wrong
    say arbitrate ../toy.yaml --verdict verdict.json --provider "$(cat one.url)" --provider "$(cat two.url)"
    say verify verdict.json
    say check honest --verdict verdict.json
    listen first provide --dir first --listen 127.0.0.1:0 --threads 1 --client "$(cat ../client/key.pub)"
    listen second provide --dir second --listen 127.0.0.1:0 --threads 1 --client "$(cat ../client/key.pub)"
    say delegate ../toy.yaml --key ../client --provider "$(cat first.url)" --provider "$(cat second.url)" --out delegated --json
    for run in honest wrong; do grep -v '"microseconds"' $run/run.json | sha256sum; done >> said
    sha256sum honest/program honest/state-* answers/run.json answers/results.jsonl export/* thresholds.yaml \
        trainer/state-* auditor/state-* delegated/model.safetensors >> said
    MODES=$mode LD_PRELOAD=$work/modes.so "$build/examples/trainer" 1 >> said
    case $mode in flush,up | trap) ;; *) return 0 ;; esac
    MODES=$mode LD_PRELOAD=$work/modes.so "$build/bin/repops-conform" --operators --device "${isas##* }" > out 2>&1 || { cat out; exit 1; }
}

isas=$(sh tests/isas.sh)
[ -x "$build/examples/trainer" ] || make -s BUILD="$build" "$build/examples/trainer" > "$work/make.txt" 2>&1 || fail "no example: $(cat "$work/make.txt")"
modes="flush up down zero flush,up trap"
for mode in default $modes; do
    (trap cleanup EXIT; commands "$mode") > "$work/$mode.said" 2>&1 &
    waiting="${waiting:-} $!"
done
for one in $waiting; do wait "$one" || failed=1; done
[ -z "${failed:-}" ] || { cat "$work"/*.said; fail "a command did not end well"; }
for mode in $modes; do
    diff "$work/default/said" "$work/$mode/said" > "$work/out" || { head -n 20 "$work/out"; fail "$mode: something else"; }
done

# Python's functions on arrays, in a program that sets modes itself; its modes are restored.
cat > "$work/arrays.py" << 'PY'
import ctypes
import hashlib
import sys

import numpy as np
import repops

own = ctypes.CDLL(sys.argv[1])
x = np.random.default_rng(0).standard_normal((1, 2, 3, 8)).astype("f4")
flat = x.reshape(6, 8)
dropout = repops.fused.Dropout(seed=2**64 - 1, rate=0.1, step=-1)
CALLS = {
    "a list": lambda: repops.exp([0.1, 0.7, 1e-45, 3e-40]),
    "an attribute": lambda: repops.uniform(seed=7, low=0.1, high=0.7, shape=[9]),
    "a subnormal attribute": lambda: repops.fill(value=3e-40, shape=[2]),
    "alpha": lambda: repops.matmul(flat, flat, trans=2, alpha=0.1),
    "scale": lambda: repops.fused.attention(x, x, x)[0],
    "dropout": lambda: repops.fused.attention(x, x, x, dropout=dropout, scale=0.3)[0],
    "eps": lambda: repops.fused.layer_norm(flat, x[0, 0, 0], x[0, 0, 1], eps=1e-5)[0],
}


def sums(modes):
    out = {}
    for name, call in CALLS.items():
        own.set_modes(modes)
        y = call()
        own.set_modes(b"")
        out[name] = hashlib.sha256(y.tobytes()).hexdigest()
    return out


want = sums(b"")
assert len(set(want.values())) == len(want), want
for modes in sys.argv[2:]:
    got = sums(modes.encode())
    assert got == want, (modes, [name for name in want if got[name] != want[name]])
repops.exp([0.5])  # and before a program sets any
own.set_modes(b"down")
third = np.float32(1) / np.float32(3)
repops.exp([0.5])
again = np.float32(1) / np.float32(3)
own.set_modes(b"")
assert third == again != np.float32(1) / np.float32(3), "the program's modes are not given back"
PY
numpy="arrays of Python not looked at (no numpy)"
for python in python3 /usr/bin/python3; do
    if $python -c 'import numpy' 2> /dev/null; then
        # shellcheck disable=SC2086
        PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 REPOPS_LIBRARY=$build/lib/librepops.so.1 $python "$work/arrays.py" "$work/modes.so" $modes
        numpy="Python's functions on arrays"
        break
    fi
done
echo "$(grep -c '^\$ verde' "$work/default/said") commands and $numpy in 6 modes, to the byte"
