#!/bin/sh
# `verde delegate` when something fails midway: both providers die in a dispute; a provider dies during the download, beside
# another one or as the only one left standing, and then the client; a clock is wrong; and images in several files, which the
# client must not hold in memory.
. tests/support/system
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
"$verde" keygen "$work/client" > /dev/null

# same RESULT EXPORTED: the result has the files that `verde export` writes of an honest run.
same() {
    cmp "$2/model.safetensors" "$1/model.safetensors" || fail "$1 is not the honest run's"
    [ ! -e "$1/partial" ] || fail "$1/partial is left"
}

# shim NAME: compiles the C on standard input to $work/NAME.so.
shim() {
    cat > "$work/$1.c"
    ${CC:-cc} -w -shared -fPIC -o "$work/$1.so" "$work/$1.c"
}

# ---- a provider dies during the download ----

# A model whose tensors have several blocks of 1 MiB: 26 MB.
cat > "$work/job.yaml" << YAML
verde: 1
model: {kind: gpt2, vocab: 256, context: 8, layers: 2, heads: 8, channels: 512, dropout: 0}
data: {kind: text, file: $PWD/models/data/project.txt, sha256: $(sum_of models/data/project.txt)}
seed: 3
batch: 1
sequence: 8
steps: 1
checkpoint_interval: 1
optimizer: {kind: sgd, lr: 1e-2, momentum: 0, nesterov: false, weight_decay: 0, clip_norm: 1.0}
schedule: {kind: constant, warmup: 0}
YAML
"$verde" run "$work/job.yaml" --out "$work/run" > "$work/out" 2> "$work/err" || fail "the job does not run"
"$verde" export "$work/run" --out "$work/honest" > /dev/null

# While the file $HOLD names a process, that process's reads of states are held back after the first six.
shim hold << 'C'
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static int held(int fd) {
    char name[64], path[4096] = "";
    FILE *file = fopen(getenv("HOLD"), "r");
    int process = 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    readlink(name, path, sizeof path - 1);
    if (file && fscanf(file, "%d", &process) != 1)
        process = 0;
    if (file)
        fclose(file);
    return process == getpid() && strstr(path, "/state-");
}
ssize_t pread(int fd, void *to, size_t size, off_t at) {
    static atomic_int count;
    while (held(fd) && atomic_load(&count) >= 6)
        usleep(10000);
    if (held(fd))
        atomic_fetch_add(&count, 1);
    return syscall(SYS_pread64, fd, to, size, at);
}
ssize_t pread64(int fd, void *to, size_t size, off_t at) { return pread(fd, to, size, at); }
C
HOLD=$work/hold
export HOLD

# provide_held NAME LISTEN: starts a daemon with this shim.
provide_held() {
    LD_PRELOAD=$work/hold.so
    export LD_PRELOAD
    provide "$1" "$2"
    unset LD_PRELOAD
}

# download OUT PROCESS COMMAND...: starts $client and waits until half of the model has come from this process.
download() {
    out=$1
    echo "$2" > "$HOLD"
    shift 2
    "$@" --out "$out" > "$work/out" 2> "$work/err" &
    client=$!
    pids="$pids $client"
    tries=0
    until [ "$(stat -c %s "$out/partial/model.safetensors" 2> /dev/null || echo 0)" -gt 3000000 ]; do
        tries=$((tries + 1))
        [ $tries -lt 2400 ] || fail "nothing arrives"
        sleep 0.05
    done
    sleep 0.3
}

# dies PROCESS...: kills them all at once, and releases reads that are held back.
dies() {
    kill -9 "$@"
    for process in "$@"; do wait "$process" 2> /dev/null || true; done
    rm -f "$HOLD"
}

# address URL: prints where this provider listens.
address() {
    echo "$1" | sed 's|https://\(.*\)#.*|\1|'
}

