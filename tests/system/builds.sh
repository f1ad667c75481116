#!/bin/sh
# A build is never stale: other flags rebuild every object, an archive follows its list of objects, a missing file is made again,
# and nothing else is touched. The compiler here only writes into each file how it was called, which makes this quick. `make
# check` says what is missing, and which tests OP= leaves out.
set -u
work=$1/tests/builds
rm -rf "$work"
mkdir -p "$work"
cat > "$work/cc" << 'EOF'
#!/bin/sh
[ "$1" != --version ] || { echo "a compiler that writes what it is asked for"; exit; }
case "$*" in *" -E "*) echo "<stdin>:1:10: fatal error: criterion/criterion.h: No such file or directory" >&2; exit 1 ;; esac
said="$*"
while [ "$1" != -o ]; do shift; done
echo "$said" > "$2"
EOF
chmod +x "$work/cc"
fail() {
    echo "$*"
    exit 1
}
# built [VARIABLE=VALUE...]: builds everything, without the variables given to the make that runs this test.
built() {
    MAKEFLAGS='' make -s -j"$(nproc)" BUILD="$work/build" CC="$work/cc" PKG_LIBS= CFLAGS= "$@" programs > "$work/log.txt" 2>&1 ||
        fail "make $*: $(tail -n 3 "$work/log.txt")"
}
# made: prints how many objects are newer than the mark, and sets the mark again.
made() {
    objects=$(find "$work/build/obj" -name '*.o' -newer "$work/mark" | wc -l)
    sleep 0.02
    touch "$work/mark"
    echo "$objects"
}
members() { ar t "$work/build/lib/librepops.a" | wc -l; }

touch -d '1 minute ago' "$work/mark"
built OPT=-O1
all=$(made)
[ "$all" -gt 500 ] || fail "$all objects were made, expected all"
built OPT=-O1
again=$(made)
[ "$again" -eq 0 ] || fail "$again objects were made again though nothing changed: $(cat "$work/log.txt")"

built OPT=-O0
again=$(made)
[ "$again" -eq "$all" ] || fail "other flags: $again of $all objects were made again"
for object in $(find "$work/build/obj" -name '*.o'); do
    grep -q -e ' -O0 ' "$object" || fail "$object has the flags of the build before"
done
built OPT=-O0 CFLAGS=-DX
[ "$(made)" -eq "$all" ] || fail "CFLAGS=-DX: not all objects were made again"

# Flags with quotes, and flags from the environment, are the same in the next make, and in those that it starts.
made > /dev/null
export LDFLAGS=-L/nowhere
flags="-D'F(x)=x' -DN=\\\"a\\\""
built OPT=-O0 CFLAGS="$flags"
[ "$(made)" -eq "$all" ] || fail "CFLAGS=$flags: not all objects were made again"
built OPT=-O0 CFLAGS="$flags"
[ "$(made)" -eq 0 ] || fail "CFLAGS=$flags: objects were made again though nothing changed"
unset LDFLAGS

whole=$(members)
built OPT=-O0 CFLAGS=-DX
built OPT=-O0 CFLAGS=-DX NO_FREE=1
[ "$(members)" -lt "$whole" ] || fail "NO_FREE=1: the archive has the free kernels of the build before"
built OPT=-O0 CFLAGS=-DX
[ "$(members)" -eq "$whole" ] || fail "after NO_FREE=1 the archive lacks free kernels"

made > /dev/null
rm "$work/build/obj/repops/src/op.o" "$work/build/obj/verde/base/text.o" "$work/build/obj/verde/cli/main.o"
built OPT=-O0 CFLAGS=-DX
again=$(made)
[ "$again" -eq 3 ] || fail "of 3 objects that were deleted, $again were made again"
for file in lib/librepops.a lib/libverde.a bin/verde; do
    [ "$work/build/$file" -nt "$work/build/obj/verde/base/text.o" ] || fail "$file is older than what it is made of"
done

# refused WORDS [VARIABLE=VALUE...]: `make check` fails with a single line, which has these words, besides make's own.
refused() {
    words=$1
    shift
    ! MAKEFLAGS='' make -s BUILD="$work/build" CC="$work/cc" CFLAGS= "$@" check > "$work/log.txt" 2>&1 || fail "make check $*: no error"
    [ "$(grep -cv '^make' "$work/log.txt")" -eq 1 ] && grep -q "$words" "$work/log.txt" ||
        fail "make check $*: expected a line \"$words\", got: $(cat "$work/log.txt")"
}
refused 'need Criterion; on Debian: apt-get install libcriterion-dev' T=test_json
refused 'no operator of this name' T=test_json OP=sofmax

# With OP=, the last line of the tests says that only this operator was tested.
OP=softmax sh tests/run.sh "$work/one" "$1/tests/test_infer" > "$work/log.txt" 2>&1 || fail "OP=softmax: $(cat "$work/log.txt")"
tail -n 1 "$work/log.txt" | grep -q '0 failed; tests of all operators were tests of softmax alone$' || fail "$(cat "$work/log.txt")"
! OP=sofmax "$1/tests/test_infer" > "$work/log.txt" 2>&1 || fail "OP=sofmax is no error"
grep -q 'OP=sofmax: there is no operator of this name' "$work/log.txt" || fail "$(cat "$work/log.txt")"
echo "$all objects: made again for other flags, and only then"
