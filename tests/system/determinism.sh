#!/bin/sh
# The comparison's page is made again from result.json alone, is well-formed, has the five ways, and has the numbers of
# result.json. A damaged file is refused with one line.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
work=$build/tests/determinism
rm -rf "$work"
mkdir -p "$work"
make -s BUILD="$build" "$build/bench/determinism" > "$work/make.txt" 2>&1 || { cat "$work/make.txt"; exit 1; }
program=$build/bench/determinism
count=0

fail() {
    echo "$*"
    exit 1
}

# again DIR: rendering a copy without the page gives the same bytes.
again() {
    copy=$work/$(basename "$1")-again
    mkdir -p "$copy"
    cp "$1/result.json" "$copy"
    "$program" --render "$copy" > "$copy/said.txt" || fail "--render $1 failed"
    cmp "$1/page.html" "$copy/page.html" || fail "$1/page.html is not what its result.json gives"
    count=$((count + 1))
}

# refused TEXT: --render of $work/bad exits with 1 and one line that has TEXT, and writes nothing.
refused() {
    code=0
    "$program" --render "$work/bad" > "$work/out.txt" 2> "$work/err.txt" || code=$?
    [ $code -eq 1 ] || fail "exit code $code where \"$1\" was expected"
    [ "$(wc -l < "$work/err.txt")" -eq 1 ] && grep -qF "$1" "$work/err.txt" || { cat "$work/err.txt"; fail "expected \"$1\""; }
    [ ! -e "$work/bad/page.html" ] && [ ! -s "$work/out.txt" ] || fail "written in spite of \"$1\""
}

"$program" --size small --steps 4 --interval 2 --profiles sim-wide,sim-deep --ways 1234s --out "$work/run" > "$work/said.txt" 2>&1 ||
    { cat "$work/said.txt"; exit 1; }
