#!/bin/sh
# `verde verify` and a verifier that shares no code with it decide alike on verdicts that are altered with knowledge of their
# structure: signed again by the right key or a wrong one, evidence moved, members doubled, sizes at the limits, ...
# Usage: altered.sh BUILD [COUNT [SEED]]; tests/full/altered.sh has 100,000.
set -eu
build=$1
work=$build/tests/altered
own=tests/independent
python=
for candidate in python3 /usr/bin/python3; do
    if $candidate -c 'import sys, cryptography; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || { echo "no Python 3.11 with cryptography (python3-cryptography)"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
rm -rf "$work"
mkdir -p "$work"
VERDICTS=$work "$build/tests/test_verdict_kinds" > "$work/kinds.log" 2>&1 || { cat "$work/kinds.log"; exit 1; }
$python $own/altered.py "$build/tests/judge" "$work" "${2:-300}" "${3:-1}" > "$work/altered.txt" || { cat "$work/altered.txt"; exit 1; }

# Proofs of fraud in which one byte is changed, of the file or of what is then signed again.
$python $own/altered.py "$build/tests/judge" "$work" 1000 "${3:-1}" 0 one_byte > "$work/bytes.txt" || { cat "$work/bytes.txt"; exit 1; }
tail -n 1 "$work/bytes.txt"

# The test notices a verifier that accepts everything.
cat > "$work/easy.py" <<'END'
import struct, sys
while head := sys.stdin.buffer.read(4):
    sys.stdin.buffer.read(struct.unpack("<I", head)[0])
    print("0 of course", flush=True)
END
printf '#!/bin/sh\nexec %s %s/easy.py\n' "$python" "$work" > "$work/easy"
chmod +x "$work/easy"
code=0
$python $own/altered.py "$work/easy" "$work" 20 1 > "$work/easy.txt" || code=$?
[ $code -eq 1 ] && ! grep -q ' 0 decided differently' "$work/easy.txt" ||
    { echo "a judge that takes everything is not found out"; exit 1; }
tail -n 1 "$work/altered.txt"
