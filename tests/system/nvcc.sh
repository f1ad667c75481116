#!/bin/sh
# Where nvcc is searched for, with which options it is called, and the one line that says why it cannot be used.
# Usage: nvcc.sh BUILD_DIR. The toolkits are made up here, so none is needed.
set -u
[ -z "${SANITIZED:-}" ] || { echo "scripts are the same under sanitizers"; exit 77; }
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }
unset NVCC NVCC_CCBIN CUDA_HOME CUDA_PATH

# toolkit FOLDER [LINE...]: makes an nvcc that prints these lines and fails, or without lines compiles anything.
toolkit() {
    file=$temp/$1/bin/nvcc
    mkdir -p "$temp/$1/bin"
    shift
    {
        echo '#!/bin/sh'
        echo "echo \"\$@\" > $temp/arguments"
        [ $# -eq 0 ] || { printf "echo '%s' >&2\n" "$@"; echo 'exit 2'; }
    } > "$file"
    chmod +x "$file"
}
toolkit home
toolkit path
toolkit along
# found WANT ENVIRONMENT...: find_nvcc prints WANT.
found() {
    want=$1
    shift
    got=$(env "$@" sh repops/cuda/find_nvcc 2> "$temp/err") || { cat "$temp/err"; got=; }
    [ "$got" = "$want" ] || fail "with $*: \"$got\", expected \"$want\""
}
found "$temp/home/bin/nvcc" CUDA_HOME="$temp/home" CUDA_PATH="$temp/path" PATH="$temp/along/bin:$PATH"
found "$temp/path/bin/nvcc" CUDA_HOME="$temp/none" CUDA_PATH="$temp/path" PATH="$temp/along/bin:$PATH"
found nvcc PATH="$temp/along/bin:$PATH"
found "$temp/home/bin/nvcc -ccbin g++-12" NVCC="$temp/home/bin/nvcc -ccbin g++-12" CUDA_PATH="$temp/path"

# Options in NVCC reach the compiler, from make and from scripts.
CUDA_ARCHS=80 make -n BUILD="$temp/build" NVCC="$temp/home/bin/nvcc -ccbin g++-12" cuda > "$temp/out" 2>&1
grep -qF "$temp/home/bin/nvcc -ccbin g++-12 -std=c++20" "$temp/out" || { tail -n 3 "$temp/out"; fail "make does not pass the options of NVCC"; }
NVCC="$temp/home/bin/nvcc -ccbin g++-12" sh repops/cuda/find_nvcc --check || fail "a toolkit that compiles is refused"
grep -q '^-ccbin g++-12 -std=c++20' "$temp/arguments" || fail "the check does not pass the options of NVCC"

# refused TEXT NVCC: one line has the TEXT, before anything is compiled.
refused() {
    NVCC=$2 sh repops/cuda/find_nvcc --check > "$temp/out" 2>&1 && fail "$2 is not refused"
    [ "$(wc -l < "$temp/out")" -eq 1 ] && grep -qF "$1" "$temp/out" || { cat "$temp/out"; fail "$2: no single line with \"$1\""; }
    CUDA_ARCHS=80 make BUILD="$temp/build" NVCC="$2" "$temp/build/obj/repops/cuda/tree.o" > "$temp/out" 2>&1 && fail "make goes on with $2"
    grep -qF "$1" "$temp/out" || { tail -n 3 "$temp/out"; fail "make with $2: no line with \"$1\""; }
    ! grep -q '  NVCC ' "$temp/out" || fail "make compiles with $2"
}
toolkit new '/usr/include/crt/host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 15 are not supported!'
refused "does not take its host compiler, which is newer than it (unsupported GNU version): name another one by NVCC_CCBIN" "$temp/new/bin/nvcc"
toolkit old "nvcc warning : The -std=c++20 flag is not supported with the configured host compiler. Flag will be ignored." \
    "host.cu(1): error: concepts: No such file or directory"
refused "do not compile C++20 (g++ 11 or later does; name it by NVCC_CCBIN): host.cu(1): error: concepts" "$temp/old/bin/nvcc -O1"
refused "there is no $temp/none/nvcc" "$temp/none/nvcc -O1"
[ $bad -eq 0 ] && echo "nvcc is found in CUDA_HOME, CUDA_PATH and PATH, with options; a host compiler that it does not take is one line"
exit $bad
