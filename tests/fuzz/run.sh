#!/bin/sh
# Runs the targets of tests/fuzz, each for SECONDS of new inputs; with 0, only the kept inputs.
# Usage: run.sh BUILD_DIR SECONDS TARGET...; inputs that crash lie in BUILD_DIR/crashes.
set -u
build=$1 seconds=$2
shift 2
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
# inputs TARGET: prints the kept inputs, and files of the project that serve as inputs.
inputs() {
    ls -d tests/fuzz/corpus/"$1"/* 2> /dev/null
    case $1 in
    job) ls models/jobs/*.yaml tests/vectors/jobs/*/*.yaml ;;
    config) ls tests/vectors/pretrained/*/config.json ;;
    program | estimate) ls tests/graphs/corpus/*.program ;;
    manifest) ls tests/vectors/weights/*.manifest ;;
    esac
}
bad=0 total=0 targets=0
for target; do
    targets=$((targets + 1))
    # shellcheck disable=SC2046
    set -- $(inputs "$target")
    [ $# -gt 0 ] || { echo "FAILED: $target has no kept input"; bad=1; continue; }
    total=$((total + $#))
    if [ "$seconds" -eq 0 ]; then
        said=$("$build/fuzz/$target" "$@" 2>&1) || { echo "$said" | tail -n 30; echo "FAILED: $target"; bad=1; }
        continue
    fi
    found=$build/corpus/$target
    mkdir -p "$found" "$build/crashes"
    for file; do cp "$file" "$found/seed-$(echo "$file" | tr / -)"; done
    echo "$target: $# kept inputs, $seconds s"
    "$build/fuzz/$target" -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="$build/crashes/$target-" "$found" > "$build/$target.log" 2>&1 ||
        { tail -n 40 "$build/$target.log"; echo "FAILED: $target"; bad=1; }
    sed -n 's/^stat::number_of_executed_units: */  executions: /p' "$build/$target.log"
done
[ $bad -eq 0 ] && echo "$targets parsers took $total kept inputs$([ "$seconds" -eq 0 ] || echo " and $seconds s of new ones each")"
exit $bad
