#!/bin/sh
# The installed library as others use it: from C, C++ and dlopen, with OpenMP, and beside a library built with -ffast-math; its
# exports, dependencies and global state.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
work=$build/tests/link
rm -rf "$work"
mkdir -p "$work/bin"
prefix=$(cd "$work" && pwd)/prefix
lib=$prefix/lib/librepops.so.1
cc=${CC:-cc}
count=0

fail() {
    echo "$*"
    exit 1
}
passed() {
    count=$((count + 1))
}
# same NAME: the sorted lists $work/got and $work/want are equal.
same() {
    diff "$work/want" "$work/got" > "$work/diff" || { cat "$work/diff"; fail "$1"; }
    passed
}

# ---- install: only needs a C compiler; DESTDIR only changes where files go ----

printf '#!/bin/sh\nexit 1\n' > "$work/bin/pkg-config"
chmod +x "$work/bin/pkg-config"
PATH=$PWD/$work/bin:$PATH make -s install-lib NVCC=absent BUILD="$build" PREFIX="$prefix" > "$work/log.txt" 2>&1 || { cat "$work/log.txt"; exit 1; }
make -s install-lib NVCC=absent BUILD="$build" PREFIX=/opt/repops DESTDIR="$PWD/$work/dest" >> "$work/log.txt" 2>&1
(cd "$prefix" && find . | sort) > "$work/want"
(cd "$work/dest/opt/repops" && find . | sort) > "$work/got"
same "DESTDIR installs other files"
grep -q '^prefix=/opt/repops$' "$work/dest/opt/repops/lib/pkgconfig/repops.pc" || fail "DESTDIR is in repops.pc"
for file in include/repops/repops.h include/repops/ref.h lib/librepops.a lib/librepops.so lib/librepops.so.1 \
    lib/librepops_blas.so lib/librepops_blas.so.1 lib/pkgconfig/repops.pc bin/repops-conform share/man/man3/repops.3 share/doc/repops/SPEC.md share/doc/repops/LICENSE; do
    [ -s "$prefix/$file" ] || fail "not installed: $file"
done
passed
# nvcc would fail here: the CUDA library is installed if it exists, and is never compiled.
cuda=$build/lib/librepops_cuda.so.1
[ -e "$cuda" ] || [ ! -e "$prefix/lib/librepops_cuda.so.1" ] || fail "installed a CUDA library from nowhere"
[ ! -e "$cuda" ] || [ -e "$prefix/lib/librepops_cuda.so.1" ] || fail "not installed: $cuda"
passed

# Uninstalling leaves only files that were not installed.
touch "$work/dest/opt/repops/lib/other"
make -s uninstall BUILD="$build" PREFIX=/opt/repops DESTDIR="$PWD/$work/dest" >> "$work/log.txt" 2>&1 || { cat "$work/log.txt"; exit 1; }
(cd "$work/dest" && find . ! -type d) > "$work/got"
echo ./opt/repops/lib/other > "$work/want"
same "uninstall leaves files, or takes others"
[ ! -e "$work/dest/opt/repops/include/repops" ] || fail "uninstall leaves its folder of headers"

# ---- exports, dependencies and state of the library ----

sed -nE 's/^RO_API.*(^|[^a-z0-9_])(ro_[a-z0-9_]+)\(.*/\2/p' "$prefix"/include/repops/*.h | sort > "$work/want"
versions='REPOPS_1(\.[0-9]+)*'
nm -D --defined-only "$lib" | sed -nE "s/.* [A-Z] ([a-z0-9_]+)@@$versions\$/\1/p" | sort > "$work/got"
same "exported symbols are not those of the headers"
# Each function keeps the version of its release. A new function gets a line, and after a release a node of its own.
functions() { nm -D --defined-only "$1" | sed -nE 's/.* [A-Z] (ro_[a-z0-9_]+)@@?([A-Z0-9_.]+)$/\1 \2/p' | sort; }
grep -v '^#' tests/golden/symbols.txt | sort > "$work/want"
functions "$lib" > "$work/got"
comm -13 "$work/want" "$work/got" | while read -r function version; do
    echo "$function is in $version, of which tests/golden/symbols.txt does not list it (docs/linking.md: a new function has a new version)"
done
same "functions, or their versions, are not those of tests/golden/symbols.txt"
nm -D --defined-only "$lib" | grep -v 'ro_' | grep -vE " A $versions\$" && fail "exports more than ro_"
nm --defined-only "$prefix/lib/librepops.a" | awk '$2 ~ /^[A-Z]$/ && $3 !~ /^ro_/' | grep . && fail "librepops.a defines names without ro_"
readelf -d "$lib" | grep -q 'SONAME.*\[librepops\.so\.1\]' || fail "no soname"
readelf -d "$lib" | grep NEEDED | grep -vE '\[(libc\.so|ld-linux)' && fail "needs more than libc"
passed

# Each version is one that Debian's packages depend on.
for version in $(sed -n 's/ {$//p' repops/librepops.map); do
    grep -q "^ (symver)$version [0-9]" debian/librepops1.symbols || fail "debian/librepops1.symbols lacks \" (symver)$version VERSION\""
done
passed
# After a release a new function has a new version, and all others have theirs (docs/linking.md).
sh repops/next_node.sh REPOPS_1.9999 > "$work/next.map"
echo 'void ro_new(void); __attribute__((visibility("default"))) void ro_new(void) {}' > "$work/new.c"
$cc -fPIC -c "$work/new.c" -o "$work/new.o"
# shellcheck disable=SC2046
$cc -shared -Wl,--version-script="$work/next.map" $(cat "$build/repops.list") "$work/new.o" -pthread -ldl -o "$work/next.so"
functions "$work/next.so" > "$work/got"
{ cat "$work/want"; echo "ro_new REPOPS_1.9999"; } | sort > "$work/next"
mv "$work/next" "$work/want"
same "a new function's version is not the new one, or others lose theirs"

# Memory comes from the context's hook: the library itself only calls the default allocator of that hook.
nm -D --undefined-only "$lib" | sed -E 's/.* [Uw] ([A-Za-z0-9_]+).*/\1/' | grep -E 'alloc|mmap|brk|memalign|strdup|^free$' |
    sort > "$work/got"
