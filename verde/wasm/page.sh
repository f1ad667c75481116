#!/bin/sh
# Builds one page from the verifier, its worker, the script and the style sheet. The page's policy allows the last two by SHA-256.
# Usage: page.sh VERIFY.WASM STYLE.CSS VERSION SOURCES > verify.html
set -eu
module=$1 style=$2 version=$3 sources=$4
own=$(dirname "$0")

# source_of: prints 'sha256-...' of standard input in the form of the policy.
source_of() {
    printf "'sha256-%s'" "$(openssl dgst -sha256 -binary | base64)"
}

# Their licences ask for their notices in every copy, so they go with the verifier into pages of verdicts, too.
notices() {
    echo "RepOps and Verde: Apache License 2.0, https://www.apache.org/licenses/LICENSE-2.0"
    for library in jansson libsodium zlib; do
        printf '\n---- %s ----\n\n' $library
        cat "$sources/$library/LICENSE"
    done
    printf '\n---- wasi-libc ----\n\n'
    cat /usr/share/doc/wasi-libc/copyright
}

# Script and style sheet stand between their tags without an extra line feed, which would change their hashes.
script=$(cat "$own/page.js")
sheet=$(cat "$style")
policy="default-src 'none'; base-uri 'none'; form-action 'none'; style-src $(printf '%s' "$sheet" | source_of); worker-src blob:;
 script-src 'wasm-unsafe-eval' $(printf '%s' "$script" | source_of)"
cat << END
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$(printf '%s' "$policy" | tr '\n' ' ')">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>Verde: is this verdict right?</title>
<style>$sheet</style>
<header><h1>Is this verdict right?</h1><p class="soft">Verde $version, the verifier of <code>verde verify</code></p></header>
<main>
<label id="drop" class="drop">Drop a verdict here, or choose its file.<br><br><input id="file" type="file"></label>
<p id="progress" class="soft" role="status"></p>
<div id="result" class="card" hidden><p id="outcome" class="outcome"></p><pre id="said"></pre>
<details><summary>How it was decided</summary><pre id="story"></pre></details></div>
<h2>What this page does</h2>
<div class="card"><p>It checks the verdict's signature and each signed statement in it, lets the referee's machine run again on them,
computes the element in dispute, and compares the outcome. Nothing leaves this page, which loads nothing: it works without a
network.</p>
<p>Trust it as far as you know where it comes from. The release has it, and a signed list of SHA-256: compare with what
<code>sha256sum verify.html</code> says.</p>
<p>A verdict is about who took part, by their keys. Whether a key belongs to whom you think is for you to know.</p></div>
<!-- verifier --><details class="screen"><summary>Licences of what this verifier contains</summary><pre>
$(notices | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g')
</pre></details>
<script id="worker" type="text/plain">
$(cat "$own/worker.js")
</script>
<script id="module" type="text/plain">
$(gzip -9n < "$module" | base64)
</script><!-- end -->
</main>
<script>$script</script>
</html>
END
