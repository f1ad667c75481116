#!/bin/sh
# Large data files stay where they are, and the run's folder says where. Commands that read them later notice if they are missing,
# were moved or changed, or are truncated while being read.
. tests/support/system
mkdir "$work/here" "$work/there"

# job STEPS FILES SHA256: prints a job.
job() {
    cat << YAML
verde: 1
model: {kind: mlp, vocab: 256, layers: 1, channels: 8, hidden: 8}
data: {kind: text, files: [$2], sha256: $3}
seed: 1
batch: 4
sequence: 64
steps: $1
checkpoint_interval: 5
optimizer: {kind: sgd, lr: 0.1, momentum: 0, nesterov: false, weight_decay: 0, clip_norm: 0}
schedule: {kind: constant, warmup: 0}
YAML
}

# Two files: the large one is mapped and named, the small one copied.
yes 'A line of a large text, again and again.' | head -c 20000000 > "$work/here/large-1.txt"
head -c 5000 README.md > "$work/here/large-2.txt"
sum=$(cat "$work/here"/large-*.txt | sha256sum | cut -d ' ' -f 1)
job 10 'large-*.txt' "$sum" > "$work/here/job.yaml"
expect 0 'run root' "$verde" run "$work/here/job.yaml" --out "$work/run" --threads 1
[ "$(wc -c < "$work/run/data")" -eq 5000 ] || fail "not the small file alone was copied"
grep -q "\"$work/here/large-1.txt\"" "$work/run/data.json" || fail "data.json does not name the large file"
expect 0 'root' "$verde" check "$work/run"
root=$(grep 'run root' "$work/out")
expect 0 'nothing was executed' "$verde" run "$work/here/job.yaml" --out "$work/run" --threads 1

# A list of the files is the same as the pattern.
job 10 'large-1.txt, large-2.txt' "$sum" > "$work/here/list.yaml"
expect 0 'nothing was executed' "$verde" run "$work/here/list.yaml" --out "$work/run" --threads 1

# Moved: check works without the data, other commands ask where they are.
mv "$work/here/large-1.txt" "$work/there/"
expect 0 'data  *not there' "$verde" check "$work/run"
expect 2 "here/large-1.txt: No such file or directory; the run in .* reads it, and --data says" "$verde" serve "$work/run"
expect 2 "here/large-1.txt: No such file" "$verde" inspect "$work/run" --trace 3
expect 6 "here/large-1.txt: No such file" "$verde" check "$work/run" --data "$work/here"
expect 0 'read_batch' "$verde" inspect "$work/run" --trace 3 --data "$work/there"
expect 0 "$root" "$verde" check "$work/run" --data "$work/there"
"$verde" serve "$work/run" --data "$work/there" > "$work/url" 2> "$work/err" &
pids=$!
tries=0
while ! [ -s "$work/url" ] && [ $tries -lt 12000 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
[ -s "$work/url" ] || fail "serve --data did not start"

# Changed, and too short.
printf 'B' | dd of="$work/there/large-1.txt" bs=1 seek=12345678 conv=notrunc 2> /dev/null
expect 6 'there/large-1.txt: has changed, or is another file' "$verde" check "$work/run" --data "$work/there"
truncate -s 19999999 "$work/there/large-1.txt"
expect 6 'large-1.txt: 19999999 bytes, expected 20000000 from byte 0 on' "$verde" check "$work/run" --data "$work/there"

# Wrong contents of data.json.
for text in '{}' '{"data": [], "verde": 1}' '{"data": [{"file": "data", "offset": -1}, {}]}' '[' ''; do
    printf '%s' "$text" > "$work/run/data.json"
    expect 6 '.' "$verde" check "$work/run"
done

# Truncated while it is read: the run ends with one line.
yes 'Another line.' | head -c 20000000 > "$work/here/cut.txt"
job 1000000 cut.txt "$(sha256sum < "$work/here/cut.txt" | cut -d ' ' -f 1)" > "$work/here/cut.yaml"
"$verde" run "$work/here/cut.yaml" --out "$work/cut" --threads 3 > "$work/out" 2> "$work/err" &
pid=$!
pids="$pids $pid"
tries=0
while ! [ -s "$work/cut/run.json" ] && [ $tries -lt 12000 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
truncate -s 4096 "$work/here/cut.txt"
code=0
wait "$pid" || code=$?
[ "$code" -eq 1 ] || fail "a run whose file was cut off: exit code $code, expected 1"
grep -q "here/cut.txt: was cut off while it was read" "$work/err" || fail "no word about the file that was cut off"

# The program is changed to say that all bytes are printable. Loading the data reports the first byte that is not.
printf 'printable, but\tthis' > "$work/there/text"
job 2 "text" "$(sha256sum < "$work/there/text" | cut -d ' ' -f 1)" |
    sed 's/sequence: 64/sequence: 8/; s/interval: 5/interval: 1/' > "$work/there/job.yaml"
expect 0 'run root' "$verde" run "$work/there/job.yaml" --out "$work/ranged" --threads 1
mv "$work/ranged/program" "$work/there/program"
{
    cat "$work/there/program" # and a part: 1 range, of data tensor 0, 32..126
    printf '\001\001\000\000\000\000\000\000\000\040\000\000\000\000\000\000\000\176\000\000\000\000\000\000\000'
} > "$work/ranged/program"
hash=$({ printf 'verde/program/1\000' && cat "$work/ranged/program"; } | sha256sum | cut -d ' ' -f 1)
sed "s/\(\"program\": *\)\"[0-9a-f]*\"/\1\"$hash\"/" "$work/ranged/run.json" > "$work/there/run.json"
mv "$work/there/run.json" "$work/ranged/run.json"
outside='ranged/data: data tensor tokens: element 14 is 9, expected 32 to 126 as the program says'
for command in check serve 'inspect --trace 0'; do
    # shellcheck disable=SC2086
    expect 6 "$outside" "$verde" $command "$work/ranged"
    one_line
done
expect 2 'data: another range of tokens there' "$verde" run "$work/there/job.yaml" --out "$work/ranged"
expect 0 '^data  *tokens is in 32\.\.126$' "$verde" inspect "$work/ranged/program"
expect 0 "\"program\":\"$hash\"" "$verde" inspect "$work/ranged/program" --json
{ cat "$work/there/program" && printf '\041'; } > "$work/ranged/program"
expect 8 'ranged/program: program: part 33 is not known to this version, which knows 1 (ranges of data) and 16 to 32' \
    "$verde" inspect "$work/ranged"
expect 8 'ranged/program: program: part 33 is not known' "$verde" inspect "$work/ranged/program"
echo "$((count + 1)) checks of data in files"
