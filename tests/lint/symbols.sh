#!/bin/sh
# Objects built for different instruction sets share no function: if a linker kept the AVX-512 copy, it would break older
# machines. Every global symbol that a kernel's object defines, even weak copies of inline functions, has the name of its
# instruction set, and the object uses no symbol with another's name.
# Usage: tests/lint/symbols.sh BUILD_DIR
set -u
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
nm=${NM:-nm}

# The instruction set of each object: named by the folder for kernels, by folder and type for free kernels, by the file for
# functions.
find "$build/obj/repops/cpu" "$build/obj/repops/free" -name '*.o' > "$build/symbols.txt"
ls "$build"/obj/repops/tools/functions_*.o >> "$build/symbols.txt"
# Lines: object, name, kind. U: used; other capitals: visible to other objects. The sanitizers' symbols, and the thunk for
# position-independent code on 32-bit x86, do not count.
xargs "$nm" -A --extern-only -f posix < "$build/symbols.txt" | sed 's/:  */ /' | awk '
    { at = $1; sub(/:$/, "", at); isa = at
      if (!sub(/.*\/functions_/, "", isa)) sub(/.*\/repops\/(cpu|free)\//, "", isa)
      sub(/[_.\/].*/, "", isa); seen[at] = 1 }
    $3 == "U" || $3 == "w" { if ($2 ~ /_(scalar|avx2|avx512|neon)$/ && $2 !~ ("_" isa "$")) { print at " uses " $2; bad = 1 }; next }
    $2 !~ ("_" isa "$") && $2 !~ /^__x86\./ { print at " defines " $2; bad = 1 }
    END { for (o in seen) n++; if (bad) exit 1
          if (!n) { print "no objects"; exit 1 }; print n " objects of instruction sets share nothing" }'
