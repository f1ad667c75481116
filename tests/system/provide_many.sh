#!/bin/sh
# Ten clients at once with JOBS (6) jobs each, ROUNDS (1) times, and a full disk: results are right, and no descriptors, children,
# files or memory are left behind. tests/full/provide_leaks.sh does more.
set -eu
build=$1
verde=$build/bin/verde
work=$build/tests/provide_many
client=tests/system/provide_client.py
jobs=${JOBS:-6}
rounds=${ROUNDS:-1}
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
if ! command -v python3 > /dev/null || ! python3 -c 'import ssl' 2> /dev/null || ! command -v openssl > /dev/null; then
    echo "no python3 with ssl, or no openssl: there is no other client"
    exit 77
fi
rm -rf "$work"
mkdir -p "$work"
pid=
cleanup() {
    [ -z "$pid" ] || kill "$pid" 2> /dev/null || true
    wait 2> /dev/null || true
}
trap cleanup EXIT

fail() {
    echo "$1"
    tail -n 20 "$work/daemon.log" "$work"/out.* 2> /dev/null
    exit 1
}

# start OPTIONS: starts the daemon.
start() {
    : > "$work/url"
    "$verde" provide --dir "$work/data" --listen 127.0.0.1:0 --threads 1 $enrolled "$@" > "$work/url" 2>> "$work/daemon.log" &
    pid=$!
    tries=0
    while [ ! -s "$work/url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 12000 ] || fail "the daemon does not start"
        sleep 0.05
    done
    url=$(cat "$work/url")
}

descriptors() {
    ls "/proc/$pid/fd" | wc -l
}

# memory: prints the daemon's memory in kilobytes.
memory() {
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status"
}

enrolled=
for i in 0 1 2 3 4 5 6 7 8 9; do
    "$verde" keygen "$work/client-$i" > /dev/null
    enrolled="$enrolled --client $(cat "$work/client-$i/key.pub")"
done
"$verde" run models/jobs/toy.yaml --out "$work/toy" --threads 1 --json > "$work/toy.json" 2> /dev/null
root=$(sed -n 's/.*"run_root":"\([0-9a-f]*\)".*/\1/p' "$work/toy.json")

start --jobs 2 --client-jobs 1000 --keep-seconds 1
python3 "$client" "$url" "$work/client-0" request GET /v1/jobs > "$work/out.first"
sleep 0.2
before=$(descriptors)
# round: each client runs its jobs and deletes them.
round() {
    pids=
    for i in 0 1 2 3 4 5 6 7 8 9; do
        timeout 2000 python3 "$client" "$url" "$work/client-$i" many "$work/toy" "$jobs" > "$work/out.$i" 2>&1 &
        pids="$pids $!"
    done
    for one in $pids; do
        wait "$one" || fail "a client has failed"
    done
    right=$(cat "$work"/out.[0-9] | grep -c "^$root\$" || true)
    [ "$right" -eq $((10 * jobs)) ] || fail "$right results of $((10 * jobs)) are right"
    [ -z "$(ls "$work/data/jobs")" ] || fail "a job's folder is left"
}

round
# Ten uploads at once: there is room for two chunks, and nobody is cut off.
pids=
for i in 0 1 2 3 4 5 6 7 8 9; do
    { head -c 20000000 /dev/zero; echo "$i"; } > "$work/blob.$i"
    timeout 2000 python3 "$client" "$url" "$work/client-$i" upload "$work/blob.$i" > "$work/upload.$i" 2>&1 &
    pids="$pids $!"
done
for one in $pids; do
    wait "$one" || fail "a client has failed"
done
[ "$(cat "$work"/upload.? | grep -c '^200 {"complete":true')" -eq 10 ] || fail "an upload has failed: $(cat "$work"/upload.?)"
first=$(memory)
done=1
while [ $done -lt "$rounds" ]; do
    round
    done=$((done + 1))
done
grew=$(($(memory) - first))
[ $grew -lt 2000 ] || fail "the daemon took $grew kB more in the rounds after the first one, which had $first kB"
tries=0
while [ "$(descriptors)" -gt "$before" ]; do
    tries=$((tries + 1))
    [ $tries -lt 12000 ] || fail "$before descriptors before, $(descriptors) afterwards"
    sleep 0.1
done
[ -z "$(pgrep -P "$pid" || true)" ] || fail "a child is left"
python3 "$client" "$url" "$work/client-0" request GET /v1/metrics --unsigned > "$work/out.metrics"
peak=$(sed -n 's/^verde_memory_peak_bytes \([0-9]*\)$/\1/p' "$work/out.metrics")
[ "$peak" -lt 100000000 ] || fail "the daemon took $peak bytes"
kill "$pid"
wait "$pid" || fail "the daemon did not end well"
pid=
# Data uploaded within this second is not old yet, and the next collection is a minute later.
sleep 1.1
start --keep-seconds 0 # looks at what nobody needs as it starts
tries=0
while [ -n "$(ls "$work/data/blobs" "$work/data/uploads" | grep -v : || true)" ]; do
    tries=$((tries + 1))
    [ $tries -lt 12000 ] || fail "data that no job needs is left"
    sleep 0.1
done
kill "$pid"
wait "$pid" || fail "the daemon did not end well"
pid=

# A disk of 40 MB: an upload that does not fit is refused, and other clients' jobs go on.
full="and no disk that is full: that needs root, and mount"
mkdir "$work/disk"
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=40m tmpfs "$work/disk" 2> /dev/null; then
    trap 'cleanup; umount "$work/disk" 2> /dev/null || true' EXIT
    rm -rf "$work/data"
    ln -s disk "$work/data"
    start
    head -c 64000000 /dev/urandom > "$work/blob"
    python3 "$client" "$url" "$work/client-0" upload "$work/blob" > "$work/out.full"
    grep -q '^507 .*disk is full' "$work/out.full" || fail "a full disk is not told of"
    job=$(python3 "$client" "$url" "$work/client-1" submit "$work/toy") || fail "the job was not accepted: $job"
    python3 "$client" "$url" "$work/client-1" wait "$job" done failed > "$work/out.full"
    grep -q "\"run_root\": \"$root\"" "$work/out.full" || fail "the other client's job has failed"
    # Less space is left than a checkpoint needs: the job fails with a reason, and the daemon goes on.
    dd if=/dev/zero of="$work/disk/filler" bs=1k 2> /dev/null || true
    job=$(python3 "$client" "$url" "$work/client-1" submit "$work/toy" --name second) || true
    rm "$work/disk/filler"
    case $job in
    *[!0-9a-f]*) grep -q '^507 .*bytes free, of which other jobs\|trouble of this provider' <<- TEXT || fail "the full disk is not told of: $job"
		$job
		TEXT
        ;;
    *) python3 "$client" "$url" "$work/client-1" wait "$job" done failed > "$work/out.full" ;;
    esac
    job=$(python3 "$client" "$url" "$work/client-1" submit "$work/toy" --name third) || fail "the job was not accepted: $job"
    python3 "$client" "$url" "$work/client-1" wait "$job" done failed > "$work/out.full"
    grep -q "\"run_root\": \"$root\"" "$work/out.full" || fail "the job after the full disk has failed"
    kill "$pid"
    wait "$pid" || fail "the daemon did not end well"
    pid=
    full="and a full disk"
fi
echo "$((10 * jobs * rounds)) jobs and 10 uploads of ten clients, peak $((peak / 1000)) kB, $before descriptors, $grew kB more after $first kB, $full"
