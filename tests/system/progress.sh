#!/bin/sh
# verde/progress.sh shows each line of a build as it comes, numbered, and returns the build's exit code. The fake make continues
# only once its last line is on the "screen", so anything that buffers lines (some awks do) blocks it. verde/packages.sh does the
# same for packages; the fake apt-get installs nothing.
set -eu
work=$1/tests/progress
rm -rf "$work"
mkdir -p "$work"
work=$(cd "$work" && pwd)

fail() {
    echo "$*"
    cat "$work/screen"
    exit 1
}

cat > "$work/make" << 'MAKE'
#!/bin/sh
# say TEXT: prints a line, which must be on the screen before the next one.
say() {
    printf '%s\n' "$1"
    tries=0
    until grep -qF -- "$1" "$SCREEN"; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || { echo "late" > "$SCREEN.late"; exit 9; }
        sleep 0.1
    done
}
if [ "$1" = -n ]; then
    printf 'echo "  CC      a.c"\ngcc a.c\n echo "  CC      b\\n.c"\necho "  LD      c"\n'
    exit 0
fi
echo "$*" > "$SCREEN.arguments"
say "  CC      a.c"
say "a.c:1: a warning of the compiler, 100 %s"
say '  CC      b\n.c'
say "  LD      c"
printf 'the end, without a line feed'
exit 3
MAKE
chmod +x "$work/make"

: > "$work/screen"
code=0
SCREEN=$work/screen MAKE=$work/make sh verde/progress.sh -j7 'a target' > "$work/screen" || code=$?
[ ! -e "$work/screen.late" ] || fail "a line does not come before the next one is made"
[ $code -eq 3 ] || fail "the build ended with 3, progress.sh with $code"
[ "$(cat "$work/screen.arguments")" = "--no-print-directory -j7 a target" ] || fail "make was given: $(cat "$work/screen.arguments")"
sed 's/, [0-9:]*\(, [0-9:]* left\)*\]/]/' "$work/screen" > "$work/plain"
cat > "$work/expected" << 'LINES'
[1 of 3]  CC      a.c
a.c:1: a warning of the compiler, 100 %s
[2 of 3]  CC      b\n.c
[3 of 3]  LD      c
the end, without a line feed
LINES
diff "$work/expected" "$work/plain" || fail "the screen has other lines"

# Nothing to do: make says so itself.
# shellcheck disable=SC2016
printf '#!/bin/sh\n[ "$1" = -n ] || echo "up to date"\n' > "$work/make"
[ "$(MAKE=$work/make sh verde/progress.sh all)" = "up to date" ] || fail "a build with nothing to do says something else"
# ---- packages ----

mkdir "$work/bin"
printf '#!/bin/sh\necho 0\n' > "$work/bin/id"
cat > "$work/bin/dpkg-query" << 'QUERY'
#!/bin/sh
[ "$4" != there ] || printf 'install ok installed'
QUERY
cat > "$work/bin/apt-get" << 'APT'
#!/bin/sh
echo "$*" >> "$LOG"
case " $* " in
*' update '*) exit 0 ;;
*' --print-uris '*) printf "'http://x/a.deb' a.deb 1 SHA256:0\n'http://x/b.deb' b.deb 1 SHA256:0\n" ;;
*' -s '*) printf 'Inst a (1)\nInst b (2)\nConf a (1)\nConf b (2)\n' ;;
*)
    printf 'Get:1 http://x s/main amd64 a amd64 1 [5 kB]\nGet:2 http://x s/main amd64 b amd64 1 [5 kB]\n'
    printf 'Unpacking a (1) ...\nUnpacking b (2) ...\nSetting up a (1) ...\n'
    [ -z "${BROKEN:-}" ] || { echo "E: b is broken" >&2; exit 100; }
    echo 'Setting up b (2) ...'
    ;;
esac
APT
chmod +x "$work"/bin/*
# packages NAME...: runs packages.sh as root on a machine that only has the package `there`.
packages() {
    : > "$work/apt"
    code=0
    NO_INSTALL='' LOG=$work/apt PATH=$work/bin:$PATH sh verde/packages.sh "$@" > "$work/screen" 2>&1 || code=$?
}
packages there
[ $code -eq 0 ] && [ ! -s "$work/apt" ] || fail "something is installed that is there"
packages there a b
[ $code -eq 0 ] || fail "packages.sh ends with $code"
[ "$(tail -n 1 "$work/apt")" = "install -y --no-install-recommends -q a b" ] || fail "apt-get was called otherwise: $(cat "$work/apt")"
sed 's/, [0-9:]*\(, [0-9:]* left\)*\]/]/' "$work/screen" > "$work/plain"
cat > "$work/expected" << 'LINES'
Installing a b
[1 of 6]  FETCH   a
[2 of 6]  FETCH   b
[3 of 6]  UNPACK  a
[4 of 6]  UNPACK  b
[5 of 6]  SET UP  a
[6 of 6]  SET UP  b
LINES
diff "$work/expected" "$work/plain" || fail "packages.sh shows other lines"
export BROKEN=1
packages a b
[ $code -eq 1 ] && grep -q 'E: b is broken' "$work/screen" || fail "packages.sh hides why apt-get failed"
echo "lines of a build come at once, numbered, and its exit code is passed on; packages likewise"