again "$work/run"
for dir in bench/results/determinism/*/; do
    again "${dir%/}"
done

bad=$work/bad
mkdir "$bad"
refused "bad/result.json"
head -c 300 "$work/run/result.json" > "$bad/result.json"
refused "bad/result.json"
sed 's/"kind": 3/"kind": 9/' "$work/run/result.json" > "$bad/result.json"
refused '`kind` of a way must be 1..5'
sed 's/"steps": 4/"steps": 1000000000/' "$work/run/result.json" > "$bad/result.json"
refused '`steps` and `interval` must be'
sed 's/"losses": \[[^,]*, /"losses": [/' "$work/run/result.json" > "$bad/result.json"
refused '`losses` of a way must be a number for each step'
sed 's/"losses": \[/"losses": [1, /' "$work/run/result.json" > "$bad/result.json"
refused '`losses` and `distances` of a way must have one value'
sed 's/"same": 0/"same": 77/' "$work/run/result.json" > "$bad/result.json"
refused '`same` of a way must be'

command -v python3 > /dev/null || { echo "$count pages made again; no python3 to read them with"; exit 77; }
cat > "$work/check.py" << 'PY'
import json, re, sys
import xml.etree.ElementTree as tree
from html.parser import HTMLParser

NAMES = ['Free binary32', 'Free binary64', 'Trainer with a log', 'Auditor with the log', 'Fixed order']


def check(directory):
    page = open(directory + '/page.html', encoding='utf-8').read()
    result = json.load(open(directory + '/result.json'))
    HTMLParser().feed(page)
    root = tree.fromstring(page.replace('<!DOCTYPE html>\n', ''))
    told = root.find('body/p').text
    assert result['machine'] in told and 'Each way had %d thread' % result['threads'] in told, told
    assert '<script' not in page and 'http' not in page, 'a page needs nothing else'
    table = root.find(".//table[@id='ways']")
    rows = table.findall('tbody/tr')
    assert [row.find('th/span').tail for row in rows] == NAMES
    ran = [w for w in result['ways'] if 'error' not in w]
    trainers = [w for w in ran if w['kind'] == 3]
    for kind, row in enumerate(rows, 1):
        check_row(kind, row, [w for w in ran if w['kind'] == kind], trainers, result['ways'])
    assert len(root.findall('.//svg')) >= 3
    assert len(root.findall('.//details')) == 3
    bars = [t.text for t in root.findall('.//figure/svg/text') if t.text]
    assert not any('scalar' in t for t in bars), 'the slow path belongs to the details'


def check_row(kind, row, ways, trainers, all_ways):
    cell = {td.get('data-name'): td.text for td in row.findall('td')}
    if not ways:
        assert cell['Same state'] in ('not run', 'no auditor ran'), cell
        return
    detail = row.find('th/small').text
    if kind in (3, 4):
        ways = [w for w in ways if w['encoding'] == trainers[0]['encoding']]
    all_auditors = ways
    if kind == 4:
        ways = [w for w in ways if all_ways[w['trainer']] is trainers[0]]
    shown = [w for w in ways if w['way'].endswith(', ' + detail)]
    assert len(shown) == 1, (detail, shown)
    w = shown[0]
    ms = 1e3 * w['seconds']
    assert cell['Time over free binary64'] == '%.2f' % w['ratio_to_f64'], cell
    assert cell['Step, ms'] == ('%.2f' if ms < 100 else '%.0f') % ms, cell
    assert cell['Memory, MB'] == '%.0f' % (w['peak_bytes'] / 1e6), cell
    kb = w['log_bytes'] / 1e3
    expected = ('%.1f' if kb < 100 else '%.0f') % kb if kind in (3, 4) else 'none'
    assert cell['Log of a step, kB'] == expected, cell
    if kind == 4:
        mean = sum(a['corrected'] for a in all_auditors) / len(all_auditors)
        assert cell['Corrections a step'] == '%.3g' % mean, cell
        assert w['ratio_to_f64'] == sorted(a['ratio_to_f64'] for a in ways)[(len(ways) - 1) // 2], 'not the median'
    check_states(kind, cell['Same state'], ways if kind != 4 else all_auditors, all_ways)


def check_states(kind, said, ways, all_ways):
    states = {w['state'] for w in ways}
    if kind in (1, 2, 5) and len(ways) > 1:
        assert said == ('yes, %d runs' % len(ways) if len(states) == 1 else 'no, %d states of %d runs' % (len(states), len(ways))), said
    if kind == 4:
        same = sum(w['state'] == all_ways[w['trainer']]['state'] for w in ways)
        assert re.fullmatch('(yes|no), %d of [0-9]+ auditors' % same, said), said


for directory in sys.argv[1:]:
    try:
        check(directory)
    except (AssertionError, tree.ParseError) as error:
        sys.exit('%s: %r' % (directory, error))
print('%d pages: well-formed, five ways, the numbers of result.json' % len(sys.argv[1:]))
PY
# An auditor whose state differs from its trainer's, and one that could not follow.
cat > "$work/other.py" << 'PY'
import json, sys

source, wrong, stopped = sys.argv[1:]
for target in (wrong, stopped):
    result = json.load(open(source + '/result.json'))
    number, auditor = next((i, w) for i, w in enumerate(result['ways']) if w['kind'] == 4)
    if target == wrong:
        auditor['state'] = 16 * '7' + auditor['state'][16:]
        auditor['same'] = number
    else:
        for key in [key for key in auditor if key not in ('way', 'kind', 'encoding', 'trainer', 'threads')]:
            del auditor[key]
        auditor['error'] = 'step 3: <log> & node'
    json.dump(result, open(target + '/result.json', 'w'))
PY
mkdir "$work/wrong" "$work/stopped"
python3 "$work/other.py" "$work/run" "$work/wrong" "$work/stopped"
for case in wrong stopped; do
    "$program" --render "$work/$case" > "$work/$case/said.txt" || fail "--render $case failed"
    grep -q '^Auditor with the log .*no, 0 of 1 auditors$' "$work/$case/said.txt" ||
        { cat "$work/$case/said.txt"; fail "$case: the table does not tell"; }
    grep -q 'class="words no" data-name="Same state">no, 0 of 1 auditors<' "$work/$case/page.html" || fail "$case: the page does not tell"
done
grep -q 'step 3: &lt;log&gt; &amp; node' "$work/stopped/page.html" || fail "an error is not escaped"
python3 "$work/check.py" "$work/run" "$work/wrong" bench/results/determinism/*/ || exit 1
