#!/bin/sh
# Trouble at a provider, with real processes: a job runs out of memory, the disk fills up during a job, clients use up their
# limits, data changes during an upload. Others are not harmed, and each is told why.
. tests/support/system
client=tests/system/provide_client.py
if ! command -v python3 > /dev/null || ! python3 -c 'import ssl' 2> /dev/null || ! command -v openssl > /dev/null; then
    echo "no python3 with ssl, or no openssl: there is no other client"
    exit 77
fi
mounted=
cleanup() {
    for pid in $pids; do kill -CONT "$pid" 2> /dev/null && kill "$pid" 2> /dev/null || true; done
    wait 2> /dev/null || true
    [ -z "$mounted" ] || umount "$work/disk" 2> /dev/null || true
}

# daemon NAME OPTIONS: starts one; $url is its URL, $pid its process.
daemon() {
    name=$1
    shift
    start "$name" "$verde" provide --dir "$work/$name" --listen 127.0.0.1:0 --threads 1 --client "$(cat "$work/alice/key.pub")" \
        --client "$(cat "$work/bob/key.pub")" "$@"
    url=$(cat "$work/$name.url")
}

stop() {
    kill "$pid"
    wait "$pid" || fail "the daemon did not end well"
}

# answers WORDS WHO ARGUMENTS: the other client's output has the WORDS.
answers() {
    words=$1 who=$2
    shift 2
    timeout 1200 python3 "$client" "$url" "$work/$who" "$@" > "$work/out" 2>&1 || true
    grep -q -e "$words" "$work/out" || fail "$who $*: not \"$words\""
    count=$((count + 1))
}

# submit WHO RUN [OPTIONS]: submits the run's job; $job is its id.
submit() {
    who=$1 run=$2
    shift 2
    job=$(python3 "$client" "$url" "$work/$who" submit "$work/$run" "$@") || fail "$run was not accepted: $job"
}

