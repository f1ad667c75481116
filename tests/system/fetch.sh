#!/bin/sh
# `verde fetch` downloads a model from providers over TLS and checks each byte against a run root: with a provider that sends
# wrong bytes or dies midway; when it is itself killed and restarted; on a full disk; with a root that nobody has.
. tests/support/system

# serve NAME RUN [OPTIONS]: starts a provider; $NAME is its URL, $pid its process.
serve() {
    server=$1 run=$2
    shift 2
    start "$server" "$verde" serve "$run" --key "$work/keys-$server" --threads 1 "$@"
}

# same MODEL: it is what `verde export` writes.
same() {
    for file in model.safetensors config.json proof.json; do
        cmp "$work/exported/$file" "$1/$file" || fail "$1/$file is not what verde export writes"
    done
    [ ! -e "$1/partial" ] || fail "$1/partial is left"
}

# A model whose tensors have several blocks of 1 MiB: 26 MB.
cat > "$work/job.yaml" << YAML
verde: 1
model: {kind: gpt2, vocab: 256, context: 8, layers: 2, heads: 8, channels: 512, dropout: 0}
data: {kind: text, file: $PWD/models/data/project.txt, sha256: $(sha256sum models/data/project.txt | cut -d' ' -f1)}
seed: 3
batch: 1
sequence: 8
steps: 1
checkpoint_interval: 1
optimizer: {kind: sgd, lr: 1e-2, momentum: 0, nesterov: false, weight_decay: 0, clip_norm: 1.0}
schedule: {kind: constant, warmup: 0}
YAML
job=$work/job.yaml
"$verde" run "$job" --out "$work/run" > "$work/out" 2> "$work/err" || fail "the job does not run"
root=$(sed -n 's/ "root": "\(.*\)"/\1/p' "$work/run/run.json")
"$verde" export "$work/run" --out "$work/exported" > /dev/null
cp -r "$work/run" "$work/spoilt"
serve a "$work/run" --fetch
serve b "$work/spoilt" --fetch
serve closed "$work/run"
fetch="$verde fetch $job --run-root $root"

# ---- downloads ----

expect 0 'every byte checked' $fetch --provider "$a" --out "$work/one"
same "$work/one"
head -n 1 "$work/one/losses.csv" | grep -q '^step,loss,' || fail "no table of losses"
grep -q '<svg' "$work/one/losses.svg" || fail "no picture of losses"
expect 0 '"config":true' $fetch --provider "$a" --provider "$b" --out "$work/two" --json
same "$work/two"
expect 0 'fits         yes' "$verde" check "$work/two" --job "$job"
expect 2 'exists already' $fetch --provider "$a" --out "$work/two"
expect 0 'every byte' $fetch --provider "$a" --out "$work/two" --force --connections 1
same "$work/two"
# Without the job the tensors have the names of the leaves.
expect 0 '"config":false' "$verde" fetch --run-root "$root" --provider "$a" --out "$work/bare" --json
expect 0 'fits         yes' "$verde" check "$work/bare"
# Convolutions, whose layout differs between files and states.
"$verde" run models/jobs/resnet-tiny.yaml --out "$work/images" > "$work/out" 2> "$work/err" || fail "resnet-tiny does not run"
serve images "$work/images" --fetch
"$verde" export "$work/images" --out "$work/images-exported" > /dev/null
expect 0 'every byte' "$verde" fetch --run-root "$(sed -n 's/ "root": "\(.*\)"/\1/p' "$work/images/run.json")" --provider "$images" \
    --out "$work/images-fetched"
cmp "$work/images-exported/model.safetensors" "$work/images-fetched/model.safetensors"

# ---- with a verdict ----

"$verde" arbitrate "$job" --verdict "$work/verdict.json" --key "$work/referee" --provider "$a" --provider "$b" > "$work/out" 2> "$work/err" ||
    fail "no verdict"
