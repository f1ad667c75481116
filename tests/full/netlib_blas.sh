#!/bin/sh
# netlib's test programs of single-precision BLAS and CBLAS (Debian's libblas-test) with librepops_blas preloaded: results and
# error exits. Routines that we lack come from the installed BLAS.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
# NETLIB_TESTS: the folder of the programs, if they are not installed.
programs=${NETLIB_TESTS:-$(dirname "$(find /usr/lib -path '*/blas/xblat3s' 2> /dev/null | head -n 1)")}
[ -x "$programs/xblat3s" ] || { echo "no programs of netlib (apt-get install libblas-test)"; exit 77; }
work=$build/tests/netlib_blas
rm -rf "$work"
mkdir -p "$work"
preload=$(cd "$build/lib" && pwd)/librepops_blas.so.1
passed=0

# try PROGRAM INPUT ROUTINE... : the program reports each routine as passed, and has called ours.
try() {
    program=$1 input=$2
    shift 2
    (cd "$work" && LD_PRELOAD=$preload REPOPS_VERBOSE=1 "$programs/$program" < "$input" > "$program.txt" 2> "$program.err")
    # The Fortran programs write their own summary files.
    for summary in "$work"/*.out; do
        [ ! -f "$summary" ] || { cat "$summary" >> "$work/$program.txt" && rm "$summary"; }
    done
    ! grep -E 'FAIL|ILLEGAL|\*\*\*\*' "$work/$program.txt" || { echo "$program: see $work/$program.txt"; exit 1; }
    for routine in "$@"; do
        taken=$(sed -n "s/.*[: ]$routine \([0-9]*\).*/\1/p" "$work/$program.err")
        [ "${taken:-0}" -gt 0 ] || { echo "$program: no call of $routine was taken"; exit 1; }
        # Programs of level 1 do not name the routines that pass.
        case $program in
        *1s | *blat1) grep -q 'PASS' "$work/$program.txt" ;;
        *) grep -qiE "$routine +PASSED THE TESTS OF ERROR-EXITS" "$work/$program.txt" &&
            grep -qiE "$routine +PASSED THE .*COMPUTATIONAL TESTS" "$work/$program.txt" ;;
        esac || { echo "$program: $routine is not said to have passed"; exit 1; }
        passed=$((passed + 1))
    done
}

try xblat1s /dev/null sdot
try xblat2s "$programs/sblat2.in" sgemv
try xblat3s "$programs/sblat3.in" sgemm ssyrk
try xscblat1 /dev/null sdot
try xscblat2 "$programs/sin2" sgemv
try xscblat3 "$programs/sin3" sgemm ssyrk
echo "6 programs pass, with $passed routines of ours"
