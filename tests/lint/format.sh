#!/bin/sh
# Every source file is formatted by clang-format (`make format`). The tool's versions differ in details: .clang-format is
# for version 14, Debian 12's.
set -u
[ -z "${SANITIZED:-}" ] || { echo "the format is the same under sanitizers"; exit 77; }
case $(clang-format --version 2> /dev/null) in
*"version 14."*) ;;
*) echo "no clang-format 14: the format was not looked at"; exit 77 ;;
esac
git ls-files > /dev/null 2>&1 || { echo "no checkout of git: which files are the project's is not known"; exit 77; }
bad=$(git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cc' | xargs clang-format --dry-run 2>&1 | grep 'warning:')
[ -z "$bad" ] && echo "all sources are as clang-format leaves them" && exit 0
echo "$bad" | head -n 20
echo "make format"
exit 1