expect 0 'every byte checked' "$verde" fetch "$job" --verdict "$work/verdict.json" --provider "$a" --out "$work/accepted"
same "$work/accepted"
expect 0 'it accepts' "$verde" check "$work/accepted" --verdict "$work/verdict.json"
expect 6 'another program' "$verde" fetch models/jobs/toy.yaml --verdict "$work/verdict.json" --provider "$a" --out "$work/no"
expect 6 'another program' "$verde" fetch models/jobs/toy.yaml --run-root "$root" --provider "$a" --out "$work/no"

# ---- providers that have nothing ----

other=$(echo "$root" | tr '0123456789abcdef' '123456789abcdef0')
expect 6 'no run with this root' "$verde" fetch --run-root "$other" --provider "$a" --provider "$b" --out "$work/no"
expect 6 'hands out no states' $fetch --provider "$closed" --out "$work/no"
expect 0 'dropped: HTTP status 404: this provider hands out no states' $fetch --provider "$closed" --provider "$a" --out "$work/beside"
same "$work/beside"
stranger=${a%%#*}#${b##*#}
expect 1 'another key answers' $fetch --provider "$stranger" --out "$work/no"
expect 1 'asking again for up to 1 s' $fetch --provider "https://127.0.0.1:1#${a##*#}" --timeout 1 --out "$work/no"
expect 2 'run-root must be' "$verde" fetch --run-root abc --provider "$a" --out "$work/no"
expect 2 'fetch takes' "$verde" fetch --provider "$a" --out "$work/no"
expect 2 'a run lies there' $fetch --provider "$a" --out "$work/run"
[ ! -e "$work/no" ] || fail "a failed download made a directory"
mkdir -p "$work/full/partial"
echo mine > "$work/full/partial/file"
expect 2 'is no unfinished download' $fetch --provider "$a" --out "$work/full"
[ -s "$work/full/partial/file" ] || fail "a file of the user's is gone"

# ---- the provider asked first hangs: the next one is asked, too, and the first is not even dropped ----

serve hangs "$work/run" --fetch
kill -STOP "$pid"
expect 0 'every byte checked' $fetch --provider "$hangs" --provider "$a" --out "$work/hanging"
same "$work/hanging"
! grep -q 'asking again\|dropped' "$work/err" || fail "the one that hangs was waited for"
kill -9 "$pid"

# ---- invalid losses: the model arrives without them ----

for line in 'not json' '{"step":1,"loss":"nan"}' '{"step":1,"loss":"=1+1"}' '{"step":"1","loss":1}' '{"step":1,"loss":[1]}' '{"step":1,"loss":1} x' "$(printf '{"step":1,"x":"%0500d"}' 1)"; do
    echo "$line" > "$work/spoilt/losses.jsonl"
    rm -rf "$work/without"
    expect 0 'losses of https://127.0.0.1:[0-9]* are left out: ' $fetch --provider "$b" --out "$work/without"
    same "$work/without"
    [ ! -e "$work/without/losses.csv" ] && [ ! -e "$work/without/losses.svg" ] || fail "a table of losses that are none"
done

# ---- wrong bytes: a provider's state changes while it is served ----

for state in "$work"/spoilt/state-*; do
    dd if=/dev/zero of="$state" bs=1000 seek=13000 count=12000 conv=notrunc 2> /dev/null
done
expect 0 'provider 2 (https://127.0.0.1:[0-9]*) is dropped: block [0-9]* of tensor' \
    $fetch --provider "$a" --provider "$b" --out "$work/spoilt-beside"
same "$work/spoilt-beside"
expect 6 'the bytes do not give' $fetch --provider "$b" --out "$work/spoilt-alone"
[ ! -e "$work/spoilt-alone/model.safetensors" ] || fail "wrong bytes have become a model"
# What was right is not fetched again.
expect 0 'were there' $fetch --provider "$a" --out "$work/spoilt-alone"
same "$work/spoilt-alone"

# ---- a provider dies during the download; so does the client ----

# After half of the blocks, reads of the state wait as long as a file exists.
cat > "$work/hold.c" << 'C'
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t pread(int fd, void *to, size_t size, off_t at) {
    static atomic_int count;
    while (access(getenv("HOLD"), F_OK) == 0 && atomic_load(&count) >= 6)
        usleep(10000);
    if (access(getenv("HOLD"), F_OK) == 0)
        atomic_fetch_add(&count, 1);
    return syscall(SYS_pread64, fd, to, size, at);
}
ssize_t pread64(int fd, void *to, size_t size, off_t at) { return pread(fd, to, size, at); }
C
if [ -z "${SANITIZED:-}" ] && ${CC:-cc} -w -shared -fPIC -o "$work/hold.so" "$work/hold.c"; then
    HOLD=$work/hold
    export HOLD
    LD_PRELOAD=$work/hold.so
    export LD_PRELOAD
    serve held "$work/run" --fetch
    held_pid=$pid
    unset LD_PRELOAD
    touch "$HOLD"
    $fetch --provider "$held" --out "$work/killed" > "$work/out" 2> "$work/err" &
    client=$!
    tries=0
    until [ "$(stat -c %s "$work/killed/partial/model.safetensors" 2> /dev/null || echo 0)" -gt 3000000 ]; do
        tries=$((tries + 1))
        [ $tries -lt 12000 ] || fail "nothing arrives"
        sleep 0.05
    done
    expect 1 'another .verde fetch. writes there' $fetch --provider "$a" --out "$work/killed"
    kill -9 $client
    wait $client 2> /dev/null || true
    [ ! -e "$work/killed/model.safetensors" ] || fail "half of a model has its name"
    # One bit of the downloaded data flips on disk: nothing there is trusted.
    printf '\377' | dd of="$work/killed/partial/model.safetensors" bs=1 seek=1500000 conv=notrunc 2> /dev/null
    expect 0 'were there' $fetch --provider "$a" --out "$work/killed"
    same "$work/killed"
    # The same provider is killed while another one continues.
    $fetch --provider "$held" --provider "$a" --out "$work/died" > "$work/out" 2> "$work/err" &
    client=$!
    sleep 0.3
    kill -9 "$held_pid"
    wait $client || fail "a provider's death ends the download"
    same "$work/died"
    rm -f "$HOLD"
    # When it is terminated, the client says how to continue.
    serve slow "$work/run" --fetch
    kill -STOP "$pid"
    $fetch --provider "$slow" --out "$work/stopped" > "$work/out" 2> "$work/err" &
    client=$!
    sleep 1
    kill "$client"
    wait $client && fail "a stopped download ends well"
    grep -q 'stopped; what is checked stays in' "$work/err" || fail "no word of how to go on"
    kill -CONT "$pid"
    expect 0 'every byte' $fetch --provider "$slow" --out "$work/stopped"
    same "$work/stopped"
else
    echo "SKIP: nobody dies in the middle"
fi

# ---- a full disk ----

code=0
(ulimit -f 8000 && exec $fetch --provider "$a" --out "$work/limited") > "$work/out" 2> "$work/err" || code=$?
[ $code -eq 1 ] && grep -q 'cannot write .*partial/model.safetensors: File too large' "$work/err" || fail "a limit on files: exit code $code"
[ "$(wc -l < "$work/err")" -eq 1 ] || fail "a limit on files: more than one line"
expect 0 'were there' $fetch --provider "$a" --out "$work/limited"
same "$work/limited"
if [ "$(id -u)" -eq 0 ] && mkdir "$work/small" && mount -t tmpfs -o size=8m none "$work/small" 2> /dev/null; then
    trap 'umount "$work/small"; cleanup' EXIT
    expect 1 'needs 2[0-9.]* MB more, and the disk has [0-9.]* MB left' $fetch --provider "$a" --out "$work/small/model"
    mount -o remount,size=64m "$work/small"
    expect 0 'every byte' $fetch --provider "$a" --out "$work/small/model"
else
    echo "SKIP: no small file system can be mounted"
fi
echo "$count downloads and refusals, beside wrong bytes, dead providers and full disks"
