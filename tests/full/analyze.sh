#!/bin/sh
# Runs clang's analyzer over Verde and the models. It looks for values that are used before they are set, memory that is freed
# twice, used after it was freed or lost, and null pointers. Its findings must be those in analyze/known.txt, where each has the
# reason why it cannot happen. It must find a planted fault of each kind. Takes 5 minutes of CPU time.
set -u
build=$1
[ -z "${SANITIZED:-}" ] || { echo "sources are the same under sanitizers"; exit 77; }
case $(clang --version 2> /dev/null) in
*"version 14."*) ;;
*) echo "no clang 14, whose findings are known"; exit 77 ;;
esac
work=$build/tests/analyze
rm -rf "$work"
mkdir -p "$work/said"
flags="-std=c11 -D_GNU_SOURCE -I. -Irepops/include $(pkg-config --cflags openssl sqlite3 zlib yaml-0.1 libevent libevent_openssl libevent_pthreads libcurl jansson)"

# analyze FILE: prints its findings, a line each, without line numbers: `FILE: CHECKER: MESSAGE`.
cat > "$work/analyze" << SH
case \$1 in verde/base/error.c) prelude= ;; *) prelude="-include tests/full/analyze/prelude.h" ;; esac
clang --analyze --analyzer-output text $flags \$prelude -o /dev/null "\$1" > "$work/said/\$(echo "\$1" | tr / _)" 2>&1 || true
SH
findings() {
    cat "$work"/said/* | sed -nE 's/^([^: ]+):[0-9]+:[0-9]+: warning: (.*) \[([a-zA-Z.]+)\]$/\1: \3: \2/p
        s/^([^: ]+):[0-9]+:[0-9]+: (fatal )?error: (.*)$/\1: it does not compile: \3/p' | sort
}

sh "$work/analyze" tests/full/analyze/planted.c
findings > "$work/planted"
for kind in core.uninitialized.Assign core.CallAndMessage core.NullDereference unix.Malloc; do
    grep -q "planted.c: $kind:" "$work/planted" || { cat "$work/planted"; echo "the planted $kind is not found"; exit 1; }
done
rm -f "$work"/said/*
ls models/*.c verde/*/*.c | grep -v '^verde/mpi/' | xargs -P "$(nproc)" -n 1 sh "$work/analyze"
findings > "$work/found"
sed -nE 's/^([^#].*) -- .*$/\1/p' tests/full/analyze/known.txt | sort > "$work/known"
comm -23 "$work/found" "$work/known" > "$work/new"
comm -13 "$work/found" "$work/known" > "$work/gone"
bad=0
[ ! -s "$work/new" ] || { echo "new; mend them, or say in analyze/known.txt why they cannot come:"; cat "$work/new"; bad=1; }
[ ! -s "$work/gone" ] || { echo "no longer found; take them out of analyze/known.txt:"; cat "$work/gone"; bad=1; }
[ $bad -eq 0 ] && echo "$(ls "$work/said" | wc -l) files: nothing but $(wc -l < "$work/known") findings that are known, and why"
exit $bad
