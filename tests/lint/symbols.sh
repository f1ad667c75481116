#!/bin/sh
# Objects built for different instruction sets share no function: a linker that kept the AVX-512 copy of one would break
# older machines. Whatever a kernel's object defines for others, weak copies of inline functions too, carries the name of its
# instruction set, and it uses nothing that carries another's.
# Usage: tests/lint/symbols.sh BUILD_DIR
set -u
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
nm=${NM:-nm}

# Each object with its instruction set: of kernels the folder names it, of free kernels with a type, of functions the file.
find "$build/obj/repops/cpu" "$build/obj/repops/free" -name '*.o' > "$build/symbols.txt"
ls "$build"/obj/repops/tools/functions_*.o >> "$build/symbols.txt"
# Lines: object, name, kind. U is used, capitals are what others see; not counted are the sanitizers' own, and the
# position-independent code's way to its address on 32-bit x86.
xargs "$nm" -A --extern-only -f posix < "$build/symbols.txt" | sed 's/:  */ /' | awk '
    { at = $1; sub(/:$/, "", at); isa = at
      if (!sub(/.*\/functions_/, "", isa)) sub(/.*\/repops\/(cpu|free)\//, "", isa)
      sub(/[_.\/].*/, "", isa); seen[at] = 1 }
    $3 == "U" || $3 == "w" { if ($2 ~ /_(scalar|avx2|avx512|neon)$/ && $2 !~ ("_" isa "$")) { print at " uses " $2; bad = 1 }; next }
    $2 !~ ("_" isa "$") && $2 !~ /^__x86\./ { print at " defines " $2; bad = 1 }
    END { for (o in seen) n++; if (bad) exit 1
          if (!n) { print "no objects"; exit 1 }; print n " objects of instruction sets share nothing" }'