# program NAME STEPS INTERVAL [JOB]: makes the program of a job of this length, without running it; it uses the toy's data.
program() {
    sed -e "s/^steps: .*/steps: $2/" -e "s/^checkpoint_interval: .*/checkpoint_interval: $3/" -e 's|\.\./data|'"$PWD"'/models/data|' \
        "${4:-models/jobs/toy.yaml}" > "$work/$1.yaml"
    "$verde" run "$work/$1.yaml" --out "$work/$1" --threads 1 > /dev/null 2>&1 &
    runner=$!
    tries=0
    while [ ! -s "$work/$1/program" ] && [ $tries -lt 12000 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
    kill -9 $runner
    wait $runner 2> /dev/null || true
    rm -f "$work/$1/data" "$work/$1/data.json"
    cp "$work/toy/data.json" "$work/$1"
    [ ! -e "$work/toy/data" ] || cp "$work/toy/data" "$work/$1"
}

for name in alice bob; do
    "$verde" keygen "$work/$name" > /dev/null
done
"$verde" run models/jobs/toy.yaml --out "$work/toy" --threads 1 --json > "$work/toy.json" 2> /dev/null
root=$(sed -n 's/.*"run_root":"\([0-9a-f]*\)".*/\1/p' "$work/toy.json")
sed -e 's/layers: 2, heads: 2, channels: 32/layers: 6, heads: 8, channels: 512/' models/jobs/toy.yaml > "$work/layers.yaml"
program endless 100000 1000
program large 10 10 "$work/layers.yaml"
program saves 100000 4
# A run of as many steps as allowed, with one state at the end: its losses need more space than the disk has.
cp -r "$work/endless" "$work/losses"
python3 - "$work/losses/program" << EOF
import struct, sys
with open(sys.argv[1], "r+b") as file:
    file.seek(2 + len("verde program") + 2 + 2 + 8)
    file.write(struct.pack("<QQ", 2**31 - 1, 2**31 - 1))
EOF

# ---- out of memory: the process's limit is lowered while it initialises 57 tensors ----
daemon memory --jobs 2
submit bob endless --keep 2
other=$job
answers '"state": "running"' bob wait "$other" running
submit alice large
hungry=$job
tries=0
while [ ! -s "$work/memory/jobs/$hungry/run/program" ]; do
    tries=$((tries + 1))
    [ $tries -lt 12000 ] || fail "the large job does not start"
    sleep 0.02
done
prlimit --pid "$(pgrep -f "child-run.*$hungry")" --data=4096
# A sanitizer reports it in its own words.
said='memory.*'
[ -z "${SANITIZED:-}" ] || said=
answers "$said\"state\": \"failed\"" alice wait "$hungry" failed done
answers '"state":"running"' bob request GET "/v1/jobs/$other"
submit alice toy
answers "\"run_root\": \"$root\".*\"state\": \"done\"" alice wait "$job" done failed
answers '^200 ' bob request POST "/v1/jobs/$other/cancel"
answers '^413 .*the job takes [0-9]* bytes of disk, and the limit is 100000000000' alice submit "$work/losses"

# ---- data outside the range that the program states: reported when the run loads it ----
cp -r "$work/toy" "$work/ranged"
python3 -c 'import struct, sys; open(sys.argv[1], "ab").write(struct.pack("<BIIqq", 1, 1, 0, 0, 120))' "$work/ranged/program"
submit alice ranged
answers 'data tensor tokens: element [0-9]* is 12[1-9], expected 0 to 120 as the program says.*"state": "failed"' \
    alice wait "$job" failed done

# ---- limits on all of a client's jobs together ----
stop
daemon seconds --jobs 2 --client-seconds 4 --client-blobs 3
submit bob endless --keep 2
submit bob endless --keep 2 --name second
answers 'stopped: its limit of seconds.*"state": "failed"' bob wait "$job" failed done
answers '^403 .*the limit of a client is 4 s' bob submit "$work/endless" --name third
python3 "$client" "$url" "$work/bob" request GET /v1/jobs > "$work/out"
total=$(tr ',' '\n' < "$work/out" | sed -n 's/.*"seconds":\([0-9]*\).*/\1/p' | awk '{ s += $1 } END { print s }')
[ "$total" -ge 3 ] && [ "$total" -le 60 ] || fail "two jobs of a client whose limit is 4 s computed for $total s"
echo 1 > "$work/blob"
answers '^200 .*"complete":true' bob upload "$work/blob"
echo 2 > "$work/blob"
answers '^413 .*the limit of a client is 3 blobs' bob upload "$work/blob"
stop

# ---- a disk that fills up while a job runs ----
full="and no disk that is full: that needs root, and mount"
mkdir "$work/disk"
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=100m tmpfs "$work/disk" 2> /dev/null; then
    mounted=1
    daemon disk
    # A job that would not fit beside the others' estimates is refused at once; uploads work again once there is room.
    dd if=/dev/zero of="$work/disk/filler" bs=4k count=16000 2> /dev/null || true
    answers '^507 .*bytes free, of which other jobs' bob submit "$work/saves" --keep 4
    dd if=/dev/zero of="$work/disk/filler" bs=4k 2> /dev/null || true
    answers '^507 .*disk is full' alice upload "$work/toy.json"
    rm "$work/disk/filler"
    answers '^200 .*"complete":true' alice upload "$work/toy.json"
    submit alice toy
    done=$job
    answers "\"state\": \"done\"" alice wait "$done" done failed
    submit bob saves --keep 4
    saves=$job
    answers '"state": "running"' bob wait "$saves" running
    dd if=/dev/zero of="$work/disk/filler" bs=4k 2> /dev/null || true
    answers '[Ss]pace\|disk is full.*"state": "failed"' bob wait "$saves" failed done
    answers "\"run_root\": \"$root\"" alice request GET "/v1/jobs/$done/state"
    rm "$work/disk/filler"
    submit bob saves --keep 4
    [ "$job" = "$saves" ] || fail "the failed job has another name"
    answers '"state": "running"' bob wait "$saves" running
    answers '^200 ' bob request POST "/v1/jobs/$saves/cancel"
    submit alice toy --name second
    answers "\"run_root\": \"$root\".*\"state\": \"done\"" alice wait "$job" done failed
    stop
    full="and a disk that fills up"
fi

# ---- the real client's data changes between its hash and the upload ----
head -c 2000000 /dev/urandom > "$work/text"
sed -e "s|file: .*|file: $work/text|" -e "s/sha256: .*/sha256: $(sha256sum < "$work/text" | cut -d' ' -f1)/" models/jobs/toy.yaml > "$work/text.yaml"
daemon one
one=$url one_pid=$pid
daemon two
kill -STOP "$one_pid" "$pid"
"$verde" delegate "$work/text.yaml" --key "$work/alice" --out "$work/result" --provider "$one" --provider "$url" \
    < /dev/null > "$work/out" 2>&1 &
delegating=$!
# The client connects once it has hashed its data, and waits: both providers are stopped.
tries=0
until readlink "/proc/$delegating"/fd/* 2> /dev/null | grep -q "^socket:"; do
    tries=$((tries + 1))
    [ $tries -lt 3000 ] || fail "the client does not connect"
    sleep 0.02
done
printf "not what was there" | dd of="$work/text" bs=1 seek=1500000 conv=notrunc 2> /dev/null
kill -CONT "$one_pid" "$pid"
code=0
wait $delegating || code=$?
[ $code -ne 0 ] || fail "changed data were taken"
grep -q 'do not have the hash' "$work/out" || fail "it is not said that the bytes were wrong"
[ -z "$(ls "$work/one/uploads" "$work/two/uploads" | grep -v -e : -e '^$' || true)" ] || fail "wrong bytes are kept"
echo "$((count + 1)) answers, $full"
