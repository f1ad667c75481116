#!/bin/sh
# The page of `verde provide` in headless Chromium: its console stays empty, text from strangers stays text, and the pictures are
# there: light, dark and narrow, in build/tests/page_browser.
. tests/support/system
command -v chromium > /dev/null || { echo "no chromium"; exit 77; }

# browse NAME URL [OPTION...]: writes the console to $work/NAME.console, the DOM to $work/NAME.html, a picture to $work/NAME.png.
browse() {
    shown=$1 url=$2
    shift 2
    for kind in --dump-dom "--screenshot=$work/$shown.png"; do
        timeout 600 chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --enable-logging=stderr --window-size=1180,1200 \
            --user-data-dir="$work/chromium" "$@" $kind "$url" > "$work/$shown.html.new" 2> "$work/log" || fail "chromium fails: $url"
        grep CONSOLE "$work/log" > "$work/$shown.console" || true
        [ "$kind" != --dump-dom ] || mv "$work/$shown.html.new" "$work/$shown.html"
    done
}

# quiet NAME: its console must be empty.
quiet() {
    [ ! -s "$work/$1.console" ] || fail "$1: $(cat "$work/$1.console")"
    count=$((count + 1))
}

browse wrong 'data:text/html,<script>console.error("seen")</script>'
grep -q seen "$work/wrong.console" || fail "what goes wrong would not be seen"
"$verde" keygen "$work/client" > /dev/null
provide a 127.0.0.1:0 --page 0
provide b 127.0.0.1:0
port=$(sed -n 's|^page for people: http://127.0.0.1:\([0-9]*\)/$|\1|p' "$work/a.log")
sed -e 's/^steps: .*/steps: 300/' -e "s|file: .*|file: $PWD/models/data/project.txt|" models/jobs/toy.yaml > "$work/<b onload=alert(1)>.yaml"
expect 0 'every byte checked' "$verde" delegate "$work/<b onload=alert(1)>.yaml" --key "$work/client" --provider "$a" --provider "$b" --out "$work/result"
job=$(curl -s "http://127.0.0.1:$port/" | grep -o '/jobs/[0-9a-f]*' | head -n 1)
for page in / "$job"; do
    name=overview
    [ "$page" = / ] || name=job
    browse $name-light "http://localhost:$port$page"
    browse $name-dark "http://localhost:$port$page" --blink-settings=preferredColorScheme=0
    browse $name-narrow "http://localhost:$port$page" --window-size=500,1800
    for look in light dark narrow; do
        quiet $name-$look
        grep -q '&lt;b onload=alert(1)&gt;' "$work/$name-$look.html" || fail "$name: the job's name is not there as text"
        [ "$(stat -c %s "$work/$name-$look.png")" -gt 20000 ] || fail "$name: the picture is empty"
    done
    cmp -s "$work/$name-light.png" "$work/$name-dark.png" && fail "$name: light and dark are the same"
done
# A foreign name that resolves to this machine.
browse rebound "http://evil.example:$port/" --host-resolver-rules='MAP evil.example 127.0.0.1'
grep -q 'open it as http://localhost' "$work/rebound.html" || fail "another name opens the page"
echo "two pages in Chromium, light, dark and narrow"
