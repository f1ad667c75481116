#!/bin/sh
# Every operator's source refuses to compile under -ffast-math and those of its parts that a compiler announces, and for 32-bit
# machines.
set -u
cc=${CC:-cc} bad=0
[ -z "${SANITIZED:-}" ] || { echo "sources are the same under sanitizers"; exit 77; }

# refused FILE FLAG...: the compiler must stop at the #error of repops/src/math.h.
refused() {
    file=$1
    shift
    said=$($cc -std=c11 -D_GNU_SOURCE -I. -Irepops/include -DRO_ISA=scalar -DRO_ISA_scalar=1 "$@" -fsyntax-only "$file" 2>&1)
    echo "$said" | grep -q 'cannot be built with -ffast-math' || { echo "$file accepts $*"; bad=1; }
}

for file in repops/cpu/*.c repops/cpu/*/*.c repops/free/*.c repops/ref/*.c repops/src/ctx.c repops/src/pool.c; do
    $cc -std=c11 -D_GNU_SOURCE -I. -Irepops/include -DRO_ISA=scalar -DRO_ISA_scalar=1 -DRO_REAL=f64 -DRO_IS_f64=1 -ffast-math -fsyntax-only "$file" \
        > /dev/null 2>&1 && { echo "$file accepts -ffast-math"; bad=1; }
done
refused repops/cpu/elements/functions.c -Ofast
refused repops/cpu/elements/functions.c -ffinite-math-only
if echo | $cc -fassociative-math -fno-signed-zeros -fno-trapping-math -dM -E - | grep __ASSOCIATIVE_MATH__ > /dev/null; then # gcc
    refused repops/cpu/elements/functions.c -fassociative-math -fno-signed-zeros -fno-trapping-math
    refused repops/cpu/elements/functions.c -freciprocal-math
    refused repops/cpu/elements/functions.c -fno-signed-zeros
fi

# modes FLAG...: prints the compiler's messages about the header that sets the modes; with -ffreestanding it needs no 32-bit C
# library.
modes() {
    echo '#include "repops/src/fpenv.h"' | $cc -std=c11 -I. -Irepops/include -ffreestanding "$@" -x c -fsyntax-only - 2>&1
}
[ -z "$(modes)" ] || { echo "fpenv.h does not compile alone"; bad=1; }
narrow="-U__SIZE_MAX__ -D__SIZE_MAX__=0xffffffffU"
for flags in "$narrow" "-m32 -msse2 -mfpmath=sse" -mx32; do
    # shellcheck disable=SC2086
    [ "$flags" = "$narrow" ] || echo | $cc $flags -x c -fsyntax-only - > /dev/null 2>&1 || continue
    # shellcheck disable=SC2086
    modes $flags | grep -q 'needs a 64-bit machine' || { echo "fpenv.h accepts $flags"; bad=1; }
    machines="${machines:+$machines, }${flags%% *}"
done
for file in repops/src/ctx.c repops/src/pool.c; do
    grep -q '^#include "repops/src/fpenv.h"' $file || { echo "$file does not ask what the machine is"; bad=1; }
done

[ $bad -eq 0 ] && echo "no operator can be built with -ffast-math, and none for 32 bits (tried: $machines)"
exit $bad