printf 'aligned_alloc\nfree\n' > "$work/want"
same "allocates through something else"
nm -D --undefined-only "$lib" | grep -E ' (exit|abort|_exit|printf|puts|fprintf|stderr|stdout|perror|signal|sigaction|atexit|[a-z]+f)(@|$)' |
    grep -E -v ' (vsnprintf|snprintf|getcpuf)' && fail "prints, exits or uses libm"

# The only writable objects are the compiler's own (crt, and data of __builtin_cpu_supports), and the error text of this thread's
# last failed ro_ctx_create, which has no context to hold it.
objdump -t "$lib" | sed -nE 's/.*[[:space:]](\.(data|bss|tdata|tbss))[[:space:]]+[0-9a-f]+ +(\.hidden )?([^. ][^ ]*)$/\1 \4/p' |
    grep -vE ' (__dso_handle|__TMC_END__|completed(\.[0-9]+)?|__cpu_model|__cpu_features2?|__aarch64_have_lse_atomics)$' | sort > "$work/got"
echo '.tbss create_error' > "$work/want"
same "writable global state"

# ---- rows of operators ----

# If an operator's row is missing in a table, neither a library nor a program links, and the linker names the row.
for row in cpu/scalar/elements/cast:ro_kernel_cast_scalar ref/images:ro_ref_op_read_images \
    ref/bounded_products:ro_bounded_op_matmul free/scalar_f64/rope:ro_free_kernel_rope_f64_scalar; do
    tr ' ' '\n' < "$build/repops.list" | grep -v "/repops/${row%:*}\.o$" > "$work/objects.txt"
    $cc -shared -pthread @"$work/objects.txt" -ldl -o "$work/without.so" 2> "$work/log.txt" && fail "links without ${row#*:}"
    grep -q "${row#*:}" "$work/log.txt" || { cat "$work/log.txt"; fail "the linker does not name ${row#*:}"; }
    passed
done

# ---- programs that use the library ----

PKG_CONFIG_PATH=$prefix/lib/pkgconfig
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags repops)
libs=$(pkg-config --libs repops)
[ "$(pkg-config --modversion repops)" = "$(sed -n 's/^#define RO_VERSION *"\(.*\)"/\1/p' "$prefix/include/repops/repops.h")" ] || fail "version"
strict="-Wall -Wextra -Wstrict-prototypes -pedantic -Werror"
# shellcheck disable=SC2086
{
    $cc -std=c99 $strict -D_GNU_SOURCE $flags tests/link/user.c $libs -o "$work/user_so"
    $cc -std=c11 $strict -D_GNU_SOURCE $flags tests/link/user.c "$prefix/lib/librepops.a" -pthread -o "$work/user_a"
    $cc -std=c11 $strict -D_GNU_SOURCE $flags tests/link/user.c -static $(pkg-config --static --libs repops) -o "$work/user_static"
    $cc -std=c11 $strict -D_GNU_SOURCE $flags tests/link/loader.c -ldl -o "$work/loader"
}
want=$("$work/user_a")
LD_LIBRARY_PATH=$prefix/lib
export LD_LIBRARY_PATH
# expect COMMAND...: prints the same hash.
expect() {
    got=$("$@") || fail "$* fails"
    [ "${got%% *}" = "$want" ] || fail "$*: $got, expected $want"
    passed
}
for backend in $("$prefix/bin/repops-conform" --list); do
    expect env REPOPS_CPU=$backend "$work/user_so"
done
expect "$work/user_so"
expect "$work/user_static"
expect "$work/loader" "$lib"

# The first program of docs/linking.md.
sed -n '/^```c$/,/^```$/{/^```/!p;/^```$/q}' docs/linking.md > "$work/first.c"
# shellcheck disable=SC2086
$cc -std=c11 $strict $flags "$work/first.c" $libs -o "$work/first" || fail "the program of docs/linking.md"
[ "$("$work/first")" = "[64, 256]" ] || fail "the program of docs/linking.md prints something else"
passed

