#!/bin/sh
# Objects built for different instruction sets share no function: a linker that kept the AVX-512 copy of one would break
# older machines. Whatever a kernel's object defines for others, weak copies of inline functions too, carries the name of its
# instruction set, and it uses nothing that carries another's.
# Usage: tests/lint/symbols.sh BUILD_DIR
set -u
build=$1 bad=0 count=0
nm=${NM:-nm}

complain() {
    [ -z "$2" ] || { echo "$1:"; echo "$2"; bad=1; }
}

# check ISA OBJECT
check() {
    count=$((count + 1))
    # The sanitizers' own, and the position-independent code's way to its address on 32-bit x86.
    defined=$($nm --defined-only --extern-only -f posix "$2" | awk '{print $1}' | grep -vE '^__odr_asan|^__x86\.')
    complain "$2 defines" "$(echo "$defined" | grep -v "_$1\$" | grep .)"
    used=$($nm --undefined-only -f posix "$2" | awk '{print $1}')
    for other in scalar avx2 avx512 neon; do
        [ $other = "$1" ] || complain "$2 uses" "$(echo "$used" | grep "_$other\$")"
    done
}

for folder in "$build"/obj/repops/cpu/*/; do
    isa=$(basename "$folder")
    for object in "$folder"*.o "$folder"*/*.o; do check "$isa" "$object"; done
done
for folder in "$build"/obj/repops/free/*/; do
    isa=$(basename "$folder")
    for object in "$folder"*.o; do check "${isa%_*}" "$object"; done
done
for object in "$build"/obj/repops/tools/functions_*.o; do
    isa=${object##*functions_}
    check "${isa%.o}" "$object"
done

[ $count -gt 0 ] || { echo "no objects in $build"; exit 1; }
[ $bad -eq 0 ] && echo "$count objects of instruction sets share nothing"
exit $bad
