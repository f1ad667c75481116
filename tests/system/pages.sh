#!/bin/sh
# `verde inspect --html` makes a page of every kind of verdict: complete, with the verdict's contents, a policy that allows its
# style by hash, and everything from peers as text. tests/full/pages_browser.sh opens them in a browser.
. tests/support/system
VERDICTS=$work "$build/tests/test_verdict_kinds" > "$work/kinds.log" 2>&1 || fail "no verdicts"
# made NAME: makes a page of $work/NAME, silently.
made() {
    "$verde" inspect "$work/$1" --html "$work/$1.html" > "$work/out" 2>&1 || fail "$1: no page"
    [ ! -s "$work/out" ] || fail "$1: it says something"
}
has() {
    grep -qF -- "$2" "$work/$1.html" || fail "$1: not \"$2\""
    count=$((count + 1))
}
for file in "$work"/*.json; do
    name=$(basename "$file" .json)
    "$verde" inspect "$file" --html "$work/$name.html" > "$work/out" 2> "$work/err" || fail "$name: no page"
    [ ! -s "$work/out" ] && [ ! -s "$work/err" ] || fail "$name: it says something"
    tail -n 1 "$work/$name.html" | grep -qx '</html>' || fail "$name: it is cut off"
    has "$name" "default-src 'none'"
    ! grep -qE '(src|href)="?(http|//)' "$work/$name.html" || fail "$name: it loads something"
done
has element 'Provider 2 is convicted'
has element 'adamw.layer.1.bias.m'
has element 'floats above'
has element ' kB, 0.250 s'
has element 'The graph around it'
has fraud-part '<b>Part '
has agreed 'All agree'
has collection '<b>Prompt 3</b>'
has silence 'no answer'
has many-again 'Providers 1, 2 and 3 are convicted'
has many-again 'Games'
has many-again 'The place of game 4'
has fraud-element 'A proof of fraud'
has fraud-element 'Provider 1 is convicted'
has markup '&lt;script&gt;hostile()&lt;/script&gt;'
! grep -qE '<script>hostile|<img' "$work/markup.html" || fail "markup of a peer is on the page"
if command -v openssl > /dev/null; then
    sed -n '/^<style>/,/^<\/style>/p' "$work/element.html" | sed -e '1s/^<style>//' -e '$d' > "$work/style"
    has element "style-src 'sha256-$(openssl dgst -sha256 -binary "$work/style" | base64)'"
fi
# A verdict that does not hold, or a file that is none, gets no page; an existing file stays.
sed 's/"sig":"./"sig":"x/' "$work/element.json" > "$work/forged"
expect 6 'forged: ' "$verde" inspect "$work/forged" --html "$work/forged.html"
one_line
[ ! -e "$work/forged.html" ] || fail "a forged verdict has a page"
cp "$work/element.json" "$work/kept.json"
expect 2 'what the page is about' "$verde" inspect "$work/kept.json" --html "$work/kept.json"
cmp -s "$work/element.json" "$work/kept.json" || fail "the verdict was overwritten"
echo kept > "$work/other.txt"
expect 2 'is no page to be replaced' "$verde" inspect "$work/element.json" --html "$work/other.txt"
[ "$(cat "$work/other.txt")" = kept ] || fail "a page took a file's place"
expect 2 'is no verify.html' "$verde" inspect "$work/element.json" --html "$work/x.html" --verifier README.md
one_line
expect 2 'cannot open' "$verde" inspect "$work/element.json" --html "$work/x.html" --verifier "$work/none.html"
expect 2 'with --html' "$verde" inspect "$work/element.json" --verifier "$work/none.html"
expect 2 'cannot' "$verde" inspect "$work/element.json" --html "$work/none/x.html"
[ ! -e "$work/x.html" ] || fail "a page was left"

# Pages of a run with its losses, and of the --json output of an audit and a comparison.
for fault in '' --fault=element@7; do
    "$verde" run models/jobs/toy.yaml --out "$work/run$fault" --threads 1 $fault > "$work/out" 2> "$work/err" || fail "no run"
    made "run$fault"
done
has run 'A finished run'
has run 'data:image/svg+xml;base64,'
has run "$("$verde" inspect "$work/run" | sed -n 's/^run root  *//p')"
has run--fault=element@7 'It errs on purpose'
"$verde" diff "$work/run" "$work/run--fault=element@7" --json > "$work/diff" 2> "$work/err" || [ $? -eq 9 ] || fail "no diff"
made diff
has diff 'They differ'
has diff 'm1.h.0.attn.qkv.matmul'
echo '{"equal":true,"compared":"<script>hostile()</script>","more_of":[{"<img src=x>":"<img src=x>"}]}' > "$work/same"
made same
has same 'Equal to the bit'
! grep -qE '<script|<img' "$work/same.html" || fail "markup of a report is on the page"
echo '{"result":"fraud","reason":"a wrong element","checked":{"crumbs":3}}' > "$work/audit"
made audit
has audit 'a wrong element'
echo '{"equal":true}' > "$work/other"
expect 2 'not what `verde audit` or `verde diff` writes' "$verde" inspect "$work/other" --html "$work/other.html"
one_line
echo '{"result":1}' > "$work/other"
expect 2 'not what `verde audit` or `verde diff` writes' "$verde" inspect "$work/other" --html "$work/other.html"
one_line
# Page of a run's audit: all levels of what differs.
"$verde" audit "$work/run--fault=element@7" --all --json > "$work/audit-run" 2> "$work/err" || [ $? -eq 9 ] || fail "no audit of a run"
made audit-run
has audit-run 'The run is not what it commits to'
has audit-run 'equal inputs, and b has the operator&#39;s value'
has audit-run 'm1.h.0.attn.qkv.matmul'
has audit-run '<dt>distance, in numbers of its type<dd>4,096'
has audit-run '<dt>value in a<dd>'
# Page with findings of --guard.
cp -r "$work/run" "$work/guarded"
sed '1s/{/{"guard":[{"step":5,"node":"m0.matmul","kind":"sums","again":false,"product":0,"chunk":3,"row":0,"rows":1,"column":0,"columns":1,"machine":0}],/' \
    "$work/run/run.json" > "$work/guarded/run.json"