# A program built for a later version.
# shellcheck disable=SC2086
$cc -std=c99 $strict -D_GNU_SOURCE $flags tests/link/newer.c $libs -o "$work/newer"
"$work/newer" > "$work/got" || fail "a program whose ro_options has a member more fails"
size=$(sed -n 's/.*byte \([0-9]*\) of .*/\1/p' "$work/got")
printf 'ro_options has members that this library (%s) does not know: byte %s of %s must be 0\n' \
    "$(pkg-config --modversion repops)" "$size" "$((size + 8))" > "$work/want"
same "a program whose ro_options has a member more"

# Each header compiles by itself with all compilers available. A structure that callers fill in must have no gaps: a member that a
# later version puts there would be random bytes from an older caller. ro_attr_info and ro_op_info are filled in by the library,
# and gaps in one operator's attributes (typed.h) stay, since operators do not change.
cxx=${CXX:-c++}
# header_is COMPILER OPTION...: the header compiles.
header_is() {
    command -v "$1" > /dev/null || return 0
    # shellcheck disable=SC2086
    "$@" -Wall -Wextra -pedantic -Werror $flags -fsyntax-only "$work/header.c" || fail "$header by $*"
}
for header in "$prefix"/include/repops/*.h; do
    echo "#include <repops/${header##*/}>" > "$work/header.c"
    for compiler in "$cc" clang; do
        for standard in c99 c11; do
            header_is $compiler -std=$standard -Wstrict-prototypes
        done
    done
    for compiler in "$cxx" clang++; do
        for standard in c++11 c++20; do
            header_is $compiler -x c++ -std=$standard
        done
    done
    passed
done
for header in "$prefix"/include/repops/*.h; do
    # shellcheck disable=SC2086
    echo "#include <repops/${header##*/}>" | $cc -x c -std=c11 -Wpadded $flags -fsyntax-only - 2>&1
done | awk -v lines="$prefix/include/repops/repops.h" '
    BEGIN { while ((getline line < lines) > 0) { n++
                if (line ~ /^typedef struct/) from = n
                if (line ~ /^} ro_(attr|op)_info;/) for (i = from; i <= n; i++) known["repops.h:" i] = 1 } }
    /-Wpadded/ { at = $1; sub(/.*\//, "", at); split(at, part, ":")
                 if (part[1] != "typed.h" && !((part[1] ":" part[2]) in known)) print }' > "$work/padded"
[ ! -s "$work/padded" ] || { cat "$work/padded"; fail "a structure that callers fill has a gap: name it \`reserved\`"; }
passed
if command -v "$cxx" > /dev/null; then
    # shellcheck disable=SC2086
    "$cxx" -x c++ -std=c++11 -Wall -Wextra -pedantic -Werror $flags tests/link/user.c $libs -o "$work/user_cxx"
    expect "$work/user_cxx"
else
    echo "no C++ compiler: that user is left out"
fi
# shellcheck disable=SC2086
if $cc -fopenmp -std=c11 $flags tests/link/openmp.c $libs -o "$work/openmp" 2> "$work/log.txt"; then
    expect "$work/openmp"
else
    echo "no OpenMP: that user is left out"
fi

# The CMake and C++ example finds the installed library, and gives one hash on every backend.
if command -v "$cxx" > /dev/null && command -v cmake > /dev/null; then
    cmake -S examples/cmake -B "$work/cmake" > "$work/log.txt" 2>&1 && cmake --build "$work/cmake" >> "$work/log.txt" 2>&1 ||
        { cat "$work/log.txt"; fail "the example for CMake"; }
    for backend in $("$prefix/bin/repops-conform" --list); do
        got=$(REPOPS_CPU=$backend LD_LIBRARY_PATH='' "$work/cmake/layer")
        [ "$got" = "$(cat tests/golden/layer.txt)" ] || fail "examples/cmake on $backend: $got"
        passed
    done
else
    echo "no C++ compiler or no CMake: the example for both is left out"
fi

# ---- beside a library built with -ffast-math, which makes the thread flush subnormals ----

$cc -shared -fPIC -ffast-math tests/link/fastmath.c -o "$work/fastmath.so"
expect "$work/loader" "$lib" "$work/fastmath.so"
case $(uname -m) in
x86_64) [ "${got#* }" = 9fc0 ] || fail "fastmath.so changed no mode: the test shows nothing: $got" ;;
esac
LD_PRELOAD=$work/fastmath.so "$prefix/bin/repops-conform" > "$work/conform.txt" || { tail -n 5 "$work/conform.txt"; exit 1; }
passed

# ---- the manual ----

if command -v man > /dev/null && command -v groff > /dev/null; then
    for page in repops/man/*; do
        man --warnings=w -E UTF-8 -Tutf8 -l "$page" 2>&1 > /dev/null | grep . && fail "$page"
    done
    passed
fi
echo "$count checks, hash $want"
