#!/bin/sh
# A referee that is killed, or cannot write, continues from its journal: with two providers, and with four, in separate processes.
set -eu
build=$1
verde=$build/bin/verde
job=models/jobs/toy.yaml
work=$build/tests/resume
rm -rf "$work"
mkdir -p "$work"
pids=
cleanup() {
    for pid in $pids; do kill "$pid" 2> /dev/null || true; done
    wait 2> /dev/null || true
}
trap cleanup EXIT

# serve NAME [OPTIONS]: serves the run NAME (without its -1); the URL is in NAME.url.
serve() {
    name=$1
    shift
    rm -f "$work/$name.url"
    "$verde" serve "$work/${name%-*}" --key "$work/keys-$name" --threads 1 "$@" \
        > "$work/$name.url" 2> "$work/$name.log" &
    served=$!
    pids="$pids $served"
    tries=0
    while ! [ -s "$work/$name.url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "$name does not serve"; cat "$work/$name.log"; exit 1; }
        sleep 0.05
    done
}

# arbitrate LABEL [OPTIONS]: holds a dispute; the exit code is in $code.
arbitrate() {
    label=$1
    shift
    code=0
    # shellcheck disable=SC2086
    "$verde" arbitrate $job --key "${key:-$work/referee}" --verdict "$work/$label.json" --no-challenge $urls "$@" \
        > "$work/$label.out" 2> "$work/$label.log" || code=$?
}

# look.py: each entry's question occurs once, frames are as in PROTOCOL.md 8.8, the verdict is about the journal's own assignment.
cat > "$work/look.py" << 'END'
import base64, hashlib, json, struct, sys

def entries(data):
    assert data[:16] == b"verde dispute\0\1\0"
    at, seal = 16, bytes(32)
    while at + 16 <= len(data):
        size, complement = struct.unpack_from("<QQ", data, at)
        assert size == complement ^ (1 << 64) - 1
        if at + 16 + size + 32 > len(data):
            return
        body = data[at + 16:at + 16 + size]
        seal = hashlib.sha256(b"verde/dispute/1\0" + seal + data[at:at + 8] + body).digest()
        assert seal == data[at + 16 + size:at + 16 + size + 32]
        at += 16 + size + 32
        while body:
            kind, provider, question, used, size = struct.unpack_from("<BI32sQI", body)
            yield kind, provider, question, body[49:49 + size]
            body = body[49 + size:]

def predicate(path):
    return json.loads(base64.b64decode(json.load(open(path))["payload"]))["predicate"]

whole, journal, resumed = sys.argv[1:]
whole, resumed = predicate(whole), predicate(resumed)
noted = list(entries(open(journal, "rb").read()))
assert json.loads(noted[0][3]) == resumed["assignment"], "another assignment"
asked = [(p, q) for kind, p, q, _ in noted if kind == 2]
assert len(asked) == len(set(asked)), "a question stands twice in the journal"
said = {(p, q): json.loads(note) for kind, p, q, note in noted if kind == 4}
for item in resumed["evidence"]:
    old = said.pop((item["provider"], bytes.fromhex(item["question"])), None)
    assert old is None or old == item["statement"], "another statement"
assert not said, "statements of the journal are not in the verdict"
assert resumed["outcome"] == whole["outcome"], "another outcome"
assert len(resumed["evidence"]) == len(whole["evidence"]), "another number of questions"
END

# stopped_at BLOCKS: the disk is full after so many blocks, within a record.
stopped_at() {
    (
        ulimit -f "$1"
        arbitrate killed
        exit $code
    ) && code=0 || code=$?
    [ $code -eq 1 ] || { echo "not stopped at $1 blocks: $code"; cat "$work/killed.log"; exit 1; }
}

# killed_at BLOCKS: kill -9 when the journal has this size, or a little later.
killed_at() {
    arbitrate killed &
    pid=$!
    until [ "$(wc -c < "$work/killed.json.journal" 2> /dev/null || echo 0)" -ge $((512 * $1)) ] || ! kill -0 $pid 2> /dev/null; do :; done
    referee=$(pgrep -P $pid || true)
    [ -z "$referee" ] || kill -9 "$referee" 2> /dev/null || true
    wait $pid 2> /dev/null || true
}

# goes_on: outcome, evidence and questions are those of an undisturbed referee.
goes_on() {
    [ -s "$work/killed.json.journal" ] || { rm -f "$work/killed.json"; return 0; } # it was at its end
    cp "$work/killed.json.journal" "$work/journal"
    arbitrate killed --resume "$work/killed.json.journal"
    [ $code -eq 3 ] || { echo "resumed at $1 blocks: exit code $code"; cat "$work/killed.log"; exit 1; }
    python3 "$work/look.py" "$work/whole.json" "$work/journal" "$work/killed.json"
    ! [ -e "$work/killed.json.journal" ] || { echo "the journal is still there"; exit 1; }
    "$verde" verify "$work/killed.json" --job $job --quiet
    rm "$work/killed.json"
    kills=$((kills + 1))
}

# Kills everywhere: at sizes from 4 blocks (of 512 bytes: the assignment) on, increasingly far apart, until the dispute fits.
kill_everywhere() {
    rm -f "$work/whole.json"
    arbitrate whole
    [ $code -eq 3 ] || { echo "exit code $code"; cat "$work/whole.log"; exit 1; }
    kills=0 blocks=4
    limit=$(($(wc -c < "$work/whole.json") / 512))
    while [ $blocks -lt $((limit / 2)) ]; do
        stopped_at $blocks
        goes_on $blocks
        killed_at $blocks
        goes_on $blocks
        blocks=$((2 * blocks - 1))
    done
    [ $kills -gt 4 ] || { echo "only $kills kills"; exit 1; }
    echo "$# providers: $kills kills"
}

"$verde" run $job --out "$work/honest" --threads 1 > /dev/null 2>&1
for fault in attr@11 skip@5 element@0; do
    "$verde" run $job --out "$work/${fault%%@*}" --threads 1 --fault $fault > /dev/null 2>&1
done
for name in honest-1 attr-1 skip-1 element-1; do serve $name; done
name_urls() {
    urls=
    for name in "$@"; do urls="$urls --provider $(cat "$work/$name.url")"; done
}
name_urls honest-1 attr-1
kill_everywhere honest attr
name_urls attr-1 skip-1 honest-1 element-1
kill_everywhere attr skip honest element

# refused WORDS [OPTIONS]: one line has the WORDS, and the journal is unchanged.
refused() {
    words=$1
    shift
    cp "$work/journal" "$work/before"
    arbitrate none "$@"
    [ $code -eq 2 ] && grep '^verde: ' "$work/none.log" | grep -q "$words" && cmp -s "$work/before" "$work/journal" ||
        { echo "$words: exit code $code"; cat "$work/none.log"; exit 1; }
}
cp "$work/journal" "$work/none.json.journal"
refused 'none.json.journal: of a dispute that was interrupted; --resume'
rm "$work/none.json.journal"
exec 9< "$work/journal"
flock 9
refused 'another process is at this dispute' --resume "$work/journal"
exec 9<&-
all=$urls
name_urls attr-1 skip-1 element-1
refused 'between others' --resume "$work/journal"
urls=$all
key=$work/others
refused 'another referee conducts' --resume "$work/journal"
key=
refused 'there is no journal' --resume "$work/nothing"
# Whether second runs are asked for was told to the providers, and cannot change now.
(
    ulimit -f 8
    # shellcheck disable=SC2086
    exec "$verde" arbitrate $job --key "$work/referee" --verdict "$work/asked.json" $urls > /dev/null 2>&1
) || true
cp "$work/journal" "$work/whole.journal"
cp "$work/asked.json.journal" "$work/journal"
arbitrate none --resume "$work/journal" # cuts its torn end off
refused 'began without --no-challenge' --resume "$work/journal"
cp "$work/whole.journal" "$work/journal"
printf x | dd of="$work/journal" bs=1 seek=300 conv=notrunc 2> /dev/null
refused 'damaged at byte' --resume "$work/journal"
: > "$work/journal"
refused 'there is no dispute in it' --resume "$work/journal"

# An honest provider that is killed during a tournament, and comes back, keeps its claim.
serve honest-2
port=$(sed 's/.*:\([0-9]*\)#.*/\1/' "$work/honest-2.url")
gone=$served
name_urls attr-1 honest-2 skip-1 element-1
(
    until grep -q 'Game 1' "$work/back.log" 2> /dev/null; do sleep 0.02; done
    kill -9 "$gone"
    sleep 0.7
    exec "$verde" serve "$work/honest" --key "$work/keys-honest-2" --threads 1 --listen "127.0.0.1:$port" > /dev/null 2>&1
) &
pids="$pids $!"
arbitrate back --json
[ $code -eq 3 ] && grep -q '"accepted":true' "$work/back.out" && grep -q '"standing":"stands"' "$work/back.out" ||
    { echo "back: exit code $code"; cat "$work/back.log"; exit 1; }
echo "a referee and a provider were killed, and nothing was lost"