made guarded
has guarded 'm0.matmul'
# Pages of a job with many prompts, and of an audit of its answers.
cat > "$work/prompts.jsonl" << JSON
{"key": 7, "ids": [15, 2, 9]}
{"key": 1, "ids": [5]}
JSON
cat > "$work/generate.yaml" << YAML
verde: 1
task: generate
model: {kind: pretrained, dir: llama, sha256: $(take_model llama)}
prompts: {file: prompts.jsonl, sha256: $(sum_of "$work/prompts.jsonl")}
sampling: {greedy: true}
max_tokens: 4
YAML
"$verde" run "$work/generate.yaml" --out "$work/answers" --threads 1 > "$work/out" 2> "$work/err" || fail "no answers"
made answers
has answers '15, 2, 9 (3 tokens)'
has answers "$(sed -n '1s/.*"ids":\[\([^]]*\)\].*/\1/p' "$work/answers/results.jsonl" | sed 's/,/, /g') (4 tokens)"
has answers "$(sed -n 's/^job root  *//p' "$work/out")"
mv "$work/answers/results.jsonl" "$work/results"
sed '1s/"ids":\[[0-9]*/"ids":[63/' "$work/results" > "$work/answers/results.jsonl"
"$verde" audit "$work/generate.yaml" --results "$work/answers" --json > "$work/audit-answers" 2> "$work/err" || [ $? -eq 9 ] || fail "no audit of answers"
made audit-answers
has audit-answers 'Answers are wrong'
has audit-answers 'ids[0]'
# Keeps the pages for tests/full/pages_browser.sh.
if [ -n "${PAGES:-}" ]; then
    mkdir -p "$PAGES"
    for name in run run--fault=element@7 guarded diff audit-run audit-answers answers; do cp "$work/$name.html" "$PAGES"; done
fi
# An unfinished prompt, and tokens that are not the program's prompt.
rm "$work/answers/results.jsonl"
sed 's/"stopped":"[a-z]*"/"stopped":"<img src=x>"/' "$work/results" > "$work/answers/results.jsonl.part"
printf 'x' | dd of="$work/answers/prompts/7/data" bs=1 conv=notrunc 2> "$work/err"
made answers
has answers '&lt;img src=x&gt;'
! grep -q '<img' "$work/answers.html" || fail "markup of results is on the page"
! grep -qF '15, 2, 9' "$work/answers.html" || fail "another prompt than the program's is shown"
echo "$count checks of pages"