provide_held a 127.0.0.1:0
a_pid=$pid
provide b 127.0.0.1:0
provide wrong 127.0.0.1:0 --fault element@0
wrong_pid=$pid
delegate="$verde delegate $work/job.yaml --key $work/client"
expect 0 'every byte checked' $delegate --provider "$a" --provider "$b" --out "$work/both"
same "$work/both" "$work/honest"
# The other provider delivers the rest.
download "$work/beside" "$a_pid" $delegate --provider "$a" --provider "$b" --timeout 5
dies "$a_pid"
wait "$client" || fail "a provider's death ends the download: exit code $?"
same "$work/beside" "$work/honest"
grep -q '^provider 2   gave ' "$work/out" || fail "the other one gave nothing"
count=$((count + 1))
# Only the provider that dies has the accepted model.
provide_held a "$(address "$a")"
download "$work/alone" "$pid" $delegate --provider "$a" --provider "$wrong" --timeout 3
dies "$pid"
code=0
wait "$client" || code=$?
[ $code -eq 1 ] || fail "the only one that stands is gone: exit code $code, expected 1"
grep -q "^verde: .*${a%%#*}" "$work/err" || fail "it is not said who is gone"
[ ! -e "$work/alone/model.safetensors" ] || fail "half of a model has its name"
before=$(sum_of "$work/alone/verdict.json")
count=$((count + 1))
# The client continues where it was, and dies itself.
provide_held a "$(address "$a")"
a_pid=$pid
download "$work/alone" "$a_pid" $delegate --provider "$a" --provider "$wrong"
dies "$client"
expect 3 'were there' $delegate --provider "$a" --provider "$wrong" --out "$work/alone"
same "$work/alone" "$work/honest"
[ "$before" = "$(sum_of "$work/alone/verdict.json")" ] || fail "the verdict was made again"

# ---- both providers die in a dispute ----

$delegate --provider "$wrong" --provider "$a" --out "$work/disputed" > "$work/out" 2> "$work/err" &
client=$!
pids="$pids $client"
tries=0
until grep -q 'differ' "$work/err"; do
    tries=$((tries + 1))
    [ $tries -lt 12000 ] || fail "there is no dispute"
    sleep 0.01
done
dies "$a_pid" "$wrong_pid"
[ ! -e "$work/disputed/verdict.json" ] || echo "the dispute was faster than their end"
provide a "$(address "$a")"
provide wrong "$(address "$wrong")" --fault element@0
code=0
wait "$client" || code=$?
[ $code -eq 3 ] || fail "providers that die in a dispute and come back: exit code $code, expected 3"
same "$work/disputed" "$work/honest"
count=$((count + 1))

# ---- a client whose clock is an hour off ----

shim clock << 'C'
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *to) {
    int code = syscall(SYS_clock_gettime, clock, to);
    if (clock == CLOCK_REALTIME)
        to->tv_sec += atoi(getenv("CLOCK_OFF"));
    return code;
}
time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return to ? (*to = now.tv_sec) : now.tv_sec;
}
C
for off in 3600 -3600; do
    [ $off -gt 0 ] && said='ahead of' || said='behind'
    expect 5 "clock is 3[56][0-9][0-9] s $said" env LD_PRELOAD="$work/clock.so" CLOCK_OFF=$off $delegate \
        --provider "$a" --provider "$b" --out "$work/off"
    [ ! -e "$work/off" ] || fail "a refused job left a folder"
done

# ---- images in several files, 92 MB in all ----

python3 - "$work" << 'PYTHON'
import hashlib
import random
import sys

random.seed(1)
sums = hashlib.sha256()
for number, count in enumerate([11003, 9001, 9999]):
    data = bytearray(random.randbytes(3073 * count))
    data[::3073] = bytes(i % 10 for i in range(count))
    sums.update(data)
    with open(f"{sys.argv[1]}/batch_{number}.bin", "wb") as f:
        f.write(data)
with open("models/jobs/resnet-tiny.yaml") as f:
    lines = [line for line in f if not line.lstrip().startswith(("files:", "sha256:"))]
at = next(i for i, line in enumerate(lines) if "kind: cifar10" in line)
lines.insert(at + 1, f"  files: [batch_*.bin]\n  sha256: {sums.hexdigest()}\n")
with open(f"{sys.argv[1]}/images.yaml", "w") as f:
    f.writelines(lines)
PYTHON
"$verde" run "$work/images.yaml" --out "$work/images" > "$work/out" 2> "$work/err" || fail "the images' job does not run"
"$verde" export "$work/images" --out "$work/images-honest" > /dev/null
expect 0 'every byte checked' python3 -c '
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print("peak", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)' "$verde" delegate "$work/images.yaml" --key "$work/client" --provider "$a" --provider "$b" --out "$work/images-result"
same "$work/images-result" "$work/images-honest"
cat "$work"/batch_?.bin | cmp - "$work/a/blobs/$(cat "$work"/batch_?.bin | sha256sum | cut -d ' ' -f 1)" || fail "other bytes were sent"
peak=$(sed -n 's/^peak //p' "$work/out")
[ "$peak" -lt 60000 ] || fail "the client took $peak kB for 92 MB of images"
echo "$count commands: providers that die in a download or dispute, clocks that are off, images in several files; peak $peak kB"
